"""What holds for every learner of tuples in the registry: certificate, ledger, audit, bad input."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone

from learners import people
from pairveil import (
    BudgetError,
    DPPTripletLearner,
    DPPTupletLearner,
    InputError,
    PairSet,
    PrivacyLedger,
    TupleSet,
    sample_tuples,
)
from pairveil.audit import audit_exactly
from pairveil.audit.canaries import canary_of_tuples, tuple_canary
from pairveil.engine.gradients import SetGradient
from pairveil.errors import PrivateNote
from pairveil.learners import LEARNERS, learner_class
from pairveil.learners import preparing as records
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.units import WORDS
from pairveil.report.data import MetricShape, ReportData
from pairveil.report.page import render

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
X, GROUPS = people(600, 4)
OF_TUPLES = [name for name in LEARNERS if "tuples" in learner_class(name).learns_from]
ASKED = {
    "triplet": sample_tuples(600, 3, 2, random_state=0),
    "tuplet": sample_tuples(600, 5, 2, random_state=0),
}
INF = float("inf")


@pytest.fixture(params=OF_TUPLES)
def name(request):
    return request.param


@pytest.fixture
def build(name):
    """Makes the learner, quick to fit, from further parameters."""
    fixed = {"epsilon": 8.0, "delta": 1e-4, "n_steps": 3, "select": "all"}
    return lambda **more: learner_class(name)(**{**fixed, **more})


@pytest.fixture
def data(name):
    return TupleSet.of_classes(X, ASKED[name], GROUPS)


def test_both_are_registered():
    assert {"triplet", "tuplet"} <= set(OF_TUPLES)


@pytest.mark.parametrize("unit", ["pair", "relationship", "person"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_dry_run_is_the_fit_and_both_verify(build, data, unit, adjacency, mechanism):
    learner = build(random_state=0, unit=unit, adjacency=adjacency, mechanism=mechanism)
    planned = learner.certify(data)
    assert learner.fit(data).certificate_ == planned
    assert planned.epsilon <= 8.0
    assert planned.verify().problems == ()
    assert planned.records == "tuples"
    assert Certificate.from_json(planned.to_json()) == planned
    assert planned.n_pairs_used == data.n_records
    assert learner.kappa_ == planned.kappa
    assert planned.kappas["pair"] <= planned.kappas["relationship"] <= planned.kappas["person"] <= 2


def test_a_release_has_exact_noise_and_is_for_release(build, data):
    learner = build().fit(data)
    assert learner.certificate_.for_release
    assert learner.certificate_.verify()
    assert learner.n_tuples_used_ == data.n_records
    assert not hasattr(learner, "n_pairs_used_")
    said = learner.certificate_.promise() + " ".join(learner.certificate_.public)
    assert "used tuples" in said
    assert "paired" not in said
    assert "used_tuples_" not in pickle.loads(pickle.dumps(learner)).__dict__


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["costs"]["tuples"]["person"].update(replace=1.0),
        lambda c: c["costs"]["tuples"]["person"].update(records=1),
        lambda c: c["costs"]["tuples"]["pair"].update(records=3),
        lambda c: c.update(public=c["public"][1:]),
    ],
)
def test_a_lie_about_tuples_is_found(build, data, change):
    told = json.loads(build(random_state=0).certify(data).to_json())
    assert Certificate.from_dict(told).verify()
    change(told)
    assert not Certificate.from_dict(told).verify()


def test_dropped_tuples_are_said_with_their_own_caveat(build, data):
    learner = build(select="matching", unit="person", random_state=0).fit(data)
    said = learner.certificate_
    assert said.kappas == {"pair": 1, "relationship": 1, "person": 1}
    assert "tuples" in said.selection["caveat"]
    assert said.verify().problems == ()
    assert learner.used_tuples_.tolist() == sorted(set(learner.used_tuples_.tolist()))
    told = json.loads(said.to_json())
    told["selection"]["caveat"] = None
    assert not Certificate.from_dict(told).verify()


def test_the_caveat_is_the_kinds_own(build, data, monkeypatch):
    """A new kind words it in its own table, and a certificate with other words would not verify."""
    monkeypatch.setitem(WORDS, "tuples", replace(WORDS["tuples"], dropped="Some are left out"))
    said = build(select="matching", unit="person", random_state=0).certify(data)
    assert said.selection["caveat"] == "Some are left out"
    assert said.verify().problems == ()


def test_the_metric_finds_the_column_that_tells_the_groups(build, data):
    learner = build(n_steps="auto", random_state=0, unit="person").fit(data)
    weights = (learner.components_**2).sum(axis=0)
    assert weights[0] > 2 * weights[1:].max()
    assert build(n_components=2, random_state=0).fit(data).components_.shape == (2, 4)


def test_without_noise_it_is_no_worse_than_with_noise(build, data):
    pairs = np.column_stack([np.arange(599), np.arange(1, 600)])[::3]
    far = np.column_stack([np.arange(598), np.arange(2, 600)])[::3]
    pairs, y = np.concatenate([pairs, far]), np.repeat([-1, 1], [len(pairs), len(far)])
    scores = [
        build(n_steps="auto", epsilon=e, random_state=0, preprocessor=X).fit(data).score(pairs, y)
        for e in (INF, 8.0)
    ]
    assert scores[0] > scores[1] - 0.01


def test_a_ledger_is_charged_once_for_a_fit_that_was_killed(build, data, tmp_path):
    file, ledger = (
        tmp_path / "fit.checkpoint",
        PrivacyLedger(epsilon=9.0, delta=1e-3, unit="person"),
    )
    learner = build(accountant=ledger, unit="person")

    def kill(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.fit(data, checkpoint=file, on_answer=kill)
    seen = []
    learner.fit(data, checkpoint=file, on_answer=lambda *answer: seen.append(answer[0].name))
    assert len(ledger.entries) == 1
    assert ledger.entries[0].note == f"fit of {data.n_records} tuples"
    assert len(seen) == 5
    assert not file.exists()
    with pytest.raises(BudgetError):
        learner.fit(data)


def test_a_checkpoint_of_other_tuples_is_refused(build, data, tmp_path):
    file = tmp_path / "fit.checkpoint"

    def kill(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build().fit(data, checkpoint=file, on_answer=kill)
    other = TupleSet(X, sample_tuples(600, data.size, 2, random_state=1)[: data.n_records])
    with pytest.raises(InputError, match="checkpoint"):
        build().fit(other, checkpoint=file)


def test_order_of_rows_and_of_members_changes_nothing(build, data):
    rng = np.random.default_rng(0)
    rows = rng.permutation(data.n_records)
    columns = np.array([rng.permutation(data.size) for _ in rows])
    members = np.take_along_axis(data.tuples[rows], columns, axis=1)
    place = np.argsort(columns, axis=1)
    order = np.where(
        data.order[rows] < 0, -1, np.take_along_axis(place, np.maximum(data.order[rows], 0), axis=1)
    )
    other = TupleSet(X, members, order)
    one, two = (build(random_state=0).fit(d).components_ for d in (data, other))
    np.testing.assert_array_equal(one, two)


def test_indices_and_answers_are_taken_with_a_preprocessor(build, data):
    asked, m = data.tuples, data.size
    y = 1 + np.arange(len(asked)) % (m - 1)
    learner = build(random_state=0, preprocessor=X)
    given = learner.fit(asked, y).components_
    turned = np.array(
        [[row[0], row[a], *np.delete(row, [0, a])] for row, a in zip(asked, y, strict=True)]
    )
    np.testing.assert_array_equal(given, learner.fit(turned).components_)
    np.testing.assert_array_equal(
        given, build(random_state=0, preprocessor=lambda i: X[i]).fit(asked, y).components_
    )
    thin = build(random_state=0, preprocessor=sparse.csr_array(X)).fit(asked, y).components_
    np.testing.assert_allclose(thin, given, atol=1e-9)
    with pytest.warns(PrivateNote, match="2 answers name no column"):
        learner.fit(asked, np.where(np.arange(len(y)) < 2, 0, y))


def test_null_tuples_change_no_answer(build, data):
    """Whatever features the members of null tuples have, no sum sees them."""
    null = np.arange(data.n_records) < data.n_records // 2
    alone = np.setdiff1d(data.tuples[null], data.tuples[~null])
    elsewhere = X.copy()
    elsewhere[alone] = 0.3
    answers = []
    for rows in (X, elsewhere):
        build(random_state=0, epsilon=INF).fit(
            data.with_features(rows).emptied(null),
            on_answer=lambda *answer: answers.append(answer[2]),
        )
    half = len(answers) // 2
    for one, two in zip(answers[:half], answers[half:], strict=True):
        np.testing.assert_array_equal(one, two)
    build(random_state=0).fit(data.emptied(np.ones_like(null)))  # all null: still a fit


def audit_tuples(learner, name, kappa=1):
    size = ASKED[name].shape[1]
    return audit_exactly(learner, canary=canary_of_tuples(learner, kappa, 3, size))


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize(("unit", "kappa"), [("pair", 1), ("relationship", 2), ("person", 3)])
def test_no_query_moves_further_than_is_charged(name, build, unit, kappa, adjacency, mechanism):
    learner = build(unit=unit, adjacency=adjacency, mechanism=mechanism, epsilon=1.0, delta=1e-5)
    found = audit_tuples(learner, name, kappa)
    assert found.verdict == "consistent"
    assert found.kappa == kappa
    assert max(query.ratio for query in found.queries) > 0.6


def test_it_is_audited_by_its_name_as_every_learner_is(name):
    assert audit_exactly(name).verdict == "consistent"


def test_an_implementation_that_charges_a_person_for_one_tuple_is_convicted(
    build, name, monkeypatch
):
    honest = records.kappa_of_tuples

    def lying(tuples):
        found = honest(tuples)
        object.__setattr__(found, "person", 1)
        return found

    monkeypatch.setattr(records, "kappa_of_tuples", lying)
    assert audit_tuples(build(unit="person"), name, kappa=3).verdict == "violated"


def test_an_implementation_that_forgets_to_clip_is_convicted(build, name, monkeypatch):
    honest = SetGradient.tile_sum
    monkeypatch.setattr(SetGradient, "tile_sum", lambda *given: 40 * honest(*given))
    assert audit_tuples(build(unit="pair"), name).verdict == "violated"


def test_a_canary_is_for_one_adjacency_and_the_same_members(build, name):
    canary = tuple_canary("person", adjacency="replace", n_others=5)
    with pytest.raises(InputError, match="other adjacency"):
        audit_exactly(build(), canary=canary)
    with pytest.raises(InputError, match="nulls"):
        type(canary)(canary.first, canary.second, "zero-out")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 0}, "margin"), ({"n_components": 9}, "n_components"), ({"n_steps": 0}, "n_steps"),
        ({"max_grad_norm": -1}, "max_grad_norm"), ({"epsilon": 0}, "epsilon"), ({"unit": "x"}, "unit"),
        ({"select": "some"}, "select"), ({"kappa": 1, "unit": "person"}, "too small"),
        ({"backend": "dask"}, "this machine|cluster|dask"), ({"data_norm": 0}, "data_norm"),
    ],
    ids=str,
)  # fmt: skip
def test_parameters_that_make_no_sense_are_refused_before_anything_is_spent(
    build, data, options, message
):
    ledger = PrivacyLedger(epsilon=20.0, delta=1e-3, unit="person")
    with pytest.raises(InputError, match=message):
        build(accountant=ledger, **options).fit(data)
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("tuples", "y", "message"),
    [
        ([[0, 1, 1]], None, "twice"),
        ([[0, 1]], None, "from 3 to 32"),
        ([[0, 1, 900]], None, "outside"),
        ([[0, 1, 2]], [1, 2], "y must name"),
        (PairSet(X, [[0, 1]], [1]), None, "learns from tuples"),
        (TupleSet(X, [[0, 1, 2]]), [1], "holds its answers"),
    ],
    ids=["repeated", "pair", "outside", "answers", "pairs", "both"],
)
def test_tuples_that_are_none_are_refused_before_anything_is_spent(build, tuples, y, message):
    ledger = PrivacyLedger(epsilon=20.0, delta=1e-3, unit="person")
    with pytest.raises(InputError, match=message):
        build(accountant=ledger, preprocessor=X).fit(tuples, y)
    assert ledger.entries == ()


def test_more_parts_than_members_are_refused_and_fewer_are_used():
    ledger = PrivacyLedger(epsilon=20.0, delta=1e-3, unit="person")
    data = TupleSet.of_classes(X, ASKED["tuplet"], GROUPS)
    for options, message in (
        ({"C": 5}, "needs tuples of 6 members; these have 5"),
        ({"C": 3, "loss": "pairs"}, "needs tuples of 6"),
        ({"C": 1}, "at least 2"),
        ({"loss": "contrastive"}, "loss must be one of"),
    ):
        with pytest.raises(InputError, match=message):
            DPPTupletLearner(accountant=ledger, **options).fit(data)
    with pytest.raises(InputError, match="three members"):
        DPPTripletLearner(accountant=ledger).fit(data)
    with pytest.raises(InputError, match="four members"):
        DPPTupletLearner(loss="pairs", accountant=ledger).fit(TupleSet(X, [[0, 1, 2]]))
    assert ledger.entries == ()
    order = data.order.copy()
    order[:, 3:] = -1
    options = {"random_state": 0, "epsilon": INF, "n_steps": 3}
    np.testing.assert_array_equal(
        DPPTupletLearner(C=2, **options).fit(data).components_,
        DPPTupletLearner(**options).fit(data.with_order(order)).components_,
    )


@pytest.mark.parametrize("loss", ["tuplet", "pairs", "triplet"])
def test_every_loss_learns(loss):
    data = TupleSet.of_classes(X, ASKED["tuplet"], GROUPS, pairs=loss == "pairs")
    learner = DPPTupletLearner(loss=loss, epsilon=8.0, unit="person", random_state=0).fit(data)
    weights = (learner.components_**2).sum(axis=0)
    assert weights[0] > 2 * weights[1:].max()
    assert learner.certificate_.plan["loss"] == loss


def test_a_triplet_loss_of_triplets_is_the_triplet_learner():
    data = TupleSet.of_classes(X, ASKED["triplet"], GROUPS)
    options = {"epsilon": 8.0, "random_state": 0, "n_steps": 3}
    np.testing.assert_array_equal(
        DPPTripletLearner(**options).fit(data).components_,
        DPPTupletLearner(loss="triplet", **options).fit(data).components_,
    )


def test_a_threshold_on_private_pairs_counts_chains_through_tuples(build, data):
    learner = build(random_state=0, preprocessor=X, select="paths").fit(data)
    assert learner.kappa_ == 1
    pairs = np.arange(200).reshape(-1, 2)
    learner.calibrate_threshold(pairs, np.where(np.arange(100) % 3, 1, -1), epsilon=0.5)
    together = learner.threshold_certificate_
    assert together.verify().problems == ()
    assert together.costs["tuples"]["relationship"].records == 2  # all tuples of a person
    told = json.loads(together.to_json())
    told["costs"]["tuples"]["relationship"]["records"] = 1
    assert not Certificate.from_dict(told).verify()


def test_parameters_are_known_to_scikit_learn(build):
    copy = clone(build(random_state=3, margin=0.5))
    assert (copy.margin, copy.random_state) == (0.5, 3)
    assert "margin=0.5" in repr(copy)
    with pytest.raises(TypeError, match="unknown"):
        build(unknown=1)


def test_wide_tables_are_refused():
    wide = TupleSet(np.zeros((3, 1025)), [[0, 1, 2]])
    with pytest.raises(InputError, match="at most 1024 features"):
        DPPTripletLearner().fit(wide)


def test_raw_columns_are_read_by_public_bounds(build, data):
    raw = 10 * X + 3
    bounds = {f"c{j}": (-7.0, 13.0) for j in range(4)}
    table = {f"c{j}": raw[:, j] for j in range(4)}
    given = build(random_state=0, preprocessor=pa.table(table), bounds=bounds)
    scaled = build(random_state=0, preprocessor=(raw - 3) / 20, data_norm=1.0).fit(data.tuples)
    found = given.fit(data.tuples)
    np.testing.assert_allclose(
        found.transform(pa.table(table)).std(), scaled.transform((raw - 3) / 20).std(), rtol=0.2
    )
    with pytest.raises(InputError, match="leave schema and bounds out"):
        build(bounds=bounds).fit(data)


def test_the_report_speaks_of_tuples(build, data):
    certificate = build(select="matching", unit="person").certify(data)
    said = render(ReportData(certificate, MetricShape(1, 1, (("", 1.0),)), problems=()))
    said = said[: said.index("The promise in exact words")] + said[said.index('id="limits"') :]
    assert "tuples with an answer" in said
    assert "in a tuple with whom" in said
    assert "paired" not in said
