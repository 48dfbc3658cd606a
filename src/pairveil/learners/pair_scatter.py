"""A metric from second moments of labelled pairs: two releases, everything else is post-processing.

After a survey that puts columns on one scale, one sum is released: how many pairs are similar and dissimilar,
and the second moments of their differences. From those: generalised eigenvectors of dissimilar against
similar ones (LDA-like), or the difference of the inverses (KISSME), drawn together by as much as noise and
sampling explain (docs/theory/people.md, 'From pairs').
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.engine.statistics import Labels, Statistic, row_norms, shrink
from pairveil.errors import InputError
from pairveil.learners.contrastive.recipe import take_survey
from pairveil.learners.scatter_moments import (
    MOST_FEATURES,
    dense_rows,
    leading,
    moment_norms,
    shrunk,
)
from pairveil.privacy.grid import Norm

Method = Literal["lda", "kissme"]
Moments = Literal["full", "diagonal"]
METHODS: tuple[str, ...] = get_args(Method)

SURVEY_SHARE = 0.1
WEIGHTS = (0.05**0.5, 0.95**0.5)
"""Of counts and second moments in one contribution; their squares add up to 1."""
REACH = 1.3  # typical lengths after which a difference is shortened
LEAST_EUCLID = 0.05
TRUST_POWER = 0.5
CHANCE = 0.5  # of what sampling gives eigenvalues, counted against them
_TINY = 1e-12


@dataclass(frozen=True)
class PairMoments(Statistic):
    """Counts and second moments of similar and of dissimilar pairs.

    A pair's contribution is ``(a e_y, c e_y S(z))``: z is its scaled difference, brought to length 1 at most,
    e_y the indicator of its label, and S(z) the upper triangle of z z^T, off the diagonal times sqrt(2), or
    z^2. ||S(z)|| <= ||z||^2 <= 1 in l2 and in l1, so a pair's contribution is at most `bound` long. A pair
    without difference is null and counts as nothing.

    Parameters
    ----------
    diagonal : bool
        z^2 alone.
    clip : float
        `bound` of the query's norm.
    scale : array of shape (d,), optional
    """

    n_features: int
    diagonal: bool
    clip: float
    scale: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """For each label a count and the moments."""
        return (2, 1 + entries(self.n_features, self.diagonal))

    @staticmethod
    def bound(norm: Norm) -> float:
        """Largest norm of a contribution."""
        return float(sum(WEIGHTS)) if norm == "l1" else math.sqrt(sum(w * w for w in WEIGHTS))

    def tile_sum(self, differences: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the contributions; the last `shrink` only guards against rounding."""
        z = dense_rows(differences)
        lengths = row_norms(z, norm)
        z = z * shrink(lengths, 1.0)[:, None]
        a, c = WEIGHTS
        second = c * (row_norms(z * z, norm) if self.diagonal else moment_norms(z, norm))
        together = a + second if norm == "l1" else np.sqrt(a * a + second**2)
        factor = shrink(together, self.clip) * (lengths > _TINY)
        total = np.zeros(self.shape)
        for row, chosen in enumerate((labels > 0, labels < 0)):
            weights = factor * chosen
            total[row, 0] = a * weights.sum()
            if self.diagonal:
                total[row, 1:] = c * (weights @ (z * z))
            else:
                moments = z.T @ (weights[:, None] * z)
                upper = np.triu_indices(self.n_features)
                total[row, 1:] = moments[upper] * np.where(
                    upper[0] == upper[1], c, c * math.sqrt(2)
                )
        return total

    def parted(self, answer: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Counts (2,) and second moments (2, d, d) of a noisy sum, in plain units."""
        a, c = WEIGHTS
        d = self.n_features
        matrices = np.zeros((2, d, d))
        for matrix, row in zip(matrices, answer[:, 1:] / c, strict=True):
            if self.diagonal:
                matrix[np.diag_indices(d)] = row
                continue
            upper = np.triu_indices(d)
            matrix[upper] = row / np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
            matrix += np.triu(matrix, 1).T
        return answer[:, 0] / a, matrices


def entries(n_features: int, diagonal: bool) -> int:
    """Second moments of so many columns.

    Examples
    --------
    >>> entries(30, False), entries(30, True)
    (465, 30)
    """
    return n_features if diagonal else n_features * (n_features + 1) // 2


@dataclass(frozen=True)
class PairScatterRecipe:
    """Two queries, and a metric made of the second.

    Parameters
    ----------
    method : {'lda', 'kissme'}
    moments : {'full', 'diagonal'}
    n_components : int or None
        None returns the whole metric, blended with Euclid; a number its leading directions.
    """

    method: str = "lda"
    moments: str = "full"
    n_components: int | None = None
    headline: str = "pair moments"

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """The survey first, then the moments."""
        d, diagonal = setting.n_features, self.moments == "diagonal"
        if d > MOST_FEATURES:
            raise InputError(
                f"second moments take at most {MOST_FEATURES} features; got {d}: project them with a "
                "public projection first, or learn with DPPMetricLearner"
            )
        return (
            Ask("survey", (d + 2,), SURVEY_SHARE),
            Ask("pair moments", (2, 1 + entries(d, diagonal)), 1 - SURVEY_SHARE),
        )

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {"n_components": self.n_components, "method": self.method, "moments": self.moments}

    def run(self, plan: Plan, engine: Engine) -> FloatArray:
        """Ask both, and make a metric of the answers."""
        balance = take_survey(plan, engine)
        query = plan["pair moments"]
        norm, d = query.mechanism.norm, plan.n_features
        clip = PairMoments.bound(norm)
        # In l1 a row as long as a typical one in l2 is sqrt(d) times longer.
        scale = balance.scale / (REACH * (math.sqrt(d) if norm == "l1" else 1.0))
        statistic = PairMoments(d, self.moments == "diagonal", clip, scale)
        counts, sums = statistic.parted(engine.answer(query, statistic))
        found = Scatters(counts, sums, query.noise_std(clip), plan.n_records)
        learned, trust = learn(found, self.method)
        learned = learned * scale
        if self.n_components is not None:
            return learned[: self.n_components]
        blend = 1 - (1 - LEAST_EUCLID) * trust**TRUST_POWER
        euclid = np.eye(d) / balance.length
        return leading(np.vstack([math.sqrt(1 - blend) * learned, math.sqrt(blend) * euclid]))


class Scatters(NamedTuple):
    """What was released: pairs of each label, sums of their second moments, noise on a weighted entry."""

    counts: FloatArray
    sums: FloatArray
    noise: float
    n_pairs: int

    @property
    def sizes(self) -> FloatArray:
        """Pairs of each label, at least a twentieth of all."""
        return np.maximum(self.counts, max(1.0, 0.05 * self.n_pairs))


def learn(found: Scatters, method: str) -> tuple[FloatArray, float]:
    """Rows of a metric, by most weight, with typical squared distance 1, and the trust in it.

    Examples
    --------
    >>> sums = np.array([np.diag([1.0, 9.0]), np.diag([90.0, 10.0])])
    >>> rows, trust = learn(Scatters(np.array([100.0, 100.0]), sums, 0.0, 200), "lda")
    >>> bool(abs(rows[0, 0]) > 10 * abs(rows[0, 1])), trust > 0.9
    (True, True)
    """
    similar, dissimilar = found.sums / found.sizes[:, None, None]
    noise = found.noise / WEIGHTS[1] / found.sizes
    values, basis = np.linalg.eigh(similar)
    solid = _solid(values, float(noise[0]), float(found.sizes[0]))
    whiten = basis / np.sqrt(solid)  # columns: differences of similar pairs have unit spread
    apart = whiten.T @ (dissimilar - similar) @ whiten
    strength, mix = np.linalg.eigh((apart + apart.T) / 2)
    strength, mix = strength[::-1], mix[:, ::-1]
    edge = _edge(noise, solid, found.sizes)
    trusted = np.clip(1 - (edge / np.maximum(strength, _TINY)) ** 2, 0.0, 1.0)
    if method == "lda":
        weights, vectors = trusted * np.maximum(strength, 0.0), whiten @ mix
        rows = np.sqrt(weights)[:, None] * vectors.T
    else:
        others, other = np.linalg.eigh(dissimilar)
        wide = _solid(others, float(noise[1]), float(found.sizes[1]))
        rows = _root((basis / solid) @ basis.T - (other / wide) @ other.T)
    typical = float(np.trace(rows @ (similar + dissimilar) @ rows.T)) / 2
    return rows / math.sqrt(max(typical, _TINY)), float(trusted[0])


def _edge(noise: FloatArray, solid: FloatArray, sizes: FloatArray) -> float:
    """The largest eigenvalue that noise and sampling alone give the whitened difference."""
    d = len(solid)
    by_noise = math.hypot(*noise) * math.sqrt(2 * d) * float(np.mean(1 / solid))
    return by_noise + CHANCE * math.sqrt(d * float(np.sum(1 / sizes)))


def _solid(values: FloatArray, noise: float, size: float) -> FloatArray:
    """Eigenvalues of second moments, shrunk, with the largest of pure noise added: what is divided by them
    stays small where they are not known."""
    return shrunk(values, noise, round(size))[0] + noise * math.sqrt(2 * len(values))


def _root(matrix: FloatArray) -> FloatArray:
    """Rows R with R^T R the positive part of a symmetric matrix, most weight first."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    rows: FloatArray = np.sqrt(np.maximum(values[::-1], 0.0))[:, None] * vectors[:, ::-1].T
    return rows
