"""What changing one protected unit does to the records: the cost of a query, in units of its clip.

Records differ by learner. A record may be a pair, a group of people or a person; a person may be in two
pairs, in one group, or be one record. For each kind of record a `Cost` says how many records a unit
touches and how far the contribution of each can move.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pairveil.errors import InputError
from pairveil.privacy.units import ADJACENCIES, UNITS, UNITS_OF_CHOICES, Adjacency, Unit

MAX_KAPPA = 2**53
"""More records than this nobody has, and floats no longer count them exactly."""


@dataclass(frozen=True)
class Cost:
    """What one protected unit can move.

    Parameters
    ----------
    records : int
        Records that hold contents of the unit: kappa, where records are pairs.
    zero_out, replace : float
        How far the contribution of each of them moves, in units of the clip bound, when the unit's
        contents become null and when they become others. A contribution is a vector of length at most 1,
        so 2 is always enough.
    empties : bool
        Whether a null unit empties its records. A pair does. A person who leaves a group of people does
        not: the others' contribution stays, changed, and Poisson samples must be accounted as replaced
        ones.

    Examples
    --------
    >>> Cost(records=3).sensitivity("replace"), Cost(1, zero_out=2.0, empties=False).sensitivity("zero-out")
    (6.0, 2.0)
    """

    records: int
    zero_out: float = 1.0
    replace: float = 2.0
    empties: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.records, bool) or not isinstance(self.records, int) or self.records < 1:
            raise InputError("a cost needs a whole number of records, at least 1")
        if self.records > MAX_KAPPA:
            raise InputError("a cost has at most 2^53 records")
        for moved in (self.zero_out, self.replace):
            if not (isinstance(moved, int | float) and 0.0 < moved <= 2.0):
                raise InputError("a record's contribution moves by more than 0 and at most 2 clips")
        if self.empties and self.zero_out != 1.0:
            raise InputError("emptying a record moves its contribution by up to 1 clip, no more")

    def moved(self, adjacency: Adjacency) -> float:
        """How far one record's contribution moves, in units of the clip bound."""
        return float(self.zero_out if adjacency == "zero-out" else self.replace)

    def sensitivity(self, adjacency: Adjacency) -> float:
        """How far a full sum moves, in units of the clip bound; infinitely far where no float holds it."""
        try:
            return self.records * self.moved(adjacency)
        except OverflowError:
            return math.inf

    def is_emptied(self, adjacency: Adjacency) -> bool:
        """Whether contents are compared with no contribution at all."""
        return self.empties and adjacency == "zero-out"

    def to_dict(self) -> dict[str, Any]:
        """The cost as JSON-able data."""
        return {
            "records": self.records,
            "zero-out": self.zero_out,
            "replace": self.replace,
            "empties": self.empties,
        }

    @classmethod
    def from_dict(cls, data: object) -> Cost:
        """Rebuild a cost, strictly.

        Examples
        --------
        >>> Cost.from_dict(Cost(2).to_dict()) == Cost(2)
        True
        """
        if not isinstance(data, Mapping) or set(data) != {
            "records", *ADJACENCIES, "empties"
        }:  # fmt: skip
            raise InputError("a cost has missing or unknown fields")
        if not isinstance(data["empties"], bool):
            raise InputError("a cost does not say plainly whether records are emptied")
        moved = [data[adjacency] for adjacency in ADJACENCIES]
        if any(
            isinstance(m, bool) or not isinstance(m, int | float) or math.isnan(m) for m in moved
        ):
            raise InputError("a cost holds something that is not a number")
        return cls(data["records"], float(moved[0]), float(moved[1]), data["empties"])


Group = int | Cost | tuple[Cost, ...]
"""What a unit can move: kappa, where records are pairs; a cost; or one cost for each event."""


def cost_of(group: int | Cost) -> Cost:
    """A group size as a cost: that many pairs.

    Examples
    --------
    >>> cost_of(3) == Cost(records=3)
    True
    """
    return group if isinstance(group, Cost) else Cost(group)


def larger(one: Group, other: Group) -> Group:
    """A cost that covers both, event by event where there is one for each.

    Examples
    --------
    >>> larger(2, 3)
    3
    >>> larger(Cost(1, 2.0, empties=False), 3)
    Cost(records=3, zero_out=2.0, replace=2.0, empties=False)
    """
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    if isinstance(one, tuple) or isinstance(other, tuple):
        ones, others = (g if isinstance(g, tuple) else None for g in (one, other))
        count = len(ones if ones is not None else others or ())
        pairs = zip(_each(one, count), _each(other, count), strict=True)
        return tuple(_covering(a, b) for a, b in pairs)
    return _covering(cost_of(one), cost_of(other))


def _each(group: Group, count: int) -> tuple[Cost, ...]:
    return group if isinstance(group, tuple) else (cost_of(group),) * count


def _covering(one: Cost, other: Cost) -> Cost:
    return Cost(
        max(one.records, other.records),
        max(one.zero_out, other.zero_out),
        max(one.replace, other.replace),
        one.empties and other.empties,
    )


RECORD_KINDS: dict[str, Cost] = {
    "pairs": Cost(1),
    "groups": Cost(1, 2.0, 2.0, empties=False),
    "people": Cost(1),
    "tuples": Cost(1),
    "counted pairs": Cost(1, replace=math.sqrt(2.0)),
    "choices": Cost(1),
    "workers": Cost(1),
}
"""Kinds of records and the least that one of them moves by proof (docs/theory: guarantee, people, tuples)."""

A_CHOICE_OF_A_WORKER = Cost(1, 2.0, 2.0, empties=False)
"""One choice inside all of a worker's, which are clipped as one vector (docs/theory/choices.md)."""

_UNITS_OF_KIND = {"choices": UNITS_OF_CHOICES, "workers": UNITS_OF_CHOICES}


def units_of(kinds: Iterable[str]) -> tuple[Unit, ...]:
    """What can be protected in records of these kinds; kinds with different units are never mixed.

    Examples
    --------
    >>> units_of(["pairs", "people"]), units_of(["workers"])
    (('pair', 'relationship', 'person'), ('choice', 'worker'))
    """
    found = {_UNITS_OF_KIND.get(kind, UNITS) for kind in kinds}
    if len(found) != 1:
        raise InputError("records whose units are not the same have no promise in common")
    return found.pop()


def least_cost(kind: str, unit: Unit, *, l1: bool = False) -> Cost:
    """The least that a unit moves of a record of some kind, by proof.

    Counted pairs contribute vectors without negative entries. Two of them, of length C at most, are sqrt(2) C
    apart at most in l2, but 2 C in ``l1`` (docs/theory/linkage.md).

    Examples
    --------
    >>> least_cost("workers", "choice").zero_out, least_cost("workers", "worker").zero_out
    (2.0, 1.0)
    """
    if (kind, unit) == ("workers", "choice"):
        return A_CHOICE_OF_A_WORKER
    if l1 and kind == "counted pairs":
        return Cost(1)
    return RECORD_KINDS[kind]


def costs_of_pairs(kappas: Mapping[Unit, int]) -> dict[Unit, Cost]:
    """Costs where records are pairs: a unit empties or replaces kappa of them.

    Examples
    --------
    >>> costs_of_pairs({"pair": 1, "relationship": 1, "person": 2})["person"].sensitivity("replace")
    4.0
    """
    return {unit: Cost(int(kappas[unit])) for unit in UNITS}


def costs_of_counts(kappas: Mapping[Unit, int], *, l1: bool) -> dict[Unit, Cost]:
    """Costs where records are counted pairs: contributions have no negative entries.

    Examples
    --------
    >>> costs = costs_of_counts({"pair": 1, "relationship": 1, "person": 2}, l1=False)
    >>> round(costs["person"].sensitivity("replace"), 3)
    2.828
    """
    return {
        unit: replace(least_cost("counted pairs", unit, l1=l1), records=int(kappas[unit]))
        for unit in UNITS
    }
