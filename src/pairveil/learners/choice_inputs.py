"""From what is passed to a ranker's ``fit`` to `Choices` between items with public features."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.array_types import FloatArray
from pairveil.data.choices import Choices
from pairveil.data.similar_ids import count_similar
from pairveil.errors import IdentityWarning, InputError
from pairveil.learners.inputs import as_features
from pairveil.learners.parameters import is_whole

COLUMNS = ("worker", "chosen", "other")
"""The columns of a table of choices."""
MOST_FEATURES = 4096
"""More columns, or items without features, than this are too many to solve for."""


class Items(NamedTuple):
    """The items, which are public.

    Attributes
    ----------
    names : tuple or None
        What choices call them; None: row numbers.
    features : array of shape (n_items, d), or sparse ones on the diagonal
    featured : bool
        Whether they have features.
    """

    names: tuple[Any, ...] | None
    features: Any
    featured: bool


def as_items(items: Any) -> Items:
    """Items from their number, a list of names, or a table of features.

    Examples
    --------
    >>> as_items(["tea", "coffee"]).names, as_items(3).features.shape
    (('tea', 'coffee'), (3, 3))
    """
    if is_whole(items):
        return _bare(int(items), None)
    if hasattr(items, "index") and hasattr(
        items, "columns"
    ):  # a DataFrame: its index names the items
        names, features = _distinct(items.index.tolist()), as_features(items)
        return Items(names, _finite(features), True)
    array = np.asarray(items)
    if array.ndim == 1:
        return _bare(len(array), _distinct(array.tolist()))
    return Items(None, _finite(as_features(items)), True)


def _bare(n: int, names: tuple[Any, ...] | None) -> Items:
    if n < 2:
        raise InputError("there must be at least two items to choose between")
    if n > MOST_FEATURES:
        raise InputError(
            f"at most {MOST_FEATURES} items can be ranked without features; got {n}: give their features"
        )
    return Items(names, sparse.eye_array(n, format="csr"), False)


def _distinct(names: list[Any]) -> tuple[Any, ...]:
    if len(set(names)) != len(names):
        raise InputError("an item is listed twice")
    return tuple(names)


def _finite(features: Any) -> FloatArray:
    dense = np.asarray(features.toarray() if sparse.issparse(features) else features, dtype=float)
    n, d = dense.shape
    if n < 2:
        raise InputError("there must be at least two items to choose between")
    if d > MOST_FEATURES:
        raise InputError(f"items have at most {MOST_FEATURES} features; got {d}")
    if not np.isfinite(dense).all():
        raise InputError(
            "a feature of an item is missing or infinite: items are public, complete them"
        )
    widest = float(np.abs(dense).max()) if d else 0.0
    if widest == 0.0:
        raise InputError("all features of all items are zero")
    return dense


def as_choices(choices: Any, items: Items, by: Any) -> Choices:
    """Choices from a table with columns worker, chosen, other, or from an array of such rows.

    Parameters
    ----------
    choices : Choices, DataFrame or array of shape (K, 3)
    by : {'worker', 'choice'}
    """
    if isinstance(choices, Choices):
        return replace(choices, features=items.features, by=by, weights=None)
    if hasattr(choices, "columns"):
        missing = [name for name in COLUMNS if name not in choices.columns]
        if missing:
            raise InputError(
                f"choices have no column '{missing[0]}': they need {', '.join(COLUMNS)}"
            )
        workers, chosen, other = (np.asarray(choices[name]) for name in COLUMNS)
    else:
        listed = isinstance(choices, list | tuple)  # names of workers may stand beside item numbers
        array = np.asarray(choices, dtype=object if listed else None)
        if array.ndim != 2 or array.shape[1] != 3:
            raise InputError(
                "choices must have shape (n_choices, 3): worker, item chosen, other item; "
                f"got {array.shape}"
            )
        workers, chosen, other = (np.asarray(c.tolist()) if listed else c for c in array.T)
    pairs = np.column_stack([_numbers(chosen, items, "chosen"), _numbers(other, items, "other")])
    made = Choices(workers, pairs, np.ones(len(pairs), dtype=np.int8), items.features, by)
    similar = (
        count_similar(np.unique(made.workers).astype(object))
        if made.workers.dtype.kind == "U"
        else 0
    )
    if similar:
        warnings.warn(
            f"{similar} workers' names differ from another one only in case, outer spaces or Unicode form, "
            "and each counts as a worker: if they are the same people, they are protected by half; give "
            "everyone one name",
            IdentityWarning,
            stacklevel=6,
        )
    return made


def _numbers(values: NDArray[Any], items: Items, column: str) -> NDArray[np.int64]:
    """Row numbers of items. Which items were asked about is public, so an unknown one is an error."""
    if items.names is None:
        if values.dtype.kind not in "iu":
            raise InputError(f"column '{column}' must hold item numbers, or give items by name")
        return values.astype(np.int64)
    place: dict[Any, int] = {}
    for number, name in enumerate(items.names):  # an array of mixed columns makes text of numbers
        place[name] = place[str(name)] = number
    found = np.array([place.get(one, -1) for one in values.tolist()], dtype=np.int64)
    if found.size and found.min() < 0:
        raise InputError(
            f"column '{column}' names an item that is not listed, first at row {int(np.argmin(found))}"
        )
    return found


def whitened(choices: Choices) -> tuple[Choices, FloatArray]:
    """The same choices over features whose differences have unit covariance, and the way to get there.

    Which differences were asked for is public. After whitening, the same noise on every column costs the same
    information in every direction.
    """
    features = np.asarray(choices.features, dtype=np.float64)
    widest = float(np.abs(features).max())
    features = features / widest
    apart = replace(choices, features=features).differences()
    values, vectors = np.linalg.eigh(apart.T @ apart / len(apart))
    if values[-1] <= 1e-24:
        raise InputError("no two items that were chosen between differ in any feature")
    solid = values > 1e-9 * values[-1]
    to = vectors * np.where(solid, 1 / np.sqrt(np.where(solid, values, 1.0)), 0.0)
    return replace(choices, features=features @ to), to / widest


def is_connected(choices: Choices) -> bool:
    """Whether every item can be compared with every other through choices (public)."""
    left, right = choices.pairs.T
    n = choices.n_items
    graph = sparse.coo_array((np.ones(len(left)), (left, right)), shape=(n, n))
    return int(sparse.csgraph.connected_components(graph, directed=False)[0]) == 1


def record_weights(choices: Choices, norm: str, loud: float, *, private: bool) -> FloatArray:
    """Public factors that bring records to about the same length, at most 1.

    A record's length is guessed from what was asked: ``loud`` times that of choices made by a coin, or that
    of all its differences laid end to end where that is less.

    Parameters
    ----------
    norm : {'l2', 'l1'}
    private : bool
        Without privacy nothing is shortened and all choices count the same.
    """
    apart, edges = choices.differences(), choices.edges()
    squares = apart.multiply(apart).tocsr() if sparse.issparse(apart) else apart**2
    whose = np.repeat(np.arange(choices.n_records), np.diff(edges))
    of = sparse.csr_array(
        (np.ones(len(whose)), (whose, np.arange(len(whose)))), shape=(choices.n_records, len(whose))
    )
    by_column = of @ squares
    by_column = by_column.toarray() if sparse.issparse(by_column) else np.asarray(by_column)
    if norm == "l1":
        lengths = np.asarray(abs(apart).sum(axis=1)).ravel()
        by_coin = np.sqrt(by_column).sum(axis=1)
    else:
        lengths = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
        by_coin = np.sqrt(by_column.sum(axis=1))
    most = np.asarray(of @ lengths)
    if not private:
        return np.full(choices.n_records, 1.0 / float(most.max()))
    typical = np.minimum(loud * by_coin, most)
    middle = float(np.median(typical[typical > 0]))
    weights: FloatArray = 1.0 / np.maximum(typical, middle)
    assert math.isfinite(float(weights.max()))
    return weights
