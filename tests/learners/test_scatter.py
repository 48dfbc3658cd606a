"""Statistics of people with classes: what they promise, what they cost, and what cannot stop them."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from learners import StatisticsLearner, people
from pairveil import (
    DPPMetricLearner,
    InputError,
    PrivacyLeakWarning,
    PrivacyLedger,
)
from pairveil.engine.checkpoint import Checkpoint
from pairveil.errors import PrivateNote
from pairveil.evaluation.scores import pair_auc
from pairveil.learners.classes import MOST_FEATURES
from pairveil.privacy.certificate import Certificate
from pairveil.records.embedded import load_digits
from pairveil.records.groups import People

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
X, GROUPS = people(n=600)
MANY, MANY_GROUPS = people(n=2400)
LEARNERS = [StatisticsLearner, DPPMetricLearner]


def fitted(kind=StatisticsLearner, y=GROUPS, classes=(0, 1), rows=X, ids=None, **options):
    options = {"epsilon": 4.0, "unit": "person", "random_state": 0, **options}
    return kind(**options).fit_classes(rows, y, classes, ids=ids)


@pytest.mark.parametrize("kind", LEARNERS)
def test_the_metric_finds_the_column_that_tells_the_classes(kind):
    learner = fitted(kind, rows=MANY, y=MANY_GROUPS)
    weights = (learner.components_**2).sum(axis=0)
    assert weights[0] > 2 * weights[1:].max()
    assert learner.classes_ == (0, 1)
    assert learner.n_people_used_ == 2400
    assert learner.n_features_in_ == 5
    assert learner.transform(X).shape == (600, 5)


def asked(**options):
    options = {"epsilon": 4.0, "unit": "person", "classes": (0, 1), **options}
    classes = options.pop("classes")
    plan = DPPMetricLearner(**options).prepare_classes(X, GROUPS, classes).plan
    return [query.name for query in plan.queries]


def test_two_classes_are_learned_in_steps_unless_noise_is_pure_or_hardly_there():
    assert asked() == ["columns", "class steps", "separation"]
    for otherwise in (
        {"epsilon": float("inf")},
        {"epsilon": 30.0, "random_state": 0},
        {"classes": (0, 1, 2)},  # more than two, and only five columns
        {"mechanism": "laplace"},
    ):
        assert asked(**otherwise) == ["columns", "class statistics"]
    assert "gradients" in asked(unit="relationship")


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("unit", ["person", "relationship", "pair"])
def test_the_certificate_holds_and_speaks_of_people(unit, adjacency, mechanism):
    learner = fitted(unit=unit, adjacency=adjacency, mechanism=mechanism)
    c = learner.certificate_
    assert c.verify().problems == ()
    assert Certificate.from_json(c.to_json()) == c
    assert c.epsilon <= 4.0
    assert c.kappas == {"pair": 2, "relationship": 2, "person": 1}
    assert c.records == "people"
    assert learner.kappa_ == c.kappa
    said = c.promise() + " ".join(c.public)
    assert "paired" not in said
    assert "used pair" not in said
    assert "people" in said


def test_a_release_has_exact_noise_and_is_for_release():
    learner = fitted(random_state=None)
    assert learner.certificate_.for_release
    assert learner.certificate_.delta_slack > 0
    assert learner.certificate_.verify()


def test_a_list_read_off_the_people_is_said_and_not_for_release():
    learner = fitted(classes=None, random_state=None)
    assert not learner.certificate_.for_release
    assert learner.certificate_.verify()
    assert learner.certificate_.why_not_for_release() == (
        "the list of classes was read off the people",
    )
    content = learner.certificate_.to_dict() | {"for_release": True}
    assert not Certificate.from_dict(content).verify()


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["costs"]["people"]["person"].update(replace=1.0),
        lambda c: c["costs"]["people"]["pair"].update(records=1),
        lambda c: c.update(public=c["public"][1:]),
    ],
)
def test_a_lie_about_people_is_found(change):
    told = json.loads(fitted().certificate_.to_json())
    change(told)
    assert not Certificate.from_dict(told).verify()


def test_unlisted_classes_contribute_nothing_and_are_counted_for_the_operator_alone():
    y = GROUPS.astype(object)
    y[:3] = ["nobody's", None, float("nan")]
    with pytest.warns(PrivateNote, match="^3 people have a class that is not in the list"):
        learner = fitted(y=y, epsilon=float("inf"))
    rest = fitted(rows=X[3:], y=GROUPS[3:], epsilon=float("inf"))
    # The number of people is public and counts the nulls; they hardly change what is learned.
    np.testing.assert_allclose(
        learner.get_mahalanobis_matrix(), rest.get_mahalanobis_matrix(), rtol=0.1, atol=0.5
    )
    with pytest.warns(PrivateNote):
        assert np.isfinite(fitted(y=np.full(600, 7)).components_).all()


@pytest.mark.parametrize("epsilon", [2.0, 8.0, float("inf")])
@pytest.mark.parametrize("k", [10, 32])
def test_many_classes_that_say_nothing_leave_euclid(epsilon, k):
    rows = load_digits().features.values[:1000]
    for seed in range(3):
        y = np.random.default_rng(seed).integers(k, size=1000)
        learner = StatisticsLearner(epsilon=epsilon, random_state=seed)
        M = learner.fit_classes(rows, y, range(k)).get_mahalanobis_matrix()
        np.testing.assert_allclose(M, M[0, 0] * np.eye(64), rtol=0.1, atol=0.1 * M[0, 0])


def test_one_class_that_nobody_has_is_no_obstacle():
    learner = fitted(classes=(0, 1, 2, 3))
    assert np.isfinite(learner.components_).all()


def test_the_order_of_people_with_ids_does_not_matter():
    ids = np.random.default_rng(1).permutation(600)
    shuffled = np.random.default_rng(2).permutation(600)
    one = fitted(ids=ids)
    other = fitted(rows=X[shuffled], y=GROUPS[shuffled], ids=ids[shuffled])
    np.testing.assert_array_equal(one.components_, other.components_)
    text = fitted(ids=[f"{i:04d}" for i in ids])
    np.testing.assert_array_equal(one.components_, text.components_)


def test_tables_sparse_rows_and_people_give_the_same_metric():
    wanted = fitted().components_
    table = pd.DataFrame(X, columns=list("abcde"))
    np.testing.assert_array_equal(fitted(rows=table, y=pd.Series(GROUPS)).components_, wanted)
    np.testing.assert_allclose(fitted(rows=sparse.csr_array(X)).components_, wanted, rtol=1e-6)
    named = np.array(["a", "b"])[GROUPS]
    np.testing.assert_array_equal(fitted(y=named, classes=["a", "b"]).components_, wanted)
    given = fitted(rows=People(X, GROUPS, 2), y=None, classes=None)
    np.testing.assert_array_equal(given.components_, wanted)


def test_without_noise_it_is_no_worse_than_with_noise():
    digits = load_digits()
    rows, y = digits.features.values, digits.classes
    train, test = np.arange(0, 1797, 2), np.arange(1, 1797, 2)
    scores = [
        pair_auc(
            fitted(rows=rows[train], y=y[train], classes=range(10), epsilon=e).components_,
            rows[test], y[test], 20_000, 0,
        )
        for e in (float("inf"), 8.0, 1.0)
    ]  # fmt: skip
    euclid = pair_auc(None, rows[test], y[test], 20_000, 0)
    assert scores[0] > scores[1] > scores[2] > euclid + 0.02


def test_where_nothing_stands_out_of_the_noise_the_metric_is_euclid():
    learner = fitted(epsilon=1e-3)
    matrix = learner.get_mahalanobis_matrix()
    np.testing.assert_allclose(matrix, matrix[0, 0] * np.eye(5), atol=1e-9 * matrix[0, 0])


def test_n_components_are_the_leading_directions():
    whole = fitted().components_
    np.testing.assert_array_equal(fitted(n_components=2).components_, whole[:2])


def test_data_norm_changes_units_only():
    one = fitted().components_
    np.testing.assert_allclose(fitted(rows=8 * X, data_norm=8.0).components_, one / 8, rtol=1e-6)


def test_a_ledger_is_charged_once_and_refuses():
    ledger = PrivacyLedger(epsilon=2.0, delta=1e-5, unit="person")
    fitted(epsilon=1.5, accountant=ledger)
    assert ledger.spent() == pytest.approx(1.5, abs=1e-3)
    with pytest.raises(Exception, match="budget"):
        fitted(epsilon=1.5, accountant=ledger)
    assert len(ledger.entries) == 1
    assert ledger.entries[0].note == "fit of 600 people"
    together = PrivacyLedger(epsilon=9.0, delta=1e-5)  # of relationships
    fitted(epsilon=1.5, accountant=together)
    assert together.spent() > 1.5
    once = together.spent()
    fitted(epsilon=1.5, accountant=together)
    assert together.spent() > once


def test_a_killed_fit_resumes_from_its_checkpoint(tmp_path):
    path = tmp_path / "fit.checkpoint"
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-5, unit="person")
    learner = StatisticsLearner(epsilon=4.0, accountant=ledger)
    answers = []

    def stop(query, statistic, noisy):
        answers.append(noisy)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.fit_classes(X, GROUPS, (0, 1), checkpoint=path, on_answer=stop)
    seen = []
    learner.fit_classes(
        X, GROUPS, (0, 1), checkpoint=path, on_answer=lambda q, s, noisy: seen.append(noisy)
    )
    np.testing.assert_array_equal(seen[0], answers[0])
    assert len(ledger.entries) == 1
    assert not path.exists()
    prepared = learner.prepare_classes(X, GROUPS, (0, 1))
    assert Checkpoint(path, prepared.plan, prepared.records.used).finish() is None


def test_two_classes_at_relationship_level_are_learned_from_paths_of_pairs():
    learner = fitted(DPPMetricLearner, unit="relationship")
    assert learner.certificate_.records == "pairs"
    assert learner.kappa_ == 1
    assert learner.n_pairs_used_ == 599
    assert not hasattr(learner, "n_people_used_")
    assert learner.certificate_.verify()
    with pytest.warns(PrivateNote):
        hidden = fitted(DPPMetricLearner, unit="relationship", y=np.where(GROUPS, 1, 9))
    assert hidden.n_pairs_used_ == 599  # a null person does not change who is paired
    many = fitted(DPPMetricLearner, unit="relationship", classes=(0, 1, 2))
    assert many.certificate_.records == "people"


def test_too_many_columns_for_statistics_go_to_pairs():
    wide = sparse.random(40, MOST_FEATURES + 1, density=0.01, format="csr", random_state=0)
    y = np.arange(40) % 2
    assert fitted(DPPMetricLearner, rows=wide, y=y).certificate_.records == "pairs"
    with pytest.raises(InputError, match="at most 1024 features"):
        fitted(rows=wide, y=y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": GROUPS[:-1]}, "600 people need as many classes"),
        ({"y": np.zeros((600, 2))}, "one class a person"),
        ({"y": None}, "y is missing"),
        ({"classes": [0]}, "at least two"),
        ({"classes": [0, 1, 1]}, "each class once"),
        ({"y": np.zeros(600), "classes": None}, "two classes"),
        ({"ids": np.zeros(600, dtype=int)}, "an id occurs twice"),
        ({"ids": np.array([1, 1.0, *range(2, 600)], dtype=object)}, "an id occurs twice"),
        ({"ids": [1, 2]}, "as many ids"),
        ({"rows": np.full((600, 2), np.nan)}, "NaN"),
        ({"rows": np.empty((0, 3)), "y": []}, "no people|shape"),
        ({"unit": "people"}, "unit must be one of"),
        ({"n_components": 6}, "n_components"),
        ({"epsilon": -1}, "epsilon"),
        ({"data_norm": 0}, "data_norm"),
        ({"backend": "dask"}, "needs a cluster"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(options, message):
    ledger = PrivacyLedger(epsilon=2.0, delta=1e-5, unit="person")
    with pytest.raises(InputError, match=message):
        fitted(accountant=ledger, **options)
    assert ledger.entries == ()


def test_a_threshold_on_private_pairs_is_charged_and_certified():
    learner = fitted(preprocessor=X)
    pairs = np.arange(200).reshape(-1, 2)
    labels = np.where(GROUPS[pairs[:, 0]] == GROUPS[pairs[:, 1]], 1, -1)
    labels[::3] *= -1
    with pytest.raises(InputError, match="release of its own"):
        learner.calibrate_threshold(pairs, labels)
    learner.calibrate_threshold(pairs, labels, epsilon=0.5)
    together = learner.threshold_certificate_
    assert together.verify().problems == ()
    assert together.epsilon > learner.certificate_.epsilon
    assert set(together.costs) == {"people", "pairs"}


def test_clones_warn_and_certify_spends_nothing():
    with pytest.warns(PrivacyLeakWarning, match="clone"):
        clone(StatisticsLearner(random_state=0)).fit_classes(X, GROUPS, (0, 1))
    learner = StatisticsLearner(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        certificate = learner.certify_classes(X, GROUPS, (0, 1))
    assert certificate == learner.fit_classes(X, GROUPS, (0, 1)).certificate_
    assert "classes_" not in vars(StatisticsLearner())
