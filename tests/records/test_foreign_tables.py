"""Tables of strangers: compact files stay compact in memory, and text cannot run in a spreadsheet."""

from __future__ import annotations

import bz2
import csv
import gzip
import os
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from pairveil import ReleasedMetric, foreign
from pairveil.errors import InputError
from pairveil.foreign import as_csr
from pairveil.graph.choosing import MAX_PEOPLE, design_pairs
from pairveil.learners.inputs import as_features
from pairveil.records.choices import Choices
from pairveil.records.files import check_parquet, require_file
from pairveil.records.groups import People
from pairveil.records.ondisk import open_pairs
from pairveil.records.pairset import PairSet
from pairveil.records.readers import read_features, read_pairs
from pairveil.records.scaling import PublicBounds
from pairveil.records.tables import IdColumn, write_columns
from pairveil.records.validation import clip_rows
from pairveil.release.sklearn_transformer import MetricTransformer

FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2", "@SUM(A1)", "\tx", "'=1", "''-", "\uff1d1"]
HARMLESS = ["age", "'tis", "a=b", "1-2", "größe", "'"]


def test_ids_of_a_small_file_stay_small(tmp_path: Path) -> None:
    # A thousand letters each, 100,000 rows: 200 MB when written out, some kB as a dictionary.
    names = [f"{n:04d}" + "x" * 1000 for n in range(60)]
    rows = np.arange(100_000)
    table = pa.table(
        {
            "left": pa.DictionaryArray.from_arrays(pa.array(rows % 60, pa.int32()), names),
            "right": pa.DictionaryArray.from_arrays(pa.array((rows // 60) % 60, pa.int32()), names),
        }
    )
    pq.write_table(table, tmp_path / "p.parquet", store_schema=False)  # plain text to a reader
    assert pq.read_schema(tmp_path / "p.parquet").field("left").type == pa.string()
    assert (tmp_path / "p.parquet").stat().st_size < 2**20
    tracemalloc.start()
    pool, usual = pa.system_memory_pool(), pa.default_memory_pool()
    before = pool.bytes_allocated()
    pa.set_memory_pool(pool)  # one that has seen nothing large yet
    try:
        found = read_pairs(tmp_path / "p.parquet", label=None)
    finally:
        pa.set_memory_pool(usual)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.n_pairs == 100_000
    assert found.left[61] == names[1]
    assert peak < 60 * 2**20
    assert pool.max_memory() - before < 80 * 2**20


def test_a_dictionary_is_read_as_its_values_are() -> None:
    def read(*chunks: pa.Array) -> np.ndarray:
        column = IdColumn("column 'id'")
        for chunk in chunks:
            column.add(chunk)
        return column.finish()

    plain = [pa.array(["7", "12", "7"]), pa.array(["9"])]
    assert (
        read(*plain).tolist()
        == read(*(c.dictionary_encode() for c in plain)).tolist()
        == [7, 12, 7, 9]
    )
    mixed = [
        pa.array(["7", "x"]),
        pa.array(["12"]).dictionary_encode(),
        pa.array(["x"]).dictionary_encode(),
    ]
    assert read(*mixed).tolist() == ["7", "x", "12", "x"]
    # An entry that no row has is nobody's id.
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array(["5", "A"]))
    assert read(unused).tolist() == [5, 5]
    for indices, words in [
        ([0, None], ["a"]),
        ([0, 1], ["a", None]),
        ([0, 1], ["a", ""]),
        ([None], []),
    ]:
        gap = pa.DictionaryArray.from_arrays(
            pa.array(indices, pa.int8()), pa.array(words, pa.string())
        )
        with pytest.raises(InputError, match=f"empty in row {len(indices)}"):
            read(gap)


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_written_as_text_and_read_back(text: str, tmp_path: Path) -> None:
    ids = np.array([text, *HARMLESS], dtype=object)
    file = write_columns(tmp_path / "a.csv", {"id": ids, text: np.arange(-3.0, 4.0)})
    with file.open(newline="", encoding="utf-8") as stream:
        header, first, *others = list(csv.reader(stream))
    assert header[1] == first[0] == f"'{text}"
    assert [row[0] for row in others] == HARMLESS
    assert [float(row[1]) for row in others] == [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0]
    found = read_features(file)
    assert found.ids.tolist() == ids.tolist()
    assert found.names == (text,)
    bounds = PublicBounds([0.0], [1.0], [text])
    bounds.write(tmp_path / "b.csv")
    assert f"'{text}" in (tmp_path / "b.csv").read_text(encoding="utf-8")
    assert PublicBounds.read(tmp_path / "b.csv").names == (text,)


def test_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.csv")
    with pytest.raises(InputError, match="not a regular file"):
        require_file(tmp_path / "p.csv")


def test_designs_have_a_public_limit() -> None:
    with pytest.raises(InputError, match="at most 100,000,000 people"):
        design_pairs(MAX_PEOPLE + 1)


def _unsound() -> dict[str, sparse.sparray]:
    """Sparse matrices whose indices point outside of them, or whose pointers go back."""
    whole = sparse.csr_array(np.arange(1.0, 13.0).reshape(4, 3))
    made = {}

    def change(name: str, kind: str, at: int, value: int, part: str = "indices") -> None:
        table = whole.asformat(kind).copy()
        array = table.coords[1] if kind == "coo" else getattr(table, part)
        array[at] = value
        made[f"{kind}: {name}"] = table

    for value in (4, 10**6, 2**31 - 1, -1, -(10**9)):
        for kind in ("csr", "csc", "coo"):
            change(f"index {value}", kind, 2, value)
    for value in (10**7, -(10**6)):
        change(f"pointer {value}", "csr", 2, value, "indptr")
        change(f"pointer {value}", "csc", 2, value, "indptr")
    change("last pointer past the end", "csr", -1, 10**6, "indptr")
    # scipy's own check looks no further where the last pointer is 0.
    change("pointers come back to 0", "csr", -1, 0, "indptr")
    change("a pointer below 0 at the end", "csr", -1, -4, "indptr")
    change("index 7", "bsr", 0, 7)
    far = sparse.dia_array((np.ones((1, 4)), [0]), shape=(4, 3))
    far.offsets = np.array([2**32 + 1])
    made["dia: an offset that is 1 in 32 bits"] = far
    return made


@pytest.mark.parametrize("case", list(_unsound()))
def test_no_index_is_followed_out_of_a_sparse_matrix(case: str) -> None:
    table = _unsound()[case]
    ends, labels = [[0, 1], [2, 3]], [1, -1]
    doors = [
        lambda: as_csr(table),
        lambda: read_features(table),
        lambda: PairSet(table, ends, labels),
        lambda: People(table, np.array([0, 1, 0, 1]), 2),
        lambda: clip_rows(table, 1.0),
        lambda: as_features(table),
        lambda: MetricTransformer(ReleasedMetric(np.eye(3))).fit(np.eye(3)).transform(table),
        lambda: Choices([0, 1], [[0, 1], [0, 1]], [1, 1], table),
    ]
    for door in doors:
        with pytest.raises(InputError, match="the sparse features contradict themselves"):
            door()


def test_a_sparse_matrix_is_checked_and_left_as_it_was() -> None:
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    for kind in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok"):
        for made in (sparse.csr_array(dense), sparse.csr_matrix(dense)):
            np.testing.assert_array_equal(as_csr(made.asformat(kind)).toarray(), dense)
    roomy = sparse.csr_array(dense)
    roomy.data, roomy.indices = np.append(roomy.data, 9.0), np.append(roomy.indices, 0)
    np.testing.assert_array_equal(as_csr(roomy).toarray(), dense)
    assert len(roomy.data) == 4  # the caller's spare room is still there


def _save_sparse(path: Path, table: sparse.sparray) -> None:
    parts = {"indices": table.indices, "indptr": table.indptr}
    np.savez(path, format=b"csr", shape=np.array(table.shape), data=table.data, **parts)


@pytest.mark.parametrize("case", [case for case in _unsound() if case.startswith("csr")])
def test_a_sparse_file_is_checked_before_it_is_learned_from(case: str, tmp_path: Path) -> None:
    _save_sparse(tmp_path / "x.npz", _unsound()[case])
    with pytest.raises(InputError, match=r"contradict themselves|not a whole scipy sparse file"):
        read_features(tmp_path / "x.npz")


GROWN = "would grow to more than"


def _constants(rows: int, columns: list[str]) -> pa.Table:
    word = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array(["x"]))
    return pa.table(dict.fromkeys(columns, word))


def test_small_files_that_declare_a_huge_table_are_refused_before_they_are_decoded(
    tmp_path: Path,
) -> None:
    """The files of the report: some MB that took 4 to 9 GB, or more than 100 seconds."""
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as packed, packed.open("X.npy", "w") as member:
        np.lib.format.write_array_header_2_0(  # declared, and nothing behind it
            member, {"descr": "<f8", "fortran_order": False, "shape": (70_000_000, 8)}
        )
    blob = bytearray((tmp_path / "x.npz").read_bytes())
    at = blob.index(b"PK\x01\x02")
    blob[at + 24 : at + 28] = (2**32 - 2).to_bytes(4, "little")  # the size in the directory
    (tmp_path / "x.npz").write_bytes(blob)
    with pytest.raises(InputError, match=GROWN):
        read_features(tmp_path / "x.npz")
    pq.write_table(_constants(25_000_000, ["left", "right", "label"]), tmp_path / "p.parquet")
    assert (tmp_path / "p.parquet").stat().st_size < 2**18
    with pytest.raises(InputError, match=GROWN):
        read_pairs(tmp_path / "p.parquet")
    np.save(tmp_path / "f.npy", np.eye(2, dtype=np.float32))
    with pytest.raises(InputError, match=GROWN):
        open_pairs(tmp_path / "f.npy", tmp_path / "p.parquet")
    tall = sparse.coo_array(([1.0], ([0], [0])), shape=(10**9, 2))
    sparse.save_npz(tmp_path / "s.npz", tall)
    with pytest.raises(InputError, match=GROWN):
        read_features(tmp_path / "s.npz")


def test_people_who_are_there_many_times_are_found_at_once(tmp_path: Path) -> None:
    """100 kB of one id over and over took minutes: each text was compared with each."""
    ids = ["ann", "bob"] + ["cid"] * 100_000
    pq.write_table(pa.table({"id": ids, "x": np.zeros(len(ids))}), tmp_path / "p.parquet")
    start = time.process_time()
    found = read_features(tmp_path / "p.parquet", leave_out=True)
    assert time.process_time() - start < 5
    assert (found.ids.tolist(), len(found.problems[0].rows)) == (["ann", "bob"], 99_999)


def test_a_compressed_text_is_counted_while_it_is_read(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(foreign, "FREE_GROWTH", 2**20)
    for name, compress in (("a.csv.gz", gzip.compress), ("a.csv.bz2", bz2.compress)):
        (tmp_path / name).write_bytes(compress(b"id,x\n" + b"1,0000000000000\n" * 2**18))
        with pytest.raises(InputError, match=GROWN):
            read_features(tmp_path / name)
        (tmp_path / name).write_bytes(compress(b"id,x\n" + b"1,2\n"))
        assert read_features(tmp_path / name).values.tolist() == [[2.0]]


def test_ten_million_pairs_are_no_bomb_however_they_are_packed(tmp_path: Path) -> None:
    pq.write_table(_constants(10_000_000, ["left", "right", "label"]), tmp_path / "p.parquet")
    found = pq.ParquetFile(tmp_path / "p.parquet")
    check_parquet(found.metadata, "p.parquet", (tmp_path / "p.parquet").stat().st_size)


def _sheet(path: Path, change: Callable[[bytes], bytes]) -> Path:
    """An Excel file of 60 people whose sheet is changed by hand."""
    book = openpyxl.Workbook()
    book.active.append(["id", "x"])
    for number in range(60):
        book.active.append([number, number / 60])
    book.save(path)
    parts = {}
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    parts["xl/worksheets/sheet1.xml"] = change(parts["xl/worksheets/sheet1.xml"])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return path


def test_rows_beyond_a_stale_dimension_are_read(tmp_path: Path) -> None:
    stale = _sheet(tmp_path / "p.xlsx", lambda xml: xml.replace(b'ref="A1:B61"', b'ref="A1:B21"'))
    assert b'ref="A1:B21"' in zipfile.ZipFile(stale).read("xl/worksheets/sheet1.xml")
    assert read_features(stale).n_people == 60


def test_a_spreadsheet_cannot_grow_beyond_measure(tmp_path: Path, monkeypatch) -> None:
    long = _sheet(tmp_path / "a.xlsx", lambda xml: xml + b" " * 20_000_000)
    with pytest.raises(InputError, match=GROWN):
        read_features(long)
    row = '<row r="{0}"><c r="{1}{0}"><v>1</v></c></row>'
    far = [row.format(99999999999, "A"), "".join(row.format(n, "XFD") for n in range(62, 262))]
    monkeypatch.setattr(foreign, "FREE_GROWTH", 2**20)
    for cells in far:
        end = f"{cells}</sheetData>".encode()
        wide = _sheet(tmp_path / "b.xlsx", lambda xml, end=end: xml.replace(b"</sheetData>", end))
        with pytest.raises(InputError, match=GROWN):
            read_features(wide)
