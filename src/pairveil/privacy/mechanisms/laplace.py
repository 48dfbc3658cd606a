"""Laplace noise: contributions clipped in l1, pure epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.privacy.events import Event, LaplaceEvent
from pairveil.privacy.grid import Norm
from pairveil.privacy.mechanisms.base import ROUNDING, Budget, Drawn, Mechanism

if TYPE_CHECKING:
    from pairveil.privacy.noise import NoiseSource
    from pairveil.privacy.queries import Query


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise on every entry of a sum.

    Examples
    --------
    >>> round(LAPLACE.multiplier(Budget(0.5, 0.0, 2, "zero-out"), share=0.5, times=3), 6)
    24.0
    """

    name: str = "laplace"
    norm: Norm = "l1"
    is_pure: bool = True
    deviation: float = math.sqrt(2)  # a Laplace variable of scale b has variance 2 b^2

    def check(self, query: Query) -> None:
        """Poisson samples have no proof here."""
        if query.sampling == "poisson" and query.sample_rate < 1:
            raise InputError(
                "mechanism='laplace' needs full or disjoint batches: use sample_rate=1 or "
                "sampling='disjoint'"
            )

    def event(self, query: Query) -> Event:
        """A record takes part once an epoch."""
        return LaplaceEvent(query.noise_multiplier, steps=query.epochs)

    def multiplier(self, budget: Budget, share: float, times: int = 1) -> float:
        """Shares are parts of epsilon: n sums with noise s cost n sensitivity / s."""
        if not budget.is_private:
            return 0.0
        return times * (budget.sensitivity / (budget.epsilon * share) * ROUNDING)

    def draw(
        self, noise: NoiseSource, total: NDArray[Any], scale: float, grid: float
    ) -> NDArray[np.float64]:
        """Exact discrete Laplace noise where the source is trusted."""
        return noise.laplace(total, scale, grid)

    def slack(self, drawn: Sequence[Drawn], largest_kappa: int) -> float:  # noqa: ARG002
        """Exact discrete Laplace noise is pure epsilon as it stands (docs/theory/noise.md)."""
        return 0.0


LAPLACE = Laplace()
