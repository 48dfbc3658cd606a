"""From noisy counts to probabilities of levels: post-processing, so it costs no privacy.

Before looking, matches are believed to agree mostly and others hardly ever: each count is Gamma distributed,
with shapes that are public and a scale from the noisy number of labels. A noisy count is replaced by its mean
given the noise on it. Where counts are large the belief is lost in them; where noise is all, it decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from pairveil.array_types import FloatArray

MATCHES_BEST, MATCHES_FALL = 0.6, 0.3
"""Belief on matches: the share of the highest level, and the factor by which shares fall below it."""
OTHERS_AGREE, OTHERS_AGREE_OF_TWO, OTHERS_FALL = 0.05, 0.3, 0.5
"""On other pairs: the share of all levels above the lowest; the same where there are two levels only (sex,
state: agreeing by chance is common there); and the factor by which shares fall from the second level on."""
MATCHES_WEIGHT, OTHERS_WEIGHT = 6.0, 4.0
"""How many pairs the belief is worth: the sum of the shapes."""
LEAST_COUNT = 0.5
"""Added to every count: no probability is zero, whatever was sampled."""
_REACH, _POINTS = 9.0, 400  # of the quadrature: standard deviations, and points on either grid


def belief(size: int, *, matches: bool) -> FloatArray:
    """Shares of the levels of a comparison that are believed before any pair is seen, the lowest first.

    Examples
    --------
    >>> belief(4, matches=True).round(3), belief(4, matches=False).round(3)
    (array([0.026, 0.086, 0.288, 0.6  ]), array([0.95 , 0.029, 0.014, 0.007]))
    """
    if size == 1:
        return np.ones(1)
    steps = np.arange(size - 1)
    ladder = MATCHES_FALL ** steps[::-1] if matches else OTHERS_FALL**steps
    ladder /= ladder.sum()
    if matches:
        return np.append((1 - MATCHES_BEST) * ladder, MATCHES_BEST)
    agree = OTHERS_AGREE_OF_TWO if size == 2 else OTHERS_AGREE
    return np.append(1 - agree, agree * ladder)


def shrunk(counts: FloatArray, noise: float, total: float, *, matches: bool) -> FloatArray:
    """Counts of the levels of one comparison, less their noise: m or u is their shares.

    Parameters
    ----------
    counts : array of shape (n_levels,)
        Noisy.
    noise : float
        Standard deviation of the noise on each.
    total : float
        About how many labels of this kind there are, above 0.
    matches : bool
        Of matches or of other pairs.

    Examples
    --------
    >>> shrunk(np.array([10.0, 30.0, 160.0]), 0.0, 200.0, matches=True)
    array([ 10.5,  30.5, 160.5])
    >>> shrunk(np.array([-40.0, 10.0]), 30.0, 50.0, matches=False).round()
    array([19., 13.])
    """
    if len(counts) == 1 or noise == 0:
        return np.maximum(counts, 0.0) + LEAST_COUNT
    weight = MATCHES_WEIGHT if matches else OTHERS_WEIGHT
    means = [
        posterior_mean(count, noise, weight * share, total / weight)
        for count, share in zip(counts, belief(len(counts), matches=matches), strict=True)
    ]
    return np.array(means) + LEAST_COUNT


def posterior_mean(count: float, noise: float, shape: float, scale: float) -> float:
    """Mean of a Gamma(shape, scale) variable x, given that x plus Gaussian noise is ``count``.

    By the trapezoidal rule in log x, on one grid that follows the noise and one that goes down to 0.

    Examples
    --------
    >>> round(posterior_mean(1000.0, 1.0, 3.0, 500.0), 1), round(posterior_mean(-50.0, 20.0, 0.4, 50.0), 1)
    (1000.0, 2.4)
    """
    low, high = max(count - _REACH * noise, 0.0), max(count, 0.0) + _REACH * noise
    near = np.linspace(low, high, _POINTS + 1)[1:]
    x = np.union1d(near, np.geomspace(1e-6 * noise, high, _POINTS))
    # The density of log x is x^shape exp(-x / scale), up to a factor.
    log_density = shape * np.log(x) - x / scale - ((count - x) / noise) ** 2 / 2
    density = np.exp(log_density - log_density.max())
    place = np.log(x)
    below = (
        density[0] / shape
    )  # all of it that lies under the first point, where it is x^shape alone
    return float(np.trapezoid(density * x, place) / (np.trapezoid(density, place) + below))


def in_order(m: FloatArray, u: FloatArray) -> FloatArray:
    """m with m / u not falling from level to level; levels out of order share one ratio.

    Of all m with a monotone ratio it is the nearest to the given one in squares weighted by u.

    Examples
    --------
    >>> in_order(np.array([0.1, 0.5, 0.4]), np.array([0.6, 0.2, 0.2])).round(3)
    array([0.1 , 0.45, 0.45])
    """
    if len(m) < 2:
        return m
    ratio = IsotonicRegression().fit_transform(np.arange(len(m)), m / u, sample_weight=u)
    raised: FloatArray = ratio * u
    return np.asarray(raised / raised.sum())


def level_frequencies(levels: NDArray[np.int64], n_levels: Sequence[int]) -> list[FloatArray]:
    """How often each level occurs in public or random pairs: the ``u`` of a model that pays for m alone.

    Parameters
    ----------
    levels : integer array of shape (K, C)
        -1 is null.
    n_levels : sequence of int

    Examples
    --------
    >>> level_frequencies(np.array([[0], [0], [1], [-1]]), [2])
    [array([0.625, 0.375])]
    """
    found = []
    for column, size in enumerate(n_levels):
        known = levels[:, column][levels[:, column] >= 0]
        count = np.bincount(known, minlength=size) + LEAST_COUNT
        found.append(count / count.sum())
    return found
