"""Tables of strangers: compact files stay compact in memory, and text cannot run in a spreadsheet."""

from __future__ import annotations

import csv
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pairveil.data.columns import IdColumn
from pairveil.data.files import require_file
from pairveil.data.readers import read_features, read_pairs
from pairveil.data.scaling import PublicBounds
from pairveil.data.tables import write_columns
from pairveil.errors import InputError
from pairveil.graph.choosing import MAX_PEOPLE, design_pairs

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
