"""The passes of `pairveil.deep.arithmetic` as Triton kernels, for NVIDIA GPUs: one read of each number.

tests/deep/test_gpu.py compares each with its plain torch version, where a GPU is.
"""
# mypy: ignore-errors
# Triton comes with torch's builds for GPUs alone, and has no types.

from __future__ import annotations

import functools

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

FEW = 8  # rows of a record, up to which cuBLAS has no product that pays
ROWS_EACH = 256  # that one program of `weighted_sum` adds up

if triton is not None:

    @triton.jit
    def _products(rows, out, n, k, T: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
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
    def _scaled(rows, factors, out, size, k, K: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * K + tl.arange(0, K)
        factor = tl.load(factors + at // k, mask=at < size, other=0.0)
        value = tl.load(rows + at, mask=(at < size) & (factor != 0), other=0.0)
        tl.store(out + at, value.to(tl.float64) * factor, mask=at < size)

    @triton.jit
    def _weighted_sum(
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
    def _two_digits(rows, units, out, n, k, behind, N: tl.constexpr, K: tl.constexpr):
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


def on_its_device(kernel):
    """Triton launches on the current GPU, which need not be the one where the numbers lie."""

    @functools.wraps(kernel)
    def launched(first, *more):
        with torch.cuda.device_of(first):
            return kernel(first, *more)

    return launched


def runs(values: Tensor) -> bool:
    """Whether these kernels take some numbers."""
    return triton is not None and values.is_cuda and values.dtype != torch.float64


@on_its_device
def products(rows: Tensor) -> Tensor:
    """As `arithmetic.products`, for at most `FEW` rows a record."""
    n, t, k = rows.shape
    out = torch.empty((n, t, t), dtype=torch.float32, device=rows.device)
    _products[t * t, triton.cdiv(n, 4)](rows, out, n, k, T=t, N=4, K=256)
    return out


@on_its_device
def scaled(rows: Tensor, factors: Tensor) -> Tensor:
    """As `arithmetic.scaled`."""
    out = torch.empty(rows.shape, dtype=torch.float64, device=rows.device)
    size, k = rows.numel(), rows[0].numel()
    _scaled[(triton.cdiv(size, 1024),)](rows.contiguous(), factors, out, size, k, K=1024)
    return out


@on_its_device
def weighted_sum(rows: Tensor, factors: Tensor) -> Tensor:
    """As `arithmetic.weighted_sum`."""
    n, k = rows.shape
    parts = triton.cdiv(n, ROWS_EACH)
    out = torch.empty((parts, k), dtype=torch.float64, device=rows.device)
    grid = (triton.cdiv(k, 128), parts)
    _weighted_sum[grid](rows.contiguous(), factors, out, n, k, EACH=ROWS_EACH, N=16, K=128)
    return out.sum(dim=0)


@on_its_device
def two_digits(rows: Tensor, units: Tensor) -> Tensor:
    """As `arithmetic.two_digits`."""
    n, k = rows.shape
    out = torch.empty((2, k, n), dtype=torch.int8, device=rows.device)
    grid = (triton.cdiv(n, 128), triton.cdiv(k, 32))
    _two_digits[grid](rows.contiguous(), units, out, n, k, n * k, N=128, K=32)
    return out
