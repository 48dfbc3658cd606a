"""How a metric is learned from groups: the same steps as from pairs, every sum over groups.

Survey, descent and contest are those of `pairveil.learners.contrastive.recipe`; what differs is that a record
is a group, whose contribution is the mean over its pairs (docs/theory/groups.md). Directions start at random
(with a public seed), because many classes lie across columns and not along them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.engine.engine import Engine
from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.learners.contrastive.group_statistics import GroupContest, GroupSurvey
from pairveil.learners.contrastive.recipe import (
    MARGIN,
    NUMBERS,
    Balance,
    Survey,
    descent_noise,
    l1_width,
    usual_steps,
)
from pairveil.learners.matrices import (
    scale_of,
    shrink_columns,
    shrink_singular_values,
    with_euclid,
)
from pairveil.privacy.mechanisms import Sampling

SHARES = {"survey": 0.13, "gradients": 0.79, "contest": 0.08}
CLIP = (0.03, 0.4)  # of a group of one pair, at little and at much signal; falls with sqrt(pairs)
CLEAR = 300.0  # signal at which the second of them holds
STEP_PER_SIGNAL = (2.5, 8.0)
TOTAL_STEP_WITHOUT_NOISE = 400.0  # further steps fit the people at hand and no others
SHRINKAGE = 0.5
BLEND = (0.25, 0.05)  # of Euclid, beside what was learned: for many classes, for two
MANY_CLASSES = 0.35  # share of similar pairs below which there are more than two
CONTEST_CLIP = 0.1  # of the difference of two AUCs inside a group
DEMAND, LUCK = 2.0, 1.4  # standard deviations of noise and of chance by which a contest is won
PAIRS_THAT_SPEAK = 28.0
TYPICAL_DISTANCE = 0.6
TOTAL_STEP, MAX_STEP = 1000.0, 20.0  # in units of the clip bound, at most
START_SEED = 0
USUAL_SHARE = 0.3  # of similar pairs, where the number of classes is not known


@dataclass(frozen=True)
class GroupRecipe:
    """The contrastive learner on groups: survey, descent and contest.

    Parameters
    ----------
    size, n_groups : int
        Most people of a group, and groups. Public.
    n_classes : int or None
        The public number of classes, where people have one each: one direction fewer is learned.
    n_components, margin, max_grad_norm, learning_rate, n_steps, sampling, sample_rate
        As in `pairveil.learners.contrastive.recipe.ContrastiveRecipe`.
    """

    size: int
    n_groups: int
    n_classes: int | None = None
    n_components: int | None = None
    margin: float = MARGIN
    max_grad_norm: float | None = None
    learning_rate: float | None = None
    n_steps: int | None = None
    sampling: Sampling = "poisson"
    sample_rate: float = 1.0
    headline: str = "gradients"

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """Shares of the budget; the contest's go to the descent where Euclid has no room."""
        d, shares = setting.n_features, dict(SHARES)
        if self.n_components is not None:
            shares["gradients"] += shares.pop("contest")
        descent = (self.n_steps or usual_steps(setting), self.sampling, self.sample_rate)
        shapes = {
            "survey": (d + 2,),
            "gradients": (self._rows(d), d),
            "contest": (1,),
        }
        return tuple(
            Ask(name, shapes[name], share, *(descent if name == "gradients" else ()))
            for name, share in shares.items()
        )

    def _rows(self, n_features: int) -> int:
        if self.n_components is not None:
            return min(n_features, self.n_components)
        most = min(n_features, NUMBERS.directions)
        return most if self.n_classes is None else min(most, max(2, self.n_classes - 1))

    def options(self) -> dict[str, Any]:
        """Public parameters, for the certificate."""
        return {
            "n_components": self.n_components,
            "group_size": self.size,
            "n_groups": self.n_groups,
            "n_classes": self.n_classes,
            "margin": self.margin,
            "max_grad_norm": "auto" if self.max_grad_norm is None else self.max_grad_norm,
            "learning_rate": "auto" if self.learning_rate is None else self.learning_rate,
        }

    def run(self, plan: Plan, engine: Engine) -> FloatArray:
        """The components of a metric, array of shape (n_components, n_features)."""
        balance = take_survey(plan, engine, self.n_classes)
        W = self._descend(plan, engine, balance)
        blend = self._hold_contest(plan, engine, balance, W) if "contest" in plan else 0.0
        learned = W * balance.scale / TYPICAL_DISTANCE
        if self.n_components is not None:
            return learned
        return with_euclid(math.sqrt(1 - blend) * learned, math.sqrt(blend) / balance.length)

    def _descend(self, plan: Plan, engine: Engine, balance: Balance) -> FloatArray:
        """Clipped noisy steps on the contrastive loss, shrunk against the noise, averaged."""
        query, d, k = plan["gradients"], plan.n_features, self._rows(plan.n_features)
        noise, batch = descent_noise(plan, k), query.sample_rate * plan.n_records
        signal = signal_of(plan, k)
        clip = self.max_grad_norm or _clip(signal, self.size)
        step = self.learning_rate or min(MAX_STEP, _total_step(signal, k) / query.steps)
        faded = step * SHRINKAGE * noise / batch
        W = np.random.default_rng(START_SEED).normal(size=(k, d))  # public: the same for everyone
        W *= NUMBERS.start_length / np.linalg.norm(W)
        average, counted = np.zeros_like(W), 0
        for t in range(query.steps):
            bound = clip * l1_width(plan, k)
            gradient = SetGradient(
                W, ContrastiveLoss(self.margin), bound, balance.weights, balance.scale, self.size
            )
            W = W - step / (batch * clip) * engine.answer(query, gradient)
            if faded > 0:
                W = shrink_singular_values(W, faded * (math.sqrt(d) + math.sqrt(k)))
                W = shrink_columns(W, faded * math.sqrt(k))
            if t + 1 > query.steps // 2:
                average, counted = average + W, counted + 1
        return average / counted

    def _hold_contest(self, plan: Plan, engine: Engine, balance: Balance, W: FloatArray) -> float:
        """Weight of Euclid in the metric: little if the learned metric orders the pairs better, else 1."""
        blend = BLEND[0] if balance.share < MANY_CLASSES else BLEND[1]
        query = plan["contest"]
        learned = (1 - blend, W / TYPICAL_DISTANCE)
        euclid = (blend, 1 / (balance.scale * balance.length))
        contest = GroupContest(learned, euclid, CONTEST_CLIP, balance.scale)
        score = engine.answer(query, contest)[0]
        # The same groups taught the metric: it must win by more than the luck of so many groups, too.
        # Of few pairs most groups order the same under both metrics, and say nothing.
        speak = min(1.0, _pairs(self.size) / PAIRS_THAT_SPEAK)
        luck = CONTEST_CLIP * math.sqrt(plan.n_records * speak)
        needed = math.hypot(DEMAND * query.noise_std(CONTEST_CLIP), LUCK * luck)
        return blend if score > needed else 1.0


def take_survey(plan: Plan, engine: Engine, n_classes: int | None = None) -> Balance:
    """Ask how differences inside groups spread; put columns on one scale and pairs on balanced weights.

    C classes of like size make one pair in C similar: the noisy share is drawn to that.
    """
    query, longest = plan["survey"], 2 * plan.data_norm
    clip = Survey.bound(query.mechanism.norm)
    found = engine.answer(query, GroupSurvey(plan.n_features, longest, clip))
    d, n, noise = plan.n_features, plan.n_records, query.noise_std(clip)
    length = longest * float(np.clip(found[d] / n, 0.1, 1.0)) ** 2
    scale = scale_of(found[:-2], noise, length)
    usual = USUAL_SHARE if n_classes is None else 1 / n_classes
    share = float(drawn_to(found[d + 1] / n, usual, usual / 2, noise / n))
    share = min(max(share, 0.02), 0.98)
    weights = (min(1.0, (1 - share) / share), min(1.0, share / (1 - share)))
    return Balance(scale, length, share, weights, float(n))


def signal_of(plan: Plan, k: int) -> float:
    """Groups, over the length of the noise in one direction; infinite without noise."""
    noise = descent_noise(plan, k)
    batch = plan["gradients"].sample_rate * plan.n_records
    return batch / (noise * math.sqrt(plan.n_features)) if noise > 0 else math.inf


def drawn_to(found: Any, usual: Any, spread: Any, noise: float) -> FloatArray:
    """Released numbers, drawn to usual ones by as much as their noise exceeds the spread of those.

    Examples
    --------
    >>> drawn_to(0.3, usual=0.1, spread=0.05, noise=0.05).round(3)
    np.float64(0.2)
    """
    usual, spread = np.asarray(usual, dtype=np.float64), np.asarray(spread, dtype=np.float64)
    kept = spread**2 / (spread**2 + noise**2)
    mixed: FloatArray = usual + kept * (found - usual)
    return mixed


def _total_step(signal: float, k: int) -> float:
    """Summed step sizes: as far as the signal carries, not as far as the noise would."""
    if math.isinf(signal):
        return TOTAL_STEP_WITHOUT_NOISE
    return min(TOTAL_STEP, float(np.clip(signal, *STEP_PER_SIGNAL)) * signal / math.sqrt(k))


def _clip(signal: float, size: int) -> float:
    """A mean over pairs is shorter the more pairs there are, and the clip bound with it."""
    return float(np.clip(CLIP[1] * signal / CLEAR, *CLIP)) / math.sqrt(_pairs(size))


def _pairs(size: int) -> float:
    return size * (size - 1) / 2
