"""The page of measurements says what the results say."""

import json

import pytest
from benchmarks.page import write_page
from benchmarks.utility import CLASS_SETTINGS, Setting, run

from benchmarks import tables
from pairveil.errors import InputError


def test_the_page_is_made_from_the_results(tmp_path):
    others = [one for one in CLASS_SETTINGS if one.epsilon == 8.0 and one.pairs in (3, "triples")]
    settings = (Setting("paths", "relationship", "paths", 1.0), *others)
    result = run(
        seeds=2, datasets=["breast_cancer"], jobs=1, out=tmp_path, settings=settings, max_people=150
    )
    page = write_page(tmp_path, tmp_path / "page.md").read_text()
    private = next(row for row in result["rows"] if row["epsilon"] == 1.0)
    measured = {row["method"] for row in result["rows"] if row["epsilon"] == 8.0}
    assert measured == {"groups of 3", "triples"}
    shown = f"{private['gain_kept']:.2f} ± {private['gain_kept_interval']:.2f}"
    assert shown in page
    # Below the target is marked, at or above it is not.
    assert (f"**{shown}**" in page) == (private["gain_kept"] < 0.8)
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
    assert "(2 and 2 tables, 1 and 1 seeds from 9)" in page
    assert "| 1 | 0.225 / 0.625 | 1 / 0 | 0 / 0 | -0.010 / 0.100 | -0.010 / 0.100 |" in page


def test_without_results_there_is_no_page(tmp_path):
    with pytest.raises(InputError, match="no results"):
        write_page(tmp_path, tmp_path / "page.md")
