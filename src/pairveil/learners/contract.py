"""The contract every metric of pairveil keeps: metric-learn's, on top of scikit-learn's.

A fitted learner has ``components_`` (L) and its distance is ``||L (a - b)||_2``. What metric-learn does
and we do not: keep the training table in pickles, show raw input in errors, and set a threshold on
the training pairs without saying so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from pairveil.column_names import in_order, row_in_order
from pairveil.errors import InputError
from pairveil.learners.inputs import as_features, as_labels, as_pair_array, lookup
from pairveil.learners.thresholds import Strategy, best_threshold, match_odds

FloatArray = NDArray[np.float64]


class PairMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the learners: everything that follows from ``components_``."""

    components_: FloatArray
    n_features_in_: int
    preprocessor: Any

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
        names = getattr(self, "feature_names_in_", None)
        X = in_order(X, names, stacklevel=3)
        array = X if sparse.issparse(X) else np.asarray(X)
        points = lookup(self.preprocessor, array, names) if array.ndim == 1 else as_features(array)
        self._check_width(points.shape[1])
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
        array = as_pair_array(pairs)
        left, right = self.transform(array[:, 0]), self.transform(array[:, 1])
        distance: FloatArray = np.linalg.norm(left - right, axis=1)
        return distance

    def pair_score(self, pairs: Any) -> FloatArray:
        """Similarity of each pair: minus the distance."""
        return -self.pair_distance(pairs)

    def decision_function(self, pairs: Any) -> FloatArray:
        """Same as ``pair_score``: larger means 'similar'."""
        return self.pair_score(pairs)

    def score(self, pairs: Any, y: ArrayLike) -> float:
        """ROC AUC of the learned similarity for the labels ``y`` (+1 similar, -1 dissimilar)."""
        labels = as_labels(y, len(as_pair_array(pairs)))
        return float(roc_auc_score(labels, self.decision_function(pairs)))

    def get_metric(self) -> Callable[[ArrayLike, ArrayLike], float]:
        """The distance as a function of two people, ready for scikit-learn's ``metric=``."""
        check_is_fitted(self, "components_")
        components, names = self.components_.copy(), getattr(self, "feature_names_in_", None)

        def metric(u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
            u, v = row_in_order(u, names), row_in_order(v, names)
            mapped = components @ (np.asarray(u, dtype=float) - np.asarray(v, dtype=float))
            return float(mapped @ mapped) if squared else float(np.sqrt(mapped @ mapped))

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
        if not np.isfinite(threshold):
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

    def predict(self, pairs: Any) -> NDArray[np.int64]:
        """+1 for pairs nearer than the threshold, -1 for the others."""
        check_is_fitted(self, "components_")
        if not hasattr(self, "threshold_"):
            raise InputError(
                "predict needs a threshold: call set_threshold(t) or calibrate_threshold(pairs, y) first "
                "(fit does not set one, because that would look at the training pairs again)"
            )
        return np.where(self.pair_distance(pairs) <= self.threshold_, 1, -1)

    # ---- nothing private in what is printed or pickled ------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """A fitted learner is pickled without people's features, and without places in their owner's file.

        A file may be sorted by label, and then the positions of the used pairs tell of labels.
        """
        state: dict[str, Any] = dict(super().__getstate__())
        if "components_" in state:
            state["preprocessor"] = None
            state.pop("used_pairs_", None)
        return state

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
        return f"<code>{self!r}</code>"
