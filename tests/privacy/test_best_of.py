"""The best of a random number of trials: its true divergence never exceeds the charged one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil import Certificate, InputError, PrivacyLedger
from pairveil.privacy.compose import compose
from pairveil.privacy.events import (
    BestOfEvent,
    ChoiceEvent,
    GaussianEvent,
    LaplaceEvent,
    event_from_dict,
)
from pairveil.privacy.profile import delta_of, epsilon_of, epsilon_of_best, mu_of


def best(law, n):
    """The exact law of the largest of K outcomes of ``law`` (ascending), K geometric of mean n."""
    below = np.concatenate([[0.0], np.cumsum(law)])
    of_best = (below / n) / (1 - (1 - 1 / n) * below)  # E[x^K]
    return np.diff(of_best)


def divergence(p, q, epsilon):
    """The true hockey-stick divergence, the worse of both directions."""
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p)))


def pure_pairs(rng, epsilon, size):
    """Two laws whose ratio is within exp(epsilon) everywhere, in some order of the outcomes."""
    side = rng.choice([-1, 1], size)
    p = rng.dirichlet(np.ones(size))
    up = p[side > 0].sum()
    if up in (0.0, 1.0):
        return p, p
    # Randomised response on two sets of outcomes, the extreme epsilon-DP pair.
    hit = math.exp(epsilon) / (1 + math.exp(epsilon))
    share = np.where(side > 0, p / up, p / (1 - up))
    return share * np.where(side > 0, hit, 1 - hit), share * np.where(side > 0, 1 - hit, hit)


@settings(deadline=None, max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    epsilon=st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    n=st.sampled_from([1, 2, 5, 30, 1000]),
)
def test_pure_trials_cost_three_times_at_most_and_never_less_than_the_truth(seed, epsilon, n):
    rng = np.random.default_rng(seed)
    p, q = pure_pairs(rng, epsilon, 6)
    charged = epsilon_of([BestOfEvent(n, 0.0, ((LaplaceEvent(1 / epsilon),),))], kappa=1, delta=0.0)
    assert charged <= 3 * epsilon * (1 + 1e-3)
    assert divergence(best(p, n), best(q, n), charged) <= 1e-12


def gaussian_laws(mu, better):
    """A Gaussian pair on a fine grid, where one tail (or the middle) of the outcomes is the best."""
    x = np.linspace(-8, 8 + mu, 4001)
    p, q = np.exp(-0.5 * x**2), np.exp(-0.5 * (x - mu) ** 2)
    order = np.argsort(better(x), kind="stable")
    return p[order] / p.sum(), q[order] / q.sum()


@pytest.mark.parametrize("better", [lambda x: x, lambda x: -x, np.abs, lambda x: -np.abs(x - 1)])
@pytest.mark.parametrize(("mu", "n"), [(0.1, 10), (0.5, 3), (0.5, 40), (2.0, 10)])
def test_the_true_divergence_is_below_the_charged_one(mu, n, better):
    p, q = (best(law, n) for law in gaussian_laws(mu, better))
    event = BestOfEvent(n, 0.0, ((GaussianEvent(1 / mu),),))
    for delta in (1e-6, 1e-3, 0.05):
        epsilon = epsilon_of([event], kappa=1, delta=delta)
        assert divergence(p, q, epsilon) <= delta
    for epsilon in (0.0, 0.1, 0.7, 2.0):
        assert divergence(p, q, epsilon) <= delta_of([event], epsilon=epsilon, kappa=1) + 1e-12


def test_charging_one_trial_only_is_convicted():
    """Planted: the law of the best against what one trial costs."""
    p, q = (best(law, 10) for law in gaussian_laws(0.5, lambda x: -x))
    one = epsilon_of([GaussianEvent(2.0)], kappa=1, delta=1e-3)
    assert divergence(p, q, one) > 1e-3
    laplace = pure_pairs(np.random.default_rng(0), 1.0, 2)
    assert divergence(*(best(law, 30) for law in laplace), 1.0) > 0.01


def test_every_candidate_is_covered_and_the_cost_follows_the_unit():
    cheap, dear = (GaussianEvent(20.0),), (GaussianEvent(8.0), ChoiceEvent(0.05))
    both = epsilon_of([BestOfEvent(6, 0.0, (cheap, dear))], kappa=1, delta=1e-5)
    assert both == epsilon_of([BestOfEvent(6, 0.0, (dear, cheap))], kappa=1, delta=1e-5)
    assert both >= epsilon_of([BestOfEvent(6, 0.0, (dear,))], kappa=1, delta=1e-5)
    grown = [epsilon_of([BestOfEvent(6, 0.0, (dear,))], kappa=k, delta=1e-5) for k in (1, 2, 5)]
    assert grown == sorted(grown)
    more = [epsilon_of([BestOfEvent(n, 0.0, (dear,))], kappa=1, delta=1e-5) for n in (1, 2, 9, 99)]
    assert more == sorted(more)
    assert more[0] == pytest.approx(epsilon_of(dear, kappa=1, delta=1e-5), rel=1e-12)
    single = epsilon_of(dear, kappa=1, delta=1e-5)
    assert more[2] < 3 * single  # Liu and Talwar's factor


def test_slack_and_no_noise():
    event = BestOfEvent(10, 1e-7, ((GaussianEvent(10.0),),))
    plain = BestOfEvent(10, 0.0, ((GaussianEvent(10.0),),))
    assert epsilon_of([event], kappa=1, delta=1e-5) > epsilon_of([plain], kappa=1, delta=1e-5)
    assert epsilon_of([event], kappa=1, delta=1e-6) == math.inf
    assert (
        epsilon_of([BestOfEvent(2, 0.0, ((GaussianEvent(0.0),),))], kappa=1, delta=0.1) == math.inf
    )
    assert mu_of([plain], kappa=1) is None
    (search,) = compose([([plain], 1)], "zero-out").searches
    assert epsilon_of_best(search, 0.0) == math.inf


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    epsilon=st.sampled_from([0.1, 0.5, 2.0]),
    n=st.sampled_from([1, 2, 10]),
    other=st.sampled_from([0.2, 1.0]),
)
def test_a_search_beside_another_release_never_costs_less_than_the_truth(seed, epsilon, n, other):
    """The exact law of both together; scores in any order, the second release for or against the first."""
    rng = np.random.default_rng(seed)
    search = [best(law, n) for law in pure_pairs(rng, epsilon, 5)]
    hit = 1 / (1 + math.exp(-other))
    second = [[hit, 1 - hit], [1 - hit, hit]]
    trial = BestOfEvent(n, 0.0, ((LaplaceEvent(1 / epsilon),),))
    both = [trial, LaplaceEvent(1 / other)]
    for turned in (second, second[::-1]):
        p, q = (np.outer(a, b).ravel() for a, b in zip(search, turned, strict=True))
        for delta in (1e-4, 0.05):
            assert divergence(p, q, epsilon_of(both, kappa=1, delta=delta)) <= delta
        for at in (0.0, 0.3, epsilon + other):
            assert divergence(p, q, at) <= delta_of(both, epsilon=at, kappa=1) + 1e-12


@pytest.mark.parametrize("better", [lambda x: x, lambda x: -x])
def test_two_searches_cost_less_than_the_sum_and_more_than_the_truth(better):
    mu, n = 0.5, 5
    laws = [best(law, n) for law in gaussian_laws(mu, better)]
    edges = np.linspace(0, 4001, 401).astype(int)[
        :-1
    ]  # coarser outcomes are never told apart better
    p, q = (np.outer(one, one).ravel() for one in (np.add.reduceat(law, edges) for law in laws))
    event = BestOfEvent(n, 0.0, ((GaussianEvent(1 / mu),),))
    both = epsilon_of([event, event], kappa=1, delta=1e-4)
    assert both < 0.9 * 2 * epsilon_of([event], kappa=1, delta=5e-5)
    assert divergence(p, q, both) <= 1e-4
    assert (
        divergence(p, q, epsilon_of([event], kappa=1, delta=1e-4)) > 0
    )  # seen by this test at all
    one_trial = epsilon_of([GaussianEvent(1 / mu)] * 2, kappa=1, delta=1e-4)
    assert both > one_trial


def test_the_curve_that_is_composed_is_the_theorem_itself():
    """Nowhere below it: epsilon at a delta, and delta at that epsilon, are one point."""
    event = BestOfEvent(9, 1e-9, ((GaussianEvent(6.0), ChoiceEvent(0.1)), (LaplaceEvent(20.0),)))
    for delta in (1e-6, 1e-4, 1e-2):
        epsilon = epsilon_of([event], kappa=2, delta=delta)
        # The profile is composed on a finer grid than epsilon is.
        assert delta_of([event], epsilon=epsilon, kappa=2) == pytest.approx(delta, rel=0.05)


def test_a_ledger_composes_a_search_with_other_releases_on_the_grid(tmp_path):
    event = BestOfEvent(5, 0.0, ((GaussianEvent(20.0), LaplaceEvent(90.0)),))
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-5, unit="person", path=tmp_path / "ledger.json")
    alone = ledger.spend([event], kappas=2)
    assert alone == epsilon_of([event], kappa=2, delta=1e-5)
    both = ledger.spend([GaussianEvent(20.0)], kappas=2)
    halves = [epsilon_of([e], kappa=2, delta=5e-6) for e in (event, GaussianEvent(20.0))]
    assert alone < both < 0.8 * sum(halves)
    assert PrivacyLedger.open(tmp_path / "ledger.json").spent() == both


def test_noise_beyond_a_grid_still_adds_up():
    for multiplier in (0.002, 1e40):
        event = BestOfEvent(3, 0.0, ((GaussianEvent(multiplier),),))
        both = epsilon_of([event, GaussianEvent(3.0)], kappa=1, delta=1e-5)
        halves = [epsilon_of([e], kappa=1, delta=5e-6) for e in (event, GaussianEvent(3.0))]
        assert both <= sum(halves) * (1 + 1e-9)
        assert 0 <= delta_of([event, GaussianEvent(3.0)], epsilon=1.0, kappa=1) <= 1


@pytest.mark.parametrize(
    "changes",
    [
        {"trials": []}, {"trials": [[]]}, {"trials": 3}, {"mean_trials": 0}, {"slack": -1.0},
        {"mean_trials": 1.5}, {"trials": [[{"kind": "laplace"}]]}, {"extra": 1},
        {"trials": [[LaplaceEvent(1.0).to_dict()]] * 65},
        {"trials": [[BestOfEvent(2, 0.0, ((LaplaceEvent(1.0),),)).to_dict()]]},
    ],
)  # fmt: skip
def test_events_are_read_strictly(changes):
    data = BestOfEvent(3, 1e-12, ((GaussianEvent(3.0, 0.5, 2),), (LaplaceEvent(2.0),))).to_dict()
    assert event_from_dict(data).to_dict() == data
    with pytest.raises(InputError):
        event_from_dict(data | changes)


def test_certificates_hold_no_search_that_their_plan_does_not():
    event = BestOfEvent(3, 0.0, ((GaussianEvent(30.0),),))
    kept = Certificate.issue(
        [event], delta=1e-5, unit="pair", adjacency="zero-out", mechanism="gaussian",
        kappas={"pair": 1, "relationship": 2, "person": 2}, n_pairs_given=9, n_pairs_used=9,
        selection={"how": "all", "caveat": None, "full_graph_relationship_kappa": 2},
        noise_source="seeded NumPy floating-point noise", for_release=False,
    )  # fmt: skip
    assert kept.verify()
    assert Certificate.from_json(kept.to_json()) == kept
    assert 0.5 < kept.best_guess("person") < 1
    assert kept.tradeoff().at(0.1) > 0
