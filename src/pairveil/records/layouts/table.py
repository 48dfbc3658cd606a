"""A plain table: two columns of ids, one of labels."""

from __future__ import annotations

from typing import Any

from pairveil.errors import InputError
from pairveil.records.columns import IdColumn
from pairveil.records.files import ColumnKind, TableSource, open_table
from pairveil.records.labels import LabelColumn, Meaning
from pairveil.records.layouts.base import How, Look
from pairveil.records.tables import PairTable

LOOKS = "two columns of ids and one of labels"
NOTE = "`left=`, `right=` and `label=` name them"


def looks_like(look: Look) -> bool:
    """Any table that no other layout claims; missing columns are then named."""
    return look.columns is not None


def read(source: Any, how: How) -> PairTable:
    """The columns that were named."""
    table = open_table(source)
    label = how.label
    if not how.require_labels and label not in table.names:
        label = None
    return _read_pair_table(table, how.left, how.right, label, how.zero_means)


def _read_pair_table(
    table: TableSource, left: str, right: str, label: str | None, zero_means: Meaning | None
) -> PairTable:
    wanted: dict[str, ColumnKind] = {left: "text", right: "text"}
    if label is not None:
        wanted[label] = "text"
    if len(wanted) < (2 if label is None else 3):
        raise InputError("left, right and label must be different columns")
    table.require(list(wanted), "Name them with left=, right= and label=")
    ids = (IdColumn(f"column '{left}'"), IdColumn(f"column '{right}'"))
    labels = None if label is None else LabelColumn(zero_means, label)
    for batch in table.batches(wanted):
        ids[0].add(batch.column(0))
        ids[1].add(batch.column(1))
        if labels is not None:
            labels.add(batch.column(2))
    ends = (ids[0].finish(), ids[1].finish())
    if not len(ends[0]):
        raise InputError(f"{table.title}: there are no pairs")
    return PairTable(*ends, None if labels is None else labels.finish(None))
