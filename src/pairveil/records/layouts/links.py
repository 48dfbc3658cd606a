"""Must-link and cannot-link lists, as clustering work has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pairveil.errors import InputError
from pairveil.records.layouts.base import How, Look, Pair, file_of, from_pairs, lines, read_json
from pairveil.records.tables import PairTable

LOOKS = '`must-link a b`, `CL a b`, `a b -1`, or JSON `{"must_link": [...], "cannot_link": [...]}`'
NOTE = "must-link is similar"
_SPACES = re.compile(r"[\s,;]+")
_NUMBERED = (["1"], ["+1"], ["-1"])  # what stands behind the two ids
_MUST = frozenset({"must-link", "mustlink", "must", "ml"})
_CANNOT = frozenset({"cannot-link", "cannotlink", "cannot", "cl"})


def looks_like(look: Look) -> bool:
    """Keys or words that say must-link or cannot-link, or lines that all end in a label, whichever it is.

    What a label says has no part in it: whether a file can be read would tell that one is -1.
    """
    if look.keys is not None:
        return bool(look.keys) and all(link_label(key) for key in look.keys)
    if look.lines is None:
        return False
    words = _SPACES.split(look.lines[0])
    if len(words) != 3:
        return False
    if link_label(words[0]) or link_label(words[2]):
        return True
    return all(_SPACES.split(line)[2:] in _NUMBERED for line in look.lines)


def read(source: Any, how: How) -> PairTable:
    """A mapping, a JSON file or lines."""
    given = source if isinstance(source, Mapping) else file_of(source, "links")
    return read_links(given, how.with_labels)


def read_links(source: Path | Mapping[str, Any], with_labels: bool = True) -> PairTable:
    """Must-link and cannot-link lists, in one of the forms found in clustering work.

    - lines ``must-link a b`` / ``cannot-link a b`` (or ML / CL), the word first or last;
    - lines ``a b 1`` / ``a b -1``;
    - JSON, or a mapping, ``{"must_link": [[a, b], ...], "cannot_link": [[c, d], ...]}``.

    Examples
    --------
    >>> read_links({"must_link": [[0, 1]], "cannot_link": [[1, 2]]}).labels
    array([ 1, -1], dtype=int8)
    """
    if isinstance(source, Path) and source.suffix.lower() != ".json":
        return _read_link_lines(source, with_labels)
    title = source.name if isinstance(source, Path) else "the links"
    content = read_json(source) if isinstance(source, Path) else source
    found: list[Pair] = []
    for key, pairs in content.items():
        label = link_label(str(key))
        if label is None:
            raise InputError(f"{title}: only must_link and cannot_link are known as keys")
        for pair in pairs:
            if not (isinstance(pair, list | tuple) and len(pair) == 2):
                raise InputError(f"{title}: pair {len(found) + 1} is not two ids")
            found.append((pair[0], pair[1], label, 0))
    return from_pairs(found, with_labels, title, with_rows=False)


def _read_link_lines(path: Path, with_labels: bool) -> PairTable:
    found: list[Pair] = []
    for number, line in lines(path):
        words = _SPACES.split(line)
        label = None
        if len(words) == 3:
            label = link_label(words[0])
            ends = words[1:]
            if label is None:
                label = {"1": 1, "+1": 1, "-1": -1}.get(words[2], link_label(words[2]))
                ends = words[:2]
        if label is None:
            raise InputError(
                f"{path.name}, line {number}: expected 'must-link a b', 'cannot-link a b', "
                "'a b 1' or 'a b -1'"
            )
        found.append((ends[0], ends[1], label, number))
    return from_pairs(found, with_labels, path.name)


def link_label(word: str) -> int | None:
    """+1 for must-link, -1 for cannot-link (ML, CL, must_link, ...), None for anything else.

    Examples
    --------
    >>> link_label("must_link"), link_label("CL"), link_label("a")
    (1, -1, None)
    """
    text = word.strip().lower().replace("_", "-")
    return 1 if text in _MUST else -1 if text in _CANNOT else None
