"""Clipped sums over records: all that ever leaves the data, before noise.

Sums are taken tile by tile, and each tile's partial sum is rounded to whole multiples of a public
``grid`` and added as int64. Integer addition is exact, so the total does not depend on the order of the
tiles, on threads or on machines, and zeroing one pair out changes exactly one tile: by the pair's
clipped contribution, by at most one grid step an entry for the rounding, and by the tile's own floating-point
error (`pairveil.privacy.grid.grid_sensitivity`). That is the whole sensitivity argument
(docs/theory/noise.md).

A noisy choice is made by *scores* of its candidates. Each record's contribution to each candidate is rounded
to a whole multiple of a public unit by itself, and whole numbers are added exactly. So the range of what one
record moves, over the candidates, is at most 1 to the last bit, however the records are cut into tiles
(docs/theory/noise.md, 'Exact sampling').
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.array_types import FloatArray, IntArray
from pairveil.privacy.grid import Norm, grid_sensitivity, to_grid
from pairveil.privacy.samplers import whole_scores

Labels = NDArray[np.int8]

TILE = 1024
"""Pairs summed in floating point before rounding (their error is charged by `grid_sensitivity`)."""


class Statistic:
    """What is summed over records: each record's contribution, clipped as a whole.

    A statistic carries its own sensitivity. Subclasses say their ``shape`` and `tile_sum`; whoever has a
    compiled loop, or a sensitivity that follows another argument, overrides the rest.

    Attributes
    ----------
    clip : float
        No record's contribution is longer than this, in the norm of the query.
    scale : array of shape (n_features,) or None
        Differences are multiplied by it, column by column, before anything else: public, or released
        already.
    largest_term : float
        Where a contribution is formed as a sum of larger terms, the largest of them.
    """

    clip: float
    scale: FloatArray | None = None
    largest_term: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the sum."""
        raise NotImplementedError

    def tile_sum(self, values: Any, contents: Any, norm: Norm, /) -> FloatArray:
        """Sum of the clipped contributions of a tile's records, as their `contents` gives them."""
        raise NotImplementedError

    def tile_total(self, values: Any, contents: Any, norm: Norm, grid: float, /) -> IntArray:
        """The same in whole multiples of ``grid``, rounded once a tile."""
        return to_grid(self.tile_sum(values, contents, norm), grid)

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """How far zeroing one record out can move ``grid * clipped_sum``, rounding included.

        Parameters
        ----------
        norm : {'l2', 'l1'}
        grid : float
        dtype : float32 or float64
            Of the features.
        """
        del dtype  # NumPy sums are taken in float64
        # Floating-point error goes with the terms that are added up, which may exceed what they add up to.
        terms = max(self.clip, self.largest_term)
        n_entries = math.prod(self.shape)
        return grid_sensitivity(terms, grid, n_entries, norm, tile=TILE) - terms + self.clip

    def is_compilable(self, data: Any) -> bool:
        """Whether a compiled loop covers these records."""
        del data
        return False

    def compiled_sum(
        self, data: Any, rows: IntArray | None, norm: Norm, grid: float, separately: bool
    ) -> IntArray:
        """`clipped_sum` by a compiled loop; results differ within `sensitivity` only."""
        raise NotImplementedError


def clipped_sum(
    data: Any,
    rows: IntArray | None,
    statistic: Statistic,
    norm: Norm,
    grid: float,
    *,
    compiled: bool = True,
    separately: bool = False,
) -> IntArray:
    """Sum a statistic over pairs, in whole multiples of ``grid``.

    ``rows`` are the records in this batch (None: all), ``norm`` that in which contributions are clipped, and
    ``grid`` a power of two. ``compiled``: by the compiled loop where there is one. ``separately`` rounds
    every pair on its own, as a Poisson sample needs it: whether a null pair was drawn must not even move its
    neighbours into other tiles.
    """
    if compiled and statistic.is_compilable(data):
        return statistic.compiled_sum(data, rows, norm, grid, separately)
    total = np.zeros(statistic.shape, dtype=np.int64)
    for tile in _tiles(data, rows, 1 if separately else TILE):
        values, contents = data.contents(tile)
        if statistic.scale is not None:
            values = scale_columns(values, statistic.scale)
        total += statistic.tile_total(values, contents, norm, grid)
    return total


def _tiles(data: Any, rows: IntArray | None, size: int) -> Iterator[Any]:
    """Cut the wanted pairs into tiles; the cut depends on positions only, never on contents."""
    if rows is None:
        yield from data.blocks(size)
        return
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def row_norms(rows: Any, norm: Norm = "l2") -> FloatArray:
    """Length of each row, dense or sparse."""
    if sparse.issparse(rows):
        power = abs(rows) if norm == "l1" else rows.multiply(rows)
        sums = np.asarray(power.sum(axis=1), dtype=np.float64).ravel()
    elif norm == "l1":
        sums = np.abs(rows).sum(axis=1)
    else:
        sums = np.einsum("ij,ij->i", rows, rows)
    return sums if norm == "l1" else np.sqrt(sums)


def shrink(lengths: FloatArray, clip: float) -> FloatArray:
    """Factor that brings each length to at most ``clip`` (1 where it is shorter already)."""
    factor: FloatArray = clip / np.maximum(lengths, clip)
    return factor


def scale_columns(differences: Any, scale: FloatArray) -> Any:
    """Columns multiplied by ``scale``, dense or CSR."""
    if not sparse.issparse(differences):
        return differences * scale
    values = differences.data * scale[differences.indices]
    return sparse.csr_array(
        (values, differences.indices, differences.indptr), shape=differences.shape
    )


def dense_rows(rows: Any) -> FloatArray:
    """Rows as an array, dense or CSR: centred ones have no zeros left to spare."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)


# ---- scores of candidates --------------------------------------------------------------------------

UNIT = 2**20
"""Steps of a score that make up 1, the largest range of one record's contributions."""

GRID = 1.0 / UNIT


def whole_weight(weight: float) -> int:
    """A weight in [0, 1], brought there, as whole steps of a score."""
    return int(UNIT * min(max(weight, 0.0), 1.0))


class Scores(Statistic):
    """What is summed for a choice: each record adds between 0 and 1 to every candidate, or takes it off all.

    Subclasses say their ``shape``, (n_candidates,), and `contributions`.
    """

    clip: float = 1.0

    def contributions(self, values: Any, contents: Any, /) -> tuple[FloatArray, NDArray[np.int8]]:
        """Values in [0, 1], one row a record and one column a candidate, and each record's sign.

        A null record has sign 0 or values 0. Values outside of [0, 1] are brought there.
        """
        raise NotImplementedError

    def tile_total(self, values: Any, contents: Any, norm: Norm, grid: float, /) -> IntArray:
        """Whole contributions, each record rounded towards 0 by itself."""
        del norm, grid
        return whole_scores(*self.contributions(values, contents), UNIT)

    def tile_sum(self, values: Any, contents: Any, norm: Norm, /) -> FloatArray:
        """The same in records."""
        return self.tile_total(values, contents, norm, GRID).astype(np.float64) * GRID

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """Range of what zeroing one record out moves: 1, with nothing added for rounding."""
        del norm, grid, dtype
        return 1.0
