"""The output is made sure of before anything is spent: what cannot be written costs nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import environment
from typer.testing import CliRunner

from pairveil.cli.app import app
from pairveil.errors import InputError
from pairveil.privacy.ledger import PrivacyLedger

LEDGER = ("--ledger", "budget.json", "--budget", 3)
# Runs `fit` once for each line of words, in one process, and prints what it said.
SEVERAL = """
import json, subprocess, sys
from typer.testing import CliRunner
from pairveil.cli.app import app
for words in map(json.loads, sys.argv[1:]):
    if words == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", "disk"], check=True)
        continue
    done = CliRunner().invoke(app, words)
    print(json.dumps([type(done.exception).__name__, str(done.exception)]))
"""


def fit(files: Path, *words: object) -> list[str]:
    return [
        "fit",
        "--no-scale",
        str(files / "people.csv"),
        str(files / "pairs.csv"),
        "-q",
        *map(str, words),
    ]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-o", "/proc/x"], "/proc/x cannot be written"),
        (["-o", "/proc"], "holds other files"),
        (["-o", "file/x"], "file/x cannot be written: Not a directory"),
        (["-o", "file"], "file is a file; name a folder"),
        (["-o", "new", "--checkpoint", "/proc/fit"], "/proc/fit.lock cannot be written"),
        (["-o", "new", "--checkpoint", "folder"], "the checkpoint is no file"),
    ],
)
def test_a_place_that_cannot_be_written_costs_nothing(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    done = CliRunner().invoke(app, fit(files, *LEDGER, *words))
    assert isinstance(done.exception, InputError)
    assert sentence in str(done.exception)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}


def with_small_disk(
    full: list[list[str]], read_only: list[list[str]], cwd: Path
) -> list[list[str]]:
    """What `fit` says when a small disk is mounted at ``cwd``/disk, seen by that process alone."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare, for a disk of its own, is not installed")
    (cwd / "disk").mkdir()
    script = 'mount -t tmpfs -o size=24k tmpfs disk || exit 77; exec "$@"'
    command = [sys.executable, "-c", SEVERAL, *map(json.dumps, [*full, "read-only", *read_only])]
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script, "sh", *command],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    if done.returncode == 77 or done.stderr.startswith("unshare"):
        pytest.skip(f"this machine allows no mounts: {done.stderr[:80]}")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_full_or_read_only_disk_costs_nothing(files: Path, tmp_path: Path) -> None:
    full = {
        "disk is where a disk is mounted": ["-o", "disk"],
        "disk/release cannot be written: there is not enough room": ["-o", "disk/release"],
        "disk/fit cannot be written: there is not enough room": ["--checkpoint", "disk/fit"],
    }
    read_only = {
        "disk/release cannot be written: Read-only file system": ["-o", "disk/release"],
        "cannot be written there: Read-only file system": ["--checkpoint", "disk/fit"],
    }
    said = with_small_disk(
        [fit(files, *LEDGER, *words) for words in full.values()],
        [fit(files, *LEDGER, *words) for words in read_only.values()],
        tmp_path,
    )
    for sentence, (kind, message) in zip([*full, *read_only], said, strict=True):
        assert kind in ("InputError", "CannotWrite")
        assert sentence in message
    assert os.listdir(tmp_path) == ["disk"]


def test_the_command_that_made_a_ledger_may_be_run_again(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the making of the ledger and of the checkpoint: the same command resumes."""
    monkeypatch.chdir(tmp_path)
    ledger = PrivacyLedger(3.0, 1e-5, path="budget.json")  # all that the killed one did
    words = fit(files, *LEDGER, "--checkpoint", "fit")
    done = CliRunner().invoke(app, [*words, "-o", "out"])
    assert done.exit_code == 0, done.output
    assert len(ledger.entries) == 1
    for other in (["--budget", "4"], ["--delta", "1e-6"], ["--unit", "person"]):
        done = CliRunner().invoke(app, [*words, "-o", "new", *other])
        assert "exists and has another budget; leave --budget out" in str(done.exception)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("words", [["-q"], ["--json"], ["-q", "--dry-run"], []])
def test_what_weakens_the_guarantee_is_said_to_the_quiet_too(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    monkeypatch.setattr("pairveil.cli.terminal.stderr.print", lambda text, **_: said.append(text))
    people = (files / "people.csv").read_text().replace("p008,", "P007,")
    (tmp_path / "people.csv").write_text(people)
    pairs = (files / "pairs.csv").read_text().replace("p008", "P007")
    (tmp_path / "pairs.csv").write_text(pairs)
    command = ["fit", "--no-scale", "people.csv", "pairs.csv", "--seed", "0", *words]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert any("--merge-similar-ids" in line for line in said)
    if words == ["--json"]:
        json.loads(done.stdout)


@pytest.mark.parametrize("words", [["-q"], ["--json"], ["--dry-run"], ["--seed", "0"]])
def test_a_delta_that_could_show_a_record_costs_nothing(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = fit(files, *LEDGER, "--delta", 0.1, *words)
    done = CliRunner().invoke(app, command)
    assert "delta=0.1 is not below 1 / 88 pairs" in str(done.exception)
    assert "choose delta=0.001 or less" in str(done.exception)
    assert list(tmp_path.iterdir()) == []
    assert CliRunner().invoke(app, [*command, "--delta", "0.001"]).exit_code == 0
