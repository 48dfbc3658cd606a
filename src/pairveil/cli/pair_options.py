"""Options that every command reading pairs or features shares, and the reading itself."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairveil._warn import warn
from pairveil.cli.choices import AUTO_LAYOUT, LayoutName
from pairveil.errors import DataWarning

PANEL = "Your files"


def _option(name: str, text: str) -> Any:
    return typer.Option(name, help=text, rich_help_panel=PANEL)


PairsFile = Annotated[
    Path,
    typer.Argument(help="Pairs of people: CSV, Parquet or another tool's file.", metavar="PAIRS"),
]
FeaturesFile = Annotated[
    Path, typer.Argument(help="People's features: CSV or Parquet, a row each.", metavar="FEATURES")
]
FeaturesPath = Annotated[
    str, typer.Argument(help="People's features: CSV or Parquet, a row each.", metavar="FEATURES")
]
IdColumn = Annotated[str, _option("--id", "Column of FEATURES with the person's id.")]
Exclude = Annotated[
    list[str] | None, _option("--exclude", "Columns of FEATURES to leave out: a,b (repeatable).")
]
Columns = Annotated[
    list[str] | None,
    _option("--columns", "Columns of FEATURES to use, and no others: a,b (repeatable)."),
]
SchemaFile = Annotated[
    Path | None,
    _option("--schema", "Public facts of raw columns, as `pairveil schema` writes them down."),
]


Together = Annotated[
    str | None,
    _option(
        "--together",
        "Public column of FEATURES (household, site): who shares a value counts as one person.",
    ),
]

ZeroMeans = Annotated[
    Literal["similar", "dissimilar"] | None,
    _option(
        "--zero-means",
        "What a label 0, false or no means: labels of 0 and 1 or yes and no need it.",
    ),
]


def listed(names: list[str] | None) -> list[str] | None:
    """Names of columns, which one option may hold several of; a comma in a name is doubled.

    Examples
    --------
    >>> listed(["age,dose", "ward"]), listed(["a,,b"]), listed(None)
    (['age', 'dose', 'ward'], ['a,b'], None)
    """
    if not names:
        return None
    parts = [part for text in names for part in text.replace(",,", "\0").split(",")]
    return [part.replace("\0", ",").strip() for part in parts if part.strip()]


@dataclass(frozen=True)
class GraphOptions:
    """Where a file says who is paired with whom."""

    left: Annotated[str, _option("--left", "Column with the first person's id.")] = "left"
    right: Annotated[str, _option("--right", "Column with the second person's id.")] = "right"
    layout: Annotated[LayoutName, _option("--layout", "Layout of the pairs file.")] = AUTO_LAYOUT
    record_id: Annotated[str, _option("--record-id", "dedupe: field of a record with the id.")] = (
        "id"
    )
    merge_similar_ids: Annotated[
        bool,
        _option(
            "--merge-similar-ids",
            "Ids that differ only in case, outer spaces or Unicode form are one.",
        ),
    ] = False

    def read(self, path: Path, *, labels_optional: bool = False) -> Any:
        """Pairs of a file by these options, with labels where they name them; notes become warnings."""
        from pairveil.records.readers import read_pairs

        options = {"label": None, **vars(self), "layout": str(self.layout)}
        wants_labels = options["label"] is not None and not labels_optional
        found = read_pairs(path, require_labels=wants_labels, **options)
        for note in found.notes:
            warn(note, DataWarning)
        return found


@dataclass(frozen=True)
class PairOptions(GraphOptions):
    """Where a file says who is paired with whom, and what their labels mean."""

    label: Annotated[str, _option("--label", "Column with the label.")] = "label"
    zero_means: ZeroMeans = None
    threshold: Annotated[
        float, _option("--threshold", "Splink: the score from which a pair is similar.")
    ] = 0.5

    def said(self) -> str:
        """The options that differ from the defaults, as they are typed.

        Examples
        --------
        >>> PairOptions(left="a", merge_similar_ids=True).said()
        ' --left a --merge-similar-ids'
        """
        words = ""
        for field in fields(self):
            value, option = getattr(self, field.name), f" --{field.name.replace('_', '-')}"
            if value != field.default:
                words += option if value is True else f"{option} {shlex.quote(str(value))}"
        return words
