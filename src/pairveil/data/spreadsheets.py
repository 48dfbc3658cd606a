"""Excel files: the first sheet as a table, its first row being the names of the columns."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from pairveil.errors import InputError

EXCEL = (".xlsx", ".xlsm")


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
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        rows = list(book.worksheets[0].iter_rows(values_only=True))
        book.close()
    except Exception:
        # openpyxl raises what its parsers raise, and their messages may quote cells.
        raise InputError(
            f"{path.name} is a spreadsheet that cannot be read: save its sheet as 'CSV UTF-8'"
        ) from None
    rows = [row for row in rows if any(cell is not None for cell in row)]
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
