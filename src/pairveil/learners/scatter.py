"""A metric from statistics of people with classes.

Two sums over people are released: means and second moments of the columns, from which the columns are scaled
(`class_columns`; where noise would hide them, after a noisy choice of one of them), and then counts, sums and
second moments of the scaled rows by class. The metric (whitened directions between
the classes, shrunk against the noise that was added and against sampling error, with some Euclid blended in)
is post-processing. What a person can move is proved in docs/theory/people.md.
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
from pairveil.errors import InputError
from pairveil.learners.class_columns import Columns, ask_columns, find_columns
from pairveil.learners.scatter_moments import (
    MOST_FEATURES,
    dense_rows,
    leading,
    moment_norms,
    shrunk,
)
from pairveil.privacy.grid import Norm

Numbers = NDArray[np.int32]

WEIGHTS = (0.06**0.5, 0.56**0.5, 0.38**0.5)
"""Of counts, class sums and second moments in one contribution; their squares add up to 1."""
LEAST_EUCLID = 0.07
"""Part of the Euclidean metric that is blended in even where nothing is noisy."""
LUCK = 2.0
"""Standard deviations by which a direction must exceed what noise and sampling give it by chance."""
LUCK_OF_ALL = 3.0
"""The same for all directions together."""
_TINY = 1e-12


@dataclass(frozen=True)
class ClassScatter(Statistic):
    """Counts and sums by class, and second moments of all, of rows that are centred, scaled and shortened.

    A person's contribution is ``(a e_c, b z e_c, c S(z))``: z is her row, moved, scaled and brought to length
    1 at most, e_c the indicator of her class and S(z) the upper triangle of z z^T, off the diagonal times
    sqrt(2), so that ||S(z)|| = ||z||^2. Somebody without a class contributes nothing.

    Parameters
    ----------
    centre, factors : arrays of shape (n_features,)
        Public or released: ``z = (x - centre) * factors``.
    clip : float
        `bound` of the query's norm.
    """

    n_classes: int
    centre: FloatArray
    factors: FloatArray
    clip: float

    @property
    def shape(self) -> tuple[int, ...]:
        """One long vector: counts, sums, second moments."""
        return (entries(self.n_classes, len(self.centre)),)

    @staticmethod
    def bound(norm: Norm) -> float:
        """Largest norm of a contribution, as ||z|| <= 1 makes ||S(z)|| <= 1."""
        return float(sum(WEIGHTS)) if norm == "l1" else math.sqrt(sum(w * w for w in WEIGHTS))

    def tile_sum(self, rows: Any, classes: Numbers, norm: Norm) -> FloatArray:  # type: ignore[override]
        """Sum of the contributions; the last `shrink` only guards against rounding."""
        z = (dense_rows(rows) - self.centre) * self.factors
        z = z * shrink(row_norms(z, norm), 1.0)[:, None]
        a, b, c = WEIGHTS
        first, second = b * row_norms(z, norm), c * moment_norms(z, norm)
        together = a + first + second if norm == "l1" else np.sqrt(a * a + first**2 + second**2)
        factor = shrink(together, self.clip) * (classes >= 0)
        indicator = (classes[:, None] == np.arange(self.n_classes)) * factor[:, None]
        moments = z.T @ (factor[:, None] * z)
        upper = np.triu_indices(len(self.centre))
        widened = np.where(upper[0] == upper[1], c, c * math.sqrt(2.0))
        return np.concatenate(
            [a * indicator.sum(axis=0), b * (indicator.T @ z).ravel(), widened * moments[upper]]
        )

    def parted(self, answer: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Counts, class sums (n_classes, d) and second moments (d, d) of a noisy sum, in plain units."""
        k, d = self.n_classes, len(self.centre)
        a, b, c = WEIGHTS
        upper = np.triu_indices(d)
        moments = np.zeros((d, d))
        moments[upper] = answer[k + k * d :] / np.where(upper[0] == upper[1], c, c * math.sqrt(2.0))
        whole = moments + np.triu(moments, 1).T
        return answer[:k] / a, answer[k : k + k * d].reshape(k, d) / b, whole


def entries(n_classes: int, n_features: int) -> int:
    """Numbers in the class statistics.

    Examples
    --------
    >>> entries(2, 30)
    527
    """
    return n_classes * (1 + n_features) + n_features * (n_features + 1) // 2


@dataclass(frozen=True)
class ScatterRecipe:
    """Statistics of people, and a discriminant metric made of them.

    Parameters
    ----------
    n_classes : int
        Public.
    n_components : int or None
        None returns the whole blended metric, a number its leading directions.
    """

    n_classes: int
    n_components: int | None = None
    headline = "class statistics"

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """The columns first, where noise would hide them with a choice of one, then the class statistics."""
        d = setting.n_features
        if d > MOST_FEATURES:
            raise InputError(
                f"class statistics take at most {MOST_FEATURES} features; got {d}: project them with a "
                "public projection first, or learn from pairs (design_pairs, fit)"
            )
        first = ask_columns(setting, self.n_classes)
        rest = 1 - sum(ask.share for ask in first)
        return (*first, Ask("class statistics", (entries(self.n_classes, d),), rest))

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {"n_components": self.n_components, "n_classes": self.n_classes}

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
        if self.n_components is not None:
            metric = metric[: self.n_components]
        return metric / plan.data_norm


def radius(noise: float) -> float:
    """Where rows are shortened, in typical lengths: the more noise, the nearer to directions alone.

    ``noise``: length of the noise on a mean over all people, for contributions of length 1.

    Examples
    --------
    >>> [round(radius(noise), 2) for noise in (0.0, 0.003, 1.0)]
    [1.2, 0.82, 0.4]
    """
    return 0.4 + 0.8 * float(np.clip(math.log10(0.01 / max(noise, 1e-9)), 0.0, 1.0))


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

    Parameters
    ----------
    counts, sums, moments : arrays of shape (k,), (k, d), (d, d)
        Of rows z = (u - mean) * factors.
    n : int
        People.
    noise : float
        Standard deviation of the noise on each weighted entry.

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
    trusted = np.clip(1 - (1 + LUCK * varies) * (mix**2).T @ expected / strength, 0.0, 1.0)
    # All directions together stand out sooner than one, and where they do not none is worth anything. Seen
    # before whitening, which leans on the same noise.
    others = part * (1 - part)
    each = float(others @ blur**2) + float(np.sum(others / sizes)) * (solid - floor)
    beyond = float(np.sum(away**2) / each.sum()) - 1
    chance = LUCK_OF_ALL * math.sqrt(2 * float(each @ each) / (k - 1)) / float(each.sum())
    stands_out = 1 - (chance / beyond) ** 2 if beyond > chance else 0.0
    euclid = np.eye(d) / math.sqrt(columns.spread)
    if stands_out == 0 or not np.any(trusted > 0):
        return euclid
    directions = (mix.T @ whitened) / np.sqrt(strength)[:, None]
    learned = np.sqrt(trusted)[:, None] * directions / np.sqrt(solid) @ basis.T
    # Directions of unit length after whitening: people's mean squared distance is their number.
    learned = learned / math.sqrt(float(trusted.sum())) * columns.factors
    share = (1 - LEAST_EUCLID) * stands_out
    return leading(np.vstack([math.sqrt(share) * learned, math.sqrt(1 - share) * euclid]))
