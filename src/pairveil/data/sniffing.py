"""layout="auto": which layout a file is in, where its suffix and first lines leave no doubt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pairveil.data.files import file_suffix, is_table_file, open_table, read_text, require_file
from pairveil.data.layouts import SPLINK_COLUMNS, link_label
from pairveil.errors import InputError
from pairveil.foreign import parse_json

Layout = Literal["auto", "table", "splink", "dedupe", "lfw", "voxceleb", "links"]
LAYOUTS = ("table", "splink", "dedupe", "lfw", "voxceleb", "links")


def sniff_layout(source: Any, left: str = "left", right: str = "right") -> str:
    """The layout of ``source``, by suffix, column names and first line.

    Parameters
    ----------
    source : path, table or mapping
    left, right : str
        The id columns of a plain table: a table that has them is a plain table.

    Raises
    ------
    InputError
        It could be more than one, or none.

    Examples
    --------
    >>> sniff_layout({"unique_id_l": [1], "unique_id_r": [2], "clerical_match_score": [1.0]})
    'splink'
    """
    if isinstance(source, Mapping) and source and all(link_label(str(key)) for key in source):
        return "links"
    if not isinstance(source, str | Path) or is_table_file(Path(source)):
        names = open_table(source).names
        plain = left in names and right in names
        return "splink" if not plain and all(c in names for c in SPLINK_COLUMNS) else "table"
    path = require_file(source)
    found = _sniff_json(path) if file_suffix(path) == ".json" else _sniff_lines(path)
    if found is None:
        raise InputError(
            f"{path.name}: cannot tell the layout; say layout= one of {', '.join(LAYOUTS)}"
        )
    return found


def _sniff_json(path: Path) -> str | None:
    content = parse_json(read_text(path), path.name, most=None, exact=False)
    keys = [str(key) for key in content] if isinstance(content, Mapping) else []
    if keys and all(link_label(key) for key in keys):
        return "links"
    return "dedupe" if "match" in keys or "distinct" in keys else None


def _sniff_lines(path: Path) -> str | None:
    lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("#")]
    if not lines:
        raise InputError(f"{path.name}: there are no pairs")
    first = lines[0].split()
    if len(first) <= 2 and all(word.isdecimal() for word in first):
        return "lfw"
    words = re.split(r"[\s,;]+", lines[0])
    if len(words) != 3:
        return None
    if (
        link_label(words[0])
        or link_label(words[2])
        or any(re.split(r"[\s,;]+", line)[-1] == "-1" for line in lines)
    ):
        return "links"
    # '1 a b' could be a link list as well: only a path says VoxCeleb.
    return "voxceleb" if words[0] in ("0", "1") and "/" in words[1] and "/" in words[2] else None
