"""Fits on groups: one epsilon for every unit, the same release in any order, errors before any charge."""

from dataclasses import replace

import numpy as np
import pytest

from pairveil import (
    DPPMetricLearner,
    GroupSet,
    InputError,
    PairSet,
    PrivacyLedger,
    design_groups,
    design_pairs,
    label_pairs,
    load_patients,
)
from pairveil.privacy.profile import epsilon_of
from pairveil.privacy.units import ADJACENCIES, UNITS

PATIENTS = load_patients()
X, CLASSES = PATIENTS.features.values, PATIENTS.classes
MANY = {"epsilon": 8.0, "n_steps": 5, "random_state": 0}


def _one_number(certificate):
    stated = {certificate.epsilons[unit][how] for unit in UNITS for how in ADJACENCIES}
    return len(stated) == 1 and certificate.epsilon <= 8.0


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_one_number_for_every_unit_and_adjacency(unit, adjacency):
    learner = DPPMetricLearner(unit=unit, adjacency=adjacency, **MANY)
    certificate = learner.certify_classes(X, CLASSES, [0, 1], groups=8)
    assert _one_number(certificate)
    assert certificate.epsilon > 7.9
    assert bool(certificate.verify())
    assert certificate.records == "groups"
    assert set(certificate.kappas.values()) == {1}
    assert certificate.promise().startswith("NOT FOR RELEASE")
    assert "One number protects a pair, a relationship and a person alike." in certificate.promise()
    assert certificate.n_pairs_used == certificate.n_pairs_given == 71 * 28


def test_replacing_is_what_a_pair_of_a_matching_costs_replaced():
    # 2C for one record: a matching's replace number. Groups are charged no more than pairs there.
    groups = DPPMetricLearner(adjacency="replace", unit="person", **MANY).prepare_classes(
        X, CLASSES, [0, 1], groups=8
    )
    pairs = DPPMetricLearner(adjacency="replace", unit="person", select="matching", **MANY).prepare(
        PairSet(X, design_pairs(569, "matching", random_state=0), np.ones(284, dtype=int))
    )
    assert groups.records.costs["person"].sensitivity("replace") == 2.0
    assert pairs.records.costs["person"].sensitivity("replace") == 2.0


def test_given_pairs_are_cut_into_groups():
    pairs = design_pairs(569, random_state=0)
    y = label_pairs(pairs, CLASSES)
    learner = DPPMetricLearner(select="groups", preprocessor=X, **MANY).fit(pairs, y)
    certificate = learner.certificate_
    assert _one_number(certificate)
    assert bool(certificate.verify())
    assert certificate.selection["how"] == "groups"
    assert certificate.selection["caveat"] is not None
    assert learner.n_pairs_used_ == certificate.n_pairs_used == len(learner.used_pairs_)
    assert 0.7 * len(pairs) < learner.n_pairs_used_ < len(pairs) == certificate.n_pairs_given
    assert learner.components_.shape == (30, 30)
    assert certificate == DPPMetricLearner(select="groups", preprocessor=X, **MANY).certify(
        pairs, y
    )


def test_a_fit_does_not_depend_on_the_order_of_rows():
    pairs = design_pairs(569, random_state=0)
    y = label_pairs(pairs, CLASSES)
    learner = DPPMetricLearner(select="groups", preprocessor=X, **MANY)
    one = learner.fit(pairs, y).components_
    order = np.random.default_rng(0).permutation(len(pairs))
    np.testing.assert_array_equal(one, learner.fit(pairs[order, ::-1], y[order]).components_)
    ids = np.arange(569)
    numbers = np.random.default_rng(1).permutation(569) // 6
    numbers = np.where(np.bincount(numbers)[numbers] > 1, numbers, -1)
    people = np.random.default_rng(2).permutation(569)
    one = learner.fit_classes(X, CLASSES, [0, 1], groups=numbers, ids=ids).components_
    two = learner.fit_classes(
        X[people], CLASSES[people], [0, 1], groups=numbers[people], ids=ids[people]
    ).components_
    np.testing.assert_array_equal(one, two)


def test_a_group_set_is_fitted_as_it_is():
    groups = GroupSet.of_classes(X, design_groups(569, 8, random_state=0), CLASSES)
    learner = DPPMetricLearner(epsilon=8.0, n_steps=5).fit(groups)
    assert learner.certificate_.for_release
    assert _one_number(learner.certificate_)
    assert learner.certificate_.plan["group_size"] == 8


def test_it_learns():
    pairs = design_pairs(569, random_state=0)
    y = label_pairs(pairs, CLASSES)
    learner = DPPMetricLearner(epsilon=8.0, unit="person", random_state=0, preprocessor=X)
    learner.fit_classes(X, CLASSES, [0, 1], groups=4)
    assert learner.score(pairs, y) > 0.86  # Euclid: 0.833


def test_a_killed_fit_resumes(tmp_path):
    groups = GroupSet.of_classes(X, design_groups(569, 8, random_state=0), CLASSES)
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-4)
    learner = DPPMetricLearner(epsilon=8.0, n_steps=5, accountant=ledger)
    file = tmp_path / "fit.checkpoint"

    class KilledError(Exception):
        pass

    seen = []

    def stop(query, statistic, noisy):
        seen.append(query.name)
        if len(seen) == 3:
            raise KilledError

    with pytest.raises(KilledError):
        learner.fit(groups, checkpoint=file, on_answer=stop)
    learner.fit(groups, checkpoint=file)
    assert len(ledger.entries) == 1
    assert not file.exists()


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        (1, "2 to 64"),
        (65, "2 to 64"),
        (2.5, "2 to 64"),
        ("some", "'auto', a size"),
        (np.zeros(3, dtype=int), "569 people need 569"),
        (np.arange(569), "at least two people"),
        (np.zeros(569, dtype=int), "at most 64"),
        (np.full(569, -1), "no groups"),
    ],
)
def test_bad_groups_are_refused_before_anything_is_charged(groups, says):
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-4)
    learner = DPPMetricLearner(epsilon=8.0, accountant=ledger)
    with pytest.raises(InputError, match=says):
        learner.fit_classes(X, CLASSES, [0, 1], groups=groups)
    assert not ledger.entries


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"margin": "private"}, "margin='private' is for pairs"),
        ({"kappa": 3}, "kappa is for single pairs"),
    ],
)
def test_options_of_single_pairs_are_refused(options, says):
    pairs = design_pairs(569, random_state=0)
    learner = DPPMetricLearner(select="groups", preprocessor=X, **{**MANY, **options})
    with pytest.raises(InputError, match=says):
        learner.certify(pairs, label_pairs(pairs, CLASSES))


def test_learners_without_groups_say_so():
    class Plain(DPPMetricLearner):
        _kinds = ("pairs", "people")

    with pytest.raises(InputError, match="does not learn from groups"):
        Plain().fit_classes(X, CLASSES, [0, 1], groups=8)


def test_groups_bring_their_labels():
    groups = GroupSet.of_classes(X, design_groups(569, 8, random_state=0), CLASSES)
    with pytest.raises(InputError, match="leave y out"):
        DPPMetricLearner().fit(groups, np.ones(71))


def test_the_non_private_limit_learns_from_groups():
    learner = DPPMetricLearner(epsilon=float("inf"), preprocessor=X)
    learner.fit_classes(X, CLASSES, [0, 1], groups=8)
    assert learner.certificate_ is None
    pairs = design_pairs(569, random_state=0)
    assert learner.score(pairs, label_pairs(pairs, CLASSES)) > 0.86


@pytest.mark.filterwarnings("ignore::pairveil.DataWarning")
def test_the_size_of_groups_follows_public_numbers():
    pairs = design_pairs(569, random_state=0)
    y = label_pairs(pairs, CLASSES)
    sizes = [
        DPPMetricLearner(epsilon, select="groups", preprocessor=X, random_state=0)
        .prepare(pairs, y)
        .recipe.size
        for epsilon in (0.5, 8.0, float("inf"))
    ]
    assert sizes == [3, 4, 8]
    labels = DPPMetricLearner(0.5, select="groups", preprocessor=X, random_state=0)
    one, two = (labels.prepare(pairs, given).records.used.members for given in (y, -y))
    assert np.array_equal(one, two)  # blind to labels


def test_sampled_groups_are_accounted_as_replaced_ones():
    learner = DPPMetricLearner(epsilon=8.0, n_steps=20, sample_rate=0.2, random_state=0)
    certificate = learner.certify_classes(X, CLASSES, [0, 1], groups=4)
    assert _one_number(certificate)
    assert bool(certificate.verify())
    learner.fit_classes(X, CLASSES, [0, 1], groups=4)
    assert learner.certificate_ == certificate


def test_what_is_shown_midway_is_what_a_group_costs():
    """A group costs two clip bounds: epsilon so far is that of the answers given, never half of it."""
    shown = []
    learner = DPPMetricLearner(unit="person", **MANY)
    made = learner.prepare_classes(X, CLASSES, [0, 1], groups=8)
    learner.fit(made, on_step=lambda share, spent: shown.append((share, spent)))
    assert [spent for share, spent in shown if share == 1.0] == [learner.certificate_.epsilon]
    first = made.plan.queries[0]
    assert shown[0][1] == epsilon_of(
        [replace(first, steps=1).event()],
        kappa=made.records.costs["person"],
        adjacency="zero-out",
        delta=learner.certificate_.delta - learner.certificate_.delta_slack,
    )
