"""VoxCeleb's trial lists: a label and two paths of recordings."""

from __future__ import annotations

import re
from typing import Any

from pairveil.errors import InputError
from pairveil.records.layouts.base import ITEMS_NOTE, How, Look, Pair, file_of, from_pairs, lines
from pairveil.records.tables import PairTable

LOOKS = "`1 path path`, `0 path path`"
NOTE = "ids are the paths"


def looks_like(look: Look) -> bool:
    """'1 a b' could be a link list as well: only a path says VoxCeleb."""
    words = re.split(r"[\s,;]+", look.lines[0]) if look.lines else []
    return len(words) == 3 and words[0] in ("0", "1") and "/" in words[1] and "/" in words[2]


def read(source: Any, how: How) -> PairTable:
    """``1 path1 path2`` is the same speaker, ``0 path1 path2`` is not."""
    path = file_of(source, "voxceleb")
    found: list[Pair] = []
    for number, line in lines(path):
        words = line.split()
        if len(words) != 3 or words[0] not in ("0", "1"):
            raise InputError(f"{path.name}, line {number}: expected '1 path path' or '0 path path'")
        found.append((words[1], words[2], 1 if words[0] == "1" else -1, number))
    return from_pairs(found, how.with_labels, path.name, ITEMS_NOTE.format(item="recording"))
