"""What the private learner promises is what it does."""

import math
from collections import Counter

import numpy as np
import pytest

from learners import chain, people
from pairveil import (
    BudgetError,
    ContrastiveMetricLearner,
    DataWarning,
    DPPMetricLearner,
    InputError,
    PrivacyLedger,
    design_pairs,
    kappa,
)
from pairveil.engine.engine import Engine
from pairveil.privacy.events import event_from_dict
from pairveil.privacy.mechanisms import Query
from pairveil.privacy.noise import SeededNoise, TrustedNoise
from pairveil.privacy.profile import epsilon_of
from pairveil.records.pairset import PairSet

X, GROUPS = people()
PAIRS, Y = chain(GROUPS)
pytestmark = pytest.mark.filterwarnings("ignore:.*few for.*:pairveil.errors.DataWarning")


def learner(**parameters):
    return DPPMetricLearner(**{"preprocessor": X, "random_state": 0, **parameters})


def cycle(n=40):
    """Everybody in a ring with chords: kappa is 3 for relationships, 4 for persons."""
    ring = [(i, (i + 1) % n) for i in range(n)]
    pairs = np.array(ring + [(i, i + n // 2) for i in range(n // 2)])
    return pairs, np.where(np.arange(len(pairs)) % 2 == 0, 1, -1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("unit", ["pair", "relationship", "person"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_budget_is_kept_and_used(epsilon, adjacency, unit, mechanism):
    pairs, y = cycle()
    made = learner(
        epsilon=epsilon, adjacency=adjacency, unit=unit, mechanism=mechanism, select="all"
    )
    certificate = made.fit(pairs, y).certificate_
    assert 0.99 * epsilon < certificate.epsilon <= epsilon
    assert certificate.kappa == made.kappa_ == kappa(pairs).of(unit)
    assert certificate.delta == (0.0 if mechanism == "laplace" else 1e-5)
    assert certificate.verify()
    assert certificate.epsilons[unit][adjacency] == certificate.epsilon


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_budget_is_shared_by_all_steps(mechanism):
    pairs, y = cycle()
    made = learner(mechanism=mechanism, sample_rate=1.0, n_steps=5, select="all").fit(pairs, y)
    answered = sum(data["steps"] for data in made.certificate_.events)
    assert answered >= 5
    assert 0.99 < made.certificate_.epsilon <= 1.0


def test_what_is_accounted_is_what_runs():
    """Every released sum is seen by a witness, who counts them and measures their noise."""
    seen = Counter()
    fitted = learner(epsilon=1.0).fit(
        PAIRS, Y, on_answer=lambda query, *_: seen.update([query.event()])
    )
    told = Counter()
    for data in fitted.certificate_.events:
        told[event_from_dict(data)] += data["steps"]
    assert seen == told


def test_noise_has_the_scale_that_is_accounted():
    """Residuals of the released gradients have the certified standard deviation.

    12,000 residuals: the ratio's standard error is 0.0065, so 5 of them fail once in 10^6 runs, and a
    scale wrong by 2/3 or 3/2 is 50 of them away.
    """
    quiet, loud = [], []
    for found, epsilon in ((quiet, math.inf), (loud, 1.0)):
        plan_epsilon = learner(epsilon=1.0).certify(PAIRS, Y)
        multiplier = plan_epsilon.events[2]["noise_multiplier"] if epsilon == 1.0 else 0.0
        query = Query("gradients", (2, 5), multiplier, 1200)
        engine = Engine(PairSet(X, PAIRS, Y), SeededNoise(3))
        from pairveil.engine.gradients import SetGradient
        from pairveil.engine.losses import ContrastiveLoss

        gradient = SetGradient(np.eye(2, 5), ContrastiveLoss(1.0), clip=0.5)
        found += [engine.answer(query, gradient) for _ in range(1200)]
    ratio = np.std(np.array(loud) - np.array(quiet)) / (0.5 * multiplier)
    assert abs(ratio - 1) < 0.033
    assert abs(ratio - 2 / 3) > 0.033
    assert abs(ratio - 3 / 2) > 0.033


def test_infinite_epsilon_is_the_non_private_learner():
    private = learner(epsilon=math.inf, select="all").fit(PAIRS, Y)
    plain = ContrastiveMetricLearner(preprocessor=X, random_state=0).fit(PAIRS, Y)
    np.testing.assert_array_equal(private.components_, plain.components_)
    assert private.certificate_ is None


def test_a_smaller_kappa_than_the_graphs_is_refused_with_both_numbers():
    pairs, y = cycle()
    with pytest.raises(InputError, match=r"kappa=2.*need 3"):
        learner(kappa=2, select="all").fit(pairs, y)
    assert learner(kappa=9, select="all").fit(pairs, y).certificate_.kappas["relationship"] == 9


def test_selection_lowers_kappa_and_says_what_it_cost():
    pairs, y = cycle()
    fitted = learner(select="paths").fit(pairs, y)
    certificate = fitted.certificate_
    assert certificate.kappa == 1
    assert certificate.n_pairs_used < certificate.n_pairs_given == len(pairs)
    assert certificate.selection["full_graph_relationship_kappa"] == 3
    assert "dropped" in certificate.selection["caveat"]
    assert kappa(pairs[fitted.used_pairs_]).relationship == 1
    designed = design_pairs(len(X), random_state=0)
    assert (
        learner().fit(designed, np.resize([1, -1], len(designed))).certificate_.selection["caveat"]
        is None
    )


def test_selection_does_not_look_at_labels_or_features():
    pairs, y = cycle()
    first = learner(select="paths").fit(pairs, y).used_pairs_
    other = learner(select="paths", preprocessor=X[::-1]).fit(pairs, -y).used_pairs_
    np.testing.assert_array_equal(first, other)


def test_only_unseeded_fits_are_for_release():
    seeded = learner().fit(PAIRS, Y).certificate_
    assert seeded.for_release is False
    assert "NOT FOR RELEASE" in seeded.promise()
    released = learner(random_state=None).fit(PAIRS, Y).certificate_
    assert released.for_release is True
    assert 0 < released.delta_slack < 1e-3 * released.delta
    assert released.verify()


def test_release_grade_fits_differ_and_lie_on_the_grid():
    kept = []

    def watch(query, statistic, noisy):
        if query.name == "survey":
            kept.append(noisy)

    for _ in range(2):
        learner(random_state=None).fit(PAIRS, Y, on_answer=watch)
    assert not np.array_equal(*kept)
    for noisy in kept:
        assert np.array_equal(noisy * 2.0**40, np.rint(noisy * 2.0**40))


def test_compiled_and_plain_sums_agree():
    both = [learner(backend=b).fit(PAIRS, Y).components_ for b in ("auto", "numpy")]
    np.testing.assert_allclose(*both, rtol=1e-5, atol=1e-7)


def test_the_ledger_is_charged_before_noise_and_only_for_fits_that_start(tmp_path):
    ledger = PrivacyLedger(1.5, 1e-5, path=tmp_path / "ledger.json")
    for bad in ({"n_components": 99}, {"epsilon": -1}, {"kappa": "many"}):
        with pytest.raises(InputError):
            learner(accountant=ledger, **bad).fit(PAIRS, Y)
    assert ledger.entries == ()
    learner(accountant=ledger).fit(PAIRS, Y)
    assert ledger.spent() == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(BudgetError, match="nothing was spent"):
        learner(accountant=ledger, epsilon=1.4).fit(PAIRS, Y)
    assert len(ledger.entries) == 1


def test_a_ledger_refuses_a_fit_without_noise():
    ledger = PrivacyLedger(5.0, 1e-5)
    with pytest.raises(BudgetError):
        learner(accountant=ledger, epsilon=math.inf).fit(PAIRS, Y)
    assert ledger.entries == ()


def test_certify_and_fit_agree_when_unseeded():
    pairs, y = cycle()
    made = learner(random_state=None)
    planned, done = made.certify(pairs, y), made.fit(pairs, y).certificate_
    assert planned.to_dict() == done.to_dict()


def test_a_topology_read_off_features_is_not_for_release():
    with pytest.warns(UserWarning, match="equal rows"):
        fitted = DPPMetricLearner().fit(X[PAIRS], Y)
    assert fitted.certificate_.for_release is False
    with pytest.warns(UserWarning, match="equal rows"):
        fitted.calibrate_threshold(X[PAIRS], Y, epsilon=1.0)
    # What was assumed of the fit is still said of the fit and its threshold.
    both = fitted.threshold_certificate_
    assert both.public == fitted.certificate_.public
    assert both.epsilon > fitted.certificate_.epsilon


def test_whether_a_null_pair_is_sampled_cannot_be_seen():
    """Poisson batches: a null pair adds exactly nothing, drawn or not, wherever it stands."""
    from pairveil.engine.gradients import SetGradient
    from pairveil.engine.losses import ContrastiveLoss
    from pairveil.engine.statistics import clipped_sum

    rng = np.random.default_rng(0)
    people_ = np.vstack([rng.normal(size=(3000, 5)), np.zeros((2, 5))])
    pairs = np.column_stack([np.arange(0, 3000, 2), np.arange(1, 3000, 2)])
    pairs = np.insert(pairs, 7, [3000, 3001], axis=0)
    data = PairSet(people_, pairs, np.resize([1, -1], len(pairs)))
    gradient = SetGradient(rng.normal(size=(2, 5)), ContrastiveLoss(1.0), clip=0.3)
    without = np.delete(np.arange(len(pairs)), 7)
    for compiled in (True, False):
        drawn, not_drawn = (
            clipped_sum(data, rows, gradient, "l2", 2.0**-40, compiled=compiled, separately=True)
            for rows in (np.arange(len(pairs)), without)
        )
        np.testing.assert_array_equal(drawn, not_drawn)


def test_tiny_projections_do_not_escape_the_clip():
    """Squares that underflow would make D too small and the gradient too long."""
    from pairveil.engine.gradients import SetGradient
    from pairveil.engine.losses import ContrastiveLoss

    gap = np.zeros((1, 12))
    gap[0, :10], gap[0, 11] = 1.5e-162, 1.0
    W = np.eye(10, 12)
    gradient = SetGradient(W, ContrastiveLoss(1.0), clip=1.0)
    found = gradient.tile_sum(gap, np.array([-1], dtype=np.int8), norm="l2")
    assert np.linalg.norm(found) <= 1.0


def test_a_fit_that_dies_has_been_charged(tmp_path):
    ledger = PrivacyLedger(2.0, 1e-5, path=tmp_path / "ledger.json")

    def die(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner(accountant=ledger).fit(PAIRS, Y, on_answer=die)
    assert len(PrivacyLedger.open(tmp_path / "ledger.json").entries) == 1


def test_an_inconsistent_engine_releases_nothing(monkeypatch):
    monkeypatch.setattr(Engine, "followed", lambda *_: False)
    with pytest.raises(RuntimeError, match="did not follow its plan"):
        learner().fit(PAIRS, Y)


def test_the_engine_refuses_more_than_its_plan():
    from pairveil.learners.contrastive.recipe import ColumnSignal

    query, signal = Query("signal", (5,), 5.0, 2), ColumnSignal(5, (1.0, 1.0), clip=1.0)
    engine = Engine(PairSet(X, PAIRS, Y), TrustedNoise())
    for _ in range(2):
        engine.answer(query, signal)
    with pytest.raises(RuntimeError, match="no further answer"):
        engine.answer(query, signal)


def test_progress_tells_what_was_spent():
    told = []
    learner(epsilon=1.0).fit(PAIRS, Y, on_step=lambda done, spent: told.append((done, spent)))
    done, spent = np.array(told).T
    assert done[-1] == 1.0
    assert np.all(np.diff(done) > 0)
    assert np.all(np.diff(spent) >= 0)
    assert spent[-1] <= 1.0


def test_a_private_threshold_is_charged():
    fitted = learner(epsilon=4.0).fit(PAIRS, Y)
    ledger = PrivacyLedger(2.0, 1e-5)
    fitted.accountant = ledger
    fitted.calibrate_threshold(PAIRS, Y, epsilon=1.0)
    assert ledger.spent() == pytest.approx(1.0, rel=1e-6)
    both = fitted.threshold_certificate_
    assert both.verify()
    assert both.epsilon > fitted.certificate_.epsilon
    with pytest.raises(InputError, match="infinite"):
        fitted.calibrate_threshold(PAIRS, Y, epsilon=math.inf)
    with pytest.raises(BudgetError):
        fitted.calibrate_threshold(PAIRS, Y, epsilon=1.5)


def test_a_private_margin_is_a_release_of_its_own():
    with_it = learner(margin="private").certify(PAIRS, Y)
    without = learner().certify(PAIRS, Y)
    assert len(with_it.events) == len(without.events) + 1
    assert with_it.epsilon <= 1.0


def test_sampled_and_disjoint_batches_are_certified_as_such():
    sampled = learner(sample_rate=0.2, n_steps=30).fit(PAIRS, Y).certificate_
    assert sampled.events[2]["sample_rate"] == 0.2
    assert 0.98 < sampled.epsilon <= 1.0
    dealt = learner(sampling="disjoint", sample_rate=0.25, n_steps=20).fit(PAIRS, Y).certificate_
    assert dealt.events[2] == {
        "kind": "disjoint-gaussian",
        "noise_multiplier": dealt.events[2]["noise_multiplier"],
        "epochs": 5,
    }
    with pytest.raises(InputError, match="laplace"):
        learner(mechanism="laplace", sample_rate=0.5).fit(PAIRS, Y)


def test_the_papers_graph_still_runs_and_certifies():
    rng = np.random.default_rng(0)
    pairs = np.unique(np.sort(rng.integers(120, size=(240, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    y = np.where(GROUPS[pairs[:, 0]] == GROUPS[pairs[:, 1]], 1, -1)
    certificate = learner(select="all").fit(pairs, y).certificate_
    assert certificate.kappa == kappa(pairs).relationship > 5
    events = [event_from_dict(e) for e in certificate.events]
    assert epsilon_of(events, kappa=certificate.kappa, delta=1e-5) <= 1.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"unit": "family"}, "unit"),
        ({"adjacency": "add"}, "adjacency"),
        ({"mechanism": "staircase"}, "mechanism"),
        ({"select": "some"}, "select"),
        ({"accountant": 3.0}, "accountant"),
        ({"kappa": 0}, "kappa"),
        ({"n_components": 0}, "n_components"),
        ({"margin": -1.0}, "margin"),
        ({"sample_rate": 1.5}, "sample_rate"),
        ({"n_steps": 2.5}, "n_steps"),
        ({"data_norm": 0}, "data_norm"),
        ({"loss": "triplet"}, "loss"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(InputError, match=message):
        learner(**parameters).fit(PAIRS, Y)


def test_warnings_a_careful_user_wants():
    with pytest.warns(DataWarning, match="few for 5 features"):
        learner(epsilon=0.05).fit(PAIRS, Y)
    with pytest.warns(DataWarning, match="clip"):
        learner(data_norm=0.1).fit(PAIRS, Y)
