"""No record contributes more than its clip bound: every statistic that a fit asks, in both norms.

An audit looks at one canary in a few directions; this looks at single records of every shape. What holds
here is the whole sensitivity argument of a new learner (docs/theory/noise.md).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from learners import chain, people
from pairveil import (
    DPPMetricLearner,
    DPPTripletLearner,
    DPPTupletLearner,
    PairSet,
    TupleSet,
)
from pairveil.engine.statistics import Statistic, clipped_sum
from pairveil.learners import LEARNERS, learner_class
from pairveil.records.groups import GroupSet, People

pytestmark = pytest.mark.filterwarnings("ignore")
D = 6
X, GROUPS = people(60, D)
PAIRS, Y = chain(GROUPS)
GRID = 2.0**-40
ROUNDING = 1e-9


def rows_of_every_shape():
    """Rows of length 1 at most: along one, two or all columns, or at random; long, short, next to nothing."""
    rng = np.random.default_rng(0)
    two = np.zeros(D)
    two[[1, 4]] = 1.0
    axes = [
        np.eye(D)[0],
        np.eye(D)[3],
        two,
        np.ones(D),
        (-1.0) ** np.arange(D),
        *rng.normal(size=(6, D)),
    ]
    units = np.array([axis / np.linalg.norm(axis) for axis in axes])
    long = np.concatenate([units, -units])
    return np.concatenate(
        [long, 0.3 * long, 1e-3 * long, 1e-9 * long, 1e-160 * long, 5e-324 * (long > 0)]
    )


ROWS = rows_of_every_shape()
N = len(ROWS)


def some_pairs(rows):
    ends = np.concatenate(
        [np.column_stack([np.arange(N), (np.arange(N) + k) % N]) for k in (1, 11)]
    )
    return PairSet(rows, np.tile(ends, (2, 1)), np.repeat([1, -1], len(ends)))


def some_people(n_classes):
    return lambda rows: People(rows, np.arange(N) % n_classes, n_classes)


def some_groups(rows):
    members = np.random.default_rng(1).permutation(N)[: N // 3 * 3].reshape(-1, 3)
    return GroupSet.of_classes(rows, members, np.arange(N) % 2)


def some_tuples(size):
    def make(rows):
        rng = np.random.default_rng(1)
        return TupleSet(rows, [rng.choice(N, size, replace=False) for _ in range(200)])

    return make


def pairs(make, **options):
    return lambda **more: (
        lambda watch: make(**options, **more, preprocessor=X).fit(PAIRS, Y, on_answer=watch)
    )


def classes(n_classes, groups="auto", **options):
    y = np.arange(len(X)) % n_classes
    return lambda **more: (
        lambda watch: DPPMetricLearner(**options, **more, n_steps=4).fit_classes(
            X, y, range(n_classes), groups, on_answer=watch
        )
    )


def tuples(kind, size, **options):
    drawn = [np.random.default_rng(2).choice(len(X), size, replace=False) for _ in range(80)]
    return lambda **more: (
        lambda watch: kind(**options, **more, preprocessor=X).fit(np.array(drawn), on_answer=watch)
    )


QUICK = {"n_steps": 4}
CASES = {
    "pairs": (pairs(DPPMetricLearner, **QUICK), some_pairs),
    "pairs, chosen start": (pairs(DPPMetricLearner, epsilon=0.05, delta=1e-3, **QUICK), some_pairs),
    "pairs, private margin": (pairs(DPPMetricLearner, margin="private", **QUICK), some_pairs),
    "two classes": (classes(2, unit="person"), some_people(2)),
    "two classes, small epsilon": (classes(2, unit="person", epsilon=0.05), some_people(2)),
    "five classes": (classes(5, unit="person", epsilon=8.0), some_people(5)),
    "groups": (classes(2, groups=3, epsilon=8.0), some_groups),
    "triplets": (tuples(DPPTripletLearner, 3, epsilon=8.0), some_tuples(3)),
    "tuplets": (tuples(DPPTupletLearner, 5, epsilon=8.0), some_tuples(5)),
}


for name in LEARNERS.keys() - {"contrastive"}:  # whoever adds one is asked too
    if "pairs" in learner_class(name).learns_from:
        CASES[f"pairs, {name}"] = (pairs(learner_class(name)), some_pairs)


def longest(records, statistic, norm, rows, *, compiled):
    """How far one of the records moves the sum, relative to what is charged for it."""
    charged = statistic.sensitivity(norm, GRID, records.features.dtype)
    sums = (
        clipped_sum(
            records, np.array([i]), statistic, norm, GRID, compiled=compiled, separately=True
        )
        for i in rows
    )
    return max(length(one * GRID, norm) for one in sums) / charged


def length(total, norm):
    if norm == "range":
        return float(np.ptp(total))
    return float(np.linalg.norm(np.ravel(total), 1 if norm == "l1" else 2))


def asked(fit):
    """Every statistic that a fit asks, with its norm; of a descent the first and the last."""
    seen = {}
    fit(lambda query, statistic, _: seen.setdefault(query, []).append(statistic))
    assert seen
    return [
        (one, query.mechanism.norm) for query, all_ in seen.items() for one in (all_[0], all_[-1])
    ]


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("case", CASES)
def test_no_record_is_longer_than_its_clip_bound(case, mechanism):
    make_fit, make_records = CASES[case]
    records = make_records(ROWS)
    thin = records.with_features(sparse.csr_array(ROWS))
    single = records.with_features(ROWS.astype(np.float32))
    every = range(records.n_records)
    for statistic, norm in asked(make_fit(mechanism=mechanism)):
        name = type(statistic).__name__
        assert longest(records, statistic, norm, every, compiled=False) <= 1 + ROUNDING, name
        if statistic.is_compilable(records):
            assert longest(records, statistic, norm, every, compiled=True) <= 1 + ROUNDING, name
            assert longest(single, statistic, norm, every, compiled=True) <= 1 + ROUNDING, name
        if case != "groups":  # groups take dense rows
            assert longest(thin, statistic, norm, every[::7], compiled=False) <= 1 + ROUNDING, name


def nulls():
    """Pairs of people with equal rows, with either label."""
    twins = np.column_stack([np.arange(N), np.arange(N) + N])
    return PairSet(np.tile(ROWS, (2, 1)), np.tile(twins, (2, 1)), np.repeat([1, -1], N))


def apart(records, statistic, norm):
    """How far the sum lies from those of its parts, in clip bounds: no record changes another's share."""
    every = np.arange(records.n_records)
    whole, *parts = (
        clipped_sum(records, rows, statistic, norm, GRID, compiled=False)
        for rows in (every, *np.array_split(every, 7))
    )
    return float(np.abs(sum(parts) - whole).max()) * GRID / statistic.clip


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("case", CASES)
def test_no_record_changes_what_another_contributes(case, mechanism):
    make_fit, make_records = CASES[case]
    records = make_records(ROWS)
    for statistic, norm in asked(make_fit(mechanism=mechanism)):
        assert apart(records, statistic, norm) < 1e-6, type(statistic).__name__
        if records.kind == "pairs":
            empty = clipped_sum(nulls(), None, statistic, norm, GRID)
            assert not empty.any(), type(statistic).__name__


def test_a_statistic_that_is_scaled_by_the_largest_record_is_caught():
    """One record alone is as long as it may be: only beside others does the error show."""

    class ByTheLargest(Statistic):
        clip = 1.0
        shape = (D,)

        def tile_sum(self, differences, labels, norm):
            lengths = np.linalg.norm(differences, axis=1)
            return labels @ differences / max(lengths.max(), 1e-100)

    records = some_pairs(ROWS)
    rows = range(records.n_records)
    assert longest(records, ByTheLargest(), "l2", rows, compiled=False) <= 1 + ROUNDING
    assert apart(records, ByTheLargest(), "l2") > 0.1


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_statistic_that_is_too_long_by_the_root_of_the_columns_is_caught(mechanism):
    """The error that an audit along the first column did not see."""

    class Careless(Statistic):
        clip = 1.0
        shape = (D,)

        def tile_sum(self, differences, labels, norm):
            return (np.abs(differences) > 1e-6).astype(float).sum(axis=0)

    norm = "l2" if mechanism == "gaussian" else "l1"
    records = some_pairs(ROWS)
    found = longest(records, Careless(), norm, range(records.n_records), compiled=False)
    assert found == pytest.approx(D**0.5 if norm == "l2" else D)
