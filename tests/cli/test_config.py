"""pairveil.toml: found, overridden, and strict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from running import run_here as run

from pairveil.cli.app import JOBS, NUMBA_FILE, TYPED
from pairveil.jobs.job import about_of, hints_of, is_path, options
from pairveil.studio.commands import PROGRAM


@pytest.fixture
def here(files: Path, tmp_path: Path) -> Path:
    for name in ("people.csv", "words.csv", "pairs.csv", "columns.csv"):
        (tmp_path / name).symlink_to(files / name)
    return tmp_path


def test_options_come_from_the_file_and_the_command_line_wins(here: Path) -> None:
    (here / "pairveil.toml").write_text(
        'epsilon = 0.5\nleft = "a"\nright = "b"\nlabel = "y"\n'
        '[fit]\nunit = "person"\nexclude = ["ward"]\ndry-run = true\n'
    )
    words = ["fit", "--no-scale", "words.csv", "columns.csv", "--json"]
    found = run(*words, cwd=here).json["certificate"]
    assert found["unit"] == "person"
    assert 0.49 < found["epsilon"] <= 0.5
    typed = run(*words, "--epsilon", 2, "--unit", "pair", cwd=here).json["certificate"]
    assert typed["unit"] == "pair"
    assert 1.99 < typed["epsilon"] <= 2.0
    said = " ".join(run(*words[:-1], cwd=here).err.split())
    assert "pairveil.toml, found in this folder, set --" in said
    assert all(f" {one} " in said for one in ("--epsilon 0.5", "--unit person", "--dry-run"))


@pytest.mark.parametrize(
    "text",
    [
        '[certificate]\nsigner = "attacker.pub"',
        '[certificate]\npairs = "theirs.csv"',
        '[certificate]\nsalt = "salt"',
        '[audit]\ntrainer = "evil:f"',
        '[sign]\nkey = "theirs.pem"',
        '[fit]\nledger = "fresh.json"',
        '[fit]\ndask = "tcp://10.6.6.6:8786"',
        'ledger = "fresh.json"',
        "[fit]\noverwrite = true",
    ],
)
def test_a_file_that_was_found_cannot_say_whom_to_trust(text: str, here: Path) -> None:
    (here / "pairveil.toml").write_text(text)
    done = run("kappa", "pairs.csv", cwd=here)
    assert done.code == 2
    assert "cannot be set by a file that merely lies in the folder" in " ".join(done.err.split())
    named = run("kappa", "pairs.csv", "--config", "pairveil.toml", cwd=here)
    assert (named.code, named.err) == (0, "")
    variable = run("kappa", "pairs.csv", cwd=here, PAIRVEIL_CONFIG="pairveil.toml")
    assert (variable.code, variable.err) == (0, "")


def test_every_path_of_a_command_is_typed_or_only_read() -> None:
    """A new option that names a file is put on one of the two lists."""
    only_read = {"schema", "bounds", "ids", "public_test", "real", "threshold"}
    seen = set()
    for job in JOBS:
        hints = hints_of(job)
        for one in options(job):
            if is_path(hints[one.name]) and not about_of(one).metavar:
                seen.add(one.name)
    assert seen - only_read <= TYPED
    assert {"ledger", "signer", "key", "out", "schema"} <= seen


def test_what_a_found_file_set_is_said_by_every_command(here: Path) -> None:
    (here / "pairveil.toml").write_text('left = "left"\n[kappa]\nquiet = true\n')
    said = "note: pairveil.toml, found in this folder, set"
    assert run("kappa", "pairs.csv", cwd=here).err == f"{said} --left left --quiet\n"
    assert run("kappa", "pairs.csv", "-q", "--left", "left", cwd=here).err == ""


def test_nothing_that_lies_beside_the_data_is_run(here: Path) -> None:
    """Neither a module of a name that we import, nor code that a file of numba's would lead to."""
    for name in ("typer", "numpy", "rich", "pyarrow"):
        (here / f"{name}.py").write_text("raise SystemExit('run')")
    words = ["-m", "pairveil", "kappa", "pairs.csv", "-q"]
    for python in ((sys.executable, *words), (*PROGRAM, *words[2:])):
        done = subprocess.run(python, cwd=here, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (here / NUMBA_FILE).write_text("cache_dir: evil")
    refused = run("kappa", "pairs.csv", cwd=here)
    assert refused.code == 2
    assert "Remove it, or work in another folder" in refused.err


def test_a_file_can_be_named_anywhere(here: Path) -> None:
    (here / "other.toml").write_text("[kappa]\nquiet = true\n")
    assert run("kappa", "pairs.csv", cwd=here).out != ""
    assert run("kappa", "pairs.csv", "--config", "other.toml", cwd=here) == (0, "", "")
    assert run("--config=other.toml", "kappa", "pairs.csv", cwd=here) == (0, "", "")
    assert run("kappa", "pairs.csv", cwd=here, PAIRVEIL_CONFIG="other.toml") == (0, "", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("epsilom = 1", "no command has an option 'epsilom'; did you mean 'epsilon'?"),
        ("[fit]\nepsilom = 1", "[fit] has no option 'epsilom'; did you mean 'epsilon'?"),
        ("[fitt]\nepsilon = 1", "no command 'fitt'; did you mean 'fit'?"),
        ("[kappa]\nquiet = 'yes'", "'quiet' must be true or false"),
        ("[fit]\nexclude = 'ward'", "'exclude' must be a list"),
        ("[fit]\nepsilon = true", "'epsilon' must be one number or text"),
        ("epsilon =", "is not TOML"),
        ("x = " + "[" * 5000, "is nested too deeply"),
        ("x = 2026-13-45", "is not TOML"),
        ("[kappa]\nlayout = 'triangle'", "It comes from pairveil.toml"),
    ],
)
def test_mistakes_in_the_file(text: str, expected: str, here: Path) -> None:
    (here / "pairveil.toml").write_text(text)
    done = run("kappa", "pairs.csv", cwd=here)
    assert done.code == 2
    [line] = done.err.splitlines()
    assert expected in line


def test_help_is_shown_whatever_the_file_says(here: Path) -> None:
    (here / "pairveil.toml").write_text("nonsense = 1")
    assert "Usage: pairveil kappa" in run("kappa", "--help", cwd=here).out
