"""The commands that a studio runs: the same that a user would type, as processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any, NamedTuple

from pairveil.errors import InputError
from pairveil.privacy.verdict import small_delta
from pairveil.studio.project import Project, Settings

PROGRAM = (sys.executable, "-P", "-m", "pairveil")
"""Safe path: a module that lies in the working directory is not run."""
EPSILONS = (0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Where the slider stands still; each is planned in full."""


def people_options(project: Project) -> list[str]:
    """The people's table and how to read it."""
    schema = ["--schema", str(project.schema)] if project.schema.is_file() else []
    return [*schema, "--id", project.settings.id]


def pair_options(settings: Settings) -> list[str]:
    """How to read the pairs."""
    options = ["--left", settings.left, "--right", settings.right, "--label", settings.label]
    return options + (["--zero-means", settings.zero_means] if settings.zero_means else [])


def public_options(project: Project) -> list[str]:
    """The public table that the report scores on, where there is one and its classes are named."""
    table, classes = project.table("public"), project.settings.public_classes
    if table is None:
        return []
    if not classes:
        raise InputError("say which column of the public table holds the classes")
    return ["--public-test", str(table), "--test-classes", classes]


def schema_command(project: Project) -> list[str]:
    """A template of the columns."""
    words = ["schema", _table(project, "people"), "--out", str(project.schema), "--overwrite"]
    classes = ["--classes", project.settings.classes] if project.by_classes else []
    return [*words, "--id", project.settings.id, *classes]


def kappa_command(project: Project) -> list[str]:
    """How the pairs hang together; labels that cannot be read are said now, not three pages later."""
    return ["kappa", _table(project, "pairs"), *pair_options(project.settings)]


def training_options(project: Project) -> list[str]:
    """What is learned from: people with pairs, or with a column of classes."""
    people = _table(project, "people")
    if project.by_classes:
        return [people, *people_options(project), "--classes", project.settings.classes]
    pairs = _table(project, "pairs")
    return [people, pairs, *people_options(project), *pair_options(project.settings)]


def plan_command(project: Project) -> list[str]:
    """What each epsilon would buy."""
    words = ["plan", *training_options(project)]
    for epsilon in EPSILONS:
        words += ["--epsilon", str(epsilon)]
    return [*words, "--delta", repr(delta_of(project))]


def delta_of(project: Project) -> float:
    """Delta of the settings, or one that is small enough for as many pairs as there are."""
    n_pairs = 1 if project.by_classes else (project.answer("kappa.json") or {}).get("n_pairs", 1)
    delta = project.settings.delta
    return delta if delta < 1 / n_pairs else small_delta(n_pairs)


def fit_command(project: Project, *, dry_run: bool) -> list[str]:
    """The fit itself, or its rehearsal."""
    settings = project.settings
    words = ["fit", *training_options(project)]
    words += ["--epsilon", repr(settings.epsilon), "--delta", repr(delta_of(project))]
    words += ["--unit", settings.unit]
    words += [] if project.by_classes else ["--select", settings.select]
    words += ["--out", str(project.release), "--ledger", str(project.ledger)]
    if not project.ledger.exists():
        words += ["--budget", repr(project.budget)]
    words += ["--report", *public_options(project), *(["--audit"] if settings.audit else [])]
    if dry_run:
        return [*words, "--dry-run"]
    words += ["--checkpoint", str(project.checkpoint)]
    for option in ("title", "institution", "purpose", "recipient"):
        if getattr(settings, option):
            words.append(f"--{option}={getattr(settings, option)}")
    return words


def _table(project: Project, which: str) -> str:
    found = project.table(which)
    if found is None:
        raise InputError(f"choose the file of the {which} first")
    return str(found)


class Answer(NamedTuple):
    """What a command said: its JSON object, and notes for the operator.

    Notes may count private cells. They are shown, and written nowhere.
    """

    content: dict[str, Any]
    notes: tuple[str, ...] = ()


async def ask(words: list[str]) -> Answer:
    """Run a command with ``--json`` and return what it answered.

    Raises
    ------
    InputError
        With the one line that the command said.
    """
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        *words,
        "--json",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=surroundings(),
    )
    try:
        said, problem = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode != 0:
        raise InputError(problem_in(problem.decode("utf-8", "replace")))
    notes = [line for line in problem.decode("utf-8", "replace").splitlines() if line.strip()]
    return Answer(json.loads(said), tuple(notes[:20]))


def problem_in(text: str) -> str:
    """The line in which a command says what is wrong.

    Examples
    --------
    >>> problem_in("note: x\\npairveil: people.csv has no column 'id'\\n")
    "people.csv has no column 'id'"
    """
    lines = [line for line in text.splitlines() if line.startswith("pairveil: ")]
    return lines[-1].removeprefix("pairveil: ") if lines else "the command was stopped"


def surroundings() -> dict[str, str]:
    """Ours, without a terminal's width or colours: lines come whole. A bug is told without a traceback."""
    kept = {name: value for name, value in os.environ.items() if name != "PAIRVEIL_DEBUG"}
    return {**kept, "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
