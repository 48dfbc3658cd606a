"""Several kinds of relation over the same people: one graph a kind, and all of them together.

Kappa of one graph counts the pairs of that graph that one secret can be in. Who also knows pairs of another
kind may chain through them: 'are siblings' and 'share a household' say something about each other. The
union of the graphs covers that, at a kappa that is at least the largest of the kinds'.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairveil.errors import InputError
from pairveil.graph.kappa import Kappa, kappa


@dataclass(frozen=True)
class Relations:
    """Group sizes of each kind of relation and of all of them together.

    Attributes
    ----------
    by_kind : mapping from name to Kappa
    union : Kappa
        Of all pairs of all kinds; two people who are paired in two kinds count twice.
    intransitive : frozenset of str
        Kinds whose labels cannot be chained ('are friends'). Their smaller kappa is for **labels only**.
    """

    by_kind: Mapping[str, Kappa]
    union: Kappa
    intransitive: frozenset[str] = frozenset()

    def relationship(self, kind: str) -> int:
        """Kappa of one relationship of a kind, where only pairs of that kind can be chained."""
        if kind not in self.by_kind:
            raise InputError(f"there is no kind of relation '{kind}': {', '.join(self.by_kind)}")
        found = self.by_kind[kind]
        return max(1, found.intransitive) if kind in self.intransitive else found.relationship

    def note(self, kind: str) -> str:
        """What a certificate of one kind says, and what it takes to cover the others: for people."""
        own, union = self.relationship(kind), self.union.relationship
        what = "labels only, " if kind in self.intransitive else ""
        text = f"relation '{kind}': {what}kappa {own} where pairs of other relations are not chained with it"
        if union <= own:
            return f"{text}, and {own} with all {len(self.by_kind)} relations over these people"
        return (
            f"{text}; with all {len(self.by_kind)} relations over these people kappa is {union}: fit with "
            f"kappa={union} to cover who knows the others"
        )

    def to_dict(self) -> dict[str, Any]:
        """Numbers for JSON."""
        return {
            "by_kind": {
                kind: {
                    "relationship": self.relationship(kind),
                    "person": found.person,
                    "labels_only": kind in self.intransitive,
                }
                for kind, found in self.by_kind.items()
            },
            "union": {"relationship": self.union.relationship, "person": self.union.person},
        }


def relations(pairs: Mapping[str, Any], intransitive: Collection[str] = ()) -> Relations:
    """Kappa of each kind of relation over the same people, and of their union.

    Parameters
    ----------
    pairs : mapping from name to array of shape (K, 2)
        The same number is the same person in every kind.
    intransitive : collection of str
        Kinds whose labels cannot be chained.

    Examples
    --------
    >>> found = relations({"siblings": [[0, 1], [1, 2]], "household": [[0, 2], [2, 3]]})
    >>> found.relationship("siblings"), found.union.relationship, found.union.person
    (1, 2, 3)
    >>> found.note("siblings").partition(";")[2].strip()
    'with all 2 relations over these people kappa is 2: fit with kappa=2 to cover who knows the others'
    """
    if not pairs:
        raise InputError("give at least one kind of relation")
    unknown = sorted(set(intransitive) - set(pairs))
    if unknown:
        raise InputError(f"there is no kind of relation '{unknown[0]}': {', '.join(pairs)}")
    arrays = {name: np.asarray(getattr(one, "pairs", one)) for name, one in pairs.items()}
    return Relations(
        {name: kappa(one) for name, one in arrays.items()},
        kappa(np.concatenate(list(arrays.values()))),
        frozenset(intransitive),
    )
