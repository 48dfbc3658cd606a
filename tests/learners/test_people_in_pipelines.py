"""What scikit-learn's users write: pipelines over people, people named by text, parameters by name."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import pairveil
from pairveil import (
    BudgetError,
    DPPMetricLearner,
    DPPTripletLearner,
    InputError,
    PrivacyLeakWarning,
    PrivacyLedger,
    PrivateConstrainedKMeans,
    design_pairs,
    kappa,
    sample_tuples,
    select_pairs,
)
from pairveil.learners import LEARNERS
from pairveil.learners.base import PrivateLearner, _parameters_of

RNG = np.random.default_rng(0)
N = 400
Y = RNG.integers(0, 2, N)
X = RNG.normal(size=(N, 4)) / 8
X[:, 0] += 0.4 * Y
WORDS = np.array(["benign", "malignant"])[Y]
CLASSES = ["benign", "malignant"]
IDS = np.array([f"p{i:03}" for i in range(N)])
PAIRS = design_pairs(N, random_state=0)
LABELS = np.where(Y[PAIRS[:, 0]] == Y[PAIRS[:, 1]], 1, -1)
FRAME = pd.DataFrame(X, index=IDS, columns=list("abcd"))


def learner(**more):
    return DPPMetricLearner(**({"epsilon": 8.0, "unit": "person", "random_state": 0} | more))


# ---- a pipeline over people ------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [8.0, float("inf")])
@pytest.mark.parametrize("unit", ["person", "relationship"])  # learned from people, and from pairs
def test_fit_takes_people_with_classes_where_classes_are_given(unit, epsilon):
    by_fit = learner(unit=unit, epsilon=epsilon, classes=CLASSES).fit(X, WORDS)
    same = learner(unit=unit, epsilon=epsilon).fit_classes(X, WORDS, CLASSES)
    np.testing.assert_array_equal(by_fit.components_, same.components_)
    assert by_fit.certificate_ == same.certificate_
    assert by_fit.classes_ == same.classes_


def test_a_pipeline_over_people_learns_a_private_metric_and_classifies():
    model = make_pipeline(learner(classes=CLASSES), KNeighborsClassifier()).fit(X, WORDS)
    fitted = model[0]
    assert fitted.certificate_.records == "people"
    assert model.score(X, WORDS) > 0.95
    np.testing.assert_array_equal(fitted.transform(X) @ np.eye(4), X @ fitted.components_.T)


def test_a_search_over_epsilon_warns_of_what_it_spends_and_charges_a_ledger():
    model = make_pipeline(learner(classes=CLASSES), KNeighborsClassifier())
    grid = {"dppmetriclearner__epsilon": [1.0, 8.0]}
    search = GridSearchCV(model, grid, cv=2, scoring="accuracy", error_score="raise")
    with pytest.warns(PrivacyLeakWarning, match="every fit spends its own epsilon"):
        search.fit(X, WORDS)
    assert search.best_params_["dppmetriclearner__epsilon"] in (1.0, 8.0)
    ledger = PrivacyLedger(10.0, 1e-5)
    model.set_params(dppmetriclearner__accountant=ledger)
    with pytest.raises(BudgetError):
        search.fit(X, WORDS)
    assert ledger.entries


def test_without_classes_people_are_refused_and_told_where_to_go():
    with pytest.raises(InputError, match=r"fit_classes\(X, y, classes\).*classes=\[\.\.\.\]"):
        learner().fit(X, Y)
    with pytest.raises(InputError, match=r"DPPMetricLearner\(classes=\[\.\.\.\]\)"):
        make_pipeline(learner(), KNeighborsClassifier()).fit(X, Y)


def test_pairs_stay_pairs_where_classes_are_given():
    data = pairveil.PairSet(X, PAIRS, LABELS)
    assert learner(classes=CLASSES).fit(data).certificate_.records == "pairs"


def test_fit_does_not_ask_for_a_class_that_nobody_stated():
    with pytest.raises(InputError, match="y is missing"):
        learner(classes=CLASSES).fit(X)


# ---- people named by text --------------------------------------------------------------------------


@pytest.mark.parametrize("as_given", [np.asarray, lambda a: pd.MultiIndex.from_arrays(a.T), list])
def test_text_names_people_everywhere(as_given):
    named = as_given(IDS[PAIRS])
    assert kappa(named) == kappa(PAIRS)
    kept = select_pairs(named, "matching", random_state=0)
    np.testing.assert_array_equal(kept, select_pairs(PAIRS, "matching", random_state=0))
    by_name = learner(preprocessor=FRAME).fit(named, LABELS)
    by_row = learner(preprocessor=FRAME).fit(PAIRS, LABELS)
    np.testing.assert_array_equal(by_name.components_, by_row.components_)
    np.testing.assert_array_equal(by_name.pair_distance(named), by_row.pair_distance(PAIRS))


def test_kappa_says_whose_number_is_whose():
    found = kappa([["cy", "ann"], ["cy", "bob"], ["bob", "ann"]])
    assert list(found.people) == ["ann", "bob", "cy"]
    assert found.per_person.tolist() == [2, 2, 2]


def test_people_and_tuples_are_named_by_text():
    fitted = learner(preprocessor=FRAME).fit(PAIRS, LABELS)
    np.testing.assert_array_equal(fitted.transform(IDS[:3]), fitted.transform(FRAME.iloc[:3]))
    with pytest.raises(InputError, match="1 of 2 rows name an id without features"):
        fitted.transform(["p000", "nobody"])
    tuples = sample_tuples(N, 3, random_state=0)
    made = [
        DPPTripletLearner(epsilon=8.0, unit="person", preprocessor=FRAME, random_state=0).fit(one)
        for one in (tuples, IDS[tuples])
    ]
    np.testing.assert_array_equal(made[0].components_, made[1].components_)
    with pytest.raises(InputError, match="tuples name people by text, but preprocessor does not"):
        DPPTripletLearner(preprocessor=X).fit(IDS[tuples])


def test_links_of_a_clustering_are_named_by_text():
    some = LABELS > 0
    made = [
        PrivateConstrainedKMeans(2, epsilon=8.0, spectral=False, random_state=0).fit(
            FRAME, ml=named[some], cl=named[~some]
        )
        for named in (PAIRS, IDS[PAIRS])
    ]
    np.testing.assert_array_equal(made[0].labels_, made[1].labels_)
    with pytest.raises(InputError, match="pairs name people by text, but X does not"):
        PrivateConstrainedKMeans(2).fit(X, ml=IDS[PAIRS])


# ---- bounds and parameters -------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [[(-1, 1)] * 4, np.array([[-1.0, 1.0]] * 4)])
def test_bounds_of_an_array_are_listed_in_the_order_of_its_columns(bounds):
    by_list = learner(preprocessor=X, bounds=bounds).fit(PAIRS, LABELS)
    by_name = learner(preprocessor=FRAME, bounds=dict.fromkeys("abcd", (-1, 1))).fit(PAIRS, LABELS)
    np.testing.assert_array_equal(by_list.components_, by_name.components_)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ([(-1, 1)] * 3, "3.*4|4.*3"),
        ([(-1, 1), (0, 1, 2)], r"column 2 must be \(lower, upper\)"),
        ([1, 2], r"column 1 must be \(lower, upper\)"),
        ([(1, -1)] * 4, "lower < upper"),
    ],
)
def test_bounds_that_cannot_be_are_refused(bounds, said):
    with pytest.raises(InputError, match=said):
        learner(preprocessor=X, bounds=bounds).fit(PAIRS, LABELS)


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_every_parameter_is_seen_by_completion(name):
    kind = pairveil.learners.learner_class(name)
    shown = inspect.signature(kind).parameters
    assert "epsilon" in shown
    assert all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in shown.values())
    assert set(shown) == set(kind().get_params())
    told = inspect.getdoc(kind)
    assert "**common" not in told
    assert all(f"\n{one}" in told or f", {one}" in told for one in shown), "help() leaves one out"


def test_a_learner_of_ones_own_shows_the_common_parameters():
    class Own(PrivateLearner):
        def __init__(self, ridge=1.0, **common):
            super().__init__(**common)
            self.ridge = ridge

    assert list(inspect.signature(Own).parameters)[:2] == ["ridge", "epsilon"]
    assert set(_parameters_of(Own)) == set(Own().get_params())


# ---- types -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_readme_passes_a_strict_type_checker(tmp_path):
    """Whoever copies the README into a module: nothing is imported by a name that mypy does not know."""
    pytest.importorskip("mypy")
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    code = [line[4:] for line in readme.splitlines() if line.startswith((">>> ", "... "))]
    assert any("certificate.epsilon" in line for line in code)
    file = tmp_path / "copied.py"
    more = "DPPTripletLearner(epsilon=2.0, margin=1.0).fit([[0, 1, 2]]).certificate_.epsilon"
    file.write_text("\n".join([*code, "from pairveil import DPPTripletLearner", more, ""]))
    path = {"MYPYPATH": str(Path(pairveil.__file__).parents[1])}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports=silent",
            "--no-error-summary",
            file.name,
        ],
        cwd=tmp_path,
        env=os.environ | path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout + done.stderr == ""
