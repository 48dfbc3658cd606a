"""Ids and words of pandas and polars tables mean what they mean in files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from learners import chain, people
from pairveil import DPPMetricLearner, InputError, PrivacyLedger
from pairveil.privacy.profile import epsilon_of

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
X, GROUPS = people()
PAIRS, Y = chain(GROUPS)
NAMES = np.array([f"p{i:03d}" for i in range(len(X))], dtype=object)
WORDS = np.where(Y > 0, "same", "different")
FRAME = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])


def learner(**more: object) -> DPPMetricLearner:
    return DPPMetricLearner(epsilon=4.0, random_state=0, n_steps=5, **more)


@pytest.mark.parametrize(
    "table",
    [FRAME.set_index(NAMES), FRAME.assign(id=NAMES), pl.from_pandas(FRAME.assign(id=NAMES))],
    ids=["index", "column", "polars"],
)
@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.DataFrame])
def test_text_ids_and_words_give_the_same_metric(table, as_frame):
    wanted = learner(preprocessor=FRAME).fit(PAIRS, Y)
    named = as_frame({"left": NAMES[PAIRS[:, 0]].tolist(), "right": NAMES[PAIRS[:, 1]].tolist()})
    made = learner(preprocessor=table).fit(named, WORDS)
    np.testing.assert_array_equal(made.components_, wanted.components_)
    np.testing.assert_array_equal(made.pair_distance(named), wanted.pair_distance(PAIRS))
    assert made.score(named, WORDS) == wanted.score(PAIRS, Y)
    assert made.feature_names_in_.tolist() == list(FRAME.columns)


def test_bounds_leave_the_ids_alone():
    bounds = dict.fromkeys(FRAME.columns, (-2.0, 2.0))
    by_name = learner(preprocessor=FRAME.assign(id=NAMES), bounds=bounds).fit(NAMES[PAIRS], Y)
    by_row = learner(preprocessor=FRAME, bounds=bounds).fit(PAIRS, Y)
    np.testing.assert_array_equal(by_name.components_, by_row.components_)


@pytest.mark.parametrize(
    ("table", "pairs", "problem"),
    [
        (FRAME, [["p001", "p002"]], "preprocessor does not"),
        (
            FRAME.set_index(NAMES),
            [["p001", "kanarienvogel"]],
            "1 of 1 pairs name an id without features",
        ),
        (FRAME.assign(id="p001"), [["p001", "p001"]], "One row a person"),
    ],
)
def test_unknown_people_are_refused_without_being_named(table, pairs, problem):
    with pytest.raises(InputError, match=problem) as caught:
        learner(preprocessor=table).fit(pairs, [1])
    assert "kanarienvogel" not in str(caught.value)


def test_a_word_that_is_no_label_is_refused_without_being_shown():
    with pytest.raises(InputError) as caught:
        learner(preprocessor=FRAME).fit(PAIRS, np.where(Y > 0, "same", "verdächtig"))
    assert "verdächtig" not in str(caught.value)


@pytest.mark.parametrize("select", ["paths", "matching", "groups"])
def test_the_order_of_a_table_is_no_matter_where_people_have_names(select):
    """Tables are sorted by class or score: which pairs are used must follow from names alone."""
    rng = np.random.default_rng(0)
    names = np.array([f"p{i:02d}" for i in range(40)])
    people = pd.DataFrame(rng.normal(size=(40, 2)) / 4, columns=["a", "b"], index=names)
    ends = np.array([(i, j) for i in range(40) for j in range(i) if rng.random() < 0.15])
    labels = rng.choice([1, -1], len(ends))

    def components(table):
        learner = DPPMetricLearner(preprocessor=table, select=select, random_state=0)
        learner.fit(names[ends], labels)
        return learner.components_, learner.used_pairs_

    expected, used = components(people)
    by_column = people.sort_values("a")
    tables = [
        by_column,
        by_column.reset_index(names="id"),
        pl.from_pandas(by_column.reset_index(names="id")),
    ]
    for table in tables:
        found, again = components(table)
        np.testing.assert_array_equal(again, used)
        np.testing.assert_array_equal(found, expected)


def test_classes_of_named_people_follow_their_names():
    """A table that is sorted by class must not decide who is grouped with whom."""
    rng = np.random.default_rng(0)
    names, classes = np.array([f"p{i:02d}" for i in range(30)]), rng.integers(0, 2, 30)
    table = pd.DataFrame(rng.normal(size=(30, 2)) / 4, columns=["a", "b"], index=names)
    order = np.argsort(classes, kind="stable")

    def groups(given, y):
        used = learner().prepare_classes(given, y, classes=[0, 1], groups=3).records.used
        return used.features[used.members]

    expected = groups(table, classes)
    for sorted_ in (table.iloc[order], table.iloc[order].reset_index(names="id")):
        np.testing.assert_array_equal(groups(sorted_, classes[order]), expected)


@pytest.mark.parametrize("named", [lambda table: table, lambda table: table.set_index("id")])
def test_somebody_in_two_rows_of_a_table_is_refused(named):
    """She would be two people to kappa and to the certificate, each protected by half."""
    table = named(pd.DataFrame({"id": np.repeat(["ann", "bob"], 30), "a": np.linspace(0, 1, 60)}))
    y = np.resize([0, 1], 60)
    with pytest.raises(InputError, match="an id occurs twice"):
        DPPMetricLearner(unit="person").certify_classes(table, y, [0, 1])
    rows = np.arange(60).reshape(-1, 2)
    with pytest.raises(InputError, match="One row a person"):
        DPPMetricLearner(unit="person", preprocessor=table).certify(rows, y[:30] * 2 - 1)


@pytest.mark.parametrize(
    ("table", "known"),
    [
        (FRAME.set_index(NAMES), True),
        (FRAME.assign(id=NAMES), True),
        (pl.from_pandas(FRAME.assign(id=NAMES)), True),
        (FRAME.set_index(pd.Index(np.arange(len(X)) + 70, name="id")), True),
        (FRAME, False),
        (FRAME.set_index(pd.Index(np.arange(len(X)), name="row")), False),
        (FRAME.to_numpy(), False),
    ],
    ids=["text index", "column", "polars", "index called id", "default", "another index", "array"],
)
def test_names_tell_every_learner_which_pairs_are_the_same(table, known):
    """Three fits of 1 cost 4.0 where the same pairs with ids cost 1.8; a row number is nobody's name."""
    ledger = PrivacyLedger(epsilon=50.0, delta=1e-5)
    order = np.random.default_rng(0).permutation(len(X))
    moved = table[order] if not hasattr(table, "iloc") else table.iloc[order]
    places = np.empty(len(X), dtype=np.int64)
    places[order] = np.arange(len(X))
    for people_of, pairs in ((table, PAIRS), (moved, places[PAIRS])):
        learner(preprocessor=people_of, accountant=ledger).fit(pairs, Y)
    names = {entry.graph for entry in ledger.entries}
    assert len(names) == (1 if known else 2)
    kappa = 1 if known else 2
    events = [event for entry in ledger.entries for event in entry.events]
    assert ledger.spent() == pytest.approx(epsilon_of(events, kappa=kappa, delta=1e-5))
