"""Learners of a metric: metric-learn's contract on top of scikit-learn's, and private thresholds.

A fitted learner has ``components_`` (L) and its distance is ``||L (a - b)||_2``. What metric-learn does
and we do not: keep the training table in pickles, show raw input in errors, and set a threshold on
the training pairs without saying so.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.metrics import roc_auc_score
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils.validation import check_is_fitted

from pairveil.array_types import FloatArray
from pairveil.column_names import in_order, names_of, row_in_order
from pairveil.engine.backends.local import check_backend, kappa_of
from pairveil.engine.engine import Engine
from pairveil.errors import InputError, warn
from pairveil.graph import GraphSummary
from pairveil.graph.kappa import graph_summary
from pairveil.learners.base import PrivateLearner, WithoutData
from pairveil.learners.histogram import (
    DistanceCounts,
    Strategy,
    best_threshold,
    check_strategy,
    match_odds,
)
from pairveil.learners.inputs import (
    FITTED,
    RawRows,
    as_features,
    as_labels,
    as_pair_array,
    is_number,
    lookup,
    name_of_pairs,
    own_secret,
    row_numbers,
    without_ids,
)
from pairveil.learners.preparing import Prepared
from pairveil.privacy.calibrate import calibrate_laplace
from pairveil.privacy.grid import check_noise
from pairveil.privacy.joint_certificate import (
    Measurement,
    check_same_meanings,
    joint_certificate,
    meanings_of_certificate,
)
from pairveil.privacy.mechanisms import LAPLACE, Query
from pairveil.privacy.units import UNITS, float_at_most, meanings_of
from pairveil.records.identity import together_digest
from pairveil.records.kinds import KINDS
from pairveil.records.pairset import PairSet
from pairveil.schema.schema import Schema

# ---- what follows from components_ ---------------------------------------------------------------


class _NoThreshold(InputError):
    """Raised by predict."""


class PairMetric(ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, WithoutData):
    """Base of the learners: everything that follows from ``components_``.

    To scikit-learn it is a classifier of pairs, so that its scorers and cross-validation take it.
    """

    classes_: Any = np.array([-1, 1])  # of pairs; after `fit_classes` those of people
    components_: FloatArray
    n_features_in_: int
    preprocessor: Any

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description: takes pairs, needs labels, and its noise is new each time."""
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        tags.non_deterministic = getattr(self, "random_state", None) is None
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def transform(self, X: Any) -> FloatArray:
        """Map people into the space where the learned metric is Euclidean.

        Parameters
        ----------
        X : array or table of shape (n, n_features), or (n,) row indices into ``preprocessor``
            A pandas, polars or arrow table is matched by its column names where the learner knows
            them (``feature_names_in_``): put in order, with a `DataWarning`, or refused.

        Returns
        -------
        array of shape (n, n_components)
        """
        check_is_fitted(self, "components_")
        schema, names = getattr(self, "schema_", None), getattr(self, "feature_names_in_", None)
        if schema is not None:
            return self._project(self._by_schema(X, schema))
        X = in_order(X, names)
        array = X if sparse.issparse(X) else np.asarray(X)
        if array.ndim == 1:
            rows = row_numbers(array, self.preprocessor)
            points = lookup(without_ids(self.preprocessor), rows, names)
        else:
            points = as_features(array)
        if points.shape[1] != self.n_features_in_:
            raise InputError(
                f"the metric was learned on {self.n_features_in_} features; got {points.shape[1]}"
            )
        return self._project(points)

    def _by_schema(self, X: Any, schema: Schema) -> FloatArray:
        """Raw rows, or people by their row numbers, as the numbers that the schema makes."""
        if isinstance(X, Mapping) or names_of(X) is not None or np.ndim(X) == 2:
            return schema.apply(X)
        rows = np.asarray(X)
        if callable(self.preprocessor):
            return schema.apply(self.preprocessor(rows))
        table = None if self.preprocessor is None else schema.apply(self.preprocessor)
        return lookup(table, rows)

    def _project(self, points: Any) -> FloatArray:
        return np.asarray(points @ self.components_.T)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> FloatArray:  # noqa: ARG002
        """Not for learners of pairs: they learn from pairs and map people. Raises before anything is spent.

        scikit-learn's pipelines, which call this where it exists and ``fit`` and ``transform`` on the same
        rows where it does not, are refused here too.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(
            "fit_transform cannot learn from pairs and map people in one call, and nothing was spent: call "
            "fit(pairs, y), then transform(X) with one row a person; for a pipeline over people with classes "
            "say DPPMetricLearner(classes=[...]), for a fitted metric use MetricTransformer"
        )

    def _set_names(self, names: tuple[str, ...] | None) -> None:
        """Keep the columns' names of this fit, and none of an earlier one."""
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def pair_distance(self, pairs: Any) -> FloatArray:
        """Learned distance of each pair, (K, 2, d) feature rows or (K, 2) indices."""
        check_is_fitted(self, "components_")
        array = as_pair_array(row_numbers(pairs, self.preprocessor))
        left, right = self.transform(array[:, 0]), self.transform(array[:, 1])
        return np.asarray(np.linalg.norm(left - right, axis=1))

    def pair_score(self, pairs: Any) -> FloatArray:
        """Similarity of each pair: minus the distance."""
        return -self.pair_distance(pairs)

    def score_pairs(self, pairs: Any) -> FloatArray:
        """metric-learn's old name of `pair_distance`."""
        check_is_fitted(self, "components_")
        warn(
            "score_pairs is metric-learn's old name: use pair_distance, or pair_score for similarity",
            FutureWarning,
        )
        return self.pair_distance(pairs)

    def decision_function(self, pairs: Any) -> FloatArray:
        """Same as ``pair_score``: larger means 'similar'."""
        return self.pair_score(pairs)

    def score(self, pairs: Any, y: ArrayLike) -> float:
        """ROC AUC of the learned similarity for the labels ``y`` (+1 similar, -1 dissimilar)."""
        labels = as_labels(y, len(as_pair_array(pairs)))
        return float(roc_auc_score(labels, self.decision_function(pairs)))

    def get_metric(self) -> Callable[[ArrayLike, ArrayLike], float]:
        """The distance as a function of two people, ready for scikit-learn's ``metric=``.

        They are rows as `transform` takes them: raw ones where the learner has a schema.
        """
        check_is_fitted(self, "components_")
        schema, components = getattr(self, "schema_", None), self.components_.copy()
        names = getattr(self, "feature_names_in_", None) if schema is None else schema.raw_names

        def row(person: ArrayLike) -> FloatArray:
            ordered = row_in_order(person, names)
            return _vector(ordered if schema is None else schema.encode(np.atleast_2d(ordered))[0])

        def metric(u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
            difference = row(u) - row(v)
            mapped = np.dot(difference, components.T)
            length = float(np.dot(mapped, mapped))
            return length if squared else float(np.sqrt(length))

        return metric

    def get_mahalanobis_matrix(self) -> FloatArray:
        """M = L^T L, the matrix of the squared distance."""
        check_is_fitted(self, "components_")
        return np.asarray(self.components_.T @ self.components_)

    # ---- 'similar' or 'dissimilar' needs a threshold, and a threshold needs a reason -----------

    def set_threshold(self, threshold: float) -> Self:
        """Call pairs nearer than ``threshold`` similar, others dissimilar."""
        check_is_fitted(self, "components_")
        if not (isinstance(threshold, int | float | np.number) and np.isfinite(threshold)):
            raise InputError("threshold must be a finite number")
        self.threshold_ = float(threshold)
        self.__dict__.pop("match_odds_", None)  # of an earlier calibration
        return self

    def calibrate_threshold(
        self,
        pairs_valid: Any,
        y_valid: ArrayLike,
        strategy: Strategy = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        """Choose the threshold on labelled validation pairs (not privately).

        Parameters
        ----------
        pairs_valid, y_valid
            Labelled pairs that were not used to fit.
        strategy : {'accuracy', 'f_beta', 'max_tpr', 'max_tnr'}
            What to make best; the last two keep the other rate at ``min_rate`` or more.
        min_rate, beta : float
            See ``strategy``.
        """
        distance = self.pair_distance(pairs_valid)
        labels = as_labels(y_valid, len(distance))
        return self._set_best(distance, labels, strategy=strategy, min_rate=min_rate, beta=beta)

    def _set_best(self, distance: FloatArray, labels: Any, **how: Any) -> Self:
        edges = np.unique(distance)
        similar, _ = np.histogram(distance[labels > 0], np.append(edges, np.inf))
        dissimilar, _ = np.histogram(distance[labels < 0], np.append(edges, np.inf))
        self.set_threshold(best_threshold(edges, similar, dissimilar, **how))
        self.match_odds_ = match_odds(edges, similar, dissimilar)
        return self

    def match_probability(self, pairs: Any) -> NDArray[np.float64]:
        """How likely each pair is similar, at the share of similar pairs that was calibrated on.

        It needs `calibrate_threshold`, and is made of the same counts: it costs nothing more.
        """
        check_is_fitted(self, "components_")
        if not hasattr(self, "match_odds_"):
            raise InputError("match_probability needs calibrate_threshold(pairs, y) first")
        a, b = self.match_odds_
        odds = np.clip(a - b * np.asarray(self.pair_distance(pairs)) ** 2, -700, 700)
        return np.asarray(1.0 / (1.0 + np.exp(-odds)))

    def _threshold_by_fit(self, data: PairSet, params: Mapping[str, Any]) -> None:
        """The threshold that metric-learn's ``fit`` sets: on the training pairs, where nothing is private."""
        points = self._project(data.features)
        distance = np.linalg.norm(points[data.pairs[:, 0]] - points[data.pairs[:, 1]], axis=1)
        labels = np.asarray(data.labels)
        self._set_best(distance[labels != 0], labels[labels != 0], **params)

    def predict(self, pairs: Any) -> NDArray[np.int64]:
        """+1 for pairs nearer than the threshold, -1 for the others."""
        check_is_fitted(self, "components_")
        if not hasattr(self, "threshold_"):
            raise _NoThreshold(
                "predict needs a threshold: call set_threshold(t) or calibrate_threshold(pairs, y) first "
                "(a private fit does not set one, because that would look at the training pairs again)"
            )
        return np.where(self.pair_distance(pairs) <= self.threshold_, 1, -1)

    # ---- nothing private in what is printed -----------------------------------------------------

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        defaults = type(self)().get_params(deep=False)
        parts = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if value is not defaults[name] and value != defaults[name]
        ]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_inner(self) -> str:
        return f"<code>{escape(repr(self))}</code>"


def check_calibration(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """``calibration_params`` of ``fit``, refused before the fit where no threshold can be chosen by them."""
    stated = dict(params or {})
    unknown = sorted(set(stated) - {"strategy", "min_rate", "beta"})
    if unknown:
        raise InputError(f"calibration_params has no '{unknown[0]}': strategy, min_rate and beta")
    check_strategy(stated.get("strategy", "accuracy"), stated.get("min_rate"))
    beta = stated.get("beta", 1.0)
    if not isinstance(beta, int | float | np.number):
        raise InputError("beta must be a number, 0 or more")
    return stated


def _vector(person: Any) -> FloatArray:
    """One person's features, (d,) or (1, d)."""
    try:
        vector: FloatArray = np.atleast_1d(np.asarray(person, dtype=np.float64).squeeze())
    except (TypeError, ValueError):
        raise InputError("a person is a row of numbers") from None
    if vector.ndim > 1:
        raise InputError(f"the metric takes two people, a row each; got shape {vector.shape}")
    return vector


# ---- private learners of a metric ----------------------------------------------------------------

OF_A_FIT = (
    "n_pairs_used_", "used_pairs_", "n_people_used_", "score_", "column_scale_", "schema_",
    "threshold_", "match_odds_", "threshold_certificate_", "_threshold_choices",
)  # fmt: skip
"""What a new fit forgets: it has no threshold, and nothing was calibrated for it yet."""


class PrivateMetricLearner(PrivateLearner, PairMetric):
    """A certified fit, everything that follows from ``components_``, and thresholds that are charged.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    n_pairs_used_ : int
    used_pairs_ : array of int or range
        Positions of the used pairs among the given ones (public), ascending.
    graphs_ : tuple of GraphSummary or None
        Public counts of the graph of the used pairs and of the given ones.
    n_features_in_ : int
    """

    n_pairs_used_: int
    used_pairs_: NDArray[np.int64] | range
    graphs_: tuple[GraphSummary | None, GraphSummary | None]

    def __sklearn_clone__(self) -> Self:
        """A copy for a search; refused where the search would spend on scores that no fold can have."""
        of_pairs = getattr(self, "classes", None) is None  # else a pipeline's last step is scored
        problem = _of_scoring(self) if of_pairs and math.isfinite(self.epsilon) else None
        if problem is not None:
            raise InputError(
                f"this scoring fails for a private fit ({problem}): score by 'roc_auc', or leave scoring "
                "out. Nothing was spent"
            )
        return super().__sklearn_clone__()

    def fit(
        self,
        pairs: Any,
        y: ArrayLike | None = None,
        *,
        calibration_params: Mapping[str, Any] | None = None,
        **watching: Any,
    ) -> Self:
        """Learn, and issue the certificate.

        Parameters
        ----------
        pairs : (K, 2) row indices with ``preprocessor``, (K, 2, d) feature rows, or PairSet
            What ``prepare`` returned is taken too.
        y : array of shape (K,)
            +1 similar, -1 dissimilar. None takes a PairSet's own labels.
        calibration_params : mapping, optional
            How to choose the threshold on the training pairs (``strategy``, ``min_rate``, ``beta``), as in
            metric-learn. Only where epsilon is infinite, and then by default too: a threshold chosen on
            private pairs is a release of its own, which `calibrate_threshold` makes and charges.
        **watching
            ``on_step``, ``on_answer``, ``checkpoint`` and ``keep_checkpoint``, as for
            `pairveil.learners.base.PrivateLearner`.

        Returns
        -------
        self
        """
        params = check_calibration(calibration_params)
        check_backend(self.backend)
        prepared = self.prepare(pairs, y)
        if calibration_params is not None and prepared.certificate is not None:
            raise InputError(
                "a threshold chosen on private pairs is a release of its own, and nothing was spent: leave "
                "calibration_params out, and call calibrate_threshold(pairs, y, epsilon=...) after fit"
            )
        super().fit(prepared, **watching)
        given = prepared.records.given
        if prepared.certificate is None and isinstance(given, PairSet):
            if isinstance(pairs, Prepared) or prepared.records.classes is not None:
                given = given.with_features(given.features / getattr(self, "column_scale_", 1.0))
            else:  # rows as they were given, not as they were clipped
                given = self._read_pairs(pairs, y, learning=False, quiet=True).data
            self._threshold_by_fit(given, params)
        return self

    def _released(self) -> Any:
        import pairveil  # what is past the trust boundary stands above this part

        schema: Schema | None = getattr(self, "schema_", None)
        names = getattr(self, "feature_names_in_", None)
        return pairveil.ReleasedMetric(  # type: ignore[attr-defined]
            self.components_,
            self.certificate_,
            None if names is None or schema is not None else tuple(names),
            getattr(self, "column_scale_", None),
            schema,
        )

    def _keep(self, model: Any, prepared: Prepared) -> None:
        self.components_ = np.asarray(model, dtype=np.float64)
        for name in OF_A_FIT:  # of an earlier one
            self.__dict__.pop(name, None)
        raw = RawRows.of(self)
        scale = raw.scale(prepared.plan.n_features)
        if scale is not None:
            self.components_ = self.components_ * scale
            self.column_scale_ = scale
        if raw.schema is not None:
            self.schema_ = raw.schema
        self.graphs_ = _graphs(prepared.records)
        if KINDS[prepared.records.kind].alone:
            self.n_people_used_ = prepared.plan.n_records
        else:
            self.n_pairs_used_ = prepared.records.n_used
            self.used_pairs_ = prepared.records.used_positions
        named = raw.names()
        self._set_names(prepared.records.used.feature_names if named is None else named)
        self.n_features_in_ = (
            prepared.plan.n_features if raw.schema is None else len(raw.schema.raw_names)
        )

    # ---- thresholds on private pairs: a release of their own, charged and certified with the metric ----

    def calibrate_threshold(
        self,
        pairs_valid: Any,
        y_valid: ArrayLike,
        strategy: Strategy = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
        *,
        public: bool = False,
        epsilon: float | None = None,
    ) -> Self:
        """Choose the threshold on labelled pairs, privately or on public ones.

        Parameters
        ----------
        pairs_valid, y_valid, strategy, min_rate, beta
            As in metric-learn.
        public : bool
            The validation pairs are public: nothing is charged.
        epsilon : float, optional
            The validation pairs are private: a histogram of their distances is released with Laplace
            noise for this pure epsilon, for ``unit`` and ``adjacency``, charged to ``accountant``, and
            put together with the fit's releases, and with every threshold calibrated privately since
            the fit, in ``threshold_certificate_``: what the metric and its thresholds cost together.

        Raises
        ------
        InputError
            When neither is said: a threshold read off private pairs would be an uncharged release.
        """
        check_is_fitted(self, "components_")
        if self.certificate_ is None or public:
            return super().calibrate_threshold(pairs_valid, y_valid, strategy, min_rate, beta)
        if epsilon is None:
            raise InputError(
                "a threshold chosen on private pairs is a release of its own: say public=True if these "
                "pairs are public, or epsilon=... to charge it"
            )
        if not (is_number(epsilon) and 0 < epsilon < math.inf):
            raise InputError("epsilon must be a number above 0, not infinite")
        epsilon = float_at_most(epsilon)  # numpy's short floats round in their own way
        check_strategy(strategy, min_rate)  # before anything is spent on it
        found = self._read_pairs(pairs_valid, y_valid, learning=False)
        data, guessed = found.data, found.inferred
        shares = data.together is not None
        column = together_digest(data.ids, data.together) if shares else None
        meanings = meanings_of(shares=shares, column=column)
        fitted_pairs, stated = FITTED.get(self, (None, None))
        if stated is None:  # an earlier process's fit: what its certificate says
            stated = meanings_of_certificate(self.certificate_)
        check_same_meanings(stated, meanings)
        graph = name_of_pairs(data, own_secret(self, pairs_valid, guessed=guessed))
        counted = kappa_of(data)
        noise = calibrate_laplace(epsilon, kappa=counted.of(self.unit), adjacency=self.adjacency)
        scaled = self.components_ / getattr(
            self, "column_scale_", 1.0
        )  # of rows as they were learned
        # Where noise left nothing but zeros, everybody is at distance 0: in the first cell.
        longest = 2 * self.data_norm * float(np.linalg.norm(scaled, 2)) or 1.0
        histogram = DistanceCounts(components=self.components_, longest=longest)
        query = Query("threshold", histogram.shape, noise, mechanism=LAPLACE)
        check_noise(noise, query.n_entries, LAPLACE.norm)
        kappas = {unit: counted.of(unit) for unit in UNITS}
        source = self._noise()
        same = graph is not None and graph == fitted_pairs
        made = Measurement.of_threshold(query, kappas, data.n_pairs, source.name, guessed, same)
        made_so_far = (*getattr(self, "_threshold_choices", ()), made)
        joint = joint_certificate(self.certificate_, made_so_far)
        if self.accountant is not None:
            self.accountant.spend(
                [query.event()], kappas, note="threshold", graph=graph, meanings=meanings
            )
        # Before the noise is drawn: what fails after that counts, and no older certificate speaks for it.
        self._threshold_choices = made_so_far
        self.__dict__.pop("threshold_certificate_", None)
        similar, dissimilar = Engine(data, source).answer(query, histogram)
        edges = histogram.edges
        self.set_threshold(best_threshold(edges, similar, dissimilar, strategy, min_rate, beta))
        self.match_odds_ = match_odds(edges, similar, dissimilar, noise)
        self.threshold_certificate_ = joint
        return self

    def set_threshold(self, threshold: float) -> Self:
        """Call pairs nearer than ``threshold`` similar, others dissimilar.

        Nobody knows where a number set by hand comes from, so no certificate speaks for it:
        ``threshold_certificate_`` goes. Thresholds calibrated before stay counted in the next one's.
        """
        super().set_threshold(threshold)
        self.__dict__.pop("threshold_certificate_", None)
        return self


def _graphs(records: Any) -> tuple[GraphSummary | None, GraphSummary | None]:
    if records.used_kappa is None or not hasattr(records.used, "pairs"):
        return None, None  # no pairs, or with the workers: who is paired with whom is not here
    return (
        graph_summary(records.used_kappa, records.used),
        graph_summary(records.given_kappa, records.given),
    )


def _of_scoring(learner: PrivateMetricLearner) -> Exception | None:
    """Why a search or cross-validation that is making clones cannot score them.

    scikit-learn asks no estimator which scorers it will meet, and turns the error of a score into nan after
    the fit was charged. So the scorers of the calling search are looked up, and tried beforehand.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("sklearn."):
            held = frame.f_locals
            scorers = held.get("scorers", held.get("scorer"))  # of a search, or of a curve
            if frame.f_code.co_name == "cross_val_predict":
                scorers = partial(_answer, str(held.get("method")))
            if scorers is not None:
                every = getattr(scorers, "_scorers", {"score": scorers}).values()
                found = (_tried(one, learner, held.get("X")) for one in every)
                return next((problem for problem in found if problem is not None), None)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _answer(method: str, learner: Any, pairs: Any, _: Any) -> Any:
    return getattr(learner, method)(pairs)


def _tried(scorer: Any, learner: PrivateMetricLearner, X: Any) -> Exception | None:
    """How a scorer fails on made-up pairs and a learner that learned nothing.

    What else a function of the user's own may want of a fit is not known: it passes.
    """
    bare = type(learner)(**learner.get_params(deep=False)).set_params(accountant=None)
    bare.components_, bare.n_features_in_ = np.ones((1, 1)), 1
    bare.pair_distance = lambda pairs: np.linspace(1.0, 2.0, len(pairs))  # type: ignore[method-assign]
    pairs = (
        np.linspace(0.0, 1.0, 40).reshape(20, 2, 1)
        if np.ndim(X) == 3
        else np.arange(40).reshape(20, 2)
    )
    try:
        with warnings.catch_warnings(action="ignore"):
            scorer(bare, pairs, np.resize([1, -1], 20))
    except Exception as problem:
        known = isinstance(problem, _NoThreshold) or isinstance(scorer, _BaseScorer)
        return problem if known else None
    return None
