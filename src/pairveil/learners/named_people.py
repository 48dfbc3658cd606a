"""People named by text: pairs of ids instead of row numbers, as files have them.

A table names its people by a text index (pandas) or by a text column ``id`` (pandas, polars, arrow). Whole
numbers in pairs are row numbers, as metric-learn has it, whatever the table's ids are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pairveil.column_names import names_of
from pairveil.data.canonical import order_of_ids, ranks
from pairveil.data.columns import as_ids, ids_as_text
from pairveil.data.pairset import PairSet
from pairveil.data.tables import refuse_repeated
from pairveil.errors import InputError

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


def in_order_of_names(pairs: Any, preprocessor: Any) -> tuple[Any, Any]:
    """Pairs as row numbers, and the table they count in: people named by text stand in the order of names.

    Tables are sorted by class or by score. Which pairs are used follows the people's order, so that must be
    one of names, not of rows (`pairveil.data.canonical`).

    Examples
    --------
    >>> import pandas as pd
    >>> rows, table = in_order_of_names([["bob", "ann"]], pd.DataFrame({"a": [2, 1]}, index=["bob", "ann"]))
    >>> rows.tolist(), table["a"].tolist()
    ([[1, 0]], [1, 2])
    """
    rows, table = rows_of(pairs, preprocessor), without_ids(preprocessor)
    known = ids_of(preprocessor)
    if known is not None:  # somebody in two rows would count as two people, whatever pairs count by
        refuse_repeated(known)
    order = None if rows is pairs else order_of_ids(known)
    if order is None:
        return rows, table
    return ranks(order)[rows], _taken(table, order)  # type: ignore[index]


def _taken(table: Any, order: NDArray[Any]) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[order]
    if hasattr(table, "collect_schema") and not hasattr(table, "shape"):  # a lazy polars table
        table = table.collect()
    return table.take(order) if isinstance(table, pa.Table) else table[order]


def ids_of(table: Any) -> NDArray[Any] | None:
    """The text ids of a table's rows, or None where it has none."""
    column = _text_column(table)
    if column is not None:
        return column
    index = getattr(table, "index", None)
    if index is None or callable(index) or not hasattr(table, "iloc"):
        return None
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
