"""Help with examples, completion, names of the package, and a command line that starts light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from running import environment
from running import run_here as run

from pairveil.cli.app import app

HEAVY = ("sklearn", "numba", "scipy", "pyarrow", "pandas", "matplotlib", "dp_accounting", "opendp")


def leaves(command: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    if not hasattr(command, "commands"):
        return {path: command}
    return {p: c for n, sub in command.commands.items() for p, c in leaves(sub, (*path, n)).items()}


COMMANDS = leaves(typer.main.get_command(app))


def test_the_commands_of_the_design_are_there() -> None:
    names = {path[0] for path in COMMANDS}
    assert names >= {"demo", "kappa", "select", "design", "account", "fit", "transform", "evaluate",
                     "certificate", "attack", "audit", "report"}  # fmt: skip


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_has_an_example_and_the_common_options(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert f"pairveil {' '.join(path)}" in command.help
    spelled = {spelling for parameter in command.params for spelling in parameter.opts}
    assert {"--json", "--quiet"} <= spelled
    assert [p.name for p in command.params if not getattr(p, "help", None)] == []


def test_help_fits_80_columns(tmp_path: Path) -> None:
    page = run("fit", "--help", cwd=tmp_path).out
    assert "pairveil fit people.csv pairs.csv --schema schema.toml --dry-run" in page
    assert max(map(len, page.splitlines())) <= 80


def test_starting_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys, pairveil.cli.app; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(),
                          capture_output=True, text=True, check=True)  # fmt: skip
    loaded = set(done.stdout.split())
    assert "typer" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_completion(tmp_path: Path) -> None:
    script = run(
        "--show-completion", "bash", cwd=tmp_path, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"
    )
    assert "_PAIRVEIL_COMPLETE" in script.out or "complete" in script.out
    asked = {
        "_PAIRVEIL_COMPLETE": "complete_bash",
        "COMP_WORDS": "pairveil fit --unit ",
        "COMP_CWORD": "3",
    }
    done = subprocess.run(["pairveil"], executable=Path(sys.executable).with_name("pairveil"),
                          env=environment() | asked, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stdout.split() == ["pair", "relationship", "person"]


def test_installing_completion_writes_to_the_home(tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("pairveil"), "--install-completion", "bash"],
        env=environment() | {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("pairveil.sh"))


def test_version(tmp_path: Path) -> None:
    import pairveil

    assert run("--version", cwd=tmp_path) == (0, f"pairveil {pairveil.__version__}\n", "")


def test_public_names_of_the_design() -> None:
    import pairveil

    names = ("PairSet", "read_features", "read_pairs", "kappa", "select_pairs", "design_pairs",
             "DPPMetricLearner", "ContrastiveMetricLearner", "ReleasedMetric", "Certificate",
             "PrivacyLedger")  # fmt: skip
    assert set(names) <= set(pairveil.__all__)
    assert all(callable(getattr(pairveil, name)) for name in names)
