"""What a fit asks of groups, one clipped sum each: means over a group's pairs, clipped as a whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from pairveil.engine.group_statistics import GroupStatistic
from pairveil.engine.statistics import Labels, row_norms
from pairveil.learners.contrastive.statistics import Candidates
from pairveil.privacy.grid import Norm

FloatArray = NDArray[np.float64]
_TINY = 1e-12


@dataclass(frozen=True)
class GroupSurvey(GroupStatistic):
    """How differences inside groups spread: each column's share, their length, the share of similar pairs.

    A pair says (q, side * sqrt(||dx|| / longest), side * [similar]) with q = dx^2 / ||dx^2||.

    Parameters
    ----------
    n_features : int
    longest : float
        Public bound on ||dx||.
    side : float
        Weight of the last two entries.
    clip : float
    """

    n_features: int
    longest: float
    side: float
    clip: float

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a column, then length and share."""
        return (self.n_features + 2,)

    def contributions(self, differences: FloatArray, labels: Labels, norm: Norm) -> FloatArray:
        """One row a pair; a pair without any difference says nothing."""
        squares = differences * differences
        sizes = row_norms(squares, norm)
        length = np.sqrt(np.minimum(1.0, row_norms(differences) / self.longest))
        said = np.column_stack(
            [
                squares / np.maximum(sizes, _TINY**2)[:, None],
                self.side * length,
                self.side * (labels > 0),
            ]
        )
        said[sizes <= _TINY**2] = 0.0
        return said


@dataclass(frozen=True)
class GroupMoments(GroupStatistic):
    """First and second moments of each candidate's log distances."""

    candidates: Candidates
    clip: float
    scale: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Two entries a candidate."""
        return (2 * len(self.candidates.blends),)

    def contributions(self, differences: FloatArray, labels: Labels, norm: Norm) -> FloatArray:  # noqa: ARG002
        """(q, q^2) of each pair."""
        logs = self.candidates.log_distances(differences)
        return np.concatenate([logs, logs**2], axis=1)


@dataclass(frozen=True)
class GroupContest(GroupStatistic):
    """How much better than Euclid each blend orders the pairs inside groups (`Contest` of pairs)."""

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

    def contributions(self, differences: FloatArray, labels: Labels, norm: Norm) -> FloatArray:  # noqa: ARG002
        """Signed differences of ranks: positive where dissimilar pairs move up and similar ones down."""
        ranks = ndtr((self.candidates.log_distances(differences) - self.mean) / self.std)
        sign = np.where(labels > 0, -self.weights[0], self.weights[1])
        signed: FloatArray = sign[:, None] * (ranks[:, :-1] - ranks[:, -1:])
        return signed
