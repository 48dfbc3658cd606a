"""Ids that look like one person's: 'ann', 'ann ' and 'ANN'.

A person under two names counts as two people, and kappa is too small. Whether two names mean one person is
for whoever owns the data to say, so by default they are only counted; a reader's ``merge_similar_ids``
takes names that agree after Unicode's NFKC, without outer spaces and without case, as one.
"""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pairveil._warn import warn
from pairveil.errors import IdentityWarning
from pairveil.records.columns import as_arrow, as_ids, as_numpy, numbered


def folded_ids(ids: np.ndarray) -> np.ndarray:
    """Ids without case, outer spaces and Unicode's compatibility forms; integers stay as they are.

    Examples
    --------
    >>> folded_ids(np.array(["ann", "ANN ", "Ann"], dtype=object)).tolist()
    ['ann', 'ann', 'ann']
    """
    if ids.dtype.kind != "O":
        return ids
    distinct, rows = numbered(ids)
    folded = as_numpy(_folded(as_arrow(distinct).cast(pa.large_string())))
    return as_ids(np.take(folded, rows))


def count_similar(*columns: np.ndarray) -> int:
    """How many different ids agree with an earlier one once they are folded.

    Examples
    --------
    >>> count_similar(np.array(["ann", "bob", "ann ", "ANN"], dtype=object))
    2
    """
    if any(ids.dtype.kind != "O" for ids in columns):
        return 0
    texts = [as_arrow(numbered(ids)[0]).cast(pa.large_string()) for ids in columns]
    distinct = pc.unique(pa.concat_arrays(texts))
    return len(distinct) - len(pc.unique(_folded(distinct)))


def say_similar(what: str, *columns: np.ndarray) -> None:
    """Warn, with their number, of ids that agree with another one once they are folded.

    Examples
    --------
    >>> say_similar("the features", np.array([1, 2]))
    """
    count = count_similar(*columns)
    if count:
        warn(
            f"{count} id{' of' if count == 1 else 's of'} {what} differ{'s' if count == 1 else ''} from "
            "another one only in case, outer spaces or Unicode form, and each counts as a person of its own: "
            "if they are the same people, kappa is too small; merge_similar_ids=True takes them as one",
            IdentityWarning,
        )


def _folded(texts: pa.Array) -> pa.Array:
    # Of ASCII, which most ids are, nothing but case and spaces can change; arrow does that in one go.
    plain = pc.ascii_lower(pc.ascii_trim_whitespace(texts))
    other = np.flatnonzero(~as_numpy(pc.string_is_ascii(texts)))
    if not other.size:
        return plain
    found = as_numpy(plain).copy()
    for at in other:
        found[at] = folded(texts[int(at)].as_py())
    return as_arrow(found).cast(pa.large_string())


def folded(text: str) -> str:
    """A text without case, outer spaces and Unicode's compatibility forms.

    Examples
    --------
    >>> folded(" Mill Lane")
    'mill lane'
    """
    # Once more at the end: folding case can undo the normal form.
    plain = unicodedata.normalize("NFKC", text).strip().casefold()
    return unicodedata.normalize("NFKC", plain).strip()
