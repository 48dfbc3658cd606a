"""From a noisy sum of choices to strengths of the items, with how sure they are: post-processing.

In a logistic model of differences (Bradley-Terry, where items have no features) a choice is +1 with
probability ``1 / (1 + exp(-<b, x>))`` for the public difference x of the two items' features. The sum of
``y x`` over all choices says all that the choices say about b, and everything else in the likelihood is
public. So one noisy sum is enough: b is fitted to it by generalised least squares, with the noise in the
weights and a prior that keeps items about which nothing was heard near the mean (docs/theory/choices.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from pairveil.array_types import FloatArray, IntArray

STEPS = 100
"""Most Newton steps; they stop when nothing moves."""
DRAWS = 10_000
"""Of strengths, for the critical value of simultaneous statements."""


@dataclass(frozen=True)
class Asked:
    """What is public about all choices together: which differences were asked for, and with what weight.

    Attributes
    ----------
    differences : array or sparse matrix of shape (P, d)
        Each pair of items once.
    weight, square : arrays of shape (P,)
        Sum of the public weights of its choices, and of their squares.
    """

    differences: Any
    weight: FloatArray
    square: FloatArray

    def moments(self, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean of the sum of ``weight y x`` at b, its derivative in b, and its covariance."""
        half = np.asarray(self.differences @ b) / 2
        mean = np.tanh(half)
        spread = 1 - mean**2
        return (
            np.asarray(self.differences.T @ (self.weight * mean)),
            self._gram(self.weight * spread / 2),
            self._gram(self.square * spread),
        )

    def _gram(self, by: FloatArray) -> FloatArray:
        x = self.differences
        if sparse.issparse(x):
            return np.asarray((x.T @ (sparse.diags_array(by) @ x)).todense())
        return np.asarray(x.T @ (by[:, None] * x))


def fit_strengths(
    asked: Asked, answer: FloatArray, noise: float, prior_std: float
) -> tuple[FloatArray, FloatArray]:
    """Coefficients and their covariance, from the noisy sum of ``weight y x`` over all choices.

    Parameters
    ----------
    answer : array of shape (d,)
    noise : float
        Standard deviation of the noise on each entry.
    prior_std : float
        Standard deviation of the coefficients before anything is heard.

    Examples
    --------
    >>> asked = Asked(np.array([[1.0, -1.0]]), np.array([100.0]), np.array([100.0]))
    >>> b, _ = fit_strengths(asked, np.array([50.0, -50.0]), noise=0.0, prior_std=100.0)
    >>> round(float(b[0] - b[1]), 2)        # log(75 / 25)
    1.1
    """
    d = len(answer)
    b, prior = np.zeros(d), np.eye(d) / prior_std**2
    precision = prior
    damping = 1.0
    last = math.inf
    for _ in range(STEPS):
        mean, slope, spread = asked.moments(b)
        tiny = 1e-9 * max(float(np.trace(spread)) / d, 1e-300)
        weighed = linalg.solve(spread + (noise**2 + tiny) * np.eye(d), slope, assume_a="pos").T
        precision = weighed @ slope + prior
        step = linalg.solve(precision, weighed @ (answer - mean) - prior @ b, assume_a="pos")
        length = float(np.abs(step).max())
        damping = damping / 2 if length > last else min(1.0, 1.5 * damping)
        b, last = b + damping * step, length
        if length < 1e-9 * prior_std:
            break
    return b, np.asarray(linalg.inv((precision + precision.T) / 2))


def rank_sets(
    strengths: FloatArray, covariance: FloatArray, confidence: float
) -> tuple[IntArray, IntArray]:
    """Best and worst rank of each item that no statement about two items rules out.

    With the stated confidence *all* true ranks are in their sets: each difference of two strengths gets an
    interval, all of them hold together, and an item's best rank is one more than the number of items above
    it for certain.

    Parameters
    ----------
    strengths : array of shape (n,)
    covariance : array of shape (n, n)

    Returns two integer arrays of shape (n,), low and high; ranks count from 1, the best.

    Examples
    --------
    >>> low, high = rank_sets(np.array([3.0, 0.0, 0.1]), 0.01 * np.eye(3), confidence=0.95)
    >>> low.tolist(), high.tolist()
    ([1, 2, 2], [1, 3, 3])
    """
    n = len(strengths)
    variances = np.diag(covariance)
    spread = np.sqrt(np.maximum(variances[:, None] + variances[None, :] - 2 * covariance, 1e-300))
    critical = _critical(covariance, spread, confidence)
    above = strengths[None, :] - strengths[:, None] > critical * spread  # [i, j]: j is above i
    return above.sum(axis=1) + 1, n - above.sum(axis=0)


def _critical(covariance: FloatArray, spread: FloatArray, confidence: float) -> float:
    """What the largest of all standardised differences exceeds with probability 1 - confidence.

    By simulation with a fixed seed: the covariance is released, so this is arithmetic and no secret.
    """
    n = len(covariance)
    draws = max(1000, min(DRAWS, 20_000_000 // (n * n)))
    values, vectors = linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = np.random.default_rng(0).standard_normal((draws, n)) @ root.T
    largest = np.zeros(draws)
    for i in range(n):
        apart = np.abs(drawn - drawn[:, [i]]) / spread[i]
        np.maximum(largest, apart.max(axis=1), out=largest)
    return float(np.quantile(largest, confidence))
