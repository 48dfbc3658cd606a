"""Blocks (biconnected components) per person in one iterative depth-first search.

Removing v splits its component into blocks(v) pieces, and (Hopcroft and Tarjan 1973)

    blocks(v) = [v is not a root of the search] + #{children c of v: low(c) >= disc(v)},

where disc is the order of discovery and low(c) the earliest person that one edge from c's subtree leads to.
Only the count is wanted, so no stack of the edges of open components is kept, and nothing recurses.

Parallel pairs count in the degree. For blocks they make no difference: an edge back to the parent p can lower
low(c) to disc(p) at most, which changes no test. So the search skips *every* edge to the parent;
low(c) == disc(c) then says that {p, c} is a bridge of the graph with parallel pairs merged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairveil.graph.adjacency import Adjacency
from pairveil.graph.lazy_njit import lazy_njit

# Columns of the search record, one row per person in order of discovery (row 0 is unused).
LOW, PARENT, BASE, B = 0, 1, 2, 3


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
    record = np.empty((adjacency.n + 1, 4), dtype=offsets.dtype)
    n_connected = int(_search(offsets, adjacency.neighbours, disc, record))
    largest, second, bridged = (int(x) for x in _summary(record[: n_connected + 1]))
    max_degree = int(_move_b(offsets, record, disc))
    return Correlation(disc, largest, second, bridged, max_degree, n_connected)


@lazy_njit
def _search(offsets, neighbours, disc, record):  # type: ignore[no-untyped-def]
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


@lazy_njit
def _move_b(offsets, record, disc):  # type: ignore[no-untyped-def]
    """Overwrite each person's disc with her b, to save an array; return the largest degree."""
    max_degree = 0
    for v in range(disc.size):
        max_degree = max(max_degree, offsets[v + 1] - offsets[v])
        if disc[v] != 0:
            disc[v] = record[disc[v], B]
    return max_degree
