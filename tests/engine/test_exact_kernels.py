"""Sums to which a pair adds the same whoever is beside it, and the small steps made of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plain_sums import DTYPES, Norm, make, plain_sum, size

from pairveil.engine import kernels
from pairveil.engine.backends.local import Local
from pairveil.engine.engine import MOST_AT_ONCE, Engine
from pairveil.engine.gradients import SetGradient
from pairveil.engine.kernels import EXACT_TILE as TILE
from pairveil.engine.kernels import descend
from pairveil.engine.losses import ContrastiveLoss
from pairveil.errors import InputError
from pairveil.privacy.mechanisms import Query
from pairveil.privacy.noise import SeededNoise, TrustedNoise
from pairveil.records.pairset import PairSet

gradient_sum = partial(kernels.gradient_sum, separately=True)
LOSS, BOTH = ContrastiveLoss(1.0), (1.0, 0.5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_a_pair_adds_the_same_whoever_is_beside_it(norm: Norm, dtype: Any) -> None:
    n, d, k, clip, grid = 300, 17, 3, 2.0**-8, 2.0**-40
    case = make(n, d, k, dtype)
    options: Any = {"margin": 5.0, "clip": clip, "grid": grid, "norm": norm}

    def total(rows: Any, add_up: Any = gradient_sum) -> NDArray[np.int64]:
        result: NDArray[np.int64] = add_up(*case[:3], rows, case.weights, **options)
        return result

    alone = [total(np.array([row])) for row in range(n)]
    for rows in (np.arange(n), np.arange(0, n, 2), np.arange(n)[::-1], np.arange(5, n)):
        np.testing.assert_array_equal(total(rows), sum(alone[row] for row in rows))
    # Tiles that are rounded as a whole round neighbours together: then it does matter.
    whole = [total(rows, kernels.gradient_sum) for rows in (np.arange(n), np.arange(n)[::-1])]
    assert (whole[0] != whole[1]).any()
    # Cutting towards zero never lengthens: not even the grid's own unit must be charged.
    eta = (d + k + 16) * 2.0**-52 + 2 * float(np.finfo(dtype).eps)
    sizes = [size(one * grid, norm) for one in alone]
    assert max(sizes) <= clip * (1 + eta)
    assert np.median(sizes) > 0.999 * clip
    # 16 bits for each factor: an entry is off by 2^-15 of the clip bound or so.
    expected = plain_sum(case, range(n), 5.0, clip, norm, (1.0, 1.0))
    np.testing.assert_allclose(total(None) * grid, expected, rtol=0, atol=n * clip * 2.0**-14)
    wrong = expected * (1.1 if norm == "l2" else 30.0)  # which the comparison does see
    assert np.abs(total(None) * grid - wrong).max() > n * clip * 2.0**-14


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("d", "k"), [(1, 1), (33, 16), (128, 5)])
def test_threads_and_places_in_a_tile_do_not_matter(d: int, k: int, dtype: Any) -> None:
    case = make(5 * TILE + 3, d, k, dtype)
    options: Any = {"margin": 1.0, "clip": 0.1, "grid": 2.0**-38}
    one = gradient_sum(*case[:3], None, case.weights, threads=1, **options)
    assert one.any()
    for threads in (2, 3, None):
        other = gradient_sum(*case[:3], None, case.weights, threads=threads, **options)
        np.testing.assert_array_equal(one, other)
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(len(case.pairs))
        other = gradient_sum(*case[:3], shuffled, case.weights, **options)
        np.testing.assert_array_equal(one, other)


def test_a_grid_too_fine_for_exact_products_is_refused() -> None:
    case = make(3, 5, 2, np.float64)
    options: Any = {"margin": 1.0, "clip": 1.0}
    gradient_sum(*case[:3], None, case.weights, grid=2.0**-43, **options)
    with pytest.raises(InputError, match="too fine"):
        gradient_sum(*case[:3], None, case.weights, grid=2.0**-44, **options)


@pytest.mark.parametrize("bad", [[200], [-1]])
def test_indices_outside_their_table_are_refused(bad: list[int]) -> None:
    case = make(200, 5, 2, np.float64)
    options: Any = {"margin": 1.0, "clip": 1.0, "grid": 2.0**-30}
    with pytest.raises(InputError, match="outside"):
        gradient_sum(*case[:3], np.array(bad), case.weights, **options)
    batches, noise = (np.array(bad), np.array([0, 1])), np.zeros((1, 2, 5))
    with pytest.raises(InputError, match="outside"):
        descend(*case[:3], batches, case.weights, noise, 0.1, **options)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", DTYPES)
def test_steps_are_the_steps_written_out(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    case, grid, rate = make(500, 12, 3, dtype), 2.0**-34, 0.01
    options: Any = {"margin": 1.0, "clip": 0.1, "grid": grid, "scale": np.linspace(0.5, 2, 12)}
    batches = [np.flatnonzero(rng.random(500) < 0.1) for _ in range(7)] + [np.empty(0, np.int64)]
    edges = np.concatenate([[0], np.cumsum([len(rows) for rows in batches])])
    noise = np.rint(rng.normal(0, 2.0**30, (8, 3, 12))) * grid
    start = case.weights.astype(np.float64)
    given = noise.copy()
    W, noisy = descend(*case[:3], (np.concatenate(batches), edges), start, noise, rate, **options)
    np.testing.assert_array_equal(noise, given)
    expected = start
    for t, rows in enumerate(batches):
        total = gradient_sum(*case[:3], rows, expected, **options)
        one = total * grid + noise[t]
        np.testing.assert_array_equal(noisy[t], one)
        assert (noisy[t] != noise[t]).any() == (len(rows) > 0)
        expected = expected - rate * one
    np.testing.assert_array_equal(W, expected)


def world(n: int = 3000) -> PairSet:
    rng = np.random.default_rng(0)
    people = np.vstack([rng.normal(size=(2 * n, 5)) / 4, np.zeros((2, 5))]).astype(np.float32)
    pairs = np.arange(2 * n).reshape(n, 2)
    return PairSet(
        people, np.insert(pairs, 7, [2 * n, 2 * n + 1], axis=0), np.resize([1, -1], n + 1)
    )


def gradient() -> SetGradient:
    return SetGradient(np.random.default_rng(1).normal(size=(2, 5)), LOSS, 0.1, BOTH)


def test_the_engine_takes_the_same_steps_compiled_watched_or_elsewhere() -> None:
    """Local, for a watcher, and by another's sums (a cluster's): one seed, one result."""
    data, steps = world(), 40
    query = Query("gradients", (2, 5), 2.0, steps, sample_rate=0.01)
    seen: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def watch(kind: Any, statistic: Any, noisy: NDArray[Any]) -> None:
        seen.append((statistic.W, noisy))

    class Elsewhere(Local):
        def descends(self, gradient: Any) -> bool:
            return False

    engines = [
        Engine(data, SeededNoise(5)),
        Engine(data, SeededNoise(5), watch),
        Engine(Elsewhere(data), SeededNoise(5)),
    ]
    found = [engine.descend(query, gradient(), 1e-3, steps) for engine in engines]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert len(seen) == steps
    W = gradient().W
    for at, noisy in seen:
        np.testing.assert_array_equal(W, at)
        W = W - 1e-3 * noisy
    np.testing.assert_array_equal(W, found[0])
    assert all(engine.followed([query]) for engine in engines)
    with pytest.raises(RuntimeError, match="no further answer"):
        engines[0].descend(query, gradient(), 1e-3, 2)
    assert (Engine(data, SeededNoise(6)).descend(query, gradient(), 1e-3, steps) != found[0]).any()


def test_steps_are_drawn_in_rooms_of_limited_size() -> None:
    data, asked = world(), []

    class Watched(SeededNoise):
        def noisy(self, family: Any, total: Any, scale: Any, grid: Any = None) -> Any:
            asked.append(total.shape)
            return super().noisy(family, total, scale, grid)

    steps = MOST_AT_ONCE // 512 + 5
    query = Query("gradients", (2, 5), 2.0, steps, sample_rate=0.01)
    Engine(data, Watched(0)).descend(query, gradient(), 1e-6, steps)
    assert asked == [(MOST_AT_ONCE // 512, 2, 5), (5, 2, 5)]


def test_the_noise_of_many_steps_is_fresh_and_of_the_plans_size() -> None:
    """No pair is ever drawn, so the releases are the noise: 10,000 numbers, all apart."""
    query = Query("gradients", (2, 5), 3.0, 1000, sample_rate=1e-9)
    seen: list[NDArray[Any]] = []
    for source in (TrustedNoise(), SeededNoise(0)):
        seen.clear()
        engine = Engine(world(), source, lambda kind, statistic, noisy: seen.append(noisy))
        engine.descend(query, gradient(), 1e-6, 1000)
        noise = np.array(seen)
        assert noise.shape == (1000, 2, 5)
        assert len(np.unique(noise)) > 9990
        # 5.5 standard deviations of the sample's own: fails by chance once in 2 * 10^7 times
        assert noise.std() == pytest.approx(0.3, rel=5.5 / np.sqrt(2 * 10_000))
        assert noise.std() != pytest.approx(0.3 * 1.1, rel=5.5 / np.sqrt(2 * 10_000))


def test_whether_a_null_pair_is_drawn_cannot_be_seen_in_any_step() -> None:
    data, rate = world(), 0.02
    rng = np.random.default_rng(2)
    batches = [np.flatnonzero(rng.random(data.n_pairs) < rate) for _ in range(20)]
    results = []
    for drawn in (True, False):
        chosen = [np.union1d(rows, [7]) if drawn else np.setdiff1d(rows, [7]) for rows in batches]
        edges = np.concatenate([[0], np.cumsum([len(rows) for rows in chosen])])
        noise = np.zeros((20, 2, 5))
        results.append(
            gradient().compiled_descent(
                data, (np.concatenate(chosen), edges), noise, 0.01, "l2", 2.0**-35
            )
        )
    for with_it, without in zip(*results, strict=True):
        np.testing.assert_array_equal(with_it, without)
    seen = data.replace(features=np.roll(data.features, 3, axis=0))  # now it is no null pair
    edges = np.array([0, 1])
    moved, _ = gradient().compiled_descent(
        seen, (np.array([7]), edges), np.zeros((1, 2, 5)), 0.01, "l2", 2.0**-35
    )
    assert (moved != gradient().W).any()


def test_sparse_rows_take_small_batches_step_by_step() -> None:
    from scipy import sparse

    from pairveil.learners.contrastive.learner import DPPMetricLearner

    dense = world()
    options: Any = {"n_steps": 210, "sample_rate": 0.01, "random_state": 0, "data_norm": 4.0}
    rows = dense.replace(features=sparse.csr_array(dense.features))
    fitted = [DPPMetricLearner(**options).fit(data) for data in (dense, rows)]
    # One seed, one noise; the two loops cut a pair's gradient to whole units in their own ways.
    first, second = (one.get_mahalanobis_matrix() for one in fitted)
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-3 * np.abs(first).max())
    other = DPPMetricLearner(**{**options, "random_state": 1}).fit(dense)
    assert np.abs(other.get_mahalanobis_matrix() - first).max() > 1e-3 * np.abs(first).max()
