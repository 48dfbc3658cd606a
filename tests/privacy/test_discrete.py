"""The samplers draw what they say: exactly, from each word once, and not from another scale.

False-failure rate: every statistical check fails a right sampler with probability 1e-6; keys are
fixed, so a check that passed once keeps passing until the code changes.
"""

from __future__ import annotations

import copy
import math
import os
import pickle
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray
from scipy import stats

from pairveil.errors import InputError
from pairveil.privacy.discrete import (
    _cell_digits,
    discrete_gaussian,
    discrete_laplace,
    hazard,
    poisson_sample,
    scale_above,
)
from pairveil.privacy.keystream import Keystream, process_keystream

KEY = bytes(range(32))
RATE = 1e-6
SAMPLERS = {"gaussian": discrete_gaussian, "laplace": discrete_laplace}
DRAWS = 1_000_000
SCALES = [Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(5), Fraction(33), Fraction(401, 2)]


def pmf(family: str, scale: float, reach: int) -> NDArray[np.float64]:
    """Probabilities of -reach..reach, the ends taking the tails (far below one expected draw)."""
    z = np.abs(np.arange(-reach, reach + 1)) / scale
    weight = np.exp(-(z**2) / 2 if family == "gaussian" else -z)
    return weight / weight.sum()


def chi_square_p(family: str, scale: float, drawn: NDArray[np.int64]) -> float:
    """p-value of the draws under the exact pmf; values expecting fewer than 10 draws are pooled."""
    reach = math.ceil(40 * scale) + 1
    expected = pmf(family, scale, reach) * drawn.size
    observed = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=2 * reach + 1)
    common = expected >= 10
    pooled = np.append(expected[common], max(expected[~common].sum(), 1e-9))
    counted = np.append(observed[common], observed[~common].sum())
    statistic = ((counted - pooled) ** 2 / pooled).sum()
    return float(stats.chi2.sf(statistic, pooled.size - 1))


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("family", SAMPLERS)
def test_draws_follow_the_exact_pmf_and_no_wrong_scale(family: str, scale: Fraction) -> None:
    drawn = SAMPLERS[family](scale, DRAWS, Keystream(KEY))
    assert chi_square_p(family, float(scale), drawn) > RATE
    for wrong in (2 / 3, 3 / 2):
        assert chi_square_p(family, float(scale) * wrong, drawn) < RATE


@pytest.mark.parametrize("scale", [2**30, 2**45 + 1, Fraction(2**50 - 1, 1023)], ids=str)
@pytest.mark.parametrize("family", SAMPLERS)
def test_large_scales_have_the_continuous_shape_and_even_low_bits(
    family: str, scale: int | Fraction
) -> None:
    # At such scales the discrete cdf is within 2^-30 of the continuous one.
    drawn = SAMPLERS[family](scale, DRAWS, Keystream(KEY))
    law = stats.norm if family == "gaussian" else stats.laplace

    def p_value(scale: float) -> float:
        counts = np.histogram(law.cdf(drawn / scale), bins=1000, range=(0.0, 1.0))[0]
        return float(stats.chisquare(counts).pvalue)

    assert p_value(float(scale)) > RATE
    assert p_value(float(scale) * 2 / 3) < RATE
    assert p_value(float(scale) * 3 / 2) < RATE
    assert stats.chisquare(np.bincount(drawn % 1024, minlength=1024)).pvalue > RATE


@pytest.mark.parametrize("family", SAMPLERS)
def test_moments_at_a_large_scale(family: str) -> None:
    scale = 2**40
    z = discrete_gaussian(scale, DRAWS, Keystream(KEY)) / scale
    if family == "laplace":
        z = discrete_laplace(scale, DRAWS, Keystream(KEY)) / scale
    variance, fourth = (1.0, 3.0) if family == "gaussian" else (2.0, 24.0)
    bound = stats.norm.isf(RATE / 2)
    assert abs(z.mean()) < bound * math.sqrt(variance / DRAWS)
    spread = bound * math.sqrt((fourth - variance**2) / DRAWS)
    assert abs((z**2).mean() - variance) < spread
    assert abs((z * 1.5) ** 2).mean() - variance > spread


@pytest.mark.oracle
@pytest.mark.parametrize("family", SAMPLERS)
def test_agrees_with_opendp(family: str) -> None:
    draws = 20_000
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if family == "gaussian":
        reference = dp.m.make_gaussian(domain, dp.l2_distance(T=float), 3.0)
    else:
        reference = dp.m.make_laplace(domain, dp.l1_distance(T=int), 3.0)
    theirs = np.clip(reference([0] * draws), -9, 9)

    def p_value(scale: int) -> float:
        ours = np.clip(SAMPLERS[family](scale, draws, Keystream(KEY)), -9, 9)
        counts = [np.bincount(x + 9, minlength=19) for x in (ours, theirs)]
        return float(stats.chi2_contingency(counts).pvalue)

    assert p_value(3) > RATE
    assert p_value(2) < RATE


@pytest.mark.parametrize("family", SAMPLERS)
@pytest.mark.parametrize("scale", [Fraction(3, 2), Fraction(2**40)], ids=str)
def test_draws_do_not_depend_on_where_the_blocks_end(family: str, scale: Fraction) -> None:
    # Were a half-read draw dropped at the end of a block, block=1 would lose all but the shortest.
    whole = SAMPLERS[family](scale, 2000, Keystream(KEY))
    for block in (64, 7, 1):
        np.testing.assert_array_equal(whole, SAMPLERS[family](scale, 2000, Keystream(KEY, block)))
    assert not np.array_equal(whole, SAMPLERS[family](scale, 2000, Keystream(KEY[::-1])))


def test_one_draw_or_many_use_the_same_words_once() -> None:
    stream = Keystream(KEY, block=5)
    parts = [discrete_gaussian(2**20, size, stream) for size in (1, 0, 10, 89)]
    np.testing.assert_array_equal(
        np.concatenate(parts), discrete_gaussian(2**20, 100, Keystream(KEY))
    )


def test_the_words_are_chacha20_in_order_each_once() -> None:
    stream, seen = Keystream(KEY, block=4), []
    for count in (3, 4, 1, 7):
        while stream.unread().size < count:
            stream.refill()
        seen.append(stream.unread()[:count].copy())
        stream.spend(count)
    cipher = Cipher(algorithms.ChaCha20(KEY, bytes(16)), mode=None).encryptor()
    expected = np.frombuffer(cipher.update(bytes(8 * 15)), dtype=np.uint64)
    np.testing.assert_array_equal(np.concatenate(seen), expected)
    with pytest.raises(ValueError, match="spent"):
        stream.spend(stream.unread().size + 1)


def test_streams_differ_are_not_copied_and_survive_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Keystream(), Keystream()
    for stream in (first, second):
        stream.refill()
        assert stream.for_release
    assert not np.array_equal(first.unread(), second.unread())
    for double in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="twice"):
            double(first)
    keyed = Keystream(KEY)
    assert not keyed.for_release
    before = first.unread()[:8].copy()
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    first.refill()
    assert not np.array_equal(before, first.unread()[:8])
    with pytest.raises(RuntimeError, match="fork"):
        discrete_gaussian(3, 1, keyed)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_draws_from_a_stream_of_its_own() -> None:
    mine = process_keystream()
    mine.refill()
    read, write = os.pipe()
    with mine.lock:  # held by a parent's thread at the fork: the child must not wait for it
        child = os.fork()
        if child == 0:  # only what cannot raise or run tests again
            stream = process_keystream()
            free = stream is not mine and stream.lock.acquire(blocking=False)
            stream.refill()
            os.write(write, bytes([free]) + stream.unread()[-4:].tobytes())
            os._exit(0)
    os.waitpid(child, 0)
    answer = os.read(read, 33)
    os.close(read)
    os.close(write)
    assert answer[0] == 1
    mine.refill()
    assert not np.isin(np.frombuffer(answer[1:], dtype=np.uint64), mine.unread()).any()


class Dictated(Keystream):
    """A stream that begins with given words."""

    def __init__(self, words: list[int]) -> None:
        super().__init__(KEY)
        self._words = np.array(words, dtype=np.uint64)


def test_a_tie_of_the_first_digit_is_settled_by_the_next() -> None:
    # Scale 1: cell k holds the integer k only, so the value drawn is the cell (N = 0: always kept).
    top, nxt = (int(digit) for digit in _cell_digits("laplace", 1, 2)[0][0])
    for second, value in ((nxt - 1, 0), (nxt + 1, 1)):
        stream = Dictated([top, second, 0, 0, 0, 0])
        assert discrete_laplace(1, 1, stream)[0] == value
        assert stream.unread().size == 1  # two digits of U, one word for j, two coins
    assert discrete_laplace(1, 1, Dictated([top - 1, 0, 0]))[0] == 0
    assert discrete_laplace(1, 1, Dictated([top + 1, 0, 0]))[0] == 1


def test_a_word_of_ones_reaches_beyond_the_first_table() -> None:
    ones = 2**64 - 1
    cells = len(_cell_digits("gaussian", 1, 1)[0])
    assert discrete_gaussian(1, 1, Dictated([ones, 0] + [0] * 500))[0] >= cells - 1


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
def test_cells_are_the_digits_of_the_distribution(family: str) -> None:
    with localcontext() as context:
        context.prec = 120
        weight = [
            (-Decimal(k * k) / 8 if family == "gaussian" else -Decimal(k) / 2).exp()
            for k in range(700)
        ]
        digits, _ = _cell_digits(family, 2, 3)  # type: ignore[arg-type]
        for k in (0, 1, 5, 12):
            floor = int(sum(weight[: k + 1]) / sum(weight) * 2**192)
            high, middle, low = (int(digit) for digit in digits[k])
            assert (high << 128) + (middle << 64) + low == floor


def test_poisson_counts_items_and_neighbours() -> None:
    n, rate, repeats = 400, 0.05, 10_000
    stream, counts = Keystream(KEY), np.zeros(repeats, dtype=np.int64)
    chosen, both = np.zeros(n), 0
    for turn in range(repeats):
        sample = poisson_sample(n, rate, stream)
        counts[turn] = sample.size
        chosen[sample] += 1
        both += int(np.count_nonzero(np.diff(sample) == 1))
    reach = np.arange(8, 34)
    observed = np.array([np.sum(counts == r) for r in reach] + [np.sum(~np.isin(counts, reach))])

    def p_value(rate: float) -> float:
        expected = stats.binom.pmf(reach, n, rate)
        return float(
            stats.chisquare(observed, repeats * np.append(expected, 1 - expected.sum())).pvalue
        )

    assert p_value(rate) > RATE
    assert p_value(rate * 2 / 3) < RATE
    assert p_value(rate * 3 / 2) < RATE
    spread = repeats * rate * (1 - rate)
    assert stats.chi2.sf(((chosen - repeats * rate) ** 2).sum() / spread, n) > RATE
    # Neighbours are chosen together as often as independence says (variance bounded by 3 times
    # the binomial one: neighbouring pairs of neighbours share an item).
    together = repeats * (n - 1) * rate**2
    assert abs(both - together) < stats.norm.isf(RATE / 2) * math.sqrt(3 * together)


@pytest.mark.parametrize("rate", [2.0**-49, 1e-9, 0.05, 0.5, 0.999, math.nextafter(1.0, 0.0)])
def test_the_chance_realised_is_never_above_the_rate(rate: float) -> None:
    with localcontext() as context:
        context.prec = 60
        h = hazard(rate)
        chance = 1 - (-Decimal(h.numerator) / h.denominator).exp()
        assert chance <= Decimal(rate)
        assert Decimal(rate) - chance < Decimal(2) ** -49


def test_poisson_at_the_edges() -> None:
    stream = Keystream(KEY)
    assert poisson_sample(0, 0.5, stream).size == 0
    np.testing.assert_array_equal(poisson_sample(3, 1.0, stream), [0, 1, 2])
    sample = poisson_sample(2**48, 1e-12, stream)
    assert 200 < sample.size < 370  # 281 expected, 4.8 standard deviations: 2e-6
    assert (np.diff(sample) > 0).all()
    assert sample[-1] < 2**48
    near = poisson_sample(1000, math.nextafter(1.0, 0.0), stream)
    np.testing.assert_array_equal(near, np.arange(1000))


@pytest.mark.parametrize("scale", [0, -1, 2**50 + 1, Fraction(1, 2**58)], ids=str)
def test_scales_out_of_range_are_refused(scale: int | Fraction) -> None:
    for sampler in SAMPLERS.values():
        with pytest.raises(InputError):
            sampler(scale, 1, Keystream(KEY))


@pytest.mark.parametrize(
    "scale", [2.0**-4, 0.1, 1.0, math.pi, 12345.678, 2.0**30 * math.e, 2.0**49]
)
def test_a_float_scale_becomes_a_ratio_just_above(scale: float) -> None:
    ratio = scale_above(scale)
    assert 0 <= ratio - Fraction(scale) <= Fraction(scale) / 2**48
    for sampler in SAMPLERS.values():
        assert sampler(ratio, 5, Keystream(KEY)).size == 5
    for wrong in (0.0, -1.0, 2.0**-5, 2.0**50, math.inf, math.nan):
        with pytest.raises(InputError):
            scale_above(wrong)


def test_samples_out_of_range_are_refused() -> None:
    for n, rate in ((-1, 0.5), (2**48 + 1, 0.5), (1, 0.0), (1, 1.5), (1, 2.0**-60), (1, math.nan)):
        with pytest.raises(InputError):
            poisson_sample(n, rate, Keystream(KEY))
    with pytest.raises(InputError):
        Keystream(b"short")
    with pytest.raises(InputError):
        Keystream(block=0)
