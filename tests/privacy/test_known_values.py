"""Numbers that can be worked out by hand: one line for each formula of the accountant and of mechanisms."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from pairveil.errors import InputError
from pairveil.privacy.compose import (
    UnresolvableError,
    choice_delta,
    choice_epsilon,
    choice_rho,
    choice_spread,
    delta_from_mu,
    discretise,
    discretise_choice,
    discretise_pure,
    epsilon_from_mu,
    epsilon_from_zcdp,
    mu_from_epsilon,
    on_grid,
    sampled_counts,
    sampled_gaussian_pairs,
)
from pairveil.privacy.events import (
    DisjointGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    larger,
)
from pairveil.privacy.grid import (
    check_noise,
    choose_grid,
    delta_slack,
    grid_sensitivity,
    to_grid,
)
from pairveil.privacy.mechanisms import (
    EXPONENTIAL,
    GAUSSIAN,
    LAPLACE,
    Budget,
    Query,
    slack_of_plan,
)
from pairveil.privacy.profile import (
    best_guess_of_parts,
    delta_of,
    epsilon_of_parts,
    mu_of,
)
from pairveil.privacy.samplers import cell_length, hazard, rate_below, scale_above, whole_scores
from pairveil.privacy.units import float_at_most, round_up, times_in_100
from pairveil.records.kinds import Cost


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (epsilon_from_mu(1.0, 1e-5), 4.3772),
        (delta_from_mu(1.0, 0.0), 0.3829),  # 2 Phi(1/2) - 1
        (choice_delta(1.0, 0.0), math.tanh(0.25)),
        (choice_delta(1.0, 1.0), 0.0),
        (choice_delta(1.0, -2.0), 0.864665),
        (choice_epsilon(0.102, 1e-5), 0.1),
        (choice_epsilon(0.1, 0.0), 0.1),
        (choice_epsilon(0.1, 0.03), 0.0),  # above tanh(0.025): the best guess gains nothing more
        (choice_rho(0.5), 0.03125),
        (epsilon_from_zcdp(0.03125, 1e-5), 1.012),
        (choice_spread(1.0), 0.3279),
        (choice_spread(1e-6) * 1e12, 1 / 3),
        (epsilon_of_parts([([LaplaceEvent(10.0)], 1), ([LaplaceEvent(20.0)], 4)], delta=0.0), 0.3),
        (delta_of([GaussianEvent(4.0, steps=4)], epsilon=0.0, kappa=1, adjacency="replace"), 0.3829),
        (mu_of([GaussianEvent(4.0, steps=4)], kappa=1, adjacency="replace"), 1.0),
        (best_guess_of_parts([([GaussianEvent(4.0)], 1)] * 2), 0.6382),  # Phi(sqrt(2) / 4)
        (Budget(1.0, 1e-5, 3, "replace").sensitivity, 6.0),
        (GAUSSIAN.multiplier(Budget(1.0, 1e-5, 1, "zero-out"), share=1.0), 3.7302),
        (LAPLACE.multiplier(Budget(0.5, 0.0, 2, "zero-out"), share=0.5, times=3), 24.0),
        (EXPONENTIAL.multiplier(Budget(0.5, 0.0, 2, "zero-out"), share=0.5, times=3), 24.0),
    ],
)  # fmt: skip
def test_formula(found: float, expected: float) -> None:
    assert found == pytest.approx(expected, abs=6e-4 * max(expected, 0.1))


def test_mu_is_the_largest_that_fits() -> None:
    mu = mu_from_epsilon(1.0, 1e-5)
    assert epsilon_from_mu(mu, 1e-5) <= 1.0 < epsilon_from_mu(1.001 * mu, 1e-5)


def test_pairs_and_their_grids() -> None:
    counts, weights, lost = sampled_counts(2, 0.5, 0.0)
    assert (counts.tolist(), weights.round(12).tolist(), lost) == ([0, 1, 2], [0.25, 0.5, 0.25], 0)
    assert len(sampled_gaussian_pairs(3, 0.1, 2.0, replace=False, lost=0.0)) == 2
    pair = sampled_gaussian_pairs(1, 1.0, 2.0, replace=False, lost=0.0)[0]
    delta = float(discretise(pair, 1e-3, 1e-15).get_delta_for_epsilon(1.0))
    assert round(delta, 5) == 0.00683  # Phi(-1.75) - e Phi(-2.25)
    pure = float(discretise_pure(0.5, 0.1).get_delta_for_epsilon(0.0))
    assert round(pure, 6) == round(math.expm1(0.5) / (math.exp(0.5) + 1), 6)
    choice = float(discretise_choice(0.5, 0.1).get_delta_for_epsilon(0.25))
    assert round(choice, 5) == 0.03649 >= choice_delta(0.5, 0.25)


def test_mass_that_is_lost_to_rounding_is_refused() -> None:
    assert float(on_grid(0.1, 0, np.full(2, 0.25), infinite=0.5).get_delta_for_epsilon(10.0)) == 0.5
    with pytest.raises(UnresolvableError, match="lost to rounding"):
        on_grid(0.1, 0, np.full(2, 0.25))


def test_the_grid_and_its_cost() -> None:
    assert choose_grid(1.0, 100) == 2.0**-31
    assert 1.0 < grid_sensitivity(1.0, choose_grid(1.0, 100), 100) < 1.0 + 2.0**-19
    assert to_grid(np.array([0.3, -1.0]), 0.25).tolist() == [1, -4]
    assert 0.0 < delta_slack(100_000, 2.0**31) < 1e-11
    check_noise(1e6, 1000)
    with pytest.raises(InputError, match="asks for more noise than exact"):
        check_noise(1e12, 1000, "l1")
    release = {"mechanism": "gaussian", "noise_multiplier": 40.0, "steps": 100, "entries": 300}
    assert 0.0 < slack_of_plan({"releases": [release]}, largest_kappa=2) < 1e-12


def test_the_events_of_queries() -> None:
    query = Query("gradients", (2, 30), 8.0, steps=40, sampling="disjoint", sample_rate=0.1)
    assert query.event() == DisjointGaussianEvent(8.0, epochs=4)
    assert Query.from_dict(query.to_dict()).event() == query.event()
    assert Query("gradients", (2, 30), 20.0, steps=100).event() == GaussianEvent(20.0, steps=100)
    assert (EXPONENTIAL.eta(4.0), EXPONENTIAL.eta(0.0)) == (0.25, math.inf)
    assert LaplaceEvent(2.0, steps=3).with_noise(4.0) == LaplaceEvent(4.0, steps=3)
    assert larger(Cost(1, 2.0, empties=False), 3) == Cost(3, 2.0, 2.0, empties=False)


def test_exact_samplers_round_to_the_safe_side() -> None:
    assert [cell_length(3, 1), cell_length(95, 1), cell_length(96, 1)] == [1, 1, 2]
    assert cell_length(2**41, 2) == 2**34
    assert scale_above(1000.0) == 1000
    assert 0 <= scale_above(0.1) - Fraction(0.1) < Fraction(1, 2**50)
    assert 0.0 < 0.05 - -math.expm1(-hazard(0.05)) < 2**-49
    assert rate_below(0.5, 2**20) == 2**43
    assert whole_scores([[0.5, 1.0], [0.25, 0.0]], [1, -1], unit=8).tolist() == [2, 8]


def test_numbers_for_people_are_rounded_up() -> None:
    shown = [round_up(1.00049), round_up(0.99993), round_up(2.0), round_up(12345.6)]
    assert shown == ["1.001", "1", "2", "12350"]
    assert (times_in_100(0.60563), times_in_100(0.7)) == ("60.6", "70")
    assert (float_at_most(np.float32(1)), float_at_most(2**53 + 3)) == (1.0, float(2**53 + 2))
