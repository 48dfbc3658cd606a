"""One private histogram of scores, by label: thresholds, error curves and AUCs are read off it.

A pair falls into one cell of the public range of scores, of its label. With Laplace noise the cells are
counted as they are: a pair moves them by 1 in l1. With Gaussian noise a pair adds a column of the square
root of the matrix of ones below the diagonal instead: then every count above an edge, which adds up all cells
above it, has little more noise than one cell (docs/theory/learner.md). The rest is post-processing.

Counted exactly, `best_threshold` is metric-learn's calibration; `PrivateMetricLearner` counts with noise, a
release of its own that is charged and certified with the metric. `pairveil.evaluation.curve` has curves and
AUCs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular, toeplitz

from pairveil.array_types import FloatArray
from pairveil.engine.statistics import Labels, Statistic, row_norms
from pairveil.errors import InputError
from pairveil.privacy.grid import Norm

# ---- the histogram -------------------------------------------------------------------------------

_EXACT = 2.0**20
"""Entries are whole multiples of its inverse: sums of them are exact, in every order of the pairs."""


@cache
def root(n_cells: int) -> FloatArray:
    """The Toeplitz square root of the matrix of ones on and below the diagonal, rounded down."""
    coefficients = np.ones(n_cells)
    for k in range(1, n_cells):
        coefficients[k] = coefficients[k - 1] * (2 * k - 1) / (2 * k)  # binomial(2k, k) / 4^k
    rounded = np.floor(coefficients * _EXACT) / _EXACT
    return np.asarray(np.tril(toeplitz(rounded)))


@cache
def decoder(n_cells: int, norm: Norm = "l2") -> FloatArray:
    """What turns the summed columns into counts above each edge, from the top."""
    ones = np.tril(np.ones((n_cells, n_cells)))
    if norm == "l1":  # cells as they are
        return ones
    # decoder @ root = ones, whatever was rounded: root^T decoder^T = ones^T.
    return np.asarray(solve_triangular(root(n_cells).T, ones.T, lower=False).T)


@dataclass(frozen=True)
class ScoreCounts(Statistic):
    """How many pairs of each label are in each cell: as they are for l1, by columns of `root` for l2."""

    n_cells: int  # equal cells of the public range of scores
    clip: float  # length of the longest contribution, in the query's norm
    n_scores: int = 1  # scores of each pair, one a system

    @property
    def shape(self) -> tuple[int, ...]:
        """Genuine pairs, impostor pairs; score by score."""
        return (2 * self.n_scores, self.n_cells)

    @staticmethod
    def bound(n_cells: int, norm: Norm, n_scores: int = 1) -> float:
        """Length of what a pair adds: one cell for each score, or the first column, which is the longest."""
        if norm == "l1":
            return float(n_scores)
        column = root(n_cells)[:, 0]
        return math.sqrt(n_scores * float((column**2).sum()))

    def counts(self, cells: Any, labels: Any) -> NDArray[np.int64]:
        """Pairs in each cell, which count from the highest score; null pairs are in none."""
        return np.stack(
            [
                np.bincount(cells[labels == label, score], minlength=self.n_cells)
                for score in range(self.n_scores)
                for label in (1, -1)
            ]
        )

    def tile_sum(self, cells: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the contributions."""
        counts = self.counts(cells, labels)
        return np.asarray(counts if norm == "l1" else counts @ root(self.n_cells).T, np.float64)


@dataclass(frozen=True)
class DistanceCounts(ScoreCounts):
    """The counts of pairs of people by how near they are under a metric, in cells as they are."""

    n_cells: int = 64
    clip: float = 1.0  # a pair adds one to one cell, in l1 and in l2
    components: Any = None
    longest: float = 1.0  # public bound on distances

    @property
    def edges(self) -> FloatArray:
        """The longest distance of each cell."""
        return self.longest * np.arange(1, self.n_cells + 1) / self.n_cells

    def tile_sum(self, differences: Any, labels: Labels, norm: Norm) -> FloatArray:  # noqa: ARG002
        """Counts; a pair whose rows are equal, as null ones are, adds nothing."""
        distance = row_norms(np.asarray(differences @ self.components.T))
        cells = np.clip((distance / self.longest * self.n_cells).astype(int), 0, self.n_cells - 1)
        there = np.where(row_norms(differences) > 0, labels, 0)
        return self.counts(cells[:, None], there).astype(np.float64)


def cells_of(
    scores: FloatArray, score_range: tuple[float, float], n_cells: int
) -> NDArray[np.int64]:
    """The cell of each score, counted from the top of the range; a cell holds its lower edge."""
    edges = edges_of(score_range, n_cells)
    above = np.searchsorted(edges, scores, side="right") - 1
    return np.asarray(n_cells - 1 - np.clip(above, 0, n_cells - 1), dtype=np.int64)


def edges_of(score_range: tuple[float, float], n_cells: int) -> FloatArray:
    """Lower edges of the cells, ascending."""
    low, high = score_range
    return np.asarray(low + (high - low) * np.arange(n_cells) / n_cells)


# ---- a threshold, read off the counts ------------------------------------------------------------

STANDS_OUT = 5.0
"""Scales of noise that the pairs in a cell must exceed to be used."""

Strategy = Literal["accuracy", "f_beta", "max_tpr", "max_tnr"]


def best_threshold(
    edges: NDArray[np.float64],
    similar: NDArray[np.float64],
    dissimilar: NDArray[np.float64],
    strategy: Strategy = "accuracy",
    min_rate: float | None = None,
    beta: float = 1.0,
) -> float:
    """The distance up to which pairs are called similar, from exact or noisy pairs of each kind per cell.

    Edges increase: calling similar what is no farther than edges[i] accepts cells 0 to i. Where no edge
    reaches ``min_rate``, the threshold accepts nobody ('max_tpr') or everybody ('max_tnr').
    """
    check_strategy(strategy, min_rate)
    accepted_similar = np.cumsum(np.maximum(similar, 0.0))
    accepted_dissimilar = np.cumsum(np.maximum(dissimilar, 0.0))
    n_similar = max(float(accepted_similar[-1]), 1e-12)
    n_dissimilar = max(float(accepted_dissimilar[-1]), 1e-12)
    true_positive = accepted_similar / n_similar
    true_negative = 1.0 - accepted_dissimilar / n_dissimilar

    if strategy == "accuracy":
        merit = accepted_similar - accepted_dissimilar
    elif strategy == "f_beta":
        predicted = accepted_similar + accepted_dissimilar
        merit = (
            (1 + beta**2) * accepted_similar / np.maximum(predicted + beta**2 * n_similar, 1e-12)
        )
    else:
        ours, other = (
            (true_positive, true_negative)
            if strategy == "max_tpr"
            else (true_negative, true_positive)
        )
        assert min_rate is not None
        merit = np.where(other >= min_rate, ours, -np.inf)
    if not np.any(np.isfinite(merit)):
        # Not an error: the counts may have been paid for. To accept nobody keeps every dissimilar pair out,
        # to accept everybody keeps every similar one in, whatever min_rate is.
        nobody = 0.0 if edges[0] > 0 else math.nextafter(edges[0], -math.inf)
        return nobody if strategy == "max_tpr" else float(edges[-1])
    return float(edges[int(np.argmax(merit))])


def match_odds(
    edges: NDArray[np.float64],
    similar: NDArray[np.float64],
    dissimilar: NDArray[np.float64],
    noise: float = 0.0,
) -> tuple[float, float]:
    """Log odds of 'similar' as ``a - b distance^2``, by logistic regression on counts, exact or noisy.

    ``b`` is not below 0: farther pairs are never likelier to be similar. A cell's distance is the middle
    between its edges. Cells below `STANDS_OUT` scales of the noise are left out: there are many of them, far
    away, and noise that is cut off at 0 biases the odds towards even.
    """
    middle = (edges + np.concatenate([[0.0], edges[:-1]])) / 2
    scale = max(float(edges[-1]) ** 2, 1e-300)
    rows = np.column_stack([np.ones(len(edges)), -(middle**2) / scale])
    used = similar + dissimilar > STANDS_OUT * noise
    yes, no = np.maximum(similar, 0.0) * used, np.maximum(dissimilar, 0.0) * used
    found, ridge = np.zeros(2), 1e-3
    for _ in range(50):
        share = 1.0 / (1.0 + np.exp(-np.clip(rows @ found, -500, 500)))
        slope = rows.T @ (yes - (yes + no) * share) - ridge * found
        bend = rows.T @ (((yes + no) * share * (1 - share))[:, None] * rows) + ridge * np.eye(2)
        step = np.linalg.solve(bend, slope)
        found = found + step * min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-300))
        if float(np.abs(step).max()) < 1e-10:
            break
    if found[1] < 0:
        return math.log((yes.sum() + ridge) / (no.sum() + ridge)), 0.0
    return float(found[0]), float(found[1]) / scale


def check_strategy(strategy: object, min_rate: float | None) -> None:
    """Refuse what no threshold can be chosen by."""
    if strategy not in get_args(Strategy):
        raise InputError("strategy must be 'accuracy', 'f_beta', 'max_tpr' or 'max_tnr'")
    needs_rate = strategy in ("max_tpr", "max_tnr")
    if needs_rate and (min_rate is None or not 0 <= min_rate <= 1):
        raise InputError(f"strategy {strategy!r} needs min_rate between 0 and 1")
