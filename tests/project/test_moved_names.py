"""Public names of version 0.2: each is there still, or the changelog and an error say where it went."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import pairveil

ROOT = Path(__file__).parents[2]
# `pairveil.__all__` and the names of docs/api.md at 6c0f3a9, the last commit of version 0.2.
NAMES = (ROOT / "tests/stored/public-names-0.2.txt").read_text().split()


def named(column: int) -> list[str]:
    """The names in a column of the table of 0.3, each path of it spelled out."""
    section = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    cells = [line.split("|")[column] for line in section.splitlines() if line.startswith("| ")]
    found = []
    for cell in cells:
        package = ""
        for name in re.findall(r"`([^`]+)`", cell):
            found.append(package + name if name.startswith(".") else name)
            if name.startswith("pairveil."):
                package = name.rpartition(".")[0]
    return found


WAS = " ".join(named(1))
IS = [name.split("(")[0] for name in named(2) if name.startswith("pairveil.")]


def is_there(path: str) -> bool:
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        try:
            for name in parts[cut:]:
                found = getattr(found, name)
        except AttributeError:
            return False
        return True
    return False


def is_listed(path: str) -> bool:
    """Whether the table has it, its last name or a module that held it."""
    modules = [path.rsplit(".", cut)[0] for cut in range(path.count("."))]
    places = [rf"(?<![\w.]){re.escape(module)}(\.\*)?(?![\w.])" for module in modules]
    last = rf"(?<!\w){path.rpartition('.')[2]}(?!\w)"
    return any(re.search(pattern, WAS) for pattern in [*places, last])


@pytest.mark.filterwarnings("ignore:.* now:DeprecationWarning")
@pytest.mark.parametrize("path", NAMES)
def test_a_public_name_is_there_or_in_the_table(path):
    assert is_there(path) or is_listed(path)


@pytest.mark.parametrize(
    "name", [path.split(".")[1] for path in NAMES if path.count(".") == 1 and not is_there(path)]
)
def test_whoever_asks_for_a_name_that_went_is_told_where_to(name):
    with pytest.raises(AttributeError, match=f"{name}.* (is in|is gone:) .*"):
        getattr(pairveil, name)


@pytest.mark.parametrize("path", IS)
def test_what_replaces_a_name_is_there(path):
    assert is_there(path)


def test_a_name_that_nobody_listed_is_found():
    assert not is_there("pairveil.never_was")
    assert not is_listed("pairveil.never_was")
    assert not is_listed("pairveil.graph.never_was.never_was")
