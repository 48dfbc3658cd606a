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
import pytest

from pairveil.data.readers import read_features
from pairveil.errors import DataWarning, InputError
from pairveil.release import exporters, recipes
from pairveil.release.sklearn_transformer import MetricTransformer

RNG = np.random.default_rng(7)
NAMES = ["age", "blood, pressure", 'the "best" one', "=cost()", "größe"]
L = RNG.normal(size=(3, 5)) * 10.0 ** np.arange(-2, 3)
PEOPLE = RNG.normal(size=(60, 5))
PROJECTED = PEOPLE @ L.T


# ---- ONNX ---------------------------------------------------------------------------------------


def test_onnx_gives_the_same_projection(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    file = exporters.to_onnx(L, tmp_path / "metric.onnx", NAMES)
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
    file = exporters.to_onnx(L, tmp_path / "metric.onnx")
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    with pytest.raises(Exception, match=r"(?i)dimension"):
        session.run(None, {"features": PEOPLE[:, :4]})


@pytest.mark.parametrize(
    ("package", "call", "remedy"),
    [
        ("onnx", lambda path: exporters.to_onnx(L, path), 'pip install "pairveil[onnx]"'),
        ("faiss", lambda path: recipes.faiss_index(L), "pip install faiss-cpu"),
        ("hnswlib", lambda path: recipes.hnswlib_index(L, PEOPLE), "pip install hnswlib"),
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
    file = exporters.to_csv(L, tmp_path / "metric.csv", NAMES)
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

    file = exporters.to_sklearn(L, tmp_path / "metric.pkl", NAMES)
    for transformer in (MetricTransformer(L, NAMES), pickle.loads(file.read_bytes())):
        check_is_fitted(transformer)
        np.testing.assert_array_equal(transformer.transform(PEOPLE), PROJECTED)
        np.testing.assert_array_equal(clone(transformer).fit_transform(PEOPLE), PROJECTED)
        assert list(transformer.get_feature_names_out()) == ["metric0", "metric1", "metric2"]


def test_the_transformer_keeps_nothing_of_what_it_sees() -> None:
    transformer = MetricTransformer(L, NAMES)
    before = pickle.dumps(transformer)
    transformer.fit(PEOPLE).transform(PEOPLE)
    assert pickle.dumps(transformer) == before


def test_the_transformer_matches_a_frame_by_name() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(PEOPLE, columns=NAMES)
    np.testing.assert_array_equal(MetricTransformer(L, NAMES).transform(frame), PROJECTED)
    with pytest.warns(DataWarning, match="another order"):
        turned = MetricTransformer(L, NAMES).transform(frame[NAMES[::-1]])
    np.testing.assert_array_equal(turned, PROJECTED)
    with pytest.raises(
        InputError, match=f"lacks 1 of the metric's {len(NAMES)} columns: {NAMES[0]}"
    ):
        MetricTransformer(L, NAMES).transform(frame.rename(columns={NAMES[0]: "other"}))


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
        MetricTransformer(L).transform(rows)
    assert "4711" not in str(caught.value)


# ---- nearest neighbours -------------------------------------------------------------------------


def _nearest(query: np.ndarray, k: int) -> np.ndarray:
    """Row numbers of the k nearest people under the metric, by brute force."""
    gaps = PEOPLE[None, :, :] - query[:, None, :]
    return np.argsort(np.linalg.norm(gaps @ L.T, axis=2), axis=1)[:, :k]


def test_faiss_finds_the_neighbours_under_the_metric() -> None:
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    index = recipes.faiss_index(L)
    index.add(PEOPLE.astype(np.float32))
    squared, rows = index.search(PEOPLE[:20].astype(np.float32) + np.float32(0.01), 5)
    np.testing.assert_array_equal(rows, _nearest(PEOPLE[:20] + 0.01, 5))
    true = np.linalg.norm(((PEOPLE[:20] + 0.01)[:, None] - PEOPLE[rows]) @ L.T, axis=2)
    np.testing.assert_allclose(np.sqrt(squared), true, rtol=1e-2)
    euclidean = np.argsort(np.linalg.norm(PEOPLE[None] - PEOPLE[:20, None] - 0.01, axis=2), axis=1)
    assert not np.array_equal(rows, euclidean[:, :5])  # else the test could not tell the metric


def test_hnswlib_finds_the_neighbours_under_the_metric() -> None:
    pytest.importorskip("hnswlib", reason="hnswlib is not installed")
    index = recipes.hnswlib_index(L, PEOPLE)
    rows, _ = index.knn_query((PEOPLE[:20] + 0.01) @ L.T, k=5)
    # 60 people and ef 64: the search visits everyone, so it is exact here.
    np.testing.assert_array_equal(rows, _nearest(PEOPLE[:20] + 0.01, 5))
    with pytest.raises(InputError, match="5 features"):
        recipes.hnswlib_index(L, PEOPLE[:, :2])


# ---- PostgreSQL ---------------------------------------------------------------------------------


def test_sql_holds_the_matrix_exactly() -> None:
    rows = re.findall(
        r"\(\d+, ARRAY\[([^\]]+)\]::double precision\[\]\)", recipes.pgvector_sql(L, NAMES)
    )
    np.testing.assert_array_equal(np.array([row.split(",") for row in rows], dtype=float), L)


def test_sql_cannot_be_injected_by_names() -> None:
    sql = recipes.pgvector_sql(L[:, :2], ["age\n; DROP TABLE people; --", "b\r\u2028DROP"])
    assert not [line for line in sql.splitlines() if "DROP" in line and not line.startswith("-- ")]
    with pytest.raises(InputError, match="table name"):
        recipes.pgvector_sql(L, table="people; DROP TABLE people")


def _postgresql() -> Path | None:
    """Programs of a PostgreSQL: pgserver's wheel (which has pgvector), else Debian's (which has not)."""
    wheel = find_spec("pgserver")
    if wheel is not None and wheel.origin is not None:
        return Path(wheel.origin).parent / "pginstall" / "bin"
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


def _has_pgvector(programs: Path) -> bool:
    return any((programs.parent / "share").glob("**/extension/vector.control"))


@pytest.fixture
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

    initdb = run("initdb", "-D", f"{folder}/data", "-U", "test", "-A", "trust", "-N")
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
    function = recipes.pgvector_sql(L, NAMES).split("CREATE EXTENSION")[0] + "COMMIT;"
    assert psql(function).strip() == ""
    found = psql(f"SELECT array_to_json(pairveil_project({_array(PEOPLE[0])}));")
    np.testing.assert_allclose(json.loads(found), PROJECTED[0], rtol=1e-9)
    for bad in ("ARRAY[1,2]::double precision[]", "ARRAY[1,2,3,4,NULL]::double precision[]"):
        assert "the metric takes 5 features" in psql(f"SELECT pairveil_project({bad});")


def test_pgvector_finds_the_neighbours_under_the_metric(psql) -> None:
    if not _has_pgvector(_postgresql()):
        pytest.skip("this PostgreSQL has no pgvector")
    assert psql(recipes.pgvector_sql(L, NAMES, table="patients")).strip() == ""
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
    with pytest.raises(InputError, match="finite"):
        write([[np.nan]], tmp_path / "out")
    with pytest.raises(InputError, match="feature name"):
        write(L, tmp_path / "out", NAMES[:2])
    with pytest.raises(InputError, match="is a folder"):
        write(L, tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        write(L, tmp_path / "nowhere" / "out")
    assert list(tmp_path.iterdir()) == []
