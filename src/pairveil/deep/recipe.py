"""The recipe of a network: one query, asked at every step, and an optimiser that sees its answers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pairveil.deep.gradients import NetworkGradient
from pairveil.deep.network import Network
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.privacy.mechanisms import Query

BATCH = 4096
"""Pairs expected in a Poisson batch; fewer pairs than twice this are all used at every step."""
FILLED = 0.75  # of a micro-batch that a bucket is expected to fill
DEPTH = 16  # micro-batches a bucket is expected to fill where pairs keep their places


def sample_rate_of(rate: float | str, n_records: int) -> float:
    """The share of pairs in a step; ``'auto'`` follows their number alone.

    Examples
    --------
    >>> sample_rate_of("auto", 5_000), sample_rate_of("auto", 40_960), sample_rate_of(0.5, 10)
    (1.0, 0.1, 0.5)
    """
    if not isinstance(rate, str):
        return float(rate)
    return 1.0 if n_records <= 2 * BATCH else BATCH / n_records


def gradient_at(
    network: Network, query: Query, clip: float, in_place: bool = False
) -> NetworkGradient:
    """The statistic that a step asks for, at the network's present parameters."""
    bucket = network.micro_batch
    if query.is_sampled:
        filled = DEPTH if in_place else FILLED
        bucket = math.ceil(filled * network.micro_batch / query.sample_rate)
    return NetworkGradient(network, network.flat(), clip, bucket, in_place)


def put_gradient(network_parameters: list[tuple[str, Any]], mean: NDArray[np.float64]) -> None:
    """Write one vector into the ``grad`` of each parameter."""
    vector, place = torch.as_tensor(mean), 0
    for _, one in network_parameters:
        part = vector[place : place + one.numel()].reshape(one.shape)
        one.grad = part.to(one.device, one.dtype)
        place += one.numel()


@dataclass(frozen=True)
class NetworkRecipe:
    """Noisy gradient steps; the mean of the last half of them is the model.

    Parameters
    ----------
    sample_rate : float or 'auto'
    in_place : bool
        As in `NetworkGradient`.
    """

    network: Network
    loss_name: str
    n_steps: int
    sample_rate: float | str
    clip: float
    learning_rate: float
    in_place: bool = False
    headline: str = "gradients"

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """One query of all parameters that learn."""
        rate = sample_rate_of(self.sample_rate, setting.n_records)
        shape = (self.network.n_parameters,)
        return (Ask("gradients", shape, 1.0, self.n_steps, "poisson", rate),)

    def run(self, plan: Plan, engine: Engine) -> NDArray[np.float64]:
        """Parameters after all steps, from noisy sums alone."""
        query, network = plan["gradients"], self.network
        start = network.flat()
        optimiser = torch.optim.Adam([one for _, one in network.parameters], lr=self.learning_rate)
        expected = query.sample_rate * plan.n_records
        mean, taken = np.zeros_like(start), 0
        try:
            for step in range(query.steps):
                answer = engine.answer(query, gradient_at(network, query, self.clip, self.in_place))
                put_gradient(network.parameters, answer / expected)
                optimiser.step()
                if 2 * step >= query.steps - 1:
                    taken += 1
                    mean += (network.flat() - mean) / taken
        finally:
            network.forget()
            network.load(start)  # another run of this recipe starts where this one did
            for _, one in network.parameters:
                one.grad = None
        return mean

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {
            "loss": self.loss_name,
            "max_grad_norm": self.clip,
            "learning_rate": self.learning_rate,
            "micro_batch": self.network.micro_batch,
        } | ({"autocast": "bfloat16"} if self.network.half else {})
