"""`bench`: measurements that anyone can repeat."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairveil.cli.output import JsonFlag, QuietFlag, print_json, stderr, stdout, table

DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data", envvar="PAIRVEIL_DATA", help="Folder with benchmark files (.npz with X, y)."
    ),
]
OutFolder = Annotated[Path | None, typer.Option("--out", help="Folder for the results as JSON.")]


def register(app: typer.Typer) -> None:
    """Add `bench` and its measurements to the command line."""
    bench = typer.Typer(help="Measure utility, speed and scale.", no_args_is_help=True)
    bench.command("utility")(utility)
    bench.command("kappa")(kappa)
    bench.command("scale")(scale)
    bench.command("speed")(speed)
    app.add_typer(bench, name="bench")


def utility(
    data: DataFolder = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Repeats.")] = 10,
    datasets: Annotated[
        list[str] | None, typer.Option("--dataset", help="Only these (repeatable).")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Processes.")] = 2,
    max_people: Annotated[
        int | None, typer.Option("--max-people", min=20, help="Cut the data.")
    ] = None,
    classes: Annotated[
        bool, typer.Option("--classes", help="People with classes instead of pairs, person level.")
    ] = False,
    out: OutFolder = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Accuracy kept at each epsilon, with one set of defaults on every data set.

    Example: `pairveil bench utility --data ../shared/data --json`
    """
    from pairveil.studies.bench.utility import CLASS_SETTINGS, SETTINGS, run

    result = run(
        data,
        seeds,
        datasets,
        jobs,
        out,
        CLASS_SETTINGS if classes else SETTINGS,
        max_people=max_people,
        progress=None if json_ or quiet else lambda name: stderr.print(f"measured {name}"),
    )
    if json_:
        print_json(result)
        return
    if quiet:
        return
    rows = [
        [
            f"{row['dataset']}: {row['method']}",
            row["unit"] or "",
            row["epsilon"],
            f"{row['pair_auc']:.3f} ± {row['pair_auc_interval']:.3f}",
            f"{row['gain_kept']:.2f} ± {row['gain_kept_interval']:.2f}",
            f"{row['knn_accuracy']:.3f}",
        ]
        for row in result["rows"]
    ]
    columns = ["data set: method", "unit", "epsilon", "pair AUC", "gain kept", "5-NN"]
    stdout.print(table(f"{seeds} seeds, mean and 95 % interval", columns, rows))


def kappa(
    sizes: Annotated[
        list[int] | None, typer.Option("--pairs", min=100, help="Numbers of pairs (repeatable).")
    ] = None,
    peers: Annotated[
        bool, typer.Option(help="Measure igraph, networkx and the paper's method too.")
    ] = True,
    out: OutFolder = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Time and memory of kappa, beside igraph, networkx and the paper's method.

    Example: `pairveil bench kappa --pairs 100000 --pairs 1000000`
    """
    from pairveil.studies.bench.kappa import SIZES, run

    result = run(sizes or SIZES, peers, out)
    if json_:
        print_json(result)
        return
    if quiet:
        return
    rows = [
        [
            row["method"],
            row["n_pairs"],
            row["seconds"],
            row["ns_per_pair"],
            row["peak_mb"],
            row["ratio"],
        ]
        for row in result["rows"]
    ]
    columns = ["method", "pairs", "seconds", "ns a pair", "peak MB", "times ours"]
    stdout.print(table("kappa of a random graph, two pairs a person", columns, rows))


def scale(
    sizes: Annotated[
        list[int] | None, typer.Option("--pairs", min=1000, help="Numbers of pairs (repeatable).")
    ] = None,
    out: OutFolder = None,
    scratch: Annotated[
        Path | None, typer.Option("--scratch", help="Folder for the files measured (1.2 GB).")
    ] = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Time and memory of kappa, selection and a private fit, from files of 10^5 to 10^8 pairs.

    Example: `pairveil bench scale --pairs 100000 --pairs 1000000`
    """
    from pairveil.studies.bench.scale import SIZES, run

    result = run(
        sizes or SIZES,
        out,
        scratch,
        progress=None if json_ or quiet else lambda what: stderr.print(f"measured {what}"),
    )
    if json_:
        print_json(result)
        return
    if quiet:
        return
    rows = [
        [
            row["n_pairs"],
            row["n_pairs_used"],
            row["kappa_seconds"],
            row["select_seconds"],
            row["fit_seconds"],
            row["pass_seconds"],
            row["ns_per_pair"],
            row["peak_mb"],
        ]
        for row in result["rows"]
    ]
    columns = ["pairs", "used", "kappa s", "select s", "fit s", "pass s", "ns a pair", "peak MB"]
    stdout.print(table("100 pairs a person, 64 features, from disk", columns, rows))


def speed(
    shapes: Annotated[
        list[str] | None, typer.Option("--shape", help="small, square or large (repeatable).")
    ] = None,
    peers: Annotated[
        bool,
        typer.Option("--peers", help="Install Opacus and metric-learn apart and measure them too."),
    ] = False,
    environment: Annotated[
        Path | None, typer.Option("--environment", help="Keep the peers' environment here.")
    ] = None,
    out: OutFolder = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """A private epoch beside one without noise, numpy, the machine's floor and, if asked, peers.

    Example: `pairveil bench speed --shape small`
    """
    from pairveil.studies.bench.speed import run

    result = run(
        shapes or ("small", "square", "large"),
        peers,
        environment,
        out,
        progress=None if json_ or quiet else lambda what: stderr.print(f"measured {what}"),
    )
    if json_:
        print_json(result)
        return
    if quiet:
        return
    rows = [
        [row["shape"], row["method"], f"{row['cpu_seconds']:.4f}", row["ratio"]]
        for row in result["rows"]
    ]
    columns = ["shape", "method", "seconds an epoch", "times ours"]
    stdout.print(table("one epoch on one core, processor time", columns, rows))
