"""A schema makes numbers of raw rows: any content, each row by itself, never longer than is promised."""

from __future__ import annotations

import datetime
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil import InputError, Schema, read_schema
from pairveil.errors import PrivateNote
from pairveil.records.readers import guess_types
from pairveil.schema.columns import CategoryColumn, Column, DateColumn, NumberColumn
from pairveil.schema.schema import template, to_toml

SCHEMA = Schema(
    (
        Column("id", type="id"),
        NumberColumn("age", bounds=(0, 120), fill=40, indicator=True),
        NumberColumn("dose", bounds=(-1.5, 2.5)),
        CategoryColumn("ward", categories=("a", "b"), fill="b"),
        CategoryColumn("sex", categories=("f", "m"), indicator=True),
        DateColumn("visit", bounds=("2020-01-01", "2024-01-01")),
    )
)
CELLS = st.one_of(
    st.none(), st.text(max_size=8), st.integers(), st.floats(), st.booleans(), st.dates(),
    st.sampled_from(["1,5", "1e999", "-7", "a", "m", "2021-05-06", "NaN", "", " b ", "0x1f", "1_0"]),
)  # fmt: skip
ROWS = st.lists(st.tuples(*[CELLS] * len(SCHEMA.raw_names)), min_size=1, max_size=6)


def quietly(schema: Schema, table: object) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivateNote)
        return schema.apply(table)


def as_text(rows: list[tuple[object, ...]]) -> dict[str, list[str | None]]:
    return {
        name: [None if row[at] is None else str(row[at]) for row in rows]
        for at, name in enumerate(SCHEMA.raw_names)
    }


@given(ROWS)
@settings(deadline=None)
def test_any_content_becomes_numbers_within_the_promised_length(rows):
    made = quietly(SCHEMA, as_text(rows))
    assert made.shape == (len(rows), len(SCHEMA.feature_names))
    assert np.all((made >= 0) & (made <= 1))
    assert np.all(np.linalg.norm(made, axis=1) <= SCHEMA.longest * (1 + 1e-12))
    assert np.all(np.linalg.norm(made * SCHEMA.factor(2.0), axis=1) <= 2.0 * (1 + 1e-12))


@given(ROWS, ROWS)
@settings(deadline=None)
def test_a_row_is_encoded_by_itself(rows, others):
    alone = quietly(SCHEMA, as_text(rows))
    among = quietly(SCHEMA, as_text([*others, *rows]))
    np.testing.assert_array_equal(alone, among[len(others) :])


def test_each_type_by_hand():
    table = {
        "age": ["30", None, "200"],
        "dose": [-1.5, 0.5, 9.0],
        "ward": ["a", "", "zzz"],
        "sex": ["m", None, "f"],
        "visit": ["2022-01-01T08:00", "gestern", "1999-01-01"],
    }
    with pytest.warns(PrivateNote) as said:
        made = SCHEMA.apply(table)
    by_name = dict(zip(SCHEMA.feature_names, made.T.tolist(), strict=True))
    assert by_name["age"] == [30 / 120, 40 / 120, 1.0]
    assert by_name["age missing"] == [0, 1, 0]
    assert by_name["dose"] == [0, 0.5, 1]
    assert [by_name[f"ward={level}"] for level in ("a", "b", "other")] == [
        [1, 0, 0], [0, 1, 0], [0, 0, 1]]  # fmt: skip
    assert [by_name[f"sex={level}"] for level in ("f", "m", "other")] == [
        [0, 0, 1], [1, 0, 0], [0, 1, 0]]  # fmt: skip
    assert by_name["sex missing"] == [0, 1, 0]
    assert by_name["visit"] == [pytest.approx(731 / 1461), 0.5, 0]
    text = " ".join(str(one.message) for one in said)
    for part in ("'other'): 4, in age (1)", "cells missing", ": 3, in", "): 1, in visit (1)"):
        assert part in text
    assert "zzz" not in text
    assert "gestern" not in text


@pytest.mark.parametrize(
    ("cells", "guess"),
    [
        (["31.12.2020", "1.2.2020 14:30", ""], ("date", "%d.%m.%Y")),
        (["31.12.20"], ("date", "%d.%m.%y")),
        (["01/02/2020", "31/12/2020"], ("date", "%d/%m/%Y")),
        (["01/02/2020", "12/31/2020"], ("date", "%m/%d/%Y")),
        (["2020/12/31"], ("date", "%Y/%m/%d")),
        (["2020-12-31T10:00"], ("date", "")),
        (["1,5"] * 19 + ["unknown"], ("number", "")),
        (["1,5", "unknown"], ("category", "")),
        ([None, "?"], ("number", "")),
    ],
)
def test_types_are_guessed_from_how_cells_are_written(cells, guess):
    table = {"id": [str(at) for at in range(len(cells))], "x": cells}
    guessed = guess_types(table, "id")["x"]
    assert guessed == guess
    if guess[0] == "date":  # what is guessed is also what reads it
        made = Schema((DateColumn("x", bounds=("2019-01-01", "2021-01-01"), format=guess[1]),))
        encoded = quietly(made, {"x": [cell for cell in cells if cell]})
        assert not np.any(np.isin(encoded, (0.0, 0.5)))


def test_numbers_with_a_comma_where_the_schema_says_so():
    comma = Schema((NumberColumn("x", bounds=(0, 10)),), decimal=",")
    assert comma.apply({"x": ["2,5", "5"]}).tolist() == [[0.25], [0.5]]
    with pytest.warns(PrivateNote, match="not readable"):
        assert Schema(comma.columns).apply({"x": ["2,5"]}).tolist() == [[0.5]]


def test_categories_are_the_same_however_they_are_typed():
    column = Schema((CategoryColumn("k", categories=(1, 2)),))
    for values in ([1, 2], [1.0, 2.0], ["1", " 2 "], pd.Series([1, 2]).astype("category")):
        assert column.apply({"k": values}).argmax(axis=1).tolist() == [0, 1]
    flags = Schema((CategoryColumn("k", categories=(True, False)),))
    assert flags.apply({"k": [True, False]}).argmax(axis=1).tolist() == [0, 1]


def test_a_category_called_other_takes_the_rest():
    column = CategoryColumn("k", categories=("other", "a"))
    assert column.feature_names == ("k=other", "k=a")
    with pytest.warns(PrivateNote):
        assert Schema((column,)).apply({"k": ["b"]}).tolist() == [[1, 0]]


def test_every_kind_of_table_gives_the_same():
    raw = {
        "visit": ["2021-01-01", "2022-02-02"], "age": [50, 60], "dose": [0.0, 1.0],
        "ward": ["a", "b"], "sex": ["f", "m"], "unknown": [1, 2],
    }  # fmt: skip
    expected = SCHEMA.apply(raw)
    dates = {**raw, "visit": [datetime.date.fromisoformat(one) for one in raw["visit"]]}
    for table in (
        pd.DataFrame(raw), pl.DataFrame(raw), pl.DataFrame(raw).lazy(), pa.table(raw), pa.table(dates),
        pl.DataFrame(dates), pd.DataFrame(raw | {"visit": pd.to_datetime(raw["visit"])}),
        np.array([[raw[name][i] for name in SCHEMA.raw_names] for i in (0, 1)], dtype=object),
    ):  # fmt: skip
        np.testing.assert_array_equal(SCHEMA.apply(table), expected)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"age": [1]}, "lacks 4 of the schema's columns"),
        (np.zeros((2, 2)), r"shape \(2, 2\)"),
    ],
)
def test_structure_that_does_not_fit_is_refused(table, problem):
    with pytest.raises(InputError, match=problem):
        SCHEMA.apply(table)


def test_of_a_type_that_does_not_fit_no_cell_can_be_read() -> None:
    """One cell more or less decides a column's type, and nothing is refused for it."""
    schema = SCHEMA.only(["visit", "dose"])
    for rows in range(1, 4):
        table = {
            "visit": pa.array([1] * rows),
            "dose": pa.array([datetime.date(2020, 2, 3)] * rows),
        }
        values, counts = schema.encode(pa.table(table))
        assert counts["visit"].unreadable == counts["dose"].unreadable == rows
        assert np.array_equal(
            values, schema.encode({"visit": [None] * rows, "dose": [""] * rows})[0]
        )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a table"),
        ("x = 1\n[columns]", "'x' is not known"),
        ("version = 9\n[columns]", "newer pairveil"),
        ("version = true\n[columns]", "whole number"),
        ("decimal = ';'\n[columns]", "decimal must be"),
        ("[columns.a]\ntype = 'numbr'", "'a': type must be one of number"),
        ("[columns.a]\ntype = 'number'\nbounds = 3", "bounds must be a list"),
        ("[columns.a]\ntype = 'number'\nbounds = [3, 1]", "lower bound"),
        ("[columns.a]\ntype = 'number'\nbounds = [nan, 1]", "two numbers"),
        ("[columns.a]\ntype = 'number'\nbounds = [0, inf]", "two numbers"),
        ("[columns.a]\ntype = 'number'\nbounds = [0, true]", "two numbers"),
        ("[columns.a]\ntype = 'number'\nbounds = []", "1 column has blanks: a"),
        ("[columns.a]\ntype = 'number'\nbounds = [0, 1]\nfill = 'x'", "fill must be"),
        ("[columns.a]\ntype = 'number'\nbounds = [0, 1]\nindicator = 1", "true or false"),
        ("[columns.a]\ntype = 'number'\nlower = 0", "'lower' is no key of a number column"),
        ("[columns.a]\ntype = 'date'\nbounds = [1, 2]", "two dates"),
        ("[columns.a]\ntype = 'category'\ncategories = ['x', ' x']", "different from each other"),
        ("[columns.a]\ntype = 'category'\ncategories = ['x']\nfill = 'y'", "one of the categories"),
        ("[columns.a]\ntype = 'id'\n[columns.b]\ntype = 'id'", "only one column"),
        ("[columns.a]\ntype = 'skip'", "no column of type number"),
        ("[columns]\na = 1", "a table of its own"),
        ("[columns.a", "not TOML"),
        ("[columns.'k=a']\ntype='number'\nbounds=[0,1]\n[columns.k]\ntype='category'\ncategories=['a']",
         "same name"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_explained(text, problem, tmp_path):
    file = tmp_path / "schema.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_schema(file)


def test_a_missing_file_names_the_command(tmp_path):
    with pytest.raises(InputError, match="pairveil schema FEATURES"):
        read_schema(tmp_path / "none.toml")


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
FINITE = st.floats(-1e9, 1e9)


@given(
    st.dictionaries(NAMES, st.tuples(FINITE, FINITE, st.booleans(), NAMES), min_size=1, max_size=4)
)
@settings(deadline=None)
def test_a_schema_survives_its_files(columns):
    made = []
    for name, (low, width, indicator, unit) in columns.items():
        made.append(
            NumberColumn(name, bounds=(low, low + abs(width) + 1), indicator=indicator, unit=unit)
        )
    try:
        schema = Schema(tuple(made))
    except InputError:  # 'a' with an indicator beside 'a missing'
        return
    import tomllib

    assert Schema.from_dict(tomllib.loads(to_toml(schema))) == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_all_types_survive_their_files(tmp_path):
    file = tmp_path / "schema.toml"
    file.write_text(to_toml(SCHEMA))
    assert read_schema(file) == SCHEMA
    assert Schema.from_dict(json.loads(json.dumps(SCHEMA.to_dict()))) == SCHEMA


def test_the_template_is_blank_and_asks_for_each_blank(tmp_path):
    file = tmp_path / "schema.toml"
    types = {"id": "id", "a b": "number", "w": "category", "d": "date", "y": "class", "z": "skip"}
    file.write_text(template({name: (kind, "") for name, kind in types.items()}, "people.csv"))
    with pytest.raises(InputError, match="3 columns have blanks: a b, w, d"):
        read_schema(file)
    filled = file.read_text().replace("bounds = []", "bounds = [0, 1]", 1)
    filled = filled.replace("categories = []", "categories = ['a']")
    file.write_text(filled.replace("bounds = []", "bounds = [2020-01-01, 2021-01-01]"))
    schema = read_schema(file)
    assert schema.raw_names == ("a b", "w", "d")
    assert (schema.id, schema.classes) == ("id", "y")


def test_some_of_the_columns():
    assert SCHEMA.only(["dose", "age"]).raw_names == ("age", "dose")
    assert SCHEMA.only(exclude=["ward", "visit"]).raw_names == ("age", "dose", "sex")
    with pytest.raises(InputError, match="no column nothing"):
        SCHEMA.only(["nothing"])


@pytest.mark.parametrize("fill", [0, 0.0, 1])
def test_a_fill_value_of_zero_is_written_down(fill):
    """The receiver of a release reads the schema: without it missing values were the middle there."""
    column = NumberColumn("a", bounds=(0, 1), fill=fill)
    again = Schema.from_dict(Schema((column,)).to_dict())
    assert again.encode({"a": [None]})[0].item() == fill
