"""From what a scikit-learn user passes to ``fit`` to features stored once and pairs of row indices."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pairveil._warn import warn
from pairveil.column_names import in_order, names_of
from pairveil.engine.backends.records import is_remote
from pairveil.errors import InputError, PairveilWarning, PrivacyLeakWarning
from pairveil.foreign import as_csr
from pairveil.privacy.units import ASSUMED_TOPOLOGY
from pairveil.records.canonical import NULL
from pairveil.records.labels import LabelColumn
from pairveil.records.pairset import PairSet
from pairveil.records.validation import neither


def as_pair_array(pairs: Any) -> NDArray[Any]:
    """Pairs as a NumPy array, (K, 2) of row indices or (K, 2, d) of feature rows."""
    array = np.asarray(pairs)
    if array.ndim == 2 and array.shape[1] == 2:
        return array
    if array.ndim == 3 and array.shape[1] == 2:
        return array
    raise InputError(
        f"pairs must have shape (n_pairs, 2) with preprocessor=X, or (n_pairs, 2, n_features); "
        f"got shape {array.shape}"
    )


def as_labels(y: Any, n_pairs: int, *, null: bool = False) -> NDArray[np.int8]:
    """Labels as int8 in {+1, -1}; anything else is refused without being shown.

    Of a `PairSet` they may be ``null``: 0 where mentions of a pair contradict each other, which is private.
    """
    if y is None:
        raise InputError(
            "y is missing: give +1 for each similar pair and -1 for each dissimilar one"
        )
    labels = np.asarray(y)
    if labels.ndim == 1 and any(isinstance(one, str) for one in labels[:1].tolist()):
        labels = _words(labels)
    if labels.shape != (n_pairs,):
        raise InputError(
            f"y must have one label for each of the {n_pairs} pairs; got {labels.shape}"
        )
    try:
        wrong = neither(labels if labels.dtype.kind in "iu" else labels.astype(np.float64))
    except (TypeError, ValueError):
        raise InputError(
            "y must be numbers: +1 for similar pairs, -1 for dissimilar ones"
        ) from None
    wrong = wrong[labels[wrong] != NULL] if null else wrong
    if wrong.size:
        raise InputError(
            f"y must be +1 (similar) or -1 (dissimilar): {wrong.size} labels are neither, "
            f"the first at position {wrong[0]}"
        )
    return labels.astype(np.int8, copy=False)


def _words(labels: NDArray[Any]) -> NDArray[np.int8]:
    """Labels written as words ('same', 'different', ...), as in files."""
    words = LabelColumn()
    try:
        words.add(pa.array(labels.tolist(), pa.string()))
    except (pa.ArrowException, TypeError):  # whose messages quote
        raise InputError("y must be one kind: words for similar and dissimilar, or +1/-1") from None
    return words.finish(None)


def lookup(preprocessor: Any, rows: NDArray[Any], names: Any = None) -> NDArray[np.float64]:
    """Feature rows of the people that ``rows`` names, by array, table or callable.

    ``names`` are the columns the rows must have, in order, where a table names its columns.
    """
    if preprocessor is None:
        raise InputError(
            "indices were given but there is no preprocessor: pass preprocessor=X (a pickled learner "
            "forgets it, since it holds people's features), or pass feature rows"
        )
    if callable(preprocessor):
        return as_features(in_order(preprocessor(rows), names))  # type: ignore[no-any-return]
    table = as_features(in_order(preprocessor, names))
    check_rows(rows, table.shape[0])
    found = table[rows]
    return found.toarray() if sparse.issparse(found) else found  # type: ignore[no-any-return]


def as_features(X: Any) -> Any:
    """Features as a float array or CSR matrix; the values are never part of a message."""
    if sparse.issparse(X):
        return as_csr(X)
    try:
        array = np.asarray(X)
        if array.dtype != np.float32:
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError("features must be numbers: some column is not numeric") from None
    if array.ndim != 2:
        raise InputError(f"features must have shape (n_people, n_features); got {array.shape}")
    return array


def check_rows(rows: NDArray[Any], n_people: int) -> None:
    """Refuse row indices that are no integers or name nobody."""
    if not np.issubdtype(rows.dtype, np.integer):
        raise InputError(
            "pairs of shape (n_pairs, 2) must hold integer row indices into preprocessor"
        )
    if rows.size and (rows.min() < 0 or rows.max() >= n_people):
        raise InputError(
            f"a pair names a row outside the preprocessor's {n_people} rows (rows count from 0)"
        )


def people_of_rows(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Recognise people by equal rows: features stored once, and (K, 2) indices into them."""
    features, where = np.unique(rows, axis=0, return_inverse=True)
    pairs = where.reshape(-1, 2).astype(np.int64)
    # Two people with equal features are still two: the second gets a row of his own, so that
    # the pair stays an edge of the graph (with a zero difference) instead of a loop. One twin for each
    # such row, whose number does not depend on the order of the pairs.
    loops = pairs[:, 0] == pairs[:, 1]
    twins, which = np.unique(pairs[loops, 1], return_inverse=True)
    pairs[loops, 1] = len(features) + which
    return np.concatenate([features, features[twins]]), pairs


class Resolved(NamedTuple):
    """What a fit learns from, in canonical order."""

    data: Any
    positions: NDArray[Any] | None  # of each pair among those given; None: where they were
    inferred: bool  # whether the topology had to be read off equal rows


def resolve_training(
    pairs: Any,
    y: ArrayLike | None,
    preprocessor: Any,
    backend: str,
    ids: Any = None,
) -> Resolved:
    """What was passed to ``fit``, as a function of the set of pairs: see `pairveil.records.canonical`.

    ``ids`` name the rows of the preprocessor. Pairs may also lie with the workers of a cluster (`DaskPairs`,
    which knows its own positions).
    """
    if not is_remote(pairs):
        given, inferred = _given(pairs, y, preprocessor, ids)
        return Resolved(*given.canonical(), inferred)
    if y is not None:
        raise InputError("labels of Dask pairs are one of their columns; leave y out")
    if backend != "dask":
        raise InputError("Dask pairs are summed by the cluster that holds them: backend='dask'")
    return Resolved(pairs, None, False)


def resolve_pairs(
    pairs: Any, y: ArrayLike | None, preprocessor: Any, *, warn: bool, ids: Any = None
) -> tuple[PairSet, bool]:
    """Pairs as a PairSet in canonical order, and whether the topology had to be read off equal rows."""
    with warnings.catch_warnings():
        if not warn:  # said already
            warnings.simplefilter("ignore", PairveilWarning)
        given, inferred = _given(pairs, y, preprocessor, ids=ids)
        return given.canonical()[0], inferred


def _given(pairs: Any, y: ArrayLike | None, preprocessor: Any, ids: Any) -> tuple[PairSet, bool]:
    """Pairs as a PairSet in the order given, and whether the topology was read off equal rows."""
    if isinstance(pairs, PairSet):
        if y is None and pairs.labels is not None:
            return pairs, False
        labels = as_labels(pairs.labels if y is None else y, pairs.n_pairs)
        return replace(pairs, labels=labels), False
    array = as_pair_array(pairs)
    if len(array) == 0:
        raise InputError("there are no pairs to learn from")
    labels = as_labels(y, len(array))
    if array.ndim == 3:
        rows = as_features(array.reshape(-1, array.shape[2]))
        advice = "; pass preprocessor=X and index pairs instead"
        warn(ASSUMED_TOPOLOGY + advice, PrivacyLeakWarning)
        return PairSet(*people_of_rows(rows), labels), True
    if callable(preprocessor):
        people, where = np.unique(array, return_inverse=True)
        table = preprocessor(people)
        named = names_of(table)
        return PairSet(as_features(table), where.reshape(-1, 2), labels, None, named), False
    if preprocessor is None:
        lookup(None, array)
    features = as_features(preprocessor)
    check_rows(array, features.shape[0])
    return PairSet(features, array, labels, ids, names_of(preprocessor)), False
