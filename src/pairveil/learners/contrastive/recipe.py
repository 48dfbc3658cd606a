"""How a metric is learned from noisy sums.

1. *Survey*: how the columns spread, how long differences are, how many pairs are similar. Columns are
   put on one scale, pairs on balanced weights.
2. *Signal*: which columns differ more between dissimilar pairs. The strongest start the directions; how
   many stand out of the noise decides their number. Where noise would drown it, one noisy choice of a column.
3. *Descent*: clipped full-batch steps on the loss. Each step shrinks singular values and columns by half of
   what noise and sampling error alone would add to them; the second half of the iterates is averaged.
4. *Contest*: the learned metric, with a little of Euclid in it, and Euclid itself are compared on the
   pairs. With little signal Euclid stays unless it is beaten, and a win that luck could explain leaves a good
   half of it: this is what does no harm.

Everything between two answers is post-processing of released numbers and public ones.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.engine.engine import Engine
from pairveil.engine.gradients import LossGradient
from pairveil.engine.losses import LOSSES
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.errors import DataWarning
from pairveil.learners.contrastive import start
from pairveil.learners.contrastive.column_scores import THRESHOLDS
from pairveil.learners.contrastive.defaults import (
    MARGIN,
    MARGIN_SHARE,
    divide,
    starts_by_choice,
    usual_steps,
)
from pairveil.learners.contrastive.doubt import doubt, few, lost, refuted
from pairveil.learners.contrastive.start import Balance
from pairveil.learners.contrastive.statistics import (
    Candidates,
    Contest,
    DissimilarDistances,
    DistanceMoments,
)
from pairveil.privacy.mechanisms import Sampling

TOTAL_STEP = 1000.0  # summed step sizes, in units of the clip bound, at most
SAMPLING = 0.3  # part of their clip bound by which pairs differ from each other by chance
STEP_PER_SIGNAL = 2.5
MAX_STEP = 20.0
SHRINKAGE = 0.5  # of what noise (and sampling) would add to a singular value, and to a column
CLIP = (0.05, 0.2, 0.4)  # from few pairs, from many, at much signal
MUCH_SIGNAL = 240.0  # signal to noise at which gradients are clipped least
TYPICAL_DISTANCE = 0.6
MOST_SHRINKINGS = 100  # from twice as many steps on, steps share them: one costs many small batches
BLEND = (0.03, 0.3)  # weight of Euclid beside what was learned: at much signal, at little
WIDE = 4096  # columns above which no square matrix is formed, so none is Euclid's
DROWNED = 0.07  # error of the moments from which on ranks made of them say nothing
L1_PER_L2 = 0.5  # clip in l1 relative to sqrt(entries) times the clip in l2


@dataclass(frozen=True)
class ContrastiveRecipe:
    """The contrastive learner: survey, signal, descent and contest.

    Parameters
    ----------
    n_components : int or None
        Rows asked for; None learns few directions and blends them with Euclid.
    margin : float or 'private'
        Distance beyond which dissimilar pairs are left alone; 'private' asks for their mean distance.
    max_grad_norm, learning_rate : float or None
        None follows the public rule.
    n_steps : int or None
    sampling, sample_rate
        Of the descent; everything else is asked of all pairs.
    loss : str
        One of `pairveil.engine.losses.LOSSES`.
    """

    n_components: int | None = None
    margin: float | Literal["private"] = MARGIN
    max_grad_norm: float | None = None
    learning_rate: float | None = None
    n_steps: int | None = None
    sampling: Sampling = "poisson"
    sample_rate: float = 1.0
    loss: str = "contrastive"
    headline: str = "gradients"

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """Shares of the budget; the contest's go to the descent where Euclid has no room."""
        d, by_choice = setting.n_features, self.chooses(setting)
        shares = divide(setting, by_choice=by_choice)
        if self.n_components is not None:
            spare = shares.moments + shares.contest
            shares = shares._replace(gradients=shares.gradients + spare, moments=0.0, contest=0.0)
        taken = MARGIN_SHARE if self.margin == "private" else 0.0
        steps = self.n_steps or usual_steps(setting, by_choice=by_choice)
        descent = (steps, self.sampling, self.sample_rate)
        rows = min(d, self.n_components or start.MAX_DIRECTIONS)
        asked = (
            Ask("survey", (d + 2,), shares.survey * (1 - taken)),
            self._ask_start(setting, shares.signal * (1 - taken)),
            Ask("margins", (2,), taken),
            Ask("gradients", (rows, d), shares.gradients * (1 - taken), *descent),
            Ask("moments", (4,), shares.moments * (1 - taken)),
            Ask("contest", (1,), shares.contest * (1 - taken)),
        )
        return tuple(ask for ask in asked if ask.share > 0)

    def _ask_start(self, setting: Setting, share: float) -> Ask:
        """Which columns carry signal: a noisy vector, or where that would drown, one noisy choice."""
        d = setting.n_features
        if self.chooses(setting):
            return Ask("start", (d * len(THRESHOLDS),), share, choice=True)
        return Ask("signal", (d,), share)

    def chooses(self, setting: Setting) -> bool:
        """Whether the descent starts on a chosen column; from public numbers alone, as the proof demands."""
        return (self.n_components or 1) == 1 and starts_by_choice(setting)

    def options(self) -> dict[str, Any]:
        """Public parameters, for the certificate."""
        return {
            "n_components": self.n_components,
            "margin": self.margin,
            "max_grad_norm": "auto" if self.max_grad_norm is None else self.max_grad_norm,
            "learning_rate": "auto" if self.learning_rate is None else self.learning_rate,
            **({} if self.loss == "contrastive" else {"loss": self.loss}),
        }

    def most_rows(self, n_features: int) -> int:
        """Rows of the metric, at most: no square matrix is formed of very many columns."""
        if self.n_components is not None:
            return self.n_components
        return n_features if n_features <= WIDE else start.MAX_DIRECTIONS

    def run(self, plan: Plan, engine: Engine) -> FloatArray:
        """The components of a metric, array of shape (n_components, n_features)."""
        balance = start.take_survey(plan, engine)
        if "start" in plan:
            balance, W = start.choose_start(self.n_components, plan, engine, balance)
        else:
            W = start.find_start(self.n_components, plan, engine, balance)
        margin = self.margin if self.margin != "private" else private_margin(plan, engine, balance)
        W = descend(self, plan, engine, balance, W, margin)
        # Fewer rows than features leave no room for Euclid: then what was learned is the metric.
        blend = hold_contest(plan, engine, balance, W) if "contest" in plan else 0.0
        if plan.n_features > WIDE:
            if blend == 1:
                _say_euclid_won(plan.n_features)
            blend = 0.0
        return assemble(W, balance, blend)


def _say_euclid_won(n_features: int) -> None:
    # Public: it follows from the released scores of the contest.
    warnings.warn(
        f"the Euclidean metric orders these pairs about as well as what was learned, but over {n_features} "
        "features it cannot be written as a matrix of components: the learned directions are returned "
        f"alone. Compare them with Euclid, or reduce to {WIDE} features or fewer to have them blended",
        DataWarning,
        stacklevel=4,
    )


def private_margin(plan: Plan, engine: Engine, balance: Balance) -> float:
    """Mean scaled distance of dissimilar pairs, from a noisy sum and a noisy count."""
    query, longest = plan["margins"], 4.0
    clip = DissimilarDistances.bound(query.mechanism.norm)
    total, count = engine.answer(query, DissimilarDistances(longest, clip, balance.scale))
    return float(np.clip(longest * total / max(count, 1.0), 0.25, longest))


def descend(
    recipe: ContrastiveRecipe,
    plan: Plan,
    engine: Engine,
    balance: Balance,
    W: FloatArray,
    margin: float,
) -> FloatArray:
    """Clipped noisy steps on the loss, shrunk against the noise, averaged."""
    query, (k, d) = plan["gradients"], W.shape
    widen, noise = l1_width(plan, k), total_noise(plan, balance, k)
    batch = query.sample_rate * balance.mass
    signal = signal_to_noise(plan, balance, k)
    clip = recipe.max_grad_norm or usual_clip(signal, few(d / balance.mass))
    step = recipe.learning_rate or min(MAX_STEP, total_step(batch, noise, d * k) / query.steps)
    faded = step * SHRINKAGE * noise / batch
    loss = LOSSES[recipe.loss](margin)
    longest = 2 * plan.data_norm * float(balance.scale.max())
    average, counted = np.zeros_like(W), 0
    stretch = max(1, query.steps // MOST_SHRINKINGS)
    for t in range(0, query.steps, stretch):
        now = min(stretch, query.steps - t)
        bound = clip * widen
        if query.mechanism.norm == "l2" and now == 1:
            # No pair's gradient exceeds a bound that W alone gives (docs/theory/guarantee.md).
            bound = min(bound, loss.gradient_bound(float(np.linalg.norm(W, 2)), longest))
        gradient = LossGradient(W, loss, bound, balance.weights, balance.scale)
        W = engine.descend(query, gradient, step / (batch * clip), now)
        if faded > 0:
            W = shrink_singular_values(W, now * faded * (math.sqrt(d) + math.sqrt(k)))
            W = shrink_columns(W, now * faded * math.sqrt(k))
        if t + now > query.steps // 2:
            average, counted = average + now * W, counted + now
    return average / counted


def signal_to_noise(plan: Plan, balance: Balance, k: int) -> float:
    """Pairs that speak, over the length of the noise in one direction."""
    batch = plan["gradients"].sample_rate * balance.mass
    return batch / (total_noise(plan, balance, k) * math.sqrt(plan.n_features))


def total_noise(plan: Plan, balance: Balance, k: int) -> float:
    """Noise on each entry of the average gradient, with what the luck of the draw of pairs makes.

    Few pairs are a sample: their gradients scatter, over d k entries, by a part of the clip bound each. A fit
    with little noise that does not shrink against that learns the sample (docs/theory/learner.md).
    """
    batch = plan["gradients"].sample_rate * balance.mass
    luck = SAMPLING * math.sqrt(batch / (plan.n_features * k))
    return math.hypot(descent_noise(plan, k), luck)


def descent_noise(plan: Plan, k: int) -> float:
    """Noise that the average of all gradients keeps on each entry, in units of the clip bound."""
    query = plan["gradients"]
    return query.noise_std(l1_width(plan, k)) / math.sqrt(query.steps)


def l1_width(plan: Plan, k: int) -> float:
    """Clip bound in the mechanism's norm, relative to the one in l2."""
    if plan["gradients"].mechanism.norm == "l2":
        return 1.0
    return L1_PER_L2 * math.sqrt(plan.n_features * k)


def total_step(batch: float, noise: float, n_entries: int) -> float:
    """Summed step sizes: as far as the signal carries, not as far as the noise would."""
    return min(TOTAL_STEP, STEP_PER_SIGNAL * batch / (noise * math.sqrt(n_entries)))


def usual_clip(signal: float, scarcity: float) -> float:
    """Clip bound of a pair's gradient: the more signal there is, the less is clipped.

    A bound below most gradients keeps their directions alone, which is biased; one above them wastes noise.
    Where pairs are few for their columns (``scarcity`` 1), directions are all that they can teach.

    Examples
    --------
    >>> [usual_clip(signal, 0.0) for signal in (10.0, 180.0, 1000.0)]
    [0.2, 0.3, 0.4]
    >>> round(usual_clip(10.0, 1.0), 2)
    0.05
    """
    least = CLIP[1] + scarcity * (CLIP[0] - CLIP[1])
    return max(least, min(CLIP[2], CLIP[2] * signal / MUCH_SIGNAL))


def shrink_singular_values(W: FloatArray, threshold: float) -> FloatArray:
    """Proximal step of the nuclear norm: directions that noise could have made fade.

    Examples
    --------
    >>> shrink_singular_values(np.diag([3.0, 0.5]), 1.0)
    array([[2., 0.],
           [0., 0.]])
    """
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    shrunk: FloatArray = (U * np.maximum(s - threshold, 0.0)) @ Vt
    return shrunk


def shrink_columns(W: FloatArray, threshold: float) -> FloatArray:
    """Proximal step of the group lasso: columns that noise could have made fade.

    Examples
    --------
    >>> shrink_columns(np.array([[3.0, 0.5], [4.0, 0.0]]), 1.0)
    array([[2.4, 0. ],
           [3.2, 0. ]])
    """
    lengths = np.linalg.norm(W, axis=0)
    shrunk: FloatArray = W * np.maximum(0.0, 1 - threshold / np.maximum(lengths, 1e-300))
    return shrunk


def hold_contest(plan: Plan, engine: Engine, balance: Balance, W: FloatArray) -> float:
    """Weight of Euclid in the metric: little if the learned metric orders the pairs well, else most or all.

    How well is well depends on the signal, a public or released number: with much of it the learned metric
    stays unless the pairs speak against it, with little of it the pairs must speak for it. A win that luck
    could explain leaves a good half of Euclid in the metric (`doubt`).
    """
    signal, d = signal_to_noise(plan, balance, len(W)), plan.n_features
    blend = float(np.clip(0.9 / signal, *BLEND))
    euclid = 1 / (balance.scale * balance.length)
    candidates = Candidates(W / TYPICAL_DISTANCE, euclid, (blend, 1.0))
    query = plan["moments"]
    wide = 2.0 if query.mechanism.norm == "l1" else 1.0
    moments = engine.answer(query, DistanceMoments(candidates, 0.6 * wide, balance.scale))
    drowned = query.noise_std(0.6 * wide) > DROWNED * plan.n_records
    first, second = np.split(moments / plan.n_records, 2)
    mean = np.clip(first, -1, 1)
    std = np.sqrt(np.clip(second - mean**2, 0.03**2, 1))
    clip = float(np.clip(0.2 * math.sqrt(signal / 40), 0.2, 1))
    query = plan["contest"]
    contest = Contest(candidates, mean, std, balance.weights, clip, balance.scale)
    score, noise = float(engine.answer(query, contest)[0]), query.noise_std(clip)
    demand = float(np.clip(60 / signal - 4.8, -2, 3))
    if drowned or refuted(score / balance.mass, d / balance.mass):
        return 1.0  # drowned: whatever the score, it was made of ranks that noise made
    if score <= demand * noise:
        return lost(score, noise, signal)
    return max(blend, doubt(score / balance.mass, noise / balance.mass, d / balance.mass, clip))


def across(Vt: FloatArray) -> FloatArray:
    """An orthonormal basis of all that is orthogonal to the k orthonormal rows of ``Vt``, (d - k, d).

    The rows behind the k-th of the reflection that maps the first k axes onto the rows: one product of a
    d x k matrix with its transpose, where a decomposition of a d x d matrix would take minutes.

    Examples
    --------
    >>> across(np.array([[0.6, 0.8, 0.0]])).round(12)
    array([[-0.8,  0.6,  0. ],
           [ 0. ,  0. ,  1. ]])
    """
    k, d = Vt.shape
    left, sigma, right = np.linalg.svd(Vt[:, :k].T)
    steps = Vt.T.copy()
    steps[:k] += (
        left @ right
    )  # onto minus the nearest rotation of the axes: 1 + sigma is never small
    steps = steps @ right.T
    rows: FloatArray = -(steps[k:] / (1.0 + sigma)) @ steps.T
    rows[np.arange(d - k), np.arange(k, d)] += 1.0
    return rows


def assemble(W: FloatArray, balance: Balance, blend: float) -> FloatArray:
    """One matrix for the blended metric, in the columns' original units."""
    learned = math.sqrt(1 - blend) / TYPICAL_DISTANCE * W * balance.scale
    if blend == 0:
        return learned
    # Singular values and vectors of [learned; euclid I], from the few rows of ``learned`` alone: where it
    # stretches, sqrt(s^2 + euclid^2); in every direction across, euclid. No square matrix is decomposed.
    euclid = math.sqrt(blend) / balance.length
    _, s, Vt = np.linalg.svd(learned, full_matrices=False)
    components: FloatArray = np.concatenate(
        [np.hypot(s, euclid)[:, None] * Vt, euclid * across(Vt)]
    )
    # A direction and its opposite are one metric: the largest entry of a row is made positive.
    for row in components:
        if row[np.abs(row).argmax()] < 0:
            np.negative(row, out=row)
    return components
