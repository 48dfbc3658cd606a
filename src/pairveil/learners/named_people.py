"""People named by text: pairs of ids instead of row numbers, as files have them.

A table names its people by a text index (pandas), by an index of whole numbers that is called ``id``, or by
a text column ``id`` (pandas, polars, arrow). Other numbers in an index are row numbers, which every table
has alike. Whole numbers in pairs are row numbers, as metric-learn has it, whatever the table's ids are.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pairveil.column_names import names_of
from pairveil.errors import InputError
from pairveil.graph.digest import digest_of, graph_digest
from pairveil.records.columns import as_ids, ids_as_text
from pairveil.records.pairset import PairSet
from pairveil.records.tables import refuse_repeated

ID = "id"


def rows_of(pairs: Any, preprocessor: Any) -> Any:
    """Pairs as row numbers where they are (K, 2) texts that name people; anything else as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> rows_of([["bob", "ann"]], pd.DataFrame({"age": [0.1, 0.2]}, index=["ann", "bob"]))
    array([[1, 0]])
    """
    if isinstance(pairs, PairSet) or not hasattr(pairs, "__len__"):
        return pairs
    array = np.asarray(pairs)
    texts = array.dtype.kind in "USOT" and array.ndim == 2 and array.shape[1] == 2
    if not texts or not all(isinstance(one, str) for one in array.ravel()[:2].tolist()):
        return pairs
    known = ids_of(preprocessor)
    if known is None:
        raise InputError(
            "pairs name people by text, but preprocessor does not: give it a text index (pandas) or a text "
            f"column '{ID}'"
        )
    refuse_repeated(known)
    asked = ids_as_text(as_ids(array.ravel().astype(object), "pairs"))
    found = pc.index_in(
        pa.array(asked, pa.large_string()), value_set=pa.array(known, pa.large_string())
    )
    unknown = np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))
    if unknown.size:
        raise InputError(
            f"{len(set((unknown // 2).tolist()))} of {len(array)} pairs name an id without features (the "
            f"first at position {unknown[0] // 2})"
        )
    rows: NDArray[Any] = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return rows.reshape(-1, 2)


OWN_ROWS = "rows "
"""How the names begin that one learner gives to pairs of its own row numbers."""
_OWN: WeakKeyDictionary[Any, tuple[tuple[ref[Any], ...], bytes]] = WeakKeyDictionary()
"""Learner -> the table whose rows it counts, and a secret. Outside the learner: no copy or pickle of it has
them, and the table lives no longer than with whoever else holds it."""
_FITTED: WeakKeyDictionary[Any, tuple[str | None, Mapping[str, str]]] = WeakKeyDictionary()
"""Learner -> the name of the pairs that it was fitted to last, and what units mean; for the same reason."""


def own_secret(learner: Any, pairs: Any, *, guessed: bool) -> bytes | None:
    """What a learner names pairs of its own row numbers with; None where they number no table's rows.

    Ids name people, whoever fits them. Row numbers do not: row 3 of two tables is two people, so a name made
    of row numbers alone would call different pairs the same, and a relationship that runs through both would
    be charged for one of them. But row 3 of *one table object* is one person as long as the object is. So
    pairs of row numbers are named with a secret of this learner and this table: equal names mean the same
    learner, the same object and the same row numbers, and a copy, a clone, another process or another table
    makes other names, which are added up as different pairs are. Who writes other people into the rows of an
    array between two fits renames them, as who gives old ids to others does.

    Parameters
    ----------
    learner : object
    pairs : object
        As they were given.
    guessed : bool
        Whether people were recognised by equal rows, which are rows of no table.
    """
    table = pairs.features if isinstance(pairs, PairSet) else learner.preprocessor
    if guessed or table is None or callable(table):
        return None
    # The table, and its index: pandas gives a table that it sorts in place a new one.
    here = (table, getattr(table, "index", table))
    seen, secret = _OWN.get(learner, ((), b""))
    if seen and all(one() is part for one, part in zip(seen, here, strict=True)):
        return secret
    try:
        _OWN[learner] = tuple(map(ref, here)), secrets.token_bytes(32)
    except TypeError:  # a list: nothing tells whether it is the same one
        return None
    return _OWN[learner][1]


def name_of_pairs(used: Any, secret: bytes | None) -> str | None:
    """A name for who is paired with whom, by which a ledger knows the very same pairs; None: not known.

    Parameters
    ----------
    used : records
        In canonical order.
    secret : bytes or None
        Of `own_secret`, for pairs of people without ids.
    """
    named = graph_digest(used)
    if named is not None or secret is None or not isinstance(used, PairSet):
        return named
    return OWN_ROWS + digest_of(np.arange(used.n_people), used.pairs, secret)


def remember_fit(learner: Any, graph: str | None, meanings: Mapping[str, str]) -> None:
    """Keep which pairs a learner was fitted to, and what units mean in them."""
    _FITTED[learner] = graph, meanings


def fitted_to(learner: Any) -> tuple[str | None, Mapping[str, str] | None]:
    """The pairs that this very object was fitted to, and what units mean; None where it is not known."""
    return _FITTED.get(learner, (None, None))


def ids_of(table: Any) -> NDArray[Any] | None:
    """The ids of a table's rows, or None where it names nobody.

    Examples
    --------
    >>> import pandas as pd
    >>> ids_of(pd.DataFrame({"age": [1, 2]}))
    >>> ids_of(pd.DataFrame({"age": [1, 2]}, index=pd.Index([7, 9], name="id")))
    array([7, 9])
    """
    column = _text_column(table)
    if column is not None:
        return column
    index = getattr(table, "index", None)
    if index is None or callable(index) or not hasattr(table, "iloc"):
        return None
    if index.name == ID and index.dtype.kind in "iu":
        numbers: NDArray[Any] = index.to_numpy()
        return numbers
    values = index.to_numpy(dtype=object)
    return values if len(values) and all(isinstance(one, str) for one in values.tolist()) else None


def without_ids(table: Any) -> Any:
    """A table without its text column ``id``, which is no feature; anything else as it is."""
    if _text_column(table) is None:
        return table
    kept = [name for name in names_of(table) or () if name != ID]
    return table[kept] if hasattr(table, "iloc") else table.select(kept)


def _text_column(table: Any) -> NDArray[Any] | None:
    if ID not in (names_of(table) or ()):
        return None
    if hasattr(table, "collect_schema") and not hasattr(table, "shape"):  # a lazy polars table
        table = table.select(ID).collect()
    values = np.asarray(table[ID], dtype=object)
    return values if len(values) and all(isinstance(one, str) for one in values.tolist()) else None
