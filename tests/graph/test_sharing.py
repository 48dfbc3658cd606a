"""People who change together: what one household touches, and choosing pairs by it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil import DPPMetricLearner, PairSet
from pairveil.errors import InputError
from pairveil.graph import SELECTIONS
from pairveil.graph.choosing import select_together
from pairveil.graph.kappa import kappa, kappa_together
from pairveil.privacy.units import PEOPLE_TOGETHER
from pairveil.records.identity import together_digest, value_numbers

pytestmark = pytest.mark.filterwarnings("ignore:.* are few for:pairveil.errors.DataWarning")
PAIR_SELECTIONS = [name for name, rule in SELECTIONS.items() if rule.people is None]


@st.composite
def households(draw):
    n = draw(st.integers(3, 12))
    values = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    every = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=20, unique=True))
    return np.array(sorted(chosen)), value_numbers(values, n)


def touched(pairs, together):
    """By brute force: how many pairs hold anybody of each household."""
    return max(
        sum(together[a] == value or together[b] == value for a, b in pairs)
        for value in set(together)
    )


@settings(deadline=None, max_examples=60, derandomize=True)
@given(households())
def test_a_household_touches_every_pair_of_its_people_once(case):
    pairs, together = case
    assert kappa_together(kappa(pairs), pairs, together).person == touched(pairs, together)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(households(), st.sampled_from(PAIR_SELECTIONS), st.integers(0, 9))
def test_selections_keep_their_limit_for_households(case, how, seed):
    pairs, together = case
    kept = select_together(pairs, together, how, seed)
    assert len(kept)
    assert len(set(kept.tolist())) == len(kept)
    assert kept.max() < len(pairs)
    rule = SELECTIONS[how]
    assert touched(pairs[kept], together) <= rule.limit
    if rule.acyclic:
        assert kappa(pairs[kept]).relationship == 1


@settings(deadline=None, max_examples=60, derandomize=True)
@given(households(), st.integers(0, 9))
def test_everybody_alone_is_the_selection_of_people(case, seed):
    pairs, _ = case
    alone = np.arange(pairs.max() + 1)
    found = kappa_together(kappa(pairs), pairs, alone)
    assert found == kappa(pairs)
    assert touched(pairs[select_together(pairs, alone, "matching", seed)], alone) == 1


def _data(together=None):
    rng = np.random.default_rng(0)
    features = rng.uniform(size=(60, 3)) / 2
    pairs = np.stack([np.arange(59), np.arange(1, 60)], axis=1)
    ids, labels = [f"p{i:02d}" for i in range(60)], np.where(rng.random(59) < 0.5, 1, -1)
    return PairSet(features, pairs, labels, ids=ids, together=together)


def test_the_certificate_counts_a_household_and_says_so():
    plain = DPPMetricLearner(unit="person", select="all").certify(_data())
    shared = DPPMetricLearner(unit="person", select="all").certify(_data(np.arange(60) // 3))
    assert plain.kappas["person"] == 2
    assert shared.kappas["person"] == 4
    assert shared.kappas["relationship"] == plain.kappas["relationship"]
    assert PEOPLE_TOGETHER in shared.public
    assert PEOPLE_TOGETHER not in plain.public
    assert shared.epsilons["person"]["zero-out"] <= 1.0
    assert shared.events != plain.events  # more noise
    shared.verify()


def test_emptying_a_household_moves_no_more_than_is_charged():
    """All contents of one household at once: the used pairs that change are kappa at most."""
    data = _data(np.arange(60) // 5)
    for select in PAIR_SELECTIONS:
        prepared = DPPMetricLearner(unit="person", select=select).prepare(data)
        used, most = prepared.records.used, prepared.records.kappas["person"]
        for value in range(12):
            features = data.features.copy()
            features[np.arange(60) // 5 == value] = 0.55
            other = PairSet(features, data.pairs, data.labels, together=data.together)
            again = DPPMetricLearner(unit="person", select=select).prepare(other).records.used
            assert np.array_equal(used.pairs, again.pairs)
            changed = (used.differences() != again.differences()).any(axis=1).sum()
            assert changed <= most


def test_order_and_names_of_values_change_nothing():
    """Values are names: shuffled rows with the same ids choose the same pairs."""
    rng = np.random.default_rng(1)
    order = rng.permutation(60)
    names = np.array([f"p{i:02d}" for i in range(60)])
    homes = np.array([f"home {i // 4}" for i in range(60)], dtype=object)
    data = _data()
    one = PairSet(data.features, data.pairs, data.labels, ids=names, together=homes)
    place = np.argsort(order)
    two = PairSet(
        data.features[order],
        place[data.pairs],
        data.labels,
        ids=names[order],
        together=homes[order],
    )
    a, b = (DPPMetricLearner(unit="person").prepare(x).records for x in (one, two))
    assert np.array_equal(a.used.pairs, b.used.pairs)
    assert np.array_equal(a.used_rows, b.used_rows)
    assert a.kappas == b.kappas


def test_people_with_classes():
    rng = np.random.default_rng(2)
    X, y = rng.uniform(size=(900, 3)) / 2, rng.integers(0, 2, 900)
    homes = np.arange(900) // 3
    learner = DPPMetricLearner(unit="person")
    plain = learner.certify_classes(X, y, [0, 1])
    shared = learner.certify_classes(X, y, [0, 1], together=homes)
    assert shared.kappas["person"] >= 3 * plain.kappas["person"] - 1
    assert PEOPLE_TOGETHER in shared.public
    shared.verify()
    with pytest.raises(InputError, match="groups are records"):
        learner.certify_classes(X, y, [0, 1], groups=8, together=homes)


def test_groups_of_people_who_change_together_are_refused():
    with pytest.raises(InputError, match="groups are records"):
        DPPMetricLearner(select="groups").certify(_data(np.arange(60) // 3))


def test_one_value_a_person():
    with pytest.raises(InputError, match="one value for each of the 60 people"):
        _data(np.arange(59))


def test_a_threshold_must_cover_whom_the_metric_covers():
    learner = DPPMetricLearner(unit="person", random_state=0).fit(_data(np.arange(60) // 3))
    with pytest.raises(InputError, match="do not mean the same by a person"):
        learner.calibrate_threshold(_data(), _data().labels, epsilon=0.5)
    learner.calibrate_threshold(_data(np.arange(60) // 3), _data().labels, epsilon=0.5)
    assert learner.threshold_certificate_.kappas["person"] == 4


def test_a_value_that_is_written_in_two_ways_is_one():
    """To take one household for two would count too few pairs; two for one costs noise alone."""
    lanes = ["Mill Lane", "mill lane ", "MILL LANE", "\uff2dill Lane"]
    assert value_numbers(lanes, 4).tolist() == [0, 0, 0, 0]
    assert value_numbers(["12", "12.0", 12, " 12", "012", 12.0, "13"], 7).tolist() == [0] * 6 + [1]
    assert value_numbers(["nan", "NaN", "inf", "1e400", "1" * 30, "1" * 29 + "2"], 6).tolist() == [
        0, 0, 1, 2, 3, 4,
    ]  # fmt: skip


def test_a_column_has_one_name_by_who_shares_with_whom():
    ids = np.array(["ann", "bob", "cid", "dan"], dtype=object)
    name = together_digest(ids, value_numbers(["Mill Lane", "mill lane ", "a", "a"], 4))
    alike = [
        (ids, [2, 2, 1, 1]),
        (ids[::-1], ["x", "x", "y", "y"]),
        ([*ids, "eve", "flo"], [0, 0, 1, 1, 2, None]),  # who stands alone is nobody's household
    ]
    other = [
        (ids, [0, 0, 0, 0]),
        (ids, [0, 0, None, None]),
        (ids, [0, 1, 0, 1]),
        (["annb", "ob", "cid", "dan"], [0, 0, 1, 1]),
        ([*ids, "eve"], [0, 0, 1, 1, 1]),
    ]
    assert {together_digest(who, value_numbers(what, len(who))) for who, what in alike} == {name}
    found = {together_digest(who, value_numbers(what, len(who))) for who, what in other}
    assert len(found | {name}) == 6
    assert together_digest([7, 9], [0, 0]) == together_digest(["7", "9"], [3, 3])
    assert together_digest(None, [0, 0]) is None


def test_missing_values_of_any_kind_stand_alone_and_what_has_no_equal_is_refused():
    missing = [None, float("nan"), pd.NA, pd.NaT, "", "  "]
    assert value_numbers([*missing, "a", "a "], 8).tolist() == [0, 1, 2, 3, 4, 5, 6, 6]
    for wrong in ([1], {"a": 1}, np.arange(2)):
        values = np.empty(2, dtype=object)
        values[:] = ["a", None]
        values[1] = wrong
        with pytest.raises(InputError, match="row 2"):
            value_numbers(values, 2)
