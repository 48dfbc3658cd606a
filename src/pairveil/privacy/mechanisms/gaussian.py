"""Gaussian noise: contributions clipped in l2, (epsilon, delta)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairveil.privacy.events import DisjointGaussianEvent, Event, GaussianEvent
from pairveil.privacy.gdp import mu_from_epsilon
from pairveil.privacy.grid import Norm
from pairveil.privacy.mechanisms.base import ROUNDING, Budget

if TYPE_CHECKING:
    from pairveil.privacy.noise import NoiseSource
    from pairveil.privacy.queries import Query


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise on every entry of a sum.

    Examples
    --------
    >>> round(GAUSSIAN.multiplier(Budget(1.0, 1e-5, 1, "zero-out"), share=1.0), 2)
    3.73
    """

    name: str = "gaussian"
    norm: Norm = "l2"
    is_pure: bool = False
    deviation: float = 1.0

    def check(self, query: Query) -> None:
        """Every sampling is covered (docs/theory/accounting.md)."""

    def event(self, query: Query) -> Event:
        """Full and Poisson batches, or batches that partition the records."""
        if query.sampling == "disjoint":
            return DisjointGaussianEvent(query.noise_multiplier, epochs=query.epochs)
        return GaussianEvent(
            query.noise_multiplier, sample_rate=query.sample_rate, steps=query.steps
        )

    def multiplier(self, budget: Budget, share: float, times: int = 1) -> float:
        """Shares are parts of mu^2: n full-batch sums with noise s have mu^2 = n (sensitivity / s)^2."""
        if not budget.is_private:
            return 0.0
        mu = mu_from_epsilon(budget.epsilon, budget.delta)
        return math.sqrt(times) * (budget.sensitivity / (mu * math.sqrt(share)) * ROUNDING)

    def draw(
        self, noise: NoiseSource, total: NDArray[Any], scale: float, grid: float
    ) -> NDArray[np.float64]:
        """Exact discrete Gaussian noise where the source is trusted."""
        return noise.gaussian(total, scale, grid)


GAUSSIAN = Gaussian()
