"""`plan`: what each epsilon, unit and selection would buy, before anything is spent."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from pairveil.cli.choices import DEFAULT_LEARNER_NAME, LearnerName
from pairveil.cli.output import JsonFlag, QuietFlag, print_json, spoken_warnings, stdout, table
from pairveil.cli.pair_options import (
    PANEL,
    Columns,
    Exclude,
    FeaturesFile,
    IdColumn,
    PairOptions,
    SchemaFile,
    Together,
)
from pairveil.cli.reading import Columns as ColumnsUsed
from pairveil.cli.reading import (
    Scaling,
    Source,
    marked_classes,
    read_column,
    read_rows,
    read_training,
)
from pairveil.cli.which_learner import (
    check_options,
    input_of,
    make_learner,
    refuse_together,
    typed_options,
)
from pairveil.errors import InputError


def plan(
    context: typer.Context,
    features: FeaturesFile,
    pairs: Annotated[
        Path | None,
        typer.Argument(
            help="Pairs of people, or tuples for --learner triplet or tuplet; none with --classes.",
            metavar="[PAIRS]",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option("--epsilon", help="Plan for this one (repeatable). [default: 0.3 to 8]"),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="Must be well below 1 / pairs.")] = 1e-5,
    learner: Annotated[
        LearnerName, typer.Option("--learner", help="Which learner.")
    ] = DEFAULT_LEARNER_NAME,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            help="Plan a fit to people with classes: the column of FEATURES that holds them, by default the "
            "schema's.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    class_list: Annotated[
        str | None,
        typer.Option(
            "--class-list",
            help="The public list of classes, as a,b,c. [default: the schema's]",
            rich_help_panel=PANEL,
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            help="Plan for groups as records: column of PAIRS that names them; with --classes their size, or "
            "a column of FEATURES.",
            rich_help_panel=PANEL,
        ),
    ] = None,
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

    Counts people, columns and records and looks at who is paired with whom. Labels, classes and features
    change nothing here, so the choice may follow this table freely.

    Example: `pairveil plan people.csv pairs.csv --schema schema.toml`

    Example: `pairveil plan people.csv pairs.csv --epsilon 1 --epsilon 2 --json`

    Example: `pairveil plan people.csv --schema schema.toml --classes diagnosis --class-list benign,malignant`

    Example: `pairveil plan people.csv triples.csv --schema schema.toml --learner triplet`
    """
    classes, public = marked_classes(schema if pairs is None else None, classes, class_list)
    paths = str(features), None if pairs is None else str(pairs)
    kind = input_of(str(learner), paths[1], classes)
    check_options(kind, groups is not None, typed_options(context))
    refuse_together(together, kind if groups is None else "groups")
    of = Source(*paths, kind, classes, public, groups, together)
    used = ColumnsUsed(id_, columns, exclude, reading.merge_similar_ids)
    with spoken_warnings(quiet):
        if kind == "pairs" and groups is None:
            seen, title = _of_pairs(of, str(learner), used, schema, reading, epsilon, delta)
        else:
            seen, title = _of_others(of, str(learner), used, schema, reading, epsilon, delta)
    if json_:
        print_json(seen.to_dict())
    elif not quiet:
        _print(seen, title, everything)
        typed = _columns_said(id_, columns, exclude) + (reading.said() if kind == "pairs" else "")
        _print_command(of, seen.recommended, str(learner), schema, class_list, delta, typed)


def _of_pairs(
    of: Source,
    learner: str,
    columns: ColumnsUsed,
    schema: Path | None,
    reading: PairOptions,
    epsilons: list[float] | None,
    delta: float,
) -> tuple[Any, str]:
    """Lines for every selection of pairs; labels are not needed."""
    from pairveil.records.pairset import PairSet

    if learner != str(DEFAULT_LEARNER_NAME):
        raise InputError(
            f"selections of pairs are planned for learner '{DEFAULT_LEARNER_NAME}'; what one fit of another "
            f"spends: pairveil fit --learner {learner} --dry-run"
        )
    apart = () if of.together is None else (of.together,)
    people = read_rows(Path(of.features), columns, schema, apart)[0]
    shared = None
    if of.together is not None:
        shared = read_column(of.features, of.together, "--together")
    found = reading.read(Path(str(of.pairs)), labels_optional=True)
    data = PairSet.join(people, found, together=shared)
    from pairveil.learners.outlook import EPSILONS, outlook

    title = (
        f"{data.n_pairs:,} pairs, a table of {data.n_people:,} people, {data.n_features} columns"
    )
    return outlook(data, tuple(epsilons or EPSILONS), delta=delta), title


def _of_others(
    of: Source,
    learner: str,
    columns: ColumnsUsed,
    schema: Path | None,
    reading: PairOptions,
    epsilons: list[float] | None,
    delta: float,
) -> tuple[Any, str]:
    """Lines for people with classes, groups or tuples, read as `fit` reads them."""
    if of.kind == "classes" and of.public is None:
        raise InputError(
            "a plan may not tell which classes there are: give the public list, --class-list a,b,c"
        )
    scaling = Scaling(schema, None, schema is None)
    training = read_training(of, columns, scaling, 1.0, reading)
    from pairveil.learners.outlook import EPSILONS, outlook_of

    model = make_learner(learner, {"delta": delta}, {"delta"})
    seen = outlook_of(training.prepare, model, tuple(epsilons or EPSILONS))
    counted = sorted({(row.n_records, row.records) for row in seen.rows})
    records = " or ".join(f"{n:,} {what}" for n, what in counted)
    return seen, f"{records}, {len(training.scale)} columns"


def _print(seen: Any, title: str, everything: bool) -> None:
    from pairveil.learners.outlook import cells, headings

    shown = [r for r in seen.rows if everything or r.select == seen.recommended.select]
    stdout.print(table(title, headings(shown[0]), [cells(row) for row in shown]))
    stdout.print(
        "gain: what eight in ten such fits kept of what learning without privacy gains over plain "
        "distance. guess: how often, at most, anyone tells two contents of the unit apart; a coin is "
        "right 50 times in 100. person: epsilon of the same fit for all that is known of a person."
    )
    stdout.print(f"[bold]Recommended:[/bold] {seen.why}")


def _print_command(
    of: Source,
    row: Any,
    learner: str,
    schema: Path | None,
    class_list: str | None,
    delta: float,
    typed: str,
) -> None:
    """The command that makes the recommended fit; ``typed`` says how the tables are read."""
    said = {
        "--schema": schema,
        "--learner": learner if learner != str(DEFAULT_LEARNER_NAME) else None,
        "--classes": of.classes,
        "--class-list": class_list,
        "--groups": of.groups,
        "--epsilon": f"{row.epsilon:g}",
        "--delta": f"{delta:g}",
        "--unit": row.unit,
        "--select": row.select if of.kind == "pairs" and of.groups is None else None,
        "--together": of.together,
        "--out": "release",
    }
    files = shlex.join([of.features] if of.pairs is None else [of.features, of.pairs])
    given = {name: shlex.quote(str(value)) for name, value in said.items() if value is not None}
    options = " ".join(f"{name} {value}" for name, value in given.items())
    if schema is None:  # `fit` refuses to guess
        stdout.print(
            "Add what brings the columns to scale: --schema FILE, --bounds FILE, or --no-scale."
        )
    stdout.print(f"pairveil fit {files}{typed} {options}")


def _columns_said(id_: str, columns: list[str] | None, exclude: list[str] | None) -> str:
    """Which columns of the features were asked for, as it is typed."""
    words = "" if id_ == "id" else f" --id {shlex.quote(id_)}"
    for option, named in (("--columns", columns), ("--exclude", exclude)):
        words += "".join(f" {option} {shlex.quote(one)}" for one in named or ())
    return words
