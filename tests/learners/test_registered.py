"""What holds for every private learner of pairs in the registry, and for the one that the guide makes."""

from __future__ import annotations

import importlib
import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from learners import chain, people
from pairveil import BudgetError, InputError, PairSet, PrivacyLedger
from pairveil.audit import audit_exactly
from pairveil.audit.targets import KAPPA, canary_of_pairs
from pairveil.learners import LEARNERS, learner_class
from pairveil.learners.estimator import PrivateMetricLearner

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "new-learner.md"
X, GROUPS = people(40, 4)
PAIRS, Y = chain(GROUPS)
QUICK = {"contrastive": {"n_steps": 5}}


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    """The module that the guide shows."""
    folder = tmp_path_factory.mktemp("guide")
    text = GUIDE.read_text(encoding="utf-8")
    (folder / "diagonal.py").write_text(
        re.search(r'^```python title="diagonal.py"\n(.*?)^```', text, re.M | re.S)[1]
    )
    sys.path.insert(0, str(folder))
    yield importlib.import_module("diagonal")
    sys.path.remove(str(folder))
    del sys.modules["diagonal"]


# Those that learn from choices, tuples and links have contracts of their own.
OF_PAIRS = [name for name in LEARNERS if "pairs" in learner_class(name).learns_from]


@pytest.fixture(params=[*OF_PAIRS, "guide"])
def build(request, guide):
    """Makes the learner, quick to fit, from further parameters."""
    name = request.param
    kind = guide.DiagonalLearner if name == "guide" else learner_class(name)
    fixed = {"epsilon": 8.0, "delta": 1e-4, **QUICK.get(name, {})}
    return lambda **more: kind(**{**fixed, "preprocessor": X, **more})


def test_the_dry_run_is_the_fit_and_both_verify(build):
    learner = build(random_state=0)
    planned = learner.certify(PAIRS, Y)
    assert learner.fit(PAIRS, Y).certificate_ == planned
    assert planned.epsilon <= 8.0
    assert planned.verify().problems == ()
    assert planned.for_release is False
    assert build().certify(PAIRS, Y).for_release is True


def test_parameters_are_known_to_scikit_learn(build):
    learner = build(random_state=3, unit="pair")
    assert {"epsilon", "unit", "preprocessor"} <= learner.get_params().keys()
    copy = clone(learner)
    assert copy.get_params(deep=False).keys() == learner.get_params(deep=False).keys()
    assert (copy.unit, copy.random_state) == ("pair", 3)
    assert "unit='pair'" in repr(copy)
    with pytest.raises(TypeError, match="unknown"):
        build(unknown=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0}, {"delta": 1}, {"unit": "household"}, {"select": "some"}, {"kappa": 0},
        {"adjacency": "add"}, {"mechanism": "none"}, {"data_norm": -1}, {"accountant": 1},
        {"backend": "spark"},
    ],
    ids=str,
)  # fmt: skip
def test_what_makes_no_sense_is_refused_before_anything_is_spent(build, wrong):
    ledger = PrivacyLedger(epsilon=20.0, delta=1e-3)
    with pytest.raises(InputError, match=next(iter(wrong))):
        build(**{"accountant": ledger, **wrong}).fit(PAIRS, Y)
    assert ledger.entries == ()


def test_a_ledger_is_charged_once_for_a_fit_that_was_killed(build, tmp_path):
    file = tmp_path / "fit.checkpoint"
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-3)
    learner = build(accountant=ledger)

    def kill(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.fit(PAIRS, Y, checkpoint=file, on_answer=kill)
    assert file.exists()
    seen = []
    learner.fit(PAIRS, Y, checkpoint=file, on_answer=lambda *answer: seen.append(answer[0].name))
    assert len(ledger.entries) == 1
    assert len(seen) == sum(query["steps"] for query in learner.certificate_.plan["releases"])
    assert not file.exists()
    with pytest.raises(BudgetError):  # of another learner rows may be other people: that costs more
        build(accountant=ledger).fit(PAIRS, Y)


def test_the_order_of_the_pairs_changes_nothing(build):
    order = np.random.default_rng(0).permutation(len(Y))
    one, two = (
        build(random_state=0, select="all").fit(PAIRS[rows], Y[rows]).components_
        for rows in (np.arange(len(Y)), order)
    )
    np.testing.assert_array_equal(one, two)


def test_pairs_without_a_difference_change_no_answer(build):
    """Null contents are what zero-out compares with: whatever their label, they contribute nothing."""
    twins = X.copy()
    twins[PAIRS[-1, 1]] = twins[PAIRS[-1, 0]]
    answers = []
    for label in (1, -1):
        labels = np.append(Y[:-1], label)
        build(random_state=0, select="all", epsilon=float("inf"), preprocessor=twins).fit(
            PAIRS, labels, on_answer=lambda *answer: answers.append(answer[2])
        )
    half = len(answers) // 2
    for one, two in zip(answers[:half], answers[half:], strict=True):
        np.testing.assert_array_equal(one, two)


def test_sparse_rows_give_the_same_metric(build):
    dense, thin = (
        build(random_state=0, preprocessor=rows).fit(PAIRS, Y).get_mahalanobis_matrix()
        for rows in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(dense, thin, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize(("unit", "kappa"), list(KAPPA.items()))
def test_no_query_moves_further_than_is_charged(build, unit, kappa, adjacency, mechanism):
    learner = build(unit=unit, adjacency=adjacency, mechanism=mechanism, epsilon=1.0, delta=1e-5)
    canary = canary_of_pairs(learner, kappa, n_features=3)
    found = audit_exactly(learner, canary=canary)
    assert found.verdict == "consistent"
    assert max(query.ratio for query in found.queries) > 0.5


def test_a_threshold_on_private_pairs_is_charged_or_refused(build):
    learner = build(random_state=0).fit(PAIRS, Y)
    if not isinstance(learner, PrivateMetricLearner):
        pytest.skip("makes no metric")
    with pytest.raises(InputError, match="release of its own"):
        learner.calibrate_threshold(PAIRS, Y)
    assert learner.calibrate_threshold(PAIRS, Y, epsilon=0.5).threshold_certificate_.verify()


def test_a_learner_that_forgets_to_clip_is_convicted(guide, monkeypatch):
    honest = guide.ColumnShares.tile_sum
    monkeypatch.setattr(guide.ColumnShares, "tile_sum", lambda *given: 1.1 * honest(*given))
    assert audit_exactly(guide.DiagonalLearner(unit="pair")).verdict == "violated"


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_learner_that_bounds_each_column_alone_is_convicted(guide, monkeypatch, mechanism):
    """Along the first column this is right; only a canary along several shows it."""

    def careless(self, differences, labels, norm):
        differ = (np.abs(differences) > 0.01).astype(float)
        return (differ.T @ np.column_stack([labels > 0, labels < 0])).T

    monkeypatch.setattr(guide.ColumnShares, "tile_sum", careless)
    found = audit_exactly(guide.DiagonalLearner(unit="pair", mechanism=mechanism), n_features=5)
    assert found.verdict == "violated"
    assert found.queries[0].ratio == pytest.approx(5**0.5 if mechanism == "gaussian" else 5.0)


def test_a_learner_whose_records_influence_one_another_is_refused(guide, monkeypatch):
    honest = guide.ColumnShares.tile_sum
    monkeypatch.setattr(
        guide.ColumnShares,
        "tile_sum",
        lambda self, rows, *rest: honest(self, rows - rows.mean(axis=0), *rest),
    )
    with pytest.raises(InputError, match="no sum over records"):
        audit_exactly(guide.DiagonalLearner(unit="pair"), n_features=5)


def by_the_longest(rows, labels, _):
    """Clipped after everybody was scaled by the longest: alone among null pairs a canary is right."""
    lengths = np.linalg.norm(rows, axis=1)
    return (rows.T @ np.column_stack([labels > 0, labels < 0])).T / max(lengths.max(), 1e-9)


def null_pairs_too(_, labels, __):
    """A count by label, also of two equal people: against such a pair it moves by the root of two."""
    return np.outer([np.sum(labels > 0), np.sum(labels < 0)], np.eye(5)[0]).astype(float)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [(by_the_longest, "no sum over records"), (null_pairs_too, "two equal people")],
)
def test_what_a_canary_alone_does_not_show_is_refused(guide, monkeypatch, wrong, words):
    monkeypatch.setattr(guide.ColumnShares, "tile_sum", lambda _, *given: wrong(*given))
    with pytest.raises(InputError, match=words):
        audit_exactly(guide.DiagonalLearner(unit="pair"), n_features=5)


def test_a_query_that_was_not_planned_says_so(build):
    with pytest.raises(InputError, match="the plan has no query 'other'"):
        build().prepare(PAIRS, Y).plan["other"]


def test_the_guides_own_parameter_is_checked(guide):
    data = PairSet(X, PAIRS, Y)
    with pytest.raises(InputError, match="largest must be at least 1"):
        guide.DiagonalLearner(largest=0.5).fit(data)
    assert guide.DiagonalLearner(largest=np.float32(2), epsilon=8.0).fit(data).kappa_ == 1


@pytest.mark.parametrize(
    ("name", "said"),
    {
        "triplets": "contrastive",
        "no.such.module:Learner": "cannot be imported",
        "pairveil.learners.tuples:Nothing": "has no class 'Nothing'",
        "pairveil.learners.tuples:NUMBERS": "is no learner",
        "collections:Counter": "is no learner",
    }.items(),
)
def test_what_is_no_learner_is_refused_by_name(name, said):
    with pytest.raises(InputError, match=said):
        learner_class(name)


def test_a_learner_from_outside_needs_its_class_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "their_learner.py").write_text(
        "from pairveil import DPPMetricLearner\nclass Theirs(DPPMetricLearner):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    assert learner_class("their_learner:Theirs").__name__ == "Theirs"


def test_an_installed_package_registers_its_learner(monkeypatch):
    point = EntryPoint("theirs", "pairveil.learners.tuples:DPPTripletLearner", "pairveil.learners")
    ours = EntryPoint("ranking", "pairveil.learners.tuples:DPPTripletLearner", "pairveil.learners")
    monkeypatch.setattr("pairveil.learners.entry_points", lambda group: [point, ours])
    assert learner_class("theirs").__name__ == "DPPTripletLearner"
    assert learner_class("ranking").__name__ == "PrivatePreferenceRanker"
