"""Pairs of a Dask collection in canonical order, sorted by the workers.

`pairveil.records.canonical` says why. Each partition is sorted where it is read. Where partitions then follow
one another, person by person, they stay as they are; otherwise each worker sends what it has of a range of
lower people to whoever puts that range together. So all mentions of a pair meet in one place, and there
they become one record. Labels stay with the workers; the driver sees counts, a sample of person numbers
and digests.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.engine.backends.dask_features import delayed_task, fetch
from pairveil.records.canonical import records_of

Ends = NDArray[np.int32]
MOST_TASKS = (
    1 << 14
)  # pieces that a sort may cut partitions into, unless there are very many partitions
LEAST_RANGES = 8
SAMPLE = 256  # of each partition's people, to cut ranges of about equal length


class Partition(NamedTuple):
    """A partition as a worker holds it, or what is wrong with it.

    ``ends`` are in canonical order, ``positions`` says where each pair stands in the collection.
    """

    ends: Ends
    labels: NDArray[np.int8]
    positions: NDArray[np.int64]
    problem: tuple[str, int, int] | None = None  # what, how many pairs, the first of them
    n_repeated: int = 0
    n_contrary: int = 0

    @property
    def digest(self) -> bytes:
        """Names who is paired with whom."""
        return hashlib.sha256(np.ascontiguousarray(self.ends).tobytes()).digest()


class Look(NamedTuple):
    """What the driver learns of a partition."""

    n_pairs: int
    problem: tuple[str, int, int] | None
    digest: bytes
    first: tuple[int, int]
    last: tuple[int, int]
    n_repeated: int
    n_contrary: int
    sample: Ends  # of lower people


class Sorted(NamedTuple):
    """Partitions that follow one another in canonical order, each pair once."""

    partitions: tuple[Any, ...]
    looks: list[Look]


def canonical_partition(ends: NDArray[Any], labels: NDArray[np.int8]) -> Partition:
    """A partition with its pairs in canonical order; repeated pairs are still there, to be told apart.

    Examples
    --------
    >>> found = canonical_partition(np.array([[2, 1], [1, 0]]), np.array([1, -1], dtype=np.int8))
    >>> found.ends.tolist(), found.positions.tolist()
    ([[0, 1], [1, 2]], [1, 0])
    """
    low, high = ends.min(axis=1), ends.max(axis=1)
    order = np.lexsort((high, low))  # stable: mentions of a pair stay in their order
    placed = np.stack([low[order], high[order]], axis=1).astype(np.int32)
    again = int((placed[1:] == placed[:-1]).all(axis=1).sum())
    return Partition(placed, labels[order], order.astype(np.int64), n_repeated=again)


def look(part: Partition) -> Look:
    """What the driver may know of a partition, on a worker."""
    ends = part.ends
    first, last = (
        ((int(ends[at, 0]), int(ends[at, 1])) if len(ends) else (-1, -1)) for at in (0, -1)
    )
    sample = ends[:: max(1, len(ends) // SAMPLE), 0].copy()
    return Look(
        len(ends), part.problem, part.digest, first, last, part.n_repeated, part.n_contrary, sample
    )


def sort_partitions(client: Any, partitions: tuple[Any, ...], looks: list[Look]) -> Sorted:
    """Partitions in canonical order as a whole, from partitions each of which is sorted.

    Parameters
    ----------
    client : distributed.Client
    partitions : tuple of Delayed
        Of `canonical_partition`, without problems.
    """
    starts = np.concatenate([[0], np.cumsum([seen.n_pairs for seen in looks])])
    placed = [
        delayed_task(_placed)(part, int(start))
        for part, start in zip(partitions, starts[:-1], strict=True)
    ]
    if _follow_one_another(looks):
        return Sorted(tuple(placed), looks)
    ranges = _ranges(looks)
    found = tuple(
        delayed_task(_merged)(
            [
                delayed_task(_between)(part, low, high)
                for part, seen in zip(placed, looks, strict=True)
                if seen.n_pairs and seen.first[0] < high and seen.last[0] >= low
            ]
        )
        for low, high in pairwise(ranges)
    )
    return Sorted(found, fetch(client, [delayed_task(look)(part) for part in found], "pairs"))


def _follow_one_another(looks: list[Look]) -> bool:
    filled = [seen for seen in looks if seen.n_pairs]
    # By person: one whose pairs lie in two partitions is brought together, as `set_digest` needs it.
    apart = all(one.last[0] < other.first[0] for one, other in pairwise(filled))
    return apart and not any(seen.n_repeated for seen in filled)


def _ranges(looks: list[Look]) -> list[int]:
    """Where ranges of lower people begin, and one beyond the last person."""
    wanted = min(len(looks), max(LEAST_RANGES, MOST_TASKS // len(looks)))
    people = np.concatenate([seen.sample for seen in looks])
    weight = np.concatenate(
        [np.full(s.sample.size, s.n_pairs / max(1, s.sample.size)) for s in looks]
    )
    order = np.argsort(people, kind="stable")
    share = np.cumsum(weight[order])
    places = np.searchsorted(share, share[-1] * np.arange(1, wanted) / wanted)
    cuts = {int(people[order[place]]) for place in places} - {0}
    return [0, *sorted(cuts), max(seen.last[0] for seen in looks) + 1]


def set_digest(part: Partition) -> int:
    """A number for a partition's pairs; numbers of all partitions add up to that of the collection.

    A person's pairs lie in one partition, whatever the cut: her digest is added, modulo 2^256.
    """
    ends = np.ascontiguousarray(part.ends, dtype=np.int64)
    _, first = np.unique(ends[:, 0], return_index=True)
    digests = (
        hashlib.sha256(ends[a:b].tobytes()).digest()
        for a, b in pairwise([*first.tolist(), len(ends)])
    )
    return sum(int.from_bytes(one) for one in digests) % 2**256


def _placed(part: Partition, start: int) -> Partition:
    return part._replace(positions=part.positions + start)


def _between(part: Partition, low: int, high: int) -> Partition:
    """What a partition has of the pairs whose lower person is in a range."""
    at = slice(*np.searchsorted(part.ends[:, 0], [low, high]))
    return Partition(part.ends[at].copy(), part.labels[at].copy(), part.positions[at].copy())


def _merged(pieces: list[Partition]) -> Partition:
    """Pieces of one range as one partition, each pair once."""
    if not pieces:
        return Partition(np.empty((0, 2), np.int32), np.empty(0, np.int8), np.empty(0, np.int64))
    ends, labels, positions = (
        np.concatenate([getattr(piece, name) for piece in pieces])
        for name in ("ends", "labels", "positions")
    )
    if not len(ends):
        return Partition(ends, labels, positions)
    found = records_of(ends, labels)
    assert found.labels is not None
    if found.positions is not None:
        positions = positions[found.positions]
    # Copies: views would keep what was merged away.
    return Partition(
        found.pairs.astype(np.int32),
        found.labels.copy(),
        positions,
        None,
        found.n_repeated,
        found.n_contrary,
    )
