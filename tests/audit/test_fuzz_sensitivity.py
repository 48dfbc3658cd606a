"""The sensitivity claim, against random and adversarial neighbours, both adjacencies, both norms.

What an estimator takes from the data is a clipped sum on a grid; zeroing a pair out may move it by
`sensitivity` and replacing it by twice that. 2,600 examples x 2 adjacencies x 2 norms x 2 ways of summing =
20,800 cases for the loss gradient, and 1,600 for each other statistic.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairveil.data.pairset import PairSet
from pairveil.engine.gradients import LossGradient
from pairveil.engine.losses import ContrastiveLoss
from pairveil.engine.statistics import clipped_sum
from pairveil.learners.contrastive.statistics import (
    Candidates,
    ColumnSignal,
    Contest,
    DissimilarDistances,
    DistanceMoments,
    Survey,
)
from pairveil.learners.thresholds import DistanceHistogram
from pairveil.privacy.grid import choose_grid

EXAMPLES = 2600
SCALES = (0.0, 1e-100, 1e-17, 1e-8, 1.0, 1e3, 1e8)


def quiet(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@st.composite
def neighbourhoods(draw):
    """Pair contents, their replacements, a W and a loss: random, at the edges, or far beyond."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, k = draw(st.integers(1, 7)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    kappa = draw(st.integers(1, n))
    margin = draw(st.sampled_from([1e-3, 0.5, 1.0, 2.0, 50.0]))
    clip = draw(st.sampled_from([1e-6, 0.05, 0.5, 1.0, 30.0]))
    W = rng.normal(size=(k, d)) * draw(st.sampled_from(SCALES))
    kind = draw(st.sampled_from(["random", "sparse", "equal", "margin", "extreme"]))
    contents = [_contents(rng, kind, n, d, W, margin) for _ in range(2)]
    labels = [rng.choice([-1, 1], n).astype(np.int8) for _ in range(2)]
    if draw(st.booleans()):  # the label flip: same people, other labels
        contents[1], labels[1] = contents[0].copy(), -labels[0]
    changed = rng.permutation(n)[:kappa]
    return contents, labels, changed, W, ContrastiveLoss(margin), clip


def _contents(rng, kind, n, d, W, margin):
    dx = rng.normal(size=(n, d))
    if kind == "sparse":
        dx *= rng.random((n, d)) < 0.4
    elif kind == "equal":
        dx[:] = dx[0]
    elif kind == "extreme":
        dx *= rng.choice(SCALES[:5], size=(n, 1))
    dx *= (
        2.0 / np.maximum(np.linalg.norm(dx, axis=1, keepdims=True), 1e-300)
        if kind == "equal"
        else 1
    )
    if kind == "margin":  # distances exactly at, just inside or just outside the margin
        distance = np.linalg.norm(dx @ W.T, axis=1, keepdims=True)
        near = margin * rng.choice([1.0, 1 - 1e-15, 1 + 1e-15, 1e-12], size=(n, 1))
        dx = np.where(distance > 1e-6, dx * near / np.maximum(distance, 1e-6), dx)
    return np.clip(dx, -1e3, 1e3)


def as_pairs(dx, labels):
    features = np.zeros((2 * len(dx), dx.shape[1]))
    features[0::2] = dx
    return PairSet(features, np.arange(2 * len(dx)).reshape(-1, 2), labels)


def largest_move(statistic_of, case, norm, compiled=True):
    """(how far the sum moved) / (how far it may), for zero-out and for replace."""
    contents, labels, changed, W, loss, clip = case
    statistic = statistic_of(W, loss, clip)
    clip = statistic.clip
    entries = int(np.prod(statistic.shape))
    grid = choose_grid(clip, entries, norm=norm, n_pairs=len(contents[0]))
    allowed = statistic.sensitivity(norm, grid)
    nulled, replaced, relabelled = contents[0].copy(), contents[0].copy(), labels[0].copy()
    nulled[changed] = 0.0
    replaced[changed], relabelled[changed] = contents[1][changed], labels[1][changed]
    totals = [
        clipped_sum(as_pairs(dx, y), None, statistic, norm, grid, compiled=compiled)
        for dx, y in [(contents[0], labels[0]), (nulled, labels[0]), (replaced, relabelled)]
    ]
    order = 1 if norm == "l1" else 2
    moves = [
        np.linalg.norm((t - totals[0]).ravel().astype(float) * grid, order) for t in totals[1:]
    ]
    return moves[0] / (len(changed) * allowed), moves[1] / (2 * len(changed) * allowed)


def loss_gradient(W, loss, clip):
    return LossGradient(W, loss, clip)


@quiet(EXAMPLES)
@given(neighbourhoods())
def test_no_neighbour_moves_the_gradient_sum_beyond_the_claim(case):
    for norm, compiled in (("l2", True), ("l1", True), ("l2", False), ("l1", False)):
        zeroed, replaced = largest_move(loss_gradient, case, norm, compiled)
        assert zeroed <= 1.0
        assert replaced <= 1.0


def _candidates(W):
    scaled = W / max(np.abs(W).max(), 1e-12)
    return Candidates(scaled, np.full(W.shape[1], 0.7), (0.0, 0.5, 1.0))


STATISTICS = {
    "margins": lambda W, loss, clip: DissimilarDistances(2.0, clip),
    "threshold": lambda W, loss, clip: DistanceHistogram(W / max(np.abs(W).max(), 1e-12), 4.0),
    "survey": lambda W, loss, clip: Survey(W.shape[1], 2.0, 0.5, clip),
    "columns": lambda W, loss, clip: ColumnSignal(W.shape[1], (1.0, 0.6), clip),
    "moments": lambda W, loss, clip: DistanceMoments(_candidates(W), clip),
    "contest": lambda W, loss, clip: Contest(
        _candidates(W), np.array([0.1, -0.2, 0.0]), np.array([0.3, 1e-3, 2.0]), (1.0, 1.0), clip
    ),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_no_neighbour_moves_any_other_sum_beyond_the_claim(name):
    @quiet(400)
    @given(neighbourhoods())
    def check(case):
        for norm in ("l2", "l1"):
            zeroed, replaced = largest_move(STATISTICS[name], case, norm)
            assert zeroed <= 1.0
            assert replaced <= 1.0

    check()


def test_the_worst_case_is_reached():
    """The bound is not merely large: clipped opposite gradients move the sum by all of it."""
    dx, W = np.array([[2.0, 0.0]]), np.array([[0.5, 0.0]])
    ones = np.ones(1, dtype=np.int8)
    case = ([dx, dx], [ones, -ones], np.array([0]), W, ContrastiveLoss(2.0), 0.5)
    for norm in ("l2", "l1"):
        assert min(largest_move(loss_gradient, case, norm)) > 0.99999


@pytest.mark.parametrize("compiled", [True, False])
def test_underflow_does_not_escape_the_clip(compiled):
    """W has a zero column and the pair all but lies in it: D^2 underflows, the gradient does not.

    ``c W dx = (D - m)/D W dx`` has length m - D however small D is; a D from squares that lost their
    digits makes the pair longer than the clip bound that it was measured against.
    """
    W, away = np.array([[1.0, 0.0]]), -np.ones(1, dtype=np.int8)
    for tiny in np.geomspace(1e-164, 1e-150, 200):
        dx = np.array([[tiny, 2.0]])
        case = ([dx, dx], [away, away], np.array([0]), W, ContrastiveLoss(2.0), 0.5)
        assert largest_move(loss_gradient, case, "l2", compiled)[0] <= 1.0


class ClippedByRow(LossGradient):
    """Wrong on purpose: rows are clipped one by one, as the published algorithm does."""

    def tile_sum(self, differences, labels, norm):
        rows = [LossGradient(self.W[r : r + 1], self.loss, self.clip) for r in (0, 1)]
        return np.concatenate([row.tile_sum(differences, labels, norm) for row in rows])


class Averaged(LossGradient):
    """Wrong on purpose: scaled up by the number of pairs that have a gradient."""

    def tile_sum(self, differences, labels, norm):
        total = super().tile_sum(differences, labels, norm)
        return total * len(labels) / max(1, int((np.abs(differences).sum(axis=1) > 0).sum()))


@pytest.mark.parametrize("wrong", [ClippedByRow, Averaged])
def test_the_fuzz_finds_a_wrong_statistic(wrong):
    worst = 0.0

    @quiet(600)
    @given(neighbourhoods())
    def look(case):
        nonlocal worst
        if wrong is Averaged or case[3].shape[0] == 2:
            moves = largest_move(wrong, case, "l2", compiled=False)
            worst = max(worst, *moves)

    look()
    assert worst > 1.01
