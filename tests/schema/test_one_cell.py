"""One person's cells change her own row and no other: neither a file nor a table in memory lets them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pairveil import DPPMetricLearner, InputError, PairSet, read_features, read_pairs, read_schema
from pairveil.column_names import cell_text
from pairveil.jobs.reading import read_column
from pairveil.records.readers import read_levels

SCHEMA = """version = 1
[columns.id]
type = "id"
[columns.smoker]
type = "category"
categories = ["true", "false"]
[columns.sick]
type = "number"
bounds = [0, 4]
[columns.born]
type = "date"
bounds = ["1900-01-01", "2030-01-01"]
format = "%d.%m.%Y"
[columns.seen]
type = "date"
bounds = ["1900-01-01", "2030-01-01"]
[columns.visit]
type = "category"
categories = ["2020-01-01", "2021-01-01"]
[columns.dose]
type = "category"
categories = ["1", "2.5"]
[columns.titre]
type = "number"
bounds = [0.1, 10]
scale = "log"
"""
NAMES = ["id", "smoker", "sick", "born", "seen", "visit", "dose", "titre"]


def rows():
    day = datetime.datetime
    return [
        [f"p{i}", i % 2 > 0, i % 3 > 0, day(1950 + i, 3, 4), day(2000, 1 + i, 2, 9, 30),
         day(2020 + i % 2, 1, 1), [1.0, 2.5][i % 2], [0.2, 7.0, 1e-5, 3.25, 40.0, 2.0][i]]
        for i in range(6)
    ]  # fmt: skip


def in_excel(table, folder):
    book = openpyxl.Workbook()
    for row in [NAMES, *table]:
        book.active.append(row)
    book.save(folder / "people.xlsx")
    return folder / "people.xlsx"


def in_csv(table, folder):
    lines = (",".join(map(str, row)).lower().replace(" 00:00:00", "") for row in [NAMES, *table])
    (folder / "people.csv").write_text("\n".join(lines))
    return folder / "people.csv"


def in_pandas(table, folder):
    return pd.DataFrame(table, columns=NAMES)


def in_numpys_kinds(table, folder):
    kinds = {bool: np.bool_, float: np.float32}
    return in_pandas(
        [[kinds.get(type(one), lambda x: x)(one) for one in row] for row in table], folder
    )


def in_polars(table, folder):
    columns = dict(zip(NAMES, zip(*table, strict=True), strict=True))
    texts = {
        name: isinstance(cells[-1], str) and cells[-1] == "?" for name, cells in columns.items()
    }
    return pl.DataFrame(
        [
            pl.Series(name, cells, dtype=pl.Object if texts[name] else None)
            for name, cells in columns.items()
        ]
    )


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
@pytest.mark.parametrize("written", [in_excel, in_csv, in_pandas, in_numpys_kinds, in_polars])
@pytest.mark.parametrize("column", NAMES[1:])
def test_a_cell_that_cannot_be_read_changes_nobody_elses_row(written, column, tmp_path) -> None:
    """Of a column of dates, or of true and false, one text makes a column of texts."""
    (tmp_path / "schema.toml").write_text(SCHEMA)
    schema, other = read_schema(tmp_path / "schema.toml"), rows()
    other[-1][NAMES.index(column)] = "?"
    first, second = (
        read_features(written(table, tmp_path), schema=schema).values for table in (rows(), other)
    )
    assert np.array_equal(first[:-1], second[:-1])
    assert not np.array_equal(first[-1], second[-1])


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
@pytest.mark.parametrize("cell", ["?", None, 1.5, [1], {"a": 1}, np.zeros(2), b"\xff"])
@pytest.mark.parametrize("classes", [[0, 1], [False, True], ["a", "b"]])
def test_so_it_is_with_a_list_of_classes(classes, cell) -> None:
    """NumPy makes texts of all numbers of a list where one is a text."""
    learner = DPPMetricLearner(4.0, 1e-3, unit="person", random_state=0)
    people, listed, found = np.eye(40, 3), [classes[i % 2] for i in range(40)], []
    for last in (classes[1], cell):
        made = learner.prepare_classes(people, [*listed[:-1], last], classes)
        found.append(made.records.used.classes)
    assert np.array_equal(found[0][:-1], found[1][:-1])
    assert found[1][-1] == -1 != found[0][-1]


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
def test_so_it_is_with_labels() -> None:
    """Of texts and bytes pandas' categories are bytes to Arrow, and these are no text."""
    found = []
    for last in ("different", b"\xff"):
        labels = pd.Categorical(["same", "different", "same", last])
        table = pd.DataFrame({"left": list("abcd"), "right": list("efgh"), "label": labels})
        found.append(read_pairs(table).labels.tolist())
    assert found == [[1, -1, 1, -1], [1, -1, 1, 0]]


@pytest.mark.parametrize("column", ["smoker", "dose"])
def test_so_it_is_with_a_column_of_classes(column, tmp_path) -> None:
    found = []
    for cell in (True, "?"):
        table = rows()
        table[-1][NAMES.index(column)] = cell
        found.append(read_column(in_excel(table, tmp_path), column, "--classes").tolist())
    assert found[0][:-1] == found[1][:-1]


DATES = 'type = "date"\nbounds = ["1900-01-01", "2030-01-01"]\n'
NUMBERS = 'type = "number"\nbounds = [0, 100]\n'


def read_cells(cells, column, folder, kind=None):
    """One column of a frame, or of an Excel file, as a schema's column reads it."""
    (folder / "one.toml").write_text(
        f'version = 1\n[columns.id]\ntype = "id"\n[columns.x]\n{column}'
    )
    table = [[f"p{i}", cell] for i, cell in enumerate(cells)]
    frame = pd.DataFrame({"id": [row[0] for row in table], "x": cells})
    if kind == "polars":
        frame = pl.DataFrame({"id": [row[0] for row in table], "x": pl.Series(cells)})
    if kind == "excel":
        book = openpyxl.Workbook()
        for row in [["id", "x"], *table]:
            book.active.append(row)
        frame = folder / "one.xlsx"
        book.save(frame)
    return read_features(frame, schema=read_schema(folder / "one.toml")).values


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
@pytest.mark.parametrize(
    ("cells", "column"),
    [
        ([pd.Timestamp(2000, 1, 1 + i, 0, 30, tz="Europe/Berlin") for i in range(4)], DATES),
        ([pd.Timestamp(1960, 1, 1 + i, 23, 59, 59, 500_000) for i in range(4)], DATES),
        ([20000101 + i for i in range(4)], DATES + 'format = "%Y%m%d"\n'),
        (
            [pd.Timedelta(days=1)] * 4,
            'type = "category"\ncategories = ["1 day, 0:00:00", "1 days 00:00:00"]\n',
        ),
        (np.array([np.datetime64("2000-01-01", "ns")] * 4), DATES),
        ([b"a"] * 4, 'type = "category"\ncategories = ["a"]\n'),
    ],
    ids=["time zone", "part of a second", "days as numbers", "durations", "nanoseconds", "bytes"],
)
def test_a_text_among_cells_of_another_type_changes_none_of_them(cells, column, tmp_path) -> None:
    whole = read_cells(cells, column, tmp_path)
    other = read_cells([*cells[:-1], "?"], column, tmp_path)
    assert np.array_equal(whole[:-1], other[:-1])
    assert len(np.unique(whole, axis=0)) in (1, 4)
    assert not np.array_equal(whole[-1], other[-1])


@pytest.mark.parametrize("format", ["%Y-%d-%m", "%Y-%d-%m %H:%M:%S", "%y%d-%m-%H"])
def test_a_format_that_reads_another_day_from_a_date_is_refused(format, tmp_path) -> None:
    """Dates are written YYYY-MM-DD where one text makes texts of them: all others were read otherwise."""
    cells = [datetime.datetime(2000, 3, 4 + i, i, 1, 2) for i in range(4)]
    with pytest.raises(InputError, match="could be read as another day"):
        read_cells(cells, DATES + f'format = "{format}"\n', tmp_path)


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
@pytest.mark.parametrize(
    "format", ["%d.%m.%Y", "%Y-%m-%d", "%m/%d/%y", "%Y-%m-%d %H:%M:%S", "%Y%m%d"]
)
@pytest.mark.parametrize("kind", [None, "excel"])
def test_by_any_other_format_dates_stay_where_one_text_makes_texts_of_them(
    format, kind, tmp_path
) -> None:
    cells, column = (
        [datetime.datetime(2000, 3, 4 + i) for i in range(4)],
        DATES + f'format = "{format}"\n',
    )
    whole, other = (
        read_cells([*cells[:-1], last], column, tmp_path, kind) for last in (cells[-1], "?")
    )
    assert np.array_equal(whole[:-1], other[:-1])
    assert len(np.unique(whole)) == 4


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
@pytest.mark.parametrize("cells", [[1, 2, 3, 4], [True, False, True, True], list("abab")])
@pytest.mark.parametrize(
    "gap",
    [
        pd.NA,
        pd.NaT,
        np.zeros(2),
        [1],
        b"\xff",
        "\ud800",
        10**5000,
        Decimal("sNaN"),
        np.datetime64(2**62, "s"),
    ],
    ids=lambda gap: type(gap).__name__,
)
@pytest.mark.parametrize(
    "column", [NUMBERS, 'type = "category"\ncategories = ["1", "true", "a"]\n']
)
def test_whatever_object_a_cell_is_it_stops_nothing(cells, gap, column, tmp_path) -> None:
    if cells[0] == "a" and column == NUMBERS:
        pytest.skip("most cells are no numbers")
    whole, other = (
        read_cells(pd.Series([*cells[:-1], last], dtype=object), column, tmp_path)
        for last in (cells[-1], gap)
    )
    assert np.array_equal(whole[:-1], other[:-1])
    assert cell_text(pd.NA) is None


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
@pytest.mark.parametrize("kind", [None, "excel", "polars"])
@pytest.mark.parametrize(
    ("column", "cell"),
    [
        (DATES, 5),
        (DATES, "so"),
        (NUMBERS, datetime.datetime(2000, 1, 1)),
        (NUMBERS, "so"),
        (DATES, b"so"),
        (NUMBERS, b"so"),
    ],
)
def test_the_only_cell_of_an_empty_column_stops_nothing(column, cell, kind, tmp_path) -> None:
    if kind == "excel" and isinstance(cell, bytes):
        pytest.skip("a sheet has none")
    empty = read_cells([None] * 4, column, tmp_path, kind)
    assert np.array_equal(read_cells([None, None, cell, None], column, tmp_path, kind), empty)


NUMBERS_ONLY = ["id", "sick", "dose", "titre"]


def plain(table, folder, written):
    """The columns of numbers of a table, in a file or a frame."""
    kept = [[row[NAMES.index(name)] for name in NUMBERS_ONLY] for row in table]
    if written is in_excel:
        book = openpyxl.Workbook()
        for row in [NUMBERS_ONLY, *kept]:
            book.active.append(row)
        book.save(folder / "plain.xlsx")
        return folder / "plain.xlsx"
    if written is in_csv:
        lines = (",".join(map(str, row)) for row in [NUMBERS_ONLY, *kept])
        (folder / "plain.csv").write_text("\n".join(lines))
        return folder / "plain.csv"
    return pd.DataFrame(kept, columns=NUMBERS_ONLY)


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
@pytest.mark.parametrize("written", [in_excel, in_csv, in_pandas])
@pytest.mark.parametrize("cell", ["?", "", "7 mg", float("inf")])
@pytest.mark.parametrize("column", NUMBERS_ONLY[1:])
def test_without_a_schema_a_cell_makes_her_own_pairs_null_and_changes_no_other(
    written, cell, column, tmp_path
) -> None:
    ids = [f"p{i}" for i in range(6)]
    ends = {"left": ids[:-1], "right": ids[1:], "label": ["same", "different"] * 2 + ["same"]}
    pairs, other = read_pairs(ends), rows()
    other[0][NAMES.index(column)] = str(cell) if written is in_excel else cell
    first, second = (
        PairSet.join(read_features(plain(table, tmp_path, written)), pairs)
        for table in (rows(), other)
    )
    assert first.labels.tolist() == [1, -1, 1, -1, 1]
    assert second.labels.tolist() == [0, -1, 1, -1, 1]
    assert np.array_equal(first.pairs, second.pairs)
    assert np.array_equal(first.features[1:], second.features[1:])


def test_whoever_takes_rows_and_no_records_is_told_which_is_no_number(tmp_path) -> None:
    table = read_features(pd.DataFrame({"id": list("abc"), "age": ["1", "?", "3"]}))
    with pytest.raises(InputError, match=r"column 1, row 2"):
        DPPMetricLearner(preprocessor=table.values).fit([[0, 1]], [1])


def test_a_level_of_a_pair_that_is_no_number_is_an_empty_one() -> None:
    table = {"left": list("abc"), "right": list("bcd"), "name": ["3", "?", "1"]}
    found = read_levels(table, "left", "right").values
    assert np.array_equal(found, [[3.0], [np.nan], [1.0]], equal_nan=True)
    with pytest.raises(InputError, match="'name' is not numeric"):
        read_levels(table | {"name": ["3", "x", "y"]}, "left", "right")


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
@pytest.mark.parametrize(
    ("kind", "cell"),
    [("timestamp[s]", 2**55), ("timestamp[us]", 253402300800 * 10**6), ("date32[day]", 2**30),
     ("date64[ms]", 86_400_000 * 2**33), ("duration[s]", 2**62)],
)  # fmt: skip
@pytest.mark.parametrize("column", [DATES, 'type = "category"\ncategories = ["a"]\n'])
def test_a_time_that_python_does_not_know_stops_nothing(kind, cell, column, tmp_path) -> None:
    if kind == "duration[s]" and column == DATES:
        pytest.skip("most cells are no dates")
    whole = pa.array([864_000_000, 1_728_000_000, 0], pa.int64())
    if kind == "date32[day]":
        whole = pa.array([10, 20, 0])
    found = []
    for last in (whole[-1].as_py(), cell):
        numbers = pa.array(
            [*whole.to_pylist()[:-1], last], pa.int32() if "32" in kind else pa.int64()
        )
        given = pa.table({"id": list("abc"), "x": numbers.cast(kind)})
        (tmp_path / "one.toml").write_text(
            f'version = 1\n[columns.id]\ntype = "id"\n[columns.x]\n{column}'
        )
        found.append(read_features(given, schema=read_schema(tmp_path / "one.toml")).values)
    assert np.array_equal(found[0][:-1], found[1][:-1])


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
def test_one_cell_in_a_batch_of_its_own_stops_nothing(tmp_path) -> None:
    """A table is read 131,072 rows at a time; what most cells are is asked of all of them."""
    column, n = DATES + 'format = "%Y%m%d"\n', 131_073
    days = np.full(n, 20000101)
    whole = read_cells(days, column, tmp_path)
    days[-1] = 99999999
    assert np.array_equal(read_cells(days, column, tmp_path)[:-1], whole[:-1])


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
def test_a_text_in_a_list_of_rows_changes_no_other_row(tmp_path) -> None:
    """NumPy makes texts of all numbers of a list in which one is a text."""
    (tmp_path / "one.toml").write_text(
        'version = 1\n[columns.x]\ntype = "category"\ncategories = ["1", "2"]\n'
        f"[columns.y]\n{NUMBERS}"
    )
    schema = read_schema(tmp_path / "one.toml")
    whole, other = (schema.apply([[1.0, 2.0], [2.0, 5.0], [1.0, y]]) for y in (3.0, "?"))
    assert np.array_equal(whole[:-1], other[:-1])


@pytest.mark.parametrize("kind", ["arrow", "pandas"])
@pytest.mark.parametrize("column", [None, NUMBERS])
def test_a_longer_decimal_changes_no_other_number(kind, column, tmp_path) -> None:
    """Arrow's floats of decimals hang on their scale, which the longest of them decides."""
    found = []
    for last in ("2.7", "2.71828182845904523536"):
        table = {"id": ["a", "b"], "x": [Decimal("0.1"), Decimal(last)]}
        given = pa.table(table) if kind == "arrow" else pd.DataFrame(table)
        (tmp_path / "one.toml").write_text(f"version = 1\n[columns.x]\n{column or NUMBERS}")
        schema = None if column is None else read_schema(tmp_path / "one.toml")
        found.append(read_features(given, schema=schema).values[0, 0])
    assert found[0] == found[1] == (0.1 if column is None else 0.001)


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
def test_categories_of_several_kinds_stop_nothing(tmp_path) -> None:
    """pyarrow ends the process where days of NumPy and its numbers are categories of one column."""
    days = [np.datetime64("2000-01-01"), np.datetime64("2000-01-02")]
    whole, other = (
        read_cells(pd.Categorical([*days, last]), DATES, tmp_path)
        for last in (days[0], np.int64(3))
    )
    assert np.array_equal(whole[:-1], other[:-1])


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
def test_the_only_cell_of_an_empty_column_stops_no_schema(tmp_path) -> None:
    (tmp_path / "one.toml").write_text(f"version = 1\n[columns.x]\n{DATES}")
    schema = read_schema(tmp_path / "one.toml")
    assert schema.apply(pa.table({"x": [None, 5, None]})).tolist() == [[0.5], [0.5], [0.5]]


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
@pytest.mark.parametrize("word", ["Infinity", "inf", "-INF", "1e400", "nan", "+2.5", "TRUE", " 7 "])
def test_a_word_is_read_alike_among_numbers_and_among_words(word, tmp_path) -> None:
    """Numbers alone are read at once."""
    found = [read_cells(["1", "2", word, last], NUMBERS, tmp_path)[:-1] for last in ("3", "?")]
    assert np.array_equal(*found)


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
def test_one_complex_number_changes_no_other(tmp_path) -> None:
    """pandas makes complex numbers of a whole column."""
    whole, other = (read_cells([1, 2.5, last], NUMBERS, tmp_path) for last in (3, 1j))
    assert np.array_equal(whole[:-1], other[:-1])


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("cell", [b"\xff", b"K\xf6ln", b"'=\xff"])
def test_a_cell_that_is_not_utf_8_stops_nothing_and_changes_no_other(kind, cell, tmp_path) -> None:
    ids, others = [b"a", b"b", b"c", b"d"], [b"e", b"f", b"g", b"h"]
    cells = [b"1", b"0", b"1", cell]
    text = pa.array(cells).view(pa.string())
    columns = {"id": ids, "left": ids, "right": others, "label": text, "sick": text}
    if kind == "csv":
        rows = [*zip(ids, ids, others, cells, cells, strict=True)]
        lines = [b",".join(row) for row in [[name.encode() for name in columns], *rows]]
        (tmp_path / "t.csv").write_bytes(b"\n".join(lines))
        found = tmp_path / "t.csv"
    else:
        found = pa.table({name: pa.array(one).cast(pa.string()) for name, one in columns.items()})
    if kind == "parquet":
        pq.write_table(found, tmp_path / "t.parquet")
        found = tmp_path / "t.parquet"
    assert read_pairs(found, zero_means="dissimilar").labels.tolist() == [1, -1, 1, 0]
    levels = read_levels(found, "left", "right", ["id", "label"], lambda _: [2]).values
    plain = read_features(found, columns=["sick"]).values
    for numbers in (plain, levels):
        assert np.array_equal(numbers.ravel(), [1, 0, 1, np.nan], equal_nan=True)
    (tmp_path / "s.toml").write_text(f"version = 1\n[columns.sick]\n{NUMBERS}")
    raw = read_features(found, schema=read_schema(tmp_path / "s.toml")).values
    assert raw.ravel().tolist() == [0.01, 0, 0.01, 0.5]


@pytest.mark.parametrize("cell", ["7", "note", "id"])
def test_no_cell_decides_whether_two_columns_of_one_name_are_refused(cell, tmp_path) -> None:
    (tmp_path / "t.csv").write_text(f"id,sick,note,note\na,1,2,3\nb,2,{cell},3\n")
    with pytest.raises(InputError, match="two columns have the same name"):
        read_features(tmp_path / "t.csv", columns=["sick"])
