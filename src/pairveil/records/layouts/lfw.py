"""LFW's pairs.txt: names of people and numbers of images."""

from __future__ import annotations

import re
from typing import Any

from pairveil.errors import InputError
from pairveil.records.layouts.base import ITEMS_NOTE, How, Look, Pair, file_of, from_pairs, lines
from pairveil.records.tables import PairTable

LOOKS = "`pairs.txt`: `name n1 n2`, `name1 n1 name2 n2`"
NOTE = "ids are `name_0001`"
_IMAGE = re.compile(r"\d{1,9}")


def looks_like(look: Look) -> bool:
    """The first line is a number of folds, of pairs, or both."""
    first = look.lines[0].split() if look.lines else []
    return 0 < len(first) <= 2 and all(word.isdecimal() for word in first)


def read(source: Any, how: How) -> PairTable:
    """``name n1 n2`` is the same person, ``name1 n1 name2 n2`` two people.

    Ids are the images' names in LFW, ``name_0001``.
    """
    path = file_of(source, "lfw")
    found: list[Pair] = []
    for number, line in lines(path):
        words = line.split("\t") if "\t" in line else line.split()
        if number == 1 and len(words) <= 2 and all(word.isdigit() for word in words):
            continue  # folds and pairs in each, or pairs alone
        numbers = {3: words[1:], 4: words[1::2]}.get(len(words), [])
        if not numbers or not all(_IMAGE.fullmatch(word.strip()) for word in numbers):
            raise InputError(
                f"{path.name}, line {number}: expected 'name n1 n2' or 'name1 n1 name2 n2'"
            )
        same = len(words) == 3
        other = _lfw_image(words[0] if same else words[2], words[-1])
        found.append((_lfw_image(words[0], words[1]), other, 1 if same else -1, number))
    return from_pairs(found, how.with_labels, path.name, ITEMS_NOTE.format(item="image"))


def _lfw_image(name: str, number: str) -> str:
    return f"{name.strip()}_{int(number):04d}"
