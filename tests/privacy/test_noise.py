"""Both noise sources: right distribution, right lattice, right entropy.

Goodness of fit is a Kolmogorov-Smirnov test at level 1e-6 on 20,000 draws: the true scale fails
once in a million runs, and scales off by 2/3 or 3/2 must fail always.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import binom, kstest

from pairveil.errors import InputError
from pairveil.privacy.noise import SeededNoise, TrustedNoise, _add_exactly

LEVEL = 1e-6
DRAWS = 20_000
GRID = 2.0**-31
SOURCES = {
    "seeded": lambda: SeededNoise(5),
    "trusted": TrustedNoise,
}
KINDS = {"gaussian": "norm", "laplace": "laplace"}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.37, 25.0])
def test_noise_has_the_stated_scale_and_no_other(source, kind, scale):
    total = np.zeros(DRAWS, dtype=np.int64)
    draws = SOURCES[source]().noisy(kind, total, scale, GRID)
    assert kstest(draws, KINDS[kind], args=(0, scale)).pvalue > LEVEL
    for wrong in (2 / 3, 3 / 2):
        assert kstest(draws, KINDS[kind], args=(0, wrong * scale)).pvalue < LEVEL


@pytest.mark.parametrize("kind", KINDS)
def test_seeded_noise_without_a_grid(kind):
    draws = SeededNoise(6).noisy(kind, np.full(DRAWS, 4.5), 2.0)
    assert kstest(draws, KINDS[kind], args=(4.5, 2.0)).pvalue > LEVEL
    for wrong in (4 / 3, 3.0):
        assert kstest(draws, KINDS[kind], args=(4.5, wrong)).pvalue < LEVEL


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
def test_neighbouring_inputs_give_the_same_lattice(source, kind):
    """Every output is an exact multiple of the grid, whatever the total: Mironov's attack fails."""
    grid = 2.0**-20
    for total in (0, 1, 12345, -(2**40)):
        draws = SOURCES[source]().noisy(kind, np.full(500, total), 3.0, grid)
        units = draws / grid
        assert np.array_equal(units, np.rint(units))
    # Neighbours reach one another's outputs: parities of both kinds occur for both.
    for total in (0, 1):
        units = SOURCES[source]().noisy(kind, np.full(500, total), 3.0, grid) / grid
        assert 0 < (units % 2 == 0).sum() < 500


def test_trusted_noise_is_the_discrete_gaussian_also_when_coarse():
    """At scale 1.5 grid steps the discrete shape shows: chi-square against its exact weights."""
    draws = TrustedNoise().noisy("gaussian", np.zeros(DRAWS, dtype=np.int64), 1.5, 1.0)
    z = np.arange(-30, 31)

    def statistic(scale):
        weights = np.exp(-(z**2) / (2 * scale**2))
        weights /= weights.sum()
        inner = np.abs(z) <= 4
        seen = np.array([(draws == value).sum() for value in z[inner]] + [(abs(draws) > 4).sum()])
        expected = DRAWS * np.append(weights[inner], weights[~inner].sum())
        return ((seen - expected) ** 2 / expected).sum()

    assert statistic(1.5) < 48.0  # chi-square with 9 degrees of freedom: level 2.5e-7
    assert statistic(1.0) > 48.0
    assert statistic(2.25) > 48.0


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("rate", [0.003, 0.05, 0.3, 0.9])
def test_poisson_samples_have_the_right_size_and_are_fair(source, rate):
    n, rounds = 20_000, 60  # the wrong rates are then 14 standard deviations away or more
    noise = SOURCES[source]()
    counts = np.zeros(n, dtype=np.int64)
    total = 0
    for _ in range(rounds):
        chosen = noise.sample(n, rate)
        assert chosen.dtype == np.int64
        assert np.array_equal(chosen, np.unique(chosen))
        assert chosen.size == 0 or (chosen[0] >= 0 and chosen[-1] < n)
        counts[chosen] += 1
        total += chosen.size
    tail = 5e-7  # each side: fails once in a million
    low, high = binom.ppf([tail, 1 - tail], n * rounds, rate)
    assert low <= total <= high
    for wrong in (2 / 3, min(3 / 2, 0.999 / rate)):
        low, high = binom.ppf([tail, 1 - tail], n * rounds, wrong * rate)
        assert not low <= total <= high
    # First and second half alike: skipping must not favour either end.
    halves = counts[: n // 2].sum(), counts[n // 2 :].sum()
    low, high = binom.ppf([tail, 1 - tail], total, 0.5)
    assert low <= halves[0] <= high


@pytest.mark.parametrize("source", SOURCES)
def test_sampling_at_its_ends(source):
    noise = SOURCES[source]()
    assert noise.sample(7, 1.0).tolist() == list(range(7))
    assert noise.sample(0, 0.5).size == 0
    assert noise.sample(1000, 1e-12).size == 0  # fails once in a billion
    for n, q in ((-1, 0.5), (5, 0.0), (5, 1.1), (5, math.nan)):
        with pytest.raises(InputError):
            noise.sample(n, q)


def test_sums_that_would_wrap_around_saturate():
    """Wrapping would turn the largest total into the smallest: a giveaway of its size."""
    for total, sign in ((2**62 - 1, 1), (-(2**62), -1)):
        noise = TrustedNoise().noisy("gaussian", np.full(4000, total, dtype=np.int64), 2.0**49, 1.0)
        assert np.all(np.sign(noise) == sign)
    limits = np.iinfo(np.int64)
    for total, step, result in (
        (limits.max, 7, limits.max),
        (limits.min, -7, limits.min),
        (limits.max - 7, 7, limits.max),
        (limits.max, limits.min, -1),
        (5, -9, -4),
    ):
        assert _add_exactly(np.int64(total), np.int64(step)) == result


@pytest.mark.parametrize("kind", KINDS)
def test_totals_of_any_layout_are_added_in_place(kind):
    """The noise is far smaller than the steps between the entries, so each shows where it went."""
    total = np.arange(24).reshape(4, 6) * 10**9
    for view in (
        total,
        total.T,
        total[::2, ::-1],
        np.asfortranarray(total),
        total.astype(np.uint64),
    ):
        noisy = TrustedNoise().noisy(kind, view, 3.0, 1.0)
        np.testing.assert_array_equal(np.rint(noisy / 1e9) * 1e9, view)
        assert (noisy != view).any()


def test_seeded_runs_repeat_and_trusted_runs_do_not():
    total = np.zeros(50, dtype=np.int64)
    first, second = (SeededNoise(1).noisy("gaussian", total, 1.0, GRID) for _ in range(2))
    assert np.array_equal(first, second)
    assert np.array_equal(SeededNoise(1).sample(500, 0.05), SeededNoise(1).sample(500, 0.05))
    assert not np.array_equal(first, SeededNoise(2).noisy("gaussian", total, 1.0, GRID))
    first, second = (TrustedNoise().noisy("gaussian", total, 1.0, GRID) for _ in range(2))
    assert not np.array_equal(first, second)
    first, second = (TrustedNoise().sample(500, 0.5) for _ in range(2))
    assert not np.array_equal(first, second)
    np.random.seed(0)  # noqa: NPY002 - the global seed must not matter
    third = TrustedNoise().noisy("laplace", total, 1.0, GRID)
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(third, TrustedNoise().noisy("laplace", total, 1.0, GRID))


FORKED = """
import os, numpy as np
from pairveil.privacy.noise import TrustedNoise
noise, total = TrustedNoise(), np.zeros(8, dtype=np.int64)
def draw():
    return noise.noisy("gaussian", total, 1.0, 2.0**-31).tobytes() + noise.sample(400, 0.5).tobytes()
draw()  # any state would be set up by now, and be inherited
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, draw())
    os._exit(0)
os.wait()
os.close(writer)
with os.fdopen(reader, "rb") as file:
    child = file.read()
parent = draw()
print(child[:64] != parent[:64] and child[64:] != parent[64:])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_does_not_repeat_the_noise():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr


def test_only_trusted_noise_is_for_release():
    assert TrustedNoise().for_release is True
    assert SeededNoise(0).for_release is False
    assert SeededNoise().for_release is False
    assert "seeded" in SeededNoise.name


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_empty_totals(kind):
    noise = TrustedNoise()
    assert noise.noisy(kind, np.zeros((2, 3), dtype=np.int64), 1.0, GRID).shape == (2, 3)
    assert noise.noisy(kind, np.zeros((0, 3), dtype=np.int64), 1.0, GRID).shape == (0, 3)


def test_misuse_is_refused():
    integers, floats = np.zeros(3, dtype=np.int64), np.zeros(3)
    for call in (
        lambda: TrustedNoise().noisy("gaussian", integers, 1.0),  # no grid
        lambda: TrustedNoise().noisy("gaussian", floats, 1.0, GRID),  # not counted in grid steps
        lambda: SeededNoise(0).noisy("laplace", floats, 1.0, GRID),
        lambda: TrustedNoise().noisy("gaussian", integers, 0.0, GRID),
        lambda: TrustedNoise().noisy("laplace", integers, math.inf, GRID),
        lambda: TrustedNoise().noisy("gaussian", integers, math.nan, GRID),
        lambda: TrustedNoise().noisy("gaussian", integers, 1.0, 0.3),  # no power of two
        lambda: TrustedNoise().noisy("gaussian", integers, 2.0**30, GRID),  # beyond 64 bits
        lambda: SeededNoise(0).noisy("gaussian", integers, GRID / 4, GRID),  # finer than the grid
    ):
        with pytest.raises(InputError):
            call()
