"""Pairs as other tools write them: Splink, dedupe, LFW, VoxCeleb, must-link / cannot-link lists.

Each reader returns a `PairTable`. A layout says itself what its labels mean, so 0 and 1 need no
further word here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pairveil.data.columns import IdColumn, as_ids, ids_as_text, number_array
from pairveil.data.files import TableSource, read_text
from pairveil.data.tables import PairTable
from pairveil.data.validation import name_rows
from pairveil.errors import InputError
from pairveil.foreign import parse_json

SPLINK_COLUMNS = ("unique_id_l", "unique_id_r", "clerical_match_score")
_SPLINK_SETS = ("source_dataset_l", "source_dataset_r")
_MUST = frozenset({"must-link", "mustlink", "must", "ml"})
_CANNOT = frozenset({"cannot-link", "cannotlink", "cannot", "cl"})
_IMAGE = re.compile(r"\d{1,9}")
_ITEMS_NOTE = "Each id is one {item}, so kappa and the guarantee count {item}s, not people"

_Pair = tuple[Any, Any, int, int]  # two ids, the label, the line


def read_splink(
    table: TableSource, left: str, right: str, score: str | None, threshold: float = 0.5
) -> PairTable:
    """Splink's clerical labels: two ids and a score; a score of at least ``threshold`` is similar.

    Where the file speaks of more than one source dataset, an id is unique only within its own: ids
    then become ``dataset-__-id``, as Splink itself writes them.

    Parameters
    ----------
    table : TableSource
    left, right : str
        The id columns.
    score : str or None
        The score column; None reads no labels.
    threshold : float
        Splink's own default is 0.5.

    Examples
    --------
    >>> from pairveil.data.files import open_table
    >>> labels = open_table({"unique_id_l": [1, 1], "unique_id_r": [2, 3],
    ...                      "clerical_match_score": [0.9, 0.1]})
    >>> read_splink(labels, "unique_id_l", "unique_id_r", "clerical_match_score").labels
    array([ 1, -1], dtype=int8)
    """
    if not (math.isfinite(threshold) and 0 < threshold <= 1):
        raise InputError("threshold must be above 0 and at most 1")
    table.require(
        [left, right, *([score] if score else [])], "Name them with left=, right= and label="
    )
    with_sets = all(column in table.names for column in _SPLINK_SETS)
    id_columns = [left, right, *(_SPLINK_SETS if with_sets else ())]
    columns = {name: IdColumn(f"column '{name}'") for name in id_columns}
    labels: list[np.ndarray] = []
    n_rows = 0
    wanted: dict[str, Any] = dict.fromkeys(id_columns, "text")
    if score:
        wanted[score] = "number"
    for batch in table.batches(wanted):
        for name, column in columns.items():
            column.add(batch.column(name))
        if score:
            labels.append(_splink_labels(batch.column(score), score, threshold, n_rows))
        n_rows += batch.num_rows
    ids = {name: column.finish() for name, column in columns.items()}
    notes: tuple[str, ...] = (f"Scores of at least {threshold:g} are similar",) if score else ()
    if with_sets and len(np.unique(np.concatenate([ids[name] for name in _SPLINK_SETS]))) > 1:
        for name, source in zip((left, right), _SPLINK_SETS, strict=True):
            ids[name] = ids_as_text(ids[source]) + "-__-" + ids_as_text(ids[name])
        notes += ("There are several source datasets, so ids were read as dataset-__-id",)
    return PairTable(ids[left], ids[right], np.concatenate(labels) if labels else None, notes=notes)


def _splink_labels(values: pa.Array, name: str, threshold: float, first_row: int) -> np.ndarray:
    try:
        scores = number_array(values, f"column '{name}'", first_row)
    except InputError:
        raise InputError(f"column '{name}' has a score that is missing or not a number") from None
    bad = np.flatnonzero(~((scores >= 0) & (scores <= 1)))
    if bad.size:
        raise InputError(
            f"column '{name}': a score is between 0 and 1; not so in "
            f"{name_rows(bad + 1 + first_row)}"
        )
    return np.where(scores >= threshold, 1, -1).astype(np.int8)


def read_dedupe(path: Path, record_id: str = "id", with_labels: bool = True) -> PairTable:
    """dedupe's training JSON: lists of record pairs under 'match' and 'distinct'.

    dedupe writes whole records, not ids; a record can be joined with features only by a field that
    holds the person's id (dedupe keeps fields that its variables do not mention, so it is there if
    it was in the data given to dedupe).

    Parameters
    ----------
    path : Path
    record_id : str
        The field with the id.
    with_labels : bool
    """
    content = _read_json(path)
    found: list[_Pair] = []
    for key, records in content.items():
        label = {"match": 1, "distinct": -1}.get(key)
        if label is None:
            continue
        for pair in _plain(records):
            number = len(found) + 1
            pair = _plain(pair)
            if not (isinstance(pair, list) and len(pair) == 2):
                raise InputError(f"{path.name}: pair {number} is not two records")
            ids = [_record_id(record, record_id, path.name, number) for record in pair]
            found.append((*ids, label, 0))
    return _from_pairs(found, with_labels, path.name, with_rows=False)


def _plain(value: Any) -> Any:
    """The list inside dedupe's {'__class__': 'tuple', '__value__': [...]}."""
    return value["__value__"] if isinstance(value, Mapping) and "__value__" in value else value


def _record_id(record: Any, field: str, title: str, number: int) -> Any:
    record = _plain(record)
    if not isinstance(record, Mapping):
        raise InputError(f"{title}: pair {number} is not two records")
    if field not in record:
        raise InputError(
            f"{title}: the records of pair {number} have no field '{field}'; they have {len(record)} with "
            "other names. Name the one that holds the person's id with record_id=; if there is none, add it "
            "to the data before labelling with dedupe"
        )
    return record[field]


def read_lfw(path: Path, with_labels: bool = True) -> PairTable:
    """LFW's pairs.txt: ``name n1 n2`` is the same person, ``name1 n1 name2 n2`` two people.

    Ids are the images' names in LFW, ``name_0001``.

    Parameters
    ----------
    path : Path
    with_labels : bool
    """
    found: list[_Pair] = []
    for number, line in _lines(path):
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
    return _from_pairs(found, with_labels, path.name, _ITEMS_NOTE.format(item="image"))


def _lfw_image(name: str, number: str) -> str:
    return f"{name.strip()}_{int(number):04d}"


def read_voxceleb(path: Path, with_labels: bool = True) -> PairTable:
    """VoxCeleb's trial lists: ``1 path1 path2`` is the same speaker, ``0 path1 path2`` is not.

    Parameters
    ----------
    path : Path
    with_labels : bool
    """
    found: list[_Pair] = []
    for number, line in _lines(path):
        words = line.split()
        if len(words) != 3 or words[0] not in ("0", "1"):
            raise InputError(f"{path.name}, line {number}: expected '1 path path' or '0 path path'")
        found.append((words[1], words[2], 1 if words[0] == "1" else -1, number))
    return _from_pairs(found, with_labels, path.name, _ITEMS_NOTE.format(item="recording"))


def read_links(source: Path | Mapping[str, Any], with_labels: bool = True) -> PairTable:
    """Must-link and cannot-link lists, in one of the forms found in clustering work.

    - lines ``must-link a b`` / ``cannot-link a b`` (or ML / CL), the word first or last;
    - lines ``a b 1`` / ``a b -1``;
    - JSON, or a mapping, ``{"must_link": [[a, b], ...], "cannot_link": [[c, d], ...]}``.

    Parameters
    ----------
    source : Path or mapping
    with_labels : bool

    Examples
    --------
    >>> read_links({"must_link": [[0, 1]], "cannot_link": [[1, 2]]}).labels
    array([ 1, -1], dtype=int8)
    """
    if isinstance(source, Path) and source.suffix.lower() != ".json":
        return _read_link_lines(source, with_labels)
    title = source.name if isinstance(source, Path) else "the links"
    content = _read_json(source) if isinstance(source, Path) else source
    found: list[_Pair] = []
    for key, pairs in content.items():
        label = link_label(str(key))
        if label is None:
            raise InputError(f"{title}: only must_link and cannot_link are known as keys")
        for pair in pairs:
            if not (isinstance(pair, list | tuple) and len(pair) == 2):
                raise InputError(f"{title}: pair {len(found) + 1} is not two ids")
            found.append((pair[0], pair[1], label, 0))
    return _from_pairs(found, with_labels, title, with_rows=False)


def _read_link_lines(path: Path, with_labels: bool) -> PairTable:
    found: list[_Pair] = []
    for number, line in _lines(path):
        words = re.split(r"[\s,;]+", line)
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
    return _from_pairs(found, with_labels, path.name)


def link_label(word: str) -> int | None:
    """+1 for must-link, -1 for cannot-link (ML, CL, must_link, ...), None for anything else.

    Examples
    --------
    >>> link_label("must_link"), link_label("CL"), link_label("a")
    (1, -1, None)
    """
    text = word.strip().lower().replace("_", "-")
    return 1 if text in _MUST else -1 if text in _CANNOT else None


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    """Lines with their numbers from 1; blank ones and # comments are left out."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()


def _read_json(path: Path) -> Mapping[str, Any]:
    content = parse_json(read_text(path), path.name, most=None, exact=False)
    if not isinstance(content, Mapping):
        raise InputError(f"{path.name} is not the JSON expected: it is not an object with names")
    return content


def _from_pairs(
    found: list[_Pair], with_labels: bool, title: str, *notes: str, with_rows: bool = True
) -> PairTable:
    """The table of pairs read one by one; rows are the lines of a file, where it has lines."""
    if not found:
        raise InputError(f"{title}: there are no pairs")
    left, right, labels, rows = (list(column) for column in zip(*found, strict=True))
    return PairTable(
        as_ids(_object_array(left), f"{title}: id"),
        as_ids(_object_array(right), f"{title}: id"),
        np.array(labels, dtype=np.int8) if with_labels else None,
        np.array(rows, dtype=np.int64) if with_rows else None,
        notes,
    )


def _object_array(values: list[Any]) -> np.ndarray:
    # Filled one by one: numpy would turn [1, "a"] into text and lists into a second dimension.
    array = np.empty(len(values), dtype=object)
    array[:] = values
    if {type(value) for value in values} == {int, str}:
        array[:] = [str(value) for value in values]
    return array
