"""Schema: the public facts of a table, and raw rows made into numbers by them.

Schemas as files: read strictly, written as a template with blanks, or whole.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pairveil._lazy import need
from pairveil.array_types import FloatArray
from pairveil.column_names import arrow, arrow_cells, cell_text, columns_of
from pairveil.errors import InputError, PrivateNote, warn
from pairveil.foreign import parse_toml, read_regular
from pairveil.printable import shortened
from pairveil.schema.columns import Column, Counts, NumberColumn, column_of, is_text_type

VERSION = 1
DECIMALS = (".", ",")


@dataclass(frozen=True)
class Schema:
    """What is publicly known of the columns of a table.

    Parameters
    ----------
    columns : sequence of Column
        In the order that the features will have. Columns that a table has beside them are not looked at.
    decimal : {'.', ','}
        The decimal mark of numbers that are written as text.

    Examples
    --------
    >>> schema = Schema.from_dict({"columns": {
    ...     "age": {"type": "number", "bounds": [0, 100]},
    ...     "ward": {"type": "category", "categories": ["a", "b"]}}})
    >>> schema.feature_names
    ('age', 'ward=a', 'ward=b', 'ward=other')
    >>> schema.apply({"age": [25, 50], "ward": ["b", "a"]})
    array([[0.25, 0.  , 1.  , 0.  ],
           [0.5 , 1.  , 0.  , 0.  ]])
    """

    columns: tuple[Column, ...]
    decimal: str = "."

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if self.decimal not in DECIMALS:
            raise InputError("decimal must be '.' or ','")
        for role in ("id", "class"):
            if sum(column.type == role for column in self.columns) > 1:
                raise InputError(f"only one column can be of type {role}")
        names = [column.name for column in self.columns]
        if len(set(names)) != len(names):
            raise InputError("a schema names each column once")
        made = self.feature_names
        if len(set(made)) != len(made):
            raise InputError("two columns make features of the same name; rename one of them")

    # ---- what it says ----------------------------------------------------------------------------

    @property
    def features(self) -> tuple[Column, ...]:
        """The columns that become numbers."""
        return tuple(column for column in self.columns if column.feature_names)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the numbers that `apply` returns, in order."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def raw_names(self) -> tuple[str, ...]:
        """Columns of the table that `apply` reads, in order."""
        return tuple(column.name for column in self.features)

    @property
    def id(self) -> str | None:
        """The column of ids, where one is marked."""
        return next((column.name for column in self.columns if column.type == "id"), None)

    @property
    def classes(self) -> str | None:
        """The column of classes, where one is marked."""
        return next((column.name for column in self.columns if column.type == "class"), None)

    @property
    def longest(self) -> float:
        """No row that `apply` returns is longer (l2): a category adds 1 however many there are."""
        return math.sqrt(sum(column.longest for column in self.columns))

    def factor(self, data_norm: float = 1.0) -> float:
        """What to multiply rows by so that none is longer than ``data_norm``, and none is clipped.

        Examples
        --------
        >>> from pairveil.schema.columns import NumberColumn
        >>> Schema((NumberColumn("a", bounds=(0, 1)), NumberColumn("b", bounds=(0, 1)))).factor()
        0.7071067811865475
        """
        return data_norm / self.longest

    @property
    def wide(self) -> tuple[str, ...]:
        """Numbers on a linear scale whose public bounds lie a factor of 100 or more apart.

        On such a scale most of the range is spent on few people; `scale = "log"` may suit them better.
        """
        return tuple(
            column.name
            for column in self.features
            if type(column) is NumberColumn
            and column.scale == "linear"
            and 0 < 100 * column.bounds[0] <= column.bounds[1]
        )

    def check(self, title: str = "the schema") -> Schema:
        """This schema, if every blank is filled in; else an InputError that says which are not."""
        if not self.features:
            raise InputError(f"{title} has no column of type number, category or date")
        blanks = [column for column in self.features if not column.is_complete]
        if blanks:
            fields = " or ".join(dict.fromkeys(f"`{column.blank} = [...]`" for column in blanks))
            raise InputError(
                f"{title}: {len(blanks)} column{'s have' if len(blanks) > 1 else ' has'} blanks: "
                f"{shortened([column.name for column in blanks])}. Fill in {fields} from "
                'public knowledge, never from the table, or set type = "skip"'
            )
        return self

    def only(self, columns: Sequence[str] | None = None, exclude: Iterable[str] = ()) -> Schema:
        """A schema of some of the columns; the others are skipped."""
        known, left_out = set(self.raw_names), set(exclude)
        wanted = known if columns is None else set(columns)
        unknown = sorted((wanted - known) | (left_out - {one.name for one in self.columns}))
        if unknown:
            raise InputError(f"the schema has no column {shortened(unknown)}")
        return replace(
            self,
            columns=tuple(
                Column(one.name)
                if one.feature_names and (one.name not in wanted or one.name in left_out)
                else one
                for one in self.columns
            ),
        )

    # ---- what it does ----------------------------------------------------------------------------

    def apply(self, table: Any) -> FloatArray:
        """Raw rows as numbers in [0, 1], a column for each of `feature_names`.

        Parameters
        ----------
        table : pandas, polars or arrow table, mapping of columns, or array
            An array holds the columns of `raw_names`, in that order.

        Returns
        -------
        ndarray of shape (n, len(feature_names))
            Each row is a function of that raw row alone.

        Raises
        ------
        InputError
            A column is missing.

        Warns
        -----
        PrivateNote
            Values lay outside, were missing or could not be read: how many, for the operator alone.
        """
        values, counts = self.encode(table)
        say_counts(counts)
        return values

    def encode(self, table: Any) -> tuple[FloatArray, dict[str, Counts]]:
        """What `apply` returns, and what was counted in each column; says nothing."""
        self.check()
        need("pyarrow", "tables", "A release that reads raw rows by its schema")
        cells = _cells_of(table, self.raw_names)
        blocks, counts = [], {}
        for column in self.features:
            block, counts[column.name] = column.encode(cells[column.name], self.decimal)
            blocks.append(block)
        return np.concatenate(blocks, axis=1), counts

    # ---- as plain data ---------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as the file has it."""
        return {
            "version": VERSION,
            "decimal": self.decimal,
            "columns": {column.name: column.to_dict() for column in self.columns},
        }

    @classmethod
    def from_dict(cls, data: Any, title: str = "the schema") -> Schema:
        """A schema from plain data; anything unknown in it is refused."""
        if not isinstance(data, Mapping) or not isinstance(data.get("columns"), Mapping):
            raise InputError(f"{title}: there must be a table [columns.NAME] for each column")
        unknown = sorted(set(map(str, data)) - {"version", "decimal", "columns"})
        if unknown:
            raise InputError(f"{title}: '{unknown[0]}' is not known; there are decimal and columns")
        version = data.get("version", VERSION)
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise InputError(f"{title}: version must be a whole number")
        if version > VERSION:
            raise InputError(
                f"{title} was written for a newer pairveil; update pairveil to read it"
            )
        try:
            columns = tuple(_column(name, table) for name, table in data["columns"].items())
            return cls(columns, data.get("decimal", "."))
        except InputError as problem:
            raise InputError(f"{title}: {problem}") from None


def _column(name: Any, table: Any) -> Column:
    if not isinstance(table, Mapping):
        raise InputError(f"column '{name}' must be a table of its own: [columns.NAME]")
    return column_of(str(name), table)


def say_counts(counts: Mapping[str, Counts]) -> None:
    """Tell the operator how many cells were not taken as they stood, the worst columns first."""
    words = {
        "outside": "outside the bounds or categories (set to the bound, or to 'other')",
        "missing": "missing (the fill value stands in)",
        "unreadable": "not readable (the fill value stands in)",
    }
    parts, totals, most = [], {}, ("", 0)
    for kind, text in words.items():
        found = {name: getattr(one, kind) for name, one in counts.items() if getattr(one, kind)}
        if not found:
            continue
        worst = sorted(found, key=lambda name: -found[name])
        shown = shortened([f"{name} ({found[name]:,})" for name in worst], at_most=5)
        totals[text.partition(" (")[0]] = total = sum(found.values())
        most = max(most, (worst[0], found[worst[0]]), key=lambda one: one[1])
        parts.append(f"cells {text}: {total:,}, in {shown}")
    if parts:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in totals.items())
        brief = f"cells that were not taken as they stand: {kinds}; most in {most[0]}"
        check = "Check the schema and the column's unit"
        warn(PrivateNote(f"{'; '.join(parts)}. {check}", brief=brief))


def _cells_of(table: Any, wanted: tuple[str, ...]) -> dict[str, Any]:
    """Arrow arrays of the columns wanted, by name."""
    columns = columns_of(table)
    if columns is None:
        columns = _columns_of_array(table, wanted)
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise InputError(
            f"the table lacks {len(missing)} of the schema's columns: {shortened(missing)}"
        )
    return {name: plain_cells(arrow_cells(columns[name], name), name) for name in wanted}


def _columns_of_array(table: Any, wanted: tuple[str, ...]) -> dict[str, Any]:
    # Of a list NumPy makes texts of all numbers where one is a text.
    given = table if hasattr(table, "dtype") else np.array(table, dtype=object)
    array = given.toarray() if hasattr(given, "toarray") else np.asarray(given)
    if array.ndim != 2 or array.shape[1] != len(wanted):
        raise InputError(
            f"rows without column names must have the schema's {len(wanted)} columns in its order; got an "
            f"array of shape {array.shape}"
        )
    return {name: array[:, at] for at, name in enumerate(wanted)}


def plain_cells(cells: Any, name: str) -> Any:
    """Cells without a dictionary, of a type that every formula knows."""
    pa, _ = arrow()
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_string_view(cells.type) or pa.types.is_null(cells.type):
        cells = cells.cast(pa.large_string())
    if not is_text_type(cells.type):
        return cells
    try:
        cells.validate(full=True)
    except pa.ArrowException:
        warn(f"column '{name}' holds cells that are not UTF-8: save the table as such", PrivateNote)
        return pa.array(map(cell_text, cells.cast(pa.large_binary())), pa.large_string())
    return cells


# ---- as files: read strictly, written as a template with blanks, or whole ------------------------

HEAD = """\
# Public facts about the columns of {title}, for `pairveil fit --schema FILE`.
#
# Fill in every [] from public knowledge: a code book, an instrument's range, physiology. Never from the
# table itself: its smallest value or a rare category is somebody's, and what is learned would carry it.
# Types were guessed from the file; correct them where they are wrong:
#   number, category, date   become features (a category as one column for each, and one for 'other')
#   id, class, skip          do not
# A date says bounds = ["1920-01-01", "2025-12-31"] and, where the file has 31.12.2025, format = "%d.%m.%Y".
# Values outside are set to the bound or to 'other', missing ones to `fill`; both are counted when you fit.
version = {version}
decimal = {decimal}
"""

_BLANKS = {
    "number": """\
bounds = []            # lowest and highest that is possible, such as [0, 120]
# unit = "years"       # for readers
{scale}# fill = 60            # stands in for a missing value; the middle of the scale if left out
# indicator = true     # one more column that says whether it was missing
""",
    "category": """\
categories = []        # all that are possible, such as ["female", "male"]; anything else is 'other'
# fill = "female"      # stands in for a missing value; 'other' if left out
# indicator = true     # one more column that says whether it was missing
""",
    "date": """\
bounds = []            # first and last day that is possible, such as [1920-01-01, 2025-12-31]
{format}# fill = 2000-01-01    # stands in for a missing date; the middle of the bounds if left out
# indicator = true     # one more column that says whether it was missing
""",
    "class": """\
values = []            # the public list of classes, such as ["benign", "malignant"]
""",
    "id": "",
    "skip": "",
}

_SCALES = (
    '# scale = "log"        # for values that differ by factors; lowest above 0, or add an offset\n',
    '# scale = "log"        # by its name this may be skewed, as incomes are: consider it\n'
    "# offset = 1           # is added before the logarithm, where the lowest bound is 0\n",
)

SKEWED = re.compile(
    r"(^|[^a-z])(crp|ferritin|creatinine|bilirubin|troponin|ast|alt|ggt|tsh|psa|hcg|d.?dimer|procalcitonin|"
    r"il.?6|ck|ldh|lipase|triglycerides?|tit(er|re)s?|viral.?load|copies|income|salary|wages?|price|costs?|"
    r"amount|charges?|revenue|balance|turnover|population)([^a-z]|$)",
    re.IGNORECASE,
)
"""Names of columns whose values usually differ by factors. Names are public; values have no say."""

_FORMATS = (
    '# format = "%d.%m.%Y"  # how the table writes dates; YYYY-MM-DD if left out\n',
    "format = {}  # how the table writes dates; guessed, so check day and month\n",
)


def read_schema(path: str | Path) -> Schema:
    """Read a schema that was completed by hand.

    Parameters
    ----------
    path : path
        A TOML file, as ``pairveil schema`` writes its template.

    Returns
    -------
    Schema

    Raises
    ------
    InputError
        It is no such file, something in it is unknown, or a blank is not filled in: which, and what to do.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "schema.toml"
    >>> _ = file.write_text('[columns.age]\\ntype = "number"\\nbounds = []')
    >>> read_schema(file)
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: schema.toml: 1 column has blanks: age. Fill in `bounds = [...]` ...
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {file}; `pairveil schema FEATURES -o {file}` makes one")
    data = parse_toml(read_regular(file), file.name)
    return Schema.from_dict(data, file.name).check(file.name)


def template(types: Mapping[str, tuple[str, str]], title: str, decimal: str = ".") -> str:
    """The text of a schema whose public facts are blank."""
    clean = " ".join(title.split())
    parts = [HEAD.format(title=clean, version=VERSION, decimal=_quoted(decimal))]
    for name, (type_, format_) in types.items():
        blanks = _BLANKS[type_].replace("{scale}", _SCALES[bool(SKEWED.search(name))])
        blanks = blanks.replace("{format}", _FORMATS[bool(format_)].format(_quoted(format_)))
        parts.append(f"\n[columns.{_key(name)}]\ntype = {_quoted(type_)}\n{blanks}")
    return "".join(parts)


def to_toml(schema: Schema) -> str:
    """A schema as text that `read_schema` reads to the same schema."""
    data = schema.to_dict()
    lines = [f"version = {data['version']}", f"decimal = {_quoted(data['decimal'])}"]
    for name, table in data["columns"].items():
        lines += ["", f"[columns.{_key(name)}]"]
        lines += [f"{key} = {_value(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else _quoted(name)


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's, with DEL escaped and letters left as they are."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return _quoted(value)
    return json.dumps(value)
