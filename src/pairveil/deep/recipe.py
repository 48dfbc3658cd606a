"""The recipe of a network: one query, asked at every step, and an optimiser that sees its answers alone.

The query is the sum of clipped gradients of pairs through the network, in whole multiples of a grid.
Sensitivity (docs/theory/deep.md). The network computes activations and slopes in its own precision; a pair's
gradient is the exact product of those numbers, its norm is rounded up, and sums are float64 or exact. Pairs
are cut into *buckets* by position alone, each bucket's sum is rounded to the grid on its own, and a
pair's change moves one bucket only: by the clip, by the bucket's floating-point error and by the
rounding, all of them charged.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pairveil.array_types import IntArray
from pairveil.deep.network import CANCELLING, Network
from pairveil.deep.ranks import add_over_ranks, own_share
from pairveil.deep.records import something_said
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Plan, PublicFacts, QuerySpec
from pairveil.engine.statistics import Statistic
from pairveil.errors import InputError
from pairveil.privacy.grid import CLIP_ERROR, UNIT_ROUNDOFF, Norm
from pairveil.privacy.mechanisms import Query
from pairveil.records.kinds import VACANT


@dataclass(frozen=True, eq=False)
class NetworkGradient(Statistic):
    """Gradient of a network's loss at some parameters, clipped pair by pair."""

    network: Network
    values: NDArray[np.float64]  # where the gradient is taken
    clip: float
    bucket: int  # pairs, by position, whose sum is rounded at once (public; from the sample rate)
    # Of a Poisson sample, put each record at a place of its micro-batch that follows from its position
    # alone: for devices that compute a row differently at different places (`rows_stand_alone`)
    in_place: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """One number a parameter."""
        return (self.network.n_parameters,)

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """How far one pair moves the integer sum, rounding included."""
        del dtype
        if norm != "l2":
            raise InputError("a network's gradients are clipped in l2: use mechanism='gaussian'")
        # A product sums the positions of one micro-batch; then the micro-batches of a bucket are added.
        micro, pairs = self.network.micro_batch, max(self.bucket, self.network.micro_batch)
        addends = micro * self.network.positions + math.ceil(pairs / micro) + 9
        gamma = addends * UNIT_ROUNDOFF / (1 - addends * UNIT_ROUNDOFF)
        error = 2 * gamma * pairs * CANCELLING * self.clip
        rounding = grid * math.sqrt(self.network.n_parameters)
        return self.clip * (1 + CLIP_ERROR + self.network.rounding) + error + rounding

    def is_compilable(self, data: Any) -> bool:
        """The network's own code sums pairs."""
        del data
        return True

    def compiled_sum(
        self, data: Any, rows: IntArray | None, norm: Norm, grid: float, separately: bool
    ) -> IntArray:
        """Sum over some pairs.

        A Poisson sample (``separately``) leaves null pairs out before it fills micro-batches: whether one was
        drawn moves nothing. Otherwise every pair, null or not, has its place.
        """
        del norm
        self.network.load(self.values)
        total = torch.zeros(self.shape, dtype=torch.int64, device=self.network.device)
        for bucket in own_share(self._buckets(data, rows, separately)):
            part = torch.zeros(self.shape, dtype=torch.float64, device=self.network.device)
            for rows_now, places in self._layers(bucket, in_place=separately and self.in_place):
                part += self._micro_batch(data, rows_now, places)
            units = torch.round(part / grid)
            if not bool((units.abs() < 2.0**62).all()):
                raise InputError("a sum of gradients is too large for its grid")
            total += units.to(torch.int64)
        summed: IntArray = add_over_ranks(total).cpu().numpy()
        return summed

    def _buckets(self, data: Any, rows: IntArray | None, separately: bool) -> Iterator[IntArray]:
        if not separately:
            places = np.arange(data.n_records) if rows is None else rows
            for start in range(0, len(places), self.network.micro_batch):
                yield places[start : start + self.network.micro_batch]
            return
        drawn = np.arange(data.n_records) if rows is None else rows
        said = self.network.records.contents(data, drawn)[1]
        drawn = drawn[something_said(said)]
        edges = np.searchsorted(drawn, np.arange(0, data.n_records + self.bucket, self.bucket))
        for start, stop in pairwise(edges):
            if stop > start:
                yield drawn[start:stop]

    def _layers(self, bucket: IntArray, *, in_place: bool) -> Iterator[tuple[IntArray, IntArray]]:
        """A bucket's pairs as micro-batches: which pairs, and at which places."""
        room = self.network.micro_batch
        if not in_place:
            for start in range(0, len(bucket), room):
                now = bucket[start : start + room]
                yield now, np.arange(len(now))
            return
        # One pair more moves those behind it that share its place to later layers, at the same place.
        places = bucket % room
        order = np.argsort(places, kind="stable")
        sorted_places = places[order]
        layer = np.arange(len(bucket)) - np.searchsorted(sorted_places, sorted_places)
        for depth in range(int(layer.max()) + 1):
            now = order[layer == depth]
            yield bucket[now], places[now]

    def _micro_batch(self, data: Any, rows: IntArray, places: IntArray) -> torch.Tensor:
        """Clipped sum over at most one micro-batch, always of one shape: the rest are null pairs."""
        network, room = self.network, self.network.micro_batch
        people, spoken = network.records.contents(data, rows)
        there = something_said(spoken)[:, None] & (
            people != VACANT
        )  # a null record has no contents
        held = held_inputs(data.features, network)
        now = held[torch.from_numpy(np.where(there, people, 0).T).to(held.device)]
        now[torch.from_numpy(~there.T).to(held.device)] = 0
        at = torch.from_numpy(places).to(network.device)
        ends = torch.zeros((len(now), room, *network.shape), dtype=held.dtype, device=at.device)
        ends[:, at] = now.to(at.device)
        given = torch.zeros((room, *spoken.shape[1:]), device=at.device)
        given[at] = torch.from_numpy(spoken).to(given)
        return network.recorded_sum(self.clip)(*ends, given)


def held_inputs(features: NDArray[Any], network: Network) -> torch.Tensor:
    """People's rows as the network takes them, on its device if they fit into half of what is free there."""
    if network.held is None or network.held[0] is not features:
        # torch: an array that cannot be written to
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            rows = torch.from_numpy(features).reshape(-1, *network.shape)
        rows, where = rows.to(torch.int64 if network.tokens else network.dtype), network.device
        if where.type == "cuda" and 2 * rows.nbytes > torch.cuda.mem_get_info(where)[0]:
            where = torch.device("cpu")
        network.held = features, rows.to(where)
    return network.held[1]


def rows_stand_alone(network: Network) -> bool:
    """Whether a row's slopes are the same bits wherever it stands in a micro-batch, on random inputs.

    Where it is not so, the pairs of a Poisson sample keep their places (`NetworkGradient.in_place`).
    """
    n, size = network.micro_batch, network.records.size
    said = torch.tensor(network.records.trial, dtype=torch.float32, device=network.device)
    given = [network.example(n, seed=4 + place) for place in range(size)]
    given.append(said[torch.arange(n, device=network.device) % len(said)])
    first = network.gradients(*given)
    for shift in (1, 7, n // 2 + 1):
        moved = network.gradients(*(torch.roll(one, shift, 0) for one in given))
        back = torch.roll(moved.square, -shift, 0)
        if not torch.equal(back, first.square):
            return False
    return True


# ---- the recipe ------------------------------------------------------------------------------------

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
    """Noisy gradient steps; the mean of the last half of them is the model."""

    network: Network
    loss_name: str
    n_steps: int
    sample_rate: float | str
    clip: float
    learning_rate: float
    in_place: bool = False
    headline: str = "gradients"

    def ask(self, facts: PublicFacts) -> tuple[QuerySpec, ...]:
        """One query of all parameters that learn."""
        rate = sample_rate_of(self.sample_rate, facts.n_records)
        shape = (self.network.n_parameters,)
        return (QuerySpec("gradients", shape, 1.0, self.n_steps, "poisson", rate),)

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
