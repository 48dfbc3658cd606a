"""The sensitivity claim, against random and adversarial neighbours, both adjacencies, both norms.

What an estimator takes from the data is a clipped sum on a grid; zeroing a pair out may move it by
`sensitivity` and replacing it by twice that. 2,600 examples x 2 adjacencies x 2 norms x 2 ways of summing =
20,800 cases for the loss gradient, and 1,600 for each other statistic.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from neighbourhoods import as_pairs, neighbourhoods, quiet

from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss
from pairveil.engine.statistics import clipped_sum
from pairveil.learners.contrastive.recipe import ColumnSignal, DissimilarDistances, Survey
from pairveil.learners.histogram import DistanceCounts
from pairveil.privacy.grid import choose_grid

EXAMPLES = 2600


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
    return SetGradient(W, loss, clip)


@quiet(EXAMPLES)
@given(neighbourhoods())
def test_no_neighbour_moves_the_gradient_sum_beyond_the_claim(case):
    for norm, compiled in (("l2", True), ("l1", True), ("l2", False), ("l1", False)):
        zeroed, replaced = largest_move(loss_gradient, case, norm, compiled)
        assert zeroed <= 1.0
        assert replaced <= 1.0


STATISTICS = {
    "margins": lambda W, loss, clip: DissimilarDistances(2.0, clip),
    "threshold": lambda W, loss, clip: DistanceCounts(
        components=W / max(np.abs(W).max(), 1e-12), longest=4.0
    ),
    "survey": lambda W, loss, clip: Survey(W.shape[1], 2.0, clip),
    "columns": lambda W, loss, clip: ColumnSignal(W.shape[1], (1.0, 0.6), clip),
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


class ClippedByRow(SetGradient):
    """Wrong on purpose: rows are clipped one by one, as the published algorithm does."""

    def tile_sum(self, differences, labels, norm):
        rows = [SetGradient(self.W[r : r + 1], self.loss, self.clip) for r in (0, 1)]
        return np.concatenate([row.tile_sum(differences, labels, norm) for row in rows])


class Averaged(SetGradient):
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
