"""What is given to a linkage model, checked: levels, the number of levels, entities, and u."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray, IntArray
from pairveil.data.shared_values import meant
from pairveil.errors import InputError
from pairveil.learners.parameters import is_whole
from pairveil.release.linkage import place

MOST_LEVELS = 1000


def check_n_levels(n_levels: Any, levels: IntArray) -> tuple[int, ...]:
    """The public number of levels of each comparison, which all levels must be below."""
    sizes = np.asarray(n_levels).tolist() if not isinstance(n_levels, list | tuple) else n_levels
    if is_whole(sizes):
        sizes = [sizes] * levels.shape[1]
    if not isinstance(sizes, list | tuple) or len(sizes) != levels.shape[1]:
        raise InputError(
            f"n_levels must say how many levels each of the {levels.shape[1]} comparisons has"
        )
    if not all(is_whole(size) and 1 <= size <= MOST_LEVELS for size in sizes):
        raise InputError(f"n_levels must hold whole numbers from 1 to {MOST_LEVELS}")
    above = np.argwhere(levels >= np.asarray(sizes, dtype=np.int64))
    if above.size:
        column = int(above[0][1])
        raise InputError(
            f"levels: {place(above[0])} is not below n_levels, which is {sizes[column]} for this "
            "comparison (levels count from 0)"
        )
    return tuple(int(size) for size in sizes)


def read_off(levels: IntArray) -> tuple[int, ...]:
    """The number of levels that occur: private, so a model that uses it is not for release."""
    return tuple(int(max(2, top + 1)) for top in levels.max(axis=0, initial=0))


def check_u(u: Any, n_levels: Sequence[int]) -> list[FloatArray]:
    """Probabilities of the levels of pairs that do not match, as given: positive, each sums to 1."""
    if not isinstance(u, list | tuple) or len(u) != len(n_levels):
        raise InputError(f"u must be a list of {len(n_levels)} arrays, one for each comparison")
    found = []
    for number, (given, size) in enumerate(zip(u, n_levels, strict=True), start=1):
        try:
            array = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"u of comparison {number} must hold numbers") from None
        if array.shape != (size,) or not np.all(np.isfinite(array) & (array > 0)):
            raise InputError(f"u of comparison {number} must hold {size} numbers above 0")
        if abs(array.sum() - 1) > 1e-6:
            raise InputError(f"u of comparison {number} must sum to 1")
        found.append(array / array.sum())
    return found


def beyond_bound(entities: Any, pairs: Any, most: int) -> NDArray[np.bool_]:
    """Pairs with a record that is not among the first so many records of its entity, by id.

    Whether a record counts follows from its own entity's records alone, so emptying one entity empties pairs
    of its own and brings no other pair back (docs/theory/linkage.md). A record without an entity, or of which
    two are said, counts for nobody: that is private, and stops nothing.

    Parameters
    ----------
    entities : (K, 2) array
        The entity of both records of each pair (private).
    pairs : (K, 2) integer array
        The records, numbered in the order of their ids.

    Examples
    --------
    >>> beyond_bound([["x", "x"], ["x", "x"]], np.array([[0, 1], [1, 2]]), 2).tolist()
    [False, True]
    """
    listed, ends = np.asarray(entities, dtype=object), np.asarray(pairs)
    if listed.shape != ends.shape:
        raise InputError("entities must name the entity of both records of each pair: shape (n, 2)")
    named = [_owner(one) for one in listed.ravel().tolist()]
    unknown = np.array([one is None for one in named])
    numbers: dict[Any, int] = {}
    who = np.array([numbers.setdefault(one, len(numbers)) for one in named], dtype=np.int64)
    record = ends.reshape(-1)
    found, first = np.unique(record, return_index=True)
    at = np.searchsorted(found, record)
    # Nobody can say whose a record is that has no entity, or two: it counts for nobody.
    nobodys = np.zeros(len(found), dtype=bool)
    nobodys[at[unknown | (who != who[first][at])]] = True
    place = np.full(len(found), most, dtype=np.int64)
    kept = np.flatnonzero(~nobodys)
    order = kept[np.argsort(who[first][kept], kind="stable")]  # within an entity by record
    owner = who[first][order]
    place[order] = np.arange(len(order)) - np.searchsorted(owner, owner)
    late = (place >= most)[at]
    return np.asarray(late.reshape(-1, 2).any(axis=1))


def _owner(cell: Any) -> Any:
    """What an entity is compared by (`meant`), however a table writes it; None where none is said."""
    try:
        missing = cell is None or bool(cell != cell)
    except (TypeError, ValueError):  # pandas' NA; an array
        return None
    found = None if missing else meant(str(cell))
    return None if found == "" else found
