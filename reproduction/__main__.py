"""``python -m reproduction``: the paper's figures and an honest verdict on each of its claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer
from benchmarks.__main__ import DataFolder
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pairveil.cli.app import JsonFlag, QuietFlag, main
from pairveil.cli.terminal import print_json, stderr, stdout, table


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="toy, accuracy, mechanisms, parameters, peaks, ours, field, steelman, reader, all; or page.",
            show_default="all",
        ),
    ] = None,
    data: DataFolder = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for tables and figures.")] = Path(
        "reproduce"
    ),
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Repeats.")] = 20,
    graph: Annotated[
        list[str] | None,
        typer.Option("--graph", help="random, even; both unless named.", show_default=False),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Processes.")] = 2,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: a check, not a measurement.")
    ] = False,
    record: Annotated[
        Path | None, typer.Option("--record", help="Keep the full table in this folder as well.")
    ] = None,
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
    from reproduction.experiments import GRAPHS
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
            names or "all",
            data,
            out,
            seeds,
            graphs=cast(Any, graph or GRAPHS),
            quick=quick,
            jobs=jobs,
            progress=lambda done, total, text: bar.update(
                task, completed=done, total=total, description=text
            ),
            record=record,
            claims_page=claims_page,
            download=download,
        )
    if json_:
        print_json(result)
    elif not quiet:
        rows = [
            [
                c["id"],
                c["kind"],
                c["verdict"],
                *(c["on"].get(g, {}).get("verdict", "") for g in GRAPHS),
            ]
            for c in result["claims"]
        ]
        heads = ["claim", "kind", "verdict", *(f"{g} graph" for g in GRAPHS)]
        stdout.print(table("The paper's claims", heads, rows))
        best = result["steelman"]
        if best:
            stdout.print(f"Steelman, {best['tried']} settings tried: {best['setting']}.")
        stdout.print(f"Tables, figures, RESULTS.md and paper-claims.md are in {out}.")


if __name__ == "__main__":
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(reproduce)
    main(app, "python -m reproduction")
