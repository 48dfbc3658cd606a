"""Sensitivity: neighbouring data never move a sum further than claimed, whatever the data."""

import contextlib
import threading
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pairveil.engine.engine import Engine
from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss
from pairveil.engine.statistics import TILE, Statistic, clipped_sum
from pairveil.privacy.grid import choose_grid, grid_sensitivity
from pairveil.privacy.mechanisms import Query
from pairveil.privacy.noise import TrustedNoise
from pairveil.records.pairset import PairSet


def random_pairs(rng, n_people, n_pairs, d, scale=1.0):
    left = rng.integers(n_people, size=n_pairs)
    right = (left + rng.integers(1, n_people, size=n_pairs)) % n_people
    labels = np.where(rng.random(n_pairs) < 0.5, 1, -1)
    return PairSet(rng.normal(size=(n_people, d)) * scale, np.column_stack([left, right]), labels)


def changed(data, rows, features, labels):
    """The same topology with other contents in ``rows``: each gets two people of its own."""
    n = data.n_people
    people = np.vstack([data.features, features])
    pairs, marks = data.pairs.copy(), data.labels.copy()
    pairs[rows] = n + np.arange(2 * len(rows)).reshape(-1, 2)
    marks[rows] = labels
    return PairSet(people, pairs, marks)


def length(difference, norm):
    values = difference.astype(np.float64)
    return np.abs(values).sum() if norm == "l1" else np.linalg.norm(values)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    norm=st.sampled_from(["l2", "l1"]),
    kappa=st.integers(1, 4),
    d=st.integers(1, 6),
    k=st.integers(1, 4),
    size=st.sampled_from([1e-6, 0.1, 1.0, 1e3]),
    clip=st.sampled_from([1e-3, 0.3, 50.0]),
)
def test_neighbours_move_the_sum_no_further_than_claimed(seed, norm, kappa, d, k, size, clip):
    rng = np.random.default_rng(seed)
    data = random_pairs(rng, 12, 30, d, size)
    gradient = SetGradient(
        rng.normal(size=(k, d)) * size, ContrastiveLoss(rng.uniform(0.1, 3)), clip, (1.0, 2.0)
    )
    grid = choose_grid(clip, k * d, norm=norm)
    reach = grid_sensitivity(clip, grid, k * d, norm, tile=TILE)
    rows = rng.choice(30, size=kappa, replace=False)
    nulled = changed(data, rows, np.zeros((2 * kappa, d)), data.labels[rows])
    flipped = changed(data, rows, rng.normal(size=(2 * kappa, d)) * size, -data.labels[rows])
    total = clipped_sum(data, None, gradient, norm, grid)
    zero_out = length(total - clipped_sum(nulled, None, gradient, norm, grid), norm) * grid
    replaced = length(total - clipped_sum(flipped, None, gradient, norm, grid), norm) * grid
    assert zero_out <= kappa * reach * (1 + 1e-12)
    assert replaced <= 2 * kappa * reach * (1 + 1e-12)


def test_the_claim_is_attained_so_the_test_can_fail():
    """A pair far beyond the clip bound moves the sum by the bound itself."""
    people = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [50.0, 70.0]])
    data = PairSet(people, [[0, 1], [0, 2], [1, 3]], [1, -1, 1])
    gradient = SetGradient(np.eye(2), ContrastiveLoss(1.0), clip=0.3)
    grid = choose_grid(0.3, 4)
    nulled = changed(data, np.array([2]), np.zeros((2, 2)), np.array([1]))
    moved = clipped_sum(data, None, gradient, "l2", grid)
    moved = length(moved - clipped_sum(nulled, None, gradient, "l2", grid), "l2") * grid
    assert moved == pytest.approx(0.3, rel=1e-6)
    assert moved > 0.3 * 2 / 3  # a claim of two thirds of the clip bound would be refuted


def test_float32_features_are_summed_in_float32_and_charged_for_it():
    """Rounding reaches beyond the float64 claim, and stays within the float32 one."""
    rng = np.random.default_rng(4)
    data = random_pairs(rng, 40, 128, 20)
    data = PairSet(data.features.astype(np.float32), data.pairs, data.labels)
    gradient = SetGradient(rng.normal(size=(2, 20)), ContrastiveLoss(9.0), clip=0.01)
    assert gradient.is_compilable(data)
    grid, moved = choose_grid(0.01, 40), []
    total = clipped_sum(data, None, gradient, "l2", grid)
    for row in range(data.n_pairs):
        nulled = changed(data, np.array([row]), np.zeros((2, 20), np.float32), data.labels[[row]])
        without = clipped_sum(nulled, None, gradient, "l2", grid)
        moved.append(length(total - without, "l2") * grid)
    assert max(moved) <= gradient.sensitivity("l2", grid, np.float32)
    assert max(moved) > gradient.sensitivity("l2", grid, np.float64)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_scale_of_columns_is_the_same_as_scaled_features(make, compiled):
    rng = np.random.default_rng(5)
    data = random_pairs(rng, 30, 200, 6)
    scale = 2.0 ** rng.integers(-2, 3, 6)  # exact in both ways
    plain = SetGradient(rng.normal(size=(3, 6)), ContrastiveLoss(1.0), 0.5, (1.0, 0.5))
    gradient = replace(plain, scale=scale)
    grid = choose_grid(0.5, 18)
    options = {"compiled": compiled}
    given = PairSet(make(data.features), data.pairs, data.labels)
    scaled = PairSet(make(data.features * scale), data.pairs, data.labels)
    first = clipped_sum(given, None, gradient, "l2", grid, **options)
    second = clipped_sum(scaled, None, plain, "l2", grid, **options)
    np.testing.assert_allclose(first, second, rtol=0, atol=200 * 2)
    assert np.abs(first).max() > 1e6


def test_sums_do_not_depend_on_the_order_of_tiles():
    rng = np.random.default_rng(1)
    data = random_pairs(rng, 50, 3 * TILE, 5)
    gradient = SetGradient(rng.normal(size=(2, 5)), ContrastiveLoss(1.0), clip=0.5)
    grid = choose_grid(0.5, 10)
    order = np.concatenate([np.arange(i * TILE, (i + 1) * TILE) for i in (2, 0, 1)])
    whole = clipped_sum(data, None, gradient, "l2", grid)
    assert np.array_equal(whole, clipped_sum(data, order, gradient, "l2", grid))


def test_sparse_features_give_the_same_sum():
    rng = np.random.default_rng(2)
    dense = random_pairs(rng, 40, 100, 8)
    table = np.where(rng.random((40, 8)) < 0.3, dense.features, 0.0)
    gradient = SetGradient(
        rng.normal(size=(3, 8)), ContrastiveLoss(1.0), 0.5, scale=rng.uniform(0.5, 2, 8)
    )
    grid = choose_grid(0.5, 24)
    for norm in ("l2", "l1"):
        both = [
            clipped_sum(PairSet(X, dense.pairs, dense.labels), None, gradient, norm, grid) * grid
            for X in (table, sparse.csr_array(table))
        ]
        np.testing.assert_allclose(*both, atol=1e-8)


def test_an_empty_batch_is_a_zero_sum():
    data = random_pairs(np.random.default_rng(3), 5, 6, 2)
    gradient = SetGradient(np.eye(2), ContrastiveLoss(1.0), clip=1.0)
    empty = clipped_sum(data, np.empty(0, dtype=np.int64), gradient, "l2", 2.0**-20)
    assert np.array_equal(empty, np.zeros((2, 2), dtype=np.int64))


def test_terms_that_are_longer_than_their_sum_are_charged_for_their_rounding():
    """Too small to be seen in a sum, and still owed: floats err in proportion to what is added up."""

    class Plain(Statistic):
        shape, clip = (3,), 1.0

    class Cancelling(Plain):
        largest_term = 1e6

    grid = 2.0**-40
    more = [kind().sensitivity("l2", grid) - 1.0 for kind in (Cancelling, Plain)]
    rounding = grid * np.sqrt(3)
    assert more[0] - rounding == pytest.approx(1e6 * (more[1] - rounding), rel=1e-3)


def test_threads_that_ask_at_once_get_no_more_answers_than_were_charged():
    both = threading.Barrier(2)

    class Meeting(Counter):
        """Whoever reads the count waits until another has read it too, if another can."""

        def __getitem__(self, query):
            found = super().__getitem__(query)
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(timeout=0.2)
            return found

    engine = Engine(PairSet(np.eye(2), [[0, 1]], [1]), TrustedNoise())
    engine._done = Meeting()
    gradient = SetGradient(np.eye(2), ContrastiveLoss(1.0), clip=1.0)
    answers = []

    def ask():
        with contextlib.suppress(RuntimeError):
            answers.append(engine.answer(Query("gradients", (2, 2), 5.0), gradient))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(answers) == 1
