"""Little is lost against Euclid: many classes with half of the pairs similar, few pairs, empty labels.

People, pairs and noise have fixed seeds, so these fits are the same in every run and cannot fail by chance.
With one direction and little of Euclid the digits ended 0.06 to 0.09 of AUC below it.
"""

import math

import numpy as np
import pytest
from reproduction.data import load
from reproduction.protocol import design, make_split, paper_graph
from tools.many_classes import benchmark

from pairveil import DPPMetricLearner
from pairveil.engine.plan import Plan
from pairveil.evaluation.scores import pair_auc
from pairveil.learners.contrastive.recipe import (
    SurveyResult,
    euclid_weight,
    least_directions,
    take_survey,
    usual_clip,
)
from pairveil.privacy.mechanisms import Query, mechanism_named


@pytest.mark.parametrize(
    ("seed", "epsilon", "select", "adjacency"),
    [
        (100, 4.0, "matching", "zero-out"),
        (100, 8.0, "paths", "replace"),
        (101, 2.0, "matching", "zero-out"),
        (102, 4.0, "paths", "zero-out"),
    ],
)
def test_half_similar_digits_do_not_end_below_euclid(seed, epsilon, select, adjacency):
    rng = np.random.default_rng([seed, 2020])
    split = make_split(load("digits"), rng)
    given = paper_graph(split, rng)
    learner = DPPMetricLearner(
        epsilon,
        delta=1e-5,
        unit="person",
        adjacency=adjacency,
        select=select,
        preprocessor=split.X_train,
        random_state=seed,
    )
    metric = learner.fit(given.pairs, given.labels).components_
    auc, euclid = (pair_auc(m, split.X_test, split.y_test, 20_000, seed) for m in (metric, None))
    assert auc > euclid - 0.04


@pytest.mark.parametrize(("seed", "epsilon"), [(100, 4.0), (102, 4.0), (102, 8.0)])
def test_half_similar_digits_after_a_choice_do_not_end_below_euclid(seed, epsilon):
    """One chosen column for ten classes: they lost .04 to .05 with the Euclid of a known start."""
    rng = np.random.default_rng([seed, 2020])
    split = make_split(load("digits"), rng)
    given = paper_graph(split, rng)
    learner = DPPMetricLearner(
        epsilon, select="all", preprocessor=split.X_train, random_state=seed
    ).fit(given.pairs, given.labels)
    assert "start" in [release["name"] for release in learner.certificate_.plan["releases"]]
    auc, euclid = (
        pair_auc(m, split.X_test, split.y_test, 20_000, seed) for m in (learner.components_, None)
    )
    assert auc > euclid - 0.02


@pytest.mark.parametrize("seed", [361, 362])
def test_few_similar_pairs_of_many_classes_do_not_end_below_euclid(seed):
    """32 classes, some 45 similar pairs, 64 columns: they lost 0.03 and 0.04 while a low score was a win."""
    rng = np.random.default_rng([seed, 2020])
    split = make_split(benchmark("leaves"), rng)
    given = design(split, "paths", rng)
    learner = DPPMetricLearner(8.0, 1e-5, preprocessor=split.X_train, random_state=seed)
    metric = learner.fit(given.pairs, given.labels).components_
    auc, euclid = (pair_auc(m, split.X_test, split.y_test, 20_000, seed) for m in (metric, None))
    assert auc > euclid - 0.04


@pytest.mark.parametrize("z", [0.0, 1.0, 30.0, math.inf])
@pytest.mark.parametrize("columns", [0.001, 0.1, 3.0])
def test_more_signal_more_pairs_and_more_evidence_never_raise_euclid_s_weight(columns, z):
    by_signal = [euclid_weight(s, columns, z) for s in np.geomspace(0.1, 1e4, 50)]
    by_columns = [euclid_weight(5.0, c, z) for c in np.geomspace(10 * columns, columns / 10, 50)]
    by_evidence = [euclid_weight(50.0, columns, z / 10 + x) for x in np.geomspace(1e-2, 1e3, 50)]
    for weights in (by_signal, by_columns, by_evidence):
        assert (np.diff(weights) <= 0).all()
        assert weights[-1] > 0  # the metric has full rank


@pytest.mark.filterwarnings("ignore:397 pairs are few")
@pytest.mark.parametrize("epsilon", [1.0, 0.2])
def test_labels_without_information_lose_little(epsilon):
    """400 pairs: the loss in AUC is that of a metric that is mostly Euclid's."""
    found = []
    for seed in range(4):
        rng = np.random.default_rng([seed, 2020])
        split = make_split(load("breast_cancer"), rng)
        given = design(split, "paths", rng)
        learner = DPPMetricLearner(epsilon, preprocessor=split.X_train, random_state=seed)
        metric = learner.fit(given.pairs, rng.permutation(given.labels)).components_
        auc, euclid = (
            pair_auc(m, split.X_test, split.y_test, 20_000, seed) for m in (metric, None)
        )
        found.append(auc - euclid)
    assert np.mean(found) > -0.06


class Answering:
    """An engine that gives one answer."""

    def __init__(self, answer):
        self.given = answer

    def answer(self, query, statistic):
        assert statistic.shape == self.given.shape
        return self.given


@pytest.mark.parametrize(("similar", "share"), [(480, 0.5), (530, 0.5), (200, 0.2), (800, 0.8)])
def test_a_share_that_noise_moved_off_a_half_is_a_half(similar, share):
    """Noise on the share of 1,000 pairs: 10 sqrt(3) of them, 0.017. Two deviations of it tell nothing."""
    plan = Plan((Query("survey", (5,), 10.0),), n_records=1000, n_features=3)
    surveyed = take_survey(plan, Answering(np.array([500.0, 400, 300, 300, similar])))
    assert surveyed.share == pytest.approx(share)
    assert surveyed.weights == pytest.approx((min(1, 1 / share - 1), min(1, share / (1 - share))))


@pytest.mark.parametrize(("similar", "sure"), [(500, 0.93), (200, 0.83), (50, 0.4)])
def test_euclid_s_weight_counts_the_pairs_that_noise_leaves_sure(similar, sure):
    """A rare kind of pairs that drowns looks common. Drawn tables of ten classes lost .03 of AUC at .1."""
    plan = Plan((Query("survey", (5,), 10.0),), n_records=1000, n_features=3)
    surveyed = take_survey(plan, Answering(np.array([500.0, 400, 300, 300, similar])))
    assert surveyed.sure == pytest.approx(sure, abs=0.01)
    louder = Plan((Query("survey", (5,), 100.0),), n_records=1000, n_features=3)
    surveyed = take_survey(louder, Answering(np.array([500.0, 400, 300, 300, similar])))
    assert 0.02 <= surveyed.sure * surveyed.mass / 2000 <= 0.16


@pytest.mark.parametrize(
    ("pairs", "mechanism", "rows"),
    [(400, "gaussian", 3), (20_000, "gaussian", 5), (20_000, "laplace", 1)],
)
def test_many_pairs_start_more_directions(pairs, mechanism, rows):
    """Three directions, clipped more, cost IPUMS-BR and Adult .02 to .05 of their gain."""
    query = Query("gradients", (10, 50), 40.0, steps=100, mechanism=mechanism_named(mechanism))
    plan = Plan((query,), n_records=pairs, n_features=50)
    surveyed = SurveyResult(np.ones(50), 1.0, 0.5, (1.0, 1.0), float(pairs))
    assert least_directions(plan, surveyed) == rows


def test_the_clip_bound_grows_with_the_signal_up_to_a_bound():
    bounds = [usual_clip(signal) for signal in (3.0, 30.0, 60.0, 600.0)]
    assert bounds == pytest.approx([0.02, 0.2, 0.4, 0.4])
