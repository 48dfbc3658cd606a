"""The released metric as a scikit-learn transformer: fitted from the start, no training data in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pairveil.column_names import in_order, names_of
from pairveil.errors import InputError
from pairveil.foreign import as_csr


class MetricTransformer(TransformerMixin, BaseEstimator):
    """Projects people into the space in which the learned metric is Euclidean.

    Put it in front of any scikit-learn step that uses Euclidean distances. It learns nothing: `fit`
    checks its input, and without ``components`` takes note of how many columns there are.

    Parameters
    ----------
    components : array of shape (n_components, n_features), optional
        The released matrix. Without it the metric is Euclid's, of the columns that `fit` sees.
    feature_names : sequence of str, optional
        The columns, in order. A table with the same columns in another order is put in order, with a
        `DataWarning`; one with other columns is refused.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the columns have names.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(MetricTransformer([[3.0, 0.0]]), KNeighborsClassifier(1))
    >>> model.fit([[0.0, 5.0], [1.0, -5.0]], ["a", "b"]).predict([[0.1, -5.0]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self, components: ArrayLike | None = None, feature_names: Sequence[str] | None = None
    ) -> None:
        self.components = components
        self.feature_names = feature_names

    def fit(self, X: Any, y: Any = None) -> MetricTransformer:  # noqa: ARG002
        """Check that X has the metric's columns; nothing is learned from its values."""
        if self.components is None:
            self._width, self._names = None, names_of(X)  # of this fit, not of an earlier one
            self._width = self._points(X).shape[1]
        else:
            self._points(X)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """People in the space where the metric is Euclidean, (n, n_components)."""
        check_is_fitted(self)
        points = self._points(X)
        if self.components is None:
            return np.asarray(points.toarray() if sparse.issparse(points) else points)
        projected: NDArray[np.float64] = np.asarray(points @ self._matrix().T)
        return projected

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Names of the projected columns: ``metric0``, ``metric1``, ..."""
        check_is_fitted(self)
        rows = self.n_features_in_ if self.components is None else len(self._matrix())
        return np.array([f"metric{i}" for i in range(rows)], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Columns a person must have; no such attribute before they are known."""
        if self.components is not None:
            return int(self._matrix().shape[1])
        if getattr(self, "_width", None) is None:
            raise AttributeError("how many columns there are is known after fit")
        return int(self._width)  # type: ignore[arg-type]

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The columns, in order; no such attribute where they are not known."""
        names = self._known_names()
        if names is None:
            raise AttributeError("this metric's columns have no names")
        return np.array(names, dtype=object)

    def _known_names(self) -> Sequence[str] | None:
        return (
            self.feature_names if self.feature_names is not None else getattr(self, "_names", None)
        )

    def __sklearn_is_fitted__(self) -> bool:
        return self.components is not None or getattr(self, "_width", None) is not None

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description: takes sparse rows, and needs no labels."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _matrix(self) -> NDArray[np.float64]:
        return np.asarray(self.components, dtype=np.float64)

    def _points(self, X: Any) -> Any:
        """Rows of finite numbers, in the metric's order; nothing of them is ever part of a message."""
        table = in_order(X, self._known_names(), stacklevel=3)
        points = _numbers(table)
        if points.ndim != 2:
            raise InputError(
                f"Expected 2D array, got {points.ndim}D array instead. Reshape your data: one row a person"
            )
        rows, columns = points.shape
        if rows == 0 or columns == 0:
            raise InputError(
                f"Found array with {rows} sample(s) and {columns} feature(s) (shape=({rows}, {columns})) "
                "while a minimum of 1 is required."
            )
        wanted = getattr(self, "n_features_in_", None)
        if wanted is not None and columns != wanted:
            raise InputError(
                f"X has {columns} features, but {type(self).__name__} is expecting {wanted} features as input"
            )
        if not np.all(np.isfinite(points.data if sparse.issparse(points) else points)):
            raise InputError(
                "every feature must be a finite number: X holds a NaN or an infinity (inf)"
            )
        return points


class _NotANumber(InputError, TypeError):
    """A cell that is no number at all, as scikit-learn's own checks call it."""


def _numbers(table: Any) -> Any:
    kind = table.dtype.kind if hasattr(table, "dtype") else np.asarray(table).dtype.kind
    if kind == "c":
        raise InputError("Complex data not supported: every feature must be a number")
    if sparse.issparse(table):
        return as_csr(table).astype(np.float64, copy=False)
    try:
        return np.asarray(table, dtype=np.float64)
    except ValueError:
        # numpy's own message quotes the value it cannot read, and that value is a person's.
        raise InputError("every feature must be a number") from None
    except TypeError:
        raise _NotANumber(
            "every feature must be a number: argument must be a string or a number"
        ) from None
