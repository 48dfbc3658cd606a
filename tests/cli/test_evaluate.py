"""`pairveil evaluate --epsilon`: charged, certified, and plain about mistakes."""

import json

import numpy as np
import pytest
from running import run_here

from pairveil import Certificate, DPPMetricLearner


@pytest.fixture(scope="module")
def held_out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, 1200)
    X = np.clip(rng.normal(size=(1200, 4)) * 0.2, -0.4, 0.4)
    X[:, 0] = X[:, 0] / 2 + classes * 0.4
    pairs = np.arange(1200).reshape(-1, 2)
    y = np.where(classes[pairs[:, 0]] == classes[pairs[:, 1]], 1, -1)
    learner = DPPMetricLearner(epsilon=8.0, preprocessor=X).fit(pairs[:300], y[:300])
    learner.release(folder / "release")
    names = [f"p{i}" for i in range(1200)]
    rows = [",".join([name, *map(str, row)]) for name, row in zip(names, X, strict=True)]
    (folder / "people.csv").write_text("\n".join(["id,a,b,c,d", *rows]), encoding="utf-8")
    ends = [
        f"{names[a]},{names[b]},{label}" for (a, b), label in zip(pairs[300:], y[300:], strict=True)
    ]
    (folder / "held-out.csv").write_text("\n".join(["left,right,label", *ends]), encoding="utf-8")
    return folder


def test_the_command_charges_and_certifies(held_out):
    words = ["evaluate", "release", "people.csv", "--pairs", "held-out.csv", "--epsilon", 4]
    paid = [*words, "--ledger", "budget.json", "--budget", 5]
    said = run_here(*paid, "--json", "-o", "found.json", cwd=held_out).json
    assert said["pair_auc_low"] <= said["pair_auc"] <= said["pair_auc_high"]
    assert {"euclidean_pair_auc", "knn_accuracy"} <= set(said)
    certificate = Certificate.from_dict(said["certificate"])
    assert certificate.verify()
    assert certificate.for_release
    assert json.loads((held_out / "found.json").read_text()) == said
    again = run_here(*paid[:-2], cwd=held_out)
    assert again.code == 3
    assert "nothing was spent" in again.err
    assert "AUC" not in again.out
    assert "this metric" in run_here(*words, "--seed", 1, cwd=held_out).out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "--classes COLUMN"),
        (["--epsilon", 1], "--pairs is missing"),
        (["--epsilon", "inf", "--pairs", "held-out.csv"], "promises nothing"),
        (["--classes", "a", "--pairs", "held-out.csv"], "must be a number"),
        (["--classes", "a", "--ledger", "x.json"], "go with --epsilon"),
        (["--classes", "a", "--pairs", 5], "at least 100"),
    ],
)
def test_mistakes_are_told(held_out, words, says):
    done = run_here("evaluate", "release", "people.csv", *words, cwd=held_out)
    assert done.code == 2
    assert says in done.err
