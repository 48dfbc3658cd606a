"""The exporters give the metric they were given, in every format, and say what is missing."""

from __future__ import annotations

import csv
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairveil import ReleasedMetric, ReleasedRanking
from pairveil.errors import DataWarning, InputError
from pairveil.records.readers import read_features
from pairveil.release import exporters
from pairveil.release import exporters as recipes
from pairveil.release.exporters import SPACES, sql_text
from pairveil.release.sklearn_transformer import MetricTransformer
from pairveil.schema.columns import CategoryColumn, Column, DateColumn, NumberColumn
from pairveil.schema.schema import Schema

RNG = np.random.default_rng(7)
NAMES = ["age", "blood, pressure", 'the "best" one', "=cost()", "größe"]
L = RNG.normal(size=(3, 5)) * 10.0 ** np.arange(-2, 3)
PEOPLE = RNG.normal(size=(60, 5))
PROJECTED = PEOPLE @ L.T
METRIC, NAMED = ReleasedMetric(L), ReleasedMetric(L, feature_names=tuple(NAMES))


# ---- ONNX ---------------------------------------------------------------------------------------


def test_onnx_gives_the_same_projection(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    file = exporters.to_onnx(NAMED, tmp_path / "metric.onnx")
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"features": PEOPLE})
    np.testing.assert_allclose(found, PROJECTED, rtol=1e-6, atol=1e-6)
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["feature_names"]) == NAMES
    wrong_way_round = PEOPLE[:, ::-1] @ L.T  # the tolerance must be able to tell
    assert not np.allclose(found, wrong_way_round, rtol=1e-6, atol=1e-6)


def test_onnx_takes_no_rows_of_another_width(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    file = exporters.to_onnx(METRIC, tmp_path / "metric.onnx")
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    with pytest.raises(Exception, match=r"(?i)dimension"):
        session.run(None, {"features": PEOPLE[:, :4]})


@pytest.mark.parametrize(
    ("package", "call", "remedy"),
    [
        ("onnx", lambda path: exporters.to_onnx(METRIC, path), 'pip install "pairveil[onnx]"'),
        ("faiss", lambda path: recipes.faiss_index(METRIC), "pip install faiss-cpu"),
        ("hnswlib", lambda path: recipes.hnswlib_index(METRIC, PEOPLE), "pip install hnswlib"),
    ],
)
def test_an_absent_extra_is_named_with_its_remedy(
    monkeypatch, tmp_path, package, call, remedy
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # import then raises ImportError
    with pytest.raises(InputError) as caught:
        call(tmp_path / "metric")
    assert remedy in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# ---- CSV ----------------------------------------------------------------------------------------


def test_csv_reads_back_to_the_same_doubles(tmp_path: Path) -> None:
    file = exporters.to_csv(NAMED, tmp_path / "metric.csv")
    with file.open(newline="", encoding="utf-8") as stream:
        header, *rows = list(csv.reader(stream))
    # '=cost()' is a formula to a spreadsheet: it is written as text, and our own reader takes it back.
    assert header == ["component", *(f"'{name}" if name == "=cost()" else name for name in NAMES)]
    assert read_features(file, id="component").names == tuple(NAMES)
    assert [row[0] for row in rows] == ["1", "2", "3"]
    np.testing.assert_array_equal(np.array([row[1:] for row in rows], dtype=float), L)


# ---- scikit-learn -------------------------------------------------------------------------------


def test_the_transformer_projects_pickles_and_clones(tmp_path: Path) -> None:
    from sklearn.base import clone
    from sklearn.utils.validation import check_is_fitted

    file = exporters.to_sklearn(NAMED, tmp_path / "metric.pkl")
    for transformer in (MetricTransformer(NAMED), pickle.loads(file.read_bytes())):
        check_is_fitted(transformer)
        np.testing.assert_array_equal(transformer.transform(PEOPLE), PROJECTED)
        np.testing.assert_array_equal(clone(transformer).fit_transform(PEOPLE), PROJECTED)
        assert list(transformer.get_feature_names_out()) == ["metric0", "metric1", "metric2"]


def test_the_transformer_keeps_nothing_of_what_it_sees() -> None:
    transformer = MetricTransformer(NAMED)
    before = pickle.dumps(transformer)
    transformer.fit(PEOPLE).transform(PEOPLE)
    assert pickle.dumps(transformer) == before


def test_the_transformer_matches_a_frame_by_name() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(PEOPLE, columns=NAMES)
    np.testing.assert_array_equal(MetricTransformer(NAMED).transform(frame), PROJECTED)
    with pytest.warns(DataWarning, match="another order"):
        turned = MetricTransformer(NAMED).transform(frame[NAMES[::-1]])
    np.testing.assert_array_equal(turned, PROJECTED)
    with pytest.raises(
        InputError, match=f"lacks 1 of the metric's {len(NAMES)} columns: {NAMES[0]}"
    ):
        MetricTransformer(NAMED).transform(frame.rename(columns={NAMES[0]: "other"}))


@pytest.mark.parametrize(
    "rows",
    [
        [["secret-4711", 1, 1, 1, 1]],
        [[4711.0, 1.0]],
        [[4711.0, np.nan, 1.0, 1.0, 1.0]],
        [4711.0] * 5,
    ],
)
def test_the_transformer_never_quotes_a_value(rows) -> None:
    with pytest.raises(InputError) as caught:
        MetricTransformer(METRIC).transform(rows)
    assert "4711" not in str(caught.value)


# ---- nearest neighbours -------------------------------------------------------------------------


def _nearest(query: np.ndarray, k: int) -> np.ndarray:
    """Row numbers of the k nearest people under the metric, by brute force."""
    gaps = PEOPLE[None, :, :] - query[:, None, :]
    return np.argsort(np.linalg.norm(gaps @ L.T, axis=2), axis=1)[:, :k]


def test_faiss_finds_the_neighbours_under_the_metric() -> None:
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    index = recipes.faiss_index(METRIC)
    index.add(PEOPLE.astype(np.float32))
    squared, rows = index.search(PEOPLE[:20].astype(np.float32) + np.float32(0.01), 5)
    np.testing.assert_array_equal(rows, _nearest(PEOPLE[:20] + 0.01, 5))
    true = np.linalg.norm(((PEOPLE[:20] + 0.01)[:, None] - PEOPLE[rows]) @ L.T, axis=2)
    np.testing.assert_allclose(np.sqrt(squared), true, rtol=1e-2)
    euclidean = np.argsort(np.linalg.norm(PEOPLE[None] - PEOPLE[:20, None] - 0.01, axis=2), axis=1)
    assert not np.array_equal(rows, euclidean[:, :5])  # else the test could not tell the metric


def test_hnswlib_finds_the_neighbours_under_the_metric() -> None:
    pytest.importorskip("hnswlib", reason="hnswlib is not installed")
    index = recipes.hnswlib_index(METRIC, PEOPLE)
    rows, _ = index.knn_query((PEOPLE[:20] + 0.01) @ L.T, k=5)
    # 60 people and ef 64: the search visits everyone, so it is exact here.
    np.testing.assert_array_equal(rows, _nearest(PEOPLE[:20] + 0.01, 5))
    with pytest.raises(InputError, match="5 features"):
        recipes.hnswlib_index(METRIC, PEOPLE[:, :2])


# ---- PostgreSQL ---------------------------------------------------------------------------------


def test_sql_holds_the_matrix_exactly() -> None:
    rows = re.findall(
        r"\(\d+, ARRAY\[([^\]]+)\]::double precision\[\]\)", recipes.pgvector_sql(NAMED)
    )
    np.testing.assert_array_equal(np.array([row.split(",") for row in rows], dtype=float), L)


def test_sql_cannot_be_injected_by_names() -> None:
    evil = ("age\n; DROP TABLE people; --", "b\r\u2028DROP")
    sql = recipes.pgvector_sql(ReleasedMetric(L[:, :2], feature_names=evil))
    assert not [line for line in sql.splitlines() if "DROP" in line and not line.startswith("-- ")]
    with pytest.raises(InputError, match="table name"):
        recipes.pgvector_sql(METRIC, table="people; DROP TABLE people")


def _postgresql() -> Path | None:
    """Programs of a PostgreSQL: pgserver's wheel (which has pgvector), else Debian's (which has not)."""
    wheel = find_spec("pgserver")
    if wheel is not None and wheel.origin is not None:
        return Path(wheel.origin).parent / "pginstall" / "bin"
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


def _has_pgvector(programs: Path) -> bool:
    return any((programs.parent / "share").glob("**/extension/vector.control"))


@pytest.fixture(scope="module")
def psql() -> Iterator[Callable[[str], str]]:
    """A server in a temporary folder, reached by its socket only."""
    programs = _postgresql()
    if programs is None:
        pytest.skip("needs PostgreSQL: pip install pgserver, or apt-get install postgresql")
    # The server refuses to run as root, and a socket's path must be short.
    as_nobody = ["runuser", "-u", "nobody", "--"] if os.geteuid() == 0 else []
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if as_nobody:
        shutil.chown(folder, "nobody")

    def run(program: str, *arguments: str, text: str | None = None) -> str:
        command = [*as_nobody, f"{programs}/{program}", *arguments]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, cwd=folder
        )
        return done.stdout if done.returncode == 0 else f"failed: {done.stderr}{done.stdout}"

    initdb = run("initdb", "-D", f"{folder}/data", "-U", "test", "-A", "trust", "-N", "-E", "UTF8")
    if "Permission denied" in initdb:
        shutil.rmtree(folder)
        pytest.skip("the user nobody may not read the folder PostgreSQL is installed in")
    assert "Success" in initdb, initdb
    control = ["-D", f"{folder}/data", "-w", "-l", f"{folder}/log"]
    started = run("pg_ctl", *control, "-o", f"-k {folder} -h '' -F", "start")
    assert "server started" in started, started
    connect = ["-h", str(folder), "-U", "test", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-Atq"]
    try:
        yield lambda sql: run("psql", *connect, text=sql)
    finally:
        run("pg_ctl", *control, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def _array(person: np.ndarray) -> str:
    return "ARRAY[" + ",".join(map(repr, person.tolist())) + "]::double precision[]"


def test_sql_projects_inside_postgresql(psql) -> None:
    function = _functions(NAMED)
    found = psql(f"{function} SELECT array_to_json(pairveil_project({_array(PEOPLE[0])}));")
    np.testing.assert_allclose(json.loads(found), PROJECTED[0], rtol=1e-9)
    for bad in ("ARRAY[1,2]::double precision[]", "ARRAY[1,2,3,4,NULL]::double precision[]"):
        assert "the metric takes 5 features" in psql(f"{function} SELECT pairveil_project({bad});")


def _functions(metric: ReleasedMetric) -> str:
    """What needs no pgvector, in a transaction that psql drops at its end."""
    return recipes.pgvector_sql(metric).split("CREATE EXTENSION")[0]


def test_pgvector_finds_the_neighbours_under_the_metric(psql) -> None:
    if not _has_pgvector(_postgresql()):
        pytest.skip("this PostgreSQL has no pgvector")
    assert psql(recipes.pgvector_sql(NAMED, table="patients")).strip() == ""
    for row, person in enumerate(PEOPLE):
        into = (
            f"INSERT INTO patients VALUES ({row}, pairveil_project({_array(person)})::vector(3));"
        )
        assert psql(into).strip() == ""
    query = PEOPLE[7] + 0.01
    nearest = f"projected <-> pairveil_project({_array(query)})::vector(3)"
    search = f"SELECT id FROM patients ORDER BY {nearest} LIMIT 5;"
    found = [int(line) for line in psql(search).split()]
    assert found == _nearest(query[None], 5)[0].tolist()
    # The table is small enough to be read whole; without that the index must serve the query.
    plan = psql(f"SET enable_seqscan = off; EXPLAIN {search}")
    assert "patients_projected_idx" in plan


# ---- all ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [exporters.to_csv, exporters.to_sql, exporters.to_sklearn])
def test_bad_matrices_and_places_are_refused_before_writing(tmp_path: Path, write) -> None:
    with pytest.raises(InputError, match="not its matrix"):
        write(L, tmp_path / "out")
    with pytest.raises(InputError, match="is a folder"):
        write(METRIC, tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        write(METRIC, tmp_path / "nowhere" / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_exported_as_what_it_can_be(tmp_path: Path) -> None:
    written = NAMED.export("csv", tmp_path / "metric.csv")
    assert written.read_bytes() == exporters.to_csv(NAMED, tmp_path / "again.csv").read_bytes()
    with pytest.raises(InputError, match="as onnx, csv, sklearn, sql, dense"):
        NAMED.export("excel", tmp_path / "metric.xlsx")
    with pytest.raises(InputError, match="in no other format"):
        ReleasedRanking(strengths=[0.5, -0.5]).export("csv", tmp_path / "ranking.csv")


# ---- raw rows: every export gives the distances of ReleasedMetric -------------------------------

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
WORDS |= st.sampled_from(["other", "true", "1", "NaN", "it's $pairveil$ \\", "größe", "a b", ".*"])
FLAGS = st.booleans()


@st.composite
def numbers(draw, name: str) -> tuple[Column, st.SearchStrategy]:
    low = draw(st.floats(-1e6, 1e6))
    high = low + draw(st.floats(1e-3, 1e6))
    fill = draw(st.none() | st.floats(-1e6, 1e6))
    cells = st.none() | st.floats() | st.floats(low, high) | st.sampled_from([low, high])
    return NumberColumn(name, bounds=(low, high), fill=fill, indicator=draw(FLAGS)), cells


@st.composite
def logarithms(draw, name: str) -> tuple[Column, st.SearchStrategy]:
    """Numbers on a logarithmic scale; below the bounds lie 0 and negative ones, which have no logarithm."""
    low = draw(st.floats(1e-6, 1e3) | st.just(0.0) | st.floats(-1e3, -1.0))
    offset = draw(st.floats(1e-3, 10.0).map(lambda more: more - low)) if low <= 0 else None
    offset = draw(st.none() | st.floats(0.0, 10.0)) if offset is None else offset
    high = low + draw(st.floats(2.0, 1e6)) * (low + (offset or 0.0))
    fill = draw(st.none() | st.just(0) | st.floats(-1e6, 1e6))
    cells = st.none() | st.floats() | st.floats(low, high) | st.sampled_from([low, high, 0.0, -1.0])
    column = NumberColumn(
        name, bounds=(low, high), fill=fill, indicator=draw(FLAGS), scale="log", offset=offset
    )
    return column, cells


@st.composite
def categories(draw, name: str) -> tuple[Column, st.SearchStrategy]:
    listed = draw(st.lists(WORDS.map(str.strip).filter(bool), min_size=1, max_size=4, unique=True))
    fill = draw(st.none() | st.sampled_from([*listed, "other"]))
    space = st.text(st.sampled_from(SPACES), max_size=2)
    spaced = st.tuples(space, st.sampled_from(listed), space).map("".join)
    cells = st.none() | space | spaced | WORDS
    return CategoryColumn(name, categories=tuple(listed), fill=fill, indicator=draw(FLAGS)), cells


@st.composite
def dates(draw, name: str) -> tuple[Column, st.SearchStrategy]:
    low, high = sorted(draw(st.lists(st.dates(), min_size=2, max_size=2, unique=True)))
    fill = draw(st.none() | st.dates())
    cells = st.none() | st.dates() | st.dates(low, high)
    return DateColumn(name, bounds=(low, high), fill=fill, indicator=draw(FLAGS)), cells


@st.composite
def released(draw, *kinds) -> tuple[ReleasedMetric, dict[str, list]]:
    """A metric of raw columns of these kinds, and rows of them."""
    names = draw(st.lists(WORDS, min_size=1, max_size=4, unique=True))
    columns, rows = [Column("who"), Column("which", type="id")], {}
    n_rows = draw(st.integers(1, 5))
    for name in (f"{name} {at}" for at, name in enumerate(names)):
        column, cells = draw(draw(st.sampled_from(kinds))(name))
        columns.append(column)
        rows[name] = draw(st.lists(cells, min_size=n_rows, max_size=n_rows))
    schema = Schema(tuple(columns))
    seed = draw(st.integers(0, 2**32 - 1))
    L = np.random.default_rng(seed).normal(size=(2, len(schema.feature_names)))
    return ReleasedMetric(L, schema=schema), rows


TYPES = {NumberColumn: pa.float64(), CategoryColumn: pa.large_string(), DateColumn: pa.date32()}
QUICK = settings(
    max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def _table(metric: ReleasedMetric, rows: dict[str, list]) -> pa.Table:
    return pa.table(
        {one.name: pa.array(rows[one.name], TYPES[type(one)]) for one in metric.schema.features}
    )


def _agree(metric: ReleasedMetric, rows: dict[str, list], projected: np.ndarray) -> None:
    """Distances of all pairs of rows, and the coordinates."""
    table = _table(metric, rows)
    left, right = np.triu_indices(table.num_rows)
    distance = metric.distance(table.take(left), table.take(right))
    found = np.linalg.norm(projected[left] - projected[right], axis=1)
    np.testing.assert_allclose(found, distance, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(projected, metric.transform(table), rtol=1e-9, atol=1e-9)


quiet = pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")


@quiet
@QUICK
@given(released(numbers, logarithms, categories, dates))
def test_a_pickled_transformer_takes_raw_rows(made) -> None:
    metric, rows = made
    transformer = pickle.loads(pickle.dumps(MetricTransformer(metric)))
    _agree(metric, rows, transformer.transform(_table(metric, rows).to_pandas()))
    assert transformer.n_features_in_ == len(rows)
    assert transformer.feature_names_in_.tolist() == list(rows)


@quiet
@QUICK
@given(released(numbers, logarithms, categories))
def test_onnx_takes_raw_rows(made) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    metric, rows = made
    with tempfile.TemporaryDirectory() as folder:
        file = exporters.to_onnx(metric, Path(folder, "metric.onnx"))
        session = runtime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
    fed = {}
    for column in metric.schema.features:
        kind, gap = (float, np.nan) if isinstance(column, NumberColumn) else (object, "")
        cells = [gap if cell is None else cell for cell in rows[column.name]]
        fed[column.name] = np.array(cells, dtype=kind)[:, None]
    (projected,) = session.run(None, fed)
    _agree(metric, rows, projected)


@quiet
@settings(QUICK, max_examples=25)
@given(released(numbers, logarithms, categories, dates))
def test_postgresql_takes_raw_rows(psql, made) -> None:
    metric, rows = made
    calls = [
        ", ".join(
            f"{sql_text(name, chr(34))} => {_literal(cells[row])}" for name, cells in rows.items()
        )
        for row in range(len(next(iter(rows.values()))))
    ]
    selects = "".join(f"SELECT array_to_json(pairveil_project({one}));\n" for one in calls)
    found = psql(f"{_functions(metric)} {selects}")
    assert not found.startswith("failed"), found
    _agree(metric, rows, np.array([json.loads(line) for line in found.splitlines()]))


def _literal(cell: object) -> str:
    if cell is None:
        return "NULL"
    if isinstance(cell, float):
        return f"'{cell!r}'::float8"
    return sql_text(cell) if isinstance(cell, str) else f"DATE '{cell.isoformat()}'"


RAW = Schema(
    (
        NumberColumn("age", bounds=(0, 120), fill=40, indicator=True),
        NumberColumn("crp", bounds=(0, 500), scale="log", offset=0.1),
        CategoryColumn("ward", categories=("a", "b"), indicator=True),
        CategoryColumn("smokes", categories=(True, False), fill="false"),
        DateColumn("visit", bounds=("2020-01-01", "2025-12-31"), format="%d.%m.%Y"),
    ),
    decimal=",",
)
RAW_METRIC = ReleasedMetric(RNG.normal(size=(3, len(RAW.feature_names))), schema=RAW)
RAW_CSV = """age,crp,ward,smokes,visit
30,"1,5",a,true,01.02.2021
,-7,b,FALSE,31.12.2030
200,n/a,zzz,,
"""
READ = """
import pickle, sys
from pathlib import Path
import numpy as np, pandas as pd
table = pd.read_csv("raw.csv", dtype=str)
np.save("projected.npy", pickle.loads(Path("metric.pkl").read_bytes()).transform(table))
"""


def test_the_pickle_works_in_a_fresh_process(tmp_path: Path) -> None:
    """Texts of a file as they stand, in a process that knows nothing but the pickle."""
    import pandas as pd

    exporters.to_sklearn(RAW_METRIC, tmp_path / "metric.pkl")
    (tmp_path / "raw.csv").write_text(RAW_CSV)
    subprocess.run([sys.executable, "-W", "ignore", "-c", READ], cwd=tmp_path, check=True)
    with pytest.warns(UserWarning, match="cells"):
        wanted = RAW_METRIC.transform(pd.read_csv(tmp_path / "raw.csv", dtype=str))
    np.testing.assert_array_equal(np.load(tmp_path / "projected.npy"), wanted)


def test_rows_scaled_by_hand_would_not_agree() -> None:
    """What an export without the schema gave: the matrix on raw numbers."""
    schema = Schema((NumberColumn("age", bounds=(0, 120)), NumberColumn("crp", bounds=(0, 500))))
    metric = ReleasedMetric(np.eye(2), schema=schema)
    raw = np.array([[30.0, 5.0], [60.0, 5.0]])
    assert metric.distance(raw[:1], raw[1:]) == pytest.approx(0.25)
    projected = MetricTransformer(metric).transform(raw)
    assert np.linalg.norm(projected[0] - projected[1]) == pytest.approx(0.25)


@pytest.mark.parametrize(
    "write",
    [exporters.to_csv, exporters.to_dense, lambda metric, _: recipes.faiss_index(metric)],
)
def test_what_cannot_hold_a_schema_refuses_it(tmp_path: Path, write) -> None:
    with pytest.raises(InputError, match="cannot hold the schema"):
        write(RAW_METRIC, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_onnx_refuses_dates_and_names_that_it_cannot_have(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    with pytest.raises(InputError, match="no dates, and column 'visit'"):
        RAW_METRIC.to_onnx(tmp_path / "metric.onnx")
    named = Schema((NumberColumn("projected", bounds=(0, 1)),))
    with pytest.raises(InputError, match="called 'projected'"):
        ReleasedMetric(np.eye(1), schema=named).to_onnx(tmp_path / "metric.onnx")


def test_sql_refuses_more_columns_than_a_function_takes() -> None:
    many = Schema(tuple(NumberColumn(f"c{i}", bounds=(0, 1)) for i in range(101)))
    with pytest.raises(InputError, match="at most 100 columns"):
        recipes.pgvector_sql(ReleasedMetric(np.eye(101), schema=many))


def test_the_other_formats_hold_the_matrix_without_a_schema(tmp_path: Path) -> None:
    """CSV by numpy, Dense by torch, on rows that are the metric's own columns."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import load_file

    read = np.genfromtxt(exporters.to_csv(METRIC, tmp_path / "m.csv"), delimiter=",", skip_header=1)
    np.testing.assert_array_equal(PEOPLE @ read[:, 1:].T, METRIC.transform(PEOPLE))
    held = load_file(exporters.to_dense(METRIC, tmp_path / "dense") / "model.safetensors")
    rows = torch.nn.functional.linear(torch.tensor(PEOPLE), held["linear.weight"].double())
    np.testing.assert_allclose(rows.numpy(), METRIC.transform(PEOPLE), rtol=1e-4, atol=1e-3)
