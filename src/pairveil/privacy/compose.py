"""What events amount to for one unit: closed forms, dominating pairs, like events merged.

Three kinds of privacy loss are known in closed form and on a grid. `pairveil.privacy.profile` makes an
epsilon, a delta or a curve of a `Composition` of them.

Gaussian noise is mu-GDP. With t = epsilon/mu - mu/2 its exact profile (Balle and Wang 2018, Theorem 8) is

    delta(epsilon) = Phi(-t) - exp(epsilon) Phi(-t - mu) = phi(t) [R(t) - R(t + mu)],

R(t) = Phi(-t)/phi(t) being Mills' ratio, because exp(epsilon) phi(t + mu) = phi(t). The second form
has no overflow and loses no digits in the tail, so it serves from epsilon 1e-8 to 1e12.

A dominating pair (P, Q) has, for every alpha, a hockey-stick divergence sup_S P(S) - alpha Q(S) at least as
large as that of any two neighbouring data sets. Each of kappa protected pairs enters a sum with probability
q; the pairs that dominate are then mixtures of Gaussians with binomial weights. Theorem 1 and Lemma 2 of
docs/theory/accounting.md say which ones, why, and why truncating and binning as done below is sound.

A noisy choice has *bounded range* eta: between neighbouring inputs, the largest and the smallest log-ratio of
its outputs' probabilities differ by at most eta (Durfee and Rogers 2019). All such mechanisms are dominated
by one pair of densities with the profile

    H(e^epsilon) = (1 - e^((epsilon - eta)/2))^2 / (1 - e^(-eta))   for |epsilon| <= eta

(docs/theory/accounting.md, Theorem 2). Here ``eta`` is the whole range: kappa, and 2 for replace, are in it.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import erfcx, ndtr, ndtri
from scipy.stats import binom

from pairveil.errors import InputError
from pairveil.privacy.events import (
    BestOfEvent,
    ChoiceEvent,
    DisjointGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    UnitCost,
    check_events,
    cost_by_event,
)
from pairveil.privacy.units import Adjacency
from pairveil.records.kinds import Cost

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import DensePLDPmf

# ---- Gaussian noise in closed form ---------------------------------------------------------------

_SAFE = 1e-12  # relative rounding towards the safe side, well above the evaluation's own error
_TINY_MU = 1e-3


def _mills(t: float) -> float:
    return math.sqrt(math.pi / 2.0) * float(erfcx(t / math.sqrt(2.0)))


def _profile(t: float, mu: float) -> float:
    """Return delta at epsilon = mu*t + mu**2/2 (an upper bound, tight to rounding)."""
    density = math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
    if mu < _TINY_MU:
        # R is convex and decreasing: R(t) - R(t+mu) <= -mu R'(t) = mu (1 - t R(t)).
        # Subtracting the two ratios would cancel; the bound is off by a factor below 1 + 0.03.
        return density * mu * max(0.0, 1.0 - t * _mills(t)) * (1.0 + 1e-9)
    if t < -5.0:
        return float(ndtr(-t)) - density * _mills(t + mu) if t + mu > -30.0 else 1.0
    return density * (_mills(t) - _mills(t + mu))


def epsilon_from_mu(mu: float, delta: float) -> float:
    """Return the smallest epsilon at which mu-GDP gives (epsilon, delta)-DP, rounded up."""
    if mu == 0.0:
        return 0.0
    if delta <= 0.0 or not math.isfinite(mu) or mu > 1e8:
        return math.inf
    low = -0.5 * mu  # epsilon = 0
    if _profile(low, mu) * (1.0 + _SAFE) <= delta:
        return 0.0
    low, high = max(low, -40.0), 40.0  # Phi(-40) is below the smallest delta a float can hold
    for _ in range(200):
        middle = 0.5 * (low + high)
        if _profile(middle, mu) * (1.0 + _SAFE) <= delta:
            high = middle
        else:
            low = middle
        if high - low <= 1e-15 * max(1.0, abs(high)):
            break
    return (mu * high + 0.5 * mu * mu) * (1.0 + _SAFE) + 1e-15 * mu


def delta_from_mu(mu: float, epsilon: float) -> float:
    """Return the smallest delta at which mu-GDP gives (epsilon, delta)-DP, rounded up."""
    if mu == 0.0:
        return 0.0
    if not mu <= 1e8:
        return 1.0
    return min(1.0, _profile(epsilon / mu - 0.5 * mu, mu) * (1.0 + _SAFE))


@lru_cache(maxsize=256)  # thousands of evaluations, and every query of a plan asks for the same
def mu_from_epsilon(epsilon: float, delta: float) -> float:
    """Return the largest mu (rounded down) with ``epsilon_from_mu(mu, delta) <= epsilon``."""
    if delta <= 0.0:
        return 0.0
    low, high = 0.0, 1.0
    while epsilon_from_mu(high, delta) <= epsilon and high < 1e8:
        low, high = high, 2.0 * high
    while low == 0.0 and high > 1e-300:  # the largest power of two that is small enough
        half = 0.5 * high
        low, high = (half, high) if epsilon_from_mu(half, delta) <= epsilon else (0.0, half)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if epsilon_from_mu(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
        if high - low <= 1e-14 * high:
            break
    return low


# ---- dominating pairs and their losses on a grid, rounded pessimistically ------------------------

Array = NDArray[np.float64]
INVERSION_ERROR = 1e-11
"""Largest error of a grid loss, added to epsilon once per discretised step by the accountant."""

MAX_LOSS = 500.0
"""Beyond this loss exp() of the opposite tail underflows; the accountant then uses closed forms."""

_MAX_COMPONENTS = 96
_MAX_COUNTS = 10**6  # beyond, sampling is ignored: the counts would fill the memory
MAX_CELLS = 1 << 18
_CHUNK = 1 << 20
_MISSING = 1e-10  # mass that rounding may cost a distribution; far less is seen


class UnresolvableError(ArithmeticError):
    """The pair's losses do not fit a grid; the caller has a closed-form bound to fall back on."""


@dataclass(frozen=True)
class GaussianPair:
    """Two mixtures of unit-variance Gaussians, every mean of ``upper`` >= every mean of ``lower``.

    ``lost`` is probability mass that is given up entirely (infinite loss); the weights of each
    mixture then sum to 1 - lost.
    """

    upper_means: Array
    upper_weights: Array
    lower_means: Array
    lower_weights: Array
    lost: float = 0.0

    def loss(self, x: Array) -> tuple[Array, Array]:
        """Return ln(upper density / lower density) at ``x`` and its slope (never negative)."""
        upper, upper_slope = _log_ratio_to_standard(x, self.upper_means, self.upper_weights)
        lower, lower_slope = _log_ratio_to_standard(x, self.lower_means, self.lower_weights)
        return upper - lower, np.maximum(upper_slope - lower_slope, 0.0)


def _log_ratio_to_standard(x: Array, means: Array, weights: Array) -> tuple[Array, Array]:
    """Return ln(mixture density / N(0,1) density) and its derivative, in chunks of rows."""
    value, slope = np.empty_like(x), np.empty_like(x)
    rows = max(1, _CHUNK // means.size)
    constants = np.log(weights) - 0.5 * means * means
    for start in range(0, x.size, rows):
        part = slice(start, start + rows)
        exponents = x[part, None] * means + constants
        top = exponents.max(axis=1, keepdims=True)
        terms = np.exp(exponents - top)
        total = terms.sum(axis=1)
        value[part] = top[:, 0] + np.log(total)
        slope[part] = (terms @ means) / total
    return value, slope


def _cell_masses(edges: Array, means: Array, weights: Array) -> Array:
    """Return the mixture's mass between neighbouring edges, exact in both tails."""
    out = np.empty(edges.size - 1)
    rows = max(2, _CHUNK // means.size)
    for start in range(0, out.size, rows):
        z = edges[start : start + rows + 1, None] - means
        tail = ndtr(-np.abs(z))
        positive = z > 0.0
        left, right = tail[:-1], tail[1:]
        mass = np.where(
            positive[:-1], left - right, np.where(positive[1:], 1.0 - left - right, right - left)
        )
        out[start : start + mass.shape[0]] = np.maximum(mass, 0.0) @ weights
    return out


def _likely_counts(kappa: int, sample_rate: float, lost: float) -> tuple[int, int]:
    """Return the first and the last count outside of which a binomial has at most ``lost`` on each side."""
    if lost <= 0.0 or sample_rate >= 1.0 or kappa > 2**53:  # whole numbers that floats hold
        return 0, kappa
    mean = kappa * sample_rate
    # Bernstein's inequality; SciPy's quantiles are nearer, but give up where kappa is large and lost tiny.
    wide = -math.log(lost)
    wide += math.sqrt(2.0 * mean * (1.0 - sample_rate) * wide) + 2.0
    first, last = max(0, math.floor(mean - wide)), min(kappa, math.ceil(mean + wide))
    if last - first > _MAX_COUNTS:
        return first, last
    above = int(binom.isf(lost, kappa, sample_rate)) + 1
    below = int(binom.ppf(lost, kappa, sample_rate)) - 1
    return max(first, below), min(last, above)


def sampled_counts(kappa: int, sample_rate: float, lost: float) -> tuple[Array, Array, float]:
    """Return how many of ``kappa`` pairs are sampled: counts, weights and the mass given up.

    The upper tail, at most ``lost``, is given up (H_alpha grows by at most that mass); the lower
    tail is moved up to the first count kept; more than 96 counts are merged, each moved to the
    largest of its group; more than 10^6 all go to kappa. All of it only increases H_alpha.
    """
    first, last = _likely_counts(kappa, sample_rate, lost)
    if sample_rate >= 1.0 or last - first > _MAX_COUNTS:
        return np.array([float(kappa)]), np.ones(1), 0.0
    counts = np.arange(first, last + 1, dtype=np.float64)
    weights = binom.pmf(counts, kappa, sample_rate)
    weights[0] = binom.cdf(first, kappa, sample_rate)
    given_up = float(binom.sf(last, kappa, sample_rate)) if last < kappa else 0.0
    if counts.size > _MAX_COMPONENTS:
        width = math.ceil((counts.size - 1) / (_MAX_COMPONENTS - 1))
        group = np.ceil(np.arange(counts.size) / width).astype(np.intp)
        weights = np.bincount(group, weights)
        counts = np.minimum(first + width * np.arange(weights.size, dtype=np.float64), last)
    keep = weights > 0.0
    return counts[keep], weights[keep], given_up


def sampled_gaussian_pairs(
    kappa: int, sample_rate: float, noise_multiplier: float, *, replace: bool, lost: float
) -> tuple[GaussianPair, ...]:
    """Return the dominating pairs of one step: both directions, or one when they coincide."""
    counts, weights, given_up = sampled_counts(kappa, sample_rate, lost)
    means = counts / noise_multiplier
    if replace:
        return (GaussianPair(means, weights, -means, weights, given_up),)
    zero, one = np.zeros(1), np.array([1.0 - given_up])
    remove = GaussianPair(means, weights, zero, one, given_up)
    add = GaussianPair(zero, one, -means, weights, given_up)
    return remove, add


def on_grid(interval: float, first: int, probs: Array, infinite: float = 0.0) -> DensePLDPmf:
    """Return the distribution with these masses from loss ``first * interval`` on, if they are all there.

    Mass that went astray (underflow, NaN) would count as no loss at all.
    """
    if not float(probs.sum()) + infinite >= 1.0 - _MISSING:
        raise UnresolvableError("a part of the privacy losses was lost to rounding")
    from dp_accounting.pld.pld_pmf import DensePLDPmf  # a second of imports: most plans need none

    return DensePLDPmf(interval, first, probs, infinite, True)


def _range(pair: GaussianPair, tail: float) -> tuple[float, float]:
    """Return x outside which the upper mixture has at most about ``tail`` on either side."""
    quantile = -float(ndtri(min(tail, 0.25)))
    # A component of weight w needs only a tail of tail/w: rare far components stay short.
    with np.errstate(over="ignore"):
        share = np.minimum(tail / (pair.upper_weights * pair.upper_weights.size), 0.5)
    high = float(np.max(pair.upper_means - ndtri(share)))
    return float(pair.upper_means.min()) - quantile, high


def _invert(pair: GaussianPair, losses: Array, low: float, high: float) -> Array:
    """Solve loss(x) = losses within [low, high] by bracketed Newton steps, all at once."""
    grid = np.linspace(low, high, 513)
    at_grid = np.maximum.accumulate(pair.loss(grid)[0])
    cell = np.clip(np.searchsorted(at_grid, losses) - 1, 0, grid.size - 2)
    left, right = grid[cell], grid[cell + 1]
    x = np.clip(np.interp(losses, at_grid, grid), left, right)
    active = np.arange(losses.size)
    for _ in range(80):
        value, slope = pair.loss(x[active])
        error = value - losses[active]
        # A step too small to change x ends the search even where the loss is flat.
        open_ = (np.abs(error) > INVERSION_ERROR) & (
            right[active] - left[active] > 4e-16 * (1.0 + np.abs(x[active]))
        )
        active, value, slope, error = active[open_], value[open_], slope[open_], error[open_]
        if active.size == 0:
            break
        above = error > 0.0
        right[active[above]] = x[active[above]]
        left[active[~above]] = x[active[~above]]
        with np.errstate(divide="ignore", invalid="ignore"):
            step = x[active] - error / slope
        inside = (step > left[active]) & (step < right[active])
        x[active] = np.where(inside, step, 0.5 * (left[active] + right[active]))
    return x


def discretise(pair: GaussianPair, interval: float, tail: float) -> DensePLDPmf:
    """Return the pair's privacy loss distribution on multiples of ``interval``, pessimistically.

    In every cell of the grid the mass of both mixtures is kept and spread onto the cell's two ends
    ('connect the dots', Doroshenko et al. 2022): (u - alpha l)_+ is sublinear in (u, l), so the
    spread only increases every H_alpha. At most about ``tail`` goes to infinite loss.
    """
    low, high = _range(pair, tail)
    ends = pair.loss(np.array([low, high]))[0]
    first, last = math.floor(ends[0] / interval), math.ceil(ends[1] / interval)
    last = max(last, first + 1)
    if max(abs(ends[0]), abs(ends[1])) > MAX_LOSS or last - first > MAX_CELLS:
        raise UnresolvableError("the privacy losses do not fit a grid")
    losses = interval * np.arange(first, last + 1, dtype=np.float64)
    edges = np.concatenate(([low], _invert(pair, losses[1:-1], low, high), [high]))
    edges = np.maximum.accumulate(edges)
    upper = _cell_masses(edges, pair.upper_means, pair.upper_weights)
    lower = _cell_masses(edges, pair.lower_means, pair.lower_weights)
    # Solve a + b = upper, a exp(-loss_i) + b exp(-loss_{i+1}) = lower.
    b = (upper - np.exp(losses[:-1]) * lower) / -math.expm1(-interval)
    b = np.clip(b, 0.0, upper)
    probs = np.zeros(losses.size)
    probs[:-1] += upper - b
    probs[1:] += b
    # Below the range the loss is at most loss(low) <= losses[1]; above it, count it as infinite.
    probs[1] += float(ndtr(low - pair.upper_means) @ pair.upper_weights)
    infinite = pair.lost + float(ndtr(pair.upper_means - high) @ pair.upper_weights)
    return on_grid(interval, first, probs, infinite)


def discretise_pure(epsilon: float, interval: float) -> DensePLDPmf:
    """Return the distribution of randomised response, which dominates every pure-epsilon mechanism.

    Kairouz, Oh and Viswanath 2015: losses +epsilon with probability e^epsilon/(1+e^epsilon), else
    -epsilon; each is spread onto its cell's two ends.
    """
    if epsilon > MAX_LOSS or 2.0 * epsilon / interval > MAX_CELLS:
        raise UnresolvableError("the privacy losses do not fit a grid")
    first = math.floor(-epsilon / interval)
    probs = np.zeros(math.ceil(epsilon / interval) - first + 2)
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    for loss, mass in ((epsilon, likely), (-epsilon, 1.0 - likely)):
        cell = math.floor(loss / interval)
        share = math.expm1(cell * interval - loss) / math.expm1(-interval)
        share = min(max(share, 0.0), 1.0)
        probs[cell - first] += mass * (1.0 - share)
        probs[cell - first + 1] += mass * share
    return on_grid(interval, first, probs)


# ---- noisy choices, in closed form and on a grid -------------------------------------------------


def choice_delta(eta: float, epsilon: float) -> float:
    """Return the smallest delta that holds at ``epsilon`` for every choice of range ``eta``."""
    if epsilon >= eta:
        return 0.0
    if epsilon <= -eta:
        return -math.expm1(epsilon)
    if epsilon == 0.0:
        return math.tanh(eta / 4.0)
    return math.expm1(0.5 * (epsilon - eta)) ** 2 / -math.expm1(-eta)


def choice_epsilon(eta: float, delta: float) -> float:
    """Return the epsilon >= 0 of one choice of range ``eta`` at ``delta``, rounded up.

    H(e^epsilon) = delta solved for epsilon: eta + 2 ln(1 - sqrt(delta (1 - e^(-eta)))).
    """
    if delta == 0.0:
        return eta
    root = math.sqrt(delta * -math.expm1(-eta))
    if not root < 1.0:  # delta next to 1: the float of the root says nothing
        return eta
    # A relative error of 3 * 2^-53 in the root moves its logarithm by that over 1 - root.
    rounding = 1e-15 * (eta + 1.0 / (1.0 - root))
    return min(eta, max(0.0, eta + 2.0 * math.log1p(-root) + rounding))


def choice_rho(eta: float) -> float:
    """Return rho of zero-concentrated privacy: a choice of range ``eta`` is eta^2/8-zCDP."""
    return 0.125 * eta * eta


def epsilon_from_zcdp(rho: float, delta: float) -> float:
    """Return an epsilon of every rho-zCDP mechanism at ``delta`` > 0, or ``inf``.

    Canonne, Kamath and Steinke 2020, Proposition 12: for each alpha > 1 the value below is an epsilon
    that holds; the search for the best alpha cannot make it unsound.
    """
    if not 1e-200 < rho < math.inf:  # next to the floats' ends nothing below is sure
        return math.inf

    def at(log_order: float) -> float:
        order = math.exp(log_order)  # alpha - 1
        raised = rho * (1.0 + order) - math.log(delta) / order
        lowered = math.log1p(1.0 / order) + math.log1p(order) / order
        return raised - lowered + 1e-15 * (raised + lowered)  # rounded up, also where it cancels

    centre = 0.5 * (
        math.log(-math.log(delta)) - math.log(rho)
    )  # near the best order, were it not lowered
    found = minimize_scalar(at, bounds=(centre - 5.0, centre + 5.0), method="bounded")
    return max(0.0, min(at(float(found.x)), at(centre)))


def choice_spread(eta: float) -> float:
    """Return the symmetric KL divergence of the dominating pair, 2 (eta coth(eta/2) - 2)."""
    if eta < 0.01:
        return eta * eta / 3.0  # the difference above cancels; off by less than 1e-5 of itself
    return 2.0 * (eta / math.tanh(0.5 * eta) - 2.0)


def discretise_choice(eta: float, interval: float) -> DensePLDPmf:
    """Return the dominating pair's loss on multiples of ``interval``, rounded pessimistically.

    In each cell [l, l + interval) both masses are kept and moved to its two ends ('connect the dots',
    Doroshenko et al. 2022). The masses of [a, b] under P and under Q have the ratio e^((a + b)/2), so a
    cell is split as one point at its middle would be: nothing cancels.
    """
    if eta > MAX_LOSS or 2.0 * eta / interval > MAX_CELLS:
        raise UnresolvableError("the privacy losses do not fit a grid")
    eta = max(
        eta, 1e-100
    )  # halves of the smallest floats are 0; a larger range covers a smaller one
    # One cell more at each side: eta/interval may round to a whole number across it.
    first, last = math.floor(-eta / interval) - 1, math.ceil(eta / interval) + 1
    losses = interval * np.arange(first, last + 1, dtype=np.float64)
    left, right = np.clip(losses[:-1], -eta, eta), np.minimum(losses[1:], eta)
    width = np.maximum(right - left, 0.0)
    mass = np.exp(0.5 * (left - eta)) * np.expm1(0.5 * width) / -math.expm1(-eta)
    middle = np.clip(left + 0.5 * width - losses[:-1], 0.0, interval)  # beyond eta there is no mass
    share = np.clip(np.expm1(-middle) / math.expm1(-interval), 0.0, 1.0)
    probs = np.zeros(losses.size)
    probs[:-1] += mass * (1.0 - share)
    probs[1:] += mass * share
    return on_grid(interval, first, probs)


# ---- like events merged --------------------------------------------------------------------------

Part = tuple[Iterable[Event], UnitCost]
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
    def is_gaussian(self) -> bool:
        """Whether there is nothing but full Gaussian sums."""
        return not (self.sampled or self.pure or self.choices or self.searches)

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


def compositions(parts: Iterable[Part], adjacency: Adjacency) -> list[Composition | None]:
    """What the events amount to for units here and there: the worst of these is the bound.

    One event of several parts alone has one composition for each part. Beside other releases, which may
    have been made in the light of its answers, a single composition covers all its parts.
    """
    listed = [(check_events(events), group) for events, group in parts]
    events = [event for checked, _ in listed for event in checked]
    if len(events) == 1 and isinstance(events[0], ParallelEvent):
        ((_, group),) = [one for one in listed if one[0]]
        (cost,) = cost_by_event(group, 1)
        return [compose([(part, (cost,) * len(part))], adjacency) for part in events[0].parts]
    return [compose(listed, adjacency)]


def _covering(
    event: ParallelEvent, cost: Cost, adjacency: Adjacency
) -> tuple[Event, ...] | Fraction | None:
    """Events that cost as much as any of the parts, whatever they are composed with, or a pure epsilon.

    Full Gaussian sums are covered by those of the part with the larger mu, everything else is composed, as if
    a unit were in each part. Pure parts are covered by the largest epsilon. None: there is no finite epsilon.
    """
    found = [compose([(part, (cost,) * len(part))], adjacency) for part in event.parts]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    if event.is_pure:
        total = max(one.pure_total + one.choices_total for one in known) * (1.0 + 1e-15)
        return Fraction(total) if math.isfinite(total) else None
    full = [tuple(one for one in part if _is_full(one, cost.records)) for part in event.parts]
    others = [one for part in event.parts for one in part if not _is_full(one, cost.records)]

    def mu_squared(some: tuple[Event, ...]) -> float:
        alone = compose([(some, (cost,) * len(some))], adjacency) if some else None
        return 0.0 if alone is None else alone.mu_squared

    return (*max(full, key=mu_squared), *others)


def compose(parts: Iterable[Part], adjacency: Adjacency) -> Composition | None:
    """Merge like events; None when one of them has no noise at all, or too little for any finite epsilon."""
    mu_squared: list[float] = []
    pure: dict[Fraction, int] = defaultdict(int)
    sampled: dict[tuple[int, float, float, bool], int] = defaultdict(int)
    choices: dict[Fraction, int] = defaultdict(int)
    searches: list[Search] = []
    for events, group in parts:
        checked = check_events(events)
        waiting = deque(zip(checked, cost_by_event(group, len(checked)), strict=True))
        while waiting:
            event, cost = waiting.popleft()
            if isinstance(event, ParallelEvent):
                covering = _covering(event, cost, adjacency)
                if covering is None:
                    return None
                if isinstance(covering, Fraction):
                    pure[covering] += 1
                else:
                    waiting.extend((one, cost) for one in covering)
                continue
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
            if isinstance(event, GaussianEvent) and not _is_full(event, cost.records):
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


def _is_full(event: Event, kappa: int) -> bool:
    """Whether this is Gaussian noise on a sum of which sampling is not counted: mu says all of it."""
    if isinstance(event, GaussianEvent):
        return not _sampling_counts(event, kappa)
    return isinstance(event, DisjointGaussianEvent)


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
