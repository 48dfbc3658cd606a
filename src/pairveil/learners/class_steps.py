"""People with classes, in steps: a regression of the class on the columns, by clipped sums over people.

Classes are corners t of a regular simplex (-1 and 1 for two of them). After the columns are scaled
(`class_columns`), each step sums t - w z, brought to a clip bound, times z over all people; z is a person's
scaled row. That is the gradient of least squares with clipped residuals (Huber's loss), and least squares of
the class has the directions of linear discriminant analysis. A step of k classes releases (k - 1) (d + 1)
numbers where class statistics release d^2 / 2 and more, and people who are told apart already hardly move it,
so a small clip bound, and little noise, will do.

What the directions are worth is asked last: how far towards their corners they put people. What luck could
explain of it goes to Euclid. What a person can move is proved in docs/theory/people.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.engine.statistics import Statistic, row_norms, shrink
from pairveil.learners.class_columns import Columns, ask_columns, find_columns
from pairveil.learners.scatter_moments import MOST_FEATURES, dense_rows, leading
from pairveil.privacy.events import cost_of
from pairveil.privacy.grid import Norm

Numbers = NDArray[np.int32]

CLEAR_STATISTICS = 800.0
"""From so many people for the length of a noise vector and a class on, statistics tell as much: steps ask for
as many numbers of each class, second moments are asked once for all."""
FEW_COLUMNS = 8
"""Second moments of fewer columns are few numbers, and steps would lose how long a row is (`REACH`)."""
N_STEPS = 20
SEPARATION_SHARE = 0.07
"""Part of the budget for asking how far apart the classes are; the steps get what is left."""
REACH = 0.3
"""Where rows are shortened, in typical lengths: hardly more than their directions count."""
CONSTANT = 0.3
"""A constant column beside each row, so that classes need not be of one size."""
CLIP = 0.4
"""Of the length of a person's residual, which is 1 at the start."""
STEP = 0.2
"""A step's size is this over the length of the noise on a mean over all people, within `STEPS_WITHIN`."""
STEPS_WITHIN = (1.0, 8.0)
ASIDE = 1 / 3
"""Weight of places, their square lengths and corners beside the product of place and corner."""
LUCK = 2.5
"""Standard deviations by which the classes must be apart before anything is believed."""
LEAST_EUCLID = 0.07
"""Part of the Euclidean metric that is blended in however far apart they are."""
LEAST_SIZE = 0.05
"""Of people's mean square place, below which it is not believed."""


def learns_from_pairs(setting: Setting, n_classes: int) -> bool:
    """Whether people with classes are learned from by pairs; from public numbers alone.

    Measured in docs/guides/classes.md. For a person sums over people win. A fact about two people costs them
    two records and paths of pairs one, and then two classes are told apart better by pairs. More columns than
    statistics can take go to pairs as well.

    Parameters
    ----------
    setting : Setting
        Of the people.
    n_classes : int

    Examples
    --------
    >>> from pairveil.privacy.mechanisms import Budget
    >>> at = [Setting(Budget(1.0, 1e-5, kappa, "zero-out"), 398, 30) for kappa in (1, 2)]
    >>> [learns_from_pairs(setting, n_classes=2) for setting in at]
    [False, True]
    """
    if setting.n_features > MOST_FEATURES:
        return True
    return n_classes == 2 and cost_of(setting.budget.kappa).records > 1


def learns_in_steps(setting: Setting, n_classes: int) -> bool:
    """Whether classes are told apart in steps rather than by statistics; from public numbers alone.

    Examples
    --------
    >>> from pairveil.privacy.mechanisms import Budget
    >>> at = [Setting(Budget(1.0, 1e-5, 1, "zero-out"), n, 30) for n in (398, 100_000)]
    >>> [learns_in_steps(setting, n_classes=k) for setting in at for k in (2, 10)]
    [True, True, False, False]
    """
    if setting.mechanism.is_pure:  # pure epsilon pays for each step in full
        return False
    if n_classes > 2 and setting.n_features < FEW_COLUMNS:
        return False
    noise = setting.mechanism.multiplier(setting.budget, 1.0) * math.sqrt(setting.n_features)
    return setting.n_records < CLEAR_STATISTICS / n_classes * noise


@dataclass(frozen=True)
class Rows:
    """How a person's row becomes z, of length 1 at most in the norm of the query.

    Parameters
    ----------
    centre, factors : arrays of shape (n_features,)
        Released.
    """

    centre: FloatArray
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

    Examples
    --------
    >>> corners(2).ravel().round(3)
    array([-1.,  1.,  0.])
    """
    row, column = np.indices((n_classes, n_classes - 1))
    steps = np.where(row <= column, -1.0, np.where(row == column + 1, column + 1.0, 0.0))
    steps = steps / np.sqrt((column + 1) * (column + 2) * (1 - 1 / n_classes))
    return np.vstack([steps, np.zeros(n_classes - 1)])


@dataclass(frozen=True)
class ClassResiduals(Statistic):
    """The sum of clipped residuals: a person contributes v r z^T; ||r|| <= clip, 0 <= v <= 1, ||z|| <= 1.

    Parameters
    ----------
    w : array of shape (n_classes - 1, n_features + 1)
        Released, or zero.
    weights : array of shape (n_classes,)
        v, of people of each class: at most 1.
    """

    rows: Rows
    w: FloatArray
    weights: FloatArray
    clip: float

    @property
    def shape(self) -> tuple[int, ...]:
        """As w."""
        return self.w.shape

    def tile_sum(self, rows: Any, classes: Numbers, norm: Norm) -> FloatArray:  # type: ignore[override]
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

    Parameters
    ----------
    w : array of shape (n_classes - 1, n_features)
    clip : float
        `bound` of the query's norm.
    """

    rows: Rows
    w: FloatArray
    clip: float

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

    def tile_sum(self, rows: Any, classes: Numbers, norm: Norm) -> FloatArray:  # type: ignore[override]
        """Sum of the contributions."""
        place = self.rows.scaled(rows, norm)[:, :-1] @ self.w.T
        place *= (shrink(row_norms(place, norm), 1.0) * (classes >= 0))[:, None]
        corner = corners(len(self.w) + 1)[classes]
        aside = [[np.sum(place * place)], place.sum(axis=0), corner.sum(axis=0)]
        return np.concatenate([[np.sum(corner * place)], ASIDE * np.concatenate(aside)])


@dataclass(frozen=True)
class StepsRecipe:
    """Directions between classes, by noisy steps, and some Euclid.

    Parameters
    ----------
    n_classes : int
        Public.
    n_components : int or None
        None returns the whole blended metric, a number its leading directions.
    """

    n_classes: int
    n_components: int | None = None
    headline = "class steps"

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """The columns first, then the steps, then what they are worth."""
        d, k = setting.n_features, self.n_classes
        first = ask_columns(setting, k, counted=True)
        rest = 1 - SEPARATION_SHARE - sum(ask.share for ask in first)
        return (
            *first,
            Ask("class steps", (k - 1, d + 1), rest, N_STEPS),
            Ask("separation", (2 * k,), SEPARATION_SHARE),
        )

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {"n_components": self.n_components, "n_classes": self.n_classes}

    def run(self, plan: Plan, engine: Engine) -> FloatArray:
        """Scale the columns, walk, and blend what the walk is worth with Euclid."""
        columns = find_columns(plan, engine, REACH)
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
    rate = float(np.clip(STEP / max(noise, 1e-12), *STEPS_WITHIN))
    w = total = np.zeros((k - 1, d + 1))
    for step in range(query.steps):
        answer = engine.answer(query, ClassResiduals(rows, w, weights, CLIP))
        w = w + rate / (mass * CLIP) * answer
        total = total + w * (step >= query.steps // 2)
    # The mean of the second half has taken three quarters of the steps.
    return total / (query.steps - query.steps // 2), 0.75 * query.steps * rate


def take_separation(
    plan: Plan, engine: Engine, rows: Rows, w: FloatArray, walked: float
) -> tuple[float, float]:
    """People's mean square place p, and how much of w is to be trusted (0 to 1).

    Asked by cov(t, p) / var(t), how far w puts people towards their corners: with classes of unequal size
    E[t.p] alone is not 0 where w says nothing. Of it is trusted what luck does not explain; and where places
    are longer than that, which least squares would not make them, the rest is noise in w.

    Parameters
    ----------
    w : array of shape (n_classes - 1, n_features)
    walked : float
        How far w can have gone along one residual: the sizes of its steps, added up.
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
    fitted = (freedom + LUCK * math.sqrt(2 * freedom / others)) / of_people
    by_luck = LUCK * math.hypot(noise, (of_people * others) ** -0.5) + fitted
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
    part = (1 - LEAST_EUCLID) * trusted
    return leading(np.vstack([math.sqrt(part) * learned, math.sqrt(1 - part) * euclid]))
