"""Epsilon of a list of events: a proved upper bound, for any kappa and both adjacencies.

Full-batch and disjoint Gaussian events, Laplace events and one noisy choice have closed forms.
Poisson-sampled Gaussian events, choices and mixed lists are composed as privacy loss distributions of the
dominating pairs of ``pairveil.privacy.dominating`` and ``bounded_range``; every rounding is pessimistic,
and the closed forms that ignore sampling remain as a second valid bound (the smaller of the two is
returned, so an extreme kappa costs accuracy, never time or soundness). The proofs are in
docs/theory/accounting.md and choice.md; one margin, for the rounding of FFTs, is measured instead of
proved (`_epsilon_on_grid`), and concerns what is composed on a grid only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pairveil.privacy.bounded_range import choice_epsilon, choice_spread, discretise_choice
from pairveil.privacy.composition import Composition, Part, check_adjacency, check_delta, compose
from pairveil.privacy.costs import Group
from pairveil.privacy.dominating import (
    INVERSION_ERROR,
    GaussianPair,
    UnresolvableError,
    discretise,
    discretise_pure,
    sampled_gaussian_pairs,
)
from pairveil.privacy.events import Event
from pairveil.privacy.gdp import mu_from_epsilon
from pairveil.privacy.units import Adjacency

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import DensePLDPmf

if TYPE_CHECKING:
    from pairveil.privacy.best_of import Atoms

ACCURACY = 0.1
"""Grid width in units of one step's mu: the discretisation then costs about N*d^2/(12 mu^2) =
0.1 % of epsilon (each step's loss gains variance d^2/6, like a Gaussian step of mu^2 = d^2/6)."""

_TRUNCATION = 1e-6  # share of delta spent, per step, on each kind of truncation

_SPREAD = 1e-28, 1600.0
"""mu^2 for which a grid is made; below epsilon is 0, above some thousand, by the closed form as well."""


def epsilon_of(
    events: Iterable[Event], *, kappa: Group, adjacency: Adjacency = "zero-out", delta: float
) -> float:
    """Return an upper bound on the epsilon of the events' composition at ``delta``.

    Parameters
    ----------
    events : iterable of events
        What was released, in any order; later events may depend on earlier outputs.
    kappa : int, Cost or tuple of Cost
        How many pairs' contents may change together; a `Cost` where records are not pairs, or one for
        each event.
    adjacency : {"zero-out", "replace"}
        Whether the contents become null or any other contents.
    delta : float
        In [0, 1). With ``delta=0`` any Gaussian event gives ``inf``.

    Returns
    -------
    float
        The epsilon; ``inf`` when none can be promised, 0.0 when there are no events.

    Examples
    --------
    >>> from pairveil.privacy.events import GaussianEvent
    >>> plan = [GaussianEvent(noise_multiplier=20.0, sample_rate=0.05, steps=200)]
    >>> round(epsilon_of(plan, kappa=13, delta=1e-5), 2)
    1.83
    >>> round(epsilon_of(plan, kappa=1, delta=1e-5), 2)
    0.11
    """
    return epsilon_of_parts([(events, kappa)], adjacency=adjacency, delta=delta)


def epsilon_of_parts(
    parts: Iterable[Part], *, adjacency: Adjacency = "zero-out", delta: float
) -> float:
    """Return epsilon of several (events, kappa) parts released together.

    Each part keeps its own kappa: a unit may hold 1 pair of one fit and 13 of another.

    Examples
    --------
    >>> from pairveil.privacy.events import LaplaceEvent
    >>> epsilon_of_parts([([LaplaceEvent(10.0)], 1), ([LaplaceEvent(20.0)], 4)], delta=0.0)
    0.3...
    """
    delta = check_delta(delta)
    composition = compose(parts, check_adjacency(adjacency))
    return math.inf if composition is None else epsilon_of_composition(composition, delta)


@lru_cache(maxsize=4096)
def epsilon_of_composition(composition: Composition, delta: float) -> float:
    """Epsilon of merged events at ``delta``."""
    if composition.searches:
        return _epsilon_of_searches(composition, delta)
    if composition.unsampled_mu() == 0.0 and (delta == 0.0 or composition.grid_steps <= 1):
        if composition.grid_steps == 1 and composition.choices:
            return choice_epsilon(composition.choices_total, delta)
        return composition.pure_total + composition.choices_total
    closed = composition.closed_epsilon(delta)
    if delta == 0.0 or not (composition.sampled or composition.pure or composition.choices):
        return closed
    return min(closed, _epsilon_on_grid(composition, delta, closed) + composition.aside)


def _epsilon_of_searches(composition: Composition, delta: float) -> float:
    """One search by its own bound; with others, on the grid or by basic composition, whichever is less."""
    from pairveil.privacy.best_of import epsilon_of_best  # which asks this module for the trials

    rest = replace(composition, searches=())
    n_parts = len(composition.searches) + (rest.grid_steps > 0 or rest.aside > 0.0)
    found = [epsilon_of_best(search, delta / n_parts) for search in composition.searches]
    added = math.fsum((*found, epsilon_of_composition(rest, delta / n_parts))) * (1.0 + 1e-15)
    if n_parts == 1 or delta == 0.0:
        return added
    try:
        return min(added, _epsilon_on_grid(composition, delta, added) + composition.aside)
    except UnresolvableError:  # of a search alone
        return added


def _epsilon_on_grid(composition: Composition, delta: float, closed: float) -> float:
    """Compose on grids that get finer until the rounding no longer matters; keep the smallest."""
    steps = composition.grid_steps
    # What floating-point FFTs can misplace (measured: about 1e-16 per step), kept off delta.
    usable = delta - (1e-14 + 2e-15 * steps)
    if usable < 0.5 * delta or composition.too_long:
        return math.inf
    tail = _TRUNCATION * delta / steps
    pairs = dominating_pairs(composition, tail)
    best, coarsest = math.inf, 0.0
    closed = min(closed, 1e9)
    mu = grid_mu(composition, pairs)
    if mu is None:
        return math.inf
    for _ in range(8):
        interval = max(ACCURACY * mu / math.sqrt(steps), coarsest)
        try:
            found = max(
                _smallest_epsilon(
                    compose_direction(composition, pairs, way, interval, tail), usable, closed
                )
                for way in ways_of(pairs)
            )
        except UnresolvableError:
            if best < math.inf:
                break
            coarsest = 4.0 * interval  # a coarse grid is still a bound
            continue
        best = min(best, found + steps * INVERSION_ERROR)
        # A heavy-tailed loss makes the first guess of mu too large: judge by the epsilon found.
        wanted = mu_from_epsilon(min(best, closed), delta)
        if mu <= 1.3 * wanted or coarsest > 0.0:
            break
        mu = wanted
    return best


def dominating_pairs(
    composition: Composition, tail: float
) -> list[tuple[tuple[GaussianPair, ...], int]]:
    """Dominating pairs of the Gaussian events, with how often each is composed."""
    pairs = [
        (sampled_gaussian_pairs(k, q, s, replace=replaced, lost=tail), t)
        for k, q, s, replaced, t in composition.sampled
    ]
    if composition.mu_squared > 0.0:
        full = 1.0 / math.sqrt(composition.mu_squared)
        pairs.append((sampled_gaussian_pairs(1, 1.0, full, replace=False, lost=0.0)[:1], 1))
    return pairs


def ways_of(pairs: Sequence[tuple[tuple[GaussianPair, ...], int]]) -> tuple[int, ...]:
    """The directions to compose: both, or one where they coincide."""
    return (0,) if all(len(ways) == 1 for ways, _ in pairs) else (0, 1)


def grid_mu(
    composition: Composition, pairs: Sequence[tuple[tuple[GaussianPair, ...], int]]
) -> float | None:
    """The mu that the first grid is made for; None where floats hold no such grid."""
    found = _spread(composition, pairs)
    return math.sqrt(found) if _SPREAD[0] <= found <= _SPREAD[1] else None


def _spread(
    composition: Composition, pairs: Sequence[tuple[tuple[GaussianPair, ...], int]]
) -> float:
    """Guess the mu^2 of the whole composition: the symmetric KL divergence, exact for Gaussians."""
    total = math.fsum(t * epsilon * math.tanh(epsilon / 2.0) for epsilon, t in composition.pure)
    total += math.fsum(t * choice_spread(eta) for eta, t in composition.choices)
    total += math.fsum(one.spread() for one in _searches(composition))
    for ways, steps in pairs:
        pair = ways[0]
        far = float(pair.upper_means.max()) + 6.0
        x = np.linspace(float(pair.lower_means.min()) - 6.0, far, 801)
        density = np.exp(-0.5 * (x[:, None] - pair.upper_means) ** 2) @ pair.upper_weights
        density -= np.exp(-0.5 * (x[:, None] - pair.lower_means) ** 2) @ pair.lower_weights
        step = (x[1] - x[0]) / math.sqrt(2.0 * math.pi)
        total += steps * step * float(density @ pair.loss(x)[0])
    return total


def _searches(composition: Composition) -> list[Atoms]:
    """Dominating pairs of the searches; each is its own mirror image."""
    from pairveil.privacy.best_of import atoms_of_best  # which asks this module for the trials

    return [atoms_of_best(search) for search in composition.searches]


def compose_direction(
    composition: Composition,
    pairs: Sequence[tuple[tuple[GaussianPair, ...], int]],
    way: int,
    interval: float,
    tail: float,
) -> DensePLDPmf:
    """Return the loss of all parts composed in one direction (all removed, or all added)."""
    factors: list[DensePLDPmf] = []
    for ways, steps in pairs:
        factors.append(_power(discretise(ways[min(way, len(ways) - 1)], interval, tail), steps))
    factors += [_power(discretise_pure(e, interval), steps) for e, steps in composition.pure]
    factors += [_power(discretise_choice(e, interval), steps) for e, steps in composition.choices]
    factors += [one.on_grid(interval) for one in _searches(composition)]
    whole = factors[0]
    for factor in factors[1:]:
        whole = whole.compose(factor, tail_mass_truncation=tail)
    return whole


def _smallest_epsilon(pmf: DensePLDPmf, delta: float, highest: float) -> float:
    """Return epsilon up to ``highest`` at which the divergence is at most delta, from above.

    The library's own search divides by exp(-loss), which overflows for large losses; its divergence
    does not, so bisect that.
    """
    if pmf.get_delta_for_epsilon(highest) > delta:
        return math.inf
    low, high = 0.0, highest
    if pmf.get_delta_for_epsilon(low) <= delta:
        return 0.0
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        if pmf.get_delta_for_epsilon(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _power(pmf: DensePLDPmf, steps: int) -> DensePLDPmf:
    return pmf if steps == 1 else pmf.self_compose(steps, tail_mass_truncation=1e-15)
