"""Pairs and their neighbours, random, at the edges and far beyond, for tests of what one pair can move."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pairveil.engine.losses import ContrastiveLoss
from pairveil.records.pairset import PairSet

SCALES = (0.0, 1e-100, 1e-17, 1e-8, 1.0, 1e3, 1e8)


def quiet(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@st.composite
def neighbourhoods(draw):
    """Pair contents, their replacements, a W and a loss: random, at the edges, or far beyond."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, k = draw(st.integers(1, 7)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    kappa = draw(st.integers(1, n))
    margin = draw(st.sampled_from([1e-3, 0.5, 1.0, 2.0, 50.0]))
    clip = draw(st.sampled_from([1e-6, 0.05, 0.5, 1.0, 30.0]))
    W = rng.normal(size=(k, d)) * draw(st.sampled_from(SCALES))
    kind = draw(st.sampled_from(["random", "sparse", "equal", "margin", "extreme"]))
    contents = [_contents(rng, kind, n, d, W, margin) for _ in range(2)]
    labels = [rng.choice([-1, 1], n).astype(np.int8) for _ in range(2)]
    if draw(st.booleans()):  # the label flip: same people, other labels
        contents[1], labels[1] = contents[0].copy(), -labels[0]
    changed = rng.permutation(n)[:kappa]
    return contents, labels, changed, W, ContrastiveLoss(margin), clip


def _contents(rng, kind, n, d, W, margin):
    dx = rng.normal(size=(n, d))
    if kind == "sparse":
        dx *= rng.random((n, d)) < 0.4
    elif kind == "equal":
        dx[:] = dx[0]
    elif kind == "extreme":
        dx *= rng.choice(SCALES[:5], size=(n, 1))
    dx *= (
        2.0 / np.maximum(np.linalg.norm(dx, axis=1, keepdims=True), 1e-300)
        if kind == "equal"
        else 1
    )
    if kind == "margin":  # distances exactly at, just inside or just outside the margin
        distance = np.linalg.norm(dx @ W.T, axis=1, keepdims=True)
        near = margin * rng.choice([1.0, 1 - 1e-15, 1 + 1e-15, 1e-12], size=(n, 1))
        dx = np.where(distance > 1e-6, dx * near / np.maximum(distance, 1e-6), dx)
    return np.clip(dx, -1e3, 1e3)


def as_pairs(dx, labels):
    features = np.zeros((2 * len(dx), dx.shape[1]))
    features[0::2] = dx
    return PairSet(features, np.arange(2 * len(dx)).reshape(-1, 2), labels)
