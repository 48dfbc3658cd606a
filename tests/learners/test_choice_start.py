"""Small epsilon: the descent starts on a chosen column. The plan, its certificate, its audit, and its use."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from pairveil import DPPMetricLearner, PrivacyLedger
from pairveil.audit.exact_audit import audit_exactly
from pairveil.engine.plan import PublicFacts
from pairveil.evaluation.scores import pair_auc
from pairveil.learners.contrastive import recipe
from pairveil.learners.contrastive.recipe import starts_by_choice, usual_steps
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.mechanisms import Budget, mechanism_named
from pairveil.records.kinds import Cost

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def people(n=6000, d=20, seed=0):
    """The classes differ in one column of small spread; the others are large and say nothing."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 2, n)
    X = rng.uniform(0, 0.2, size=(n, d))
    X[:, 3] = 0.01 * rng.normal(size=n) + 0.04 * classes
    chain = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    return X, classes, chain, np.where(classes[:-1] == classes[1:], 1, -1)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_hidden_column_is_found_where_a_vector_drowns(mechanism):
    X, _, chain, y = people()
    epsilon = 0.1 if mechanism == "gaussian" else 0.3
    learner = DPPMetricLearner(
        epsilon=epsilon, mechanism=mechanism, preprocessor=X, random_state=0
    ).fit(chain, y)
    assert "start" in [release["name"] for release in learner.certificate_.plan["releases"]]
    fresh, other = people(2000, seed=1)[:2]
    assert pair_auc(learner.components_, fresh, other, 20_000, 0) > 0.9
    assert pair_auc(None, fresh, other, 20_000, 0) < 0.6


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("unit", ["relationship", "person"])
def test_a_stranger_recomputes_the_certificate(mechanism, unit):
    X, _, chain, y = people(3000)
    ledger = PrivacyLedger(0.2, 1e-5, unit=unit)
    learner = DPPMetricLearner(
        epsilon=0.1, unit=unit, mechanism=mechanism, preprocessor=X, accountant=ledger
    )
    certificate = learner.fit(chain, y).certificate_
    assert certificate.for_release
    assert certificate.epsilon <= 0.1
    assert certificate.delta == (0.0 if mechanism == "laplace" else 1e-5)
    read = Certificate.from_json(certificate.to_json())
    assert read.verify().problems == ()
    assert read.mu() is None
    assert ledger.spent() <= 0.1
    # A choice said to have less eta than its query, or to be asked once less, is found out.
    place = [event["kind"] for event in read.events].index("choice")
    events = [dict(event) for event in read.events]
    events[place]["eta"] /= 2
    assert not replace(read, events=tuple(events)).verify()


def test_a_plan_of_choices_alone_is_no_gaussian_noise_misnamed():
    from pairveil.privacy.events import ChoiceEvent, LaplaceEvent

    def verified(events, mechanism, delta):
        return Certificate.issue(
            events, delta=delta, unit="pair", adjacency="zero-out",
            kappas={"pair": 1, "relationship": 1, "person": 2}, mechanism=mechanism, n_pairs_given=9,
            n_pairs_used=9, selection={"how": "all", "caveat": None, "full_graph_relationship_kappa": 1},
            noise_source="seeded NumPy floating-point noise", for_release=False,
        ).verify()  # fmt: skip

    choice, noise = ChoiceEvent(0.1, 2), LaplaceEvent(10.0)
    assert verified([choice], "gaussian", 1e-5)
    assert verified([choice, noise], "gaussian", 1e-5)  # a threshold chosen later
    assert verified([choice, noise], "laplace", 0.0)
    assert not verified([noise], "gaussian", 1e-5)
    assert not verified([choice], "laplace", 1e-5)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_exact_audit_of_such_a_fit(mechanism, adjacency):
    learner = DPPMetricLearner(
        epsilon=0.1, unit="pair", mechanism=mechanism, adjacency=adjacency, n_steps=3
    )
    found = audit_exactly(learner, n_features=12)
    assert found.verdict == "consistent"
    moves = {move.name: move.ratio for move in found.queries}
    assert 0 < moves["start"] <= 1


def test_which_kind_of_query_is_asked_follows_from_public_numbers():
    X, _, chain, y = people(3000)
    learner = DPPMetricLearner(epsilon=0.1, preprocessor=X, random_state=0)
    plan = learner.certify(chain, y).plan
    assert learner.certify(chain, -y).plan == plan
    other = DPPMetricLearner(epsilon=0.1, preprocessor=X[:, ::-1] * 0.5, random_state=0)
    assert other.certify(chain, np.ones_like(y)).plan == plan


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_rule_is_monotone_in_epsilon(mechanism):
    delta = 1e-5 if mechanism == "gaussian" else 0.0

    def at(epsilon, n=8000, d=30, cost=1):
        budget = Budget(epsilon, delta, Cost(cost), "zero-out")
        return starts_by_choice(PublicFacts(budget, n, d, mechanism=mechanism_named(mechanism)))

    asked = [at(e) for e in (0.01, 0.1, 1.0, 10.0, math.inf)]
    assert asked == sorted(asked, reverse=True)
    assert asked[0]
    assert not asked[-1]
    assert not at(0.1, n=500)  # from few pairs a choice is no better, nor among few columns
    assert not at(0.1, d=5)


def test_a_pure_epsilon_chooses_sooner_and_takes_fewer_steps():
    def at(epsilon, mechanism, n=8000, d=30):
        kind = mechanism_named(mechanism)
        budget = Budget(epsilon, 0.0 if kind.is_pure else 1e-5, Cost(1), "zero-out")
        facts = PublicFacts(budget, n, d, mechanism=kind)
        return starts_by_choice(facts), usual_steps(facts)

    assert at(1.0, "laplace") == (True, 16)
    assert at(1.0, "gaussian") == (False, 100)
    assert at(0.1, "laplace") == (True, 5)  # the more noise, the fewer queries
    assert at(4.0, "laplace", n=8463, d=32) == (
        True,
        33,
    )  # Bank, whose vector starts on a wrong column
    assert at(8.0, "laplace") == (False, 46)
    assert at(1.0, "laplace", n=500) == (False, 4)


@pytest.mark.parametrize(("mechanism", "epsilon"), [("gaussian", 0.1), ("laplace", 0.3)])
def test_many_pairs_keep_little_of_euclid_after_a_choice(mechanism, epsilon, monkeypatch):
    """Euclid's weight counted the noise of ten directions in l1: ten times that of the one learned.

    It would be 0.46; 0.3 of it is that a choice tells nothing of the other directions.
    """
    X, _, chain, y = people()
    weights = []
    usual = recipe.euclid_weight
    monkeypatch.setattr(
        recipe, "euclid_weight", lambda *given: weights.append(usual(*given)) or weights[-1]
    )
    DPPMetricLearner(epsilon, mechanism=mechanism, preprocessor=X, random_state=0).fit(chain, y)
    assert 0.3 <= weights[0] < 0.35


def test_more_components_start_on_the_vector():
    X, _, chain, y = people(3000)
    learner = DPPMetricLearner(epsilon=0.1, n_components=3, preprocessor=X, random_state=0)
    names = [release["name"] for release in learner.certify(chain, y).plan["releases"]]
    assert "signal" in names
    assert "start" not in names
    assert learner.fit(chain, y).components_.shape == (3, 20)


def test_more_classes_start_more_directions():
    """Five classes have one pair in five similar, give or take noise: four directions, or nearly."""
    X, _, chain, _ = people(12_000)
    classes = np.random.default_rng(2).integers(0, 5, len(X))
    y = np.where(classes[chain[:, 0]] == classes[chain[:, 1]], 1, -1)
    shapes = set()

    def watch(query, statistic, noisy):
        if query.name == "gradients":
            shapes.add(statistic.shape)

    learner = DPPMetricLearner(epsilon=0.2, n_steps=2, preprocessor=X, random_state=0)
    learner.fit(chain, y, on_answer=watch)
    assert "start" in [release["name"] for release in learner.certificate_.plan["releases"]]
    assert all(rows >= 3 for rows, _ in shapes)
    assert shapes


@pytest.mark.parametrize("seed", [0, 1])
def test_long_steps_do_not_overshoot_along_the_chosen_column(seed):
    """Its scale is large. W jumped to and fro along it, and the average was nothing: AUC .62 and .54.

    One draw in eight of Bank at pure epsilon 1 ended at Euclid by the learner's own step.
    """
    X, _, chain, y = people(seed=seed)
    learner = DPPMetricLearner(
        1.0, mechanism="laplace", preprocessor=X, random_state=0, learning_rate=80.0
    )
    fresh, other = people(2000, seed=9)[:2]
    metric = learner.fit(chain, y).components_
    assert pair_auc(metric, fresh, other, 20_000, 0) > 0.9
