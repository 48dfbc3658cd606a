"""Compiled loops over many pairs, in threads where that pays."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError

OUTSIDE = "a pair or a row index is outside its table"
SMALL_BATCH = 512  # up to here a second thread costs more than it brings


@lru_cache(maxsize=4)
def _pool(_process: int, threads: int) -> ThreadPoolExecutor:
    # Threads of our own over compiled code without the interpreter's lock, and not numba's prange:
    # its default pool aborts the process when two threads (two Dask tasks, say) enter it at once.
    # One pool a process: a forked child has none of its parent's threads.
    return ThreadPoolExecutor(threads, thread_name_prefix="pairveil-tiles")


def add_up(
    loop: Callable[..., tuple[NDArray[np.int64], bool]],
    before: tuple[Any, ...],
    behind: tuple[Any, ...],
    rows: NDArray[Any] | None,
    n: int,
    tile: int,
    threads: int | None,
    shape: tuple[int, ...],
) -> NDArray[np.int64]:
    """Run a compiled loop over n pairs in whole tiles, in threads where that pays; add the integers up.

    The loop is called as ``loop(*before, rows, all rows?, first, last, *behind)`` and returns its sum, of
    the given shape, and whether every index was inside its table.
    """
    chosen = np.empty(0, dtype=np.int64) if rows is None else np.asarray(rows)

    def part(first: int, last: int) -> tuple[NDArray[np.int64], bool]:
        return loop(*before, chosen, rows is None, first, last, *behind)

    n_tiles = -(-n // tile)
    if threads is None:
        threads = 1 if n <= SMALL_BATCH else numba.config.NUMBA_NUM_THREADS
    threads = min(threads, n_tiles)
    if threads <= 1:
        total, sound = part(0, n)
    else:
        edges = [min(n, n_tiles * t // threads * tile) for t in range(threads + 1)]
        total, sound = np.zeros(shape, dtype=np.int64), True
        for share, within in _pool(os.getpid(), threads).map(part, edges[:-1], edges[1:]):
            total += share
            sound = sound and within
    if not sound:
        raise InputError(OUTSIDE)
    return total
