"""How correlated the records are, and which of them to use.

People are vertices, pairs are edges. `kappa` counts in linear time how many records change together when one
relationship or one person does; `choosing` picks records that keep this number small, from the graph alone.

Here are the selections by name, and the counts of a graph that a release may show: the command line and
whoever receives a release read them, so neither numbers nor records are imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pairveil._lazy import offered
from pairveil.errors import InputError

NO_LIMIT = 2**31 - 1


class Selection(NamedTuple):
    """A rule for which pairs to use; it looks at who is paired with whom, and at nothing else."""

    says: str  # what it is, for people
    limit: int = NO_LIMIT  # most pairs of one person
    acyclic: bool = False  # whether no chain of kept pairs leads back to where it began
    spans: bool = False  # whether it then grows beyond paths until everybody who can be is tied in
    # Most people of a group, where pairs are cut into groups that are records
    people: int | None = None

    @property
    def thins(self) -> bool:
        """Whether it keeps some of the pairs of a person and leaves others out."""
        return self.limit < NO_LIMIT or self.acyclic


SELECTIONS: dict[str, Selection] = {
    "paths": Selection("at most two pairs a person, no cycle", 2, acyclic=True),
    "forest": Selection("no cycle, as many pairs as that allows", acyclic=True, spans=True),
    "matching": Selection("one pair a person", 1),
    "groups": Selection("disjoint groups of at most 8 people, all pairs inside", people=8),
    "all": Selection("every pair"),
}
DESIGNS = ("paths", "forest", "matching")
"""What pairs can be designed as before anyone labels them."""


def selection_named(how: object) -> Selection:
    """The selection of that name."""
    if not isinstance(how, str) or how not in SELECTIONS:
        raise InputError(f"how must be one of {', '.join(SELECTIONS)}")
    return SELECTIONS[how]


@dataclass(frozen=True)
class RankedPerson:
    """One of the people who set kappa, by rank and never by name."""

    rank: int
    b: int
    degree: int


@dataclass(frozen=True)
class GraphSummary:
    """The shape of one set of pairs: counts only, with nobody named."""

    n_people: int
    n_pairs: int
    kappa: Mapping[str, int]  # keys pair, relationship, paper_bound, person, intransitive
    # How many people have which degree, and which b; ascending, no zero counts
    degrees: tuple[tuple[int, int], ...]
    b: tuple[tuple[int, int], ...]
    top: tuple[RankedPerson, ...]  # the people with the largest b, ties by degree


__all__ = ["Kappa", "kappa_of_tuples", "select_tuples"]

__getattr__ = offered(
    __name__,
    {
        "pairveil.graph.kappa": "Kappa kappa_of_tuples",
        "pairveil.graph.choosing": "select_tuples",
    },
)

if TYPE_CHECKING:
    from pairveil.graph.choosing import select_tuples as select_tuples
    from pairveil.graph.kappa import Kappa as Kappa
    from pairveil.graph.kappa import kappa_of_tuples as kappa_of_tuples
