"""`pairveil evaluate --epsilon`: charged, certified, and plain about mistakes."""

import json
from itertools import pairwise

import numpy as np
import pytest
from running import run_here

from pairveil import Certificate, DPPMetricLearner, ReleasedMetric


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
    assert (said["verdict"]["usable"], said["verdict"]["releases"]) == (True, 1)
    assert said["verdict"]["headline"].startswith("At most ")
    again = run_here(*paid[:-2], cwd=held_out)
    assert again.code == 3
    assert "nothing was spent" in again.err
    assert "AUC" not in again.out
    seeded = run_here(*words, "--seed", 1, cwd=held_out).out
    assert "this metric" in seeded
    assert "Do not use, not for release: it was made with a seed" in seeded
    assert said["verdict"]["headline"] in run_here(*words, cwd=held_out).out.replace("\n", " ")


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


@pytest.mark.parametrize("far", ["1.7e308,-1.7e308", "1.7e308,1.7e308"])
def test_private_contents_never_stop_it(held_out, far):
    """A pair with contrary labels, and two people whose distance no float holds."""
    people = (held_out / "people.csv").read_text().splitlines()
    first, second = far.split(",")
    people[1201 - 2 :] = [
        f"p1198,{first},{first},{first},{first}",
        f"p1199,{second},0,{first},{second}",
    ]
    (held_out / "far.csv").write_text("\n".join(people), encoding="utf-8")
    listed = (held_out / "held-out.csv").read_text().splitlines()
    a, b, label = listed[1].split(",")
    contrary = "\n".join([*listed, f"{a},{b},{-int(label)}"])
    (held_out / "contrary.csv").write_text(contrary, encoding="utf-8")
    paid = ["--epsilon", 4, "--seed", 1, "--json"]
    found = run_here(
        "evaluate", "release", "far.csv", "--pairs", "contrary.csv", *paid, cwd=held_out
    )
    assert found.code == 0, found.err
    point = run_here(
        "threshold", "release", "far.csv", "contrary.csv", "--fmr", 0.3, *paid, cwd=held_out
    )
    assert point.code == 0, point.err


def test_that_a_score_says_nothing_is_told_before_it_is_paid(held_out):
    """One star of 300 pairs: 'paths' uses two of them, all of them count together."""
    rows = ["left,right,label", *(f"p600,p{601 + at},{1 - 2 * (at % 2)}" for at in range(300))]
    (held_out / "star.csv").write_text("\n".join(rows), encoding="utf-8")
    words = ["evaluate", "release", "people.csv", "--pairs", "star.csv", "--epsilon", 1]
    for select in ("paths", "all"):
        done = run_here(*words, "--select", select, cwd=held_out)
        assert (done.code, "no further from a perfect score" in done.err) == (0, True), done.err


def test_pairs_are_selected_as_they_are_for_a_fit(held_out):
    """Chains of three pairs: all of them count together, their paths one by one."""
    rows = (held_out / "held-out.csv").read_text().splitlines()
    tied = [f"{row.split(',')[0]},{after}" for row, after in pairwise(rows[1:])]
    more = [",".join((*row.split(",")[:2], "1")) for row in tied]
    (held_out / "tied.csv").write_text("\n".join([*rows, *more]), encoding="utf-8")
    words = ["evaluate", "release", "people.csv", "--pairs", "tied.csv", "--epsilon", 8, "--json"]
    chosen, whole = (
        run_here(*words, *more, cwd=held_out).json for more in ([], ["--select", "all"])
    )
    assert chosen["certificate"]["kappas"]["person"] < whole["certificate"]["kappas"]["person"]
    assert chosen["n_pairs"] < whole["n_pairs"] == 599


def test_a_killed_evaluation_resumes_with_one_charge(held_out, monkeypatch):
    import pairveil.jobs.measure as command
    from pairveil import PrivacyLedger

    words = ["evaluate", "release", "people.csv", "--pairs", "held-out.csv", "--epsilon", 4]
    paid = [*words, "--ledger", "kept.json", "--budget", 9, "--checkpoint", "counts", "--json"]

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(command, "shown_auc", killed)
        assert run_here(*paid, cwd=held_out).code != 0
    assert (held_out / "counts").exists()
    made = ReleasedMetric.load(held_out / "release")
    other = ReleasedMetric(2 * made.components, made.certificate)
    other.save(held_out / "other", overwrite=True)
    refused = run_here("evaluate", "other", *paid[2:], cwd=held_out)
    assert "another fit (other pairs or parameters, another schema, metric" in refused.err
    resumed = run_here(*paid, cwd=held_out)
    assert "as they were then" in resumed.err
    assert resumed.json["pair_auc"] > 0
    assert len(PrivacyLedger.open(held_out / "kept.json").entries) == 1
    assert not (held_out / "counts").exists()
    wrong = run_here(*words[:3], "--classes", "a", "--checkpoint", "counts", cwd=held_out)
    assert "go with --epsilon" in wrong.err


@pytest.mark.parametrize("command", ["evaluate", "threshold"])
def test_people_who_share_a_value_are_one_person(held_out, command):
    """Every household of four has two of the pairs, so a person of the promise is in two."""
    rows = (held_out / "people.csv").read_text().splitlines()
    shared = [f"{row},h{number // 4}" for number, row in enumerate(rows[1:])]
    (held_out / "houses.csv").write_text("\n".join([f"{rows[0]},house", *shared]))
    where = {
        "evaluate": ["release", "houses.csv", "--pairs", "held-out.csv"],
        "threshold": ["release", "houses.csv", "held-out.csv", "--fmr", 0.9],
    }[command]
    words = [command, *where, "--select", "all", "--epsilon", 8, "--unit", "person", "--json"]
    alone = run_here(*words, cwd=held_out)
    assert alone.code != 0  # the column is no feature, unless it is named
    found = run_here(*words, "--together", "house", cwd=held_out)
    assert found.json["certificate"]["kappas"]["person"] == 2
    assert any("share" in one for one in found.json["certificate"]["public"])
    chosen = run_here(*words, "--together", "house", "--select", "matching", cwd=held_out)
    assert chosen.json["certificate"]["kappas"]["person"] == 1
    wrong = run_here(*words, "--together", "nobody", cwd=held_out)
    assert "no column 'nobody'" in wrong.err
