"""What layouts share: how pairs are asked for, what is looked at to recognise a file, and lines and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from pairveil.errors import InputError
from pairveil.foreign import parse_json
from pairveil.records.columns import as_ids
from pairveil.records.files import file_suffix, is_table_file, open_table, read_text, require_file
from pairveil.records.labels import Meaning
from pairveil.records.tables import PairTable

ITEMS_NOTE = "Each id is one {item}, so kappa and the guarantee count {item}s, not people"

Pair = tuple[Any, Any, int, int]  # two ids, the label, the line


class How(NamedTuple):
    """The arguments of `pairveil.records.readers.read_pairs`."""

    left: str = "left"
    right: str = "right"
    label: str | None = "label"
    zero_means: Meaning | None = None
    threshold: float = 0.5
    record_id: str = "id"
    require_labels: bool = True

    @property
    def with_labels(self) -> bool:
        """Whether labels are read at all."""
        return self.label is not None


class Layout(Protocol):
    """A module of this package."""

    LOOKS: str
    """What such a file looks like, in a word or two of Markdown."""
    NOTE: str
    """What a user should know of it; a table of the docs has both."""

    def looks_like(self, look: Look) -> bool:
        """Whether a source is in this layout, without any doubt."""
        ...

    def read(self, source: Any, how: How) -> PairTable:
        """The pairs of a source."""
        ...


class Look:
    """What of a source tells its layout; each part is None where the source is of another kind.

    Parameters
    ----------
    source : path, table or mapping
    left, right : str
        The id columns of a plain table.
    """

    def __init__(self, source: Any, left: str = "left", right: str = "right") -> None:
        self.source, self.left, self.right = source, left, right
        self._path = Path(source) if isinstance(source, str | Path) else None

    @cached_property
    def keys(self) -> list[str] | None:
        """Names in a mapping, or in the object of a JSON file."""
        if isinstance(self.source, Mapping):
            return [str(key) for key in self.source]
        if self._path is None or is_table_file(self._path) or not self._is_json:
            return None
        content = parse_json(read_text(self._path), self._path.name, most=None, exact=False)
        return [str(key) for key in content] if isinstance(content, Mapping) else []

    @cached_property
    def columns(self) -> tuple[str, ...] | None:
        """Columns of a table, or of a file of one."""
        if self._path is None or is_table_file(self._path):
            return open_table(self.source).names
        return None

    @cached_property
    def lines(self) -> list[str] | None:
        """Lines of a text file that is neither a table nor JSON; blank ones and comments left out."""
        if self._path is None or is_table_file(self._path) or self._is_json:
            return None
        found = [line.strip() for line in read_text(self._path).splitlines() if line.strip()]
        found = [line for line in found if not line.startswith("#")]
        if not found:
            raise InputError(f"{self._path.name}: there are no pairs")
        return found

    @property
    def title(self) -> str:
        """What messages call the source."""
        return "the table" if self._path is None else self._path.name

    @property
    def _is_json(self) -> bool:
        return self._path is not None and file_suffix(require_file(self._path)) == ".json"


def file_of(source: Any, name: str) -> Path:
    """The path of a layout that is read from a file only."""
    if not isinstance(source, str | Path):
        raise InputError(f"layout {name} is read from a file: give its path")
    return require_file(source)


def lines(path: Path) -> Iterable[tuple[int, str]]:
    """Lines with their numbers from 1; blank ones and # comments are left out."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()


def read_json(path: Path) -> Mapping[str, Any]:
    content = parse_json(read_text(path), path.name, most=None, exact=False)
    if not isinstance(content, Mapping):
        raise InputError(f"{path.name} is not the JSON expected: it is not an object with names")
    return content


def from_pairs(
    found: list[Pair], with_labels: bool, title: str, *notes: str, with_rows: bool = True
) -> PairTable:
    """The table of pairs read one by one; rows are the lines of a file, where it has lines."""
    if not found:
        raise InputError(f"{title}: there are no pairs")
    left, right, labels, rows = (list(column) for column in zip(*found, strict=True))
    return PairTable(
        as_ids(_object_array(left), f"{title}: id"),
        as_ids(_object_array(right), f"{title}: id"),
        np.array(labels, dtype=np.int8) if with_labels else None,
        np.array(rows, dtype=np.int64) if with_rows else None,
        notes,
    )


def _object_array(values: list[Any]) -> np.ndarray:
    # Filled one by one: numpy would turn [1, "a"] into text and lists into a second dimension.
    array = np.empty(len(values), dtype=object)
    array[:] = values
    if {type(value) for value in values} == {int, str}:
        array[:] = [str(value) for value in values]
    return array
