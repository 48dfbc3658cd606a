"""Calibration ends on the sound side, close to the budget, for every kind of plan."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil.errors import BudgetError, InputError
from pairveil.privacy.calibrate import calibrate_choice, calibrate_gaussian, calibrate_laplace
from pairveil.privacy.events import GaussianEvent, LaplaceEvent
from pairveil.privacy.profile import epsilon_of


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    epsilon=st.floats(0.01, 20.0),
    rate=st.one_of(st.just(1.0), st.floats(0.005, 0.99)),
    steps=st.integers(1, 300),
    kappa=st.sampled_from([1, 2, 5, 13, 50, 2000]),
    adjacency=st.sampled_from(["zero-out", "replace"]),
)
def test_gaussian_noise_is_enough_and_not_much_more(epsilon, rate, steps, kappa, adjacency):
    s = calibrate_gaussian(
        epsilon, 1e-5, kappa=kappa, adjacency=adjacency, sample_rate=rate, steps=steps
    )

    def cost(noise):
        events = [GaussianEvent(noise, rate, steps)]
        return epsilon_of(events, kappa=kappa, adjacency=adjacency, delta=1e-5)

    assert cost(s) <= epsilon
    # Two per cent less noise must not fit: the search wastes at most a thousandth of epsilon.
    assert cost(0.98 * s) > epsilon


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize(("kappa", "steps"), [(1, 1), (3, 7), (13, 60)])
def test_laplace_noise_is_enough_and_not_much_more(delta, adjacency, kappa, steps):
    b = calibrate_laplace(0.7, kappa=kappa, adjacency=adjacency, steps=steps, delta=delta)

    def cost(scale):
        return epsilon_of(
            [LaplaceEvent(scale, steps)], kappa=kappa, adjacency=adjacency, delta=delta
        )

    assert cost(b) <= 0.7 < cost(0.98 * b)
    if delta == 0.0:
        factor = 2 if adjacency == "replace" else 1
        assert b == pytest.approx(factor * kappa * steps / 0.7, rel=1e-12)


@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_other_releases_are_paid_from_the_same_budget(rate):
    others = [LaplaceEvent(20.0), GaussianEvent(15.0)]
    s = calibrate_gaussian(1.0, 1e-5, kappa=2, sample_rate=rate, steps=50, other_events=others)
    together = [*others, GaussianEvent(s, rate, 50)]
    assert 0.99 < epsilon_of(together, kappa=2, delta=1e-5) <= 1.0
    b = calibrate_laplace(1.0, kappa=2, steps=3, other_events=others, delta=1e-5)
    assert epsilon_of([*others, LaplaceEvent(b, 3)], kappa=2, delta=1e-5) <= 1.0


def test_nothing_left_is_a_budget_error():
    spent = [LaplaceEvent(1.0)]
    with pytest.raises(BudgetError, match="whole budget"):
        calibrate_gaussian(0.5, 1e-5, kappa=1, sample_rate=0.1, steps=10, other_events=spent)
    with pytest.raises(BudgetError, match="whole budget"):
        calibrate_laplace(0.5, kappa=1, other_events=spent)


def test_infinite_epsilon_is_no_noise():
    assert calibrate_gaussian(math.inf, 1e-5, kappa=3, steps=10, sample_rate=0.1) == 0.0
    assert calibrate_laplace(math.inf, kappa=3) == 0.0


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, True, "1"])
def test_bad_budgets_are_refused(epsilon):
    with pytest.raises(InputError):
        calibrate_gaussian(epsilon, 1e-5, kappa=1)
    with pytest.raises(InputError):
        calibrate_laplace(epsilon, kappa=1)


def test_gaussian_noise_needs_delta():
    with pytest.raises(InputError, match="Laplace"):
        calibrate_gaussian(1.0, 0.0, kappa=1)
    with pytest.raises(InputError):
        calibrate_gaussian(1.0, 1e-5, kappa=1, sample_rate=1.5)
    with pytest.raises(InputError):
        calibrate_laplace(1.0, kappa=1, steps=0)


@pytest.mark.parametrize(
    ("epsilon", "kappa"), [(1e-200, 1), (5e-324, 1), (1.0, 10**400)], ids=["tiny", "least", "kappa"]
)
def test_budgets_and_kappas_beyond_the_floats_are_refused(epsilon, kappa):
    for rate in (0.1, 1.0):
        with pytest.raises((InputError, BudgetError)):
            calibrate_gaussian(epsilon * 1e-110, 1e-310, kappa=kappa, sample_rate=rate)
    with pytest.raises(InputError):
        calibrate_laplace(epsilon * 1e-110, kappa=kappa)
    with pytest.raises(InputError):
        calibrate_choice(epsilon * 1e-110, 0.0, kappa=kappa)
