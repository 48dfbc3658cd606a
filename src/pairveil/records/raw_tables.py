"""Raw tables read by a public schema, and the template of a schema made from a table's columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pairveil.errors import InputError
from pairveil.records.columns import IdColumn
from pairveil.records.files import ColumnKind, open_table
from pairveil.records.tables import FeatureTable
from pairveil.schema.columns import Counts
from pairveil.schema.schema import Schema, say_counts

_LOOKED_AT = 10_000
_MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
_LIKE = 0.9  # of the cells are written so: a few odd ones, such as 'unknown', do not decide a type
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


def read_raw_features(
    source: Any, id: str, schema: Schema, columns: Sequence[str] | None, exclude: set[str]
) -> FeatureTable:
    """People whose raw columns became numbers by a schema, a batch at a time.

    Parameters
    ----------
    source, id, columns, exclude
        As for `pairveil.read_features`; columns are those of the table.
    """
    wanted_schema = schema.only(columns, exclude).check()
    table = open_table(source)
    raw = wanted_schema.raw_names
    if id in raw:
        raise InputError(
            f"the schema makes features of the id column '{id}': give it type = \"id\""
        )
    table.require([id, *raw], "Name the id column with id=, and the columns as the schema does")
    # All as text: what is no number is missing, and stops nobody.
    wanted: dict[str, ColumnKind] = {id: "text", **dict.fromkeys(raw, "text")}
    ids, blocks = IdColumn(f"column '{id}'"), []
    counts: dict[str, Counts] = defaultdict(Counts)
    for batch in table.batches(wanted):
        ids.add(batch.column(0))
        block, found = wanted_schema.encode(batch)
        blocks.append(block)
        for name, some in found.items():
            counts[name] = counts[name] + some
    if not blocks or not sum(map(len, blocks)):
        raise InputError(f"{table.title} has no rows")
    say_counts(counts)
    return FeatureTable(ids.finish(), np.concatenate(blocks), wanted_schema.feature_names)


def guess_types(source: Any, id: str, classes: str | None = None) -> dict[str, Guess]:
    """The type of each column for a template: from kinds of values, never from the values themselves.

    Parameters
    ----------
    source : path or DataFrame
    id : str
        The column of ids.
    classes : str, optional
        The column of classes.

    Examples
    --------
    >>> guessed = guess_types({"id": [1], "age": [30.0], "visit": ["31.01.2020"]}, "id")
    >>> guessed["age"].type, guessed["visit"]
    ('number', Guess(type='date', format='%d.%m.%Y'))
    """
    table = open_table(source)
    marked = {id: Guess("id")}
    if classes == id:
        raise InputError("ids and classes are two columns")
    if classes is not None:
        marked[classes] = Guess("class")
    table.require(list(marked), "Name the id column with id=")
    wanted: dict[str, ColumnKind] = dict.fromkeys(table.names, "text")
    first = next(iter(table.batches(wanted)), None)
    if first is None:
        raise InputError(f"{table.title} has no rows")
    return {
        name: marked.get(name) or _kind(first.column(name).slice(0, _LOOKED_AT))
        for name in table.names
    }


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
        pc.invert(pc.is_in(pc.utf8_lower(text), value_set=pa.array(_MISSING, text.type)))
    )
    if not len(some):
        return Guess("number")
    for kind, format_, pattern in _WRITTEN:
        if pc.mean(pc.match_substring_regex(some, pattern)).as_py() >= _LIKE:
            return Guess(kind, format_)
    return Guess("category")
