"""Noisy choices: a candidate drawn by its score, charged for the range of what one record moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.privacy.events import ChoiceEvent, Event
from pairveil.privacy.grid import Norm
from pairveil.privacy.mechanisms.base import ROUNDING, Budget, Drawn, Mechanism

if TYPE_CHECKING:
    from pairveil.privacy.noise import NoiseSource
    from pairveil.privacy.queries import Query


@dataclass(frozen=True)
class Exponential(Mechanism):
    """The exponential mechanism: candidate c with probability proportional to exp(eta * u_c).

    That is the largest of the scores with Gumbel noise of scale 1/eta on each of them, so a query's
    ``noise_multiplier`` is 1/eta. The norm is the range over the candidates (docs/theory/choice.md).

    Examples
    --------
    >>> round(EXPONENTIAL.multiplier(Budget(0.5, 0.0, 2, "zero-out"), share=0.5, times=3), 6)
    24.0
    """

    name: str = "exponential"
    norm: Norm = "range"
    is_pure: bool = True
    deviation: float = math.pi / math.sqrt(6)  # of Gumbel noise of scale 1
    on_sums: bool = False

    def check(self, query: Query) -> None:
        """Neither samples nor batches have a proof: every choice is made from all records."""
        if query.sample_rate < 1:
            raise InputError("a choice is made from all records: use sample_rate=1")

    def event(self, query: Query) -> Event:
        """A choice for each step."""
        return ChoiceEvent(self.eta(query.noise_multiplier), steps=query.steps)

    def multiplier(self, budget: Budget, share: float, times: int = 1) -> float:
        """Shares are parts of epsilon where delta is 0, else of mu^2.

        n choices cost n sensitivity eta at delta = 0. As zCDP they cost n (sensitivity eta)^2 / 8, where
        mu costs mu^2 / 2: mu = sqrt(n) sensitivity eta / 2. That is a start only: the accountant decides.
        """
        if not budget.is_private:
            return 0.0
        if budget.delta == 0:
            return times * ROUNDING * budget.sensitivity / (budget.epsilon * share)
        from pairveil.privacy.gdp import mu_from_epsilon  # loads SciPy: only when needed

        mu = mu_from_epsilon(budget.epsilon, budget.delta)
        return math.sqrt(times / share) * ROUNDING * budget.sensitivity / (2 * mu)

    def draw(
        self, noise: NoiseSource, total: NDArray[Any], scale: float, grid: float
    ) -> NDArray[np.float64]:
        """Not there: the scores themselves are never released."""
        del noise, total, scale, grid
        raise RuntimeError("a choice has no noisy sum: ask the engine to choose")

    def slack(self, drawn: Sequence[Drawn], largest_kappa: int) -> float:  # noqa: ARG002
        """The draw is exact and takes nothing off delta (docs/theory/choice.md, section 5)."""
        return 0.0

    @staticmethod
    def eta(noise_multiplier: float) -> float:
        """Range of the log-probabilities' change for one record; infinite without noise.

        Examples
        --------
        >>> EXPONENTIAL.eta(4.0), EXPONENTIAL.eta(0.0)
        (0.25, inf)
        """
        return 1.0 / noise_multiplier if noise_multiplier else math.inf


EXPONENTIAL = Exponential()
