"""Lower bounds on epsilon from how often an attacker is right.

An attacker scores the output of a mechanism run on one of two neighbouring inputs and says "second"
when the score passes a threshold. Differential privacy caps how good such a test can be; a test that
is better refutes the promise. Two ways to turn error rates into a bound:

- `epsilon_from_rates` assumes nothing: (epsilon, delta)-DP forces
  ``1 - fnr <= e^epsilon fpr + delta`` and ``1 - fpr <= e^epsilon fnr + delta``.
- `mu_from_duels` assumes that the mechanism's trade-off curve is a Gaussian one (mu-GDP, Dong, Roth and
  Su 2019): ``fnr >= Phi(Phi^-1(1 - fpr) - mu)``. One number then fixes the whole curve, so that
  a few thousand runs say something about delta = 1e-5, where the first way sees nothing. It needs no
  threshold.

Rates are replaced by Clopper-Pearson upper limits at half the error probability each; both
directions of each inequality use the same two limits, so no further correction is needed. The
threshold must come from other runs than the rates: `choose_threshold`, `middle_threshold`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri

from pairveil.array_types import FloatArray
from pairveil.errors import InputError

Criterion = Callable[[Any, Any], Any]


def clopper_pearson_upper(events: ArrayLike, trials: int, alpha: float) -> FloatArray:
    """Upper confidence limit of a probability; it is too low with probability at most ``alpha``.

    Examples
    --------
    Nothing in 100 trials leaves 3 % possible at 95 % confidence:

    >>> round(float(clopper_pearson_upper(0, 100, 0.05)), 4)
    0.0295
    """
    count = np.asarray(events, dtype=np.float64)
    if trials < 1 or np.any(count < 0) or np.any(count > trials):
        raise InputError("events must lie between 0 and a positive number of trials")
    inside = np.minimum(count, trials - 1)
    limit = betaincinv(inside + 1.0, trials - inside, 1.0 - alpha)
    upper: FloatArray = np.where(count < trials, limit, 1.0)
    return upper


def epsilon_from_rates(fpr: ArrayLike, fnr: ArrayLike, delta: float = 0.0) -> FloatArray:
    """Smallest epsilon at which a test with these error rates (or lower ones) is allowed.

    Examples
    --------
    >>> float(epsilon_from_rates(0.1, 0.1).round(3)), float(epsilon_from_rates(0.5, 0.5))
    (2.197, 0.0)
    """
    rates = np.asarray(fpr, dtype=np.float64), np.asarray(fnr, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ways = [
            np.where(
                1 - miss - delta > 0, np.log(np.maximum(1 - miss - delta, 0)) - np.log(alarm), 0
            )
            for alarm, miss in (rates, rates[::-1])
        ]
    epsilon: FloatArray = np.maximum(0.0, np.maximum(*ways))
    return epsilon


@dataclass(frozen=True)
class Counts:
    """Errors of a test on fresh runs.

    Parameters
    ----------
    false_alarms, n_first : int
        How often "second" was said in how many runs on the first input.
    misses, n_second : int
        How often "first" was said in how many runs on the second input.
    """

    false_alarms: int
    n_first: int
    misses: int
    n_second: int

    def limits(self, confidence: float) -> tuple[float, float]:
        """Upper limits of both error rates, together right with probability ``confidence``."""
        alpha = _half_error(confidence)
        return (
            float(clopper_pearson_upper(self.false_alarms, self.n_first, alpha)),
            float(clopper_pearson_upper(self.misses, self.n_second, alpha)),
        )

    def epsilon(self, delta: float = 0.0, confidence: float = 0.95) -> float:
        """Lower bound on epsilon at ``delta``, whatever the mechanism.

        Examples
        --------
        >>> round(Counts(20, 1000, 20, 1000).epsilon(), 2)
        3.45
        """
        return float(epsilon_from_rates(*self.limits(confidence), delta))


def choose_threshold(
    first: ArrayLike, second: ArrayLike, criterion: Criterion, confidence: float = 0.95
) -> float:
    """Threshold that would have given the best bound on these (held-out) scores.

    Parameters
    ----------
    first, second : arrays of scores
        "Second" is said at or above the threshold. These runs must not be counted afterwards.
    criterion : callable
        Of the two rates' upper limits (arrays), what to maximise: `epsilon_from_rates` at some delta.

    Examples
    --------
    >>> choose_threshold([0] * 40 + [1] * 10, [0] * 10 + [1] * 40, epsilon_from_rates)
    1.0
    """
    low, high = np.sort(np.asarray(first, float)), np.sort(np.asarray(second, float))
    if not (low.size and high.size):
        raise InputError("choosing a threshold needs held-out runs of both inputs")
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise InputError("a score is not finite")
    values = np.unique(np.concatenate([low, high]))
    # Every tail matters: take the candidates evenly in rank, and all of the outermost ones.
    edge = min(values.size, 100)
    even = np.linspace(0, values.size - 1, 200).round().astype(int)
    values = np.unique(np.concatenate([values[:edge], values[even], values[values.size - edge :]]))
    alpha = _half_error(confidence)
    alarms = clopper_pearson_upper(low.size - np.searchsorted(low, values), low.size, alpha)
    misses = clopper_pearson_upper(np.searchsorted(high, values), high.size, alpha)
    return float(values[int(np.argmax(criterion(alarms, misses)))])


def middle_threshold(first: ArrayLike, second: ArrayLike) -> float:
    """Half way between the (held-out) medians: the best place to look when one point fixes the curve.

    Every threshold would give the same noise but for sampling error, and that is smallest in the
    middle. Maximising a noisy bound over thresholds instead would pick the noisiest.

    Examples
    --------
    >>> middle_threshold([0, 1, 2], [4, 5, 6])
    3.0
    """
    low, high = np.asarray(first, float), np.asarray(second, float)
    if not (low.size and high.size):
        raise InputError("choosing a threshold needs held-out runs of both inputs")
    return float(np.median(low) + np.median(high)) / 2.0


def mu_from_duels(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> float:
    """Lower bound on mu from how often the second input's score is the higher of two.

    Parameters
    ----------
    first, second : arrays of equal length
        Scores of independent runs. Ties are given to the first input.

    Notes
    -----
    Telling (first, second) from (second, first) is telling two inputs apart in two runs, and two
    runs of a mu-GDP mechanism are sqrt(2) mu-GDP. Naming the order by the higher score is then right
    with probability at most ``Phi(sqrt(2) mu / 2)``. No threshold, so nothing is held out, and one
    exact binomial limit instead of two: a given precision takes about a quarter of the runs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(mu_from_duels(rng.normal(0, 1, 4000), rng.normal(1, 1, 4000)), 2)
    0.98
    """
    low, high = np.asarray(first, float), np.asarray(second, float)
    if low.size != high.size or not low.size:
        raise InputError("duels need as many runs of one input as of the other")
    lost = clopper_pearson_upper(int((high <= low).sum()), low.size, _error(confidence))
    return float(max(0.0, -np.sqrt(2.0) * ndtri(lost)))


def count_errors(first: ArrayLike, second: ArrayLike, threshold: float) -> Counts:
    """Errors of "second at or above ``threshold``" on fresh scores.

    Examples
    --------
    >>> count_errors([0, 1, 2], [1, 2, 3], threshold=2)
    Counts(false_alarms=1, n_first=3, misses=1, n_second=3)
    """
    low, high = np.asarray(first, float), np.asarray(second, float)
    alarms, misses = int((low >= threshold).sum()), int((high < threshold).sum())
    return Counts(alarms, low.size, misses, high.size)


def _error(confidence: float) -> float:
    if not 0.5 < confidence < 1:
        raise InputError("confidence must be above 0.5 and below 1")
    return 1.0 - confidence


def _half_error(confidence: float) -> float:
    return _error(confidence) / 2.0
