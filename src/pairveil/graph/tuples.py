"""Tuples as records: how many of them one unit touches, which of them to use, and which to ask for.

People and tuples are the two kinds of vertices of the *incidence graph*; a line joins a tuple with each of
its members. Removing a person v from it splits her component into blocks(v) pieces, as in a graph of pairs,
so b(v) = degree(v) - blocks(v) + 1 follows from the same linear search (docs/theory/tuples.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pairveil._compiled import lazy_njit
from pairveil.array_types import IntArray
from pairveil.errors import InputError
from pairveil.graph.choosing import MAX_PEOPLE, generator_of
from pairveil.graph.kappa import Kappa, build_adjacency, correlate
from pairveil.graph.selections import NO_LIMIT, selection_named
from pairveil.records.tupleset import FEWEST, MOST, check_tuples

SELECTIONS_OF_TUPLES = ("paths", "forest", "matching", "all")


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
    members = _members(tuples)
    people, where = np.unique(members, return_inverse=True)
    numbers = where.reshape(members.shape).astype(np.int64)
    n, (k, m) = len(people), members.shape
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


def select_tuples(
    tuples: Any, how: str = "paths", random_state: int | np.random.Generator | None = None
) -> IntArray:
    """Which tuples to keep so that few of them move together; blind to answers and features.

    Parameters
    ----------
    tuples : (K, m) array_like of integers, or a TupleSet in canonical order
    how : {"paths", "forest", "matching", "all"}
        As for pairs: at most two tuples a person and no cycle, no cycle, one tuple a person, every tuple.
        Without a cycle a relationship touches one tuple.
    random_state : int, Generator or None
        Which come first. Not a privacy matter.

    Returns
    -------
    ndarray of int64
        Ascending positions. A tuple that is taken is taken for good; none that is left out fits any more.

    Examples
    --------
    >>> shared = [[0, 1, 2], [0, 1, 3], [3, 4, 5]]
    >>> len(select_tuples(shared, "paths", random_state=0))
    2
    >>> select_tuples(shared, "all").tolist()
    [0, 1, 2]
    """
    if how not in SELECTIONS_OF_TUPLES:
        raise InputError(f"select must be one of {', '.join(SELECTIONS_OF_TUPLES)} for tuples")
    members, rule = _members(tuples), selection_named(how)
    if rule.limit == NO_LIMIT and not rule.acyclic:
        return np.arange(len(members))
    order = generator_of(random_state).permutation(len(members))
    people, where = np.unique(members, return_inverse=True)
    numbers = where.reshape(members.shape).astype(np.int64)
    kept = np.zeros(len(members), dtype=np.bool_)
    _take(numbers, order, rule.limit, rule.acyclic, len(people), kept)
    return np.flatnonzero(kept)


@lazy_njit
def _take(members, order, limit, acyclic, n_people, kept):  # type: ignore[no-untyped-def]
    """Take each tuple, in order, whose members have room and, if asked, are in different trees."""
    room = np.full(n_people, limit, dtype=np.int64)
    tree = np.arange(n_people)
    m = members.shape[1]
    roots = np.empty(m, dtype=np.int64)
    for at in order:
        fits = True
        for i in range(m):
            v = members[at, i]
            if room[v] == 0:
                fits = False
                break
            while tree[v] != v:
                tree[v] = tree[tree[v]]
                v = tree[v]
            roots[i] = v
            if acyclic:
                for j in range(i):
                    if roots[j] == v:
                        fits = False
            if not fits:
                break
        if not fits:
            continue
        kept[at] = True
        for i in range(m):
            room[members[at, i]] -= 1
            tree[roots[i]] = roots[0]


def sample_tuples(
    n_people: int,
    size: int = 3,
    max_per_person: int = 1,
    random_state: int | np.random.Generator | None = None,
) -> IntArray:
    """Tuples of people to ask about, before anyone answers: nobody is in more than so many.

    Parameters
    ----------
    n_people : int
        People are 0..n_people-1.
    size : int
        Members of a tuple, from 3 to 32.
    max_per_person : int
        Most tuples of one person: person-level kappa is at most this, by construction.
    random_state : int, Generator or None
        Who stands where. Not a privacy matter: who is in a tuple is public.

    Returns
    -------
    ndarray of int64, shape (K, size)
        Members ascending, tuples ascending, none twice. Each round deals people, in random order, into
        disjoint tuples; fewer than ``size`` of them are left out of it.

    Examples
    --------
    >>> tuples = sample_tuples(10, size=3, max_per_person=2, random_state=0)
    >>> tuples.shape, kappa_of_tuples(tuples).person
    ((6, 3), 2)
    """
    for name, value in (("n_people", n_people), ("size", size), ("max_per_person", max_per_person)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1")
    if not FEWEST <= size <= MOST:
        raise InputError(f"size must be from {FEWEST} to {MOST}")
    if not size <= n_people <= MAX_PEOPLE:
        raise InputError(
            f"{size} members need {size} to {MAX_PEOPLE:,} people; n_people is {n_people}"
        )
    rng = generator_of(random_state)
    whole = n_people // size * size
    rounds = [
        rng.permutation(int(n_people))[:whole].reshape(-1, size) for _ in range(max_per_person)
    ]
    return np.unique(np.sort(np.concatenate(rounds), axis=1), axis=0).astype(np.int64)


def _members(tuples: Any) -> IntArray:
    return check_tuples(getattr(tuples, "tuples", tuples))
