"""How many pairs of each kind score at least so much: noisy counts at all edges of a public range at once.

Counting cell by cell and adding up would add up the noise of all cells above an edge. A pair contributes a
column of the square root of the matrix of ones below the diagonal instead: every count then has little more
noise than one (docs/theory/linkage.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular, toeplitz

from pairveil.array_types import FloatArray
from pairveil.data.counted import CountedPairs
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.engine.statistics import Labels, Statistic
from pairveil.errors import InputError
from pairveil.learners.base import PrivateLearner
from pairveil.learners.counting import check_entity_records, entity_sentence, material_of_counts
from pairveil.learners.parameters import check_common, plain_parameters
from pairveil.learners.preparing import Prepared, prepare
from pairveil.privacy.grid import Norm
from pairveil.privacy.units import SCORE_QUERY

QUERY = SCORE_QUERY
_EXACT = 2.0**20
"""Entries are whole multiples of its inverse: sums of them are exact, in every order of the pairs."""


@cache
def root(n_cells: int) -> FloatArray:
    """The Toeplitz square root of the matrix of ones on and below the diagonal, rounded down.

    Examples
    --------
    >>> (root(3) @ root(3)).round(5)
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """
    coefficients = np.ones(n_cells)
    for k in range(1, n_cells):
        coefficients[k] = coefficients[k - 1] * (2 * k - 1) / (2 * k)  # binomial(2k, k) / 4^k
    rounded = np.floor(coefficients * _EXACT) / _EXACT
    return np.asarray(np.tril(toeplitz(rounded)))


@cache
def decoder(n_cells: int) -> FloatArray:
    """What turns the summed columns into counts above each edge, from the top."""
    ones = np.tril(np.ones((n_cells, n_cells)))
    # decoder @ root = ones, whatever was rounded: root^T decoder^T = ones^T.
    return np.asarray(solve_triangular(root(n_cells).T, ones.T, lower=False).T)


@dataclass(frozen=True)
class ScoreCounts(Statistic):
    """Columns of `root`, summed by label.

    Parameters
    ----------
    n_cells : int
        Equal cells of the public range of scores.
    clip : float
        Length of the longest contribution, in the query's norm: one column for each score.
    n_scores : int
        Scores of each pair, one a system.
    """

    n_cells: int
    clip: float
    n_scores: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Genuine pairs, impostor pairs; score by score."""
        return (2 * self.n_scores, self.n_cells)

    @staticmethod
    def bound(n_cells: int, norm: Norm, n_scores: int = 1) -> float:
        """Length of the first column, which is the longest, once for each score."""
        column = root(n_cells)[:, 0]
        if norm == "l1":
            return float(n_scores * column.sum())
        return math.sqrt(n_scores * float((column**2).sum()))

    def tile_sum(self, cells: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the contributions: cells count from the highest score."""
        del norm
        counts = np.stack(
            [
                np.bincount(cells[labels == s, score], minlength=self.n_cells)
                for score in range(self.n_scores)
                for s in (1, -1)
            ]
        )
        return np.asarray(counts @ root(self.n_cells).T, dtype=np.float64)


class NoisyScores(NamedTuple):
    """What was released: summed columns of `root`, and the noise on each entry (a standard deviation)."""

    sums: FloatArray
    noise: float


@dataclass(frozen=True)
class ScoreRecipe:
    """One query: all counts together."""

    n_cells: int
    score_range: tuple[float, float]
    entity_records: int | None = None
    n_scores: int = 1
    headline = QUERY

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """The counts have the whole budget."""
        del setting
        return (Ask(QUERY, (2 * self.n_scores, self.n_cells), 1.0),)

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        told: dict[str, Any] = {"cells": self.n_cells, "score_range": list(self.score_range)}
        if self.entity_records is not None:
            told["entity_records"] = self.entity_records
        if self.n_scores > 1:
            told["scores"] = self.n_scores
        return {"error_curve": told}

    def run(self, plan: Plan, engine: Engine) -> NoisyScores:
        """Ask."""
        query = plan[QUERY]
        clip = ScoreCounts.bound(self.n_cells, query.mechanism.norm, self.n_scores)
        answer = engine.answer(query, ScoreCounts(self.n_cells, clip, self.n_scores))
        return NoisyScores(answer, query.noise_std(clip))


class PrivateScoreCounts(PrivateLearner):
    """Releases how scores of genuine and impostor pairs are spread; `pairveil.error_curve` is the way in.

    Parameters
    ----------
    score_range : (float, float)
        Public.
    entity_records : int, optional
        Public bound on the records of one person.
    n_scores : int
        Scores of each pair.
    **common
        As for every learner.
    """

    def __init__(
        self,
        score_range: tuple[float, float] = (0.0, 1.0),
        n_cells: int = 96,
        entity_records: int | None = None,
        n_scores: int = 1,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.entity_records = entity_records
        self.n_scores = n_scores
        self.score_range = score_range
        self.n_cells = n_cells

    def prepare_scores(self, data: CountedPairs, positions: NDArray[np.int64]) -> Prepared:
        """All that comes before the noise, from pairs whose values are the cells of their scores."""
        given = plain_parameters(self)
        given.data_norm = 1.0
        check_common(given)
        if data.pairs is None and given.unit != "pair":
            raise InputError(
                "pairs are missing: give the ids of the two people of each score, or choose unit='pair'"
            )
        bound = given.entity_records
        check_entity_records(bound, data.pairs)
        material = material_of_counts(given, data, positions, bound)
        if bound is not None:
            material = replace(material, public=(*material.public, entity_sentence(bound)))
        recipe = ScoreRecipe(int(self.n_cells), self.score_range, bound, int(self.n_scores))
        return prepare(recipe, given, material, self._noise(), stacklevel=4)

    def _keep(self, model: NoisyScores, prepared: Prepared) -> None:
        self.counts_ = model
        self.n_pairs_used_ = prepared.plan.n_records


def cells_of(
    scores: FloatArray, score_range: tuple[float, float], n_cells: int
) -> NDArray[np.int64]:
    """The cell of each score, counted from the top of the range; a cell holds its lower edge.

    Examples
    --------
    >>> cells_of(np.array([0.0, 0.5, 0.74, 1.0]), (0.0, 1.0), 4).tolist()
    [3, 1, 1, 0]
    """
    edges = edges_of(score_range, n_cells)
    above = np.searchsorted(edges, scores, side="right") - 1
    return np.asarray(n_cells - 1 - np.clip(above, 0, n_cells - 1), dtype=np.int64)


def edges_of(score_range: tuple[float, float], n_cells: int) -> FloatArray:
    """Lower edges of the cells, ascending."""
    low, high = score_range
    return np.asarray(low + (high - low) * np.arange(n_cells) / n_cells)
