"""A plan that is accepted can be carried out: what 64 bits cannot hold is refused while nothing is spent."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pairveil.engine
from pairveil import DPPMetricLearner, PrivacyLedger
from pairveil.engine import plan as planning
from pairveil.engine.kernels import checked
from pairveil.engine.plan import SLACK_SHARE, PublicFacts, QuerySpec, plan_within
from pairveil.errors import InputError
from pairveil.learners.contrastive.recipe import ContrastiveRecipe
from pairveil.privacy.grid import choose_grid
from pairveil.privacy.mechanisms import Budget, mechanism_named
from pairveil.privacy.profile import epsilon_of


@pytest.mark.parametrize("seed", [None, 0])
def test_more_noise_than_integers_hold_is_refused_before_the_charge(seed):
    rng = np.random.default_rng(0)
    people = rng.uniform(-0.1, 0.1, size=(40, 30))
    chain = np.column_stack([np.arange(39), np.arange(1, 40)])
    ledger = PrivacyLedger(1.0, 1e-5)
    learner = DPPMetricLearner(
        epsilon=1e-11,
        mechanism="laplace",
        kappa=10**5,
        preprocessor=people,
        accountant=ledger,
        random_state=seed,
    )
    with pytest.raises(InputError, match="more noise than"):
        learner.fit(chain, rng.choice([-1, 1], 39))
    assert not ledger.entries


def _largest_accepted(n_features, mechanism):
    """The largest number of records for which a plan is made, by bisection."""

    def is_accepted(n_records):
        budget = Budget(1.0, 0.0 if mechanism == "laplace" else 1e-5, 1, "zero-out")
        facts = PublicFacts(budget, n_records, n_features, 1.0, mechanism_named(mechanism))
        try:
            plan_within(ContrastiveRecipe(n_steps=5), facts, budget.delta, 1, exact=False)
        except InputError:
            return False
        return True

    low, high = 1, 2**36
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_accepted(middle) else (low, middle)
    return low


@pytest.mark.parametrize(("n_features", "mechanism"), [(20, "gaussian"), (10**6, "laplace")])
def test_an_accepted_plan_holds_for_every_clip_bound(n_features, mechanism):
    n = _largest_accepted(n_features, mechanism)
    entries, norm = 10 * n_features, mechanism_named(mechanism).norm
    for clip in (1.0, 1.0 + 2**-52, 1.5, math.nextafter(2.0, 0.0), 1e-9, 0.999, 3.999, 1e9):
        grid = choose_grid(clip, entries, norm=norm, n_pairs=n)
        none, one = np.zeros((0, 2), dtype=int), np.ones((1, 1))
        checked(np.ones((2, 1)), float, none, none[:, 0], one, n, margin=1.0, clip=clip, grid=grid)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 1.0, 7.0])
def test_no_plan_costs_more_than_was_asked(epsilon, adjacency):
    for sampling, rate in (("poisson", 1.0), ("poisson", 0.05), ("disjoint", 0.37)):
        recipe = ContrastiveRecipe(n_steps=20, sampling=sampling, sample_rate=rate)
        facts = PublicFacts(Budget(epsilon, 0.999e-5, 3, adjacency), 500, 20)
        plan, slack = plan_within(recipe, facts, 1e-5, 5, exact=True)
        cost = epsilon_of(plan.events(), kappa=3, adjacency=adjacency, delta=1e-5 - slack)
        assert cost <= epsilon


def test_what_exact_noise_takes_off_delta_is_set_aside(monkeypatch):
    """Even where nobody kept a part of delta for it, and it takes the most that is allowed."""
    monkeypatch.setattr(planning, "slack_of_plan", lambda *_: 0.999 * SLACK_SHARE * 1e-5)
    facts = PublicFacts(Budget(1.0, 1e-5, 3, "zero-out"), 10**5, 20)
    plan, slack = plan_within(ContrastiveRecipe(n_steps=5), facts, 1e-5, 3, exact=True)
    cost = epsilon_of(plan.events(), kappa=3, adjacency="zero-out", delta=1e-5 - slack)
    assert 0.999 < cost <= 1.0


def test_a_mechanism_that_asks_for_too_little_noise_gets_what_the_budget_needs():
    class Optimist(type(mechanism_named("laplace"))):
        def multiplier(self, budget, share, times=1):
            return super().multiplier(budget, share, times) / 1.5

    facts = PublicFacts(Budget(1.0, 0.0, 3, "zero-out"), 500, 20, mechanism=Optimist())
    plan, _ = plan_within(ContrastiveRecipe(n_steps=4, sample_rate=1.0), facts, 0.0, 5, exact=True)
    assert 0.9 < epsilon_of(plan.events(), kappa=3, adjacency="zero-out", delta=0.0) <= 1.0


@pytest.mark.parametrize("epsilon", [1e13, 1e-14])
def test_a_threshold_whose_noise_cannot_be_drawn_is_refused_before_the_charge(epsilon):
    rng = np.random.default_rng(0)
    people = rng.uniform(-0.1, 0.1, size=(120, 2))
    chain = np.column_stack([np.arange(119), np.arange(1, 120)])
    labels = rng.choice([-1, 1], 119)
    ledger = PrivacyLedger(1e14, 1e-5)
    learner = DPPMetricLearner(
        epsilon=8.0, n_steps=2, preprocessor=people, accountant=ledger, random_state=0
    ).fit(chain, labels)
    with pytest.raises(InputError, match=r"so (large|small) an epsilon"):
        learner.calibrate_threshold(chain, labels, epsilon=epsilon)
    assert len(ledger.entries) == 1


def test_a_sample_that_delta_alone_would_pay_for_is_refused():
    """With rate 1e-7 and 20 steps nobody but delta would protect whoever is sampled."""
    facts = PublicFacts(Budget(1.0, 1e-5, 1, "zero-out"), 500, 20)
    rare = ContrastiveRecipe(n_steps=20, sampling="poisson", sample_rate=1e-7)
    with pytest.raises(InputError, match="delta alone pays"):
        plan_within(rare, facts, 1e-5, 1, exact=True)
    usual = ContrastiveRecipe(n_steps=20, sampling="poisson", sample_rate=1e-3)
    plan, _ = plan_within(usual, facts, 1e-5, 1, exact=True)
    assert plan["gradients"].noise_multiplier > 0.3


@pytest.mark.parametrize(("was", "now"), [("Ask", QuerySpec), ("Setting", PublicFacts)])
def test_names_of_version_0_2_work_and_say_what_they_are_now(was, now):
    with pytest.warns(DeprecationWarning, match=f"{was} is {now.__name__} now"):
        assert getattr(pairveil.engine, was) is now
