"""Passes over many numbers: plain torch, or one kernel each on a GPU (`pairveil.deep.kernels`).

Neither is trusted to keep an order of additions: the bounds of docs/theory/deep.md hold for any.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from pairveil.deep import kernels


def wide(values: Tensor) -> Tensor:
    """At least float32.

    Examples
    --------
    >>> wide(torch.ones(1, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    return values.to(torch.promote_types(values.dtype, torch.float32))


def over(values: Tensor, axes: Iterable[int]) -> Tensor:
    """The sum over some axes, at least in float32.

    Examples
    --------
    >>> over(torch.ones(2, 3, dtype=torch.bfloat16), [1])
    tensor([3., 3.])
    """
    return values.sum(dim=tuple(axes), dtype=torch.promote_types(values.dtype, torch.float32))


def products(rows: Tensor) -> Tensor:
    """Products of all rows of each record, (n, t, k) to (n, t, t), at least in float32.

    Examples
    --------
    >>> products(torch.tensor([[[1.0, 2.0], [3.0, 0.0]]]))
    tensor([[[5., 3.],
             [3., 9.]]])
    """
    if kernels.runs(rows) and rows.shape[1] <= kernels.FEW:
        return kernels.products(rows.contiguous())
    return wide(rows) @ wide(rows).mT


def scaled(rows: Tensor, factors: Tensor) -> Tensor:
    """Rows (n, ...) times one factor each, in float64; those with a factor of 0 are not read.

    Examples
    --------
    >>> scaled(torch.tensor([[1.0], [torch.inf]]), torch.tensor([0.5, 0.0])).tolist()
    [[0.5], [0.0]]
    """
    factors = factors.double()
    if kernels.runs(rows):
        return kernels.scaled(rows, factors)
    factors = factors.reshape(-1, *[1] * (rows.ndim - 1))
    found = rows.double() * factors
    return found if bool((factors != 0).all()) else torch.where(factors != 0, found, 0.0)


def weighted_sum(rows: Tensor, factors: Tensor) -> Tensor:
    """Sum of rows (n, k) times their factors, in float64; those with a factor of 0 are not read.

    Examples
    --------
    >>> weighted_sum(torch.tensor([[1.0], [torch.inf]]), torch.tensor([0.5, 0.0])).tolist()
    [0.5]
    """
    factors = factors.double()
    if kernels.runs(rows):
        return kernels.weighted_sum(rows, factors)
    read = factors != 0
    rows = rows if bool(read.all()) else torch.where(read[:, None], rows, 0)
    return factors @ rows.double()


def two_digits(rows: Tensor, units: Tensor) -> Tensor:
    """Rows (n, k) times their units, rounded to whole numbers h 128 + l: (2, k, n) of h and l.

    A row whose unit is no number above 0 is left out.

    Examples
    --------
    >>> two_digits(torch.tensor([[3.0, 130.0]]), torch.ones(1, dtype=torch.float64)).tolist()
    [[[0], [1]], [[3], [2]]]
    """
    if kernels.runs(rows):
        return kernels.two_digits(rows, units)
    counted = ((units > 0) & (units < torch.inf))[:, None]
    whole = torch.floor((rows.double() * units[:, None]).float() + 0.5)
    whole = torch.where(counted, whole, 0.0)
    high = torch.floor((whole + 64) / 128)
    return torch.stack([high, whole - 128 * high]).to(torch.int8).mT
