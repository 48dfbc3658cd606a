"""Trainers of pairs by other ways, for `pairveil audit --trainer`: each claims epsilon 1 at delta 1e-5 or 0.

They are written as people write them, with their mistakes; the audit is to find these
(docs/guides/any-trainer.md).
"""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import PrivacyLeakWarning
from pairveil.privacy.calibration import calibrate_gaussian

FloatArray = NDArray[np.float64]
Pairs = NDArray[np.int64]
Labels = NDArray[np.int8]

EPSILON, DELTA = 1.0, 1e-5
ROWS, STEPS, RATE, CLIP, MARGIN = 4, 4, 0.5, 0.1, 2.0


def _gradients(W: FloatArray, X: FloatArray, pairs: Pairs, y: Labels) -> FloatArray:
    """The contrastive gradient of every pair, (K, rows, d)."""
    apart = X[pairs[:, 0]] - X[pairs[:, 1]]
    projected = apart @ W.T
    distance = np.linalg.norm(projected, axis=1)
    push = np.where(
        (distance > 0) & (distance < MARGIN), 1 - MARGIN / np.maximum(distance, 1e-12), 0
    )
    factor = np.where(y > 0, 1.0, push)
    return np.asarray((factor[:, None] * projected)[:, :, None] * apart[:, None, :])


def _start(d: int) -> FloatArray:
    """Public: the same in every run."""
    W = np.zeros((ROWS, d))
    W[:, 0] = 1.0
    W[np.arange(min(ROWS, d)), np.arange(min(ROWS, d))] = 1.0
    return W / 2


@cache
def _noise() -> float:
    return calibrate_gaussian(EPSILON, DELTA, kappa=1, adjacency="replace", steps=STEPS)


def pair_clipped(X: FloatArray, pairs: Pairs, y: Labels, seed: int) -> FloatArray:
    """Every pair's gradient is clipped, as DP-SGD does with pairs for examples: right for one pair.

    Claims epsilon 1 at delta 1e-5 under replace.

    Examples
    --------
    >>> X, pairs = np.eye(3), np.array([[0, 1], [1, 2]])
    >>> pair_clipped(X, pairs, np.array([1, -1]), seed=0).shape
    (4, 3)
    """
    rng, W = np.random.default_rng(seed), _start(X.shape[1])
    for _ in range(STEPS):
        each = _gradients(W, X, pairs, y)
        lengths = np.linalg.norm(each.reshape(len(each), -1), axis=1)
        total = np.tensordot(np.minimum(1, CLIP / np.maximum(lengths, 1e-12)), each, axes=1)
        W = W - RATE * (total + _noise() * CLIP * rng.normal(size=W.shape)) / len(pairs)
    return W


def batch_clipped(X: FloatArray, pairs: Pairs, y: Labels, seed: int) -> FloatArray:
    """The mean gradient of the batch is clipped, and gets the noise of a mean of clipped gradients.

    A common mistake: one pair may move the clipped mean by more than CLIP / batch. Claims epsilon 1 at delta
    1e-5 under replace.
    """
    rng, W = np.random.default_rng(seed), _start(X.shape[1])
    for _ in range(STEPS):
        mean = _gradients(W, X, pairs, y).mean(axis=0)
        mean = mean * min(1, CLIP / max(float(np.linalg.norm(mean)), 1e-12))
        W = W - RATE * (mean + _noise() * CLIP / len(pairs) * rng.normal(size=W.shape))
    return W


def published(X: FloatArray, pairs: Pairs, y: Labels, seed: int) -> FloatArray:
    """Algorithm 1 of Li, Pan, Sui and Tsang (2020) with Theorem 1's noise, from a public start.

    Claims epsilon 1 at delta 0, for a relabelled pair (kappa 1).
    """
    from pairveil.studies.published.algorithm1 import Settings, train

    settings = Settings(
        "dpp",
        epsilon=EPSILON,
        n_components=ROWS,
        margin=100.0,
        h=0.5,
        batch_size=len(pairs),
        epochs=1,
    )
    apart = X[pairs[:, 0]] - X[pairs[:, 1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # the leak is what is measured
        found = train(apart, (y < 0).astype(np.float64), settings, seed, 2 * _start(X.shape[1]))
    return np.asarray(found.W)
