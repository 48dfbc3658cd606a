"""Plans under audit: honest ones are left alone, tight ones come close, broken ones are found.

Seeds are fixed. Where nothing must be accused the confidence is 0.999 a time.
"""

from __future__ import annotations

import numpy as np
import pytest

from pairveil.audit.auditor import Claim, audit_mechanism, audit_scores
from pairveil.audit.canaries import canary_of, label_flip, relationship_pairs
from pairveil.audit.targets import (
    CLIP,
    MARGIN,
    one_step_gaussian,
    one_step_laplace,
    plan_claim,
    watch,
)
from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss
from pairveil.privacy.calibrate import calibrate_gaussian
from pairveil.privacy.mechanisms import Query
from pairveil.privacy.noise import SeededNoise
from pairveil.records.pairset import PairSet

DELTA = 1e-5
UNITS = [("pair", 1), ("relationship", 3), ("person", 3)]


def run(target, **options):
    return audit_scores(target.scores, target.claim, random_state=0, **options)


def test_one_step_laplace_is_tight():
    found = run(one_step_laplace(1.0, "pair", 1, "zero-out", 2), runs=12_000)
    assert 0.8 <= found.lower_bound <= 1.0


def test_one_step_gaussian_is_tight():
    found = run(one_step_gaussian(1.0, DELTA, "pair", 1, "zero-out", 2), runs=40_000)
    assert 0.8 <= found.lower_bound <= 1.0


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize(("unit", "kappa"), UNITS)
def test_honest_one_step_plans_are_not_accused(unit, kappa, adjacency):
    laplace = run(one_step_laplace(1.0, unit, kappa, adjacency, 2), runs=1500, confidence=0.999)
    gaussian = run(
        one_step_gaussian(1.0, DELTA, unit, kappa, adjacency, 2), runs=1500, confidence=0.999
    )
    assert laplace.verdict == gaussian.verdict == "consistent"
    # Not vacuous: the same runs refute a claim a third as large.
    assert laplace.lower_bound > 1 / 3


def poisson_plan(epsilon, kappa, adjacency, steps=8, rate=0.4):
    noise = calibrate_gaussian(
        epsilon, DELTA, kappa=kappa, adjacency=adjacency, sample_rate=rate, steps=steps
    )
    return Query("gradients", (1, 2), noise, steps, sample_rate=rate)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_a_sampled_plan_is_not_accused_and_is_seen(adjacency):
    query = poisson_plan(4.0, 3, adjacency)
    scores = watch(query, canary_of("person", 3, 2, adjacency))
    claim = plan_claim(query, 4.0, DELTA, 3, adjacency)
    found = audit_scores(scores, claim, runs=2500, confidence=0.999, random_state=0)
    assert found.verdict == "consistent"
    assert found.lower_bound > 0.4 * 4.0


class HalvedNoise(SeededNoise):
    """Draws noise of half the standard deviation that the plan names."""

    def noisy(self, family, total, scale, grid=None):
        return super().noisy(family, total, scale / 2, grid)


class ReusedNoise(SeededNoise):
    """Draws noise once and uses it in every step."""

    def noisy(self, family, total, scale, grid=None):
        if not hasattr(self, "_first"):
            self._first = super().noisy(family, np.zeros_like(total), scale, grid)
        return total * grid + self._first


@pytest.mark.parametrize("steps", [1, 8])
def test_halved_noise_is_found(steps):
    query = poisson_plan(1.0, 1, "zero-out", steps, rate=1.0 if steps == 1 else 0.4)
    scores = watch(query, canary_of("pair", 1, 2, "zero-out"), noise=HalvedNoise)
    claim = plan_claim(query, 1.0, DELTA, 1, "zero-out")
    found = audit_scores(scores, claim, runs=8000, random_state=0)
    assert found.verdict == "violated"


def test_accounting_kappa_one_on_a_graph_with_kappa_three_is_found():
    query = poisson_plan(1.0, 1, "zero-out", steps=4)
    scores = watch(query, relationship_pairs(3, 2, "zero-out"))
    claim = plan_claim(query, 1.0, DELTA, 1, "zero-out")
    assert audit_scores(scores, claim, runs=2500, random_state=0).verdict == "violated"


def test_noise_reused_between_steps_is_found():
    """Differences of the query then hold no noise at all: they show who was sampled when."""
    query = poisson_plan(1.0, 1, "zero-out", steps=4)
    gradient = _gradient()

    def mechanism(data, rng):
        from pairveil.engine.engine import Engine

        engine = Engine(data, ReusedNoise(rng))
        return np.stack([engine.answer(query, gradient) for _ in range(query.steps)])

    found = audit_mechanism(
        mechanism,
        canary_of("pair", 1, 2, "zero-out"),
        Claim(1.0, DELTA),
        score=lambda x: float(np.ptp(x.reshape(query.steps, -1), axis=0).max()),
        runs=2000,
        random_state=0,
    )
    assert found.verdict == "violated"
    assert found.lower_bound > 4


def _gradient():
    return SetGradient(np.array([[0.5, 0.0]]), ContrastiveLoss(MARGIN), CLIP)


def test_dividing_by_the_realised_batch_size_is_found():
    """A null pair makes the batch smaller, so the others weigh more: 2C where C was accounted."""
    noise = calibrate_gaussian(1.0, DELTA, kappa=1) * CLIP

    def averaged(data, rng):
        gaps, gradient = np.asarray(data.differences()), _gradient()
        present = np.flatnonzero(np.abs(gaps).sum(axis=1))
        total = gradient.tile_sum(gaps[present], data.labels[present], "l2")
        # Public size 2 in the noise, realised size in the mean.
        return 2 * total / max(1, len(present)) + rng.normal(0, noise, total.shape)

    two = label_flip(n_features=2, adjacency="zero-out", n_pairs=2)
    worlds = [_with_other(data) for data in (two.first, two.second)]
    neighbours = type(two)(worlds[0], worlds[1], "zero-out", "one-batch")
    claim = Claim(1.0, DELTA, "gaussian")
    found = audit_mechanism(
        averaged, neighbours, claim, score=lambda x: x[0], runs=6000, random_state=0
    )
    assert found.verdict == "violated"


def _with_other(data):
    """The null pair becomes a dissimilar pair, whose gradient points the other way."""
    features, labels = np.array(data.features), np.array(data.labels)
    features[2], features[3] = [1.0, 0.0], [-1.0, 0.0]
    labels[1] = -1
    return PairSet(features, data.pairs, labels)
