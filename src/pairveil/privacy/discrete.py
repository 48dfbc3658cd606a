"""Exact discrete Gaussian and Laplace noise, and Poisson sampling, at compiled speed.

Integers only, no floating point: each draw is a function of uniform bits whose distribution *is* the
one named, not near it. The method is rejection with the coin Bernoulli(exp(-x)) of Canonne, Kamath
and Steinke (2020, Algorithm 1), over the cells of Karney (2016) instead of a Laplace proposal.

Let sigma = p/q and let w(z) be exp(-z^2/2) (Gaussian) or exp(-z) (Laplace). To draw i >= 0 with
P(i) proportional to w(i/sigma), cut z = i/sigma >= 0 into cells [k/m, (k+1)/m), m a power of two:

1. cell k with probability proportional to w(k/m);
2. i = first_k + j, j uniform below tries = ceil(sigma/m), first_k = ceil(k sigma/m) the first integer
   of the cell; give up unless i is in the cell: N = i q m - k p < p (N >= 0 always);
3. keep i with probability w(i/sigma)/w(k/m) = exp(-y), or else start again at 1.

An attempt yields i with probability w(k/m) (1/tries) w(i/sigma)/w(k/m) / sum_k w(k/m), which is
proportional to w(i/sigma); each i lies in one cell. A sign is added, and -0 refused (then 0 would
count twice). Because z = k/m + N/(mp), the exponent is a product of rationals in [0, 1],

    Gaussian  y = (2k+1)/(2m^2) * N/p * (2kp+N)/((2k+1)p),        Laplace  y = 1/m * N/p,

(for small m, (2k+1)/(2m^2) may exceed 1: it is cut into pieces of at most 1, exp(-y) being the
product over the pieces). A coin for a product is the conjunction of coins, so no product is formed.

Step 1 compares the digits of a uniform real U with those of c_k = P(cell <= k), in base 2^64. With
T_k = floor(2^64 c_k) and u the first digit of U: u < T_k implies U < c_k, u > T_k implies U > c_k,
and u = T_k (chance 2^-64 per k) asks for the next digit. When the digits at hand all tie, the table
is built again with twice the digits and the draw starts again over the same words.

No overflow: sigma = p/q in lowest terms with p <= 2^50, q m <= 2^57, and (2k+1) p < 2^63 for each k
in the table (checked when it is built), so N < p + q m, 2kp + N and i = first_k + j <= (k+1) p + 1
are below 2^63; the coins' thresholds num * (M // den) with num <= den are at most M = 2^64 - 1.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.privacy.keystream import Keystream

Family = Literal["gaussian", "laplace"]
Words = NDArray[np.uint64]
Ints = NDArray[np.int64]

MAX_NUMERATOR = 1 << 50
MAX_STEP = 1 << 57
MAX_ITEMS = 1 << 48
_MOST_CELLS_PER_SIGMA = 16
_EXHAUSTED, _TIED = -1, -2
_ALL_ONES, _GUIDE_SHIFT = np.uint64(2**64 - 1), np.uint64(52)
_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)


class _Table(NamedTuple):
    """What the compiled loop needs to know of one distribution."""

    digits: Words  # (cells, width): c_k in base 2^64
    guide: Ints  # (4096,): the first cell to look at, from the top 12 bits of U
    first: Words  # (cells,): first_k
    offset: Words  # (cells,): N at first_k
    step: np.uint64  # q m, by which N grows with i
    tries: np.uint64  # integers tried in each cell: ceil(sigma/m)
    p: np.uint64
    mask: np.uint64  # 2m^2 - 1 or m - 1
    gaussian: bool


@lru_cache(maxsize=32)
def _cell_digits(family: Family, m: int, width: int) -> tuple[Words, Ints]:
    """Digits of c_k in base 2^64 until they are all ones, and the guide to them.

    The sums are decimal with correctly rounded exp; ``slack`` is far above what ends in rounding and
    in the terms left out (each below 10^-(precision + 5) and falling at least as fast as exp(-1/m)),
    and a digit that it could change is not accepted.
    """
    scale = 2 ** (64 * width)
    with localcontext() as context:
        context.prec = 40 + math.ceil(64 * width * math.log10(2))
        slack = Decimal(10) ** (10 - context.prec)
        terms: list[Decimal] = []
        while not terms or terms[-1] > Decimal(10) ** -(context.prec + 5):
            k = Decimal(len(terms))
            terms.append((-k * k / (2 * m * m) if family == "gaussian" else -k / m).exp())
        total, partial, rows = sum(terms), Decimal(0), []
        for term in terms:
            partial += term
            low, high = (
                int(((partial / total + error) * scale).to_integral_value(ROUND_FLOOR))
                for error in (-slack, slack)
            )
            # In the last row c_k is so near 1 that `high` may reach it; all ones is the floor then.
            if low != min(high, scale - 1):
                raise ArithmeticError("the table of cells needs more precision")
            rows.append(
                [(low >> (64 * (width - 1 - place))) & (2**64 - 1) for place in range(width)]
            )
            if low == scale - 1:
                break
    digits = np.array(rows, dtype=np.uint64)
    guide = np.searchsorted(digits[:, 0], np.arange(4096, dtype=np.uint64) << _GUIDE_SHIFT)
    return digits, guide.astype(np.int64)


@lru_cache(maxsize=64)
def _table(family: Family, sigma: Fraction, width: int) -> _Table:
    p, q = sigma.numerator, sigma.denominator
    m = 1  # more cells, fewer rejections, until a cell holds too few integers
    while m < _MOST_CELLS_PER_SIGMA and 8 * m * q <= p:
        m *= 2
    digits, guide = _cell_digits(family, m, width)
    step = q * m
    if p > MAX_NUMERATOR or step > MAX_STEP or (2 * len(digits) + 1) * p >= 2**63:
        raise InputError("the scale must be a ratio of integers below 2^50")
    first = [-(-k * p // step) for k in range(len(digits))]
    return _Table(
        digits,
        guide,
        np.array(first, dtype=np.uint64),
        np.array([i * step - k * p for k, i in enumerate(first)], dtype=np.uint64),
        np.uint64(step),
        np.uint64(-(-p // step)),
        np.uint64(p),
        np.uint64((2 * m * m if family == "gaussian" else m) - 1),
        family == "gaussian",
    )


# Every function below takes the words and a position and returns the position behind what it read,
# or a negative one: _EXHAUSTED when it would have read past the end, _TIED when the digits tied.
# They allocate nothing, so numba's reference counting (atomic, longer than a draw) is left out; with
# it left out a function that does allocate fails to compile.
_compiled = njit(cache=True, _nrt=False)


@_compiled
def _coin(words, at, numerator, denominator):  # type: ignore[no-untyped-def]
    """Bernoulli(numerator/denominator): u is uniform below a multiple of the denominator."""
    share = _ALL_ONES // denominator
    while at < words.size:
        word = words[at]
        at += 1
        if word < share * denominator:
            return word < share * numerator, at
    return False, _EXHAUSTED


@_compiled
def _exp_coin(words, at, piece, mask, n, p, k, gaussian):  # type: ignore[no-untyped-def]
    """Bernoulli(exp(-x)), x = piece/(mask+1) * the other factors of y (CKS 2020, Algorithm 1).

    Toss Bernoulli(x/1), Bernoulli(x/2), ... until one fails, at number t. The first t - 1 hold with
    probability x^(t-1)/(t-1)!, so P(t odd) = sum over odd t of x^(t-1)/(t-1)! - x^t/t! = exp(-x).
    """
    trial = _ONE
    while True:
        if at >= words.size:
            return False, _EXHAUSTED
        hit = (words[at] & mask) < piece
        at += 1
        if hit:
            hit, at = _coin(words, at, n, p)
        if hit and gaussian:
            hit, at = _coin(words, at, _TWO * k * p + n, (_TWO * k + _ONE) * p)
        if hit and trial > _ONE:
            hit, at = _coin(words, at, _ONE, trial)
        if at < 0 or not hit:
            return trial & _ONE == _ONE, at
        trial += _ONE


@_compiled
def _keep(words, at, mask, n, p, k, gaussian):  # type: ignore[no-untyped-def]
    """Bernoulli(exp(-y)), piece by piece: mask + 1 is 2m^2 or m, a piece of it a factor <= 1."""
    left = _TWO * k + _ONE if gaussian else _ONE
    while left > _ZERO:
        piece = min(left, mask + _ONE)
        kept, at = _exp_coin(words, at, piece, mask, n, p, k, gaussian)
        if at < 0 or not kept:
            return False, at
        left -= piece
    return True, at


@_compiled
def _cell(words, at, digits, guide):  # type: ignore[no-untyped-def]
    """The first k with U < c_k. Digits of U are read as far as some comparison needs them."""
    if at >= words.size:
        return 0, _EXHAUSTED
    k = guide[words[at] >> _GUIDE_SHIFT]
    read = 1
    while True:  # the last row is all ones, which no word exceeds: k stays in the table
        place = 0
        while words[at + place] == digits[k, place]:
            place += 1
            if place == digits.shape[1]:
                return 0, _TIED
            if at + place >= words.size:
                return 0, _EXHAUSTED
        read = max(read, place + 1)
        if words[at + place] < digits[k, place]:
            return k, at + read
        k += 1


@_compiled
def _fill(  # type: ignore[no-untyped-def]
    out, done, words, signed, digits, guide, first, offset, step, tries, p, mask, gaussian
):
    """Draw by steps 1 to 3 until ``out`` is full or a draw cannot end: its words stay unspent.

    The sign is the low bit of the word that gives j.
    """
    share = (_ALL_ONES >> _ONE) // tries
    at = spent = 0
    while done < out.size:
        cell, at = _cell(words, at, digits, guide)
        if at >= 0 and at >= words.size:
            at = _EXHAUSTED
        if at < 0:
            return done, spent, at
        negative = signed and words[at] & _ONE == _ONE
        uniform = words[at] >> _ONE
        at += 1
        if uniform >= share * tries:
            continue
        j = uniform // share
        n = offset[cell] + j * step
        i = first[cell] + j
        if n >= p or (i == _ZERO and negative):
            continue
        kept, at = _keep(words, at, mask, n, p, np.uint64(cell), gaussian)
        if at < 0:
            return done, spent, at
        if kept:
            out[done] = -np.int64(i) if negative else np.int64(i)
            done += 1
            spent = at
    return done, spent, 0


def _draw(family: Family, sigma: Fraction, count: int, stream: Keystream, signed: bool) -> Ints:
    if sigma <= 0:
        raise InputError("the scale must be greater than 0")
    out = np.empty(count, dtype=np.int64)
    done, width = 0, 1
    with stream.lock:
        while done < count:
            table = _table(family, sigma, width)
            done, spent, status = _fill(out, done, stream.unread(), signed, *table)
            stream.spend(spent)
            if status == _TIED:
                width *= 2
            elif status == _EXHAUSTED:
                stream.refill()
    return out


def scale_above(scale: float) -> Fraction:
    """Return a ratio that the samplers take, not below ``scale`` and above it by 2^-48 of it at most.

    More noise than asked for is the safe side.

    Examples
    --------
    >>> scale_above(1000.0)
    Fraction(1000, 1)
    >>> 0 <= scale_above(0.1) - Fraction(0.1) < 2**-50
    True
    """
    if not 2.0**-4 <= scale <= 2.0**49:
        raise InputError("the scale must be between 2^-4 and 2^49 grid units")
    parts = 2 ** max(0, 49 - math.frexp(scale)[1])  # scale * parts is in [2^48, 2^49]
    return Fraction(math.ceil(Fraction(scale) * parts), parts)


def discrete_gaussian(
    sigma: int | Fraction, size: int | tuple[int, ...], keystream: Keystream
) -> Ints:
    """Draw integers with P(x) proportional to exp(-x^2 / (2 sigma^2)), exactly.

    Parameters
    ----------
    sigma : int or Fraction
        Scale in grid units, a ratio of integers, numerator at most 2^50. (The variance is slightly
        below sigma^2; the guarantee of CKS 2020 is stated in sigma.)
    size : int or tuple of int
        Shape of the result.
    keystream : Keystream
        Where the bits come from.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> noise = discrete_gaussian(2**40, (2, 3), Keystream())
    >>> noise.shape, noise.dtype
    ((2, 3), dtype('int64'))
    """
    drawn = _draw("gaussian", Fraction(sigma), math.prod(np.atleast_1d(size)), keystream, True)
    return drawn.reshape(size)


def discrete_laplace(
    scale: int | Fraction, size: int | tuple[int, ...], keystream: Keystream
) -> Ints:
    """Draw integers with P(x) proportional to exp(-|x| / scale), exactly.

    Parameters
    ----------
    scale : int or Fraction
        Scale in grid units, a ratio of integers, numerator at most 2^50.
    size : int or tuple of int
        Shape of the result.
    keystream : Keystream
        Where the bits come from.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> discrete_laplace(Fraction(1, 100), 4, Keystream())
    array([0, 0, 0, 0])
    """
    drawn = _draw("laplace", Fraction(scale), math.prod(np.atleast_1d(size)), keystream, True)
    return drawn.reshape(size)


@lru_cache(maxsize=64)
def hazard(rate: float) -> Fraction:
    """Return the b/2^50 just below -ln(1 - rate): ``poisson_sample`` takes 1 - exp(-b/2^50).

    Examples
    --------
    >>> 0.0 < 0.05 - -math.expm1(-hazard(0.05)) < 2**-49
    True
    """
    with localcontext() as context:
        context.prec = 80  # ln is correctly rounded; the slack covers its last digits
        exact = -(1 - Decimal(rate)).ln() * 2**50 - Decimal(10) ** -40
        return Fraction(int(exact.to_integral_value(ROUND_FLOOR)), 2**50)


def poisson_sample(n: int, rate: float, keystream: Keystream) -> Ints:
    """Choose each of n items independently with one probability, at a cost of O(items chosen).

    The number of items skipped before the next chosen one is geometric, P(skip >= s) = exp(-s h),
    which is the Laplace magnitude of scale 1/h: drawn exactly. So the chance of an item is
    1 - exp(-h) with h = ``hazard(rate)``: never above ``rate``, and less than 2^-50 below it. Account
    for ``rate``: a smaller chance is a thinned sample, which is never less private (a mixture with
    the case 'not chosen'; the hockey-stick divergence is jointly convex).

    Parameters
    ----------
    n : int
        Number of items, at most 2^48.
    rate : float
        In (0, 1]; 1 chooses every item and draws nothing.
    keystream : Keystream
        Where the bits come from.

    Returns
    -------
    ndarray of int64
        The chosen items, increasing.

    Examples
    --------
    >>> poisson_sample(4, 1.0, Keystream())
    array([0, 1, 2, 3])
    """
    if not 0 <= n <= MAX_ITEMS:
        raise InputError("n must be between 0 and 2^48")
    if not 0.0 < rate <= 1.0:
        raise InputError("the rate must be in (0, 1]")
    if rate == 1.0:
        return np.arange(n, dtype=np.int64)
    gap = hazard(rate)
    if gap <= 0:
        raise InputError("the rate must be at least 2^-49")
    # A skip is at most (cells + 1)/h + 1 and a block expects to pass n, so sums stay below 2^63.
    block = int(n * rate + 6 * math.sqrt(n * rate)) + 16
    blocks, last = [], -1
    while last < n:
        chosen = np.cumsum(_draw("laplace", 1 / gap, block, keystream, False) + 1) + last
        blocks.append(chosen)
        last = int(chosen[-1])
    joined = np.concatenate(blocks)
    return joined[: int(np.searchsorted(joined, n))]
