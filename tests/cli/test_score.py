"""`fit --score`: a part of epsilon for how good the metric is, in the same certificate."""

import json
import re

import numpy as np
import pytest
from running import run_here

from pairveil import design_pairs


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Six hundred people of two kinds, and pairs of them along paths."""
    folder = tmp_path_factory.mktemp("scored")
    rng = np.random.default_rng(0)
    kinds = np.arange(600) % 2
    rows = rng.normal(size=(600, 3)) * 0.1 + kinds[:, None] * [0.4, 0, 0]
    lines = [f"p{i:03d}," + ",".join(f"{v:.4f}" for v in row) for i, row in enumerate(rows)]
    (folder / "people.csv").write_text("\n".join(["id,a,b,c", *lines]))
    said = [
        f"p{a:03d},p{b:03d},{'same' if kinds[a] == kinds[b] else 'different'}"
        for a, b in design_pairs(600, random_state=0)
    ]
    (folder / "pairs.csv").write_text("\n".join(["left,right,label", *said]))
    return folder


def fit(files, *more):
    """The command that the tests vary."""
    ends = str(files / "people.csv"), str(files / "pairs.csv")
    return run_here("fit", *ends, "--no-scale", "--epsilon", "8", *more, cwd=files)


def test_the_score_is_in_the_json_in_the_release_and_on_the_page(files, tmp_path):
    out = tmp_path / "r"
    done = fit(files, "--score", "6", "--out", str(out), "--report", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    score = said["score"]
    assert score["pair_auc_low"] < score["pair_auc"] <= score["pair_auc_high"]
    assert score["pair_auc"] > 0.7
    assert 5.9 < score["epsilon"] <= 6
    assert said["certificate"]["epsilon"] <= 8
    assert said["certificate"]["plan"]["score"]["n_pairs"] == score["n_pairs"]
    page = (out / "report.html").read_text()
    assert f"{100 * score['pair_auc']:.1f}" in page
    checked = run_here(
        "certificate", str(out), "--pairs", str(files / "pairs.csv"), "--json", cwd=tmp_path
    )
    found = json.loads(checked.out)
    assert found["valid"] is True
    assert found["kappa_matches"] is True  # the receiver finds the same parts


def test_it_is_told_before_and_after(files, tmp_path):
    done = fit(files, "--score", "6", "--out", str(tmp_path / "r"))
    assert done.code == 0
    assert "Nobody is in both" in done.out
    assert "Score: " in done.out
    assert "--score 8 costs no more" in done.out
    planned = fit(files, "--score", "6", "--dry-run", "--json")
    assert "score" not in json.loads(planned.out)


def test_a_ledger_is_charged_once_and_for_the_larger_part(files, tmp_path):
    ledger = str(tmp_path / "budget.json")
    done = fit(
        files, "--score", "8", "--out", str(tmp_path / "r"), "--ledger", ledger, "--budget", "8"
    )
    assert done.code == 0, done.err
    again = fit(files, "--score", "1", "--out", str(tmp_path / "s"), "--ledger", ledger)
    assert again.code == 3


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--score", "9"], "at most the fit's own"),
        (["--score", "0"], "above 0"),
        (["--score", "1", "--kappa", "4"], "--kappa does not go with --score"),
        (["--score", "1", "--select", "groups"], "single pairs"),
        (["--score", "1", "--tune", "select=paths,all"], "does not go with --tune"),
    ],
)
def test_what_has_no_score_is_refused_before_anything_is_spent(files, tmp_path, more, words):
    done = fit(files, "--out", str(tmp_path / "r"), *more)
    assert done.code == 2
    assert words in done.err
    assert not (tmp_path / "r").exists()


def test_how_wide_the_score_will_be_is_told_before_it_is_spent(files, tmp_path):
    """And a figure that says little is not given beside its interval."""

    def width(*more):
        done = fit(files, *more, "--dry-run")
        assert done.code == 0, done.err
        return int(re.search(r"interval about (\d+) in 100 wide", done.out)[1]), done.out

    sharp, told = width("--score", "8")
    assert "costs no more" not in told
    vague, told = width("--score", "0.3")
    assert sharp < 60 < vague
    assert "That says little." in told
    out = tmp_path / "r"
    done = fit(files, "--score", "0.3", "--out", str(out))
    assert "Score: " in done.out
    assert "best estimate" not in done.out
    found = json.loads(fit(files, "--score", "8", "--out", str(tmp_path / "s"), "--json").out)[
        "score"
    ]
    seen = 100 * (found["pair_auc_high"] - found["pair_auc_low"])
    assert sharp / 3 < seen < 3 * sharp
