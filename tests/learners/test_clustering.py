"""Clusters with private links: which list a link is in is the secret, everything else is not."""

import warnings

import numpy as np
import pytest
from benchmarks.clustering import draw_links, pck_means
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from pairveil import BudgetError, Certificate, InputError, PrivacyLedger, PrivateConstrainedKMeans
from pairveil.audit.canaries import Neighbours
from pairveil.audit.exact_audit import audit_exactly, measure
from pairveil.errors import PrivateNote
from pairveil.learners import LEARNERS, learner_class
from pairveil.learners.clustering import (
    NUMBERS,
    LinkVotes,
    candidates,
    choose_clustering,
    most_candidates,
    on_one_scale,
    votes_of,
)
from pairveil.records.pairset import PairSet

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")


def stripes(n=200, seed=0):
    """Two classes side by side, long in the other direction: plain k-means cuts them across."""
    rng = np.random.default_rng([seed, 5])
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) * [1, 9] + np.outer(y, [5, 0]), y


X, Y = stripes()
ML, CL = draw_links(Y, 150, seed=0)


def fitted(ml=ML, cl=CL, points=X, **options):
    options = {"n_clusters": 2, "epsilon": 2.0, "spectral": False, "random_state": 0, **options}
    return PrivateConstrainedKMeans(**options).fit(points, ml=ml, cl=cl)


def test_links_gain_what_k_means_misses():
    found = fitted(epsilon=1.0)
    plain = candidates(X, None, 2, spectral=False)[1][0]
    assert adjusted_rand_score(Y, found.labels_) > adjusted_rand_score(Y, plain) + 0.3
    assert found.cluster_centers_.shape == (2, 2)
    assert found.chosen_ in found.agreement_
    assert found.labels_[0] == 0
    free = fitted(epsilon=float("inf"))
    assert free.certificate_ is None
    assert max(free.agreement_.values()) > 0


def test_links_that_noise_drowns_leave_plain_k_means():
    """Seeds are fixed; the largest of drowned counts is most often another clustering's."""
    plain = candidates(on_one_scale(X), None, 2, spectral=False)[1][0]
    found = [fitted(ML[:20], CL[:20], epsilon=0.1, random_state=seed) for seed in range(5)]
    assert all((one.labels_ == plain).all() and one.chosen_ == "features" for one in found)
    assert any(max(one.agreement_, key=one.agreement_.get) != "features" for one in found)


def test_an_outlier_needs_more_than_noise_and_a_clear_count_is_heeded():
    rng = np.random.default_rng(0)
    together = rng.choice([-1.0, 1.0], size=(200, 4))
    together[:, 1:3] = together[:, :1]
    together[:5, 1] *= -1
    together[5:10, 2] *= -1
    assert choose_clustering(np.array([0.0, 1.0, 0.0, 8.0]), together, 10.0) in (0, 1, 2)
    assert choose_clustering(np.array([0.0, 1.0, 0.0, 60.0]), together, 10.0) == 3
    assert choose_clustering(np.array([0.0, 1.0, 0.0, 8.0]), together, 0.0) == 3


def test_the_secret_is_the_list_and_nothing_else():
    """Links moved from one list to the other leave plan and certificate as they are."""
    everything = np.concatenate([ML, CL])
    split = PrivateConstrainedKMeans(2, random_state=0).certify(X, ml=ML, cl=CL)
    assert PrivateConstrainedKMeans(2, random_state=0).certify(X, ml=everything) == split
    assert (
        PrivateConstrainedKMeans(2, random_state=0).certify(X, cl=everything[::-1, ::-1]) == split
    )
    order = np.random.default_rng(0).permutation(len(ML))
    one, two = fitted(), fitted(ml=ML[order][:, ::-1])
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.agreement_ == two.agreement_


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("unit", ["pair", "relationship", "person"])
def test_the_certificate_holds_and_says_that_points_are_public(unit, mechanism):
    learner = PrivateConstrainedKMeans(
        2, 2.0, unit=unit, mechanism=mechanism, random_state=0, spectral=False
    )
    c = learner.fit(X, ml=ML, cl=CL).certificate_
    assert c == learner.certify(X, ml=ML, cl=CL) == Certificate.from_json(c.to_json())
    assert c.verify().problems == ()
    assert c.epsilon <= 2.0
    assert any("not protected" in said and "points" in said for said in c.public)
    assert c.plan["releases"][-1]["name"] == "votes"


def test_nothing_is_promised_of_the_points():
    """Labels and centres are made of the features as they are: no sentence may call those protected."""
    certificate = PrivateConstrainedKMeans(2, unit="pair").certify(X, ml=ML, cl=CL)
    said = certificate.promise()
    assert "which covers one link: whether it says 'together' or 'apart'" in said
    assert "the points: their features may be read off the clusters" in said
    assert "difference" not in said
    content = certificate.to_dict()
    content["public"] = [one for one in content["public"] if "the points" not in one]
    assert not Certificate.from_dict(content).verify()


def test_a_ledger_is_charged_once_for_a_fit_that_was_killed(tmp_path):
    ledger = PrivacyLedger(2.1, 1e-5)
    options = {"epsilon": 2.0, "spectral": False, "accountant": ledger}

    def kill(query, *_):
        if query.name == "votes":
            raise KeyboardInterrupt

    learner = PrivateConstrainedKMeans(2, **options)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(X, ml=ML, cl=CL, checkpoint=tmp_path / "fit", on_answer=kill)
    learner.fit(X, ml=ML, cl=CL, checkpoint=tmp_path / "fit")
    assert len(ledger.entries) == 1
    assert learner.certificate_.for_release
    with pytest.raises(BudgetError):
        learner.fit(X, ml=ML, cl=CL)


def test_contradictions_are_counted_and_never_stop_a_fit():
    ml, cl = np.array([[0, 2], [2, 4], [1, 3]]), np.array([[0, 4], [5, 6]])
    with pytest.warns(PrivateNote, match="1 cannot-links contradict"):
        assert fitted(ml, cl).certificate_.verify()
    with pytest.warns(PrivateNote, match="contradicting labels"):  # in both lists: null
        both = fitted(np.array([[0, 1], [2, 3]]), np.array([[1, 0], [4, 5]]))
    assert both.certificate_.n_pairs_given == 3


# ---- what one link moves ---------------------------------------------------------------------------


def flipped(prepared, row, label):
    """The records of a prepared fit, and the same with one link's label changed."""
    used = prepared.records.used
    labels = used.labels.copy()
    labels[row] = label
    return PairSet(used.features, used.pairs, np.where(labels == 0, 1, labels)).emptied(
        labels == 0
    ), used


def loudest(learner, prepared):
    """The link about which the clusterings of this fit differ most."""
    seen = []
    learner.fit(prepared, on_answer=lambda _, statistic, __: seen.append(statistic))
    return int((seen[-1].votes ** 2).sum(axis=1).argmax())


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_no_link_moves_any_query_further_than_is_charged(adjacency, mechanism):
    learner = PrivateConstrainedKMeans(
        2, unit="pair", adjacency=adjacency, mechanism=mechanism, random_state=0, spectral=False
    )
    prepared = learner.prepare(X, ml=ML, cl=CL)
    row = loudest(learner, prepared)
    label = prepared.records.used.labels[row]
    other, used = flipped(prepared, row, 0 if adjacency == "zero-out" else -label)
    found = measure(prepared, _Inputs(other, used, adjacency, row))
    assert found.verdict == "consistent"
    assert 0.7 < next(q.ratio for q in found.queries if q.name == "votes") <= 1


class _Inputs(Neighbours):
    """Neighbours whose features are the same: a link's label alone differs."""

    hides_features = False

    def __init__(self, first, second, adjacency, row):
        for name, value in {"first": first, "second": second, "adjacency": adjacency}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "name", "link")
        object.__setattr__(self, "row", row)

    @property
    def changed(self):
        return np.array([self.row])

    @property
    def kappa(self):
        return 1


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("unit", ["pair", "relationship", "person"])
def test_the_worst_links_are_found_and_move_nothing_beyond_their_charge(unit, adjacency):
    learner = PrivateConstrainedKMeans(2, unit=unit, adjacency=adjacency, spectral=False)
    found = audit_exactly(learner, kappa=3, n_features=2)
    assert (found.verdict, found.kappa) == ("consistent", 3 if unit == "person" else 1)
    votes = {move.name: move.ratio for move in found.queries}["votes"]
    assert 0.999 < votes <= 1  # one place linked: whatever was learned, no other row is longer


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_votes_are_never_longer_than_1(norm):
    rng = np.random.default_rng(0)
    for _ in range(30):
        labels = rng.integers(rng.integers(1, 5), size=(rng.integers(1, 9), 20))
        links = rng.choice(20, size=(15, 2))
        votes, _ = votes_of(labels, links, norm)
        assert np.linalg.norm(votes, 1 if norm == "l1" else 2, axis=1).max() <= 1


def test_a_statistic_that_counts_links_twice_is_convicted(monkeypatch):
    honest = LinkVotes.compiled_sum
    monkeypatch.setattr(LinkVotes, "compiled_sum", lambda *given: 4 * honest(*given))
    learner = PrivateConstrainedKMeans(2, unit="pair", random_state=0, spectral=False)
    prepared = learner.prepare(X, ml=ML, cl=CL)
    row = loudest(learner, prepared)
    other, used = flipped(prepared, row, 0)
    assert measure(prepared, _Inputs(other, used, "zero-out", row)).verdict == "violated"


# ---- candidates --------------------------------------------------------------------------------------


def test_candidates_are_different_no_more_than_planned_and_always_the_same():
    rng = np.random.default_rng(0)
    for d in (1, 3, 40):
        points = rng.normal(size=(60, d))
        names, labels = candidates(points, rng.normal(size=(2, d)), 3, spectral=True)
        assert 1 <= len(names) <= most_candidates(d)
        assert len(np.unique(labels, axis=0)) == len(labels)
        again = candidates(points, None, 3, spectral=False)[1]
        np.testing.assert_array_equal(labels[0], again[0])
    assert len(candidates(np.zeros((5, 2)), None, 3, spectral=True)[0]) <= most_candidates(2)


def test_pck_means_heeds_links_and_without_them_is_k_means():
    none = np.empty((0, 2), dtype=int)
    plain = candidates(X, None, 2, spectral=False)[1][0]
    assert adjusted_rand_score(plain, pck_means(X, none, none, 2)) > 0.95
    ml, cl = draw_links(Y, 2000, seed=1)
    assert adjusted_rand_score(Y, pck_means(X, ml, cl, 2)) > 0.8


@pytest.mark.parametrize(
    ("points", "ml", "cl", "options", "told"),
    [
        (X, None, None, {}, "no links"),
        (X[:1], ML, CL, {}, "more than the 1 points"),
        (X, ML, CL, {"n_clusters": 500}, "500 clusters"),
        (X, ML, CL, {"n_clusters": 1}, "at least 2"),
        (X, [[0, 900]], CL, {}, "ml names a row"),
        (X, ML, [[3, 3]], {}, "cl links a point with itself"),
        (X, [[0.5, 1]], CL, {}, "ml must hold"),
        (np.full((9, 2), np.nan), [[0, 1]], CL[:0], {}, "row 0"),
        (X, ML, CL, {"unit": "worker"}, "unit"),
        (X, ML, CL, {"epsilon": -1}, "epsilon"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_before_anything_is_charged(points, ml, cl, options, told):
    ledger = PrivacyLedger(9.0, 1e-3)
    with pytest.raises(InputError, match=told):
        fitted(ml, cl, points, accountant=ledger, **options)
    assert ledger.entries == ()


def test_it_is_registered_and_known_to_scikit_learn():
    assert learner_class("clustering") is PrivateConstrainedKMeans
    assert "clustering" in LEARNERS
    copy = clone(PrivateConstrainedKMeans(3, 2.0))
    assert (copy.n_clusters, copy.epsilon) == (3, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted()
    assert NUMBERS.metric_share == 0.5
