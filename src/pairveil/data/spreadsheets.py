"""Excel files: the first sheet as a table, its first row being the names of the columns."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from pairveil.data.arrays import check_archive
from pairveil.errors import InputError
from pairveil.foreign import check_growth

EXCEL = (".xlsx", ".xlsm")
_TIMES, _FREE = 40, 16 * 2**20
"""A sheet's text is read at some MB a second, and is 15 to 25 times as long as its file."""


def read_sheet(path: Path) -> pa.Table:
    """The first sheet of an Excel file (needs ``pip install 'pairveil[excel]'``).

    Formulas count with the value that was saved. A column of numbers, of dates or of true and false
    stays one; one of several kinds becomes text.

    ``path``: it must exist.
    """
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            f"{path.name}: Excel files need openpyxl: pip install 'pairveil[excel]', or save the sheet as "
            "'CSV UTF-8'"
        ) from None
    try:
        check_archive(path, path, times=_TIMES, free=_FREE)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # what a file says of its own size may be stale: rows would be lost
        rows = list(_bounded(sheet.iter_rows(values_only=True), path))
        book.close()
    except InputError:
        raise
    except Exception:
        # openpyxl raises what its parsers raise, and their messages may quote cells.
        raise InputError(
            f"{path.name} is a spreadsheet that cannot be read: save its sheet as 'CSV UTF-8'"
        ) from None
    if not rows:
        raise InputError(f"{path.name} is empty")
    names = [None if cell is None else str(cell) for cell in rows[0]]
    if len(rows) < 2:
        raise InputError(f"{path.name} has a header but no rows")
    used = [at for at, name in enumerate(names) if name]
    if len({names[at] for at in used}) < len(used):
        raise InputError(f"{path.name}: two columns have the same name")
    cells = {names[at]: [row[at] if at < len(row) else None for row in rows[1:]] for at in used}
    return pa.table({name: _column(values) for name, values in cells.items()})


def _bounded(rows: Iterable[tuple[Any, ...]], path: Path) -> Iterator[tuple[Any, ...]]:
    """The rows that hold something. One cell at the far end of a sheet brings all empty ones before it."""
    size, taken = path.stat().st_size, 0
    for row in rows:
        taken += 64 + 8 * len(row)
        check_growth(path.name, size, taken)
        if any(cell is not None for cell in row):
            yield row


def _column(values: list[Any]) -> pa.Array:
    """An arrow column: of one kind where all cells are, else text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or kinds == {bool} or kinds == {datetime.datetime}:
        try:
            # Excel knows no integers: 7.0 is how it may keep the id 7.
            whole = kinds == {float} and all(v is None or v.is_integer() for v in values)
            return pa.array(values, pa.int64() if whole else None)
        except (pa.ArrowException, OverflowError):
            pass
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time(0):
        return value.date().isoformat()
    return str(value)
