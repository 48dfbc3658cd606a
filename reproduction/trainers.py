"""Trainers of pairs by other ways, for `pairveil audit --trainer`: each claims epsilon 1 at delta 1e-5 or 0.

They are written as people write them, with their mistakes; the audit is to find these
(docs/guides/new-learner.md).
"""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.errors import PrivacyLeakWarning
from pairveil.privacy.calibrate import calibrate_gaussian

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
    W[np.arange(d) % ROWS, np.arange(d)] = 1.0  # every column is heard
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
    from reproduction.published import Settings, train

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


def opacus_pairs(X: FloatArray, pairs: Pairs, y: Labels, seed: int) -> FloatArray:
    """A linear Siamese network trained with Opacus, a pair for an example (needs opacus and torch).

    All pairs are in every batch. Opacus' epsilon compares with a pair that is not there: audit it with
    ``--adjacency zero-out``. Claims epsilon 1 at delta 1e-5.
    """
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(seed)
    network = torch.nn.Linear(X.shape[1], ROWS, bias=False, dtype=torch.float64)
    network.weight.data = torch.tensor(_start(X.shape[1]))
    given = torch.utils.data.TensorDataset(torch.tensor(X[pairs]), torch.tensor(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of secure_mode, of hooks: Opacus' own, in every run
        private, optimiser, loader = PrivacyEngine(accountant="prv").make_private(
            module=network,
            optimizer=torch.optim.SGD(network.parameters(), lr=RATE),
            data_loader=torch.utils.data.DataLoader(given, batch_size=len(given)),
            noise_multiplier=_opacus_noise(),
            max_grad_norm=CLIP,
        )
        for _ in range(STEPS):
            for people, labels in loader:
                left, right = private(people).unbind(dim=1)
                distance = (left - right).norm(dim=1)
                pull, push = distance**2, torch.clamp(MARGIN - distance, min=0) ** 2
                optimiser.zero_grad()
                (torch.where(labels > 0, pull, push).mean() / 2).backward()
                optimiser.step()
    return np.asarray(network.weight.detach())


@cache
def _opacus_noise() -> float:
    from opacus.accountants.utils import get_noise_multiplier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(
            get_noise_multiplier(
                target_epsilon=EPSILON,
                target_delta=DELTA,
                sample_rate=1.0,
                steps=STEPS,
                accountant="prv",
            )
        )


def diffprivlib_differences(X: FloatArray, pairs: Pairs, y: Labels, seed: int) -> FloatArray:
    """diffprivlib's logistic regression on absolute differences of a pair's features (needs diffprivlib).

    A constant column stands for the intercept, which diffprivlib does not regularise: with noise in its
    objective it runs off beyond 1e16. Claims epsilon 1 at delta 0 for one replaced row, that is for one pair.
    """
    from diffprivlib.models import LogisticRegression

    apart = np.abs(X[pairs[:, 0]] - X[pairs[:, 1]])
    rows = np.column_stack([apart, np.ones(len(apart))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of parameters that diffprivlib passes on
        model = LogisticRegression(
            epsilon=EPSILON, data_norm=5**0.5, C=0.1, fit_intercept=False, random_state=seed
        )
        return np.asarray(model.fit(rows, y).coef_)
