"""Who changes together: a public value of each person, such as a household, a site or a clinician."""

from __future__ import annotations

import hashlib
import struct
import sys
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.records.columns import as_ids, ids_as_text
from pairveil.records.similar_ids import folded

_PERSON = struct.Struct("<QQ")  # the first person of the same set, and the length of the name


def numbered(values: Any, n_people: int) -> NDArray[np.int64]:
    """Each person's value as a number; somebody without one (None, NaN, empty text) has a number of her own.

    ``values``: array_like of shape (n_people,); text or numbers, public.

    Examples
    --------
    >>> numbered(["mill lane", None, "Mill Lane ", ""], 4).tolist()
    [0, 1, 0, 2]
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

    Parameters
    ----------
    ids : array of shape (n,) or None
        Of all people of the column, in pairs or not: two releases of one table then have one name.
    together : int array of shape (n,)
        As `numbered` has it.

    Examples
    --------
    >>> one = together_digest(["ann", "bob", "cid"], np.array([0, 0, 1]))
    >>> one == together_digest(["dan", "bob", "ann"], np.array([5, 7, 7]))
    True
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


@lru_cache(maxsize=1 << 16)
def meant(text: str) -> Any:
    """What a text is compared by: neither case nor spaces, and 12.0 is 12.

    Two households taken for one cost noise; one taken for two would be promised too much.

    Examples
    --------
    >>> meant("Mill Lane ") == meant("mill lane"), meant("12.0") == 12
    (True, True)
    """
    plain = folded(text)
    try:
        number = Decimal(plain)
    except InvalidOperation:
        return plain
    return number if number.is_finite() else plain
