"""pairveil.toml: found, overridden, and strict."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import run_here as run


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
    assert "come from pairveil.toml" in run(*words[:-1], cwd=here).out


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
