"""Mechanisms: privacy on exact grids (with published ones that must fail), variance, fit.

Statistical tests run on fixed seeds at a false-failure rate of 1e-6 each unless stated otherwise,
and each has a wrong scale beside it that must fail.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from reproduction.baselines import Duchi, Warner
from reproduction.mechanisms import GengViswanath, JointStaircase, ReducedLaplace, Staircase
from reproduction.published import (
    ClassicGaussian,
    Laplace,
    Mechanism,
)
from scipy import integrate, stats

from pairveil.errors import InputError

RATE = 1e-6
EPSILONS = [0.3, 1.0, 4.0]
ADDITIVE = [Laplace, Staircase, GengViswanath, JointStaircase]


def worst_log_ratio(mechanism: Mechanism, d: int, sensitivity: float, points: int) -> float:
    """Largest log-density ratio over a grid of outputs and shifts of l1 length ``sensitivity``."""
    axis = np.linspace(-3.01, 2.99, points) * sensitivity
    shifts = []
    for share in np.linspace(0.0, 1.0, 5 if d > 1 else 2):
        for signs in product((-1, 1), repeat=d):
            parts = [share, 1 - share, *[0.0] * (d - 2)][:d] if d > 1 else [1.0]
            shifts.append(sensitivity * np.array(signs) * np.array(parts))
    origin, worst = np.zeros(d), 0.0
    for cell in product(axis, repeat=d):
        output = np.array(cell)
        base = mechanism.log_density(output, origin, sensitivity)
        for shift in shifts:
            other = mechanism.log_density(output, shift, sensitivity)
            worst = max(worst, abs(base - other))
    return worst


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", ADDITIVE)
def test_one_coordinate_costs_at_most_epsilon(kind, epsilon):
    worst = worst_log_ratio(kind(epsilon), d=1, sensitivity=0.7, points=1001)
    assert worst <= epsilon * (1 + 1e-9)
    assert worst > 0.99 * epsilon  # the grid is fine enough to see the whole cost


@pytest.mark.parametrize("kind", [Laplace, JointStaircase])
def test_two_coordinates_cost_epsilon_jointly(kind):
    assert worst_log_ratio(kind(1.0), d=2, sensitivity=0.7, points=41) <= 1 + 1e-9


@pytest.mark.parametrize("kind", [Staircase, GengViswanath])
def test_independent_staircase_breaks_its_claim_in_two_dimensions(kind):
    mechanism = kind(1.0)
    worst = worst_log_ratio(mechanism, d=2, sensitivity=0.7, points=41)
    assert worst == pytest.approx(mechanism.epsilon_sound(2))
    assert worst > 1.9 * mechanism.epsilon_claimed


def duchi_worst(mechanism: Duchi, d: int) -> float:
    corners = [np.array(c, dtype=float) for c in product((-1, 1), repeat=d)]
    values = [np.array(v) for v in product((-1.0, 0.0, 0.4, 1.0), repeat=d)]
    masses = np.array([[mechanism.log_density(c, v, 2.0) for v in values] for c in corners])
    assert np.exp(masses).sum(axis=0) == pytest.approx(np.ones(len(values)))
    return float((masses.max(axis=1) - masses.min(axis=1)).max())


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_duchi_costs_epsilon_when_padded_to_odd(d):
    assert duchi_worst(Duchi(1.0), d) <= 1 + 1e-9


@pytest.mark.parametrize("d", [2, 4])
def test_duchi_in_even_dimension_costs_more_than_it_claims(d):
    mechanism = Duchi(1.0, pad=False)
    assert duchi_worst(mechanism, d) == pytest.approx(np.log1p(np.e))
    assert mechanism.epsilon_sound(d) > mechanism.epsilon_claimed


@pytest.mark.parametrize("pad", [True, False])
@pytest.mark.parametrize("d", [1, 3, 4])
def test_duchi_is_unbiased(d, pad):
    mechanism, value = Duchi(0.8, pad=pad), np.linspace(-0.3, 0.5, d)
    mean = np.zeros(d)
    for signs in product((-1.0, 1.0), repeat=d):
        corner = np.array(signs)
        mass = np.exp(mechanism.log_density(corner, value, 2.0))
        mean += mass * mechanism.corner(d) * corner
    assert mean == pytest.approx(value)


def test_warner_ratio_is_exactly_epsilon():
    mechanism = Warner(1.3)
    gap = mechanism.log_mass(1, 1) - mechanism.log_mass(1, -1)
    assert gap == pytest.approx(1.3)
    total = np.exp(mechanism.log_mass(1, 1)) + np.exp(mechanism.log_mass(-1, 1))
    assert total == pytest.approx(1.0)


def test_reduced_laplace_has_no_bound_because_its_scale_follows_the_data():
    mechanism, zero = ReducedLaplace(1.0), np.zeros(1)
    ratios = [
        mechanism.log_density(np.array([x]), zero, 1.0)
        - mechanism.log_density(np.array([x]), zero, 0.5)
        for x in (1.0, 10.0, 100.0)
    ]
    assert ratios[0] < ratios[1] < ratios[2]
    assert ratios[2] > 50 * mechanism.epsilon_claimed
    assert mechanism.epsilon_sound(1) == np.inf


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_the_excess_beyond_the_sound_epsilon_integrates_to_delta(epsilon):
    mechanism, shift = ClassicGaussian(epsilon, 1e-3), np.array([0.7])
    bound = mechanism.epsilon_sound(1)

    def excess(x: float) -> float:
        one = np.exp(mechanism.log_density(np.array([x]), shift, 0.7))
        other = np.exp(mechanism.log_density(np.array([x]), np.zeros(1), 0.7))
        return float(max(0.0, one - np.exp(bound) * other))

    sigma = np.sqrt(mechanism.variance(1, 0.7))
    start = 0.35 + bound * sigma**2 / 0.7  # where the excess begins
    integral = integrate.quad(excess, start, start + 12 * sigma, epsabs=1e-14)[0]
    assert integral == pytest.approx(1e-3, rel=1e-6)


def test_the_classic_gaussian_formula_fails_at_large_epsilon():
    assert ClassicGaussian(1.0, 1e-5).epsilon_sound(1) < 1.0
    assert ClassicGaussian(20.0, 1e-5).epsilon_sound(1) > 20.0


def staircase_cdf(mechanism: Staircase, sensitivity: float, x: np.ndarray) -> np.ndarray:
    """Piecewise linear, from the density at the middle of each flat piece."""
    gamma = mechanism.gamma()
    edges = np.concatenate([[0.0], np.arange(400) + gamma]) * sensitivity
    middles = (edges[1:] + edges[:-1]) / 2
    heights = [
        np.exp(mechanism.log_density(np.array([m]), np.zeros(1), sensitivity)) for m in middles
    ]
    half = np.concatenate([[0.0], np.cumsum(np.array(heights) * np.diff(edges))])
    return 0.5 + np.sign(x) * np.interp(np.abs(x), edges, half)


@pytest.mark.parametrize("kind", [Staircase, GengViswanath, JointStaircase])
def test_staircase_fits_its_density(kind):
    mechanism, rng = kind(0.9), np.random.default_rng(1)
    draws = np.concatenate([mechanism.sample(rng, np.zeros(1), 0.4) for _ in range(20_000)])
    assert staircase_cdf(mechanism, 0.4, np.array([1e9]))[0] == pytest.approx(1.0)
    assert stats.kstest(draws, lambda x: staircase_cdf(mechanism, 0.4, x)).pvalue > RATE
    assert stats.kstest(draws, lambda x: staircase_cdf(mechanism, 0.46, x)).pvalue < RATE


@pytest.mark.parametrize("wrong", [2 / 3, 3 / 2])
@pytest.mark.parametrize(
    ("mechanism", "cdf"),
    [
        (Laplace(0.5), stats.laplace(scale=0.8).cdf),
        (ClassicGaussian(0.5, 1e-5), stats.norm(scale=0.8 * np.sqrt(2 * np.log(125_000))).cdf),
    ],
)
def test_plain_noise_fits(mechanism, cdf, wrong):
    draws = mechanism.sample(np.random.default_rng(2), np.zeros(20_000), 0.4)
    assert stats.kstest(draws, cdf).pvalue > RATE
    assert stats.kstest(draws, lambda x: cdf(x * wrong)).pvalue < RATE
    assert np.var(draws) == pytest.approx(mechanism.variance(1, 0.4), rel=0.1)


def test_joint_staircase_fits_in_three_dimensions():
    mechanism, rng, d = JointStaircase(1.1), np.random.default_rng(3), 3
    draws = np.array([mechanism.sample(rng, np.zeros(d), 1.0) for _ in range(20_000)])
    radius = np.abs(draws).sum(axis=1)
    gamma = mechanism.gamma()
    edges = np.concatenate([[0.0], np.arange(80) + gamma])
    weight = np.exp(-1.1 * np.arange(80)) * np.diff(edges**d)
    total = np.concatenate([[0.0], np.cumsum(weight)]) / weight.sum()

    def cdf(r: np.ndarray) -> np.ndarray:
        # within a shell the d-volume is uniform
        return np.interp(np.asarray(r) ** d, edges**d, total)

    assert stats.kstest(radius, cdf).pvalue > RATE
    assert stats.kstest(radius * 1.1, cdf).pvalue < RATE
    # a coordinate's share of the l1 norm is Beta(1, d - 1) under a uniform direction
    share = np.abs(draws[:, 0]) / radius
    assert stats.kstest(share, stats.beta(1, d - 1).cdf).pvalue > RATE
    assert stats.kstest(share, stats.beta(1, d).cdf).pvalue < RATE
    assert stats.binomtest(int((draws > 0).sum()), draws.size).pvalue > RATE


def test_joint_staircase_density_integrates_to_one():
    mechanism = JointStaircase(2.0)
    # by l1 shells: area of the l1 circle of radius r in the plane is 2 r^2
    edges = np.concatenate([[0.0], np.arange(60) + mechanism.gamma()]) * 0.7
    middles = (edges[1:] + edges[:-1]) / 2
    densities = [
        np.exp(mechanism.log_density(np.array([m, 0.0]), np.zeros(2), 0.7)) for m in middles
    ]
    assert float(np.array(densities) @ np.diff(2 * edges**2)) == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", [Staircase, GengViswanath])
def test_staircase_variance_is_the_integral(kind, epsilon):
    mechanism = kind(epsilon)
    edges = np.concatenate([[0.0], np.arange(400) + mechanism.gamma()]) * 0.7
    middles = (edges[1:] + edges[:-1]) / 2
    heights = [np.exp(mechanism.log_density(np.array([m]), np.zeros(1), 0.7)) for m in middles]
    second = 2 * float(np.array(heights) @ np.diff(edges**3)) / 3
    assert mechanism.variance(1, 0.7) == pytest.approx(second)
    assert JointStaircase(epsilon).variance(1, 0.7) == pytest.approx(
        Staircase(epsilon).variance(1, 0.7)
    )


@pytest.mark.parametrize("d", [2, 33])
def test_joint_staircase_variance_matches_draws(d):
    mechanism, rng, n = JointStaircase(0.7), np.random.default_rng(4), 20_000
    squares = np.array([(mechanism.sample(rng, np.zeros(d), 0.4) ** 2).mean() for _ in range(n)])
    error = squares.std() / np.sqrt(n)
    gap = abs(squares.mean() - mechanism.variance(d, 0.4))
    assert gap < 5 * error  # false-failure rate 6e-7
    assert abs(squares.mean() - 1.2 * mechanism.variance(d, 0.4)) > 5 * error


@pytest.mark.parametrize(("d", "pad"), [(3, True), (2, True), (2, False)])
def test_duchi_fits_its_mass(d, pad):
    mechanism, value, n = Duchi(1.0, pad=pad), np.array([0.3, -0.5, 0.1])[:d], 20_000
    rng = np.random.default_rng(5)
    draws = np.array([mechanism.sample(rng, value, 2.0) for _ in range(n)])
    assert np.unique(np.abs(draws)) == pytest.approx([mechanism.corner(d)])
    corners = np.array(list(product((-1.0, 1.0), repeat=d)))
    seen = [(np.sign(draws) == c).all(axis=1).sum() for c in corners]

    def pvalue(of: Duchi) -> float:
        expected = [n * np.exp(of.log_density(c, value, 2.0)) for c in corners]
        return float(stats.chisquare(seen, expected).pvalue)

    assert pvalue(mechanism) > RATE
    assert pvalue(Duchi(2.0, pad=pad)) < RATE
    assert mechanism.variance(d, 2.0) == pytest.approx(mechanism.corner(d) ** 2)


def test_warner_flips_at_its_rate_and_debiases():
    mechanism, n = Warner(1.0), 50_000
    labels = np.ones(n, dtype=np.int8)
    answers = mechanism.sample(np.random.default_rng(6), labels)
    flips = int((answers == -1).sum())
    assert stats.binomtest(flips, n, mechanism.flip_probability).pvalue > RATE
    assert stats.binomtest(flips, n, Warner(1.2).flip_probability).pvalue < RATE
    mean = mechanism.debiased(answers).mean()
    assert abs(mean - 1.0) < 5 * np.sqrt(mechanism.variance() / n)  # false-failure rate 6e-7
    assert mechanism.epsilon_sound(3) == pytest.approx(3.0)


@pytest.mark.parametrize("kind", [Laplace, Staircase, Duchi, Warner, ClassicGaussian])
def test_a_budget_must_be_positive(kind):
    with pytest.raises(InputError, match="epsilon must be positive"):
        kind(0.0)
