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

Groups are records themselves: a fit clips each as a whole (docs/theory/records.md).

`max_degree=k` lowers the person number further: a person's limit is the smaller of k and the kind's
own limit (1 for a matching, 2 for paths, none for forest and all).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import IntArray
from pairveil.errors import InputError
from pairveil.graph import DESIGNS, NO_LIMIT, SELECTIONS, Selection, loops, selection_named
from pairveil.graph.kappa import Kappa, checked_pairs, compacted, compacted_members, kappa
from pairveil.records.canonical import canonical_records, order_of_ids, ranks
from pairveil.records.kinds import GROUPS, TUPLES
from pairveil.records.validation import row_blocks

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
    pairs : (K, 2) array_like of integers or of text, or a PairSet
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
    their ids, those of an array by their numbers (`pairveil.records.canonical`).

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
    rule = selection_named(how)
    limit = rule.limit
    if max_degree is not None:
        says = "max_degree must be a whole number of at least 1, or None"
        limit = min(limit, _whole(max_degree, 1, 2**63, says))
    rank = ranks(order_of_ids(getattr(pairs, "ids", None)))
    ends = checked_pairs(pairs)
    if len(ends) >= NO_LIMIT // 2:
        raise InputError("more than 2**30 pairs: choose within parts of the graph")
    if rank is None and int(ends.max()) > 4 * len(ends) + 65_536:  # sparse numbers: renumber
        ends = compacted(ends)[1]
    records = canonical_records(ends, rank=rank)
    if rule.people is None and group_size is not None:
        raise InputError("group_size is for how='groups'")
    if rule.people is not None:
        if max_degree is not None:
            raise InputError("max_degree is for single pairs: groups keep all pairs inside them")
        size = rule.people if group_size is None else group_size
        check_size(size)
        places, n_people = _renumbered(records.members)
        group = cut_into_groups(places, n_people, int(size), generator_of(random_state))
        inside = group[places[:, 0]] == group[places[:, 1]]
        return records.rows(np.flatnonzero(inside))
    if limit == NO_LIMIT and not rule.acyclic:
        return records.rows(np.arange(len(records.members)))
    places, n_people = _renumbered(records.members)
    return records.rows(_chosen(places, n_people, rule, limit, generator_of(random_state)))


def _chosen(
    ends: NDArray[np.int32], n_people: int, rule: Selection, limit: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Which of the pairs, in canonical order and each once, to keep."""
    many = limit <= 2 and len(ends) > max(MANY, 4 * PLENTY * n_people)
    share = share_of_pairs(ends, n_people, rng) if many else None
    # Ties go to what comes first, so a random order of pairs and of people breaks them at random.
    order = rng.permutation(len(ends) if share is None else share).astype(np.int32)
    people = rng.permutation(n_people).astype(np.int32)
    shuffled = people[ends[order]]
    # A forest starts from paths and grows thicker only where it must: low degrees, not stars.
    start = min(limit, 2) if rule.spans else limit
    kept = np.zeros(len(order), dtype=np.bool_)
    tree = np.arange(n_people, dtype=np.int32)
    loops.take_thriftily(shuffled, n_people, start, rule.acyclic, kept, tree)
    if rule.spans:
        loops.grow_forest(shuffled, limit, kept, tree)
    chosen = np.sort(order[kept]).astype(np.int64)
    if share is None:
        return chosen
    # What still fits of the others, in one pass.
    degree, taken = np.zeros(n_people, dtype=np.int32), np.zeros(len(ends), dtype=np.bool_)
    loops.count_pairs(ends[chosen], degree)
    taken[chosen] = True
    more = np.empty(limit * n_people, dtype=np.int64)
    count = loops.fill_up(ends, people, degree, limit, rule.acyclic, tree, taken, more)
    return np.sort(np.concatenate([chosen, more[:count]]))


# Where people have hundreds of pairs each, a matching or a set of paths uses one or two of them. Ordering all
# pairs by urgency would then take more memory than all else, so the careful choice is made on a random
# share, and one pass over everything adds what still fits: the outcome is maximal all the same.
#
# A pair is in the share with chance PLENTY / (the smaller degree of its two people). So each person keeps
# at least PLENTY of hers on average (all of them if she has no more), and the share holds at most
# PLENTY * n_people pairs on average. Who is paired with whom is public; labels and features are not seen.

PLENTY = 16
MANY = 1 << 22  # below, all pairs are looked at: memory is no matter


def share_of_pairs(
    ends: NDArray[Any], n_people: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Ascending positions of a random share of the pairs.

    ``ends``: (K, 2) row numbers, K below 2**30.
    """
    degree = np.zeros(n_people, dtype=np.int32)
    loops.count_pairs(ends, degree)
    expected = loops.expected_share(ends, degree, PLENTY)
    found = np.empty(int(expected + 12 * np.sqrt(expected) + 16), dtype=np.int32)
    draw = loops.draw_share.compiled()  # wraps around: Python would warn
    count = draw(ends, degree, PLENTY, np.uint64(rng.integers(2**63)), found)
    return found[:count]


def _whole(value: Any, least: int, most: int, says: str) -> int:
    """A whole number between two others, or an error that says so."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or not least <= value <= most
    ):
        raise InputError(says)
    return int(value)


def generator_of(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """A generator from a seed, or the generator given."""
    if isinstance(random_state, bool) or not (
        random_state is None or isinstance(random_state, (int, np.integer, np.random.Generator))
    ):
        raise InputError("random_state must be None, an integer or a numpy Generator")
    if isinstance(random_state, (int, np.integer)) and random_state < 0:
        raise InputError("random_state must not be negative")
    return np.random.default_rng(random_state)


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


# ---- people who change together, tuples, groups --------------------------------------------------


def select_together(
    pairs: NDArray[Any], together: NDArray[np.int64], how: str, random_state: Any
) -> NDArray[np.int64]:
    """Which pairs to keep so that few of them touch one value: the selection among values, not people.

    Pairs of people who share a value come last: one for each value that no other pair touches.
    """
    rule = selection_named(how)
    if not rule.thins:
        return np.arange(len(pairs))
    values = together[pairs]
    across = np.flatnonzero(values[:, 0] != values[:, 1])
    kept = np.empty(0, dtype=np.int64)
    if len(across):
        kept = across[select_pairs(values[across], how, random_state=random_state)]
    inside = np.flatnonzero(values[:, 0] == values[:, 1])
    inside = inside[~np.isin(values[inside, 0], values[kept])]
    first = inside[np.unique(values[inside, 0], return_index=True)[1]]
    return np.sort(np.concatenate([kept, first]))


SELECTIONS_OF_TUPLES = ("paths", "forest", "matching", "all")


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
    (people, numbers), rule = compacted_members(tuples), selection_named(how)
    if not rule.thins:
        return np.arange(len(numbers))
    order = generator_of(random_state).permutation(len(numbers))
    kept = np.zeros(len(numbers), dtype=np.bool_)
    loops.take_tuples(numbers, order, rule.limit, rule.acyclic, len(people), kept)
    return np.flatnonzero(kept)


USUAL_SIZE = 8
"""People in a group where nothing else was said (docs/guides/choosing-pairs.md)."""


def check_size(size: Any) -> None:
    """Refuse what is no size of a group."""
    _whole(
        size,
        2,
        GROUPS.sizes[1],
        f"a group has from 2 to {GROUPS.sizes[1]} people: give a whole number",
    )


def cut_into_groups(
    ends: NDArray[Any], n_people: int, size: int, rng: np.random.Generator
) -> IntArray:
    """Cut a graph of pairs into vertex-disjoint clusters of at most ``size`` people.

    Clusters grow one person at a time from whoever has the fewest pairs: the next is who has most pairs with
    those inside, then who has fewest left elsewhere. A person's pairs are walked when she joins, and whoever
    is near is looked at ``size`` times: linear in pairs. Keeping the most pairs is NP-hard; this keeps
    separate cliques of that size whole, and of a long path five pairs in six (groups of 8).
    """
    shuffled = rng.permutation(n_people)
    pairs = shuffled[np.asarray(ends, dtype=np.int64)]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    starts = np.searchsorted(both[:, 0], np.arange(n_people + 1))
    order = np.argsort(np.diff(starts), kind="stable")
    group = loops.grow_groups(
        np.ascontiguousarray(both[:, 1]), starts.astype(np.int64), order, size
    )
    return np.asarray(group[shuffled])


# ---- what to ask for, before anyone labels -------------------------------------------------------


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
    says = f"n_people must be a whole number: at least 2, at most {MAX_PEOPLE:,} people"
    n = _whole(n_people, 2, MAX_PEOPLE, says)
    if how not in DESIGNS:
        raise InputError(f"how must be one of {', '.join(DESIGNS)}")
    people = generator_of(random_state).permutation(n).astype(np.int64)
    if how == "matching":
        return people[: n // 2 * 2].reshape(-1, 2)
    before = people[:-1] if how == "paths" else people[np.arange(n - 1) // 2]
    return np.stack([before, people[1:]], axis=1)


def design_groups(
    n_people: int, size: int = USUAL_SIZE, random_state: int | np.random.Generator | None = None
) -> IntArray:
    """Deal people into disjoint groups, before anyone labels a pair.

    Parameters
    ----------
    n_people : int
        People are 0..n_people-1; the few (fewer than ``size``) who are left over are in no group.
    size : int
        People in each group, 2 to 64.
    random_state : int, Generator or None
        Who sits with whom. Not a privacy matter: the groups are public.

    Returns
    -------
    ndarray of int64, shape (n_people // size, size)
        A row a group, ascending.

    Examples
    --------
    >>> groups = design_groups(10, 3, random_state=0)
    >>> groups.shape, len(set(groups.ravel().tolist()))
    ((3, 3), 9)
    """
    check_size(size)
    says = f"n_people must be a whole number from {size}, the size of a group, to {MAX_PEOPLE:,}"
    n = _whole(n_people, size, MAX_PEOPLE, says)
    people = generator_of(random_state).permutation(n).astype(np.int64)
    groups = np.sort(people[: n // size * size].reshape(-1, size), axis=1)
    return groups[np.argsort(groups[:, 0])]


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
    >>> tuples.shape, int(np.bincount(tuples.ravel()).max())
    ((6, 3), 2)
    """
    m = _whole(size, *TUPLES.sizes, "size must be from {} to {}".format(*TUPLES.sizes))
    says = f"{m} members need a whole number n_people from {m} to {MAX_PEOPLE:,}"
    n = _whole(n_people, m, MAX_PEOPLE, says)
    rng = generator_of(random_state)
    times = _whole(
        max_per_person, 1, MAX_PEOPLE, "max_per_person must be a whole number of at least 1"
    )
    rounds = [rng.permutation(n)[: n // m * m].reshape(-1, m) for _ in range(times)]
    return np.unique(np.sort(np.concatenate(rounds), axis=1), axis=0).astype(np.int64)


# ---- which selection to take: the one answer that ``kappa``, ``plan``, ``fit`` and the studio give ----

# A unit's noise grows with its kappa and what is learned with the number of pairs K, so K / kappa decides,
# whatever the epsilon, the columns and the mechanism are.

# What groups of people keep of the gain has not been measured: they are not compared.
SELECTIONS_OF_PAIRS = tuple(name for name, rule in SELECTIONS.items() if rule.people is None)
NEARLY = 0.9


def kappas_of_selections(pairs: NDArray[Any]) -> dict[str, Kappa]:
    """kappa of what each selection keeps of these pairs."""
    return {
        how: kappa(pairs[select_pairs(pairs, how, random_state=0)]) for how in SELECTIONS_OF_PAIRS
    }


def recommended_selection(found: Mapping[str, Kappa]) -> str:
    """The selection that leaves most pairs for the noise of a promise to a person.

    Of those within a tenth of the most, the one that leaves most for the noise of a promise about a
    relationship: it promises the same to a person, and more to a relationship.

    ``found``: of each selection, kappa of the pairs that it keeps.
    """
    most = max(one.n_pairs / one.person for one in found.values())
    near = [name for name, one in found.items() if one.n_pairs / one.person >= NEARLY * most]
    return max(near, key=lambda name: found[name].n_pairs / found[name].relationship)
