"""A metric from people with one class each: `fit_classes`, and two recipes for it (docs/theory/learner.md).

Columns are scaled by their noisy moments. A column of small spread may tell two classes apart better than all
others, but the noise on its variance is as large as on that of any other; a noisy choice
(docs/theory/accounting.md) then names the column and its scale for the price of one number, by how many
people each candidate puts into their class.

*Statistics*: counts, sums and second moments of the scaled rows by class, in one sum. The metric (whitened
directions between the classes, shrunk against noise and sampling error, and some Euclid) is post-processing.

*Steps*: a regression of the class on the columns. Classes are corners t of a regular simplex (-1 and 1 for
two of them); each step sums t - w z, brought to a clip bound, times the scaled row z: the gradient of least
squares with clipped residuals (Huber's loss), which has the directions of linear discriminant analysis. A
step of k classes releases (k - 1) (d + 1) numbers where class statistics release d^2 / 2 and more, and people
who are told apart already hardly move it. What the directions are worth is asked last; what luck could
explain of it goes to Euclid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairveil.array_types import FloatArray, IntArray
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Plan, PublicFacts, QuerySpec, Recipe
from pairveil.engine.statistics import (
    Scores,
    Statistic,
    dense_rows,
    row_norms,
    shrink,
    whole_weight,
)
from pairveil.errors import InputError
from pairveil.learners.base import PrivateLearner
from pairveil.learners.contrastive.recipe import starts_by_choice
from pairveil.learners.inputs import RawRows, Resolved, ids_of, resolve_people, without_ids
from pairveil.learners.preparing import (
    Prepared,
    PreparedRecords,
    groups_of,
    pairs_of,
    prepare_records,
    public_facts,
    refuse_together,
)
from pairveil.learners.recipes import fitted, leading, packed, triangle, unpacked
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.events import cost_of
from pairveil.privacy.grid import Norm
from pairveil.records.groups import People, check_numbers
from pairveil.records.records import Records

# ---- columns -------------------------------------------------------------------------------------

Numbers = NDArray[np.int32]


_FROM = "benchmarks/results, people with classes"


@dataclass(frozen=True)
class ClassNumbers:
    """The fitted numbers of `fit_classes`; deviations are those of the noise."""

    columns_share: float = fitted(
        0.12, "part of the budget for the columns' scale", _FROM, 0.005, -0.015
    )
    choosing_share: float = fitted(
        0.1, "part for the columns, and for the choice, where one is made", _FROM, -0.045, 0.011
    )
    clear_vector: float = fitted(
        1000.0, "people / noise vector from which no column is chosen", _FROM, 0.0, 0.0
    )
    lucky_gap: float = fitted(
        3.0, "deviations below which class counts are equal", _FROM, -0.052, 0.002
    )
    centred: float = fitted(
        1.5, "most levels that the mean of a hidden column is", _FROM, -0.019, 0.019
    )
    stretch: float = fitted(1.8, "factor of the chosen column, if hidden", _FROM, 0.011, -0.023)
    scaled_by: float = fitted(
        0.8, "columns are divided by this power of their deviation", _FROM, 0.01, -0.091
    )
    least_euclid: float = fitted(0.07, "least part of Euclid in the metric", _FROM, 0.001, -0.004)
    luck: float = fitted(
        2.0, "deviations by which a direction must stand out", _FROM, -0.012, 0.017
    )
    luck_of_all: float = fitted(3.0, "the same for all directions together", _FROM, 0.001, -0.009)
    clear_statistics: float = fitted(
        800.0, "people / noise and class, statistics from", _FROM, 0.008, -0.07
    )
    few_columns: int = fitted(
        8, "columns below which many classes take statistics", _FROM, -0.008, -0.026
    )
    steps: int = fitted(20, "steps", _FROM, -0.099, -0.052)
    separation_share: float = fitted(
        0.07, "part of the budget for the separation", _FROM, -0.039, 0.028
    )
    reach: float = fitted(
        0.3, "typical lengths at which rows of steps are clipped", _FROM, -0.004, -0.034
    )
    clip: float = fitted(
        0.4, "clip of a residual, which is 1 long at the start", _FROM, -0.004, -0.02
    )
    step: float = fitted(0.2, "a step's size times the noise on a mean", _FROM, 0.016, -0.126)
    most_step: float = fitted(8.0, "largest step", _FROM, 0.01, -0.036)
    least_radius: float = fitted(
        0.4, "typical lengths at which noisy rows are cut", _FROM, 0.0, -0.035
    )
    steps_luck: float = fitted(
        2.5, "deviations by which classes must be apart", _FROM, 0.027, -0.077
    )


NUMBERS = ClassNumbers()

# Not fitted: halved or doubled, none of these moves the mean gain (`tools.constants`). Guards: the least
# part of the people that a class has, of the mean variance that a column has, of the mean square place.
LEAST_CLASS, LEAST_VARIANCE, LEAST_SIZE = 0.1, 0.01, 0.05
HIDDEN = 3.0  # deviations of the noise below which a variance is not known
RIDGE = 0.3  # part of the noise's largest eigenvalue that is added to all

LEVELS = tuple(2.0**-i for i in range(1, 8))
"""Of a column's size, in units of the public bound on a row's norm."""

WIDTH = 4.0
"""A window reaches from a level to so many times it, so that a level fits few columns of two values."""

COUNTED = 0.5
"""Weight of the class counts beside the columns' moments."""

_TINY = 1e-12

MOST_FEATURES = 1024
"""Second moments of more columns than this are too many numbers to release."""


def moment_norms(z: FloatArray, norm: Norm) -> FloatArray:
    """Norm of S(z) for each row: ||z||_2^2, or in l1 the diagonal and sqrt(2) times the upper half."""
    squares = np.einsum("ij,ij->i", z, z)
    if norm == "l2":
        return np.asarray(squares)
    half = (np.abs(z).sum(axis=1) ** 2 - squares) / 2
    return np.asarray(squares + math.sqrt(2.0) * np.maximum(half, 0.0))


def shrunk(values: FloatArray, noise: float, n: int) -> tuple[FloatArray, float]:
    """Eigenvalues within classes, drawn to their mean by as much of their spread as noise and chance make.

    Returns them with what was added to each: the noise alone has eigenvalues up to its edge, and d columns of
    n people leave their part to chance.
    """
    d = len(values)
    mean = max(float(values.mean()), _TINY)
    by_chance = noise**2 * d * (d + 1) / 2 + (d * mean) ** 2 / n
    drawn = min(1.0, by_chance / max(float(((values - mean) ** 2).sum()), _TINY**2))
    floor = RIDGE * noise * math.sqrt(2 * d) + mean * math.sqrt(d / n) + _TINY
    return np.maximum((1 - drawn) * values + drawn * mean, 0.0) + floor, floor


@dataclass(frozen=True)
class ColumnMoments(Statistic):
    """First and second moments of each column, and class counts where a choice is to be balanced by them.

    A person's contribution is (u, u^2, e_c / 2) with ||u|| <= 1 and e_c the indicator of her class.
    """

    n_features: int
    data_norm: float  # public; u is the row divided by it
    clip: float  # `bound` of the query's norm
    n_classes: int = 0  # classes that are counted; 0 for none

    @property
    def shape(self) -> tuple[int, ...]:
        """Two entries a column, one a class."""
        return (2 * self.n_features + self.n_classes,)

    @staticmethod
    def bound(norm: Norm, *, counted: bool = False) -> float:
        """Largest norm of a contribution: ||u^2|| <= ||u|| <= 1, and the count's weight."""
        count = COUNTED if counted else 0.0
        return 2.0 + count if norm == "l1" else math.sqrt(2.0 + count**2)

    def tile_sum(self, rows: Any, classes: Numbers, norm: Norm) -> FloatArray:
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
    """

    n_features: int
    levels: tuple[float, ...]  # public, greater than 0
    weights: tuple[float, float]  # of people of the first and the second class, at most 1

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a candidate: levels, sides, classes, columns, the last running fastest."""
        return (4 * len(self.levels) * self.n_features,)

    def candidate(self, index: int) -> tuple[int, float]:
        """Column and level of a candidate."""
        return index % self.n_features, self.levels[index // (4 * self.n_features)]

    def tile_total(self, rows: Any, classes: Numbers, norm: Norm, grid: float) -> IntArray:
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


def chooses_column(facts: PublicFacts, n_classes: int) -> bool:
    """Whether a column is chosen; from public numbers alone, as the proof of composition demands."""
    return n_classes == 2 and starts_by_choice(facts, NUMBERS.clear_vector)


def ask_columns(
    facts: PublicFacts, n_classes: int, *, counted: bool = False
) -> tuple[QuerySpec, ...]:
    """The queries by which columns are scaled, and people of each class counted where that is wanted."""
    d, choosing = facts.n_features, chooses_column(facts, n_classes)
    entries = 2 * d + (n_classes if counted or choosing else 0)
    if not choosing:
        return (QuerySpec("columns", (entries,), NUMBERS.columns_share),)
    return (
        QuerySpec("columns", (entries,), NUMBERS.choosing_share),
        QuerySpec("chosen column", (4 * len(LEVELS) * d,), NUMBERS.choosing_share, choice=True),
    )


@dataclass(frozen=True)
class Columns:
    """What the first answers say of the columns, in units of the data norm."""

    mean: FloatArray
    factors: FloatArray
    spread: float  # mean squared distance from the mean
    weights: FloatArray  # that make the classes equal, where they were counted


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
            mean[column] = np.clip(mean[column], -NUMBERS.centred * level, NUMBERS.centred * level)
            stretch[column] = NUMBERS.stretch
    scale = stretch * variance ** (-NUMBERS.scaled_by / 2)
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
    """
    if not len(parts):
        return np.ones(0)
    away = parts - parts.mean()
    surely = np.copysign(np.maximum(np.abs(away) - NUMBERS.lucky_gap * noise / 2, 0.0), away)
    found = np.maximum(1 + len(parts) * surely, LEAST_CLASS)
    return np.asarray(found.min() / found)


@dataclass(frozen=True)
class _ClassRecipe:
    """What both recipes have."""

    n_classes: int  # public
    n_components: int | None = (
        None  # None: the whole blended metric; a number: its first directions
    )

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {"n_components": self.n_components, "n_classes": self.n_classes}


# ---- statistics by class -------------------------------------------------------------------------

WEIGHTS = (0.06**0.5, 0.56**0.5, 0.38**0.5)
"""Of counts, class sums and second moments in one contribution; their squares add up to 1."""


@dataclass(frozen=True)
class ClassScatter(Statistic):
    """Counts and sums by class, and second moments of all, of rows that are centred, scaled and shortened.

    A person's contribution is ``(a e_c, b z e_c, c S(z))``: z is her row, moved, scaled and brought to length
    1 at most, e_c the indicator of her class and S(z) the upper triangle of z z^T, off the diagonal times
    sqrt(2), so that ||S(z)|| = ||z||^2. Somebody without a class contributes nothing.
    """

    n_classes: int
    centre: FloatArray  # public or released: ``z = (x - centre) * factors``
    factors: FloatArray
    clip: float  # `bound` of the query's norm

    @property
    def shape(self) -> tuple[int, ...]:
        """One long vector: counts, sums, second moments."""
        return (entries(self.n_classes, len(self.centre)),)

    @staticmethod
    def bound(norm: Norm) -> float:
        """Largest norm of a contribution, as ||z|| <= 1 makes ||S(z)|| <= 1."""
        return float(sum(WEIGHTS)) if norm == "l1" else math.sqrt(sum(w * w for w in WEIGHTS))

    def tile_sum(self, rows: Any, classes: Numbers, norm: Norm) -> FloatArray:
        """Sum of the contributions; the last `shrink` only guards against rounding."""
        z = (dense_rows(rows) - self.centre) * self.factors
        z = z * shrink(row_norms(z, norm), 1.0)[:, None]
        a, b, c = WEIGHTS
        first, second = b * row_norms(z, norm), c * moment_norms(z, norm)
        together = a + first + second if norm == "l1" else np.sqrt(a * a + first**2 + second**2)
        factor = shrink(together, self.clip) * (classes >= 0)
        indicator = (classes[:, None] == np.arange(self.n_classes)) * factor[:, None]
        moments = z.T @ (factor[:, None] * z)
        return np.concatenate(
            [a * indicator.sum(axis=0), b * (indicator.T @ z).ravel(), packed(moments, c)]
        )

    def parted(self, answer: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Counts, class sums (n_classes, d) and second moments (d, d) of a noisy sum, in plain units."""
        k, d = self.n_classes, len(self.centre)
        a, b, c = WEIGHTS
        moments = unpacked(answer[k + k * d :], d, c)
        return answer[:k] / a, answer[k : k + k * d].reshape(k, d) / b, moments


def entries(n_classes: int, n_features: int) -> int:
    """Numbers in the class statistics."""
    return n_classes * (1 + n_features) + triangle(n_features)


@dataclass(frozen=True)
class ScatterRecipe(_ClassRecipe):
    """Statistics of people, and a discriminant metric made of them."""

    headline = "class statistics"

    def ask(self, facts: PublicFacts) -> tuple[QuerySpec, ...]:
        """The columns first, where noise would hide them with a choice of one, then the class statistics."""
        d = facts.n_features
        if d > MOST_FEATURES:
            raise InputError(
                f"class statistics take at most {MOST_FEATURES} features; got {d}: project them with a "
                "public projection first, or learn from pairs (design_pairs, fit)"
            )
        first = ask_columns(facts, self.n_classes)
        rest = 1 - sum(ask.share for ask in first)
        return (*first, QuerySpec("class statistics", (entries(self.n_classes, d),), rest))

    def run(self, plan: Plan, engine: Engine) -> FloatArray:
        """Ask both, and make a metric of the answers."""
        query, d, n = plan["class statistics"], plan.n_features, plan.n_records
        columns = find_columns(plan, engine, radius(query.noise_std(1.0) * math.sqrt(d) / n))
        clip = ClassScatter.bound(query.mechanism.norm)
        statistic = ClassScatter(
            self.n_classes, plan.data_norm * columns.mean, columns.factors / plan.data_norm, clip
        )
        parts = statistic.parted(engine.answer(query, statistic))
        noise = query.noise_std(clip)
        metric = discriminant(*parts, n=plan.n_records, noise=noise, columns=columns)
        return metric[: self.n_components] / plan.data_norm


def radius(noise: float) -> float:
    """Where rows are shortened, in typical lengths: the more noise, the nearer to directions alone.

    ``noise``: length of the noise on a mean over all people, for contributions of length 1.
    """
    silence = float(np.clip(math.log10(0.01 / max(noise, 1e-9)), 0.0, 1.0))
    return NUMBERS.least_radius + 0.8 * silence


def discriminant(
    counts: FloatArray,
    sums: FloatArray,
    moments: FloatArray,
    *,
    n: int,
    noise: float,
    columns: Columns,
) -> FloatArray:
    """The metric of noisy class statistics: whitened directions between classes, and Euclid.

    Statistics are those of rows z = (u - mean) * factors of n people, with noise of that standard deviation
    on each weighted entry.

    Returns a (d, d) array for rows u, leading directions first.
    """
    k, d = sums.shape
    a, b, c = WEIGHTS
    # Counts that noise explains are taken to be equal: a class that seems small would get a wild mean.
    seen = counts - n / k
    known = max(0.0, 1 - (noise / a) ** 2 / max(float(np.mean(seen**2)), _TINY))
    sizes = np.maximum(n / k + known * seen, max(1.0, 0.1 * n / k))
    part = sizes / sizes.sum()
    means = sums / sizes[:, None]
    middle = part @ means
    away = np.sqrt(part)[:, None] * (means - middle)
    blur = noise / b / sizes  # of each entry of a class mean
    between = away.T @ away - np.eye(d) * float(part @ blur**2)
    within = moments / n - np.outer(middle, middle) - between
    values, basis = np.linalg.eigh((within + within.T) / 2)
    solid, floor = shrunk(values, noise / c / n, n)
    whitened = away @ basis / np.sqrt(solid)
    strength, mix = np.linalg.eigh(whitened @ whitened.T)
    strength = np.maximum(strength, _TINY)
    # What noise and sampling put into each class mean, seen after whitening.
    expected = part * (blur**2 * np.sum(1 / solid) + np.sum(1 - floor / solid) / sizes)
    # A noisy count moves its class along the line to the origin, which is not quite the people's middle.
    lines = np.sum((means @ basis) ** 2 / solid, axis=1)
    expected = expected + part * (known * noise / a / sizes) ** 2 * lines
    # So many directions as the noise has, its square length varies by so much: what exceeds it by chance.
    varies = math.sqrt(2 * float(np.sum(1 / solid**2))) / float(np.sum(1 / solid))
    trusted = np.clip(1 - (1 + NUMBERS.luck * varies) * (mix**2).T @ expected / strength, 0.0, 1.0)
    # All directions together stand out sooner than one, and where they do not none is worth anything. Seen
    # before whitening, which leans on the same noise.
    others = part * (1 - part)
    each = float(others @ blur**2) + float(np.sum(others / sizes)) * (solid - floor)
    beyond = float(np.sum(away**2) / each.sum()) - 1
    chance = NUMBERS.luck_of_all * math.sqrt(2 * float(each @ each) / (k - 1)) / float(each.sum())
    stands_out = 1 - (chance / beyond) ** 2 if beyond > chance else 0.0
    euclid = np.eye(d) / math.sqrt(columns.spread)
    if stands_out == 0 or not np.any(trusted > 0):
        return euclid
    directions = (mix.T @ whitened) / np.sqrt(strength)[:, None]
    learned = np.sqrt(trusted)[:, None] * directions / np.sqrt(solid) @ basis.T
    # Directions of unit length after whitening: people's mean squared distance is their number.
    learned = learned / math.sqrt(float(trusted.sum())) * columns.factors
    share = (1 - NUMBERS.least_euclid) * stands_out
    return leading(np.vstack([math.sqrt(share) * learned, math.sqrt(1 - share) * euclid]))


# ---- steps ---------------------------------------------------------------------------------------

CONSTANT = 0.3
"""A constant column beside each row, so that classes need not be of one size."""

ASIDE = 1 / 3
"""Weight of places, their square lengths and corners beside the product of place and corner."""


def learns_from_pairs(facts: PublicFacts, n_classes: int) -> bool:
    """Whether people with classes are learned from by pairs; from public numbers alone.

    Measured in benchmarks/results. For a person sums over people win. A fact about two people costs them
    two records and paths of pairs one, and then two classes are told apart better by pairs. More columns than
    statistics can take go to pairs as well.
    """
    if facts.n_features > MOST_FEATURES:
        return True
    return n_classes == 2 and cost_of(facts.budget.kappa).records > 1


def learns_in_steps(facts: PublicFacts, n_classes: int) -> bool:
    """Whether classes are told apart in steps rather than by statistics; from public numbers alone."""
    if facts.mechanism.is_pure:  # pure epsilon pays for each step in full
        return False
    if n_classes > 2 and facts.n_features < NUMBERS.few_columns:
        return False
    noise = facts.mechanism.multiplier(facts.budget, 1.0) * math.sqrt(facts.n_features)
    return facts.n_records < NUMBERS.clear_statistics / n_classes * noise


def class_recipe(given: Any, people: PreparedRecords) -> Recipe:
    """Steps or statistics, by `learns_in_steps`; parameters plain: n_components and those of the promise."""
    k, facts = people.used.n_classes, public_facts(given, people, given.delta)
    made = StepsRecipe if learns_in_steps(facts, k) else ScatterRecipe
    return made(k, given.n_components)


@dataclass(frozen=True)
class Rows:
    """How a person's row becomes z, of length 1 at most in the norm of the query."""

    centre: FloatArray  # released
    factors: FloatArray

    def scaled(self, rows: Any, norm: Norm) -> FloatArray:
        """Moved, scaled and shortened rows, with the constant column last."""
        z = (dense_rows(rows) - self.centre) * self.factors
        z = z * shrink(row_norms(z, norm), 1.0)[:, None]
        z = np.column_stack([z, np.full(len(z), CONSTANT)])
        return np.asarray(
            z * (shrink(row_norms(z, norm), _longest(norm)) / _longest(norm))[:, None]
        )


def _longest(norm: Norm) -> float:
    return 1 + CONSTANT if norm == "l1" else math.hypot(1, CONSTANT)


def corners(n_classes: int) -> FloatArray:
    """Where the classes shall lie: corners of a regular simplex, of length 1; -1 and 1 for two classes.

    A last row of zeros is for nobody's class, which is number -1.
    """
    row, column = np.indices((n_classes, n_classes - 1))
    steps = np.where(row <= column, -1.0, np.where(row == column + 1, column + 1.0, 0.0))
    steps = steps / np.sqrt((column + 1) * (column + 2) * (1 - 1 / n_classes))
    return np.vstack([steps, np.zeros(n_classes - 1)])


@dataclass(frozen=True)
class ClassResiduals(Statistic):
    """The sum of clipped residuals: a person contributes v r z^T; ||r|| <= clip, 0 <= v <= 1, ||z|| <= 1."""

    rows: Rows
    w: FloatArray  # released, or zero
    weights: FloatArray  # v, of people of each class: at most 1
    clip: float

    @property
    def shape(self) -> tuple[int, ...]:
        """As w."""
        return self.w.shape

    def tile_sum(self, rows: Any, classes: Numbers, norm: Norm) -> FloatArray:
        """Sum of the contributions."""
        z = self.rows.scaled(rows, norm)
        residuals = corners(len(self.weights))[classes] - z @ self.w.T
        weights = np.clip(np.append(self.weights, 0.0)[classes], 0.0, 1.0)
        factor = weights * shrink(row_norms(residuals, norm), self.clip)
        return np.asarray((factor[:, None] * residuals).T @ z)


@dataclass(frozen=True)
class Separation(Statistic):
    """How far the classes are apart: a person contributes (t.p, p.p / 3, p / 3, t / 3).

    t is her class's corner and p her place: w z, brought to length 1 at most.
    """

    rows: Rows
    w: FloatArray
    clip: float  # `bound` of the query's norm

    @property
    def shape(self) -> tuple[int, ...]:
        """Two numbers, a place and a corner."""
        return (2 + 2 * len(self.w),)

    @staticmethod
    def bound(norm: Norm, n_classes: int) -> float:
        """Largest norm of a contribution: ||p|| <= 1, and ||t|| is 1 in l2 and sqrt(k - 1) at most in l1."""
        if norm == "l1":
            return 1 + ASIDE * (2 + math.sqrt(n_classes - 1))
        return math.sqrt(1 + 3 * ASIDE**2)

    def tile_sum(self, rows: Any, classes: Numbers, norm: Norm) -> FloatArray:
        """Sum of the contributions."""
        place = self.rows.scaled(rows, norm)[:, :-1] @ self.w.T
        place *= (shrink(row_norms(place, norm), 1.0) * (classes >= 0))[:, None]
        corner = corners(len(self.w) + 1)[classes]
        aside = [[np.sum(place * place)], place.sum(axis=0), corner.sum(axis=0)]
        return np.concatenate([[np.sum(corner * place)], ASIDE * np.concatenate(aside)])


@dataclass(frozen=True)
class StepsRecipe(_ClassRecipe):
    """Directions between classes, by noisy steps, and some Euclid."""

    headline = "class steps"

    def ask(self, facts: PublicFacts) -> tuple[QuerySpec, ...]:
        """The columns first, then the steps, then what they are worth."""
        d, k = facts.n_features, self.n_classes
        first = ask_columns(facts, k, counted=True)
        rest = 1 - NUMBERS.separation_share - sum(ask.share for ask in first)
        return (
            *first,
            QuerySpec("class steps", (k - 1, d + 1), rest, NUMBERS.steps),
            QuerySpec("separation", (2 * k,), NUMBERS.separation_share),
        )

    def run(self, plan: Plan, engine: Engine) -> FloatArray:
        """Scale the columns, walk, and blend what the walk is worth with Euclid."""
        columns = find_columns(plan, engine, NUMBERS.reach)
        rows = Rows(plan.data_norm * columns.mean, columns.factors / plan.data_norm)
        w, walked = walk(plan, engine, rows, columns.weights)
        w = w[:, :-1]
        size, trusted = take_separation(plan, engine, rows, w, walked)
        metric = blended(w, columns, size, trusted)
        return metric[: self.n_components] / plan.data_norm


def walk(plan: Plan, engine: Engine, rows: Rows, weights: FloatArray) -> tuple[FloatArray, float]:
    """The mean of the second half of the steps, from zero, and the sizes of the steps it has taken."""
    query, d, k = plan["class steps"], plan.n_features, len(weights)
    # People who count in full: class c has a part proportional to 1 / v_c of them, and a weight of v_c.
    mass = plan.n_records * k / float(np.sum(1 / weights))
    noise = query.noise_std(1.0) / math.sqrt(query.steps) * math.sqrt(d * (k - 1)) / mass
    rate = NUMBERS.step / max(noise, 1e-12)
    rate = float(np.clip(rate, 1.0, NUMBERS.most_step))
    w = total = np.zeros((k - 1, d + 1))
    for step in range(query.steps):
        answer = engine.answer(query, ClassResiduals(rows, w, weights, NUMBERS.clip))
        w = w + rate / (mass * NUMBERS.clip) * answer
        total = total + w * (step >= query.steps // 2)
    # The mean of the second half has taken three quarters of the steps.
    return total / (query.steps - query.steps // 2), 0.75 * query.steps * rate


def take_separation(
    plan: Plan, engine: Engine, rows: Rows, w: FloatArray, walked: float
) -> tuple[float, float]:
    """People's mean square place p, and how much of w is to be trusted (0 to 1).

    Asked by cov(t, p) / var(t), how far w puts people towards their corners: with classes of unequal size
    E[t.p] alone is not 0 where w says nothing. Of it is trusted what luck does not explain; and where places
    are longer than that, which least squares would not make them, the rest is noise in w. ``walked``: how far
    w can have gone along one residual, the sizes of its steps added up.
    """
    query, n, (others, d) = plan["separation"], plan.n_records, w.shape
    clip = Separation.bound(query.mechanism.norm, others + 1)
    answer = engine.answer(query, Separation(rows, w, clip)) / n
    noise = query.noise_std(clip) / n
    place, corner = (
        _surely(part, noise / ASIDE) for part in np.split(np.asarray(answer[2:]) / ASIDE, 2)
    )
    varied = 1 - float(corner @ corner)
    apart = float(answer[0] - place @ corner) / varied
    aside = (np.linalg.norm(corner), np.linalg.norm(place), noise / ASIDE * math.sqrt(others))
    noise = noise / varied * math.hypot(1, *(float(part) / ASIDE for part in aside))
    # Where classes do not differ, places of length 1 put n people up to 1 / sqrt(n) apart in each row of w,
    # and w was fitted to the same people. Least squares makes d / n of R^2 of that, give or take
    # sqrt(2 d) / n in each row; steps from 0 make at most their length times E[z.z] <= 1 over n.
    of_people = n * varied
    freedom = min(float(d), walked)
    by_fit = (freedom + NUMBERS.steps_luck * math.sqrt(2 * freedom / others)) / of_people
    by_luck = NUMBERS.steps_luck * math.hypot(noise, (of_people * others) ** -0.5) + by_fit
    size = float(max(answer[1] / ASIDE - place @ place, apart, LEAST_SIZE))
    trusted = 1 - (by_luck / apart) ** 2 if apart > by_luck else 0.0
    return size, trusted * apart / size


def _surely(found: FloatArray, noise: float) -> FloatArray:
    """A noisy mean of length 0.9 at most, drawn to 0 by as much of its square length as is noise."""
    squared = max(float(found @ found), 1e-24)
    return found * min(max(1 - len(found) * noise**2 / squared, 0.0), 0.9 / math.sqrt(squared))


def blended(w: FloatArray, columns: Columns, size: float, trusted: float) -> FloatArray:
    """One square metric: what is trusted of the directions, and Euclid; people's mean square is 1 in both.

    In least squares of corners of length 1 the values w z have a variance of R^2 in all.
    """
    euclid = np.eye(w.shape[1]) / math.sqrt(columns.spread)
    if trusted == 0:
        return euclid
    learned = w * columns.factors / math.sqrt(size)
    part = (1 - NUMBERS.least_euclid) * trusted
    return leading(np.vstack([math.sqrt(part) * learned, math.sqrt(1 - part) * euclid]))


# ---- fit_classes ---------------------------------------------------------------------------------


class LearnsFromClasses(PrivateLearner):
    """``fit_classes`` and what belongs to it, for a `pairveil.learners.base.PrivateLearner`.

    A learner's `_recipe` is then asked for people too: `class_recipe` is one for them.
    """

    learns_from: ClassVar[tuple[str, ...]] = ("pairs", "classes")

    classes: Sequence[Any] | None = None
    classes_: tuple[Any, ...]

    def _keep(self, model: Any, prepared: Prepared) -> None:
        super()._keep(model, prepared)
        self.__dict__.pop("classes_", None)
        if prepared.records.classes is not None:
            self.classes_ = prepared.records.classes

    def _resolve(
        self,
        given: Any,
        data: Any,
        y: Any,
        *,
        groups: Any = None,
        classes: Any = None,
        ids: Any = None,
        together: Any = None,
    ) -> Resolved:
        if groups is None and not isinstance(data, People):
            return super()._resolve(given, data, y)
        if ids is None:  # a table may be sorted by class: names say who stands where, rows do not
            ids = ids_of(data)
        read = RawRows.of(self).people(without_ids(data))
        found = resolve_people(read, y, classes, ids, together)
        if groups is None or (isinstance(groups, str) and groups == "auto"):
            return found
        if isinstance(groups, str):
            raise InputError("groups must be 'auto', a size, or each person's group number")
        refuse_together(together)
        if np.ndim(groups) and found.positions is not None:
            groups = check_numbers(groups, found.data.n_records)[found.positions]
        return found._replace(data=groups_of(given, found.data, groups))

    def _prepare_records(self, given: Any, found: Resolved) -> PreparedRecords:
        """People, or pairs of them that are designed here, by a public rule."""
        records = super()._prepare_records(given, found)
        if not isinstance(found.data, People):
            return records
        if not learns_from_pairs(public_facts(given, records, given.delta), found.data.n_classes):
            return records
        pairs = pairs_of(given, records.used, records.together)
        facts = {name: found.facts[name] for name in ("classes", "public", "for_release")}
        chosen = SimpleNamespace(**{**vars(given), "select": "all"})
        return prepare_records(chosen, Resolved(*pairs.canonical(), facts=facts))

    def prepare(self, pairs: Any, y: Any = None, **more: Any) -> Prepared:
        """All of a fit that comes before its noise: which records, kappa, plan and certificate.

        Parameters
        ----------
        pairs, y, **more
            As for ``fit``; where ``classes`` are given, people and the class of each.
        """
        if self.classes is not None and not isinstance(pairs, Records | Prepared):
            more = {"classes": self.classes, "groups": "auto"} | more
        return super().prepare(pairs, y, **more)

    def fit_transform(self, X: Any, y: Any = None, **watching: Any) -> FloatArray:
        """Learn from people with a class each, and map them; for pipelines over people.

        It needs ``classes``: pairs cannot be mapped, and without them the call is refused before anything is
        spent. The metric is private. Other steps of a pipeline are not: a scaler has seen the people, and
        whoever has a model of nearest neighbours has their rows.

        Examples
        --------
        >>> from pairveil import DPPMetricLearner, load_patients
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> from sklearn.pipeline import make_pipeline
        >>> patients = load_patients()
        >>> learner = DPPMetricLearner(epsilon=4.0, unit="person", classes=["benign", "malignant"])
        >>> people, y = patients.features.values, np.array(["malignant", "benign"])[patients.classes]
        >>> model = make_pipeline(learner, KNeighborsClassifier()).fit(people, y)
        >>> model.score(people, y) > 0.8
        True
        """
        if self.classes is None or y is None or isinstance(X, Records):
            return super().fit_transform(X, y)  # type: ignore[misc, no-any-return]
        return np.asarray(self.fit(X, y, **watching).transform(X))  # type: ignore[attr-defined]

    def prepare_classes(
        self, X: Any, y: Any = None, classes: Any = None, groups: Any = "auto", **named: Any
    ) -> Prepared:
        """All of a fit that comes before its noise: records, costs, plan and certificate.

        Parameters
        ----------
        X, y, classes, groups, **named
            As for `fit_classes`.

        Returns
        -------
        Prepared
            Give it to ``fit`` in place of pairs; it spends nothing by itself.
        """
        return self.prepare(X, y, classes=classes, groups=groups, **named)

    def certify_classes(self, X: Any, *people: Any, **named: Any) -> Certificate | None:
        """The certificate that `fit_classes` would issue. Draws no noise and spends nothing."""
        return self.prepare_classes(X, *people, **named).certificate

    def fit_classes(
        self,
        X: Any,
        y: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        groups: Any = "auto",
        *,
        ids: ArrayLike | None = None,
        together: ArrayLike | None = None,
        **watching: Any,
    ) -> Self:
        """Learn from people with one class each, and issue the certificate.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n, n_features), or People
            One row a person; how many there are is public.
        y : array of shape (n,)
            Each person's class. Somebody whose class is not in the list contributes nothing.
        classes : sequence
            The public list of classes, at least two. None reads it off ``y``, which would show a class of
            one person: the certificate says so and is not for release.
        groups : 'auto', int, or integer array of shape (n,)
            What a record is. 'auto': statistics of people or pairs, by a public rule in the numbers of
            people, columns and classes and in epsilon (groups told less wherever they were measured). A
            size: disjoint groups of so many people, dealt without looking at anything. An array: each
            person's group, -1 for none; it must be public.
        ids : array of shape (n,), optional
            Public names of the people, each once; by default a table's text index or text column 'id'. People
            are brought into their order; without ids into the order of their rows, which must then not depend
            on anything private.
        together : array of shape (n,), optional
            A public value of each person: a household, a site. People with equal values change together, and
            the unit 'person' covers all of them; somebody without one stands alone.
        **watching
            ``on_step``, ``on_answer``, ``checkpoint`` and ``keep_checkpoint`` as for ``fit``.

        Returns
        -------
        self
        """
        prepared = self.prepare_classes(X, y, classes, groups, ids=ids, together=together)
        return self.fit(prepared, **watching)
