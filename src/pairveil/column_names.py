"""Tables in memory, of any library: their columns by name, and their cells as Arrow holds them.

narwhals sees pandas, polars, Arrow and their like alike; nothing else here asks which of them it is given.

Columns are matched by name wherever a table has names: never by position alone, never silently. A metric
weighs each column by its own number, so a table whose columns stand in another order gives other distances
without any error. Whoever is handed a table asks here first.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from pairveil._lazy import need
from pairveil.errors import DataWarning, InputError, warn
from pairveil.printable import shortened


def frame_of(table: Any, *, collect: bool = True) -> Any:
    """A pandas, polars, Arrow or other table as narwhals sees it, or None where it is none of them.

    A lazy table is collected, if asked; a mapping of columns is no table of a library.

    Raises InputError: two columns have the same name.
    """
    if isinstance(table, Mapping | Sequence) or hasattr(table, "__array_interface__"):
        return None
    nw = need("narwhals", "tables", "A table")
    if hasattr(table, "num_rows") and not hasattr(table, "to_batches"):  # an Arrow batch
        table = arrow()[0].Table.from_batches([table])
    try:
        found = nw.from_native(table, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise InputError("the table: two columns have the same name") from None
    if isinstance(found, nw.LazyFrame):
        return found.collect() if collect else found
    return found if isinstance(found, nw.DataFrame) else None


def names_of(table: Any) -> tuple[str, ...] | None:
    """The column names of a pandas, polars or arrow table, or None where it has none.

    Columns that are merely numbered (0, 1, 2, ...), as pandas numbers them, have no names.
    """
    frame = frame_of(table, collect=False)
    names = [] if frame is None else frame.collect_schema().names()
    if not any(isinstance(name, str) for name in names) and names == list(range(len(names))):
        return None
    return tuple(map(str, names))


def in_order(table: Any, names: Sequence[str] | None) -> Any:
    """``table`` with its columns in the order of ``names``; a table without names is left as it is."""
    frame = frame_of(table)
    if frame is None:
        return table
    found = names_of(frame.to_native())
    if names is None or found is None or found == tuple(names):
        return frame.to_native()
    order = _order(found, tuple(names))
    _say_reordered()
    return frame[:, order].to_native()


def row_in_order(row: Any, names: Sequence[str] | None) -> Any:
    """One person's row, in the order of ``names`` where it is a pandas row that names its values."""
    if names is None or not hasattr(row, "reindex") or not hasattr(row, "iloc"):
        return row
    found = tuple(map(str, row.index))
    if found == tuple(names) or list(row.index) == list(range(len(found))):
        return row
    return row.iloc[_order(found, tuple(names))]


def in_order_of(found: Sequence[str], names: Sequence[str] | None) -> None:
    """Say so where columns that are read by name stand in another order in their file."""
    place = {name: at for at, name in enumerate(found)}
    places = [place[name] for name in names or () if name in place]
    if places != sorted(places):
        _say_reordered()


# ---- cells, as Arrow holds them --------------------------------------------------------------------


def columns_of(table: Any) -> dict[str, Any] | None:
    """The columns of a table or mapping by name, each as its library has it; None for anything else.

    An index of pandas that has a name is a column, usually that of ids, unless there is one of that name.
    """
    if isinstance(table, Mapping):
        return {str(name): values for name, values in table.items()}
    index = getattr(table, "index", None)
    named = [name for name in getattr(index, "names", ()) if name is not None]
    if named:
        table = table.reset_index([name for name in named if name not in table.columns])
    frame, names = frame_of(table), names_of(table)
    if frame is None or names is None:
        return None
    return {name: frame[:, at] for at, name in enumerate(names)}


def arrow_cells(values: Any, name: str) -> Any:
    """One column as an Arrow array; cells of several kinds become text one by one.

    Arrow would guess a type from all cells together: then what one of them holds could stop a fit.
    """
    nw, pa = need("narwhals", "tables", "A table"), arrow()[0]
    series = nw.from_native(values, pass_through=True, allow_series=True)
    is_series = isinstance(series, nw.Series)
    mixed = series.dtype == nw.Object if is_series else _is_loose(values)
    # Of categories of several kinds pyarrow guesses too, or ends the process.
    own = series.to_native() if is_series else values
    listed = getattr(getattr(own, "dtype", None), "categories", ())
    mixed = mixed or (_is_loose(listed) and not all(isinstance(one, str) for one in listed))
    try:
        if not mixed:
            made = series.to_arrow() if is_series else pa.array(values, from_pandas=True)
            return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
    except (pa.ArrowException, TypeError, ValueError, OverflowError, UnicodeError):
        pass
    try:
        cells = series.to_list() if is_series else values
        return pa.array([cell_text(one) for one in cells], pa.large_string())
    except (pa.ArrowException, TypeError, ValueError, OverflowError, UnicodeError):
        raise InputError(f"column '{name}' cannot be read: make it text or numbers") from None


def cell_text(value: Any) -> str | None:
    """A cell as text: 1.0 and 1 are '1', true is 'true', a day YYYY-MM-DD; nothing and NaN stay nothing.

    Of Arrow too. Whatever a cell is, it stops nothing: what cannot be written becomes a sign that is no word.
    """
    try:
        text = _as_text(value.as_py() if hasattr(value, "as_py") else value)
        return None if text is None else text.encode(errors="backslashreplace").decode()
    except Exception:  # a year above 9999, half a letter, a signalling NaN, an array, any object
        return "\ufffd"


def _as_text(value: Any) -> str | None:
    if value is None or type(value).__name__ == "NAType" or value != value:
        return None
    if getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M"):
        value = value.astype(f"{value.dtype.kind}8[us]")  # of nanoseconds NumPy makes whole numbers
    value = value.item() if hasattr(value, "item") else value  # of NumPy
    if isinstance(value, complex) and not value.imag:  # pandas makes complex numbers of all for one
        value = value.real
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime) and value.time() == datetime.time(0):
        return value.date().isoformat()
    if isinstance(value, datetime.timedelta):
        return datetime.timedelta.__str__(value)  # pandas writes its own another way
    if isinstance(value, bytes):
        return value.decode(errors="replace").strip()
    value = float(value) if isinstance(value, Decimal) else value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def _is_loose(values: Any) -> bool:
    return (
        isinstance(values, list | tuple)
        or getattr(getattr(values, "dtype", None), "kind", "") == "O"
    )


def arrow() -> tuple[Any, Any]:
    """pyarrow and its functions; slow to import, and whoever receives plain numbers needs neither."""
    return need("pyarrow", "tables", "A table"), need("pyarrow.compute", "tables", "A table")


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
    return [place[name] for name in names]


def _say_reordered() -> None:
    warn(
        "the table's columns stand in another order than the metric's: they were matched by name",
        DataWarning,
    )
