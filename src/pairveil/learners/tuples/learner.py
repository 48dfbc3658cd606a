"""DPPTripletLearner and DPPTupletLearner: metrics from relative comparisons, with a certificate."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairveil.engine.losses import TUPLE_LOSSES
from pairveil.errors import InputError
from pairveil.learners.metric import PrivateMetricLearner
from pairveil.learners.parameters import (
    check_bound,
    check_choice,
    check_common,
    check_components,
    is_whole,
    plain_parameters,
)
from pairveil.learners.preparing import Prepared, prepare
from pairveil.learners.raw_rows import RawRows
from pairveil.learners.tuples.material import material_of_tuples, resolve_tuples
from pairveil.learners.tuples.recipe import TupleRecipe
from pairveil.records.tupleset import TupleSet

MARGIN = 1.0


class _TupleLearner(PrivateMetricLearner):
    """What both learners share: from tuples to a certified metric."""

    learns_from = ("tuples",)
    n_tuples_used_: int
    used_tuples_: NDArray[np.int64]

    def __init__(
        self,
        margin: float = MARGIN,
        n_components: int | None = None,
        n_steps: int | Literal["auto"] = "auto",
        max_grad_norm: float | Literal["auto"] = "auto",
        **common: Any,
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
        if given.n_steps != "auto" and not (
            is_whole(given.n_steps) and 1 <= given.n_steps <= 10**5
        ):
            raise InputError("n_steps must be 'auto' or a whole number from 1 to 100000")

    def _loss(self, given: Any, size: int) -> str:
        """Name of the loss, for tuples of so many members."""
        raise NotImplementedError

    def _cut(self, given: Any, found: TupleSet) -> TupleSet:
        """The parts that are used of each tuple."""
        del given
        return found

    def _prepare(self, pairs: Any, y: ArrayLike | None) -> Prepared:
        if isinstance(pairs, Prepared):
            return pairs
        given = plain_parameters(self)
        check_bound("data_norm", given.data_norm)
        found = self._resolved(pairs, y)
        check_common(given)
        self._check(given, found.n_features)
        found = self._cut(given, found)
        loss = TUPLE_LOSSES[self._loss(given, found.size)](margin=given.margin)
        recipe = TupleRecipe(
            loss,
            found.size,
            given.n_components,
            None if given.n_steps == "auto" else given.n_steps,
            None if given.max_grad_norm == "auto" else given.max_grad_norm,
        )
        material = material_of_tuples(given, found)
        return prepare(recipe, given, material, self._noise())

    def _resolved(self, tuples: Any, y: Any) -> TupleSet:
        """What was passed to ``fit``, raw columns read by the public schema or bounds."""
        rows, table = RawRows.of(self), self.preprocessor
        if rows.is_plain:
            return resolve_tuples(tuples, y, table)
        if isinstance(tuples, TupleSet):
            raise InputError(
                "a TupleSet holds numbers that were scaled: leave schema and bounds out"
            )
        if table is None:
            return resolve_tuples(tuples, y, None)  # which says what is missing
        if callable(table):
            return resolve_tuples(tuples, y, lambda people: rows.learned(table(people)))
        return resolve_tuples(tuples, y, rows.learned(table))

    def _keep(self, model: Any, prepared: Prepared) -> None:
        super()._keep(model, prepared)
        for name in ("n_pairs_used_", "used_pairs_"):
            self.__dict__.pop(name, None)
        self.n_tuples_used_ = prepared.plan.n_records
        self.used_tuples_ = np.asarray(prepared.material.used_rows)


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
    **common
        ``margin``, ``n_components``, ``n_steps``, ``max_grad_norm`` and what every learner takes, as for
        `DPPTripletLearner`.

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
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.loss = loss
        self.C = C

    def _check(self, given: Any, n_features: int) -> None:
        super()._check(given, n_features)
        check_choice("loss", given.loss, tuple(TUPLE_LOSSES))
        if given.C is not None and not (is_whole(given.C) and given.C >= 2):
            raise InputError("C must be None or a whole number of at least 2")

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
