"""The paper's Fig. 3 for one target: which pairs an attacker must miss, and how many.

Pairs must be missing until s and t are in different components and one of them, the cheaper end v, is on no
cycle. That takes exactly b(v) = degree - blocks + 1 pairs (one less when s and t are not connected), and the
largest such count over all targets is the second largest b, the relationship-level kappa. The proof, and why
the paper's own count can be too small, is in docs/theory/graph.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from pairveil.errors import InputError
from pairveil.graph.adjacency import checked_pairs, compacted


@dataclass(frozen=True)
class KeyPairs:
    """What stands between an attacker and one target.

    Attributes
    ----------
    paths : tuple of tuples of int
        A maximum set of edge-disjoint paths from s to t, each as positions in `pairs`, in order.
    cut : tuple of int
        As many pairs whose absence alone separates s from t (Menger): hides the label.
    key : tuple of int
        Pairs at `endpoint` that must be missing to separate s from t and leave `endpoint` on no
        cycle; no smaller set does it. Starts with the pairs towards the other end, then the
        cycle-breaking ones.
    endpoint : int
        The cheaper of s and t (s when equal).
    count : int
        ``len(key)``.
    paper_count : int
        The paper's |P_st| + min(c_s, c_t) for these paths; at most `count`.
    """

    paths: tuple[tuple[int, ...], ...]
    cut: tuple[int, ...]
    key: tuple[int, ...]
    endpoint: int
    count: int
    paper_count: int


def key_pairs(pairs: Any, s: int, t: int) -> KeyPairs:
    """The edge-disjoint paths between two people and the pairs that must be missing.

    Parameters
    ----------
    pairs : (K, 2) array_like of integers, or a PairSet
    s, t : int
        The target; both must occur in `pairs`. They need not be a pair.

    Returns
    -------
    KeyPairs

    Examples
    --------
    The paper's Fig. 3. Two edge-disjoint paths join s and t; the key pairs are st and sc, which
    carry them, and one pair (sa or bs) of the cycle s, a, b: three in all.

    >>> names = "st sc ce et cu ut sa ab bs".split()
    >>> fig3 = [("stceuab".index(a), "stceuab".index(b)) for a, b in names]
    >>> found = key_pairs(fig3, s=0, t=1)
    >>> [names[j] for j in sorted(found.cut)]
    ['st', 'sc']
    >>> [names[j] for j in found.key], found.count, len(found.paths)
    (['st', 'sc', 'bs'], 3, 2)
    """
    array = checked_pairs(pairs)
    people, ends = compacted(array)
    s_row, t_row = _row_of(people, s, "s"), _row_of(people, t, "t")
    if s_row == t_row:
        raise InputError("s and t are the same person; a target has two people")
    capacity = _symmetric(ends, len(people))
    flow = csgraph.maximum_flow(capacity, s_row, t_row).flow
    paths = _paths(flow, _positions(ends), s_row, t_row)
    at_s = _separating(ends, len(people), s_row, t_row)
    at_t = _separating(ends, len(people), t_row, s_row)
    key, endpoint = (at_s, s) if len(at_s) <= len(at_t) else (at_t, t)
    rest = np.ones(len(ends), dtype=bool)
    rest[[j for path in paths for j in path]] = False
    cycle = [len(_cycle_breaking(ends[rest], len(people), v)) for v in (s_row, t_row)]
    return KeyPairs(
        paths=paths,
        cut=_cut(capacity, flow, ends, s_row),
        key=tuple(int(j) for j in key),
        endpoint=int(endpoint),
        count=len(key),
        paper_count=len(paths) + min(cycle),
    )


def _row_of(people: NDArray[np.signedinteger], person: int, name: str) -> int:
    """Where a person is among those who occur in pairs."""
    row = int(np.searchsorted(people, person))
    if row == len(people) or people[row] != person:
        raise InputError(f"{name} does not occur in any pair")
    return row


def _symmetric(ends: NDArray[np.int32], n: int) -> sparse.csr_matrix:
    """Adjacency matrix whose entries are multiplicities."""
    one = np.ones(2 * len(ends), dtype=np.int32)
    rows, columns = np.concatenate([ends, ends[:, ::-1]]).T
    return sparse.csr_matrix((one, (rows, columns)), shape=(n, n))


def _positions(ends: NDArray[np.int32]) -> dict[tuple[int, int], list[int]]:
    """The positions of the (possibly parallel) pairs between two people, lower number first."""
    found: dict[tuple[int, int], list[int]] = {}
    for j, (a, b) in enumerate(ends.tolist()):
        found.setdefault((min(a, b), max(a, b)), []).append(j)
    return found


def _paths(
    flow: sparse.csr_matrix, positions: dict[tuple[int, int], list[int]], s: int, t: int
) -> tuple[tuple[int, ...], ...]:
    """Take the flow apart into simple paths of pair positions."""
    out: dict[int, list[int]] = {}
    carried = flow.tocoo()
    for a, b, units in zip(carried.row, carried.col, carried.data, strict=True):
        if units > 0:
            out.setdefault(int(a), []).extend([int(b)] * int(units))
    paths = []
    while out.get(s):
        walk, on_walk = [s], {s}
        while walk[-1] != t:
            w = out[walk[-1]].pop()
            # A flow may contain circulations: when the walk meets itself, forget the loop.
            while w in on_walk:
                on_walk.discard(walk.pop())
            on_walk.add(w)
            walk.append(w)
        steps = pairwise(walk)
        paths.append(tuple(positions[min(a, b), max(a, b)].pop() for a, b in steps))
    return tuple(sorted(paths, key=len))


def _cut(
    capacity: sparse.csr_matrix, flow: sparse.csr_matrix, ends: NDArray[np.int32], s: int
) -> tuple[int, ...]:
    """Pairs from what the residual graph reaches from s to the rest: a minimum cut."""
    residual = capacity - flow
    residual.eliminate_zeros()
    reached = np.zeros(capacity.shape[0], dtype=bool)
    reached[csgraph.breadth_first_order(residual, s, return_predecessors=False)] = True
    return tuple(np.flatnonzero(reached[ends[:, 0]] != reached[ends[:, 1]]).tolist())


def _components_without(
    ends: NDArray[np.int32], n: int, v: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """v's pairs (positions), the component of G - v each leads to, and every person's component."""
    mine = (ends == v).any(axis=1)
    _, component = csgraph.connected_components(_symmetric(ends[~mine], n), directed=False)
    positions = np.flatnonzero(mine)
    partner = ends[positions].sum(axis=1) - v
    return positions, component[partner].astype(np.int64), component


def _cycle_breaking(ends: NDArray[np.int32], n: int, v: int) -> NDArray[np.int64]:
    """v's pairs but the first into each component of G - v."""
    positions, leads_to, _ = _components_without(ends, n, v)
    _, first = np.unique(leads_to, return_index=True)
    return np.delete(positions, first)


def _separating(ends: NDArray[np.int32], n: int, v: int, other: int) -> NDArray[np.int64]:
    """A smallest set of pairs that cuts v from `other` and leaves v on no cycle (b(v) pairs)."""
    positions, leads_to, component = _components_without(ends, n, v)
    towards = leads_to == component[other]
    _, first = np.unique(leads_to, return_index=True)
    spare = np.ones(len(positions), dtype=bool)
    spare[first] = False
    return np.concatenate([positions[towards], positions[spare & ~towards]])
