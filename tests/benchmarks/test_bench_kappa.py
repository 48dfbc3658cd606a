"""The kappa benchmark: every method gives the same number; files; what is said when parts lack."""

import importlib.util
import json

import pytest

from benchmarks import kappa as bench_kappa
from pairveil.errors import InputError


def test_every_method_agrees_and_the_files_are_written(tmp_path):
    found = bench_kappa.run(sizes=[400], out=tmp_path)
    assert [row["method"] for row in found["rows"]] == list(bench_kappa.LARGEST)
    assert len({row["relationship"] for row in found["rows"]}) == 1
    assert all(row["peak_mb"] > 10 and row["n_people"] == 200 for row in found["rows"])
    assert json.loads((tmp_path / "kappa.json").read_text()) == found
    assert (tmp_path / "kappa.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kappa.json", "kappa.png"]


def test_the_exponent_is_that_of_our_large_rows_only():
    sizes = (10**3, 10**5, 10**6, 10**7)
    rows = [{"method": "pairveil", "n_pairs": k, "cpu_seconds": 1e-7 * k**1.2} for k in sizes]
    rows[0]["cpu_seconds"] = 100.0
    rows.append({"method": "igraph", "n_pairs": 10**7, "cpu_seconds": 1e9})
    assert bench_kappa._exponent(rows) == pytest.approx(1.2)
    assert bench_kappa._exponent(rows[:2]) is None


@pytest.fixture
def absent(monkeypatch):
    found = importlib.util.find_spec

    def hide(*names):
        spec = lambda name: None if name in names else found(name)  # noqa: E731
        monkeypatch.setattr(importlib.util, "find_spec", spec)

    return hide


def test_without_matplotlib_the_message_says_what_to_install(absent, tmp_path):
    absent("matplotlib")
    with pytest.raises(InputError, match=r"pip install 'pairveil\[plots\]'"):
        bench_kappa.run(sizes=[400], out=tmp_path)


def test_a_peer_that_is_absent_is_left_out_and_said(absent, monkeypatch):
    absent("igraph", "networkx")
    monkeypatch.setattr(
        bench_kappa, "_measure", lambda m, k: {"method": m, "cpu_seconds": 1.0} | {"n_pairs": k}
    )
    found = bench_kappa.run(sizes=[400])
    assert [row["method"] for row in found["rows"]] == ["pairveil", "remove each person"]
    assert any("igraph is not installed" in note for note in found["notes"])


def test_sizes_are_checked():
    with pytest.raises(InputError, match="at least 100"):
        bench_kappa.run(sizes=[5])
