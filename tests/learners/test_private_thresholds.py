"""Thresholds chosen on private pairs: whatever was released since the fit is in their certificate."""

import pickle

import numpy as np
import pytest

from learners import chain, people
from pairveil import BudgetError, DPPMetricLearner, InputError, PrivacyLedger
from pairveil.engine.engine import Engine
from pairveil.privacy.accounting import epsilon_of
from pairveil.privacy.events import event_from_dict
from pairveil.privacy.noise import SeededNoise, TrustedNoise
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


def test_the_engine_releases_no_larger_sum_than_the_plan_states():
    from pairveil.data.pairset import PairSet
    from pairveil.learners.contrastive.recipe import ColumnSignal
    from pairveil.privacy.queries import Query

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
