"""From noisy counts to probabilities of levels: post-processing, so it costs no privacy.

A count that noise may have made negative is replaced by its mean given that it is not. Then a public guess
is added, worth two standard deviations of the noise: where counts are large it is lost in them, and where
noise is all there is the guess decides. It says that matches mostly agree and others mostly do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr
from sklearn.isotonic import IsotonicRegression

FloatArray = NDArray[np.float64]

GUESS_STRENGTH = 2.0
"""Pseudo-counts of the guess, in standard deviations of the noise on one count."""
GUESSED_LEVEL = 0.8
"""How often, by the guess, matches have the highest level and others the lowest."""
LEAST_COUNT = 0.5
"""Added to every count: no probability is zero, whatever was sampled."""


def shrunk(counts: FloatArray, noise: float, *, matches: bool) -> FloatArray:
    """Counts of the levels of one comparison with the guess in them: m or u is their shares.

    Parameters
    ----------
    counts : array of shape (n_levels,)
        Noisy.
    noise : float
        Standard deviation of the noise on each.
    matches : bool
        Of matches or of other pairs.

    Examples
    --------
    >>> shrunk(np.array([10.0, 30.0, 160.0]), 0.0, matches=True)
    array([ 10.5,  30.5, 160.5])
    >>> shrunk(np.array([-40.0, 10.0]), 30.0, matches=False).round()
    array([64., 42.])
    """
    size = len(counts)
    if size == 1:
        return np.maximum(counts, LEAST_COUNT)
    guess = np.full(size, (1 - GUESSED_LEVEL) / (size - 1))
    guess[-1 if matches else 0] = GUESSED_LEVEL
    return positive_mean(counts, noise) + LEAST_COUNT + GUESS_STRENGTH * noise * guess


def positive_mean(counts: FloatArray, noise: float) -> FloatArray:
    """Mean of each count given its noisy value, if all counts from 0 up were equally likely before.

    Examples
    --------
    >>> positive_mean(np.array([-10.0, 0.0, 100.0]), 10.0).round(2)
    array([  5.25,   7.98, 100.  ])
    """
    if noise == 0:
        return np.maximum(counts, 0.0)
    z = np.clip(counts / noise, -1e3, 1e8)
    # z + phi(z) / Phi(z), by logarithms: both are tiny where the noise is far below zero.
    hazard = np.exp(-(z**2) / 2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    return np.asarray(noise * np.maximum(z + hazard, 1e-3 / np.maximum(1.0, -z)))


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
