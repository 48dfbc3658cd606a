"""What a newcomer does wrong ends in one line on stderr, exit code 2, and nothing private in it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from running import environment
from running import run_here as run

FIT = "fit --no-scale people.csv pairs.csv -o new"
MISTAKES = {
    "no pairs file": ("fit --no-scale people.csv", "needs FEATURES and PAIRS"),
    "missing features": ("fit --no-scale nope.csv pairs.csv", "there is no file nope.csv"),
    "missing pairs": ("fit --no-scale people.csv nope.csv", "there is no file nope.csv"),
    "files swapped": ("fit --no-scale pairs.csv people.csv", "are the two files swapped?"),
    "files swapped, other names": (
        "fit --no-scale columns.csv people.csv --left a --right b",
        "are the two files swapped?",
    ),
    "other column names": ("fit --no-scale people.csv columns.csv", "--left, --right and --label"),
    "no such id column": (f"{FIT} --id patient", "no column 'patient'"),
    "labels 0 and 1": ("fit --no-scale people.csv zeroone.csv", "say which with --zero-means"),
    "no labels": ("fit --no-scale people.csv odds.csv", "column 'label' holds no labels"),
    "id without features": ("fit --no-scale people.csv strangers.csv", "without features (first: row 1)"),
    "herself": ("fit --no-scale people.csv alone.csv", "joins a person with herself (row 1)"),
    "no pairs": ("fit --no-scale people.csv none.csv", "there are no pairs"),
    "empty file": ("fit --no-scale empty.csv pairs.csv", "empty.csv is empty"),
    "not UTF-8": ("fit --no-scale latin.csv pairs.csv", "not UTF-8"),
    "ragged": ("kappa ragged.csv", "ragged.csv"),
    "text column": ("fit --no-scale words.csv pairs.csv", "column 'ward' is not numeric"),
    "gap": ("fit --no-scale gap.csv pairs.csv", "column 'x1' is not numeric: most of its cells"),
    "person twice": ("fit --no-scale twice.csv pairs.csv", "repeats an id"),
    "epsilon 0": (f"{FIT} --epsilon 0", "epsilon must be a number above 0"),
    "epsilon -1": (f"{FIT} --epsilon -1", "epsilon must be a number above 0"),
    "epsilon abc": (f"{FIT} --epsilon abc", "'--epsilon': Input should be a valid number"),
    "epsilon inf": (f"{FIT} --epsilon inf", "promises nothing"),
    "delta 0": (f"{FIT} --delta 0", "delta must be a number between 0 and 1"),
    "wrong unit": (f"{FIT} --unit persons", "is not one of 'pair', 'relationship', 'person'"),
    "wrong selection": (f"{FIT} --select stars", "is not one of 'paths'"),
    "kappa too small": (f"{FIT} --select all --kappa 1", "need 4 for 'relationship'"),
    "too many components": (f"{FIT} --n-components 9", "from 1 to 4"),
    "out is a file": ("fit --no-scale people.csv pairs.csv -o people.csv", "people.csv is a file"),
    "out is in use": ("fit --no-scale people.csv pairs.csv -o .", "holds other files"),
    "budget alone": (f"{FIT} --budget 3", "--budget goes with --ledger"),
    "new ledger, no budget": (f"{FIT} --ledger new.json", "give --budget EPSILON"),
    "ledger is no ledger": (f"{FIT} --quiet --ledger people.csv", "is not JSON"),
    "bounds without columns": (
        "fit people.csv pairs.csv -o new --bounds pairs.csv",
        "needs columns column, lower, upper",
    ),
    "unknown option": (f"{FIT} --epsilom 1", "No such option: --epsilom"),
    "unknown command": ("fitt people.csv pairs.csv", "Did you mean 'fit'?"),
    "kappa of a folder": ("kappa .", "is a folder, not a file"),
    "output suffix": ("select pairs.csv -o used.xlsx", "must end in .csv or .parquet"),
    "one person": ("design --people 1 -o x.csv", "greater than or equal to 2"),
    "no release": ("certificate nowhere", "holds no release: there is no such folder"),
    "release is a file": ("transform people.csv people.csv -o x.csv", "holds no release"),
    "delta above 1": ("account --kappa 1 --noise-multiplier 9 --steps 9 --delta 2", "delta must be"),
    "no noise option": ("account --kappa 1 --steps 9 --delta 0", "Missing option '--noise-multiplier'"),
    "no such format": ("export nowhere --to pdf -o x", "is not one of 'onnx'"),
    "config is missing": ("--config nope.toml kappa pairs.csv", "there is no file nope.toml"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str, files: Path) -> None:
    before = sorted(entry.name for entry in files.iterdir())
    words, expected = MISTAKES[name]
    done = run(*words.split(), cwd=files)
    assert done.code == 2, done
    assert done.out == ""
    [line] = done.err.splitlines()
    assert line.startswith("pairveil: ")
    assert expected in line
    named = re.search(r"\brows? \d", line.replace("row 1 is the line", ""))
    assert ("row 1 is the line below it" in line) == bool(named)
    assert sorted(entry.name for entry in files.iterdir()) == before


def test_json_does_not_hide_a_mistake(files: Path) -> None:
    done = run("fit", "--no-scale", "people.csv", "zeroone.csv", "--json", cwd=files)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1


def test_raw_columns_are_noticed(files: Path) -> None:
    done = run("fit", "--no-scale", "raw.csv", "pairs.csv", "--dry-run", cwd=files)
    assert done.code == 0
    assert "rows were longer than 1 and clipped" in done.err
    assert "with --bounds FILE" in done.err


def test_fit_asks_how_columns_were_scaled_whatever_they_hold(files: Path) -> None:
    for people in ("people.csv", "raw.csv", "nope.csv"):
        done = run("fit", people, "pairs.csv", "--ledger", "l.json", "--budget", "3", cwd=files)
        assert done.code == 2
        assert f"pairveil schema {people} -o schema.toml" in done.err
        assert "Nothing was spent" in done.err
        assert not (files / "l.json").exists()
    both = run("fit", "raw.csv", "pairs.csv", "--no-scale", "--bounds", "bounds.csv", cwd=files)
    assert "give one of them" in both.err


def test_no_command_shows_the_help(files: Path) -> None:
    done = run(cwd=files)
    assert done.code == 2
    assert "Usage: pairveil" in done.out
    assert "Traceback" not in done.err


def test_a_bug_shows_no_data(files: Path) -> None:
    """An exception nobody foresaw is named with its place; its message may quote the data."""
    broken = (
        "import sys; sys.argv = ['pairveil', 'kappa', 'pairs.csv']\n"
        "import pairveil.records.identity as r\n"
        "def fails(*_): raise ZeroDivisionError('kanarienvogel')\n"
        "r.index_pairs = fails\n"
        "from pairveil.cli.app import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", broken], cwd=files, env=environment(),
                          capture_output=True, encoding="utf-8", check=False)  # fmt: skip
    assert done.returncode == 1
    assert "this is a bug (ZeroDivisionError at <string>:3)" in done.stderr
    assert "kanarienvogel" not in done.stdout + done.stderr
