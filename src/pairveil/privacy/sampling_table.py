"""The table behind the exact samplers: [0, 1) cut so that the first bits of a number mostly decide.

A draw needs a cell k with probability P_k and, with it, a *hit* with probability alpha_k. Both are read off
one uniform real U. Only the lengths of the labels in [0, 1) count, so they are laid out for speed. With
B = ``GUIDE_BITS`` and n_k = floor(2^B P_k (1 - alpha_k)):

    first, for each k, n_k whole intervals of length 2^-B labelled (k, no hit), G in all;
    then, for each k, what is left of (k, no hit) and all of (k, hit).

The first B bits of U decide when they are below G, by one look into ``guide``. Otherwise U is compared with
the ends of the later intervals, digit by digit in base 2^64 (docs/theory/exact-sampling.md, 'Step 1').
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError

Family = Literal["gaussian", "laplace"]
Words = NDArray[np.uint64]

GUIDE_BITS = 13
MAX_NUMERATOR = 1 << 50
MAX_DENOMINATOR = 1 << 57
MAX_WIDTH = 16
# Large cells mean many hits, small ones many intervals that the guide cannot decide. Cells between
# sigma/96 and sigma/48 are near the least of the sum (L being a power of two, a factor 2 is open).
_CELLS_PER_SIGMA = 48
_GUARD_BITS, _SLACK_BITS, _START_BITS = 128, 64, 11


class CellTable(NamedTuple):
    """What the compiled loop needs to know of one distribution."""

    guide: NDArray[np.uint16]  # (G,): the cell, from the first GUIDE_BITS bits of U
    ends: Words  # (rows, width): T_r in base 2^64; row 2k ends (k, no hit), row 2k+1 ends (k, hit)
    starts: NDArray[np.uint32]  # the first row to look at, from the leading bits of U - G/2^B
    numbers: Words  # B, log2 L, the shift to a place in `starts`, p, m q, 2m^2 or m, Gaussian?


def cell_length(p: int, q: int) -> int:
    """Return L for sigma = p/q: the largest power of two with 48 L <= sigma, or 1.

    Examples
    --------
    >>> cell_length(3, 1), cell_length(95, 1), cell_length(96, 1), cell_length(2**41, 2) == 2**34
    (1, 1, 2, True)
    """
    return 1 << max(0, (p // (_CELLS_PER_SIGMA * q)).bit_length() - 1)


def _weights(family: Family, x: Fraction, bits: int) -> list[int]:
    """Return 2^bits exp(-k^2 x) or 2^bits exp(-k x) for k = 0, 1, ..., rounded, until it is 0.

    By repeated multiplication. A product of numbers in [0, 1] adds the errors of its factors, and its
    rounding 1 unit (of 2^-bits). The first factor is off by 2 units at most (exp is correctly rounded),
    so exp(-2x) by 5, exp(-(2k+1)x) by 6k + 2, and the k-th weight by 3 (k+1)^2.
    """
    one = 1 << bits
    with localcontext(Context(prec=math.ceil(bits * math.log10(2)) + 5)):
        exponential = (-Decimal(x.numerator) / Decimal(x.denominator)).exp()
        factor = int((exponential * one).to_integral_value(ROUND_FLOOR))
    growth = factor * factor >> bits if family == "gaussian" else one
    weights = [one]
    while weights[-1]:
        weights.append(weights[-1] * factor >> bits)
        factor = factor * growth >> bits
    return weights[:-1]


def _floor(value: int, bits: int, most: int) -> int:
    """Return floor(value/2^bits), from 0 to ``most``, though the value may be off by 2^64 either way.

    If that could make a difference, refuse: for a table it does with chance 2^-50 or less.
    """
    slack = 1 << _SLACK_BITS
    low = max(0, value - slack >> bits)
    if low != min(most, value + slack >> bits):
        raise ArithmeticError("the table of cells needs more precision")
    return low


def _cut(family: Family, p: int, q: int, width: int) -> tuple[list[int], list[int]]:
    """Return the n_k, and the T_r up to the first that is all ones.

    Errors, in units of 2^-bits: there are n < 2^17 weights (cells are at least sigma/96), each off by
    3 (k+1)^2 at most, and those left out add 100 times as much as the last: the sum S is off by
    E < (n + 100) 3 (n+1)^2 < 2^54. S >= 1, so sums of P_k = w_k/S are off by 2E + 4n < 2^56, and
    ``_floor`` allows for 2^64.
    """
    length = cell_length(p, q)
    m = p // (q * length)
    gaussian = family == "gaussian"
    top = 1 << 64 * width
    bits = 64 * width + _GUARD_BITS
    ratio = Fraction(length * q, p)
    weights = _weights(family, ratio * ratio / 2 if gaussian else ratio, bits)
    inverse = (1 << 2 * bits) // sum(weights)
    masses = [weight * inverse >> bits for weight in weights]
    hits = [0] * len(masses)
    if length > 1:  # a cell of one integer needs no coin
        hits = [
            mass * (2 * k + 1) // (2 * m * m) if gaussian else mass // m
            for k, mass in enumerate(masses)
        ]
    guided = [
        _floor(mass - hit, bits - GUIDE_BITS, (1 << GUIDE_BITS) - 1)
        for mass, hit in zip(masses, hits, strict=True)
    ]
    ends: list[int] = []
    below, ahead = 0, sum(guided)
    for mass, hit, whole in zip(masses, hits, guided, strict=True):
        ahead -= whole
        below += mass
        end = below + (ahead << bits - GUIDE_BITS)
        ends += (_floor(c, _GUARD_BITS, top - 1) for c in (end - hit, end))
        if ends[-1] == top - 1:
            break
    return guided, ends


@lru_cache(maxsize=64)
def cell_table(family: Family, p: int, q: int, width: int = 1) -> CellTable:
    """Return the table for sigma = p/q, in lowest terms, with ``width`` digits of 64 bits.

    Parameters
    ----------
    family : {"gaussian", "laplace"}
        Which w.
    p, q : int
        The scale in grid units.
    width : int, default=1
        Digits of each end, at most 16: all of them tie with chance 2^-1000.

    Examples
    --------
    >>> table = cell_table("gaussian", 3, 1)
    >>> int(table.guide[0]), table.guide.size < 2**13
    (0, True)
    """
    if not (0 < p <= MAX_NUMERATOR and 0 < q <= MAX_DENOMINATOR):
        raise InputError("the scale must be p/q in (0, 2^50] with p <= 2^50 and q <= 2^57")
    if width > MAX_WIDTH:
        raise ArithmeticError("1,024 random bits in a row were those of a table: not by chance")
    guided, ends = _cut(family, p, q, width)
    places = range(64 * (width - 1), -1, -64)
    digits = np.array([[end >> place & 2**64 - 1 for place in places] for end in ends], np.uint64)
    start = sum(guided) << 64 - GUIDE_BITS
    shift = max(0, (2**64 - 1 - start).bit_length() - _START_BITS)
    steps = [start + (step << shift) for step in range((2**64 - 1 - start >> shift) + 1)]
    length = cell_length(p, q)
    m = p // (q * length)
    parts = 2 * m * m if family == "gaussian" else m
    numbers = [GUIDE_BITS, length.bit_length() - 1, shift, p, m * q, parts, family == "gaussian"]
    return CellTable(
        np.repeat(np.arange(len(guided)), guided).astype(np.uint16),  # fewer than 2^B cells
        digits,
        np.searchsorted(digits[:, 0], np.array(steps, np.uint64)).astype(np.uint32),
        np.array(numbers, np.uint64),
    )
