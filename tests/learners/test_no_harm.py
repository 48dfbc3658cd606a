"""Given pairs of many classes, half of them similar: no fit ends below Euclid.

People, pairs and noise have fixed seeds, so these fits are the same in every run and cannot fail by chance.
Before wins of the contest were doubted, every one of them ended 0.05 to 0.1 of AUC below Euclid.
"""

import numpy as np
import pytest

from pairveil import DPPMetricLearner
from pairveil.evaluation.scores import pair_auc
from pairveil.learners.contrastive.doubt import MORE, MOST, doubt
from pairveil.studies.data import load
from pairveil.studies.protocol import make_split, paper_graph


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
    assert auc > euclid - 0.005


@pytest.mark.parametrize("noise", [0.0, 0.003, 0.05])
@pytest.mark.parametrize("columns", [0.0, 0.001, 0.1, 3.0])
def test_a_higher_score_is_never_doubted_more(noise, columns):
    weights = [doubt(score, noise, columns) for score in np.linspace(-0.2, 2.0, 200)]
    assert MOST <= weights[0] <= MOST + MORE
    assert weights[-1] == 0.0
    assert (np.diff(weights) <= 0).all()


@pytest.mark.parametrize("score", [-0.01, 0.005, 0.03, 0.1])
def test_fewer_pairs_and_more_noise_are_never_doubted_less(score):
    for weights in (
        [doubt(score, 0.002, columns) for columns in np.geomspace(1e-4, 10, 50)],
        [doubt(score, noise, 0.05) for noise in np.linspace(0, 0.1, 50)],
    ):
        assert (np.diff(weights) >= 0).all()
