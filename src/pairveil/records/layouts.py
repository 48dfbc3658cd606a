"""How other tools write pairs: a table of small parsers.

A row of `LAYOUTS` says what such a file looks like, how it is recognised and how it is read. A layout says
itself what its labels mean, so 0 and 1 need no further word there. What a label *says* has no part in
recognising a file: whether it can be read would tell that label.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pairveil.errors import InputError
from pairveil.foreign import parse_json
from pairveil.printable import shortened
from pairveil.records.files import file_suffix, is_table_file, open_table, read_text, require_file
from pairveil.records.tables import (
    LabelColumn,
    Meaning,
    PairTable,
    as_ids,
    ids_as_text,
    number_column,
)

Pair = tuple[Any, Any, int]  # two ids and the label, 0 where it cannot be read


class ReadOptions(NamedTuple):
    """The arguments of `pairveil.records.readers.read_pairs`."""

    left: str = "left"
    right: str = "right"
    label: str | None = "label"
    zero_means: Meaning | None = None
    threshold: float = 0.5
    record_id: str = "id"
    require_labels: bool = True


class FileProbe:
    """What of a source tells its layout; each part is None where the source is of another kind."""

    def __init__(self, source: Any, left: str = "left", right: str = "right") -> None:
        self.source, self.left, self.right = source, left, right
        self._path = Path(source) if isinstance(source, str | Path) else None

    @cached_property
    def keys(self) -> list[str] | None:
        """Names in a mapping, or in the object of a JSON file."""
        if isinstance(self.source, Mapping):
            return [str(key) for key in self.source]
        if self._path is None or is_table_file(self._path) or not self._is_json:
            return None
        content = parse_json(read_text(self._path), self._path.name, most=None, exact=False)
        return [str(key) for key in content] if isinstance(content, Mapping) else []

    @cached_property
    def columns(self) -> tuple[str, ...] | None:
        """Columns of a table, or of a file of one."""
        if self._path is None or is_table_file(self._path):
            return open_table(self.source).names
        return None

    @cached_property
    def lines(self) -> list[str]:
        """Lines of a text file that is neither a table nor JSON; blank ones and comments left out."""
        if self._path is None or is_table_file(self._path) or self._is_json:
            return []
        found = [line for _, line in _lines(self._path) if not line.startswith("#")]
        if not found:
            raise InputError(f"{self._path.name}: there are no pairs")
        return found

    @property
    def title(self) -> str:
        """What messages call the source."""
        return "the table" if self._path is None else self._path.name

    @property
    def _is_json(self) -> bool:
        return self._path is not None and file_suffix(require_file(self._path)) == ".json"


class Layout(NamedTuple):
    """One way to write pairs."""

    # What such a file looks like, and what a user should know of it, in Markdown: a table of the docs
    looks: str
    note: str
    is_seen: Callable[
        [FileProbe], bool
    ]  # whether a `FileProbe` is at this layout, without any doubt
    read: Callable[[Any, ReadOptions], PairTable]  # the pairs of a source, as `ReadOptions` says


def sniff_layout(source: Any, left: str = "left", right: str = "right") -> str:
    """The layout of ``source``, by suffix, column names and first line."""
    look = FileProbe(source, left, right)
    for name in reversed(LAYOUTS):
        if LAYOUTS[name].is_seen(look):
            return name
    raise InputError(
        f"{look.title}: cannot tell the layout; say layout= one of {', '.join(LAYOUTS)}"
    )


# ---- tables ------------------------------------------------------------------------------------------

SPLINK = ("unique_id_l", "unique_id_r", "clerical_match_score")
SPLINK_SETS = ("source_dataset_l", "source_dataset_r")


def _read_table(source: Any, how: ReadOptions) -> PairTable:
    """A plain table: two columns of ids, one of labels."""
    table = open_table(source)
    label = how.label if how.require_labels or how.label in table.names else None
    wanted = [how.left, how.right, *([] if label is None else [label])]
    if len(set(wanted)) < len(wanted):
        raise InputError("left, right and label must be different columns")
    if label is not None and label not in table.names and set(wanted[:2]) <= set(table.names):
        from pairveil.records.readers import guess_label

        likely = guess_label(source, wanted[:2])
        if likely is not None:
            raise InputError(
                f"{table.title} has no column '{label}'; its columns are: {shortened(table.names)}; column "
                f"'{likely}' looks like labels. Name it with label="
            )
    table.require(wanted, "Name them with left=, right= and label=", (["id"], "people"))
    labels = {} if label is None else {label: LabelColumn(how.zero_means, label)}
    left, right, *known = table.read(wanted[:2], labels, "pairs")
    return _labelled(left, right, known[0] if known else None)


def _is_splink(look: FileProbe) -> bool:
    """Its columns are there; a table that has the columns of a plain one is plain."""
    names = look.columns or ()
    return set(SPLINK) <= set(names) and not {look.left, look.right} <= set(names)


def _read_splink(source: Any, how: ReadOptions) -> PairTable:
    """Splink's clerical labels: two ids and a score, similar from the threshold on.

    Where the file speaks of more than one source dataset, an id is unique only within its own: ids
    then become ``dataset-__-id``, as Splink itself writes them.
    """
    if not (math.isfinite(how.threshold) and 0 < how.threshold <= 1):
        raise InputError("threshold must be above 0 and at most 1")
    table = open_table(source)
    usual = dict(zip(("left", "right", "label"), SPLINK, strict=True))
    left, right, score = (
        name and usual.get(name, name) for name in (how.left, how.right, how.label)
    )
    if not how.require_labels and score not in table.names:
        score = None
    ends = [str(left), str(right)]
    table.require([*ends, *([score] if score else [])], "Name them with left=, right= and label=")
    sets = SPLINK_SETS if set(SPLINK_SETS) <= set(table.names) else ()
    names = [*ends, *sets]
    asked = {score: number_column(score, ",")} if score else {}
    found = table.read(names, asked, "pairs")
    ids = dict(zip(names, found, strict=False))
    notes: tuple[str, ...] = (f"Scores of at least {how.threshold:g} are similar",) if score else ()
    if sets and len(np.unique(np.concatenate([ids[name] for name in sets]))) > 1:
        for name, origin in zip(ends, sets, strict=True):
            ids[name] = ids_as_text(ids[origin]) + "-__-" + ids_as_text(ids[name])
        notes += ("There are several source datasets, so ids were read as dataset-__-id",)
    known = None
    if score:
        scores = found[-1]  # a score is a probability
        clear = (scores >= 0) & (scores <= 1)
        known = np.where(clear, np.where(scores >= how.threshold, 1, -1), 0).astype(np.int8)
    return _labelled(ids[ends[0]], ids[ends[1]], known, notes)


def _labelled(
    left: np.ndarray, right: np.ndarray, labels: np.ndarray | None, notes: tuple[str, ...] = ()
) -> PairTable:
    """Pairs of a table, and which of their labels could not be read."""
    null = None if labels is None or labels.all() else labels == 0
    return PairTable(left, right, labels, notes=notes, null=null)


# ---- lines -------------------------------------------------------------------------------------------

_SPACES = re.compile(r"[\s,;]+")
_LINKS = {
    **dict.fromkeys(("must-link", "mustlink", "must", "ml"), 1),
    **dict.fromkeys(("cannot-link", "cannotlink", "cannot", "cl"), -1),
}


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    """Lines with their numbers from 1; blank ones and # comments are left out."""
    # A label may hold whatever else Unicode, or `str.splitlines`, takes for the end of a line.
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()


def of_lines(
    parse: Callable[[str], Pair | None], expected: str, item: str = "", *, headed: bool = False
) -> Callable[[Any, ReadOptions], PairTable]:
    """A reader of files with a pair on each line."""
    return _of_file(lambda lines: list(map(parse, lines)), expected, item, headed=headed)


def _of_file(
    parse: Callable[[list[str]], list[Pair | None]],
    expected: str,
    item: str = "",
    *,
    headed: bool = False,
) -> Callable[[Any, ReadOptions], PairTable]:
    """So, of all lines at once: they say where labels stand. Most labels must be readable, as in a table."""

    def read(source: Any, how: ReadOptions) -> PairTable:
        path = _file_of(source)
        lines = [one for one in _lines(path) if not (headed and one[0] == 1 and _is_count(one[1]))]
        rows, found = [number for number, _ in lines], parse([line for _, line in lines])
        wrong = [at for at, pair in enumerate(found) if pair is None]
        null = [at for at, pair in enumerate(found) if pair and pair[2] == 0]
        if 2 * len(null) > len(found):
            wrong += null
        if wrong:
            raise InputError(f"{path.name}, line {rows[wrong[0]]}: expected {expected}")
        notes = (ITEMS_NOTE.format(item=item),) if item else ()
        return _from_pairs([pair for pair in found if pair], how, path.name, rows, notes)

    return read


def _parted(words: list[str], first: bool, labels: Mapping[str, int]) -> Pair | None:
    """Two ids, and what is said before or behind them: 0 where that is no label."""
    if len(words) < 2:
        return None
    left, right = words[-2:] if first else words[:2]
    said = "-".join(words[:-2] if first else words[2:])
    return left, right, labels.get(_spelled(said), 0)


ITEMS_NOTE = "Each id is one {item}, so kappa and the guarantee count {item}s, not people"


_BEHIND = {**_LINKS, "1": 1, "+1": 1, "-1": -1}  # the two ids; before them, words alone
_PATHS = {"1": 1, "0": -1}


def _spelled(word: str) -> str:
    return word.strip().lower().replace("_", "-")


def _is_count(line: str) -> bool:
    words = line.split()
    return 0 < len(words) <= 2 and all(word.isdecimal() for word in words)


def _lfw(line: str) -> Pair | None:
    """``name n1 n2`` is the same person, ``name1 n1 name2 n2`` two; ids are LFW's ``name_0001``."""
    words = line.split("\t") if "\t" in line else line.split()
    if len(words) == 3:
        words.insert(2, words[0])
        label = 1
    else:
        label = -1
    if len(words) != 4 or not all(re.fullmatch(r"\d{1,9}", w.strip()) for w in words[1::2]):
        return None
    left, right = (f"{words[at].strip()}_{int(words[at + 1]):04d}" for at in (0, 2))
    return left, right, label


def _voxceleb(lines: list[str]) -> list[Pair | None]:
    """``1 path1 path2`` is the same speaker, ``0 path1 path2`` is not."""
    return [_parted(line.split(), True, _PATHS) for line in lines]


def _is_voxceleb(look: FileProbe) -> bool:
    """'1 a b' could be a link list as well: only paths say VoxCeleb."""
    pairs = [one for one in _voxceleb(look.lines) if one]
    return _most(one[2] != 0 for one in pairs) and all("/" in a and "/" in b for a, b, _ in pairs)


def _links(lines: list[str]) -> list[Pair | None]:
    """``must-link a b``, ``a b cannot-link``, ML and CL for them, ``a b 1``, ``a b -1``."""
    parts = [_SPACES.split(line) for line in lines]
    first = _most(_spelled(words[0]) in _LINKS for words in parts if len(words) > 2)
    return [_parted(words, first, _LINKS if first else _BEHIND) for words in parts]


def _most(said: Iterable[bool]) -> bool:
    """Whether more than half of the lines say so: one label among others decides nothing."""
    found = list(said)
    return 2 * sum(found) > len(found)


def _are_links(look: FileProbe) -> bool:
    """Keys that say must-link or cannot-link, or lines of which most have a label, whichever it is."""
    if look.keys is not None:
        return bool(look.keys) and all(_link_label(key) for key in look.keys)
    return _most(one[2] != 0 for one in _links(look.lines) if one)


def _link_label(word: str) -> int | None:
    return _LINKS.get(_spelled(word))


_link_lines = _of_file(_links, "'must-link a b', 'cannot-link a b', 'a b 1' or 'a b -1'")


# ---- JSON --------------------------------------------------------------------------------------------


def _read_links(source: Any, how: ReadOptions) -> PairTable:
    """Lines, or JSON (a mapping) of lists of pairs under must_link and cannot_link."""
    if not isinstance(source, Mapping) and file_suffix(_file_of(source)) != ".json":
        return _link_lines(source, how)
    title = "the links" if isinstance(source, Mapping) else Path(source).name
    content = source if isinstance(source, Mapping) else _read_json(Path(source))
    found: list[Pair] = []
    for key, pairs in content.items():
        label = _link_label(str(key))
        if label is None:
            raise InputError(f"{title}: only must_link and cannot_link are known as keys")
        for pair in pairs:
            if not (isinstance(pair, list | tuple) and len(pair) == 2):
                raise InputError(f"{title}: pair {len(found) + 1} is not two ids")
            found.append((pair[0], pair[1], label))
    return _from_pairs(found, how, title)


def _read_dedupe(source: Any, how: ReadOptions) -> PairTable:
    """dedupe's training JSON, by the field of its records that holds the id.

    dedupe writes whole records, not ids; a record can be joined with features only by a field that
    holds the person's id (dedupe keeps fields that its variables do not mention, so it is there if
    it was in the data given to dedupe).
    """
    path, field = _file_of(source), how.record_id
    found: list[Pair] = []
    for label, pair in dedupe_records(path):
        without = [record for record in pair if field not in record]
        if without:
            raise InputError(
                f"{path.name}: the records of pair {len(found) + 1} have no field '{field}'; they have "
                f"{len(without[0])} with other names. Name the one that holds the person's id with "
                "record_id=; if there is none, add it to the data before labelling with dedupe"
            )
        found.append((pair[0][field], pair[1][field], label))
    return _from_pairs(found, how, path.name)


def dedupe_records(path: Path) -> list[tuple[int, list[Mapping[str, Any]]]]:
    """Label and both whole records of each pair of dedupe's training file, under match and distinct."""
    found: list[tuple[int, list[Mapping[str, Any]]]] = []
    for key, pairs in _read_json(path).items():
        label = {"match": 1, "distinct": -1}.get(key)
        if label is None:
            continue
        for given in _plain(pairs):
            pair = _plain(given)
            records = [_plain(one) for one in pair] if isinstance(pair, list) else []
            if len(records) != 2 or not all(isinstance(one, Mapping) for one in records):
                raise InputError(f"{path.name}: pair {len(found) + 1} is not two records")
            found.append((label, records))
    return found


def _plain(value: Any) -> Any:
    """The list inside dedupe's {'__class__': 'tuple', '__value__': [...]}."""
    return value["__value__"] if isinstance(value, Mapping) and "__value__" in value else value


def _read_json(path: Path) -> Mapping[str, Any]:
    content = parse_json(read_text(path), path.name, most=None, exact=False)
    if not isinstance(content, Mapping):
        raise InputError(f"{path.name} is not the JSON expected: it is not an object with names")
    return content


def _file_of(source: Any) -> Path:
    if not isinstance(source, str | Path):
        raise InputError("this layout is read from a file: give its path")
    return require_file(source)


def _from_pairs(
    found: list[Pair],
    how: ReadOptions,
    title: str,
    rows: list[int] | None = None,
    notes: tuple[str, ...] = (),
) -> PairTable:
    """The table of pairs read one by one; ``rows`` are the lines of a file, where it has lines."""
    if not found:
        raise InputError(f"{title}: there are no pairs")
    left, right, labels = (list(column) for column in zip(*found, strict=True))
    table = _labelled(
        as_ids(_object_array(left), f"{title}: id"),
        as_ids(_object_array(right), f"{title}: id"),
        None if how.label is None else np.array(labels, dtype=np.int8),
        notes,
    )
    return table if rows is None else replace(table, rows=np.array(rows, dtype=np.int64))


def _object_array(values: list[Any]) -> np.ndarray:
    # Filled one by one: numpy would turn [1, "a"] into text and lists into a second dimension.
    array = np.empty(len(values), dtype=object)
    array[:] = values
    if {type(value) for value in values} == {int, str}:
        array[:] = [str(value) for value in values]
    return array


LAYOUTS: dict[str, Layout] = {
    "table": Layout(
        "two columns of ids and one of labels",
        "`left=`, `right=` and `label=` name them",
        lambda look: look.columns is not None,  # missing columns are then named
        _read_table,
    ),
    "splink": Layout(
        "`unique_id_l, unique_id_r, clerical_match_score`",
        "similar from `threshold=0.5` on; with several source datasets ids are `dataset-__-id`",
        _is_splink,
        _read_splink,
    ),
    "dedupe": Layout(
        "training JSON with `match` and `distinct`",
        "`record_id=` names the field that holds the id",
        lambda look: look.columns is None and bool({"match", "distinct"} & set(look.keys or ())),
        _read_dedupe,
    ),
    "lfw": Layout(
        "`pairs.txt`: `name n1 n2`, `name1 n1 name2 n2`",
        "ids are `name_0001`",
        lambda look: bool(look.lines) and _is_count(look.lines[0]),
        of_lines(_lfw, "'name n1 n2' or 'name1 n1 name2 n2'", "image", headed=True),
    ),
    "voxceleb": Layout(
        "`1 path path`, `0 path path`",
        "ids are the paths",
        _is_voxceleb,
        _of_file(_voxceleb, "'1 path path' or '0 path path'", "recording"),
    ),
    "links": Layout(
        '`must-link a b`, `CL a b`, `a b -1`, or JSON `{"must_link": [...], "cannot_link": [...]}`',
        "must-link is similar",
        _are_links,
        _read_links,
    ),
}
"""Every layout by name. The plainest first: a later one that recognises a source wins."""
