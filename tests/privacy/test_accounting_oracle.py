"""Our epsilons against computations that share no code with ours.

Numerical integration of hockey-stick divergences, Monte Carlo of the composed privacy loss,
dp_accounting's own distributions, closed forms, and a table of frozen values.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as library
from dp_accounting.pld.common import DifferentialPrivacyParameters
from dp_accounting.privacy_accountant import NeighboringRelation
from numpy.polynomial import Polynomial
from scipy.optimize import brentq
from scipy.stats import binom, norm

from pairveil.privacy.compose import discretise, epsilon_from_mu, sampled_gaussian_pairs
from pairveil.privacy.events import GaussianEvent, LaplaceEvent
from pairveil.privacy.profile import epsilon_of

pytestmark = pytest.mark.oracle


def mixture(x, kappa, rate, s, sign):
    """Density of the noisy sum when a Binomial(kappa, rate) number of pairs pulls one way."""
    i = np.arange(kappa + 1)
    return norm.pdf(x[:, None], sign * i, s) @ binom.pmf(i, kappa, rate)


def integrated_delta(epsilon, upper, lower, step):
    """Integrate (p - e^epsilon q)_+ by the trapezoid rule; no monotonicity is assumed."""
    excess = np.maximum(0.0, upper - math.exp(epsilon) * lower)
    return float(excess.sum() * step)


def line_densities(kappa, rate, s, replace):
    """Both worlds' densities on a fine line, and its step."""
    x, step = np.linspace(-kappa - 10 * s, kappa + 10 * s, 40_001, retstep=True)
    lower = mixture(x, kappa, rate, s, -1) if replace else norm.pdf(x, 0, s)
    return mixture(x, kappa, rate, s, 1), lower, step


def solve(delta_of, delta):
    return brentq(lambda epsilon: delta_of(epsilon) - delta, 1e-4, 12.0, xtol=1e-7)


ONE_STEP = [(1, 0.1, 1.0), (2, 0.3, 2.0), (5, 0.2, 3.0), (13, 0.05, 4.0)]


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize(("kappa", "rate", "s"), ONE_STEP)
def test_one_step_equals_the_integral(kappa, rate, s, adjacency):
    delta = 1e-3
    p, q, step = line_densities(kappa, rate, s, adjacency == "replace")
    remove = solve(lambda epsilon: integrated_delta(epsilon, p, q, step), delta)
    add = solve(lambda epsilon: integrated_delta(epsilon, q, p, step), delta)
    true = max(remove, add)
    ours = epsilon_of([GaussianEvent(s, rate)], kappa=kappa, adjacency=adjacency, delta=delta)
    assert true * (1 - 1e-6) <= ours <= true * 1.01


def test_random_plans_of_one_step_are_never_understated():
    """Forty plans drawn once (seed 0): kappa to 79, rates from 0.003, delta from 1e-6."""
    rng = np.random.default_rng(0)
    for turn in range(40):
        kappa, replace = int(rng.integers(1, 80)), bool(turn % 2)
        rate = float(10 ** rng.uniform(-2.5, -0.02))
        s = float(kappa * rate * 10 ** rng.uniform(-0.5, 1.2) + 0.5)
        delta = float(10 ** rng.uniform(-6, -1.5))
        p, q, step = line_densities(kappa, rate, s, replace)

        def true_delta(epsilon, p=p, q=q, step=step):
            return max(integrated_delta(epsilon, p, q, step), integrated_delta(epsilon, q, p, step))

        ours = epsilon_of(
            [GaussianEvent(s, rate)],
            kappa=kappa,
            adjacency="replace" if replace else "zero-out",
            delta=delta,
        )
        true = brentq(lambda e, f=true_delta, d=delta: f(e) - d, 0.0, 60.0, xtol=1e-9)
        assert true * (1 - 1e-7) <= ours <= true * 1.01


def plane_divergence(epsilon, ups, downs, weights, size=9.0, points=361):
    """Integrate (p - e^epsilon q)_+ of two mixtures in the plane with unit noise."""
    axis = np.linspace(-size, size, points)
    x, y = np.meshgrid(axis, axis)

    def density(centres):
        out = np.zeros_like(x)
        for weight, (a, b) in zip(weights, centres, strict=True):
            out += weight * np.exp(-((x - a) ** 2 + (y - b) ** 2) / 2) / (2 * math.pi)
        return out

    excess = density(ups) - math.exp(epsilon) * density(downs)
    return float(np.maximum(excess, 0).sum() * (axis[1] - axis[0]) ** 2)


def subset_sums(vectors):
    sums = np.zeros((1, 2))
    for vector in vectors:
        sums = np.concatenate([sums, sums + vector])
    return sums


def line_delta(epsilon, kappa, rate, s):
    """delta of the collinear pair that our theorem says is the worst, by integration."""
    return integrated_delta(epsilon, *line_densities(kappa, rate, s, True))


@pytest.mark.parametrize("kappa", [1, 2, 3])
def test_no_directions_in_the_plane_beat_the_collinear_pair_under_replace(kappa):
    """The theorem behind replace: vectors of norm <= 1, in any directions, are dominated."""
    rng = np.random.default_rng(kappa)
    rate, s, epsilon = 0.3, 1.5, 0.4
    weights = np.ones(1)
    for _ in range(kappa):
        weights = np.concatenate([weights * (1 - rate), weights * rate])
    worst = line_delta(epsilon, kappa, rate, s)
    seen = []
    for _ in range(12):
        angles = rng.uniform(0, 2 * math.pi, (2, kappa))
        lengths = rng.choice([0.5, 1.0], (2, kappa))
        ends = lengths[..., None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1) / s
        seen.append(plane_divergence(epsilon, subset_sums(ends[0]), subset_sums(ends[1]), weights))
    assert max(seen) <= worst + 1e-5
    # Opposite directions attain it: the bound is tight, and the integration is good enough.
    ends = np.array([[1.0, 0.0]] * kappa) / s
    attained = plane_divergence(epsilon, subset_sums(ends), subset_sums(-ends), weights)
    assert attained == pytest.approx(worst, rel=2e-3)


def test_doubling_the_clip_instead_is_not_a_bound():
    """docs/theory/accounting.md: the mixture with 2*kappa*C against N(0) does not dominate replace.

    At epsilon 0 (total variation) it gives 0.665 where two data sets at 0.703 exist; ours covers.
    """
    kappa, rate, s = 5, 0.3, 1.0
    truth = line_delta(0.0, kappa, rate, s)
    mixture_2c, null, step = line_densities(kappa, rate, s / 2, False)
    doubled = max(
        integrated_delta(0.0, mixture_2c, null, step), integrated_delta(0.0, null, mixture_2c, step)
    )
    (pair,) = sampled_gaussian_pairs(kappa, rate, s, replace=True, lost=0.0)
    ours = discretise(pair, 1e-2, 1e-14).get_delta_for_epsilon(0.0)
    assert doubled < 0.96 * truth
    assert truth * (1 - 1e-6) <= ours <= truth * 1.01


def test_replace_is_within_the_group_triangle_of_zero_out():
    """delta(e1 + e2) <= delta_remove(e1) + e^e1 delta_add(e2): valid, and looser than ours."""
    kappa, rate, s, delta = 4, 0.1, 6.0, 1e-5
    remove, add = (
        discretise(pair, 1e-3, 1e-14).self_compose(30)
        for pair in sampled_gaussian_pairs(kappa, rate, s, replace=False, lost=0.0)
    )

    def triangle(total):
        splits = np.linspace(0.02, total - 0.02, 60)
        first = np.array([remove.get_delta_for_epsilon(float(e)) for e in splits])
        second = np.array([add.get_delta_for_epsilon(float(total - e)) for e in splits])
        return float(np.min(first + np.exp(splits) * second))

    bound = brentq(lambda e: triangle(e) - delta, 0.2, 12.0, xtol=1e-3)
    events = [GaussianEvent(s, rate, 30)]
    ours = epsilon_of(events, kappa=kappa, adjacency="replace", delta=delta)
    zero_out = epsilon_of(events, kappa=kappa, delta=delta)
    assert zero_out < ours <= bound * 1.005


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize(("kappa", "rate", "s", "steps"), [(1, 0.2, 2.0, 40), (4, 0.1, 5.0, 60)])
def test_many_steps_agree_with_monte_carlo(kappa, rate, s, steps, adjacency):
    """delta = E (1 - e^(epsilon - L))_+ over the composed loss L, sampled directly.

    400,000 runs, 5 standard errors: a true value fails less than once in a million.
    """
    delta, runs = 0.02, 400_000
    ours = epsilon_of(
        [GaussianEvent(s, rate, steps)], kappa=kappa, adjacency=adjacency, delta=delta
    )
    rng = np.random.default_rng(11)
    i = np.arange(kappa + 1)
    # The mixture's density over that of N(0, s^2) at x is sum_i p_i e^(-i^2/2s^2) u^i, u = e^(x/s^2).
    mixture = Polynomial(binom.pmf(i, kappa, rate) * np.exp(-(i**2) / (2 * s * s)))
    losses = np.zeros(runs)
    for _ in range(steps):
        u = np.exp((rng.binomial(kappa, rate, runs) + rng.normal(0, s, runs)) / s**2)
        reference = (
            mixture(1 / u) if adjacency == "replace" else 1.0
        )  # the mirrored mixture, or nobody
        losses += np.log(mixture(u) / reference)

    def estimate(epsilon):
        values = np.maximum(0, -np.expm1(epsilon - losses))
        return values.mean(), values.std() / math.sqrt(runs)

    mean, error = estimate(ours)
    assert mean <= delta + 5 * error
    # Three per cent less epsilon must be seen to be too little: the bound is not loose.
    mean, error = estimate(0.97 * ours)
    assert mean > delta + 5 * error


LIBRARY = [(1, 0.05, 2.0, 50), (2, 0.1, 4.0, 30), (13, 0.05, 20.0, 200)]


@pytest.mark.parametrize(("kappa", "rate", "s", "steps"), LIBRARY)
def test_composed_zero_out_agrees_with_dp_accounting(kappa, rate, s, steps):
    weights = binom.pmf(np.arange(kappa + 1), kappa, rate).tolist()
    arguments = (s, list(range(kappa + 1)), weights)
    low = library.from_mixture_gaussian_mechanism(
        *arguments,
        pessimistic_estimate=False,
        use_connect_dots=False,
        value_discretization_interval=1e-3,
    )
    high = library.from_mixture_gaussian_mechanism(*arguments, value_discretization_interval=1e-3)
    ours = epsilon_of([GaussianEvent(s, rate, steps)], kappa=kappa, delta=1e-5)
    assert ours >= low.self_compose(steps).get_epsilon_for_delta(1e-5)
    assert ours == pytest.approx(high.self_compose(steps).get_epsilon_for_delta(1e-5), rel=5e-3)


@pytest.mark.parametrize(("rate", "s", "steps"), [(0.05, 2.0, 50), (0.3, 8.0, 100)])
def test_composed_replace_of_one_pair_agrees_with_dp_accounting(rate, s, steps):
    pld = library.from_gaussian_mechanism(
        s,
        sampling_prob=rate,
        value_discretization_interval=1e-3,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    )
    theirs = pld.self_compose(steps).get_epsilon_for_delta(1e-5)
    ours = epsilon_of([GaussianEvent(s, rate, steps)], kappa=1, adjacency="replace", delta=1e-5)
    assert ours == pytest.approx(theirs, rel=5e-3)


def test_mixed_events_agree_with_dp_accounting():
    """Sampled, full-batch and pure events together, each with the library's own distribution."""
    kappa, delta, interval = 3, 1e-5, 1e-3
    weights = binom.pmf(np.arange(kappa + 1), kappa, 0.1).tolist()
    sampled = library.from_mixture_gaussian_mechanism(
        8.0, list(range(kappa + 1)), weights, value_discretization_interval=interval
    )
    full = library.from_gaussian_mechanism(
        30.0, sensitivity=kappa, value_discretization_interval=interval
    )
    pure = library.from_privacy_parameters(
        DifferentialPrivacyParameters(kappa / 20.0, 0.0), value_discretization_interval=interval
    )
    theirs = sampled.self_compose(40).compose(full.self_compose(5)).compose(pure.self_compose(2))
    events = [GaussianEvent(8.0, 0.1, 40), GaussianEvent(30.0, steps=5), LaplaceEvent(20.0, 2)]
    ours = epsilon_of(events, kappa=kappa, delta=delta)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=5e-3)


@pytest.mark.parametrize("steps", [1, 10, 300])
def test_the_grid_reproduces_gaussian_composition_in_closed_form(steps):
    """The discretisation itself, where the answer is known exactly."""
    mu, delta = 0.9, 1e-6
    s = math.sqrt(steps) / mu
    pair = sampled_gaussian_pairs(1, 1.0, s, replace=False, lost=0.0)[0]
    pmf = discretise(pair, 0.1 / s, 1e-14)
    found = (pmf if steps == 1 else pmf.self_compose(steps)).get_epsilon_for_delta(delta)
    exact = epsilon_from_mu(mu, delta)
    assert exact <= found <= exact * 1.002


@pytest.mark.parametrize("steps", [2, 25, 100])
def test_laplace_composition_is_optimal_composition_of_pure_epsilon(steps):
    """Kairouz, Oh and Viswanath 2015, Theorem 3.3: exact for randomised response."""
    one, delta = 0.05, 1e-6

    def exact(epsilon):
        counts = np.arange(steps + 1)
        weights = binom.pmf(counts, steps, 1 / (1 + math.exp(one)))
        losses = (steps - 2 * counts) * one
        return float(weights @ np.maximum(0, -np.expm1(epsilon - losses)))

    true = brentq(lambda e: exact(e) - delta, 0.0, steps * one, xtol=1e-9)
    ours = epsilon_of([LaplaceEvent(1 / one, steps)], kappa=1, delta=delta)
    assert true * (1 - 1e-9) <= ours <= true * 1.01


FROZEN = [
    # kappa, rate, s, steps, delta, zero-out, replace
    (13, 0.05, 20.0, 200, 1e-5, 1.830, 3.971),
    (1, 0.05, 20.0, 200, 1e-5, 0.1103, 0.2336),
    (1, 0.01, 1.0, 1000, 1e-5, 1.829, 2.846),
    (50, 0.05, 20.0, 200, 1e-5, 8.680, 20.63),
    (13, 0.5, 100.0, 100, 1e-5, 2.681, 5.953),
    (13, 0.01, 5.0, 3000, 1e-6, 7.509, 16.98),
    (2, 0.001, 0.8, 10000, 1e-7, 2.336, 3.136),
    (1, 1.0, 37.31, 100, 1e-5, 1.000, 2.154),
]


@pytest.mark.parametrize(("kappa", "rate", "s", "steps", "delta", "zero_out", "replace"), FROZEN)
def test_frozen_values(kappa, rate, s, steps, delta, zero_out, replace):
    """Values of this implementation, checked once by the other tests here; they must not drift."""
    events = [GaussianEvent(s, rate, steps)]
    found = epsilon_of(events, kappa=kappa, delta=delta)
    assert found == pytest.approx(zero_out, rel=3e-3)
    found = epsilon_of(events, kappa=kappa, adjacency="replace", delta=delta)
    assert found == pytest.approx(replace, rel=3e-3)


def test_the_figure_of_the_theory_page():
    """Sampling with kappa = 13: epsilon 1.83 at delta 1e-5, against 31.2 for kappa times C."""
    plan = [GaussianEvent(20.0, 0.05, 200)]
    assert epsilon_of(plan, kappa=13, delta=1e-5) == pytest.approx(1.83, abs=0.005)
