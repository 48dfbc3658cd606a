"""The speed benchmark: the methods compute one thing; rows, ratios, files; peers that fail are said."""

import json
import subprocess

import numpy as np
import pytest
from benchmarks.__main__ import app
from benchmarks.speed import FLOOR, FULL, NO_NOISE, NUMPY, OURS, SHAPES
from typer.testing import CliRunner

from benchmarks import speed as bench_speed
from pairveil.errors import InputError


def test_rows_ratios_and_file(tmp_path):
    found = bench_speed.run(["tiny"], out=tmp_path)
    assert [row["method"] for row in found["rows"]] == [OURS, FULL, NO_NOISE, NUMPY, FLOOR]
    seconds = {row["method"]: row["cpu_seconds"] for row in found["rows"]}
    assert all(value > 0 for value in seconds.values())
    assert found["rows"][0]["ratio"] == 1.0
    expected = round(seconds[OURS] / seconds[NO_NOISE], 2)
    assert found["limits"]["tiny"]["private_over_no_noise"] == expected
    assert json.loads((tmp_path / "speed.json").read_text()) == found
    assert [path.name for path in tmp_path.iterdir()] == ["speed.json"]


def test_both_epochs_descend_alike(monkeypatch):
    """Without noise, numpy's epoch and the engine's lead to nearly the same loss from one start.

    The engine draws its batches from the operating system: one epoch ends at .164 with a standard
    deviation of .0043 (400 runs), numpy's seeded one at .173. The mean of 20 has .001, so that it
    is seven deviations from the limit: this fails by chance less than once in 10^11 runs.
    """
    monkeypatch.setattr(bench_speed, "NOISE", 0.0)
    monkeypatch.setattr(bench_speed, "RATE", 5.0)
    case = bench_speed._case(SHAPES["tiny"])
    gaps = case.data.differences()

    def loss(W):
        distance = np.linalg.norm(gaps @ W.T, axis=1)
        push = np.maximum(0, bench_speed.MARGIN - distance) ** 2
        return float(np.mean(np.where(case.data.labels > 0, distance**2, push)) / 2)

    engine = float(np.mean([loss(bench_speed._engine_epoch(case, 0.0)) for _ in range(20)]))
    assert engine < 0.95 * loss(case.start)
    assert loss(bench_speed._numpy_epoch(case)) == pytest.approx(engine, rel=0.1)


def test_the_floor_forms_every_difference():
    case = bench_speed._case(SHAPES["tiny"])
    last = case.data.differences()[-100:]
    room = bench_speed._gather_all(case)
    places = np.arange(400, 500) % len(room)
    np.testing.assert_array_equal(room[places], last)


def test_peers_that_fail_are_said_and_left_out(tmp_path, monkeypatch):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\ncase "$3" in *ghost*) echo no >&2; exit 1;; esac\n')
    with python.open("a") as script:
        script.write("echo '{\"seconds\": 2.0}'\n")
    python.chmod(0o755)
    rows, notes = bench_speed._measure_peers(["tiny"], tmp_path, None)
    assert [row["method"] for row in rows] == [m for m in bench_speed.PEERS if "ghost" not in m]
    assert all(row["cpu_seconds"] == 2.0 for row in rows)
    assert notes == ["Opacus ghost clipping failed on shape tiny: no"]


def test_peers_that_cannot_be_installed_are_said(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(InputError, match=r"could not be installed: torch==2\.13\.0"):
        bench_speed._environment(tmp_path / "peers")


def test_the_command(monkeypatch):
    with pytest.raises(InputError, match="among small, square, large"):
        bench_speed.run(["huge"])
    row = {"shape": "small", "method": OURS, "cpu_seconds": 1.0, "ratio": 1.0}
    monkeypatch.setattr(bench_speed, "run", lambda *a, **k: {"rows": [row]})
    asked = CliRunner().invoke(app, ["speed", "--json"])
    assert json.loads(asked.stdout)["rows"] == [row]
    assert "times ours" in CliRunner().invoke(app, ["speed"]).stdout
