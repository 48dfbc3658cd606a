"""What every mechanism can do, and the budget that its noise is computed from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pairveil.privacy.costs import Cost, cost_of
from pairveil.privacy.events import Event
from pairveil.privacy.grid import Norm
from pairveil.privacy.units import Adjacency

if TYPE_CHECKING:
    from pairveil.privacy.noise import NoiseSource
    from pairveil.privacy.queries import Query

Sampling = Literal["poisson", "disjoint"]
"""Each record enters a sum with some probability on its own; or batches partition the records."""

ROUNDING = 1 + 1e-9
"""Keeps the recomposed epsilon on the safe side of the one that was asked for."""


class Budget(NamedTuple):
    """What a fit may spend, and what a protected unit can move.

    Attributes
    ----------
    epsilon, delta : float
    kappa : int or Cost
        What one protected unit can move; a number is that of pairs.
    adjacency : {'zero-out', 'replace'}

    Examples
    --------
    >>> Budget(1.0, 1e-5, 3, "replace").sensitivity
    6.0
    """

    epsilon: float
    delta: float
    kappa: int | Cost
    adjacency: Adjacency

    @property
    def sensitivity(self) -> float:
        """How far the protected unit can move a sum, in units of one record's clip bound."""
        return cost_of(self.kappa).sensitivity(self.adjacency)

    @property
    def is_private(self) -> bool:
        """Whether any noise is wanted."""
        return not math.isinf(self.epsilon)


class Mechanism(Protocol):
    """A kind of noise on clipped sums."""

    @property
    def name(self) -> str:
        """What users and certificates call it."""
        ...

    @property
    def norm(self) -> Norm:
        """The norm in which a record's contribution is clipped."""
        ...

    @property
    def is_pure(self) -> bool:
        """Whether it gives epsilon at delta = 0."""
        ...

    @property
    def deviation(self) -> float:
        """Standard deviation of noise of scale 1."""
        ...

    def check(self, query: Query) -> None:
        """Refuse a query that this mechanism has no proof for."""
        ...

    def event(self, query: Query) -> Event:
        """What the accountant is told of a query."""
        ...

    def multiplier(self, budget: Budget, share: float, times: int = 1) -> float:
        """Noise multiplier of each of ``times`` sums that together cost ``share`` of the budget."""
        ...

    def draw(
        self, noise: NoiseSource, total: NDArray[Any], scale: float, grid: float
    ) -> NDArray[np.float64]:
        """The total, in whole multiples of the grid, with noise of this scale on every entry."""
        ...
