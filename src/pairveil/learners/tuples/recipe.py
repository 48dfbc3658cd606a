"""How a metric is learned from noisy sums over tuples.

1. *Survey*: how differences spread over the columns, how long they are, how many tuples speak. Columns are
   put on one scale.
2. *Contrast*: in which directions negatives are further from the anchor than positives: one symmetric
   matrix. Its leading directions, drawn to zero by what noise alone would make of them, are the start.
3. *Descent*: clipped full-batch steps on the loss, shrunk against the noise; the second half is averaged.

Everything between two answers is post-processing of released numbers and public ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.engine.engine import Engine
from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import TupleLoss
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.errors import InputError
from pairveil.learners.scatter_moments import (
    scale_of,
    shrink_columns,
    shrink_singular_values,
    with_euclid,
)
from pairveil.learners.tuples.statistics import TupleContrast, TupleSurvey, triangle, unpacked

MOST_FEATURES = 1024
"""The contrast of more columns than this is too many numbers to release."""
SHARES = {"survey": 0.1, "contrast": 0.35, "gradients": 0.55}
SIDE = 0.5  # weight of the survey's length and count beside the columns
DIRECTIONS = 10
CONTRAST_CLIP = 0.5
CLIP = 0.3
N_STEPS, N_STEPS_PURE, N_STEPS_WITHOUT_NOISE = 30, 8, 60
START_LENGTH = 2.0
LEAST_TRUST = 0.3  # in the start, of a direction that does not stand out of the noise
TOTAL_STEP = 60.0  # summed step sizes, in units of the clip bound, at most
STEP_PER_SIGNAL = 2.5
SHRINKAGE = 0.5  # of what noise alone would add to a singular value, and to a column
TYPICAL_DISTANCE = 0.6
BLEND = (0.05, 0.65)  # weight of Euclid beside one direction, and beside many
TRUST_POWER = 0.35  # how fast what was learned gains weight as it stands out of the noise
L1_PER_L2 = 0.5  # clip in l1 relative to sqrt(entries) times the clip in l2


class Stage(NamedTuple):
    """What the survey says: scale of the columns, typical length of a difference, tuples that speak."""

    scale: FloatArray
    length: float
    mass: float


@dataclass(frozen=True)
class TupleRecipe:
    """Survey, contrast and descent.

    Parameters
    ----------
    size : int
        Members of a tuple.
    n_components : int or None
        Rows asked for; None learns few directions and blends them with Euclid.
    n_steps : int or None
        None follows the public rule.
    """

    loss: TupleLoss
    size: int
    n_components: int | None = None
    n_steps: int | None = None
    max_grad_norm: float | None = None
    headline: str = "gradients"

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """Three queries, in fixed shares of the budget."""
        d = setting.n_features
        if d > MOST_FEATURES:
            raise InputError(
                f"tuples take at most {MOST_FEATURES} features; got {d}: project them with a public "
                "projection first"
            )
        usual = N_STEPS_PURE if setting.mechanism.is_pure else N_STEPS
        if not setting.budget.is_private:
            usual = N_STEPS_WITHOUT_NOISE
        return (
            Ask("survey", (d + 2,), SHARES["survey"]),
            Ask("contrast", (triangle(d),), SHARES["contrast"]),
            Ask("gradients", (self._rows(d), d), SHARES["gradients"], self.n_steps or usual),
        )

    def _rows(self, d: int) -> int:
        return self.n_components or min(d, DIRECTIONS)

    def options(self) -> dict[str, Any]:
        """Public parameters, for the certificate."""
        return {
            "loss": self.loss.name,
            "margin": getattr(self.loss, "margin", None),
            "members": self.size,
            "n_components": self.n_components,
            "max_grad_norm": "auto" if self.max_grad_norm is None else self.max_grad_norm,
        }

    def run(self, plan: Plan, engine: Engine) -> FloatArray:
        """The components of a metric, array of shape (n_components, n_features)."""
        stage = take_survey(plan, engine, self.size)
        W, trust = find_start(plan, engine, stage, self.size, self._rows(plan.n_features))
        W, heard = self._descend(plan, engine, stage, W)
        learned = W * stage.scale / TYPICAL_DISTANCE
        if self.n_components is not None:
            return learned
        blend = blend_of(W, max(trust, heard))
        return with_euclid(math.sqrt(1 - blend) * learned, math.sqrt(blend) / stage.length)

    def _descend(
        self, plan: Plan, engine: Engine, stage: Stage, W: FloatArray
    ) -> tuple[FloatArray, float]:
        """Clipped noisy steps, shrunk and averaged; and how much of the answers is more than noise."""
        query, (k, d) = plan["gradients"], W.shape
        clip, width = self.max_grad_norm or CLIP, l1_width(plan, "gradients")
        noise = query.noise_std(width) / math.sqrt(
            query.steps
        )  # of all steps, in units of the clip
        total = TOTAL_STEP
        if noise > 0:
            total = min(total, STEP_PER_SIGNAL * stage.mass / (noise * math.sqrt(d * k)))
        step = total / query.steps
        faded = step * SHRINKAGE * noise / stage.mass
        average, asked = np.zeros_like(W), np.zeros_like(W)
        for t in range(query.steps):
            gradient = SetGradient(W, self.loss, clip * width, scale=stage.scale, size=self.size)
            answer = engine.answer(query, gradient)
            W, asked = W - step / (stage.mass * clip) * answer, asked + answer
            if faded > 0:
                W = shrink_singular_values(W, faded * (math.sqrt(d) + math.sqrt(k)))
                W = shrink_columns(W, faded * math.sqrt(k))
            if t >= query.steps // 2:
                average += W
        # What noise alone would make of the summed answers, against what they are.
        alone = W.size * query.steps * query.noise_std(clip * width) ** 2
        heard = max(0.0, 1 - alone / max(float((asked**2).sum()), 1e-300))
        return average / (query.steps - query.steps // 2), heard


def take_survey(plan: Plan, engine: Engine, size: int) -> Stage:
    """Ask how differences spread; put columns on one scale."""
    query, d, n = plan["survey"], plan.n_features, plan.n_records
    longest, clip = 2 * plan.data_norm, TupleSurvey.bound(SIDE, query.mechanism.norm)
    found = engine.answer(query, TupleSurvey(d, size, longest, SIDE, clip))
    noise = query.noise_std(clip)
    spread = found[:d]
    mass = float(min(max(found[d + 1] / SIDE, 0.02 * n, noise / SIDE), n))
    length = longest * float(np.clip(found[d] / SIDE / mass, 0.1, 1.0)) ** 2
    return Stage(scale_of(spread, noise, length), length, mass)


def find_start(
    plan: Plan, engine: Engine, stage: Stage, size: int, k: int
) -> tuple[FloatArray, float]:
    """Ask for the contrast; its leading directions, by how far they stand out of the noise.

    Returns them with the trust in the first, from 0 to 1.
    """
    query, d = plan["contrast"], plan.n_features
    clip = CONTRAST_CLIP * l1_width(plan, "contrast")
    answer = engine.answer(query, TupleContrast(d, size, clip, stage.scale))
    values, vectors = np.linalg.eigh(unpacked(answer, d))
    leading, directions = np.maximum(values[::-1][:k], 1e-9), vectors[:, ::-1][:, :k].T
    # The largest eigenvalue of noise alone: a symmetric matrix, sigma / sqrt(2) off the diagonal.
    edge = query.noise_std(clip) * math.sqrt(2 * d)
    trust = np.clip(1 - (edge / leading) ** 2, 0.0, 1.0)
    W = np.sqrt(leading * np.maximum(trust, LEAST_TRUST))[:, None] * directions
    # A direction and its opposite are one metric: the largest entry of a row is made positive.
    largest = np.take_along_axis(W, np.abs(W).argmax(axis=1)[:, None], axis=1)
    W = W * np.where(largest < 0, -1.0, 1.0)
    return W * (START_LENGTH / np.linalg.norm(W)), float(trust[0])


def l1_width(plan: Plan, name: str) -> float:
    """Clip bound in the mechanism's norm, relative to the one in l2."""
    query = plan[name]
    if query.mechanism.norm == "l2":
        return 1.0
    return max(1.0, L1_PER_L2 * math.sqrt(query.n_entries))


def blend_of(W: FloatArray, trust: float) -> float:
    """Weight of Euclid: little where one direction says it all, more where many share it or none is trusted.

    Examples
    --------
    >>> [round(blend_of(W, 1.0), 2) for W in (np.eye(1, 3), np.eye(3))]
    [0.05, 0.45]
    """
    squares = np.linalg.svd(W, compute_uv=False) ** 2
    total = float(squares.sum())
    if total <= 0:
        return 1.0
    shared = 1 - float((squares**2).sum()) / total**2  # 0: one direction; 1 - 1/k: k equal ones
    least, most = BLEND
    return float(1 - trust**TRUST_POWER * (1 - (least + (most - least) * shared)))
