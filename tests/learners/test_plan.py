"""A plan and what is run are one: every begun epoch is charged, and a fit that strays is not released."""

from __future__ import annotations

import numpy as np
import pytest

from pairveil.engine.engine import Engine
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.contrastive.recipe import ContrastiveRecipe, DissimilarDistances
from pairveil.privacy.mechanisms import Query, mechanism_named
from pairveil.privacy.noise import SeededNoise
from pairveil.records.pairset import PairSet


@pytest.mark.parametrize(("steps", "epochs"), [(1, 1), (10, 1), (11, 2), (20, 2), (21, 3)])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_begun_epoch_is_charged_whole(mechanism, steps, epochs):
    """After 11 steps over 10 disjoint batches the pairs of the first batch were used twice."""
    query = Query("sums", (2,), 5.0, steps, mechanism_named(mechanism), "disjoint", 0.1)
    event = query.event()
    assert (event.steps if mechanism == "laplace" else event.epochs) == epochs


def test_a_fit_that_does_not_follow_its_plan_is_not_released(monkeypatch):
    monkeypatch.setattr(ContrastiveRecipe, "run", lambda self, plan, engine: np.eye(2))
    rng = np.random.default_rng(0)
    data = PairSet(rng.normal(size=(200, 2)) / 4, np.arange(200).reshape(-1, 2), [1, -1] * 50)
    learner = DPPMetricLearner(epsilon=8.0, random_state=0)
    with pytest.raises(RuntimeError, match="did not follow its plan"):
        learner.fit(data)
    assert not hasattr(learner, "components_")
    assert not hasattr(learner, "certificate_")


def test_chains_across_a_fit_and_its_threshold_are_counted():
    """Two people may be tied by a pair of the fit and one of the threshold: a person's pairs in each."""
    rng = np.random.default_rng(0)
    people = rng.normal(size=(200, 2)) / 4
    ring = np.column_stack([np.arange(200), (np.arange(200) + 1) % 200])
    learner = DPPMetricLearner(epsilon=8.0, random_state=0, n_steps=2, preprocessor=people)
    learner.fit(ring, np.tile([1, -1], 100))
    star = np.column_stack([np.zeros(5, dtype=int), np.arange(1, 6)])  # relationship 1, person 5
    learner.calibrate_threshold(star, [1, -1, 1, -1, 1], epsilon=2.0)
    assert learner.certificate_.kappas["relationship"] == 1
    assert learner.threshold_certificate_.kappas["relationship"] == 5


@pytest.mark.parametrize("records", ["people", "groups"])
def test_pairs_are_not_summed_for_a_query_charged_for_other_records(records):
    """A person is one record of people and kappa pairs: the charge would be too small."""
    data = PairSet(np.eye(4), [[0, 1], [2, 3]], [1, -1])
    query = Query("margins", (2,), 5.0, records=records)
    with pytest.raises(RuntimeError, match="records of another kind"):
        Engine(data, SeededNoise(0)).answer(query, DissimilarDistances(4.0, 2.0))


def test_a_fit_is_prepared_selected_and_counted_once(monkeypatch):
    from collections import Counter

    from pairveil.engine.backends import local
    from pairveil.learners import base
    from pairveil.records.records import Records

    calls = Counter()

    def counted(place, name):
        honest = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *a, **k: calls.update([name]) or honest(*a, **k))

    for place, name in (
        (base, "plan_fit"),
        (local, "select_pairs"),
        (local, "kappa"),
        (Records, "canonical"),
    ):
        counted(place, name)
    X = np.random.default_rng(0).normal(size=(40, 3)) / 4
    pairs = np.column_stack([np.arange(39), np.arange(1, 40)])
    learner = DPPMetricLearner(epsilon=4.0, n_steps=3, random_state=0, preprocessor=X)
    learner.fit(pairs, np.where(np.arange(39) % 2, 1, -1))
    # kappa of the given pairs and, where some are dropped, of the used ones: here all are used.
    assert calls == {"plan_fit": 1, "select_pairs": 1, "kappa": 1, "canonical": 1}
