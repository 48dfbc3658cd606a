"""A name for a graph: a digest of who is paired with whom, by ids.

It is a function of the *set* of pairs: neither the order of rows, nor sides, nor people without pairs change
it. What is hashed can be read back in one way only (a tag for the kind of ids, lengths before contents), so
that two different graphs never give the same bytes: 1 is not '1', and an id may hold any character.

A bare digest lets whoever guesses a graph confirm the guess. For a certificate it is salted, and the sender
keeps the salt.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.records.canonical import as_index, order_of_ids, ranks, records_of

_FORMAT = b"pairveil-graph-2\0"
_COUNT = struct.Struct("<Q")


def graph_digest(data: Any, salt: bytes | None = None) -> str | None:
    """A name for who is paired with whom in a PairSet; None where only row numbers are known."""
    ids = getattr(data, "ids", None)
    if ids is None or not hasattr(data, "pairs"):  # people without pairs have no graph
        return None
    return digest_of(ids, data.pairs, salt)


def digest_of(ids: Any, pairs: Any, salt: bytes | None = None) -> str:
    """The digest of pairs of ids, as 64 hexadecimal digits."""
    people, edges = _canonical(_typed(ids), as_index(pairs))
    content = b"".join([_FORMAT, *_names(people), _COUNT.pack(len(edges))])
    if salt is None:
        digest: Any = hashlib.sha256(content)
    elif len(salt) < 16:
        raise InputError("a salt needs at least 16 bytes: secrets.token_bytes(16)")
    else:
        digest = hmac.new(salt, content, hashlib.sha256)
    digest.update(np.ascontiguousarray(edges, dtype="<i8").tobytes())
    return str(digest.hexdigest())


def _typed(ids: Any) -> NDArray[Any]:
    """Ids as int64, or as objects of type str; nothing in between."""
    array = np.asarray(ids)
    if array.ndim == 1 and array.dtype.kind in "iu" and (array.size == 0 or array.max() < 2**63):
        return array.astype(np.int64)
    if array.ndim != 1 or not all(isinstance(one, str) for one in array.tolist()):
        raise InputError("ids must be integers or text, one a person")
    return np.array(array.tolist(), dtype=object)


def _canonical(ids: NDArray[Any], pairs: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ids of the people in pairs, ascending, and the pairs in canonical order by place among them."""
    order = order_of_ids(ids)
    edges = records_of(pairs, rank=ranks(order)).members
    people = ids if order is None else ids[order]
    paired = np.zeros(len(people), dtype=np.bool_)
    paired[edges] = True
    return people[paired], (np.cumsum(paired) - 1)[edges]


def _names(people: NDArray[Any]) -> list[bytes]:
    """Ids as bytes that can be read back in one way only."""
    if people.dtype.kind == "i":
        return [b"i", _COUNT.pack(len(people)), people.astype("<i8").tobytes()]
    encoded = [name.encode("utf-8", "surrogatepass") for name in people.tolist()]
    lengths = np.array([len(name) for name in encoded], dtype="<i8")
    return [b"s", _COUNT.pack(len(encoded)), lengths.tobytes(), *encoded]
