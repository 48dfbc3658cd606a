"""Opening tables of any kind: CSV, TSV, Parquet, Excel, pandas, polars, arrow; a batch at a time.

What readers need of a table, and what users are told of a file that is not a table.

pyarrow's own messages quote the offending value or row. Every one of them is caught here and
replaced (``from None``) by a message that names the row and column only.

Excel files: the first sheet as a table, its first row being the names of the columns.
"""

from __future__ import annotations

import csv
import datetime
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from pairveil.column_names import arrow_cells, cell_text, columns_of
from pairveil.errors import InputError
from pairveil.foreign import check_archive, check_growth
from pairveil.printable import FORMULA, from_cell, shortened
from pairveil.records.tables import ColumnReader, IdColumn
from pairveil.schema.columns import is_text_type

# ---- What readers need of a table, and what users are told of a file that is not a table ---------

COMPRESSED = (".gz", ".bz2", ".zst")
STDIN = Path("-")


def title_of(path: Path) -> str:
    """What messages call a file."""
    return "standard input" if path == STDIN else path.name


@cache
def _standard_input() -> bytes:
    """All of it, kept: a table is opened for its header and again for its rows."""
    return sys.stdin.buffer.read()


def opened(path: Path) -> Any:
    """A stream of a file's bytes, decompressed by its suffix; ``-`` is standard input."""
    if path == STDIN:
        return pa.BufferReader(_standard_input())
    stream = pa.input_stream(path)
    return _Decompressed(path, stream) if path.suffix.lower() in COMPRESSED else stream


def size_of(path: Path) -> int:
    """Bytes of a file or of standard input."""
    return len(_standard_input()) if path == STDIN else path.stat().st_size


class _Decompressed(io.RawIOBase):
    """A decompressed stream that is counted: such files do not declare how large they will be."""

    def __init__(self, path: Path, stream: Any) -> None:
        self._path, self._stream, self._seen = path, stream, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._stream.read(len(buffer))
        self._seen += len(found)
        check_growth(self._path.name, self._path.stat().st_size, self._seen)
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._stream.close()
        super().close()


@dataclass(frozen=True, eq=False, repr=False)
class TableSource:
    """A table that can be read a batch at a time."""

    title: str  # what messages call it: the file's name, or 'the table'
    names: tuple[str, ...]  # its columns
    # ``batches(columns)`` yields record batches of those columns, in that order
    batches: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
    # The first row looks like data: its cells must not be quoted as column names
    headless: bool = False
    # The names are the first row of a text file, which may have been data after all
    has_header: bool = False
    decimal: str = "."  # the mark that its numbers are likely to have

    def read(
        self, ids: Sequence[str], others: Mapping[str, ColumnReader] | None = None, what: str = ""
    ) -> list[np.ndarray]:
        """Columns of ids and others, whole, in the order asked.

        ``what``: a row in the plural, for the message of a table that has none.
        """
        columns: dict[str, ColumnReader] = {name: IdColumn(f"column '{name}'") for name in ids}
        columns |= others or {}
        n_rows = 0
        for batch in self.batches(list(columns)):
            for column, cells in zip(columns.values(), batch.columns, strict=True):
                column.add(cells, n_rows)
            n_rows += batch.num_rows
        if not n_rows:
            raise InputError(
                f"{self.title}: there are no {what}" if what else f"{self.title} has no rows"
            )
        return [column.finish() for column in columns.values()]

    def require(
        self,
        columns: Sequence[str],
        how_to_name: str,
        swapped: tuple[Sequence[str], str] = ((), ""),
    ) -> None:
        """Raise InputError unless all of ``columns`` exist.

        ``swapped``: the columns by which a file of another kind is known, and what that is.

        Which ones exist is said only where one of the wanted is among them: the first row of a file
        without a header is a person's data, and looks like names to a program.
        """
        missing = [column for column in columns if column not in self.names]
        if not missing:
            return
        wanted = ", ".join(f"'{column}'" for column in missing[:20])
        message = f"{self.title} has no column {wanted}"
        parted = next((sign for sign in "|;\t" if any(sign in name for name in self.names)), None)
        if parted is not None and len(self.names) < len(columns):
            shown = "a tab" if parted == "\t" else f"'{parted}'"
            raise InputError(
                f"{message}: the separator of its cells seems to be {shown}. Save it with commas, or with "
                "semicolons or tabs alone"
            )
        if swapped[0] and set(swapped[0]) <= set(self.names):
            raise InputError(
                f"{self.title} has no column '{missing[0]}', but those of {swapped[1]}: are the two files "
                "swapped?"
            )
        twins = {name.strip().casefold() for name in self.names}
        alike = [column for column in missing if column.strip().casefold() in twins]
        if self.headless:
            raise InputError(
                f"{message}; its first row looks like data. Add a header row with column names"
            )
        if alike:
            raise InputError(
                f"{message}; one differs from '{alike[0]}' in capitals or spaces only. {how_to_name}"
            )
        if len(missing) < len(columns):
            raise InputError(f"{message}; its columns are: {shortened(self.names)}. {how_to_name}")
        raise InputError(
            f"{message}; it has {len(self.names)} column{'s' if len(self.names) > 1 else ''} with other "
            f"names. {how_to_name}"
            + (", or add a header row if its first row is data" if self.has_header else "")
        )


def require_file(path: str | Path) -> Path:
    """The path of a file that exists and is not empty."""
    found = Path(path)
    if found == STDIN:
        if not _standard_input():
            raise InputError("standard input is empty")
        return found
    try:
        if not found.exists():
            raise InputError(f"there is no file {found}")
        if found.is_dir():
            raise InputError(f"{found} is a folder, not a file")
        if not found.is_file():
            raise InputError(f"{found} is not a regular file: save what it holds to one first")
        if found.stat().st_size == 0:
            raise InputError(f"{found.name} is empty")
    except OSError as error:
        raise InputError(f"{found} cannot be opened: {error.strerror}") from None
    return found


def wrong_encoding(path: Path) -> InputError:
    """Not UTF-8: what it is instead, by its first bytes, and what to do."""
    try:
        if path == STDIN:
            start = _standard_input()[:64]
        else:
            with path.open("rb") as file:
                start = file.read(64)
    except OSError:
        start = b""
    title = title_of(path)
    if start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return spreadsheet(title)
    if start.startswith(b"PAR1"):
        return InputError(f"{title} is not UTF-8 text but a Parquet file: name it .parquet")
    if start.startswith(b"\x1f\x8b") and path.suffix.lower() not in COMPRESSED:
        return InputError(f"{title} is not UTF-8 text but compressed: name it {title}.gz")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or start.count(0) > len(start) // 4:
        return InputError(
            f"{title} is not UTF-8 text but UTF-16, as spreadsheets write 'Unicode text'; save it as "
            "'CSV UTF-8', or convert it (iconv -f utf-16 -t utf-8)"
        )
    return InputError(
        f"{title} is not UTF-8 text: save it again as 'CSV UTF-8', which spreadsheets offer, or convert it "
        "(iconv -f cp1252 -t utf-8)"
    )


def spreadsheet(title: str) -> InputError:
    return InputError(
        f"{title} is a spreadsheet, not UTF-8 text: save the sheet as 'CSV UTF-8' there, or as Parquet"
    )


@contextmanager
def no_quoting(path: Path, names: Sequence[str] | None) -> Iterator[None]:
    """Turn pyarrow's errors, which quote values, into ours, which do not."""
    try:
        yield
    except PermissionError:
        problem = InputError(f"{title_of(path)} cannot be opened: permission denied")
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        problem = _explain(str(error), path, names)
    else:
        return
    raise problem from None


def _explain(message: str, path: Path, names: Sequence[str] | None) -> InputError:
    title = title_of(path)
    if names is None:
        return InputError(
            f"{title} is not a whole Parquet file: truncated, damaged or another format"
        )
    if "UTF8" in message or "utf-8" in message:
        return wrong_encoding(path)
    if "Empty CSV" in message:
        return InputError(f"{title} has a header but no rows")
    # pyarrow counts the header as row 1; people count the rows under it.
    row = re.search(r"Row #(\d+)", message)
    where = f", row {int(row[1]) - 1}" if row else ""
    ragged = re.search(r"Expected (\d+) columns, got (\d+)", message)
    if ragged:
        return InputError(
            f"{title}{where}: {ragged[2]} fields where the header has {ragged[1]} columns"
        )
    return InputError(f"{title} is not a readable table{where}")


# ---- Excel files: the first sheet as a table, its first row being the names of the columns -------

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
    return pa.array(map(cell_text, values), pa.string())


# ---- CSV, TSV, Parquet, Excel, pandas, polars, arrow; a batch at a time --------------------------

__all__ = ["TableSource", "open_table", "read_text", "require_file"]

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = (".parquet", ".pq")
_SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")
_BATCH_ROWS = 131_072

# A CSV row must fit a block: room for a hundred thousand columns.
_BLOCK_BYTES = 1 << 23
_NUMBER = re.compile(r"\s*[-+.]?\d.*")


def file_suffix(path: Path) -> str:
    """The suffix that tells the format: '.csv' for pairs.csv and for pairs.csv.gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def is_table_file(path: Path) -> bool:
    """Whether it is a table by its suffix (CSV, TSV, Parquet, Excel), or standard input (``-``)."""
    return path == STDIN or file_suffix(path) in (*_DELIMITERS, *_PARQUET, *EXCEL)


def open_table(source: Any) -> TableSource:
    """Open a CSV, TSV, Parquet or Excel file, ``-`` (standard input), or a pandas, polars or arrow table."""
    if not isinstance(source, str | Path):
        return _open_frame(source)
    path = require_file(source)
    suffix = file_suffix(path)
    if path == STDIN:
        with opened(path) as stream:
            suffix = ".parquet" if bytes(stream.read(4)) == b"PAR1" else ".csv"
    if suffix in _PARQUET:
        return _open_parquet(path)
    if suffix in _DELIMITERS:
        return _open_csv(path, _DELIMITERS[suffix])
    if suffix in EXCEL:
        return _open_frame(read_sheet(path), path.name)
    if suffix in _SPREADSHEETS:
        raise spreadsheet(path.name)
    raise InputError(
        f"{path.name}: the format is told by the suffix, one of "
        f"{', '.join((*_DELIMITERS, *_PARQUET, *EXCEL))}; rename the file"
    )


def read_text(path: Path) -> str:
    """A whole small text file, UTF-8 (a byte-order mark is dropped)."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise wrong_encoding(path) from None
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror}") from None
    if "\0" in text:
        raise wrong_encoding(path)
    if not text.strip():
        raise InputError(f"{path.name} is empty")
    return text


def _open_csv(path: Path, usual: str) -> TableSource:
    all_names, delimiter, headless = _csv_header(path, usual)

    def batches(wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # Text: 007 is not 7, and what one cell holds changes the type of no other.
        with no_quoting(path, all_names):
            # One thread: only then does a message of pyarrow carry the row number.
            reader = pa_csv.open_csv(
                opened(path),
                read_options=pa_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
                parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pa_csv.ConvertOptions(
                    column_types={written[name]: pa.string() for name in wanted},
                    include_columns=[written[name] for name in wanted],
                    strings_can_be_null=False,  # somebody's id may be NA
                    check_utf8=False,  # whoever reads a column looks: of ids all, of others cell by cell
                ),
            )
            for batch in reader:
                yield _from_cells(batch, list(wanted))

    # pandas writes its row numbers as a column without a name: nobody's feature.
    names = tuple(from_cell(name) for name in all_names if name)
    written = {from_cell(name): name for name in all_names if name}
    # Where semicolons part the cells, a comma in a number is its decimal mark.
    decimal = "," if delimiter == ";" else "."
    return TableSource(title_of(path), names, batches, headless, has_header=True, decimal=decimal)


def _from_cells(batch: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
    """The batch as it was before its text was made safe for spreadsheets."""
    columns = [
        pc.replace_substring_regex(column, f"^'({FORMULA[1:]})", r"\1")
        if pa.types.is_string(column.type) and pc.any(pc.starts_with(column, "'")).as_py()
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _csv_header(path: Path, usual: str) -> tuple[tuple[str, ...], str, bool]:
    """The first row, the delimiter, and whether the row looks like data rather than names."""
    try:
        with opened(path) as stream:
            start = bytes(stream.read(_BLOCK_BYTES)).lstrip(b"\r\n")
    except (OSError, pa.ArrowException):
        raise InputError(f"{title_of(path)} cannot be read") from None
    first, *others = start.splitlines() or [b""]
    try:
        header = first.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise wrong_encoding(path) from None
    if "\0" in header:
        raise wrong_encoding(path)
    # Where the comma is the decimal mark, tables are written with semicolons; databases write bars.
    signs = [sign for sign in ";|" if sign in header and usual not in header]
    delimiter = signs[0] if len(signs) == 1 else usual
    try:
        names = tuple(next(csv.reader([header], delimiter=delimiter), []))
    except csv.Error:
        raise InputError(f"{title_of(path)} is not a readable table") from None
    if not any(names):
        raise InputError(f"{title_of(path)} is empty")
    # Ids and labels come again further down; names of columns do not.
    cells = {cell.strip(b'" ') for line in others for cell in line.split(delimiter.encode())}
    headless = any(
        _NUMBER.fullmatch(name) or name.strip().encode() in cells for name in names if name
    )
    if not any(_NUMBER.fullmatch(name) for name in names):  # cells have no say in what is refused
        _refuse_twins([from_cell(name) for name in names if name], path.name)
    return names, delimiter, headless


def _open_parquet(path: Path) -> TableSource:
    with no_quoting(path, None):
        file = pq.ParquetFile(_parquet(path), memory_map=True)
        check_parquet(file.metadata, title_of(path), size_of(path))
        names = tuple(name for name in file.schema_arrow.names if not _is_index(name))
    _refuse_twins(names, path.name)

    def batches(wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # Text comes as a dictionary, as most Parquet files hold it: written out, a file of kilobytes can
        # take gigabytes.
        schema = file.schema_arrow
        text = [name for name in wanted if is_text_type(schema.field(name).type)]
        with no_quoting(path, None):
            encoded = pq.ParquetFile(_parquet(path), memory_map=True, read_dictionary=text)
            # iter_batches returns columns in the file's order: put them in the asked order.
            for batch in encoded.iter_batches(batch_size=_BATCH_ROWS, columns=list(wanted)):
                yield batch.select(list(wanted))

    return TableSource(path.name, names, batches)


def check_parquet(metadata: Any, title: str, size: int) -> None:
    """Refuse a Parquet file whose columns, written out, would be far larger than the file is."""
    declared = metadata.num_rows
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            declared += 8 * max(column.num_values, group.num_rows) + column.total_uncompressed_size
    check_growth(title, size, declared)


def _parquet(path: Path) -> Any:
    return opened(path) if path == STDIN else path


def _open_frame(source: Any, title: str = "the table") -> TableSource:
    columns = columns_of(source)
    if columns is None:
        raise InputError(
            f"cannot read a table from a {type(source).__name__}: give a path, or a pandas, polars "
            "or arrow table"
        )
    names = tuple(name for name in columns if not _is_index(name))

    def batches(wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        cells = {name: arrow_cells(columns[name], name) for name in wanted}
        try:
            yield from pa.table(cells).to_batches(max_chunksize=_BATCH_ROWS)
        except pa.ArrowException:
            raise InputError("the table's columns have different lengths") from None

    return TableSource(title, names, batches)


def _is_index(name: str) -> bool:
    """A pandas row index that was written along without a name is nobody's feature."""
    return re.fullmatch(r"__index_level_\d+__", name) is not None


def _refuse_twins(names: Sequence[str], title: str) -> None:
    if len(set(names)) != len(names):
        raise InputError(f"{title}: two columns have the same name")
