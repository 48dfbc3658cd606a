"""read_features and read_pairs: the two doors by which data come in.

Both read a batch at a time into arrays; no Python object is made per row of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # as in `validation`

from pairveil.errors import InputError
from pairveil.foreign import taking_apart
from pairveil.records.arrays import is_array_file, read_array_column, read_array_file
from pairveil.records.columns import IdColumn, number_array
from pairveil.records.files import ColumnKind, TableSource, open_table, require_file
from pairveil.records.labels import Meaning
from pairveil.records.layouts import LAYOUTS, layout_named, sniff_layout
from pairveil.records.layouts.base import How
from pairveil.records.raw_tables import read_raw_features
from pairveil.records.similar_ids import folded_ids, say_similar
from pairveil.records.tables import FeatureTable, PairTable
from pairveil.schema.schema import Schema


def read_features(
    source: Any,
    id: str = "id",
    columns: Sequence[str] | None = None,
    exclude: Iterable[str] = (),
    merge_similar_ids: bool = False,
    schema: Schema | None = None,
) -> FeatureTable:
    """Read people's features.

    Parameters
    ----------
    source : path, DataFrame or array
        A CSV, TSV or Parquet file; a pandas, polars or arrow table; a NumPy ``.npy`` (n, d) or
        ``.npz`` file (``X`` and, if there, ``ids``); a scipy sparse ``.npz`` file; an (n, d) array
        or sparse matrix. Arrays without ids number the people from 0.
    id : str
        The column of ids.
    columns : sequence of str, optional
        The feature columns, in this order. By default every column but ``id`` and ``exclude``.
    exclude : iterable of str
        Columns to leave out (names, dates, classes).
    merge_similar_ids : bool
        Ids lose case, outer spaces and Unicode's compatibility forms: 'ann', 'ann ' and 'ANN' are one.
        Two rows of one person are refused: which features are hers is not ours to choose.
    schema : Schema, optional
        Public facts of raw columns (`pairveil.read_schema`), by which they become numbers in [0, 1].

    Returns
    -------
    FeatureTable

    Raises
    ------
    InputError
        See the guide 'Data formats' for each case.

    Examples
    --------
    >>> table = {"id": ["ann", "bob"], "age": [0.2, 0.7], "ward": ["a", "b"]}
    >>> read_features(table, exclude=["ward"]).names
    ('age',)
    """
    left_out = {exclude} if isinstance(exclude, str) else set(exclude)
    if scipy.sparse.issparse(source) or isinstance(source, np.ndarray):
        if schema is not None:
            raise InputError("a schema needs a table with column names, not an array")
        return FeatureTable(np.arange(source.shape[0] if source.ndim else 0), source)
    with _reading(source):
        if schema is not None:
            people = read_raw_features(source, id, schema, columns, left_out)
        elif isinstance(source, str | Path) and is_array_file(Path(source)):
            people = read_array_file(require_file(source))
        else:
            people = _read_feature_table(source, id, columns, left_out)
    if merge_similar_ids:
        return replace(people, ids=folded_ids(people.ids))
    say_similar("the features", people.ids)
    return people


def _reading(source: Any) -> AbstractContextManager[None]:
    """A guard around the reading of a file; a table in memory is the caller's own."""
    return taking_apart(Path(source).name) if isinstance(source, str | Path) else nullcontext()


def _read_feature_table(
    source: Any, id: str, columns: Sequence[str] | None, left_out: set[str]
) -> FeatureTable:
    table = open_table(source)
    asked = None if columns is None else list(columns)
    table.require([id, *(asked or ()), *sorted(left_out)], "Name the id column with id=")
    names = [name for name in asked or table.names if name not in {id, *left_out}]
    if asked is not None and (names != asked or len(set(asked)) != len(asked)):
        raise InputError("columns must name each feature column once, and none that is left out")
    if not names:
        raise InputError(f"{table.title} has no feature columns beside '{id}'")
    ids, values = _read_matrix(table, id, names)
    return FeatureTable(ids, values, tuple(names))


def _read_matrix(table: TableSource, id: str, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    ids = IdColumn(f"column '{id}'")
    blocks: list[np.ndarray] = []
    n_rows = 0
    wanted: dict[str, ColumnKind] = {id: "text", **dict.fromkeys(names, "number")}
    for batch in table.batches(wanted):
        ids.add(batch.column(0))
        arrays = [
            number_array(batch.column(1 + at), f"column '{name}'", n_rows)
            for at, name in enumerate(names)
        ]
        blocks.append(np.column_stack(arrays))
        n_rows += batch.num_rows
    if not n_rows:
        raise InputError(f"{table.title} has no rows")
    return ids.finish(), np.concatenate(blocks)


def read_classes(source: Any, column: str) -> np.ndarray:
    """The class of each person, in row order, to evaluate a metric with.

    Parameters
    ----------
    source : path or DataFrame
        As for `read_features`; for ``.npz`` the name of an array in it (``y``).

    Returns integers, or text.

    Examples
    --------
    >>> read_classes({"id": [1, 2], "ward": ["a", "b"]}, "ward")
    array(['a', 'b'], dtype=object)
    """
    if isinstance(source, str | Path) and is_array_file(Path(source)):
        return read_array_column(require_file(source), column)
    table = open_table(source)
    table.require([column], "Name one of these")
    values = IdColumn(f"column '{column}'")
    for batch in table.batches({column: "text"}):
        values.add(batch.column(0))
    return values.finish()


def read_pairs(
    source: Any,
    left: str = "left",
    right: str = "right",
    label: str | None = "label",
    zero_means: Meaning | None = None,
    layout: str = "auto",
    threshold: float = 0.5,
    record_id: str = "id",
    require_labels: bool = True,
    merge_similar_ids: bool = False,
) -> PairTable:
    """Read pairs of ids and their labels.

    Parameters
    ----------
    source : path, DataFrame or mapping
        A CSV, TSV or Parquet file, a pandas, polars or arrow table, or one of the layouts.
    left, right : str
        The two id columns.
    label : str or None
        The label column. None reads no labels, whatever the layout: enough for `kappa` and
        `select_pairs`, which must not look at them.
    zero_means : {'similar', 'dissimilar'}, optional
        What a label of 0 (false, no) stands for; without it bare 0/1 is refused.
    layout : str
        How the pairs are written, a name of `pairveil.records.layouts.LAYOUTS`; 'auto' tells by suffix,
        columns and first line.
    threshold : float
        Splink only: the score from which a pair is similar.
    record_id : str
        dedupe only: the field of a record that holds the person's id.
    require_labels : bool
        False: a table without the label column is read without labels instead of being refused.
    merge_similar_ids : bool
        Ids lose case, outer spaces and Unicode's compatibility forms: 'ann', 'ann ' and 'ANN' are one.
        Say the same to `read_features`.

    Returns
    -------
    PairTable

    Raises
    ------
    InputError
        See the guide 'Data formats' for each case.

    Examples
    --------
    >>> listed = {"left": [1, 1], "right": [2, 3], "label": ["same", "different"]}
    >>> read_pairs(listed).labels
    array([ 1, -1], dtype=int8)
    """
    if layout not in ("auto", *LAYOUTS):
        raise InputError(f"layout must be auto or one of {', '.join(LAYOUTS)}")
    how = How(left, right, label, zero_means, threshold, record_id, require_labels)
    with _reading(source):
        found = sniff_layout(source, left, right) if layout == "auto" else layout
        table = layout_named(found).read(source, how)
    if merge_similar_ids:
        return replace(table, left=folded_ids(table.left), right=folded_ids(table.right))
    say_similar("the pairs", table.left, table.right)
    return table
