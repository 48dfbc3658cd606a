"""The rank-one gradient against finite differences and a plain loop."""

import numpy as np
import pytest

from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss, LogisticLoss
from pairveil.engine.statistics import row_norms, shrink

RNG = np.random.default_rng(0)
LOSSES = [ContrastiveLoss(margin=0.7), ContrastiveLoss(margin=3.0), LogisticLoss(margin=0.7)]


def loss_of(loss, W, gap, label):
    """The definition."""
    distance = np.linalg.norm(W @ gap)
    if isinstance(loss, LogisticLoss):
        return np.logaddexp(0.0, label * (distance**2 - loss.margin**2))
    return 0.5 * (distance if label > 0 else max(0.0, loss.margin - distance)) ** 2


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("label", [1, -1])
def test_gradient_is_the_derivative(loss, label):
    W, gap = RNG.normal(size=(3, 5)) * 0.3, RNG.normal(size=5)
    statistic = SetGradient(W, loss, clip=1e9)
    found = statistic.tile_sum(gap[None], np.array([label]), norm="l2")
    step = 1e-6
    wanted = np.zeros_like(W)
    for i in np.ndindex(W.shape):
        up, down = W.copy(), W.copy()
        up[i] += step
        down[i] -= step
        wanted[i] = (loss_of(loss, up, gap, label) - loss_of(loss, down, gap, label)) / (2 * step)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_clipped_sum_equals_a_plain_loop_over_pairs(norm):
    """Brute force: every pair's full gradient matrix is formed, clipped as a whole, and added."""
    loss, weights, clip = ContrastiveLoss(1.0), (0.4, 1.7), 0.3
    W, gaps = RNG.normal(size=(3, 6)), RNG.normal(size=(50, 6)) * 0.4
    labels = np.where(RNG.random(50) < 0.5, 1, -1).astype(np.int8)
    scale = RNG.uniform(0.5, 2.0, size=6)
    wanted = np.zeros_like(W)
    for gap, label in zip(gaps * scale, labels, strict=True):
        distance = np.linalg.norm(W @ gap)
        c = 1.0 if label > 0 else ((distance - 1.0) / distance if 0 < distance < 1.0 else 0.0)
        gradient = c * (weights[0] if label > 0 else weights[1]) * np.outer(W @ gap, gap)
        size = np.abs(gradient).sum() if norm == "l1" else np.linalg.norm(gradient)
        wanted += gradient * min(1.0, clip / size) if size > 0 else 0.0
    found = SetGradient(W, loss, clip, weights).tile_sum(gaps * scale, labels, norm)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_clipping_row_by_row_would_be_seen():
    """The full matrix is clipped: the sum of one pair's rows may not reach clip in each row."""
    W, gap = np.eye(4), np.ones((1, 4)) * 10
    statistic = SetGradient(W, ContrastiveLoss(1.0), clip=1.0)
    found = statistic.tile_sum(gap, np.array([1]), norm="l2")
    assert np.linalg.norm(found) == pytest.approx(1.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_zero_difference_has_no_gradient(loss):
    statistic = SetGradient(np.ones((2, 3)), loss, clip=1.0)
    for label in (1, -1):
        found = statistic.tile_sum(np.zeros((1, 3)), np.array([label]), "l2")
        assert np.array_equal(found, np.zeros((2, 3)))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_bound_from_W_alone_holds_and_is_tight(loss):
    W = RNG.normal(size=(2, 4)) * 0.5
    radius = 2.0
    bound = loss.gradient_bound(np.linalg.norm(W, 2), radius)
    gaps = RNG.normal(size=(20_000, 4))
    gaps *= radius / row_norms(gaps)[:, None]
    gaps[::2] *= RNG.random((10_000, 1))
    gaps[0] = radius * np.linalg.svd(W)[2][0]  # similar: the worst direction
    largest = 0.0
    for label in (1, -1):
        distance = row_norms(gaps @ W.T)
        c = loss.coefficient(distance, np.full(len(gaps), label))
        largest = max(largest, float(np.max(np.abs(c) * distance * row_norms(gaps))))
    assert 0.8 * bound < largest <= bound * (1 + 1e-12)


def test_shrink_never_lengthens():
    lengths = np.array([0.0, 1e-300, 0.5, 1.0, 1e300])
    assert np.all(shrink(lengths, 1.0) * lengths <= 1.0)
    assert np.all(shrink(lengths, 1.0)[:4] == 1.0)


def test_the_logistic_loss_survives_any_distance():
    loss = LogisticLoss(1.0)
    far = np.array([0.0, 1e-200, 1e3, 1e100])
    for label in (1, -1):
        assert (np.abs(loss.coefficient(far, np.full(4, label))) <= 2).all()
