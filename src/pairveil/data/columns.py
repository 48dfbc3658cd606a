"""Columns as arrays: ids, and numbers; by arrow and numpy, without a Python object per row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pairveil.data.validation import name_rows
from pairveil.errors import InputError


class IdColumn:
    """Gathers a column of ids, batch by batch, into int64 or text.

    Text that is plainly an integer (``42``, but not ``042``) becomes that integer, so that the same
    ids join whether one file quotes them or not.

    Parameters
    ----------
    title : str
        The column as messages call it.

    Examples
    --------
    >>> ids = IdColumn("column 'id'")
    >>> ids.add(pa.array(["7", "12"])); ids.add(pa.array(["007"]))
    >>> ids.finish()
    array(['7', '12', '007'], dtype=object)
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._chunks: list[pa.Array] = []
        self._n_rows = 0

    def add(self, values: pa.Array) -> None:
        """Add one batch."""
        missing = values.is_null()
        ids = _integer_or_text(values, self._title)
        if pa.types.is_large_string(ids.type):
            missing = pc.or_(missing, pc.fill_null(pc.equal(ids, ""), False))
        empty = np.flatnonzero(missing.to_numpy(zero_copy_only=False))
        if empty.size:
            raise InputError(f"{self._title} is empty in {name_rows(empty + 1 + self._n_rows)}")
        self._n_rows += len(values)
        self._chunks.append(ids)

    def finish(self) -> np.ndarray:
        """All ids: int64, or objects of type str where any is not an integer."""
        if all(pa.types.is_integer(chunk.type) for chunk in self._chunks):
            parts = [chunk.to_numpy(zero_copy_only=False) for chunk in self._chunks]
            return np.concatenate([np.empty(0, dtype=np.int64), *parts])
        return text_array([chunk.cast(pa.large_string()) for chunk in self._chunks])


def text_array(chunks: list[pa.Array]) -> np.ndarray:
    """Text as an object array in which equal strings are one object (8 bytes a row)."""
    encoded = pa.chunked_array(chunks, type=pa.large_string()).combine_chunks().dictionary_encode()
    distinct: np.ndarray = encoded.dictionary.to_numpy(zero_copy_only=False)
    rows: np.ndarray = encoded.indices.to_numpy(zero_copy_only=False)
    return np.take(distinct, rows)


def _integer_or_text(values: pa.Array, title: str) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
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
    """Any one-dimensional sequence of ids as int64 or text.

    Examples
    --------
    >>> as_ids([3, 4]), as_ids(["3", "4"]), as_ids(["a", "3"])
    (array([3, 4]), array([3, 4]), array(['a', '3'], dtype=object))
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{title} must be one-dimensional")
    if array.dtype == np.int64:
        return array
    column = IdColumn(title)
    try:
        column.add(pa.array(array.tolist() if array.dtype.kind == "U" else array))
    except (pa.ArrowException, TypeError):
        raise InputError(f"{title} must be integers or text") from None
    return column.finish()


def ids_as_text(ids: np.ndarray) -> np.ndarray:
    """Ids as text, whatever they are."""
    if ids.dtype.kind == "O":
        return ids
    return text_array([pa.array(ids).cast(pa.large_string())])


def same_kind(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of ids, both integers or both text.

    Examples
    --------
    >>> import numpy as np
    >>> same_kind(np.array([1, 2]), np.array(["1", "b"], dtype=object))
    (array(['1', '2'], dtype=object), array(['1', 'b'], dtype=object))
    """
    if left.dtype.kind == right.dtype.kind:
        return left, right
    return ids_as_text(left), ids_as_text(right)


def number_array(values: pa.Array, title: str, first_row: int) -> np.ndarray:
    """A numeric arrow column as floats (float32 stays), a missing value as an error.

    Parameters
    ----------
    values : pyarrow.Array
    title : str
        The column as messages call it.
    first_row : int
        The number of rows before this batch, for messages.

    Examples
    --------
    >>> number_array(pa.array([1, 2]), "column 'age'", 0)
    array([1., 2.])
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        values = values.dictionary_decode()
        kind = values.type
    numeric = (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    )
    if not numeric:
        raise InputError(f"{title} is not numeric. Exclude it, or name the columns to use")
    if values.null_count:
        missing = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
        raise InputError(
            "the features hold a NaN, an infinity or a missing value: "
            f"{title}, row {first_row + int(missing[0]) + 1}. Fill it in or leave that person out"
        )
    target = np.float32 if kind in (pa.float16(), pa.float32()) else np.float64
    if pa.types.is_decimal(kind):
        values = values.cast(pa.float64())
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=target)
