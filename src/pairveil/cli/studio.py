"""`studio`: the local web application, for people who do not type commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pairveil.errors import InputError
from pairveil.jobs.job import RELEASE, Job, Telling, option


@dataclass(frozen=True, kw_only=True)
class StudioJob(Job):
    """From two raw tables to a release and its report, in a browser on this machine.

    Listens on the loopback address only. The printed address works once, for the browser that opens it.
    Uploaded tables are removed when the release is made or the studio is stopped. The folder must be closed
    to other users; one that is made is.

    Example: `pairveil studio`

    Example: `pairveil studio --folder tumours --ledger budget.json`
    """

    name: ClassVar = "studio"
    panel: ClassVar = RELEASE

    folder: Path = option(
        Path("pairveil-studio"), "Where the studio keeps what was decided and made."
    )
    ledger: Path | None = option(
        None, "Budget file to charge, as for `fit`. [default: ledger.json in the folder]"
    )
    budget: float = option(3.0, "Total epsilon, where the ledger is new.", typed=True)
    port: int = option(0, "Port; 0 takes a free one.", min=0, max=65535)
    open: bool = option(False, "Open a browser (its address shows in the process list).")

    def work(self, tell: Telling) -> None:
        """Serve until somebody stops it."""
        from pairveil.studio.project import Project
        from pairveil.studio.server import serve

        if not (self.budget > 0):
            raise InputError("--budget must be above 0")
        project = Project(self.folder, self.ledger, self.budget)

        def announce(url: str) -> None:
            tell.address(f"Open this once, in a browser on this machine: {url}")
            tell.say(f"Folder: {project.folder}. Ctrl-C stops the studio.")
            files = {"folder": str(project.folder), "ledger": str(project.ledger)}
            tell.result({"url": url, **files})
            if self.open:
                import webbrowser

                webbrowser.open(url)

        serve(project, self.port, announce)
