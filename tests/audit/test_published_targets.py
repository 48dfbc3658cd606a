"""The published mechanisms under audit: what must be found, and what must not be accused."""

from __future__ import annotations

import pytest

from pairveil.audit.auditor import Claim, Target, audit_scores
from pairveil.audit.published import (
    published_dpp,
    published_dpp_s,
    staircase_iid,
    staircase_joint,
)
from pairveil.privacy.compose import mu_from_epsilon


def bound(target, runs, **options):
    return audit_scores(target.scores, target.claim, runs=runs, random_state=0, **options)


def test_published_dpp_pays_for_every_row():
    """docs/theory/guarantee.md, Rows: at claimed 1.0 the cost is d'."""
    assert bound(published_dpp(1.0, 4, 3), 20_000).lower_bound >= 3.0
    one_row = bound(published_dpp(1.0, 1, 3), 10_000, confidence=0.999)
    assert 0.8 <= one_row.lower_bound <= 1.0


def test_published_dpp_s_reads_its_noise_off_the_batch():
    """docs/theory/guarantee.md, Noise that follows the batch: no finite epsilon."""
    assert bound(published_dpp_s(1.0, 1, 10), 16_000).lower_bound >= 4.0


def test_independent_staircases_cost_more_than_one():
    """docs/theory/guarantee.md, Staircase noise on vectors."""
    assert bound(staircase_iid(1.0, 8), 800_000).lower_bound >= 3.0
    assert bound(staircase_iid(1.0, 1), 20_000, confidence=0.999).verdict == "consistent"


def analytic_gaussian(epsilon, delta):
    """Balle and Wang's Gaussian mechanism on one number that moves by its sensitivity."""

    def scores(which, n, rng):
        return rng.normal(float(which), 1 / mu_from_epsilon(epsilon, delta), n)

    claim = Claim(epsilon, delta, assume="gaussian")
    return Target("analytic-gaussian", scores, claim, "unit shift", "replace", 200_000)


@pytest.mark.parametrize(
    "target",
    [
        staircase_joint(1.0, 8),
        staircase_joint(0.5, 3),
        analytic_gaussian(1.0, 1e-5),
        analytic_gaussian(4.0, 1e-5),
    ],
    ids=lambda target: f"{target.name} {target.claim.epsilon}",
)
def test_sound_mechanisms_are_not_accused(target):
    found = bound(target, 12_000, confidence=0.999)
    assert found.verdict == "consistent"
    assert found.lower_bound > 0.5 * found.claimed_epsilon
