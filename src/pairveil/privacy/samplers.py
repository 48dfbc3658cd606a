"""Exact samplers: discrete Gaussian and Laplace noise, Poisson samples and noisy choices, from random bits.

Integers only, no floating point: each draw is a function of uniform bits whose distribution *is* the one
named, not near it.

**The bits** are the keystream of ChaCha20 under a key from the operating system. A reader is shown the words
not yet read, uses some of them and says how many. That is all the state there is, and it gives the two things
exact sampling needs. *No word is used twice*: ``spend`` is the only way on, and it never goes back; a forked
child draws a key of its own, a stream cannot be copied or pickled, and readers hold ``lock`` for a whole
draw. *No word is lost because a block ended*: when the words run out in the middle of a sample, the sampler
gives that sample up, spends nothing on it, calls ``refill``, which appends fresh words to the unread ones,
and starts the same sample again over the same words. So each sample is a function of the endless stream
alone. Dropping the half-read sample instead would be a bias: samples that need many words would be dropped
more often than the others. "Uniform" means indistinguishable from uniform for whoever cannot break ChaCha20
with 256 bits of key.

**Noise** is drawn by rejection with the coin Bernoulli(exp(-y)) of Canonne, Kamath and Steinke (2020,
Algorithm 1), over cells as in Karney (2016) instead of a Laplace proposal:

1. a cell k, and whether its first coin hits, from a `CellTable`;
2. i = kL + j, j uniform below L: log2(L) bits;
3. after 'no hit' i is kept; after 'hit' the other coins decide, and a refusal starts again at 1.

A sign is added, and -0 refused. One word serves for nearly all draws. Its bits, each used for one thing only:

    13 guide bits, the first digits of U | sign | not used | log2(L) <= 44 bits for j

A draw needs a cell k with probability P_k and, with it, a *hit* with probability alpha_k. Both are read off
one uniform real U. Only the lengths of the labels in [0, 1) count, so they are laid out for speed. With
B = ``GUIDE_BITS`` and n_k = floor(2^B P_k (1 - alpha_k)):

    first, for each k, n_k whole intervals of length 2^-B labelled (k, no hit), G in all;
    then, for each k, what is left of (k, no hit) and all of (k, hit).

The first B bits of U decide when they are below G, by one look into ``guide``. Otherwise U is compared with
the ends of the later intervals, digit by digit in base 2^64. docs/theory/noise.md has the proof,
which bits serve when, and why nothing overflows.

**A noisy choice** is the index c with probability proportional to exp(eta u_c / unit). Scores u are integers,
``unit`` is the integer that stands for 1 in the event's terms (the most by which one record's contributions
to the candidates may differ), and eta/unit is rounded down to r = (R_1 2^64 + R_0)/2^64, so that the range is
never above eta.

1. Draw a candidate uniformly from all, *with replacement*.
2. Return it with probability exp(-x), x = r (max u - u_c); otherwise start again at 1.

Leaving out the candidates that were refused is another mechanism (permute-and-flip), whose range can be
2 eta. Why the draw is exact, what its coins are and what its time tells: docs/theory/noise.md.
"""

from __future__ import annotations

import math
import os
import threading
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numba import njit
from numpy.typing import ArrayLike, NDArray

from pairveil.errors import InputError

# ---- random bits ---------------------------------------------------------------------------------

KEY_BYTES = 32
_ROOM = 64  # words that a draw left behind: more are rare, and get a place of their own


class Keystream:
    """Uniform 64-bit words from ChaCha20, each used once.

    A ``key`` is for tests only: the same one gives the same words, and ``for_release`` is False. By default
    one is drawn from the operating system and kept nowhere else. A ``block``, the words that one `refill`
    adds, changes the speed and never the words. ``lock`` is to be held from `unread` to the last `spend` of
    one draw.
    """

    def __init__(self, key: bytes | None = None, block: int = 16384) -> None:
        if key is not None and len(key) != KEY_BYTES:
            raise InputError(f"a key has {KEY_BYTES} bytes")
        if block < 1:
            raise InputError("a block has at least one word")
        self.for_release = key is None
        self.lock = threading.RLock()
        self._zeros = bytes(8 * block)
        # One place for the words, kept: the last unread ones move in front of each new block.
        self._space = np.empty(_ROOM + block, dtype=np.uint64)
        self._fresh = self._space[_ROOM:].view(np.uint8).data
        self._start(os.urandom(KEY_BYTES) if key is None else key)

    def _start(self, key: bytes) -> None:
        # The key is fresh, so the nonce (and the counter beside it) may start at zero.
        self._cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._words: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._process = os.getpid()

    def unread(self) -> NDArray[np.uint64]:
        """Return the words at hand that no one has used, oldest first; look, then ``spend``.

        The array is a view that the next ``refill`` writes over: ask again after it.
        """
        if os.getpid() != self._process:
            # A forked child holds the parent's words: using them would use them twice.
            if not self.for_release:
                raise RuntimeError("a keystream with a given key must not be used after a fork")
            self._start(os.urandom(KEY_BYTES))
        return self._words

    def spend(self, count: int) -> None:
        """Declare the oldest ``count`` unread words used."""
        if not 0 <= count <= self._words.size:
            raise ValueError("more words were spent than were unread")
        self._words = self._words[count:]

    def refill(self) -> None:
        """Append one block of fresh words behind the unread ones."""
        unread = self.unread()
        start = _ROOM - unread.size
        space, fresh = self._space, self._fresh
        if start < 0:
            start, space = 0, np.empty(unread.size + len(self._zeros) // 8, dtype=np.uint64)
            fresh = space[unread.size :].view(np.uint8).data
        space[start : start + unread.size] = unread
        self._cipher.update_into(self._zeros, fresh)
        self._words = space[start:]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a keystream cannot be copied or pickled: its words would be used twice")


@lru_cache(maxsize=1)
def process_keystream() -> Keystream:
    """Return the stream of this process, so that who draws from it need not hold (or pickle) one."""
    return Keystream()


if hasattr(os, "register_at_fork"):
    # The parent's lock may be held by a thread that the child does not have: start anew there.
    os.register_at_fork(after_in_child=process_keystream.cache_clear)

# ---- tables: [0, 1) cut so that the first bits of a number mostly decide -------------------------

Family = Literal["gaussian", "laplace"]
GAUSSIAN: Family = "gaussian"
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
    """Return L for sigma = p/q: the largest power of two with 48 L <= sigma, or 1."""
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
    """Return the table for sigma = p/q, in grid units and lowest terms, with ``width`` digits of 64 bits."""
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


# ---- discrete noise and Poisson samples at compiled speed -----------------------------------------

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


def draw(
    family: Family,
    scale: int | Fraction,
    size: int | tuple[int, ...],
    stream: Keystream,
    *,
    signed: bool = True,
) -> Ints:
    """Draw integers with P(x) proportional to exp(-x^2 / (2 scale^2)), or to exp(-|x| / scale), exactly.

    A Gaussian's variance is slightly below scale^2; the guarantee of CKS 2020 is stated in scale. Unsigned
    are the magnitudes, -0 and 0 being one.
    """
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
    """
    if not 2.0**-4 <= scale <= 2.0**49:
        raise InputError("the scale must be between 2^-4 and 2^49 grid units")
    parts = 2 ** max(0, 49 - math.frexp(scale)[1])  # scale * parts is in [2^48, 2^49]
    return Fraction(math.ceil(Fraction(scale) * parts), parts)


@lru_cache(maxsize=64)
def hazard(rate: float) -> Fraction:
    """Return the b/2^50 just below -ln(1 - rate): ``poisson_sample`` takes 1 - exp(-b/2^50)."""
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
        chosen = draw("laplace", 1 / step, block, keystream, signed=False)
        chosen += 1
        np.cumsum(chosen, out=chosen)
        chosen += last
        blocks.append(chosen)
        last = int(chosen[-1])
    joined = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
    return joined[: int(np.searchsorted(joined, n))]


# ---- noisy choices -------------------------------------------------------------------------------

MAX_UNIT = 1 << 52
"""Up to here a float64 in [0, 1] times the unit is rounded to an integer that is at most the unit."""

_MAX_CANDIDATES = 1 << 32
_MAX_TOTAL = 1 << 62
_HALF_ONES = np.uint64(2**32 - 1)
_NONE, _HALF = np.uint64(0), np.uint64(32)


@_compiled
def _product(one, other):  # type: ignore[no-untyped-def]
    """The 128 bits of a product of two words: the upper 64 and the lower 64."""
    low_one, high_one = one & _HALF_ONES, one >> _HALF
    low_other, high_other = other & _HALF_ONES, other >> _HALF
    low = low_one * low_other
    middle = high_one * low_other + (low >> _HALF)  # below 2^64: (2^32 - 1)^2 + 2^32 - 1
    second = low_one * high_other + (middle & _HALF_ONES)
    high = high_one * high_other + (middle >> _HALF) + (second >> _HALF)
    return high, (second << _HALF) | (low & _HALF_ONES)


@_compiled
def _exp_coin(words, at, part, whole):  # type: ignore[no-untyped-def]
    """Bernoulli(exp(-y)) with y = 1 if ``whole``, else part/2^64 (CKS 2020, Algorithm 1).

    Toss Bernoulli(y/1), Bernoulli(y/2), ... until one fails, at number t: t is odd with probability
    exp(-y). A toss of y/t is one of y and one of 1/t.
    """
    trial = _ONE
    while True:
        hit = True
        if not whole:
            if at >= words.size:
                return False, _EXHAUSTED
            hit = words[at] < part
            at += 1
        if hit and trial > _ONE:
            hit, at = _coin(words, at, _ONE, trial)
        if at < 0 or not hit:
            return trial & _ONE == _ONE, at
        trial += _ONE


@_compiled
def _all_whole(words, at, count):  # type: ignore[no-untyped-def]
    """Bernoulli(exp(-count)): coins exp(-1) until the first that fails."""
    while count > _NONE:
        hit, at = _exp_coin(words, at, _NONE, True)
        if at < 0 or not hit:
            return False, at
        count -= _ONE
    return True, at


@_compiled
def _accept(words, at, below, rate_whole, rate_part):  # type: ignore[no-untyped-def]
    """Bernoulli(exp(-x)) with x = below (rate_whole + rate_part/2^64)."""
    whole, part = _product(below, rate_part)
    hit, at = _all_whole(words, at, whole)
    # Of what is not below at all, any whole rate makes 0: the best candidate is kept at once.
    while hit and at >= 0 and rate_whole > _NONE and below > _NONE:
        hit, at = _all_whole(words, at, below)
        rate_whole -= _ONE
    if at < 0 or not hit:
        return False, at
    return _exp_coin(words, at, part, False)


@_compiled
def _fill_choices(out, done, words, scores, best, rate_whole, rate_part):  # type: ignore[no-untyped-def]
    """Choose until ``out`` is full or an attempt cannot end: its words stay unspent."""
    count = np.uint64(scores.size)
    share = _ALL_ONES // count
    at = 0
    while done < out.size and at < words.size:
        candidate = words[at] // share  # uniform below count, once the last incomplete share is out
        behind = at + 1
        if candidate < count:
            # Modulo 2^64 the difference is exact, whatever the signs.
            below = best - np.uint64(scores[candidate])
            kept, behind = _accept(words, behind, below, rate_whole, rate_part)
            if behind < 0:
                return done, at
            if kept:
                out[done] = np.int64(candidate)
                done += 1
        at = behind
    return done, at


def rate_below(eta: float, unit: int) -> int:
    """Return floor(2^64 eta / unit): eta per step of a score, never rounded up."""
    rate = math.floor(Fraction(eta) * 2**64 / unit)
    if not 1 <= rate < 2**127:
        raise InputError(
            "eta is too small or too large for this unit of the scores: change the unit"
        )
    return rate


def _check_unit(unit: int) -> None:
    if isinstance(unit, bool) or not isinstance(unit, Integral) or not 1 <= unit <= MAX_UNIT:
        raise InputError("the unit of the scores must be an integer between 1 and 2^52")


def exact_scores(scores: ArrayLike, eta: float, unit: int) -> Ints:
    """Return the scores as 64-bit integers; refuse what cannot be chosen from exactly.

    Everything refused here is public: the scores' shape and type, eta and the unit.
    """
    array: NDArray[Any] = np.asarray(scores)
    if array.ndim != 1 or not 1 <= array.size <= _MAX_CANDIDATES:
        raise InputError("the scores of a choice must be a list of at least one candidate")
    if array.dtype.kind != "i":
        raise InputError(
            "the scores of a choice must be signed integers: round contributions first"
        )
    if isinstance(eta, bool) or not isinstance(eta, Real) or not float(eta) > 0.0:
        raise InputError("eta must be a number greater than 0 (inf: no noise)")
    _check_unit(unit)
    return np.ascontiguousarray(array, dtype=np.int64)


def choose_exactly(
    scores: ArrayLike, eta: float, unit: int, keystream: Keystream, count: int = 1
) -> Ints:
    """Draw candidates with P(c) proportional to exp(eta u_c / unit), exactly and independently.

    Each draw is a ``ChoiceEvent(eta)`` if one record's contributions have a range of ``unit`` at most
    (`whole_scores`). eta is rounded down to a multiple of unit/2^64; ``inf`` takes the first best one.
    """
    whole = exact_scores(scores, eta, unit)
    if math.isinf(eta):
        return np.full(count, np.argmax(whole), dtype=np.int64)
    rate = tuple(np.uint64(word) for word in divmod(rate_below(eta, unit), 1 << 64))
    best = whole.max().astype(np.uint64)  # modulo 2^64, like the difference
    out, done = np.empty(count, dtype=np.int64), 0
    with keystream.lock:
        while done < count:
            done, spent = _fill_choices(out, done, keystream.unread(), whole, best, *rate)
            keystream.spend(spent)
            if done < count:
                keystream.refill()
    return out


def whole_scores(values: ArrayLike, signs: ArrayLike, unit: int) -> Ints:
    """Add up contributions as integers so that one record's range is at most ``unit``, exactly.

    The contract of a choice. A record (for instance a pair) contributes to candidate c the integer
    sign * floor(unit * value_c), value_c in [0, 1], with one sign for all candidates. So zeroing the
    record out moves every score one way, by 0 to ``unit``: the range of the change is at most ``unit``,
    with no term for rounding, because each record is rounded by itself and integers are added exactly.
    Replacing a record (sign and values) has a range of at most 2 units; kappa records, kappa times that.
    Rounding a floating-point sum instead would add that sum's own rounding errors to the range.
    """
    contributions = np.asarray(values, dtype=np.float64)
    directions = np.asarray(signs)
    if contributions.ndim != 2 or directions.shape != contributions.shape[:1]:
        raise InputError("contributions need one row a record, and one sign for each row")
    if directions.dtype.kind != "i":
        raise InputError(
            "the signs of contributions must be integers: +1, -1, or 0 for a null record"
        )
    _check_unit(unit)
    if directions.size * int(unit) > _MAX_TOTAL:
        raise InputError("too many records for this unit of the scores: lower the unit")
    clipped = np.clip(np.nan_to_num(contributions, nan=0.0), 0.0, 1.0)
    rounded = np.floor(clipped * float(unit)).astype(np.int64)
    total: Ints = (np.sign(directions).astype(np.int64)[:, None] * rounded).sum(axis=0)
    return total
