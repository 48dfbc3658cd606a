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
        (("--n-levels", "2,3,2"), "column 1 is not below"),
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
    assert "1 labelled pairs have no row of values, the first in row 8" in str(done.exception)
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
