"""DPPTripletLearner and DPPTupletLearner: metrics from relative comparisons, with a certificate.

1. *Survey*: how differences spread over the columns, how long they are, how many tuples are not null. Columns
   are put on one scale.
2. *Contrast*: in which directions negatives are further from the anchor than positives: one symmetric
   matrix. Its leading directions, drawn to zero by what noise alone would make of them, are the start.
3. *Descent*: clipped full-batch steps on the loss, shrunk against the noise; the second half is averaged.

Everything between two answers is post-processing of released numbers and public ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.engine.engine import Engine
from pairveil.engine.gradients import (
    SPREAD,
    SetGradient,
    by_role,
    sensitivity_of_sets,
    shrinking,
)
from pairveil.engine.losses import TUPLE_LOSSES, TupleLoss
from pairveil.engine.plan import Plan, PublicFacts, QuerySpec
from pairveil.engine.statistics import Statistic, shrink
from pairveil.errors import InputError
from pairveil.learners.base import Common
from pairveil.learners.estimator import PrivateMetricLearner
from pairveil.learners.inputs import (
    RawRows,
    Resolved,
    check_bound,
    check_choice,
    check_components,
    check_whole,
    ids_of,
    resolve_tuples,
    row_numbers,
    without_ids,
)
from pairveil.learners.preparing import Prepared, PreparedRecords
from pairveil.learners.recipes import (
    fitted,
    packed,
    scale_of,
    shrink_columns,
    shrink_singular_values,
    signed,
    triangle,
    unpacked,
    with_euclid,
)
from pairveil.privacy.grid import Norm
from pairveil.records.kinds import TUPLES
from pairveil.records.tupleset import TupleSet

# ---- statistics ----------------------------------------------------------------------------------

TINY = 1e-12


@dataclass(frozen=True)
class TupleSurvey(Statistic):
    """How differences from the anchor spread over the columns, how long they are, and how many tuples speak.

    A tuple's contribution is (q, side * sqrt(length), side * 1) with q = v / ||v||, v the sum of z^2 over its
    members' differences z from the anchor, and length their mean length over ``longest``.
    """

    n_features: int
    size: int
    longest: float  # public bound on a difference's length
    side: float  # weight of the last two entries
    clip: float  # `bound` of the query's norm

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a column, then length and count."""
        return (self.n_features + 2,)

    @staticmethod
    def bound(side: float, norm: Norm) -> float:
        """Largest norm of a contribution."""
        return 1 + 2 * side if norm == "l1" else math.sqrt(1 + 2 * side**2)

    def tile_sum(self, rows: Any, order: NDArray[np.int8], norm: Norm) -> FloatArray:
        """Sum of the contributions; `shrink` only guards against rounding."""
        total = np.zeros(self.shape)
        for X, present in by_role(rows, order):
            squares = X * X
            spread = squares.sum(axis=1)
            sizes = spread.sum(axis=1) if norm == "l1" else np.sqrt((spread * spread).sum(axis=1))
            live = (sizes > TINY**2) & present[:, 0]
            others = np.maximum(present[:, 1:].sum(axis=1), 1)
            mean = np.sqrt(squares.sum(axis=2)).sum(axis=1) / others / self.longest
            length = self.side * np.sqrt(np.minimum(1.0, mean))
            norms = 1 + length + self.side
            if norm == "l2":
                norms = np.sqrt(1 + length**2 + self.side**2)
            factor = shrink(norms, self.clip) * live
            columns = (factor / np.maximum(sizes, TINY**2)) @ spread
            total += np.concatenate([columns, [factor @ length, self.side * factor.sum()]])
        return total

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """As every statistic's; a tuple adds one vector."""
        del dtype
        return sensitivity_of_sets(self.clip, 1.0, self.shape, norm, grid)


@dataclass(frozen=True)
class TupleContrast(Statistic):
    """In which directions negatives are further from the anchor than the positive is.

    A tuple's contribution is the upper triangle of the symmetric matrix

        mean over negatives of z_n z_n^T  -  z_p z_p^T ,      z = (x - anchor) * scale,

    entries off the diagonal times sqrt(2) so that lengths are those of the matrix, clipped as a whole.
    """

    n_features: int
    size: int
    clip: float
    scale: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The upper triangle."""
        return (triangle(self.n_features),)

    def tile_sum(self, rows: Any, order: NDArray[np.int8], norm: Norm) -> FloatArray:
        """Sum of the clipped matrices X^T D X, D diagonal: their lengths follow from X X^T.

        One entry sqrt(2) times (i, j) in place of (i, j) and (j, i): as long in l2, shorter in l1.
        """
        total = np.zeros((self.n_features, self.n_features))
        for X, present in by_role(rows, order):
            negatives = present[:, 2:]
            weights = np.zeros(present.shape)
            weights[:, 2:] = negatives / np.maximum(negatives.sum(axis=1), 1)[:, None]
            weights[:, 1] = -1.0
            weights *= (present[:, 0] & present[:, 2])[:, None]
            U = weights[:, :, None] * X
            flat = X.reshape(-1, X.shape[2])
            factor = shrinking(U, flat, self.clip, norm)
            total += (factor[:, None, None] * U).reshape(-1, X.shape[2]).T @ flat
        return packed((total + total.T) / 2)

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """As every statistic's, where terms may cancel."""
        del dtype
        return sensitivity_of_sets(self.clip, SPREAD, self.shape, norm, grid)


# ---- the recipe ----------------------------------------------------------------------------------

MOST_FEATURES = 1024
"""The contrast of more columns than this is too many numbers to release."""

SIDE = 0.5  # weight of the survey's length and count beside the columns


_FROM = "benchmarks/results, relative comparisons"


@dataclass(frozen=True)
class TupleNumbers:
    """The fitted numbers of the tuple learners."""

    survey_share: float = fitted(0.1, "part of the budget for the survey", _FROM, -0.009, -0.013)
    contrast_share: float = fitted(
        0.35, "part of the budget for the contrast", _FROM, -0.016, -0.039
    )
    directions: int = fitted(10, "rows of W, at most", _FROM, 0.087, -0.018)
    contrast_clip: float = fitted(0.5, "clip of a tuple's contrast", _FROM, 0.001, -0.008)
    clip: float = fitted(0.3, "clip of a tuple's gradient", _FROM, 0.001, -0.003)
    steps: int = fitted(30, "gradients asked for", _FROM, 0.014, -0.011)
    start_length: float = fitted(2.0, "Frobenius norm of the first W", _FROM, -0.014, 0.0)
    least_trust: float = fitted(0.3, "in a start direction below the noise", _FROM, 0.007, -0.004)
    total_step: float = fitted(60.0, "summed steps in clip bounds, at most", _FROM, -0.009, 0.004)
    step_per_signal: float = fitted(2.5, "the same / SNR", _FROM, -0.033, -0.033)
    shrinkage: float = fitted(0.5, "part of the noise taken off W", _FROM, -0.015, -0.039)
    typical_distance: float = fitted(0.6, "learned distance that counts as 1", _FROM, 0.103, -0.144)
    blend_one: float = fitted(0.05, "Euclid's weight beside one direction", _FROM, 0.004, -0.007)
    blend_many: float = fitted(0.65, "Euclid's weight beside many directions", _FROM, 0.043, -0.058)
    trust_power: float = fitted(
        0.35, "of trust in the weight of what was learned", _FROM, 0.03, -0.047
    )


NUMBERS = TupleNumbers()

# Not fitted: half or double moves nothing. Steps for pure epsilon and without noise; clip in l1 / (that
# sqrt(entries)).
STEPS_PURE, STEPS_WITHOUT_NOISE, L1_CLIP = 8, 60, 0.5


class SurveyedTuples(NamedTuple):
    """What the survey says: scale of the columns, typical length of a difference, tuples that speak."""

    scale: FloatArray
    length: float
    mass: float


@dataclass(frozen=True)
class TupleRecipe:
    """Survey, contrast and descent."""

    loss: TupleLoss
    size: int  # members of a tuple
    # Rows asked for; None learns few directions and blends them with Euclid
    n_components: int | None = None
    n_steps: int | None = None  # None follows the public rule
    max_grad_norm: float | None = None
    headline: str = "gradients"

    def ask(self, facts: PublicFacts) -> tuple[QuerySpec, ...]:
        """Three queries, in fixed shares of the budget."""
        d = facts.n_features
        if d > MOST_FEATURES:
            raise InputError(
                f"tuples take at most {MOST_FEATURES} features; got {d}: project them with a public "
                "projection first"
            )
        usual = STEPS_PURE if facts.mechanism.is_pure else NUMBERS.steps
        if not facts.budget.is_private:
            usual = STEPS_WITHOUT_NOISE
        rest = 1 - NUMBERS.survey_share - NUMBERS.contrast_share
        return (
            QuerySpec("survey", (d + 2,), NUMBERS.survey_share),
            QuerySpec("contrast", (triangle(d),), NUMBERS.contrast_share),
            QuerySpec("gradients", (self._rows(d), d), rest, self.n_steps or usual),
        )

    def _rows(self, d: int) -> int:
        return self.n_components or min(d, NUMBERS.directions)

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
        stage = survey_tuples(plan, engine, self.size)
        W, trust = start_from_contrast(plan, engine, stage, self.size, self._rows(plan.n_features))
        W, heard = self._descend(plan, engine, stage, W)
        learned = W * stage.scale / NUMBERS.typical_distance
        if self.n_components is not None:
            return learned
        blend = blend_of(W, max(trust, heard))
        return with_euclid(math.sqrt(1 - blend) * learned, math.sqrt(blend) / stage.length)

    def _descend(
        self, plan: Plan, engine: Engine, stage: SurveyedTuples, W: FloatArray
    ) -> tuple[FloatArray, float]:
        """Clipped noisy steps, shrunk and averaged; and how much of the answers is more than noise."""
        query, (k, d) = plan["gradients"], W.shape
        clip, width = self.max_grad_norm or NUMBERS.clip, clip_width(plan, "gradients")
        noise = query.noise_std(width) / math.sqrt(
            query.steps
        )  # of all steps, in units of the clip
        total = NUMBERS.total_step
        if noise > 0:
            total = min(total, NUMBERS.step_per_signal * stage.mass / (noise * math.sqrt(d * k)))
        step = total / query.steps
        faded = step * NUMBERS.shrinkage * noise / stage.mass
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


def survey_tuples(plan: Plan, engine: Engine, size: int) -> SurveyedTuples:
    """Ask how differences spread; put columns on one scale."""
    query, d, n = plan["survey"], plan.n_features, plan.n_records
    longest, clip = 2 * plan.data_norm, TupleSurvey.bound(SIDE, query.mechanism.norm)
    found = engine.answer(query, TupleSurvey(d, size, longest, SIDE, clip))
    noise = query.noise_std(clip)
    spread = found[:d]
    mass = float(min(max(found[d + 1] / SIDE, 0.02 * n, noise / SIDE), n))
    length = longest * float(np.clip(found[d] / SIDE / mass, 0.1, 1.0)) ** 2
    return SurveyedTuples(scale_of(spread, noise, length), length, mass)


def start_from_contrast(
    plan: Plan, engine: Engine, stage: SurveyedTuples, size: int, k: int
) -> tuple[FloatArray, float]:
    """Ask for the contrast; its leading directions, by how far they stand out of the noise.

    Returns them with the trust in the first, from 0 to 1.
    """
    query, d = plan["contrast"], plan.n_features
    clip = NUMBERS.contrast_clip * clip_width(plan, "contrast")
    answer = engine.answer(query, TupleContrast(d, size, clip, stage.scale))
    values, vectors = np.linalg.eigh(unpacked(answer, d))
    leading, directions = np.maximum(values[::-1][:k], 1e-9), vectors[:, ::-1][:, :k].T
    # The largest eigenvalue of noise alone: a symmetric matrix, sigma / sqrt(2) off the diagonal.
    edge = query.noise_std(clip) * math.sqrt(2 * d)
    trust = np.clip(1 - (edge / leading) ** 2, 0.0, 1.0)
    W = np.sqrt(leading * np.maximum(trust, NUMBERS.least_trust))[:, None] * directions
    return signed(W) * (NUMBERS.start_length / np.linalg.norm(W)), float(trust[0])


def clip_width(plan: Plan, name: str) -> float:
    """Clip bound in the mechanism's norm, relative to the one in l2."""
    query = plan[name]
    if query.mechanism.norm == "l2":
        return 1.0
    return max(1.0, L1_CLIP * math.sqrt(query.n_entries))


def blend_of(W: FloatArray, trust: float) -> float:
    """Weight of Euclid: little for one direction, more where many share it or none is trusted."""
    squares = np.linalg.svd(W, compute_uv=False) ** 2
    total = float(squares.sum())
    if total <= 0:
        return 1.0
    shared = 1 - float((squares**2).sum()) / total**2  # 0: one direction; 1 - 1/k: k equal ones
    least, most = NUMBERS.blend_one, NUMBERS.blend_many
    return float(1 - trust**NUMBERS.trust_power * (1 - (least + (most - least) * shared)))


# ---- the learners --------------------------------------------------------------------------------

MARGIN = 1.0


class TupleParameters(Common, total=False):
    """What both learners take; see `DPPTripletLearner`."""

    margin: float
    n_components: int | None
    n_steps: int | Literal["auto"]
    max_grad_norm: float | Literal["auto"]


class _TupleLearner(PrivateMetricLearner):
    """What both learners share: from tuples to a certified metric."""

    learns_from = ("tuples",)
    _kinds = (TUPLES.name,)
    n_tuples_used_: int
    used_tuples_: NDArray[np.int64]

    def __init__(
        self,
        margin: float = MARGIN,
        n_components: int | None = None,
        n_steps: int | Literal["auto"] = "auto",
        max_grad_norm: float | Literal["auto"] = "auto",
        **common: Unpack[Common],
    ) -> None:
        super().__init__(**common)
        self.margin = margin
        self.n_components = n_components
        self.n_steps = n_steps
        self.max_grad_norm = max_grad_norm

    def _check(self, given: Any, n_features: int) -> None:
        check_components(given.n_components, n_features)
        check_bound("margin", given.margin)
        if given.max_grad_norm != "auto":
            check_bound("max_grad_norm", given.max_grad_norm)
        check_whole("n_steps", given.n_steps, "auto", most=10**5)

    def _loss(self, given: Any, size: int) -> str:
        """Name of the loss, for tuples of so many members."""
        raise NotImplementedError

    def _cut(self, given: Any, found: TupleSet) -> TupleSet:
        """The parts that are used of each tuple."""
        del given
        return found

    def _resolve(self, given: Any, data: Any, y: Any) -> Resolved:
        del given
        named, people = row_numbers(data, self.preprocessor), without_ids(self.preprocessor)
        table = RawRows.of(self).table(people, data)
        return Resolved(resolve_tuples(named, y, table, ids_of(self.preprocessor)))

    def _prepare_records(self, given: Any, found: Resolved) -> PreparedRecords:
        return super()._prepare_records(given, Resolved(*self._cut(given, found.data).canonical()))

    def _recipe(self, given: Any, records: PreparedRecords) -> TupleRecipe:
        size = records.used.size
        return TupleRecipe(
            TUPLE_LOSSES[self._loss(given, size)](margin=given.margin),
            size,
            given.n_components,
            None if given.n_steps == "auto" else given.n_steps,
            None if given.max_grad_norm == "auto" else given.max_grad_norm,
        )

    def _keep(self, model: Any, prepared: Prepared) -> None:
        super()._keep(model, prepared)
        for name in ("n_pairs_used_", "used_pairs_"):
            self.__dict__.pop(name, None)
        self.n_tuples_used_ = prepared.plan.n_records
        self.used_tuples_ = np.asarray(prepared.records.used_positions)


class DPPTripletLearner(_TupleLearner):
    """Learn a Mahalanobis metric from 'a is closer to p than to n', under differential privacy.

    Who is in a triplet is public, in no order; who plays which part is private.

    Parameters
    ----------
    margin : float, default 1.0
        How much further than the positive a negative is to be, in squared distances.
    n_components : int or None
        Rows of the metric. None learns few directions and blends them with the Euclidean metric.
    n_steps : int or 'auto'
    max_grad_norm : float or 'auto'
        Clip bound of one tuple's gradient.
    **common
        As for every learner: epsilon, delta, unit, select, kappa, adjacency, mechanism, data_norm,
        accountant, preprocessor, backend, random_state. ``select`` is that of tuples
        (`pairveil.graph.choosing.select_tuples`).

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    certificate_ : Certificate or None
        None when epsilon is infinite.
    kappa_ : int
        Tuples that the unit touches.
    n_tuples_used_ : int
    used_tuples_ : array of int
        Positions of the used tuples among the given ones (public), ascending.

    Examples
    --------
    >>> from pairveil import DPPTripletLearner, TupleSet, sample_tuples
    >>> from pairveil.records.embedded import load_patients
    >>> patients = load_patients()
    >>> asked = sample_tuples(569, size=3, max_per_person=2, random_state=0)
    >>> data = TupleSet.of_classes(patients.features.values, asked, patients.classes)
    >>> learner = DPPTripletLearner(epsilon=4.0, unit="person", select="all", random_state=0)
    >>> learner = learner.fit(data)
    >>> learner.kappa_, learner.n_tuples_used_, learner.certificate_.records
    (2, 378, 'tuples')
    """

    def _loss(self, given: Any, size: int) -> str:  # noqa: ARG002
        if size != 3:
            raise InputError(
                f"triplets have three members, these tuples {size}: DPPTupletLearner learns from them"
            )
        return "triplet"


class DPPTupletLearner(_TupleLearner):
    """Learn a Mahalanobis metric from tuples of an anchor, a positive and several negatives.

    Parameters
    ----------
    loss : {'tuplet', 'pairs', 'triplet'}
        'tuplet' is the (C+1)-tuplet loss, the positive against all negatives at once; 'pairs' the C-pair
        (N-pair) loss of tuples that hold pairs (anchor, positive, anchor, positive, ...); 'triplet' the mean
        hinge over the negatives.
    C : int or None
        Use tuples as (C+1)-tuplets: the anchor, the positive and the first C - 1 negatives (for 'pairs':
        the first C pairs). None uses all members.
    margin, n_components, n_steps, max_grad_norm
        As for `DPPTripletLearner`.
    **common
        As for every learner, see `DPPTripletLearner`.

    Attributes
    ----------
    components_, certificate_, kappa_, n_tuples_used_, used_tuples_
        As for `DPPTripletLearner`.

    Examples
    --------
    >>> from pairveil import DPPTupletLearner, TupleSet, sample_tuples
    >>> from pairveil.records.embedded import load_digits
    >>> digits = load_digits()
    >>> asked = sample_tuples(1797, size=8, random_state=0)
    >>> data = TupleSet.of_classes(digits.features.values, asked, digits.classes)
    >>> learner = DPPTupletLearner(epsilon=8.0, unit="person", random_state=0).fit(data)
    >>> learner.kappa_, learner.n_tuples_used_, learner.certificate_.plan["loss"]
    (1, 224, 'tuplet')
    """

    def __init__(
        self,
        loss: Literal["tuplet", "pairs", "triplet"] = "tuplet",
        C: int | None = None,
        **common: Unpack[TupleParameters],
    ) -> None:
        super().__init__(**common)
        self.loss = loss
        self.C = C

    def _check(self, given: Any, n_features: int) -> None:
        super()._check(given, n_features)
        check_choice("loss", given.loss, tuple(TUPLE_LOSSES))
        check_whole("C", given.C, None, least=2)

    def _loss(self, given: Any, size: int) -> str:
        if given.loss == "pairs" and size < 4:
            raise InputError("two pairs have four members; these tuples have three")
        return str(given.loss)

    def _cut(self, given: Any, found: TupleSet) -> TupleSet:
        return found if given.C is None else _first_parts(found, given.C, given.loss)


def _first_parts(data: TupleSet, C: int, loss: str) -> TupleSet:
    """The same tuples with parts for C pairs, or C others than the anchor, at most."""
    parts = 2 * C if loss == "pairs" else C + 1
    if parts > data.size:
        raise InputError(f"C={C} needs tuples of {parts} members; these have {data.size}")
    assert data.order is not None
    order = data.order.copy()
    order[:, parts:] = -1
    return data.with_order(order)
