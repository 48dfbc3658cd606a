"""dedupe's training files: JSON with whole records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pairveil.errors import InputError
from pairveil.records.layouts.base import How, Look, Pair, file_of, from_pairs, read_json
from pairveil.records.tables import PairTable

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

    ``record_id``: the field with the id.
    """
    found: list[Pair] = []
    for label, pair in _labelled(path):
        ids = [_record_id(record, record_id, path.name, len(found) + 1) for record in pair]
        found.append((*ids, label, 0))
    return from_pairs(found, with_labels, path.name, with_rows=False)


def read_dedupe_records(path: Path) -> list[list[Mapping[str, Any]]]:
    """The two whole records of each pair, in the order of `read_dedupe`."""
    return [pair for _, pair in _labelled(path)]


def _labelled(path: Path) -> list[tuple[int, list[Mapping[str, Any]]]]:
    """Label and both records of each pair."""
    found: list[tuple[int, list[Mapping[str, Any]]]] = []
    for key, pairs in read_json(path).items():
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


def _record_id(record: Mapping[str, Any], field: str, title: str, number: int) -> Any:
    if field not in record:
        raise InputError(
            f"{title}: the records of pair {number} have no field '{field}'; they have {len(record)} with "
            "other names. Name the one that holds the person's id with record_id=; if there is none, add it "
            "to the data before labelling with dedupe"
        )
    return record[field]
