"""What learning without privacy from public people would gain: a yardstick for a released metric."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairveil.errors import PairveilWarning
from pairveil.evaluation.scores import pair_auc
from pairveil.graph.choosing import design_pairs
from pairveil.learners.contrastive.learner import ContrastiveMetricLearner
from pairveil.records.embedded import label_pairs
from pairveil.records.pairset import PairSet

MOST_LEARN, FEWEST_LEARN = 2000, 20  # people of each half


def yardstick(X: NDArray[np.float64], classes: ArrayLike) -> float | None:
    """How well a metric learned from public people, without privacy, tells others of them apart.

    One half learns and the other is scored, both ways; None where a half is too small or of one class.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 5)); X /= 4
    >>> round(yardstick(X, (X[:, 0] > 0).astype(str)), 1)
    0.8
    """
    labels = np.asarray(classes).astype(str)
    order = np.random.default_rng(0).permutation(len(X))[: 2 * MOST_LEARN]
    halves = order[::2], order[1::2]
    if len(halves[1]) < FEWEST_LEARN or any(len(np.unique(labels[half])) < 2 for half in halves):
        return None
    scores = []
    for learn, score in (halves, halves[::-1]):
        pairs = design_pairs(len(learn), how="paths", random_state=0)
        data = PairSet(X[learn], pairs, label_pairs(pairs, labels[learn]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PairveilWarning)
            learned = ContrastiveMetricLearner(data_norm=_longest(X)).fit(data)
        scores.append(pair_auc(learned.components_, X[score], labels[score], n_pairs=20_000))
    return float(np.mean(scores))


def _longest(X: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(X, axis=1).max()) or 1.0
