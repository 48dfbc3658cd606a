"""Scores of candidates: what a noisy choice is made by.

Each record's contribution to each candidate is rounded to a whole multiple of a public unit by itself, and
whole numbers are added exactly. So the range of what one record moves, over the candidates, is at most 1 to
the last bit, however the records are cut into tiles (docs/theory/choice.md, section 5).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray, IntArray
from pairveil.engine.statistics import Labels, Statistic
from pairveil.privacy.grid import Norm
from pairveil.privacy.samplers import whole_scores

UNIT = 2**20
"""Steps of a score that make up 1, the largest range of one record's contributions."""
GRID = 1.0 / UNIT
_MOST_AHEAD = 2**40
"""A head start beyond this many records is the same as certainty; it keeps sums inside 64 bits."""


def whole_weight(weight: float) -> int:
    """A weight in [0, 1], brought there, as whole steps of a score.

    Examples
    --------
    >>> whole_weight(0.5) == UNIT // 2, whole_weight(7.0) == UNIT
    (True, True)
    """
    return int(UNIT * min(max(weight, 0.0), 1.0))


class Scores(Statistic):
    """What is summed for a choice: each record adds between 0 and 1 to every candidate, or takes it off all.

    Subclasses say their ``shape``, (n_candidates,), and `contributions`.

    Attributes
    ----------
    ahead : array of shape (n_candidates,) or None
        A head start of each candidate, in records: public, or released already. No record moves it.
    """

    clip: float = 1.0
    ahead: FloatArray | None = None

    def contributions(self, contents: Any, labels: Labels) -> tuple[FloatArray, NDArray[np.int8]]:
        """Values in [0, 1], one row a record and one column a candidate, and each record's sign.

        A null record has sign 0 or values 0. Values outside of [0, 1] are brought there.
        """
        raise NotImplementedError

    def tile_total(self, contents: Any, labels: Labels, norm: Norm, grid: float) -> IntArray:
        """Whole contributions, each record rounded towards 0 by itself."""
        del norm, grid
        return whole_scores(*self.contributions(contents, labels), UNIT)

    def tile_sum(self, contents: Any, labels: Labels, norm: Norm) -> FloatArray:
        """The same in records."""
        return self.tile_total(contents, labels, norm, GRID).astype(np.float64) * GRID

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """Range of what zeroing one record out moves: 1, with nothing added for rounding."""
        del norm, grid, dtype
        return 1.0

    def with_start(self, total: IntArray) -> IntArray:
        """A total, in units, with the head starts on it."""
        if self.ahead is None:
            return total
        records = np.clip(np.nan_to_num(self.ahead), -_MOST_AHEAD, _MOST_AHEAD)
        started: IntArray = total + np.rint(records * UNIT).astype(np.int64)
        return started
