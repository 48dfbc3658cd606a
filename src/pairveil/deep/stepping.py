"""Private steps for a training loop of one's own, in the shape that users of Opacus know.

steps = make_private(module, optimizer, pairs, y, data, epsilon=1.0, n_steps=200)
for _ in steps:                       # each turn: one private gradient, one optimizer.step()
    ...                               # schedules, logging of public numbers
steps.certificate
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import torch
from numpy.typing import ArrayLike
from torch import nn

from pairveil.deep.ranks import SharedCheckpoint, from_first, n_ranks
from pairveil.deep.recipe import NetworkRecipe, gradient_at, put_gradient
from pairveil.deep.trainer import PrivateMetricTrainer
from pairveil.engine.backends.local import backend_for
from pairveil.engine.checkpoint import Checkpoint
from pairveil.engine.engine import Engine
from pairveil.errors import InputError
from pairveil.learners import base as charging
from pairveil.learners.preparing import Prepared
from pairveil.privacy.certificate import Certificate


class PrivateSteps:
    """A budget of private gradient steps that was charged at once; made by `make_private`.

    Iterating takes them one after the other: the noisy mean gradient is written into the module's ``grad``
    and the optimiser makes its step. Neither copied nor pickled: one charge would pay for both.

    Notes
    -----
    Promised are the gradients. They are taken at the module's parameters of now, by copies of the module as
    it was given: its buffers and frozen parameters stay those of the start, and the module itself never runs
    here. Whatever else is done with it (a validation pass that fills a buffer, a loss of one's own on private
    rows) is not covered, and gradients that do not come from here are not taken to the optimiser.
    """

    def __init__(
        self,
        trainer: PrivateMetricTrainer,
        optimizer: Any,
        prepared: Prepared,
        checkpoint: str | Path | None = None,
    ) -> None:
        if checkpoint is not None and trainer.random_state is not None:
            raise InputError("a checkpoint is for releases: leave random_state=None")
        prepared = trainer.agreed(prepared)
        recipe, used = prepared.recipe, prepared.material.used
        assert isinstance(recipe, NetworkRecipe)
        self._network, self._clip, self._in_place = recipe.network, recipe.clip, recipe.in_place
        self._plan, self._certificate = prepared.plan, prepared.certificate
        self._own = [one for one in trainer.module.parameters() if one.requires_grad]
        self._optimizer = optimizer
        self._check_optimizer()
        backend = backend_for(used, "auto")
        self._saved: Checkpoint | None = None
        if checkpoint is not None:
            kind = Checkpoint if n_ranks() == 1 else SharedCheckpoint
            self._saved = kind(checkpoint, prepared.plan, used, prepared.about)
        try:
            from_first(charging.charge, trainer.accountant, prepared, self._saved)
        except BaseException:
            self._close()
            raise
        self._engine = Engine(backend, prepared.noise, checkpoint=self._saved)
        self._left = self._plan["gradients"].steps

    def __reduce__(self) -> NoReturn:
        raise InputError(
            "private steps cannot be copied or pickled: one charge would pay for every copy. To resume a "
            "loop that was stopped, give make_private a checkpoint=FILE"
        )

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
        self._check_optimizer()
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
        if not self._left:
            self._close()

    def _check_optimizer(self) -> None:
        """Refuse gradients of other parameters: nothing is known of where they come from."""
        own = {id(one) for one in self._own}
        for group in self._optimizer.param_groups:
            if any(id(one) not in own and one.grad is not None for one in group["params"]):
                raise InputError(
                    "the optimiser holds gradients of parameters that are not private steps' own: set them "
                    "to None (zero_grad), or leave these parameters to another optimiser"
                )

    def _close(self) -> None:
        """Let go of people's rows and of the checkpoint, whose file stays."""
        self._network.forget()
        if self._saved is not None:
            self._saved.close()

    @property
    def certificate(self) -> Certificate | None:
        """What was promised and charged: all steps, whether or not they have been taken."""
        return self._certificate


def make_private(
    module: nn.Module,
    optimizer: Any,
    pairs: Any,
    y: ArrayLike,
    data: Any,
    *,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> PrivateSteps:
    """Charge a budget of private steps for a module and an optimiser.

    Parameters
    ----------
    module : torch.nn.Module
    optimizer : torch.optim.Optimizer
        Of the module's parameters. Weight decay and momentum are free: they see released numbers only.
    pairs, y, data
        As for `PrivateMetricTrainer.fit`.
    checkpoint : path, optional
        Answers are kept there. A loop that was stopped begins anew with the same module, optimiser and file:
        steps that were taken are taken again by the answers of then, without the data and without a charge,
        and the others follow. Remove it when the result is written. Not with a seed.
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
    return PrivateSteps(trainer, optimizer, trainer.prepare(pairs, y, data), checkpoint)
