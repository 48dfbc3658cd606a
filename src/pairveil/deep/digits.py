"""Sums of products in whole numbers: exact in any order, on the integer units of a GPU.

A network in bfloat16 keeps eight bits of each number; float64 products of them would be most of a step. Here
inputs and scaled slopes are rounded to two digits of base 128 each, once, and the products of these digits
are summed as integers. What rounding adds to one contribution is bounded and charged: docs/theory/deep.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from pairveil.deep.fused import two_digits

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

    Examples
    --------
    >>> DigitSum((2, 4, 4)).grid
    1.1920928955078125e-07
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

        Parameters
        ----------
        square, terms : Tensor of shape (n,)
        d : Tensor of shape (n, ..., outputs)
        lengths : Tensor of shape (n, positions)
            Of the rows of inputs, never too short.
        """
        away = _HALF * math.sqrt(self.shape[2]) / LENGTH  # of inputs from their digits, relative
        steepest = torch.linalg.vector_norm(d, torch.inf, dim=-1, dtype=torch.float32).double()
        peak = (steepest.flatten(1) * lengths).amax(dim=1) / LENGTH
        fits = peak / (LIMIT * self.grid)  # so that no slope needs a third digit
        return torch.maximum(square.sqrt() + away * terms, fits * (1 + 2.0**-20)) ** 2

    def add(self, total: Tensor, x: Tensor, d: Tensor, lengths: Tensor, factors: Tensor) -> None:
        """Add some records' positions to ``total`` (outputs, inputs).

        Parameters
        ----------
        x, d : Tensor of shape (rows, inputs) and (rows, outputs)
        lengths, factors : Tensor of shape (rows,)
            Of the record's factor, at which no contribution is longer than 1.
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
