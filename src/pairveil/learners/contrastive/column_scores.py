"""Choosing columns instead of measuring them all: scores of (column, threshold).

Where the noise on a whole vector of signals would drown it, one noisy choice still finds the best column: it
is charged for one number, however many columns there are (docs/theory/choice.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.array_types import FloatArray, IntArray
from pairveil.engine.scores import Scores, whole_weight
from pairveil.engine.statistics import Labels
from pairveil.privacy.grid import Norm

THRESHOLDS = tuple(2.0**-i for i in range(2, 7))
"""Of a column's difference, in units of the public bound on a row's norm."""


@dataclass(frozen=True)
class ColumnScores(Scores):
    """How much oftener a column differs by more than a threshold in dissimilar than in similar pairs.

    A pair adds its weight to every candidate (column j, threshold t) with ``|dx_j| > t`` if it is dissimilar,
    and takes it off if it is similar: all one way, by at most 1.

    Parameters
    ----------
    n_features : int
    thresholds : tuple of float
        Public, greater than 0: so a null pair adds nothing.
    weights : (float, float)
        Of similar and dissimilar pairs, at most 1.
    ahead, scale
        As in `Scores` and `Statistic`.

    Examples
    --------
    >>> ColumnScores(3, (0.1, 0.2), (1.0, 1.0)).candidate(4)
    (1, 0.2)
    """

    n_features: int
    thresholds: tuple[float, ...]
    weights: tuple[float, float]
    ahead: FloatArray | None = field(default=None, compare=False)
    scale: FloatArray | None = field(default=None, compare=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a candidate: all columns at the first threshold, then at the next."""
        return (self.n_features * len(self.thresholds),)

    def candidate(self, index: int) -> tuple[int, float]:
        """Column and threshold of a candidate."""
        return index % self.n_features, self.thresholds[index // self.n_features]

    def contributions(self, contents: Any, labels: Labels) -> tuple[FloatArray, NDArray[np.int8]]:
        """The weight where the column differs by more than the threshold; dissimilar pairs count up."""
        sizes = abs(contents)
        sizes = sizes.toarray() if sparse.issparse(sizes) else sizes
        signs = np.where(labels > 0, -1, 1).astype(np.int8)
        weight = np.where(labels > 0, *self.weights)
        return np.hstack([weight[:, None] * (sizes > t) for t in self.thresholds]), signs

    def tile_total(self, contents: Any, labels: Labels, norm: Norm, grid: float) -> IntArray:
        """The whole numbers of `contributions`, without forming them: a weight is rounded, then counted."""
        del norm, grid
        similar, dissimilar = map(whole_weight, self.weights)
        whole = np.where(labels > 0, -similar, dissimilar).astype(np.float64)
        # Sums of a tile's whole numbers stay far below 2^53: floats add them exactly.
        if sparse.issparse(contents):
            large = [_above(contents, t) for t in self.thresholds]
        else:
            sizes = np.abs(contents)
            large = [(sizes > t).astype(np.float64) for t in self.thresholds]
        return np.concatenate([np.asarray(one.T @ whole).ravel() for one in large]).astype(np.int64)


def _above(rows: Any, threshold: float) -> Any:
    """Where sparse rows exceed a threshold, as a sparse matrix of ones."""
    large = (np.abs(rows.data) > threshold).astype(np.float64)
    return sparse.csr_array((large, rows.indices, rows.indptr), shape=rows.shape)
