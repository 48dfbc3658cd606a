"""What the columns of a table hold, guessed from how cells are written; for templates and forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pairveil.column_names import ColumnKind
from pairveil.errors import InputError
from pairveil.records.columns import label_shares, says_labels
from pairveil.records.files import open_table
from pairveil.schema.columns import GAPS

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
    if len(named) == 1:
        return named[0]
    first = next(iter(table.batches(dict.fromkeys(names, "text"))), None)
    if first is None:
        return None
    shares = {name: label_shares(first.column(name).slice(0, _LOOKED_AT)) for name in names}
    for part in (0, 1):  # words, then any label
        found = [name for name, share in shares.items() if share[part] > 0.5]
        if found:
            return found[0] if len(found) == 1 else None
    return None
