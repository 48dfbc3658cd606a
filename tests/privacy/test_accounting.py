"""What epsilon_of must do whatever the numbers: closed forms, order, extremes, refusals."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil.errors import InputError
from pairveil.privacy.compose import (
    discretise,
    epsilon_from_mu,
    sampled_counts,
    sampled_gaussian_pairs,
)
from pairveil.privacy.events import DisjointGaussianEvent, GaussianEvent, LaplaceEvent
from pairveil.privacy.profile import epsilon_of, epsilon_of_parts

ROUGH = 1.01  # the discretisation may disturb an order by less than one per cent


def test_full_batches_and_disjoint_batches_are_exact_gdp():
    events = [GaussianEvent(30.0, steps=50), DisjointGaussianEvent(40.0, epochs=9)]
    mu = math.sqrt(50 / 30.0**2 + 9 / 40.0**2)
    for kappa in (1, 7):
        for factor, adjacency in ((1, "zero-out"), (2, "replace")):
            exact = epsilon_from_mu(factor * kappa * mu, 1e-6)
            found = epsilon_of(events, kappa=kappa, adjacency=adjacency, delta=1e-6)
            assert found == pytest.approx(exact, rel=1e-12)


def test_pure_epsilon_adds_up():
    events = [LaplaceEvent(10.0, 3), LaplaceEvent(40.0, 8)]
    pure = 3 / 10 + 8 / 40
    assert epsilon_of(events, kappa=1, delta=0.0) == pytest.approx(pure, rel=1e-12)
    assert epsilon_of(events, kappa=5, delta=0.0) == pytest.approx(5 * pure, rel=1e-12)
    twice = epsilon_of(events, kappa=5, adjacency="replace", delta=0.0)
    assert twice == pytest.approx(10 * pure, rel=1e-12)
    assert epsilon_of(events, kappa=5, delta=1e-5) <= 5 * pure * (1 + 1e-12)


def test_advanced_composition_of_pure_events_helps_when_there_are_many():
    many = [LaplaceEvent(10.0, 100)]
    assert epsilon_of(many, kappa=1, delta=1e-5) < 0.5 * epsilon_of(many, kappa=1, delta=0.0)


def test_no_noise_and_no_delta_mean_no_promise():
    assert epsilon_of([GaussianEvent(0.0)], kappa=1, delta=0.1) == math.inf
    assert epsilon_of([LaplaceEvent(0.0)], kappa=1, delta=0.1) == math.inf
    assert epsilon_of([GaussianEvent(5.0)], kappa=1, delta=0.0) == math.inf
    assert epsilon_of([GaussianEvent(5.0, 0.1, 3)], kappa=1, delta=0.0) == math.inf
    mixed = [LaplaceEvent(5.0), GaussianEvent(0.0)]
    assert epsilon_of(mixed, kappa=1, delta=0.1) == math.inf


def test_nothing_released_costs_nothing():
    assert epsilon_of([], kappa=3, delta=0.0) == 0.0
    assert epsilon_of([], kappa=3, delta=1e-5) == 0.0


@pytest.mark.parametrize(
    "arguments",
    [
        {"kappa": 0, "delta": 1e-5},
        {"kappa": -1, "delta": 1e-5},
        {"kappa": 1.0, "delta": 1e-5},
        {"kappa": True, "delta": 1e-5},
        {"kappa": 1, "delta": 1.0},
        {"kappa": 1, "delta": -1e-9},
        {"kappa": 1, "delta": math.nan},
        {"kappa": 1, "delta": "1e-5"},
        {"kappa": 1, "delta": 1e-5, "adjacency": "remove"},
        {"kappa": 1, "delta": 1e-5, "adjacency": None},
    ],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(InputError):
        epsilon_of([LaplaceEvent(1.0)], **arguments)


def test_parts_with_their_own_kappa_compose():
    fit = [GaussianEvent(30.0, 0.2, 100)]
    other = [GaussianEvent(50.0, steps=20), LaplaceEvent(100.0)]
    both = epsilon_of_parts([(fit, 1), (other, 4)], delta=1e-5)
    alone = epsilon_of(fit, kappa=1, delta=1e-5), epsilon_of(other, kappa=4, delta=1e-5)
    assert max(alone) <= both * ROUGH
    worst = epsilon_of([*fit, *other], kappa=4, delta=1e-5)
    assert both <= worst * ROUGH
    # One kappa for all is the same as saying it twice.
    assert epsilon_of_parts([(fit, 4), (other, 4)], delta=1e-5) == worst


def test_order_of_events_does_not_matter():
    events = [GaussianEvent(30.0, 0.2, 100), LaplaceEvent(50.0), GaussianEvent(60.0, steps=3)]
    forwards = epsilon_of(events, kappa=2, delta=1e-5)
    assert epsilon_of(events[::-1], kappa=2, delta=1e-5) == forwards


def test_split_steps_cost_what_whole_steps_cost():
    whole = epsilon_of([GaussianEvent(20.0, 0.1, 100)], kappa=3, delta=1e-5)
    split = [GaussianEvent(20.0, 0.1, 40), GaussianEvent(20.0, 0.1, 60)]
    assert epsilon_of(split, kappa=3, delta=1e-5) == whole


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("kappa", [1000, 10**5, 10**6])
def test_a_star_graph_is_accounted_for_without_hanging(kappa, adjacency):
    sampled = [GaussianEvent(3.0 * kappa, 0.05, 100)]
    full = [GaussianEvent(3.0 * kappa, 1.0, 100)]
    bound = epsilon_of(sampled, kappa=kappa, adjacency=adjacency, delta=1e-5)
    limit = epsilon_of(full, kappa=kappa, adjacency=adjacency, delta=1e-5)
    # For a large kappa the count concentrates at q*kappa: amplification by about 1/q.
    ideal = epsilon_of([GaussianEvent(60.0, steps=100)], kappa=1, adjacency=adjacency, delta=1e-5)
    assert ideal * 0.999 <= bound <= 1.15 * ideal
    assert bound < limit
    # Hardly any noise: no grid can hold it, the closed form takes over.
    assert epsilon_of([GaussianEvent(1.0, 0.05, 100)], kappa=kappa, delta=1e-5) < math.inf


def test_truncating_and_merging_counts_only_moves_them_up():
    for kappa, rate in ((50, 0.05), (5000, 0.3), (10**5, 0.01)):
        counts, weights, lost = sampled_counts(kappa, rate, 1e-12)
        assert counts.size <= 97
        assert lost <= 1e-12
        assert weights.sum() + lost == pytest.approx(1.0, abs=1e-9)
        draws = np.random.default_rng(0).binomial(kappa, rate, 20_000)
        for level in np.quantile(draws, [0.1, 0.5, 0.9]):
            # P(count >= level) may only grow; 5 standard errors: fails once in 3 million.
            exact = (draws >= level).mean()
            assert weights[counts >= level].sum() >= exact - 5 * 0.5 / math.sqrt(draws.size)


def test_tiny_deltas_fall_back_to_a_closed_form():
    events = [GaussianEvent(20.0, 0.1, 100)]
    values = [epsilon_of(events, kappa=2, delta=10.0**-k) for k in (5, 9, 12, 15, 30, 200)]
    assert all(math.isfinite(value) for value in values)
    assert all(a <= b for a, b in pairwise(values))


def test_a_million_rare_steps_still_profit_from_sampling():
    events = [GaussianEvent(0.6, 1e-4, 10**6)]
    bound = epsilon_of(events, kappa=1, delta=1e-6)
    assert bound < 0.01 * epsilon_of([GaussianEvent(0.6, 1.0, 10**6)], kappa=1, delta=1e-6)


noise = st.floats(0.6, 200.0)
rates = st.floats(0.002, 1.0)
counts = st.integers(1, 400)
kappas = st.integers(1, 40)
adjacencies = st.sampled_from(["zero-out", "replace"])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(noise=noise, rate=rates, steps=counts, kappa=kappas, adjacency=adjacencies)
def test_more_noise_less_data_and_fewer_steps_cost_less(noise, rate, steps, kappa, adjacency):
    def cost(*event, kappa=kappa, adjacency=adjacency):
        return epsilon_of([GaussianEvent(*event)], kappa=kappa, adjacency=adjacency, delta=1e-5)

    base = cost(noise, rate, steps)
    allowed = base * ROUGH + 1e-6
    assert cost(noise * 1.3, rate, steps) <= allowed
    assert cost(noise, rate * 0.7, steps) <= allowed
    assert cost(noise, rate, max(1, steps // 2)) <= allowed
    assert cost(noise, rate, steps, kappa=max(1, kappa - 1)) <= allowed
    assert cost(noise, rate, steps, adjacency="zero-out") <= allowed
    assert base <= cost(noise, 1.0, steps) * (1 + 1e-9)
    assert cost(noise / 1.5, rate, steps) >= base / ROUGH - 1e-6


@pytest.mark.parametrize("replace", [False, True])
def test_what_truncation_gives_up_counts_as_lost(replace):
    """No mass disappears: counts left out and the tail beyond the grid are an infinite loss each."""
    pair = sampled_gaussian_pairs(50, 0.3, 2.0, replace=replace, lost=1e-4)[0]
    pmf = discretise(pair, 0.05, 1e-3)
    infinite = pmf.get_delta_for_epsilon(1e6)
    assert pair.lost > 1e-6
    assert infinite > pair.lost + 1e-6
    assert pmf.get_delta_for_epsilon(-60.0) == pytest.approx(1.0, abs=1e-12)
