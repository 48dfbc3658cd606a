"""What workers do with a partition of pairs.

Nothing here raises on bad contents: Dask logs the arguments of a task that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.engine.backends.dask_order import Ends, Partition, canonical_partition
from pairveil.records.pairset import PairSet


def compact(frame: Any, columns: tuple[str, str, str], n_people: int) -> Partition:
    """A partition in 17 bytes a pair, checked and sorted."""
    n = len(frame)
    empty = np.zeros((n, 2), np.int32), np.zeros(n, np.int8), np.zeros(n, np.int64)
    left, right = (_whole_numbers(frame[name]) for name in columns[:2])
    if left is None or right is None:
        return Partition(*empty, ("type", n, 0))
    wide = np.stack([left, right], axis=1)
    labels = _whole_numbers(frame[columns[2]])
    outside = ((wide < 0) | (wide >= n_people)).any(axis=1)
    if labels is None:
        labels = np.zeros(n, dtype=np.int64)  # neither +1 nor -1
    wrong = (labels != 1) & (labels != -1)
    for what, bad in (("outside", outside), ("self", wide[:, 0] == wide[:, 1]), ("label", wrong)):
        if bad.any():
            return Partition(*empty, (what, int(bad.sum()), int(bad.argmax())))
    return canonical_partition(wide, labels.astype(np.int8))


def _whole_numbers(column: Any) -> NDArray[np.int64] | None:
    """A column as int64; None where it holds anything but whole numbers."""
    if column.dtype.kind not in "iuf" or bool(column.isna().any()):
        return None
    values = column.to_numpy()
    with np.errstate(invalid="ignore"):  # an infinity becomes a number, which is not equal to it
        whole: NDArray[np.int64] = values.astype(np.int64)
    return whole if bool((whole == values).all()) else None


def of_same(part: Partition, digest: bytes, task: Callable[..., Any], *arguments: Any) -> Any:
    """What a task makes of a partition; None where it is not the one that was read before."""
    return task(part, *arguments) if part.digest == digest else None


def degrees(part: Partition, n_people: int) -> NDArray[np.int32]:
    """How many pairs of a partition each person has."""
    return np.bincount(part.ends.ravel(), minlength=n_people).astype(np.int32)


def add(counts: list[Any]) -> NDArray[np.int32] | None:
    """The sum of some counts; None where one is missing."""
    if any(count is None for count in counts):
        return None
    total: NDArray[np.int32] = counts[0].copy()
    for more in counts[1:]:
        total += more
    return total


def positions(part: Partition, at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where pairs of a partition were given."""
    return part.positions[at]


def ends(part: Partition) -> Ends:
    """Who is paired with whom."""
    return part.ends


def cut(part: Partition, at: Any) -> tuple[Ends, NDArray[np.int8]]:
    """Some pairs and their labels."""
    return part.ends[at], part.labels[at]


def join(pieces: list[Any]) -> tuple[Ends, NDArray[np.int8]] | None:
    """Pairs and labels of several pieces; None where one is missing."""
    if any(piece is None for piece in pieces):
        return None
    return np.concatenate([ends for ends, _ in pieces]), np.concatenate([y for _, y in pieces])


def people(whole: Any) -> Ends:
    """Everybody in some pairs, ascending."""
    return np.empty(0, dtype=np.int32) if whole is None else np.unique(whole[0])


def gathered_part(whole: Any, people: Ends, rows: NDArray[Any] | None) -> PairSet | None:
    """Pairs with the rows of their own people only."""
    if whole is None or rows is None:
        return None
    places = np.searchsorted(people, whole[0]).astype(np.int32)
    return _pair_set(rows, places, whole[1])


def mapped_part(whole: Any, path: str, seen: tuple[Any, Any]) -> PairSet | None:
    """Pairs with all people's rows, mapped from a file; None if it is not the file that was checked."""
    if whole is None:
        return None
    try:
        features = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return _pair_set(features, *whole) if (features.shape, features.dtype) == seen else None


def _pair_set(features: Any, pairs: Ends, labels: NDArray[np.int8]) -> PairSet:
    """What was checked block by block."""
    return PairSet.checked_before(features=features, pairs=pairs, labels=labels)


def is_built(part: Any) -> bool:
    """Whether a part could be made of what was checked."""
    return part is not None
