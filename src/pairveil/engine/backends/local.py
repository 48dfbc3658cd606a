"""Where sums are taken: on this machine, or wherever else a backend keeps the records.

A backend answers one question: the clipped sum of a statistic over some records, in whole multiples of a
grid. Integers add up to the same total whoever adds them, so all backends give the same answer.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from pairveil.array_types import FloatArray, IntArray
from pairveil.engine.gradients import SetGradient
from pairveil.engine.statistics import Statistic, clipped_sum
from pairveil.privacy.grid import Norm


class Backend(Protocol):
    """The private records, seen only through clipped sums."""

    @property
    def n_records(self) -> int:
        """How many records there are (public)."""
        ...

    @property
    def records(self) -> str:
        """What they are, as `Query.records` has it: a unit's cost depends on it."""
        ...

    @property
    def dtype(self) -> Any:
        """Type of the features."""
        ...

    def add_up(
        self,
        rows: IntArray | None,
        statistic: Statistic,
        norm: Norm,
        grid: float,
        *,
        separately: bool = False,
    ) -> IntArray:
        """The sum over some records (None: all), as `pairveil.engine.statistics.clipped_sum` gives it."""
        ...

    def descends(self, gradient: SetGradient) -> bool:
        """Whether `descend` is there for this gradient."""
        ...

    def descend(
        self,
        gradient: SetGradient,
        batches: tuple[IntArray, IntArray],
        noise: FloatArray,
        rate: float,
        norm: Norm,
        grid: float,
    ) -> tuple[FloatArray, FloatArray]:
        """Take many small steps at once; return W after the last one, and the noisy sums of all."""
        ...


class Local:
    """Records in the memory, or in the files, of this machine.

    Parameters
    ----------
    data : PairSet, or other records with ``n_records``, ``contents`` and ``blocks``
        Those that are used.
    compiled : bool
        Use compiled loops where there are some.

    Examples
    --------
    >>> from pairveil.records.pairset import PairSet
    >>> Local(PairSet(np.eye(2), [[0, 1]], [1])).n_records
    1
    """

    def __init__(self, data: Any, *, compiled: bool = True) -> None:
        self._data, self._compiled = data, compiled
        self.records: str = data.kind

    @property
    def n_records(self) -> int:
        """How many are used."""
        return int(self._data.n_records)

    @property
    def dtype(self) -> Any:
        """Type of the features."""
        return self._data.features.dtype

    def add_up(
        self,
        rows: IntArray | None,
        statistic: Statistic,
        norm: Norm,
        grid: float,
        *,
        separately: bool = False,
    ) -> IntArray:
        """`pairveil.engine.statistics.clipped_sum` of the records."""
        return clipped_sum(
            self._data, rows, statistic, norm, grid, compiled=self._compiled, separately=separately
        )

    def descends(self, gradient: SetGradient) -> bool:
        """Compiled loops cover dense features."""
        dense = isinstance(self._data.features, np.ndarray)
        return self._compiled and dense and gradient.is_compilable(self._data)

    def descend(
        self,
        gradient: SetGradient,
        batches: tuple[IntArray, IntArray],
        noise: FloatArray,
        rate: float,
        norm: Norm,
        grid: float,
    ) -> tuple[FloatArray, FloatArray]:
        """All steps in one compiled loop."""
        return gradient.compiled_descent(self._data, batches, noise, rate, norm, grid)
