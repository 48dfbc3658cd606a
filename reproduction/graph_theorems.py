"""The paper's sentences about graphs, checked on every small graph and on random ones."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.audit.attack import key_pairs
from pairveil.graph.kappa import kappa
from reproduction.exact_kappa import exact_kappa
from reproduction.findings import Finding, verdict_of


class _Sweep(NamedTuple):
    graphs: int
    targets: int
    above: int  # |P| + min(c) > b(s)
    equal_but_c_differ: int
    c_equal_but_strict: int
    kappa_above_bound: int
    bound_above_degree: int
    bound_not_tight: int
    largest_gap: int


@lru_cache(maxsize=1)
def _sweep() -> _Sweep:
    """All connected graphs on up to four people and 60 random ones on five to seven."""
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
    graphs = [g for g in graphs if _connected(g)]
    counts = np.zeros(4, dtype=int)
    above = wide = loose = gap = 0
    for g in graphs:
        found, exact = kappa(g), exact_kappa(g)
        above += exact > found.paper_bound
        wide += found.paper_bound > found.person
        loose += found.paper_bound > exact
        gap = max(gap, found.paper_bound - exact)
        people = sorted({v for edge in g for v in edge})
        for s, t in itertools.permutations(people, 2):
            counts += _target(g, s, t, int(found.per_person[s]))
    targets, over, equal, strict = counts.tolist()
    return _Sweep(len(graphs), targets, over, equal, strict, above, wide, loose, gap)


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
        f"{s.above} of {s.targets:,} ordered targets in {s.graphs} connected graphs break it",
        verdict_of(s.above == 0),
    )


def proposition_1_equality() -> Finding:
    """'Equality holds if and only if c_s = c_t'."""
    s = _sweep()
    return Finding(
        f"of {s.targets:,} targets {s.equal_but_c_differ} have equality with c_s != c_t and "
        f"{s.c_equal_but_strict} have c_s = c_t without equality",
        verdict_of(s.equal_but_c_differ + s.c_equal_but_strict == 0),
    )


def kappa_prime() -> Finding:
    """kappa' bounds kappa from above."""
    s = _sweep()
    return Finding(
        f"exact kappa exceeds kappa' in {s.kappa_above_bound} of {s.graphs} graphs; kappa' is larger "
        f"in {s.bound_not_tight}, by up to {s.largest_gap}",
        verdict_of(s.kappa_above_bound == 0),
    )


def kappa_below_degree() -> Finding:
    """DPP never needs more than Node DP."""
    s = _sweep()
    return Finding(
        f"kappa' exceeds the maximum degree in {s.bound_above_degree} of {s.graphs} graphs",
        verdict_of(s.bound_above_degree == 0),
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
        f"kappa' is {most} on {len(found)} random trees whose maximum degree reaches "
        f"{max(k.person for k in found)}",
        verdict_of(most == 1),
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
        f"the three differences of a triangle determine {rank} of 3 unknowns; moving all three people "
        f"together leaves every difference unchanged ({same}). A cycle's last difference follows from "
        "the others, no person's features do",
        verdict_of(not same and rank == 3),
    )
