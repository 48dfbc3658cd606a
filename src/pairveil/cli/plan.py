"""`plan`: what each epsilon, unit and selection would buy, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from pairveil.cli.output import JsonFlag, QuietFlag, print_json, spoken_warnings, stdout, table
from pairveil.cli.pair_options import (
    AUTO_LAYOUT,
    Columns,
    Exclude,
    FeaturesFile,
    IdColumn,
    Label,
    Layout,
    Left,
    MergeSimilarIds,
    PairsFile,
    RecordId,
    Right,
    SchemaFile,
    Threshold,
    Together,
    ZeroMeans,
    read_pair_file,
)
from pairveil.cli.training import Columns as ColumnsUsed
from pairveil.cli.training import read_column, read_rows


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("plan")(plan)


def plan(
    features: FeaturesFile,
    pairs: PairsFile,
    epsilon: Annotated[
        list[float] | None,
        typer.Option("--epsilon", help="Plan for this one (repeatable). [default: 0.3 to 8]"),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="Must be well below 1 / pairs.")] = 1e-5,
    everything: Annotated[
        bool, typer.Option("--all", help="Print every line, not the best selection of each.")
    ] = False,
    schema: SchemaFile = None,
    id_: IdColumn = "id",
    columns: Columns = None,
    exclude: Exclude = None,
    left: Left = "left",
    right: Right = "right",
    label: Label = "label",
    layout: Layout = AUTO_LAYOUT,
    zero_means: ZeroMeans = None,
    threshold: Threshold = 0.5,
    record_id: RecordId = "id",
    merge_similar_ids: MergeSimilarIds = False,
    together: Together = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Say what each epsilon, unit and selection of pairs would buy; spends nothing.

    Counts people, columns and pairs and looks at who is paired with whom. Labels and features change nothing
    here, so the choice may follow this table freely.

    Example: `pairveil plan people.csv pairs.csv --schema schema.toml`

    Example: `pairveil plan people.csv pairs.csv --epsilon 1 --epsilon 2 --json`
    """
    from pairveil.data.pairset import PairSet

    with spoken_warnings(quiet):
        used = ColumnsUsed(id_, columns, exclude, merge_similar_ids)
        people = read_rows(features, used, schema, () if together is None else (together,))[0]
        shared = None if together is None else read_column(features, together, "--together")
        found = read_pair_file(
            pairs, left=left, right=right, label=label, layout=layout, zero_means=zero_means,
            threshold=threshold, record_id=record_id, merge_similar_ids=merge_similar_ids,
            labels_optional=True,
        )  # fmt: skip
        data = PairSet.join(people, found, together=shared)
    from pairveil.learners.outlook import EPSILONS, HEADINGS, cells, outlook

    seen = outlook(data, tuple(epsilon) if epsilon else EPSILONS, delta=delta)
    if json_:
        print_json(seen.to_dict())
    elif not quiet:
        shown = seen.rows if everything else list(_best(seen.rows))
        title = f"{data.n_pairs:,} pairs, a table of {data.n_people:,} people, {data.n_features} columns"
        stdout.print(table(title, HEADINGS, [cells(row) for row in shown]))
        stdout.print(
            "gain: what such fits kept, in benchmarks, of what learning without privacy gains over plain "
            "distance. guess: how often, at most, anyone tells two contents of the unit apart; a coin is "
            "right 50 times in 100. person: epsilon of the same fit for all that is known of a person."
        )
        stdout.print(f"[bold]Recommended:[/bold] {seen.why}")
        chosen = seen.recommended
        stdout.print(
            f"pairveil fit {features} {pairs}{_said('--schema', schema)} --epsilon {chosen.epsilon:g} "
            f"--delta {delta:g} --unit {chosen.unit} --select {chosen.select}"
            f"{_said('--together', together)} --out release"
        )


def _best(rows: Iterable[Any]) -> Iterable[Any]:
    """Of each unit and epsilon, the selection with the loudest signal."""
    best: dict[Any, Any] = {}
    for row in rows:
        key = (row.unit, row.epsilon)
        if key not in best or row.signal > best[key].signal:
            best[key] = row
    return best.values()


def _said(option: str, value: object | None) -> str:
    return "" if value is None else f" {option} {value}"
