"""How far a fit is, and what it has spent so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pairveil.learning.certifying import Prepared
from pairveil.learning.engine import OnRelease
from pairveil.learning.plan import NoisySums
from pairveil.privacy.accounting import epsilon_of
from pairveil.privacy.certificate import Certificate

OnStep = Callable[[float, float], None]


class Progress:
    """Tells how far a fit is and what it has spent so far."""

    def __init__(
        self,
        prepared: Prepared,
        certificate: Certificate | None,
        on_step: OnStep | None,
        on_release: OnRelease | None,
    ) -> None:
        self._prepared, self._certificate = prepared, certificate
        self._on_step, self._on_release = on_step, on_release
        self._total = sum(sums.steps for sums in prepared.plan.releases)
        self._done: dict[str, int] = {}

    def __call__(self, sums: NoisySums, statistic: Any, noisy: Any) -> None:
        if self._on_release is not None:
            self._on_release(sums, statistic, noisy)
        self._done[sums.name] = self._done.get(sums.name, 0) + 1
        if self._on_step is not None:
            done = sum(self._done.values())
            self._on_step(done / self._total, self._spent(done))

    def _spent(self, done: int) -> float:
        """Epsilon of the releases made so far (in closed form; the whole at the end)."""
        certificate = self._certificate
        if certificate is None:
            return math.inf
        if done == self._total:
            return certificate.epsilon
        made = [
            replace(sums, steps=self._done[sums.name]).event()
            for sums in self._prepared.plan.releases
            if sums.name in self._done
        ]
        return epsilon_of(
            made,
            kappa=certificate.kappa,
            adjacency=certificate.adjacency,
            delta=certificate.delta - certificate.delta_slack,
        )
