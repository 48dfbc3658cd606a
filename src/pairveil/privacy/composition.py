"""What a list of events amounts to for one unit: like events merged, and a bound in closed form.

`pairveil.privacy.accounting` makes an epsilon of it, `pairveil.privacy.profile` a curve. Numbers are added
exactly and rounded up. The proofs are in docs/theory/accounting.md and choice.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import get_args

import numpy as np

from pairveil.errors import InputError
from pairveil.privacy.bounded_range import choice_rho, epsilon_from_zcdp
from pairveil.privacy.costs import MAX_KAPPA, Cost, Group
from pairveil.privacy.events import (
    BestOfEvent,
    ChoiceEvent,
    DisjointGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    check_events,
)
from pairveil.privacy.gdp import epsilon_from_mu
from pairveil.privacy.units import Adjacency

Part = tuple[Iterable[Event], Group]
"""Events, and what a protected unit can do to their records."""

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
        steps += sum(part[-1] for part in self.sampled) + (self.mu_squared > 0.0)
        return steps + len(self.searches)

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
