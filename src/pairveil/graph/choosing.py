"""Choosing pairs that cost little privacy: noise per pair grows with kappa / K (docs/theory/graph.md).

Two uses, and they differ. `design_pairs` says which pairs to label before anyone labels them: clean.
`select_pairs` drops pairs that already have labels; an attacker who knows the dropped labels can
still face up to relationship-level kappa of the *full* graph on a cut, so a certificate of a selected
fit states that number too.

The choice sees who is paired with whom and nothing else, never a label or a feature. The topology
is public, and so is the choice: its randomness is not a privacy matter, and a seed may be published.

============  ====================================  ==============  ========
how           pairs kept                            relationship    person
============  ====================================  ==============  ========
``matching``  everyone in at most one pair          1               1
``paths``     at most two pairs each, no cycle      1               2
``forest``    spanning, no cycle, low degrees       1               whatever
``groups``    inside disjoint groups of people      one *group*     one group
``all``       every pair                            of the graph    of the graph
============  ====================================  ==============  ========

Groups are records themselves: a fit clips each as a whole (docs/theory/groups.md).

`max_degree=k` lowers the person number further: a person's limit is the smaller of k and the kind's
own limit (1 for a matching, 2 for paths, none for forest and all).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.data.canonical import order_of_ids, ranks, records_of
from pairveil.data.validation import row_blocks
from pairveil.errors import InputError
from pairveil.graph.adjacency import checked_pairs
from pairveil.graph.choosing_loops import grow_forest, take_thriftily
from pairveil.graph.grouping import check_size, cut_into_groups
from pairveil.graph.selections import DESIGNS, NO_LIMIT, selection_named
from pairveil.graph.thinning import MANY, PLENTY, complete, share_of_pairs

MAX_PEOPLE = 10**8
"""People that pairs are designed for: more would take tens of gigabytes, and nobody labels so many."""


def select_pairs(
    pairs: Any,
    how: str = "paths",
    max_degree: int | None = None,
    random_state: int | np.random.Generator | None = None,
    group_size: int | None = None,
) -> NDArray[np.int64]:
    """Which pairs to keep so that few of them move together.

    Parameters
    ----------
    pairs : (K, 2) array_like of integers, or a PairSet
    how : {"paths", "forest", "matching", "groups", "all"}
        See the table of the module. Of a pair that occurs twice only the first mention is ever kept.
    max_degree : int, optional
        Keep at most so many pairs of one person. "forest" is then a forest that may not span.
    random_state : int, Generator or None
        Breaks ties. None draws from the operating system; a number makes the choice reproducible.
        Not a privacy matter: who is paired with whom is public, and so is what is kept.
    group_size : int, optional
        Most people of a group, for "groups"; 8 by default.

    Returns
    -------
    ndarray of int64
        Ascending positions in `pairs`.

    Notes
    -----
    The choice is a function of the *set* of pairs (and of the seed): neither the order of the rows nor who
    stands left or right matters, since files are sorted by label. A PairSet's people are ordered by
    their ids, those of an array by their numbers (`pairveil.data.canonical`).

    Matching, paths and degree limits are greedy in the manner of Karp and Sipser: the person with
    the least choice left (live pairs minus free places) chooses first and prefers partners with
    little choice. On random graphs with two pairs per person this keeps 0.94 (paths) and 0.49
    (matching) pairs per person. Time is near-linear. Of more than 2**22 pairs, far more than
    matching or paths can use, a random share is ordered so, and the others fill what is left.

    Examples
    --------
    A triangle with a tail; paths drop one pair of the triangle:

    >>> triangle_and_tail = [(0, 1), (1, 2), (0, 2), (2, 3)]
    >>> len(select_pairs(triangle_and_tail, "paths", random_state=0))
    3
    >>> len(select_pairs(triangle_and_tail, "matching", random_state=0))
    2
    >>> select_pairs(triangle_and_tail, "all").tolist()
    [0, 1, 2, 3]
    """
    limit = _limit(how, max_degree)
    rank = ranks(order_of_ids(getattr(pairs, "ids", None)))
    ends = _checked(pairs)
    if rank is None and int(ends.max()) > 4 * len(ends) + 65_536:  # sparse numbers: renumber
        ends = np.unique(ends, return_inverse=True)[1].reshape(ends.shape)
    records = records_of(ends, rank=rank)
    rule = selection_named(how)
    if rule.people is None and group_size is not None:
        raise InputError("group_size is for how='groups'")
    if rule.people is not None:
        if max_degree is not None:
            raise InputError("max_degree is for single pairs: groups keep all pairs inside them")
        size = rule.people if group_size is None else group_size
        check_size(size)
        places, n_people = _renumbered(records.pairs)
        group = cut_into_groups(places, n_people, int(size), generator_of(random_state))
        inside = group[places[:, 0]] == group[places[:, 1]]
        return records.rows(np.flatnonzero(inside))
    if limit == NO_LIMIT and not rule.acyclic:
        return records.rows(np.arange(len(records.pairs)))
    return records.rows(
        _chosen(*_renumbered(records.pairs), how, limit, generator_of(random_state))
    )


def _chosen(
    ends: NDArray[np.int32], n_people: int, how: str, limit: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Which of the pairs, in canonical order and each once, to keep."""
    many = limit <= 2 and len(ends) > max(MANY, 4 * PLENTY * n_people)
    share = share_of_pairs(ends, n_people, rng) if many else None
    # Ties go to what comes first, so a random order of pairs and of people breaks them at random.
    order = rng.permutation(len(ends) if share is None else share).astype(np.int32)
    people = rng.permutation(n_people).astype(np.int32)
    shuffled = people[ends[order]]
    rule = selection_named(how)
    # A forest starts from paths and grows thicker only where it must: low degrees, not stars.
    start = min(limit, 2) if rule.spans else limit
    kept = np.zeros(len(order), dtype=np.bool_)
    tree = np.arange(n_people, dtype=np.int32)
    take_thriftily(shuffled, n_people, start, rule.acyclic, kept, tree)
    if rule.spans:
        grow_forest(shuffled, limit, kept, tree)
    chosen = np.sort(order[kept]).astype(np.int64)
    if share is None:
        return chosen
    return complete(ends, people, chosen, limit, rule.acyclic, tree)


def design_pairs(
    n_people: int, how: str = "paths", random_state: int | np.random.Generator | None = None
) -> NDArray[np.int64]:
    """Which pairs of people to label, before anyone labels them.

    Parameters
    ----------
    n_people : int
        People are 0..n_people-1.
    how : {"paths", "forest", "matching"}
        "paths": one path through everyone (n-1 pairs, person-level kappa 2). "forest": a balanced
        binary tree (n-1 pairs, at most 3 per person, any two people within 2 log2 n pairs).
        "matching": n // 2 pairs, person-level kappa 1.
    random_state : int, Generator or None
        Who stands where. Not a privacy matter: the topology is public.

    Returns
    -------
    ndarray of int64, shape (K, 2)

    Examples
    --------
    >>> design_pairs(6, "matching", random_state=0).shape
    (3, 2)
    >>> int(np.bincount(design_pairs(6, "paths", random_state=0).ravel()).max())
    2
    """
    if isinstance(n_people, bool) or not isinstance(n_people, (int, np.integer)) or n_people < 2:
        raise InputError("n_people must be a whole number of at least 2: a pair needs two people")
    if n_people > MAX_PEOPLE:
        raise InputError(
            f"pairs are designed for at most {MAX_PEOPLE:,} people; design them in parts"
        )
    people = generator_of(random_state).permutation(int(n_people)).astype(np.int64)
    if how not in DESIGNS:
        raise InputError(f"how must be one of {', '.join(DESIGNS)}")
    pairs: NDArray[np.int64] = DESIGNS[how](people)
    return pairs


def _limit(how: str, max_degree: int | None) -> int:
    """How many pairs one person may keep."""
    limit = selection_named(how).limit
    if max_degree is None:
        return limit
    if isinstance(max_degree, bool) or not isinstance(max_degree, (int, np.integer)):
        raise InputError("max_degree must be a whole number or None")
    if max_degree < 1:
        raise InputError("max_degree must be at least 1")
    return min(limit, int(max_degree))


def generator_of(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """A generator from a seed, or the generator given."""
    if isinstance(random_state, bool) or not (
        random_state is None or isinstance(random_state, (int, np.integer, np.random.Generator))
    ):
        raise InputError("random_state must be None, an integer or a numpy Generator")
    if isinstance(random_state, (int, np.integer)) and random_state < 0:
        raise InputError("random_state must not be negative")
    return np.random.default_rng(random_state)


def _checked(pairs: Any) -> NDArray[Any]:
    """The pairs as int32 or int64 numbers of different people."""
    ends = checked_pairs(pairs)
    if len(ends) >= NO_LIMIT // 2:
        raise InputError("more than 2**30 pairs: choose within parts of the graph")
    return ends


def _renumbered(ends: NDArray[Any]) -> tuple[NDArray[np.int32], int]:
    """The pairs as numbers without gaps, in the same order, and how many people there are.

    People without pairs have no say in which pairs are kept.
    """
    paired = np.zeros(int(ends.max()) + 1, dtype=np.bool_)
    for block in row_blocks(len(ends)):
        paired[ends[block]] = True
    if paired.all():
        return ends.astype(np.int32, copy=False), len(paired)
    places = np.cumsum(paired, dtype=np.int32) - np.int32(1)
    renumbered = np.empty(ends.shape, dtype=np.int32)
    for block in row_blocks(len(ends)):
        renumbered[block] = places[ends[block]]
    return renumbered, int(places[-1]) + 1
