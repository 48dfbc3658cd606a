"""Private search: one epsilon for the best of many fits, a certificate that shows it, one charge."""

import copy
import json
import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from pairveil import (
    BudgetError,
    Certificate,
    DPPMetricLearner,
    InputError,
    PairSet,
    PrivacyLedger,
    PrivateSearch,
    ReleasedMetric,
    error_curve,
    kappa,
)
from pairveil.evaluation.curve import plan_auc
from pairveil.evaluation.held_out import with_score
from pairveil.jobs.received import recount
from pairveil.privacy.certificate import all_epsilons
from pairveil.privacy.profile import epsilon_of
from pairveil.privacy.units import SEARCHED, public_of
from pairveil.records.identity import index_pairs
from pairveil.records.kinds import COUNTED_PAIRS
from pairveil.records.tables import PairTable

N = 1600
RNG = np.random.default_rng(0)
CLASSES = RNG.integers(0, 2, N)
X = np.clip(RNG.normal(size=(N, 4)) * 0.2, -0.4, 0.4)
X[:, 0] = X[:, 0] / 3 + CLASSES * 0.3
PAIRS = np.arange(N).reshape(-1, 2)
Y = np.where(CLASSES[PAIRS[:, 0]] == CLASSES[PAIRS[:, 1]], 1, -1)
LEARNER = DPPMetricLearner(preprocessor=X)


def search(**options):
    given = {"grid": {"n_components": [1, 2]}, "epsilon": 4.0, "random_state": 0, **options}
    return PrivateSearch(given.pop("learner", LEARNER), **given)


@pytest.fixture(scope="module")
def released():
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-5)
    return search(random_state=None, accountant=ledger).fit(PAIRS, Y), ledger


def test_the_certificate_covers_the_whole_search(released, tmp_path):
    found, ledger = released
    certificate = found.certificate_
    assert 0.97 * 4.0 < certificate.epsilon <= 4.0
    assert certificate.for_release
    assert certificate.verify().problems == ()
    assert len(ledger.entries) == 1
    assert ledger.spent() == pytest.approx(certificate.epsilon, rel=1e-9)
    one_trial = list(certificate._events()[0].trials[0])
    assert (
        epsilon_of(one_trial, kappa=certificate.group_of()[0], delta=1e-5)
        < 0.8 * certificate.epsilon
    )
    found.best_estimator_.release(tmp_path / "release")
    loaded = ReleasedMetric.load(tmp_path / "release").certificate
    assert loaded.verify()
    assert loaded.epsilons == certificate.epsilons
    with pytest.raises(BudgetError):
        search(random_state=None, accountant=ledger).fit(PAIRS, Y)


def test_a_certificate_that_charges_one_trial_or_hides_the_search_is_refused(released):
    data = json.loads(released[0].certificate_.to_json())
    events = data["events"][0]

    def problems(**changes):
        return Certificate.from_dict(data | changes).verify().problems

    assert problems() == ()
    assert problems(events=[events | {"mean_trials": 1}])
    assert problems(events=[events | {"mean_trials": 5}])
    assert problems(events=events["trials"][0])  # as if it were one fit
    assert problems(events=[events | {"slack": 0.0}])
    assert problems(events=[events | {"trials": events["trials"][:1]}])
    for left_out in ("search", "thresholds"):  # chains run through the pairs held out
        assert problems(plan={k: v for k, v in data["plan"].items() if k != left_out})
    for wrong in (3, {}, {"mean_trials": 6, "candidates": [{"queries": 2}]}, {"candidates": None}):
        assert problems(plan=data["plan"] | {"search": wrong})
    assert problems(public=[said for said in data["public"] if "search" not in said])
    count = [one["queries"] for one in data["plan"]["search"]["candidates"]]
    assert (
        count == [count[0]] * 2
    )  # the same queries, cut elsewhere: one trial of fits, one of scores
    for wrong in ([1, 2 * count[0] - 1], [count[0], count[0] - 1, 1], [2 * count[0], 0], [None]):
        cut = {"mean_trials": 6, "candidates": [{"queries": n} for n in wrong]}
        ends = np.cumsum([0, *wrong]) if None not in wrong else []
        flat = [event for one in events["trials"] for event in one]
        trials = [flat[a:b] for a, b in pairwise(ends) if b > a]
        assert problems(
            plan=data["plan"] | {"search": cut}, events=[events | {"trials": trials or [flat]}]
        )
    kept = released[0].certificate_
    low = {unit: dict.fromkeys(by, 0.5) for unit, by in kept.epsilons.items()}
    assert not replace(kept, epsilon=0.5, epsilons=low).verify()


def test_scored_pairs_of_a_kind_of_their_own_would_not_be_charged(released):
    """One event has one cost: kinds beside the first query's would be stated and not paid for."""
    kept = released[0].certificate_
    releases = [dict(one) for one in kept.plan["releases"]]
    for one in releases:
        one["records"] = "counted pairs" if one["name"] == "score counts" else "pairs"
    many = dict.fromkeys(kept.kappas, 50)
    forged = replace(
        kept,
        plan=kept.plan | {"releases": releases},
        costs={**kept.costs, "counted pairs": COUNTED_PAIRS.costs(many, l2=False)},
        kappas=many,
        kappa=50,
        events=({**kept.events[0], "slack": 1e-14},),
        public=(*kept.public, *public_of(["counted pairs"])),
    )
    (problem,) = forged.verify().problems
    assert "one kind of records" in problem


def test_a_fit_does_not_pass_for_a_search_by_being_cut_into_candidates():
    fitted = DPPMetricLearner(preprocessor=X, epsilon=4.0).certify(PAIRS, Y)
    data = json.loads(fitted.to_json())
    n = len(data["events"])
    assert n >= 2
    event = {"kind": "best-of", "mean_trials": 1, "slack": fitted.delta_slack}
    event |= {"trials": [[one] for one in data["events"]]}
    one = replace(
        fitted,
        plan=fitted.plan | {"search": {"mean_trials": 1, "candidates": [{"queries": 1}] * n}},
        public=(*fitted.public, SEARCHED),
        events=(event,),
        delta_slack=0.0,
    )
    less = all_epsilons(one._events(), {u: one.group_of(u) for u in one.units}, one.delta, 0.0)
    forged = replace(one, epsilons=less, epsilon=less[one.unit][one.adjacency])
    assert forged.epsilon < 0.99 * fitted.epsilon
    assert forged.verify().problems == (
        "the events are not those of the plan",
        "a search scores its trials on pairs held out, and the plan does not describe them",
    )


def test_people_who_change_together_do_so_in_the_scored_pairs_too():
    """A matching holds one pair of each of 200 households, the held-out pairs many."""
    data = PairSet(X, PAIRS, Y, together=np.arange(N) % 200)
    learner = DPPMetricLearner(unit="person", select="matching")
    made = search(learner=learner, epsilon=8.0)
    candidates, certificate, test = made.prepare(data)
    values = data.together[test.pairs]
    touched = max(int((values == value).any(axis=1).sum()) for value in range(200))
    assert touched > 3
    assert certificate.kappas["person"] == touched
    assert certificate.plan["thresholds"][0]["kappas"]["person"] == touched
    assert certificate.verify().problems == ()
    assert candidates[0].score.prepared.records.kappas["person"] == touched


@pytest.mark.parametrize("select", ["paths", "all"])
def test_kappa_of_all_pairs_is_that_of_both_parts(select):
    """A ring of 60 with chords: either part alone hangs together less, and a recount must not refuse it."""
    ring = np.arange(60)
    pairs = np.concatenate([np.column_stack([ring, (ring + k) % 60]) for k in (1, 2, 3)])
    learner = DPPMetricLearner(preprocessor=X[:60], select=select)
    certificate = search(learner=learner, epsilon=8.0).certify(pairs, np.resize([1, -1], 180))
    assert certificate.verify().problems == ()
    assert certificate.selection["full_graph_relationship_kappa"] == kappa(pairs).relationship == 6
    listed = PairTable(left=pairs[:, 0], right=pairs[:, 1])
    found = recount(certificate, index_pairs(listed), None)
    assert (found.problems, found.kappa_matches) == ([], None)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::pairveil.errors.PairveilWarning")
def test_private_contents_never_stop_a_search():
    """Null labels, and features beyond floats' reach, of pairs that are fitted and pairs that are scored."""
    far = X.copy()
    far[:40] = 1.7e308
    null = np.arange(len(PAIRS)) % 7 == 0
    given = PairSet(far, PAIRS, Y).emptied(null)
    assert 0 <= search(epsilon=8.0, learner=DPPMetricLearner()).fit(given).best_score_ <= 1
    twice, said = np.concatenate([PAIRS, PAIRS[:200]]), np.concatenate([Y, -Y[:200]])
    assert 0 <= search(epsilon=8.0).fit(twice, said).best_score_ <= 1


def test_what_is_released_beside_a_search_has_no_certificate_with_it(released):
    best, ledger = released[0].best_estimator_, PrivacyLedger(9.0, 1e-5)
    best.accountant = ledger
    try:
        with pytest.raises(InputError, match="stands alone"):
            best.calibrate_threshold(PAIRS, Y, epsilon=1.0)
    finally:
        best.accountant = None
    assert ledger.entries == ()
    curve = error_curve(RNG.random(len(Y)), Y, PAIRS, 1.0, 1e-5, (0.0, 1.0), random_state=0)
    with pytest.raises(InputError, match="stands alone"):
        curve.with_model(released[0].certificate_)


def test_nothing_but_the_best_is_kept(released):
    kept = {name for name in vars(released[0]) if name.endswith("_")}
    assert kept == {"best_score_", "best_estimator_", "best_params_", "certificate_"}


@pytest.mark.parametrize("table", [X, X.tolist()])
def test_what_is_shown_of_a_search_holds_no_features_of_its_grid(table):
    """The fit refuses such a grid; a notebook shows the search before."""
    found = search(grid=[{"preprocessor": [table]}, {"n_components": [1]}])
    for shown in (repr(found), found._repr_html_()):
        assert "n_components" in shown
        assert "&lt;features&gt;" in shown or "<features>" in shown
        assert not any(f"{abs(one):.6f}" in shown for one in X[:3].ravel())
    assert found.get_params()["grid"][0]["preprocessor"][0] is table


def test_a_pickle_of_a_search_holds_no_features_of_any_learner():
    """Not of the learner, of one in the grid, of the best one's parameters; unfitted it goes to workers."""
    others = [DPPMetricLearner(n_components=k, preprocessor=X) for k in (1, 2)]
    found = search(grid=[{"learner": others}])
    assert X[7].tobytes() in pickle.dumps(found)
    found.fit(PAIRS, Y)
    blob = pickle.dumps(found)
    assert not any(row.tobytes() in blob for row in X)
    back = pickle.loads(blob)
    assert back.best_params_["learner"].n_components == found.best_params_["learner"].n_components
    np.testing.assert_array_equal(
        back.best_estimator_.transform(X), found.best_estimator_.transform(X)
    )
    assert found.learner.preprocessor is X  # the owner's own is whole


@pytest.mark.parametrize("how", [pickle.dumps, copy.deepcopy])
def test_what_is_prepared_cannot_be_pickled(how):
    """It holds features, and which rows of a file are used."""
    for prepared in (
        LEARNER.prepare(PAIRS, Y),
        with_score(LEARNER, PAIRS, Y, epsilon=0.5),
        search().prepare(PAIRS, Y),
        plan_auc(np.ones(len(Y)), Y, PAIRS, 1.0, 1e-5, 1.0, "person"),
    ):
        with pytest.raises(TypeError, match="prepare it where it is fitted"):
            how(prepared)


def test_the_number_of_trials_is_geometric_and_candidates_are_uniform():
    """400 searches: the bounds below fail with probability below 1e-6; other means are refused."""
    places = [list(search(random_state=s)._places(2, 6, exact=False)) for s in range(400)]
    n = sum(map(len, places))  # 400 stops among n trials of probability 1/6 each
    assert binom.cdf(400, n, 1 / 6) > 5e-7
    assert binom.sf(399, n, 1 / 6) > 5e-7
    assert binom.cdf(400, n, 1 / 4) < 5e-7  # a mean of 4 would be seen
    assert binom.sf(399, n, 1 / 9) < 5e-7
    zeros = sum(map(sum, places))
    assert min(binom.cdf(zeros, n, 0.5), binom.sf(zeros - 1, n, 0.5)) > 5e-7
    trusted = list(search()._places(2, 6, exact=True))
    assert trusted
    assert set(trusted) <= {0, 1}


def test_what_is_set_after_a_search_was_prepared_changes_nothing_of_it(monkeypatch):
    """Seeded noise under a certificate for release, or more trials than were certified, would be a lie."""
    made = search(random_state=None)
    prepared = made.prepare(PAIRS, Y)
    made.random_state, made.mean_trials, seen = 0, 5000, []

    def trial(_, test, source):
        seen.append(source)
        return 0.5, DPPMetricLearner()

    monkeypatch.setattr(made, "_trial", trial)
    certificate = made.fit(prepared).certificate_
    assert certificate.for_release
    assert all(source.for_release for source in seen)
    # 5,000 trials on average, or 6: more than 150 have a probability below 1e-11.
    assert len(seen) <= 150
    assert binom.cdf(0, 150, 1 / 6) < 1e-11


def test_it_chooses_well_and_without_noise_tries_each_candidate_once():
    grid = [{"n_components": [1]}, {"learner": [DPPMetricLearner(n_steps=4)]}]
    found = search(grid=grid, epsilon=float("inf")).fit(PAIRS, Y)
    assert found.certificate_ is None
    assert found.best_score_ > 0.9
    assert found.best_estimator_.score(PAIRS, Y) > 0.9
    seeded = search(epsilon=8.0).fit(PAIRS, Y)
    assert seeded.best_score_ > 0.7
    assert not seeded.certificate_.for_release
    assert seeded.certificate_.verify()


@pytest.mark.parametrize(
    "options", [{"mechanism": "laplace"}, {"unit": "person"}, {"adjacency": "replace"}]
)
def test_other_promises(options):
    learner = DPPMetricLearner(preprocessor=X, **options)
    certificate = search(learner=learner, epsilon=6.0).certify(PAIRS, Y)
    assert certificate.verify().problems == ()
    assert 5.0 < certificate.epsilon <= 6.0
    if "mechanism" in options:
        assert certificate.delta == 0.0


def test_sampled_plans_are_covered():
    learner = DPPMetricLearner(preprocessor=X, sample_rate=0.2, n_steps=20)
    certificate = search(learner=learner, grid={"n_components": [2]}).certify(PAIRS, Y)
    assert certificate.verify().problems == ()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"grid": {"delta": [1e-6]}}, "grid sets delta"),
        ({"grid": {"epsilon": [1, 2]}}, "the largest of them"),
        ({"grid": {"epsilon": [4, -1]}}, "the largest of them"),
        ({"grid": {"nonsense": [1]}}, "lacks one of them"),
        ({"grid": 3}, "dict of lists"),
        ({"grid": {"learner": [3]}}, "every learner"),
        ({"grid": {"select": ["groups"]}}, "groups"),
        ({"mean_trials": 0}, "mean_trials"),
        ({"score_share": 1.0}, "score_share"),
        ({"epsilon": 0}, "epsilon"),
        ({"learner": 3}, "private learner"),
        ({"learner": DPPMetricLearner(accountant=PrivacyLedger(1.0, 1e-5))}, "give the ledger"),
        ({"epsilon": float("inf"), "accountant": PrivacyLedger(1.0, 1e-5)}, "promises nothing"),
    ],
)
def test_mistakes_are_told_and_charge_nothing(options, says):
    with pytest.raises(InputError, match=says):
        search(**options).fit(PAIRS, Y)
    with pytest.raises(InputError, match="y must have one label"):
        search().fit(PAIRS, Y[:5])


def held_out(pairs, y, **options):
    """Which pairs a search scores by, and their labels."""
    test = search(learner=DPPMetricLearner(preprocessor=X, **options)).prepare(pairs, y).test
    return dict(zip(map(tuple, test.pairs.tolist()), test.labels.tolist(), strict=True))


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
def test_neither_the_order_of_rows_nor_a_repeated_pair_decides_what_is_held_out():
    """A file sorted by label: one label more, and every row behind it would change its part."""
    order = np.argsort(Y, kind="stable")
    pairs, y = PAIRS[order], Y[order]
    expected = held_out(PAIRS, Y)
    turned = pairs[:, ::-1]
    assert held_out(turned, y) == held_out(PairSet(X, turned, y), None) == expected
    twice = np.concatenate([pairs, turned]), np.concatenate([y, y])
    assert held_out(*twice) == expected
    prepared = search().prepare(*twice)
    fitted = prepared.candidates[0].prepared.records
    assert fitted.n_given + prepared.test.n_pairs == len(PAIRS)
    assert not {*expected} & {*map(tuple, fitted.given.pairs.tolist())}
    contrary = held_out(twice[0], np.concatenate([y, -y]))
    assert contrary == dict.fromkeys(expected, 0)
