"""The runner over many tables: two halves, the same draws for every version, harm counted."""

from __future__ import annotations

import math

import pytest
from benchmarks.__main__ import app
from typer.testing import CliRunner

from benchmarks import tables


def test_halves_share_only_stored_tables_and_no_drawn_one():
    selection, report = (set(tables.of(half)) for half in tables.HALVES)
    assert not [table for table in selection & report if table.is_drawn]
    assert selection | report == set(tables.TABLES)
    assert len({table.name for table in tables.TABLES}) == len(tables.TABLES)


def test_the_same_seed_gives_the_same_scores_and_random_labels_other_ones():
    (wine,) = [table for table in tables.TABLES if table.name == "wine"]
    cells = (tables.Cell(8.0), tables.Cell(8.0, permuted=True))
    first, again = (tables.run([wine], [1], cells=cells) for _ in range(2))
    assert first == again
    aucs = first[0]["cells"]
    assert aucs["8"] > aucs["8 no information"]


def test_a_mean_below_euclid_counts_as_harm_and_no_gain_is_none():
    def row(table, auc, lda):
        known = {"table": table, "drawn": False, "seed": 1, "pairs": 900, "euclid": 0.6, "lda": lda}
        return known | {"cells": {"1": auc}}

    rows = [row("a", 0.7, 0.8), row("b", 0.59, 0.7), row("c", 0.596, 0.61)]
    assert tables.summary(rows)[0]["real harmed"] == 1
    kept = {name: one[0] for name, one in tables.gains(rows)["1"].items()}
    assert kept["a"] == pytest.approx(0.5)
    assert math.isnan(kept["c"])


def test_the_command_prints_two_runs_side_by_side(tmp_path):
    asked = ["tables", "--only", "wine", "--seeds", "1", "--each"]
    kept = str(tmp_path / "rows.jsonl")
    assert CliRunner().invoke(app, [*asked, "--out", kept]).exit_code == 0
    shown = CliRunner().invoke(app, [*asked, "--before", kept])
    assert shown.exit_code == 0
    assert "| wine | " in shown.output
    assert " -> " in shown.output
