"""Private steps for a training loop of one's own, in the shape that users of Opacus know.

steps = make_private(module, optimizer, pairs, y, data, epsilon=1.0, n_steps=200)
for _ in steps:                       # each turn: one private gradient, one optimizer.step()
    ...                               # schedules, logging of public numbers
steps.certificate
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import nn

from pairveil.deep.ranks import holds_anywhere, is_first
from pairveil.deep.recipe import NetworkRecipe, gradient_at, put_gradient
from pairveil.deep.trainer import PrivateMetricTrainer
from pairveil.engine.backends.records import backend_for
from pairveil.engine.engine import Engine
from pairveil.errors import InputError
from pairveil.learners import charging
from pairveil.learners.preparing import Prepared
from pairveil.privacy.certificate import Certificate


class PrivateSteps:
    """A budget of private gradient steps that was charged at once; made by `make_private`.

    Iterating takes them one after the other: the noisy mean gradient is written into the module's ``grad``
    and the optimiser makes its step.
    """

    def __init__(self, trainer: PrivateMetricTrainer, optimizer: Any, prepared: Prepared) -> None:
        recipe = prepared.recipe
        assert isinstance(recipe, NetworkRecipe)
        self._network, self._clip = recipe.network, recipe.clip
        self._in_place = holds_anywhere(recipe.in_place)
        self._plan, self._certificate = prepared.plan, prepared.certificate
        self._own = [one for one in trainer.module.parameters() if one.requires_grad]
        self._optimizer = optimizer
        if is_first():
            charging.charge(trainer.accountant, prepared, None)
        self._engine = Engine(backend_for(prepared.material.used, "auto"), prepared.noise)
        self._left = self._plan["gradients"].steps

    def __len__(self) -> int:
        return self._left

    def __iter__(self) -> Iterator[int]:
        while self._left:
            self.step()
            yield self._plan["gradients"].steps - self._left

    def step(self) -> None:
        """One private gradient and one step of the optimiser."""
        if not self._left:
            raise InputError("all steps that were charged have been taken")
        query = self._plan["gradients"]
        with torch.no_grad():
            for (_, inner), outer in zip(self._network.parameters, self._own, strict=True):
                inner.copy_(outer)
        gradient = gradient_at(self._network, query, self._clip, self._in_place)
        answer = self._engine.answer(query, gradient)
        self._left -= 1
        expected = query.sample_rate * self._plan.n_records
        put_gradient([("", one) for one in self._own], answer / expected)
        self._optimizer.step()
        self._optimizer.zero_grad()

    @property
    def certificate(self) -> Certificate | None:
        """What was promised and charged: all steps, whether or not they have been taken."""
        return self._certificate


def make_private(
    module: nn.Module, optimizer: Any, pairs: Any, y: ArrayLike, data: Any, **options: Any
) -> PrivateSteps:
    """Charge a budget of private steps for a module and an optimiser.

    Parameters
    ----------
    module : torch.nn.Module
    optimizer : torch.optim.Optimizer
        Of the module's parameters. Weight decay and momentum are free: they see released numbers only.
    pairs, y, data
        As for `PrivateMetricTrainer.fit`.
    **options
        Parameters of `PrivateMetricTrainer`: epsilon, delta, unit, loss, n_steps, accountant, ...

    Examples
    --------
    >>> import numpy as np
    >>> net = nn.Linear(3, 2)
    >>> sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    >>> pairs = np.arange(50).reshape(25, 2)
    >>> y = np.resize([1, -1], 25)
    >>> steps = make_private(net, sgd, pairs, y, X, epsilon=8.0, n_steps=3, random_state=0)
    >>> list(steps), steps.certificate.epsilon <= 8.0
    ([1, 2, 3], True)
    """
    trainer = PrivateMetricTrainer(module, **options)
    return PrivateSteps(trainer, optimizer, trainer.prepare(pairs, y, data))
