"""The hot kernels, each by itself: `make bench` measures them, nothing asserts seconds.

`pytest benchmarks/test_kernels.py --benchmark-timer=time.process_time` compares two states of the code;
`--benchmark-disable` runs each once.
"""

from itertools import count

import numpy as np
import pytest
from scipy import sparse

from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss
from pairveil.engine.statistics import clipped_sum
from pairveil.graph.choosing import design_groups, select_pairs
from pairveil.graph.kappa import kappa
from pairveil.privacy.calibrate import calibrate_gaussian
from pairveil.privacy.events import GaussianEvent
from pairveil.privacy.noise import TrustedNoise
from pairveil.privacy.profile import epsilon_of
from pairveil.records.groups import GroupSet
from pairveil.records.pairset import PairSet

CLIP, GRID = 0.1, 2.0**-31
K, D, DIRECTIONS = 37_400, 123, 16  # the paper's Adult
MANY = 1_000_000


@pytest.fixture(scope="module")
def graph():
    """A million pairs, two a person."""
    rng = np.random.default_rng(0)
    left = rng.integers(0, MANY // 2, MANY, dtype=np.int32)
    gap = rng.integers(1, MANY // 2, MANY, dtype=np.int32)
    return np.stack([left, (left + gap) % np.int32(MANY // 2)], axis=1)


def people(n_pairs, d, dtype=np.float32):
    rng = np.random.default_rng(1)
    n = n_pairs // 2
    X = rng.normal(size=(n, d)).astype(dtype)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    left = rng.integers(0, n, n_pairs)
    pairs = np.stack([left, (left + rng.integers(1, n, n_pairs)) % n], axis=1)
    return PairSet(X, pairs, rng.choice([1, -1], n_pairs))


def gradient(d, k):
    W = np.random.default_rng(2).normal(size=(k, d)) / np.sqrt(d)
    return SetGradient(W, ContrastiveLoss(1.0), CLIP, (1.0, 0.5))


def measured(benchmark, kernel, size, function, *arguments, **options):
    """Time a kernel once it is compiled; ``size`` is how many things it goes through."""
    benchmark.extra_info.update(kernel=kernel, count=size)
    function(*arguments, **options)
    return benchmark(function, *arguments, **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clipped_sum_of_a_full_batch(benchmark, dtype):
    data, asked = people(K, D, dtype), gradient(D, DIRECTIONS)
    name = f"clipped sum, {K:,} pairs, d = {D}, k = {DIRECTIONS}, {np.dtype(dtype)}"
    total = measured(benchmark, name, K, clipped_sum, data, None, asked, "l2", GRID)
    assert total.any()


@pytest.mark.parametrize("size", [3, 8])
def test_clipped_sum_of_groups(benchmark, size):
    rng, n = np.random.default_rng(5), 20_000
    X, members = people(2 * n, D, np.float64).features, design_groups(n, size, random_state=0)
    data = GroupSet.of_classes(X, members, rng.integers(0, 2, n))
    one = gradient(D, DIRECTIONS)
    asked = SetGradient(one.W, one.loss, CLIP, one.weights, size=size)
    name = f"clipped sum, {data.n_pairs:,} pairs in groups of {size}, d = {D}, k = {DIRECTIONS}, float64"
    assert measured(benchmark, name, data.n_pairs, clipped_sum, data, None, asked, "l2", GRID).any()


@pytest.mark.parametrize("batch", [50, 4096])
def test_clipped_sum_of_a_poisson_batch(benchmark, batch):
    data, asked = people(K, D), gradient(D, DIRECTIONS)
    rows = np.flatnonzero(np.random.default_rng(3).random(K) < batch / K)
    name = f"clipped sum, Poisson batch of {batch:,}, d = {D}, k = {DIRECTIONS}"
    total = measured(
        benchmark,
        name,
        len(rows),
        clipped_sum,
        data,
        rows,
        asked,
        "l2",
        GRID,
        separately=True,
    )
    assert total.any()


@pytest.mark.parametrize("k", [1, 10])
def test_clipped_sum_of_sparse_rows(benchmark, k):
    rng, n, d, filled = np.random.default_rng(4), 20_000, 100_000, 30
    columns, starts = rng.integers(0, d, n * filled), np.arange(0, n * filled + 1, filled)
    X = sparse.csr_array((rng.normal(0, 0.15, n * filled), columns, starts), shape=(n, d))
    X.sum_duplicates()
    pairs = rng.permutation(n).reshape(-1, 2)
    data = PairSet(X, pairs, rng.choice([1, -1], len(pairs)))
    name = f"clipped sum, {len(pairs):,} sparse pairs, d = {d:,}, k = {k}"
    asked = (data, None, gradient(d, k), "l2", GRID)
    assert measured(benchmark, name, len(pairs), clipped_sum, *asked).any()


def test_poisson_sample(benchmark):
    draw = TrustedNoise().sample
    found = measured(benchmark, "Poisson sample of 50 out of 37,400", 50, draw, K, 50 / K)
    assert len(found) < K


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_exact_noise(benchmark, kind):
    n = D * DIRECTIONS
    draw, total = getattr(TrustedNoise(), kind), np.zeros(n, dtype=np.int64)
    name = f"exact {kind} noise on {n:,} numbers"
    noisy = measured(benchmark, name, n, draw, total, 50 * CLIP, GRID)
    assert len(np.unique(noisy)) > n // 2


def test_kappa(benchmark, graph):
    found = measured(benchmark, f"kappa, {MANY:,} pairs", MANY, kappa, graph)
    assert found.n_pairs == MANY


@pytest.mark.parametrize("how", ["paths", "forest", "matching"])
def test_select(benchmark, graph, how):
    name = f"select {how}, {MANY:,} pairs"
    kept = measured(benchmark, name, MANY, select_pairs, graph, how, random_state=0)
    assert 0 < len(kept) < MANY


@pytest.mark.parametrize("rate", [1.0, 0.01])
def test_calibration(benchmark, rate):
    benchmark.extra_info.update(kernel=f"calibrate 100 steps at rate {rate:g}", count=1)
    plan = {"kappa": 2, "sample_rate": rate, "steps": 100}
    budgets = count(1_000_000)  # another epsilon each round: the accountant remembers answers

    def fresh():
        return (next(budgets) / 1e6, 1e-5), plan

    arguments, _ = fresh()
    calibrate_gaussian(*arguments, **plan)  # compiles
    noise = benchmark.pedantic(calibrate_gaussian, setup=fresh, rounds=9)
    event = GaussianEvent(noise, sample_rate=rate, steps=100)
    assert epsilon_of([event], kappa=2, delta=1e-5) <= next(budgets) / 1e6
