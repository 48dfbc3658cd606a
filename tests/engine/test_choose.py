"""Choices through the engine: exact scores, their law, plans, checkpoints, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from pairveil import DPPMetricLearner
from pairveil.engine.checkpoint import Checkpoint
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Plan, PublicFacts, QuerySpec, make_plan, plan_within
from pairveil.engine.statistics import GRID, UNIT, clipped_sum
from pairveil.errors import InputError
from pairveil.learners.contrastive.recipe import ColumnScores
from pairveil.privacy.events import ChoiceEvent
from pairveil.privacy.mechanisms import EXPONENTIAL, Budget, Query, mechanism_named
from pairveil.privacy.noise import SeededNoise, TrustedNoise
from pairveil.privacy.profile import epsilon_of
from pairveil.records.kinds import Cost
from pairveil.records.pairset import PairSet


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_column_scores_are_those_of_their_contributions(form):
    rng = np.random.default_rng(0)
    people = rng.normal(size=(60, 5)) * (rng.random((60, 5)) < 0.5)
    pairs = PairSet(form(people), rng.permutation(60).reshape(-1, 2), rng.choice([-1, 1], 30))
    scores = ColumnScores(5, (0.2, 1.0), (0.123, 0.987))
    whole = clipped_sum(pairs, None, scores, "range", GRID)
    dx, weight = np.abs(people[pairs.pairs[:, 0]] - people[pairs.pairs[:, 1]]), (0.123, 0.987)
    plain = [
        sum(
            -math.floor(UNIT * weight[0]) if y > 0 else math.floor(UNIT * weight[1])
            for y, far in zip(pairs.labels, dx[:, j] > t, strict=True)
            if far
        )
        for t in scores.thresholds
        for j in range(5)
    ]
    assert whole.tolist() == plain


def the_pairs(n=200, d=4):
    rng = np.random.default_rng(1)
    people = rng.uniform(0, 0.5, size=(2 * n, d))
    people[:, 1] = np.arange(2 * n) % 2
    ends = np.column_stack([np.arange(0, 2 * n, 2), np.arange(1, 2 * n, 2)])
    return PairSet(people, ends, -np.ones(n, dtype=int))


@pytest.mark.parametrize("noise", [SeededNoise(0), TrustedNoise()])
def test_the_best_column_is_chosen_where_it_stands_out(noise):
    scores = ColumnScores(4, (0.6, 0.9), (1.0, 1.0))
    query = Query("start", (8,), 1.0, mechanism=EXPONENTIAL)  # e^-200 is the chance of a wrong one
    assert scores.candidate(Engine(the_pairs(), noise).choose(query, scores))[0] == 1


def test_the_law_of_a_choice_is_the_charged_one():
    """4,000 draws of known probabilities, each within six standard deviations (chance below 1e-7)."""
    scores, n = ColumnScores(4, (0.2,), (1.0, 1.0)), 4000
    query = Query("start", (4,), 25.0, n, mechanism=EXPONENTIAL)
    pairs = the_pairs()
    total = clipped_sum(pairs, None, scores, "range", GRID) / UNIT
    expected = np.exp((total - total.max()) / 25)
    expected /= expected.sum()
    engine = Engine(pairs, TrustedNoise())
    seen = np.bincount([engine.choose(query, scores) for _ in range(n)], minlength=4) / n
    assert (np.abs(seen - expected) <= 6 * np.sqrt(expected * (1 - expected) / n)).all()
    # Not vacuous: twice the noise has another law.
    wrong = np.exp((total - total.max()) / 50)
    assert np.abs(seen - wrong / wrong.sum()).max() > 0.1
    assert engine.followed([query])


def test_choices_are_made_by_scores_and_sums_by_other_statistics():
    from pairveil.learners.contrastive.recipe import ColumnSignal

    engine = Engine(the_pairs(), SeededNoise(0))
    choice, total = Query("start", (4,), 1.0, mechanism=EXPONENTIAL), Query("signal", (4,), 1.0)
    signal, scores = ColumnSignal(4, (1.0, 1.0), 0.6), ColumnScores(4, (0.6,), (1.0, 1.0))
    for ask in (
        lambda: engine.answer(choice, scores),
        lambda: engine.answer(choice, signal),
        lambda: engine.answer(total, scores),
        lambda: engine.choose(total, scores),
        lambda: engine.choose(choice, signal),
        lambda: engine.choose(choice, ColumnScores(4, (0.1, 0.6), (1.0, 1.0))),  # more candidates
    ):
        with pytest.raises(RuntimeError):
            ask()
    engine.choose(choice, scores)
    with pytest.raises(RuntimeError, match="no further answer"):
        engine.choose(choice, scores)


def test_no_choice_from_a_sample():
    for sampling in ("poisson", "disjoint"):
        with pytest.raises(InputError, match="all records"):
            Query("start", (4,), 1.0, mechanism=EXPONENTIAL, sampling=sampling, sample_rate=0.5)
    learner = DPPMetricLearner(preprocessor=np.eye(2), mechanism="exponential")
    with pytest.raises(InputError, match="mechanism must be"):
        learner.certify([[0, 1]], [1])  # recipes ask for choices, not users


def test_a_kept_choice_is_not_drawn_again(tmp_path):
    pairs, scores = the_pairs(), ColumnScores(4, (0.2,), (1.0, 1.0))
    query = Query("start", (4,), 1e6, 30, mechanism=EXPONENTIAL)  # all chance
    plan = Plan((query,), pairs.n_pairs, 4)
    first = Checkpoint(tmp_path / "fit", plan, pairs)
    engine = Engine(pairs, TrustedNoise(), checkpoint=first)
    drawn = [engine.choose(query, scores) for _ in range(30)]
    first.close()
    again = Engine(pairs, TrustedNoise(), checkpoint=Checkpoint(tmp_path / "fit", plan, pairs))
    assert [again.choose(query, scores) for _ in range(30)] == drawn  # 4^-30 by chance


class Recipe:
    """Asks as told."""

    headline = "start"

    def __init__(self, *asks):
        self._asks = asks

    def ask(self, facts):
        return self._asks

    def options(self):
        return {}


MIXED = (
    QuerySpec("survey", (6,), 0.3),
    QuerySpec("start", (32,), 0.2, steps=2, choice=True),
    QuerySpec("gradients", (3, 4), 0.5, steps=10),
)
ONLY = (QuerySpec("start", (32,), 1.0, steps=2, choice=True),)


@pytest.mark.parametrize("asks", [MIXED, ONLY])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("cost", [1, 3, Cost(1, 2.0, 2.0, empties=False)])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.03, 1e-5), (0.5, 0.0)])
def test_a_plan_with_choices_costs_what_was_asked_and_wastes_little(
    asks, adjacency, cost, epsilon, delta
):
    mechanism = mechanism_named("gaussian" if delta else "laplace")
    facts = PublicFacts(Budget(epsilon, delta, cost, adjacency), 500, 4, mechanism=mechanism)
    plan, slack = plan_within(Recipe(*asks), facts, delta, 5, exact=True)
    spent = epsilon_of(plan.events(), kappa=cost, adjacency=adjacency, delta=delta - slack)
    assert 0.99 * epsilon < spent <= epsilon
    event = plan["start"].event()
    assert isinstance(event, ChoiceEvent)
    assert event.steps == 2
    assert Query.from_dict(plan["start"].to_dict()).event() == event


def test_a_choice_beside_a_poisson_sample():
    asks = (*MIXED[:2], QuerySpec("gradients", (3, 4), 0.5, steps=10, sample_rate=0.1))
    facts = PublicFacts(Budget(1.0, 1e-5, 2, "zero-out"), 500, 4)
    plan, slack = plan_within(Recipe(*asks), facts, 1e-5, 2, exact=True)
    assert 0.97 < epsilon_of(plan.events(), kappa=2, delta=1e-5 - slack) <= 1.0


def test_a_choice_that_would_be_chance_alone_is_refused():
    facts = PublicFacts(
        Budget(1e-14, 0.0, 1, "zero-out"), 500, 4, mechanism=mechanism_named("laplace")
    )
    with pytest.raises(InputError, match="chance alone"):
        plan_within(Recipe(*ONLY), facts, 0.0, 1, exact=True)


def test_without_privacy_the_best_one_is_chosen():
    facts = PublicFacts(Budget(math.inf, 1e-5, 1, "zero-out"), 200, 4)
    plan = make_plan(Recipe(QuerySpec("start", (4,), 1.0, choice=True)), facts)
    scores = ColumnScores(4, (0.6,), (1.0, 1.0))
    assert Engine(the_pairs(), SeededNoise(0)).choose(plan["start"], scores) == 1
