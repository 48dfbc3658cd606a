"""Dominating pairs and their privacy loss distributions on a grid, rounded pessimistically.

A dominating pair (P, Q) has, for every alpha, a hockey-stick divergence sup_S P(S) - alpha Q(S) at least as
large as that of any two neighbouring data sets. Each of kappa protected pairs enters a sum with probability
q; the pairs that dominate are then mixtures of Gaussians with binomial weights. Theorem 1 and Lemma 2 of
docs/theory/accounting.md say which ones, why, and why truncating and binning as done below is sound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import binom

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import DensePLDPmf

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

    Examples
    --------
    >>> counts, weights, lost = sampled_counts(2, 0.5, 0.0)
    >>> counts.tolist(), weights.round(12).tolist(), lost
    ([0.0, 1.0, 2.0], [0.25, 0.5, 0.25], 0.0)
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
    """Return the dominating pairs of one step: both directions, or one when they coincide.

    Examples
    --------
    >>> len(sampled_gaussian_pairs(3, 0.1, 2.0, replace=False, lost=0.0))
    2
    """
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

    Examples
    --------
    >>> float(on_grid(0.1, 0, np.array([0.25, 0.25]), infinite=0.5).get_delta_for_epsilon(10.0))
    0.5
    >>> on_grid(0.1, 0, np.array([0.25, 0.25]))
    Traceback (most recent call last):
    ...
    pairveil.privacy.dominating.UnresolvableError: a part of the privacy losses was lost to rounding
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

    Examples
    --------
    >>> pair = sampled_gaussian_pairs(1, 1.0, 2.0, replace=False, lost=0.0)[0]
    >>> delta = discretise(pair, 1e-3, 1e-15).get_delta_for_epsilon(1.0)
    >>> round(float(delta), 5)  # exactly Phi(-1.75) - e Phi(-2.25)
    0.00683
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

    Examples
    --------
    >>> pmf = discretise_pure(0.5, 0.1)
    >>> round(float(pmf.get_delta_for_epsilon(0.0)), 6)  # (e^0.5 - 1)/(e^0.5 + 1)
    0.244919
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
