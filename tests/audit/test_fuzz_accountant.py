"""The accountant under fuzz: monotone where it must be, and never below what an attacker can do."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from pairveil.privacy.events import GaussianEvent, LaplaceEvent
from pairveil.privacy.profile import epsilon_of

DELTA = 1e-5
adjacencies = st.sampled_from(["zero-out", "replace"])
plans = st.tuples(
    st.floats(2.0, 60.0), st.floats(0.01, 1.0), st.integers(1, 200), st.integers(1, 12)
)


def quiet(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def epsilon(noise, rate, steps, kappa, adjacency="zero-out", delta=DELTA):
    return epsilon_of(
        [GaussianEvent(noise, rate, steps)], kappa=kappa, adjacency=adjacency, delta=delta
    )


@quiet(60)
@given(plans, adjacencies)
def test_more_leaks_more(plan, adjacency):
    """In steps, kappa, q and 1/sigma; 0.2 % is the accountant's stated discretisation slack."""
    noise, rate, steps, kappa = plan
    here = epsilon(noise, rate, steps, kappa, adjacency) * (1 - 2e-3)
    assert here <= epsilon(noise, rate, steps + 1 + steps // 5, kappa, adjacency)
    assert here <= epsilon(noise, rate, steps, kappa + 1, adjacency)
    assert here <= epsilon(noise, min(1.0, rate * 1.2), steps, kappa, adjacency)
    assert here <= epsilon(noise / 1.2, rate, steps, kappa, adjacency)
    assert here <= epsilon(noise, rate, steps, kappa, adjacency, DELTA / 10)
    assert epsilon(noise, rate, steps, kappa) <= epsilon(noise, rate, steps, kappa, "replace") * (
        1 + 2e-3
    )


@quiet(40)
@given(st.floats(0.5, 50.0), st.integers(1, 50), st.integers(1, 9), adjacencies)
def test_laplace_is_exact(scale, steps, kappa, adjacency):
    factor = 2 if adjacency == "replace" else 1
    found = epsilon_of([LaplaceEvent(scale, steps)], kappa=kappa, adjacency=adjacency, delta=0.0)
    assert found == pytest.approx(factor * kappa * steps / scale)


@pytest.mark.oracle
@quiet(12)
@given(st.floats(2.0, 40.0), st.floats(0.02, 0.9), st.integers(1, 100), st.integers(1, 8))
def test_never_below_the_oracles_lower_bound(noise, rate, steps, kappa):
    """dp_accounting's optimistic estimate of the same mixture (ours must lie above it)."""
    counts = np.arange(kappa + 1)
    lower = pld.from_mixture_gaussian_mechanism(
        standard_deviation=noise,
        sensitivities=counts.astype(float).tolist(),
        sampling_probs=binom.pmf(counts, kappa, rate).tolist(),
        pessimistic_estimate=False,
        value_discretization_interval=5e-3,
        use_connect_dots=False,
    )
    bound = lower.self_compose(steps).get_epsilon_for_delta(DELTA)
    assert epsilon(noise, rate, steps, kappa) >= bound


def _hockey_stick(contents, others, rate, level):
    """sup_S P(S) - e^level Q(S) for one step in one dimension, noise 1, by quadrature."""
    x = np.linspace(-12 - len(contents) * 3, 12 + len(contents) * 3, 24_001)
    density = []
    for values in (contents, others):
        total = np.zeros_like(x)
        for batch in itertools.product((0, 1), repeat=len(values)):
            chance = math.prod(rate if b else 1 - rate for b in batch)
            total += (
                chance * np.exp(-0.5 * (x - np.dot(batch, values)) ** 2) / math.sqrt(2 * math.pi)
            )
        density.append(total)
    return float(np.maximum(density[0] - math.exp(level) * density[1], 0).sum() * (x[1] - x[0]))


@quiet(150)
@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=4),
    st.floats(0.02, 0.98),
    st.floats(0.4, 6.0),
    st.sampled_from([0.3, 0.03, 1e-3, 1e-5]),
)
def test_no_contents_beat_the_dominating_pair(changes, rate, noise, delta):
    """Any contents against any others, or against null, within one step: delta must hold."""
    old, new = np.array(changes).T / noise
    kappa = len(changes)
    for adjacency, other in (("replace", new), ("zero-out", np.zeros(kappa))):
        level = epsilon(noise, rate, 1, kappa, adjacency, delta)
        for first, second in ((old, other), (other, old)):
            assert _hockey_stick(first, second, rate, level) <= delta * (1 + 1e-6) + 1e-9


def test_the_dominating_pair_is_reached_and_doubling_the_shift_once_is_needed():
    """The wrong case: accounting replace as zero-out would be caught by this oracle."""
    level = epsilon(2.0, 0.5, 1, 1, "zero-out", 1e-3)
    assert _hockey_stick(np.array([0.5]), np.array([-0.5]), 0.5, level) > 1.5e-3
