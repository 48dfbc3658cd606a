"""Private selection: epsilon of the best of a random number of trials (docs/theory/selection.md).

With K geometric of mean n, Q one trial and delta_Q its profile, for every epsilon e and every shift s with
delta_Q(s) <= (exp(s) - 1) / (n - 1),

    delta of the best of K trials at e + 2 s  <=  n delta_Q(e).
"""

from __future__ import annotations

import math
from functools import lru_cache

from pairveil.privacy.accounting import epsilon_of_composition
from pairveil.privacy.composition import Composition, Search
from pairveil.privacy.profile import delta_of_composition

_LARGEST_SHIFT = 600.0  # exp of it is a float


def epsilon_of_best(search: Search, delta: float) -> float:
    """Epsilon of a search at ``delta``; every candidate's trial is covered."""
    left = delta / search.mean_trials - search.slack
    if left < 0.0 or (search.slack > 0.0 and left == 0.0):
        return math.inf
    trial = max(epsilon_of_composition(one, left) for one in search.trials)
    return trial if search.mean_trials == 1 else trial + 2.0 * _shift(search)


@lru_cache(maxsize=1024)
def _shift(search: Search) -> float:
    """The smallest s that the theorem allows, from above."""
    low, high = 0.0, 1e-6
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


def delta_below(points: list[tuple[float, float]], epsilon: float) -> float:
    """Delta at ``epsilon`` of what is (e, d)-DP, both ways, for all these points.

    (e, d)-DP is dominated by randomised response that fails openly with probability d (Kairouz, Oh and
    Viswanath 2015), whose delta at epsilon < e is d + (1 - d) (exp(e) - exp(epsilon)) / (1 + exp(e)).

    Examples
    --------
    >>> delta_below([(1.0, 1e-5), (2.0, 1e-6)], 2.5)
    1e-06
    """
    found = [1.0]
    for e, d in points:
        more = -math.expm1(min(0.0, epsilon - e)) / (1.0 + math.exp(-e))
        found.append(d + (1.0 - d) * more)
    return min(found)


def points_of(composition: Composition) -> list[tuple[float, float]]:
    """Some (epsilon, delta) that hold for a composition with searches."""
    deltas = [10.0**-k for k in range(1, 13)] + [0.03, 0.2, 0.3]
    found = [(epsilon_of_composition(composition, d), d) for d in deltas]
    return [(e, d) for e, d in found if math.isfinite(e)]
