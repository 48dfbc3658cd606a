"""The page of measurements says what the results say."""

import json
import shutil
from pathlib import Path

import pytest
from benchmarks.page import BY_HAND, write_page
from benchmarks.utility import CLASS_SETTINGS, Setting, run

from benchmarks import tables
from pairveil.errors import InputError

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_from_the_results(tmp_path):
    others = [one for one in CLASS_SETTINGS if one.epsilon == 8.0 and one.pairs in (3, "triples")]
    settings = (Setting("paths", "relationship", "paths", 1.0), *others)
    result = run(
        seeds=2, datasets=["breast_cancer"], jobs=1, out=tmp_path, settings=settings, max_people=150
    )
    page = write_page(tmp_path, tmp_path / "page.md").read_text()
    log = (tmp_path / "README.md").read_text()
    private = next(row for row in result["rows"] if row["epsilon"] == 1.0)
    measured = {row["method"] for row in result["rows"] if row["epsilon"] == 8.0}
    assert measured == {"groups of 3", "triples"}
    shown = f"{private['gain_kept']:.2f} ± {private['gain_kept_interval']:.2f}"
    assert shown in log
    # Below the target is marked, at or above it is not.
    assert (f"**{shown}**" in log) == (private["gain_kept"] < 0.8)
    # The page has the settings that most people use, without intervals.
    assert f"| paths (relationship) | 1 | {private['gain_kept']:.2f} |" in page
    assert "triples" not in page
    assert json.loads((tmp_path / "utility.json").read_text())["seeds"] == 2
    wanted = {"dataset", "method", "unit", "epsilon", "delta", "pair_auc", "euclidean_pair_auc"}
    assert wanted | {"reference_pair_auc", "gain_kept", "knn_accuracy"} <= set(private)


def test_many_tables_are_shown_by_half(tmp_path):
    def row(table, auc):
        known = {"table": table, "drawn": False, "pairs": 900, "euclid": 0.6, "lda": 0.8}
        return known | {"seed": 9, "cells": {"1": auc}}

    # wine is reported on, iris chosen on, digits both
    rows = [row("wine", 0.75), row("iris", 0.59), row("digits", 0.7)]
    tables.write(tmp_path / "tables.jsonl", rows)
    page = write_page(tmp_path, tmp_path / "page.md").read_text()
    log = (tmp_path / "README.md").read_text()
    assert "(2 and 2 tables, 1 and 1 seeds from 9)" in log
    assert "| 1 | 0.225 / 0.625 | 1 / 0 | 0 / 0 | -0.010 / 0.100 | -0.010 / 0.100 |" in log
    assert "2 real and drawn tables" in page
    assert "| gain kept | 0.62 |" in page  # of the half that is reported


def test_the_log_keeps_what_was_written_by_hand_and_the_page_lists_its_commands(tmp_path):
    row = {"n_pairs": 10**6, "fit_cpu_seconds": 0.5, "peak_mb": 400}
    (tmp_path / "scale.json").write_text(json.dumps({"rows": [row]}))
    by_hand = f"{BY_HAND}\n\n## Rankings\n\n`python -m benchmarks ranking`: tau.\n"
    (tmp_path / "README.md").write_text(by_hand)
    for _ in range(2):
        page = write_page(tmp_path, tmp_path / "page.md").read_text()
        assert (tmp_path / "README.md").read_text().endswith(by_hand)
    assert "| 1,000,000 | 0.5 | 0.5 | 400 | 400 |" in page
    assert "- Rankings: `python -m benchmarks ranking`" in page


def test_the_pages_are_those_of_the_results_that_are_stored(tmp_path):
    stored = ROOT / "benchmarks/results"
    for file in (*stored.glob("*.json*"), stored / "README.md"):
        shutil.copy(file, tmp_path)
    again = "run: python -m benchmarks.page benchmarks/results docs/benchmarks.md"
    page = write_page(tmp_path, tmp_path / "page.md").read_text("utf-8")
    assert page == (ROOT / "docs/benchmarks.md").read_text("utf-8"), again
    assert (tmp_path / "README.md").read_text("utf-8") == (stored / "README.md").read_text(
        "utf-8"
    ), again


def test_without_results_there_is_no_page(tmp_path):
    with pytest.raises(InputError, match="no results"):
        write_page(tmp_path, tmp_path / "page.md")
