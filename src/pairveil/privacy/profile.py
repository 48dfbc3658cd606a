"""Epsilon at a delta, delta at an epsilon, and what they mean to a guesser: proved bounds on a composition.

Full-batch and disjoint Gaussian events, Laplace events and one noisy choice have closed forms.
Poisson-sampled Gaussian events, choices and mixed lists are composed as privacy loss distributions of the
dominating pairs of `pairveil.privacy.compose`; every rounding is pessimistic, and the closed forms that
ignore sampling remain as a second valid bound (the smaller of the two is returned, so an extreme kappa costs
accuracy, never time or soundness). The proofs are in docs/theory/accounting.md; one margin, for
the rounding of FFTs, is measured instead of proved (`_epsilon_on_grid`), and concerns what is composed on a
grid only.

Private selection, the best of a random number of trials (docs/theory/accounting.md): with K geometric of mean
n, Q one trial and delta_Q its profile, for every epsilon e and every shift s with
delta_Q(s) <= (exp(s) - 1) / (n - 1),

    delta of the best of K trials at e + 2 s  <=  n delta_Q(e).

A profile is convex in exp(epsilon), so it lies below the convex hull of these points and their mirror images.
The hull is the profile of a pair of discrete laws, which is composed like any other dominating pair.

A guesser weighs two contents of a protected unit (replace) and knows everything else. With delta(epsilon)
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from pairveil.array_types import FloatArray
from pairveil.errors import InputError
from pairveil.privacy.compose import (
    INVERSION_ERROR,
    MAX_CELLS,
    MAX_LOSS,
    Composition,
    GaussianPair,
    Part,
    Search,
    UnresolvableError,
    check_adjacency,
    check_delta,
    choice_delta,
    choice_epsilon,
    choice_spread,
    compositions,
    delta_from_mu,
    discretise,
    discretise_choice,
    discretise_pure,
    mu_from_epsilon,
    on_grid,
    sampled_gaussian_pairs,
)
from pairveil.privacy.events import Event, UnitCost
from pairveil.privacy.units import Adjacency

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import DensePLDPmf

# ---- epsilon at a delta --------------------------------------------------------------------------

ACCURACY = 0.1
"""Grid width in units of one step's mu: the discretisation then costs about N*d^2/(12 mu^2) =
0.1 % of epsilon (each step's loss gains variance d^2/6, like a Gaussian step of mu^2 = d^2/6)."""

_TRUNCATION = 1e-6  # share of delta spent, per step, on each kind of truncation
_SPREAD = 1e-28, 1600.0
"""mu^2 for which a grid is made; below epsilon is 0, above some thousand, by the closed form as well."""


def epsilon_of(
    events: Iterable[Event], *, kappa: UnitCost, adjacency: Adjacency = "zero-out", delta: float
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
    """
    delta = check_delta(delta)
    return max(
        math.inf if one is None else epsilon_of_composition(one, delta)
        for one in compositions(parts, check_adjacency(adjacency))
    )


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
    tail, best, closed = _TRUNCATION * delta / steps, math.inf, min(closed, 1e9)

    def judged() -> tuple[float, bool]:
        # A heavy-tailed loss makes the first guess of mu too large: judge by the epsilon found.
        return mu_from_epsilon(min(best, closed), delta), best < math.inf

    for losses in _composed_on_grids(composition, tail, ACCURACY, judged):
        found = max(_smallest_epsilon(pmf, usable, closed) for pmf in losses)
        best = min(best, found + steps * INVERSION_ERROR)
    return best


def _composed_on_grids(
    composition: Composition, tail: float, accuracy: float, judged: Callable[[], tuple[float, bool]]
) -> Iterator[tuple[DensePLDPmf, ...]]:
    """The composed losses, one for each direction, on finer and finer grids; none where none fits.

    ``judged``: mu by what was composed last, and whether that serves; a grid for no much smaller mu is the
    last.
    """
    steps, pairs = composition.grid_steps, dominating_pairs(composition, tail)
    spread = _spread(composition, pairs)
    if not _SPREAD[0] <= spread <= _SPREAD[1]:
        return
    both = any(len(ways) > 1 for ways, _ in pairs)  # else the directions coincide
    mu, coarsest, serves = math.sqrt(spread), 0.0, False
    for _ in range(8):
        interval = max(accuracy * mu / math.sqrt(steps), coarsest)
        try:
            losses = tuple(
                compose_direction(composition, pairs, way, interval, tail)
                for way in ((0, 1) if both else (0,))
            )
        except UnresolvableError:
            if serves:
                return
            coarsest = 4.0 * interval  # a coarse grid is still a bound
            continue
        yield losses
        better, serves = judged()
        if mu <= 1.3 * better or coarsest > 0.0 or better <= 0.0:
            return
        mu = better


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


def _spread(
    composition: Composition, pairs: Sequence[tuple[tuple[GaussianPair, ...], int]]
) -> float:
    """Guess the mu^2 of the whole composition: the symmetric KL divergence, exact for Gaussians."""
    total = math.fsum(t * epsilon * math.tanh(epsilon / 2.0) for epsilon, t in composition.pure)
    total += math.fsum(t * choice_spread(eta) for eta, t in composition.choices)
    total += math.fsum(one.spread() for one in map(atoms_of_best, composition.searches))
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
    factors += [one.on_grid(interval) for one in map(atoms_of_best, composition.searches)]
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


# ---- delta at an epsilon -------------------------------------------------------------------------

_TAIL = 1e-12  # mass given up in the whole composition


def delta_of(
    events: Iterable[Event], *, epsilon: float, kappa: UnitCost, adjacency: Adjacency = "zero-out"
) -> float:
    """Return the smallest delta that goes with ``epsilon``: one point of the privacy profile.

    An upper bound, exact for full-batch and disjoint Gaussian events. At epsilon 0 it bounds the total
    variation between what is seen of two neighbouring data sets.
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not epsilon >= 0.0:
        raise InputError("epsilon must be a number of at least 0")
    return _worst_delta([(events, kappa)], check_adjacency(adjacency), float(epsilon))


def _worst_delta(parts: Iterable[Part], adjacency: Adjacency, epsilon: float) -> float:
    return max(
        1.0 if one is None else delta_of_composition(one, epsilon)
        for one in compositions(parts, adjacency)
    )


def mu_of(
    events: Iterable[Event], *, kappa: UnitCost, adjacency: Adjacency = "zero-out"
) -> float | None:
    """Return mu of events that are exactly mu-GDP together; None when they are not."""
    squares = [0.0]
    for one in compositions([(events, kappa)], check_adjacency(adjacency)):
        if one is None or not one.is_gaussian:
            return None
        squares.append(one.mu_squared)
    return math.sqrt(max(squares))


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

    steps = composition.grid_steps
    # FFTs as in `_epsilon_on_grid`; a loss off by x moves no point of the profile by more than 2x.
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
    accuracy = ACCURACY / 5.0 if steps <= 1000 else ACCURACY  # few steps: a fine grid is cheap
    found: tuple[DensePLDPmf, ...] = ()

    def judged() -> tuple[float, bool]:
        # As in `_epsilon_on_grid`: a heavy tail makes mu too large, and the grid too coarse at 0.
        at_zero = max(float(pmf.get_delta_for_epsilon(0.0)) for pmf in found)
        return 2.0 * float(ndtri(0.5 + 0.5 * min(at_zero, 1.0 - 1e-12))), True

    for losses in _composed_on_grids(composition, _TAIL / steps, accuracy, judged):
        found = losses
    return found


# ---- the best of a random number of trials -------------------------------------------------------

_LARGEST_SHIFT = 600.0  # exp of it is a float
_HULL_POINTS = 192  # of the profile: more would change the third digit of a composition
_LEAST_DELTA = 1e-13  # of a trial: the grid's own error is not far below


def epsilon_of_best(search: Search, delta: float) -> float:
    """Epsilon of a search at ``delta``; every candidate's trial is covered."""
    left = delta / search.mean_trials - search.slack
    if left < 0.0 or (search.slack > 0.0 and left == 0.0):
        return math.inf
    trial = max(epsilon_of_composition(one, left) for one in search.trials)
    return trial + 2.0 * _shift(search)


@lru_cache(maxsize=1024)
def _shift(search: Search) -> float:
    """The smallest s that the theorem allows, from above."""
    low, high = 0.0, 1e-6
    if search.mean_trials == 1:
        return low
    while not _allowed(search, high):
        low, high = high, 2.0 * high
        if high > _LARGEST_SHIFT:
            return math.inf
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _allowed(search, middle) else (middle, high)
    return high


def _allowed(search: Search, shift: float) -> bool:
    most = math.expm1(shift) / (search.mean_trials - 1) * (1.0 - 1e-12) - search.slack
    return all(delta_of_composition(one, shift) <= most for one in search.trials)


class Atoms(NamedTuple):
    """A pair of laws that is its own mirror image: masses at losses +l, at -l, and at infinity.

    Under the other law the masses at +l and -l change places.
    """

    losses: NDArray[np.float64]
    upper: NDArray[np.float64]
    lower: NDArray[np.float64]
    infinite: float

    def delta(self, epsilon: float) -> float:
        """The pair's divergence at ``epsilon`` of at least 0; bounds that of the search."""
        above = self.losses > epsilon
        excess = self.upper[above] * -np.expm1(epsilon - self.losses[above])
        return min(1.0, math.fsum((*excess.tolist(), self.infinite)) * (1.0 + 1e-12))

    def spread(self) -> float:
        """Symmetric KL divergence, infinite losses apart."""
        return 2.0 * float(self.losses @ (self.upper - self.lower))

    def on_grid(self, interval: float) -> DensePLDPmf:
        """The loss on multiples of ``interval``: each mass is split between its cell's two ends."""
        far = float(self.losses[-1])
        if 2.0 * far / interval > MAX_CELLS:
            raise UnresolvableError("the privacy losses do not fit a grid")
        first = math.floor(-far / interval)
        probs = np.zeros(math.ceil(far / interval) - first + 2)
        for loss, mass in ((self.losses, self.upper), (-self.losses, self.lower)):
            cell = np.floor(loss / interval).astype(np.int64)
            share = np.clip(np.expm1(cell * interval - loss) / math.expm1(-interval), 0.0, 1.0)
            np.add.at(probs, cell - first, mass * (1.0 - share))
            np.add.at(probs, cell - first + 1, mass * share)
        return on_grid(interval, first, probs, self.infinite)


@lru_cache(maxsize=256)
def atoms_of_best(search: Search) -> Atoms:
    """A pair of laws that dominates the search, both ways: the hull of points of its profile.

    Raises UnresolvableError: there is no bound worth a curve.
    """
    shift = 2.0 * _shift(search)
    far = max(epsilon_of_composition(one, _LEAST_DELTA) for one in search.trials)
    if not shift + far <= MAX_LOSS:
        raise UnresolvableError("the privacy losses do not fit a grid")
    trial = np.linspace(0.0, far, _HULL_POINTS)
    most = [max(delta_of_composition(one, e) for one in search.trials) for e in trial.tolist()]
    delta = np.minimum(1.0, search.mean_trials * (np.array(most) + search.slack))
    return _hull(shift + trial, delta)


def _hull(epsilon: NDArray[np.float64], delta: NDArray[np.float64]) -> Atoms:
    """The pair whose profile is the convex hull, in alpha = exp(epsilon), of points and their mirror images.

    H(1/alpha) of one direction is 1 - (1 - H(alpha)) / alpha of the other. The edge across alpha = 1 joins a
    point with its own mirror image, since mirroring maps the hull onto itself: of all such edges the lowest.
    A pair with masses p_j at alpha_j and q_j = p_j / alpha_j has the slope -sum over alpha_j > alpha of q_j:
    q_j is by how much the slope grows at a corner.
    """
    apart = np.diff(np.exp(epsilon), prepend=0.0) > 0.0  # of tiny epsilons floats hold one
    epsilon, delta = epsilon[apart], delta[apart]
    alpha = np.exp(epsilon)
    start = int(np.argmin(delta + (1.0 - delta) * np.tanh(0.5 * epsilon)))
    corners, slopes = [start], [-(1.0 - float(delta[start])) / (1.0 + float(alpha[start]))]
    for i in range(start + 1, len(alpha)):
        while True:
            last = corners[-1]
            slope = float((delta[i] - delta[last]) / (alpha[i] - alpha[last]))
            if len(corners) == 1 or slope > slopes[-1]:
                break
            corners.pop()
            slopes.pop()
        corners.append(i)
        slopes.append(slope)
    lower = np.maximum(np.diff([*slopes, 0.0]), 0.0)
    upper = lower * alpha[corners]
    left = 1.0 - math.fsum((*lower.tolist(), *upper.tolist()))
    return Atoms(epsilon[corners], upper, lower, max(float(delta[-1]), left))


# ---- how often the best possible guesser can be right --------------------------------------------

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
    events: Sequence[Event], *, kappa: UnitCost, prior: float = 0.5, delta_slack: float = 0.0
) -> float:
    """How often the best possible guesser between two contents is right, at most."""
    return best_guess_of_parts([(events, kappa)], prior=prior, delta_slack=delta_slack)


def best_guess_of_parts(
    parts: Iterable[Part], *, prior: float = 0.5, delta_slack: float = 0.0
) -> float:
    """The same of several (events, kappa) parts released together."""
    check_prior(prior)
    rare = min(prior, 1.0 - prior)
    epsilon = max(math.log1p(-rare) - math.log(rare), 0.0)
    delta = min(1.0, _worst_delta(parts, "replace", epsilon) + delta_slack)
    return min(1.0, ((1.0 - rare) + rare * delta) * (1.0 + _ROUNDING))


def tradeoff_of(events: Sequence[Event], *, kappa: UnitCost, delta_slack: float = 0.0) -> Tradeoff:
    """The trade-off curve of events for the contents of ``kappa`` pairs, replaced."""

    def profile(epsilon: float) -> float:
        found = delta_of(events, epsilon=epsilon, kappa=kappa, adjacency="replace")
        return min(1.0, found + delta_slack)

    last = 1.0
    while profile(last) - delta_slack > _NEGLIGIBLE and last < 512.0:
        last *= 2.0
    epsilons = tuple(np.linspace(0.0, last, _POINTS).tolist())
    return Tradeoff(epsilons, tuple(profile(epsilon) for epsilon in epsilons))
