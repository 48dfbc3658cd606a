"""One example each of small parts that readers, learners and releases share."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pairveil._lazy import load_named, offered
from pairveil.column_names import (
    arrow_cells,
    cell_text,
    in_order,
    in_order_of,
    names_of,
    row_in_order,
)
from pairveil.errors import DataWarning, InputError
from pairveil.foreign import check_growth, decode, taking_apart
from pairveil.printable import as_cell, from_cell, shortened
from pairveil.records.dirt import sifted
from pairveil.records.groups import class_numbers
from pairveil.records.identity import count_similar, folded, folded_ids, look_up_some
from pairveil.records.readers import read_levels
from pairveil.records.tables import (
    PairTable,
    as_ids,
    number_column,
    repeated_rows,
    same_kind,
    write_columns,
)
from pairveil.schema.columns import NumberColumn


def test_columns_are_matched_by_name():
    table = pd.DataFrame({"age": [1.0], "dose": [2.0]})
    assert names_of(table) == ("age", "dose")
    assert names_of(pd.DataFrame(np.eye(2))) is names_of(np.eye(2)) is None
    with pytest.warns(DataWarning, match="matched by name"):
        assert list(in_order(table, ["dose", "age"]).columns) == ["dose", "age"]
    assert row_in_order(pd.Series({"age": 1.0, "dose": 2.0}), ["dose", "age"]).tolist() == [2, 1]
    in_order_of(
        ["id", "age", "ward", "dose"], ["age", "dose"]
    )  # says nothing: the order is the same
    with pytest.warns(DataWarning, match="matched by name"):
        in_order_of(["dose", "age"], ["age", "dose"])


def test_cells_become_text_and_numbers_one_by_one():
    assert [cell_text(one) for one in (1.0, True, "a", None, math.nan)] == [
        "1",
        "true",
        "a",
        None,
        None,
    ]
    assert arrow_cells([1, "b", None], "ward").to_pylist() == ["1", "b", None]
    answers = number_column("answer", ",")
    answers.add(pa.array(["1,5", "2.5", "n/a", None]), 0)
    assert np.array_equal(answers.finish(), [1.5, 2.5, math.nan, math.nan], equal_nan=True)
    column = number_column("name", ".")
    column.add(pa.array([1, None]), 0)
    column.add(pa.nulls(1), 2)
    column.add(pa.array(["+2.5", "1,5", "true"]), 3)
    numbers = [1, math.nan, math.nan, 2.5, math.nan, 1]
    assert np.array_equal(column.finish(), numbers, equal_nan=True)
    assert column.counts == (0, 2, 1, (1, 2, 4))
    age = NumberColumn("age", bounds=(0, 120))
    values, counts = age.encode(pa.array(["30", "999", "x"]), ".")
    assert values.ravel().tolist() == [0.25, 1.0, 0.5]
    assert counts == (1, 0, 1, (2,))


def test_ids_are_whole_numbers_or_text():
    assert as_ids(["3", "4"]).tolist() == [3, 4]
    assert as_ids(["a", "3"]).tolist() == ["a", "3"]
    left, right = same_kind(np.array([1, 2]), np.array(["1", "b"], dtype=object))
    assert (left.tolist(), right.tolist()) == (["1", "2"], ["1", "b"])
    assert repeated_rows(np.array([7, 8, 7])).tolist() == [2]
    people = np.array(["ann", "bob", "ann ", "ANN"], dtype=object)
    assert folded_ids(people).tolist() == ["ann", "bob", "ann", "ann"]
    assert count_similar(people) == 2
    assert folded(" Mill Lane") == "mill lane"


def test_classes_by_their_place_in_a_public_list():
    assert class_numbers(["a", "b", "z"], ["a", "b"]).tolist() == [0, 1, -1]
    with pytest.raises(InputError, match="list each class once"):
        class_numbers(["a"], ["a", "a"])


def test_values_of_pairs_are_found_whichever_side_is_left():
    table = {"left": ["3", "1"], "right": ["1", "2"], "name": [2, 1], "dob": [None, 0]}
    read = read_levels(table, "left", "right")
    assert np.array_equal(read.values, [[2, math.nan], [1, 0]], equal_nan=True)
    wanted = PairTable(["2"], ["1"])
    assert look_up_some(read.asked(wanted), read.ids).tolist() == [[1]]
    twice = {"left": ["2", "1", "3"], "right": ["1", "2", "1"], "name": [2, 1, 0]}
    with pytest.raises(
        InputError, match="1 row of the levels repeats a pair that another row has: row 2"
    ):
        sifted(read_levels(twice, "left", "right"), wanted)
    # Joined, both pairs would read a, b, c; one row of levels would count for two.
    odd = {"left": ["a\x1fb", "a"], "right": ["c", "b\x1fc"], "name": [1, 0]}
    with pytest.raises(InputError, match=r"U\+001F"):
        read_levels(odd, "left", "right")


def test_text_for_people_and_spreadsheets(tmp_path):
    assert shortened(["age", "dose", "ward"], at_most=2) == "age, dose and 1 more"
    assert as_cell("=cmd|' /C calc'!A0") == "'=cmd|' /C calc'!A0"
    assert [from_cell(as_cell(text)) for text in ("=1", "'=1", "'tis", "-")] == [
        "=1",
        "'=1",
        "'tis",
        "-",
    ]
    written = write_columns(
        tmp_path / "a.csv", {"left": np.array([0, 1]), "=b": np.array(["=1", "2"])}
    )
    assert written.read_text() == '"left","\'=b"\n0,"\'=1"\n1,"2"\n'


def test_foreign_data_end_in_a_sentence():
    assert decode({"a": 1, "b": 2.5}, dict[str, float], "the table") == {"a": 1.0, "b": 2.5}
    with pytest.raises(InputError, match="a whole number in every place"):
        decode([1, True], list[int], "the table")
    with pytest.raises(InputError, match="is not valid"), taking_apart("dedupe.json"):
        [][0]
    with pytest.raises(InputError, match="more than 100 times its size"):
        check_growth("people.npz", size=4_000_000, decoded=4_400_000_000)


def test_names_are_loaded_when_they_are_asked_for():
    found = offered("shop", {"math": "pi"}, {"numpy.linalg": "norm"})
    assert found("pi") == math.pi
    with pytest.raises(AttributeError, match=r"from numpy\.linalg import norm"):
        found("norm")
    assert load_named("math:tau", "number") == math.tau
    with pytest.raises(InputError, match="cannot be imported"):
        load_named("no_such_module:x", "learner")
