"""Columns matched by name wherever a table has names: never by position alone, never silently.

A metric weighs each column by its own number, so a table whose columns stand in another order gives other
distances without any error. Whoever is handed a table asks here first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pairveil._warn import warn
from pairveil.errors import DataWarning, InputError
from pairveil.printable import shortened


def names_of(table: Any) -> tuple[str, ...] | None:
    """The column names of a pandas, polars or arrow table, or None where it has none.

    Columns that are merely numbered (0, 1, 2, ...), as pandas numbers them, have no names.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> names_of(pd.DataFrame({"age": [1.0], "dose": [2.0]})), names_of(np.eye(2))
    (('age', 'dose'), None)
    """
    found = getattr(table, "column_names", None)  # arrow
    if found is None and hasattr(table, "collect_schema") and not hasattr(table, "shape"):
        found = table.collect_schema().names()  # a lazy polars table
    if found is None:
        found = getattr(table, "columns", None)  # pandas, polars
    if found is None or callable(found):
        return None
    names = list(found)
    if not any(isinstance(name, str) for name in names) and names == list(range(len(names))):
        return None
    return tuple(str(name) for name in names)


def in_order(table: Any, names: Sequence[str] | None) -> Any:
    """``table`` with its columns in the order of ``names``; a table without names is left as it is.

    Parameters
    ----------
    table : array or table
    names : sequence of str or None
        The columns that are expected, in order; None where nobody knows them.

    Raises InputError: its columns are not those.

    Warns
    -----
    DataWarning
        They are, but stood in another order.

    Examples
    --------
    >>> import pandas as pd
    >>> in_order(pd.DataFrame({"age": [1.0], "dose": [2.0]}), ["age", "dose"]).shape
    (1, 2)
    """
    if hasattr(table, "collect_schema") and not hasattr(table, "shape"):
        table = table.collect()
    found = names_of(table)
    if names is None or found is None or found == tuple(names):
        return table
    order = _order(found, tuple(names))
    _say_reordered()
    if hasattr(table, "iloc"):  # pandas, whose names need not be text
        return table.iloc[:, order]
    return table.select([found[at] for at in order])


def row_in_order(row: Any, names: Sequence[str] | None) -> Any:
    """One person's row, in the order of ``names`` where it is a pandas row that names its values.

    Examples
    --------
    >>> import pandas as pd
    >>> row_in_order(pd.Series({"age": 1.0, "dose": 2.0}), ["dose", "age"]).tolist()
    [2.0, 1.0]
    """
    if names is None or not hasattr(row, "reindex") or not hasattr(row, "iloc"):
        return row
    found = tuple(map(str, row.index))
    if found == tuple(names) or list(row.index) == list(range(len(found))):
        return row
    return row.iloc[_order(found, tuple(names))]


def in_order_of(found: Sequence[str], names: Sequence[str] | None) -> None:
    """Say so where columns that are read by name stand in another order in their file.

    Examples
    --------
    >>> in_order_of(["id", "age", "ward", "dose"], ["age", "dose"])
    """
    if names is None:
        return
    place = {name: at for at, name in enumerate(found)}
    places = [place[name] for name in names if name in place]
    if places != sorted(places):
        _say_reordered()


def _order(found: tuple[str, ...], names: tuple[str, ...]) -> list[int]:
    missing = sorted(set(names) - set(found), key=names.index)
    others = len(set(found) - set(names))
    if missing:
        raise InputError(
            f"the table lacks {len(missing)} of the metric's {len(names)} columns: {shortened(missing)}. "
            "Name the columns as the metric does, or pass an array in the metric's order"
        )
    if others or len(found) != len(names):
        raise InputError(
            f"the table has {len(found)} columns where the metric has {len(names)}: "
            f"{others or 'repeated'} of them {'is' if others == 1 else 'are'} not the metric's. "
            "Pass the metric's columns only"
        )
    place = {name: at for at, name in enumerate(found)}
    if len(place) != len(found):
        raise InputError("two columns have the same name: pass an array in the metric's order")
    return [place[name] for name in names]


def _say_reordered() -> None:
    warn(
        "the table's columns stand in another order than the metric's: they were matched by name",
        DataWarning,
    )
