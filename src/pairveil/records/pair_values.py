"""Tables with a row a pair: two ids and numbers of the pair itself (comparison levels, a score)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pairveil.errors import InputError
from pairveil.records.columns import IdColumn, ids_as_text, number_array
from pairveil.records.files import ColumnKind, open_table
from pairveil.records.tables import PairTable


class PairValues(NamedTuple):
    """Numbers of pairs, row by row.

    Attributes
    ----------
    pairs : PairTable
        Without labels.
    names : tuple of str
        Of the columns.
    values : float array of shape (K, C)
        NaN where a cell is empty.
    """

    pairs: PairTable
    names: tuple[str, ...]
    values: np.ndarray


def read_pair_values(
    source: Any,
    left: str = "left",
    right: str = "right",
    columns: Sequence[str] | None = None,
    ignored: Sequence[str] = (),
) -> PairValues:
    """Read two id columns and numeric ones.

    Parameters
    ----------
    source : path, DataFrame or mapping
    left, right : str
        The two id columns.
    columns : sequence of str, optional
        The numeric columns; by default all others.
    ignored : sequence of str
        Columns that are none of them, where ``columns`` is not given.

    Examples
    --------
    >>> read_pair_values({"left": ["a"], "right": ["b"], "name": [2], "dob": [None]}).values
    array([[ 2., nan]])
    """
    table = open_table(source)
    if columns is None:
        aside = {left, right, *ignored}
        columns = [name for name in table.names if name not in aside]
    if not columns:
        raise InputError(f"{table.title} has no column beside the ids")
    wanted: dict[str, ColumnKind] = {left: "text", right: "text"}
    wanted |= dict.fromkeys(columns, "number")  # type: ignore[arg-type]
    if len(wanted) < 2 + len(columns):
        raise InputError("the two id columns and the columns of numbers must be different")
    table.require(list(wanted), "Name the ids with left= and right=")
    ids = (IdColumn(f"column '{left}'"), IdColumn(f"column '{right}'"))
    parts: list[np.ndarray] = []
    row = 0
    for batch in table.batches(wanted):
        ids[0].add(batch.column(0))
        ids[1].add(batch.column(1))
        parts.append(
            np.column_stack(
                [_numbers(batch.column(i + 2), name, row) for i, name in enumerate(columns)]
            )
        )
        row += batch.num_rows
    if row == 0:
        raise InputError(f"{table.title}: there are no pairs")
    found = PairTable(ids[0].finish(), ids[1].finish())
    return PairValues(found, tuple(columns), np.concatenate(parts))


def _numbers(column: pa.Array, name: str, row: int) -> np.ndarray:
    filled = column.fill_null(float("nan")) if pa.types.is_floating(column.type) else column
    if filled.null_count and pa.types.is_integer(column.type):
        filled = column.cast(pa.float64()).fill_null(float("nan"))
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    return number_array(filled, f"column '{name}'", row).astype(np.float64)


SPLINK_IDS = ("unique_id_l", "unique_id_r")
GAMMA = "gamma_"


def read_levels(source: Any, left: str, right: str, ignored: Sequence[str] = ()) -> PairValues:
    """Comparison levels of pairs: a table of ours, or the predictions that Splink writes.

    Where columns are called ``gamma_...`` those are the levels, under the names behind it, and Splink's id
    columns are known.

    Examples
    --------
    >>> table = {"unique_id_l": ["a"], "unique_id_r": ["b"], "gamma_dob": [3], "mw_dob": [9.1]}
    >>> read_levels(table, "left", "right").names
    ('dob',)
    """
    names = open_table(source).names
    if left not in names and set(SPLINK_IDS) <= set(names):
        left, right = SPLINK_IDS
    gammas = [name for name in names if name.startswith(GAMMA)]
    found = read_pair_values(source, left, right, gammas or None, ignored)
    return found._replace(names=tuple(name.removeprefix(GAMMA) for name in found.names))


def rows_of(wanted: PairTable, having: PairTable) -> np.ndarray:
    """Where each wanted pair stands in another table; (a, b) and (b, a) are the same pair.

    Raises InputError: a wanted pair is not there, or is there twice.

    Examples
    --------
    >>> rows_of(PairTable([2], [1]), PairTable([3, 1], [1, 2])).tolist()
    [1]
    """
    keys, twice = {}, 0
    for row, key in enumerate(_keys(having)):
        twice = twice or (having.rows[row] if key in keys else 0)  # type: ignore[index]
        keys[key] = row
    found = np.array([keys.get(key, -1) for key in _keys(wanted)], dtype=np.int64)
    missing = np.flatnonzero(found < 0)
    if missing.size:
        raise InputError(
            f"{missing.size} labelled pairs have no row of values, the first in row "
            f"{wanted.rows[missing[0]]} of the labels"  # type: ignore[index]
        )
    if twice:
        raise InputError(f"row {twice} of the values is about a pair that was there before")
    return found


def _keys(table: PairTable) -> list[tuple[str, str]]:
    left, right = ids_as_text(table.left).tolist(), ids_as_text(table.right).tolist()
    return [(a, b) if a <= b else (b, a) for a, b in zip(left, right, strict=True)]
