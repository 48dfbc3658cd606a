"""A name for who is paired with whom, that two holders of the same public graph agree on."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import numpy as np
from numpy.typing import NDArray


def graph_digest(
    ids: NDArray[Any] | None, pairs: NDArray[Any], salt: bytes | None = None
) -> str | None:
    """SHA-256 of the pairs of ids, whatever their order and sides; None where there are no ids.

    Each id is hashed with its type and its length, so that 1 and '1', or ('ab', 'c') and ('a', 'bc'), differ.

    Parameters
    ----------
    ids : array of shape (n,) or None
        What the people are called.
    pairs : integer array of shape (K, 2)
        Positions in ``ids``.
    salt : bytes, optional
        Key of an HMAC. Without it, whoever guesses the graph can confirm the guess.

    Examples
    --------
    >>> ids = np.array(["ann", "bob", "cid"])
    >>> one = graph_digest(ids, np.array([[0, 1], [1, 2]]))
    >>> one == graph_digest(ids[::-1], np.array([[0, 1], [2, 1]])), len(one)
    (True, 64)
    >>> one == graph_digest(ids, np.array([[0, 1], [1, 2]]), salt=b"secret")
    False
    """
    if ids is None:
        return None
    people, where = np.unique(np.asarray(pairs), return_inverse=True)
    names = [_tagged(ids[person]) for person in people]
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), dtype="<i8")
    rank[order] = np.arange(len(names))
    ends = np.sort(rank[where.reshape(-1, 2)], axis=1)
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    digest: Any = hashlib.sha256() if salt is None else hmac.new(salt, digestmod="sha256")
    digest.update(b"pairveil graph 1\0" + len(names).to_bytes(8, "little"))
    for place in order:
        digest.update(len(names[place]).to_bytes(8, "little") + names[place])
    digest.update(np.ascontiguousarray(ends).tobytes())
    return str(digest.hexdigest())


def _tagged(name: Any) -> bytes:
    plain = name.item() if isinstance(name, np.generic) else name
    if isinstance(plain, bytes):
        return b"b" + plain
    return f"{type(plain).__name__}:{plain}".encode("utf-8", "surrogatepass")
