"""Experiments end to end in quick size on embedded data; resuming; files; messages."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reproduction.cells import Job, cell_path, run_jobs, write_table
from reproduction.data import load
from reproduction.protocol import make_split
from reproduction.run import _with_earlier, reproduce

from pairveil.errors import InputError
from reproduction import accuracy, leak, mechanisms, parameters, steelman, toy


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv("PAIRVEIL_DATA", raising=False)


@pytest.fixture
def one_set(monkeypatch):
    """Only the patients: digits would double the time."""
    for module in (accuracy, steelman):
        monkeypatch.setattr(module, "available", lambda _: ("breast_cancer",))


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def complete(folder, files):
    assert all((folder / name).stat().st_size > 50 for name in files)
    assert not list(folder.rglob("*.part"))


def test_toy_draws_and_tabulates(tmp_path):
    result = toy.run(None, tmp_path, seeds=2, quick=True, jobs=1)
    complete(tmp_path, result["files"])
    assert {f.rsplit(".", 1)[1] for f in result["files"]} == {"csv", "png", "svg"}
    table = read(tmp_path / "toy.csv")
    assert len(table) == 2 * 3 * 11  # repeats, variants, iterations with the start
    dpp = next(r for r in result["rows"] if r["variant"] == "dpp")
    assert dpp["kappa"] == 1
    assert (dpp["epsilon_claimed"], dpp["epsilon_sound"]) == (2.0, 4.0)
    assert next(r for r in result["rows"] if r["variant"] == "dpp-s")["epsilon_sound"] is None


def test_mechanisms_compare_seven(tmp_path):
    result = mechanisms.run(None, tmp_path, seeds=1, quick=True, jobs=1)
    complete(tmp_path, result["files"])
    assert {r["method"] for r in result["rows"]} == set(mechanisms.METHODS)
    start = {r["objective"][0] for r in result["rows"]}
    assert len(start) == 1  # every mechanism starts from the same W


def test_parameters_fill_four_panels(tmp_path):
    result = parameters.run(None, tmp_path, seeds=1, quick=True, jobs=1)
    complete(tmp_path, result["files"])
    assert len(result["rows"]) == 20
    assert {r["panel"] for r in result["rows"]} == set(parameters.PANELS)


def test_leak_tells_the_story_of_figure_3(tmp_path):
    result = leak.run(None, tmp_path)
    complete(tmp_path, result["files"])
    assert {r["pair"] for r in result["rows"] if r["cut"]} == {"st", "sc"}
    assert result["key_count"] == result["kappa"]["exact"] == 3
    assert result["kappa"]["person"] == 4


def test_accuracy_scores_every_method(tmp_path, one_set):
    result = accuracy.run(None, tmp_path, seeds=1, quick=True, jobs=1)
    complete(tmp_path, result["files"])
    rows = {(r["method"], r["epsilon"]): r for r in result["rows"]}
    assert len(rows) == 5 + 2 * 6
    assert all(0.3 < r["pair_auc"] <= 1 for r in rows.values())
    assert rows["node-dp", 4.0]["kappa"] >= rows["dpp", 4.0]["kappa"]
    assert rows["dpp", 4.0]["epsilon_sound"] is None  # the margin came from the pairs
    ours = rows["ours-relationship", 4.0]
    assert 3.5 < ours["epsilon_sound"] <= 4.0 < ours["epsilon_replace"]
    assert rows["ours-person", 4.0]["kappa"] == 2


def test_reproduce_decides_claims_and_keeps_earlier_ones(tmp_path):
    page = tmp_path / "docs" / "paper-claims.md"
    reproduce("leak", None, tmp_path / "out", seeds=1, quick=True, jobs=1)
    first = reproduce("toy", None, tmp_path / "out", seeds=2, quick=True, jobs=1, claims_page=page)
    verdicts = {c["id"]: c["verdict"] for c in first["claims"]}
    assert verdicts["toy-sensitivity"] == "holds"
    assert verdicts["scdf"] == "not testable here"
    here = (tmp_path / "out" / "paper-claims.md").read_text()
    assert "(toy-curves.png)" in here
    assert page.read_text() == here.replace("(toy-curves", "(paper-claims-figures/toy-curves")
    assert (page.parent / "paper-claims-figures" / "toy-curves.png").stat().st_size > 0
    assert "quick sizes, not a measurement" in page.read_text()
    second = reproduce("mechanisms", None, tmp_path / "out", seeds=1, quick=True, jobs=1)
    verdicts = {c["id"]: c["verdict"] for c in second["claims"]}
    assert verdicts["toy-sensitivity"] == "holds"  # kept from the run before
    assert verdicts["scdf"] != "not testable here"
    saved = json.loads((tmp_path / "out" / "claims.json").read_text())
    assert saved["claims"] == second["claims"]
    assert saved["repeats"] == {"toy": 2, "mechanisms": 1}
    assert "repeats: toy 2, mechanisms 1." in second["setting"]


def test_steelman_tries_every_start_and_reruns_the_best(tmp_path, one_set, monkeypatch):
    for name, value in {"MOST_REPEATS": 2, "TEST_PAIRS": 2_000}.items():
        monkeypatch.setattr(steelman, name, value)
    found = steelman.run(None, tmp_path, seeds=9, quick=True, jobs=1)
    complete(tmp_path, found["files"])
    searched = read(tmp_path / "steelman-search.csv")
    assert {r["start"] for r in searched} == set(steelman.GRID["start"])
    assert len(searched) == 3 * len(steelman.SEARCHED)
    for claim, (_, methods) in steelman.CHECKS.items():
        mine = [r for r in found["rows"] if r["claim"] == claim]
        assert len({r["start"] for r in mine}) == 1
        assert {(r["method"], r["epsilon"]) for r in mine} == set(methods)
        assert {r["seed"] for r in mine} == {0, 1}  # no more than the most
        assert mine[0]["start"] in steelman.best_case(claim, found["rows"])


def test_a_later_run_keeps_what_it_did_not_measure(tmp_path):
    saved = tmp_path / "claims.json"
    claim = {"id": "auc-lost", "needs": "accuracy", "verdict": "holds", "best_case": ""}
    open_ = {**claim, "verdict": "not testable here"}
    tried = {**open_, "best_case": "at its best"}
    saved.write_text(json.dumps({"about": "a", "repeats": {"accuracy": 4}, "claims": [claim]}))
    both = {**claim, "best_case": "at its best"}
    counts = {"accuracy": 4, "steelman": 3}
    assert _with_earlier([tried], {"steelman": 3}, saved, "a") == ([both], counts)
    assert _with_earlier([tried], {"steelman": 3}, saved, "other data") == (
        [tried],
        {"steelman": 3},
    )
    saved.write_text(json.dumps({"about": "a", "repeats": {"steelman": 3}, "claims": [tried]}))
    assert _with_earlier([claim], {"accuracy": 4}, saved, "a")[0] == [both]


def test_a_whole_identity_or_pca_start_is_the_euclidean_metric():
    split = make_split(load("breast_cancer"), np.random.default_rng(0), "l1", 60)
    d = split.X_train.shape[1]
    for start in ("identity", "pca"):
        W = steelman._start({"start": start, "n_components": 0}, split, np.random.default_rng(0))
        assert np.allclose(W.T @ W, np.eye(d))
    first = steelman._start({"start": "pca", "n_components": 1}, split, np.random.default_rng(0))
    spread = np.var(split.X_train @ first.T)
    assert spread >= np.var(split.X_train, axis=0).max()


def test_finished_cells_are_skipped_and_missing_ones_filled(tmp_path):
    calls = []

    def work(keys):
        for key in keys:
            calls.append(key["x"])
            yield {"twice": 2 * key["x"]}

    jobs = [Job(str(x), ({"x": x}, {"x": x + 10}), work) for x in range(3)]
    rows = run_jobs("made", jobs, tmp_path, 1)
    assert [r["twice"] for r in rows] == [0, 20, 2, 22, 4, 24]
    cell_path(tmp_path / "cells" / "made", {"x": 11}).unlink()
    seen = []
    again = run_jobs("made", jobs, tmp_path, 1, lambda *a: seen.append(a))
    assert again == rows
    assert calls == [0, 10, 1, 11, 2, 12, 11]
    assert seen == [(1, 1, "made: 1")]


def test_a_failing_job_keeps_the_cells_before_it(tmp_path):
    def work(keys):
        yield {"value": 1}
        raise RuntimeError("interrupted")

    keys = ({"x": 0}, {"x": 1})
    with pytest.raises(RuntimeError, match="interrupted"):
        run_jobs("made", [Job("j", keys, work)], tmp_path, 1)
    folder = tmp_path / "cells" / "made"
    assert [cell_path(folder, key).exists() for key in keys] == [True, False]


def test_two_workers_give_what_one_gives(tmp_path):
    jobs = mechanisms._jobs(None, 2, quick=True)
    small = [Job(j.title, j.keys[:2], j.work) for j in jobs]
    alone = run_jobs("made", small, tmp_path / "one", 1)
    together = run_jobs("made", small, tmp_path / "two", 2)
    assert alone == together


def test_tables_leave_curves_to_the_cells(tmp_path):
    path = write_table(tmp_path / "t.csv", [{"a": 1, "curve": [1, 2]}, {"a": 2, "b": None}])
    assert path.read_text().split() == ["a,b", "1,", "2,"]


def test_bad_requests_are_explained(tmp_path):
    with pytest.raises(InputError, match="choose experiments from toy"):
        reproduce("figure-9", out=tmp_path)
    with pytest.raises(InputError, match="seeds and jobs"):
        reproduce("toy", out=tmp_path, seeds=0)
    with pytest.raises(InputError, match="name the data folder"):
        reproduce("toy", out=tmp_path, download=True)


def test_without_matplotlib_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install 'pairveil\[plots\]'"):
        reproduce("toy", out=tmp_path / "never", seeds=1, quick=True)
    assert not (tmp_path / "never").exists()


def test_the_command_runs_from_the_repository(tmp_path):
    words = [
        "leak",
        "--quick",
        "--seeds",
        "1",
        "--jobs",
        "1",
        "-o",
        str(tmp_path / "again"),
        "--json",
    ]
    done = command("reproduction", *words)
    verdicts = {claim["id"]: claim["verdict"] for claim in json.loads(done.stdout)["claims"]}
    assert verdicts["theorem-1"] == "holds"
    assert verdicts["noise-2"] == "does not hold"
    assert (tmp_path / "again" / "paper-claims.md").is_file()
    wrong = command("reproduction", "nonsense", "-o", str(tmp_path / "again"))
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)


def test_the_benchmarks_run_from_the_repository():
    done = command("benchmarks", "kappa", "--pairs", "1000", "--no-peers", "--json")
    assert [row["n_pairs"] for row in json.loads(done.stdout)["rows"]] == [1000]


def command(package, *words):
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-m", package, *words],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
