"""Pairs and features that are Dask collections: a fit that no single machine could hold.

Pairs are a Dask DataFrame of row numbers and labels, features whatever
`pairveil.engine.backends.dask_features` reads. Labels and features never come to the driver. What does
come depends on the unit:

- *person*, all pairs used: degrees, 4 bytes a person, counted by the workers and added up;
- otherwise who is paired with whom, a partition at a time: 12 bytes a pair while kappa is found (neighbour
  lists and search), and 8 bytes a pair while pairs are selected.

Workers bring the pairs into canonical order first (`pairveil.engine.backends.dask_order`): nothing that
follows depends on the order of the rows or on how they are divided into partitions.

Partitions are recipes and not kept data: they are read for the checks, for the graph and for the parts
that workers sum. A recipe that gives other pairs the second time (files that changed) would make kappa a
number of another graph. So the first reading leaves a digest of each partition, and later readings are
held against it.

Parts are cut by position among the used pairs, in whole tiles, whatever the partitions: a fit gives the very
integers of a local one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.engine.backends import dask_tasks
from pairveil.engine.backends.dask import connected_client
from pairveil.engine.backends.dask_features import (
    FeatureBlocks,
    delayed_task,
    fetch,
    gathered,
    open_features,
    read_parquet,
)
from pairveil.engine.backends.dask_order import Ends, look, set_digest, sort_partitions
from pairveil.errors import InputError
from pairveil.graph.choosing import select_pairs
from pairveil.graph.kappa import Kappa, kappa, kappa_of_degrees, kappa_of_parts
from pairveil.records.canonical import say_contrary, say_merged

FAN_IN = 8  # degrees of so many partitions are added by one task
MAX_PEOPLE = 2**31 - 2
CHANGED = "pairs or features changed between two readings of them: persist() them"


class Chosen(NamedTuple):
    """Which pairs a fit uses, and the group sizes of those given and of those used."""

    used: Any
    rows: NDArray[np.int64] | range
    given: Kappa
    taken: Kappa
    by_degrees: bool = False  # only degrees were counted, which bounds the other numbers


def open_dask_pairs(
    features: Any, pairs: Any, columns: tuple[str, str, str] = ("left", "right", "label")
) -> DaskPairs:
    """Pairs and features that stay with the workers of the connected Dask cluster.

    Parameters
    ----------
    features : dask.array.Array, dask.dataframe.DataFrame, str or path
        One row a person. A path is ``.npy`` or Parquet, on any file system that fsspec knows.
    pairs : dask.dataframe.DataFrame, str or path
        Two columns of row numbers (from 0) and one of labels, +1 (similar) and -1 (dissimilar). A
        path is Parquet: a file, a folder, a pattern. In any order, but cheapest where sorted by the lower
        person. Read several times in a fit; ``persist()`` a DataFrame that is costly to compute.
    columns : (str, str, str)
        Their names.

    Returns
    -------
    DaskPairs
        For ``DPPMetricLearner(backend="dask").fit``.

    Raises
    ------
    InputError
        No cluster, a missing column, numbers that name nobody, labels other than +1 and -1.

    Warns
    -----
    PrivateNote
        The same pair was there more than once. Where its labels contradict each other it contributes nothing.

    Examples
    --------
    >>> open_dask_pairs("s3://people/features.npy", "s3://people/pairs/")  # doctest: +SKIP
    DaskPairs(1000000 people, 100000000 pairs, 64 features, 96 partitions)
    """
    client = connected_client()
    table = open_features(features, client)
    if table.shape[0] > MAX_PEOPLE:
        raise InputError("more than 2**31 - 2 people: split the graph by connected component")
    if hasattr(pairs, "__fspath__") or isinstance(pairs, str):
        pairs = read_parquet(str(pairs), "pairs")
    if not (hasattr(pairs, "to_delayed") and hasattr(pairs, "columns")):
        raise InputError("pairs must be a Dask DataFrame or the path of Parquet files")
    missing = [name for name in columns if name not in list(pairs.columns)]
    if missing:
        raise InputError(f"the pairs have no column '{missing[0]}'")
    partitions = tuple(
        delayed_task(dask_tasks.compact)(frame, columns, table.shape[0])
        for frame in pairs[list(columns)].to_delayed()
    )
    looks = fetch(client, [delayed_task(look)(part) for part in partitions], "pairs")
    given = np.concatenate([[0], np.cumsum([seen.n_pairs for seen in looks], dtype=np.int64)])
    _refuse_problems([seen.problem for seen in looks], given, columns, table.shape[0])
    if given[-1] == 0:
        raise InputError("there are no pairs")
    found = sort_partitions(client, partitions, looks)
    starts = np.concatenate([[0], np.cumsum([seen.n_pairs for seen in found.looks])])
    say_merged(int(given[-1] - starts[-1]))
    say_contrary(sum(seen.n_contrary for seen in found.looks))
    digests = tuple(seen.digest for seen in found.looks)
    return DaskPairs(table, found.partitions, starts.astype(np.int64), digests, int(given[-1]))


@dataclass(frozen=True, eq=False, repr=False)
class DaskPairs:
    """Labelled pairs that lie with the workers of a Dask cluster; made by `open_dask_pairs`.

    Parameters
    ----------
    partitions : tuple of Delayed
        Recipes of the partitions, which follow one another in canonical order, each pair once.
    starts : int array
        Position of each partition's first pair; the last is the number of pairs.
    digests : tuple of bytes
        Who is paired with whom in each partition.
    n_given : int
        Rows of the collection.
    rows : int array, optional
        Positions, in canonical order, of the pairs meant, ascending; all of them by default.
    """

    features: FeatureBlocks
    partitions: tuple[Any, ...]
    starts: NDArray[np.int64]
    digests: tuple[bytes, ...]
    n_given: int
    rows: NDArray[np.int64] | None = None

    ids = None  # people are known by their row numbers

    def __repr__(self) -> str:
        return (
            f"DaskPairs({self.n_people} people, {self.n_pairs} pairs, {self.n_features} features, "
            f"{len(self.partitions)} partitions)"
        )

    @property
    def n_people(self) -> int:
        """Rows of the features."""
        return self.features.shape[0]

    @property
    def n_records(self) -> int:
        """Records that a fit sums over: the pairs."""
        return self.n_pairs

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return int(self.starts[-1]) if self.rows is None else len(self.rows)

    @property
    def n_features(self) -> int:
        """Columns of the features."""
        return self.features.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns, where the features came with any."""
        return self.features.names

    @cached_property
    def degrees(self) -> NDArray[np.int32]:
        """How many of all pairs each person has: counted by the workers, added up on the way."""
        counts = self._each(dask_tasks.degrees, self.n_people)
        while len(counts) > 1:
            groups = [counts[i : i + FAN_IN] for i in range(0, len(counts), FAN_IN)]
            counts = [delayed_task(dask_tasks.add)(group) for group in groups]
        found: NDArray[np.int32] = _unchanged(fetch(connected_client(), counts, "pairs"))[0]
        # Each pair has two ends. Of a count that left int32, or a partition lost, kappa would be too small.
        if found.min() < 0 or found.sum(dtype=np.int64) != 2 * self.starts[-1]:
            raise InputError(
                "the counted pairs do not add up: too many of one person, or lost ones"
            )
        return found

    def clipped(self, data_norm: float) -> DaskPairs:
        """The same pairs with people's rows checked, and clipped where they are longer."""
        features = self.features.clipped(connected_client(), data_norm)
        return replace(self, features=features)

    def choose(
        self, how: str, unit: Literal["pair", "relationship", "person"], seed: Any
    ) -> Chosen:
        """Select pairs and find the group sizes, with as little on the driver as they need."""
        if how == "all":
            by_degrees = unit == "person"
            found = kappa_of_degrees(self.degrees) if by_degrees else self._kappa()
            return Chosen(self, self._given_rows(None), found, found, by_degrees)
        given = self._kappa()
        ends = np.empty((self.n_pairs, 2), dtype=np.int32)
        for start, part in zip(self.starts[:-1], self._ends(), strict=True):
            ends[start : start + len(part)] = part
        kept = select_pairs(ends, how, random_state=seed)
        if len(kept) == self.n_pairs:
            return Chosen(self, self._given_rows(None), given, given)
        taken = kappa(ends[kept])
        return Chosen(replace(self, rows=kept), self._given_rows(kept), given, taken)

    def _given_rows(self, kept: NDArray[np.int64] | None) -> NDArray[np.int64] | range:
        """Ascending positions in the collection of the pairs at canonical positions; None is all of them."""
        if kept is None and self.n_pairs == self.n_given:
            return range(self.n_pairs)
        wanted = np.arange(self.n_pairs) if kept is None else kept
        cuts = np.searchsorted(wanted, self.starts)
        tasks = [
            self._checked(i, dask_tasks.positions, wanted[a:b] - self.starts[i])
            for i, (a, b) in enumerate(pairwise(cuts))
            if b > a
        ]
        return np.sort(np.concatenate(_unchanged(fetch(connected_client(), tasks, "pairs"))))

    def _checked(self, i: int, task: Callable[..., Any], *arguments: Any) -> Any:
        """Delayed: what a task makes of a partition; None where it is not what was read before."""
        return delayed_task(dask_tasks.of_same)(
            self.partitions[i], self.digests[i], task, *arguments
        )

    def _each(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        return [self._checked(i, task, *arguments) for i in range(len(self.partitions))]

    @cached_property
    def _set_digest(self) -> int:
        """A number for the set of all pairs, however they are divided into partitions."""
        found = fetch(connected_client(), self._each(set_digest), "pairs")
        return int(sum(_unchanged(found))) % 2**256

    def topology(self) -> bytes:
        """A name for who is paired with whom among the pairs meant."""
        digest = hashlib.sha256(self._set_digest.to_bytes(32))
        if self.rows is not None:
            digest.update(self.rows.tobytes())
        return digest.digest()

    def parts(self, client: Any, edges: list[int]) -> list[Any]:
        """Futures of the pairs between ``edges``, each a PairSet with the features of its people.

        Raises InputError: files that cannot be read any more, or hold other pairs than before.
        """
        wanted = [self._part(first, last) for first, last in pairwise(edges)]
        futures: list[Any] = client.compute(wanted)
        built = gathered(
            client, [client.submit(dask_tasks.is_built, p, pure=False) for p in futures], "pairs"
        )
        if not all(built):
            raise InputError(CHANGED)
        return futures

    def _part(self, first: int, last: int) -> Any:
        """Delayed: one part."""
        whole = delayed_task(dask_tasks.join)(self._pieces(first, last))
        if self.features.path is not None:
            seen = (self.features.shape, self.features.dtype)
            return delayed_task(dask_tasks.mapped_part)(whole, self.features.path, seen)
        people = delayed_task(dask_tasks.people)(whole)
        return delayed_task(dask_tasks.gathered_part)(whole, people, self.features.rows_of(people))

    def _pieces(self, first: int, last: int) -> list[Any]:
        """Delayed: what each partition has of the pairs from ``first`` to ``last``."""
        rows = self.rows
        low = first if rows is None else rows[first]
        high = last - 1 if rows is None else rows[last - 1]
        near = range(
            int(np.searchsorted(self.starts, low, side="right")) - 1,
            int(np.searchsorted(self.starts, high, side="right")),
        )
        pieces = []
        for i in near:
            start, stop = self.starts[i], self.starts[i + 1]
            if rows is None:
                at: Any = slice(int(max(first, start) - start), int(min(last, stop) - start))
            else:
                between = rows[first:last]
                at = between[slice(*np.searchsorted(between, [start, stop]))] - start
            pieces.append(self._checked(i, dask_tasks.cut, at))
        return pieces

    def _kappa(self) -> Kappa:
        return kappa_of_parts(self.degrees, self._ends())

    def _ends(self) -> Iterator[Ends]:
        """Who is paired with whom, a partition at a time."""
        client = connected_client()
        # All at once, so that what partitions have in common (a shuffle) is computed once; workers have
        # room for 8 bytes a pair. The driver holds one partition at a time.
        waiting = client.compute(self._each(dask_tasks.ends))[::-1]
        while waiting:
            yield _unchanged(gathered(client, [waiting.pop()], "pairs"))[0]


def _unchanged(found: list[Any]) -> list[Any]:
    """Results of the workers; refused where one of them read other pairs than before."""
    if any(one is None for one in found):
        raise InputError(CHANGED)
    return found


def _refuse_problems(
    problems: list[Any], starts: NDArray[np.int64], columns: tuple[str, ...], n_people: int
) -> None:
    """Say what is wrong with the pairs, by position and never by value."""
    words = {
        "type": f"columns '{columns[0]}' and '{columns[1]}' must hold whole numbers without gaps",
        "outside": f"pairs point outside the {n_people} people; people are counted from 0",
        "self": "pairs join a person with herself. Remove them",
        "label": f"labels in column '{columns[2]}' are not +1 (similar) or -1 (dissimilar)",
    }
    for what, text in words.items():
        found = [(p, s) for p, s in zip(problems, starts[:-1], strict=True) if p and p[0] == what]
        if not found:
            continue
        if what == "type":
            raise InputError(text)
        count = sum(problem[1] for problem, _ in found)
        problem, start = found[0]
        raise InputError(f"{count} {text} (the first: row {int(start) + problem[2] + 1})")
