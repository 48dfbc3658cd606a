"""Gaussian noise: contributions clipped in l2, (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairveil.privacy.costs import Cost
from pairveil.privacy.events import DisjointGaussianEvent, Event, GaussianEvent
from pairveil.privacy.grid import MAX_NOISE_IN_GRID, Norm, choose_grid, delta_slack
from pairveil.privacy.mechanisms.base import ROUNDING, Budget, Drawn, Mechanism

if TYPE_CHECKING:
    from pairveil.privacy.noise import NoiseSource
    from pairveil.privacy.queries import Query

_MOST_SAMPLES = 1 << 62  # of no fit; beyond the floats there is nothing to compute


@dataclass(frozen=True)
class Gaussian(Mechanism):
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
        from pairveil.privacy.gdp import mu_from_epsilon  # loads SciPy: only when needed

        mu = mu_from_epsilon(budget.epsilon, budget.delta)
        return math.sqrt(times) * (budget.sensitivity / (mu * math.sqrt(share)) * ROUNDING)

    def draw(
        self, noise: NoiseSource, total: NDArray[Any], scale: float, grid: float
    ) -> NDArray[np.float64]:
        """Exact discrete Gaussian noise where the source is trusted."""
        return noise.gaussian(total, scale, grid)

    def slack(self, drawn: Sequence[Drawn], largest_kappa: int) -> float:
        """Discrete instead of continuous noise (docs/theory/noise.md); 1 where it is too small for its grid.

        Not twice kappa for replace: both worlds are compared with the one in which these records are null,
        and neither is further from it than one clip bound a record.
        """
        least = min(one.noise_multiplier for one in drawn)
        samples = sum(one.numbers for one in drawn)
        if not least > 0.0 or samples > _MOST_SAMPLES:
            return 1.0
        # In units of the clip bound; a sum of more entries has a finer grid, never a coarser one. Where the
        # noise is very large the engine coarsens the grid.
        finest = min(least / choose_grid(1.0, 1), MAX_NOISE_IN_GRID / 2)
        shift = Cost(largest_kappa).sensitivity("zero-out") / least
        if finest < 2.0 or not shift < 1e100:
            return 1.0
        return delta_slack(samples, finest, shift=max(10.0, shift))


GAUSSIAN = Gaussian()
