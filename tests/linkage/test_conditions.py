"""Levels of Splink's conditions follow from the two records of a pair: what could look further is refused."""

import json
import os
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from pairveil import InputError
from pairveil.cli.app import app
from pairveil.errors import PrivateNote
from pairveil.linkage import conditions, from_splink

duckdb = pytest.importorskip("duckdb", reason="DuckDB comes with pip install 'pairveil[splink]'")

RECORDS = pa.table(
    {
        "unique_id": ["r0", "r1", "r2", "r3", "r4", "r5"],
        "Name": ["ann", "ann", "bob", "ANN", None, "eve"],
        "dob": ["1950-01-02", "1950-01-03", "1951-01-02", "x", "1950-01-02", None],
        "age": [70, 71, 69, 70, None, 12],
        "tf_name": [0.5, 0.5, 0.1, 0.1, 0.1, 0.1],
        "tags": [["a", "b"], ["b"], [], None, ["c"], ["a"]],
        "where": [{"lat": 1.0, "lon": 2.0}] * 6,
    }
)
LABELS = {
    "unique_id_l": ["r0", "r1", "r2", "r3", "r4"],
    "unique_id_r": ["r1", "r2", "r3", "r4", "r5"],
    "clerical_match_score": [1.0, 0.0, 1.0, 0.0, 1.0],
}


def settings(condition, **more):
    levels = [{"sql_condition": condition}, {"sql_condition": "ELSE"}]
    return {"link_type": "dedupe_only", "comparisons": [{"comparison_levels": levels}], **more}


def levels(condition, records=RECORDS, **more):
    return from_splink(settings(condition, **more), LABELS, records=records).levels[:, 0].tolist()


ADMITTED = {
    "name_l = name_r": [1, 0, 0, 0, 0],
    '"NAME_L" = "name_r" -- and a remark': [1, 0, 0, 0, 0],
    "/* a remark */ lower(name_l) = lower(name_r)": [1, 0, 0, 0, 0],
    "NAME_L IS NOT NULL AND NOT (name_l <> name_r)": [1, 0, 0, 0, 0],
    "levenshtein(name_l, name_r) <= 2 OR jaro_winkler_similarity(name_l, name_r) > 0.9": [1, 0, 0, 0, 0],
    "abs(age_l - age_r) BETWEEN 0 AND 1": [1, 0, 1, 0, 0],
    "abs(date_diff('day', try_strptime(dob_l, '%Y-%m-%d'), try_strptime(dob_r, '%Y-%m-%d'))) <= 1":
        [1, 0, 0, 0, 0],
    "TRY_CAST(dob_l AS DATE) = TRY_CAST(dob_r AS DATE) + INTERVAL 1 DAY": [0, 0, 0, 0, 0],
    "len(list_intersect(tags_l, tags_r)) >= 1": [1, 0, 0, 0, 0],
    "list_max(list_transform(tags_l, lambda x: length(x))) = 1": [1, 1, 0, 0, 1],
    "len([x for x in tags_l if x = 'a']) > 0": [1, 0, 0, 0, 0],
    "where_l.lat = where_r.lat": [1, 1, 1, 1, 1],
    "(where_l).lat + where_l['lon'] = 3": [1, 1, 1, 1, 1],
    "tags_l[1] = 'b' OR tags_l[1:1] = ['a']": [1, 1, 0, 0, 0],
    "CASE WHEN name_l = 'ann' THEN true ELSE false END": [1, 1, 0, 0, 0],
    "coalesce(nullif(name_l, 'ann'), 'z') = 'z'": [1, 1, 0, 0, 1],
    "substr(name_l, 1, 1) IN ('a', 'b') AND name_l LIKE '%n%'": [1, 1, 0, 0, 0],
    "regexp_extract(name_l, '^(.)', 1) = $$a$$": [1, 1, 0, 0, 0],
    "name_l = 'SELECT count(*) OVER () FROM read_text(''x'')' OR name_l = 'ann'": [1, 1, 0, 0, 0],
    "name_l IS NOT DISTINCT FROM name_r": [1, 0, 0, 0, 0],
}  # fmt: skip

REFUSED = [
    # everybody's records
    "sum(CASE WHEN name_l = name_r THEN 1 ELSE 0 END) OVER () >= 2",
    "SuM(age_l) oVeR (ORDER BY age_l) > 1",
    "row_number() OVER () = 1",
    "lag(name_l) OVER () = name_l",
    "count(*) > 1",
    "count(name_l) > 1",
    "max(age_l) = age_l",
    "any_value(name_l) = name_r",
    "sum(age_l) FILTER (WHERE age_l > 1) > 3",
    "string_agg(name_l, ',') = 'x'",
    "avg(age_l) > 2",
    "first(name_l ORDER BY age_l) = name_l",
    "count(DISTINCT name_l) > 2",
    "median(age_l) > 2",
    "(SELECT 1) = 1",
    "EXISTS (SELECT 1 FROM records)",
    "name_l IN (SELECT name FROM records)",
    "age_l = ANY (SELECT age FROM records)",
    "age_l > ALL (SELECT 1)",
    "(TABLE records) IS NULL",
    "(FROM records SELECT count(*)) > 1",
    "(WITH q AS (SELECT 1 a) SELECT a FROM q) = 1",
    "(VALUES (1)) = 1",
    "ARRAY(SELECT name FROM records) IS NULL",
    "age_l = ANY([1, 2])",
    "unnest(tags_l) = 'a'",
    # not a condition, or more than one
    "name_l = name_r FROM records",
    "name_l = name_r) FROM records WHERE (true",
    "true, false",
    "name_l = name_r) THEN 1 ELSE 0 END; COPY (SELECT 1) TO 'x'; --",
    "true; SELECT 1",
    "true) AS x, (true",
    "true) UNION SELECT (true",
    "true) ORDER BY (1",
    "true) LIMIT (1",
    "true) x",
    "DISTINCT true",
    "",
    "/* never closed",
    "name_l = 'never closed",
    "true) QUALIFY (row_number() OVER () = 1",
    "true) GROUP BY (name_l",
    "true) WHERE (name_l = 'ann'",
    "true) USING SAMPLE (10%",
    # columns that are none of the two records
    "tf_name_l < 0.3",
    '"TF_Name_L" < 0.3',
    "tf_surname_l < 0.3",
    "name = 'ann'",
    "name_l.name_r = 'ann'",
    "nobody_l = nobody_r",
    "compared.name_l = 'ann'",
    "records.name = 'ann'",
    "compared IS NOT NULL",
    "rowid = 1",
    "COLUMNS(*) IS NULL",
    "COLUMNS('name.*') IS NULL",
    "* = 1",
    "*COLUMNS(*) IS NULL",
    "#1 = 1",
    '"pairveil key" = 1',
    "place < 3",
    '"l key" = 1',
    "match_key = '0'",
    "list_transform(tags_l, lambda x: y)[1] = 'a'",
    # a parameter that is called as the table is: DuckDB reads the table's own columns, such as a pair's row
    "list_transform([1], lambda compared: compared.place)[1] = 1",
    "list_transform([1], lambda main: main.compared.place)[1] = 1",
    "list_transform([1], lambda memory: memory.main.compared.rowid)[1] = 1",
    # what is not the same each time, or is outside
    "random() > 0.5",
    "RaNdOm /* */ () > 0.5",
    '"random"() > 0.5',
    "main.random() > 0.5",
    "uuid() = 'x'",
    "gen_random_uuid() IS NULL",
    "now() > '2020-01-01'",
    "current_date > DATE '2020-01-01'",
    "current_timestamp IS NULL",
    "today() > DATE '2020-01-01'",
    "age(DATE '2020-01-01') IS NULL",
    "get_current_time() IS NULL",
    "localtimestamp IS NULL",
    "getvariable('x') IS NULL",
    "getenv('HOME') = 'x'",
    "current_setting('threads') = 1",
    "version() = 'x'",
    "current_user = 'x'",
    "current_schema() = 'x'",
    "current_query() = 'x'",
    "txid_current() > 1",
    "nextval('s') > 1",
    "setseed(0.5) IS NULL",
    "read_text('/etc/passwd') IS NULL",
    "read_csv('x') IS NULL",
    "glob('*') IS NULL",
    "file_exists('x')",
    "pragma_version() IS NULL",
    "duckdb_settings() IS NULL",
    "query('SELECT 1') IS NULL",
    "query_table('records') IS NULL",
    "json_execute_serialized_sql('x') IS NULL",
    "write_log('x') IS NULL",
    "error('x')",
    "sleep_ms(10) IS NULL",
    "load_extension('x') IS NULL",
    "stats(name_l) = 'x'",
    "current_localtime() IS NULL",
    # large without a word
    "length(repeat('x', 3000000000)) > 5",
    "len(range(100000000000)) > 5",
    "len(generate_series(1, 1000000000000)) > 5",
    "length(lpad(name_l, 2000000000, 'x')) > 5",
    "length(printf('%2000000000d', 1)) > 5",
    "list_resize([1], 1000000000) IS NULL",
    # names of functions in arguments, methods, schemas, parameters, odd casts
    "list_aggregate(tags_l, 'reservoir_quantile') IS NULL",
    "list_aggr([1], 'histogram') IS NULL",
    "list_reduce([1], lambda x, y: x) = 1",
    "name_l.lower() = 'ann'",
    "system.main.lower(name_l) = 'ann'",
    "name_l = ?",
    "name_l = $1",
    "name_l = $name",
    "name_l COLLATE nocase = 'ann'",
    "name_l::records IS NULL",
    "CAST('records' AS regclass) IS NULL",
    "name_l::JSON IS NULL",
    "name_l -> '$.x' = 1",
    "list_transform(tags_l, lambda x: random())[1] > 0",
    "lower((SELECT name_l)) = 'ann'",
    "CASE WHEN random() > 0.5 THEN true ELSE false END",
    "name_l IN (lower('ANN'), (SELECT 'x'))",
    "TRY(random() > 0.5)",
    "coalesce(NULL, count(*)) > 1",
    "age_l BETWEEN 1 AND (SELECT 2)",
    "[random()][1] > 0.5",
    "{'a': random()}.a > 0.5",
    "DEFAULT",
    "GROUPING(name_l) = 1",
    "lower(DISTINCT name_l) = 'ann'",
    "lower(name_l ORDER BY name_l) = 'ann'",
    "(" * 3000 + "true" + ")" * 3000,
    "NOT " * 20_000 + "true",
    "name_l = 'x' OR " * 20_000 + "true",
]


@pytest.mark.parametrize("condition", ADMITTED, ids=range(len(ADMITTED)))
@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
def test_conditions_on_two_records_are_admitted(condition):
    assert levels(condition) == ADMITTED[condition]


@pytest.mark.parametrize("condition", REFUSED, ids=range(len(REFUSED)))
def test_whatever_else_is_refused_in_words_that_a_terminal_can_show(condition):
    with pytest.raises(InputError, match="comparison 1") as refused:
        levels(condition)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


def test_names_of_a_stranger_reach_the_terminal_as_plain_text():
    with pytest.raises(InputError) as refused:
        levels('"\x1b[31m"(name_l)')
    assert str(refused.value).isprintable()
    with pytest.raises(InputError, match="printable"):
        from_splink(
            {"link_type": "dedupe_only", "comparisons": [
                {"output_column_name": "\x1b[2J", "comparison_levels": [{"sql_condition": "true"}]}]},
            LABELS, records=RECORDS,
        )  # fmt: skip


def test_every_listed_function_is_scalar_and_gives_the_same_each_time():
    """By DuckDB's own catalogue; a macro of its own is made of such functions."""
    found = conditions.closed_database().execute(
        "SELECT function_name, function_type, stability, database_name FROM duckdb_functions()"
    )
    kinds = {}
    for name, kind, stability, where in found.fetchall():
        kinds.setdefault(name, set()).add((kind, stability if kind == "scalar" else where))
    allowed = {("scalar", "CONSISTENT"), ("macro", "system")}
    assert {name: kinds[name] for name in conditions.FUNCTIONS if not kinds[name] <= allowed} == {}


@pytest.mark.parametrize(
    "attempt",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
        "ATTACH '{file}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "COPY (SELECT 1) TO '{file}'",
        "SET enable_external_access = true",
        "SET threads = 1",
        "SELECT * FROM table_here",
    ],
)
def test_the_database_reaches_nothing_outside_it(attempt, tmp_path):
    table_here = RECORDS  # noqa: F841  # DuckDB would find it by its name
    with pytest.raises(duckdb.Error):
        conditions.closed_database().execute(attempt.format(file=tmp_path / "made.db")).fetchall()
    assert os.listdir(tmp_path) == []


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
def test_a_record_that_changes_changes_the_levels_of_its_own_pairs_alone():
    """Whatever condition is admitted; the columns keep their types."""
    every = {"link_type": "dedupe_only", "comparisons": [
        settings(condition)["comparisons"][0] for condition in ADMITTED]}  # fmt: skip

    def found(rows):
        table = pa.Table.from_pylist(rows, RECORDS.schema)
        return from_splink(every, LABELS, records=table).levels

    table = RECORDS.to_pylist()
    before, moved = found(table), 0
    for person in range(6):
        for change in (
            {"Name": "zed", "age": 1, "tags": ["q"], "dob": "x"},
            dict.fromkeys(("Name", "age")),
        ):
            after = found([row | change if at == person else row for at, row in enumerate(table)])
            others = [pair for pair in range(5) if pair not in (person - 1, person)]  # of the path
            assert (before[others] == after[others]).all()
            moved += int((before != after).sum())
    assert moved > 50


def test_a_condition_that_fails_on_a_pair_fails_for_that_pair_alone():
    with pytest.warns(PrivateNote, match="2 pairs have values for which a condition fails"):
        found = levels("CAST(dob_l AS DATE) = CAST(dob_r AS DATE)")
    assert found == [0, 0, -1, -1, 0]


def test_columns_of_a_csv_file_are_text_whatever_a_cell_holds(tmp_path):
    """Guessed types follow from everybody's cells: with one 'x' there, others' 01 and 1 stop agreeing."""
    found = []
    for last in ("7", "x"):
        rows = ["unique_id,code", "r0,01", "r1,1", "r2,2", "r3,2", "r4,", f"r5,{last}"]
        (tmp_path / "records.csv").write_text("\n".join(rows))
        found.append(levels("code_l = code_r", tmp_path / "records.csv"))
    assert found == [[0, 0, 1, 0, 0]] * 2
    with pytest.raises(InputError, match="CSV file are text"):
        levels("code_l + 1 = code_r", tmp_path / "records.csv")


def test_a_macro_of_the_callers_does_not_stand_behind_a_listed_name():
    splink = pytest.importorskip("splink")
    api = splink.DuckDBAPI()
    table = api.register(RECORDS.select(["unique_id", "Name"]))
    api.duckdb_con.execute(
        f"CREATE MACRO lower(x) AS (SELECT count(*)::VARCHAR FROM {table.physical_name})"
    )
    linker = splink.Linker(
        table, settings("lower(name_l) = 'ann'", blocking_rules_to_generate_predictions=[])
    )
    assert from_splink(linker, LABELS).levels[:, 0].tolist() == [1, 1, 0, 1, 0]


def test_ids_types_and_tables_that_do_not_fit_are_said():
    for wrong, said in {
        "unique_id_column_name": "no column", "link_type": "must be text", "sql_dialect": "not for DuckDB",
    }.items():  # fmt: skip
        with pytest.raises(InputError, match=said):
            levels("name_l = name_r", **{wrong: "spark" if wrong != "link_type" else 3})
    twice = pa.table({"unique_id": ["r0"], "name": ["a"], "NAME": ["b"]})
    with pytest.raises(InputError, match="upper and lower case"):
        levels("name_l = name_r", twice)
    with pytest.raises(InputError, match="records must be a table"):
        levels("name_l = name_r", 7)
    with pytest.raises(InputError, match="ELSE must be the last"):
        from_splink(
            {
                "link_type": "dedupe_only",
                "comparisons": [
                    {"comparison_levels": [{"sql_condition": "ELSE"}, {"sql_condition": "true"}]}
                ],
            },
            LABELS,
            records=RECORDS,
        )


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_levels_are_those_of_splink_itself_over_its_library():
    splink = pytest.importorskip("splink")
    import splink.comparison_library as cl

    rng = np.random.default_rng(0)
    first, towns = ["thomas", "tom", "anna", "ann", "Peter", None], ["ulm", "bonn", "köln"]
    n = 120
    table = pd.DataFrame(
        {
            "unique_id": np.arange(n),
            "first_name": rng.choice(first, n),
            "surname": rng.choice(first, n),
            "dob": [
                f"19{rng.integers(50, 60)}-0{rng.integers(1, 4)}-1{rng.integers(0, 3)}"
                for _ in range(n)
            ],
            "email": rng.choice(["a@x.org", "b@x.org", "a@y.org", None], n),
            "postcode": rng.choice(["SW1A 1AA", "SW1A 2AA", "SW1B 1AA", "N1 1AA", None], n),
            "town": rng.choice(towns, n),
            "lat": rng.random(n),
            "long": rng.random(n),
            "amount": rng.integers(1, 9, n).astype(float),
        }
    )
    for copy in range(5):  # Splink names what a comparison says by its column
        table[f"name{copy}"] = rng.choice(first, n)
    table["seen"] = table["dob"] + "T10:00:00Z"
    table["tags"] = [list(rng.choice(towns, 2)) for _ in range(n)]
    compared = [
        cl.ExactMatch("town").configure(term_frequency_adjustments=True),
        cl.LevenshteinAtThresholds("name0", [1, 2]),
        cl.DamerauLevenshteinAtThresholds("name1", [1]),
        cl.JaccardAtThresholds("name2", [0.9, 0.5]),
        cl.JaroAtThresholds("name3", [0.9]),
        cl.JaroWinklerAtThresholds("name4", [0.9, 0.7]),
        cl.DateOfBirthComparison("dob", input_is_string=True),
        cl.EmailComparison("email"),
        cl.PostcodeComparison("postcode"),
        cl.DistanceInKMAtThresholds("lat", "long", [30, 60]),
        cl.ArrayIntersectAtSizes("tags", [2, 1]),
        cl.NameComparison("surname"),
        cl.ForenameSurnameComparison("first_name", "surname"),
        cl.AbsoluteTimeDifferenceAtThresholds(
            "seen", input_is_string=True, metrics=["month"], thresholds=[1]
        ),
        metric_like(),
    ]
    creator = splink.SettingsCreator(
        link_type="dedupe_only",
        blocking_rules_to_generate_predictions=["1=1"],
        comparisons=compared,
    )
    linker = splink.Linker(splink.DuckDBAPI().register(table), creator, log_level=None)
    wanted = linker.inference.predict(warning_mode="never").as_pandas_dataframe()
    ends = wanted[["unique_id_l", "unique_id_r"]].assign(clerical_match_score=1.0)
    found = from_splink(linker, ends)
    gammas = [f"gamma_{name}" for name in found.names]
    assert (found.levels == wanted[gammas].to_numpy()).all()
    same = [
        name
        for name, column in zip(found.names, found.levels.T, strict=True)
        if len(set(column)) == 1
    ]
    assert same == []
    again = from_splink(creator, ends, records=table)
    assert (again.levels == found.levels).all()


def metric_like():
    from pairveil import ReleasedMetric
    from pairveil.linkage import metric_comparison

    return metric_comparison(
        ReleasedMetric(np.array([[1.0, 0.5]]), None, ("amount", "lat")), [0.5, 2.0]
    )


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_the_command_refuses_settings_before_it_charges(tmp_path):
    pytest.importorskip("splink")
    table = pd.DataFrame(
        {"unique_id": [f"r{i}" for i in range(200)], "name": [f"n{i // 2}" for i in range(200)]}
    )
    table.to_csv(tmp_path / "records.csv", index=False)
    ids = table["unique_id"].tolist()
    pd.DataFrame({
        "unique_id_l": ids[:-1], "unique_id_r": ids[1:], "clerical_match_score": [1.0, 0.0] * 99 + [1.0],
    }).to_csv(tmp_path / "labels.csv", index=False)  # fmt: skip

    def link(written):
        (tmp_path / "settings.json").write_text(json.dumps(written))
        words = [
            "link",
            "settings.json",
            "labels.csv",
            "--records",
            "records.csv",
            "--ledger",
            "ledger.json",
        ]
        files = [str(tmp_path / one) if "." in one else one for one in words]
        return CliRunner().invoke(
            app, [*files, "--budget", "9", "--out", str(tmp_path / "out"), "--overwrite"]
        )

    for condition in ("sum(1) OVER () > 3", "tf_name_l > 0.1", "random() > 0.5", "name_l ="):
        done = link(settings(condition))
        assert isinstance(done.exception, InputError), (condition, done.output, done.exception)
        assert not (tmp_path / "ledger.json").exists()
    for key, value in {
        "link_type": "nonsense",
        "blocking_rules_to_generate_predictions": [7],
        "comparisons": [{}],
    }.items():
        done = link({**settings("name_l = name_r"), key: value})
        assert isinstance(done.exception, InputError), (key, done.output, done.exception)
        assert "\x1b" not in done.output
    done = link(
        {
            **settings("name_l = name_r"),
            "blocking_rules_to_generate_predictions": ["l.name = r.name"],
        }
    )
    assert done.exit_code == 0, (done.output, done.exception)


@pytest.mark.parametrize("third", [None, 9.5])
@pytest.mark.parametrize("make", [pd.DataFrame, dict])
def test_a_third_records_cell_does_not_decide_how_others_numbers_are_written(make, third):
    """pandas makes floats of whole numbers beside one that is missing: '7' would become '7.0' for all."""
    ids = LABELS["unique_id_l"] + ["r5", "r6"]

    def found(cell):
        records = make({"unique_id": ids, "zip": [7, 70, 7, 120, 1, 8, cell]})
        return levels("length(zip_l::VARCHAR) <= 2", records)

    assert found(third) == found(9)


@pytest.mark.parametrize("installed", [None, "1.5.2"])
def test_without_the_parser_it_is_said_what_to_install(monkeypatch, installed):
    """An older DuckDB writes casts otherwise: conditions would be refused in words that blame them."""
    if installed is None:
        monkeypatch.setitem(sys.modules, "duckdb", None)
    else:
        monkeypatch.setattr(duckdb, "__version__", installed)
    with pytest.raises(InputError, match=r'duckdb.* pip install "pairveil\[splink\]"'):
        levels("name_l = name_r")
