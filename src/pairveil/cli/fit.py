"""`fit`: learn a metric from two files and release it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from pairveil.cli.output import (
    JsonFlag,
    QuietFlag,
    print_json,
    spoken_warnings,
    stderr,
    stdout,
    table,
)
from pairveil.cli.pair_options import (
    Exclude,
    FeaturesFile,
    IdColumn,
    Label,
    Layout,
    Left,
    PairsFile,
    Right,
    ZeroMeans,
    read_pair_file,
)
from pairveil.errors import InputError


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("fit")(fit)


def fit(
    features: FeaturesFile,
    pairs: PairsFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the release.")],
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="Privacy budget of this release.")
    ] = 1.0,
    delta: Annotated[float, typer.Option("--delta", help="Must be well below 1 / pairs.")] = 1e-5,
    unit: Annotated[
        Literal["pair", "relationship", "person"], typer.Option(help="What is protected.")
    ] = ("relationship"),
    select: Annotated[
        Literal["paths", "forest", "matching", "all"], typer.Option(help="Which pairs to use.")
    ] = "paths",
    adjacency: Annotated[
        Literal["zero-out", "replace"], typer.Option(help="What epsilon compares.")
    ] = ("zero-out"),
    mechanism: Annotated[
        Literal["gaussian", "laplace"], typer.Option(help="laplace: pure epsilon.")
    ] = ("gaussian"),
    kappa: Annotated[
        int | None, typer.Option("--kappa", min=1, help="Public constant; default: the graph's.")
    ] = (None),
    n_components: Annotated[
        int | None, typer.Option("--n-components", min=1, help="Dimensions; default: all, blended.")
    ] = None,
    bounds: Annotated[
        Path | None,
        typer.Option("--bounds", help="Public lower and upper bound of each column (CSV or JSON)."),
    ] = None,
    data_norm: Annotated[
        float, typer.Option("--data-norm", help="Rows longer than this are clipped.")
    ] = 1.0,
    ledger: Annotated[Path | None, typer.Option("--ledger", help="Budget file to charge.")] = None,
    budget: Annotated[
        float | None,
        typer.Option("--budget", help="Total epsilon, where --ledger makes a new file."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Repeatable, and therefore NOT for release.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be spent, and stop.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Write the report page as well.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier release.")
    ] = False,
    id_: IdColumn = "id",
    exclude: Exclude = None,
    left: Left = "left",
    right: Right = "right",
    label: Label = "label",
    layout: Layout = "auto",
    zero_means: ZeroMeans = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Learn a private metric from people's features and labelled pairs, and release it.

    Example: `pairveil fit people.csv pairs.csv --epsilon 1 --delta 1e-5 --out release/`
    """
    from pairveil.learning.dpp import DPPMetricLearner
    from pairveil.pairs.pairset import PairSet
    from pairveil.pairs.readers import read_features
    from pairveil.release.metric import ReleasedMetric

    with spoken_warnings(quiet or json_):
        people = read_features(features, id=id_, exclude=tuple(exclude or ()))
        people, scale = scale_columns(people, bounds, data_norm)
        found = read_pair_file(pairs, left, right, label, layout, zero_means=zero_means)
        data = PairSet.join(people, found, data_norm=data_norm)
        ReleasedMetric.check_folder(out, overwrite)
        learner = DPPMetricLearner(
            epsilon=epsilon,
            delta=delta,
            unit=unit,
            select=select,
            kappa="auto" if kappa is None else kappa,
            adjacency=adjacency,
            mechanism=mechanism,
            n_components=n_components,
            data_norm=data_norm,
            accountant=open_ledger(ledger, budget, delta, unit, adjacency),
            random_state=seed,
        )
        planned = learner.certify(data)
        if planned is None:
            raise InputError(
                "--epsilon inf promises nothing: there is nothing to release; choose a number"
            )
        if not (json_ or quiet):
            print_plan(planned)
        if dry_run:
            if json_:
                print_json({"certificate": planned.to_dict(), "out": None})
            return
        with progress_bar(hidden=json_ or quiet) as bar:
            task = bar.add_task("learning", total=1.0, epsilon=0.0)
            learner.fit(
                data, on_step=lambda done, spent: bar.update(task, completed=done, epsilon=spent)
            )
    certificate: Any = learner.certificate_
    metric = ReleasedMetric(learner.components_ * scale, certificate, people.names, scale)
    metric.save(out, overwrite=overwrite, summary=summarise(learner, data).to_json())
    page = write_report(out) if report else None
    if json_:
        shown = {"certificate": certificate.to_dict(), "out": str(out)}
        print_json(shown if page is None else {**shown, "report": str(page)})
    elif not quiet:
        stdout.print(f"Released in {out}. `pairveil certificate {out}` verifies it.")
        if page is not None:
            stdout.print(f"Report: {page}")


def summarise(learner: Any, data: Any, **parts: Any) -> Any:
    """What the report may show of a fit: the graph's counts and the ledger; nothing private."""
    from pairveil.graph.kappa import kappa
    from pairveil.report.data import Summary
    from pairveil.report.summaries import budget_of, graph_summary

    used = data.pairs[learner.used_pairs_]
    ledger = learner.accountant
    return Summary(
        used=graph_summary(kappa(used), used),
        given=graph_summary(kappa(data.pairs), data.pairs),
        budget=None if ledger is None else budget_of(ledger),
        **parts,
    )


def write_report(folder: Path) -> Path:
    """The page of a release, from what is in its folder alone."""
    from pairveil.report.page import write
    from pairveil.report.summaries import read_release

    return write(read_release(folder), folder / "report.html")


def scale_columns(people: Any, bounds: Path | None, data_norm: float) -> tuple[Any, Any]:
    """Bring columns to [0, data_norm / sqrt(d)] by public bounds; also the factor that does it."""
    from pairveil.pairs.scaling import PublicBounds, scale_to_bounds

    if bounds is None:
        return people, np.ones(people.values.shape[1])
    public = PublicBounds.read(bounds).ordered(people.names)
    scaled = scale_to_bounds(people.values, public, data_norm=data_norm)
    factor = data_norm / (public.upper - public.lower) / np.sqrt(len(public.lower))
    return replace(people, values=scaled), factor


def open_ledger(
    path: Path | None, budget: float | None, delta: float, unit: Any, adjacency: Any
) -> Any:
    """The ledger to charge, made on first use."""
    from pairveil.privacy.ledger import PrivacyLedger

    if path is None:
        if budget is not None:
            raise InputError("--budget goes with --ledger FILE")
        return None
    if path.exists():
        if budget is not None:
            raise InputError(f"{path} exists and has its own budget; leave --budget out")
        return PrivacyLedger.open(path)
    if budget is None:
        raise InputError(f"{path} does not exist; give --budget EPSILON to make it")
    return PrivacyLedger(budget, delta, path=path, unit=unit, adjacency=adjacency)


def print_plan(planned: Any) -> None:
    """What is about to be spent, before it is."""
    rows = [
        [
            unit,
            planned.kappas[unit],
            planned.epsilons[unit]["zero-out"],
            planned.epsilons[unit]["replace"],
        ]
        for unit in planned.epsilons
    ]
    pairs = f"{planned.n_pairs_used:,} of {planned.n_pairs_given:,} pairs used"
    columns = ["protected unit", "kappa", "zero-out", "replace"]
    stdout.print(table(f"{pairs}; epsilon at delta {planned.delta:g}", columns, rows))


def progress_bar(hidden: bool) -> Progress:
    """Time left and epsilon spent so far, on stderr."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("epsilon spent {task.fields[epsilon]:.3g}"),
        console=stderr,
        transient=True,
        disable=hidden,
    )
