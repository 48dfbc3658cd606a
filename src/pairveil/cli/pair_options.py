"""Options that every command reading pairs or features shares, and the reading itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

LayoutName = Literal["auto", "table", "splink", "dedupe", "lfw", "voxceleb", "links"]
ZeroMeaning = Literal["similar", "dissimilar"]

PairsFile = Annotated[
    Path, typer.Argument(help="Labelled pairs, CSV or Parquet.", show_default=False)
]
FeaturesFile = Annotated[
    Path, typer.Argument(help="People's features, CSV or Parquet.", show_default=False)
]
Left = Annotated[str, typer.Option("--left", help="Column with the first person's id.")]
Right = Annotated[str, typer.Option("--right", help="Column with the second person's id.")]
Label = Annotated[str, typer.Option("--label", help="Column with the label.")]
Layout = Annotated[LayoutName, typer.Option("--layout", help="Layout of the pairs file.")]
ZeroMeans = Annotated[
    ZeroMeaning | None,
    typer.Option("--zero-means", help="What a label 0 means, where labels are bare 0 and 1."),
]
IdColumn = Annotated[str, typer.Option("--id", help="Column of FEATURES with the person's id.")]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", help="Column of FEATURES to leave out (repeatable)."),
]


def read_pair_file(
    path: Path,
    left: str,
    right: str,
    label: str | None,
    layout: LayoutName,
    *,
    zero_means: ZeroMeaning | None = None,
    labels_optional: bool = False,
) -> Any:
    """Pairs of a file; ``label=None`` reads the ids alone."""
    from pairveil.pairs.readers import read_pairs

    return read_pairs(
        path,
        left=left,
        right=right,
        label=label,
        zero_means=zero_means,
        layout=layout,
        require_labels=label is not None and not labels_optional,
    )
