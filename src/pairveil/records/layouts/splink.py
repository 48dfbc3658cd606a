"""Splink's clerical labels: a table of two ids and a score."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from pairveil.errors import InputError
from pairveil.records.columns import IdColumn, ids_as_text, number_array
from pairveil.records.files import TableSource, open_table
from pairveil.records.layouts.base import How, Look
from pairveil.records.tables import PairTable
from pairveil.records.validation import name_rows

LOOKS = "`unique_id_l, unique_id_r, clerical_match_score`"
NOTE = "similar from `threshold=0.5` on; with several source datasets ids are `dataset-__-id`"
COLUMNS = ("unique_id_l", "unique_id_r", "clerical_match_score")
SETS = ("source_dataset_l", "source_dataset_r")


def looks_like(look: Look) -> bool:
    """Its columns are there; a table that has the columns of a plain one is plain."""
    names = look.columns
    if names is None or (look.left in names and look.right in names):
        return False
    return all(column in names for column in COLUMNS)


def read(source: Any, how: How) -> PairTable:
    """Clerical labels; usual names of columns stand for Splink's own."""
    table = open_table(source)
    usual = dict(zip(("left", "right", "label"), COLUMNS, strict=True))
    label = None if how.label is None else usual.get(how.label, how.label)
    if not how.require_labels and label not in table.names:
        label = None
    left, right = usual.get(how.left, how.left), usual.get(how.right, how.right)
    return read_splink(table, left, right, label, how.threshold)


def read_splink(
    table: TableSource, left: str, right: str, score: str | None, threshold: float = 0.5
) -> PairTable:
    """Splink's clerical labels: two ids and a score; a score of at least ``threshold`` is similar.

    Where the file speaks of more than one source dataset, an id is unique only within its own: ids
    then become ``dataset-__-id``, as Splink itself writes them.

    Parameters
    ----------
    left, right : str
        The id columns.
    score : str or None
        The score column; None reads no labels.
    threshold : float
        Splink's own default is 0.5.

    Examples
    --------
    >>> from pairveil.records.files import open_table
    >>> labels = open_table({"unique_id_l": [1, 1], "unique_id_r": [2, 3],
    ...                      "clerical_match_score": [0.9, 0.1]})
    >>> read_splink(labels, "unique_id_l", "unique_id_r", "clerical_match_score").labels
    array([ 1, -1], dtype=int8)
    """
    if not (math.isfinite(threshold) and 0 < threshold <= 1):
        raise InputError("threshold must be above 0 and at most 1")
    table.require(
        [left, right, *([score] if score else [])], "Name them with left=, right= and label="
    )
    with_sets = all(column in table.names for column in SETS)
    id_columns = [left, right, *(SETS if with_sets else ())]
    columns = {name: IdColumn(f"column '{name}'") for name in id_columns}
    labels: list[np.ndarray] = []
    n_rows = 0
    wanted: dict[str, Any] = dict.fromkeys(id_columns, "text")
    if score:
        wanted[score] = "number"
    for batch in table.batches(wanted):
        for name, column in columns.items():
            column.add(batch.column(name))
        if score:
            labels.append(_splink_labels(batch.column(score), score, threshold, n_rows))
        n_rows += batch.num_rows
    ids = {name: column.finish() for name, column in columns.items()}
    notes: tuple[str, ...] = (f"Scores of at least {threshold:g} are similar",) if score else ()
    if with_sets and len(np.unique(np.concatenate([ids[name] for name in SETS]))) > 1:
        for name, source in zip((left, right), SETS, strict=True):
            ids[name] = ids_as_text(ids[source]) + "-__-" + ids_as_text(ids[name])
        notes += ("There are several source datasets, so ids were read as dataset-__-id",)
    return PairTable(ids[left], ids[right], np.concatenate(labels) if labels else None, notes=notes)


def _splink_labels(values: pa.Array, name: str, threshold: float, first_row: int) -> np.ndarray:
    try:
        scores = number_array(values, f"column '{name}'", first_row)
    except InputError:
        raise InputError(f"column '{name}' has a score that is missing or not a number") from None
    bad = np.flatnonzero(~((scores >= 0) & (scores <= 1)))
    if bad.size:
        raise InputError(
            f"column '{name}': a score is between 0 and 1; not so in "
            f"{name_rows(bad + 1 + first_row)}"
        )
    return np.where(scores >= threshold, 1, -1).astype(np.int8)
