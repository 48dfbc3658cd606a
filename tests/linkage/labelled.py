"""Labelled pairs of records that were made up: levels drawn from known m and u."""

from __future__ import annotations

import numpy as np

N_LEVELS = (4, 3, 2)
M = ((0.05, 0.1, 0.15, 0.7), (0.1, 0.2, 0.7), (0.1, 0.9))
U = ((0.9, 0.05, 0.03, 0.02), (0.8, 0.15, 0.05), (0.5, 0.5))


def labelled(n=2000, seed=0, nulls=0.1):
    """(levels, y, pairs): a path of n pairs over n + 1 records."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], n)
    columns = []
    for m, u in zip(M, U, strict=True):
        drawn = np.where(y > 0, rng.choice(len(m), n, p=list(m)), rng.choice(len(u), n, p=list(u)))
        columns.append(np.where(rng.random(n) < nulls, -1, drawn))
    pairs = np.column_stack([np.arange(n), np.arange(1, n + 1)])
    return np.column_stack(columns), y, pairs
