"""Features kept as arrays: NumPy's .npy and .npz, scipy's sparse .npz. Never a pickle."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # as in `validation`

from pairveil.errors import InputError
from pairveil.foreign import check_growth
from pairveil.records.tables import FeatureTable


def is_array_file(path: Path) -> bool:
    """Whether the suffix says .npy or .npz.

    Examples
    --------
    >>> is_array_file(Path("people.npz")), is_array_file(Path("people.csv"))
    (True, False)
    """
    return path.suffix.lower() in (".npy", ".npz")


def read_array_file(path: Path) -> FeatureTable:
    """Features of a .npy file (memory-mapped), a .npz file with ``X``, or a scipy sparse .npz file.

    Without an array ``ids`` the people are numbered from 0.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.npz"
    ...     np.savez(path, X=np.eye(2), ids=np.array(["ann", "bob"]))
    ...     read_array_file(path)
    FeatureTable(2 people, 2 features)
    """
    if path.suffix.lower() == ".npy":
        values = _load(path, path)
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
        yield _load(path, file)


def _load(path: Path, source: Any) -> Any:
    problem = InputError(f"{path.name} is not a whole NumPy file without Python objects")
    # Asked first: np.load would take a file of another kind under this name as well.
    if source is not path and not zipfile.is_zipfile(source):
        raise problem
    try:
        if source is path:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        check_archive(path, source)
        source.seek(0)
        return np.load(source, allow_pickle=False)
    except InputError:
        raise
    except Exception:
        raise problem from None


def check_archive(path: Path, source: Any, **limits: int) -> None:
    """Refuse a zip file that declares far more than it has; no reader goes beyond what it declares."""
    with zipfile.ZipFile(source) as packed:
        declared = sum(one.file_size for one in packed.infolist())
    check_growth(path.name, path.stat().st_size, declared, **limits)


def _load_sparse(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            found = scipy.sparse.load_npz(file)
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
