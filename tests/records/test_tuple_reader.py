"""Files of relative comparisons: who was asked about is public and checked, answers are private."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil import InputError, read_features
from pairveil.errors import IdentityWarning, PrivateNote
from pairveil.records import read_tuples

IDS = ["ann", "bob", "kanarienvogel", "dan", "eve"]
PEOPLE = read_features({"id": IDS, "a": [0.1, 0.2, 0.3, 0.4, 0.5]})
NUMBERED = read_features({"id": [10, 11, 12], "a": [0.1, 0.2, 0.3]})


def _parts(data: Any) -> list[list[int]]:
    """Rows of people by role, null comparisons as []."""
    return [
        [int(members[at]) for at in order if at >= 0]
        for members, order in zip(data.tuples, data.order, strict=True)
    ]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.permutations(range(5)).map(lambda p: p[:4]), min_size=1, max_size=6))
def test_both_layouts_say_the_same(parts: list[list[int]]) -> None:
    """Anchor, positive, negatives by column; or candidates in any order and the number of the nearest."""
    by_role = np.array(IDS)[np.array(parts)].T
    names = ["anchor", "positive", "negative", "negative2"]
    table = dict(zip(names, by_role, strict=True))
    shuffled = {name: table[name] for name in ("negative", "positive", "negative2", "anchor")}
    places = [1 + at % 3 for at in range(len(parts))]
    candidates = [
        [*p[2 : 1 + place], p[1], *p[1 + place :]] for p, place in zip(parts, places, strict=True)
    ]
    asked: dict[str, Any] = {"anchor": by_role[0], "answer": places, "when": [""] * len(parts)}
    for at, column in enumerate(np.array(IDS)[np.array(candidates)].T):
        asked[f"candidate{at + 1}"] = column
    expected = [list(p) for p in parts]
    assert _parts(read_tuples(table, PEOPLE)) == expected
    assert _parts(read_tuples(shuffled, PEOPLE)) == expected
    assert _parts(read_tuples(asked, PEOPLE)) == expected


@pytest.mark.parametrize("answer", ["", "0", "3", "1.5", "-1", "nan", "inf", "verdächtig", None])
def test_an_answer_that_cannot_be_used_is_null_and_stops_nothing(answer: str | None) -> None:
    table = {
        "anchor": ["ann", "bob"],
        "candidate1": ["bob", "dan"],
        "candidate2": ["dan", "eve"],
        "answer": [answer, "2"],
    }
    with pytest.warns(PrivateNote, match="1 answer names no column") as said:
        data = read_tuples(table, PEOPLE)
    assert _parts(data) == [[], [1, 4, 3]]
    assert "verdächtig" not in str(said[0].message)
    assert data.tuples.tolist() == [[0, 1, 3], [1, 3, 4]]  # who was asked about stays


def test_a_file_numbers_and_similar_ids(tmp_path: Path) -> None:
    file = tmp_path / "triples.csv"
    file.write_text("anchor,positive,negative\n10,12,11\n")
    data = read_tuples(file, NUMBERED)
    assert _parts(data) == [[0, 2, 1]]
    assert data.ids is not None
    assert data.feature_names == ("a",)
    file.write_text("anchor,positive,negative\nANN ,bob,dan\nann,eve,dan\n")
    with pytest.warns(IdentityWarning), pytest.raises(InputError, match="merge_similar_ids=True"):
        read_tuples(file, PEOPLE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        merged = read_tuples(file, PEOPLE, merge_similar_ids=True)
    assert _parts(merged) == [[0, 1, 3], [0, 4, 3]]


WRONG: list[tuple[str, dict[str, list[Any]]]] = [
    ("no column 'positive'", {"anchor": ["ann"], "negative": ["bob"]}),
    ("lacks columns of ids: anchor, positive, negative", {"anchor": ["ann"], "positive": ["bob"]}),
    (
        "lacks columns of ids: anchor, candidate1, candidate2",
        {"anchor": ["ann"], "candidate": ["bob"], "answer": [1]},
    ),
    ("no tuples", {"anchor": [], "positive": [], "negative": []}),
    (
        r"1 of 2 tuples names an id without features \(first: row 2\)",
        {"anchor": ["ann", "kanarienvogel"], "positive": ["bob"] * 2, "negative": ["dan", "x"]},
    ),
    (
        r"names a person twice \(row 1\)",
        {"anchor": ["kanarienvogel"], "positive": ["bob"], "negative": ["kanarienvogel"]},
    ),
    (
        "column 'negative2'",
        {"anchor": ["ann"], "positive": ["bob"], "negative": ["dan"], "negative2": [None]},
    ),
]


@pytest.mark.parametrize(("said", "table"), WRONG)
def test_what_is_public_is_checked(said: str, table: dict[str, list[Any]]) -> None:
    with pytest.raises(InputError, match=said) as problem:
        read_tuples(table, PEOPLE)
    assert "kanarienvogel" not in str(problem.value)
