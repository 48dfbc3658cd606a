"""`studio`: the local web application, and its server on the loopback address, until somebody stops it."""

from __future__ import annotations

import os
import secrets
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pairveil._lazy import naming
from pairveil.errors import InputError
from pairveil.jobs.job import RELEASE, Job, Telling, option
from pairveil.studio.project import Project

HOST = "127.0.0.1"
_ENDS = ("SIGINT", "SIGTERM", "SIGHUP")


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


def serve(project: Project, port: int, announce: Callable[[str], None]) -> None:
    """Serve a project until Ctrl-C, or until its terminal is closed. What it makes is for this user alone.

    Port 0 takes a free one; ``announce`` gets the address, with its one-time token, when the server listens.
    """
    with naming("studio", "The studio"):
        import uvicorn

        from pairveil.studio.app import create_app
        from pairveil.studio.commands import Fitting
    with socket.socket() as listening:
        # Not SO_REUSEPORT: nobody else may listen on this port and take our requests.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError:
            raise InputError(f"port {port} is taken; leave --port out for a free one") from None
        taken = listening.getsockname()[1]
        token = secrets.token_urlsafe(32)
        config = uvicorn.Config(
            create_app(project, token, taken),
            log_level="error",  # the access log would hold the token
            access_log=False,
            server_header=False,
            date_header=False,
            ws="none",  # nothing here is a WebSocket, and whoever asks for one is answered as others are
            timeout_graceful_shutdown=3,
        )
        listening.listen(64)
        server = uvicorn.Server(config)
        handlers = {n: signal.getsignal(getattr(signal, n)) for n in _ENDS if hasattr(signal, n)}
        before = os.umask(0o077)
        try:
            # Closing the terminal stops it too, unless `nohup` says otherwise. uvicorn knows of the others.
            if "SIGHUP" in handlers and handlers["SIGHUP"] == signal.SIG_DFL:
                signal.signal(signal.SIGHUP, server.handle_exit)
            announce(f"http://{HOST}:{taken}/?token={token}")
            server.run(sockets=[listening])
        finally:  # however it ended: two Ctrl-C leave no time for an orderly end
            for name in handlers:
                signal.signal(getattr(signal, name), signal.SIG_IGN)
            Fitting(project).leave()
            os.umask(before)
            for name, handler in handlers.items():
                signal.signal(getattr(signal, name), handler)
