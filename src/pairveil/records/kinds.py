"""The kinds of records: what a protected unit can move of each. Nothing else tells kinds apart by name.

A fit sums contributions of records, each clipped to length C as a whole. A unit's contents lie in some of the
records; `Cost` says in how many, and how far the contribution of each moves when the unit's contents become
null or others. The rows below are proved in docs/theory/records.md, for every unit, adjacency and norm. A new
kind is a row here, a face of `pairveil.records.records.Records` that checks what is given, and a reader.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, get_args

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import asdict

from pairveil.errors import InputError
from pairveil.foreign import decode

Unit = Literal["pair", "relationship", "person", "choice", "worker"]
Adjacency = Literal["zero-out", "replace"]

UNITS: tuple[Unit, ...] = ("pair", "relationship", "person")
"""What can be protected where people are paired or have classes."""
UNITS_OF_CHOICES: tuple[Unit, ...] = ("choice", "worker")
"""What can be protected where workers choose between items."""
ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)

VACANT = -1
"""A place in a record that nobody has: groups of different sizes are padded with it."""

MAX_KAPPA = 2**53
"""More records than this nobody has, and floats no longer count them exactly."""


class CostFields(Struct, forbid_unknown_fields=True, rename={"zero_out": "zero-out"}):
    """A cost as certificates and ledgers have it."""

    records: Annotated[int, Meta(ge=1, description="Records that hold contents of the unit.")]
    zero_out: Annotated[float, Meta(gt=0, le=2, description="In clip bounds.")]
    replace: Annotated[float, Meta(gt=0, le=2, description="In clip bounds.")]
    empties: Annotated[bool, Meta(description="Whether a null unit empties its records.")]


@dataclass(frozen=True)
class Cost:
    """What one protected unit can move.

    Examples
    --------
    >>> Cost(records=3).sensitivity("replace"), Cost(1, zero_out=2.0, empties=False).sensitivity("zero-out")
    (6.0, 2.0)
    """

    records: int  # records that hold contents of the unit: kappa, where records are pairs
    # How far the contribution of each of them moves, in units of the clip bound, when the unit's contents
    # become null and when they become others. A contribution is a vector of length at most 1, so 2 is
    # always enough.
    zero_out: float = 1.0
    replace: float = 2.0
    # Whether a null unit empties its records. A pair does. A person who leaves a group of people does
    # not: the others' contribution stays, changed, and Poisson samples must be accounted as replaced
    # ones.
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
        return cls(**asdict(decode(data, CostFields, "a cost")))


@dataclass(frozen=True)
class RecordKind:
    """One row of the table."""

    name: str  # as queries and certificates have it: what records are called, in the plural
    one: str  # what one record is called
    # What can be protected. Kinds with different units are never mixed.
    units: tuple[Unit, ...] = UNITS
    cost: Cost = Cost(1)  # what one record moves when all of its contents change, in l2
    # The same in l1 and in the range of a choice, where that is more
    other_norms: Cost | None = None
    # Units that are a part of a record: the rest of its contents stays
    parts: Mapping[Unit, Cost] = field(default_factory=dict)
    # How many records a unit is in, where that follows from the kind. Other units are counted (kappa).
    touches: Mapping[Unit, int] = field(default_factory=dict)
    # {'pairs', 'tuples'}: what kappa is counted on. Chains of records run through all releases on one
    # graph.
    graph: Literal["pairs", "tuples"] | None = None
    # What a record is a set of, where the numbers of a fit count that and not records
    inside: str = ""
    said: str = "labels"  # what the contents of records are called
    null: int = 0  # the content of a record that contributes nothing
    sizes: tuple[int, int] = (2, 2)  # fewest and most people of a record
    # Whether a record has a row of features of its own, and no people whose rows it looks up
    own_rows: bool = False
    # Contents of records, (K, c), whose members move: the member at column ``sort[k, i]`` comes to i.
    # None where contents do not depend on who stands where.
    follow: Callable[[Any, Any], Any] | None = None

    @property
    def on_pairs(self) -> bool:
        """Whether kappa is counted on a graph of pairs."""
        return self.graph == "pairs"

    @property
    def on_tuples(self) -> bool:
        """Whether kappa is counted on tuples of people."""
        return self.graph == "tuples"

    @property
    def pairwise(self) -> bool:
        """Whether a record is one pair, whose contribution follows from the rows of its two people."""
        return self.on_pairs and not self.own_rows

    @property
    def holds_pairs(self) -> bool:
        """Whether a record holds the labels of the pairs inside it."""
        return bool(self.inside)

    @property
    def alone(self) -> bool:
        """Whether a record is one person."""
        return self.sizes == (1, 1)

    @property
    def counted(self) -> str:
        """What the numbers of a fit count."""
        return self.inside or self.name

    @property
    def adds_counts(self) -> bool:
        """Whether contributions are counts, which are never negative."""
        return self.other_norms is not None

    def moves(self, unit: Unit, *, l2: bool = True) -> Cost:
        """What a unit moves of one record, at most; a certificate that states less is refused.

        Examples
        --------
        >>> WORKERS.moves("choice").zero_out, WORKERS.moves("worker").zero_out
        (2.0, 1.0)
        """
        whole = self.cost if l2 or self.other_norms is None else self.other_norms
        return self.parts.get(unit, whole)

    def costs(
        self, kappas: Mapping[Unit, int] | None = None, *, l2: bool = True
    ) -> dict[Unit, Cost]:
        """What each unit moves, from how many records it is in; by default as many as `touches` says.

        ``kappas`` are for units that are counted; ``l2``: whether all noise is Gaussian, which is scaled to
        that norm.
        """
        counted = {**self.touches, **(kappas or {})}
        return {
            unit: replace(self.moves(unit, l2=l2), records=int(counted[unit]))
            for unit in self.units
        }


_PART = Cost(1, 2.0, 2.0, empties=False)
"""From one vector of length C to another: what stays may point the other way."""


def _parts(order: Any, sort: Any) -> Any:
    """A tuple's contents name the columns of those who play its parts."""
    place = np.argsort(sort, axis=1).astype(np.int8)  # where each column has gone
    moved = np.take_along_axis(place, np.maximum(order, 0), axis=1)
    return np.where(order < 0, order, moved)


def _labels(labels: Any, sort: Any) -> Any:
    """A group's contents belong to pairs of places: (0, 1), (0, 2), ..., (1, 2), ..."""
    m = sort.shape[1]
    first, second = np.triu_indices(m, 1)
    low = np.minimum(sort[:, first], sort[:, second])
    high = np.maximum(sort[:, first], sort[:, second])
    return np.take_along_axis(labels, low * (2 * m - low - 1) // 2 + high - low - 1, axis=1)


PAIRS = RecordKind("pairs", "pair", graph="pairs")
COUNTED_PAIRS = RecordKind(
    # Contributions have no negative entries: in l2 two of them are sqrt(2) C apart at most.
    "counted pairs", "pair", cost=Cost(1, replace=math.sqrt(2.0)), other_norms=Cost(1), graph="pairs",
    own_rows=True,
)  # fmt: skip
TUPLES = RecordKind(
    "tuples", "tuple", graph="tuples", said="answers", null=-1, sizes=(3, 32), follow=_parts
)
GROUPS = RecordKind(
    "groups", "group", parts=dict.fromkeys(UNITS, _PART), touches=dict.fromkeys(UNITS, 1),
    inside="pairs", sizes=(2, 64), follow=_labels,
)  # fmt: skip
PEOPLE = RecordKind(
    "people", "person", touches={"pair": 2, "relationship": 2, "person": 1}, said="classes",
    null=-1, sizes=(1, 1), own_rows=True,
)  # fmt: skip
CHOICES = RecordKind("choices", "choice", UNITS_OF_CHOICES, touches={"choice": 1})
WORKERS = RecordKind(
    "workers", "worker", UNITS_OF_CHOICES, parts={"choice": _PART},
    touches=dict.fromkeys(UNITS_OF_CHOICES, 1),
)  # fmt: skip

KINDS: dict[str, RecordKind] = {
    kind.name: kind for kind in (PAIRS, GROUPS, PEOPLE, TUPLES, COUNTED_PAIRS, CHOICES, WORKERS)
}


def units_of(kinds: Iterable[str]) -> tuple[Unit, ...]:
    """What can be protected in records of these kinds; kinds with different units are never mixed."""
    found = {KINDS[kind].units for kind in kinds}
    if len(found) != 1:
        raise InputError("records whose units are not the same have no promise in common")
    return found.pop()
