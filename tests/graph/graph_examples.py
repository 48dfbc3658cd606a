"""The table of graphs of docs/theory/graph.md, and random graphs. Import-free of pairveil: plain numbers."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def cycle(n):
    return [(i, (i + 1) % n) for i in range(n)]


def complete(n):
    return list(combinations(range(n), 2))


FIG3_NAMES = ["st", "sc", "ce", "et", "cu", "ut", "sa", "ab", "bs"]
FIG3 = [("stceuab".index(a), "stceuab".index(b)) for a, b in FIG3_NAMES]

# name: (pairs, exact, kappa', b2, max degree, intransitive)
TABLE = {
    "one edge": ([(0, 1)], 1, 1, 1, 1, 1),
    "P4": ([(0, 1), (1, 2), (2, 3)], 1, 1, 1, 2, 1),
    "star K1,4": ([(0, i) for i in range(1, 5)], 1, 1, 1, 4, 1),
    "tree": ([(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)], 1, 1, 1, 3, 1),
    "C3": (cycle(3), 2, 2, 2, 2, 1),
    "C4": (cycle(4), 2, 2, 2, 2, 1),
    "C5": (cycle(5), 2, 2, 2, 2, 1),
    "K4": (complete(4), 3, 3, 3, 3, 2),
    "K4 minus an edge": (complete(4)[1:], 3, 3, 3, 3, 2),
    "K2,3": ([(a, b) for a in (0, 1) for b in (2, 3, 4)], 3, 3, 3, 3, 2),
    "K5": (complete(5), 4, 4, 4, 4, 3),
    "Fig. 3": (FIG3, 3, 3, 3, 4, 2),
    "bowtie": ([(0, 1), (1, 2), (0, 2), (0, 3), (3, 4), (0, 4)], 2, 3, 2, 4, 1),
    "friendship F3": (
        [(0, 1), (1, 2), (0, 2), (0, 3), (3, 4), (0, 4), (0, 5), (5, 6), (0, 6)],
        *(2, 4, 2, 6, 1),
    ),
    "wheel": (
        [(0, i) for i in range(1, 6)] + [(i, i % 5 + 1) for i in range(1, 6)],
        *(3, 5, 3, 5, 2),
    ),
    "triangle + pendant": ([(0, 1), (1, 2), (0, 2), (0, 3)], 2, 2, 2, 3, 1),
    "two triangles": ([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)], 2, 2, 2, 2, 1),
    "the last": (
        [(0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5)],
        *(3, 4, 4, 4, 3),
    ),
}


def random_pairs(rng, n_people, n_pairs, simple=True):
    """Uniform pairs without self pairs; simple: each pair at most once (as many as exist)."""
    if simple:
        possible = complete(n_people)
        chosen = rng.permutation(len(possible))[:n_pairs]
        return np.array(possible)[chosen]
    a = rng.integers(0, n_people, size=n_pairs)
    b = (a + rng.integers(1, n_people, size=n_pairs)) % n_people
    return np.stack([a, b], axis=1)


def small_graphs(seed, how_many, simple=True, max_people=7, max_pairs=11):
    rng = np.random.default_rng(seed)
    for _ in range(how_many):
        n_people = int(rng.integers(2, max_people + 1))
        yield random_pairs(rng, n_people, int(rng.integers(1, max_pairs + 1)), simple)
