"""kappa: how many records move together, for each unit that may be protected.

Everything here follows from b(v) = degree(v) - blocks(v) + 1, where removing v splits its component into
blocks(v) pieces. What b means: to hide person v's link to someone she is connected with *and* to leave v on
no cycle, b(v) pairs must be missing, and no fewer can do it (see `pairveil.audit.attack`). An attacker's
target has two ends and the cheaper one decides, so the worst target costs the second largest b.

At 10^8 pairs the arrays are what costs, so each exists once: the caller's pairs are read in place
(int32 or int64), offsets are int32 until 2K no longer fits, and neighbours are int32.

A name for a graph is a digest of who is paired with whom, by ids. It is a function of the *set* of pairs:
neither the order of rows, nor sides, nor people without pairs change it. What is hashed can be read back in
one way only (a tag for the kind of ids, lengths before contents), so that two different graphs never give the
same bytes: 1 is not '1', and an id may hold any character. A bare digest lets whoever guesses a graph confirm
the guess: for a certificate it is salted, and the sender keeps the salt.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil._lazy import new_axes
from pairveil.array_types import IntArray
from pairveil.errors import InputError
from pairveil.graph import GraphSummary, RankedPerson, loops
from pairveil.printable import html_table
from pairveil.records.canonical import as_index, canonical_records, order_of_ids, ranks
from pairveil.records.kinds import PAIRS, TUPLES
from pairveil.records.validation import check_members, is_text, without_levels

NUMBERS = ("pair", "relationship", "paper_bound", "person", "intransitive")
_INT32_MAX = 2**31 - 1
_CHUNK = 1 << 22  # rows renumbered at a time: bounds the scratch memory of searchsorted


class Adjacency(NamedTuple):
    """Neighbour lists of an undirected multigraph.

    The neighbours of person v are ``neighbours[offsets[v]:offsets[v + 1]]``, ascending; a pair that occurs m
    times is listed m times, and ``multiplicity`` is the largest m. ``people``: the caller's number of each
    person when the numbers had to be compacted, else None.
    """

    offsets: NDArray[np.signedinteger]
    neighbours: NDArray[np.int32]
    multiplicity: int
    people: NDArray[Any] | None = None

    @property
    def n(self) -> int:
        """How many people the lists are for (people without a pair have an empty list)."""
        return len(self.offsets) - 1


def checked_pairs(pairs: Any) -> NDArray[np.signedinteger]:
    """The pairs of an array, or of an object with ``pairs``, as a C-ordered (K, 2) int32 or int64 array."""
    return _numbered(pairs)[0]


def _numbered(pairs: Any) -> tuple[NDArray[np.signedinteger], NDArray[Any] | None]:
    """The pairs as numbers of people, and the ascending names that are numbered, where they are text."""
    given, names = without_levels(getattr(pairs, "pairs", pairs)), None
    with suppress(ValueError):  # ragged: check_members says so
        texts = np.asarray(given)
        if is_text(texts) and all(isinstance(one, str) for one in texts.ravel().tolist()):
            names, places = np.unique(texts, return_inverse=True)
            given = places.reshape(texts.shape)
    return np.ascontiguousarray(check_members(given, PAIRS)), names


def build_adjacency(pairs: Any, n_people: int | None = None) -> Adjacency:
    """Neighbour lists of the graph whose edges are the pairs, by a counting sort."""
    array, people = _numbered(pairs)
    largest = int(array.max())
    if n_people is not None and largest >= n_people:
        raise InputError(f"a person number in pairs is not below the {n_people} people there are")
    if n_people is None and largest >= 4 * len(array) + 65_536:
        people, array = compacted(array)
        largest = len(people) - 1
    n = largest + 1 if n_people is None else n_people
    if n > _INT32_MAX - 1:
        raise InputError("more than 2**31 - 2 people: split the graph by connected component")
    offsets: NDArray[Any] = np.zeros(
        n + 1, dtype=np.int32 if 2 * len(array) <= _INT32_MAX else np.int64
    )
    neighbours = np.empty(2 * len(array), dtype=np.int32)
    loops.fill_lists(array, offsets, neighbours)
    return Adjacency(offsets, neighbours, int(loops.sort_lists(offsets, neighbours)), people)


def compacted(
    array: NDArray[np.signedinteger],
) -> tuple[NDArray[np.signedinteger], NDArray[np.int32]]:
    """Distinct people, ascending, and the pairs renumbered to positions in that list."""
    people = np.unique(array)
    renumbered = np.empty(array.shape, dtype=np.int32)
    for start in range(0, len(array), _CHUNK):
        rows = slice(start, start + _CHUNK)
        renumbered[rows] = np.searchsorted(people, array[rows])
    return people, renumbered


class Correlation(NamedTuple):
    """What one search says about every person and about the whole graph."""

    b: NDArray[np.int32]  # (n,): degree - blocks + 1; 0 for a person without pairs
    # The two largest b, and the largest min(b(p), b(c)) over blocks {p, c} of two people (0 when there is
    # none)
    largest: int
    second: int
    bridged: int
    max_degree: int  # the largest degree, and how many people have a pair
    n_connected: int


def correlate(adjacency: Adjacency) -> Correlation:
    """Run the search over all components."""
    offsets = adjacency.offsets
    disc = np.zeros(adjacency.n, dtype=np.int32)
    record = np.empty((adjacency.n + 1, 4), dtype=offsets.dtype)
    n_connected = int(loops.search_blocks(offsets, adjacency.neighbours, disc, record))
    largest, second, bridged = (int(x) for x in loops.largest_b(record[: n_connected + 1]))
    max_degree = int(loops.move_b(offsets, record, disc))
    return Correlation(disc, largest, second, bridged, max_degree, n_connected)


@dataclass(frozen=True)
class Kappa:
    """The kappas of one set of pairs, unit by unit.

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
        The people's names, or their numbers where those were too sparse to index by, ascending.
    """

    pair: int
    relationship: int
    paper_bound: int
    person: int
    intransitive: int
    n_people: int
    n_pairs: int
    per_person: NDArray[np.int32] = field(repr=False, compare=False)
    people: NDArray[Any] | None = field(default=None, repr=False, compare=False)

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
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return {"n_people": self.n_people, "n_pairs": self.n_pairs, "kappa": numbers}


def kappa(pairs: Any) -> Kappa:
    """How correlated the pairs are, in one linear pass over them.

    Parameters
    ----------
    pairs : (K, 2) array_like of integers or of text, or a PairSet
        People are numbered from 0; any integer dtype. Numbers far above the number of pairs are
        compacted first, and so are names. A pair given m times counts as m parallel pairs.

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
    # A PairSet knows its people, also those without pairs; an array does not.
    known = hasattr(pairs, "pairs") and hasattr(pairs, "n_people")
    adjacency = build_adjacency(pairs, n_people=int(pairs.n_people) if known else None)
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


# ---- tuples of people, and people who change together --------------------------------------------


def kappa_of_tuples(tuples: Any) -> Kappa:
    """How many tuples each unit touches, in time linear in the pairs of members.

    Parameters
    ----------
    tuples : (K, m) array_like of integers, or a TupleSet
        Members' numbers from 0; each set of members once.

    Returns
    -------
    Kappa
        ``pair``: the most tuples that two people share. ``relationship``: the second largest b.
        ``person``: the most tuples of one person. ``intransitive`` is not worked out for tuples and is
        that of a relationship. ``n_pairs`` counts tuples.

    Examples
    --------
    Two triplets that share two people, and one that hangs on by one:

    >>> kappa_of_tuples([[0, 1, 2], [0, 1, 3], [3, 4, 5]])
    Kappa(pair=2, relationship=2, paper_bound=2, person=2, intransitive=2, n_people=6, n_pairs=3)
    >>> kappa_of_tuples([[0, 1, 2], [2, 3, 4], [2, 5, 6]]).relationship
    1
    """
    people, numbers = compacted_members(tuples)
    n, (k, m) = len(people), numbers.shape
    incidence = np.stack([numbers.ravel(), n + np.repeat(np.arange(k), m)], axis=1)
    b = correlate(build_adjacency(incidence, n_people=n + k)).b[:n].copy()
    next_largest, largest = np.sort(b)[-2:].tolist()
    return Kappa(
        pair=_most_shared(numbers, n),
        relationship=next_largest,
        paper_bound=largest,
        person=int(np.bincount(numbers.ravel()).max()),
        intransitive=next_largest,
        n_people=n,
        n_pairs=k,
        per_person=b.astype(np.int32),
        people=None if np.array_equal(people, np.arange(n)) else people,
    )


def _most_shared(numbers: IntArray, n: int) -> int:
    """The most tuples that hold the same two people."""
    low, high = np.triu_indices(numbers.shape[1], 1)
    ends = np.sort(np.stack([numbers[:, low].ravel(), numbers[:, high].ravel()]), axis=0)
    return int(np.unique(ends[0] * n + ends[1], return_counts=True)[1].max())


def compacted_members(tuples: Any) -> tuple[NDArray[np.signedinteger], IntArray]:
    """Distinct people, ascending, and members of tuples, checked and renumbered to positions in that list."""
    found = check_members(
        getattr(tuples, "members", tuples), getattr(tuples, "record_kind", TUPLES)
    )
    people, numbers = compacted(found)
    return people, numbers.astype(np.int64)


def kappa_together(found: Kappa, pairs: NDArray[Any], together: NDArray[np.int64]) -> Kappa:
    """The same numbers, with all pairs of one value in place of all pairs of one person."""
    values = together[pairs]
    once = np.where(
        values[:, 0] == values[:, 1], -1, values[:, 1]
    )  # a pair inside touches one value
    touched = np.concatenate([values[:, 0], once[once >= 0]])
    return replace(found, person=int(np.bincount(touched).max()))


# ---- the shape of a graph, with nobody named -----------------------------------------------------

TOP_RANKS = 10


def graph_summary(kappa: Any, pairs: Any) -> GraphSummary:
    """The counts of one graph."""
    edges = np.asarray(getattr(pairs, "pairs", pairs))
    people, degrees = np.unique(edges, return_counts=True)
    numbers = getattr(kappa, "people", None)
    rows = people if numbers is None else np.searchsorted(numbers, people)
    b = np.asarray(kappa.per_person)[rows]
    order = np.lexsort((-degrees, -b))[:TOP_RANKS]
    return GraphSummary(
        n_people=len(people),
        n_pairs=len(edges),
        kappa={name: int(getattr(kappa, name)) for name in NUMBERS},
        degrees=_counts(degrees),
        b=_counts(b),
        top=tuple(
            RankedPerson(rank, int(b[i]), int(degrees[i])) for rank, i in enumerate(order, start=1)
        ),
    )


def _counts(values: np.ndarray) -> tuple[tuple[int, int], ...]:
    found, people = np.unique(values, return_counts=True)
    return tuple(zip(found.tolist(), people.tolist(), strict=True))


# ---- a name for a graph: a digest of who is paired with whom, by ids -----------------------------

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
    edges = canonical_records(pairs, rank=ranks(order)).members
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
