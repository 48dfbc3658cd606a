"""The jobs that a studio runs: the same that a user would type, as processes of their own.

The fit of a project is watched through its files and resumed after a kill.
The process outlives a server that is killed, and a server that is started again finds it. Where both were
killed the same command is run again: its checkpoint pays for nothing twice (docs/theory/guarantee.md).
The process removes the tables itself when the release is made, for there may be no server then.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pairveil.engine.checkpoint import is_held
from pairveil.errors import InputError, PairveilError
from pairveil.jobs.fit import FitJob
from pairveil.jobs.job import AT_END
from pairveil.jobs.link import LinkJob
from pairveil.jobs.pairs import KappaJob
from pairveil.jobs.plan import PlanJob, SchemaJob
from pairveil.privacy.verdict import small_delta
from pairveil.studio.project import Decisions, Project

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


def pair_columns(said: Decisions) -> dict[str, Any]:
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
    if project.by_levels:
        how["levels"] = _table(project, "levels")
    else:
        how |= {"features": _table(project, "people"), "id": project.settings.id}
    how["leave_out"] = bool(project.settings.leave_out)
    how["problems"] = project.problems
    return KappaJob(pairs=_table(project, "pairs"), **how)


def plan_job(project: Project) -> PlanJob:
    """What each epsilon would buy."""
    listed = None if project.by_classes else project.problems
    ledger = project.ledger if project.ledger.exists() else None
    how = training(project) | {"problems": listed, "ledger": ledger}
    return PlanJob(**how, epsilon=list(EPSILONS), delta=usual_delta(project))


def usual_delta(project: Project) -> float:
    """Delta of the settings, or one that is small enough for as many pairs as there are."""
    n_pairs = 1 if project.by_classes else (project.answer("kappa.json") or {}).get("n_pairs", 1)
    delta = project.settings.delta
    return delta if delta < 1 / n_pairs else small_delta(n_pairs)


def public_test(project: Project) -> dict[str, Any]:
    """The public table that the report scores on, where there is one; its classes must be named."""
    table, classes = project.table("public"), project.settings.public_classes
    if table is not None and not classes:
        raise InputError("Choose the field 'Class in the public table'.")
    return {} if table is None else {"public_test": table, "test_classes": classes}


def fit_job(project: Project, *, dry_run: bool) -> FitJob | LinkJob:
    """The fit itself, or its rehearsal."""
    said = project.settings
    how: dict[str, Any] = {
        "epsilon": said.epsilon,
        "delta": usual_delta(project),
        "unit": said.unit,
    }
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
        how |= {"problems": project.problems} if dry_run else {}
        return LinkJob(source=source, labels=labels, **pair_columns(said), **how)
    how |= {} if project.by_classes else {"select": said.select}
    if said.score and not project.by_classes:
        how["score"] = said.epsilon  # of other people: a smaller one would save nothing
    return FitJob(**training(project), audit=bool(said.audit), **public_test(project), **how)


def _table(project: Project, which: str) -> Path:
    found = project.table(which)
    if found is None:
        raise InputError(f"Choose the file of the {which} first.")
    return found


class Answer(NamedTuple):
    """What a command said: its JSON object, and notes for the operator.

    Notes may count private cells. They are shown, and written nowhere.
    """

    content: dict[str, Any]
    notes: tuple[str, ...] = ()


async def ask(words: list[str]) -> Answer:
    """Run a command with ``--json``; InputError with the one line that it said, where it failed."""
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


# ---- the fit of a project ------------------------------------------------------------------------

State = Literal["none", "running", "stopped", "failed", "done"]
_STARTED: dict[int, subprocess.Popen[bytes]] = {}  # this server's own children, by number
_RECORD = 173  # bytes that a checkpoint adds to the numbers of a sum, beside its name


class Fitting:
    """What becomes of one confirmed fit.

    Examples
    --------
    >>> import tempfile
    >>> Fitting(Project(tempfile.mkdtemp())).state()
    'none'
    """

    def __init__(self, project: Project) -> None:
        self.project = project

    def start(self) -> None:
        """Run the confirmed fit; does nothing where it runs or is done already, so two tabs spend once."""
        if self.state() in ("running", "done"):
            return
        # Made of the settings again, and not read off a file: a folder may come from anybody.
        self._run(fit_job(self.project, dry_run=False).words())

    def resume(self) -> None:
        """After a start of the server: resume a fit that was begun and is not done."""
        if self.state() == "stopped":
            with suppress(PairveilError):  # said when somebody presses the button
                self.start()

    def _run(self, words: list[str]) -> None:
        # Kept before it runs: a kill at any moment leaves a fit that is known to be begun.
        self.project.keep("fit.json", {"words": words, "pid": None})
        with (self.project.folder / "fit.log").open("wb") as log:
            process = subprocess.Popen(
                [*PROGRAM[:-1], __name__, str(self.project.folder), *words, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,  # a Ctrl-C for the server is not for the fit
                env=surroundings(),
            )
        _STARTED[process.pid] = process
        self.project.keep("fit.json", {"words": words, "pid": process.pid})

    def state(self) -> State:
        """Where the fit stands."""
        begun = self.project.answer("fit.json")
        if begun is None:
            return "none"
        if self._is_running(begun.get("pid")):
            return "running"
        if self.is_done:
            self._over()
            return "done"
        return "failed" if self.problem() else "stopped"

    @property
    def is_done(self) -> bool:
        """Whether the release is there with its report: the checkpoint goes after them."""
        return self.project.is_released and not self.project.checkpoint.exists()

    def _is_running(self, pid: Any) -> bool:
        if isinstance(pid, int):
            if pid in _STARTED and _STARTED[pid].poll() is None:
                return True
            with suppress(OSError):  # of a server before this one: is it that command still?
                words = Path(f"/proc/{pid}/cmdline").read_bytes()
                if str(self.project.checkpoint).encode() in words:
                    return True
        # A server may have been killed before it could write down the number, and not every system has /proc.
        return self.project.checkpoint.exists() and is_held(self.project.checkpoint)

    def problem(self) -> str:
        """Why the command refused to go on; nothing where it was only stopped."""
        with suppress(OSError):
            text = (self.project.folder / "fit.log").read_text(encoding="utf-8", errors="replace")
            if "pairveil: " in text:
                return problem_in(text)
        return ""

    def give_up(self) -> None:
        """Back to the settings after a refusal: what was charged stays charged."""
        if self.state() == "failed":
            self._forget()
            if not self.project.is_released:
                self.project.checkpoint.unlink(missing_ok=True)

    def _forget(self) -> None:
        for name in ("fit.json", "fit.log"):
            (self.project.folder / name).unlink(missing_ok=True)

    def share_done(self) -> float:
        """How much of the plan was answered, from the size of the checkpoint."""
        rehearsed = self.project.answer("certificate.json") or {}
        plan = rehearsed.get("certificate", {}).get("plan")
        whole = expected_bytes(plan) if isinstance(plan, Mapping) else 0
        with suppress(OSError):
            if whole:
                return min(1.0, self.project.checkpoint.stat().st_size / whole)
        return 0.0

    def ended(self, *, alone: bool) -> None:
        """Called by the process of the fit itself, as its last act; ``alone``: the server has gone."""
        if self.is_done:
            self._over()
        elif alone and not self.project.checkpoint.exists():  # refused, and nothing was charged
            self._forget()
            self.project.forget_uploads()

    def leave(self) -> None:
        """Nobody is here any more: tables go, unless resuming what was charged needs them."""
        if self.state() == "failed" and not self.project.checkpoint.exists():
            self.give_up()
        if self.state() in ("none", "done"):
            self.project.forget_uploads()
            self.project.forget_answers()

    def _over(self) -> None:
        """The release is safe: neither what was uploaded nor notes that count private cells may stay."""
        self.project.forget_uploads()
        (self.project.folder / "fit.log").unlink(missing_ok=True)


def expected_bytes(plan: Mapping[str, Any]) -> int:
    """About how large the checkpoint of a whole fit is.

    Examples
    --------
    >>> expected_bytes({"releases": [{"name": "gradients", "entries": 300, "steps": 100}]})
    258200
    """
    total = 0
    queries = plan.get("releases")
    for query in queries if isinstance(queries, list) else []:
        try:
            total += query["steps"] * (8 * query["entries"] + _RECORD + len(query["name"]))
        except (KeyError, TypeError):
            raise InputError("the plan does not describe its queries") from None
    return total


def run(folder: str, words: list[str]) -> None:
    """The process of a fit: `pairveil WORDS`, which takes its tables with it when it is done."""
    fitting, server = Fitting(Project(folder)), os.getppid()
    sys.argv = ["pairveil", *words]

    def end() -> None:
        fitting.ended(alone=os.getppid() != server)

    AT_END.append(end)  # a finished fit ends at once, when its checkpoint is gone
    try:
        runpy.run_module("pairveil", run_name="__main__")
    finally:  # one that was stopped leaves here
        end()


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
