"""People of two classes: a chosen column that noise would hide. Its range, its plan, its audit, its use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from learners import StatisticsLearner
from pairveil import DPPMetricLearner, PrivacyLedger
from pairveil.audit import audit_exactly
from pairveil.audit.canaries import person_canary
from pairveil.engine.plan import PublicFacts
from pairveil.engine.statistics import GRID, UNIT, clipped_sum
from pairveil.evaluation.scores import pair_auc
from pairveil.learners import classes as class_columns
from pairveil.learners.classes import WIDTH, ClassWindows, chooses_column
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.mechanisms import Budget, mechanism_named
from pairveil.records.groups import NO_CLASS, People

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def people(n=6000, d=20, seed=0, rare=0.5):
    """The classes differ in one column of small spread; the others are large and say nothing."""
    rng = np.random.default_rng(seed)
    classes = (rng.random(n) < rare).astype(int)
    X = rng.uniform(0, 0.2, size=(n, d))
    X[:, 3] = 0.01 * rng.normal(size=n) + 0.04 * classes
    return X, classes


def fitted(X, y, **options):
    options = {"epsilon": 0.1, "unit": "person", "random_state": 0, **options}
    return DPPMetricLearner(**options).fit_classes(X, y, [0, 1])


# ---- what a person moves ---------------------------------------------------------------------------


@st.composite
def neighbourhoods(draw):
    """A few people and their replacements, at the edges of windows and far beyond; one or two change."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 6)), draw(st.integers(1, 4))
    sizes = np.array([0.0, 1e-160, 0.25, 0.5, 0.5 * WIDTH, 1e8, -0.25, -0.5, -1.0])
    rows = [rng.choice(sizes, (n, d)) * rng.choice([1.0, 1.01], (n, d)) for _ in range(2)]
    classes = [rng.integers(-1, 2, n) for _ in range(2)]
    weights = draw(st.tuples(*[st.floats(-1, 5)] * 2))
    return rows, classes, weights, rng.permutation(n)[: draw(st.integers(1, 2))]


def ranges(scores, case):
    """Range of what the changed people move, in records a person: nulled, and replaced."""
    rows, classes, _, who = case
    nobody, other, row = classes[0].copy(), classes[0].copy(), rows[0].copy()
    nobody[who], other[who], row[who] = NO_CLASS, classes[1][who], rows[1][who]
    totals = [
        clipped_sum(People(x, y, 2), None, scores, "range", GRID)
        for x, y in [(rows[0], classes[0]), (rows[0], nobody), (row, other)]
    ]
    return [int(np.ptp(total - totals[0])) / (UNIT * len(who)) for total in totals[1:]]


def quiet(examples):
    return settings(
        max_examples=examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@quiet(200)
@given(neighbourhoods())
def test_no_person_moves_the_scores_by_more_than_the_range(case):
    scores = ClassWindows(case[0][0].shape[1], (0.5, 0.25, 1e-9), case[2])
    zeroed, replaced = ranges(scores, case)
    assert zeroed <= 1  # whole numbers: no tolerance
    assert replaced <= 2


class BothWays(ClassWindows):
    """Wrong on purpose: a person also takes off the windows that are wrong about her."""

    def tile_total(self, rows, classes, norm, grid):
        right = super().tile_total(rows, classes, norm, grid)
        return 2 * right - int(UNIT * np.sum(classes >= 0))


def test_the_fuzz_finds_wrong_scores():
    worst = 0.0

    @quiet(60)
    @given(neighbourhoods())
    def look(case):
        nonlocal worst
        worst = max(worst, ranges(BothWays(case[0][0].shape[1], (0.5,), (1.0, 1.0)), case)[0])

    look()
    assert worst > 1


def test_scores_count_the_people_that_a_window_puts_into_their_class():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 3)), rng.integers(-1, 2, 300)
    scores = ClassWindows(3, (0.5, 0.25), (1.0, 0.5))
    found = clipped_sum(People(x, y, 2), None, scores, "range", GRID) / UNIT
    place = 0
    for level in (0.5, 0.25):
        for side in (1, -1):
            for own in (0, 1):
                for j in range(3):
                    inside = (side * x[:, j] > level) & (side * x[:, j] <= WIDTH * level)
                    right = (y >= 0) & (inside == (y == own))
                    assert found[place] == np.sum(right * np.where(y == 0, 1.0, 0.5))
                    assert scores.candidate(place) == (j, level)
                    place += 1


# ---- the plan --------------------------------------------------------------------------------------


def test_which_kind_of_query_is_asked_follows_from_public_numbers():
    X, y = people(3000)
    learner = StatisticsLearner(epsilon=0.1, random_state=0)
    plan = learner.certify_classes(X, y, [0, 1]).plan
    assert "chosen column" in [release["name"] for release in plan["releases"]]
    assert learner.certify_classes(-0.5 * X, np.zeros_like(y), [0, 1]).plan == plan


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_rule(mechanism):
    delta = 1e-5 if mechanism == "gaussian" else 0.0

    def at(epsilon, n=8000, d=30, k=2):
        budget = Budget(epsilon, delta, 1, "zero-out")
        return chooses_column(PublicFacts(budget, n, d, mechanism=mechanism_named(mechanism)), k)

    asked = [at(e) for e in (0.01, 0.1, 1.0, 100.0, float("inf"))]
    assert asked == [True, True, True, False, False]
    assert not at(0.1, k=3)
    assert not at(0.1, n=500)
    assert not at(0.1, d=5)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_a_stranger_recomputes_the_certificate(mechanism, adjacency):
    X, y = people(3000)
    ledger = PrivacyLedger(0.2, 1e-5, unit="person", adjacency=adjacency)
    certificate = fitted(
        X, y, mechanism=mechanism, adjacency=adjacency, accountant=ledger, random_state=None
    ).certificate_
    assert certificate.for_release
    assert certificate.epsilon <= 0.1
    read = Certificate.from_json(certificate.to_json())
    assert read.verify().problems == ()
    assert ledger.spent() <= 0.1
    place = [event["kind"] for event in read.events].index("choice")
    events = [dict(event) for event in read.events]
    events[place]["eta"] /= 2
    assert not replace(read, events=tuple(events)).verify()


# ---- the audit: one person's whole content ------------------------------------------------------------


def audited(adjacency="zero-out", unit="person", mechanism="gaussian"):
    learner = StatisticsLearner(epsilon=0.1, unit=unit, adjacency=adjacency, mechanism=mechanism)
    return audit_exactly(learner, canary=person_canary(1 if unit == "person" else 2, 12, adjacency))


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("unit", ["person", "relationship"])
def test_the_exact_audit_of_such_a_fit(unit, adjacency, mechanism):
    found = audited(adjacency, unit, mechanism)
    assert found.verdict == "consistent"
    moves = {move.name: move.ratio for move in found.queries}
    assert set(moves) == {"columns", "chosen column", "class statistics"}
    assert 0.4 < moves["chosen column"] <= 1


def test_a_person_who_counts_both_ways_is_convicted(monkeypatch):
    monkeypatch.setattr(class_columns, "ClassWindows", BothWays)
    found = audited()
    assert found.verdict == "violated"
    assert [move.name for move in found.queries if move.ratio > 1] == ["chosen column"]


def test_counts_that_are_not_charged_are_convicted(monkeypatch):
    honest = class_columns.ColumnMoments.bound
    monkeypatch.setattr(
        class_columns.ColumnMoments, "bound", staticmethod(lambda norm, counted=False: honest(norm))
    )
    monkeypatch.setattr(class_columns, "shrink", lambda lengths, clip: np.ones_like(lengths))
    found = audited()
    assert "columns" in [move.name for move in found.queries if move.ratio > 1]


# ---- what it is for ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "rare"),
    [("gaussian", 0.1, 0.5), ("gaussian", 0.2, 0.15), ("laplace", 1.0, 0.5)],
)
def test_the_hidden_column_is_found_where_its_variance_drowns(mechanism, epsilon, rare):
    learner = fitted(*people(rare=rare), mechanism=mechanism, epsilon=epsilon)
    fresh, other = people(2000, seed=1)
    assert pair_auc(learner.components_, fresh, other, 20_000, 0) > 0.9
    assert pair_auc(None, fresh, other, 20_000, 0) < 0.6


def test_a_killed_fit_resumes_with_the_same_choice(tmp_path):
    X, y = people(3000)
    learner, place = DPPMetricLearner(epsilon=0.1, unit="person"), tmp_path / "fit.checkpoint"
    seen: list[float] = []

    def die(query, statistic, answer):
        if query.name == "chosen column":
            seen.append(float(answer[0]))
            if len(seen) == 1:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.fit_classes(X, y, [0, 1], checkpoint=place, on_answer=die)
    learner.fit_classes(X, y, [0, 1], checkpoint=place, on_answer=die)
    assert seen[0] == seen[1]
    assert learner.certificate_.verify()


def test_nobody_of_a_class_and_nulls_are_no_obstacle():
    X, y = people(3000)
    assert np.isfinite(fitted(X, np.zeros_like(y)).components_).all()
    assert np.isfinite(fitted(X, np.full(3000, 7)).components_).all()
