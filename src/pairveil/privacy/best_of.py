"""Private selection: the profile of the best of a random number of trials (docs/theory/selection.md).

With K geometric of mean n, Q one trial and delta_Q its profile, for every epsilon e and every shift s with
delta_Q(s) <= (exp(s) - 1) / (n - 1),

    delta of the best of K trials at e + 2 s  <=  n delta_Q(e).

A profile is convex in exp(epsilon), so it lies below the convex hull of these points and their mirror images.
The hull is the profile of a pair of discrete laws, which is composed like any other dominating pair.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.privacy.accounting import epsilon_of_composition
from pairveil.privacy.composition import Search
from pairveil.privacy.dominating import MAX_CELLS, MAX_LOSS, UnresolvableError, on_grid
from pairveil.privacy.profile import delta_of_composition

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import DensePLDPmf

_LARGEST_SHIFT = 600.0  # exp of it is a float
_POINTS = 192  # of the profile: more would change the third digit of a composition
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
    trial = np.linspace(0.0, far, _POINTS)
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
