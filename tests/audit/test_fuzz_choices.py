"""The range of a choice's scores, against neighbours of both kinds, with no tolerance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from neighbourhoods import as_pairs, neighbourhoods, quiet

from pairveil.engine.statistics import GRID, UNIT, Scores, clipped_sum
from pairveil.learners.contrastive.recipe import ColumnScores


@dataclass(frozen=True)
class Anything(Scores):
    """Values that break the contract in every way: too large, negative, not numbers."""

    n_features: int

    @property
    def shape(self):
        return (self.n_features,)

    def contributions(self, contents, labels):
        with np.errstate(all="ignore"):
            values = np.where(contents == 0, 0.0, 3.0 * contents / np.abs(contents[:, :1]))
        return values, np.where(labels > 0, -1, 2).astype(np.int8)


class InFloats(ColumnScores):
    """What each pair adds to each candidate, as numbers and signs."""

    def contributions(self, contents, labels):
        weight = np.where(labels > 0, *self.weights)
        far = [weight[:, None] * (np.abs(contents) > t) for t in self.thresholds]
        return np.hstack(far), np.where(labels > 0, -1, 1).astype(np.int8)


@dataclass(frozen=True)
class RoundedLate(InFloats):
    """Wrong on purpose: adds up first and rounds afterwards, so that one record may move two steps."""

    def tile_total(self, contents, labels, norm, grid):
        values, signs = self.contributions(contents, labels)
        return (np.rint(signs @ values / 1.5) * 1.5 * UNIT).astype(np.int64)


@dataclass(frozen=True)
class BothWays(InFloats):
    """Wrong on purpose: a pair adds to candidates that it speaks for and takes off the others."""

    def tile_total(self, contents, labels, norm, grid):
        values, signs = self.contributions(contents, labels)
        live = (np.abs(contents).sum(axis=1) > 0) * signs
        return ((live @ (2 * (values > 0) - 1)) * UNIT).astype(np.int64)


SCORES = {
    "columns": lambda d: ColumnScores(d, (1e-9, 0.3, 2.0), (1.0, 0.3)),
    "heavy": lambda d: ColumnScores(d, (0.1,), (7.0, math.pi / 4)),
    "anything": Anything,
}


def ranges(scores, case):
    """Range of what the changed pairs move, in records: nulled, and replaced."""
    contents, labels, changed, *_ = case
    nulled, replaced, relabelled = contents[0].copy(), contents[0].copy(), labels[0].copy()
    nulled[changed] = 0.0
    replaced[changed], relabelled[changed] = contents[1][changed], labels[1][changed]
    totals = [
        clipped_sum(as_pairs(dx, y), None, scores, "range", GRID)
        for dx, y in [(contents[0], labels[0]), (nulled, labels[0]), (replaced, relabelled)]
    ]
    # Whole numbers: no tolerance anywhere.
    return [int(np.ptp(total - totals[0])) / (UNIT * len(changed)) for total in totals[1:]]


@pytest.mark.parametrize("name", SCORES)
def test_no_neighbour_moves_the_scores_by_more_than_the_range(name):
    @quiet(400)
    @given(neighbourhoods())
    def check(case):
        zeroed, replaced = ranges(SCORES[name](case[0][0].shape[1]), case)
        assert zeroed <= 1
        assert replaced <= 2

    check()


def test_the_ranges_are_reached():
    """Nulling a dissimilar pair moves one candidate by 1; a label flip by 2; other contents by 2."""
    one, other = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    away, near = -np.ones(1, dtype=np.int8), np.ones(1, dtype=np.int8)
    scores = ColumnScores(2, (0.5,), (1.0, 1.0))
    assert ranges(scores, ([one, one], [away, near], np.array([0]))) == [1, 2]
    assert ranges(scores, ([one, other], [away, away], np.array([0]))) == [1, 2]


@pytest.mark.parametrize("wrong", [RoundedLate, BothWays])
def test_the_fuzz_finds_wrong_scores(wrong):
    worst = 0.0

    @quiet(300)
    @given(neighbourhoods())
    def look(case):
        nonlocal worst
        zeroed, replaced = ranges(wrong(case[0][0].shape[1], (0.3,), (0.7, 0.3)), case)
        worst = max(worst, zeroed, replaced / 2)

    look()
    assert worst > 1
