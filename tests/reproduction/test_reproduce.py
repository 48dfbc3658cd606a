"""Experiments end to end in quick size on embedded data; resuming; files; messages."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reproduction.cells import cell_path, run_cells, write_table
from reproduction.claims import CLAIMS
from reproduction.data import load
from reproduction.experiments import QUICK, Setting, keys_of, measure, start
from reproduction.field import greedy_bound, node_dp
from reproduction.protocol import make_split
from reproduction.run import reproduce

from pairveil.errors import InputError
from reproduction import run, steelman

SETS = {"breast_cancer": 569}
SMALL = replace(QUICK, people=200, test_pairs=500, knn_people=60)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Only the patients, and few of them."""
    monkeypatch.delenv("PAIRVEIL_DATA", raising=False)
    monkeypatch.setattr(run, "available", lambda _: ("breast_cancer",))
    monkeypatch.setattr(run, "QUICK", SMALL)


def go(names, out, **more):
    return reproduce(names, None, out, **{"seeds": 2, "quick": True, "jobs": 1, **more})


def test_every_figure_runs_on_both_graphs_and_is_kept_by_later_runs(tmp_path):
    page, record = tmp_path / "docs" / "paper-claims.md", tmp_path / "record"
    first = go(["toy", "mechanisms"], tmp_path / "out", claims_page=page, record=record)
    by_id = {claim["id"]: claim for claim in first["claims"]}
    assert set(by_id["toy-sensitivity"]["on"]) == {"random", "even"}
    assert by_id["toy-sensitivity"]["verdict"] == "holds"
    assert by_id["rises"]["verdict"] == "not run"
    for written in (page, record / "RESULTS.md"):
        text = written.read_text(encoding="utf-8")
        assert "Quick sizes (200 people a set), not a measurement" in text
    assert "(figures/toy-even.png)" in text
    assert (record / "figures" / "toy-even.png").stat().st_size > 50
    assert not list(tmp_path.rglob("*.part"))
    second = go(["accuracy", "parameters", "ours"], tmp_path / "out", graphs=("even",))
    by_id = {claim["id"]: claim for claim in second["claims"]}
    assert by_id["toy-sensitivity"]["verdict"] == "holds"  # kept from the run before
    assert set(by_id["rises"]["on"]) == {"even"}
    assert by_id["input-us"]["verdict"] == "not testable here"
    saved = json.loads((tmp_path / "out" / "claims.json").read_text(encoding="utf-8"))
    assert saved["claims"] == second["claims"]
    with (tmp_path / "out" / "accuracy.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * (3 + 5 * 4)  # repeats, methods without and with epsilon
    ours = [row for row in second["scores"] if row["graph"] == "paths"]
    assert {row["method"] for row in ours} == {"ours-relationship"}


def test_the_steelman_chooses_on_one_half_of_the_seeds_and_reports_on_the_other(tmp_path):
    asked = []

    def rows_of(figure, setting, seeds, keep=bool):
        keys = [k for k in keys_of(figure, setting, SETS, seeds, SMALL) if keep(k)]
        asked.append((setting, tuple(seeds)))
        return run_cells(measure, keys, tmp_path)

    effort = steelman.Effort(drawn=1, finalists=1, sketch=1, final=1)
    options = {"graph": ("random", "even"), "start": ("identity",), "epochs": (1,)}
    found, tried = steelman.search(6, rows_of, SETS, options, effort)
    assert len(tried) == 3
    assert {len(seeds) for _, seeds in asked} == {1, 3}
    assert {seeds for _, seeds in asked} == {(0,), (1,), (3, 4, 5)}
    assert {str(s) for s, seeds in asked if seeds == (3, 4, 5)} == {found["setting"]}
    assert str(steelman.EARLIER) in found["finalists"]
    assert found["met"] == found["finalists"][found["setting"]] == max(found["finalists"].values())
    assert found["findings"]["rises"]["repeats"] == 3
    defended = [claim for claim in CLAIMS if claim.id in ("h-two", "little-lost")]
    for claim in defended:
        one = steelman.defend([claim], 6, rows_of, tried, effort)[claim.id]
        best = max(tried, key=lambda s, i=claim.id: tried[s][i])
        assert (one["setting"], one["repeats"]) == (str(best), 3)


def test_a_steelman_run_fills_its_column_and_the_second_reader_s_table(tmp_path, monkeypatch):
    finding = {"measured": "made up", "verdict": "holds", "favour": 1.0, "repeats": 7}
    best = {
        "setting": "a setting", "tried": 9, "met": 3, "sketched_on": "x", "sketch_repeats": 1,
        "final_repeats": 2, "reported_on": 7, "sketches": {"a setting": 4}, "finalists": {"a setting": 5},
        "findings": {c.id: {**finding, "verdict": "not decided"} for c in CLAIMS if c.figure},
    }  # fmt: skip
    monkeypatch.setattr(run, "search", lambda *_, **__: (best, {}))
    monkeypatch.setattr(
        run, "defend", lambda own, *_: {c.id: {**finding, "setting": "its own"} for c in own}
    )
    go(["toy"], tmp_path, graphs=("even",))
    found = go(["steelman"], tmp_path)
    held = {claim["id"] for claim in found["claims"] if claim["verdict"] == "holds"}
    assert "toy-sensitivity" in held
    assert {"h-half", "little-lost"} <= set(found["defence"])
    assert not set(found["defence"]) & {*held, "rises"}
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "Settings tried: 9 by the search" in text
    sketched = "the sketched setting that favours it most"
    assert f"| h-half | not run | {sketched} | its own | *holds*, 7 repeats: made up |" in text
    true, left = re.search(r"make true: (.*?); .* unchanged: (.*?)\.", text).groups()
    assert set(true.split(", ")) == set(found["defence"])
    assert "rises" in left.split(", ")


def test_the_composed_setting_takes_each_option_where_it_did_best():
    good = {"a": 1.0, "b": 1.0}
    bad = {"a": -1.0, "b": 1.0}
    settings = [
        Setting(graph="even", start="pca"), Setting(graph="random", start="pca"),
        Setting(graph="even", start="identity"), Setting(graph="random", start="identity", epochs=1),
    ]  # fmt: skip
    tried = dict(zip(settings, (good, bad, good, bad), strict=True))
    assert steelman.composed(tried).graph == "even"
    assert steelman.composed(tried).epochs == 3
    assert steelman.met(bad) == (1, -1.0)


def test_what_is_kept_in_the_record_is_not_run_again(tmp_path):
    page, record = tmp_path / "docs" / "paper-claims.md", tmp_path / "record"
    go(["toy"], tmp_path / "out", claims_page=page, record=record)
    written = (page, record / "RESULTS.md", record / "figures" / "toy-even.png")
    before = [path.read_bytes() for path in written]
    again = go(
        ["page"], tmp_path / "elsewhere", claims_page=page, record=record
    )  # its cells are gone
    assert [path.read_bytes() for path in written] == before
    assert {c["verdict"] for c in again["claims"] if c["figure"] == "toy"} != {"not run"}


def test_the_field_keeps_one_pair_of_a_person(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "node_dp", lambda: node_dp(["mag_cn"]))
    found = go(["field"], tmp_path / "out", graphs=("random",))["field"]
    (line,) = found["bounds"]
    assert line["greedy_kept"] <= line["matching_kept"] <= line["people"] / 2
    text = (tmp_path / "out" / "RESULTS.md").read_text(encoding="utf-8")
    assert "| mag_cn | adaptive | 10 | 0.541 |" in text


def test_node_dp_is_accounted_as_published_and_by_pairs_alone():
    ten, four = node_dp(["mag_cn"])
    assert ten["renyi"] == pytest.approx(10, abs=1.0)  # its sizes after capping are not published
    assert four["renyi"] == pytest.approx(4, abs=0.6)
    for row in (ten, four):
        assert row["pairs_only"] < row["grid"] < row["renyi"]
        assert row["noise_needed"] < row["noise"]


def test_the_greedy_bound_is_a_matching_that_cannot_grow():
    rng = np.random.default_rng(0)
    pairs = rng.integers(60, size=(150, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    kept = pairs[greedy_bound(pairs, rounds=60)]
    used = np.bincount(kept.ravel(), minlength=60)
    assert used.max() == 1
    assert (used[pairs] > 0).any(axis=1).all()
    assert len(greedy_bound(pairs, rounds=1)) < len(kept)


def test_a_whole_identity_or_pca_start_is_the_euclidean_metric():
    split = make_split(load("breast_cancer"), np.random.default_rng(0), "l1", 60)
    d = split.X_train.shape[1]
    for name in ("identity", "pca"):
        W = start(Setting(start=name), split, 0, 0)
        assert np.allclose(W.T @ W, np.eye(d))
    first = start(Setting(start="pca"), split, 1, 0)
    assert np.var(split.X_train @ first.T) >= np.var(split.X_train, axis=0).max()


def test_settings_that_do_not_matter_to_a_cell_share_it():
    def cells(**choice):
        keys = keys_of("accuracy", Setting(**choice), {"a": 1}, [0], QUICK)
        return {(key["method"], key["epsilon"]): json.dumps(key) for key in keys}

    base, even = cells(), cells(graph="even")
    assert base["euclid", "none"] == even["euclid", "none"]
    assert base["untrained", "none"] == even["untrained", "none"]
    assert base["dpp", 4.0] != even["dpp", 4.0]
    assert base["nonpriv", "none"] == cells(kappa_factor="twice")["nonpriv", "none"]
    assert base["dpp", 4.0] != cells(kappa_factor="twice")["dpp", 4.0]
    preset = cells(input_margin="preset")
    assert [cell for cell in base if base[cell] != preset[cell]] == [
        ("inputper", epsilon) for epsilon in QUICK.epsilons
    ]


def test_a_preset_margin_reaches_input_perturbation():
    def score(**choice):
        (key,) = keys_of("accuracy", Setting(**choice), SETS, [0], SMALL)[6:7]
        assert (key["method"], key["epsilon"]) == ("inputper", 0.5)
        return measure(key, None)

    assert score() != score(input_margin="preset")


def test_the_peak_of_a_full_batch_is_at_most_h():
    for key in keys_of("peaks", Setting(), SETS, [0], SMALL):
        assert 0 < measure(key, None)["least"] <= 0.5


def doubled(key, _):
    if key.get("fails"):
        raise RuntimeError("interrupted")
    return {"twice": 2 * key["x"]}


def test_finished_cells_are_skipped_and_missing_ones_filled(tmp_path):
    keys = [{"x": x, "seed": x % 3} for x in range(6)]
    rows = run_cells(doubled, keys, tmp_path)
    assert [row["twice"] for row in rows] == [0, 2, 4, 6, 8, 10]
    cell_path(tmp_path / "cells", keys[4]).unlink()
    seen = []
    assert run_cells(doubled, keys, tmp_path, progress=lambda *a: seen.append(a)) == rows
    assert seen == [(1, 1, "1")]


def test_a_failing_cell_keeps_those_before_it(tmp_path):
    keys = [{"x": 0}, {"x": 1, "fails": True}]
    with pytest.raises(RuntimeError, match="interrupted"):
        run_cells(doubled, keys, tmp_path)
    assert [cell_path(tmp_path / "cells", key).exists() for key in keys] == [True, False]


def test_two_workers_give_what_one_gives(tmp_path):
    keys = keys_of("mechanisms", Setting(), {"breast_cancer": 569}, [0, 1], SMALL)[::6]
    alone = run_cells(measure, keys, tmp_path / "one", jobs=1)
    assert run_cells(measure, keys, tmp_path / "two", jobs=2) == alone


def test_tables_leave_curves_to_the_cells(tmp_path):
    path = write_table(tmp_path / "t.csv", [{"a": 1, "curve": [1, 2]}, {"a": 2, "b": None}])
    assert path.read_text().split() == ["a,b", "1,", "2,"]


def test_bad_requests_are_explained(tmp_path):
    with pytest.raises(InputError, match="choose experiments from toy"):
        reproduce("figure-9", out=tmp_path)
    with pytest.raises(InputError, match="choose graphs from random, even"):
        reproduce("toy", out=tmp_path, graphs=("star",))
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
    words = ["toy", "--graph", "even", "--quick", "--seeds", "2", "--jobs", "1"]
    done = command("reproduction", *words, "-o", str(tmp_path / "again"), "--json")
    claims = {claim["id"]: claim for claim in json.loads(done.stdout)["claims"]}
    assert claims["theorem-1"]["verdict"] == "holds"
    assert claims["noise-2"]["verdict"] == "does not hold"
    assert set(claims["toy-close"]["on"]) == {"even"}
    assert (tmp_path / "again" / "paper-claims.md").is_file()
    assert (tmp_path / "again" / "RESULTS.md").is_file()
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
