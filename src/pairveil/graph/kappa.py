"""kappa: how many pairs move together, for each unit that may be protected.

Everything here follows from b(v) = degree(v) - blocks(v) + 1 (see `pairveil.graph.kappa`). What b
means: to hide person v's link to someone she is connected with *and* to leave v on no cycle, b(v)
pairs must be missing, and no fewer can do it (see `pairveil.audit.attack`). An attacker's target
has two ends and the cheaper one decides, so the worst target costs the second largest b.

From pairs to neighbour lists: checks, then a counting sort into int32 arrays.

At 10^8 pairs the arrays are what costs, so each exists once: the caller's pairs are read in place
(int32 or int64), offsets are int32 until 2K no longer fits, neighbours are int32, and the sort
needs no scratch array.

Blocks (biconnected components) per person in one iterative depth-first search.

Removing v splits its component into blocks(v) pieces, and (Hopcroft and Tarjan 1973)

    blocks(v) = [v is not a root of the search] + #{children c of v: low(c) >= disc(v)},

where disc is the order of discovery and low(c) the earliest person that one edge from c's subtree leads to.
Only the count is wanted, so no stack of the edges of open components is kept, and nothing recurses.

Parallel pairs count in the degree. For blocks they make no difference: an edge back to the parent p can lower
low(c) to disc(p) at most, which changes no test. So the search skips *every* edge to the parent;
low(c) == disc(c) then says that {p, c} is a bridge of the graph with parallel pairs merged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil._compiled import lazy_njit
from pairveil.errors import InputError
from pairveil.plots import html_table, new_axes

# ---- From pairs to neighbour lists: checks, then a counting sort into int32 arrays ---------------

_INT32_MAX = 2**31 - 1

_CHUNK = 1 << 22  # rows renumbered at a time: bounds the scratch memory of searchsorted


@dataclass(frozen=True)
class Adjacency:
    """Neighbour lists of an undirected multigraph.

    Attributes
    ----------
    offsets : ndarray of shape (n + 1,)
        The neighbours of person v are ``neighbours[offsets[v]:offsets[v + 1]]``.
    neighbours : ndarray of int32, shape (2K,)
        Ascending within each list; a pair that occurs m times is listed m times.
    multiplicity : int
        How often the most frequent pair occurs.
    people : ndarray or None
        The caller's number of each person when the numbers had to be compacted, else None.
    """

    offsets: NDArray[np.signedinteger]
    neighbours: NDArray[np.int32]
    multiplicity: int
    people: NDArray[np.integer] | None

    @property
    def n(self) -> int:
        """How many people the lists are for (people without a pair have an empty list)."""
        return len(self.offsets) - 1


def checked_pairs(pairs: Any) -> NDArray[np.signedinteger]:
    """The pairs as a C-ordered (K, 2) int32 or int64 array of numbers >= 0, or an `InputError`.

    Parameters
    ----------
    pairs : (K, 2) array_like of integers, or an object with such a ``pairs`` attribute

    Examples
    --------
    >>> checked_pairs([(0, 1), (1, 2)]).shape
    (2, 2)
    >>> checked_pairs([(0, 1), (2, 2)])
    Traceback (most recent call last):
    pairveil.errors.InputError: pair 1 joins a person with herself; drop such pairs (rows count from 0)
    """
    try:
        array = np.asarray(getattr(pairs, "pairs", pairs))
    except ValueError:  # ragged lists
        raise InputError("pairs must be a (K, 2) array: two people in every row") from None
    if array.size == 0:
        raise InputError("there are no pairs; give at least one pair of people")
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"pairs must be a (K, 2) array, one row per pair; got shape {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(
            f"pairs must hold integer row numbers of people; got dtype {array.dtype}. "
            "Use pairveil.PairSet.join to turn ids into row numbers"
        )
    if array.dtype == np.uint64 and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError("a person's number in pairs exceeds 2**63 - 1; renumber people from 0")
    if array.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        array = array.astype(np.int64)
    array = np.ascontiguousarray(array)
    lowest, self_row = _lowest_and_self(array)
    if lowest < 0:
        row = int(np.argmax((array < 0).any(axis=1)))
        raise InputError(f"pair {row} has a negative person number; people count from 0")
    if self_row >= 0:
        raise InputError(
            f"pair {self_row} joins a person with herself; drop such pairs (rows count from 0)"
        )
    return array


def build_adjacency(pairs: Any, n_people: int | None = None) -> Adjacency:
    """Neighbour lists of the graph whose edges are the pairs, by a counting sort.

    Parameters
    ----------
    pairs : (K, 2) array_like of integers, or a PairSet
    n_people : int, optional
        People are 0..n_people-1; by default up to the largest number seen. When the numbers are
        sparse (the largest exceeds 4K + 65,536) people are renumbered in ascending order instead.

    Examples
    --------
    >>> adjacency = build_adjacency([(0, 1), (2, 1)])
    >>> adjacency.neighbours.tolist(), adjacency.offsets.tolist()
    ([1, 0, 2, 1], [0, 1, 3, 4])
    """
    array = checked_pairs(pairs)
    largest = int(array.max())
    if n_people is not None and largest >= n_people:
        raise InputError(f"a person number in pairs is not below the {n_people} people there are")
    people: NDArray[np.integer] | None = None
    if n_people is None and largest >= 4 * len(array) + 65_536:
        people, array = compacted(array)
        largest = len(people) - 1
    offsets = _zero_offsets(largest + 1 if n_people is None else n_people, len(array))
    neighbours = np.empty(2 * len(array), dtype=np.int32)
    _count(array, offsets)
    _ends_of_lists(offsets)
    _place(array, offsets, neighbours)
    multiplicity = int(_sort_lists(offsets, neighbours))
    return Adjacency(offsets, neighbours, multiplicity, people)


def adjacency_of_parts(
    degrees: NDArray[np.integer], parts: Iterable[NDArray[np.signedinteger]]
) -> Adjacency:
    """Neighbour lists of pairs that come part by part and are never held together.

    Degrees say how long each list gets, so a part's pairs can be put where they belong and be
    forgotten: 8 bytes a pair instead of 16.

    Parameters
    ----------
    degrees : (n_people,) array of integers
        How many pairs each person has, over all parts.
    parts : iterable of (k, 2) int32 or int64 arrays
        Together every pair once.

    Raises InputError: the parts are not those that the degrees were counted on.

    Examples
    --------
    >>> parts = [np.array([[0, 1]]), np.array([[2, 1]])]
    >>> adjacency_of_parts(np.array([1, 2, 1]), parts).neighbours.tolist()
    [1, 0, 2, 1]
    """
    n_pairs = int(degrees.sum(dtype=np.int64)) // 2
    if n_pairs == 0:
        raise InputError("there are no pairs; give at least one pair of people")
    offsets = _zero_offsets(len(degrees), n_pairs)
    neighbours = np.empty(2 * n_pairs, dtype=np.int32)
    offsets[:-1] = degrees
    _ends_of_lists(offsets)
    as_counted = all(
        _place(checked_pairs(part), offsets, neighbours) for part in parts if len(part)
    )
    if not (as_counted and _all_placed(degrees, offsets)):
        raise InputError("the pairs changed between two readings of them")
    return Adjacency(offsets, neighbours, int(_sort_lists(offsets, neighbours)), None)


def _zero_offsets(n: int, n_pairs: int) -> NDArray[np.signedinteger]:
    if n > _INT32_MAX - 1:
        raise InputError("more than 2**31 - 2 people: split the graph by connected component")
    return np.zeros(n + 1, dtype=np.int32 if 2 * n_pairs <= _INT32_MAX else np.int64)


def compacted(
    array: NDArray[np.signedinteger],
) -> tuple[NDArray[np.signedinteger], NDArray[np.int32]]:
    """Distinct people, ascending, and the pairs renumbered to positions in that list.

    Examples
    --------
    >>> people, renumbered = compacted(np.array([[10**9, 7], [7, 50]]))
    >>> people.tolist(), renumbered.tolist()
    ([7, 50, 1000000000], [[2, 0], [0, 1]])
    """
    people = np.unique(array)
    renumbered = np.empty(array.shape, dtype=np.int32)
    for start in range(0, len(array), _CHUNK):
        rows = slice(start, start + _CHUNK)
        renumbered[rows] = np.searchsorted(people, array[rows])
    return people, renumbered


@lazy_njit
def _lowest_and_self(pairs):  # type: ignore[no-untyped-def]
    """The lowest number and the first row whose two ends are equal (-1: none)."""
    lowest, self_row = pairs[0, 0], -1
    for row in range(pairs.shape[0]):
        lowest = min(lowest, pairs[row, 0], pairs[row, 1])
        if self_row < 0 and pairs[row, 0] == pairs[row, 1]:
            self_row = row
    return lowest, self_row


@lazy_njit
def _count(pairs, offsets):  # type: ignore[no-untyped-def]
    """Add each person's number of pairs to her place in `offsets`."""
    for row in range(pairs.shape[0]):
        offsets[pairs[row, 0]] += 1
        offsets[pairs[row, 1]] += 1


@lazy_njit
def _ends_of_lists(offsets):  # type: ignore[no-untyped-def]
    """Turn lengths of lists into where each list ends."""
    total = 0
    for v in range(offsets.size):
        total += offsets[v]
        offsets[v] = total


@lazy_njit
def _place(pairs, offsets, neighbours):  # type: ignore[no-untyped-def]
    """Fill lists from their ends backwards; False (and no more is written) if a pair has no place.

    offsets[v] is the end of what is still free of v's list; each placement moves it one towards the start,
    so when every pair is placed it is the start, and no cursor array is needed.
    """
    for row in range(pairs.shape[0]):
        for side in range(2):
            v = pairs[row, side]
            if v >= offsets.size - 1 or offsets[v] == 0:
                return False
            offsets[v] -= 1
            neighbours[offsets[v]] = pairs[row, 1 - side]
    return True


@lazy_njit
def _all_placed(degrees, offsets):  # type: ignore[no-untyped-def]
    """Whether every list is full: it starts where those before it end."""
    total = 0
    for v in range(degrees.size):
        if offsets[v] != total:
            return False
        total += degrees[v]
    return True


@lazy_njit
def _sort_lists(offsets, neighbours):  # type: ignore[no-untyped-def]
    """Sort each list in place; return the longest run of one neighbour (the multiplicity)."""
    longest = 0
    for v in range(offsets.size - 1):
        start, end = offsets[v], offsets[v + 1]
        if end - start > 24:
            neighbours[start:end].sort()
        else:  # insertion sort: most lists are short and lie in one cache line
            for i in range(start + 1, end):
                item = neighbours[i]
                j = i
                while j > start and neighbours[j - 1] > item:
                    neighbours[j] = neighbours[j - 1]
                    j -= 1
                neighbours[j] = item
        run = 0
        for i in range(start, end):
            run = run + 1 if i > start and neighbours[i] == neighbours[i - 1] else 1
            longest = max(longest, run)
    return longest


# ---- Blocks (biconnected components) per person in one iterative depth-first search --------------

# Columns of the search record, one row per person in order of discovery (row 0 is unused).
LOW, PARENT, BASE, B = 0, 1, 2, 3


@dataclass(frozen=True)
class Correlation:
    """What one search says about every person and about the whole graph.

    Attributes
    ----------
    b : ndarray of int32, shape (n,)
        degree - blocks + 1; 0 for a person without pairs.
    largest, second, bridged : int
        The two largest b, and the largest min(b(p), b(c)) over blocks {p, c} of two people (0 when
        there is none).
    max_degree, n_connected : int
        The largest degree, and how many people have a pair.
    """

    b: NDArray[np.int32]
    largest: int
    second: int
    bridged: int
    max_degree: int
    n_connected: int


def correlate(adjacency: Adjacency) -> Correlation:
    """Run the search over all components.

    Examples
    --------
    The bowtie: person 0 is in two triangles, degree 4 and two blocks.

    >>> from pairveil.graph.kappa import build_adjacency
    >>> bowtie = [(0, 1), (1, 2), (0, 2), (0, 3), (3, 4), (0, 4)]
    >>> found = correlate(build_adjacency(bowtie))
    >>> found.b.tolist(), found.largest, found.second
    ([3, 2, 2, 2, 2], 3, 2)
    """
    offsets = adjacency.offsets
    disc = np.zeros(adjacency.n, dtype=np.int32)
    record = np.empty((adjacency.n + 1, 4), dtype=offsets.dtype)
    n_connected = int(_search(offsets, adjacency.neighbours, disc, record))
    largest, second, bridged = (int(x) for x in _summary(record[: n_connected + 1]))
    max_degree = int(_move_b(offsets, record, disc))
    return Correlation(disc, largest, second, bridged, max_degree, n_connected)


@lazy_njit
def _search(offsets, neighbours, disc, record):  # type: ignore[no-untyped-def]
    """Fill disc (zeros on entry) and the record; return how many people were found.

    Written against cache misses, which are the whole cost on a large graph. A list is read once, on
    arrival: who has been seen by then is an ancestor (the graph is undirected) and lowers `low`; the
    others are put on `pending`. On the way back only `pending` and the record are read, both in
    order, and a bitmap tells who has been seen since; she is a descendant and needs no more.
    """
    n = offsets.size - 1
    seen = np.zeros(n // 8 + 1, dtype=np.uint8)
    pending = np.empty(neighbours.size // 2 + 1, dtype=np.int32)  # a pair enters from one end only
    clock, top = 0, 0
    for root in range(n):
        if disc[root] != 0 or offsets[root] == offsets[root + 1]:
            continue
        v, up = root, 0
        while True:
            clock += 1  # arrive at v
            here = low = clock
            disc[v] = here
            seen[v >> 3] |= np.uint8(1 << (v & 7))
            record[here, PARENT], record[here, BASE] = up, top
            # A root's block test counts one block too many: no block leads up from it.
            record[here, B] = offsets[v + 1] - offsets[v] + (up == 0)
            for at in range(offsets[v], offsets[v + 1]):
                w = neighbours[at]
                if not seen[w >> 3] >> (w & 7) & 1:
                    pending[top] = w
                    top += 1
                elif disc[w] < low and disc[w] != up:
                    low = disc[w]
            record[here, LOW] = low
            v = -1
            while v < 0 and here > 0:  # find the next person to arrive at, going back up if need be
                if top > record[here, BASE]:
                    top -= 1
                    w = pending[top]
                    if not seen[w >> 3] >> (w & 7) & 1:
                        v, up = w, here
                    continue
                below, here = record[here, LOW], record[here, PARENT]
                if below >= here:
                    record[here, B] -= 1  # at a root's own end this is row 0, which nobody reads
                elif below < record[here, LOW]:
                    record[here, LOW] = below
            if here == 0:
                break
    return clock


@lazy_njit
def _summary(record):  # type: ignore[no-untyped-def]
    """The two largest b, and the largest min(b) over two-person blocks."""
    largest, second, bridged = 0, 0, 0
    for here in range(1, record.shape[0]):
        b, up = record[here, B], record[here, PARENT]
        if b > largest:
            largest, second = b, largest
        elif b > second:
            second = b
        if up > 0 and record[here, LOW] == here:
            bridged = max(bridged, min(b, record[up, B]))
    return largest, second, bridged


@lazy_njit
def _move_b(offsets, record, disc):  # type: ignore[no-untyped-def]
    """Overwrite each person's disc with her b, to save an array; return the largest degree."""
    max_degree = 0
    for v in range(disc.size):
        max_degree = max(max_degree, offsets[v + 1] - offsets[v])
        if disc[v] != 0:
            disc[v] = record[disc[v], B]
    return max_degree


# ---- kappa: how many pairs move together, for each unit that may be protected --------------------


@dataclass(frozen=True)
class Kappa:
    """The group sizes of one set of pairs.

    Attributes
    ----------
    pair : int
        Contents of one pair: 1, or the largest multiplicity when a pair occurs several times.
    relationship : int
        The second largest b, the relationship-level kappa (the paper's DPP); tighter than
        `paper_bound`, never looser.
    paper_bound : int
        The largest b, the paper's kappa'.
    person : int
        The largest degree: all pairs of one person.
    intransitive : int
        The paper's appendix B, for labels that cannot be chained ('are friends'). **Label only**:
        paths still reveal feature differences, so it is no feature privacy. Exact (not a bound)
        for simple graphs: relationship - 1, or relationship when two people with b >= relationship
        are joined by a pair on no cycle. With repeated pairs all copies count as the target's own,
        the safe side.
    n_people, n_pairs : int
        People who are in at least one pair; pairs given.
    per_person : ndarray of int32
        b of every person: ``per_person[i]`` is person i's, 0 for a person without pairs. Where
        `people` is not None it is the person ``people[i]``'s.
    people : ndarray or None
        The numbers of the people, ascending, when the numbers were too sparse to index by.
    """

    pair: int
    relationship: int
    paper_bound: int
    person: int
    intransitive: int
    n_people: int
    n_pairs: int
    per_person: NDArray[np.int32] = field(repr=False, compare=False)
    people: NDArray[np.integer] | None = field(default=None, repr=False, compare=False)

    def of(self, unit: str) -> int:
        """The number for a protected unit: 'pair', 'relationship' or 'person'.

        Examples
        --------
        >>> kappa([(0, 1), (0, 2), (0, 3)]).of("person")
        3
        """
        if unit not in ("pair", "relationship", "person"):
            raise InputError("unit must be 'pair', 'relationship' or 'person'")
        return int(getattr(self, unit))

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = [
            ["pair", self.pair, "one pair, nothing tied to it"],
            ["relationship", self.relationship, "a relationship and the chains that tell it"],
            ["person", self.person, "all pairs of any one person"],
        ]
        note = f"{self.n_pairs:,} pairs of {self.n_people:,} people"
        return html_table(["to protect", "kappa", "meaning"], rows, note)

    def plot(self, ax: Any = None) -> Any:
        """How many people are in how many pairs. Needs ``pip install 'pairveil[plots]'``.

        Returns
        -------
        matplotlib axes
        """
        ax = new_axes() if ax is None else ax
        counts = np.bincount(np.asarray(self.per_person, dtype=np.int64))
        ax.bar(np.arange(len(counts)), counts)
        ax.set(xlabel="b of a person (see docs/theory/graph.md)", ylabel="people")
        return ax

    def to_dict(self) -> dict[str, Any]:
        """The graph's numbers for JSON; per-person values stay out.

        Examples
        --------
        >>> kappa([(0, 1), (1, 2), (0, 2)]).to_dict()
        {'n_people': 3, 'n_pairs': 3, 'kappa': {'pair': 1, 'relationship': 2, 'paper_bound': 2,
        'person': 2, 'intransitive': 1}}
        """
        names = ("pair", "relationship", "paper_bound", "person", "intransitive")
        return {
            "n_people": self.n_people,
            "n_pairs": self.n_pairs,
            "kappa": {name: getattr(self, name) for name in names},
        }


def kappa(pairs: Any) -> Kappa:
    """How correlated the pairs are, in one linear pass over them.

    Parameters
    ----------
    pairs : (K, 2) array_like of integers, or a PairSet
        People are numbered from 0; any integer dtype. Numbers far above the number of pairs are
        compacted first. A pair given m times counts as m parallel pairs.

    Returns
    -------
    Kappa

    Raises
    ------
    InputError
        No pairs, a wrong shape, numbers that are not integers or are negative, a person paired
        with herself.

    Examples
    --------
    The paper's Fig. 3 (s, t, c, e, u, a, b = 0..6):

    >>> fig3 = [(0, 1), (0, 2), (2, 3), (3, 1), (2, 4), (4, 1), (0, 5), (5, 6), (6, 0)]
    >>> kappa(fig3)
    Kappa(pair=1, relationship=3, paper_bound=3, person=4, intransitive=2, n_people=7, n_pairs=9)

    A star joins its hub to everyone and still has relationship-level kappa 1:

    >>> kappa([(0, 1), (0, 2), (0, 3), (0, 4)]).relationship
    1
    """
    return _kappa_of(build_adjacency(pairs, n_people=_n_people(pairs)))


def kappa_of_parts(
    degrees: NDArray[np.integer], parts: Iterable[NDArray[np.signedinteger]]
) -> Kappa:
    """`kappa` of pairs that come part by part: 12 bytes a pair at its peak instead of 20.

    Parameters
    ----------
    degrees : (n_people,) array of integers
        How many pairs each person has, over all parts.
    parts : iterable of (k, 2) arrays of integers below n_people
        Together every pair once, in any order.

    Examples
    --------
    >>> kappa_of_parts(np.array([2, 2, 2]), [np.array([[0, 1], [1, 2]]), np.array([[0, 2]])])
    Kappa(pair=1, relationship=2, paper_bound=2, person=2, intransitive=1, n_people=3, n_pairs=3)
    """
    return _kappa_of(adjacency_of_parts(degrees, parts))


def kappa_of_degrees(degrees: NDArray[np.integer]) -> Kappa:
    """What degrees alone say: `person` exactly, upper bounds for everything else.

    Nobody's b exceeds her degree (she is in a block if she is in a pair), so the second largest b is at most
    the second largest degree. A pair that occurs m times gives two people a degree of m or more, so
    the same number bounds `pair`. More noise than needed for those units, never less.

    Parameters
    ----------
    degrees : (n_people,) array of integers

    Examples
    --------
    >>> kappa_of_degrees(np.array([3, 1, 1, 1])).of("person")
    3
    """
    if not degrees.any():
        raise InputError("there are no pairs; give at least one pair of people")
    second, largest = np.sort(np.partition(degrees, -2)[-2:]).tolist()
    return Kappa(
        pair=second,
        relationship=second,
        paper_bound=largest,
        person=largest,
        intransitive=second,
        n_people=int(np.count_nonzero(degrees)),
        n_pairs=int(degrees.sum(dtype=np.int64)) // 2,
        per_person=degrees.astype(np.int32, copy=False),
    )


def _kappa_of(adjacency: Adjacency) -> Kappa:
    found = correlate(adjacency)
    found.b.flags.writeable = False
    return Kappa(
        pair=adjacency.multiplicity,
        relationship=found.second,
        paper_bound=found.largest,
        person=found.max_degree,
        intransitive=_intransitive(found.second, found.bridged),
        n_people=found.n_connected,
        n_pairs=len(adjacency.neighbours) // 2,
        per_person=found.b,
        people=adjacency.people,
    )


def _intransitive(second: int, bridged: int) -> int:
    """Appendix B's number from the second largest b and the best two-person block.

    Over the whole graph c_v = degree - blocks = b(v) - 1, so a target that is no pair costs
    min(b) - 1. A target that is a pair costs 1 + min(c_s, c_t) in G without it: c loses one edge
    and, when the pair is a bridge, one block with it, which leaves min(b); otherwise min(b) - 1.
    The largest over all targets is therefore second - 1, or `second` when a bridge attains it.
    """
    return second if bridged >= second else second - 1


def _n_people(pairs: Any) -> int | None:
    """A PairSet knows its people, also those without pairs; an array does not."""
    return int(pairs.n_people) if hasattr(pairs, "pairs") and hasattr(pairs, "n_people") else None
