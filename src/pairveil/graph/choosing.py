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

The compiled loops behind `choosing` and `thinning`: greedy choices over the list of pairs.

In one file, because numba's cache on disk does not notice changes in other files that a function calls.

Choosing few pairs out of very many: look closely at a share of them only.

Where people have hundreds of pairs each, a matching or a set of paths uses one or two of them. Ordering all
pairs by urgency would then take more memory than all else, so the careful choice is made on a random
share, and one pass over everything adds what still fits: the outcome is maximal all the same.

A pair is in the share with chance PLENTY / (the smaller degree of its two people). So each person keeps
at least PLENTY of hers on average (all of them if she has no more), and the share holds at most
PLENTY * n_people pairs on average. Who is paired with whom is public; labels and features are not seen.

Which selection of pairs to take: the one answer that ``kappa``, ``plan``, ``fit`` and the studio give.

A unit's noise grows with its kappa and what is learned with the number of pairs K, so K / kappa decides,
whatever the epsilon, the columns and the mechanism are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil._compiled import lazy_njit
from pairveil.errors import InputError
from pairveil.graph.grouping import check_size, cut_into_groups
from pairveil.graph.kappa import Kappa, checked_pairs, kappa
from pairveil.graph.selections import DESIGNS, NO_LIMIT, SELECTIONS, selection_named
from pairveil.records.canonical import order_of_ids, ranks, records_of
from pairveil.records.validation import row_blocks

# ---- greedy choices over the list of pairs -------------------------------------------------------


@lazy_njit
def _root(tree, v):  # type: ignore[no-untyped-def]
    """The representative of v's component; halves the way on the way."""
    while tree[v] != v:
        tree[v] = tree[tree[v]]
        v = tree[v]
    return v


@lazy_njit
def fill_up(ends, names, degree, limit, acyclic, tree, taken, more):  # type: ignore[no-untyped-def]
    """Take every pair that fits, in order; how many were added to `more`."""
    count = 0
    for e in range(ends.shape[0]):
        a, b = ends[e, 0], ends[e, 1]
        if degree[a] >= limit or degree[b] >= limit or taken[e]:
            continue
        first, second = _root(tree, names[a]), _root(tree, names[b])
        if acyclic and first == second:
            continue
        tree[first] = second
        degree[a] += 1
        degree[b] += 1
        more[count] = e
        count += 1
    return count


@lazy_njit
def grow_forest(ends, limit, kept, tree):  # type: ignore[no-untyped-def]
    """Add pairs that close no cycle, letting degrees grow to 3, 4, 6, 9, ... until nothing fits."""
    degree = np.zeros(tree.size, dtype=np.int32)
    for e in range(kept.size):
        if kept[e]:
            degree[ends[e, 0]] += 1
            degree[ends[e, 1]] += 1
    allowed = 2
    while allowed < limit:
        allowed = min(limit, max(allowed + 1, allowed * 3 // 2))
        refused = False
        for e in range(kept.size):
            a, b = ends[e, 0], ends[e, 1]
            if kept[e] or _root(tree, a) == _root(tree, b):
                continue
            if degree[a] >= allowed or degree[b] >= allowed:
                refused = True
                continue
            tree[_root(tree, a)] = _root(tree, b)
            kept[e] = True
            degree[a] += 1
            degree[b] += 1
        if not refused:
            break


@lazy_njit
def _incidence(ends, n):  # type: ignore[no-untyped-def]
    """Positions of each person's pairs, by a counting sort; ascending in each list."""
    offsets = np.zeros(n + 1, dtype=np.int32)
    for e in range(ends.shape[0]):
        offsets[ends[e, 0]] += 1
        offsets[ends[e, 1]] += 1
    total = 0
    for v in range(n):
        total += offsets[v]
        offsets[v] = total
    offsets[n] = total
    incident = np.empty(total, dtype=np.int32)
    for e in range(ends.shape[0] - 1, -1, -1):
        for side in range(2):
            v = ends[e, side]
            offsets[v] -= 1
            incident[offsets[v]] = e
    return offsets, incident


@lazy_njit
def _unlink(v, bucket, heads, links):  # type: ignore[no-untyped-def]
    """Take v out of its bucket (a doubly linked list: links[v] = before, after; -1 ends it)."""
    before, after = links[v, 0], links[v, 1]
    if before >= 0:
        links[before, 1] = after
    else:
        heads[bucket[v]] = after
    if after >= 0:
        links[after, 0] = before
    bucket[v] = -1


@lazy_njit
def _link(v, slack, bucket, heads, links):  # type: ignore[no-untyped-def]
    """Put v at the head of a bucket."""
    links[v, 0], links[v, 1] = -1, heads[slack]
    if heads[slack] >= 0:
        links[heads[slack], 0] = v
    heads[slack] = v
    bucket[v] = slack


@lazy_njit
def _lose(v, live, free, bucket, heads, links):  # type: ignore[no-untyped-def]
    """A pair of v died: one choice less, so v may move to a more urgent bucket."""
    live[v] -= 1
    if bucket[v] < 0:
        return
    slack = max(0, live[v] - free[v])
    if slack != bucket[v]:
        _unlink(v, bucket, heads, links)
        _link(v, slack, bucket, heads, links)


@lazy_njit
def _ranked(v, ends, mine, dead, bucket, ranked, rank):  # type: ignore[no-untyped-def]
    """Live pairs of v in `ranked`, those whose partner has the least slack first; how many."""
    count = 0
    for i in range(mine.size):
        e = mine[i]
        if not dead[e]:
            ranked[count] = e
            rank[count] = bucket[ends[e, 0] + ends[e, 1] - v]
            count += 1
    if count > 24:
        ranked[:count] = ranked[:count][np.argsort(rank[:count], kind="mergesort")]
        return count
    for i in range(1, count):  # insertion sort: most lists are short
        e, r = ranked[i], rank[i]
        j = i
        while j > 0 and rank[j - 1] > r:
            ranked[j], rank[j] = ranked[j - 1], rank[j - 1]
            j -= 1
        ranked[j], rank[j] = e, r
    return count


@lazy_njit
def take_thriftily(ends, n, limit, acyclic, kept, tree):  # type: ignore[no-untyped-def]
    """Mark in `kept` a maximal choice with at most `limit` pairs per person, acyclic if asked.

    People are served in order of slack = live pairs - free places (not below 0). Keeping a pair
    leaves the slack of both ends unchanged and a pair that dies lowers it by one, so buckets of
    linked lists hold the order at constant cost per pair. `tree` is the union-find of what is kept.
    """
    offsets, incident = _incidence(ends, n)
    live = offsets[1:] - offsets[:-1]
    longest = live.max()
    free = np.full(n, limit, dtype=np.int32)
    heads = np.full(longest + 1, -1, dtype=np.int32)
    links = np.empty((n, 2), dtype=np.int32)
    bucket = np.empty(n, dtype=np.int32)
    for v in range(n):
        _link(v, max(0, live[v] - limit), bucket, heads, links)
    dead = np.zeros(ends.shape[0], dtype=np.bool_)  # kept, or can no longer be kept
    ranked, rank = np.empty(longest, dtype=np.int32), np.empty(longest, dtype=np.int32)
    slack = 0
    while slack <= longest:
        v = heads[slack]
        if v < 0:
            slack += 1
            continue
        _unlink(v, bucket, heads, links)
        count = _ranked(v, ends, incident[offsets[v] : offsets[v + 1]], dead, bucket, ranked, rank)
        for i in range(count):
            e = ranked[i]
            w = ends[e, 0] + ends[e, 1] - v
            dead[e] = True
            full = free[v] == 0 or free[w] == 0  # w's too: a parallel pair may just have filled it
            if full or (acyclic and _root(tree, v) == _root(tree, w)):
                _lose(w, live, free, bucket, heads, links)
                continue
            kept[e] = True
            tree[_root(tree, v)] = _root(tree, w)
            live[w] -= 1
            free[v] -= 1
            free[w] -= 1
            if free[w] > 0:
                continue
            _unlink(w, bucket, heads, links)
            for j in range(offsets[w], offsets[w + 1]):  # w is full: her other pairs die
                f = incident[j]
                if not dead[f] and ends[f, 0] + ends[f, 1] - w != v:
                    dead[f] = True
                    _lose(ends[f, 0] + ends[f, 1] - w, live, free, bucket, heads, links)
        # Someone may have become more urgent: look again from 0. The lowest slack is at most the
        # degree of the person served, so all these steps together are at most 2K.
        slack = 0


# ---- Choosing few pairs out of very many: look closely at a share of them only -------------------

PLENTY = 16

MANY = 1 << 22  # below, all pairs are looked at: memory is no matter


def share_of_pairs(
    ends: NDArray[Any], n_people: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Ascending positions of a random share of the pairs.

    ``ends``: (K, 2) row numbers, K below 2**30.

    Examples
    --------
    >>> few = np.array([[0, 1], [1, 2], [0, 2]])
    >>> share_of_pairs(few, 3, np.random.default_rng(0)).tolist()
    [0, 1, 2]
    """
    degree = np.zeros(n_people, dtype=np.int32)
    _count(ends, degree)
    expected = _expected(ends, degree, PLENTY)
    found = np.empty(int(expected + 12 * np.sqrt(expected) + 16), dtype=np.int32)
    count = _draw(ends, degree, PLENTY, np.uint64(rng.integers(2**63)), found)
    return found[:count]


def complete(
    ends: NDArray[Any],
    names: NDArray[np.int32],
    chosen: NDArray[np.int64],
    limit: int,
    acyclic: bool,
    tree: NDArray[np.int32],
) -> NDArray[np.int64]:
    """``chosen`` and every further pair that still fits, in ascending order.

    Parameters
    ----------
    ends : (K, 2) array of integers
    names : ndarray of int32
        What `tree` calls each person.
    chosen : ndarray of int64
        Positions chosen so far.
    limit : int
        Pairs a person may have.
    acyclic : bool
        No cycle may close.
    tree : ndarray of int32
        Union-find of what is chosen; updated.

    Examples
    --------
    >>> path = np.array([[0, 1], [1, 2], [0, 2]])
    >>> trees = np.array([0, 0, 2], dtype=np.int32)  # 0 and 1 are joined by the pair chosen
    >>> people = np.arange(3, dtype=np.int32)
    >>> complete(path, people, np.array([0]), 2, True, trees).tolist()
    [0, 1]
    """
    degree = np.zeros(len(names), dtype=np.int32)
    _count(ends[chosen], degree)
    more = np.empty(limit * len(names), dtype=np.int64)
    count = fill_up(ends, names, degree, limit, acyclic, tree, _marked(chosen, len(ends)), more)
    return np.sort(np.concatenate([chosen, more[:count]]))


def _marked(chosen: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    marked = np.zeros(n, dtype=np.bool_)
    marked[chosen] = True
    return marked


@lazy_njit
def _count(ends, degree):  # type: ignore[no-untyped-def]
    """Add each person's number of pairs to `degree`."""
    for e in range(ends.shape[0]):
        degree[ends[e, 0]] += 1
        degree[ends[e, 1]] += 1


@lazy_njit
def _expected(ends, degree, plenty):  # type: ignore[no-untyped-def]
    """How many pairs the share holds on average."""
    total = 0.0
    for e in range(ends.shape[0]):
        total += min(1.0, plenty / min(degree[ends[e, 0]], degree[ends[e, 1]]))
    return total


@lazy_njit
def _draw(ends, degree, plenty, seed, found):  # type: ignore[no-untyped-def]
    """Write the positions of the share into `found` (as many as it holds); how many."""
    count = 0
    for e in range(ends.shape[0]):
        # splitmix64: a good 64-bit hash of the position, so that no list of numbers is kept
        z = seed + np.uint64(e) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        least = min(degree[ends[e, 0]], degree[ends[e, 1]])
        if np.float64(z >> np.uint64(11)) * 2.0**-53 * least < plenty and count < found.size:
            found[count] = e
            count += 1
    return count


# ---- noise per pair grows with kappa / K (docs/theory/graph.md) ----------------------------------

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


# ---- the one answer that ``kappa``, ``plan``, ``fit`` and the studio give ------------------------

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

    Examples
    --------
    >>> import numpy as np
    >>> path = np.array([(i, i + 1) for i in range(9)])
    >>> star = np.array([(0, i) for i in range(1, 9)])
    >>> [recommended_selection(kappas_of_selections(pairs)) for pairs in (path, star)]
    ['paths', 'forest']
    """
    most = max(one.n_pairs / one.person for one in found.values())
    near = [name for name, one in found.items() if one.n_pairs / one.person >= NEARLY * most]
    return max(near, key=lambda name: found[name].n_pairs / found[name].relationship)
