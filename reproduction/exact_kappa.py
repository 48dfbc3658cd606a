"""The paper's kappa, exactly, for small graphs: every target, every choice of paths.

The paper's definition (Eq. for kappa) is

    kappa = max over s != t of |P_st| + min(c_s, c_t),

with P_st a maximum set of edge-disjoint s-t paths and c_v counted in H = G minus the paths' edges:
c_v(H) = degree_H(v) - number of components of H - v adjacent to v. It depends on which paths are
chosen, so it is made definite by taking the maximum over choices. That takes exponential time;
`pairveil.graph.kappa.kappa` gives the bound b2 >= kappa in linear time.

Nothing here uses b2 or blocks: this is the independent side of the tests of the chain
lam_max <= exact <= b2 <= kappa' <= max degree.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from pairveil.errors import InputError
from pairveil.graph.kappa import checked_pairs, compacted

_MAX_PAIRS = 18  # beyond, the number of path choices can run into the millions

Edges = list[tuple[int, int]]


def exact_kappa(pairs: Any) -> int:
    """The paper's kappa by enumeration, the maximum over choices of edge-disjoint paths.

    Parameters
    ----------
    pairs : (K, 2) array_like of integers, or a PairSet
        At most 18 pairs; parallel pairs count as parallel edges.

    Returns
    -------
    int

    Examples
    --------
    The wheel with five spokes: the paper's bound kappa' is 5, the exact value 3.

    >>> wheel = [(0, i) for i in range(1, 6)] + [(i, i % 5 + 1) for i in range(1, 6)]
    >>> exact_kappa(wheel)
    3
    """
    people, renumbered = compacted(checked_pairs(pairs))
    if len(renumbered) > _MAX_PAIRS:
        raise InputError(
            f"exact_kappa enumerates path choices and takes at most {_MAX_PAIRS} pairs, got "
            f"{len(renumbered)}; kappa(pairs).relationship is an upper bound for any size"
        )
    edges: Edges = [(int(a), int(b)) for a, b in renumbered]
    best = 0
    for s, t in combinations(range(len(people)), 2):
        for n_paths, used in _maximum_path_sets(edges, s, t):
            rest = [edge for i, edge in enumerate(edges) if not used >> i & 1]
            best = max(best, n_paths + min(_cycle_edges(rest, s), _cycle_edges(rest, t)))
    return best


def _maximum_path_sets(edges: Edges, s: int, t: int) -> Iterator[tuple[int, int]]:
    """The size of a maximum set of edge-disjoint s-t paths, with each union of edges (bit mask).

    Sets are grown a path at a time, all of them side by side; when none can grow, the last
    generation holds exactly the maximum ones (every subset of a maximum set was on the way).
    """
    generation, size = {0}, 0
    while True:
        grown = {used | path for used in generation for path in _simple_paths(edges, s, t, used)}
        if not grown:
            break
        generation, size = grown, size + 1
    for used in generation:
        yield size, used


def _simple_paths(edges: Edges, s: int, t: int, used: int) -> Iterator[int]:
    """Each simple s-t path without the used edges, as a bit mask of edges."""
    stack = [(s, 1 << s, 0)]
    while stack:
        v, seen, path = stack.pop()
        if v == t:
            yield path
            continue
        for i, (a, b) in enumerate(edges):
            if v in (a, b) and not (used | path) >> i & 1:
                w = a + b - v
                if not seen >> w & 1:
                    stack.append((w, seen | 1 << w, path | 1 << i))


def _cycle_edges(edges: Edges, v: int) -> int:
    """c_v: edges at v that must go so that v is on no cycle (one per component of H - v stays)."""
    degree = sum(v in edge for edge in edges)
    neighbours = {a + b - v for a, b in edges if v in (a, b)}
    components = 0
    while neighbours:
        components += 1
        reached = {neighbours.pop()}
        frontier = list(reached)
        while frontier:
            u = frontier.pop()
            for a, b in edges:
                if u in (a, b) and v not in (a, b) and a + b - u not in reached:
                    reached.add(a + b - u)
                    frontier.append(a + b - u)
        neighbours -= reached
    return degree - components
