"""Schemas as files: read strictly, written as a template with blanks, or whole."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pairveil.errors import InputError
from pairveil.foreign import parse_toml, read_regular
from pairveil.schema.schema import VERSION, Schema

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
