"""Who is who: ids that look like one person's, people who change together, and from ids to row numbers.

A person under two names ('ann', 'ann ' and 'ANN') counts as two people, and kappa is too small. Whether two
names mean one person is for whoever owns the data to say, so by default they are only counted; a reader's
``merge_similar_ids`` takes names that agree after Unicode's NFKC, without outer spaces and without case, as
one.
"""

from __future__ import annotations

import hashlib
import struct
import sys
import unicodedata
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pairveil.errors import IdentityWarning, InputError, warn
from pairveil.printable import many
from pairveil.records.canonical import (
    NULL,
    canonical_records,
    order_of_ids,
    ranks,
    say_contrary,
    say_merged,
)
from pairveil.records.tables import (
    PairTable,
    as_arrow,
    as_ids,
    as_numpy,
    ids_as_text,
    numbered,
    same_kind,
)
from pairveil.records.validation import name_rows, refuse_self_pairs


def folded_ids(ids: np.ndarray) -> np.ndarray:
    """Ids without case, outer spaces and Unicode's compatibility forms; integers stay as they are."""
    if ids.dtype.kind != "O":
        return ids
    distinct, rows = numbered(ids)
    folded = as_numpy(_folded(as_arrow(distinct).cast(pa.large_string())))
    return as_ids(np.take(folded, rows))


def count_similar(*columns: np.ndarray) -> int:
    """How many different ids agree with an earlier one once they are folded."""
    if any(ids.dtype.kind != "O" for ids in columns):
        return 0
    texts = [as_arrow(numbered(ids)[0]).cast(pa.large_string()) for ids in columns]
    distinct = pc.unique(pa.concat_arrays(texts))
    return len(distinct) - len(pc.unique(_folded(distinct)))


def say_similar(what: str, *columns: np.ndarray) -> None:
    """Warn, with their number, of ids that agree with another one once they are folded."""
    count = count_similar(*columns)
    if count:
        differ = many(count, f"id of {what} differs", f"ids of {what} differ")
        warn(
            f"{differ} from another one only in case, outer spaces or Unicode form, and each counts as a "
            "person of its own: if they are the same people, kappa is too small; merge_similar_ids=True "
            "takes them as one",
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
    """A text without case, outer spaces and Unicode's compatibility forms."""
    # Once more at the end: folding case can undo the normal form.
    plain = unicodedata.normalize("NFKC", text).strip().casefold()
    return unicodedata.normalize("NFKC", plain).strip()


# ---- a public value of each person, such as a household, a site or a clinician -------------------

_PERSON = struct.Struct("<QQ")  # the first person of the same set, and the length of the name


def value_numbers(values: Any, n_people: int) -> NDArray[np.int64]:
    """Each person's value as a number; somebody without one (None, NaN, empty text) has a number of her own.

    ``values``: array_like of shape (n_people,); text or numbers, public.
    """
    given = np.asarray(values, dtype=object)
    if given.shape != (n_people,):
        raise InputError(
            f"together must have one value for each of the {n_people} people; got shape {given.shape}"
        )
    numbers: dict[Any, int] = {}
    alone, found = object(), np.empty(n_people, dtype=np.int64)
    nothing = getattr(sys.modules.get("pandas"), "NA", None)
    for person, value in enumerate(given.tolist()):
        if isinstance(value, str):
            value = meant(value)
        try:
            missing = value is None or value is nothing or value != value or value == ""
            found[person] = numbers.setdefault((alone, person) if missing else value, len(numbers))
        except (TypeError, ValueError):  # a list, an array: what is equal to what nobody knows
            raise InputError(
                f"together must hold text or numbers; row {person + 1} is neither"
            ) from None
    return found


def together_digest(ids: Any, together: Any) -> str | None:
    """A name for who changes together with whom; None where people have no names.

    Only sets of two people or more count, by ids: what the values are called is not in it, and neither is
    anybody who stands alone. Whoever guesses the sets can confirm the guess; they are public.
    """
    if ids is None:
        return None
    values = np.asarray(together)
    shared = np.bincount(values)[values] > 1
    names = ids_as_text(as_ids(ids))[shared].tolist()
    people = sorted(zip(names, values[shared].tolist(), strict=True))
    first: dict[int, int] = {}
    hashed = hashlib.sha256(b"pairveil-together-1\0")
    for place, (name, value) in enumerate(people):
        text = name.encode("utf-8", "surrogatepass")
        hashed.update(_PERSON.pack(first.setdefault(value, place), len(text)) + text)
    return hashed.hexdigest()


def spelt(text: str) -> str:
    """One spelling of all texts that mean the same (`meant`).

    Examples
    --------
    >>> spelt("007") == spelt("7.0"), spelt("Ann ") == spelt("ann"), spelt("1" * 40) == spelt("1" * 41)
    (True, True, False)
    """
    value = meant(text)
    if not isinstance(value, Decimal):
        return str(value)
    sign, digits, power = value.as_tuple()
    known = "".join(map(str, digits)).lstrip("0")
    plain = known.rstrip("0")  # not `normalize`, which keeps 28 digits only
    ten = int(power) + len(known) - len(plain)
    return f"{'-' if sign and plain else ''}{plain or '0'}e{ten if plain else 0}"


@lru_cache(maxsize=1 << 16)
def meant(text: str) -> Any:
    """What a text is compared by: neither case nor spaces, and 12.0 is 12.

    Two households taken for one cost noise; one taken for two would be promised too much.
    """
    plain = folded(text)
    try:
        number = Decimal(plain)
    except InvalidOperation:
        return plain
    return number if number.is_finite() else plain


# ---- from ids to row numbers, and the same pair once: hashing and one sort ------------------------


class IndexedPairs(NamedTuple):
    """Pairs as row numbers of people, each pair once."""

    pairs: np.ndarray  # (K, 2): people as positions in ``ids``
    labels: np.ndarray | None
    ids: np.ndarray  # the people
    # (K,): where each pair stands in the `PairTable` (its first mention), ascending: pairs stay in the
    # order of the table. What depends on an order takes the canonical one (`pairveil.records.canonical`).
    positions: np.ndarray


def index_pairs(table: PairTable, ids: np.ndarray | None = None) -> IndexedPairs:
    """Replace ids by row numbers and merge repeated pairs; (a, b) and (b, a) are the same pair.

    ``ids``: the people that have features, in row order. Without it everybody who is in a pair is
    numbered in the order of ids: enough for the graph, which needs no features.

    Raises InputError: a pair names somebody not in ``ids``; a person is paired with herself.
    """
    assert table.rows is not None
    if ids is None:
        pairs, people = _number_everybody(table)
    else:
        people = as_ids(ids)
        pairs = look_up(table, people)
    refuse_self_pairs(pairs, table.rows)
    kept, labels = _merge(pairs, table.labels, table.rows)
    return IndexedPairs(pairs if len(kept) == len(pairs) else pairs[kept], labels, people, kept)


def _number_everybody(table: PairTable) -> tuple[np.ndarray, np.ndarray]:
    both = np.empty(2 * table.n_pairs, dtype=table.left.dtype)
    both[0::2], both[1::2] = table.left, table.right
    people, rows = numbered(both)
    pairs = rows.reshape(-1, 2)
    order = order_of_ids(people)
    places = ranks(order)
    if order is None or places is None:
        return pairs, people
    return places.astype(np.int32)[pairs], people[order]


def look_up(table: PairTable, people: np.ndarray) -> np.ndarray:
    """Row numbers among ``people`` of every pair of a table, repeated ones too, shape (K, 2)."""
    assert table.rows is not None
    return rows_of_ids((table.left, table.right), people, "pairs", table.rows, table.notes)


def rows_of_ids(
    columns: Sequence[np.ndarray],
    people: np.ndarray,
    what: str,
    lines: np.ndarray,
    notes: Sequence[str] = (),
) -> np.ndarray:
    """Row numbers among ``people`` of the ids in equally long columns, shape (K, number of columns)."""
    found = look_up_some(columns, people)
    unknown = np.any(found < 0, axis=1)
    if unknown.any():
        message = unknown_ids(columns, people, unknown, what, lines)
        raise InputError(". ".join([message, *notes]))
    return found


def look_up_some(columns: Sequence[np.ndarray], people: np.ndarray) -> np.ndarray:
    """Row numbers among ``people`` of the ids in equally long columns; -1 for who is not there."""
    found = np.empty((len(columns[0]), len(columns)), dtype=np.int32)
    known = same_kind(columns[0][:1], people)[1]
    value_set = as_arrow(known)
    for side, column in enumerate(columns):
        distinct, rows = numbered(column)
        asked = ids_as_text(distinct) if known.dtype.kind == "O" else distinct
        places = pc.index_in(as_arrow(asked), value_set=value_set)
        found[:, side] = as_numpy(pc.fill_null(places, -1))[rows]
    return found


def unknown_ids(
    columns: Sequence[np.ndarray],
    people: np.ndarray,
    unknown: np.ndarray,
    what: str,
    lines: np.ndarray,
) -> str:
    """How many rows name somebody without features, the first of them, and what may be the cause."""
    at = np.flatnonzero(unknown)
    s = "s" if at.size == 1 else ""
    lacks = f"name{s} an id without features (first: {name_rows(lines[at[:1]])})"
    if len(columns) == 1:  # ids of pairs
        lacks = f"{'has' if s else 'have'} no levels ({name_rows(lines[at])})"
    message = f"{at.size} of {len(unknown)} {what} {lacks}"
    if columns[0].dtype.kind != people.dtype.kind:
        message += (
            ". The ids are integers in one table and text in the other: compare leading zeros "
            "and spaces"
        )
    known = same_kind(columns[0][:1], people)[1]
    if _known_when_folded([column[at] for column in columns], known):
        message += (
            ". They are there in another case, with outer spaces or in another Unicode form: "
            "merge_similar_ids=True takes them as one"
        )
    elif at.size == len(unknown) > 1:
        message += f". That is all {what}: name the columns of ids with left=, right= and id="
    return message


def _known_when_folded(columns: Sequence[np.ndarray], known: np.ndarray) -> bool:
    """Whether folding ids would find somebody for every one of the ids."""
    if known.dtype.kind != "O":
        return False
    people = as_arrow(ids_as_text(folded_ids(known)))
    texts = np.concatenate([ids_as_text(column) for column in columns])
    ends = as_arrow(ids_as_text(folded_ids(numbered(texts)[0])))
    return bool(pc.all(pc.is_in(ends, value_set=people)).as_py())


def _merge(
    pairs: np.ndarray, labels: np.ndarray | None, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Positions of the pairs to keep, the first mention of each, and their labels."""
    found = canonical_records(pairs, labels)
    if not found.n_repeated:
        return np.arange(len(pairs)), labels
    assert found.positions is not None
    in_file = np.argsort(found.positions)
    kept = found.positions[in_file].astype(np.int64)
    again = np.ones(len(pairs), dtype=bool)
    again[kept] = False
    say_merged(found.n_repeated, f" ({name_rows(rows[again])})")
    if found.content is None:
        return kept, None
    low, high = pairs.min(axis=1).astype(np.int64), pairs.max(axis=1)
    who = low * (int(high.max()) + 1) + high
    read = np.isin(who[found.positions], who[labels != NULL])  # a label alone contradicts nothing
    contrary = np.sort(found.positions[(found.content == NULL) & read])
    say_contrary(found.n_contrary, f" (first in {name_rows(rows[contrary])})")
    return kept, found.content[in_file]
