"""Blocks (biconnected components) per person in one iterative depth-first search.

Removing v splits its component into blocks(v) parts, and (Hopcroft and Tarjan 1973)

    blocks(v) = [v is not a root of the search] + #{children c of v: low(c) >= disc(v)},

where disc is the order of discovery and low(c) the earliest person that c's subtree reaches by one
edge. Only the count is wanted, so no stack of edges is kept; the way back is the parent pointer, so
the depth of the search costs no stack either (a path of 10^6 people is fine).

Parallel pairs are kept as parallel edges: they count in the degree. For blocks they make no
difference: an edge back to the parent p can lower low(c) to disc(p) at most, which leaves the test
low(c) >= disc(p) and every low further up as they were. So the search may skip *every* edge to the
parent, not one; low(c) == disc(c) then says that {p, c} is a block by itself, a bridge of the graph
with parallel pairs merged, which is what the intransitive number needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pairveil.graph.adjacency import Adjacency

# Columns of the search record, one row per person in order of discovery (row 0 is unused). The search
# goes down and back up along neighbouring rows, so this order, not that of the people, spares it
# most cache misses; only `disc` is read at random.
LOW, PARENT, AT, END, B = 0, 1, 2, 3, 4


@dataclass(frozen=True)
class Correlation:
    """What one search says about every person and about the whole graph.

    Attributes
    ----------
    b : ndarray of int32, shape (n,)
        degree - blocks + 1; 0 for a person without pairs.
    largest, second, bridged : int
        The two largest b, and the largest min(b(p), b(c)) over blocks {p, c} of two people (0 when
        there is none).
    max_degree, n_connected : int
        The largest degree, and how many people have a pair.
    """

    b: NDArray[np.int32]
    largest: int
    second: int
    bridged: int
    max_degree: int
    n_connected: int


def correlate(adjacency: Adjacency) -> Correlation:
    """Run the search over all components.

    Examples
    --------
    The bowtie: person 0 is in two triangles, degree 4 and two blocks.

    >>> from pairveil.graph.adjacency import build_adjacency
    >>> bowtie = [(0, 1), (1, 2), (0, 2), (0, 3), (3, 4), (0, 4)]
    >>> found = correlate(build_adjacency(bowtie))
    >>> found.b.tolist(), found.largest, found.second
    ([3, 2, 2, 2, 2], 3, 2)
    """
    offsets = adjacency.offsets
    disc = np.zeros(adjacency.n, dtype=np.int32)
    record = np.empty((adjacency.n + 1, 5), dtype=offsets.dtype)
    n_connected = int(_search(offsets, adjacency.neighbours, disc, record))
    largest, second, bridged = (int(x) for x in _summary(record[: n_connected + 1]))
    max_degree = int(_move_b(offsets, record, disc))
    return Correlation(disc, largest, second, bridged, max_degree, n_connected)


@njit(cache=True, nogil=True)
def _search(offsets, neighbours, disc, record):  # type: ignore[no-untyped-def]
    """Fill disc (zeros on entry: not seen) and the record; return how many people were found."""
    clock = 0
    for root in range(offsets.size - 1):
        if disc[root] != 0 or offsets[root] == offsets[root + 1]:
            continue
        clock += 1
        here, up, low = clock, 0, clock
        at, end = offsets[root], offsets[root + 1]
        disc[root] = here
        record[here, PARENT], record[here, END] = up, end
        record[here, B] = end - at + 1  # a root's block test counts one block too many
        while True:
            if at < end:
                w = neighbours[at]
                at += 1
                seen = disc[w]
                if seen == 0:  # go down to w
                    record[here, LOW], record[here, AT] = low, at
                    clock += 1
                    here, up, low = clock, here, clock
                    at, end = offsets[w], offsets[w + 1]
                    disc[w] = here
                    record[here, PARENT], record[here, END] = up, end
                    record[here, B] = end - at
                elif seen < low and seen != up:
                    low = seen
                continue
            record[here, LOW] = low
            if up == 0:
                break
            below, here = low, up  # go back up
            low, up = record[here, LOW], record[here, PARENT]
            at, end = record[here, AT], record[here, END]
            if below >= here:
                record[here, B] -= 1
            elif below < low:
                low = below
    return clock


@njit(cache=True, nogil=True)
def _summary(record):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
def _move_b(offsets, record, disc):  # type: ignore[no-untyped-def]
    """Overwrite each person's disc with her b, to save an array; return the largest degree."""
    max_degree = 0
    for v in range(disc.size):
        max_degree = max(max_degree, offsets[v + 1] - offsets[v])
        if disc[v] != 0:
            disc[v] = record[disc[v], B]
    return max_degree
