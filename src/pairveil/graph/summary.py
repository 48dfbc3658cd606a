"""The shape of a pair graph as counts, with nobody named: what a release and its report may show of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

TOP_RANKS = 10


@dataclass(frozen=True)
class RankedPerson:
    """One of the people who set kappa, by rank and never by name."""

    rank: int
    b: int
    degree: int


@dataclass(frozen=True)
class GraphSummary:
    """The shape of one set of pairs: counts only.

    Attributes
    ----------
    n_people, n_pairs : int
    kappa : mapping
        Keys pair, relationship, paper_bound, person, intransitive.
    degrees, b : tuple of (value, people)
        How many people have which degree, and which b; ascending, no zero counts.
    top : tuple of RankedPerson
        The people with the largest b, ties by degree.
    """

    n_people: int
    n_pairs: int
    kappa: Mapping[str, int]
    degrees: tuple[tuple[int, int], ...]
    b: tuple[tuple[int, int], ...]
    top: tuple[RankedPerson, ...]


def graph_summary(kappa: Any, pairs: Any) -> GraphSummary:
    """The counts of one graph.

    Parameters
    ----------
    kappa : Kappa
        What ``pairveil.kappa(pairs)`` returned.
    pairs : (K, 2) integers, or an object with ``pairs``
        The same pairs.

    Examples
    --------
    >>> from pairveil.graph.kappa import kappa
    >>> star = [(0, 1), (0, 2), (0, 3)]
    >>> graph_summary(kappa(star), star).degrees
    ((1, 3), (3, 1))
    """
    edges = np.asarray(getattr(pairs, "pairs", pairs))
    people, degrees = np.unique(edges, return_counts=True)
    numbers = getattr(kappa, "people", None)
    rows = people if numbers is None else np.searchsorted(numbers, people)
    b = np.asarray(kappa.per_person)[rows]
    order = np.lexsort((-degrees, -b))[:TOP_RANKS]
    names = ("pair", "relationship", "paper_bound", "person", "intransitive")
    return GraphSummary(
        n_people=len(people),
        n_pairs=len(edges),
        kappa={name: int(getattr(kappa, name)) for name in names},
        degrees=_counts(degrees),
        b=_counts(b),
        top=tuple(
            RankedPerson(rank, int(b[i]), int(degrees[i])) for rank, i in enumerate(order, start=1)
        ),
    )


def _counts(values: np.ndarray) -> tuple[tuple[int, int], ...]:
    found, people = np.unique(values, return_counts=True)
    return tuple(zip(found.tolist(), people.tolist(), strict=True))
