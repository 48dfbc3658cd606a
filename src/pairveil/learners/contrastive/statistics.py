"""What a fit asks of the pairs, one clipped sum each.

Every class here turns a tile of differences into the sum of its pairs' contributions; each is bounded by
construction or clipped, always as a whole (all its entries together).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtr

from pairveil.array_types import FloatArray
from pairveil.engine.statistics import Labels, Statistic, row_norms, scaled, shrink
from pairveil.privacy.grid import Norm

TINY = 1e-12
_ROUNDING = 1e-7  # a difference of squares near 0 loses half its digits


def _column_sums(rows: Any, factors: FloatArray) -> FloatArray:
    """``sum_j factors_j * rows_j`` for dense or sparse rows."""
    return np.asarray(rows.T @ factors, dtype=np.float64).ravel()


@dataclass(frozen=True)
class Survey(Statistic):
    """How the differences spread: each column's share, their length, and how many pairs are similar.

    A pair's contribution is (q, side * sqrt(||dx|| / longest), side * [similar]) with
    q = dx^2 / ||dx^2||, so its norm is at most `bound`.

    Parameters
    ----------
    n_features : int
    longest : float
        Public bound on ||dx||.
    side : float
        Weight of the last two entries.
    clip : float
        `bound` of the query's norm.
    """

    n_features: int
    longest: float
    side: float
    clip: float

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a column, then length and count."""
        return (self.n_features + 2,)

    @staticmethod
    def bound(side: float, norm: Norm) -> float:
        """Largest norm of a pair's contribution."""
        return 1 + 2 * side if norm == "l1" else float(np.sqrt(1 + 2 * side**2))

    def tile_sum(self, differences: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the contributions; `shrink` only guards against rounding."""
        if sparse.issparse(differences):
            squares = differences.multiply(differences).tocsr()
        else:
            squares = differences * differences
        sizes = row_norms(squares, norm)
        length = self.side * np.sqrt(np.minimum(1.0, row_norms(differences) / self.longest))
        similar = self.side * (labels > 0)
        unit = sizes > TINY**2
        norms = unit + length + similar if norm == "l1" else np.sqrt(unit + length**2 + similar**2)
        # A pair without any difference is null: it does not even count as similar.
        factor = shrink(norms, self.clip) * unit
        columns = _column_sums(squares, factor / np.maximum(sizes, TINY**2))
        return np.concatenate([columns, [factor @ length, factor @ similar]])


@dataclass(frozen=True)
class ColumnSignal(Statistic):
    """Which columns differ more between dissimilar than between similar pairs.

    A pair's contribution is ``-y w (a - mean(a))`` with a = |z| / ||z||: how its difference divides over the
    columns. Taking the mean over columns off changes no ranking and shortens the contribution.

    Parameters
    ----------
    n_features : int
    weights : (float, float)
        Of similar and dissimilar pairs, at most 1.
    clip, scale
        As in `Statistic`.
    """

    n_features: int
    weights: tuple[float, float]
    clip: float
    scale: FloatArray | None = None
    largest_term = 2.0  # the sums of a and of its means are taken apart

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a column."""
        return (self.n_features,)

    def tile_sum(self, differences: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the clipped contributions, without forming ``a - mean(a)`` (sparse rows stay sparse)."""
        sizes = row_norms(differences, norm)
        live = sizes > TINY
        inverse = np.where(live, 1.0 / np.maximum(sizes, TINY), 0.0)
        centre = row_norms(differences, "l1") * inverse / self.n_features
        sign = np.where(labels > 0, -self.weights[0], self.weights[1])
        lengths = np.abs(sign) * self._length(differences, inverse, centre, norm)
        factor = sign * shrink(lengths, self.clip) * live
        return _column_sums(abs(differences), factor * inverse) - factor @ centre

    def _length(
        self, differences: Any, inverse: FloatArray, centre: FloatArray, norm: Norm
    ) -> FloatArray:
        """Norm of ``a - mean(a)``: in l2 ||a||^2 - d mean^2; in l1 entry by entry."""
        if norm == "l2":
            unit = (row_norms(differences) * inverse) ** 2
            return (
                np.asarray(np.sqrt(np.maximum(unit - self.n_features * centre**2, 0.0))) + _ROUNDING
            )
        if not sparse.issparse(differences):
            far = np.abs(np.abs(differences) * inverse[:, None] - centre[:, None])
            return np.asarray(far.sum(axis=1))
        rows = np.repeat(np.arange(differences.shape[0]), np.diff(differences.indptr))
        far = np.abs(np.abs(differences.data) * inverse[rows] - centre[rows])
        at_zero = (self.n_features - np.diff(differences.indptr)) * centre
        return np.asarray(np.bincount(rows, far, minlength=differences.shape[0]) + at_zero)


@dataclass(frozen=True)
class Candidates:
    """Metrics to choose from: ``(1 - b) ||W z||^2 + b ||E z||^2`` for each blend b, the last being 1.

    Parameters
    ----------
    W : array of shape (k, d)
        The learned directions, scaled so that typical distances are near 1.
    euclid : array of shape (d,)
        Factors that turn z into a difference of typical length 1.
    blends : tuple of float
        Increasing; the last is 1, the Euclidean metric.
    """

    W: FloatArray
    euclid: FloatArray
    blends: tuple[float, ...]

    def log_distances(self, differences: Any) -> FloatArray:
        """Log of the squared distances, one column a blend, clipped to [-1, 1] (thirds of e^3)."""
        learned = row_norms(np.asarray(differences @ self.W.T)) ** 2
        plain = row_norms(scaled(differences, self.euclid)) ** 2
        mixed = np.stack([(1 - b) * learned + b * plain for b in self.blends], axis=1)
        logs: FloatArray = np.clip(np.log(np.maximum(mixed, 1e-6)), -3, 3) / 3
        return logs


@dataclass(frozen=True)
class DistanceMoments(Statistic):
    """First and second moments of each candidate's log distances."""

    candidates: Candidates
    clip: float
    scale: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Two entries a candidate."""
        return (2 * len(self.candidates.blends),)

    def tile_sum(self, differences: Any, labels: Labels, norm: Norm) -> FloatArray:  # noqa: ARG002
        """Sum of the clipped (q, q^2)."""
        logs = self.candidates.log_distances(differences)
        contributions = np.concatenate([logs, logs**2], axis=1)
        factor = shrink(row_norms(contributions, norm), self.clip) * (row_norms(differences) > TINY)
        total: FloatArray = factor @ contributions
        return total


@dataclass(frozen=True)
class Contest(Statistic):
    """How much better than Euclid each blend orders the pairs.

    Distances are turned into ranks by a normal law fitted to their released moments; a pair's contribution
    is the difference of its rank under a blend and under Euclid, signed by its label: positive where
    dissimilar pairs move up and similar ones down.
    """

    candidates: Candidates
    mean: FloatArray
    std: FloatArray
    weights: tuple[float, float]
    clip: float
    scale: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a blend other than Euclid."""
        return (len(self.candidates.blends) - 1,)

    def tile_sum(self, differences: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the clipped, signed differences of ranks."""
        ranks = ndtr((self.candidates.log_distances(differences) - self.mean) / self.std)
        contributions = ranks[:, :-1] - ranks[:, -1:]
        sign = np.where(labels > 0, -self.weights[0], self.weights[1])
        factor = sign * shrink(np.abs(sign) * row_norms(contributions, norm), self.clip)
        total: FloatArray = (factor * (row_norms(differences) > TINY)) @ contributions
        return total


@dataclass(frozen=True)
class DissimilarDistances(Statistic):
    """Sum of ``||z|| / longest`` over dissimilar pairs, and their number.

    Parameters
    ----------
    longest : float
        Public; longer differences count as this long.
    clip : float
        `bound` of the query's norm.
    """

    longest: float
    clip: float
    scale: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The sum and the count."""
        return (2,)

    @staticmethod
    def bound(norm: Norm) -> float:
        """Largest norm of a pair's contribution."""
        return 2.0 if norm == "l1" else float(np.sqrt(2))

    def tile_sum(self, differences: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the contributions; `shrink` only guards against rounding."""
        sizes = row_norms(differences)
        contributions = np.column_stack(
            [np.minimum(1.0, sizes / self.longest), np.ones(len(sizes))]
        )
        factor = shrink(row_norms(contributions, norm), self.clip) * ((labels < 0) & (sizes > TINY))
        total: FloatArray = factor @ contributions
        return total
