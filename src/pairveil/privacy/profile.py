"""Delta of a list of events at a given epsilon, and mu where there is one: the privacy profile.

The same composition as `pairveil.privacy.accounting`, read the other way round, with the same care: every
rounding is pessimistic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from scipy.special import ndtri

from pairveil.errors import InputError
from pairveil.privacy.accounting import (
    ACCURACY,
    compose_direction,
    dominating_pairs,
    grid_mu,
    ways_of,
)
from pairveil.privacy.bounded_range import choice_delta
from pairveil.privacy.composition import Composition, check_adjacency, compose
from pairveil.privacy.costs import Group
from pairveil.privacy.dominating import INVERSION_ERROR, UnresolvableError
from pairveil.privacy.events import Event
from pairveil.privacy.gdp import delta_from_mu
from pairveil.privacy.units import Adjacency

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import DensePLDPmf

_TAIL = 1e-12  # mass given up in the whole composition


def delta_of(
    events: Iterable[Event], *, epsilon: float, kappa: Group, adjacency: Adjacency = "zero-out"
) -> float:
    """Return the smallest delta that goes with ``epsilon``: one point of the privacy profile.

    An upper bound, exact for full-batch and disjoint Gaussian events. At epsilon 0 it bounds the total
    variation between what is seen of two neighbouring data sets.

    Parameters
    ----------
    events, kappa, adjacency
        As in `epsilon_of`.
    epsilon : float
        At least 0.

    Examples
    --------
    >>> from pairveil.privacy.events import GaussianEvent
    >>> plan = [GaussianEvent(noise_multiplier=4.0, steps=4)]
    >>> round(delta_of(plan, epsilon=0.0, kappa=1, adjacency="replace"), 4)  # mu = 1
    0.3829
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not epsilon >= 0.0:
        raise InputError("epsilon must be a number of at least 0")
    composition = compose([(events, kappa)], check_adjacency(adjacency))
    return 1.0 if composition is None else delta_of_composition(composition, float(epsilon))


def mu_of(
    events: Iterable[Event], *, kappa: Group, adjacency: Adjacency = "zero-out"
) -> float | None:
    """Return mu of events that are exactly mu-GDP together; None when they are not.

    Examples
    --------
    >>> from pairveil.privacy.events import GaussianEvent, LaplaceEvent
    >>> mu_of([GaussianEvent(noise_multiplier=4.0, steps=4)], kappa=1, adjacency="replace")
    1.0
    >>> mu_of([LaplaceEvent(10.0)], kappa=1) is None
    True
    """
    composition = compose([(events, kappa)], check_adjacency(adjacency))
    if composition is None or composition.searches:
        return None
    if composition.sampled or composition.pure or composition.choices:
        return None
    return math.sqrt(composition.mu_squared)


def delta_of_composition(composition: Composition, epsilon: float) -> float:
    """Delta of merged events at ``epsilon``."""
    closed = 1.0
    if not composition.searches:
        # A choice of range eta is eta-DP, so basic composition holds for choices too.
        mu, pure = composition.unsampled_mu(), composition.pure_total + composition.choices_total
        closed = _closed_delta(mu, pure, epsilon)
        parts = composition.sampled or composition.pure or composition.choices
        single = mu == 0.0 and composition.grid_steps <= 1
        if single and composition.choices:
            return min(closed, choice_delta(composition.choices_total, epsilon))
        if not parts or single:
            return closed
    left = epsilon - composition.aside  # what is added, not composed, shifts the profile
    composed = _composed_delta(composition, abs(left))
    return min(closed, composed if left >= 0.0 else _other_way(left, composed))


def _composed_delta(composition: Composition, epsilon: float) -> float:
    """Delta at an epsilon of at least 0: of one search by its own curve, else on the grid; or 1."""
    from pairveil.privacy.best_of import atoms_of_best  # which asks this module for the trials

    steps = composition.grid_steps
    # FFTs as in `accounting._epsilon_on_grid`; a loss off by x moves no point of the profile by more than 2x.
    error = 1e-14 + 2e-15 * steps + 2.0 * steps * INVERSION_ERROR
    try:
        if composition.searches and steps == 1:
            return atoms_of_best(composition.searches[0]).delta(epsilon)
        found = [float(pmf.get_delta_for_epsilon(epsilon)) for pmf in _profile_on_grid(composition)]
    except UnresolvableError:  # of a search
        found = []
    return min(1.0, max(found) + error) if found else 1.0


def _closed_delta(mu: float, pure: float, epsilon: float) -> float:
    """Delta when sampling is ignored and the pure part is one mechanism of its whole epsilon."""
    if mu == 0.0:  # randomised response, which dominates
        share = -math.expm1(min(0.0, epsilon - pure)) / (1.0 + math.exp(-pure))
        return min(1.0, share * (1.0 + 1e-12))
    left = epsilon - pure
    if left >= 0.0:
        return delta_from_mu(mu, left)
    return _other_way(left, delta_from_mu(mu, -left))  # a Gaussian pair is symmetric


def _other_way(epsilon: float, delta: float) -> float:
    """Delta at an epsilon below 0, from that of the other direction at -epsilon.

    H_alpha(P, Q) = 1 - alpha + alpha H_(1/alpha)(Q, P).
    """
    return min(1.0, -math.expm1(epsilon) + math.exp(epsilon) * delta)


@lru_cache(maxsize=64)
def _profile_on_grid(composition: Composition) -> tuple[DensePLDPmf, ...]:
    """The composed losses, one for each direction; none when they do not fit a grid."""
    if composition.too_long:
        return ()
    steps = composition.grid_steps
    tail = _TAIL / steps
    pairs = dominating_pairs(composition, tail)
    mu, coarsest = grid_mu(composition, pairs), 0.0
    if mu is None:
        return ()
    found: tuple[DensePLDPmf, ...] = ()
    if not 1e-100 < mu < 1e100:
        return found  # losses too small or too large for a grid of floats: the closed form serves
    accuracy = ACCURACY / 5.0 if steps <= 1000 else ACCURACY  # few steps: a fine grid is cheap
    for _ in range(8):
        interval = max(accuracy * mu / math.sqrt(steps), coarsest)
        try:
            found = tuple(
                compose_direction(composition, pairs, way, interval, tail) for way in ways_of(pairs)
            )
        except UnresolvableError:
            if found:
                break
            coarsest = 4.0 * interval
            continue
        # As in `accounting._epsilon_on_grid`: a heavy tail makes mu too large, and the grid too coarse at 0.
        at_zero = max(float(pmf.get_delta_for_epsilon(0.0)) for pmf in found)
        wanted = 2.0 * float(ndtri(0.5 + 0.5 * min(at_zero, 1.0 - 1e-12)))
        if mu <= 1.3 * wanted or coarsest > 0.0 or wanted <= 0.0:
            break
        mu = wanted
    return found
