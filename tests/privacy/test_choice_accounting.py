"""What a choice costs: ranges by brute force, the profile, composition, calibration.

Nothing here is drawn from the mechanism: every probability is computed. Seeds only pick instances.
"""

from __future__ import annotations

import itertools
import math
from itertools import pairwise

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as library
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from pairveil.errors import BudgetError, InputError
from pairveil.privacy.calibrate import calibrate_choice
from pairveil.privacy.compose import (
    choice_delta,
    choice_epsilon,
    choice_rho,
    choice_spread,
    discretise_choice,
    epsilon_from_mu,
    epsilon_from_zcdp,
)
from pairveil.privacy.events import ChoiceEvent, GaussianEvent, LaplaceEvent
from pairveil.privacy.profile import epsilon_of, epsilon_of_parts
from pairveil.privacy.samplers import whole_scores

DELTA = 1e-5


def softmax(scores):
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


def permute_and_flip(scores):
    """Exact probabilities: candidates in random order, each kept with chance exp(u_c - max u)."""
    if np.ndim(scores) == 2:
        return np.array([permute_and_flip(row) for row in scores])
    keep = np.exp(scores - np.max(scores))
    out = np.zeros(keep.size)
    for order in itertools.permutations(range(keep.size)):
        left = 1.0 / math.factorial(keep.size)
        for c in order:
            out[c] += left * keep[c]
            left *= 1.0 - keep[c]
    return out


def worst_range(mechanism, eta, before, after, seed):
    """Largest spread of log-ratios over rows of changed scores, from several other records."""
    before, after = np.broadcast_arrays(np.atleast_2d(before), after)
    rng = np.random.default_rng(seed)
    worst = 0.0
    for others in [np.zeros(before.shape[1]), *rng.integers(-4, 5, (6, before.shape[1]))]:
        ratio = np.log(mechanism(eta * (others + before)) / mechanism(eta * (others + after)))
        worst = max(worst, float(np.ptp(ratio, axis=-1).max()))
    return worst


def contents(n_candidates, unit=2):
    """Everything one record may contribute: integers of one sign, 0 to ``unit``, over ``unit``."""
    rows = np.array(list(itertools.product(range(unit + 1), repeat=n_candidates))) / unit
    return np.concatenate([rows, -rows])


def sums(one, kappa):
    """Everything that kappa records may contribute together."""
    return np.array([sum(rows) for rows in itertools.product(one, repeat=kappa)])


@pytest.mark.parametrize("eta", [0.1, 1.3])
@pytest.mark.parametrize("n_candidates", [2, 3])
def test_ranges_by_brute_force(eta, n_candidates):
    """eta (zero-out), 2 eta (replace, label and differences), kappa times that; all attained."""
    one = contents(n_candidates)
    for kappa in (1, 2, 3) if n_candidates == 2 else (1,):
        together = sums(one, kappa)
        found = worst_range(softmax, eta, together, np.zeros(n_candidates), 0)
        assert found == pytest.approx(kappa * eta, rel=1e-9)
        some = np.unique(together, axis=0)
        before, after = np.repeat(some, len(some), axis=0), np.tile(some, (len(some), 1))
        found = worst_range(softmax, eta, before, after, 1)
        assert found == pytest.approx(2 * kappa * eta, rel=1e-9)
    # A label flip alone moves all scores one way, and costs 2 eta already.
    assert worst_range(softmax, eta, one, -one, 2) == pytest.approx(2 * eta, rel=1e-9)


def test_float_contributions_are_rounded_within_their_range():
    """`whole_scores` keeps the contract for any floats, also those that are no numbers."""
    assert whole_scores([[0.0, 0.49, 1.0, 7.0], [0.3] * 4], [-1, 0], 8).tolist() == [0, -3, -8, -8]
    rng = np.random.default_rng(0)
    for unit in (1, 3, 64, 1 << 20):
        values = rng.uniform(-0.3, 1.3, (40, 5)) * rng.choice([1.0, 1e-9, np.nan, np.inf], (40, 5))
        signs = rng.choice([-1, 0, 1], 40)
        total = whole_scores(values, signs, unit)
        for row in range(40):
            kept = np.where(np.arange(40) == row, 0, signs)
            moved = total - whole_scores(values, kept, unit)
            assert np.ptp(moved) <= unit
            assert (moved * signs[row] >= 0).all()
            other = rng.uniform(0, 1, (40, 5))
            other = np.where(np.arange(40)[:, None] == row, other, values)
            flipped = np.where(np.arange(40) == row, rng.choice([-1, 1]), signs)
            assert np.ptp(total - whole_scores(other, flipped, unit)) <= 2 * unit


@pytest.mark.parametrize("wrong", [0, -1, 2**53, 2.0, True])
def test_contributions_need_a_sensible_unit(wrong):
    with pytest.raises(InputError):
        whole_scores([[0.5]], [1], wrong)


def test_contributions_of_another_shape_are_refused():
    for values, signs in (([0.5], [1]), ([[0.5]], [1, 1]), ([[0.5]], [1.0])):
        with pytest.raises(InputError):
            whole_scores(values, signs, 4)
    with pytest.raises(InputError, match="lower the unit"):
        whole_scores(np.zeros((2048, 1)), np.ones(2048, dtype=int), 1 << 52)


def two_points(eta, t):
    """The pair with losses t and t - eta: probabilities under P and under Q."""
    q = -math.expm1(t - eta) / (math.exp(t) - math.exp(t - eta))
    p = math.exp(t) * q
    return np.array([p, 1 - p]), np.array([q, 1 - q])


@pytest.mark.parametrize("eta", [1e-3, 0.1, 1.0, 6.0])
def test_the_profile_is_the_supremum_over_two_point_pairs(eta):
    shifts = np.linspace(0.0, eta, 2001)
    pairs = [two_points(eta, t) for t in shifts]
    for epsilon in np.linspace(-1.5 * eta, 1.2 * eta, 28):
        best = max(hockey_stick(p, q, epsilon) for p, q in pairs)
        assert best <= choice_delta(eta, epsilon) + 1e-12
        assert best >= choice_delta(eta, epsilon) * (1 - 1e-5) - 1e-12


def test_no_mechanism_of_that_range_has_a_larger_profile():
    """Random pairs with log-ratios in an interval of length eta, on up to six outputs."""
    rng = np.random.default_rng(3)
    for _ in range(400):
        eta = float(10 ** rng.uniform(-2, 1))
        size = int(rng.integers(2, 7))
        q = rng.dirichlet(np.full(size, rng.choice([0.1, 1.0])))
        q = np.maximum(q, 1e-12)
        q /= q.sum()
        p = q * np.exp(rng.choice([rng.uniform(), 0.0, 1.0], size) * eta)
        p /= p.sum()
        for epsilon in rng.uniform(-1.1 * eta, 1.1 * eta, 8):
            for one, other in ((p, q), (q, p)):
                assert hockey_stick(one, other, epsilon) <= choice_delta(eta, epsilon) + 1e-12


def test_the_profile_is_that_of_a_dominating_pair():
    for eta in (0.01, 0.7, 5.0):
        alphas = np.concatenate([[0.0, 1e-9], np.exp(np.linspace(-1.3 * eta, 1.3 * eta, 401))])
        values = np.array(
            [choice_delta(eta, math.log(a)) if a > 0 else 1.0 for a in alphas.tolist()]
        )
        assert (np.diff(values) <= 1e-15).all()
        assert (values >= np.maximum(0.0, 1.0 - alphas) - 1e-12).all()
        slopes = np.diff(values) / np.diff(alphas)
        assert (np.diff(slopes) >= -1e-6).all()
        # The densities e^(x/2) and e^(-x/2), whose loss is x, give it.
        scale = 4 * math.sinh(eta / 2)
        for epsilon in (-0.6 * eta, 0.0, 0.3 * eta):
            integral, _ = quad(
                lambda x, e=epsilon: (math.exp(x / 2) - math.exp(e - x / 2)) / 4, epsilon, eta
            )
            assert integral * 4 / scale == pytest.approx(choice_delta(eta, epsilon), rel=1e-9)
        mean, _ = quad(lambda x: x * math.exp(x / 2), -eta, eta)
        assert choice_spread(eta) == pytest.approx(2 * mean / scale, rel=1e-4)


def test_best_guess_is_the_profile_at_zero():
    for eta in (0.01, 0.2, 3.0):
        best = 1 / (1 + math.exp(-eta / 2))  # odds change by e^(eta/2), not by e^eta
        assert (1 + choice_delta(eta, 0.0)) / 2 == pytest.approx(best, rel=1e-14)
        # The softmax of one flipped label attains it: scores (eta/4, -eta/4) and back.
        p = softmax(np.array([eta / 4, -eta / 4]))
        assert p[0] == pytest.approx(best, rel=1e-14)


def test_one_choice_has_the_epsilon_of_the_closed_form():
    for eta, delta in itertools.product((1e-4, 0.03, 1.0, 40.0), (1e-12, 1e-5, 0.01, 0.4)):
        found = epsilon_of([ChoiceEvent(eta)], kappa=1, delta=delta)
        assert found == choice_epsilon(eta, delta) <= eta
        assert choice_delta(eta, found) <= delta
        if found > 0:
            assert choice_delta(eta, found * (1 - 1e-9) - 1e-13) > delta * (1 - 1e-6)
        else:
            assert math.tanh(eta / 4) <= delta
    assert epsilon_of([ChoiceEvent(0.3)], kappa=1, delta=0.0) == 0.3


def test_kappa_and_adjacency_multiply_the_range():
    for kappa, adjacency, factor in ((1, "replace", 2), (5, "zero-out", 5), (5, "replace", 10)):
        found = epsilon_of([ChoiceEvent(0.03)], kappa=kappa, adjacency=adjacency, delta=DELTA)
        assert found == pytest.approx(choice_epsilon(0.03 * factor, DELTA), rel=1e-12)
    # A choice among groups costs 2 in both adjacencies: the part's kappa says so.
    group = epsilon_of_parts([([ChoiceEvent(0.1)], 2)], adjacency="zero-out", delta=DELTA)
    assert group == epsilon_of([ChoiceEvent(0.1)], kappa=1, adjacency="replace", delta=DELTA)
    # Charged in exact arithmetic, rounded up.
    third = epsilon_of([ChoiceEvent(0.1, 3)], kappa=1, delta=0.0)
    assert third >= 3 * 0.1 * (1 - 1e-16)


def test_no_noise_and_huge_ranges_promise_nothing_and_nothing_hangs():
    assert epsilon_of([ChoiceEvent(math.inf)], kappa=1, delta=DELTA) == math.inf
    assert epsilon_of([ChoiceEvent(1e300)], kappa=2**53, delta=DELTA) == math.inf
    large = epsilon_of([ChoiceEvent(1e4, 3), GaussianEvent(1.0)], kappa=1, delta=DELTA)
    assert 3e4 * 0.9 < large < 3e4 + 10
    etas = (5e-324, 1e-300, 1e-160, 1e-90, 1e-40, 1e-20, 1e-9)
    for eta, delta in itertools.product(etas, (1e-300, 1e-30, 1e-13, 1e-5)):
        tiny = epsilon_of([ChoiceEvent(eta, 1000)], kappa=1, delta=delta)
        assert (0.0 if 250 * eta <= delta else eta) <= tiny <= 1001 * eta
    for eta in (1e154, 1e200, 1e307):
        huge = epsilon_of([ChoiceEvent(eta), ChoiceEvent(1.1 * eta, 2)], kappa=1, delta=DELTA)
        assert eta < huge <= 3.21 * eta


def adaptive_delta(etas, epsilon, shifts):
    """Worst hockey-stick of adaptive two-point steps: each shift may follow from earlier outputs.

    The worst continuation after a loss l is the best one at epsilon - l, so recursion suffices.
    """
    if not etas:
        return max(0.0, -math.expm1(epsilon))
    worst = 0.0
    for share in shifts:
        t = share * etas[0]
        p, _ = two_points(etas[0], t)
        ahead = [adaptive_delta(etas[1:], epsilon - loss, shifts) for loss in (t, t - etas[0])]
        worst = max(worst, float(p @ ahead))
    return worst


def test_composition_covers_every_adaptive_course():
    """Brute force over adaptive two-point steps, the worst ones: never above, and not far below."""
    shifts = np.linspace(0.0, 1.0, 13)
    for etas in ((0.3, 0.3), (0.1, 1.0), (0.5, 0.5, 0.5)):
        whole = discretise_choice(etas[0], 1e-3)
        for eta in etas[1:]:
            whole = whole.compose(discretise_choice(eta, 1e-3))
        for epsilon in (0.0, 0.25 * sum(etas), 0.7 * sum(etas)):
            truth = adaptive_delta(etas, epsilon, shifts)
            ours = float(whole.get_delta_for_epsilon(epsilon))
            assert truth <= ours <= 1.6 * truth


def composed_exactly(eta, steps, epsilon):
    """Integrate the dominating pair's composition: the sum of losses by a fine direct convolution.

    A point of mass at each cell's middle keeps both masses, so the value is below the truth, by far
    less than a thousandth at this fineness.
    """
    cells = 4000
    edges = np.linspace(-eta, eta, cells + 1)
    mass = np.diff(np.exp(edges / 2)) / (2 * math.sinh(eta / 2))
    total, middle = mass, edges[:-1] + eta / cells
    for _ in range(steps - 1):
        total = np.convolve(total, mass)
    losses = steps * middle[0] + np.arange(total.size) * (2 * eta / cells)
    return float(total @ np.maximum(0.0, -np.expm1(epsilon - losses)))


@pytest.mark.parametrize(("eta", "steps"), [(0.05, 2), (0.4, 3), (2.0, 4)])
def test_grids_are_never_below_the_exact_composition(eta, steps):
    for interval in (eta / 200, eta / 7.3, eta * 0.9, eta * 3.0):
        one = discretise_choice(eta, interval)
        assert float(one.get_delta_for_epsilon(-100.0)) == pytest.approx(1.0, abs=1e-12)
        for epsilon in np.linspace(-eta, eta, 9):
            assert one.get_delta_for_epsilon(epsilon) >= choice_delta(eta, epsilon) * (1 - 1e-12)
        whole = one.self_compose(steps)
        for epsilon in (0.0, 0.3 * eta * steps, 0.8 * eta * steps):
            exact = composed_exactly(eta, steps, epsilon)
            found = float(whole.get_delta_for_epsilon(epsilon))
            assert found >= exact * (1 - 1e-12)
            if interval < eta / 100:
                assert found <= exact * 1.01
    epsilon = brentq(lambda e: composed_exactly(eta, steps, e) - DELTA, 0.0, eta * steps)
    found = epsilon_of([ChoiceEvent(eta, steps)], kappa=1, delta=DELTA)
    assert epsilon * (1 - 1e-6) <= found <= epsilon * 1.01


def gaussian_profile(mu, epsilon):
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.oracle
@pytest.mark.parametrize(("eta", "mu"), [(0.1, 0.3), (0.5, 0.2), (1.5, 1.0), (0.01, 0.5)])
def test_a_choice_with_gaussians_agrees_with_the_integral(eta, mu):
    """delta(epsilon) = E_P of the Gaussian profile at epsilon - x, x the choice's loss."""

    def delta(epsilon):
        scale = 4 * math.sinh(eta / 2)
        value, _ = quad(
            lambda x: math.exp(x / 2) / scale * gaussian_profile(mu, epsilon - x),
            -eta,
            eta,
            epsabs=1e-13,
        )
        return value

    truth = brentq(lambda e: delta(e) - DELTA, 0.0, 20.0, xtol=1e-10)
    found = epsilon_of([ChoiceEvent(eta), GaussianEvent(4 / mu, steps=16)], kappa=1, delta=DELTA)
    assert truth * (1 - 1e-6) <= found <= truth * 1.01


@pytest.mark.oracle
def test_sampled_gaussians_pure_events_and_choices_compose_with_the_library():
    interval, kappa = 1e-3, 2
    sampled = library.from_mixture_gaussian_mechanism(
        6.0, [0, 1, 2], [0.81, 0.18, 0.01], value_discretization_interval=interval
    )
    fine = discretise_choice(0.1 * kappa, interval)
    pure = library.from_laplace_mechanism(20.0, kappa, value_discretization_interval=interval)
    theirs = sampled.self_compose(40).compose(pure)
    events = [GaussianEvent(6.0, 0.1, 40), ChoiceEvent(0.1, 2), LaplaceEvent(20.0)]
    ours = epsilon_of(events, kappa=kappa, delta=DELTA)
    low = max(
        part.compose(fine).compose(fine).get_epsilon_for_delta(DELTA)
        for part in (theirs._pmf_remove, theirs._pmf_add)
    )
    # Their Laplace is exact in one dimension, ours covers every pure release: ours is above.
    assert low * (1 - 1e-3) <= ours <= low * 1.05


def test_zero_concentrated_privacy_is_a_bound_for_each_pair_and_wins_for_many():
    for eta in (0.1, 1.0, 5.0):
        for t in np.linspace(0.01, 0.99, 25) * eta:
            p, q = two_points(eta, t)
            for order in (1.001, 1.5, 2.0, 8.0, 64.0):
                for one, other in ((p, q), (q, p)):
                    with np.errstate(over="ignore"):
                        moment = float(np.sum(other * np.exp(order * np.log(one / other))))
                    assert math.log(moment) / (order - 1) <= order * choice_rho(eta) * (1 + 1e-9)
    # Gaussians: rho = mu^2/2, and the conversion may only lose.
    for mu, delta in itertools.product((1e-50, 1e-20, 1e-6, 0.1, 1.0, 4.0), (1e-60, 1e-24, 1e-5)):
        exact, found = epsilon_from_mu(mu, delta), epsilon_from_zcdp(mu * mu / 2, delta)
        assert exact <= found
        if delta < mu / 100:
            assert found <= 1.4 * exact
    many = epsilon_of([ChoiceEvent(0.05, 1000)], kappa=1, delta=DELTA)
    assert many == epsilon_from_zcdp(1000 * choice_rho(0.05), DELTA)
    assert many < 0.1 * 50


ETAS = st.floats(0.002, 3.0)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(eta=ETAS, steps=st.integers(1, 30), mu=st.floats(0.05, 2.0), more=st.floats(1.02, 3.0))
def test_epsilon_grows_with_everything_that_costs(eta, steps, mu, more):
    def cost(eta=eta, steps=steps, mu=mu, kappa=1, adjacency="zero-out", delta=DELTA):
        events = [ChoiceEvent(eta, steps), GaussianEvent(1 / mu)]
        return epsilon_of(events, kappa=kappa, adjacency=adjacency, delta=delta)

    rough = 1.01  # what discretisation may disturb
    base = cost()
    for dearer in (
        cost(eta=eta * more),
        cost(steps=steps + 1),
        cost(mu=mu * more),
        cost(kappa=2),
        cost(adjacency="replace"),
        cost(delta=DELTA / 10),
    ):
        assert base <= dearer * rough
    assert base <= (steps * eta + epsilon_from_mu(mu, DELTA)) * (1 + 1e-12)
    assert base >= max(epsilon_from_mu(mu, DELTA), choice_epsilon(eta, DELTA)) * (1 - 1e-9)


def test_order_and_splitting_of_events_do_not_matter():
    events = [ChoiceEvent(0.1, 3), GaussianEvent(10.0), ChoiceEvent(0.2)]
    whole = epsilon_of(events, kappa=2, delta=DELTA)
    assert epsilon_of(events[::-1], kappa=2, delta=DELTA) == whole
    split = [ChoiceEvent(0.1), ChoiceEvent(0.2), GaussianEvent(10.0), ChoiceEvent(0.1, 2)]
    assert epsilon_of(split, kappa=2, delta=DELTA) == whole


def test_the_figures_of_the_theory_page():
    """One choice at epsilon 0.1 and 0.03, delta 1e-5, affords eta 0.102 and 0.031."""
    assert calibrate_choice(0.1, 1e-5, kappa=1) == pytest.approx(0.102, abs=5e-4)
    assert calibrate_choice(0.03, 1e-5, kappa=1) == pytest.approx(0.031, abs=5e-4)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("n_choices", [1, 2, 12])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_calibrated_choices_fit_and_waste_little(delta, n_choices, adjacency):
    others = [LaplaceEvent(50.0)] if delta == 0.0 else [LaplaceEvent(50.0), GaussianEvent(40.0)]
    for epsilon, kappa, rest in ((0.1, 1, []), (0.7, 2, []), (0.7, 2, others)):
        eta = calibrate_choice(
            epsilon,
            delta,
            kappa=kappa,
            adjacency=adjacency,
            n_choices=n_choices,
            other_events=rest,
        )

        def cost(eta, kappa=kappa, rest=rest):
            events = [*rest, ChoiceEvent(eta, n_choices)]
            return epsilon_of(events, kappa=kappa, adjacency=adjacency, delta=delta)

        assert cost(eta) <= epsilon < cost(1.02 * eta)


def test_calibration_refuses_what_it_cannot_do():
    assert calibrate_choice(math.inf, 1e-5, kappa=1) == math.inf
    with pytest.raises(BudgetError, match="whole budget"):
        calibrate_choice(0.5, 1e-5, kappa=1, other_events=[LaplaceEvent(1.0)])
    for arguments in ({"epsilon": 0.0}, {"n_choices": 0}, {"kappa": 0}, {"adjacency": "remove"}):
        with pytest.raises(InputError):
            calibrate_choice(**{"epsilon": 1.0, "delta": 1e-5, "kappa": 1, **arguments})


@pytest.mark.parametrize("eta", [0.1, 0.5, 1.0])
def test_permute_and_flip_breaks_the_accounting_of_a_choice(eta):
    """Planted: without replacement. Its range is near 2 eta and its profile above that of a choice."""
    null, one = np.zeros(2), np.array([1.0, 0.0])
    found = worst_range(permute_and_flip, eta, one, null, 0)
    assert worst_range(softmax, eta, one, null, 0) <= eta * (1 + 1e-9)
    assert 1.4 * eta < found <= 2 * eta
    p, q = permute_and_flip(eta * one), permute_and_flip(null)
    # It is eta-DP, as published, so a test of pure privacy alone would let it pass.
    assert np.abs(np.log(p / q)).max() <= eta * (1 + 1e-12)
    assert hockey_stick(p, q, 0.0) > 1.2 * choice_delta(eta, 0.0)
    p, q = softmax(eta * one), softmax(null)
    assert hockey_stick(p, q, 0.0) <= choice_delta(eta, 0.0)
    if eta == 0.1:
        assert found == pytest.approx(1.91 * eta, rel=5e-3)


def test_epsilons_of_choices_do_not_drift():
    """Values of this implementation, checked once by the other tests here."""
    frozen = [(0.05, 2, 0.0918), (0.05, 5, 0.1867), (0.05, 100, 1.0123), (0.5, 4, 1.7844)]
    for eta, steps, epsilon in frozen:
        found = epsilon_of([ChoiceEvent(eta, steps)], kappa=1, delta=DELTA)
        assert found == pytest.approx(epsilon, rel=3e-3)
    values = [epsilon_of([ChoiceEvent(0.05, n)], kappa=1, delta=DELTA) for n in range(1, 30)]
    assert all(a < b for a, b in pairwise(values))
