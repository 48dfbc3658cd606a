"""Commands killed at any step: the release is the old or the new one, and the ledger is charged once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from running import PAIRVEIL, environment, run_here

from pairveil.cli import terminal
from pairveil.engine.checkpoint import CheckpointLock
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.release.metric import ReleasedMetric

SCRIPT = Path(__file__).with_name("kill_fitting.py")
NIGHTLY = bool(os.environ.get("PAIRVEIL_NIGHTLY"))


COMMANDS = ("fit", "link", "threshold", "evaluate")


@pytest.fixture(scope="module")
def given(files: Path, release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the four commands that spend read."""
    folder = tmp_path_factory.mktemp("given")
    for name in ("people.csv", "pairs.csv"):
        shutil.copy(files / name, folder)
    shutil.copytree(release, folder / "metric")
    rows = [line.split(",")[:2] for line in (files / "pairs.csv").read_text().splitlines()[1:]]
    cells = [f"{a},{b},{at % 3},{at % 2}" for at, (a, b) in enumerate(rows)]
    (folder / "levels.csv").write_text("\n".join(["left,right,name,street", *cells]))
    return folder


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_killed_command_leaves_a_whole_release_and_a_true_ledger(
    command: str, given: Path, tmp_path: Path
) -> None:
    """Every step is tried each night, else one in seventeen (the last of all among them)."""
    stride = 1 if NIGHTLY else 17
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(given), str(tmp_path), command, str(stride)],
        env=environment() | {"NUMBA_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for seen in json.loads(done.stdout):
        assert [how for how, *_ in seen] == ["killed"] * (len(seen) - 1) + ["done"]
        assert len(seen) > 18 / stride
        finished = [one[1] for one in seen]
        # Only what dies between the checkpoint's removal and the end, two lines of Python, is finished.
        assert sum(finished[:-1]) <= 1
        for _, _, is_old, whole, charged, again, entries, is_new, left in seen:
            assert charged <= 1
            assert is_old or charged == 1  # no release that was not paid for
            assert whole
            assert (again, entries, is_new) == ("done", 1, True)
            assert left == ["fit.lock", "ledger.json", "ledger.json.lock"]


def words_of(command: str, given: Path) -> list[object]:
    people, pairs, release = given / "people.csv", given / "pairs.csv", given / "metric"
    words: list[object] = {
        "fit": ["fit", "--no-scale", people, pairs],
        "link": ["link", given / "levels.csv", pairs, "--n-levels", "3,3"],
        "threshold": ["threshold", release, people, pairs, "--fmr", 0.95],
        "evaluate": ["evaluate", release, people, "--pairs", pairs],
    }[command]
    words += ["--epsilon", 1, "--ledger", "ledger.json", "--budget", 9, "--checkpoint", "fit"]
    return [*words, "-o", "out.json" if command == "evaluate" else "out"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_kill_once_the_result_was_told_is_followed_by_no_second_charge(
    command: str, given: Path, tmp_path: Path
) -> None:
    words = [*words_of(command, given), "--overwrite", "--json"]
    child = subprocess.Popen(
        [*PAIRVEIL, *map(str, words)], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None
        told = json.loads(child.stdout.readline())
        child.kill()
    assert len(PrivacyLedger.open(tmp_path / "ledger.json").entries) == 1
    if (tmp_path / "fit").exists():  # else the kill came too late: all was done
        again = run_here(*words, cwd=tmp_path)
        assert again.json["certificate"] == told["certificate"]
        assert len(PrivacyLedger.open(tmp_path / "ledger.json").entries) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_the_checkpoint_goes_as_the_process_ends(
    command: str, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is told before, and nothing comes after: a kill is one of a command that goes on, or was done."""
    order: list[str] = []
    removed, said = CheckpointLock.remove, terminal.print_json

    def end(code: int) -> None:
        order.append("end")
        sys.exit(code)

    with monkeypatch.context() as patch:
        patch.setattr(
            CheckpointLock, "remove", lambda held: (order.append("removed"), removed(held))
        )
        patch.setattr(terminal, "print_json", lambda told: (order.append("told"), said(told)))
        patch.setattr("running.LEAVE", end)
        assert run_here(*words_of(command, given), "--json", cwd=tmp_path).code == 0
    assert order == ["told", "removed", "end"]
    # The same words are refused; where they may overwrite they are a new release, and say so.
    refused = run_here(*words_of(command, given), cwd=tmp_path)
    assert (refused.code, len(PrivacyLedger.open(tmp_path / "ledger.json").entries)) == (2, 1)
    assert "say --overwrite" in refused.err
    more = run_here(*words_of(command, given), "--overwrite", cwd=tmp_path)
    assert "is spent again" in more.out
    assert len(PrivacyLedger.open(tmp_path / "ledger.json").entries) == 2


def test_what_was_paid_for_is_kept_where_its_report_fails(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    words = ["fit", "--no-scale", files / "people.csv", files / "pairs.csv", "--report", "-q"]
    words += ["--ledger", "ledger.json", "--budget", 3, "--checkpoint", "fit", "-o", "out"]
    with monkeypatch.context() as patch:
        patch.setattr("pairveil.jobs.fit.write_page", stopped)
        assert run_here(*words, cwd=tmp_path).code == 130
    made = ReleasedMetric.load(tmp_path / "out")
    assert run_here(*words, cwd=tmp_path).code == 0  # makes up the report, and needs no --overwrite
    assert (tmp_path / "out" / "report.html").is_file()
    assert np.array_equal(ReleasedMetric.load(tmp_path / "out").components, made.components)
    assert len(PrivacyLedger.open(tmp_path / "ledger.json").entries) == 1
    assert sorted(os.listdir(tmp_path)) == ["fit.lock", "ledger.json", "ledger.json.lock", "out"]


def test_a_checkpoint_is_of_the_bounds_that_its_columns_were_read_by(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    named = (files / "people.csv").read_text().splitlines()[0].split(",")[1:]
    for name, high in (("near.json", 1.0), ("far.json", 1.5)):
        (tmp_path / name).write_text(json.dumps({column: [-1.0, high] for column in named}))
    words = ["fit", files / "people.csv", files / "pairs.csv", "--checkpoint", "fit", "-o", "out"]
    with monkeypatch.context() as patch:
        patch.setattr("pairveil.jobs.fit._save", stopped)
        assert run_here(*words, "--bounds", "near.json", cwd=tmp_path).code == 130
    assert "of another fit" in run_here(*words, "--bounds", "far.json", cwd=tmp_path).err
    assert run_here(*words, "--bounds", "near.json", cwd=tmp_path).code == 0


def test_a_report_that_was_killed_refuses_no_later_release(files: Path, tmp_path: Path) -> None:
    words = ["fit", "--no-scale", files / "people.csv", files / "pairs.csv", "-q", "-o", "out"]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".report.html.draft.html").write_text("half of it")
    assert run_here(*words, cwd=tmp_path).code == 0
    (tmp_path / "out" / ".report.html.draft.html").write_text("half of it")
    assert run_here(*words, "--overwrite", cwd=tmp_path).code == 0
    (tmp_path / "out" / ".thesis.draft").write_text("mine")
    assert "holds other files" in run_here(*words, "--overwrite", cwd=tmp_path).err
