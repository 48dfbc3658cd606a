"""Gradients as the paper writes them, pair by pair: what the compiled sums are held against."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

DTYPES = [np.float32, np.float64]
Norm = Literal["l2", "l1"]


class Case(NamedTuple):
    features: NDArray[Any]
    pairs: NDArray[np.int64]
    labels: NDArray[np.int8]
    weights: NDArray[Any]


def make(n: int, d: int, k: int, dtype: Any, seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(200, d))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return Case(
        features.astype(dtype),
        rng.integers(0, 200, (n, 2)),
        rng.choice(np.array([-1, 1], dtype=np.int8), n),
        (rng.normal(size=(k, d)) / np.sqrt(d)).astype(dtype),
    )


def gradient(case: Case, row: int, margin: float, both: tuple[float, float]) -> NDArray[Any]:
    """One pair's gradient as the paper writes it, in float64."""
    left, right = case.pairs[row]
    dx = (case.features[left] - case.features[right]).astype(np.float64)
    projected = case.weights.astype(np.float64) @ dx
    distance = np.linalg.norm(projected)
    if case.labels[row] > 0:
        c = both[0]
    else:
        c = both[1] * (distance - margin) / distance if 0 < distance < margin else 0.0
    return c * np.outer(projected, dx)


def size(matrix: NDArray[Any], norm: Norm) -> float:
    return float(np.abs(matrix).sum() if norm == "l1" else np.linalg.norm(matrix))


def plain_sum(
    case: Case, rows: Any, margin: float, clip: float, norm: Norm, both: tuple[float, float]
) -> NDArray[np.float64]:
    total = np.zeros(case.weights.shape)
    for row in rows:
        one = gradient(case, row, margin, both)
        total += one * min(1.0, clip / max(size(one, norm), 1e-300))
    return total
