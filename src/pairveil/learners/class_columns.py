"""How columns are scaled before statistics of people: their moments, and a chosen one that noise would hide.

A column of small spread may tell two classes apart better than all others, but the noise on its variance is
as large as on that of any other: from few people it cannot be told from a column that hardly varies. A noisy
choice (docs/theory/choice.md) names the column and its scale for the price of one number. It is made by how
many people each candidate puts into their class, which is first order in the difference of the classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray, IntArray
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.engine.scores import Scores, whole_weight
from pairveil.engine.statistics import Statistic, row_norms, shrink
from pairveil.learners.contrastive.recipe import starts_by_choice
from pairveil.learners.scatter_moments import dense_rows
from pairveil.privacy.grid import Norm

Numbers = NDArray[np.int32]

COLUMNS_SHARE = 0.12
"""Part of the budget that the columns' scale is worth; the class statistics get what is left."""
CHOOSING_SHARES = (0.10, 0.10)
"""The same where a column is chosen too: of the columns' scale, and of the choice."""
CLEAR_VECTOR = 1000.0
"""From so many people for the length of a noise vector on, variances are seen without a choice."""
LEVELS = tuple(2.0**-i for i in range(1, 8))
"""Of a column's size, in units of the public bound on a row's norm."""
WIDTH = 4.0
"""A window reaches from a level to so many times it, so that a level fits few columns of two values."""
COUNTED = 0.5
"""Weight of the class counts beside the columns' moments."""
LUCKY_GAP = 3.0
"""Standard deviations of a count's noise below which a difference of two counts is luck."""
LEAST_CLASS = 0.1
"""A class counts as having at least this part of the people it would have if all were equal."""
HIDDEN = 3.0
"""Standard deviations of noise below which a column's variance is not known."""
CENTRED = 1.5
"""The mean of a hidden column is at most so many of its levels."""
STRETCH = 1.8
"""The chosen column is worth more than the others: so much longer, where noise hides the columns."""
SCALED_BY = 0.8
"""Columns are divided by this power of their standard deviation: most of the way to equal spread."""
LEAST_VARIANCE = 0.01
"""Columns count as having at least this part of the mean variance."""
_TINY = 1e-12


@dataclass(frozen=True)
class ColumnMoments(Statistic):
    """First and second moments of each column, and class counts where a choice is to be balanced by them.

    A person's contribution is (u, u^2, e_c / 2) with ||u|| <= 1 and e_c the indicator of her class.

    Parameters
    ----------
    data_norm : float
        Public; u is the row divided by it.
    clip : float
        `bound` of the query's norm.
    n_classes : int
        Classes that are counted; 0 for none.
    """

    n_features: int
    data_norm: float
    clip: float
    n_classes: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Two entries a column, one a class."""
        return (2 * self.n_features + self.n_classes,)

    @staticmethod
    def bound(norm: Norm, *, counted: bool = False) -> float:
        """Largest norm of a contribution: ||u^2|| <= ||u|| <= 1, and the count's weight."""
        count = COUNTED if counted else 0.0
        return 2.0 + count if norm == "l1" else math.sqrt(2.0 + count**2)

    def tile_sum(self, rows: Any, classes: Numbers, norm: Norm) -> FloatArray:  # type: ignore[override]
        """Sum of the contributions; `shrink` only guards against rounding."""
        unit = dense_rows(rows) / self.data_norm
        unit = unit * shrink(row_norms(unit, norm), 1.0)[:, None]
        squares = unit * unit
        lengths = (row_norms(unit, norm), row_norms(squares, norm))
        count = COUNTED if self.n_classes else 0.0
        together = (
            sum(lengths) + count if norm == "l1" else np.sqrt(np.hypot(*lengths) ** 2 + count**2)
        )
        factor = shrink(np.asarray(together), self.clip) * (classes >= 0)
        members = classes[:, None] == np.arange(self.n_classes)
        return np.concatenate([factor @ unit, factor @ squares, count * (factor @ members)])


@dataclass(frozen=True)
class ClassWindows(Scores):
    """How many people of two classes a window of a column puts into their own class.

    Candidate (level t, side s, class c, column j) says 'who has t < s x_j <= 4 t is of class c, and everybody
    else of the other'. A person adds her weight to each candidate that is right about her and nothing to the
    others: between 0 and 1 to all, so the range of what she moves is at most 1.

    Parameters
    ----------
    levels : tuple of float
        Public, greater than 0.
    weights : (float, float)
        Of people of the first and the second class, at most 1.

    Examples
    --------
    >>> scores = ClassWindows(3, (0.5, 0.25), (1.0, 1.0))
    >>> scores.shape, scores.candidate(13)
    ((24,), (1, 0.25))
    """

    n_features: int
    levels: tuple[float, ...]
    weights: tuple[float, float]

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a candidate: levels, sides, classes, columns, the last running fastest."""
        return (4 * len(self.levels) * self.n_features,)

    def candidate(self, index: int) -> tuple[int, float]:
        """Column and level of a candidate."""
        return index % self.n_features, self.levels[index // (4 * self.n_features)]

    def tile_total(self, rows: Any, classes: Numbers, norm: Norm, grid: float) -> IntArray:  # type: ignore[override]
        """Whole numbers: a weight is rounded, then counted. Inside and of class c, or outside and not."""
        del norm, grid
        x = dense_rows(rows)
        # Nobody without a class has a weight. Sums of a tile's whole numbers are exact in floats.
        whole = [float(whole_weight(w)) * (classes == c) for c, w in enumerate(self.weights)]
        found = []
        for level in self.levels:
            for side in (x, -x):
                inside = ((side > level) & (side <= WIDTH * level)).astype(np.float64)
                first, second = (weight @ inside for weight in whole)
                right = first + (whole[1].sum() - second)  # inside is the first class
                found += [right, whole[0].sum() + whole[1].sum() - right]
        return np.concatenate(found).astype(np.int64)


def chooses_column(setting: Setting, n_classes: int) -> bool:
    """Whether a column is chosen; from public numbers alone, as the proof of composition demands.

    Examples
    --------
    >>> from pairveil.privacy.mechanisms import Budget
    >>> at = [Setting(Budget(e, 1e-5, 1, "zero-out"), 8_000, 30) for e in (8.0, 1.0)]
    >>> [chooses_column(setting, n_classes=2) for setting in at]
    [False, True]
    """
    return n_classes == 2 and starts_by_choice(setting, CLEAR_VECTOR)


def ask_columns(setting: Setting, n_classes: int, *, counted: bool = False) -> tuple[Ask, ...]:
    """The queries by which columns are scaled, and people of each class counted where that is wanted."""
    d, choosing = setting.n_features, chooses_column(setting, n_classes)
    entries = 2 * d + (n_classes if counted or choosing else 0)
    if not choosing:
        return (Ask("columns", (entries,), COLUMNS_SHARE),)
    return (
        Ask("columns", (entries,), CHOOSING_SHARES[0]),
        Ask("chosen column", (4 * len(LEVELS) * d,), CHOOSING_SHARES[1], choice=True),
    )


@dataclass(frozen=True)
class Columns:
    """What the first answers say of the columns, in units of the data norm.

    Attributes
    ----------
    mean, factors : arrays of shape (n_features,)
    spread : float
        Mean squared distance from the mean.
    weights : array of shape (n_classes,)
        That make the classes equal, where they were counted.
    """

    mean: FloatArray
    factors: FloatArray
    spread: float
    weights: FloatArray


def find_columns(plan: Plan, engine: Engine, reach: float) -> Columns:
    """Centre and scale of the columns, with a floor where the noise hides their variance.

    ``reach``: rows are scaled to be of length 1 at so many typical lengths.
    """
    d, n, query = plan.n_features, plan.n_records, plan["columns"]
    norm, counted = query.mechanism.norm, query.n_entries - 2 * d
    clip = ColumnMoments.bound(norm, counted=counted > 0)
    statistic = ColumnMoments(d, plan.data_norm, clip, n_classes=counted)
    answer = engine.answer(query, statistic) / n
    noise = query.noise_std(clip) / n
    weights = balanced(answer[2 * d :] / COUNTED, noise / COUNTED)
    mean = np.clip(answer[:d], -1.0, 1.0)
    found = answer[d : 2 * d] - mean**2
    spread = float(max(found.sum(), noise * math.sqrt(d), _TINY))
    variance = np.maximum(found, max(noise, LEAST_VARIANCE * spread / d))
    stretch = np.ones(d)
    if "chosen column" in plan:
        column, level = choose_column(plan, engine, weights)
        if found[column] < HIDDEN * noise:
            # The moments only say that it varies less than the noise; the level says how much.
            variance[column] = min(variance[column], level**2)
            mean[column] = np.clip(mean[column], -CENTRED * level, CENTRED * level)
            stretch[column] = STRETCH
    scale = stretch * variance ** (-SCALED_BY / 2)
    deviations = scale * np.sqrt(variance)
    typical = float(deviations.sum() if norm == "l1" else np.sqrt((deviations**2).sum()))
    return Columns(mean, scale / (typical * reach), spread, weights)


def choose_column(plan: Plan, engine: Engine, weights: FloatArray) -> tuple[int, float]:
    """The column whose window tells the two classes best, and its level in units of the data norm."""
    levels = tuple(plan.data_norm * level for level in LEVELS)
    scores = ClassWindows(plan.n_features, levels, (float(weights[0]), float(weights[1])))
    column, level = scores.candidate(engine.choose(plan["chosen column"], scores))
    return column, level / plan.data_norm


def balanced(parts: FloatArray, noise: float) -> FloatArray:
    """Weights that make classes equal, or a window that puts all into the largest one would win.

    Classes that noise may have made unequal are taken to be equal.

    Examples
    --------
    >>> balanced(np.array([0.75, 0.25]), 0.0), balanced(np.array([0.6, 0.4]), 0.1)
    (array([0.33333333, 1.        ]), array([1., 1.]))
    """
    if not len(parts):
        return np.ones(0)
    away = parts - parts.mean()
    surely = np.copysign(np.maximum(np.abs(away) - LUCKY_GAP * noise / 2, 0.0), away)
    found = np.maximum(1 + len(parts) * surely, LEAST_CLASS)
    return np.asarray(found.min() / found)
