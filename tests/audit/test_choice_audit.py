"""Choices under audit: honest ones are left alone, the target is near its claim, broken ones are found.

Seeds are fixed. Where nothing must be accused the confidence is 0.999 a time.
"""

from __future__ import annotations

import numpy as np
import pytest

from pairveil.audit.auditor import audit_scores
from pairveil.audit.canaries import canary_of
from pairveil.audit.exact_audit import _Recorder
from pairveil.audit.targets import FirstOfMany, make_target, one_choice, watch_choice
from pairveil.engine.engine import Engine
from pairveil.engine.statistics import UNIT
from pairveil.privacy.mechanisms import EXPONENTIAL, Query
from pairveil.privacy.noise import SeededNoise

UNITS = [("pair", 1), ("relationship", 3), ("person", 3)]


def run(target, **options):
    return audit_scores(target.scores, target.claim, random_state=0, **options)


def test_one_choice_comes_near_its_claim():
    """Eight candidates allow a ratio of 8e/(e + 7) at epsilon 1: 0.81."""
    found = run(make_target("choice", 1.0), runs=8_000)
    assert 0.6 <= found.lower_bound <= 1.0


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize(("unit", "kappa"), UNITS)
def test_honest_choices_are_not_accused(unit, kappa, adjacency):
    found = run(one_choice(1.0, unit, kappa, adjacency, 2), runs=3000, confidence=0.999)
    assert found.verdict == "consistent"
    assert found.lower_bound > 0.3


class HalvedNoise(SeededNoise):
    """Chooses with twice the eta that the plan names."""

    def choose(self, scores, eta, unit=1):
        return super().choose(scores, 2 * eta, unit)


class PermuteAndFlip(SeededNoise):
    """Candidates without replacement, each kept with probability exp(-eta below): a range of up to 2 eta."""

    def choose(self, scores, eta, unit=1):
        below = (scores.max() - scores) * (eta / unit)
        for one in self._rng.permutation(len(scores)):
            if self._rng.random() < np.exp(-below[one]):
                return int(one)
        raise AssertionError


class CountedTwice(FirstOfMany):
    """Every pair's whole contribution is added twice."""

    def tile_total(self, contents, labels, norm, grid):
        return 2 * super().tile_total(contents, labels, norm, grid)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_broken_choices_are_found(adjacency):
    honest = one_choice(1.0, "pair", 1, adjacency, 2)
    canary = canary_of("pair", 1, 2, adjacency)
    noise = 1.0 if adjacency == "zero-out" else 2.0
    for broken in (
        watch_choice(noise, canary, noise=HalvedNoise),
        watch_choice(noise, canary, scores=CountedTwice()),
    ):
        found = audit_scores(broken, honest.claim, runs=4_000, random_state=0)
        assert found.verdict == "violated"


def test_permute_and_flip_is_convicted_as_a_choice():
    """Accounted as a choice of range eta it would be certified at half of its total variation.

    Two candidates, (1, 0) against (0, 0): TV (1 - e^-eta)/2, where a choice is charged tanh(eta/4).
    """
    eta, runs = 1.0, 20_000
    rng = np.random.default_rng(0)
    rates = [
        np.mean([PermuteAndFlip(rng).choose(np.array(u), eta) for _ in range(runs)])
        for u in ([1, 0], [0, 0])
    ]
    assert abs(rates[1] - rates[0]) > np.tanh(eta / 4) + 0.02  # 0.316 against 0.245; sd 0.005


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_the_exact_audit_measures_ranges(adjacency):
    canary = canary_of("pair", 1, 2, adjacency)
    for scores, moved in ((FirstOfMany(), 1.0), (CountedTwice(), 2.0)):
        query = Query("choice", scores.shape, 7.0, mechanism=EXPONENTIAL)
        recorder = _Recorder(canary, 0)
        Engine(recorder, recorder, recorder.answered).choose(query, scores)
        assert recorder.moves[query] == [
            pytest.approx(moved * (1 if adjacency == "zero-out" else 2))
        ]


def test_the_exact_audit_sees_a_wrong_eta_and_a_wrong_unit():
    canary, scores = canary_of("pair", 1, 2, "zero-out"), FirstOfMany()
    query = Query("choice", scores.shape, 7.0, mechanism=EXPONENTIAL)
    for eta, unit in ((2 / 7, UNIT), (1 / 7, UNIT // 2)):
        recorder = _Recorder(canary, 0)
        total = recorder.add_up(None, scores, "range", 1 / UNIT)
        recorder.choose(total, eta, unit)
        recorder.answered(query, scores, np.zeros(1))
        assert recorder.moves[query] == [pytest.approx(2.0)]
