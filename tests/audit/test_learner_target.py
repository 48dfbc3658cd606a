"""Our learner under audit, every release visible: not accused, seen, and broken ones found.

Seeds are fixed. Where nothing must be accused the confidence is 0.999 a time or more, over 18 audits: all of
them each night, and otherwise nine in which every two of epsilon, unit and adjacency meet.
Where the plan must be seen, the number of runs is such that another seed would fail less than once in 1,000:
with mu the claim's, s the share of it that the worst case realises (1 in zero-out, 0.89 in replace:
test_worst_case.py) and n duels, wins are Binomial(n, Phi(s mu / sqrt 2)).
"""

from __future__ import annotations

import os
from itertools import product

import numpy as np
import pytest

from pairveil.audit.auditor import Claim, audit_scores
from pairveil.audit.canaries import canary_of, worst_case
from pairveil.audit.targets import (
    KAPPA,
    Watcher,
    audit_target,
    learner_target,
    make_target,
    n_others,
    watch_fit,
)
from pairveil.engine.plan import PublicFacts, make_plan
from pairveil.errors import InputError
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.contrastive.recipe import ContrastiveRecipe
from pairveil.privacy.mechanisms import Budget
from pairveil.privacy.noise import SeededNoise

DELTA = 1e-5
EPSILONS, ADJACENCIES = [0.5, 1.0, 4.0], ["zero-out", "replace"]
# Each audit has a seed of its own. The worst case grows with the noise, so one seed would give nearly the
# same scores 18 times, and one piece of luck would be 18.
SEEDS = {case: seed for seed, case in enumerate(product(EPSILONS, KAPPA, ADJACENCIES))}
NIGHTLY = bool(os.environ.get("PAIRVEIL_NIGHTLY"))
nightly = pytest.mark.skipif(not NIGHTLY, reason="takes minutes: make audit runs it")


SHORT = ContrastiveRecipe(n_steps=4)


def short_plan(epsilon, kappa, adjacency, n_pairs):
    return make_plan(SHORT, PublicFacts(Budget(epsilon, DELTA, kappa, adjacency), n_pairs, 2))


def canary(unit, kappa, adjacency, epsilon=1.0):
    return worst_case(unit, kappa, 2, adjacency, n_others(Budget(epsilon, DELTA, kappa, adjacency)))


@pytest.mark.parametrize(
    ("epsilon", "unit", "adjacency"),
    [case for case, seed in SEEDS.items() if NIGHTLY or seed % 4 in (0, 3)],
)
def test_the_learner_is_not_accused(epsilon, unit, adjacency):
    kappa = KAPPA[unit]
    worlds = canary(unit, kappa, adjacency, epsilon)
    plan = short_plan(epsilon, kappa, adjacency, n_pairs=worlds.first.n_pairs)
    claim = Claim(epsilon, DELTA, "gaussian")
    seed = SEEDS[epsilon, unit, adjacency]
    found = audit_scores(
        watch_fit(SHORT, plan, worlds), claim, runs=600, confidence=0.999, random_state=seed
    )
    assert found.verdict == "consistent"


@nightly
def test_the_default_plan_is_seen():
    """At least 0.6 of the claim (another seed fails 8 times in 10,000); `make audit` asks it at epsilon 1."""
    target = learner_target(4.0, DELTA, "pair", 1, "zero-out", n_features=2)
    found = audit_target(target, runs=1600, random_state=0)
    assert 0.6 * 4.0 <= found.lower_bound <= 4.0


@nightly
@pytest.mark.slow
@pytest.mark.parametrize(("adjacency", "runs"), [("zero-out", 18_000), ("replace", 32_000)])
def test_the_default_plan_is_seen_at_epsilon_one(adjacency, runs):
    """At least 0.6 of the claim; computed as above, the median is 0.85 in zero-out and 0.79 in replace.

    Another seed fails 3 times (zero-out) or 4 times (replace) in 10,000.
    """
    target = learner_target(1.0, DELTA, "pair", 1, adjacency, n_features=2)
    found = audit_target(target, runs=runs, random_state=0)
    assert 0.6 <= found.lower_bound <= 1.0


@nightly
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("unit", KAPPA)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_default_plan_is_not_accused(epsilon, unit, adjacency):
    target = make_target("learner", epsilon, unit=unit, adjacency=adjacency)
    seed = SEEDS[epsilon, unit, adjacency]
    found = audit_target(target, runs=3000, confidence=0.9995, random_state=seed)
    assert found.verdict == "consistent"


class LessNoise(SeededNoise):
    """Draws a part of the noise that the plan names."""

    part = 1.0

    def noisy(self, family, total, scale, grid=None):
        return super().noisy(family, total, scale * self.part, grid)


@pytest.mark.parametrize(
    ("part", "runs"), [(1 / 3, 1200), pytest.param(1 / 2, 10_000, marks=nightly)]
)
def test_a_learner_with_less_noise_than_planned_is_found(part, runs, monkeypatch):
    monkeypatch.setattr(LessNoise, "part", part)
    worlds = canary("pair", 1, "zero-out")
    plan = short_plan(1.0, 1, "zero-out", n_pairs=worlds.first.n_pairs)
    scores = watch_fit(SHORT, plan, worlds, noise=LessNoise)
    found = audit_scores(scores, Claim(1.0, DELTA, "gaussian"), runs=runs, random_state=0)
    assert found.verdict == "violated"


def test_a_learner_that_accounts_one_pair_of_three_is_found():
    worlds = canary("relationship", 3, "zero-out")
    plan = short_plan(1.0, 1, "zero-out", n_pairs=worlds.first.n_pairs)
    scores = watch_fit(SHORT, plan, worlds)
    found = audit_scores(scores, Claim(1.0, DELTA, "gaussian"), runs=1200, random_state=0)
    assert found.verdict == "violated"


def test_the_learner_itself_lets_the_watcher_follow():
    """The public door: `fit(on_answer=...)` shows the same releases as the target's own loop."""
    worlds = canary_of("person", 3, 2, "zero-out")
    options = {"epsilon": 4.0, "unit": "person", "select": "all", "n_steps": 4}
    plan = short_plan(4.0, 3, "zero-out", n_pairs=3)
    watcher = Watcher(worlds)
    learner = DPPMetricLearner(**options, random_state=0)
    with pytest.warns(UserWarning, match="pairs are few|all labels"):
        learner.fit(worlds.second, on_answer=watcher)
    assert learner.kappa_ == 3
    scores = watch_fit(SHORT, plan, worlds)
    assert watcher.score == pytest.approx(scores(1, 1, np.random.default_rng(0))[0])


def test_an_unknown_target_is_refused():
    with pytest.raises(InputError, match="target"):
        make_target("everything")
    with pytest.raises(InputError, match="epsilon"):
        make_target("learner", 0.0)
    with pytest.raises(InputError, match="unit"):
        make_target("learner", unit="household")
