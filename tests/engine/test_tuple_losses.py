"""Losses of tuples against loops that follow their definitions, and what one tuple can move of any sum."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import (
    TUPLE_LOSSES,
    PairsLoss,
    TripletLoss,
    TupletLoss,
)
from pairveil.engine.statistics import clipped_sum
from pairveil.learners.tuples import TupleContrast, TupleSurvey, packed
from pairveil.privacy.grid import choose_grid
from pairveil.records.tupleset import TupleSet

LOSSES = [TripletLoss(0.7), TupletLoss(0.3), PairsLoss(0.4)]


def loop_loss(loss, W, X, order):
    """The definition, member by member."""
    roles = [X[column] for column in order if column >= 0]

    def apart(i, j):
        return float(((W @ (roles[i] - roles[j])) ** 2).sum())

    if len(roles) < 3 and loss.name != "pairs":
        return 0.0
    if loss.name == "triplet":
        gaps = [loss.margin + apart(0, 1) - apart(0, n) for n in range(2, len(roles))]
        return float(np.mean([max(0.0, gap) for gap in gaps]))
    if loss.name == "tuplet":
        anchors = [(0, 1, list(range(2, len(roles))))]
    else:
        whole = len(roles) // 2
        anchors = [
            (2 * i, 2 * i + 1, [2 * j + 1 for j in range(whole) if j != i]) for i in range(whole)
        ]
    values = []
    for a, p, negatives in anchors:
        gaps = [loss.margin + apart(a, p) - apart(a, n) for n in negatives]
        values.append(math.log(1 + sum(math.exp(gap) for gap in gaps)))
    return float(np.mean(values)) if values else 0.0


def loop_gradient(loss, W, X, order, step=1e-6):
    """Central differences of the loop."""
    found = np.zeros_like(W)
    for i, j in itertools.product(*map(range, W.shape)):
        moved = [W.copy(), W.copy()]
        moved[0][i, j] += step
        moved[1][i, j] -= step
        up, down = (loop_loss(loss, one, X, order) for one in moved)
        found[i, j] = (up - down) / (2 * step)
    return found


def orders(rng, n, m, loss):
    """Random parts, some of them for fewer than all members, one null."""
    found = np.array([rng.permutation(m) for _ in range(n)])
    fewest = 4 if loss.name == "pairs" else 3
    for row in found[: n // 2]:
        row[rng.integers(fewest, m + 1) // (2 if loss.name == "pairs" else 1) * (
            2 if loss.name == "pairs" else 1) :] = -1  # fmt: skip
    found[-1] = -1
    return found.astype(np.int8)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name}-{loss.margin}")
@pytest.mark.parametrize("m", [4, 6])
def test_the_gradient_is_that_of_the_loop(loss, m):
    rng = np.random.default_rng(m)
    X, W = rng.normal(size=(20 * m, 3)), 0.7 * rng.normal(size=(2, 3))
    order = orders(rng, 20, m, loss)
    gradient = SetGradient(W, loss, clip=1e9, size=m)
    found = gradient.tile_sum(X, order, "l2")
    loops = sum(loop_gradient(loss, W, X[m * i : m * i + m], order[i]) for i in range(19))
    np.testing.assert_allclose(found, loops, atol=2e-5)


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name}-{loss.margin}")
def test_clipping_shortens_each_gradient_as_a_whole_and_no_more_than_it_must(loss, norm):
    rng = np.random.default_rng(1)
    W = rng.normal(size=(3, 5))
    for _ in range(30):
        X, order = rng.normal(size=(4, 5)), rng.permutation(4)[None].astype(np.int8)
        whole = SetGradient(W, loss, clip=1e9, size=4).tile_sum(X, order, norm)
        short = SetGradient(W, loss, clip=0.5, size=4).tile_sum(X, order, norm)
        length = np.linalg.norm(whole.ravel(), 1 if norm == "l1" else 2)
        assert np.linalg.norm(short.ravel(), 1 if norm == "l1" else 2) <= 0.5 * (1 + 1e-9)
        if norm == "l2" and length > 0:  # in l1 the bound on the length is not exact
            np.testing.assert_allclose(short, whole * min(1.0, 0.5 / length), rtol=1e-9, atol=1e-12)


def statistics(m, d, W, norm):
    """Every statistic that is summed over tuples."""
    scale = np.linspace(0.5, 2.0, d)
    yield from (
        SetGradient(W, make(margin=1.0), 0.3, scale=scale, size=m) for make in TUPLE_LOSSES.values()
    )
    yield TupleSurvey(d, m, 2.0, 0.5, TupleSurvey.bound(0.5, norm))
    yield TupleContrast(d, m, 0.5, scale)


def tuple_set(rng, n, m, d, size):
    X = rng.normal(size=(n * m, d)) * size
    order = np.array([rng.permutation(m) for _ in range(n)]).astype(np.int8)
    return TupleSet(X, np.arange(n * m).reshape(n, m), order)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(3, 6),
    norm=st.sampled_from(["l2", "l1"]),
    size=st.sampled_from([1e-160, 1e-6, 0.3, 3.0, 1e6]),
    stretch=st.sampled_from([1e-9, 1.0, 1e6]),
    separately=st.booleans(),
)
def test_no_tuple_moves_a_sum_further_than_its_sensitivity(
    seed, m, norm, size, stretch, separately
):
    """Null or replaced: other features, other roles, parts that nobody plays, equal members."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    W = stretch * rng.normal(size=(min(2, d), d))
    data = tuple_set(rng, 5, m, d, size)
    at = int(rng.integers(5))
    X, order = data.features.copy(), data.order.copy()
    X[m * at : m * at + m] *= rng.choice([-1.0, 0.0, 2.0])
    order[at] = rng.permutation(m)
    order[at, int(rng.integers(3, m + 1)) :] = -1
    null = data.emptied(np.arange(5) == at)
    for statistic in statistics(m, d, W, norm):
        grid = choose_grid(statistic.clip, math.prod(statistic.shape), norm=norm, n_pairs=5)
        reach = statistic.sensitivity(norm, grid)
        assert reach < 1.01 * statistic.clip
        before, nothing, other = (
            clipped_sum(one, None, statistic, norm, grid, separately=separately).astype(float)
            * grid
            for one in (data, null, data.with_features(X).with_order(order))
        )
        length = 1 if norm == "l1" else 2
        assert np.linalg.norm((before - nothing).ravel(), length) <= reach
        assert np.linalg.norm((before - other).ravel(), length) <= 2 * reach


def test_an_unclipped_gradient_would_be_found():
    """The bound above can fail: without the clip the same tuples move far further."""
    rng = np.random.default_rng(0)
    data = tuple_set(rng, 5, 3, 2, 1.0)
    loud = SetGradient(3 * np.eye(2), TripletLoss(), 1e9, size=3)
    moved = clipped_sum(data, None, loud, "l2", 2.0**-20) * 2.0**-20
    assert np.linalg.norm(moved) > 10 * SetGradient(
        np.eye(2), TripletLoss(), 0.3, size=3
    ).sensitivity("l2", 2.0**-31)


def test_who_is_not_there_contributes_nothing():
    rng = np.random.default_rng(0)
    data = tuple_set(rng, 4, 5, 3, 1.0)
    order = data.order.copy()
    order[:, 3:] = -1
    fewer, elsewhere = data.with_order(order), data.features.copy()
    gone = np.setdiff1d(
        np.arange(20), (data.tuples[:, :1] * 0 + 5 * np.arange(4)[:, None] + order[:, :3]).ravel()
    )
    elsewhere[gone] = 7.0
    for statistic in statistics(5, 3, rng.normal(size=(2, 3)), "l2"):
        one, two = (
            clipped_sum(d, None, statistic, "l2", 2.0**-31)
            for d in (fewer, fewer.with_features(elsewhere))
        )
        np.testing.assert_array_equal(one, two)
        assert not clipped_sum(
            data.emptied(np.ones(4, bool)), None, statistic, "l2", 2.0**-31
        ).any()


def test_sparse_rows_are_summed_in_parts_with_the_same_result(monkeypatch):
    rng = np.random.default_rng(0)
    data = tuple_set(rng, 30, 3, 4, 1.0)
    thin = data.with_features(sparse.csr_array(data.features))
    for statistic in statistics(3, 4, rng.normal(size=(2, 4)), "l2"):
        whole = clipped_sum(data, None, statistic, "l2", 2.0**-31)
        with monkeypatch.context() as patch:
            patch.setattr("pairveil.engine.gradients.AT_ONCE", 24)
            parts = clipped_sum(thin, None, statistic, "l2", 2.0**-31)
        np.testing.assert_allclose(whole, parts, atol=2)


def test_the_contrast_is_the_mean_over_negatives_less_the_positive():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 3))
    order = np.array([[2, 0, 4, 1, -1]], dtype=np.int8)
    z = X - X[2]
    wanted = (np.outer(z[4], z[4]) + np.outer(z[1], z[1])) / 2 - np.outer(z[0], z[0])
    found = TupleContrast(3, 5, clip=1e9).tile_sum(X, order, "l2")
    np.testing.assert_allclose(found, packed(wanted), rtol=1e-12)
