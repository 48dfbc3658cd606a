"""The page of measurements says what the results say."""

import json

import pytest
from benchmarks.page import write_page
from benchmarks.utility import CLASS_SETTINGS, Setting, run

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


def test_without_results_there_is_no_page(tmp_path):
    with pytest.raises(InputError, match="no results"):
        write_page(tmp_path, tmp_path / "page.md")
