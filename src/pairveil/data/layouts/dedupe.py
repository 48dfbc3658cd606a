"""dedupe's training files: JSON with whole records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pairveil.data.layouts.base import How, Look, Pair, file_of, from_pairs, read_json
from pairveil.data.tables import PairTable
from pairveil.errors import InputError

LOOKS = "training JSON with `match` and `distinct`"
NOTE = "`record_id=` names the field that holds the id"


def looks_like(look: Look) -> bool:
    """JSON with one of dedupe's two lists."""
    return look.columns is None and bool({"match", "distinct"} & set(look.keys or ()))


def read(source: Any, how: How) -> PairTable:
    """Pairs of records, by the field that holds the id."""
    return read_dedupe(file_of(source, "dedupe"), how.record_id, how.with_labels)


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
    content = read_json(path)
    found: list[Pair] = []
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
    return from_pairs(found, with_labels, path.name, with_rows=False)


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
