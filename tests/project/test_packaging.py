"""What is published, what is installed, and what stands beside the code."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml
from tools.reference import reference

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_has_an_exact_version_from_nowhere_in_particular():
    files = ("constraints.txt", "tests/parties/flower.txt")  # Flower has an environment of its own
    lines = [line for file in files for line in (ROOT / file).read_text().splitlines()]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.!+]+", line) for line in lines)
    pinned = {normal(line.split("==")[0]) for line in lines}
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = [*PROJECT["project"]["dependencies"], *(one for extra in extras for one in extra)]
    names = {normal(re.match(r"[A-Za-z0-9_.-]+", one)[0]) for one in wanted}
    assert names - {"pairveil"} <= pinned  # an extra may bring another one
    assert "pairveil" not in pinned


def test_the_source_distribution_holds_what_is_listed_and_nothing_else(tmp_path):
    sdist = pytest.importorskip("hatchling.builders.sdist")
    # A copy with what must stay out: a ledger, a checkpoint, a folder that nobody listed.
    listed = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    root = tmp_path / "repository"
    (root / "src/pairveil").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "constraints.txt", ".gitignore"):
        (root / name).write_bytes((ROOT / name).read_bytes())
    (root / "src/pairveil/__init__.py").write_text("")
    for stray in ("ck/a", "ck/l.json", "ledger.json", "notes.txt", "src/pairveil/a.lock"):
        (root / stray).parent.mkdir(exist_ok=True)
        (root / stray).write_text("private")
    (made,) = sdist.SdistBuilder(str(root)).build(directory=str(tmp_path))
    with tarfile.open(made) as archive:
        members = {name.split("/", 1)[1] for name in archive.getnames()}
    assert {"pyproject.toml", "constraints.txt", "src/pairveil/__init__.py"} <= members
    assert not {name for name in members if "ck/" in name or "lock" in name or "ledger" in name}
    assert {name.split("/")[0] for name in members} <= {
        *(one.split("/")[0] for one in listed), "PKG-INFO", ".gitignore",
    }  # fmt: skip
    assert all((ROOT / name).exists() for name in listed)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a repository")
def test_ledgers_and_checkpoints_are_ignored():
    names = ["ck9/a", "budget.json", "ledger-1.json", "fit.checkpoint", "x/fit.checkpoint.lock"]
    names += ["pairveil-studio/people.csv"]  # what `make studio` makes
    done = subprocess.run(
        ["git", "check-ignore", *names], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == names


def test_the_version_is_one():
    version = PROJECT["project"]["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == version
    assert f'__version__ = "{version}"' in (ROOT / "src/pairveil/__init__.py").read_text()
    (paper,) = citation["references"]
    assert paper["title"] == "Secure Metric Learning via Differential Pairwise Privacy"


def test_the_workflow_and_the_hook_run_what_everybody_runs():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    checks = workflow["jobs"]["checks"]
    assert checks["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert checks["steps"][-1] == {"run": ".ci/run"}
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in repository["hooks"]] == ["make lint"]
    assert "make lint" in (ROOT / ".ci/run").read_text()


def test_the_container_installs_as_the_makefile_does_and_starts_a_command_that_there_is():
    lines = (ROOT / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    said = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    steps = [(word, rest) for word, rest in said]
    # All that building a wheel reads is copied, to the place that it is installed from.
    project = PROJECT["project"]
    copied = {}
    for word, rest in steps:
        if word == "COPY":
            *sources, target = rest.split()
            copied |= dict.fromkeys(sources, target)
    assert {"pyproject.toml", "constraints.txt", project["readme"], "LICENSE"} <= set(copied)
    assert copied["src"] == copied["pyproject.toml"] + "src"
    assert all((ROOT / source).exists() for source in copied)
    # The same exact versions and extras as `make studio`.
    (install,) = [rest for word, rest in steps if word == "RUN"]
    constrained = re.search(r"pip install .*-c (\S+)", install)[1]
    assert constrained == copied["constraints.txt"] + "constraints.txt"
    make = (ROOT / "Makefile").read_text()
    assert "-c constraints.txt" in re.search("PIP_INSTALL := (.*)", make)[1]
    extras = re.search(r'"/src\[([\w,]+)\]"', install)[1]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert f'-e ".[{extras}]"' in make.partition("$(VENV)/.studio:")[2].partition("\n\n")[0]
    # A Python that CI runs, and a command with options that it has.
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    (image,) = [rest for word, rest in steps if word == "FROM"]
    assert (
        re.search(r"python:([\d.]+)", image)[1]
        in workflow["jobs"]["checks"]["strategy"]["matrix"]["python"]
    )
    (entry,) = [json.loads(rest) for word, rest in steps if word == "ENTRYPOINT"]
    program, command, *options = entry
    assert program in project["scripts"]
    assert f"$(BIN)/{program} {command}\n" in make.partition("\nstudio:")[2]
    shown = reference().partition(f"### pairveil {command}\n")[2].partition("\n###")[0]
    assert all(f"`{option}`" in shown for option in options if option.startswith("--"))
    assert options[-1].startswith(dict(steps)["WORKDIR"] + "/")


def test_make_help_lists_every_target():
    text = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split()
    said = subprocess.run(
        ["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert [line.split()[1] for line in said.stdout.splitlines()] == targets


def test_coverage_is_added_up_by_package():
    from tools.package_coverage import by_package

    one = {"num_statements": 10, "covered_lines": 9, "num_branches": 4, "covered_branches": 2}
    files = [
        "src/pairveil/errors.py",
        "src/pairveil/graph/kappa.py",
        "src/pairveil/graph/loops.py",
    ]
    found = by_package({"files": {name: {"summary": one} for name in files}})
    assert list(found) == ["graph", "pairveil"]
    assert found["graph"].row("graph").split() == [
        "graph",
        "20",
        "lines",
        "90.0",
        "%",
        "8",
        "branches",
        "50.0",
        "%",
    ]
    json.dumps(found)
