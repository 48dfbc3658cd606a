"""The statistics: right on known cases, never too high more often than they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

from pairveil.audit.auditor import (
    ACCUSATION,
    Claim,
    ErrorCounts,
    audit_scores,
    choose_threshold,
    clopper_pearson_upper,
    count_errors,
    epsilon_from_rates,
    epsilon_in_family,
    middle_threshold,
    mu_from_duels,
)
from pairveil.errors import InputError
from pairveil.privacy.compose import epsilon_from_mu, mu_from_epsilon


@pytest.mark.parametrize(("events", "trials"), [(0, 10), (3, 10), (9, 10), (50, 1000), (999, 1000)])
def test_clopper_pearson_is_the_exact_binomial_limit(events, trials):
    upper = float(clopper_pearson_upper(events, trials, 0.05))
    assert binom.cdf(events, trials, upper) == pytest.approx(0.05, abs=1e-9)


def test_clopper_pearson_knows_nothing_after_only_events():
    assert float(clopper_pearson_upper(10, 10, 0.05)) == 1.0


def test_useless_limits_give_zero_and_not_a_mirror_image():
    # jax_privacy 2.0.0 takes the absolute value here and so accuses pure noise of epsilon 3.5.
    assert float(epsilon_from_rates(0.9, 0.9)) == 0.0


def test_pure_epsilon_is_read_off_randomised_response():
    lie = 1 / (1 + np.e)
    assert float(epsilon_from_rates(lie, lie)) == pytest.approx(1.0)
    assert float(epsilon_from_rates(lie, lie, delta=0.1)) < 1.0


# jax_privacy 2.0.0, CanaryScoreAuditor.epsilon_clopper_pearson(0.05, 1e-3, one_sided=False) with
# explicit thresholds, on the scores below.
@pytest.mark.oracle
@pytest.mark.parametrize(
    ("threshold", "expected"),
    [(0.0, 0.6250753405790453), (0.5, 0.6238631960672903), (1.5, 1.3100536857616205)],
)
def test_counting_bound_agrees_with_jax_privacy(threshold, expected):
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=500), rng.normal(1, 1, size=400)
    assert count_errors(first, second, threshold).epsilon(1e-3) == pytest.approx(expected, abs=1e-9)


def test_threshold_sees_both_tails():
    first, second = np.zeros(1000), np.r_[np.zeros(990), np.ones(10)]
    assert choose_threshold(first, second, epsilon_from_rates) == 1.0
    assert choose_threshold(-second, first, epsilon_from_rates) == 0.0


def _bounds_too_high_and_accusations(scores, claim, audits=300, runs=400):
    rng = np.random.default_rng(20260801)
    found = [audit_scores(scores, claim, runs=runs, random_state=rng) for _ in range(audits)]
    too_high = sum(one.lower_bound > claim.epsilon for one in found)
    return too_high, sum(one.verdict == "violated" for one in found)


# Each claim is exact, so a bound is too high at most 0.05 of the time, and a claim accused at most 0.001 of
# it; more than 26 and 3 of 300 would happen with probability below 0.003 and 0.001. Both
# are deterministic given the seed.
_ALLOWED, _ALLOWED_ACCUSATIONS = 26, 3


def test_exact_claims_are_rarely_accused():
    def laplace(which, n, rng):
        return which + rng.laplace(size=n)

    def gaussian(which, n, rng):
        return which * mu_from_epsilon(1.0, 1e-5) + rng.normal(size=n)

    assert binom.sf(_ALLOWED, 300, 0.05) < 0.003
    assert binom.sf(_ALLOWED_ACCUSATIONS, 300, 1 - ACCUSATION) < 0.001
    curve = Claim(1.0, 1e-5, "family", lambda s, d: epsilon_from_mu(1 / s, d), 3.0)
    seen = [
        _bounds_too_high_and_accusations(laplace, Claim(1.0)),
        _bounds_too_high_and_accusations(gaussian, Claim(1.0, 1e-5, "gaussian")),
        _bounds_too_high_and_accusations(gaussian, curve),
    ]
    for too_high, accused in seen:
        assert too_high <= _ALLOWED
        assert accused <= _ALLOWED_ACCUSATIONS
    # A bound at 0.95 alone would accuse honest Gaussian claims more often than that.
    assert max(too_high for too_high, _ in seen) > _ALLOWED_ACCUSATIONS
    # and a false claim is accused nearly always
    assert (
        _bounds_too_high_and_accusations(gaussian, Claim(0.3, 1e-5, "gaussian"), 40, 4000)[1] >= 30
    )


def test_a_threshold_from_the_counted_runs_would_be_caught():
    """The wrong case: the best threshold on the very runs that are counted, by raw rates."""
    rng = np.random.default_rng(5)
    accused = 0
    for _ in range(60):
        first, second = rng.laplace(size=200), 1 + rng.laplace(size=200)
        cuts = np.concatenate([first, second])[::4]
        best = max(count_errors(first, second, cut).epsilon(0.0, 0.51) for cut in cuts)
        accused += best > 1.0
    assert accused > _ALLOWED


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_duels_cover_mu(mu):
    """400 bounds at 90 % confidence: more than 60 too high has probability below 0.001."""
    rng = np.random.default_rng(11)
    bounds = np.array(
        [mu_from_duels(rng.normal(size=500), rng.normal(mu, 1, 500), 0.9) for _ in range(400)]
    )
    assert binom.sf(60, 400, 0.1) < 0.001
    assert (bounds > mu).sum() <= 60
    assert (bounds > mu / 2).mean() > 0.7


def test_duels_give_ties_to_the_first_input():
    assert mu_from_duels(np.zeros(100), np.zeros(100)) == 0.0
    assert mu_from_duels(np.zeros(100), np.ones(100)) > 1.0


def test_family_agrees_with_the_gaussian_bound():
    def curve(noise, delta):
        return epsilon_from_mu(1 / noise, delta)

    for alarm, miss in [(0.45, 0.45), (0.1, 0.3), (0.02, 0.9)]:
        direct = epsilon_from_mu(norm.isf(alarm) + norm.isf(miss), 1e-5)
        found = epsilon_in_family(alarm, miss, curve, noise=2.0, delta=1e-5)
        assert 0.9 * direct <= found <= direct * (1 + 1e-3)


def test_a_family_refutes_nothing_without_a_gain():
    assert epsilon_in_family(0.6, 0.5, lambda s, d: 1 / s, 1.0, 1e-5) == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Claim(-1.0),
        lambda: Claim(1.0, 1.0),
        lambda: Claim(1.0, 0.0, "gaussian"),
        lambda: Claim(1.0, 1e-5, "family"),
        lambda: ErrorCounts(1, 2, 1, 2).epsilon(confidence=1.0),
        lambda: clopper_pearson_upper(3, 2, 0.05),
        lambda: choose_threshold([], [1.0], epsilon_from_rates),
        lambda: middle_threshold([], [1.0]),
        lambda: mu_from_duels([0.0], [1.0, 2.0]),
        lambda: choose_threshold([np.nan], [1.0], epsilon_from_rates),
        lambda: audit_scores(lambda w, n, r: np.zeros(n), Claim(1.0), runs=10),
    ],
)
def test_wrong_use_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()
