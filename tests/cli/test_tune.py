"""`fit --tune`: the best of several fits from the command line, charged once and certified as one release."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from running import run_here

from pairveil import Certificate, PrivacyLedger, kappa

N = 1200
ENDS = [(i, i + 1) for i in range(0, N, 2)] + [(0, 2), (1, 2)]
WORDS = ["fit", "people.csv", "pairs.csv", "--no-scale"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 couples, told apart by one column; and a triangle, so that a relationship has kappa 2."""
    made = tmp_path_factory.mktemp("tune")
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, N)
    X = np.clip(0.2 * rng.normal(size=(N, 3)), -0.4, 0.4)
    X[:, 0] = X[:, 0] / 3 + 0.3 * kind
    people = [f"p{i},{a:.3f},{b:.3f},{c:.3f}" for i, (a, b, c) in enumerate(X)]
    (made / "people.csv").write_text("\n".join(["id,a,b,c", *people]))
    pairs = [f"p{i},p{j},{'same' if kind[i] == kind[j] else 'different'}" for i, j in ENDS]
    (made / "pairs.csv").write_text("\n".join(["left,right,label", *pairs]))
    return made


def test_one_charge_one_certificate_and_the_best_is_told(folder: Path, tmp_path: Path) -> None:
    ledger, out = tmp_path / "ledger.json", tmp_path / "release"
    words = [*WORDS, "--epsilon", 6, "--tune", "n-components=1,none"]
    words += ["--ledger", ledger, "--budget", 9, "--out", out]
    said = run_here(*words, "--dry-run", cwd=folder)
    assert "2 candidates" in said.out
    assert "one charge" in " ".join(said.out.split())
    assert list(tmp_path.iterdir()) == []
    done = run_here(*words, "--report", "--json", cwd=folder)
    made = Certificate.from_dict(done.json["certificate"])
    assert made.verify().problems == ()
    assert made.for_release
    assert 5.7 < made.epsilon <= 6
    assert set(done.json["best"]["options"]) == {"n_components"}
    assert 0 <= done.json["best"]["score"] <= 1
    assert len(PrivacyLedger.open(ledger).entries) == 1
    assert (out / "report.html").is_file()
    # When it began, beside when the files were written, would tell how many trials there were.
    texts = [file.read_text() for file in out.iterdir() if file.suffix != ".safetensors"]
    assert len(texts) == 4
    assert not any(re.search(r"\d\d:\d\d:\d\d", text) for text in texts)
    checked = run_here("certificate", out, "--pairs", "pairs.csv", "--json", cwd=folder)
    assert checked.json["valid"]
    assert made.selection["full_graph_relationship_kappa"] == kappa(np.array(ENDS)).relationship
    refused = run_here(*words, "--overwrite", cwd=folder)
    assert refused.code == 3
    assert len(PrivacyLedger.open(ledger).entries) == 1


def test_epsilon_and_learners_are_tried_and_the_largest_epsilon_is_promised(folder: Path) -> None:
    grid = ["--tune", "epsilon=1,4", "--tune", "learner=contrastive", "--tune", "n_components=1,2"]
    done = run_here(*WORDS, *grid, "--dry-run", "--json", cwd=folder)
    made = Certificate.from_dict(done.json["certificate"])
    assert 3.8 < made.epsilon <= 4
    tried = [one["options"]["epsilon"] for one in made.plan["search"]["candidates"]]
    assert tried == [1, 1, 4, 4]
    noise = [one[0].noise for one in made._events()[0].trials]
    assert noise[0] > 1.5 * noise[2]  # a fit at 1 has more noise, and the search is charged for 4
    again = run_here(*WORDS, *grid, "--epsilon", 2, "--dry-run", cwd=folder)
    assert (again.code, "the largest of them" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--tune", "select"], "OPTION=A,B,C"),
        (["--tune", "select=paths,"], "OPTION=A,B,C"),
        (["--tune", "select=paths,paths"], "twice"),
        (["--tune", "select=paths", "--tune", "select=forest"], "twice"),
        (["--tune", "select=forest", "--select", "paths"], "leave one out"),
        (["--tune", "nonsense=1"], "lacks one of them"),
        (["--tune", "delta=1e-6"], "grid sets delta"),
        (["--tune", "learner=nobody"], "learner must be one of"),
        (["--tune", "n_components=1", "--checkpoint", "ck"], "stays charged and starts anew"),
        (["--tune", "n_components=1", "--dask", "tcp://x:1"], "does not go with --tune"),
        (["--tune", "n_components=1", "--select", "groups"], "single pairs"),
        (["--tune", "n_components=1", "--groups", "ward"], "single pairs"),
    ],
)
def test_mistakes_are_told_and_charge_nothing(
    folder: Path, tmp_path: Path, words: list[str], says: str
) -> None:
    kept = ["--ledger", tmp_path / "ledger.json", "--budget", 9, "--out", tmp_path / "release"]
    done = run_here(*WORDS, *words, *kept, cwd=folder)
    assert done.code == 2
    assert says in " ".join(done.err.split())
    assert list(tmp_path.iterdir()) == []
