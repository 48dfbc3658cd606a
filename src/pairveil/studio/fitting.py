"""The fit of a project: started as a command of its own, watched through its files, resumed after a kill.

The process outlives a server that is killed, and a server that is started again finds it. Where both were
killed the same command is run again: its checkpoint pays for nothing twice (docs/theory/guarantee.md).
The process removes the tables itself when the release is made, for there may be no server then.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pairveil.engine.checkpoint import is_held
from pairveil.errors import InputError, PairveilError
from pairveil.jobs.job import AT_END
from pairveil.studio.commands import PROGRAM, fit_job, problem_in, surroundings
from pairveil.studio.project import Project

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
