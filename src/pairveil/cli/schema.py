"""`schema`: a template of public facts about the columns, to be completed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairveil.cli.output import JsonFlag, QuietFlag, print_json, stdout, table
from pairveil.cli.pair_options import FeaturesFile, IdColumn
from pairveil.errors import InputError

WHAT_IS_LEFT = {
    "number": "bounds",
    "date": "bounds",
    "category": "categories",
    "class": "list of classes",
    "id": "nothing",
    "skip": "nothing",
}


def schema(
    features: FeaturesFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, .toml.")] = Path(
        "schema.toml"
    ),
    id_: IdColumn = "id",
    classes: Annotated[
        str | None, typer.Option("--classes", help="Column with each person's class: no feature.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier file.")
    ] = False,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Write a template of public facts about the columns, for you to complete by hand.

    It names each column and guesses its type. Bounds, categories and fill values are left blank: they must
    come from public knowledge, not from the table, whose extremes are somebody's.

    Example: `pairveil schema people.csv -o schema.toml`

    Example: `pairveil schema people.csv --id patient --classes diagnosis -o schema.toml`
    """
    from pairveil.files import file_draft
    from pairveil.records.files import decimal_mark
    from pairveil.records.guesses import guess_types
    from pairveil.schema.toml import template

    if out.suffix.lower() != ".toml":
        raise InputError(f"{out}: the schema's name must end in .toml")
    if out.exists() and not overwrite:
        raise InputError(
            f"{out} is there already, and may be filled in: say --overwrite to lose it"
        )
    types = guess_types(features, id_, classes)
    text = template(types, Path(features).name, decimal_mark(features))
    with file_draft(out) as draft:
        draft.write_text(text, encoding="utf-8")
    if json_:
        columns = [{"name": name, "type": guess.type} for name, guess in types.items()]
        print_json({"out": str(out), "columns": columns})
    elif not quiet:
        rows = [
            [name, f"{guess.type} {guess.format}", WHAT_IS_LEFT[guess.type]]
            for name, guess in types.items()
        ]
        stdout.print(table(f"{len(types)} columns", ["column", "type", "to fill in"], rows))
        stdout.print(
            f"Complete {out} from public knowledge (open it in a text editor), then: "
            f"pairveil plan {features} PAIRS --schema {out}"
        )
