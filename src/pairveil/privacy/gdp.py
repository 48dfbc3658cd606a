"""The Gaussian mechanism in closed form: mu-GDP to (epsilon, delta) and back.

With t = epsilon/mu - mu/2 the exact privacy profile (Balle and Wang 2018, Theorem 8) is

    delta(epsilon) = Phi(-t) - exp(epsilon) Phi(-t - mu) = phi(t) [R(t) - R(t + mu)],

R(t) = Phi(-t)/phi(t) being Mills' ratio, because exp(epsilon) phi(t + mu) = phi(t). The second form
has no overflow and loses no digits in the tail, so it serves from epsilon 1e-8 to 1e12.
"""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.special import erfcx, ndtr

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
    """Return the smallest epsilon at which mu-GDP gives (epsilon, delta)-DP, rounded up.

    Parameters
    ----------
    mu : float
        l2 sensitivity divided by the noise's standard deviation, composed as a root of squares.
    delta : float
        In [0, 1). At 0 no finite epsilon exists unless ``mu`` is 0.

    Examples
    --------
    >>> round(epsilon_from_mu(1.0, 1e-5), 4)
    4.3772
    """
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
    """Return the smallest delta at which mu-GDP gives (epsilon, delta)-DP, rounded up.

    Parameters
    ----------
    mu : float
        As in `epsilon_from_mu`.
    epsilon : float
        At least 0.

    Examples
    --------
    >>> round(delta_from_mu(1.0, 0.0), 4)  # 2 Phi(1/2) - 1
    0.3829
    """
    if mu == 0.0:
        return 0.0
    if not mu <= 1e8:
        return 1.0
    return min(1.0, _profile(epsilon / mu - 0.5 * mu, mu) * (1.0 + _SAFE))


@lru_cache(maxsize=256)  # thousands of evaluations, and every query of a plan asks for the same
def mu_from_epsilon(epsilon: float, delta: float) -> float:
    """Return the largest mu (rounded down) with ``epsilon_from_mu(mu, delta) <= epsilon``.

    Examples
    --------
    >>> mu = mu_from_epsilon(1.0, 1e-5)
    >>> epsilon_from_mu(mu, 1e-5) <= 1.0 < epsilon_from_mu(1.001 * mu, 1e-5)
    True
    """
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
