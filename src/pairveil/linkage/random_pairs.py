"""Random pairs of records: they hardly ever match, so they say without a clerk how often others agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairveil.errors import InputError
from pairveil.learners.inputs import is_whole
from pairveil.records.columns import as_ids, same_kind


def random_pairs(
    ids: ArrayLike, n: int, labelled: ArrayLike = (), others: ArrayLike | None = None
) -> NDArray[Any]:
    """At most n pairs along a path through random records that no labelled pair has.

    Compared, and added with the label -1 to the labelled pairs, they make u many times more precise: labels
    are few, records are many. They are counted and paid for like all pairs. A path through records of their
    own has the kappa of any path: 1 for a relationship, 2 for a record. With ``select='matching'`` every
    other pair of it counts, and kappa is 1 for a record too. Which records are drawn follows from ids alone.

    Parameters
    ----------
    ids : array of shape (n_records,)
        All records, or those of the first of two tables.
    n : int
        How many pairs; there are fewer where records are.
    labelled : array of ids, any shape
        Records of the labelled pairs.
    others : array of ids, optional
        Records of the second table: each pair then has one of either.

    Examples
    --------
    >>> random_pairs(["a", "b", "c", "d", "e"], 2, labelled=[["a", "b"]]).shape
    (2, 2)
    """
    if not (is_whole(n) and n >= 0):
        raise InputError("the number of random pairs must be a whole number, 0 or more")
    taken = as_ids(np.ravel(np.asarray(labelled)), "the ids of the labelled pairs")
    rng = np.random.default_rng(0)
    sides = [
        rng.permutation(_without(*same_kind(as_ids(np.asarray(side), "the ids"), taken)))
        for side in (ids, others)
        if side is not None
    ]
    short = min(map(len, sides))
    walk = np.column_stack([side[:short] for side in sides]).ravel()[: n + 1]  # from table to table
    return np.column_stack([walk[:-1], walk[1:]])


def _without(ids: NDArray[Any], taken: NDArray[Any]) -> NDArray[Any]:
    """The ids, each once and in order, that are not taken; `numpy.setdiff1d` is quadratic on text."""
    found, known = np.unique(ids), set(taken.tolist())
    return found[[one not in known for one in found.tolist()]]
