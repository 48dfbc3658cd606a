"""The released metric as a scikit-learn transformer: fitted from the start, no training data in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pairveil.column_names import names_of
from pairveil.errors import InputError
from pairveil.release.metric import ReleasedMetric, as_released, finite_rows


class MetricTransformer(TransformerMixin, BaseEstimator):
    """Projects people into the space in which the learned metric is Euclidean.

    Put it in front of any scikit-learn step that uses Euclidean distances. It learns nothing: `fit`
    checks its input, and without a ``metric`` takes note of how many columns there are.

    Parameters
    ----------
    metric : ReleasedMetric, optional
        The release. Rows are what its `ReleasedMetric.transform` takes: raw ones where it has a schema.
        Without a metric it is Euclid's, of the columns that `fit` sees.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the columns have names.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> metric = ReleasedMetric([[3.0, 0.0]])
    >>> model = make_pipeline(MetricTransformer(metric), KNeighborsClassifier(1))
    >>> model.fit([[0.0, 5.0], [1.0, -5.0]], ["a", "b"]).predict([[0.1, -5.0]])
    array(['a'], dtype='<U1')
    """

    def __init__(self, metric: ReleasedMetric | None = None) -> None:
        self.metric = metric

    def fit(self, X: Any, y: Any = None) -> MetricTransformer:  # noqa: ARG002
        """Check that X has the metric's columns; nothing is learned from its values."""
        if self._released() is None:
            self._width, self._names = None, names_of(X)  # of this fit, not of an earlier one
            self._width = self._euclidean(X).shape[1]
        else:
            self.transform(X)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """People in the space where the metric is Euclidean, (n, n_components)."""
        check_is_fitted(self)
        metric = self._released()
        if metric is not None:
            return metric.transform(X)
        points = self._euclidean(X)
        return np.asarray(points.toarray() if sparse.issparse(points) else points)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Names of the projected columns: ``metric0``, ``metric1``, ..."""
        check_is_fitted(self)
        metric = self._released()
        columns = self.n_features_in_ if metric is None else metric.n_components
        return np.array([f"metric{i}" for i in range(columns)], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Columns a person must have; no such attribute before they are known."""
        metric = self._released()
        if metric is not None:
            return metric.n_features if metric.schema is None else len(metric.schema.raw_names)
        if getattr(self, "_width", None) is None:
            raise AttributeError("how many columns there are is known after fit")
        return int(self._width)  # type: ignore[arg-type]

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The columns, in order; no such attribute where they are not known."""
        metric = self._released()
        names = getattr(self, "_names", None) if metric is None else metric.raw_names
        if names is None:
            raise AttributeError("this metric's columns have no names")
        return np.array(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return self.metric is not None or getattr(self, "_width", None) is not None

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description: takes sparse rows, and needs no labels."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _released(self) -> ReleasedMetric | None:
        return None if self.metric is None else as_released(self.metric)

    def _euclidean(self, X: Any) -> Any:
        names, width = getattr(self, "_names", None), getattr(self, "_width", None)
        points = finite_rows(X, names, width)
        if 0 in points.shape:
            raise InputError(
                f"Found array with {points.shape[0]} sample(s) and {points.shape[1]} feature(s) "
                f"(shape={points.shape}) while a minimum of 1 is required."
            )
        return points
