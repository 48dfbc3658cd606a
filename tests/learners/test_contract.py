"""metric-learn's and scikit-learn's contract, tested once over the registry of learners."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score, get_scorer, make_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from learners import IDS, LEARNERS, chain, people
from pairveil import InputError, PrivacyLeakWarning, PrivacyLedger

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
X, GROUPS = people()
PAIRS, Y = chain(GROUPS)


@pytest.fixture(params=LEARNERS, ids=IDS)
def entry(request):
    return request.param


@pytest.fixture
def fitted(entry):
    return entry.build(preprocessor=X).fit(PAIRS, Y)


def test_distances_follow_from_the_components(fitted):
    L = fitted.components_
    gaps = X[PAIRS[:, 0]] - X[PAIRS[:, 1]]
    wanted = np.linalg.norm(gaps @ L.T, axis=1)
    np.testing.assert_allclose(fitted.pair_distance(PAIRS), wanted)
    np.testing.assert_allclose(fitted.pair_distance(X[PAIRS]), wanted)
    np.testing.assert_allclose(fitted.pair_score(PAIRS), -wanted)
    np.testing.assert_allclose(fitted.decision_function(PAIRS), -wanted)
    np.testing.assert_allclose(fitted.transform(X), X @ L.T)
    np.testing.assert_allclose(fitted.transform(np.arange(5)), X[:5] @ L.T)
    np.testing.assert_allclose(fitted.get_mahalanobis_matrix(), L.T @ L)
    metric = fitted.get_metric()
    assert metric(X[0], X[1]) == pytest.approx(np.linalg.norm(L @ (X[0] - X[1])))
    assert metric(X[0], X[1], squared=True) == pytest.approx(metric(X[0], X[1]) ** 2)


def test_shapes_and_fitted_attributes(entry, fitted):
    assert fitted.n_features_in_ == X.shape[1]
    assert fitted.components_.shape[1] == X.shape[1]
    assert np.all(np.isfinite(fitted.components_))
    if fitted.n_components is not None:
        assert fitted.components_.shape[0] == fitted.n_components
    if entry.private:
        assert fitted.certificate_.epsilon <= fitted.epsilon
        assert fitted.certificate_.verify()
        assert fitted.noise_multiplier_ > 0
        assert fitted.n_pairs_used_ == len(fitted.used_pairs_) <= len(PAIRS)


def test_score_is_the_auc_and_learning_helps(fitted):
    different, same = Y < 0, Y > 0
    distance = fitted.pair_distance(PAIRS)
    wanted = np.mean(distance[different][:, None] > distance[same])
    assert fitted.score(PAIRS, Y) == pytest.approx(wanted, abs=1e-6)
    assert fitted.score(PAIRS, Y) > 0.6  # Euclid has 0.9 here; a metric that lost it all has 0.5


def test_index_pairs_feature_pairs_and_tables_give_the_same_metric(entry):
    by_index = entry.build(preprocessor=X).fit(PAIRS, Y).get_mahalanobis_matrix()
    table = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    frame = pd.DataFrame(PAIRS, columns=["left", "right"])
    by_table = entry.build(preprocessor=table).fit(frame, pd.Series(Y)).get_mahalanobis_matrix()
    np.testing.assert_array_equal(by_index, by_table)
    lookup = entry.build(preprocessor=lambda rows: X[rows]).fit(PAIRS, Y).get_mahalanobis_matrix()
    np.testing.assert_allclose(by_index, lookup, rtol=1e-6, atol=1e-8)
    by_sparse = entry.build(preprocessor=sparse.csr_array(X)).fit(PAIRS, Y)
    # The metric, not its matrix: where directions weigh the same, rounding decides on a rotation.
    # Poisson batches of dense rows are cut to 16 bits before they are added (decisions/0011).
    near = {"rtol": 2e-3, "atol": 1e-3} if "sampled" in entry.name else {"rtol": 1e-4, "atol": 1e-6}
    np.testing.assert_allclose(by_index, by_sparse.get_mahalanobis_matrix(), **near)
    with pytest.warns(PrivacyLeakWarning, match="recognised by equal rows"):
        by_rows = entry.build().fit(X[PAIRS], Y)
    assert by_rows.get_mahalanobis_matrix().shape == by_index.shape


def test_the_same_seed_gives_the_same_metric(entry):
    one, two = (entry.build(preprocessor=X).fit(PAIRS, Y).components_ for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_parameters_are_stored_untouched_and_clone_keeps_them(entry):
    learner = entry.build(preprocessor=X)
    copy = clone(learner)
    assert type(copy) is type(learner)
    for name, value in learner.get_params().items():
        assert np.array_equal(copy.get_params()[name], value)


def test_a_threshold_is_asked_for_before_predicting(entry, fitted):
    if entry.private:
        with pytest.raises(InputError, match="threshold"):
            fitted.predict(PAIRS)
    else:  # nothing is private: metric-learn's fit sets one
        assert set(np.unique(fitted.predict(PAIRS))) == {1, -1}
    fitted.set_threshold(0.5)
    assert set(np.unique(fitted.predict(PAIRS))) <= {1, -1}
    np.testing.assert_array_equal(fitted.predict(PAIRS) == 1, fitted.pair_distance(PAIRS) <= 0.5)
    if entry.private:
        with pytest.raises(InputError, match="release of its own"):
            fitted.calibrate_threshold(PAIRS, Y)
        fitted.calibrate_threshold(PAIRS, Y, public=True)
    else:
        fitted.calibrate_threshold(PAIRS, Y)
    best = max(
        np.mean(np.where(fitted.pair_distance(PAIRS) <= t, 1, -1) == Y)
        for t in fitted.pair_distance(PAIRS)
    )
    assert np.mean(fitted.predict(PAIRS) == Y) == pytest.approx(best)


@pytest.mark.parametrize(
    "params", [{}, {"strategy": "f_beta", "beta": 0.5}, {"strategy": "max_tnr", "min_rate": 0.9}]
)
def test_calibration_params_set_the_threshold_where_nothing_is_private(entry, params):
    learner = entry.build(preprocessor=X)
    if entry.private:
        ledger = PrivacyLedger(100.0, 1e-4, unit=learner.unit, adjacency=learner.adjacency)
        learner.set_params(accountant=ledger)
        with pytest.raises(InputError, match="release of its own, and nothing was spent"):
            learner.fit(PAIRS, Y, calibration_params=params)
        assert len(ledger.entries) == 0
        return
    by_fit = learner.fit(PAIRS, Y, calibration_params=params).threshold_
    assert learner.calibrate_threshold(PAIRS, Y, **params).threshold_ == by_fit


@pytest.mark.parametrize(
    "params", [{"strategy": "best"}, {"strategy": "max_tpr"}, {"beta": "2"}, {"rate": 1}]
)
def test_wrong_calibration_params_are_refused_before_the_fit(entry, params):
    with pytest.raises(InputError):
        entry.build(preprocessor=X).fit(PAIRS, Y, calibration_params=params)


def test_nothing_works_before_fit_and_it_is_said_in_scikit_learns_words(entry):
    learner = entry.build(preprocessor=X)
    for method in (
        "pair_distance",
        "pair_score",
        "score_pairs",
        "decision_function",
        "transform",
        "predict",
    ):
        with pytest.raises(NotFittedError):
            getattr(learner, method)(PAIRS)
    for method in ("get_metric", "get_mahalanobis_matrix"):
        with pytest.raises(NotFittedError):
            getattr(learner, method)()
    with pytest.raises(NotFittedError):
        learner.calibrate_threshold(PAIRS, Y)
    with pytest.raises(NotFittedError):
        learner.set_threshold(1.0)


def test_the_metric_is_a_function_of_two_rows_however_they_are_written(fitted):
    metric = fitted.get_metric()
    a, b = X[0], X[1]
    assert metric(a.tolist(), b.tolist()) == metric(a, b) == metric(a[None], b[None])
    for u, v in ((a[:2], b), (X[:3], X[:3]), ("a", b)):
        with pytest.raises(ValueError):
            metric(u, v)


def test_scikit_learn_takes_it_for_a_classifier_of_pairs(entry, fitted):
    assert is_classifier(fitted)
    fitted.set_threshold(0.5)
    for name in ("roc_auc", "average_precision", "accuracy", "f1"):
        assert 0 <= get_scorer(name)(fitted, PAIRS, Y) <= 1
    tags = get_tags(entry.build())
    assert tags.input_tags.three_d_array
    assert tags.target_tags.required


def test_the_old_name_of_distances(fitted):
    with pytest.warns(FutureWarning, match="pair_distance"):
        old = fitted.score_pairs(PAIRS)
    np.testing.assert_array_equal(old, fitted.pair_distance(PAIRS))


def test_a_clone_has_its_parameters_and_nothing_else(entry):
    copy = clone(entry.build(preprocessor=X))
    assert set(vars(copy)) == set(copy.get_params())


def test_random_states_of_both_kinds(entry):
    one = entry.build(preprocessor=X).set_params(random_state=np.random.RandomState(3))
    two = entry.build(preprocessor=X).set_params(random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(one.fit(PAIRS, Y).components_, two.fit(PAIRS, Y).components_)
    if entry.private:
        assert not one.certificate_.for_release


def test_pickles_hold_no_training_data(entry):
    secret, groups = people(60, 5, seed=9)
    pairs, y = chain(groups)
    learner = entry.build(preprocessor=secret).fit(pairs, y)
    blob = pickle.dumps(learner)
    for row in secret:
        assert row.tobytes() not in blob
        assert row[:1].tobytes() not in blob
    back = pickle.loads(blob)
    np.testing.assert_array_equal(back.components_, learner.components_)
    with pytest.raises(InputError, match="preprocessor"):
        back.pair_distance(pairs)
    named = entry.build(preprocessor=secret, bounds={"used_by": (0, 1)})
    named.components_ = learner.components_
    assert pickle.loads(pickle.dumps(named)).bounds == named.bounds  # a column may be called so
    # The check can fail: an unfitted learner, as sent to workers, does carry its features.
    assert secret[0].tobytes() in pickle.dumps(entry.build(preprocessor=secret))


def test_nothing_private_is_printed(entry):
    learner = entry.build(preprocessor=X)
    pipeline = make_pipeline(FunctionTransformer(), learner)
    inside = [pipeline, GridSearchCV(learner, {}), GridSearchCV(make_pipeline(pipeline), {})]
    shown = [repr(learner), *(text for one in inside for text in (repr(one), one._repr_html_()))]
    for text in [*shown, learner._repr_html_()]:
        assert f"{X[0, 0]:.3f}"[1:] not in text
        assert "features>" in text or "features&gt;" in text
    assert learner.get_params()["preprocessor"] is X
    fitted = learner.fit(PAIRS, Y)._repr_html_()
    assert "used_pairs_" not in fitted


def test_works_in_pipelines(entry):
    pipeline = Pipeline([("same", FunctionTransformer()), ("metric", entry.build(preprocessor=X))])
    assert pipeline.fit(PAIRS, Y).score(PAIRS, Y) > 0.6
    released = entry.build(preprocessor=X).fit(PAIRS, Y)
    knn = make_pipeline(FunctionTransformer(released.transform), KNeighborsClassifier(3))
    assert knn.fit(X, GROUPS).score(X, GROUPS) > 0.6


def test_set_output_gives_tables(fitted):
    out = fitted.set_output(transform="pandas").transform(X)
    assert isinstance(out, pd.DataFrame)
    assert out.shape == (len(X), fitted.components_.shape[0])


def test_cross_validation_warns_unless_a_ledger_is_given(entry, tmp_path):
    learner = entry.build(preprocessor=X)
    if not entry.private:
        assert len(cross_val_score(learner, PAIRS, Y, cv=3)) == 3
        return
    with pytest.warns(PrivacyLeakWarning, match="PrivacyLedger"):
        cross_val_score(learner, PAIRS, Y, cv=3)
    unit, adjacency = learner.unit, learner.adjacency
    ledger = PrivacyLedger(100.0, 1e-4, path=tmp_path / "l.json", unit=unit, adjacency=adjacency)
    learner = entry.build(preprocessor=X, accountant=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        cross_val_score(learner, PAIRS, Y, cv=3, n_jobs=2)
    assert len(ledger.entries) == 3


def test_grid_search_works_and_is_charged(entry):
    grid = {"n_components": [1, 2]}
    if not entry.private:
        search = GridSearchCV(entry.build(preprocessor=X), grid, cv=2).fit(PAIRS, Y)
        assert search.best_params_["n_components"] in (1, 2)
        return
    template = entry.build(preprocessor=X)
    ledger = PrivacyLedger(200.0, 1e-4, unit=template.unit, adjacency=template.adjacency)
    GridSearchCV(entry.build(preprocessor=X, accountant=ledger), grid, cv=2).fit(PAIRS, Y)
    assert len(ledger.entries) == 5  # 2 candidates x 2 folds, and the refit


def _share_right(learner, pairs, y):
    return float((learner.predict(pairs) == y).mean())


def _guessed(learner, pairs):
    return learner.predict(pairs)


def _hidden(learner, pairs, y):
    """Its own code does not name what it asks for."""
    return float((_guessed(learner, pairs) == y).mean())


def _by_own_threshold(learner, pairs, y):
    learner.set_threshold(0.3)
    return float((learner.predict(pairs) == y).mean())


def _ranked(learner, pairs, y):
    return roc_auc_score(y, learner.decision_function(pairs))


@pytest.mark.parametrize(
    "scoring",
    [
        "accuracy", ["roc_auc", "f1"], _share_right, _hidden, make_scorer(f1_score), "neg_log_loss",
        {"own": _hidden},
    ],
)  # fmt: skip
def test_a_search_by_predictions_is_refused_before_it_spends(entry, scoring):
    """predict needs a threshold that no fold has: every score would be nan, and every fit paid for."""
    template = entry.build(preprocessor=X)
    if not entry.private:
        assert np.isfinite(cross_val_score(template, PAIRS, Y, cv=2, scoring="accuracy")).all()
        return
    ledger = PrivacyLedger(200.0, 1e-4, unit=template.unit, adjacency=template.adjacency)
    learner = entry.build(preprocessor=X, accountant=ledger)
    search = GridSearchCV(learner, {"n_components": [1, 2]}, cv=2, scoring=scoring, refit=False)
    with pytest.raises(InputError, match="score by 'roc_auc'"):
        search.fit(PAIRS, Y)
    with pytest.raises(InputError, match="Nothing was spent"):
        cross_validate(learner, PAIRS, Y, cv=2, scoring=scoring)
    assert ledger.entries == ()
    cross_validate(learner, PAIRS, Y, cv=2, scoring="roc_auc")
    for passing in (_ranked, _by_own_threshold):
        found = cross_validate(learner, PAIRS, Y, cv=2, scoring=passing)
        assert np.isfinite(found["test_score"]).all()
    assert len(ledger.entries) == 6


@pytest.mark.parametrize(
    "spend",
    [
        lambda one: learning_curve(one, PAIRS, Y, cv=2, scoring="f1"),
        lambda one: permutation_test_score(one, PAIRS, Y, cv=2, scoring="accuracy"),
        lambda one: validation_curve(
            one, PAIRS, Y, param_name="delta", param_range=[1e-5, 1e-6], cv=2, scoring="accuracy"
        ),
        lambda one: cross_val_predict(one, PAIRS, Y, cv=2),
    ],
)
def test_curves_and_predictions_of_folds_are_refused_before_they_spend(entry, spend):
    if not entry.private:
        pytest.skip("nothing is spent")
    template = entry.build(preprocessor=X)
    ledger = PrivacyLedger(200.0, 1e-4, unit=template.unit, adjacency=template.adjacency)
    with pytest.raises(InputError, match="Nothing was spent"):
        spend(entry.build(preprocessor=X, accountant=ledger))
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("pairs", "y", "message"),
    [
        (np.zeros((0, 2), dtype=int), [], "no pairs"),
        ([[0, 0]], [1], "herself"),
        ([[0, 999]], [1], "outside"),
        ([[0, -1]], [1], "outside"),
        ([[0.5, 1.0]], [1], "integer"),
        ([[0, 1]], [0], "\\+1"),
        ([[0, 1]], [1, 1], "one label"),
        ([[0, 1]], None, "y is missing"),
        ([0, 1], [1], "shape"),
    ],
)
def test_bad_input_is_refused_in_words(entry, pairs, y, message):
    with pytest.raises(InputError, match=message):
        entry.build(preprocessor=X).fit(np.asarray(pairs), y)


def test_not_finite_features_are_refused_without_being_shown(entry):
    for bad in (np.nan, np.inf):
        table = X.copy()
        table[3, 2] = bad
        with pytest.raises(InputError, match=r"finite|NaN|nan") as caught:
            entry.build(preprocessor=table).fit(PAIRS, Y)
        assert f"{X[0, 0]:.4f}" not in str(caught.value)


def test_one_label_only_warns(entry):
    """Without noise it is said; with it only the released count may say so, so often it is not."""
    for label in (1, -1):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            learner = entry.build(preprocessor=X).fit(PAIRS, np.full(len(PAIRS), label))
        assert np.all(np.isfinite(learner.components_))
        said = any("same label" in str(warning.message) for warning in caught)
        assert said or entry.private


def test_people_with_equal_features_are_handled(entry):
    twins = X.copy()
    twins[PAIRS[:40].ravel()] = X[0]
    learner = entry.build(preprocessor=twins).fit(PAIRS, Y)
    assert np.all(np.isfinite(learner.components_))
    same = np.repeat(X[:1], 2, axis=0)[None]
    with pytest.warns(PrivacyLeakWarning):
        entry.build().fit(np.concatenate([X[PAIRS], same]), np.append(Y, 1))


def test_too_many_components_are_refused(entry):
    with pytest.raises(InputError, match="n_components"):
        entry.build(preprocessor=X).set_params(n_components=6).fit(PAIRS, Y)
