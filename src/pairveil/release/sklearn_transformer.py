"""The released metric as a scikit-learn transformer: fitted from the start, no training data in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from pairveil.column_names import in_order
from pairveil.errors import InputError


class MetricTransformer(TransformerMixin, BaseEstimator):
    """Projects people into the space in which the learned metric is Euclidean.

    Put it in front of any scikit-learn step that uses Euclidean distances. It learns nothing: `fit`
    checks the width of its input and returns the object unchanged.

    Parameters
    ----------
    components : array of shape (n_components, n_features)
        The released matrix.
    feature_names : sequence of str, optional
        The columns, in order. A table with the same columns in another order is put in order, with a
        `DataWarning`; one with other columns is refused.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(MetricTransformer([[3.0, 0.0]]), KNeighborsClassifier(1))
    >>> model.fit([[0.0, 5.0], [1.0, -5.0]], ["a", "b"]).predict([[0.1, -5.0]])
    array(['a'], dtype='<U1')
    """

    def __init__(self, components: ArrayLike, feature_names: Sequence[str] | None = None) -> None:
        self.components = components
        self.feature_names = feature_names

    def fit(self, X: Any, y: Any = None) -> MetricTransformer:  # noqa: ARG002
        """Check that X has the metric's columns; nothing is learned from it."""
        self._points(X)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """People in the space where the metric is Euclidean, (n, n_components)."""
        projected: NDArray[np.float64] = self._points(X) @ self._matrix().T
        return projected

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Names of the projected columns: ``metric0``, ``metric1``, ..."""
        return np.array([f"metric{i}" for i in range(len(self._matrix()))], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Columns a person must have."""
        return int(self._matrix().shape[1])

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The columns, in order; no such attribute where they are not known."""
        if self.feature_names is None:
            raise AttributeError("this metric's columns have no names")
        return np.array(self.feature_names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _matrix(self) -> NDArray[np.float64]:
        return np.asarray(self.components, dtype=np.float64)

    def _points(self, X: Any) -> NDArray[np.float64]:
        table = in_order(X, self.feature_names, stacklevel=3)
        try:
            points = np.asarray(table, dtype=np.float64)
        except (TypeError, ValueError):
            # numpy's own message quotes the value it cannot read, and that value is a person's.
            raise InputError("every feature must be a number") from None
        if points.ndim != 2 or points.shape[1] != self.n_features_in_:
            raise InputError(f"the metric takes rows of {self.n_features_in_} features")
        if not np.all(np.isfinite(points)):
            raise InputError("every feature must be a finite number")
        return points
