"""Opening tables of any kind: CSV, TSV, Parquet, pandas, polars, arrow; a batch at a time.

pyarrow's own messages quote the offending value or row. Every one of them is caught here and
replaced (``from None``) by a message that names the row and column only.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from pairveil.csv_cells import FORMULA, from_cell
from pairveil.errors import InputError
from pairveil.printable import shortened

ColumnKind = Literal["number", "text"]

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = (".parquet", ".pq")
_COMPRESSED = (".gz", ".bz2", ".zst")
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
_BATCH_ROWS = 131_072
# A CSV row must fit a block: room for a hundred thousand columns.
_BLOCK_BYTES = 1 << 23
_NUMBER = re.compile(r"\s*[-+.]?\d.*")


@dataclass(frozen=True, eq=False, repr=False)
class TableSource:
    """A table that can be read a batch at a time.

    Attributes
    ----------
    title : str
        What messages call it: the file's name, or 'the table'.
    names : tuple of str
        Its columns.
    batches : callable
        ``batches({column: kind})`` yields record batches of those columns, in that order.
    headless : bool
        The first row looks like data: its cells must not be quoted as column names.
    has_header : bool
        The names are the first row of a text file, which may have been data after all.
    """

    title: str
    names: tuple[str, ...]
    batches: Callable[[Mapping[str, ColumnKind]], Iterator[pa.RecordBatch]]
    headless: bool = False
    has_header: bool = False

    def require(self, columns: Sequence[str], how_to_name: str) -> None:
        """Raise InputError unless all of ``columns`` exist.

        Which ones exist is said only where one of the wanted is among them: the first row of a file
        without a header is a person's data, and looks like names to a program.
        """
        missing = [column for column in columns if column not in self.names]
        if not missing:
            return
        wanted = ", ".join(f"'{column}'" for column in missing[:20])
        message = f"{self.title} has no column {wanted}"
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
    """The path of a file that exists and is not empty.

    Examples
    --------
    >>> require_file("no-such-file.csv")
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: there is no file no-such-file.csv
    """
    found = Path(path)
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


def file_suffix(path: Path) -> str:
    """The suffix that tells the format: '.csv' for pairs.csv and for pairs.csv.gz.

    Examples
    --------
    >>> file_suffix(Path("pairs.CSV.gz"))
    '.csv'
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def is_table_file(path: Path) -> bool:
    """Whether the suffix says CSV, TSV or Parquet."""
    return file_suffix(path) in (*_DELIMITERS, *_PARQUET)


def open_table(source: Any) -> TableSource:
    """Open a CSV, TSV or Parquet file, or a pandas, polars or arrow table.

    Examples
    --------
    >>> open_table({"left": [1, 2], "right": [2, 3]}).names
    ('left', 'right')
    """
    if not isinstance(source, str | Path):
        return _open_frame(source)
    path = require_file(source)
    suffix = file_suffix(path)
    if suffix in _PARQUET:
        return _open_parquet(path)
    if suffix in _DELIMITERS:
        return _open_csv(path, _DELIMITERS[suffix])
    if suffix in _SPREADSHEETS:
        raise _spreadsheet(path.name)
    raise InputError(
        f"{path.name}: the format is told by the suffix, one of "
        f"{', '.join((*_DELIMITERS, *_PARQUET))}; rename the file"
    )


def read_text(path: Path) -> str:
    """A whole small text file, UTF-8 (a byte-order mark is dropped).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pairs.txt"
    ...     _ = path.write_text("1 a b")
    ...     read_text(path)
    '1 a b'
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise _wrong_encoding(path) from None
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror}") from None
    if "\0" in text:
        raise _wrong_encoding(path)
    if not text.strip():
        raise InputError(f"{path.name} is empty")
    return text


def _open_csv(path: Path, usual: str) -> TableSource:
    all_names, delimiter, headless = _csv_header(path, usual)

    def batches(wanted: Mapping[str, ColumnKind]) -> Iterator[pa.RecordBatch]:
        # Ids are read as text, so that 007 is not 7 and a late 'A12' does not break the column.
        types = {
            written[c]: pa.float64() if kind == "number" else pa.string()
            for c, kind in wanted.items()
        }
        with _no_quoting(path, all_names):
            # One thread: only then does a message of pyarrow carry the row number.
            reader = pa_csv.open_csv(
                path,
                read_options=pa_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
                parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pa_csv.ConvertOptions(
                    column_types=types,
                    include_columns=[written[c] for c in wanted],
                    # Only a number can be missing by a word: somebody's id may be NA.
                    strings_can_be_null=False,
                ),
            )
            for batch in reader:
                yield _from_cells(batch, list(wanted))

    # pandas writes its row numbers as a column without a name: nobody's feature.
    names = tuple(from_cell(name) for name in all_names if name)
    written = {from_cell(name): name for name in all_names if name}
    return TableSource(path.name, names, batches, headless, has_header=True)


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
        with pa.input_stream(path) as stream:
            start = bytes(stream.read(_BLOCK_BYTES)).lstrip(b"\r\n")
    except (OSError, pa.ArrowException):
        raise InputError(f"{path.name} cannot be read") from None
    first, *others = start.splitlines() or [b""]
    try:
        header = first.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _wrong_encoding(path) from None
    if "\0" in header:
        raise _wrong_encoding(path)
    # Where the comma is the decimal mark, tables are written with semicolons.
    delimiter = ";" if ";" in header and usual not in header else usual
    try:
        names = tuple(next(csv.reader([header], delimiter=delimiter), []))
    except csv.Error:
        raise InputError(f"{path.name} is not a readable table") from None
    if not any(names):
        raise InputError(f"{path.name} is empty")
    # Ids and labels come again further down; names of columns do not.
    cells = {cell.strip(b'" ') for line in others for cell in line.split(delimiter.encode())}
    headless = any(
        _NUMBER.fullmatch(name) or name.strip().encode() in cells for name in names if name
    )
    if not headless:
        _refuse_twins([from_cell(name) for name in names if name], path.name)
    return names, delimiter, headless


def _open_parquet(path: Path) -> TableSource:
    with _no_quoting(path, None):
        file = pq.ParquetFile(path, memory_map=True)
        names = tuple(name for name in file.schema_arrow.names if not _is_index(name))
    _refuse_twins(names, path.name)

    def batches(wanted: Mapping[str, ColumnKind]) -> Iterator[pa.RecordBatch]:
        # Text comes as a dictionary, as most Parquet files hold it: written out, a file of kilobytes can
        # take gigabytes.
        schema = file.schema_arrow
        text = [
            name
            for name, kind in wanted.items()
            if kind == "text" and _is_text(schema.field(name).type)
        ]
        with _no_quoting(path, None):
            encoded = pq.ParquetFile(path, memory_map=True, read_dictionary=text)
            # iter_batches returns columns in the file's order: put them in the asked order.
            for batch in encoded.iter_batches(batch_size=_BATCH_ROWS, columns=list(wanted)):
                yield batch.select(list(wanted))

    return TableSource(path.name, names, batches)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _open_frame(source: Any) -> TableSource:
    table = _arrow_table(source)
    names = tuple(name for name in table.column_names if not _is_index(name))
    _refuse_twins(names, "the table")

    def batches(wanted: Mapping[str, ColumnKind]) -> Iterator[pa.RecordBatch]:
        yield from table.select(list(wanted)).to_batches(max_chunksize=_BATCH_ROWS)

    return TableSource("the table", names, batches)


def _arrow_table(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):  # polars LazyFrame
        source = source.collect()
    if hasattr(source, "to_arrow"):  # polars DataFrame
        return source.to_arrow()
    if hasattr(source, "reset_index") and getattr(source.index, "names", [None]) != [None]:
        source = source.reset_index()  # pandas: a named index is a column, usually the id
    if not hasattr(source, "columns") and not isinstance(source, Mapping):
        raise InputError(
            f"cannot read a table from a {type(source).__name__}: give a path, or a pandas, polars "
            "or arrow table"
        )
    names = list(source.columns) if hasattr(source, "columns") else list(source)
    _refuse_twins([str(name) for name in names], "the table")
    columns = {}
    # Column by column, so that a message can say which one arrow cannot hold.
    for name in names:
        try:
            columns[str(name)] = pa.array(source[name], from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise InputError(f"column '{name}' mixes kinds of values; make it one kind") from None
    try:
        return pa.table(columns)
    except pa.ArrowException:
        raise InputError("the table's columns have different lengths") from None


def _is_index(name: str) -> bool:
    """A pandas row index that was written along without a name is nobody's feature."""
    return re.fullmatch(r"__index_level_\d+__", name) is not None


def _refuse_twins(names: Sequence[str], title: str) -> None:
    if len(set(names)) != len(names):
        raise InputError(f"{title}: two columns have the same name")


def _wrong_encoding(path: Path) -> InputError:
    """Not UTF-8: what it is instead, by its first bytes, and what to do."""
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError:
        start = b""
    title = path.name
    if start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return _spreadsheet(title)
    if start.startswith(b"PAR1"):
        return InputError(f"{title} is not UTF-8 text but a Parquet file: name it .parquet")
    if start.startswith(b"\x1f\x8b") and path.suffix.lower() not in _COMPRESSED:
        return InputError(f"{title} is not UTF-8 text but compressed: name it {title}.gz")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or start.count(0) > len(start) // 4:
        return InputError(
            f"{title} is not UTF-8 text but UTF-16, as spreadsheets write 'Unicode text'; save it as "
            "'CSV UTF-8', or convert it (iconv -f utf-16 -t utf-8)"
        )
    return InputError(
        f"{title} is not UTF-8 text; convert it first (iconv -f latin1 -t utf-8, for example)"
    )


def _spreadsheet(title: str) -> InputError:
    return InputError(
        f"{title} is a spreadsheet, not UTF-8 text: save the sheet as 'CSV UTF-8' there, or as Parquet"
    )


@contextmanager
def _no_quoting(path: Path, names: Sequence[str] | None) -> Iterator[None]:
    """Turn pyarrow's errors, which quote values, into ours, which do not."""
    try:
        yield
    except PermissionError:
        problem = InputError(f"{path.name} cannot be opened: permission denied")
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        problem = _explain(str(error), path, names)
    else:
        return
    raise problem from None


def _explain(message: str, path: Path, names: Sequence[str] | None) -> InputError:
    title = path.name
    if names is None:
        return InputError(
            f"{title} is not a whole Parquet file: truncated, damaged or another format"
        )
    if "UTF8" in message or "utf-8" in message:
        return _wrong_encoding(path)
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
    column = re.search(r"In CSV column #(\d+)", message)
    if column and "conversion error" in message:
        return InputError(
            f"{title}: column '{names[int(column[1])]}' is not numeric{where}. "
            "Exclude it, or name the columns to use"
        )
    return InputError(f"{title} is not a readable table{where}")
