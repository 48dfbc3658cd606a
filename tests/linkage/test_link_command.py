"""`pairveil link`: from two files to a release that verifies, and mistakes that cost nothing."""

import json

import numpy as np
import pandas as pd
import pytest
from labelled import labelled
from typer.testing import CliRunner

from pairveil.cli.app import app
from pairveil.jobs.job import AT_END


@pytest.fixture
def files(tmp_path):
    levels, y, pairs = labelled(600)
    ends = pd.DataFrame(
        {"left": [f"r{a}" for a in pairs[:, 0]], "right": [f"r{b}" for b in pairs[:, 1]]}
    )
    table = ends.assign(**{f"c{i}": levels[:, i] for i in range(3)})
    table["c1"] = table["c1"].where(table["c1"] >= 0)  # an empty cell is null too
    table.sample(frac=1, random_state=0).to_csv(tmp_path / "levels.csv", index=False)
    turned = ends.rename(columns={"left": "right", "right": "left"})
    turned.assign(label=y).to_csv(tmp_path / "labels.csv", index=False)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def link(files, *more, out="out"):
    return run("link", files / "levels.csv", files / "labels.csv", "--out", files / out, *more)


def test_a_release_verifies_is_signed_and_reported(files):
    done = link(files, "--n-levels", "4,3,2", "--epsilon", 0.5, "--json")
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert shown["out"] == str(files / "out")
    assert shown["certificate"]["epsilon"] <= 0.5
    checked = json.loads(
        run("certificate", files / "out", "--pairs", files / "labels.csv", "--json").stdout
    )
    assert checked["valid"] is True
    assert checked["kappa_matches"] is True
    assert checked["for_release"] is True
    run("sign", "--new-key", files / "key")
    assert run("sign", files / "out", "--key", files / "key").exit_code == 0
    signed = run("certificate", files / "out", "--signer", files / "key.pub", "--json")
    assert json.loads(signed.stdout)["signed"] is True
    assert run("report", files / "out", "-o", files / "page.html").exit_code == 0
    assert "Match weights" in (files / "page.html").read_text()


def test_a_dry_run_writes_and_spends_nothing(files):
    ledger = files / "ledger.json"
    done = link(files, "--n-levels", "4,3,2", "--dry-run", "--ledger", ledger, "--budget", 2)
    assert done.exit_code == 0
    assert not ledger.exists()
    assert not (files / "out").exists()


@pytest.mark.parametrize(("epsilon", "said"), [(0.1, True), (4, False)])
def test_it_says_before_it_spends_where_noise_is_much_for_so_few_pairs(files, epsilon, said):
    done = link(files, "--n-levels", "4,3,2", "--dry-run", "--epsilon", epsilon)
    assert ("Random pairs need no clerk" in " ".join(done.output.split())) is said


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--n-levels", "4,3"), "--n-levels has 2 numbers for 3"),
        (("--n-levels", "a,b"), "whole numbers"),
        (("--unit", "entity"), "entity_records"),
        (("--left", "nobody"), "no column 'nobody'"),
        (("--epsilon", "inf"), "promises nothing"),
        (("--random-pairs", "9"), "goes with Splink settings and --records"),
    ],
)
def test_mistakes_write_no_file_and_charge_no_ledger(files, more, message):
    ledger = files / "ledger.json"
    done = link(files, *more, "--ledger", ledger, "--budget", 2)
    assert done.exit_code != 0
    assert message in str(done.exception) + done.output
    assert not ledger.exists()
    assert not (files / "out").exists()


def test_a_labelled_pair_without_levels_is_said_by_its_row(files):
    table = pd.read_csv(files / "levels.csv")
    table[table["left"] != "r7"].to_csv(files / "levels.csv", index=False)
    done = link(files, "--n-levels", "4,3,2")
    assert "1 of 600 pairs has no levels (row 8)" in str(done.exception)
    assert "r7" not in str(done.exception)


def test_levels_in_a_release_are_those_of_the_files_whatever_their_order(files):
    link(files, "--n-levels", "4,3,2", "--seed", 1)
    found = json.loads((files / "out" / "linkage.json").read_text())
    from pairveil.linkage import PrivateLinkageModel

    levels, y, pairs = labelled(600)
    names = np.array([[f"r{a}", f"r{b}"] for a, b in pairs])
    model = PrivateLinkageModel(random_state=1).fit(levels, y, names, (4, 3, 2))
    assert [one["name"] for one in found["comparisons"]] == ["c0", "c1", "c2"]
    assert found["comparisons"][1]["m"] == pytest.approx(model.m_[1], abs=1e-15)


def test_a_killed_command_resumes_from_its_checkpoint_with_one_charge(files, monkeypatch):
    """It is stopped after the counts were drawn and before anything is written: the worst moment."""
    from pairveil import PrivacyLedger
    from pairveil.release.linkage import ReleasedLinkage

    words = ("--n-levels", "4,3,2", "--ledger", files / "ledger.json", "--budget", 5, "--json")
    saved = ReleasedLinkage.save
    counted = []

    def killed(released, *_, **__):
        counted.append(released.m)
        raise KeyboardInterrupt

    for more in ((), ("--checkpoint", files / "counts")):
        monkeypatch.setattr(ReleasedLinkage, "save", killed)
        assert link(files, *words, *more).exit_code != 0
        assert not (files / "out").exists()
    monkeypatch.setattr(ReleasedLinkage, "save", saved)
    assert (
        len(PrivacyLedger.open(files / "ledger.json").entries) == 2
    )  # without one it is spent anew
    done = link(files, *words, "--checkpoint", files / "counts")
    assert done.exit_code == 0, (done.output, done.exception)
    assert len(PrivacyLedger.open(files / "ledger.json").entries) == 2
    released = ReleasedLinkage.load(files / "out")
    assert all((one == other).all() for one, other in zip(released.m, counted[1], strict=True))
    while AT_END:  # as `main` does when the process ends
        AT_END.pop()()
    assert not (files / "counts").exists()
    seeded = link(files, *words, "--checkpoint", files / "counts", "--seed", 1, "--overwrite")
    assert "leave --seed out" in str(seeded.exception)


# ---- dirt: one list, and nothing released tells of a cell or a label -------------------------------


def dirtied(files, *, cells=(), labels=(), levels=()):
    """The files with rows added, and with cells of the first rows written otherwise."""
    table = pd.read_csv(files / "levels.csv", dtype=str)
    told = pd.read_csv(files / "labels.csv", dtype=str)
    for row, column, cell in cells:
        (told if column == "label" else table).loc[row, column] = cell
    more = pd.DataFrame(levels, columns=table.columns)
    pd.concat([table, more]).to_csv(files / "levels.csv", index=False)
    more = pd.DataFrame(labels, columns=told.columns)
    pd.concat([told, more]).to_csv(files / "labels.csv", index=False)


def test_all_that_is_wrong_is_one_list_and_ids_alone_leave_out(files):
    [[a, b]] = pd.read_csv(files / "levels.csv", usecols=["left", "right"]).head(1).to_numpy()
    dirtied(
        files,
        cells=[(4, "c0", "kanarienvogel"), (5, "c1", "9"), (6, "c2", "0.5"), (2, "label", "?!")],
        labels=[("r5", "r5", "1"), ("r5", "kanarienvogel", "-1"), (" r7", "r8", "1")],
        levels=[(b, a, "1", "1", "1")],
    )
    words = ("--n-levels", "4,3,2", "--problems", files / "wrong.csv")
    done = link(files, *words)
    said = str(done.exception)
    for part in (
        "1 row of the levels repeats a pair that another row has: row 601",
        "column 'c0': 1 cell cannot be read (row 5); null there",
        "column 'c1': 1 cell cannot be read (row 6); null there",
        "column 'c2': 1 cell cannot be read (row 7); null there",
        "1 label cannot be read (row 3)",
        "1 id of the pairs with spaces around (row 603)",
        "1 pair joins a person with herself (row 601)",
        "2 of 603 pairs have no levels (rows 602, 603)",
    ):
        assert part in said
    assert "kanarienvogel" not in said + (files / "wrong.csv").read_text()
    listed = pd.read_csv(files / "wrong.csv")
    assert set(listed["table"]) == {"levels", "pairs"}
    assert set(listed[listed["table"] == "levels"]["problem"]) == {"repeated pair", "cell"}
    done = link(files, *words, "--leave-out", "--json")
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout)["left_out"] == {
        "repeated_pairs": 1, "self_pairs": 1, "unknown_pairs": 2, "levels": 2, "pairs": 4
    }  # fmt: skip
    whole = link(files, *words[:2], "--leave-out", "--merge-similar-ids", "--json", out="whole")
    assert json.loads(whole.stdout)["left_out"]["unknown_pairs"] == 1
    checked = run(
        "kappa", files / "labels.csv", "--levels", files / "levels.csv", "--label", "label"
    )
    assert "2 of 603 pairs have no levels" in str(checked.exception)


@pytest.mark.parametrize("command", ["link", "threshold", "scores"])
@pytest.mark.parametrize("where", ["cell", "label"])
def test_what_one_cell_or_label_holds_is_in_nothing_but_the_noisy_numbers(files, command, where):
    link(files, "--n-levels", "4,3,2", "--seed", 3, out="model")
    kept, found = {one: (files / one).read_text() for one in ("levels.csv", "labels.csv")}, []
    scores = pd.read_csv(files / "labels.csv").assign(score=0.5)
    cells = ("2", "9", "-7", "0.5", "", "kanarienvogel", "inf")
    labels = ("1", "-1", "0", "", "kanarienvogel")
    for at, text in enumerate(cells if where == "cell" else labels):
        for name, content in kept.items():
            (files / name).write_text(content)
        dirtied(files, cells=[(4, "c0" if where == "cell" else "label", text)])
        column = "score" if where == "cell" else "label"
        changed = scores.astype(str)
        changed.loc[4, column] = text
        changed.to_csv(files / "scores.csv", index=False)
        out, ledger = f"out{at}", files / f"ledger{at}"
        more = ("--seed", 1, "--json", "--ledger", ledger, "--budget", 9)
        if command == "link":
            done = link(files, "--n-levels", "4,3,2", *more, out=out)
        else:
            source = [files / one for one in ("model", "levels.csv", "labels.csv")]
            if command == "scores":
                source = [files / "scores.csv", "--score-range", "0,1"]
            words = ("--fmr", 0.3, "--epsilon", 4, "--out", files / out)
            done = run("threshold", *source, *words, *more)
        assert done.exit_code == 0, (text, done.exception)
        certificate = json.loads(done.stdout)["certificate"]
        for digest in ("metric_sha256", "release_sha256"):
            certificate.pop(digest, None)
        entries = json.loads(ledger.read_text())["entries"]
        names = sorted(one.name for one in (files / out).iterdir())
        found.append((certificate, names, [one | {"time": ""} for one in entries]))
        assert "kanarienvogel" not in done.stderr
    assert all(one == found[0] for one in found)


def test_a_model_and_its_threshold_on_halves_of_the_same_pairs_cost_less_than_two_sets(files):
    """What a relationship costs is that of the same pairs twice, and a half knows no label of the other."""
    from pairveil.errors import BudgetError

    told = pd.read_csv(files / "labels.csv")
    budget = ("--ledger", files / "budget.json", "--budget", 2.1)
    words = ("--n-levels", "4,3,2", "--half", "first", "--seed", 1, "--epsilon", 1)
    done = link(files, *words, *budget)
    assert done.exit_code == 0, done.exception
    assert "Half of them count" in done.stdout
    ends = ("threshold", files / "out", files / "levels.csv", files / "labels.csv", "--fmr", 0.4)
    second = run(*ends, "--half", "second", "--epsilon", 1, *budget[:2], "--json")
    assert second.exit_code == 0, second.exception
    told.iloc[:300].to_csv(files / "labels.csv", index=False)
    other = run(*ends, "--epsilon", 1, *budget[:2])
    assert isinstance(other.exception, BudgetError)
    assert "--half" in str(other.exception)
    weights = []
    for changed in ("first", "second"):
        from pairveil.jobs.link import HalfOption

        counted = (
            HalfOption(half=changed).halved(told[["left", "right"]].to_numpy(), np.ones(600)) > 0
        )
        assert 240 < counted.sum() < 360
        turned = told[["right", "left"]].to_numpy()[::-1]  # by ids, not by the order of a file
        assert (HalfOption(half=changed).halved(turned, np.ones(600))[::-1] == counted).all()
        told.assign(label=np.where(counted, -told["label"], told["label"])).to_csv(
            files / "labels.csv", index=False
        )
        assert link(files, *words, out=changed).exit_code == 0
        weights.append((files / changed / "linkage.json").read_text())
    assert weights[1] == (files / "out" / "linkage.json").read_text() != weights[0]


def test_what_takes_a_metric_says_what_a_linkage_model_is_for(files):
    link(files, "--n-levels", "4,3,2")
    out = files / "x"
    for words in (
        ("export", files / "out", "--to", "csv", "-o", out),
        ("transform", files / "out", files / "levels.csv", "-o", out),
        (
            "evaluate",
            files / "out",
            files / "levels.csv",
            "--pairs",
            files / "labels.csv",
            "--epsilon",
            1,
        ),
    ):
        said = str(run(*words).exception)
        assert "holds no metric, but a linkage model" in said
        assert "ReleasedLinkage.load" in said


def test_a_report_is_said_and_so_is_what_will_be_spent(files):
    done = link(files, "--n-levels", "4,3,2", "--report")
    assert done.stdout.startswith("Spends epsilon 1 at delta 1e-05 to protect one relationship.")
    assert f"Report: {files / 'out' / 'report.html'}" in done.stdout.replace("\n", "")
