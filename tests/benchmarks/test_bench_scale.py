"""The scale benchmark: whole rows, whole files, and what is said when a part lacks."""

import importlib.util
import json
import math
import os

import numpy as np
import pytest
from benchmarks.__main__ import app
from benchmarks.measuring import growth, in_fresh_process
from typer.testing import CliRunner

from benchmarks import scale as bench_scale
from pairveil.errors import InputError, PairveilError
from pairveil.records.ondisk import open_pairs


@pytest.mark.skipif(
    not os.environ.get("PAIRVEIL_NIGHTLY"), reason="fresh processes: make audit runs it"
)
def test_rows_are_whole_and_the_files_are_written(tmp_path):
    told = []
    found = bench_scale.run([3000, 2000], tmp_path, scratch=tmp_path, progress=told.append)
    assert [row["n_pairs"] for row in found["rows"]] == [2000, 3000]
    assert told == ["2,000 pairs", "3,000 pairs"]
    for row in found["rows"]:
        assert row["n_people"] == 4 * math.isqrt(
            row["n_pairs"]
        )  # 100 pairs a person from 160,000 on
        assert 0.9 * row["n_people"] < row["n_pairs_used"] < row["n_people"]  # nearly one path
        assert row["peak_mb"] > 50
        assert all(row[f"{part}_seconds"] > 0 for part in ("open", "kappa", "select", "fit"))
        assert row["per_reference"] is None  # 10^6 pairs were not measured
    assert json.loads((tmp_path / "scale.json").read_text()) == found
    assert (tmp_path / "scale.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scale.json", "scale.png"]


def test_the_files_hold_what_the_rows_say(tmp_path):
    bench_scale._write_files(str(tmp_path), 5000)
    data = open_pairs(tmp_path / "people.npy", tmp_path / "pairs.parquet")
    assert (data.n_pairs, data.n_people, data.n_features) == (5000, 280, 64)
    assert data.features.dtype == np.float32
    assert 0.1 < np.mean(data.labels > 0) < 0.3  # five classes
    assert np.linalg.norm(data.features, axis=1).max() <= 1


def test_growth_is_the_slope():
    assert growth([1e5, 1e6, 1e7], [2.0, 2.0 * 10**1.2, 2.0 * 10**2.4]) == 1.2
    assert growth([1e5], [1.0]) is None


def test_the_command_prints_json(monkeypatch):
    parts = [f"{part}_seconds" for part in ("kappa", "select", "fit", "pass")]
    row = dict.fromkeys(["n_pairs", "n_pairs_used", "ns_per_pair", "peak_mb", *parts], 1)
    monkeypatch.setattr(bench_scale, "run", lambda *a, **k: {"rows": [row]})
    asked = CliRunner().invoke(app, ["scale", "--pairs", "1000", "--json"])
    assert json.loads(asked.stdout)["rows"] == [row]
    shown = CliRunner().invoke(app, ["scale"])
    assert "peak MB" in shown.stdout


def test_what_cannot_be_measured_is_said(monkeypatch, tmp_path):
    with pytest.raises(InputError, match="at least 1,000"):
        bench_scale.run([10])
    with pytest.raises(PairveilError, match=r"failed: .*no file"):
        in_fresh_process("benchmarks.scale", "worker", str(tmp_path))
    found = importlib.util.find_spec
    absent = lambda name: None if name == "matplotlib" else found(name)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", absent)
    with pytest.raises(InputError, match=r"pip install 'pairveil\[plots\]'"):
        bench_scale.run([1000], tmp_path)
