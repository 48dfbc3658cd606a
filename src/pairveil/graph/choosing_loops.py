"""The compiled loops behind `choosing` and `thinning`: greedy choices over the list of pairs.

In one file, because numba's cache on disk does not notice changes in other files that a function calls.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _root(tree, v):  # type: ignore[no-untyped-def]
    """The representative of v's component; halves the way on the way."""
    while tree[v] != v:
        tree[v] = tree[tree[v]]
        v = tree[v]
    return v


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
