"""Labels: what people write for 'the same' and 'not the same', as +1 and -1.

+1/-1 and the words below are clear. Bare 0/1, true/false and yes/no are not (is 0 'distance zero' or 'no
match'?), so they are refused unless ``zero_means`` says what they mean, or, for words, the
column's own name does (``is_match``). A message names rows, never a label.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pairveil.errors import InputError
from pairveil.records.columns import as_numpy
from pairveil.records.validation import name_rows

Meaning = Literal["similar", "dissimilar"]

# A column with one of these names says itself what true and yes mean: ``same``, ``is_match``.
SIMILAR_WORDS = frozenset({"similar", "same", "must-link", "match", "duplicate", "same-person"})
DISSIMILAR_WORDS = frozenset({"dissimilar", "different", "cannot-link", "distinct", "non-match"})
TRUE_WORDS = frozenset({"true", "t", "yes", "y"})
FALSE_WORDS = frozenset({"false", "f", "no", "n"})

# What one cell says, before the whole column has been seen.
_SIMILAR, _DISSIMILAR, _ZERO, _ONE, _MINUS_ONE, _UNKNOWN, _TRUE = 1, -1, 0, 2, -2, 3, 4


class LabelColumn:
    """Gathers a column of labels, batch by batch; one byte a row.

    Parameters
    ----------
    zero_means : {'similar', 'dissimilar'}, optional
        What 0 (and false and no) stands for; without it they are refused.
    column : str, optional
        The column's name: ``is_match`` and the like say what true means.

    Examples
    --------
    >>> labels = LabelColumn()
    >>> labels.add(pa.array(["same", "Different"])); labels.add(pa.array([1, -1]))
    >>> labels.finish(rows=None)
    array([ 1, -1,  1, -1], dtype=int8)
    """

    def __init__(self, zero_means: Meaning | None = None, column: str | None = None) -> None:
        if zero_means not in (None, "similar", "dissimilar"):
            raise InputError("zero_means must be 'similar' or 'dissimilar'")
        self._zero_means = zero_means
        self._true_code, self._false_code = _boolean_codes(column)
        self._codes: list[np.ndarray] = []

    def add(self, values: pa.Array) -> None:
        """Add one batch: integers, floats, booleans or text."""
        try:
            values.validate(
                full=True
            )  # a damaged file's dictionary may lack the entries that rows have
            encoded = values.dictionary_encode()
            words = encoded.dictionary.cast(pa.large_string()).to_pylist()
        except (pa.ArrowException, UnicodeDecodeError):  # lists, bytes: no label of ours
            self._codes.append(np.full(len(values), _UNKNOWN, dtype=np.int8))
            return
        # One entry more, for missing labels.
        codes = np.array([*(self._code(word) for word in words), _UNKNOWN], dtype=np.int8)
        indices = pc.fill_null(encoded.indices.cast(pa.int64()), len(words))
        self._codes.append(codes[as_numpy(indices)])

    def finish(self, rows: np.ndarray | None) -> np.ndarray:
        """The labels as int8, or an InputError with the row numbers that are wrong."""
        codes = np.concatenate(self._codes) if self._codes else np.empty(0, dtype=np.int8)
        numbers = np.arange(1, len(codes) + 1) if rows is None else rows
        unknown = np.flatnonzero(codes == _UNKNOWN)
        if unknown.size:
            raise InputError(
                "labels must be +1/-1, similar/dissimilar, same/different, match/distinct, "
                f"must-link/cannot-link or yes/no; {name_rows(numbers[unknown])} "
                f"{'has' if unknown.size == 1 else 'have'} none of these"
            )
        if self._zero_means is None:
            unclear = np.flatnonzero((codes == _ZERO) | (codes == _TRUE))
            if unclear.size:
                raise InputError(
                    "labels of 0/1, true/false or yes/no can be read either way "
                    f"(first: {name_rows(numbers[unclear[:1]])}): say which with "
                    "zero_means (--zero-means): is 0, false or no 'similar' or 'dissimilar'?"
                )
            return np.where((codes == _SIMILAR) | (codes == _ONE), 1, -1).astype(np.int8)
        minus = np.flatnonzero(codes == _MINUS_ONE)
        if minus.size:
            raise InputError(
                "zero_means explains labels of 0/1, but other numbers are there too: "
                f"{name_rows(numbers[minus])}"
            )
        zero, one = (1, -1) if self._zero_means == "similar" else (-1, 1)
        ones = (codes == _ONE) | (codes == _TRUE)
        return np.select([codes == _ZERO, ones], [zero, one], codes).astype(np.int8)

    def _code(self, word: str | None) -> int:
        text = (word or "").strip().lower().replace("_", "-").replace(" ", "-")
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


def _boolean_codes(column: str | None) -> tuple[int, int]:
    """What true (yes) and false (no) mean in a column of this name; unclear where it does not say."""
    name = (column or "").strip().lower().replace("_", "-").replace(" ", "-").removeprefix("is-")
    if name in SIMILAR_WORDS:
        return _SIMILAR, _DISSIMILAR
    if name in DISSIMILAR_WORDS:
        return _DISSIMILAR, _SIMILAR
    # A column of nothing but true must not pass for +1 as a column of 1 does.
    return _TRUE, _ZERO
