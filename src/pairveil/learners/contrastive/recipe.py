"""How a metric is learned from noisy sums over pairs (docs/theory/learner.md).

1. *Survey*: spread of the columns, length of differences, share of similar pairs. Columns are put on one
   scale, pairs on balanced weights.
2. *Start*: which columns differ more between dissimilar pairs: a noisy vector, or one noisy choice.
3. *Descent*: clipped full-batch steps on the loss, shrunk against noise and sampling error, averaged.
4. *Euclid* is added with a weight that falls with the signal-to-noise ratio. It asks for nothing.

Which queries are asked, with which noise, follows from public numbers alone. Everything between two answers
is post-processing of released numbers and public ones.

On groups every sum is over groups, and a group's contribution is the mean over its pairs.
A person who changes may change everything in her group, so what counts is that a group contributes one vector
of length at most C, before and after: it moves by 2C at most (docs/theory/records.md). A mean of vectors of
length at most C is one. It is taken over the pairs that are not null; how many those are is private, and may
be used, since it only shapes that vector. Gradients are clipped group by group (`SetGradient`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.array_types import FloatArray, IntArray
from pairveil.engine.engine import Engine
from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import LOSSES
from pairveil.engine.plan import Plan, PublicFacts, QuerySpec
from pairveil.engine.statistics import (
    TILE,
    Labels,
    Scores,
    Statistic,
    row_norms,
    shrink,
    whole_weight,
)
from pairveil.errors import DataWarning, warn
from pairveil.learners import preparing
from pairveil.learners.recipes import (
    fitted,
    scale_of,
    shrink_columns,
    shrink_singular_values,
    with_euclid,
)
from pairveil.privacy.grid import UNIT_ROUNDOFF, Norm
from pairveil.privacy.mechanisms import Query, Sampling
from pairveil.records.groups import slots


@dataclass(frozen=True)
class PairNumbers:
    """The fitted numbers of the pair learner, for noise with a delta and for pure epsilon."""

    survey_share: float = fitted(0.13, "part of the budget for the survey", "merged", 0.01, 0.008)
    start_share: float = fitted(0.2, "part of the budget for the start", "merged", 0.012, 0.023)
    abundant: float = fitted(50.0, "public signal, both shares fall from", "kept", 0.011, 0.007)
    steps: int = fitted(100, "gradients asked for, at most", "kept", 0.001, -0.003)
    faint: float = fitted(220.0, "public signal for a choice, at most", "new", -0.009, 0.0)
    faint_pure: float = fitted(1200.0, "the same for pure epsilon", "new", -0.006, 0.0)
    few_pairs: int = fitted(2000, "pairs below which no column is chosen", "kept", 0.003, -0.113)
    known: float = fitted(2.0, "deviations that make a number known", "merged", -0.001, 0.005)
    at_threshold: float = fitted(0.3, "scaled difference at a threshold", "kept", -0.009, -0.003)
    clip: float = fitted(0.4, "clip of the start, of gradients at most", "merged", 0.004, -0.005)
    start_length: float = fitted(2.0, "Frobenius norm of the first W", "kept", 0.0, -0.035)
    directions: int = fitted(10, "rows of W, at most", "kept", 0.01, -0.025)
    unclipped: float = fitted(150.0, "SNR / clip bound of gradients", "merged", -0.006, 0.004)
    l1_clip: float = fitted(0.5, "clip in l1 / (that sqrt(entries))", "kept", 0.0, -0.009)
    reach: float = fitted(2.5, "summed steps / SNR", "kept", -0.037, -0.035)
    shrinkage: float = fitted(0.5, "part of the noise taken off W", "kept", -0.001, -0.056)
    sampling: float = fitted(0.3, "sampling error, in clip bounds", "kept", 0.005, -0.007)
    euclid: float = fitted(1.0, "Euclid's weight times SNR", "new", 0.007, -0.024)
    scarce: float = fitted(2.2, "its root at one column a pair", "new", -0.001, -0.043)
    evidence: float = fitted(0.3, "its least where the start is noise", "new", 0.011, -0.058)


NUMBERS = PairNumbers()

# Not fitted: levels of a choice (in units of the bound on a row's norm), the unit of distance, what
# margin='private' takes off the other shares, columns above which no square matrix is formed.
THRESHOLDS = tuple(2.0**-i for i in range(2, 7))
MARGIN, MARGIN_SHARE, WIDE = 1.0, 0.03, 4096
_WITHOUT_EUCLID = (
    f"there is little signal for so much noise, and over more than {WIDE} features the Euclidean metric "
    "cannot be written as a matrix of components: the learned directions are returned alone. Compare them "
    "with Euclid, or reduce the number of features to have it added"
)
MOST_SHRINKINGS = 100  # from twice as many steps on, steps share them: each is an SVD
_TINY, _ROUNDING = 1e-12, 1e-7  # a difference of squares near 0 loses half its digits


def public_signal(facts: PublicFacts) -> float:
    """Records over the length of the noise on one number a column, in the norm of the mechanism."""
    if not facts.budget.is_private:
        return math.inf
    d = facts.n_features
    width = d if facts.mechanism.norm == "l1" else math.sqrt(d)
    return facts.n_records / (facts.mechanism.multiplier(facts.budget, 1.0) * width)


def starts_by_choice(facts: PublicFacts, faint: float | None = None) -> bool:
    """Whether one chosen column is a better start than a noisy vector, which pays for d numbers."""
    if not facts.choices:  # several parties: sums alone
        return False
    if facts.n_records < NUMBERS.few_pairs or facts.n_features < NUMBERS.directions:
        return False
    if faint is None:
        faint = NUMBERS.faint_pure if facts.mechanism.is_pure else NUMBERS.faint
    return public_signal(facts) < faint


def usual_steps(facts: PublicFacts) -> int:
    """Gradients asked for where the user does not say: the noise of pure epsilon grows with their number."""
    if not facts.mechanism.is_pure or not facts.budget.is_private:
        return NUMBERS.steps
    return max(3, min(NUMBERS.steps, round(math.sqrt(public_signal(facts)))))


@dataclass(frozen=True)
class ContrastiveRecipe:
    """Survey, start and descent, with the parameters of `DPPMetricLearner`; None follows the public rule."""

    n_components: int | None = None
    margin: float | Literal["private"] = MARGIN
    max_grad_norm: float | None = None
    learning_rate: float | None = None
    n_steps: int | None = None
    sampling: Sampling = "poisson"
    sample_rate: float = 1.0
    loss: str = "contrastive"
    headline: str = "gradients"

    def ask(self, facts: PublicFacts) -> tuple[QuerySpec, ...]:
        """Queries and shares from public numbers alone: the larger the signal, the more for the descent."""
        d, left = facts.n_features, 1 - (MARGIN_SHARE if self.margin == "private" else 0.0)
        part = left
        if facts.budget.is_private:
            part *= min(1.0, math.sqrt(NUMBERS.abundant / public_signal(facts)))
        survey, first = part * NUMBERS.survey_share, part * NUMBERS.start_share
        start = QuerySpec("signal", (d,), first)
        if (self.n_components or 1) == 1 and starts_by_choice(facts):
            start = QuerySpec("start", (d * len(THRESHOLDS),), first, choice=True)
        descent = (self.n_steps or usual_steps(facts), self.sampling, self.sample_rate)
        asked = (
            QuerySpec("survey", (d + 2,), survey),
            start,
            QuerySpec("margins", (2,), 1 - left),
            QuerySpec("gradients", (self._most_directions(d), d), left - survey - first, *descent),
        )
        return tuple(ask for ask in asked if ask.share > 0)

    def options(self) -> dict[str, Any]:
        """Public parameters, for the certificate."""
        return {
            "n_components": self.n_components,
            "margin": self.margin,
            "max_grad_norm": "auto" if self.max_grad_norm is None else self.max_grad_norm,
            "learning_rate": "auto" if self.learning_rate is None else self.learning_rate,
            **({} if self.loss == "contrastive" else {"loss": self.loss}),
        }

    def _most_directions(self, n_features: int) -> int:
        return min(n_features, self.n_components or NUMBERS.directions)

    def most_rows(self, n_features: int) -> int:
        """Rows of the metric, at most: no square matrix is formed of very many columns."""
        if self.n_components is None and n_features <= WIDE:
            return n_features
        return self._most_directions(n_features)

    def run(self, plan: Plan, engine: Engine) -> FloatArray:
        """The components of a metric, array of shape (n_components, n_features)."""
        surveyed = take_survey(plan, engine)
        if "start" in plan:
            surveyed, W = choose_start(self.n_components, plan, engine, surveyed)
            # One column tells nothing of the other directions, and no length.
            signal, z = signal_to_noise(plan, surveyed, 1) / math.sqrt(NUMBERS.directions), 0.0
        else:
            W, z = find_start(self.n_components, plan, engine, surveyed)
            signal = signal_to_noise(plan, surveyed, len(W))
        margin = private_margin(plan, engine, surveyed) if self.margin == "private" else self.margin
        W = learn_directions(self, plan, engine, surveyed, W, margin)
        if self.n_components is not None:
            return W * surveyed.scale
        weight = euclid_weight(
            surveyed.sure * signal, plan.n_features / (surveyed.sure * surveyed.mass), z
        )
        if plan.n_features > WIDE:
            if weight > 1:  # public
                warn(_WITHOUT_EUCLID, DataWarning)
            return W * surveyed.scale
        return with_euclid(W * surveyed.scale, weight / surveyed.length)


class SurveyResult(NamedTuple):
    """What the survey tells: column scale, typical length, share of similar pairs, weights of both kinds,
    effective number of pairs, which columns spread less than the noise shows, and what part of the effective
    pairs there is at least, for all that noise hides of the share."""

    scale: FloatArray
    length: float
    share: float
    weights: tuple[float, float]
    mass: float
    hidden: NDArray[np.bool_] | None = None
    sure: float = 1.0

    @property
    def directions(self) -> int:
        """Between C balanced classes, which have one pair in C similar: C - 1."""
        return round(1 / self.share) - 1


def take_survey(plan: Plan, engine: Engine) -> SurveyResult:
    """Ask how the differences spread; put columns on one scale and pairs on balanced weights."""
    query, longest = plan["survey"], 2 * plan.data_norm
    clip = Survey.bound(query.mechanism.norm)
    found = engine.answer(query, Survey(plan.n_features, longest, clip))
    spread, d, n, noise = found[:-2], plan.n_features, plan.n_records, query.noise_std(clip)
    length = longest * min(max(float(found[d]) / n, 0.1), 1.0) ** 2
    scale = scale_of(spread, noise, length)
    share = min(max(float(found[d + 1]) / n, 0.02), 0.98)
    if abs(share - 0.5) < NUMBERS.known * noise / n:
        # Weights that noise alone makes unequal favour columns that differ in pairs of either kind.
        share = 0.5
    if not 0.02 < share < 0.98 and noise < 0.01 * n:
        # The count is a released one, so this is public.
        told = "nearly all pairs seem to have the same label: there is little to tell apart"
        warn(told, DataWarning)
    weights = (min(1.0, (1 - share) / share), min(1.0, share / (1 - share)))
    hidden, rarer = spread < NUMBERS.known * noise, min(share, 1 - share)
    sure = max(0.02, rarer - NUMBERS.known * noise / n) / rarer
    return SurveyResult(scale, length, share, weights, 2 * n * rarer, hidden, sure)


def find_start(
    n_components: int | None, plan: Plan, engine: Engine, surveyed: SurveyResult
) -> tuple[FloatArray, float]:
    """Ask which columns carry signal; start a direction on each of the strongest.

    Returns them with z: how far, in deviations, the vector's squared length is from that of noise alone.
    """
    query, d, clip = plan["signal"], plan.n_features, NUMBERS.clip
    signal = engine.answer(query, ColumnSignal(d, surveyed.weights, clip, surveyed.scale))
    noise = query.noise_std(clip)
    most = min(d, n_components or NUMBERS.directions)
    order = np.argsort(-signal)[:most]
    few = least_directions(plan, surveyed) if noise > 0 else most  # without noise they cost nothing
    k = n_components or min(most, max(few, surveyed.directions))
    W = np.zeros((k, d))
    W[np.arange(k), order[:k]] = np.sqrt(np.maximum(signal[order[:k]], 1e-9))
    chance = d * noise**2 + clip**2 * plan.n_records * min(surveyed.weights)
    z = max(0.0, float(signal @ signal) / chance - 1) * math.sqrt(d / 2)
    return W * (NUMBERS.start_length / np.linalg.norm(W)), z


def least_directions(plan: Plan, surveyed: SurveyResult) -> int:
    """Fewest rows of W: half of the most where gradients are clipped least, else a third.

    The noise of pure epsilon grows with the number of rows: one.
    """
    if plan["gradients"].mechanism.norm == "l1":
        return 1
    third, half = NUMBERS.directions // 3, NUMBERS.directions // 2
    return half if usual_clip(signal_to_noise(plan, surveyed, third)) == NUMBERS.clip else third


def choose_start(
    n_components: int | None, plan: Plan, engine: Engine, surveyed: SurveyResult
) -> tuple[SurveyResult, FloatArray]:
    """Choose the column to start on, and its scale where noise hides how it spreads."""
    limits = tuple(plan.data_norm * t for t in THRESHOLDS)
    scores = ColumnScores(plan.n_features, limits, surveyed.weights)
    column, threshold = scores.candidate(engine.choose(plan["start"], scores))
    scale = surveyed.scale.copy()
    if surveyed.hidden is not None and surveyed.hidden[column]:
        # The survey only tells that it spreads less than the noise; the threshold tells how much.
        scale[column] = max(scale[column], NUMBERS.at_threshold / threshold)
    # More classes have more directions between them: on the columns that spread most.
    k = n_components or min(NUMBERS.directions, plan.n_features, max(1, surveyed.directions))
    order = [column, *(j for j in np.argsort(surveyed.scale) if j != column)][:k]
    W = np.zeros((k, plan.n_features))
    W[np.arange(k), order] = NUMBERS.start_length / math.sqrt(k)
    return surveyed._replace(scale=scale), W


def private_margin(plan: Plan, engine: Engine, surveyed: SurveyResult) -> float:
    """Mean scaled distance of dissimilar pairs, from a noisy sum and a noisy count."""
    query, longest = plan["margins"], 4.0
    clip = DissimilarDistances.bound(query.mechanism.norm)
    total, count = engine.answer(query, DissimilarDistances(longest, clip, surveyed.scale))
    return float(np.clip(longest * total / max(count, 1.0), 0.25, longest))


def learn_directions(
    recipe: ContrastiveRecipe,
    plan: Plan,
    engine: Engine,
    surveyed: SurveyResult,
    W: FloatArray,
    margin: float,
) -> FloatArray:
    """Clipped noisy steps on the loss, shrunk against noise and sampling error, averaged."""
    query, (k, d) = plan["gradients"], W.shape
    noise, batch = total_noise(plan, surveyed, k), query.sample_rate * surveyed.mass
    signal = signal_to_noise(plan, surveyed, k)
    # A gradient is about 1 long. A small bound keeps directions alone, which is biased, with less noise.
    clip = recipe.max_grad_norm or usual_clip(signal)
    step = recipe.learning_rate or NUMBERS.reach * signal / query.steps
    shrunk = step * NUMBERS.shrinkage * noise / batch
    loss = LOSSES[recipe.loss](margin)
    longest = 2 * plan.data_norm * float(surveyed.scale.max())
    average, counted = np.zeros_like(W), 0
    stretch = max(1, query.steps // MOST_SHRINKINGS)
    for t in range(0, query.steps, stretch):
        now = min(stretch, query.steps - t)
        bound = clip * l1_width(plan, k)
        if query.mechanism.norm == "l2" and now == 1:
            # No pair's gradient exceeds a bound that W alone gives (docs/theory/guarantee.md).
            # Of W = 0 that may be 0, and no noise has that length.
            least = loss.gradient_bound(float(np.linalg.norm(W, 2)), longest)
            bound = min(bound, max(least, _TINY))
        gradient = SetGradient(W, loss, bound, surveyed.weights, surveyed.scale)
        way = engine.descend(query, gradient, step / (batch * clip), now) - W
        part = part_within(now * margin, way)
        # A part of a step has that part of its noise. All of it is taken off the usual steps, as fitted.
        off = shrunk * now * (part if recipe.learning_rate else 1.0)
        W = shrink_singular_values(W + part * way, off * (math.sqrt(d) + math.sqrt(k)))
        W = shrink_columns(W, off * math.sqrt(k))
        if t + now > query.steps // 2:
            average, counted = average + now * W, counted + now
    return average / counted


def part_within(length: float, way: FloatArray) -> float:
    """Which part of a way is no longer than a length.

    Few long steps overshoot along a column that a choice put on a large scale: W jumps to and fro, and the
    average of the iterates is nothing. A W of the margin's length puts typical differences at the margin.
    """
    return min(1.0, length / max(float(np.linalg.norm(way)), _TINY))


def usual_clip(signal: float) -> float:
    """Clip bound of a pair's gradient."""
    return min(NUMBERS.clip, signal / NUMBERS.unclipped)


def signal_to_noise(plan: Plan, surveyed: SurveyResult, k: int) -> float:
    """Effective number of pairs, over the length of the noise on the average gradient."""
    batch = plan["gradients"].sample_rate * surveyed.mass
    return batch / (total_noise(plan, surveyed, k) * math.sqrt(plan.n_features * k))


def total_noise(plan: Plan, surveyed: SurveyResult, k: int) -> float:
    """Noise on each entry of the average gradient, with the sampling error of pairs that are a sample."""
    query = plan["gradients"]
    batch = query.sample_rate * surveyed.mass
    by_sampling = NUMBERS.sampling * math.sqrt(batch / (plan.n_features * k))
    # What the average of all gradients keeps on each entry, in units of the clip bound.
    kept = query.noise_std(l1_width(plan, k)) / math.sqrt(query.steps)
    return math.hypot(kept, by_sampling)


def l1_width(plan: Plan, k: int) -> float:
    """Clip bound in the mechanism's norm, relative to the one in l2."""
    if plan["gradients"].mechanism.norm == "l2":
        return 1.0
    return NUMBERS.l1_clip * math.sqrt(plan.n_features * k)


def euclid_weight(signal: float, columns: float, z: float) -> float:
    """Weight of a difference of typical length beside its learned distance, from released numbers.

    Three reasons to doubt what was learned, as if their errors were independent: noise on the descent, many
    columns for each effective pair, and a start no longer than noise makes it (``z`` 0, or not known).
    """
    by_evidence = NUMBERS.evidence / math.hypot(1, z)
    return math.hypot(NUMBERS.euclid / signal, (NUMBERS.scarce * columns) ** 2, by_evidence)


def _column_sums(rows: Any, factors: FloatArray) -> FloatArray:
    """``sum_j factors_j * rows_j`` for dense or sparse rows."""
    return np.asarray(rows.T @ factors, dtype=np.float64).ravel()


@dataclass(frozen=True)
class Survey(Statistic):
    """How the differences spread: each column's share, their length, and how many pairs are similar.

    A pair's contribution is (q, sqrt(||dx|| / longest), [similar]) with q = dx^2 / ||dx^2|| and ``longest``
    a public bound on ||dx||, so its norm is at most `bound`.
    """

    n_features: int
    longest: float
    clip: float

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a column, then length and count."""
        return (self.n_features + 2,)

    @staticmethod
    def bound(norm: Norm) -> float:
        """Largest norm of a pair's contribution."""
        return 3.0 if norm == "l1" else math.sqrt(3)

    def tile_sum(self, differences: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the contributions; `shrink` only guards against rounding."""
        thin = sparse.issparse(differences)
        squares = differences.multiply(differences).tocsr() if thin else differences * differences
        sizes = row_norms(squares, norm)
        length = np.sqrt(np.minimum(1.0, row_norms(differences) / self.longest))
        similar = 1.0 * (labels > 0)
        unit = sizes > _TINY**2
        norms = unit + length + similar if norm == "l1" else np.sqrt(unit + length**2 + similar**2)
        # A pair without any difference is null: it does not even count as similar.
        factor = shrink(norms, self.clip) * unit
        columns = _column_sums(squares, factor / np.maximum(sizes, _TINY**2))
        return np.concatenate([columns, [factor @ length, factor @ similar]])


@dataclass(frozen=True)
class ColumnSignal(Statistic):
    """Which columns differ more between dissimilar than between similar pairs.

    A pair's contribution is ``-y w (a - mean(a))`` with a = |z| / ||z||, w its kind's weight, at most 1.
    Taking the mean over columns off changes no ranking and shortens the contribution.
    """

    n_features: int
    weights: tuple[float, float]
    clip: float
    scale: FloatArray | None = None
    largest_term = 2.0  # the sums of a and of its means are taken apart

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a column."""
        return (self.n_features,)

    def tile_sum(self, differences: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the clipped contributions, without forming ``a - mean(a)`` (sparse rows stay sparse)."""
        sizes = row_norms(differences, norm)
        live = sizes > _TINY
        inverse = np.where(live, 1.0 / np.maximum(sizes, _TINY), 0.0)
        centre = row_norms(differences, "l1") * inverse / self.n_features
        sign = np.where(labels > 0, -self.weights[0], self.weights[1])
        lengths = np.abs(sign) * self._length(differences, inverse, centre, norm)
        factor = sign * shrink(lengths, self.clip) * live
        return _column_sums(abs(differences), factor * inverse) - factor @ centre

    def _length(
        self, differences: Any, inverse: FloatArray, centre: FloatArray, norm: Norm
    ) -> FloatArray:
        """Norm of ``a - mean(a)``: in l2 ||a||^2 - d mean^2; in l1 entry by entry."""
        if norm == "l2":
            unit = (row_norms(differences) * inverse) ** 2
            square: FloatArray = np.maximum(unit - self.n_features * centre**2, 0.0)
            return np.sqrt(square) + _ROUNDING
        differences = sparse.csr_array(differences)
        rows = np.repeat(np.arange(differences.shape[0]), np.diff(differences.indptr))
        far = np.abs(np.abs(differences.data) * inverse[rows] - centre[rows])
        at_zero = (self.n_features - np.diff(differences.indptr)) * centre
        return np.asarray(np.bincount(rows, far, minlength=differences.shape[0]) + at_zero)


@dataclass(frozen=True)
class DissimilarDistances(Statistic):
    """Sum of ``min(1, ||z|| / longest)`` over dissimilar pairs, and their number; ``longest`` is public."""

    longest: float
    clip: float
    scale: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The sum and the count."""
        return (2,)

    @staticmethod
    def bound(norm: Norm) -> float:
        """Largest norm of a pair's contribution."""
        return 2.0 if norm == "l1" else math.sqrt(2)

    def tile_sum(self, differences: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the contributions; `shrink` only guards against rounding."""
        sizes = row_norms(differences)
        contributions = np.stack([np.minimum(1.0, sizes / self.longest), np.ones(len(sizes))], 1)
        live = (labels < 0) & (sizes > _TINY)
        factor = shrink(row_norms(contributions, norm), self.clip) * live
        return np.asarray(factor @ contributions)


@dataclass(frozen=True)
class ColumnScores(Scores):
    """How much oftener a column differs by more than a threshold in dissimilar than in similar pairs.

    A pair adds its kind's weight, at most 1, to every candidate (column j, threshold t) with ``|dx_j| > t``
    if it is dissimilar, and takes it off if it is similar: all one way. Thresholds are public and greater
    than 0, so a null pair adds nothing (docs/theory/accounting.md).
    """

    n_features: int
    thresholds: tuple[float, ...]
    weights: tuple[float, float]

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a candidate: all columns at the first threshold, then at the next."""
        return (self.n_features * len(self.thresholds),)

    def candidate(self, index: int) -> tuple[int, float]:
        """Column and threshold of a candidate."""
        return index % self.n_features, self.thresholds[index // self.n_features]

    def tile_total(self, contents: Any, labels: Labels, norm: Norm, grid: float) -> IntArray:
        """Whole numbers: a weight is rounded, then counted."""
        del norm, grid
        similar, dissimilar = map(whole_weight, self.weights)
        whole = np.where(labels > 0, -similar, dissimilar).astype(np.float64)
        # Sums of a tile's whole numbers stay far below 2^53: floats add them exactly.
        large = [_above(contents, t).T @ whole for t in self.thresholds]
        return np.concatenate([np.asarray(one).ravel() for one in large]).astype(np.int64)


def _above(rows: Any, threshold: float) -> Any:
    """1 where dense or sparse rows exceed a threshold, else 0."""
    if not sparse.issparse(rows):
        return (np.abs(rows) > threshold).astype(np.float64)
    large = (np.abs(rows.data) > threshold).astype(np.float64)
    return sparse.csr_array((large, rows.indices, rows.indptr), shape=rows.shape)


# ---- the same on groups: a group's contribution is the mean over its pairs -----------------------


class GroupMean(Statistic):
    """A statistic of pairs, as one of groups: the mean over the pairs of a group that are not null."""

    def __init__(self, of: Statistic, size: int) -> None:
        self.of, self.size = of, size  # most people of a group
        self.clip, self.scale, self.largest_term = of.clip, of.scale, of.largest_term

    @property
    def shape(self) -> tuple[int, ...]:
        """As that of pairs."""
        return self.of.shape

    def tile_sum(self, people: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the means."""
        if people.shape[1] > self.size:
            raise ValueError("`sensitivity` is that of smaller groups: GroupMean(..., size=m)")
        first, second = slots(people.shape[1])
        live, total = np.count_nonzero(labels, axis=1), np.zeros(self.shape)
        for n_pairs in np.unique(live[live > 0]):  # groups with as many pairs have one divisor
            some, told = people[live == n_pairs], labels[live == n_pairs]
            group, slot = np.nonzero(told)
            differences = some[group, first[slot]] - some[group, second[slot]]
            total += self.of.tile_sum(differences, told[group, slot], norm) / n_pairs
        return total

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """As every statistic's; and a tile's sum has as many terms as its groups have pairs, in both worlds.

        Terms of a group have a length of ``terms`` in all, so an error of gamma(n) terms is in n of them.
        """
        terms, n_pairs = max(self.clip, self.largest_term), self.size * (self.size - 1) // 2
        gamma = 2 * TILE * n_pairs * UNIT_ROUNDOFF  # with room for the sums of the sums
        return super().sensitivity(norm, grid, dtype) + 2 * gamma * TILE * terms


class _OfGroups:
    """An engine that is asked for sums over ``each`` pairs of every group, and makes them of means."""

    def __init__(self, engine: Engine, plan: Plan, size: int, each: float) -> None:
        self._engine, self._plan, self._size, self._each = engine, plan, size, each

    def answer(self, query: Query, statistic: Statistic) -> FloatArray:
        mean = GroupMean(statistic, self._size)
        return self._each * self._engine.answer(self._plan[query.name], mean)

    def descend(self, query: Query, gradient: SetGradient, rate: float, steps: int) -> FloatArray:
        clip = gradient.clip / self._each**preparing.NUMBERS.clip_power
        gradient = replace(gradient, clip=clip, size=self._size)
        return self._engine.descend(self._plan[query.name], gradient, rate * self._each, steps)


@dataclass(frozen=True)
class GroupRecipe(ContrastiveRecipe):
    """Survey, start and descent on groups: as on their pairs, with noise that is so much larger.

    A group counts as many pairs as it has beyond a tree through its people, and one for the tree: pairs along
    a tree share people without showing the same label twice, and kept more of the gain as one.
    """

    size: int = 2  # most people of a group, groups, and pairs in all of them. Public
    n_groups: int = 1
    n_pairs: int = 1
    n_classes: int | None = None  # the public number of classes, where people have one each

    def ask(self, facts: PublicFacts) -> tuple[QuerySpec, ...]:
        """As of pairs, without a choice, to whose scores a group would add those of many pairs."""
        return tuple(
            QuerySpec("signal", (facts.n_features,), ask.share) if ask.choice else ask
            for ask in super().ask(facts)
        )

    def options(self) -> dict[str, Any]:
        """Public parameters, for the certificate."""
        groups = {"group_size": self.size, "n_groups": self.n_groups, "n_classes": self.n_classes}
        return {**super().options(), **groups}

    def run(self, plan: Plan, engine: Engine) -> FloatArray:
        """The components of a metric, array of shape (n_components, n_features)."""
        each = max(1.0, self.n_pairs / self.n_groups - self.size + 2)
        louder = {
            "gradients": each ** (1 - preparing.NUMBERS.clip_power)
        }  # relative to the clip bound
        queries = tuple(
            replace(one, noise_multiplier=one.noise_multiplier * louder.get(one.name, each))
            for one in plan.queries
        )
        of_pairs = replace(plan, queries=queries, n_records=round(self.n_groups * each))
        of_groups = _OfGroups(engine, plan, self.size, each)
        return super().run(of_pairs, cast(Engine, of_groups))
