"""What a bound means to a person: how often the best possible guesser can be right.

Someone weighs two contents of a protected unit (replace) and knows everything else. With delta(epsilon)
the replace profile, P and Q what is seen under the two contents, and a prior p <= 1/2 of the rarer one,
no guesser is right more often than

    sup over S of  p P(S) + (1 - p) Q(not S)  =  (1 - p) + p delta(ln((1 - p) / p)),

which is (1 + delta(0)) / 2 for a fair coin and Phi(mu / 2) for mu-GDP. Every point of the profile also
bounds the trade-off between false positives a and false negatives b: b >= 1 - delta - e^epsilon a and
b >= e^-epsilon (1 - delta - a) (Wasserman and Zhou 2010; Dong, Roth and Su 2022, Proposition 6).

Exact discrete noise adds its slack to every delta. Every rounding is to the attacker's favour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pairveil.array_types import FloatArray
from pairveil.errors import InputError
from pairveil.privacy.composition import Part, compose
from pairveil.privacy.costs import Group
from pairveil.privacy.events import Event
from pairveil.privacy.profile import delta_of, delta_of_composition

_POINTS = 257  # of the profile: the curve is then off by less than 1e-3
_NEGLIGIBLE = 1e-7  # where the profile is this small, a larger epsilon adds nothing to the curve
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Tradeoff:
    """The least false negatives that any guesser can have, for each share of false positives.

    A guesser says 'yes, these are the contents' or 'no'. A false positive says 'yes' where the answer is
    no, a false negative 'no' where it is yes. The curve is a lower bound on the true one.

    Parameters
    ----------
    epsilons, deltas : tuples of float
        Points of the replace profile from which the curve is drawn.

    Examples
    --------
    >>> from pairveil.privacy.events import GaussianEvent
    >>> curve = tradeoff_of([GaussianEvent(2.0)], kappa=1)  # mu = 1
    >>> round(float(curve.at(0.05)), 3)  # Phi(Phi^-1(0.95) - 1)
    0.74
    >>> curve.false_positives.shape == curve.false_negatives.shape
    True
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]

    @property
    def false_positives(self) -> FloatArray:
        """201 shares from 0 to 1."""
        return np.linspace(0.0, 1.0, 201)

    @property
    def false_negatives(self) -> FloatArray:
        """The least false negatives at each of `false_positives`."""
        return self.at(self.false_positives)

    def at(self, false_positives: ArrayLike) -> FloatArray:
        """The least false negatives at these false positives, each in [0, 1]."""
        wrong = np.asarray(false_positives, dtype=np.float64)
        if not np.all((wrong >= 0.0) & (wrong <= 1.0)):
            raise InputError("false_positives must be between 0 and 1")
        factor = np.exp(np.minimum(self.epsilons, 700.0))
        kept = 1.0 - np.asarray(self.deltas)
        steep = kept - factor * wrong[..., None]
        flat = (kept - wrong[..., None]) / factor
        lowest: FloatArray = np.maximum(np.maximum(steep, flat).max(axis=-1) - _ROUNDING, 0.0)
        return lowest

    def posterior(self, prior: float, false_positives: float) -> float:
        """How likely a 'yes' is right, at most, for a guesser with so many false positives.

        Parameters
        ----------
        prior : float
            How likely 'yes' was before, between 0 and 1.
        false_positives : float
            How often the guesser says 'yes' where the answer is no, above 0.

        Examples
        --------
        A condition that 1 in 100 has, and a guesser with 1 % false alarms:

        >>> from pairveil.privacy.events import GaussianEvent
        >>> curve = tradeoff_of([GaussianEvent(4.0)], kappa=1)  # mu = 1/2
        >>> round(curve.posterior(0.01, 0.01), 3)
        0.033
        """
        check_prior(prior)
        if not 0.0 < false_positives <= 1.0:
            raise InputError("false_positives must be above 0 and at most 1")
        found = prior * (1.0 - float(self.at(false_positives)))
        return found / (found + (1.0 - prior) * false_positives)


def check_prior(prior: float) -> None:
    """Refuse what is no probability strictly between 0 and 1."""
    if isinstance(prior, bool) or not isinstance(prior, int | float) or not 0.0 < prior < 1.0:
        raise InputError("prior must be a number between 0 and 1, both excluded")


def best_guess_of(
    events: Sequence[Event], *, kappa: Group, prior: float = 0.5, delta_slack: float = 0.0
) -> float:
    """How often the best possible guesser between two contents is right, at most.

    Parameters
    ----------
    events, kappa
        As in `pairveil.privacy.accounting.epsilon_of`; the two contents are compared by replacing.
    prior : float, default 0.5
        How likely one of the two was before.
    delta_slack : float, default 0.0
        What exact discrete noise adds to delta.

    Examples
    --------
    >>> from pairveil.privacy.events import GaussianEvent
    >>> round(best_guess_of([GaussianEvent(2.0)], kappa=1), 4)  # Phi(1/2)
    0.6915
    >>> round(best_guess_of([GaussianEvent(2.0)], kappa=1, prior=0.01), 4)  # hardly more than 'no'
    0.99
    """
    return best_guess_of_parts([(events, kappa)], prior=prior, delta_slack=delta_slack)


def best_guess_of_parts(
    parts: Iterable[Part], *, prior: float = 0.5, delta_slack: float = 0.0
) -> float:
    """The same of several (events, kappa) parts released together.

    Examples
    --------
    >>> from pairveil.privacy.events import GaussianEvent
    >>> one, other = ([GaussianEvent(4.0)], 1), ([GaussianEvent(4.0)], 1)
    >>> round(best_guess_of_parts([one, other]), 4)  # Phi(sqrt(2) / 4)
    0.6382
    """
    check_prior(prior)
    rare = min(prior, 1.0 - prior)
    epsilon = max(math.log1p(-rare) - math.log(rare), 0.0)
    composition = compose(parts, "replace")
    delta = 1.0 if composition is None else delta_of_composition(composition, epsilon)
    delta = min(1.0, delta + delta_slack)
    return min(1.0, ((1.0 - rare) + rare * delta) * (1.0 + _ROUNDING))


def tradeoff_of(events: Sequence[Event], *, kappa: Group, delta_slack: float = 0.0) -> Tradeoff:
    """The trade-off curve of events for the contents of ``kappa`` pairs, replaced.

    Examples
    --------
    >>> from pairveil.privacy.events import LaplaceEvent
    >>> curve = tradeoff_of([LaplaceEvent(2.0)], kappa=1)  # pure epsilon 1
    >>> round(float(curve.at(0.0)), 6), round(float(curve.at(1.0)), 6)
    (1.0, 0.0)
    """

    def profile(epsilon: float) -> float:
        found = delta_of(events, epsilon=epsilon, kappa=kappa, adjacency="replace")
        return min(1.0, found + delta_slack)

    last = 1.0
    while profile(last) - delta_slack > _NEGLIGIBLE and last < 512.0:
        last *= 2.0
    epsilons = tuple(np.linspace(0.0, last, _POINTS).tolist())
    return Tradeoff(epsilons, tuple(profile(epsilon) for epsilon in epsilons))
