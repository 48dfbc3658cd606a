"""Small functions of the learners against values that were worked out by hand, or kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pairveil import DPPMetricLearner, InputError, design_pairs
from pairveil.engine.plan import PublicFacts
from pairveil.learners import inputs, preparing, recipes
from pairveil.learners.base import checkpoint_bytes, how_to_resume, most_rows
from pairveil.learners.classes import (
    ClassWindows,
    ScatterRecipe,
    balanced,
    chooses_column,
    corners,
    entries,
    learns_from_pairs,
    learns_in_steps,
    radius,
)
from pairveil.learners.clustering import (
    choose_clustering,
    in_order_of_first,
    most_candidates,
    together_of,
    votes_of,
)
from pairveil.learners.contrastive.recipe import (
    ContrastiveRecipe,
    euclid_weight,
    part_within,
    public_signal,
    starts_by_choice,
    usual_clip,
)
from pairveil.learners.estimator import check_calibration
from pairveil.learners.histogram import best_threshold, cells_of, match_odds, root
from pairveil.learners.outlook import expected_gain, gain_by_epsilon, range_at
from pairveil.learners.ranking import AskedDifferences, as_items, fit_strengths, rank_sets
from pairveil.learners.tuples import blend_of, packed, triangle, unpacked
from pairveil.privacy.mechanisms import Budget

near = pytest.approx


def facts(epsilon, n, kappa=1):
    return PublicFacts(Budget(epsilon, 1e-5, kappa, "zero-out"), n, 30)


# ---- public rules ----------------------------------------------------------------------------------


def test_public_signal_decides_a_start_by_choice_and_the_clip_bound():
    assert public_signal(facts(1.0, 8_000)) == near(392, abs=0.5)
    assert [starts_by_choice(facts(e, 8_000)) for e in (1.0, 0.1)] == [False, True]
    assert [usual_clip(signal) for signal in (15.0, 1000.0)] == near([0.1, 0.4])


def test_people_with_classes_go_to_pairs_steps_or_statistics():
    assert [chooses_column(facts(e, 8_000), 2) for e in (8.0, 1.0)] == [False, True]
    assert [learns_from_pairs(facts(1.0, 398, kappa), 2) for kappa in (1, 2)] == [False, True]
    few, many = facts(1.0, 398), facts(1.0, 100_000)
    assert [learns_in_steps(one, k) for one in (few, many) for k in (2, 10)] == [1, 1, 0, 0]
    assert [radius(noise) for noise in (0.0, 0.003, 1.0)] == near([1.2, 0.82, 0.4], abs=0.005)


def test_euclid_weighs_more_the_less_there_is_to_trust():
    assert euclid_weight(signal=9.0, columns=0.07, z=6.0) == near(0.124, abs=5e-4)
    assert [blend_of(W, 1.0) for W in (np.eye(1, 3), np.eye(3))] == near([0.05, 0.45])


def test_what_a_plan_may_be_expected_to_keep():
    assert range_at(((8.0, 0.0, 0.2), (32.0, 0.0, 0.8)), 16.0) == (0.0, 0.5)
    pairs = design_pairs(2000, random_state=0)
    learner = DPPMetricLearner(epsilon=4.0, preprocessor=np.zeros((2000, 5)))
    planned = learner.certify(pairs, np.ones(len(pairs)))
    assert expected_gain(planned)[1:] == (0.75, 1.0)
    assert [low for _, low, _ in gain_by_epsilon(planned, (0.1, 4.0))] == [0.0, 0.75]


# ---- sizes and sentences ---------------------------------------------------------------------------


def test_sizes_of_what_is_written():
    assert [most_rows(ContrastiveRecipe(), d) for d in (30, 10_000)] == [30, 10]
    assert [most_rows(ScatterRecipe(2, k), 30) for k in (3, None)] == [3, 30]
    assert checkpoint_bytes({"releases": [{"entries": 300, "steps": 100}]}) == 281_000
    assert (entries(2, 30), triangle(3), most_candidates(4)) == (527, 6, 11)
    assert how_to_resume(None, None).startswith("No ledger was charged. Run it again")


def test_candidates_are_numbered_levels_sides_classes_columns():
    scores = ClassWindows(3, (0.5, 0.25), (1.0, 1.0))
    assert (scores.shape, scores.candidate(13)) == ((24,), (1, 0.25))


# ---- what is passed to a learner -------------------------------------------------------------------


def test_numbers_become_pythons_own():
    given = inputs.plain_parameters(DPPMetricLearner(epsilon=np.float32(1), n_steps=np.int8(9)))
    assert (given.epsilon, given.n_steps, given.margin) == (1.0, 9, "auto")
    assert [inputs.is_number(one) for one in (0.5, "1", float("nan"))] == [True, False, False]
    assert [inputs.is_whole(one) for one in (3, 3.0, True)] == [True, False, False]
    with pytest.raises(InputError, match=r"epsilon=1e\+09 is too large: it would promise nothing"):
        inputs.check_epsilon(1e9)


def test_calibration_params_are_known():
    stated = {"strategy": "max_tpr", "min_rate": 0.9}
    assert check_calibration(stated) == stated


def test_ids_of_a_table_are_text_or_an_index_that_is_called_id():
    named = pd.DataFrame({"age": [0.1, 0.2]}, index=["ann", "bob"])
    assert inputs.row_numbers([["bob", "ann"]], named).tolist() == [[1, 0]]
    assert inputs.ids_of(pd.DataFrame({"age": [1, 2]})) is None
    by_number = pd.DataFrame({"age": [1, 2]}, index=pd.Index([7, 9], name="id"))
    assert inputs.ids_of(by_number).tolist() == [7, 9]


def test_an_entity_is_in_the_pairs_of_its_busiest_records():
    assert preparing.pairs_of_entity(np.array([[0, 1], [1, 2], [2, 3]]), 2) == 3


# ---- matrices --------------------------------------------------------------------------------------


def test_proximal_steps():
    assert recipes.shrink_singular_values(np.diag([3.0, 0.5]), 1.0) == near(np.diag([2.0, 0.0]))
    shrunk = recipes.shrink_columns(np.array([[3.0, 0.5], [4.0, 0.0]]), 1.0)
    assert shrunk == near(np.array([[2.4, 0.0], [3.2, 0.0]]))
    step = np.array([[3.0, 4.0]])
    assert [part_within(length, step) for length in (1.0, 9.0)] == near([0.2, 1.0])


def test_euclid_beside_few_directions():
    rest = recipes.across(np.array([[0.6, 0.8, 0.0]]))
    assert rest == near(np.array([[-0.8, 0.6, 0.0], [0.0, 0.0, 1.0]]))
    metric = recipes.with_euclid(np.array([[0.0, 2.0]]), 1.0)
    assert metric == near(np.array([[0.0, 5**0.5], [1.0, 0.0]]))


def test_a_symmetric_matrix_is_a_vector_of_the_same_length():
    matrix = np.array([[1.0, 2.0], [2.0, 3.0]])
    assert packed(matrix) == near([1.0, 8**0.5, 3.0])
    assert unpacked(packed(matrix), 2) == near(matrix)


# ---- classes, clusters, scores, choices ------------------------------------------------------------


def test_classes_weigh_the_same_where_noise_may_have_made_them_unequal():
    assert balanced(np.array([0.75, 0.25]), 0.0) == near([1 / 3, 1.0])
    assert balanced(np.array([0.6, 0.4]), 0.1) == near([1.0, 1.0])
    assert corners(2).ravel() == near([-1.0, 1.0, 0.0])


def test_clusterings_are_numbered_by_first_points_and_chosen_by_votes():
    assert in_order_of_first(np.array([2, 0, 2, 1])).tolist() == [0, 1, 0, 2]
    labels = np.array([[0, 0, 1], [0, 1, 1]])
    votes, longest = votes_of(labels, np.array([[0, 1], [0, 2]]), "l1")
    assert (votes.round(3).tolist(), longest) == ([[0.5, -0.5], [0.0, 0.0]], 2.0)
    together = together_of(labels, np.array([[0, 1], [1, 2]]))
    counts = np.array([0.0, 2.0])
    assert [choose_clustering(counts, together, noise) for noise in (0.0, 1.0, 9.0)] == [1, 1, 0]


def test_thresholds_and_odds_are_read_off_counts():
    ones = np.tril(np.ones((3, 3)))
    assert root(3) @ root(3) == near(ones, abs=1e-5)
    assert cells_of(np.array([0.0, 0.5, 0.74, 1.0]), (0.0, 1.0), 4).tolist() == [3, 1, 1, 0]
    edges = np.array([0.1, 0.2, 0.3])
    assert best_threshold(edges, np.array([5, 4, 0]), np.array([0, 1, 9])) == 0.2
    a, b = match_odds(np.array([1.0, 2.0]), np.array([75, 25]), np.array([25, 75]))
    assert [a - b * 0.25, a - b * 2.25] == near([np.log(3), -np.log(3)], abs=0.005)


def test_strengths_and_rank_sets():
    items = as_items(["tea", "coffee"])
    assert (items.names, as_items(3).features.shape) == (("tea", "coffee"), (3, 3))
    asked = AskedDifferences(np.array([[1.0, -1.0]]), np.array([100.0]), np.array([100.0]))
    b, _ = fit_strengths(asked, np.array([50.0, -50.0]), noise=0.0, prior_std=100.0)
    assert b[0] - b[1] == near(np.log(75 / 25), abs=0.005)
    low, high = rank_sets(np.array([3.0, 0.0, 0.1]), 0.01 * np.eye(3), confidence=0.95)
    assert (low.tolist(), high.tolist()) == ([1, 2, 2], [1, 3, 3])
