"""What the readers return, people with features and pairs of their ids; and tables written to files.

Nothing here prints a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pairveil.errors import InputError
from pairveil.files import file_draft
from pairveil.printable import FORMULA, as_cell, many
from pairveil.records.columns import as_ids, numbered, same_kind
from pairveil.records.validation import check_features, check_labels, name_rows


@dataclass(frozen=True, eq=False)
class Problem:
    """One kind of problem of a table: in which rows, never with which values."""

    table: str  # {'people', 'pairs'}
    kind: str  # 'repeated id', 'self-pair', 'unknown id', 'label', 'cell' or 'spaces'
    rows: np.ndarray  # row numbers as messages name them; of cells the first thousand
    column: str = ""  # where it is about one column
    said: str = ""  # A sentence of its own
    n_cells: int = 0  # how many cells, where ``rows`` are the first of them only

    @property
    def count(self) -> int:
        """How many rows or cells."""
        return self.n_cells or len(self.rows)


@dataclass(frozen=True, eq=False, repr=False)
class FeatureTable:
    """People: an id and a row of numbers each.

    Parameters
    ----------
    ids : array of shape (n,)
        Integers or text, each once.
    values : ndarray or scipy sparse matrix of shape (n, d)
        Finite numbers. float32 and float64 are kept, anything else becomes float64.
    names : sequence of str, optional
        The columns.
    rows : array of shape (n,), optional
        The row number of each in its file, where some were left out.
    left_out : array, optional
        The ids that were left out, once for each row.
    problems : tuple of Problem
        What the reader found: repeated ids, cells that cannot be read.

    Examples
    --------
    >>> FeatureTable(ids=["ann", "bob"], values=[[0.1, 0.2], [0.3, 0.4]], names=["age", "dose"])
    FeatureTable(2 people, 2 features)
    """

    ids: np.ndarray
    values: Any
    names: tuple[str, ...] | None = None
    rows: np.ndarray | None = None
    left_out: np.ndarray | None = None
    problems: tuple[Problem, ...] = ()

    def __post_init__(self) -> None:
        names = None if self.names is None else tuple(str(name) for name in self.names)
        values = check_features(self.values, names)
        ids = as_ids(self.ids)
        if len(ids) != values.shape[0]:
            raise InputError(f"{len(ids)} ids for {values.shape[0]} rows of features")
        refuse_repeated(ids)
        for field, value in (("ids", ids), ("values", values), ("names", names)):
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"FeatureTable({self.n_people} people, {self.n_features} features)"

    @property
    def n_people(self) -> int:
        """Rows."""
        return int(self.values.shape[0])

    @property
    def n_features(self) -> int:
        """Columns."""
        return int(self.values.shape[1])


@dataclass(frozen=True, eq=False, repr=False)
class PairTable:
    """Pairs of ids, as a file lists them: not yet joined, duplicates still there.

    Parameters
    ----------
    left, right : array of shape (K,)
        The two people's ids, integers or text.
    labels : array of shape (K,), optional
        +1 similar, -1 dissimilar.
    rows : array of shape (K,), optional
        The row numbers that messages name: data rows counted from 1, and for line-based layouts
        (LFW, VoxCeleb, links) the line of the file.
    notes : tuple of str
        What the reader decided and a person should know.
    null : boolean array of shape (K,), optional
        Rows whose label could not be read; it is 0 there, and the pair contributes nothing.

    Examples
    --------
    >>> PairTable(left=["ann", "ann"], right=["bob", "cid"], labels=[1, -1])
    PairTable(2 pairs, labelled)
    """

    left: np.ndarray
    right: np.ndarray
    labels: np.ndarray | None = None
    rows: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    null: np.ndarray | None = None

    def __post_init__(self) -> None:
        left, right = same_kind(as_ids(self.left, "left"), as_ids(self.right, "right"))
        if len(left) == 0:
            raise InputError("there are no pairs")
        if len(left) != len(right):
            raise InputError(f"{len(left)} left ids but {len(right)} right ids")
        rows = np.arange(1, len(left) + 1) if self.rows is None else np.asarray(self.rows)
        if rows.shape != left.shape:
            raise InputError(f"{len(rows)} row numbers for {len(left)} pairs")
        labels = self.labels
        if labels is not None:
            known = labels if self.null is None else np.where(self.null, 1, labels)
            labels = check_labels(known, len(left), rows)
            labels = labels if self.null is None else np.where(self.null, 0, labels).astype(np.int8)
        fields = {"left": left, "right": right, "rows": rows, "labels": labels}
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"PairTable({self.n_pairs} pairs, {'un' if self.labels is None else ''}labelled)"

    @property
    def n_pairs(self) -> int:
        """Rows."""
        return len(self.left)

    def subset(self, chosen: np.ndarray) -> PairTable:
        """Some of the rows, under their own row numbers."""
        parts = {name: getattr(self, name) for name in ("left", "right", "labels", "rows", "null")}
        some: dict[str, Any] = {
            name: part[chosen] for name, part in parts.items() if part is not None
        }
        return replace(self, **some)


def repeated_rows(ids: np.ndarray) -> np.ndarray:
    """Positions of ids that stood before."""
    if len(numbered(ids)[0]) == len(ids):
        return np.empty(0, dtype=np.int64)
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    return np.flatnonzero(first[inverse] != np.arange(len(ids)))


def repeated_ids(rows: np.ndarray) -> str:
    """Which rows of people repeat an id, in words."""
    said = many(len(rows), "row of the features repeats", "rows of the features repeat")
    return f"{said} an id that another row has: {name_rows(rows)}"


def refuse_repeated(ids: np.ndarray) -> None:
    """Raise InputError, with row numbers, if two people have one id."""
    again = repeated_rows(ids)
    if again.size:
        raise InputError(f"{repeated_ids(again + 1)}. One row a person")


def write_columns(path: str | Path, columns: Mapping[str, np.ndarray]) -> Path:
    """Write equally long columns as CSV or Parquet, by the file's ending.

    In CSV, text that a spreadsheet would run as a formula gets an apostrophe in front, which our own readers
    take off again (`pairveil.printable`).
    """
    import pyarrow.csv
    import pyarrow.parquet  # slow to import, and readers do not need them here

    target = Path(path)
    if target.suffix not in (".csv", ".parquet"):
        raise InputError(f"{target}: the output's name must end in .csv or .parquet")
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file")
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    target.parent.mkdir(parents=True, exist_ok=True)
    with file_draft(target) as draft:
        if target.suffix == ".csv":
            pyarrow.csv.write_csv(_without_formulas(table), str(draft))
        else:
            pyarrow.parquet.write_table(table, str(draft))
    return target


def _without_formulas(table: Any) -> Any:
    columns = [
        pc.replace_substring_regex(column, f"({FORMULA})", r"'\1")
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=[as_cell(name) for name in table.column_names])
