"""kappa: how many pairs move together, for each unit that may be protected.

Everything here follows from b(v) = degree(v) - blocks(v) + 1 (see `pairveil.graph.blocks`). What b
means: to hide person v's link to someone she is connected with *and* to leave v on no cycle, b(v)
pairs must be missing, and no fewer can do it (see `pairveil.graph.key_pairs`). An attacker's target
has two ends and the cheaper one decides, so the worst target costs the second largest b.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.graph.adjacency import Adjacency, adjacency_of_parts, build_adjacency
from pairveil.graph.blocks import correlate
from pairveil.plots import html_table, new_axes


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
