"""Exact discrete Gaussian and Laplace noise, and Poisson sampling, at compiled speed.

Integers only, no floating point: each draw is a function of uniform bits whose distribution *is* the
one named, not near it. The method is rejection with the coin Bernoulli(exp(-y)) of Canonne, Kamath
and Steinke (2020, Algorithm 1), over cells as in Karney (2016) instead of a Laplace proposal:

1. a cell k, and whether its first coin hits, from the table of `pairveil.privacy.sampling_table`;
2. i = kL + j, j uniform below L: log2(L) bits;
3. after 'no hit' i is kept; after 'hit' the other coins decide, and a refusal starts again at 1.

A sign is added, and -0 refused. One word serves for nearly all draws. Its bits, each used for one thing only:

    13 guide bits, the first digits of U | sign | not used | log2(L) <= 44 bits for j

docs/theory/exact-sampling.md has the proof, which bits serve when, and why nothing overflows.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.privacy.keystream import Keystream
from pairveil.privacy.sampling_table import Family, cell_table

Ints = NDArray[np.int64]

MAX_ITEMS = 1 << 48
_EXHAUSTED, _TIED = -1, -2
_ALL_ONES = np.uint64(2**64 - 1)
_ONE, _TWO, _WORD = np.uint64(1), np.uint64(2), np.uint64(64)
# Places in the table's `numbers`.
_GUIDE, _LENGTH, _START, _P, _STEP, _PARTS, _GAUSSIAN = range(7)


# Every function below takes the words and a position and returns the position behind what it read,
# or a negative one: _EXHAUSTED when it would have read past the end, _TIED when the digits tied.
# They allocate nothing, so numba's reference counting (atomic, longer than a draw) is left out; with
# it left out a function that does allocate fails to compile. What they need of `cells` comes as an
# argument: a constant imported from there would stay in numba's cache after a change.
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
def _row(words, at, guided, ends, starts, numbers):  # type: ignore[no-untyped-def]
    """The first r with U < c_r. Digits of U are read as far as some comparison needs them.

    Its first digit is made of the guide bits of one word and the leading bits of the next; whole words
    follow.
    """
    if at + 1 >= words.size:
        return 0, _EXHAUSTED
    rest = _WORD - numbers[_GUIDE]
    digit = (words[at] >> rest << rest) | (words[at + 1] >> numbers[_GUIDE])
    row = np.int64(starts[(digit - (guided << rest)) >> numbers[_START]])
    read = 2
    while True:  # the last row is all ones, which no word exceeds: the row stays in the table
        place = 0
        while digit == ends[row, place]:
            place += 1
            if place == ends.shape[1]:
                return 0, _TIED
            if at + place + 1 >= words.size:
                return 0, _EXHAUSTED
            digit = words[at + place + 1]
        read = max(read, place + 2)
        if digit < ends[row, place]:
            return row, at + read
        if place > 0:
            digit = (words[at] >> rest << rest) | (words[at + 1] >> numbers[_GUIDE])
        row += 1


@_compiled
def _keep(words, at, k, j, numbers):  # type: ignore[no-untyped-def]
    """Bernoulli(exp(-y)), given that the coin alpha_k of the first toss came up (CKS, Algorithm 1).

    Toss Bernoulli(y/1), Bernoulli(y/2), ... until one fails, at number t. The first t - 1 hold with
    probability y^(t-1)/(t-1)!, so P(t odd) = sum over odd t of y^(t-1)/(t-1)! - y^t/t! = exp(-y).
    """
    p, step, gaussian = numbers[_P], numbers[_STEP], numbers[_GAUSSIAN] == _ONE
    odd = _TWO * k + _ONE if gaussian else _ONE
    trial, hit = _ONE, True
    while True:
        if trial > _ONE:
            hit, at = _coin(words, at, odd, numbers[_PARTS])
        if hit:
            hit, at = _coin(words, at, step * j, p)
        if hit and gaussian:
            hit, at = _coin(words, at, step * ((k << numbers[_LENGTH] << _ONE) + j), odd * p)
        if hit and trial > _ONE:
            hit, at = _coin(words, at, _ONE, trial)
        if at < 0 or not hit:
            return trial & _ONE == _ONE, at
        trial += _ONE


@_compiled
def _run(out, done, words, at, signs, guide, numbers):  # type: ignore[no-untyped-def]
    """Draw while the guide bits decide. Nearly all draws end here: no branch that goes either way."""
    guided, bits, length = np.uint64(guide.size), numbers[_GUIDE], numbers[_LENGTH]
    rest, mask = _WORD - bits, (_ONE << length) - _ONE
    place, reading = np.uint64(done), np.uint64(at)
    while True:
        # A word fills one place at most, so one bound serves for both arrays.
        stop = reading + min(np.uint64(out.size) - place, np.uint64(words.size) - reading)
        if reading == stop:
            return np.int64(place), np.int64(reading)
        while reading < stop:
            word = words[reading]
            first = word >> rest
            if first >= guided:
                return np.int64(place), np.int64(reading)
            i = np.int64((np.uint64(guide[first]) << length) | (word & mask))
            sign = (np.int64(word << bits) >> 63) & signs  # 0 or -1
            flipped = i ^ sign  # i or -1 - i: all ones for -0 alone, which the next overwrites
            out[place] = flipped - sign
            place += np.uint64(np.uint64(flipped) < _ALL_ONES)
            reading += _ONE


@_compiled
def _fill(out, done, words, signs, guide, ends, starts, numbers):  # type: ignore[no-untyped-def]
    """Draw until ``out`` is full or an attempt cannot end: its words stay unspent."""
    at = 0
    while True:
        done, at = _run(out, done, words, at, signs, guide, numbers)
        if done >= out.size:
            return done, at, 0
        row, behind = _row(words, at, np.uint64(guide.size), ends, starts, numbers)
        if behind < 0:
            return done, at, behind
        word, length = words[at], numbers[_LENGTH]
        k, j, kept = np.uint64(row >> 1), word & ((_ONE << length) - _ONE), True
        if row & 1 == 1:
            kept, behind = _keep(words, behind, k, j, numbers)
            if behind < 0:
                return done, at, behind
        i = np.int64((k << length) | j)
        sign = (np.int64(word << numbers[_GUIDE]) >> 63) & signs
        if kept and (i != 0 or sign == 0):
            out[done] = (i ^ sign) - sign
            done += 1
        at = behind


def _draw(
    family: Family,
    scale: int | Fraction,
    size: int | tuple[int, ...],
    stream: Keystream,
    *,
    signed: bool = True,
) -> Ints:
    p, q = int(scale.numerator), int(scale.denominator)
    table = cell_table(family, p, q)
    out = np.empty(math.prod(size) if isinstance(size, tuple) else size, dtype=np.int64)
    done, signs = 0, -1 if signed else 0
    with stream.lock:
        while done < out.size:
            done, spent, status = _fill(out, done, stream.unread(), signs, *table)
            stream.spend(spent)
            if status == _TIED:
                table = cell_table(family, p, q, 2 * table.ends.shape[1])
            elif status == _EXHAUSTED:
                stream.refill()
    return out.reshape(size)


@lru_cache(maxsize=256)
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

    Examples
    --------
    >>> noise = discrete_gaussian(2**40, (2, 3), Keystream())
    >>> noise.shape, noise.dtype
    ((2, 3), dtype('int64'))
    """
    return _draw("gaussian", sigma, size, keystream)


def discrete_laplace(
    scale: int | Fraction, size: int | tuple[int, ...], keystream: Keystream
) -> Ints:
    """Draw integers with P(x) proportional to exp(-|x| / scale), exactly.

    Parameters
    ----------
    scale, size, keystream
        As in `discrete_gaussian`.

    Examples
    --------
    >>> discrete_laplace(Fraction(1, 100), 4, Keystream())
    array([0, 0, 0, 0])
    """
    return _draw("laplace", scale, size, keystream)


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

    Returns the chosen items, increasing.

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
    step = hazard(rate)
    if step <= 0:
        raise InputError("the rate must be at least 2^-49")
    # A block expects to pass n <= 2^48, h >= 2^-50: sums beyond 2^63 have a chance below exp(-7000).
    block = int(n * rate + 6 * math.sqrt(n * rate)) + 16
    blocks, last = [], -1
    while last < n:
        chosen = _draw("laplace", 1 / step, block, keystream, signed=False)
        chosen += 1
        np.cumsum(chosen, out=chosen)
        chosen += last
        blocks.append(chosen)
        last = int(chosen[-1])
    joined = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
    return joined[: int(np.searchsorted(joined, n))]
