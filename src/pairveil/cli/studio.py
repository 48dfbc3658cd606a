"""`studio`: the local web application, for people who do not type commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairveil.cli.output import JsonFlag, QuietFlag, print_json, stdout
from pairveil.errors import InputError


def studio(
    folder: Annotated[
        Path, typer.Option("--folder", help="Where the studio keeps what was decided and made.")
    ] = Path("pairveil-studio"),
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger",
            help="Budget file to charge, as for `fit`. [default: ledger.json in the folder]",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option("--budget", help="Total epsilon, where the ledger is new.")
    ] = 3.0,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 0,
    open_: Annotated[
        bool, typer.Option("--open", help="Open a browser (its address shows in the process list).")
    ] = False,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """From two raw tables to a release and its report, in a browser on this machine.

    Listens on the loopback address only. The printed address works once, for the browser that opens it.
    Uploaded tables are removed when the release is made or the studio is stopped. The folder must be closed
    to other users; one that is made is.

    Example: `pairveil studio`

    Example: `pairveil studio --folder tumours --ledger budget.json`
    """
    from pairveil.studio.project import Project
    from pairveil.studio.server import serve

    if not (budget > 0):
        raise InputError("--budget must be above 0")
    project = Project(folder, ledger, budget)

    def announce(url: str) -> None:
        if json_:
            print_json({"url": url, "folder": str(project.folder), "ledger": str(project.ledger)})
        else:
            stdout.print(f"Open this once, in a browser on this machine: {url}")
            if not quiet:
                stdout.print(f"Folder: {project.folder}. Ctrl-C stops the studio.")
        if open_:
            import webbrowser

            webbrowser.open(url)

    serve(project, port, announce)
