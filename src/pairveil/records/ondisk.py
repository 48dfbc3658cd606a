"""Features and pairs kept as arrays: NumPy's .npy and .npz, scipy's sparse .npz, Parquet of row numbers.

Never a pickle. A float32 or float64 ``.npy`` file is mapped into memory: the operating system holds what is
in use. Pairs are a Parquet file of row numbers, read group by group into 9 bytes a pair, or ``.npy`` files,
mapped as well. Files with ids of other kinds are what `pairveil.read_pairs` is for.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pairveil.errors import InputError
from pairveil.foreign import check_archive, check_growth, taking_apart
from pairveil.records.files import check_parquet, require_file
from pairveil.records.pairset import PairSet
from pairveil.records.tables import FeatureTable


def is_array_file(path: Path) -> bool:
    """Whether the suffix says .npy or .npz."""
    return path.suffix.lower() in (".npy", ".npz")


def read_array_file(path: Path) -> FeatureTable:
    """Features of a .npy file (memory-mapped), a .npz file with ``X``, or a scipy sparse .npz file.

    Without an array ``ids`` the people are numbered from 0.
    """
    if path.suffix.lower() == ".npy":
        values = _mapped(path)
        return FeatureTable(np.arange(len(values) if values.ndim else 0), values)
    with _archive(path) as loaded:
        if {"format", "shape", "data"} <= set(loaded.files):
            values = _load_sparse(path)
            return FeatureTable(np.arange(values.shape[0]), values)
        if "X" not in loaded.files:
            raise InputError(
                f"{path.name} has no array 'X'; it has {len(loaded.files)} with other names. "
                "Save the features as 'X'"
            )
        features = _take(loaded, "X", path)
        ids = _take(loaded, "ids", path) if "ids" in loaded.files else None
    n_people = len(features) if features.ndim else 0
    return FeatureTable(np.arange(n_people) if ids is None else ids, features)


def read_array_column(path: Path, name: str) -> np.ndarray:
    """One array of a .npz file, ``y`` for example."""
    if path.suffix.lower() == ".npy":
        raise InputError(f"{path.name} holds features only; keep classes in a .npz file")
    with _archive(path) as loaded:
        if name not in loaded.files:
            raise InputError(
                f"{path.name} has no array '{name}'; it has {len(loaded.files)} others"
            )
        return _take(loaded, name, path)


# What damaged files make numpy, scipy and zipfile raise has no common base: all of it is caught.


@contextmanager
def _archive(path: Path) -> Iterator[Any]:
    """The arrays of a .npz file; the file is closed whatever happens."""
    with path.open("rb") as file:
        # Asked first: np.load would take a file of another kind under this name as well.
        if not zipfile.is_zipfile(file):
            raise _not_whole(path)
        try:
            check_archive(path, file)
            file.seek(0)
            loaded = np.load(file, allow_pickle=False)
        except InputError:
            raise
        except Exception:
            raise _not_whole(path) from None
        yield loaded


def _mapped(path: Path) -> Any:
    """The array of a .npy file, mapped into memory."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception:
        raise _not_whole(path) from None


def _not_whole(path: Path) -> InputError:
    return InputError(f"{path.name} is not a whole NumPy file without Python objects")


def _load_sparse(path: Path) -> Any:
    from scipy import sparse  # here: who receives a release may not have it

    try:
        with path.open("rb") as file:
            found = sparse.load_npz(file)
    except Exception:
        raise InputError(f"{path.name} is not a whole scipy sparse file") from None
    # As CSR it has a pointer for each row, and what is learned a number for each column.
    check_growth(path.name, path.stat().st_size, 8 * (sum(map(int, found.shape)) + found.data.size))
    return found


def _take(loaded: Any, name: str, path: Path) -> np.ndarray:
    try:
        return np.asarray(loaded[name])
    except Exception:
        raise InputError(
            f"{path.name}: array '{name}' is damaged or holds Python objects; save plain numbers "
            "or text"
        ) from None


# ---- row numbers instead of ids, read with nothing to look up ------------------------------------

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
    """A PairSet over files."""
    table = read_array_file(require_file(features)).values
    files = sorted(Path(pairs).glob("*.parquet")) or [require_file(pairs)]
    if (path := files[0]).suffix.lower() == ".npy":
        return PairSet(
            table, _mapped(path), None if labels is None else _mapped(require_file(labels))
        )
    if labels is not None:
        raise InputError(
            "labels of a Parquet file are one of its columns; leave the third file out"
        )
    # Brought into canonical order here, where nobody else holds the pairs: a fit then needs no second copy.
    parts = [_read_parquet(file, (left, right, label)) for file in files]
    ends, marks = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    return PairSet(table, ends, marks).canonical()[0]


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
