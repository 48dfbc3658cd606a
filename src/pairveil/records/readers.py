"""The doors by which data come in: people, pairs, groups, tuples, and numbers of pairs.

All read a batch at a time into arrays; no Python object is made per row of numbers.
For templates and forms it is guessed what the columns of a table hold, from how cells are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pairveil.errors import InputError, PrivateNote, warn
from pairveil.foreign import is_sparse, taking_apart
from pairveil.printable import many, shortened
from pairveil.records.files import TableSource, open_table, require_file
from pairveil.records.identity import folded_ids, look_up, rows_of_ids, say_similar
from pairveil.records.layouts import LAYOUTS, SPLINK, ReadOptions, sniff_layout
from pairveil.records.ondisk import is_array_file, read_array_column, read_array_file
from pairveil.records.tables import (
    CellColumn,
    FeatureTable,
    Meaning,
    PairTable,
    Problem,
    ids_as_text,
    label_shares,
    number_column,
    pair_ids,
    repeated_rows,
    says_labels,
)
from pairveil.records.validation import MOST_LEVELS, name_rows
from pairveil.schema.columns import GAPS, MOST_PLACES, Counts, is_text_type, number_cells
from pairveil.schema.schema import Schema, say_counts

if TYPE_CHECKING:  # they load more than counting pairs needs
    from pairveil.records.groups import GroupSet
    from pairveil.records.tupleset import TupleSet

PAIR_COLUMNS = (("left", "right"), "pairs")
"""By which a file of pairs is known where one of people is wanted."""

Read = tuple[np.ndarray, Any, tuple[str, ...] | None, tuple[Problem, ...]]
"""Ids, values, names of columns, and cells that could not be read."""

# ---- people ------------------------------------------------------------------------------------------


def read_features(
    source: Any,
    id: str = "id",
    columns: Sequence[str] | None = None,
    exclude: Iterable[str] = (),
    merge_similar_ids: bool = False,
    schema: Schema | None = None,
    leave_out: bool = False,
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
    leave_out : bool
        Leave out everybody whose id more than one row has, instead of refusing the table: which of the
        rows is hers is not ours to choose.

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
    if is_sparse(source) or isinstance(source, np.ndarray):
        if schema is not None:
            raise InputError("a schema needs a table with column names, not an array")
        return FeatureTable(np.arange(source.shape[0] if source.ndim else 0), source)
    with _reading(source):
        if schema is not None:
            people = _read_raw(open_table(source), id, schema.only(columns, left_out).check())
        elif isinstance(source, str | Path) and is_array_file(Path(source)):
            array = read_array_file(require_file(source))
            people = (array.ids, array.values, array.names, ())
        else:
            people = _read_numbers(open_table(source), id, columns, left_out)
    return _table_of(people, merge_similar_ids, leave_out)


def read_ids(source: Any, id: str = "id", merge_similar_ids: bool = False) -> FeatureTable:
    """People without their features, to look for what is wrong with ids before columns are described.

    Who is there twice is left out, and listed (`pairveil.records.dirt.sifted`).
    """
    ids = read_classes(source, id)
    return _table_of((ids, np.zeros((len(ids), 1)), None, ()), merge_similar_ids, leave_out=True)


def _table_of(
    people: Read, merge_similar_ids: bool, leave_out: bool, of: str = "people"
) -> FeatureTable:
    ids, values, names, problems = people
    if of != "levels":
        ids = _as_one(merge_similar_ids, "the features", ids)[0]
    again = repeated_rows(ids) if leave_out else ()
    if not len(again):
        return FeatureTable(ids, values, names, problems=problems, of=of)
    # Not np.isin: among texts it compares each with each.
    _, place, times = np.unique(ids, return_inverse=True, return_counts=True)
    once = times[place] == 1
    if not once.any():
        raise InputError("nobody is left: every id is that of more than one row")
    kind = "repeated pair" if of == "levels" else "repeated id"
    repeated = Problem(of, kind, np.asarray(again) + 1)
    kept = (ids[once], values[once], names, np.flatnonzero(once) + 1, ids[~once])
    return FeatureTable(*kept, problems=(*problems, repeated), of=of)


def _as_one(merge_similar_ids: bool, what: str, *columns: np.ndarray) -> Sequence[np.ndarray]:
    """Columns of ids, those that look like one person's made one or counted."""
    if merge_similar_ids:
        return [folded_ids(one) for one in columns]
    say_similar(what, *columns)
    return columns


def _reading(source: Any) -> AbstractContextManager[None]:
    """A guard around the reading of a file; a table in memory is the caller's own."""
    return taking_apart(Path(source).name) if isinstance(source, str | Path) else nullcontext()


def _read_numbers(
    table: TableSource, id: str, columns: Sequence[str] | None, left_out: set[str]
) -> Read:
    asked = None if columns is None else list(columns)
    columns_asked = [id, *(asked or ()), *sorted(left_out)]
    table.require(columns_asked, "Name the id column with id=", PAIR_COLUMNS)
    names = [name for name in asked or table.names if name not in {id, *left_out}]
    if asked is not None and (names != asked or len(set(asked)) != len(asked)):
        raise InputError("columns must name each feature column once, and none that is left out")
    if not names:
        raise InputError(f"{table.title} has no feature columns beside '{id}'")
    cells = {name: number_column(name, table.decimal) for name in names}
    ids, *values = table.read([id], cells)
    found = {name: one.counts for name, one in cells.items()}
    counts = {
        name: one._replace(missing=0, unreadable=one.missing + one.unreadable)
        for name, one in found.items()
    }
    _refuse_words(counts, len(ids))
    return ids, np.column_stack(values), tuple(names), _listed(counts, NO_NUMBER)


NO_NUMBER = "such a person's records stay and contribute nothing"


def _mostly_unreadable(counts: Mapping[str, Counts], n_rows: int) -> list[str]:
    """Columns of which most cells cannot be read: a mistake about the column, decided by no single cell."""
    return [name for name, one in counts.items() if 2 * one.unreadable > n_rows]


def _refuse_words(counts: Mapping[str, Counts], n_rows: int, number: str = "number") -> None:
    """Refuse columns of which most cells are no numbers."""
    if lost := _mostly_unreadable(counts, n_rows):
        mend = "Exclude it, or name the columns to use"
        if number != "number":
            mend = "Take it out of the table, or say how many levels it has"
        raise InputError(
            f"column '{lost[0]}' is not numeric: most of its cells hold no {number}. {mend}"
        )


def _read_raw(table: TableSource, id: str, schema: Schema) -> Read:
    """People whose raw columns become numbers by a schema."""
    raw = schema.raw_names
    if id in raw:
        raise InputError(
            f"the schema makes features of the id column '{id}': give it type = \"id\""
        )
    how_to_name = "Name the id column with id=, and the columns as the schema does"
    table.require([id, *raw], how_to_name, PAIR_COLUMNS)
    columns = {
        one.name: CellColumn(one.name, partial(one.encode, decimal=schema.decimal))
        for one in schema.features
    }
    ids, *blocks = table.read([id], columns)
    counts = {name: one.counts for name, one in columns.items()}
    say_counts(counts)
    _say_misread(counts, schema, len(ids))
    return ids, np.concatenate(blocks, axis=1), schema.feature_names, _listed(counts)


def _listed(
    counts: Mapping[str, Counts], said: str = "the fill value stands in", of: str = "people"
) -> tuple[Problem, ...]:
    """Cells that cannot be read, and what becomes of them."""
    return tuple(
        Problem(of, "cell", np.array(one.where) + 1, name, said, one.unreadable)
        for name, one in counts.items()
        if one.unreadable
    )


def _say_misread(counts: Mapping[str, Counts], schema: Schema, n_rows: int) -> None:
    """Say of which columns most cells cannot be read, or are cut off; none is refused for it.

    A cell is private and stops nothing: of a column of which half cannot be read one more would. How it is
    read was said in public, by the schema.
    """
    if lost := _mostly_unreadable(counts, n_rows):
        other = "," if schema.decimal == "." else "."
        warn(
            f"most cells of {many(len(lost), 'column', 'columns')} cannot be read as the schema says: "
            f"{shortened(lost)}. Check their type, the format of dates, and whether decimals are "
            f"written with '{other}' (decimal = \"{other}\" in the schema)",
            PrivateNote,
        )
    bounded = [one.name for one in schema.features if one.type in ("number", "date")]
    outside = {name: (counts[name].outside, n_rows - counts[name].missing) for name in bounded}
    if cut := [name for name, (cells, of) in outside.items() if 2 * cells > of]:
        warn(
            f"most cells of {shortened(cut)} lie outside the bounds and say nothing any more: is the table "
            "in another unit?",
            PrivateNote,
        )


def read_classes(source: Any, column: str) -> np.ndarray:
    """The class of each person, in row order, to evaluate a metric with."""
    if isinstance(source, str | Path) and is_array_file(Path(source)):
        return read_array_column(require_file(source), column)
    table = open_table(source)
    table.require([column], "Name one of these")
    return table.read([column])[0]


# ---- pairs -------------------------------------------------------------------------------------------


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
    leave_out: bool = False,
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
    leave_out : bool
        Leave out pairs of a person with herself, which `PairSet.join` refuses.

    Returns
    -------
    PairTable
        A pair whose label cannot be read is null: it stays, and contributes nothing. What a label says is
        private, so it neither stops the reading nor takes the pair out of the graph.

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
    how = ReadOptions(left, right, label, zero_means, threshold, record_id, require_labels)
    with _reading(source):
        found = sniff_layout(source, left, right) if layout == "auto" else layout
        table = LAYOUTS[found].read(source, how)
    left_ids, right_ids = _as_one(merge_similar_ids, "the pairs", table.left, table.right)
    table = replace(table, left=left_ids, right=right_ids)
    say_null(table)
    selves = table.left == table.right
    if not (leave_out and selves.any()):
        return table
    if selves.all():
        raise InputError("no pair is left: every one joins a person with herself")
    return table.subset(~selves)


def say_null(table: PairTable) -> None:
    """Tell the operator how many labels could not be read, if any; a private note, as their rows are."""
    if table.null is not None and table.rows is not None:
        rows = table.rows[table.null]
        labels = many(len(rows), "label", "labels")
        most = ". These are most: is this the column of labels?" * (2 * len(rows) > table.n_pairs)
        warn(
            f"{labels} cannot be read ({name_rows(rows)}): such a pair stays in its place and contributes "
            f"nothing{most}",
            PrivateNote,
        )


def read_groups(
    source: Any,
    features: FeatureTable,
    group: str = "group",
    *,
    left: str = "left",
    right: str = "right",
    label: str = "label",
    zero_means: Meaning | None = None,
    merge_similar_ids: bool = False,
) -> GroupSet:
    """Read labelled pairs that are sorted into disjoint groups of people.

    Parameters
    ----------
    source : path, DataFrame or mapping
        A table of pairs: two ids, a label, and a group.
    features : FeatureTable
        The people, as `read_features` gives them.
    group : str
        The column of groups, whole numbers or text; it must be public.
    left, right, label, zero_means, merge_similar_ids
        As for `read_pairs`.

    Returns
    -------
    GroupSet
        Pairs of a group that the file does not list are null.

    Raises
    ------
    InputError
        Somebody is in pairs of two groups; and as for `read_pairs`.

    Examples
    --------
    >>> people = FeatureTable(ids=["ann", "bob", "cid", "dan"], values=np.eye(4))
    >>> read_groups(
    ...     {
    ...         "left": ["ann", "cid"],
    ...         "right": ["bob", "dan"],
    ...         "label": ["same", "different"],
    ...         "group": ["ward 1", "ward 2"],
    ...     },
    ...     people,
    ... )
    GroupSet(2 groups of at most 2 people, 2 pairs, 4 features)
    """
    from pairveil.records.groups import GroupSet
    from pairveil.records.pairset import PairSet

    table = read_pairs(
        source, left, right, label, zero_means, "table", merge_similar_ids=merge_similar_ids
    )
    _, number = np.unique(read_classes(source, group).astype(str), return_inverse=True)
    ends = look_up(table, features.ids)
    groups = np.full(features.n_people, -1, dtype=np.int64)
    groups[ends[:, 0]] = groups[ends[:, 1]] = number  # of several mentions, one
    elsewhere = np.flatnonzero((groups[ends] != number[:, None]).any(axis=1))
    if elsewhere.size:
        raise InputError(
            f"groups overlap: somebody in row {elsewhere[0] + 1} of the pairs is in a pair of another group "
            "too; put everybody into one group"
        )
    return GroupSet.of_pairs(PairSet.join(features, table), groups)


# ---- tuples ------------------------------------------------------------------------------------------

ANCHOR, POSITIVE, NEGATIVE = "anchor", "positive", "negative"
ANSWER, CANDIDATE = "answer", "candidate"


def read_tuples(
    source: Any, features: FeatureTable, *, merge_similar_ids: bool = False
) -> TupleSet:
    """Read relative comparisons between people: 'the anchor is closer to the positive than to the negative'.

    Parameters
    ----------
    source : path, DataFrame or mapping
        A row a comparison, all with as many people. Columns ``anchor``, ``positive``, ``negative`` and, for
        more negatives, others whose names begin with 'negative' hold ids. Or columns ``anchor``,
        ``candidate1``, ``candidate2``, ... (at least two) hold ids, and ``answer`` says which candidate is
        nearest to the anchor: 1, 2, ... in the order of the columns. Other columns are not looked at.
    features : FeatureTable
        The people, as `read_features` gives them.
    merge_similar_ids : bool
        As for `read_pairs`.

    Returns
    -------
    TupleSet
        A comparison whose answer is missing, or names no candidate, is null: who was asked about is public
        and stays, what was answered is private and stops nothing.

    Raises
    ------
    InputError
        A column or an id is missing, a row names somebody without features, or somebody twice.

    Examples
    --------
    >>> people = FeatureTable(ids=["ann", "bob", "cid"], values=np.eye(3))
    >>> read_tuples({"anchor": ["ann"], "positive": ["cid"], "negative": ["bob"]}, people).tuples.tolist()
    [[0, 2, 1]]
    >>> asked = {"anchor": ["ann"], "candidate1": ["bob"], "candidate2": ["cid"], "answer": [2]}
    >>> read_tuples(asked, people).order.tolist()
    [[0, 2, 1]]
    """
    from pairveil.records.tupleset import TupleSet, answered

    table = open_table(source)
    by_answer = ANSWER in table.names
    columns = _columns_of_tuples(table, by_answer)
    answers = number_column(ANSWER, ",")
    ids = table.read(columns, {ANSWER: answers} if by_answer else {}, "tuples")
    answered_by = ids.pop() if by_answer else None
    ids = [*_as_one(merge_similar_ids, "the tuples", *ids)]
    if any(one.dtype.kind == "O" for one in ids):
        ids = [ids_as_text(one) for one in ids]
    rows = np.arange(1, len(ids[0]) + 1)
    members = rows_of_ids(ids, features.ids, "tuples", rows).astype(np.int64)
    order = None if answered_by is None else answered(answered_by, members.shape)
    values, null = features.readable()
    found = TupleSet(values, members, order, features.ids, features.names)
    lost = np.asarray(null[members].any(axis=1))
    return found.emptied(lost)


def _columns_of_tuples(table: TableSource, by_answer: bool) -> list[str]:
    """The columns of ids by role: the anchor first."""
    begins, first = (CANDIDATE, [ANCHOR]) if by_answer else (NEGATIVE, [ANCHOR, POSITIVE])
    others = [name for name in table.names if name.startswith(begins)]
    table.require(first, f"Tuples have {ANCHOR}, {POSITIVE} and {NEGATIVE}")
    if len(first) + len(others) < 3:
        wanted = f"{CANDIDATE}1, {CANDIDATE}2, ... and {ANSWER}" if by_answer else NEGATIVE
        raise InputError(f"{table.title} lacks columns of ids: {', '.join(first)}, {wanted}")
    return [*first, *others]


# ---- numbers of pairs: comparison levels, a score --------------------------------------------------------


Within = tuple[float, float, bool]
"""The least and the most that a cell may hold (public), and whether it must be whole."""


def read_pair_values(
    source: Any,
    left: str,
    right: str,
    within: Callable[[tuple[str, ...]], Sequence[Within]],
    *,
    columns: Sequence[str] | None = None,
    ignored: Sequence[str] = (),
    merge_similar_ids: bool = False,
    of: str = "levels",
) -> FeatureTable:
    """Read two id columns and numeric ones, each within public bounds by the columns' names.

    What a cell holds is private and stops nothing: a number outside is cut to the bounds, one that is not
    whole where it must be, or none at all, is NaN as an empty cell is. Only a column of which most cells hold
    no number is refused, as one of something else.
    """
    table = open_table(source)
    if columns is None:
        aside = {left, right, *ignored}
        columns = [name for name in table.names if name not in aside]
    if not columns:
        raise InputError(f"{table.title} has no column beside the ids")
    if len({left, right, *columns}) < 2 + len(columns):
        raise InputError("the two id columns and the columns of numbers must be different")
    table.require([left, right, *columns], "Name the ids with left= and right=")
    names = tuple(name.removeprefix(GAMMA) for name in columns)
    allowed = dict(zip(columns, within(names), strict=True))
    cells = {name: _numbers_within(name, table.decimal, *allowed[name]) for name in columns}
    first, second, *values = table.read([left, right], cells, "pairs")
    counts = {name: one.counts for name, one in cells.items()}
    for name, one in counts.items():
        low, high, whole = allowed[name]
        number = f"whole number from {low:g} to {high:g}" if whole else "number"
        _refuse_words({name: one}, len(first), number)
        if one.unreadable:
            cells_hold = many(one.unreadable, "cell holds", "cells hold")
            rows = name_rows(np.array(one.where) + 1)
            warn(f"column '{name}': {cells_hold} no {number} ({rows}): null there", PrivateNote)
        if one.outside:
            lie = many(one.outside, "cell lies", "cells lie")
            warn(f"column '{name}': {lie} outside {low:g} to {high:g}, cut to it", PrivateNote)
    first, second = _as_one(merge_similar_ids, f"the {of}", first, second)
    ids = pair_ids(first, second) if of == "levels" else np.arange(1, len(first) + 1)
    listed = _listed(counts, "null there", of)
    return _table_of((ids, np.column_stack(values), names, listed), False, True, of)


def _numbers_within(name: str, decimal: str, low: float, high: float, whole: bool) -> CellColumn:
    """Reads numbers of a public range: others are cut to it, or NaN where only whole ones mean something."""

    def read(cells: pa.Array) -> tuple[np.ndarray, Counts]:
        found, some = number_cells(cells, name, decimal)
        cut = np.clip(found, low, high)
        other = (cut != found) & ~np.isnan(found)
        wrong = np.isnan(found) & some
        if whole:
            wrong |= other | (np.floor(cut) != cut) & ~np.isnan(cut)
        where = np.flatnonzero(wrong)
        outside = 0 if whole else int(np.count_nonzero(other))
        counts = Counts(outside, 0, len(where), tuple(where[:MOST_PLACES].tolist()))
        return np.where(wrong, np.nan, cut), counts

    return CellColumn(name, read)


GAMMA = "gamma_"


def read_levels(
    source: Any,
    left: str,
    right: str,
    ignored: Sequence[str] = (),
    sizes: Callable[[tuple[str, ...]], Sequence[int] | None] = lambda _: None,
    merge_similar_ids: bool = False,
) -> FeatureTable:
    """Comparison levels of pairs, by `pair_ids`: a table of ours, or the predictions that Splink writes.

    Where columns are called ``gamma_...`` those are the levels, under the names behind it, and Splink's id
    columns are known. ``sizes`` gives the public number of levels by the names, where there is one.
    """
    names = open_table(source).names
    if left not in names and set(SPLINK[:2]) <= set(names):
        left, right = SPLINK[:2]
    gammas = [name for name in names if name.startswith(GAMMA)]

    def within(found: tuple[str, ...]) -> Sequence[Within]:
        return [(-1, size - 1, True) for size in sizes(found) or [MOST_LEVELS] * len(found)]

    return read_pair_values(
        source, left, right, within, columns=gammas or None, ignored=ignored,
        merge_similar_ids=merge_similar_ids,
    )  # fmt: skip


# ---- what columns hold, guessed from how cells are written ---------------------------------------

_LOOKED_AT = 10_000
_LIKE = 0.9  # of the cells are written so: a few odd ones, such as 'unknown', do not decide a type
_CODE, _CODED = (
    r"^0\d+$",
    0.01,
)  # a share of whole numbers that begin with 0 makes a column of codes
_WRITTEN = (
    ("number", "", r"^[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?$"),
    ("date", "", r"^\d{4}-\d{1,2}-\d{1,2}([T ].*)?$"),
    ("date", "%d.%m.%Y", r"^\d{1,2}\.\d{1,2}\.\d{4}( .*)?$"),
    ("date", "%d.%m.%y", r"^\d{1,2}\.\d{1,2}\.\d{2}( .*)?$"),
    ("date", "%d/%m/%Y", r"^([12]?\d|0\d|3[01])/(0?\d|1[0-2])/\d{4}( .*)?$"),
    ("date", "%m/%d/%Y", r"^(0?\d|1[0-2])/([12]?\d|0\d|3[01])/\d{4}( .*)?$"),
    ("date", "%Y/%m/%d", r"^\d{4}/\d{1,2}/\d{1,2}( .*)?$"),
)
"""Types, how a date is written, and what its cells look like; the first that fits is taken."""


class Guess(NamedTuple):
    """A column's type, and for a date how the table writes it (nothing: YYYY-MM-DD)."""

    type: str
    format: str = ""


def guess_types(source: Any, id: str, classes: str | None = None) -> dict[str, Guess]:
    """The type of each column for a template: from kinds of values, never from the values themselves."""
    table = open_table(source)
    marked = {id: Guess("id")}
    if classes == id:
        raise InputError("ids and classes are two columns")
    if classes is not None:
        marked[classes] = Guess("class")
    table.require(list(marked), "Name the id column with id=")
    first = next(iter(table.batches(table.names)), None)
    if first is None:
        raise InputError(f"{table.title} has no rows")
    return {
        name: marked.get(name) or _kind(first.column(name).slice(0, _LOOKED_AT))
        for name in table.names
    }


def guess_decimal(source: Any) -> str:
    """The decimal mark of most numbers that are written as text; where there is none, that of the layout."""
    table, marks = open_table(source), {",": 0, ".": 0}
    first = next(iter(table.batches(table.names)), None)
    for cells in () if first is None else first.columns:
        if is_text_type(cells.type):
            some = cells.slice(0, _LOOKED_AT)
            for mark in marks:
                written = pc.match_substring_regex(some, rf"^\s*[+-]?\d+[{mark}]\d+\s*$")
                marks[mark] += pc.sum(written).as_py() or 0
    if marks[","] == marks["."]:
        return table.decimal
    return max(marks, key=lambda mark: marks[mark])


def _kind(cells: pa.Array) -> Guess:
    """number, date or category, by how most of the first rows are written."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_date(cells.type) or pa.types.is_timestamp(cells.type):
        return Guess("date")
    if not (pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)):
        return Guess("category" if pa.types.is_boolean(cells.type) else "number")
    text = pc.utf8_trim_whitespace(cells.drop_null())
    some = text.filter(
        pc.invert(pc.is_in(pc.utf8_lower(text), value_set=pa.array(GAPS, text.type)))
    )
    if not len(some):
        return Guess("number")
    coded = pc.mean(pc.match_substring_regex(some, _CODE)).as_py()
    if coded >= _CODED and pc.mean(pc.match_substring_regex(some, r"^\d+$")).as_py() >= _LIKE:
        return Guess("category")  # 04109 is a place, not a quantity
    for kind, format_, pattern in _WRITTEN:
        if pc.mean(pc.match_substring_regex(some, pattern)).as_py() >= _LIKE:
            return Guess(kind, format_)
    return Guess("category")


def guess_label(source: Any, taken: Sequence[str] = ()) -> str | None:
    """The column of a table of pairs that holds labels; None where names and cells leave a doubt.

    A column whose name says so comes first. Else it is the one column of which most cells are labels; words
    (same, different) come before numbers, since a count may be 0 or 1 as well. Nothing depends on what any
    label says, and on whether one cell is a label only where exactly half of the others are: a form shows
    the choice to the owner of the table, who confirms or corrects it before anything is read by it.
    """
    table = open_table(source)
    names = [name for name in table.names if name not in taken]
    named = [name for name in names if says_labels(name)]
    if len(named) == 1 or not names:
        return named[0] if named else None
    first = next(iter(table.batches(names)), None)
    if first is None:
        return None
    shares = {name: label_shares(first.column(name).slice(0, _LOOKED_AT)) for name in names}
    for part in (0, 1):  # words, then any label
        found = [name for name, share in shares.items() if share[part] > 0.5]
        if found:
            return found[0] if len(found) == 1 else None
    return None
