"""What a linkage model asks of labelled pairs: how often each comparison has each level, by label.

A pair adds 1 to the cell of its label, for each comparison that is not null, and a little to the count of its
label. No entry is negative and all are whole halves, so sums are exact in every order of the pairs. What one
pair can move is proved in docs/theory/linkage.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.engine.statistics import Labels, Statistic
from pairveil.privacy.grid import Norm

LABEL_WEIGHT = 0.5
"""What a pair adds to the count of its label; small, since one count needs little precision."""
QUERY = "level counts"


@dataclass(frozen=True)
class LevelCounts(Statistic):
    """Counts of levels by label, as one long vector.

    Parameters
    ----------
    n_levels : tuple of int
        Levels of each comparison (public).
    matches_only : bool
        Count the levels of matches alone, where those of other pairs are known already.
    clip : float
        `bound` of the query's norm.
    """

    n_levels: tuple[int, ...]
    matches_only: bool
    clip: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Matches and non-matches, then levels of matches, then those of non-matches."""
        return (2 + sum(self.n_levels) * (1 if self.matches_only else 2),)

    @staticmethod
    def bound(n_comparisons: int, norm: Norm) -> float:
        """Largest norm of a contribution: one cell for each comparison, and the label's own."""
        if norm == "l1":
            return n_comparisons + LABEL_WEIGHT
        return math.sqrt(n_comparisons + LABEL_WEIGHT**2)

    def tile_sum(self, levels: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the contributions; null levels and null pairs add nothing."""
        del norm  # whole numbers below the bound in either: nothing is left to clip
        total = np.zeros(self.shape)
        start = 2
        for row, label in enumerate((1, -1)):
            chosen = labels == label
            total[row] = LABEL_WEIGHT * np.count_nonzero(chosen)
            if label < 0 and self.matches_only:
                break
            for column, size in enumerate(self.n_levels):
                found = levels[chosen, column]
                total[start : start + size] = np.bincount(found[found >= 0], minlength=size)
                start += size
        return total


@dataclass(frozen=True)
class NoisyCounts:
    """What was released, in plain counts.

    Attributes
    ----------
    matches, others : list of arrays
        Counts of the levels of each comparison; ``others`` is empty where they were not asked for.
    labels : array of shape (2,)
        Matches and non-matches.
    noise : float
        Standard deviation of the noise on a count of levels; on those of labels it is twice that.
    """

    matches: list[FloatArray]
    others: list[FloatArray]
    labels: FloatArray
    noise: float


@dataclass(frozen=True)
class CountRecipe:
    """One query: all counts together.

    ``told``: further public parameters, for the certificate.
    """

    n_levels: tuple[int, ...]
    matches_only: bool = False
    told: tuple[tuple[str, Any], ...] = ()
    headline = QUERY

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """The counts have the whole budget."""
        del setting
        return (Ask(QUERY, LevelCounts(self.n_levels, self.matches_only, 1.0).shape, 1.0),)

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {"linkage": {"n_levels": list(self.n_levels), **dict(self.told)}}

    def noise(self, plan: Plan) -> tuple[float, float]:
        """Clip bound of a pair, and the standard deviation of the noise on each count."""
        query = plan[QUERY]
        clip = LevelCounts.bound(len(self.n_levels), query.mechanism.norm)
        return clip, query.noise_std(clip)

    def run(self, plan: Plan, engine: Engine) -> NoisyCounts:
        """Ask, and put the answer in order."""
        query, (clip, noise) = plan[QUERY], self.noise(plan)
        answer = engine.answer(query, LevelCounts(self.n_levels, self.matches_only, clip))
        cut = np.cumsum((2, *self.n_levels, *(() if self.matches_only else self.n_levels)))
        parts = np.split(answer, cut[:-1])
        k = len(self.n_levels)
        return NoisyCounts(parts[1 : k + 1], parts[k + 1 :], parts[0] / LABEL_WEIGHT, noise)
