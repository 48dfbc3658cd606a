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
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from typing import get_args

import numpy as np
from dp_accounting.pld.pld_pmf import DensePLDPmf

from pairveil.errors import InputError
from pairveil.privacy.bounded_range import (
    choice_epsilon,
    choice_rho,
    choice_spread,
    discretise_choice,
    epsilon_from_zcdp,
)
from pairveil.privacy.costs import MAX_KAPPA, Cost, Group
from pairveil.privacy.dominating import (
    INVERSION_ERROR,
    GaussianPair,
    UnresolvableError,
    discretise,
    discretise_pure,
    sampled_gaussian_pairs,
)
from pairveil.privacy.events import (
    BestOfEvent,
    ChoiceEvent,
    DisjointGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    check_events,
)
from pairveil.privacy.gdp import epsilon_from_mu, mu_from_epsilon
from pairveil.privacy.units import Adjacency

Part = tuple[Iterable[Event], Group]
"""Events, and what a protected unit can do to their records."""

ACCURACY = 0.1
"""Grid width in units of one step's mu: the discretisation then costs about N*d^2/(12 mu^2) =
0.1 % of epsilon (each step's loss gains variance d^2/6, like a Gaussian step of mu^2 = d^2/6)."""

_TRUNCATION = 1e-6  # share of delta spent, per step, on each kind of truncation
_LEAST_MU = 1e-150  # its square is a float

MAX_DISTINCT = 128
"""Distinct sampled events, Laplace events and choices, of each kind, that are composed on a grid (about 10
ms each). Of more, those that cost least are composed by a cheaper and larger bound: sampling ignored for
Gaussian events, epsilons added for Laplace events and choices. A list of events thus costs accuracy, never
hours."""

_MOST_SAMPLED, _RAREST, _NEAREST = 2**20, 1e-12, 1e5
"""Kappa, sampling rate and kappa over noise for which sampling is counted; ignored beyond."""

_MOST_STEPS, _MOST_PURE = 10**6, 10**5
"""Releases, and Laplace releases and choices among them, composed on a grid: more would take gigabytes."""

_SPREAD = 1e-28, 1600.0
"""mu^2 for which a grid is made; below epsilon is 0, above some thousand, by the closed form as well."""

_NO_NOISE = 1e100  # pairs over noise above which there is no noise to speak of: epsilon is infinite


@dataclass(frozen=True)
class Search:
    """The best of a geometric number of trials: see `BestOfEvent`; one composition a candidate."""

    mean_trials: int
    slack: float
    trials: tuple[Composition, ...]


@dataclass(frozen=True)
class Composition:
    """What the events amount to: Gaussian mu^2, (epsilon, steps) pure, sampled Gaussians, choices.

    ``sampled`` are (records, q, s, whether they are replaced instead of emptied, steps); ``choices`` are
    (range, steps), the unit's cost included. The totals, of basic composition (rounded up) and of zCDP, are
    of all events, ``aside`` of those that are not among ``pure`` and ``choices``.
    """

    mu_squared: float
    pure: tuple[tuple[float, int], ...]
    pure_total: float
    sampled: tuple[tuple[int, float, float, bool, int], ...]
    choices: tuple[tuple[float, int], ...] = ()
    choices_total: float = 0.0
    choices_rho: float = 0.0
    aside: float = 0.0  # epsilon of the Laplace events and choices that are added, not composed
    searches: tuple[Search, ...] = ()

    @property
    def grid_steps(self) -> int:
        """How many distributions are discretised (full-batch Gaussian events make one)."""
        steps = sum(steps for _, steps in (*self.pure, *self.choices))
        return steps + sum(part[-1] for part in self.sampled) + (self.mu_squared > 0.0)

    @property
    def too_long(self) -> bool:
        """Whether there are too many steps for a grid."""
        pure = sum(steps for _, steps in (*self.pure, *self.choices))
        return self.grid_steps > _MOST_STEPS or pure > _MOST_PURE

    def unsampled_mu(self) -> float:
        """Return mu when sampling is ignored: moving every count up to kappa is a valid bound."""
        return math.sqrt(self.mu_squared + math.fsum(_unsampled(*part) for part in self.sampled))

    def closed_epsilon(self, delta: float) -> float:
        """Return a bound without any grid: sampling ignored, pure parts by basic composition.

        Choices are added the same way, or composed with the Gaussians as zCDP where that is less.
        """
        gaussian = self.unsampled_mu()
        bound = epsilon_from_mu(gaussian, delta) + self.choices_total
        if self.choices and delta > 0.0:
            rho = 0.5 * gaussian * gaussian + self.choices_rho
            bound = min(bound, epsilon_from_zcdp(rho, delta))
        return bound + self.pure_total


def check_kappa(kappa: object) -> int:
    """Return ``kappa`` as an int; it must be at least 1 (a unit of no pairs needs no privacy)."""
    if isinstance(kappa, bool) or not isinstance(kappa, Integral):
        raise InputError(f"kappa must be an integer, not {type(kappa).__name__}")
    if not 1 <= int(kappa) <= MAX_KAPPA:
        raise InputError(
            "kappa must be at least 1" if int(kappa) < 1 else "kappa must be at most 2^53"
        )
    return int(kappa)


def _checked_cost(group: int | Cost) -> Cost:
    return group if isinstance(group, Cost) else Cost(check_kappa(group))


def check_adjacency(adjacency: object) -> Adjacency:
    """Return ``adjacency`` if it is one of the two that are defined."""
    if adjacency not in get_args(Adjacency):
        raise InputError("adjacency must be 'zero-out' or 'replace'")
    return adjacency  # type: ignore[return-value]


def check_delta(delta: object) -> float:
    """Return ``delta`` as a float in [0, 1)."""
    if isinstance(delta, bool) or not isinstance(delta, int | float | np.floating):
        raise InputError("delta must be a number in [0, 1)")
    if not 0.0 <= delta < 1.0:
        raise InputError("delta must be in [0, 1)")
    return float(delta)


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


def compose(parts: Iterable[Part], adjacency: Adjacency) -> Composition | None:
    """Merge like events; None when one of them has no noise at all, or too little for any finite epsilon."""
    mu_squared: list[float] = []
    pure: dict[Fraction, int] = defaultdict(int)
    sampled: dict[tuple[int, float, float, bool], int] = defaultdict(int)
    choices: dict[Fraction, int] = defaultdict(int)
    searches: list[Search] = []
    for events, group in parts:
        checked = check_events(events)
        costs = group if isinstance(group, tuple) else (_checked_cost(group),) * len(checked)
        for event, cost in zip(checked, costs, strict=True):
            if isinstance(event, BestOfEvent):
                trials = [compose([(trial, cost)], adjacency) for trial in event.trials]
                if None in trials:
                    return None
                searches.append(Search(event.mean_trials, event.slack, tuple(filter(None, trials))))
                continue
            reach = cost.sensitivity(adjacency)
            noise = event.noise
            # What is beyond the floats has no epsilon that a float could state.
            if noise == 0.0 or math.isinf(reach):
                return None
            if isinstance(event, ChoiceEvent | LaplaceEvent):
                together = Fraction(reach) * _inverse_noise(event)
                if math.isinf(_round_up(together * event.steps)):
                    return None
                (choices if isinstance(event, ChoiceEvent) else pure)[together] += event.steps
                continue
            mu = _mu(reach, noise)
            if mu > _NO_NOISE:
                return None
            if isinstance(event, GaussianEvent) and _sampling_counts(event, cost.records):
                kind = (cost.records, event.sample_rate, noise)
                sampled[*kind, not cost.is_emptied(adjacency)] += event.steps
            else:
                count = event.epochs if isinstance(event, DisjointGaussianEvent) else event.steps
                mu_squared.append(count * mu**2)
    # Dearest first: what lies beyond the limit is what the cheaper bounds overstate least.
    by_cost = sorted(
        ((*key, steps) for key, steps in sampled.items()),
        key=lambda part: (-_unsampled(*part), part),
    )
    mu_squared += [_unsampled(*part) for part in by_cost[MAX_DISTINCT:]]
    dear = sorted(pure.items(), key=lambda part: (-part[0] * part[1], part))
    ranges = sorted(choices.items(), key=lambda part: (-part[0] * part[1], part))
    # A choice of range eta is eta-DP.
    aside = [eta * n for eta, n in (*dear[MAX_DISTINCT:], *ranges[MAX_DISTINCT:])]
    return Composition(
        mu_squared=math.fsum(mu_squared),
        pure=tuple((_round_up(e), n) for e, n in sorted(dear[:MAX_DISTINCT])),
        pure_total=_sum_up([e * n for e, n in dear]),
        sampled=tuple(sorted(by_cost[:MAX_DISTINCT])),
        choices=tuple((_round_up(eta), n) for eta, n in sorted(ranges[:MAX_DISTINCT])),
        choices_total=_sum_up([eta * n for eta, n in ranges]),
        choices_rho=math.fsum(n * choice_rho(_round_up(eta)) for eta, n in ranges),
        aside=_sum_up(aside),
        searches=tuple(searches),
    )


def _inverse_noise(event: ChoiceEvent | LaplaceEvent) -> Fraction:
    """Epsilon, or range, for each unit of reach."""
    if isinstance(event, ChoiceEvent):
        return Fraction(event.eta)
    return 1 / Fraction(event.scale_multiplier)


def _mu(reach: float, noise: float) -> float:
    """Return reach / noise from above: never 0, however much noise, so that delta = 0 stays infinite."""
    return max(_round_up(Fraction(reach) / Fraction(noise)), _LEAST_MU)


def _sampling_counts(event: GaussianEvent, kappa: int) -> bool:
    """Whether sampling is accounted for; where numbers are out of all proportion it is ignored."""
    return (
        _RAREST <= event.sample_rate < 1.0
        and kappa <= _MOST_SAMPLED
        and kappa <= _NEAREST * event.noise_multiplier
    )


def _unsampled(records: int, _rate: float, noise: float, replaced: bool, steps: int) -> float:
    """mu^2 of a sampled part when sampling is ignored."""
    return steps * _mu((2.0 if replaced else 1.0) * records, noise) ** 2


def _sum_up(terms: Sequence[Fraction]) -> float:
    """The sum, rounded up; exact but for the last rounding, where there are not too many terms."""
    if len(terms) > MAX_DISTINCT:
        # Denominators of many exact terms grow without end; those of floats are powers of two.
        terms = [Fraction(_round_up(term)) for term in terms]
    return _round_up(sum(terms, Fraction(0)))


def _round_up(value: Fraction) -> float:
    """Return the smallest float that is not below ``value``."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


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
    """Searches and what else there is, by basic composition: epsilons and equal shares of delta add up."""
    from pairveil.privacy.best_of import epsilon_of_best  # which asks this module for the trials

    rest = replace(composition, searches=())
    share = delta / (len(composition.searches) + (rest.grid_steps > 0 or rest.aside > 0.0))
    found = [epsilon_of_best(search, share) for search in composition.searches]
    return math.fsum((*found, epsilon_of_composition(rest, share))) * (1.0 + 1e-15)


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
    for ways, steps in pairs:
        pair = ways[0]
        far = float(pair.upper_means.max()) + 6.0
        x = np.linspace(float(pair.lower_means.min()) - 6.0, far, 801)
        density = np.exp(-0.5 * (x[:, None] - pair.upper_means) ** 2) @ pair.upper_weights
        density -= np.exp(-0.5 * (x[:, None] - pair.lower_means) ** 2) @ pair.lower_weights
        step = (x[1] - x[0]) / math.sqrt(2.0 * math.pi)
        total += steps * step * float(density @ pair.loss(x)[0])
    return total


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
