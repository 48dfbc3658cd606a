"""The registry that every contract test runs over: each learner, built small and seeded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pairveil import ContrastiveMetricLearner, DPPMetricLearner
from pairveil.learners.base import PrivateLearner
from pairveil.learners.classes import ScatterRecipe


class Entry(NamedTuple):
    name: str
    build: Callable[..., Any]
    private: bool


def _dpp(**fixed):
    return lambda **more: DPPMetricLearner(**{"random_state": 0, **fixed, **more})


LEARNERS = [
    Entry("contrastive", lambda **more: ContrastiveMetricLearner(**more), False),
    Entry("contrastive-2d", lambda **more: ContrastiveMetricLearner(n_components=2, **more), False),
    Entry("dpp", _dpp(epsilon=8.0), True),
    Entry("dpp-2d", _dpp(epsilon=8.0, n_components=2), True),
    Entry("dpp-laplace", _dpp(epsilon=8.0, mechanism="laplace"), True),
    Entry("dpp-person-replace", _dpp(epsilon=8.0, unit="person", adjacency="replace"), True),
    Entry("dpp-pair-sampled", _dpp(epsilon=8.0, unit="pair", sample_rate=0.3, select="all"), True),
    Entry(
        "dpp-disjoint", _dpp(epsilon=8.0, sampling="disjoint", sample_rate=0.25, n_steps=20), True
    ),
    Entry("dpp-private-margin", _dpp(epsilon=8.0, margin="private"), True),
    Entry("dpp-inf", _dpp(epsilon=float("inf")), False),
]
IDS = [entry.name for entry in LEARNERS]


class StatisticsLearner(DPPMetricLearner):
    """Always takes class statistics, which `fit_classes` takes where noise is small or pure."""

    def __init__(self, unit="person", **common):
        super().__init__(unit=unit, **common)

    _prepare_records = PrivateLearner._prepare_records

    def _recipe(self, given, records):
        if records.kind != "people":
            return super()._recipe(given, records)
        return ScatterRecipe(records.used.n_classes, given.n_components)


def people(n=120, d=5, seed=0):
    """Two groups that differ in the first column only; rows of norm at most 1."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n) % 2
    X = rng.normal(size=(n, d)) * 0.1
    X[:, 0] = 0.4 * groups + 0.03 * rng.normal(size=n)
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True)), groups


def chain(groups, seed=0):
    """A path through all people, labelled."""
    order = np.random.default_rng(seed).permutation(len(groups))
    pairs = np.column_stack([order[:-1], order[1:]])
    return pairs, np.where(groups[pairs[:, 0]] == groups[pairs[:, 1]], 1, -1)
