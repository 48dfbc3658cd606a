"""People with classes, in steps: what a person moves, what is audited, and what it does not harm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairveil import DPPMetricLearner
from pairveil.audit import audit_exactly
from pairveil.audit.canaries import person_canary
from pairveil.engine.plan import PublicFacts
from pairveil.engine.statistics import clipped_sum
from pairveil.evaluation.scores import pair_auc
from pairveil.learners.classes import (
    ClassResiduals,
    Rows,
    Separation,
    corners,
    learns_in_steps,
)
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.grid import choose_grid
from pairveil.privacy.mechanisms import Budget
from pairveil.records.embedded import load_digits, load_patients
from pairveil.records.groups import NO_CLASS, People

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SCALES = (0.0, 1e-160, 1e-17, 1e-8, 1.0, 1e3, 1e8)


# ---- what a person moves ---------------------------------------------------------------------------


@st.composite
def neighbourhoods(draw):
    """People, their replacements, how rows are scaled, and a direction: random, or far beyond."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    sizes = draw(st.lists(st.sampled_from(SCALES), min_size=4, max_size=4))
    rows = [rng.normal(size=(n, d)) * sizes[0] for _ in range(2)]
    if draw(st.booleans()):
        rows[1] = -rows[0]
    k = draw(st.integers(2, 5))
    classes = [rng.integers(-1, k, n) for _ in range(2)]
    scaled = Rows(rng.normal(size=d) * sizes[1], np.abs(rng.normal(size=d)) * sizes[2])
    weights = np.array(draw(st.lists(st.floats(-1, 3), min_size=k, max_size=k)))
    return (
        rows,
        classes,
        scaled,
        rng.normal(size=(k - 1, d + 1)) * sizes[3],
        weights,
        rng.integers(n),
    )


def moves(statistic, case, norm):
    """How far the sum moved in units of what zeroing one person out may: nulled, and replaced."""
    rows, classes, _, w, _, who = case
    entries = int(np.prod(statistic.shape))
    grid = choose_grid(statistic.clip, entries, norm=norm, n_pairs=len(rows[0]))
    nobody, other, row = classes[0].copy(), classes[0].copy(), rows[0].copy()
    nobody[who], other[who], row[who] = NO_CLASS, classes[1][who], rows[1][who]
    totals = [
        clipped_sum(People(x, y, len(w) + 1), None, statistic, norm, grid)
        for x, y in [(rows[0], classes[0]), (rows[0], nobody), (row, other)]
    ]
    order, allowed = (1 if norm == "l1" else 2), statistic.sensitivity(norm, grid)
    return [np.linalg.norm((t - totals[0]) * grid, order) / allowed for t in totals[1:]]


def quiet(examples):
    return settings(
        max_examples=examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@quiet(100)
@given(neighbourhoods())
def test_no_person_moves_a_sum_beyond_the_claim(case):
    *_, scaled, w, weights, _ = case
    for norm in ("l2", "l1"):
        for statistic in (
            ClassResiduals(scaled, w, weights, 0.4),
            Separation(scaled, w[:, :-1], Separation.bound(norm, len(weights))),
        ):
            zeroed, replaced = moves(statistic, case, norm)
            assert zeroed <= 1.0
            assert replaced <= 2.0


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_a_weight_above_one_lengthens_no_contribution(norm):
    """Weights are made of released shares, which noise may bring anywhere."""
    rows, w = np.array([[1.0, 0.0]]), np.zeros((1, 3))
    scaled, weights = Rows(np.zeros(2), np.ones(2)), np.array([3.0, 3.0])
    case = ([rows, -rows], [np.array([0]), np.array([1])], scaled, w, weights, 0)
    zeroed, replaced = moves(ClassResiduals(scaled, w, weights, 0.4), case, norm)
    assert 0.7 < zeroed <= 1.0
    assert replaced <= 2.0


class Unclipped(ClassResiduals):
    """Wrong on purpose: residuals are not clipped, as in plain least squares."""

    def tile_sum(self, rows, classes, norm):
        z = self.rows.scaled(rows, norm)
        return (corners(len(self.weights))[classes] - z @ np.clip(self.w, -9, 9).T).T @ z


def test_the_fuzz_finds_a_wrong_statistic():
    worst = 0.0

    @quiet(60)
    @given(neighbourhoods())
    def look(case):
        nonlocal worst
        worst = max(
            worst, moves(Unclipped(case[2], case[3], np.ones(len(case[4])), 0.4), case, "l2")[0]
        )

    look()
    assert worst > 2


@pytest.mark.parametrize("k", [2, 4])
def test_a_step_is_the_gradient_of_least_squares_while_nothing_is_clipped(k):
    rng = np.random.default_rng(0)
    x, y, w = rng.normal(size=(50, 3)), np.arange(50) % k, rng.normal(size=(k - 1) * 4)
    scaled = Rows(np.zeros(3), np.full(3, 0.2))
    z, t = scaled.scaled(x, "l2"), corners(k)[y]

    def loss(v):
        return 0.5 * np.sum((t - z @ v.reshape(k - 1, 4).T) ** 2)

    # Central differences of a quadratic are exact at any width; a wide one has little rounding.
    numeric = [(loss(w + h) - loss(w - h)) / 2 for h in np.eye(len(w))]
    statistic = ClassResiduals(scaled, w.reshape(k - 1, 4), np.ones(k), 1e9)
    np.testing.assert_allclose(
        statistic.tile_sum(x, y, "l2").ravel(), -np.array(numeric), rtol=1e-5
    )


@pytest.mark.parametrize("k", [2, 3, 32])
def test_corners_are_of_length_one_and_equally_far_apart(k):
    *found, nobody = corners(k)
    np.testing.assert_allclose(
        found @ np.transpose(found), (np.eye(k) * k - 1) / (k - 1), atol=1e-12
    )
    assert not nobody.any()


# ---- the audit: one person's whole content ------------------------------------------------------------


def audited(adjacency="zero-out", n_classes=2, **options):
    learner = DPPMetricLearner(
        epsilon=0.5, unit="person", adjacency=adjacency, random_state=0, **options
    )
    canary = person_canary(1, 9, adjacency, n_others=800, n_classes=n_classes)
    return audit_exactly(learner, canary=canary)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_the_exact_audit_of_such_a_fit(adjacency, n_classes):
    found = audited(adjacency, n_classes)
    assert found.verdict == "consistent"
    moved = {query.name: query.ratio for query in found.queries}
    assert set(moved) == {"columns", "class steps", "separation"}
    assert 0.4 < moved["class steps"] <= 1


@pytest.mark.parametrize(
    "broken",
    [
        lambda self, *args: 1.2 * HONEST(self, *args),
        lambda self, *args: HONEST(self, *args) + Unclipped.tile_sum(self, *args),
    ],
)
def test_longer_contributions_are_convicted(monkeypatch, broken):
    monkeypatch.setattr(ClassResiduals, "tile_sum", broken)
    found = audited()
    assert found.verdict == "violated"
    assert [query.name for query in found.queries if query.ratio > 1] == ["class steps"]


HONEST = ClassResiduals.tile_sum


def test_a_stranger_recomputes_the_certificate():
    X, y = np.random.default_rng(0).uniform(size=(300, 12)) / 4, np.arange(300) % 2
    certificate = (
        DPPMetricLearner(epsilon=1.0, unit="person").fit_classes(X, y, [0, 1]).certificate_
    )
    assert certificate.for_release
    assert certificate.epsilon <= 1.0
    read = Certificate.from_json(certificate.to_json())
    assert read.verify().problems == ()
    assert [release["steps"] for release in read.plan["releases"]] == [1, 20, 1]


def test_the_rule_is_public_and_monotone_in_epsilon():
    for k in (2, 10):
        asked = [
            learns_in_steps(PublicFacts(Budget(e, 1e-5, 1, "zero-out"), 8000, 30), k)
            for e in (0.01, 0.1, 1.0, 8.0, float("inf"))
        ]
        assert asked == sorted(asked, reverse=True)
        assert asked[0]
        assert not asked[-1]


# ---- what it is for ----------------------------------------------------------------------------------


def patients():
    data = load_patients()
    X, y = data.features.values, np.asarray(data.classes)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order[:400]], y[order[:400]], X[order[400:]], y[order[400:]]


def test_few_people_suffice_at_epsilon_1():
    X, y, fresh, other = patients()
    found = []
    for seed in range(4):
        learner = DPPMetricLearner(epsilon=1.0, unit="person", random_state=seed)
        W = learner.fit_classes(X, y, [0, 1]).components_
        found.append(pair_auc(W, fresh, other, 10_000, 0))
    assert np.mean(found) > pair_auc(None, fresh, other, 10_000, 0) + 0.08


def test_few_people_of_ten_classes_suffice_at_epsilon_1():
    digits = load_digits()
    X, y = digits.features.values, np.asarray(digits.classes)
    order = np.random.default_rng(0).permutation(len(y))
    few, rest = order[:700], order[700:]
    euclid, found = pair_auc(None, X[rest], y[rest], 10_000, 0), []
    for seed in range(3):
        learner = DPPMetricLearner(epsilon=1.0, unit="person", random_state=seed)
        W = learner.fit_classes(X[few], y[few], range(10)).components_
        assert learner.certificate_.plan["releases"][1]["name"] == "class steps"
        found.append(pair_auc(W, X[rest], y[rest], 10_000, 0))
    assert np.mean(found) > euclid + 0.02  # class statistics gained .003 here
    y = np.random.default_rng(1).permutation(y)  # classes that say nothing
    W = learner.fit_classes(X[few], y[few], range(10)).components_
    np.testing.assert_allclose(W.T @ W, (W.T @ W)[0, 0] * np.eye(64), atol=1e-6)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("part", [0.5, 0.1])
def test_classes_that_say_nothing_leave_euclid(epsilon, part):
    X = patients()[0]
    for seed in range(3):
        y = (np.random.default_rng(seed).random(len(X)) < part).astype(int)
        learner = DPPMetricLearner(epsilon=epsilon, unit="person", random_state=seed)
        W = learner.fit_classes(X, y, [0, 1]).components_
        np.testing.assert_allclose(W.T @ W, (W.T @ W)[0, 0] * np.eye(X.shape[1]), atol=1e-6)


def test_a_rare_class_is_learned_too():
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.1).astype(int)
    X = rng.normal(size=(4000, 8)) * 0.1
    X[:, 2] += 0.15 * y
    learner = DPPMetricLearner(epsilon=1.0, unit="person", random_state=0)
    weight = np.diag(learner.fit_classes(X, y, [0, 1]).get_mahalanobis_matrix())
    assert weight[2] > 3 * np.delete(weight, 2).max()


def test_nobody_of_a_class_nulls_and_few_rows_are_no_obstacle():
    X, y = patients()[:2]
    for classes in (np.zeros_like(y), np.full_like(y, 7)):
        learner = DPPMetricLearner(unit="person", random_state=0)
        assert np.isfinite(learner.fit_classes(X, classes, [0, 1]).components_).all()
    learner = DPPMetricLearner(unit="person", random_state=0, n_components=2)
    assert learner.fit_classes(X, y, [0, 1]).components_.shape == (2, 30)
