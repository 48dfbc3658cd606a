"""Features kept as arrays: NumPy's .npy and .npz, scipy's sparse .npz. Never a pickle."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # as in `validation`

from pairveil.data.tables import FeatureTable
from pairveil.errors import InputError


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

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.npz"
    ...     np.savez(path, X=np.eye(2), ids=np.array(["ann", "bob"]))
    ...     read_array_file(path)
    FeatureTable(2 people, 2 features)
    """
    loaded = _load(path)
    if isinstance(loaded, np.ndarray):
        return FeatureTable(np.arange(len(loaded) if loaded.ndim else 0), loaded)
    with loaded:
        if {"format", "shape", "data"} <= set(loaded.files):
            values = _load_sparse(path)
            return FeatureTable(np.arange(values.shape[0]), values)
        if "X" not in loaded.files:
            raise InputError(
                f"{path.name} has no array 'X'; its arrays are: {', '.join(loaded.files)}"
            )
        features = _take(loaded, "X", path)
        ids = _take(loaded, "ids", path) if "ids" in loaded.files else np.arange(len(features))
    return FeatureTable(ids, features)


def read_array_column(path: Path, name: str) -> np.ndarray:
    """One array of a .npz file, ``y`` for example.

    Parameters
    ----------
    path : Path
    name : str
    """
    loaded = _load(path)
    if isinstance(loaded, np.ndarray):
        raise InputError(f"{path.name} holds features only; keep classes in a .npz file")
    with loaded:
        if name not in loaded.files:
            raise InputError(
                f"{path.name} has no array '{name}'; its arrays are: {', '.join(loaded.files)}"
            )
        return _take(loaded, name, path)


def _load(path: Path) -> Any:
    problem = InputError(f"{path.name} is not a whole NumPy file without Python objects")
    # Asked first, because np.load leaves the file open when an archive is damaged.
    if path.suffix.lower() == ".npz" and not zipfile.is_zipfile(path):
        raise problem
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        raise problem from None


def _load_sparse(path: Path) -> Any:
    try:
        return scipy.sparse.load_npz(path)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        raise InputError(f"{path.name} is not a whole scipy sparse file") from None


def _take(loaded: Any, name: str, path: Path) -> np.ndarray:
    try:
        return np.asarray(loaded[name])
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        raise InputError(
            f"{path.name}: array '{name}' is damaged or holds Python objects; save plain numbers "
            "or text"
        ) from None
