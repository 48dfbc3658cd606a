"""Passes over many numbers: plain torch, or one Triton kernel each on an NVIDIA GPU.

Neither is trusted to keep an order of additions: the bounds of docs/theory/deep.md hold for any.

A network in bfloat16 keeps eight bits of each number; float64 products of them would be most of a step. Here
inputs and scaled slopes are rounded to two digits of base 128 each, once, and the products of these digits
are summed as integers. What rounding adds to one contribution is bounded and charged: docs/theory/deep.md.

Micro-batches have one fixed shape, so that all of them take the same kernels in the same order: on a GPU
these are recorded once and replayed, without time between them (`Recorded`).
"""

from __future__ import annotations

import functools
import gc
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

try:  # it comes with torch's builds for GPUs alone
    import triton
    import triton.language as tl
except ImportError:
    triton = None


def wide(values: Tensor) -> Tensor:
    """At least float32."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def over(values: Tensor, axes: Iterable[int]) -> Tensor:
    """The sum over some axes, at least in float32."""
    return values.sum(dim=tuple(axes), dtype=torch.promote_types(values.dtype, torch.float32))


def products(rows: Tensor) -> Tensor:
    """Products of all rows of each record, (n, t, k) to (n, t, t), at least in float32."""
    if has_kernels(rows) and rows.shape[1] <= FEW:
        return products_on_gpu(rows.contiguous())
    return wide(rows) @ wide(rows).mT


def scaled(rows: Tensor, factors: Tensor) -> Tensor:
    """Rows (n, ...) times one factor each, in float64; those with a factor of 0 are not read."""
    factors = factors.double()
    if has_kernels(rows):
        return scaled_on_gpu(rows, factors)
    factors = factors.reshape(-1, *[1] * (rows.ndim - 1))
    found = rows.double() * factors
    return found if bool((factors != 0).all()) else torch.where(factors != 0, found, 0.0)


def weighted_sum(rows: Tensor, factors: Tensor) -> Tensor:
    """Sum of rows (n, k) times their factors, in float64; those with a factor of 0 are not read."""
    factors = factors.double()
    if has_kernels(rows):
        return weighted_sum_on_gpu(rows, factors)
    read = factors != 0
    rows = rows if bool(read.all()) else torch.where(read[:, None], rows, 0)
    return factors @ rows.double()


def two_digits(rows: Tensor, units: Tensor) -> Tensor:
    """Rows (n, k) times their units, rounded to whole numbers h 128 + l: (2, k, n) of h and l.

    A row whose unit is no number above 0 is left out.
    """
    if has_kernels(rows):
        return two_digits_on_gpu(rows, units)
    counted = ((units > 0) & (units < torch.inf))[:, None]
    whole = torch.floor((rows.double() * units[:, None]).float() + 0.5)
    whole = torch.where(counted, whole, 0.0)
    high = torch.floor((whole + 64) / 128)
    return torch.stack([high, whole - 128 * high]).to(torch.int8).mT


# ---- the same passes as kernels: one read of each number -----------------------------------------
#
# tests/deep/test_gpu.py compares each with its plain torch version, where a GPU is.

FEW = 8  # rows of a record, up to which cuBLAS has no product that pays
ROWS_EACH = 256  # that one program of `weighted_sum` adds up

if triton is not None:

    @triton.jit
    def _products(rows, out, n, k, T: tl.constexpr, N: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
        left, right = tl.program_id(0) // T, tl.program_id(0) % T
        i = tl.program_id(1) * N + tl.arange(0, N)
        at, there = i.to(tl.int64)[:, None] * T, (i < n)[:, None]
        total = tl.zeros((N, K), tl.float32)
        for start in range(0, k, K):
            j = (start + tl.arange(0, K))[None, :]
            one = tl.load(rows + (at + left) * k + j, mask=there & (j < k), other=0.0)
            other = tl.load(rows + (at + right) * k + j, mask=there & (j < k), other=0.0)
            total += one.to(tl.float32) * other.to(tl.float32)
        place = i.to(tl.int64) * T * T + tl.program_id(0)
        tl.store(out + place, tl.sum(total, axis=1), mask=i < n)

    @triton.jit
    def _scaled(rows, factors, out, size, k, K: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.program_id(0).to(tl.int64) * K + tl.arange(0, K)
        factor = tl.load(factors + at // k, mask=at < size, other=0.0)
        value = tl.load(rows + at, mask=(at < size) & (factor != 0), other=0.0)
        tl.store(out + at, value.to(tl.float64) * factor, mask=at < size)

    @triton.jit
    def _weighted_sum(  # type: ignore[no-untyped-def]
        rows, factors, out, n, k, EACH: tl.constexpr, N: tl.constexpr, K: tl.constexpr
    ):
        j = tl.program_id(0) * K + tl.arange(0, K)
        part = tl.program_id(1)
        total = tl.zeros((N, K), tl.float64)
        for start in range(0, EACH, N):
            i = part * EACH + start + tl.arange(0, N)
            factor = tl.load(factors + i, mask=i < n, other=0.0)
            there = (factor != 0)[:, None] & (j < k)[None, :]
            at = i.to(tl.int64)[:, None] * k + j[None, :]
            value = tl.load(rows + at, mask=there, other=0.0)
            total += value.to(tl.float64) * factor[:, None]
        tl.store(out + part.to(tl.int64) * k + j, tl.sum(total, axis=0), mask=j < k)

    @triton.jit
    def _two_digits(  # type: ignore[no-untyped-def]
        rows, units, out, n, k, behind, N: tl.constexpr, K: tl.constexpr
    ):
        i = tl.program_id(0) * N + tl.arange(0, N)
        j = (tl.program_id(1) * K + tl.arange(0, K))[None, :]
        unit = tl.load(units + i, mask=i < n, other=0.0)
        counted = ((unit > 0) & (unit < float("inf")))[:, None]
        there = (i < n)[:, None] & (j < k)
        value = tl.load(rows + i.to(tl.int64)[:, None] * k + j, mask=there & counted, other=0.0)
        whole = tl.floor((value.to(tl.float64) * unit[:, None]).to(tl.float32) + 0.5)
        whole = tl.where(counted, whole, 0.0)
        high = tl.floor((whole + 64.0) * 0.0078125)
        at = out + j.to(tl.int64) * n + i[:, None]
        tl.store(at, high.to(tl.int8), mask=there)
        tl.store(at + behind, (whole - 128.0 * high).to(tl.int8), mask=there)


def on_its_device(kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Triton launches on the current GPU, which need not be the one where the numbers lie."""

    @functools.wraps(kernel)
    def launched(first: Tensor, *more: Tensor) -> Tensor:
        with torch.cuda.device_of(first):
            return kernel(first, *more)

    return launched


def has_kernels(values: Tensor) -> bool:
    """Whether these kernels take some numbers."""
    return triton is not None and values.is_cuda and values.dtype != torch.float64


@on_its_device
def products_on_gpu(rows: Tensor) -> Tensor:
    """As `products`, for at most `FEW` rows a record."""
    n, t, k = rows.shape
    out = torch.empty((n, t, t), dtype=torch.float32, device=rows.device)
    _products[t * t, triton.cdiv(n, 4)](rows, out, n, k, T=t, N=4, K=256)
    return out


@on_its_device
def scaled_on_gpu(rows: Tensor, factors: Tensor) -> Tensor:
    """As `scaled`."""
    out = torch.empty(rows.shape, dtype=torch.float64, device=rows.device)
    size, k = rows.numel(), rows[0].numel()
    _scaled[(triton.cdiv(size, 1024),)](rows.contiguous(), factors, out, size, k, K=1024)
    return out


@on_its_device
def weighted_sum_on_gpu(rows: Tensor, factors: Tensor) -> Tensor:
    """As `weighted_sum`."""
    n, k = rows.shape
    parts = triton.cdiv(n, ROWS_EACH)
    out = torch.empty((parts, k), dtype=torch.float64, device=rows.device)
    grid = (triton.cdiv(k, 128), parts)
    _weighted_sum[grid](rows.contiguous(), factors, out, n, k, EACH=ROWS_EACH, N=16, K=128)
    return out.sum(dim=0)


@on_its_device
def two_digits_on_gpu(rows: Tensor, units: Tensor) -> Tensor:
    """As `two_digits`."""
    n, k = rows.shape
    out = torch.empty((2, k, n), dtype=torch.int8, device=rows.device)
    grid = (triton.cdiv(n, 128), triton.cdiv(k, 32))
    _two_digits[grid](rows.contiguous(), units, out, n, k, n * k, N=128, K=32)
    return out


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
