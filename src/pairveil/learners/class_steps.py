"""People of two classes, in steps: a regression of the class on the columns, by clipped sums over people.

After the columns are scaled (`class_columns`), each step sums (1 - t w.z), brought to a clip bound, times t z
over all people: t is +1 or -1 by class and z a person's scaled row. That is the gradient of least squares
with clipped residuals (Huber's loss), and least squares of the class has the direction of linear discriminant
analysis. A step releases d + 1 numbers where class statistics release d^2 / 2, and people who are told apart
already hardly move it, so a small clip bound, and little noise, will do.

What the direction is worth is asked last: how far apart it puts the two classes. What luck could explain
of it goes to Euclid. What a person can move is proved in docs/theory/people.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.engine.engine import Engine
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.engine.statistics import Statistic, row_norms, shrink
from pairveil.learners.class_columns import Columns, ask_columns, find_columns
from pairveil.learners.scatter_moments import dense_rows, leading
from pairveil.privacy.grid import Norm

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int32]

CLEAR_STATISTICS = 400.0
"""From so many people for the length of a noise vector on, statistics of two classes tell as much."""
N_STEPS = 20
SEPARATION_SHARE = 0.07
"""Part of the budget for asking how far apart the classes are; the steps get what is left."""
REACH = 0.3
"""Where rows are shortened, in typical lengths: hardly more than their directions count."""
CONSTANT = 0.3
"""A constant column beside each row, so that classes need not be of one size."""
CLIP = 0.4
"""Of a person's residual, which is 1 at the start."""
STEP = 0.2
"""A step's size is this over the length of the noise on a mean over all people, within `STEPS_WITHIN`."""
STEPS_WITHIN = (1.0, 8.0)
ASIDE = 1 / 3
"""Weight of places and classes beside their product."""
LUCK = 2.5
"""Standard deviations by which the classes must be apart before anything is believed."""
LEAST_EUCLID = 0.07
"""Part of the Euclidean metric that is blended in however far apart they are."""
LEAST_SEPARATION = 0.05


def learns_in_steps(setting: Setting, n_classes: int) -> bool:
    """Whether two classes are told apart in steps rather than by statistics; from public numbers alone.

    Examples
    --------
    >>> from pairveil.privacy.mechanisms import Budget
    >>> at = [Setting(Budget(1.0, 1e-5, 1, "zero-out"), n, 30) for n in (398, 100_000)]
    >>> [learns_in_steps(setting, n_classes=2) for setting in at]
    [True, False]
    """
    if n_classes != 2 or setting.mechanism.is_pure:  # pure epsilon pays for each step in full
        return False
    noise = setting.mechanism.multiplier(setting.budget, 1.0) * math.sqrt(setting.n_features)
    return setting.n_records < CLEAR_STATISTICS * noise


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


def _signs(classes: Numbers) -> FloatArray:
    """-1 for the first class, 1 for the second, 0 for nobody's."""
    return np.asarray((classes == 1) * 1.0 - (classes == 0))


@dataclass(frozen=True)
class ClassResiduals(Statistic):
    """The sum of clipped residuals: a person contributes v r t z, where |r| <= clip, 0 <= v <= 1, ||z|| <= 1.

    Parameters
    ----------
    rows : Rows
    w : array of shape (n_features + 1,)
        Released, or zero.
    weights : (float, float)
        v, of people of the first and of the second class: at most 1.
    clip : float
    """

    rows: Rows
    w: FloatArray
    weights: tuple[float, float]
    clip: float

    @property
    def shape(self) -> tuple[int, ...]:
        """As w."""
        return self.w.shape

    def tile_sum(self, rows: Any, classes: Numbers, norm: Norm) -> FloatArray:  # type: ignore[override]
        """Sum of the contributions."""
        z, signs = self.rows.scaled(rows, norm), _signs(classes)
        residuals = np.clip(1 - signs * (z @ self.w), -self.clip, self.clip)
        weights = np.clip(np.where(classes == 0, *self.weights), 0.0, 1.0)
        return np.asarray((weights * residuals * signs) @ z)


@dataclass(frozen=True)
class Separation(Statistic):
    """Where a direction puts the classes: a person contributes (t p, p / 3, t / 3), p in [-1, 1] her place.

    Parameters
    ----------
    rows : Rows
    w : array of shape (n_features,)
    clip : float
        `bound` of the query's norm.
    """

    rows: Rows
    w: FloatArray
    clip: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Three numbers."""
        return (3,)

    @staticmethod
    def bound(norm: Norm) -> float:
        """Largest norm of a contribution."""
        return 1 + 2 * ASIDE if norm == "l1" else math.sqrt(1 + 2 * ASIDE**2)

    def tile_sum(self, rows: Any, classes: Numbers, norm: Norm) -> FloatArray:  # type: ignore[override]
        """Sum of the contributions."""
        place = np.clip(self.rows.scaled(rows, norm)[:, :-1] @ self.w, -1.0, 1.0)
        signs = _signs(classes)
        here = np.abs(signs)  # nobody's class, no place
        return np.array([signs @ place, ASIDE * (here @ place), ASIDE * signs.sum()])


@dataclass(frozen=True)
class StepsRecipe:
    """A direction between two classes, by noisy steps, and some Euclid.

    Parameters
    ----------
    n_components : int or None
        None returns the whole blended metric, a number its leading directions.
    """

    n_components: int | None = None
    headline = "class steps"

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """The columns first, then the steps, then what they are worth."""
        d, first = setting.n_features, ask_columns(setting, n_classes=2, counted=True)
        rest = 1 - SEPARATION_SHARE - sum(ask.share for ask in first)
        return (
            *first,
            Ask("class steps", (d + 1,), rest, N_STEPS),
            Ask("separation", (3,), SEPARATION_SHARE),
        )

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {"n_components": self.n_components, "n_classes": 2}

    def run(self, plan: Plan, engine: Engine) -> FloatArray:
        """Scale the columns, walk, and blend what the walk is worth with Euclid."""
        columns = find_columns(plan, engine, REACH)
        rows = Rows(plan.data_norm * columns.mean, columns.factors / plan.data_norm)
        w = walk(plan, engine, rows, columns.weights)[:-1]
        separation, trusted = take_separation(plan, engine, rows, w)
        metric = blended(w, columns, separation, trusted)
        return metric[: self.n_components] / plan.data_norm


def walk(plan: Plan, engine: Engine, rows: Rows, weights: tuple[float, float]) -> FloatArray:
    """The mean of the second half of the steps, from zero."""
    query, d = plan["class steps"], plan.n_features
    # People who count in full: two classes of n p and n (1 - p), the larger weighed down to the smaller.
    mass = plan.n_records * 2 * min(weights) / (1 + min(weights))
    noise = query.noise_std(1.0) / math.sqrt(query.steps) * math.sqrt(d) / mass
    rate = float(np.clip(STEP / max(noise, 1e-12), *STEPS_WITHIN))
    w, total = np.zeros(d + 1), np.zeros(d + 1)
    for step in range(query.steps):
        answer = engine.answer(query, ClassResiduals(rows, w, weights, CLIP))
        w = w + rate / (mass * CLIP) * answer
        total = total + w * (step >= query.steps // 2)
    return np.asarray(total / (query.steps - query.steps // 2))


def take_separation(plan: Plan, engine: Engine, rows: Rows, w: FloatArray) -> tuple[float, float]:
    """Half the distance of the two classes along w, and how much of it luck does not explain (0 to 1).

    cov(t, p) / var(t), t = +-1: with classes of unequal size E[t p] alone is not 0 where w says nothing.
    """
    query, n = plan["separation"], plan.n_records
    clip = Separation.bound(query.mechanism.norm)
    both, place, sign = engine.answer(query, Separation(rows, w, clip)) / n
    place, sign = np.clip((place / ASIDE, sign / ASIDE), -0.9, 0.9)
    apart = float((both - place * sign) / (1 - sign**2))
    noise = query.noise_std(clip) / n * math.hypot(1, sign / ASIDE, place / ASIDE)
    # Where classes do not differ, places of length 1 put n people up to 1 / sqrt(n) apart, and w was fitted
    # to the same people: d / n of R^2, give or take sqrt(2 d) / n.
    of_people = n * (1 - sign**2)
    fitted = (len(w) + LUCK * math.sqrt(2 * len(w))) / of_people
    by_luck = LUCK * math.hypot(noise / (1 - sign**2), of_people**-0.5) + fitted
    return apart, 1 - (by_luck / apart) ** 2 if apart > by_luck else 0.0


def blended(w: FloatArray, columns: Columns, separation: float, trusted: float) -> FloatArray:
    """One square metric: what is trusted of the direction, and Euclid; people's mean square is 1 in both.

    In least squares of t = +-1 the values w.z have a variance of R^2 and put the classes 2 R^2 apart.
    """
    euclid = np.eye(len(w)) / math.sqrt(columns.spread)
    if trusted == 0:
        return euclid
    learned = w * columns.factors / math.sqrt(max(separation, LEAST_SEPARATION))
    part = (1 - LEAST_EUCLID) * trusted
    return leading(np.vstack([math.sqrt(part) * learned, math.sqrt(1 - part) * euclid]))
