"""What every word decides, enumerated: each label gets exactly the length it should, each coin its odds.

Nothing here is statistical. The oracle takes each exponential by itself, in decimal with 80 digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from pairveil.errors import InputError
from pairveil.privacy import samplers as discrete
from pairveil.privacy.samplers import (
    GUIDE_BITS,
    MAX_WIDTH,
    Family,
    Keystream,
    _coin,
    _fill,
    cell_length,
    cell_table,
    draw,
)

discrete_gaussian, discrete_laplace = partial(draw, "gaussian"), partial(draw, "laplace")
SAMPLERS = {"gaussian": discrete_gaussian, "laplace": discrete_laplace}
FAMILIES: list[Family] = ["gaussian", "laplace"]
# Cells of one integer (the first four), of two, of four, of 2^25 or more.
SCALES = [
    Fraction(1, 3), Fraction(3), Fraction(64), Fraction(191, 2), Fraction(96), Fraction(401, 3),
    Fraction(1003, 5), Fraction(13 * 2**28), Fraction(2**50 - 1, 1023), Fraction(2**50),
]  # fmt: skip
REST = 64 - GUIDE_BITS


@pytest.fixture(autouse=True)
def eighty_digits() -> Iterator[None]:
    with localcontext(Context(prec=80)):
        yield


def exponent(family: str, scale: Fraction, i: int) -> Decimal:
    """-ln w(i/scale)."""
    z = Decimal(i * scale.denominator) / scale.numerator
    return z * z / 2 if family == "gaussian" else z


def alpha(family: str, scale: Fraction, k: int) -> Fraction:
    """First factor of y in cell k, from its definition: at least y there, as y(j = L) at sigma = mL."""
    length = cell_length(scale.numerator, scale.denominator)
    m = scale // length
    if length == 1:
        return Fraction(0)
    return Fraction(2 * k + 1, 2 * m * m) if family == "gaussian" else Fraction(1, m)


def masses(family: str, scale: Fraction) -> list[Decimal]:
    length = cell_length(scale.numerator, scale.denominator)
    weights = [Decimal(1)]
    while weights[-1] > Decimal(10) ** -75:
        weights.append((-exponent(family, scale, len(weights) * length)).exp())
    total = sum(weights)
    return [weight / total for weight in weights]


def times(mass: Decimal, ratio: Fraction) -> Decimal:
    return mass * ratio.numerator / ratio.denominator


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_each_label_has_its_exact_length(family: Family, scale: Fraction) -> None:
    guide, ends, _, _ = cell_table(family, scale.numerator, scale.denominator, 2)
    whole = np.bincount(guide, minlength=len(ends))
    tops = [int(high) << 64 | int(low) for high, low in ends]
    assert tops == sorted(tops)
    unit = Decimal(2) ** -128
    start = guide.size << 128 - GUIDE_BITS
    for k, mass in enumerate(masses(family, scale)[: len(tops) // 2]):
        hit = times(mass, alpha(family, scale, k))
        plain, after = (top * unit for top in tops[2 * k : 2 * k + 2])
        # A floor at each end of an interval: its length may be off by one unit.
        assert abs(plain - start * unit + whole[k] / Decimal(2**GUIDE_BITS) - mass + hit) < unit
        assert abs(after - plain - hit) < unit
        start = tops[2 * k + 1]
    assert tops[-1] == 2**128 - 1
    assert whole.sum() == guide.size < 2**GUIDE_BITS


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_ends_are_the_digits_of_the_distribution(family: Family, scale: Fraction) -> None:
    guide, ends, _, _ = cell_table(family, scale.numerator, scale.denominator, 3)
    whole = np.bincount(guide, minlength=len(ends)).tolist()
    below = Decimal(0)
    for k, mass in enumerate(masses(family, scale)[:40]):
        assert whole[k] == int((mass - times(mass, alpha(family, scale, k))) * 2**GUIDE_BITS)
        below += mass
        end = below + Decimal(sum(whole[k + 1 :])) / 2**GUIDE_BITS
        for row, c in ((2 * k, end - times(mass, alpha(family, scale, k))), (2 * k + 1, end)):
            if row < len(ends):
                digits = [int(digit) for digit in ends[row]]
                assert (digits[0] << 128) + (digits[1] << 64) + digits[2] == min(
                    int(c * 2**192), 2**192 - 1
                )


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("signs", [-1, 0])
def test_all_guide_bits_and_signs_enumerated(family: Family, scale: Fraction, signs: int) -> None:
    """Each value of the guide bits that decides, with each sign: one word, the value it should give."""
    table = cell_table(family, scale.numerator, scale.denominator)
    length = cell_length(scale.numerator, scale.denominator)
    rng = np.random.default_rng(3)
    for steps in (np.zeros(table.guide.size), rng.integers(length, size=table.guide.size)):
        # The bits between sign and j are not used: ones there must change nothing.
        spare = (1 << REST - 1) - length
        words, expected = [], []
        for g, (k, j) in enumerate(
            zip(table.guide.tolist(), steps.astype(int).tolist(), strict=True)
        ):
            for sign in (0, 1):
                words.append(g << REST | sign << REST - 1 | (spare if g & 1 else 0) | j)
                magnitude = k * length + j
                if signs == 0:
                    expected.append(magnitude)
                elif not (sign and magnitude == 0):
                    expected.append(-magnitude if sign else magnitude)
        out = np.zeros(len(expected), dtype=np.int64)
        done, spent, status = _fill(out, 0, np.array(words, dtype=np.uint64), signs, *table)
        assert (done, status) == (len(expected), 0)
        assert spent == len(words)
        assert out.tolist() == expected
    # The next value of the guide bits does not decide: one word is not enough, and stays unspent.
    undecided = np.array([table.guide.size << REST], dtype=np.uint64)
    assert _fill(out, 0, undecided, signs, *table) == (0, 0, -1)


class Dictated(Keystream):
    """A stream that begins with given words."""

    def __init__(self, words: list[int]) -> None:
        super().__init__(bytes(32))
        self._words = np.array(words, dtype=np.uint64)


@pytest.mark.parametrize("scale", [Fraction(3), Fraction(401, 3), Fraction(13 * 2**28)], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_row_is_found_from_just_below_its_end(family: Family, scale: Fraction) -> None:
    _, ends, _, _ = cell_table(family, scale.numerator, scale.denominator)
    length = cell_length(scale.numerator, scale.denominator)
    j, last = length - 1, cell_table(family, scale.numerator, scale.denominator).guide.size << REST
    for row, top in enumerate(ends[:-1, 0].tolist()):
        digits = {top - 1, last + 1, (last + top) // 2} if top > last + 1 else set()
        for u in digits:  # U is within (c_(row-1), c_row), at both ends and between
            words = [u >> REST << REST | j, u << GUIDE_BITS & 2**64 - 1]
            # All ones fail every coin, so that a hit is kept; they are read only after a hit.
            stream = Dictated([*words, 2**64 - 2**32, 2**64 - 2**32])
            value = SAMPLERS[family](scale, 1, stream)[0]
            assert value == row // 2 * length + j
            assert stream._words.size == (1 if row % 2 else 2)
        last = top


@pytest.mark.parametrize("scale", [Fraction(3), Fraction(401, 3)], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_minus_zero_is_refused_behind_the_guide_too(family: Family, scale: Fraction) -> None:
    table = cell_table(family, scale.numerator, scale.denominator)
    u = (table.guide.size << REST) + 1  # in the rest of cell 0, without a hit
    assert u < table.ends[0, 0]
    for sign in (0, 1):
        words = [u >> REST << REST | sign << REST - 1, u << GUIDE_BITS & 2**64 - 1]
        stream = Dictated([*words, 0, 0])  # a word 0 is decided by the guide: +0
        assert SAMPLERS[family](scale, 1, stream)[0] == 0
        assert stream.unread().size == (1 if sign else 2)


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [(1, 3), (2, 3), (0, 7), (7, 7), (2**50 - 1, 2**50), (5, 2**62 + 1)],
)
def test_a_coin_divides_the_words_in_its_ratio(numerator: int, denominator: int) -> None:
    """Words below share * numerator win, the rest below share * denominator lose, others are passed."""
    share = (2**64 - 1) // denominator

    def toss(*words: int) -> tuple[bool, int]:
        return _coin(
            np.array(words, dtype=np.uint64), 0, np.uint64(numerator), np.uint64(denominator)
        )

    if numerator:
        assert toss(0, 0) == (True, 1)
        assert toss(share * numerator - 1, 0) == (True, 1)
    if numerator < denominator:
        assert toss(share * numerator, 0) == (False, 1)
        assert toss(share * denominator - 1, 0) == (False, 1)
    assert toss(share * denominator, 2**64 - 1, 0, 0) == (numerator > 0, 3)
    assert toss(2**64 - 1) == (False, -1)


def test_a_tie_of_the_first_digit_is_settled_by_the_next() -> None:
    # Scale 1: cell k holds the integer k only, so the value drawn is the cell.
    top, following = (int(digit) for digit in cell_table("laplace", 1, 1, 2).ends[0])
    first = [top >> REST << REST, top << GUIDE_BITS & 2**64 - 1]
    for second, value in ((following - 1, 0), (following + 1, 1)):
        stream = Dictated([*first, second, 0])
        assert discrete_laplace(1, 1, stream)[0] == value
        assert stream.unread().size == 1  # two words for the first digit of U, one for the second
    for step, value in ((-1, 0), (1, 1)):
        near = top + step
        stream = Dictated([near >> REST << REST, near << GUIDE_BITS & 2**64 - 1, 0])
        assert discrete_laplace(1, 1, stream)[0] == value
        assert stream.unread().size == 1


def test_ones_reach_beyond_the_first_table() -> None:
    ones = 2**64 - 1
    cells = len(cell_table("gaussian", 1, 1).ends) // 2
    assert discrete_gaussian(1, 1, Dictated([ones >> REST << REST, ones, 0]))[0] >= cells - 1
    assert discrete_gaussian(1, 1, Dictated([ones, ones, 0]))[0] <= 1 - cells


@pytest.mark.parametrize("scale", [s for s in SCALES if s >= 96], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_coins_after_a_hit_make_up_the_exponential(
    family: Family, scale: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P(no hit) + P(hit) P(kept after a hit) = exp(-y), by following all outcomes of all coins."""
    length = cell_length(scale.numerator, scale.denominator)
    numbers = cell_table(family, scale.numerator, scale.denominator).numbers
    tossed: list[Fraction] = []
    fails = 0

    def coin(words: None, at: int, numerator: Any, denominator: Any) -> tuple[bool, int]:
        tossed.append(Fraction(int(numerator), int(denominator)))
        assert 0 <= tossed[-1] <= 1
        return len(tossed) <= fails, at

    monkeypatch.setattr(discrete, "_coin", coin)
    for k in (0, 1, 57, 400):
        for j in {0, 1, length // 3, length - 1}:
            kept, fails, reached = Fraction(0), 0, Fraction(1)
            while fails < 100 and reached:  # a failed coin ends it: outcomes differ in where it is
                tossed.clear()
                odd, _ = discrete._keep.py_func(None, 0, np.uint64(k), np.uint64(j), numbers)
                kept += reached * (1 - tossed[fails]) * bool(odd)
                reached *= tossed[fails]
                fails += 1
            hit = alpha(family, scale, k)
            chance = 1 - hit + hit * kept
            at_cell = exponent(family, scale, k * length)
            target = (at_cell - exponent(family, scale, k * length + j)).exp()
            found = Decimal(chance.numerator) / chance.denominator
            assert abs(found - target) < Decimal(10) ** -40


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scale", [Fraction(96), Fraction(2**50), Fraction(2**50, 97)], ids=str)
def test_the_largest_table_stays_within_64_bits(family: Family, scale: Fraction) -> None:
    p, q = scale.numerator, scale.denominator
    table, length = cell_table(family, p, q, MAX_WIDTH), cell_length(p, q)
    m, k = scale // length, len(table.ends) // 2
    assert length <= 2 ** (REST - 1)
    assert (k + 1) * length < 2**63
    assert m * q * length <= p
    if family == "gaussian":
        assert 2 * k + 1 <= 2 * m * m
        assert (2 * k + 1) * p < 2**63
    # The same intervals whatever the number of digits.
    short = cell_table(family, p, q)
    np.testing.assert_array_equal(short.guide, table.guide)
    np.testing.assert_array_equal(short.ends[:-2, 0], table.ends[: len(short.ends) - 2, 0])


def test_tables_out_of_range_are_refused() -> None:
    for p, q in ((0, 1), (-3, 1), (2**50 + 1, 1), (1, 2**57 + 1)):
        with pytest.raises(InputError):
            cell_table("gaussian", p, q)
    with pytest.raises(ArithmeticError):
        cell_table("gaussian", 3, 1, 2 * MAX_WIDTH)
