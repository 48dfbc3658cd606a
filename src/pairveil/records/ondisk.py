"""Pairs and features that stay on disk: row numbers instead of ids, read with nothing to look up.

Features are a float32 or float64 ``.npy`` file, mapped into memory: the operating system holds what is in
use. Pairs are a Parquet file of row numbers, read group by group into 9 bytes a pair, or ``.npy`` files,
mapped as well. Files with ids of other kinds are what `pairveil.read_pairs` is for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pairveil.errors import InputError
from pairveil.foreign import taking_apart
from pairveil.records.arrays import read_array_file
from pairveil.records.files import check_parquet
from pairveil.records.pairset import PairSet

_BUFFER = 1 << 20  # bytes read ahead: without a limit Arrow holds the whole file


def open_pairs(
    features: str | Path,
    pairs: str | Path,
    labels: str | Path | None = None,
    *,
    left: str = "left",
    right: str = "right",
    label: str = "label",
) -> PairSet:
    """A PairSet over files.

    Parameters
    ----------
    features : path
        A ``.npy`` array of shape (n, d), mapped; or ``.npz`` (dense ``X`` or scipy sparse), read.
    pairs : path
        Parquet (a file, or a folder of files in the order of their names) with two integer columns of row
        numbers (from 0) and a label column of +1 (similar) and -1 (dissimilar); or a ``.npy`` array of
        integers of shape (K, 2).
    labels : path, optional
        For ``.npy`` pairs: a ``.npy`` array of K numbers, +1 and -1; int8 is mapped.
    left, right, label : str
        Columns of the Parquet file.

    Returns pairs of a Parquet file in canonical order, each once; a ``.npy`` file is mapped as it is.

    Raises InputError: a file that is missing, of another kind, or whose numbers name nobody.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/people.npy", np.eye(3, dtype=np.float32))
    ...     np.save(f"{folder}/pairs.npy", np.array([[0, 1], [1, 2]], dtype=np.int32))
    ...     np.save(f"{folder}/labels.npy", np.array([1, -1], dtype=np.int8))
    ...     open_pairs(f"{folder}/people.npy", f"{folder}/pairs.npy", f"{folder}/labels.npy")
    PairSet(3 people, 2 pairs, 3 features, labelled)
    """
    table = read_array_file(_existing(features)).values
    files = sorted(Path(pairs).glob("*.parquet")) or [_existing(pairs)]
    if (path := files[0]).suffix.lower() == ".npy":
        return PairSet(table, _mapped(path), None if labels is None else _mapped(_existing(labels)))
    if labels is not None:
        raise InputError(
            "labels of a Parquet file are one of its columns; leave the third file out"
        )
    # Brought into canonical order here, where nobody else holds the pairs: a fit then needs no second copy.
    parts = [_read_parquet(file, (left, right, label)) for file in files]
    ends, marks = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    return PairSet(table, ends, marks).canonical()[0]


def _existing(path: str | Path) -> Path:
    found = Path(path)
    if not found.is_file():
        raise InputError(f"there is no file {found.name} at that place")
    return found


def _mapped(path: Path) -> np.ndarray:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError):
        raise InputError(f"{path.name} is not a whole NumPy file without Python objects") from None


def _read_parquet(path: Path, columns: tuple[str, str, str]) -> tuple[np.ndarray, np.ndarray]:
    try:
        file = pq.ParquetFile(path, buffer_size=_BUFFER)
    except (OSError, pa.ArrowInvalid):
        raise InputError(f"{path.name} is not a whole Parquet file") from None
    with file, taking_apart(path.name):
        check_parquet(file.metadata, path.name, path.stat().st_size)
        missing = [name for name in columns if name not in file.schema_arrow.names]
        if missing:
            raise InputError(f"{path.name} has no column '{missing[0]}'")
        n = file.metadata.num_rows
        pairs, labels = np.empty((n, 2), dtype=np.int32), np.empty(n, dtype=np.int8)
        start = 0
        # Group by group: iterating over batches would keep what was read until the end.
        for group in range(file.num_row_groups):
            part = file.read_row_group(group, columns=list(columns), use_threads=False)
            stop = start + part.num_rows
            for side, name in enumerate(columns[:2]):
                pairs[start:stop, side] = _whole(part[name], name, np.int32)
            labels[start:stop] = _whole(part[columns[2]], columns[2], np.int8)
            start = stop
    return pairs, labels


def _whole(column: Any, name: str, dtype: Any) -> np.ndarray:
    """A column of integers that the type holds, without gaps."""
    if not pa.types.is_integer(column.type) or column.null_count:
        raise InputError(
            f"column '{name}' must hold whole numbers without gaps; "
            "pairveil.read_pairs reads other ids and labels"
        )
    values = column.to_numpy()
    limits = np.iinfo(dtype)
    if len(values) and (values.min() < limits.min or values.max() > limits.max):
        raise InputError(f"column '{name}' holds a number outside {limits.min} to {limits.max}")
    return np.asarray(values)
