"""The paper's graph: its kappa exactly, its Appendix A checked on every small graph, and its Fig. 3.

The paper's definition is

    kappa = max over s != t of |P_st| + min(c_s, c_t),

with P_st a maximum set of edge-disjoint s-t paths and c_v counted in H = G minus the paths' edges:
c_v(H) = degree_H(v) - number of components of H - v adjacent to v. It depends on which paths are
chosen, so `exact_kappa` makes it definite by the maximum over choices, in exponential time;
`pairveil.graph.kappa.kappa` gives the bound b2 >= kappa in linear time. `exact_kappa` uses neither b2 nor
blocks: it is the independent side of the tests of lam_max <= exact <= b2 <= kappa' <= max degree.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.audit.attack import key_pairs
from pairveil.errors import InputError
from pairveil.graph.kappa import checked_pairs, compacted, kappa
from reproduction.verdicts import Finding

_MAX_PAIRS = 18  # beyond, the number of path choices can run into the millions

Edges = list[tuple[int, int]]


def exact_kappa(pairs: Any) -> int:
    """The paper's kappa by enumeration, the maximum over choices of edge-disjoint paths (at most 18 pairs).

    Examples
    --------
    The wheel with five spokes: the paper's bound kappa' is 5, the exact value 3.

    >>> wheel = [(0, i) for i in range(1, 6)] + [(i, i % 5 + 1) for i in range(1, 6)]
    >>> exact_kappa(wheel)
    3
    """
    _, renumbered = compacted(checked_pairs(pairs))
    if len(renumbered) > _MAX_PAIRS:
        raise InputError(
            f"exact_kappa enumerates path choices and takes at most {_MAX_PAIRS} pairs, got "
            f"{len(renumbered)}; kappa(pairs).relationship is an upper bound for any size"
        )
    edges: Edges = [(int(a), int(b)) for a, b in renumbered]
    return max(n + min(c, d) for one in path_choices(edges).values() for n, c, d in one)


def path_choices(edges: Edges) -> dict[tuple[int, int], set[tuple[int, int, int]]]:
    """Of each couple s, t: (|P_st|, c_s, c_t) under every choice of a maximum set of paths."""
    found: dict[tuple[int, int], set[tuple[int, int, int]]] = {}
    for s, t in combinations(sorted({v for edge in edges for v in edge}), 2):
        for n_paths, used in _maximum_path_sets(edges, s, t):
            rest = [edge for i, edge in enumerate(edges) if not used >> i & 1]
            one = (n_paths, _cycle_edges(rest, s), _cycle_edges(rest, t))
            found.setdefault((s, t), set()).add(one)
    return found


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


def greedy_kappa(pairs: Any) -> int:
    """Appendix A's greedy search: of two connected people with the largest sum of bounds, the smaller
    bound.
    """
    ends = checked_pairs(pairs)
    bound = kappa(pairs).per_person[ends]
    largest = bound[bound.sum(axis=1) == bound.sum(axis=1).max()]
    return int(largest.min(axis=1).max())


class _Sweep(NamedTuple):
    graphs: int
    targets: int
    above: int  # |P| + min(c) > b(s)
    equal_but_c_differ: int
    c_equal_but_strict: int
    kappa_above_bound: int
    bound_above_degree: int
    bound_not_tight: int
    greedy_below: int
    greedy_above: int


@lru_cache(maxsize=1)
def small_graphs() -> list[Edges]:
    """All connected graphs on up to four people and the connected ones of 60 on five to seven."""
    graphs = []
    for n in (2, 3, 4):
        every = list(itertools.combinations(range(n), 2))
        for size in range(n - 1, len(every) + 1):
            graphs += [list(c) for c in itertools.combinations(every, size)]
    rng = np.random.default_rng(3)
    for _ in range(60):
        n = int(rng.integers(5, 8))
        every = list(itertools.combinations(range(n), 2))
        keep = rng.permutation(len(every))[: int(rng.integers(n - 1, min(11, len(every))))]
        graphs.append([every[i] for i in keep])
    return [g for g in graphs if _connected(g)]


@lru_cache(maxsize=1)
def _sweep() -> _Sweep:
    graphs = small_graphs()
    counts = np.zeros(4, dtype=int)
    above = wide = loose = low = high = 0
    for g in graphs:
        found, exact, greedy = kappa(g), exact_kappa(g), greedy_kappa(g)
        low += greedy < exact
        high += greedy > exact
        above += exact > found.paper_bound
        wide += found.paper_bound > found.person
        loose += found.paper_bound > exact
        counts += sum(targets_of(g).values())
    targets, over, equal, strict = counts.tolist()
    return _Sweep(len(graphs), targets, over, equal, strict, above, wide, loose, low, high)


def targets_of(edges: Edges) -> dict[tuple[int, int], NDArray[np.int64]]:
    """What each ordered couple of a graph says of Proposition 1 (`_target`)."""
    bound = kappa(edges).per_person
    people = sorted({v for edge in edges for v in edge})
    return {
        (s, t): _target(edges, s, t, int(bound[s])) for s, t in itertools.permutations(people, 2)
    }


def _connected(edges: list[tuple[int, int]]) -> bool:
    people = {v for edge in edges for v in edge}
    reached = {next(iter(people))}
    for _ in people:
        reached |= {v for edge in edges for v in edge if reached & set(edge)}
    return reached == people


def _target(edges: list[tuple[int, int]], s: int, t: int, b: int) -> NDArray[np.int64]:
    """One target's contribution to the sweep: counted, above, equal with c apart, strict with c equal.

    c_v in G without the paths' pairs is b(v) - 1 there (0 for someone left without pairs).
    """
    paths = key_pairs(edges, s, t).paths
    used = {j for path in paths for j in path}
    rest = [edge for j, edge in enumerate(edges) if j not in used]
    left = kappa(rest).per_person if rest else np.zeros(0, dtype=np.int32)
    c_s, c_t = (max(0, int(left[v]) - 1) if v < len(left) else 0 for v in (s, t))
    total = len(paths) + min(c_s, c_t)
    return np.array([1, total > b, total == b and c_s != c_t, total < b and c_s == c_t], dtype=int)


def proposition_1() -> Finding:
    """|P_st| + min(c_s, c_t) <= De(s) - Co+(s)."""
    s = _sweep()
    return Finding(
        f"{s.above} of {s.targets:,} targets in {s.graphs} graphs break it",
        s.above == 0,
    )


def proposition_1_equality() -> Finding:
    """'Equality holds if and only if c_s = c_t'."""
    s = _sweep()
    return Finding(
        f"of {s.targets:,} targets {s.equal_but_c_differ} have equality with c_s != c_t, "
        f"{s.c_equal_but_strict} c_s = c_t without equality",
        s.equal_but_c_differ + s.c_equal_but_strict == 0,
    )


def intransitive_count() -> Finding:
    """c_s = De(s) - Co+(s) - 1 over the entire graph, against the fewest pairs of s that must go."""
    people = [(g, v) for g in small_graphs() for v in sorted({v for edge in g for v in edge})]
    off = sum(_fewest_off_cycles(g, v) != kappa(g).per_person[v] - 1 for g, v in people)
    return Finding(
        f"{off} of {len(people)} people in {len(small_graphs())} graphs differ", off == 0
    )


def _fewest_off_cycles(edges: Edges, v: int) -> int:
    """The fewest pairs of v without which v is on no cycle, by trying all."""

    def on_cycle(left: Edges) -> bool:
        others = ([f for f in left if f != edge] for edge in left if v in edge)
        ends = [edge for edge in left if v in edge]
        return any(
            any(_simple_paths(rest, *edge, 0)) for rest, edge in zip(others, ends, strict=True)
        )

    mine = [edge for edge in edges if v in edge]
    for n in range(len(mine)):
        for gone in combinations(mine, n):
            if not on_cycle([edge for edge in edges if edge not in gone]):
                return n
    return len(mine)


def kappa_prime() -> Finding:
    """kappa' bounds kappa from above."""
    s = _sweep()
    return Finding(
        f"exact kappa exceeds it in {s.kappa_above_bound} of {s.graphs} graphs and is smaller in "
        f"{s.bound_not_tight}",
        s.kappa_above_bound == 0,
    )


def greedy_search() -> Finding:
    """'One can greedily search two connected nodes having the maximum sum ... to force kappa' = kappa'."""
    s = _sweep()
    return Finding(
        f"of {s.graphs} graphs it gives less than kappa in {s.greedy_below} and more in {s.greedy_above}",
        s.greedy_below + s.greedy_above == 0,
    )


def search_cost() -> Finding:
    """kappa' by removing each person in turn takes O(|V| (|V| + |E|)) steps."""
    shares = []
    for n in (50, 100, 200, 400):
        rng = np.random.default_rng(n)
        ends = rng.integers(n, size=(3 * n, 2))
        pairs = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
        bound, steps = _by_removal(pairs, n)
        assert bound == kappa(pairs).paper_bound
        shares.append(steps / (n * (n + len(pairs))))
    return Finding(
        f"{', '.join(f'{share:.2f}' for share in shares)} V(V + E) steps at V = 50 to 400 (one pass over "
        "blocks takes V + E)",
        max(shares) <= 1.1 * shares[0],
    )


def _by_removal(pairs: NDArray[np.int64], n: int) -> tuple[int, int]:
    """kappa' as Appendix A finds it, and the people and pairs looked at on the way."""
    near: list[list[int]] = [[] for _ in range(n)]
    for a, b in pairs.tolist():
        near[a].append(b)
        near[b].append(a)
    steps = 0

    def components(without: int) -> int:
        nonlocal steps
        seen, count = {without}, 0
        for root in range(n):
            if root in seen:
                continue
            count += 1
            seen.add(root)
            stack = [root]
            while stack:
                v = stack.pop()
                steps += 1 + len(near[v])
                for w in near[v]:
                    if w not in seen:
                        seen.add(w)
                        stack.append(w)
        return count

    whole = components(-1)
    gained = [components(v) - whole if near[v] else -1 for v in range(n)]
    return max(len(near[v]) - gained[v] for v in range(n) if near[v]), steps


def kappa_below_degree() -> Finding:
    """DPP never needs more than Node DP."""
    s = _sweep()
    return Finding(
        f"kappa' exceeds the largest degree in {s.bound_above_degree} of {s.graphs} graphs",
        s.bound_above_degree == 0,
    )


def kappa_on_trees() -> Finding:
    """kappa = 1 on trees, however large a degree."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(50):
        n = int(rng.integers(3, 200))
        found.append(kappa([(v, int(rng.integers(v))) for v in range(1, n)]))
    found.append(kappa([(0, v) for v in range(1, 500)]))
    most = max(k.paper_bound for k in found)
    return Finding(
        f"{most} on {len(found)} trees of degree up to {max(k.person for k in found)}",
        most == 1,
    )


def cycle_reveals() -> Finding:
    """'When an individual is included in a circle, its feature can be calculated'."""
    people = np.random.default_rng(5).random((3, 4))
    moved = people + 0.25
    same = all(
        np.allclose(people[a] - people[b], moved[a] - moved[b]) for a, b in ((0, 1), (1, 2), (2, 0))
    )
    incidence = np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1]])
    rank = int(np.linalg.matrix_rank(incidence))
    return Finding(
        f"a triangle's differences determine {rank} of 3 unknowns: moving all three people together "
        "changes none of them. The last difference follows from the others, no person's features do",
        not same and rank == 3,
    )


NAMES = "stceuab"
EDGES = ("st", "sc", "ce", "et", "cu", "ut", "sa", "ab", "bs")


def fig3() -> list[tuple[int, int]]:
    """The nine pairs of the paper's Fig. 3, people numbered as in ``NAMES``."""
    return [(NAMES.index(edge[0]), NAMES.index(edge[1])) for edge in EDGES]


def fig3_counts() -> Finding:
    """Fig. 3: two pairs hide the relationship of s and t, a third the features."""
    found = key_pairs(fig3(), NAMES.index("s"), NAMES.index("t"))
    cut = sorted(EDGES[j] for j in found.cut)
    return Finding(
        f"the cut is {' and '.join(cut)}, {found.count} pairs are key; kappa of the graph is "
        f"{exact_kappa(fig3())}",
        cut == ["sc", "st"] and found.count == exact_kappa(fig3()) == 3,
    )
