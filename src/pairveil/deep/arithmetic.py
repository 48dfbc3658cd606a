"""Passes over many numbers: plain torch, or one kernel each on a GPU (`pairveil.deep.kernels`).

Neither is trusted to keep an order of additions: the bounds of docs/theory/deep.md hold for any.

A network in bfloat16 keeps eight bits of each number; float64 products of them would be most of a step. Here
inputs and scaled slopes are rounded to two digits of base 128 each, once, and the products of these digits
are summed as integers. What rounding adds to one contribution is bounded and charged: docs/theory/deep.md.

Micro-batches have one fixed shape, so that all of them take the same kernels in the same order: on a GPU
these are recorded once and replayed, without time between them (`Recorded`).
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from pairveil.deep import kernels


def wide(values: Tensor) -> Tensor:
    """At least float32."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def over(values: Tensor, axes: Iterable[int]) -> Tensor:
    """The sum over some axes, at least in float32."""
    return values.sum(dim=tuple(axes), dtype=torch.promote_types(values.dtype, torch.float32))


def products(rows: Tensor) -> Tensor:
    """Products of all rows of each record, (n, t, k) to (n, t, t), at least in float32."""
    if kernels.runs(rows) and rows.shape[1] <= kernels.FEW:
        return kernels.products(rows.contiguous())
    return wide(rows) @ wide(rows).mT


def scaled(rows: Tensor, factors: Tensor) -> Tensor:
    """Rows (n, ...) times one factor each, in float64; those with a factor of 0 are not read."""
    factors = factors.double()
    if kernels.runs(rows):
        return kernels.scaled(rows, factors)
    factors = factors.reshape(-1, *[1] * (rows.ndim - 1))
    found = rows.double() * factors
    return found if bool((factors != 0).all()) else torch.where(factors != 0, found, 0.0)


def weighted_sum(rows: Tensor, factors: Tensor) -> Tensor:
    """Sum of rows (n, k) times their factors, in float64; those with a factor of 0 are not read."""
    factors = factors.double()
    if kernels.runs(rows):
        return kernels.weighted_sum(rows, factors)
    read = factors != 0
    rows = rows if bool(read.all()) else torch.where(read[:, None], rows, 0)
    return factors @ rows.double()


def two_digits(rows: Tensor, units: Tensor) -> Tensor:
    """Rows (n, k) times their units, rounded to whole numbers h 128 + l: (2, k, n) of h and l.

    A row whose unit is no number above 0 is left out.
    """
    if kernels.runs(rows):
        return kernels.two_digits(rows, units)
    counted = ((units > 0) & (units < torch.inf))[:, None]
    whole = torch.floor((rows.double() * units[:, None]).float() + 0.5)
    whole = torch.where(counted, whole, 0.0)
    high = torch.floor((whole + 64) / 128)
    return torch.stack([high, whole - 128 * high]).to(torch.int8).mT


# ---- sums of products in whole numbers -------------------------------------------------------------

LENGTH = 16200.0
"""Units that a row of inputs is long."""

LIMIT = 127 * 128
"""The largest whole number of two digits."""

ROUNDING = 2.0**-8
"""Clips that a record's contribution may be longer, in one layer, because slopes are rounded."""

_HALF = (
    0.5 + 2.0**-9
)  # rounding to whole numbers, and what float32 did before to numbers up to 2^14

_ROWS = 1 << 17  # addends of 127 * 127 that an int32 holds


@dataclass(frozen=True)
class DigitSum:
    """The sum over records of factor times sum_t d_t x_t^T, of one linear layer.

    ``shape``: positions of a record (of all branches), outputs, inputs.
    """

    shape: tuple[int, int, int]

    @property
    def grid(self) -> float:
        """What a unit of slopes times a unit of inputs counts, for contributions of length 1."""
        positions, outputs, inputs = self.shape
        long = positions * _HALF * math.sqrt(outputs) * (LENGTH + _HALF * math.sqrt(inputs))
        return 2.0 ** math.floor(math.log2(ROUNDING / long))

    def square(self, square: Tensor, terms: Tensor, d: Tensor, lengths: Tensor) -> Tensor:
        """Squared norms (n,) of the numbers kept, enlarged to those of contributions in digits.

        ``square`` and ``terms`` are (n,), ``d`` (n, ..., outputs); ``lengths``, (n, positions), are those of
        the rows of inputs, never too short.
        """
        away = _HALF * math.sqrt(self.shape[2]) / LENGTH  # of inputs from their digits, relative
        steepest = torch.linalg.vector_norm(d, torch.inf, dim=-1, dtype=torch.float32).double()
        peak = (steepest.flatten(1) * lengths).amax(dim=1) / LENGTH
        fits = peak / (LIMIT * self.grid)  # so that no slope needs a third digit
        return torch.maximum(square.sqrt() + away * terms, fits * (1 + 2.0**-20)) ** 2

    def add(self, total: Tensor, x: Tensor, d: Tensor, lengths: Tensor, factors: Tensor) -> None:
        """Add some records' positions to ``total`` (outputs, inputs).

        ``x`` and ``d`` are (rows, inputs) and (rows, outputs). ``factors`` are those of the rows' records, at
        which no contribution is longer than 1.
        """
        per_slope, per_input = factors * lengths / (LENGTH * self.grid), LENGTH / lengths
        for start in range(0, len(x), _ROWS):
            now = slice(start, start + _ROWS)
            slopes, inputs = two_digits(d[now], per_slope[now]), two_digits(x[now], per_input[now])
            total += self.grid * _whole_product(slopes, inputs)


def _whole_product(slopes: Tensor, inputs: Tensor) -> Tensor:
    """The exact product of whole numbers, from their digits (2, k, rows), as float64 (below 2^53)."""
    left, right = slopes.flatten(0, 1), inputs.flatten(0, 1).T
    on_integers = left.is_cuda and len(left) > 16 and not (right.shape[0] % 8 or right.shape[1] % 8)
    if on_integers:
        products = torch._int_mm(left, right).double()
    else:  # whole numbers below 2^53: float64 is as exact
        products = left.double() @ right.double()
    by_digit = products.reshape(2, slopes.shape[1], 2, inputs.shape[1])
    middle = by_digit[0, :, 1] + by_digit[1, :, 0]
    return 2.0**14 * by_digit[0, :, 0] + 2.0**7 * middle + by_digit[1, :, 1]


# ---- a function that is recorded once and replayed -------------------------------------------------


class Recorded:
    """The same function; on a GPU through a CUDA graph, where torch can record it.

    ``function``: of tensors of the same shapes at every call; what else it reads stays where it lies.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self._function = function
        self._given: list[Tensor] = []
        self._result: Tensor | None = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._tried = False

    def __call__(self, *given: Tensor) -> Tensor:
        if not self._tried and given[0].is_cuda:
            self._tried = True
            with torch.cuda.device_of(given[0]):
                self._record(given)
        if self._graph is None or self._result is None:
            return self._function(*given)
        for own, one in zip(self._given, given, strict=True):
            own.copy_(one)
        self._graph.replay()
        return self._result.clone()

    def _record(self, given: tuple[Tensor, ...]) -> None:
        self._given = [one.clone() for one in given]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(
            aside
        ):  # kernels are compiled and chosen before anything is recorded
            for _ in range(2):
                self._function(*self._given)
        torch.cuda.current_stream().wait_stream(aside)
        gc.collect()  # an older recording must not be let go of while this one is made
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._result = self._function(*self._given)
        except RuntimeError:  # a module that waits for the GPU on its way cannot be recorded
            return
        self._graph = graph
