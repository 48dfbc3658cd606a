"""The jobs that a studio runs: the same that a user would type, as processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from pairveil.errors import InputError
from pairveil.jobs.fit import FitJob
from pairveil.jobs.link import LinkJob
from pairveil.jobs.pairs import KappaJob
from pairveil.jobs.plan import PlanJob, SchemaJob
from pairveil.privacy.verdict import small_delta
from pairveil.studio.project import Project, Settings

PROGRAM = (sys.executable, "-P", "-m", "pairveil")
"""Safe path: a module that lies in the working directory is not run."""
EPSILONS = (0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Where the slider stands still; each is planned in full."""


def training(project: Project) -> dict[str, Any]:
    """What is learned from: people with pairs, or with a column of classes, and how to read them."""
    said, schema = project.settings, project.schema if project.schema.is_file() else None
    people: dict[str, Any] = {"features": str(_table(project, "people")), "schema": schema}
    people |= {"id": said.id, "merge_similar_ids": bool(said.merge_similar_ids)}
    people["leave_out"] = bool(said.leave_out)
    if project.by_classes:
        return {**people, "classes": said.classes}
    return {**people, "pairs": str(_table(project, "pairs")), **pair_columns(said)}


def pair_columns(said: Settings) -> dict[str, Any]:
    """How to read the pairs."""
    columns = {name: getattr(said, name) for name in ("left", "right", "label")}
    return {**columns, "zero_means": said.zero_means or None}


def schema_job(project: Project) -> SchemaJob:
    """A template of the columns."""
    classes = project.settings.classes if project.by_classes else None
    people, id_ = _table(project, "people"), project.settings.id
    return SchemaJob(features=people, out=project.schema, overwrite=True, id=id_, classes=classes)


def kappa_job(project: Project) -> KappaJob:
    """How the pairs hang together; what is wrong with labels and ids is said now, not three pages later."""
    same = bool(project.settings.merge_similar_ids)
    how = {**pair_columns(project.settings), "merge_similar_ids": same}
    if not project.by_levels:
        how |= {"features": _table(project, "people"), "id": project.settings.id}
    how["leave_out"] = bool(project.settings.leave_out)
    how["problems"] = project.problems
    return KappaJob(pairs=_table(project, "pairs"), **how)


def plan_job(project: Project) -> PlanJob:
    """What each epsilon would buy."""
    listed = None if project.by_classes else project.problems
    ledger = project.ledger if project.ledger.exists() else None
    how = training(project) | {"problems": listed, "ledger": ledger}
    return PlanJob(**how, epsilon=list(EPSILONS), delta=delta_of(project))


def delta_of(project: Project) -> float:
    """Delta of the settings, or one that is small enough for as many pairs as there are."""
    n_pairs = 1 if project.by_classes else (project.answer("kappa.json") or {}).get("n_pairs", 1)
    delta = project.settings.delta
    return delta if delta < 1 / n_pairs else small_delta(n_pairs)


def public_test(project: Project) -> dict[str, Any]:
    """The public table that the report scores on, where there is one; its classes must be named."""
    table, classes = project.table("public"), project.settings.public_classes
    if table is not None and not classes:
        raise InputError("say which column of the public table holds the classes")
    return {} if table is None else {"public_test": table, "test_classes": classes}


def fit_job(project: Project, *, dry_run: bool) -> FitJob | LinkJob:
    """The fit itself, or its rehearsal."""
    said = project.settings
    how: dict[str, Any] = {"epsilon": said.epsilon, "delta": delta_of(project), "unit": said.unit}
    how |= {"out": project.release, "ledger": project.ledger, "report": True}
    cover = {name: getattr(said, name) for name in ("title", "institution", "purpose", "recipient")}
    how |= {"dry_run": True} if dry_run else {"checkpoint": project.checkpoint} | cover
    how |= {} if project.ledger.exists() else {"budget": project.budget}
    if project.by_levels:
        source, labels = _table(project, "levels"), _table(project, "pairs")
        how |= {
            "merge_similar_ids": bool(said.merge_similar_ids),
            "leave_out": bool(said.leave_out),
        }
        how |= {"n_levels": said.n_levels, "prior": float(said.prior) if said.prior else None}
        return LinkJob(source=source, labels=labels, **pair_columns(said), **how)
    how |= {} if project.by_classes else {"select": said.select}
    if said.score and not project.by_classes:
        how["score"] = said.epsilon  # of other people: a smaller one would save nothing
    return FitJob(**training(project), audit=bool(said.audit), **public_test(project), **how)


def _table(project: Project, which: str) -> Path:
    found = project.table(which)
    if found is None:
        raise InputError(f"choose the file of the {which} first")
    return found


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
    """What a command says is wrong: a line, or a list under it.

    Examples
    --------
    >>> problem_in("note: x\\npairveil: people.csv has no column 'id'\\n")
    "people.csv has no column 'id'"
    """
    said = re.findall(r"^pairveil: (.*(?:\n- .*)*)", text, re.MULTILINE)
    return said[-1] if said else "the command was stopped"


def surroundings() -> dict[str, str]:
    """Ours, without a terminal's width or colours: lines come whole. A bug is told without a traceback."""
    kept = {name: value for name, value in os.environ.items() if name != "PAIRVEIL_DEBUG"}
    return {**kept, "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
