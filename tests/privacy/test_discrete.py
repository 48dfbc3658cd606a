"""The samplers draw what they say: exactly, from each word once, and not from another scale.

False-failure rate: every statistical check fails a right sampler with probability 1e-6; keys are
fixed, so a check that passed once keeps passing until the code changes.
"""

from __future__ import annotations

import copy
import math
import os
import pickle
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import opendp.prelude as dp
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray
from scipy import stats

from pairveil.errors import InputError
from pairveil.privacy import samplers as discrete
from pairveil.privacy.samplers import (
    GUIDE_BITS,
    CellTable,
    Family,
    Keystream,
    cell_length,
    cell_table,
    draw,
    hazard,
    poisson_sample,
    process_keystream,
    scale_above,
)

KEY = bytes(range(32))
RATE = 1e-6
discrete_gaussian, discrete_laplace = partial(draw, "gaussian"), partial(draw, "laplace")
SAMPLERS = {"gaussian": discrete_gaussian, "laplace": discrete_laplace}
DRAWS, MANY = 1_000_000, 10_000_000
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


# Where a draw is decided by 13 bits of one word, 1.4 to 5 draws of 100 are not, and (from 96 on) a coin
# is due: enough draws that each integer's mass shows.
@pytest.mark.parametrize(
    "scale",
    [
        Fraction(64),
        Fraction(129, 2),
        Fraction(70),
        Fraction(191, 2),
        Fraction(96),
        Fraction(401, 3),
    ],
    ids=str,
)
@pytest.mark.parametrize("family", SAMPLERS)
def test_many_draws_follow_the_exact_pmf(family: str, scale: Fraction) -> None:
    drawn = SAMPLERS[family](scale, MANY, Keystream(KEY))
    assert chi_square_p(family, float(scale), drawn) > RATE
    assert chi_square_p(family, float(scale) * 1.01, drawn) < RATE


def unresolved(table: CellTable) -> CellTable:
    """Take the last guided cell where the guide bits do not decide: no slow path."""
    rest = np.full(2**GUIDE_BITS - table.guide.size, table.guide[-1])
    return table._replace(guide=np.append(table.guide, rest))


def stretched(table: CellTable) -> CellTable:
    """Read the guide as if it were to cover all values of its bits: no slow path either."""
    stretch = np.arange(2**GUIDE_BITS) * table.guide.size >> GUIDE_BITS
    return table._replace(guide=table.guide[stretch])


def without_hits(table: CellTable) -> CellTable:
    """Let each cell's first interval reach over its second: a coin that never comes up."""
    ends = table.ends.copy()
    ends[0::2] = ends[1::2]
    return table._replace(ends=ends, starts=table.starts // 2 * 2)


@pytest.mark.parametrize("wrong", [unresolved, stretched])
@pytest.mark.parametrize("family", SAMPLERS)
def test_a_sampler_without_its_slow_path_is_found_out(
    family: Family, wrong: Callable[[CellTable], CellTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discrete, "cell_table", lambda *key: wrong(cell_table(*key)))
    drawn = SAMPLERS[family](64, MANY, Keystream(KEY))
    assert chi_square_p(family, 64.0, drawn) < RATE


def spread_p(family: str, scale: float, drawn: NDArray[np.int64]) -> float:
    """p-value of the draws in 1,000 bins that the continuous law makes equally likely."""
    law = stats.norm if family == "gaussian" else stats.laplace
    counts = np.histogram(law.cdf(drawn / scale), bins=1000, range=(0.0, 1.0))[0]
    return float(stats.chisquare(counts).pvalue)


@pytest.mark.parametrize("scale", [2**30, 2**45 + 1, Fraction(2**50 - 1, 1023)], ids=str)
@pytest.mark.parametrize("family", SAMPLERS)
def test_large_scales_have_the_continuous_shape_and_even_low_bits(
    family: str, scale: int | Fraction
) -> None:
    # At such scales the discrete cdf is within 2^-30 of the continuous one.
    drawn = SAMPLERS[family](scale, DRAWS, Keystream(KEY))
    assert spread_p(family, float(scale), drawn) > RATE
    assert spread_p(family, float(scale) * 2 / 3, drawn) < RATE
    assert spread_p(family, float(scale) * 3 / 2, drawn) < RATE
    assert stats.chisquare(np.bincount(drawn % 1024, minlength=1024)).pvalue > RATE


def within_p(family: str, scale: Fraction, drawn: NDArray[np.int64]) -> float:
    """p-value of where in their cells the draws are: the law falls there, and only coins make it."""
    length = cell_length(scale.numerator, scale.denominator)
    law = stats.norm if family == "gaussian" else stats.laplace
    parts = law.sf(np.arange(16 * math.ceil(40 * scale / length) + 1) * length / 16 / float(scale))
    expected = -2 * np.diff(parts).reshape(-1, 16).sum(axis=0)
    counts = np.bincount((np.abs(drawn) % length) // (length // 16), minlength=16)
    return float(stats.chisquare(counts, drawn.size * expected / expected.sum()).pvalue)


@pytest.mark.parametrize("family", SAMPLERS)
def test_many_draws_at_the_scale_of_a_release(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale = scale_above(1.3 * 2**31)
    drawn = SAMPLERS[family](scale, MANY, Keystream(KEY))
    assert spread_p(family, float(scale), drawn) > RATE
    assert spread_p(family, float(scale) * 1.01, drawn) < RATE
    assert within_p(family, scale, drawn) > RATE
    for modulus in (2, 3, 5, 7, 256):
        remainders = drawn % modulus
        assert stats.chisquare(np.bincount(remainders, minlength=modulus)).pvalue > RATE
        remainders[::100] = 0
        assert stats.chisquare(np.bincount(remainders, minlength=modulus)).pvalue < RATE

    def wrongly(wrong: Callable[[CellTable], CellTable], draws: int) -> NDArray[np.int64]:
        monkeypatch.setattr(discrete, "cell_table", lambda *key: wrong(cell_table(*key)))
        return SAMPLERS[family](scale, draws, Keystream(KEY))

    assert spread_p(family, float(scale), wrongly(unresolved, DRAWS)) < RATE
    assert spread_p(family, float(scale), wrongly(stretched, MANY)) < RATE
    assert within_p(family, scale, wrongly(without_hits, MANY)) < RATE


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
    for count in (3, 4, 1, 100, 7):
        while stream.unread().size < count:
            stream.refill()
        seen.append(stream.unread()[:count].copy())
        stream.spend(count)
    cipher = Cipher(algorithms.ChaCha20(KEY, bytes(16)), mode=None).encryptor()
    expected = np.frombuffer(cipher.update(bytes(8 * 115)), dtype=np.uint64)
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
