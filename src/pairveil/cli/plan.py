"""`plan`: what each epsilon, unit and selection would buy, before anything is spent."""

from __future__ import annotations

from typing import Annotated

import typer

from pairveil.cli.output import JsonFlag, QuietFlag, print_json, spoken_warnings, stdout, table
from pairveil.cli.pair_options import (
    Columns,
    Exclude,
    FeaturesFile,
    IdColumn,
    PairOptions,
    PairsFile,
    SchemaFile,
    Together,
)
from pairveil.cli.training import Columns as ColumnsUsed
from pairveil.cli.training import read_column, read_rows


def plan(
    features: FeaturesFile,
    pairs: PairsFile,
    epsilon: Annotated[
        list[float] | None,
        typer.Option("--epsilon", help="Plan for this one (repeatable). [default: 0.3 to 8]"),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="Must be well below 1 / pairs.")] = 1e-5,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Print every line, not those of the recommended selection."),
    ] = False,
    schema: SchemaFile = None,
    id_: IdColumn = "id",
    columns: Columns = None,
    exclude: Exclude = None,
    reading: PairOptions = PairOptions(),
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
        used = ColumnsUsed(id_, columns, exclude, reading.merge_similar_ids)
        people = read_rows(features, used, schema, () if together is None else (together,))[0]
        shared = None if together is None else read_column(features, together, "--together")
        found = reading.read(pairs, labels_optional=True)
        data = PairSet.join(people, found, together=shared)
    from pairveil.learners.outlook import EPSILONS, HEADINGS, cells, outlook

    seen = outlook(data, tuple(epsilon) if epsilon else EPSILONS, delta=delta)
    if json_:
        print_json(seen.to_dict())
    elif not quiet:
        shown = [r for r in seen.rows if everything or r.select == seen.recommended.select]
        title = f"{data.n_pairs:,} pairs, a table of {data.n_people:,} people, {data.n_features} columns"
        stdout.print(table(title, HEADINGS, [cells(row) for row in shown]))
        stdout.print(
            "gain: what eight in ten such fits kept of what learning without privacy gains over plain "
            "distance. guess: how often, at most, anyone tells two contents of the unit apart; a coin is "
            "right 50 times in 100. person: epsilon of the same fit for all that is known of a person."
        )
        stdout.print(f"[bold]Recommended:[/bold] {seen.why}")
        chosen = seen.recommended
        stdout.print(
            f"pairveil fit {features} {pairs}{_said('--schema', schema)}{reading.said()} "
            f"--epsilon {chosen.epsilon:g} "
            f"--delta {delta:g} --unit {chosen.unit} --select {chosen.select}"
            f"{_said('--together', together)} --out release"
        )


def _said(option: str, value: object | None) -> str:
    return "" if value is None else f" {option} {value}"
