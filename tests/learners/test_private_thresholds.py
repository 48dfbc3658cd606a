"""Thresholds chosen on private pairs: whatever was released since the fit is in their certificate."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from learners import chain, people
from pairveil import BudgetError, Certificate, DPPMetricLearner, InputError, PairSet, PrivacyLedger
from pairveil.engine.engine import Engine
from pairveil.privacy.events import event_from_dict
from pairveil.privacy.noise import SeededNoise, TrustedNoise
from pairveil.privacy.profile import epsilon_of
from pairveil.privacy.units import ASSUMED_TOPOLOGY

X, GROUPS = people()
PAIRS, Y = chain(GROUPS)
pytestmark = pytest.mark.filterwarnings("ignore:.*few for.*:pairveil.errors.DataWarning")


def fitted(**parameters):
    return DPPMetricLearner(**{"preprocessor": X, "random_state": 0, **parameters}).fit(PAIRS, Y)


def recomputed(certificate):
    events = [event_from_dict(event) for event in certificate.events]
    return epsilon_of(
        events,
        kappa=certificate.kappa,
        adjacency=certificate.adjacency,
        delta=certificate.delta - certificate.delta_slack,
    )


def test_one_person_with_many_records_is_said_to_be_guessed():
    """Twenty records of one person, given as rows: certified for records, and not for release."""
    learner = fitted(random_state=None, unit="person")
    assert learner.certificate_.for_release
    star = np.stack([X[:20] + 1e-3 * np.arange(20)[:, None], X[20:40]], axis=1)
    with pytest.warns(UserWarning, match="equal rows"):
        learner.calibrate_threshold(star, np.resize([1, -1], 20), epsilon=1.0)
    both = learner.threshold_certificate_
    assert both.for_release is False
    assert ASSUMED_TOPOLOGY in both.public
    assert "people were recognised by equal rows" in both.promise()
    assert both.verify()
    # Told who is who, the same pairs have a person in twenty of them.
    told = np.column_stack([np.zeros(20, dtype=int), np.arange(20, 40)])
    learner.calibrate_threshold(told, np.resize([1, -1], 20), epsilon=1.0)
    assert learner.threshold_certificate_.kappas["person"] == 20


def test_the_worst_noise_is_named():
    trusted = fitted(random_state=None)
    trusted.random_state = 7
    trusted.calibrate_threshold(PAIRS, Y, epsilon=1.0)
    seeded = fitted(random_state=7)
    seeded.random_state = None
    seeded.calibrate_threshold(PAIRS, Y, epsilon=1.0)
    for learner in (trusted, seeded):
        both = learner.threshold_certificate_
        assert both.noise_source == SeededNoise.name
        assert both.for_release is False
        assert "reproduced" in both.promise()
        assert both.verify()
    clean = fitted(random_state=None)
    clean.calibrate_threshold(PAIRS, Y, epsilon=1.0)
    both = clean.threshold_certificate_
    assert (both.for_release, both.noise_source) == (True, TrustedNoise().name)
    assert both.verify()


def test_every_calibration_counts():
    learner = fitted(random_state=None, epsilon=1.0)
    spent = [learner.certificate_.epsilon]
    for times in (1, 2, 3):
        learner.calibrate_threshold(PAIRS, Y, epsilon=0.5)
        both = learner.threshold_certificate_
        assert len(both.events) == len(learner.certificate_.events) + times
        assert both.verify()
        spent.append(both.epsilon)
        assert both.epsilon == recomputed(both)
    assert np.all(np.diff(spent) > 0.1)
    assert learner.fit(PAIRS, Y).certificate_.epsilon <= 1.0
    learner.calibrate_threshold(PAIRS, Y, epsilon=0.5)  # a new fit begins anew
    assert len(learner.threshold_certificate_.events) == len(learner.certificate_.events) + 1


@pytest.mark.parametrize("how", ["by hand", "on public pairs"])
def test_no_certificate_speaks_for_a_threshold_it_does_not_know(how):
    learner = fitted()
    learner.calibrate_threshold(PAIRS, Y, epsilon=0.5)
    if how == "by hand":
        learner.set_threshold(0.3)
    else:
        learner.calibrate_threshold(PAIRS, Y, public=True)
    assert not hasattr(learner, "threshold_certificate_")
    # What was released before is still out: the next private threshold counts it.
    learner = pickle.loads(pickle.dumps(learner)).set_params(preprocessor=X)
    learner.calibrate_threshold(PAIRS, Y, epsilon=0.5)
    both = learner.threshold_certificate_
    assert len(both.events) == len(learner.certificate_.events) + 2


def test_what_fails_after_the_noise_counts_and_what_fails_before_costs_nothing(monkeypatch):
    ledger = PrivacyLedger(50.0, 1e-5)
    learner = fitted()
    learner.accountant = ledger
    for wrong in (
        {"strategy": "best"},
        {"strategy": "max_tpr"},
        {"strategy": "max_tnr", "min_rate": 2},
    ):
        with pytest.raises(InputError):
            learner.calibrate_threshold(PAIRS, Y, epsilon=1.0, **wrong)
    assert ledger.entries == ()
    learner.calibrate_threshold(PAIRS, Y, epsilon=1.0)
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "answer", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            learner.calibrate_threshold(PAIRS, Y, epsilon=1.0)
    assert len(ledger.entries) == 2
    assert not hasattr(learner, "threshold_certificate_")  # the old one knows of one release less
    learner.calibrate_threshold(PAIRS, Y, epsilon=1.0)
    assert len(learner.threshold_certificate_.events) == len(learner.certificate_.events) + 3
    learner.accountant = PrivacyLedger(0.5, 1e-5)
    before = learner.threshold_certificate_
    with pytest.raises(BudgetError):
        learner.calibrate_threshold(PAIRS, Y, epsilon=1.0)
    assert learner.threshold_certificate_ is before


@pytest.mark.parametrize(
    ("strategy", "similar", "dissimilar", "accepted"),
    [
        ("max_tpr", np.ones(64), np.eye(64)[0], 0.0),
        ("max_tnr", np.zeros(64), np.ones(64), 1.0),
    ],
)
def test_what_was_paid_for_gives_a_threshold(monkeypatch, strategy, similar, dissimilar, accepted):
    """No cell reaches the rate; half of all noisy histograms of 20 pairs were such at min_rate 1."""
    learner = fitted()
    monkeypatch.setattr(Engine, "answer", lambda *_: np.array([similar, dissimilar]))
    learner.calibrate_threshold(PAIRS, Y, strategy, 1.0, epsilon=1.0)
    assert np.mean(learner.predict(PAIRS) > 0) == accepted
    assert learner.threshold_certificate_.verify()


def test_chains_across_fit_and_threshold_count_all_pairs_of_a_person():
    learner = fitted(random_state=None)
    hub = np.column_stack([np.zeros(9, dtype=int), np.arange(1, 10)])
    learner.calibrate_threshold(hub, np.resize([1, -1], 9), epsilon=1.0)
    kappas = learner.threshold_certificate_.kappas
    assert kappas == {"pair": 1, "relationship": 9, "person": 9}
    assert learner.threshold_certificate_.plan["thresholds"][0]["n_pairs"] == 9


def test_more_kappa_in_the_threshold_than_pairs_in_the_fit_verifies():
    learner = DPPMetricLearner(preprocessor=X, random_state=0, epsilon=50.0, delta=1e-3)
    learner.fit(PAIRS[:4], [1, -1, 1, -1])
    hub = np.column_stack([np.zeros(9, dtype=int), np.arange(1, 10)])
    learner.calibrate_threshold(hub, np.resize([1, -1], 9), epsilon=1.0)
    assert learner.threshold_certificate_.verify().problems == ()


IDS = np.array([f"p{i:03d}" for i in range(len(X))], dtype=object)
NAMED = {
    "text index": pd.DataFrame(X, index=IDS),
    "text column": pd.DataFrame(X).add_prefix("c").assign(id=IDS),
    "numbers called id": pd.DataFrame(X, index=pd.Index(np.arange(len(X)) * 3, name="id")),
}
UNNAMED = {
    "array": X,
    "default index": pd.DataFrame(X),
    "numbers": pd.DataFrame(X, index=np.arange(len(X)) * 3),
}


@pytest.mark.parametrize("table", [*NAMED.values(), *UNNAMED.values()], ids=[*NAMED, *UNNAMED])
def test_one_learner_knows_its_own_pairs_and_the_certificate_says_what_the_ledger_says(table):
    """9.96 was certified, and charged without ids, where 4.40 is right."""
    ledger = PrivacyLedger(50.0, 1e-5)
    learner = fitted(epsilon=1.0, accountant=ledger, preprocessor=table, select="all")
    for _ in range(2):
        learner.calibrate_threshold(PAIRS[::-1, ::-1], Y[::-1], epsilon=0.5)
    both = learner.threshold_certificate_
    assert both.kappas == learner.certificate_.kappas == {"pair": 1, "relationship": 1, "person": 2}
    assert both.verify().problems == ()
    assert both.epsilon == pytest.approx(ledger.spent(), rel=1e-9)
    # Other pairs of the same people: chains run through both.
    learner.calibrate_threshold(PAIRS[:-1], Y[:-1], epsilon=0.5)
    both = learner.threshold_certificate_
    assert both.kappas["relationship"] == 2
    assert both.epsilon >= ledger.spent() * (1 - 1e-9) > 2.0
    assert both.verify().problems == ()


def _another_table(learner):
    learner.set_params(preprocessor=X.copy())
    return learner


def _sorted_in_place(learner):
    learner.preprocessor.index = learner.preprocessor.index[::-1]  # as an in-place sort does
    return learner


def _shuffled_in_place(learner):
    learner.preprocessor[:] = learner.preprocessor[::-1].copy()
    return learner


@pytest.mark.parametrize(
    "other",
    [clone, copy.copy, copy.deepcopy, _another_table, _sorted_in_place, _shuffled_in_place],
    ids=["clone", "copy", "deepcopy", "another table", "sorted in place", "shuffled in place"],
)
def test_row_numbers_of_another_learner_or_table_are_other_people(other):
    """They may be: a relationship must then be charged by all pairs of a person."""
    ledger = PrivacyLedger(50.0, 1e-5)
    table = pd.DataFrame(X) if other is _sorted_in_place else X.copy()
    learner = fitted(accountant=ledger, preprocessor=table, select="all")
    moved = other(learner)
    if moved is not learner:
        moved.set_params(preprocessor=table)
    moved.fit(PAIRS, Y)
    names = [entry.graph for entry in ledger.entries]
    assert names[0] != names[1]
    both = epsilon_of([e for entry in ledger.entries for e in entry.events], kappa=2, delta=1e-5)
    assert ledger.spent() == pytest.approx(both)
    moved.fit(PAIRS, Y)
    assert ledger.entries[2].graph == names[1]


def test_a_threshold_after_a_pickle_is_added_up_the_safe_way():
    learner = pickle.loads(pickle.dumps(fitted(select="all"))).set_params(preprocessor=X)
    learner.calibrate_threshold(PAIRS, Y, epsilon=0.5)
    assert learner.threshold_certificate_.kappas["relationship"] == 2


def test_feature_rows_and_callables_name_nobody():
    for given in (X[PAIRS], PAIRS):
        ledger = PrivacyLedger(50.0, 1e-5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            learner = fitted(accountant=ledger, preprocessor=lambda rows: X[rows])
            learner.fit(given, Y)
            learner.calibrate_threshold(given, Y, epsilon=0.5)
        assert {entry.graph for entry in ledger.entries} == {None}
        assert learner.threshold_certificate_.kappas["relationship"] == 2


@pytest.mark.parametrize("change", [{"n_pairs": 3}, {"same_pairs": False}, {"kappas": {"pair": 9}}])
def test_a_threshold_is_not_of_the_fits_own_pairs_because_it_says_so(change):
    learner = fitted(select="all")
    learner.calibrate_threshold(PAIRS, Y, epsilon=0.5)
    data = learner.threshold_certificate_.to_dict()
    data["plan"]["thresholds"][0].update(change)
    assert not Certificate.from_dict(data).verify()


HOMES = np.arange(len(X)) // 4


@pytest.mark.parametrize(
    ("of_fit", "of_threshold", "problem"),
    [
        (HOMES, HOMES, None),
        (HOMES, [f"Home {home} " for home in HOMES], None),
        (HOMES, None, "do not mean the same by a person"),
        (None, HOMES, "do not mean the same by a person"),
        (HOMES, np.arange(len(X)) // 5, "do not mean the same by a person"),
    ],
    ids=["same", "written otherwise", "single", "single fit", "other column"],
)
def test_a_threshold_means_the_same_by_a_person_as_the_fit(of_fit, of_threshold, problem):
    def data(homes):
        return PairSet(X, PAIRS, Y, ids=IDS, together=homes)

    ledger = PrivacyLedger(90.0, 1e-5, unit="person")
    learner = DPPMetricLearner(
        unit="person", select="all", random_state=0, accountant=ledger, epsilon=4.0
    )
    learner.fit(data(of_fit))
    if problem is None:
        learner.calibrate_threshold(data(of_threshold), Y, epsilon=1.0)
        assert learner.threshold_certificate_.verify().problems == ()
        assert len(ledger.entries) == 2
        return
    with pytest.raises(InputError, match=problem):
        learner.calibrate_threshold(data(of_threshold), Y, epsilon=1.0)
    assert len(ledger.entries) == 1
    # Nor does a second fit add up, whatever learner it is of.
    with pytest.raises(InputError, match="different things by unit 'person'"):
        DPPMetricLearner(unit="person", random_state=0, accountant=ledger).fit(data(of_threshold))
    assert len(ledger.entries) == 1


def test_people_who_change_together_without_names_are_nobody_elses():
    unnamed = PairSet(X, PAIRS, Y, together=HOMES)
    ledger = PrivacyLedger(90.0, 1e-5, unit="person")
    learner = DPPMetricLearner(unit="person", random_state=0, accountant=ledger).fit(unnamed)
    for attempt in (learner.fit, lambda data: learner.calibrate_threshold(data, Y, epsilon=1.0)):
        with pytest.raises(InputError, match="ids"):
            attempt(unnamed)
    assert len(ledger.entries) == 1


def test_the_engine_releases_no_larger_sum_than_the_plan_states():
    from pairveil.learners.contrastive.recipe import ColumnSignal
    from pairveil.privacy.mechanisms import Query
    from pairveil.records.pairset import PairSet

    query = Query("signal", (X.shape[1] - 1,), 5.0, 2)
    signal = ColumnSignal(X.shape[1], (1.0, 1.0), clip=1.0)
    with pytest.raises(RuntimeError, match="more numbers"):
        Engine(PairSet(X, PAIRS, Y), TrustedNoise()).answer(query, signal)


def test_a_short_float_costs_no_more_than_it_says():
    learner = fitted(epsilon=4.0)
    for asked in (np.float16(0.1), np.float32(0.1), np.float64(0.1)):
        ledger = PrivacyLedger(10.0, 1e-3, unit="pair")
        learner.set_params(accountant=ledger, unit="pair")
        learner.calibrate_threshold(PAIRS, Y, epsilon=asked)
        assert ledger.spent() <= float(asked)
    for wrong in ("1", True, None, [1.0], float("nan")):
        with pytest.raises(InputError):
            learner.calibrate_threshold(PAIRS, Y, epsilon=wrong)


def test_a_metric_of_zeros_has_a_threshold():
    """Noise may leave nothing of a learner's matrix: everybody is at distance 0, and no number is NaN."""
    learner = fitted()
    learner.components_ = np.zeros_like(learner.components_)
    with np.errstate(all="raise"):
        learner.calibrate_threshold(PAIRS, Y, epsilon=1.0)
    assert np.isfinite(learner.threshold_)
    assert learner.threshold_certificate_.verify()
