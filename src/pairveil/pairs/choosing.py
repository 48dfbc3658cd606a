"""Choosing pairs that cost little privacy: noise per pair grows with kappa / K (THEORY 5).

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
``all``       every pair                            of the graph    of the graph
============  ====================================  ==============  ========

`max_degree=k` lowers the person number further: a person's limit is the smaller of k and the kind's
own limit (1 for a matching, 2 for paths, none for forest and all).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.pairs.thinning import MANY, PLENTY, complete, root, share_of_pairs

_NO_LIMIT = 2**31 - 1
_LIMITS = {"matching": 1, "paths": 2, "forest": _NO_LIMIT, "all": _NO_LIMIT}


def select_pairs(
    pairs: Any,
    how: str = "paths",
    max_degree: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> NDArray[np.int64]:
    """Which pairs to keep so that few of them move together.

    Parameters
    ----------
    pairs : (K, 2) array_like of integers, or a PairSet
    how : {"paths", "forest", "matching", "all"}
        See the table of the module. A pair that occurs twice is kept once, except by "all".
    max_degree : int, optional
        Keep at most so many pairs of one person. "forest" is then a forest that may not span.
    random_state : int, Generator or None
        Breaks ties. None draws from the operating system; a number makes the choice reproducible.
        Not a privacy matter: who is paired with whom is public, and so is what is kept.

    Returns
    -------
    ndarray of int64
        Ascending positions in `pairs`.

    Notes
    -----
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
    ends, n_people = _people(pairs)
    if limit == _NO_LIMIT and how == "all":
        return np.arange(len(ends), dtype=np.int64)
    rng = _generator(random_state)
    many = limit <= 2 and len(ends) > max(MANY, 4 * PLENTY * n_people)
    share = share_of_pairs(ends, n_people, rng) if many else None
    # Ties go to what comes first, so a random order of pairs and of people breaks them at random.
    order = rng.permutation(len(ends) if share is None else share).astype(np.int32)
    people = rng.permutation(n_people).astype(np.int32)
    shuffled = people[ends[order]]
    acyclic = how in ("paths", "forest")
    # A forest starts from paths and grows thicker only where it must: low degrees, not stars.
    start = min(limit, 2) if how == "forest" else limit
    kept = np.zeros(len(order), dtype=np.bool_)
    tree = np.arange(n_people, dtype=np.int32)
    _thrifty(shuffled, n_people, start, acyclic, kept, tree)
    if how == "forest":
        _grow_forest(shuffled, limit, kept, tree)
    chosen = np.sort(order[kept]).astype(np.int64)
    if share is None:
        return chosen
    return complete(ends, people, chosen, limit, acyclic, tree)


def design_pairs(
    n_people: int,
    how: str = "paths",
    random_state: int | np.random.Generator | None = None,
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
    people = _generator(random_state).permutation(int(n_people)).astype(np.int64)
    if how == "paths":
        return np.stack([people[:-1], people[1:]], axis=1)
    if how == "forest":
        return np.stack([people[(np.arange(1, n_people) - 1) // 2], people[1:]], axis=1)
    if how == "matching":
        return people[: n_people // 2 * 2].reshape(-1, 2)
    raise InputError("how must be 'paths', 'forest' or 'matching'")


def _limit(how: str, max_degree: int | None) -> int:
    """How many pairs one person may keep."""
    if how not in _LIMITS:
        raise InputError("how must be 'paths', 'forest', 'matching' or 'all'")
    if max_degree is None:
        return _LIMITS[how]
    if isinstance(max_degree, bool) or not isinstance(max_degree, (int, np.integer)):
        raise InputError("max_degree must be a whole number or None")
    if max_degree < 1:
        raise InputError("max_degree must be at least 1")
    return min(_LIMITS[how], int(max_degree))


def _generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """A generator from a seed, or the generator given."""
    if isinstance(random_state, bool) or not (
        random_state is None or isinstance(random_state, (int, np.integer, np.random.Generator))
    ):
        raise InputError("random_state must be None, an integer or a numpy Generator")
    if isinstance(random_state, (int, np.integer)) and random_state < 0:
        raise InputError("random_state must not be negative")
    return np.random.default_rng(random_state)


def _people(pairs: Any) -> tuple[NDArray[np.int32], int]:
    """The pairs as int32 numbers below n, and n; people without pairs may or may not be counted."""
    try:
        ends = np.asarray(getattr(pairs, "pairs", pairs))
    except ValueError:  # ragged lists
        raise InputError("pairs must be a (K, 2) array of integers, one row per pair") from None
    if ends.size == 0:
        raise InputError("there are no pairs to choose from")
    if ends.ndim != 2 or ends.shape[1] != 2 or not np.issubdtype(ends.dtype, np.integer):
        raise InputError("pairs must be a (K, 2) array of integers, one row per pair")
    if len(ends) >= _NO_LIMIT // 2:
        raise InputError("more than 2**30 pairs: choose within parts of the graph")
    if ends.min() < 0:
        raise InputError("a person number in pairs is negative; people count from 0")
    if (ends[:, 0] == ends[:, 1]).any():
        row = int(np.argmax(ends[:, 0] == ends[:, 1]))
        raise InputError(f"pair {row} joins a person with herself; drop such pairs")
    n_people = int(ends.max()) + 1
    if n_people > min(4 * len(ends) + 65_536, _NO_LIMIT):  # sparse numbers: renumber
        known, flat = np.unique(ends, return_inverse=True)
        return flat.reshape(ends.shape).astype(np.int32), len(known)
    return ends.astype(np.int32, copy=False), n_people


@njit(cache=True, nogil=True)
def _grow_forest(ends, limit, kept, tree):  # type: ignore[no-untyped-def]
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
            if kept[e] or root(tree, a) == root(tree, b):
                continue
            if degree[a] >= allowed or degree[b] >= allowed:
                refused = True
                continue
            tree[root(tree, a)] = root(tree, b)
            kept[e] = True
            degree[a] += 1
            degree[b] += 1
        if not refused:
            break


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _link(v, slack, bucket, heads, links):  # type: ignore[no-untyped-def]
    """Put v at the head of a bucket."""
    links[v, 0], links[v, 1] = -1, heads[slack]
    if heads[slack] >= 0:
        links[heads[slack], 0] = v
    heads[slack] = v
    bucket[v] = slack


@njit(cache=True, nogil=True)
def _lose(v, live, free, bucket, heads, links):  # type: ignore[no-untyped-def]
    """A pair of v died: one choice less, so v may move to a more urgent bucket."""
    live[v] -= 1
    if bucket[v] < 0:
        return
    slack = max(0, live[v] - free[v])
    if slack != bucket[v]:
        _unlink(v, bucket, heads, links)
        _link(v, slack, bucket, heads, links)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _thrifty(ends, n, limit, acyclic, kept, tree):  # type: ignore[no-untyped-def]
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
            if full or (acyclic and root(tree, v) == root(tree, w)):
                _lose(w, live, free, bucket, heads, links)
                continue
            kept[e] = True
            tree[root(tree, v)] = root(tree, w)
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
