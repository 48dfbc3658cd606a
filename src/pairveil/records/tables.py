"""Tables as arrays: columns of ids, numbers and labels; people with features, pairs of their ids.

All by arrow and numpy, without a Python object per row. A table is read a batch at a time, each column by a
reader of its own kind: ``add`` takes a batch's cells and the number of rows before them, ``finish`` gives the
whole column. Nothing here prints a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pairveil.column_names import cell_text
from pairveil.errors import InputError, PrivateNote, warn
from pairveil.files import file_draft
from pairveil.foreign import is_sparse
from pairveil.printable import FORMULA, as_cell, many
from pairveil.records.validation import check_features, check_labels, name_rows, unreadable_rows
from pairveil.schema.columns import MOST_PLACES, Counts, number_cells
from pairveil.schema.schema import plain_cells

_FEW = 20_000
_CHUNK_ROWS = 8192


class ColumnReader(Protocol):
    """Reads one column, batch by batch."""

    def add(self, values: pa.Array, first_row: int) -> None:
        """Add one batch."""

    def finish(self) -> np.ndarray:
        """The whole column."""


class IdColumn:
    """Gathers a column of ids, batch by batch, into int64 or text.

    Text that is plainly an integer (``42``, but not ``042``) becomes that integer, so that the same
    ids join whether one file quotes them or not.

    ``title``: the column as messages call it.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._chunks: list[pa.Array] = []

    def add(self, values: pa.Array, first_row: int = 0) -> None:
        """Add one batch. A dictionary is resolved entry by entry, not row by row."""
        ids: pa.Array
        if pa.types.is_dictionary(values.type):
            rows, entries = _used_entries(values, self._title)
            ids = _integer_or_text(entries, self._title)
            missing = _is_missing(entries, ids)[rows] | (rows < 0)
            if pa.types.is_integer(ids.type) and not missing.any():
                ids = ids.take(as_arrow(rows))
            elif not missing.any():
                ids = pa.DictionaryArray.from_arrays(as_arrow(rows.astype(np.int32)), ids)
        else:
            ids = _integer_or_text(values, self._title)
            missing = _is_missing(values, ids)
        empty = np.flatnonzero(missing)
        if empty.size:
            raise InputError(f"{self._title} is empty in {name_rows(empty + 1 + first_row)}")
        self._chunks.append(ids.dictionary_encode() if pa.types.is_large_string(ids.type) else ids)

    def finish(self) -> np.ndarray:
        """All ids: int64, or objects of type str where any is not an integer."""
        if all(pa.types.is_integer(chunk.type) for chunk in self._chunks):
            parts = [as_numpy(chunk) for chunk in self._chunks]
            return np.concatenate([np.empty(0, dtype=np.int64), *parts])
        return text_array(self._chunks)


def as_numpy(values: pa.Array) -> np.ndarray:
    """An arrow array without nulls as a NumPy array.

    pyarrow's own conversion loads pandas wherever that is installed, which takes longer than most commands.
    """
    kind = values.type
    if pa.types.is_boolean(kind) and not values.null_count:
        return as_numpy(values.cast(pa.uint8())).astype(bool)
    whole = pa.types.is_integer(kind)
    if len(values) and not values.null_count and (whole or pa.types.is_floating(kind)):
        letter = "f" if not whole else "i" if pa.types.is_signed_integer(kind) else "u"
        dtype = np.dtype(f"{letter}{kind.bit_width // 8}")
        start = values.offset * dtype.itemsize
        return np.frombuffer(values.buffers()[1], dtype, len(values), start)
    if (pa.types.is_large_string(kind) or pa.types.is_string(kind)) and len(
        values
    ) <= _FEW:  # more: pyarrow is faster
        found = np.empty(len(values), dtype=object)
        found[:] = values.to_pylist()
        return found
    plain: np.ndarray = values.to_numpy(zero_copy_only=False)
    return plain


def as_arrow(values: np.ndarray) -> pa.Array:
    """A NumPy array as an arrow array of the type that pyarrow gives it; see `as_numpy`."""
    if values.ndim == 1 and values.dtype in (np.int64, np.int32):
        kind = pa.int64() if values.dtype == np.int64 else pa.int32()
        data = pa.py_buffer(np.ascontiguousarray(values))
        return pa.Array.from_buffers(kind, len(values), [None, data])
    if values.dtype == object and len(values) <= _FEW and all(type(one) is str for one in values):
        texts = [one.encode() for one in values.tolist()]
        ends = np.cumsum([0, *map(len, texts)])
        if ends[-1] < 2**31:
            joined, offsets = b"".join(texts), pa.py_buffer(ends.astype(np.int32))
            return pa.StringArray.from_buffers(len(texts), offsets, pa.py_buffer(joined))
    return pa.array(values)


def text_array(chunks: list[pa.Array]) -> np.ndarray:
    """Text as an object array in which equal strings are one object (8 bytes a row)."""
    if not chunks:
        return np.empty(0, dtype=object)
    encoded = [
        chunk
        if pa.types.is_dictionary(chunk.type)
        else chunk.cast(pa.large_string()).dictionary_encode()
        for chunk in chunks
    ]
    unified = pa.chunked_array(encoded).unify_dictionaries()
    distinct: np.ndarray = as_numpy(unified.chunk(0).dictionary)
    parts = [as_numpy(chunk.indices) for chunk in unified.chunks]
    return np.take(distinct, np.concatenate(parts))


def _used_entries(values: pa.DictionaryArray, title: str) -> tuple[np.ndarray, pa.Array]:
    """Which entry each row has (-1: none), and the entries that rows have, no others."""
    try:
        values.validate(full=True)
    except pa.ArrowException:
        raise InputError(f"{title} holds text that is not UTF-8") from None
    indices = values.indices.cast(pa.int64())
    rows: np.ndarray = as_numpy(pc.fill_null(indices, -1))
    used = np.zeros(len(values.dictionary), dtype=bool)
    used[rows[rows >= 0]] = True
    place = np.cumsum(used) - 1
    kept = np.where(rows >= 0, place[np.maximum(rows, 0)] if len(place) else -1, -1)
    return kept, values.dictionary.take(as_arrow(np.flatnonzero(used)))


def _is_missing(values: pa.Array, ids: pa.Array) -> np.ndarray:
    """Rows without an id. One entry more (False) where there are none, so that -1 can be looked up."""
    missing = values.is_null()
    if pa.types.is_large_string(ids.type):
        nothing = as_arrow(np.array([""], dtype=object)).cast(ids.type)  # a scalar loads pandas
        missing = pc.or_(missing, pc.is_in(ids, value_set=nothing))
    found: np.ndarray = as_numpy(missing)
    return found if len(found) else np.zeros(1, dtype=bool)


def _integer_or_text(values: pa.Array, title: str) -> pa.Array:
    kind = values.type
    try:
        # A damaged Parquet file can hold bytes that are no text; numpy's error would quote them.
        values.validate(full=True)
    except pa.ArrowException:
        raise InputError(f"{title} holds text that is not UTF-8") from None
    try:
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return values.cast(pa.int64())
        # Unsigned 64-bit ids may not fit int64: they go the way of text.
        text = values if pa.types.is_integer(kind) else values.cast(pa.large_string())
    except pa.ArrowException:
        raise InputError(f"{title}: ids must be integers or text") from None
    try:
        numbers = text.cast(pa.int64())
    except pa.ArrowException:
        return text.cast(pa.large_string())
    if pa.types.is_integer(kind):
        return numbers
    plain = pc.all(pc.equal(numbers.cast(pa.large_string()), text)).as_py()
    return text if plain is False else numbers


def as_ids(values: Any, title: str = "the ids") -> np.ndarray:
    """Any one-dimensional sequence of ids as int64 or text."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{title} must be one-dimensional")
    if array.dtype == np.int64:
        return array
    column = IdColumn(title)
    try:
        for chunk in _arrow_chunks(array):
            column.add(chunk)
    except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError):
        raise InputError(f"{title} must be integers or text") from None
    return column.finish()


def _arrow_chunks(array: np.ndarray) -> Iterator[pa.Array]:
    """Ids for arrow, so many at a time: many rows of one long id are one object here, but not there."""
    size = len(array) if array.dtype.kind in "iu" else _CHUNK_ROWS
    for start in range(0, max(len(array), 1), max(size, 1)):
        chunk = array[start : start + size]
        yield as_arrow(chunk.astype(object) if array.dtype.kind == "U" else chunk)


def numbered(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ids in order of appearance, and which of them each row has."""
    encoded = [chunk.dictionary_encode() for chunk in _arrow_chunks(ids)]
    unified = pa.chunked_array(encoded).unify_dictionaries()
    distinct: np.ndarray = as_numpy(unified.chunk(0).dictionary)
    return distinct, np.concatenate([as_numpy(c.indices) for c in unified.chunks])


def ids_as_text(ids: np.ndarray) -> np.ndarray:
    """Ids as text, whatever they are."""
    if ids.dtype.kind == "O":
        return ids
    return text_array([as_arrow(ids).cast(pa.large_string())])


def same_kind(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of ids, both integers or both text."""
    if left.dtype.kind == right.dtype.kind:
        return left, right
    return ids_as_text(left), ids_as_text(right)


class CellColumn:
    """Reads a raw column by a function of its cells; what cannot be read is counted, and stops nobody."""

    def __init__(self, name: str, read: Callable[[pa.Array], tuple[np.ndarray, Counts]]) -> None:
        self._name, self._read = name, read
        self._blocks: list[np.ndarray] = []
        self.counts = Counts()

    def add(self, values: pa.Array, first_row: int) -> None:
        """Add one batch."""
        block, found = self._read(plain_cells(values, self._name))
        self._blocks.append(block)
        self.counts = found.after(self.counts, first_row)

    def finish(self) -> np.ndarray:
        """The whole column."""
        return np.concatenate(self._blocks)


def number_column(name: str, decimal: str) -> CellColumn:
    """Reads a column of numbers without a schema: NaN where there is none. float32 stays."""

    def read(cells: pa.Array) -> tuple[np.ndarray, Counts]:
        found, some = number_cells(cells, name, decimal)
        none, short = ~np.isfinite(found), cells.type in (pa.float16(), pa.float32())
        found = np.where(none, np.nan, found).astype(np.float32 if short else float)
        wrong, where = int(np.count_nonzero(none & some)), np.flatnonzero(none)
        return found, Counts(0, len(where) - wrong, wrong, tuple(where[:MOST_PLACES].tolist()))

    return CellColumn(name, read)


# ---- labels: what people write for 'the same' and 'not the same', as +1 and -1 -----------------------
#
# +1/-1 and the words below are clear. Bare 0/1, true/false and yes/no are not (is 0 'distance zero' or 'no
# match'?), so they are refused unless ``zero_means`` says what they mean, or, for words, the column's own
# name does (``is_match``). A message names rows, never a label.

Meaning = Literal["similar", "dissimilar"]

# A column with one of these names says itself what true and yes mean: ``same``, ``is_match``.
SIMILAR_WORDS = frozenset({"similar", "same", "must-link", "match", "duplicate", "same-person"})
DISSIMILAR_WORDS = frozenset(
    {"dissimilar", "different", "cannot-link", "distinct", "non-match", "no-match"}
)
TRUE_WORDS = frozenset({"true", "t", "yes", "y"})
FALSE_WORDS = frozenset({"false", "f", "no", "n"})

# What one cell says, before the whole column has been seen.
_SIMILAR, _DISSIMILAR, _ZERO, _ONE, _MINUS_ONE, _UNKNOWN, _TRUE = 1, -1, 0, 2, -2, 3, 4
_SLIPS = 0.05  # of the cells, at most: 0, false or no among labels of 1


class LabelColumn:
    """Gathers a column of labels, batch by batch; one byte a row.

    Without ``zero_means`` 0, false and no are refused, unless the ``column``'s name says what true means.
    """

    def __init__(self, zero_means: Meaning | None = None, column: str | None = None) -> None:
        if zero_means not in (None, "similar", "dissimilar"):
            raise InputError("zero_means must be 'similar' or 'dissimilar'")
        self._zero_means = zero_means
        self._title = "the column of labels" if column is None else f"column '{column}'"
        self._true_code, self._false_code = _boolean_codes(column)
        self._codes: list[np.ndarray] = []

    def add(self, values: pa.Array, first_row: int = 0) -> None:  # noqa: ARG002
        """Add one batch: integers, floats, booleans or text."""
        try:
            encoded = values.dictionary_encode()
        except pa.ArrowException:  # lists: no label of ours
            self._codes.append(np.full(len(values), _UNKNOWN, dtype=np.int8))
            return
        # One entry more, for missing labels, and those that a damaged file's dictionary lacks.
        words = [self._code(cell_text(one)) for one in encoded.dictionary]
        codes = np.array([*words, _UNKNOWN], dtype=np.int8)
        places = as_numpy(pc.fill_null(encoded.indices.cast(pa.int64()), -1))
        self._codes.append(
            codes[np.where((places < 0) | (places > len(words)), len(words), places)]
        )

    @property
    def codes(self) -> np.ndarray:
        """What each cell says by itself."""
        return np.concatenate(self._codes) if self._codes else np.empty(0, dtype=np.int8)

    def finish(self, rows: np.ndarray | None = None) -> np.ndarray:
        """The labels as int8, 0 where a cell is none of them.

        Such a cell is private: its pair contributes nothing. It stops nothing either where ``zero_means``
        says how the column is spelled. Where nobody said it, a column that seems to be spelled otherwise is
        refused: one of which most cells are no labels, or of which so many are 0, false or no.
        """
        codes = self.codes
        numbers = np.arange(1, len(codes) + 1) if rows is None else rows
        if self._zero_means is None:
            self._refuse_spelling(codes, numbers)
            similar = (codes == _SIMILAR) | (codes == _ONE)
            dissimilar = (codes == _DISSIMILAR) | (codes == _MINUS_ONE)
            return np.select([similar, dissimilar], [1, -1], 0).astype(np.int8)
        zero, one = (1, -1) if self._zero_means == "similar" else (-1, 1)
        ones = (codes == _ONE) | (codes == _TRUE)
        none = (codes == _UNKNOWN) | (codes == _MINUS_ONE)
        return np.select([codes == _ZERO, ones, none], [zero, one, 0], codes).astype(np.int8)

    def _refuse_spelling(self, codes: np.ndarray, numbers: np.ndarray) -> None:
        unknown = np.flatnonzero(codes == _UNKNOWN)
        similar = np.count_nonzero((codes == _SIMILAR) | (codes == _ONE))
        none = (
            f"{name_rows(numbers[unknown])} {'has' if unknown.size == 1 else 'have'} none of these. Name the "
            "column that does with label="
        )
        known = "+1/-1, similar/dissimilar, same/different, match/no match, must-link/cannot-link or yes/no"
        if 2 * unknown.size > codes.size:
            raise InputError(f"{self._title} holds no labels: they must be {known}; {none}")
        if unknown.size > _SLIPS * codes.size and similar in (0, codes.size - unknown.size):
            # The other kind is in words of its own, and would be missing: no single label decides more.
            text = f"{self._title} holds labels of one kind alone, and others that are not {known}; {none}"
            warn(text, PrivateNote)
        zeros = np.flatnonzero((codes == _ZERO) | (codes == _TRUE))
        clear = int(np.count_nonzero((codes == _MINUS_ONE) | (np.abs(codes) == 1)))
        if zeros.size > max(clear, _SLIPS * codes.size):
            raise InputError(
                f"{self._title}: labels of 0/1, true/false or yes/no can be read either way "
                f"(first: {name_rows(numbers[zeros[:1]])}): say which with "
                "zero_means (--zero-means): is 0, false or no 'similar' or 'dissimilar'?"
            )

    def _code(self, word: str | None) -> int:
        text = _plain(word)
        if text in TRUE_WORDS:
            return self._true_code
        if text in FALSE_WORDS:
            return self._false_code
        if text in SIMILAR_WORDS:
            return _SIMILAR
        if text in DISSIMILAR_WORDS:
            return _DISSIMILAR
        try:
            return {1.0: _ONE, 0.0: _ZERO, -1.0: _MINUS_ONE}.get(float(text), _UNKNOWN)
        except ValueError:
            return _UNKNOWN


def _plain(word: str | None) -> str:
    """A word in the one spelling that words are compared in."""
    return (word or "").strip().lower().replace("_", "-").replace(" ", "-")


def _boolean_codes(column: str | None) -> tuple[int, int]:
    """What true (yes) and false (no) mean in a column of this name; unclear where it does not say."""
    name = _plain(column).removeprefix("is-")
    if name in SIMILAR_WORDS:
        return _SIMILAR, _DISSIMILAR
    if name in DISSIMILAR_WORDS:
        return _DISSIMILAR, _SIMILAR
    # A column of nothing but true must not pass for +1 as a column of 1 does.
    return _TRUE, _ZERO


def says_labels(name: str) -> bool:
    """Whether a column's name says that it holds labels."""
    plain = _plain(name).removeprefix("is-")
    return plain in {"label", "labels", "verdict"} | SIMILAR_WORDS | DISSIMILAR_WORDS


def label_shares(cells: pa.Array) -> tuple[float, float]:
    """Shares of cells that are words for similar or dissimilar, and that are labels of any kind."""
    column = LabelColumn()
    column.add(cells)
    codes = column.codes
    n = max(1, len(codes))
    words, labels = np.abs(codes) == 1, codes != _UNKNOWN
    return int(words.sum()) / n, int(labels.sum()) / n


# ---- what the readers return, and tables written to files ----------------------------------------


@dataclass(frozen=True, eq=False)
class Problem:
    """One kind of problem of a table: in which rows, never with which values."""

    table: str  # {'people', 'levels', 'scores', 'pairs'}
    kind: str  # one of `pairveil.records.dirt.STRUCTURAL`, 'label', 'cell' or 'spaces'
    rows: np.ndarray  # row numbers as messages name them; of cells the first thousand
    column: str = ""  # where it is about one column
    said: str = ""  # A sentence of its own
    n_cells: int = 0  # how many cells, where ``rows`` are the first of them only

    @property
    def count(self) -> int:
        """How many rows or cells."""
        return self.n_cells or len(self.rows)


@dataclass(frozen=True, eq=False, repr=False)
class FeatureTable:
    """People: an id and a row of numbers each. Or, by what they are ``of``, numbers of pairs.

    Examples
    --------
    >>> FeatureTable(ids=["ann", "bob"], values=[[0.1, 0.2], [0.3, 0.4]], names=["age", "dose"])
    FeatureTable(2 people, 2 features)
    """

    ids: np.ndarray  # integers or text, each once
    # (n, d), dense or sparse; float32 and float64 are kept, all else becomes float64. NaN where a cell holds
    # no number: who has such a cell keeps her place among the records and contributes nothing.
    values: Any
    names: tuple[str, ...] | None = None  # of the columns
    rows: np.ndarray | None = None  # the number of each in its file, where some were left out
    left_out: np.ndarray | None = None  # the ids that were left out, once for each row
    problems: tuple[Problem, ...] = ()  # what the reader found
    of: str = "people"  # or 'levels', whose ids are `pair_ids`; or 'scores', by the number of a row

    def __post_init__(self) -> None:
        names = None if self.names is None else tuple(str(name) for name in self.names)
        values = check_features(self.values, names, finite=False)
        ids = as_ids(self.ids)
        if len(ids) != values.shape[0]:
            raise InputError(f"{len(ids)} ids for {values.shape[0]} rows of features")
        refuse_repeated(ids)
        for field, value in (("ids", ids), ("values", values), ("names", names)):
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"FeatureTable({self.n_people} people, {self.n_features} features)"

    def readable(self) -> tuple[Any, np.ndarray]:
        """Values, zero in the rows of those who have a cell that holds no number, and who has one."""
        null = unreadable_rows(self.values)
        if not null.any():
            return self.values, null
        rows = np.flatnonzero(null) + 1 if self.rows is None else self.rows[null]
        warn(
            f"{many(len(rows), 'row', 'rows')} of people with a cell that is no number ({name_rows(rows)}): "
            "their records stay and contribute nothing",
            PrivateNote,
        )
        if not is_sparse(self.values):
            return np.where(null[:, None], self.values.dtype.type(0), self.values), null
        values = self.values.copy()
        values.data[np.repeat(null, np.diff(values.indptr))] = 0
        return values, null

    def asked(self, pairs: PairTable) -> tuple[np.ndarray, ...]:
        """The columns of ids by which pairs are looked up here."""
        if self.of == "levels":
            return (pair_ids(pairs.left, pairs.right),)
        assert pairs.rows is not None
        return (pairs.rows,) if self.of == "scores" else (pairs.left, pairs.right)

    @property
    def n_people(self) -> int:
        """Rows."""
        return int(self.values.shape[0])

    @property
    def n_features(self) -> int:
        """Columns."""
        return int(self.values.shape[1])


@dataclass(frozen=True, eq=False, repr=False)
class PairTable:
    """Pairs of ids, as a file lists them: not yet joined, duplicates still there.

    Examples
    --------
    >>> PairTable(left=["ann", "ann"], right=["bob", "cid"], labels=[1, -1])
    PairTable(2 pairs, labelled)
    """

    left: np.ndarray  # ids, integers or text
    right: np.ndarray
    labels: np.ndarray | None = None  # +1 similar, -1 dissimilar
    rows: np.ndarray | None = None  # as messages name them: data rows from 1, or lines of a file
    notes: tuple[str, ...] = ()  # what the reader decided and a person should know
    null: np.ndarray | None = None  # rows without a readable label: 0 there, and contribute nothing

    def __post_init__(self) -> None:
        left, right = same_kind(as_ids(self.left, "left"), as_ids(self.right, "right"))
        if len(left) == 0:
            raise InputError("there are no pairs")
        if len(left) != len(right):
            raise InputError(f"{len(left)} left ids but {len(right)} right ids")
        rows = np.arange(1, len(left) + 1) if self.rows is None else np.asarray(self.rows)
        if rows.shape != left.shape:
            raise InputError(f"{len(rows)} row numbers for {len(left)} pairs")
        labels = self.labels
        if labels is not None:
            known = labels if self.null is None else np.where(self.null, 1, labels)
            labels = check_labels(known, len(left), rows)
            labels = labels if self.null is None else np.where(self.null, 0, labels).astype(np.int8)
        fields = {"left": left, "right": right, "rows": rows, "labels": labels}
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"PairTable({self.n_pairs} pairs, {'un' if self.labels is None else ''}labelled)"

    @property
    def n_pairs(self) -> int:
        """Rows."""
        return len(self.left)

    def subset(self, chosen: np.ndarray) -> PairTable:
        """Some of the rows, under their own row numbers."""
        parts = {name: getattr(self, name) for name in ("left", "right", "labels", "rows", "null")}
        some: dict[str, Any] = {
            name: part[chosen] for name, part in parts.items() if part is not None
        }
        return replace(self, **some)


BETWEEN = "\x1f"
"""Stands between the two ids of a pair in one text; an id that holds it is refused."""


def pair_ids(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """One id for each pair; (a, b) and (b, a) are the same pair.

    Examples
    --------
    >>> first, second = pair_ids(np.array([1, 2]), np.array([2, 1])).tolist()
    >>> first == second
    True
    """
    texts = [ids_as_text(one).tolist() for one in (left, right)]
    if any(BETWEEN in text for column in texts for text in column):
        raise InputError("an id holds the control character U+001F: two pairs could look like one")
    return np.array([BETWEEN.join(sorted(pair)) for pair in zip(*texts, strict=True)], dtype=object)


def repeated_rows(ids: np.ndarray) -> np.ndarray:
    """Positions of ids that stood before."""
    if len(numbered(ids)[0]) == len(ids):
        return np.empty(0, dtype=np.int64)
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    return np.flatnonzero(first[inverse] != np.arange(len(ids)))


def repeated_ids(rows: np.ndarray, of: str = "features", what: str = "an id") -> str:
    """Which rows repeat an id, in words."""
    said = many(len(rows), f"row of the {of} repeats", f"rows of the {of} repeat")
    return f"{said} {what} that another row has: {name_rows(rows)}"


def refuse_repeated(ids: np.ndarray) -> None:
    """Raise InputError, with row numbers, if two people have one id."""
    again = repeated_rows(ids)
    if again.size:
        raise InputError(f"{repeated_ids(again + 1)}. One row a person")


def write_columns(path: str | Path, columns: Mapping[str, np.ndarray]) -> Path:
    """Write equally long columns as CSV or Parquet, by the file's ending.

    In CSV, text that a spreadsheet would run as a formula gets an apostrophe in front, which our own readers
    take off again (`pairveil.printable`).
    """
    import pyarrow.csv
    import pyarrow.parquet  # slow to import, and readers do not need them here

    target = Path(path)
    if target.suffix not in (".csv", ".parquet"):
        raise InputError(f"{target}: the output's name must end in .csv or .parquet")
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file")
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    target.parent.mkdir(parents=True, exist_ok=True)
    with file_draft(target) as draft:
        if target.suffix == ".csv":
            pyarrow.csv.write_csv(_without_formulas(table), str(draft))
        else:
            pyarrow.parquet.write_table(table, str(draft))
    return target


def _without_formulas(table: Any) -> Any:
    columns = [
        pc.replace_substring_regex(column, f"({FORMULA})", r"'\1")
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=[as_cell(name) for name in table.column_names])
