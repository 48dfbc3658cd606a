"""How far a fit is, and what it has spent so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pairveil.engine.engine import OnAnswer
from pairveil.learners.preparing import Prepared
from pairveil.privacy.accounting import epsilon_of
from pairveil.privacy.queries import Query

OnStep = Callable[[float, float], None]


class Progress:
    """Tells how far a fit is and what it has spent so far."""

    def __init__(
        self, prepared: Prepared, on_step: OnStep | None, on_answer: OnAnswer | None
    ) -> None:
        self._prepared = prepared
        self._on_step, self._on_answer = on_step, on_answer
        self._total = sum(query.steps for query in prepared.plan.queries)
        self._done: dict[str, int] = {}

    def __call__(self, query: Query, statistic: Any, noisy: Any) -> None:
        if self._on_answer is not None:
            self._on_answer(query, statistic, noisy)
        self._done[query.name] = self._done.get(query.name, 0) + 1
        if self._on_step is not None:
            done = sum(self._done.values())
            self._on_step(done / self._total, self._spent(done))

    def _spent(self, done: int) -> float:
        """Epsilon of the answers given so far (in closed form; the whole at the end)."""
        certificate = self._prepared.certificate
        if certificate is None:
            return math.inf
        if done == self._total:
            return certificate.epsilon
        made = [
            replace(query, steps=self._done[query.name]).event()
            for query in self._prepared.plan.queries
            if query.name in self._done
        ]
        return epsilon_of(
            made,
            # What the unit moves, which is not one clip bound a record where records are groups.
            kappa=self._prepared.material.costs[certificate.unit],
            adjacency=certificate.adjacency,
            delta=certificate.delta - certificate.delta_slack,
        )
