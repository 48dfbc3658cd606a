"""The contract every metric of pairveil keeps: metric-learn's, on top of scikit-learn's.

A fitted learner has ``components_`` (L) and its distance is ``||L (a - b)||_2``. What metric-learn does
and we do not: keep the training table in pickles, show raw input in errors, and set a threshold on
the training pairs without saying so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from pairveil._warn import warn
from pairveil.array_types import FloatArray
from pairveil.column_names import in_order, names_of, row_in_order
from pairveil.errors import InputError
from pairveil.learners.histogram import Strategy, best_threshold, check_strategy, match_odds
from pairveil.learners.inputs import as_features, as_labels, as_pair_array, lookup
from pairveil.learners.named_people import rows_of, without_ids
from pairveil.records.pairset import PairSet
from pairveil.schema.schema import Schema


class WithoutData(BaseEstimator):
    """Base of all that is fitted to private data: a pickle of what was fitted holds none of them."""

    def __getstate__(self) -> dict[str, Any]:
        """Once fitted, without what is its owner's alone; learners inside (a search's, a grid's) likewise.

        These are people's features, and places in the owner's file: it may be sorted by label, and then the
        positions of the used pairs tell of labels. Unfitted it is whole, as worker processes need it.
        """
        state: dict[str, Any] = dict(super().__getstate__())
        fitted = any(name.endswith("_") and not name.startswith("_") for name in state)
        return _without_owners(state) if fitted else state


def _without_owners(state: Mapping[str, Any]) -> dict[str, Any]:
    """A learner's parameters and attributes, the owner's own left out."""
    return {
        name: None if name == "preprocessor" else _for_others(value)
        for name, value in state.items()
        if not name.startswith("used_")
    }


def _for_others(value: Any) -> Any:
    """The same value, where learners in it have nothing of their owners."""
    if isinstance(value, WithoutData):
        bare = object.__new__(type(value))
        bare.__dict__ = _without_owners(vars(value))
        return bare
    if type(value) is dict:
        return {name: _for_others(one) for name, one in value.items()}
    return type(value)(map(_for_others, value)) if type(value) in (list, tuple) else value


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
            points = lookup(without_ids(self.preprocessor), array, names)
        else:
            points = as_features(array)
        self._check_width(points.shape[1])
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
        projected: FloatArray = np.asarray(points @ self.components_.T)
        return projected

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
            "fit(pairs, y), then transform(X) with one row a person; for a pipeline over people, export the "
            "fitted metric (ReleasedMetric, to_sklearn)"
        )

    def _set_names(self, names: tuple[str, ...] | None) -> None:
        """Keep the columns' names of this fit, and none of an earlier one."""
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _check_width(self, n_features: int) -> None:
        if n_features != self.n_features_in_:
            raise InputError(
                f"the metric was learned on {self.n_features_in_} features; got {n_features}"
            )

    def pair_distance(self, pairs: Any) -> FloatArray:
        """Learned distance of each pair, (K, 2, d) feature rows or (K, 2) indices."""
        check_is_fitted(self, "components_")
        array = as_pair_array(rows_of(pairs, self.preprocessor))
        left, right = self.transform(array[:, 0]), self.transform(array[:, 1])
        distance: FloatArray = np.linalg.norm(left - right, axis=1)
        return distance

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
        matrix: FloatArray = self.components_.T @ self.components_
        return matrix

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
        return self._set_best(distance, labels, strategy, min_rate, beta)

    def _set_best(
        self,
        distance: FloatArray,
        labels: Any,
        strategy: Strategy = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        edges = np.unique(distance)
        similar, _ = np.histogram(distance[labels > 0], np.append(edges, np.inf))
        dissimilar, _ = np.histogram(distance[labels < 0], np.append(edges, np.inf))
        found = best_threshold(edges, similar, dissimilar, strategy, min_rate, beta)
        self.set_threshold(found)
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
            raise InputError(
                "predict needs a threshold: call set_threshold(t) or calibrate_threshold(pairs, y) first "
                "(a private fit does not set one, because that would look at the training pairs again)"
            )
        return np.where(self.pair_distance(pairs) <= self.threshold_, 1, -1)

    # ---- nothing private in what is printed -----------------------------------------------------

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        defaults = type(self)().get_params(deep=False)
        parts = []
        for name, value in self.get_params(deep=False).items():
            if name == "preprocessor":
                parts += [] if value is None else ["preprocessor=<features>"]
            elif value is not defaults[name] and value != defaults[name]:
                parts.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_inner(self) -> str:
        return f"<code>{escape(repr(self))}</code>"


def check_calibration(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """``calibration_params`` of ``fit``, refused before the fit where no threshold can be chosen by them.

    Examples
    --------
    >>> check_calibration({"strategy": "max_tpr", "min_rate": 0.9})
    {'strategy': 'max_tpr', 'min_rate': 0.9}
    """
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
