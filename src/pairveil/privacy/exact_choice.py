"""An exact noisy choice: the index c with probability proportional to exp(eta u_c / unit).

Integers only, no floating point. Scores u are integers, ``unit`` is the integer that stands for 1 in
the event's terms (the most by which one record's contributions to the candidates may differ), and
eta/unit is rounded down to r = (R_1 2^64 + R_0)/2^64, so that the range is never above eta.

1. Draw a candidate uniformly from all, *with replacement*.
2. Return it with probability exp(-x), x = r (max u - u_c); otherwise start again at 1.

Leaving out the candidates that were refused is another mechanism (permute-and-flip), whose range can be
2 eta. Why the draw is exact, what its coins are and what its time tells: docs/theory/choice.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from pairveil.errors import InputError
from pairveil.privacy.keystream import Keystream

Ints = NDArray[np.int64]

MAX_UNIT = 1 << 52
"""Up to here a float64 in [0, 1] times the unit is rounded to an integer that is at most the unit."""

_MAX_CANDIDATES = 1 << 32
_MAX_TOTAL = 1 << 62
_EXHAUSTED = -1
_ALL_ONES, _HALF_ONES = np.uint64(2**64 - 1), np.uint64(2**32 - 1)
_NONE, _ONE, _HALF = np.uint64(0), np.uint64(1), np.uint64(32)

# As in `discrete`: nothing is allocated, and a negative position says that the words ran out.
_compiled = njit(cache=True, _nrt=False)


@_compiled
def _coin(words, at, numerator, denominator):  # type: ignore[no-untyped-def]
    """Bernoulli(numerator/denominator). Also in `discrete`: numba's cache sees no other file's changes."""
    share = _ALL_ONES // denominator
    while at < words.size:
        word = words[at]
        at += 1
        if word < share * denominator:
            return word < share * numerator, at
    return False, _EXHAUSTED


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
def _fill(out, done, words, scores, best, rate_whole, rate_part):  # type: ignore[no-untyped-def]
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
    """Return floor(2^64 eta / unit): eta per step of a score, never rounded up.

    Examples
    --------
    >>> rate_below(0.5, 2**20) == 2**43
    True
    """
    rate = math.floor(Fraction(eta) * 2**64 / unit)
    if not 1 <= rate < 2**127:
        raise InputError(
            "eta is too small or too large for this unit of the scores: change the unit"
        )
    return rate


def check_choice(scores: ArrayLike, eta: float, unit: int) -> Ints:
    """Return the scores as 64-bit integers; refuse what cannot be chosen from exactly.

    Everything refused here is public: the scores' shape and type, eta and the unit.

    Examples
    --------
    >>> check_choice([3, 1], 0.5, 1)
    array([3, 1])
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
    if isinstance(unit, bool) or not isinstance(unit, Integral) or not 1 <= unit <= MAX_UNIT:
        raise InputError("the unit of the scores must be an integer between 1 and 2^52")
    return np.ascontiguousarray(array, dtype=np.int64)


def choose_exactly(
    scores: ArrayLike, eta: float, unit: int, keystream: Keystream, count: int = 1
) -> Ints:
    """Draw candidates with P(c) proportional to exp(eta u_c / unit), exactly and independently.

    Parameters
    ----------
    scores : array of signed integers, shape (n_candidates,)
        The sums u_c, see `whole_scores` for the contract under which a draw is a
        ``ChoiceEvent(eta)``. Any 64-bit integers are handled exactly.
    eta : float
        The event's eta; rounded down to a multiple of unit/2^64. ``inf`` takes the first best one.
    unit : int
        What counts as 1: the largest range of one record's contributions.
    keystream : Keystream
        Where the bits come from.
    count : int, default 1
        Independent draws; each is an event of its own.

    Returns ndarray of int64, shape (count,): indices of candidates.

    Examples
    --------
    >>> choose_exactly([0, 10**6, -5], 1.0, 1, Keystream(), count=3)
    array([1, 1, 1])
    """
    whole = check_choice(scores, eta, unit)
    if math.isinf(eta):
        return np.full(count, np.argmax(whole), dtype=np.int64)
    rate = tuple(np.uint64(word) for word in divmod(rate_below(eta, unit), 1 << 64))
    best = whole.max().astype(np.uint64)  # modulo 2^64, like the difference
    out, done = np.empty(count, dtype=np.int64), 0
    with keystream.lock:
        while done < count:
            done, spent = _fill(out, done, keystream.unread(), whole, best, *rate)
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

    Parameters
    ----------
    values : array of float, shape (n_records, n_candidates)
        Clipped to [0, 1]; NaN counts as 0, so that no contents can stop a fit.
    signs : array of int, shape (n_records,)
        +1, -1 or 0 (a null record).
    unit : int
        At most 2^52, and n_records * unit at most 2^62.

    Returns
    -------
    ndarray of int64, shape (n_candidates,)

    Examples
    --------
    >>> whole_scores([[0.5, 1.0], [0.25, 0.0]], [1, -1], unit=8)
    array([2, 8])
    """
    contributions = np.asarray(values, dtype=np.float64)
    directions = np.asarray(signs)
    if contributions.ndim != 2 or directions.shape != contributions.shape[:1]:
        raise InputError("contributions need one row a record, and one sign for each row")
    if directions.dtype.kind != "i":
        raise InputError(
            "the signs of contributions must be integers: +1, -1, or 0 for a null record"
        )
    if isinstance(unit, bool) or not isinstance(unit, Integral) or not 1 <= unit <= MAX_UNIT:
        raise InputError("the unit of the scores must be an integer between 1 and 2^52")
    if directions.size * int(unit) > _MAX_TOTAL:
        raise InputError("too many records for this unit of the scores: lower the unit")
    clipped = np.clip(np.nan_to_num(contributions, nan=0.0), 0.0, 1.0)
    rounded = np.floor(clipped * float(unit)).astype(np.int64)
    total: Ints = (np.sign(directions).astype(np.int64)[:, None] * rounded).sum(axis=0)
    return total
