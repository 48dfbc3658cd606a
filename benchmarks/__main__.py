"""``python -m benchmarks``: measurements that anyone can repeat."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pairveil.cli.app import JsonFlag, QuietFlag, main
from pairveil.cli.terminal import print_json, stderr, stdout, table
from pairveil.errors import InputError

DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data", envvar="PAIRVEIL_DATA", help="Folder with benchmark files (.npz with X, y)."
    ),
]
OutFolder = Annotated[Path | None, typer.Option("--out", help="Folder for the results as JSON.")]


app = typer.Typer(
    help="Measure utility, speed and scale.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Column = str | Callable[[dict[str, Any]], Any]


def _progress(silent: bool) -> Callable[[str], None] | None:
    return None if silent else lambda what: stderr.print(f"measured {what}")


def _show(
    result: dict[str, Any], title: str, columns: Mapping[str, Column], json_: bool, quiet: bool
) -> None:
    """Print what was measured: a column is a key of the rows, or what to make of a row."""
    if json_:
        print_json(result)
    elif not quiet:
        rows = [
            [row[cell] if isinstance(cell, str) else cell(row) for cell in columns.values()]
            for row in result["rows"]
        ]
        stdout.print(table(title, list(columns), rows))


@app.command("utility")
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
        bool,
        typer.Option(
            "--classes",
            help="People with classes, groups of them and triples instead of pairs, person level.",
        ),
    ] = False,
    given: Annotated[
        bool,
        typer.Option(
            "--given",
            help="Given pairs, person level: selections, groups among them, side by side.",
        ),
    ] = False,
    first_seed: Annotated[
        int, typer.Option("--first-seed", min=0, help="Those below 9100 may have chosen defaults.")
    ] = 9100,
    out: OutFolder = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Accuracy kept at each epsilon, with one set of defaults on every data set.

    Example: `python -m benchmarks utility --data ../shared/data --json`
    """
    from benchmarks.utility import CLASS_SETTINGS, GIVEN_SETTINGS, SETTINGS, run

    if classes and given:
        raise InputError("--classes and --given are two tables: run one after the other")
    report = _progress(json_ or quiet)
    settings = CLASS_SETTINGS if classes else GIVEN_SETTINGS if given else SETTINGS
    result = run(data, seeds, datasets, jobs, out, settings, max_people, report, first_seed)
    columns: dict[str, Column] = {
        "data set: method": "{dataset}: {method}".format_map,
        "unit": lambda row: row["unit"] or "",
        "epsilon": "epsilon",
        "pair AUC": "{pair_auc:.3f} ± {pair_auc_interval:.3f}".format_map,
        "gain kept": "{gain_kept:.2f} ± {gain_kept_interval:.2f}".format_map,
        "5-NN": "{knn_accuracy:.3f}".format_map,
    }
    _show(result, f"{seeds} seeds, mean and 95 % interval", columns, json_, quiet)


@app.command("tables")
def tables(
    half: Annotated[
        str, typer.Option("--half", help="selection (defaults are chosen on it) or report.")
    ] = "report",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Repeats.")] = 3,
    first_seed: Annotated[int, typer.Option("--first-seed", min=0)] = 9100,
    only: Annotated[str, typer.Option("--only", help="Tables whose name holds this.")] = "",
    before: Annotated[
        Path | None, typer.Option("--before", exists=True, help="An earlier run to stand beside.")
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="Print every table too.")] = False,
    data: DataFolder = None,
    out: Annotated[Path | None, typer.Option("--out", help="File for the scores.")] = None,
) -> None:
    """Gain kept by the pair learner on many tables, with true labels and with random ones.

    Example: `python -m benchmarks tables --half selection --only breast --seeds 8 --each`
    """
    from benchmarks import tables as many

    if half not in many.HALVES:
        raise InputError(f"--half is {' or '.join(many.HALVES)}")
    chosen = [table for table in many.of(half) if only in table.name]
    if not chosen:
        raise InputError(f"no table of this half has {only!r} in its name")
    rows = many.run(chosen, range(first_seed, first_seed + seeds), data, progress=_progress(False))
    if out is not None:
        many.write(out, rows)
    names = {table.name for table in chosen}
    old = [row for row in many.read(before) if row["table"] in names] if before else []
    print(many.markdown(rows, old))
    if each:
        print(many.table_by_table(rows, old))


@app.command("parties")
def parties(
    data: DataFolder = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Repeats.")] = 5,
    people: Annotated[int, typer.Option("--people", min=50, help="People of a hospital.")] = 2000,
    out: Annotated[Path | None, typer.Option("--out", help="File for the result.")] = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Several institutions: overhead, bytes, and what three hospitals gain by learning together.

    Example: `python -m benchmarks parties --seeds 5 --data ../shared/data`
    """
    from benchmarks.parties import run

    result = run(data, seeds, people, _progress(json_ or quiet))
    if out is not None:
        out.write_text(json.dumps(result, indent=1), encoding="utf-8")
    columns: dict[str, Column] = {
        "parties": "parties",
        "processor seconds a fit": "{seconds:.2f}".format_map,
        "ms an answer": lambda row: f"{1000 * row['per_answer']:.2f}",
        "bytes sent by each": "{bytes_sent:,}".format_map,
        "bytes got by each": "{bytes_got:,}".format_map,
    }
    _show(result, "Parties that learn together", columns, json_, quiet)
    ways: dict[str, Column] = {
        "table": "dataset",
        "epsilon": "epsilon",
        "who learns": "way",
        "pair AUC": "{pair_auc:.3f} ± {interval:.3f}".format_map,
    }
    _show({"rows": result["utility"]}, f"{seeds} seeds", ways, False, quiet or json_)


@app.command("kappa")
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

    Example: `python -m benchmarks kappa --pairs 100000 --pairs 1000000`
    """
    from benchmarks.kappa import SIZES, run

    result = run(sizes or SIZES, peers, out)
    columns = {
        "method": "method",
        "pairs": "n_pairs",
        "seconds": "seconds",
        "ns a pair": "ns_per_pair",
        "peak MB": "peak_mb",
        "times ours": "ratio",
    }
    _show(result, "kappa of a random graph, two pairs a person", columns, json_, quiet)


@app.command("scale")
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

    Example: `python -m benchmarks scale --pairs 100000 --pairs 1000000`
    """
    from benchmarks.scale import SIZES, run

    result = run(sizes or SIZES, out, scratch, progress=_progress(json_ or quiet))
    columns = {
        "pairs": "n_pairs",
        "used": "n_pairs_used",
        **{f"{part} s": f"{part}_seconds" for part in ("kappa", "select", "fit", "pass")},
        "ns a pair": "ns_per_pair",
        "peak MB": "peak_mb",
    }
    _show(result, "100 pairs a person, 64 features, from disk", columns, json_, quiet)


@app.command("speed")
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

    Example: `python -m benchmarks speed --shape small`
    """
    from benchmarks.speed import run

    chosen = shapes or ("small", "square", "large")
    result = run(chosen, peers, environment, out, progress=_progress(json_ or quiet))
    columns: dict[str, Column] = {
        "shape": "shape",
        "method": "method",
        "seconds an epoch": "{cpu_seconds:.4f}".format_map,
        "times ours": "ratio",
    }
    _show(result, "one epoch on one core, processor time", columns, json_, quiet)


@app.command("ranking")
def ranking(
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Repeats.")] = 20,
    workers: Annotated[int, typer.Option("--workers", min=2, help="Workers.")] = 500,
    asked: Annotated[int, typer.Option("--choices", min=1, help="Choices of each worker.")] = 20,
    real: Annotated[
        Path | None,
        typer.Option("--swissmetro", exists=True, help="swissmetro.dat, to be measured too."),
    ] = None,
    out: OutFolder = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Rankings from choices: Kendall's tau with the truth, beside randomised response and no privacy.

    Example: `python -m benchmarks ranking --seeds 5`
    """
    from benchmarks.ranking import run

    result = run(seeds, workers, asked, out, real, _progress(json_ or quiet))
    columns: dict[str, Column] = {
        "items": lambda row: {True: "with features", False: "without"}.get(
            row["features"], row["features"]
        ),
        "method": "method",
        "unit": lambda row: row["unit"] or "",
        "epsilon": lambda row: row["epsilon"] or "",
        "Kendall's tau": "{kendall_tau:.3f} ± {interval:.3f}".format_map,
    }
    _show(result, f"{workers} workers, {asked} choices each, {seeds} seeds", columns, json_, quiet)


@app.command("clustering")
def clustering(
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Repeats.")] = 10,
    links: Annotated[
        list[int] | None, typer.Option("--links", min=10, help="Numbers of links (repeatable).")
    ] = None,
    out: OutFolder = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Clusters with private links: adjusted Rand index, beside k-means and PCKMeans without privacy.

    Example: `python -m benchmarks clustering --links 500 --seeds 3`
    """
    from benchmarks.clustering import LINKS, run

    result = run(seeds, tuple(links or LINKS), out, _progress(json_ or quiet))
    columns: dict[str, Column] = {
        "data set": "dataset",
        "links": "links",
        "method": "method",
        "epsilon": lambda row: row["epsilon"] or "",
        "adjusted Rand index": "{rand_index:.3f} ± {interval:.3f}".format_map,
        "of PCKMeans' gain": lambda row: (
            "" if row["gain_kept"] is None else f"{row['gain_kept']:.2f}"
        ),
    }
    _show(result, f"{seeds} draws of links", columns, json_, quiet)


@app.command("deep")
def deep(
    people: Annotated[
        list[int] | None, typer.Option("--people", min=100, help="Numbers of people (repeatable).")
    ] = None,
    epsilons: Annotated[
        list[float] | None, typer.Option("--epsilon", min=0.01, help="Repeatable.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Repeats.")] = 5,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Processes.")] = 2,
    device: Annotated[str, typer.Option("--device", help="Of our nets.")] = "cpu",
    out: OutFolder = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """A small network on distorted glyphs, beside Euclid, the linear metric and Opacus (if installed).

    Example: `python -m benchmarks deep --people 4000 --epsilon 4`
    """
    from benchmarks.deep import EPSILONS, SIZES, run

    progress = _progress(json_ or quiet)
    result = run(people or SIZES, epsilons or EPSILONS, seeds, out, progress, jobs, device)
    columns: dict[str, Column] = {
        "people": "people",
        "method": "method",
        "unit": lambda row: row["unit"] or "",
        "epsilon": lambda row: row["epsilon"] or "",
        "pair AUC": "{pair_auc:.3f}".format_map,
        "seconds": "seconds",
    }
    _show(result, f"distorted glyphs, {seeds} draws", columns, json_, quiet)


if __name__ == "__main__":
    main(app, "python -m benchmarks")
