"""Bounds that use the shape of a claimed trade-off curve.

A promise made by an accountant is a whole curve, epsilon as a function of delta, and one number, the
noise, moves it. If a test beats the curve of some noise, the mechanism has less noise than that. So
the audit looks where counting is sharp (error rates near one half) and the family carries the answer to
the delta of the claim, as mu-GDP does for plain Gaussian noise, but for any plan: Poisson-sampled
Gaussian steps with kappa pairs, Laplace steps, mixtures of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pairveil.audit.bounds import epsilon_from_rates

Curve = Callable[[float, float], float]
"""(noise, delta) -> epsilon; falls as the noise grows."""

_SHARES = (0.999, 0.8, 0.6, 0.4, 0.2, 0.05)
_REACH = 2.0**10


def epsilon_in_family(fpr: float, fnr: float, curve: Curve, noise: float, delta: float) -> float:
    """Lower bound on epsilon at ``delta``, if the mechanism is of the family with some noise.

    Parameters
    ----------
    fpr, fnr : float
        Upper limits of a test's error rates.
    curve : callable
        ``curve(noise, delta)`` is the family's epsilon (an upper bound on it keeps the answer sound
        against the claim: what is refuted is refuted for the true curve too).
    noise : float
        The claimed noise; the search covers a factor of 1,000 around it.

    Returns epsilon of the largest noise that is refuted; 0 if none is.

    Examples
    --------
    >>> from pairveil.privacy.gdp import epsilon_from_mu
    >>> curve = lambda noise, delta: epsilon_from_mu(1 / noise, delta)
    >>> round(epsilon_in_family(0.45, 0.45, curve, noise=4.0, delta=1e-5), 2)
    0.93
    """
    gain = 1.0 - fpr - fnr
    if gain <= 0.0:
        return 0.0
    deltas = [share * gain for share in _SHARES]

    def refuted(at: float) -> bool:
        return any(float(epsilon_from_rates(fpr, fnr, d)) > curve(at, d) for d in deltas)

    low, high = noise / _REACH, noise * _REACH
    if not refuted(high):
        # More noise is refuted first: nothing refuted at the far end means a useless test.
        return 0.0
    if refuted(low):
        return curve(low, delta)
    while high / low > 1.0 + 1e-4:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return curve(high, delta)


def mixture_loss(
    position: float,
    counts: np.ndarray,
    weights: np.ndarray,
    first: float,
    second: float,
    sigma: float,
) -> float:
    """Log likelihood ratio, second against first, of one noisy sum seen along the canary.

    Parameters
    ----------
    position : float
        The sum's coordinate along the canary's direction.
    counts, weights : arrays
        How many of the kappa pairs are in the batch, and how likely (Binomial(kappa, q)).
    first, second : float
        What one pair adds to the coordinate under each input.
    sigma : float
        Standard deviation of the noise.

    Examples
    --------
    >>> ones = np.ones(1)
    >>> float(mixture_loss(1.0, ones, ones, first=0.0, second=1.0, sigma=1.0))
    0.5
    """
    logs = [
        np.log(weights) - 0.5 * ((position - counts * step) / sigma) ** 2
        for step in (first, second)
    ]
    tops = [log.max() for log in logs]
    sums = [top + np.log(np.exp(log - top).sum()) for top, log in zip(tops, logs, strict=True)]
    return float(sums[1] - sums[0])
