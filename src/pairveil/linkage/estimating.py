"""From noisy counts to probabilities of levels: post-processing, so it costs no privacy.

Before looking, matches are believed to agree mostly and others mostly not: each count is Gamma distributed,
with shapes that are public and a scale from the noisy number of labels. A noisy count is replaced by its mean
given the noise on it. Where counts are large the belief is lost in them; where noise is all, it decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

FloatArray = NDArray[np.float64]

MATCHES_AGREE, MATCHES_DIFFER = 3.0, 1.0
"""Shapes of the belief on matches: that of the highest level, and that of all others together."""
OTHERS_DIFFER, OTHERS_AGREE = 2.0, 0.4
"""Of other pairs: that of the lowest level, and that of all others together. Below 1: mostly near none."""
LEAST_COUNT = 0.5
"""Added to every count: no probability is zero, whatever was sampled."""
_REACH, _POINTS = 9.0, 400  # of the quadrature: standard deviations, and points on either grid


def shrunk(counts: FloatArray, noise: float, total: float, *, matches: bool) -> FloatArray:
    """Counts of the levels of one comparison, less their noise: m or u is their shares.

    Parameters
    ----------
    counts : array of shape (n_levels,)
        Noisy.
    noise : float
        Standard deviation of the noise on each.
    total : float
        How many labels of this kind there are, with noise.
    matches : bool
        Of matches or of other pairs.

    Examples
    --------
    >>> shrunk(np.array([10.0, 30.0, 160.0]), 0.0, 200.0, matches=True)
    array([ 10.5,  30.5, 160.5])
    >>> shrunk(np.array([-40.0, 10.0]), 30.0, 50.0, matches=False).round()
    array([17.,  7.])
    """
    size = len(counts)
    if size == 1 or noise == 0:
        return np.maximum(counts, 0.0) + LEAST_COUNT
    best, rest = (MATCHES_AGREE, MATCHES_DIFFER) if matches else (OTHERS_DIFFER, OTHERS_AGREE)
    shapes = np.full(size, rest / (size - 1))
    shapes[-1 if matches else 0] = best
    scale = max(total, noise) / (best + rest)
    means = [
        posterior_mean(count, noise, shape, scale)
        for count, shape in zip(counts, shapes, strict=True)
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
