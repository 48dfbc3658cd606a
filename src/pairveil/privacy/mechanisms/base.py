"""What every mechanism can do, and the budget that its noise is computed from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

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


class Drawn(NamedTuple):
    """The noise of one query: how strong it is, in clip bounds, and how many numbers get some."""

    noise_multiplier: float
    numbers: int


class Mechanism(ABC):
    """A kind of noise on clipped sums.

    Everything that depends on the kind is asked of this object: nobody compares names.

    Attributes
    ----------
    name : str
        What users and certificates call it.
    norm : {'l1', 'l2', 'range'}
        The norm in which a record's contribution is clipped.
    is_pure : bool
        Whether it gives epsilon at delta = 0.
    deviation : float
        Standard deviation of noise of scale 1.
    on_sums : bool
        Whether a learner can be given it as ``mechanism=``, for the noise on its sums.
    """

    name: str
    norm: Norm
    is_pure: bool
    deviation: float
    on_sums: bool = True

    @abstractmethod
    def check(self, query: Query) -> None:
        """Refuse a query that this mechanism has no proof for."""

    @abstractmethod
    def event(self, query: Query) -> Event:
        """What the accountant is told of a query."""

    @abstractmethod
    def multiplier(self, budget: Budget, share: float, times: int = 1) -> float:
        """Noise multiplier of each of ``times`` sums that together cost ``share`` of the budget."""

    @abstractmethod
    def draw(
        self, noise: NoiseSource, total: NDArray[Any], scale: float, grid: float
    ) -> NDArray[np.float64]:
        """The total, in whole multiples of the grid, with noise of this scale on every entry."""

    def slack(self, drawn: Sequence[Drawn], largest_kappa: int) -> float:  # noqa: ARG002
        """The part of delta that its exact noise uses, over all draws; 1 (all there is) without a proof.

        Parameters
        ----------
        drawn : sequence of Drawn
            All noise of this kind in one plan.
        largest_kappa : int
            The largest number of records that a reported unit touches.
        """
        return 1.0
