"""The compiled loops of the graph: neighbour lists, blocks, greedy choices.

In one file, because numba's cache on disk does not notice changes in other files that a function calls.
At 10^8 pairs memory is what costs: each array exists once, and a counting sort needs no scratch array.
"""

from __future__ import annotations

import numpy as np

from pairveil._compiled import lazy_njit

# ---- neighbour lists, by a counting sort ---------------------------------------------------------


@lazy_njit
def count_pairs(pairs, counts):  # type: ignore[no-untyped-def]
    """Add each person's number of pairs to her place in `counts`."""
    for row in range(pairs.shape[0]):
        counts[pairs[row, 0]] += 1
        counts[pairs[row, 1]] += 1


@lazy_njit
def fill_lists(pairs, offsets, neighbours):  # type: ignore[no-untyped-def]
    """Fill lists of neighbours, and `offsets` (zeros on entry) with where each starts.

    Lists are filled from their ends backwards: offsets[v] is the end of what is still free of v's list, and
    the start when every pair is placed, so that no cursor array is needed.
    """
    count_pairs(pairs, offsets)
    total = 0
    for v in range(offsets.size):
        total += offsets[v]
        offsets[v] = total
    for row in range(pairs.shape[0]):
        for side in range(2):
            v = pairs[row, side]
            offsets[v] -= 1
            neighbours[offsets[v]] = pairs[row, 1 - side]


@lazy_njit
def sort_lists(offsets, neighbours):  # type: ignore[no-untyped-def]
    """Sort each list in place; return the longest run of one neighbour (the multiplicity)."""
    longest = 0
    for v in range(offsets.size - 1):
        start, end = offsets[v], offsets[v + 1]
        if end - start > 24:
            neighbours[start:end].sort()
        else:  # insertion sort: most lists are short and lie in one cache line
            for i in range(start + 1, end):
                item = neighbours[i]
                j = i
                while j > start and neighbours[j - 1] > item:
                    neighbours[j] = neighbours[j - 1]
                    j -= 1
                neighbours[j] = item
        run = 0
        for i in range(start, end):
            run = run + 1 if i > start and neighbours[i] == neighbours[i - 1] else 1
            longest = max(longest, run)
    return longest


# ---- blocks (biconnected components) per person, in one iterative depth-first search -------------

# Removing v splits its component into blocks(v) pieces, and (Hopcroft and Tarjan 1973)
#
#     blocks(v) = [v is not a root of the search] + #{children c of v: low(c) >= disc(v)},
#
# where disc is the order of discovery and low(c) the earliest person that one edge from c's subtree leads to.
# Only the count is wanted, so no stack of the edges of open components is kept, and nothing recurses.
#
# Parallel pairs count in the degree. For blocks they make no difference: an edge back to the parent p can
# lower low(c) to disc(p) at most, which changes no test. So the search skips *every* edge to the parent;
# low(c) == disc(c) then says that {p, c} is a bridge of the graph with parallel pairs merged.

# Columns of the search record, one row per person in order of discovery (row 0 is unused).
LOW, PARENT, BASE, B = 0, 1, 2, 3


@lazy_njit
def search_blocks(offsets, neighbours, disc, record):  # type: ignore[no-untyped-def]
    """Fill disc (zeros on entry) and the record; return how many people were found.

    Written against cache misses, which are the whole cost on a large graph. A list is read once, on
    arrival: who has been seen by then is an ancestor (the graph is undirected) and lowers `low`; the
    others are put on `pending`. On the way back only `pending` and the record are read, both in
    order, and a bitmap tells who has been seen since; she is a descendant and needs no more.
    """
    n = offsets.size - 1
    seen = np.zeros(n // 8 + 1, dtype=np.uint8)
    pending = np.empty(neighbours.size // 2 + 1, dtype=np.int32)  # a pair enters from one end only
    clock, top = 0, 0
    for root in range(n):
        if disc[root] != 0 or offsets[root] == offsets[root + 1]:
            continue
        v, up = root, 0
        while True:
            clock += 1  # arrive at v
            here = low = clock
            disc[v] = here
            seen[v >> 3] |= np.uint8(1 << (v & 7))
            record[here, PARENT], record[here, BASE] = up, top
            # A root's block test counts one block too many: no block leads up from it.
            record[here, B] = offsets[v + 1] - offsets[v] + (up == 0)
            for at in range(offsets[v], offsets[v + 1]):
                w = neighbours[at]
                if not seen[w >> 3] >> (w & 7) & 1:
                    pending[top] = w
                    top += 1
                elif disc[w] < low and disc[w] != up:
                    low = disc[w]
            record[here, LOW] = low
            v = -1
            while v < 0 and here > 0:  # find the next person to arrive at, going back up if need be
                if top > record[here, BASE]:
                    top -= 1
                    w = pending[top]
                    if not seen[w >> 3] >> (w & 7) & 1:
                        v, up = w, here
                    continue
                below, here = record[here, LOW], record[here, PARENT]
                if below >= here:
                    record[here, B] -= 1  # at a root's own end this is row 0, which nobody reads
                elif below < record[here, LOW]:
                    record[here, LOW] = below
            if here == 0:
                break
    return clock


@lazy_njit
def largest_b(record):  # type: ignore[no-untyped-def]
    """The two largest b, and the largest min(b) over two-person blocks."""
    largest, second, bridged = 0, 0, 0
    for here in range(1, record.shape[0]):
        b, up = record[here, B], record[here, PARENT]
        if b > largest:
            largest, second = b, largest
        elif b > second:
            second = b
        if up > 0 and record[here, LOW] == here:
            bridged = max(bridged, min(b, record[up, B]))
    return largest, second, bridged


@lazy_njit
def move_b(offsets, record, disc):  # type: ignore[no-untyped-def]
    """Overwrite each person's disc with her b, to save an array; return the largest degree."""
    max_degree = 0
    for v in range(disc.size):
        max_degree = max(max_degree, offsets[v + 1] - offsets[v])
        if disc[v] != 0:
            disc[v] = record[disc[v], B]
    return max_degree


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
    count_pairs(ends[kept], degree)
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
    count_pairs(ends, offsets)
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
    # Shell sort, insertion sort on short lists: np.argsort takes two seconds to compile. Pairs of equal rank
    # stay in the order of their numbers.
    gap = 1
    while 24 * gap < count:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            e, r = ranked[i], rank[i]
            j = i
            while j >= gap and (rank[j - gap] > r or (rank[j - gap] == r and ranked[j - gap] > e)):
                ranked[j], rank[j] = ranked[j - gap], rank[j - gap]
                j -= gap
            ranked[j], rank[j] = e, r
        gap //= 3
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
    longest = 0
    for v in range(n):  # np.max takes half a second to compile
        longest = max(longest, live[v])
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


@lazy_njit
def expected_share(ends, degree, plenty):  # type: ignore[no-untyped-def]
    """How many pairs the share holds on average."""
    total = 0.0
    for e in range(ends.shape[0]):
        total += min(1.0, plenty / min(degree[ends[e, 0]], degree[ends[e, 1]]))
    return total


@lazy_njit
def draw_share(ends, degree, plenty, seed, found):  # type: ignore[no-untyped-def]
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


# ---- the same for tuples, and clusters of people -------------------------------------------------


@lazy_njit
def take_tuples(members, order, limit, acyclic, n_people, kept):  # type: ignore[no-untyped-def]
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
            roots[i] = _root(tree, v)
            if acyclic:
                for j in range(i):
                    if roots[j] == roots[i]:
                        fits = False
            if not fits:
                break
        if not fits:
            continue
        kept[at] = True
        for i in range(m):
            room[members[at, i]] -= 1
            tree[roots[i]] = roots[0]


@lazy_njit
def grow_groups(neighbours, starts, order, size):  # type: ignore[no-untyped-def]
    """Group of each person; everyone's pairs are walked when she joins, and when she is a candidate's tie."""
    n = starts.size - 1
    group = np.full(n, -1, dtype=np.int64)
    left = starts[1:] - starts[:-1]  # pairs with people who are in no group yet
    inside = np.zeros(n, dtype=np.int64)  # pairs with the growing group
    near = np.empty(n, dtype=np.int64)
    count = 0
    for first in order:
        if group[first] >= 0 or left[first] == 0:
            continue
        found, joining, members = 0, first, 0
        while joining >= 0:
            group[joining] = count
            members += 1
            for place in range(starts[joining], starts[joining + 1]):
                other = neighbours[place]
                left[other] -= 1
                if group[other] < 0:
                    if inside[other] == 0:
                        near[found] = other
                        found += 1
                    inside[other] += 1
            joining = -1
            if members < size:
                best = 0
                for c in range(found):
                    other = near[c]
                    if group[other] >= 0:
                        continue
                    tied = inside[other] == best and joining >= 0 and left[other] < left[joining]
                    if inside[other] > best or tied:
                        joining, best = other, inside[other]
        for c in range(found):
            inside[near[c]] = 0
        count += 1
    return group
