"""What readers need of a table, and what users are told of a file that is not a table.

pyarrow's own messages quote the offending value or row. Every one of them is caught here and
replaced (``from None``) by a message that names the row and column only.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from pairveil.errors import InputError
from pairveil.foreign import check_growth
from pairveil.printable import shortened

ColumnKind = Literal["number", "text"]
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
    column = re.search(r"In CSV column #(\d+)", message)
    if column and "conversion error" in message:
        return InputError(
            f"{title}: column '{names[int(column[1])]}' is not numeric{where}. "
            "Exclude it, or name the columns to use"
        )
    return InputError(f"{title} is not a readable table{where}")
