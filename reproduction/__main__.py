"""``python -m reproduction``: the paper's figures and an honest verdict on each of its claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from benchmarks.__main__ import DataFolder
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pairveil.cli.app import JsonFlag, QuietFlag, main
from pairveil.cli.terminal import print_json, stderr, stdout, table


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            help="toy, accuracy, steelman, mechanisms, parameters, leak, or all.",
            show_default=False,
        ),
    ],
    data: DataFolder = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for tables and figures.")] = Path(
        "reproduce"
    ),
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Repeats.")] = 20,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Processes.")] = 2,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: a check, not a measurement.")
    ] = False,
    claims_page: Annotated[
        Path | None, typer.Option("--claims-page", help="Write the page of claims here as well.")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch Adult and Bank from OpenML.")
    ] = False,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Rerun the paper: figures, tables, and what became of each claim. A second run resumes.

    Example: `python -m reproduction all --data ../shared/data --out reproduce`
    """
    from reproduction.run import reproduce as run

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=stderr,
        transient=True,
        disable=json_ or quiet or not stderr.is_terminal,
    ) as bar:
        task = bar.add_task("starting", total=None)
        result = run(
            list(names),
            data,
            out,
            seeds,
            quick=quick,
            jobs=jobs,
            progress=lambda done, total, text: bar.update(
                task, completed=done, total=total, description=text
            ),
            claims_page=claims_page,
            download=download,
        )
    if json_:
        print_json(result)
    elif not quiet:
        rows = [[c["id"], c["verdict"], c["best_case"]] for c in result["claims"]]
        stdout.print(table(result["setting"], ["claim", "verdict", "best case"], rows))
        stdout.print(f"Tables, figures and {out / 'paper-claims.md'} are in {out}.")


if __name__ == "__main__":
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(reproduce)
    main(app, "python -m reproduction")
