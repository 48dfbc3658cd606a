"""Tables of people with a class each, for experiments: from a folder, from OpenML, or built in.

The benchmark files are the user's own (``PAIRVEIL_DATA`` or a folder given): ``.npz`` with ``X`` and
``y``, or ``.dat`` with one row a line whose last column is the 0/1 label. Nothing is downloaded
unless asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.errors import InputError
from pairveil.files import file_draft
from pairveil.records.embedded import load_digits, load_patients

#: Training people and whether the majority class is downsampled first (docs/theory/learner.md, step 2; the
#: paper's Table I: with E = 2V the number of positive pairs is the number of people).
KNOWN = {
    "adult": (18_700, True),
    "bank": (8_464, True),
    "ipums_br": (30_016, False),
    "ipums_us": (31_104, False),
}
EMBEDDED = ("breast_cancer", "digits")
#: OpenML numbers of the two sets that a user can fetch.
OPENML = {"adult": 1590, "bank": 1461}


@dataclass(frozen=True)
class Benchmark:
    """People, their classes, and how many of them train.

    Parameters
    ----------
    X : array of shape (n, d)
        Raw columns; ``protocol.make_split`` scales them.
    classes : array of shape (n,)
    train_people : int
        How many people are drawn for training.
    downsample : bool
        Whether training people come from a class-balanced downsample.
    source : str
        Where the rows came from, for the captions.
    bounds : pair of arrays or None
        Public bounds of the columns; None takes the file's own as published with it.
    """

    name: str
    X: FloatArray
    classes: NDArray[np.int64]
    train_people: int
    downsample: bool
    source: str
    bounds: tuple[FloatArray, FloatArray] | None = None


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder given, else ``PAIRVEIL_DATA``, else None."""
    chosen = folder if folder is not None else os.environ.get("PAIRVEIL_DATA")
    if not chosen:
        return None
    path = Path(chosen)
    if not path.is_dir():
        raise InputError(f"the data folder {path} does not exist")
    return path


def available(folder: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Names that ``load`` can open: the files of the folder, or the embedded tables without one.

    Examples
    --------
    >>> import os
    >>> _ = os.environ.pop("PAIRVEIL_DATA", None)
    >>> available()
    ('breast_cancer', 'digits')
    """
    path = data_folder(folder)
    if path is None:
        return EMBEDDED
    return tuple(sorted(_files(path)))


def load(name: str, folder: str | os.PathLike[str] | None = None) -> Benchmark:
    """Open one benchmark set by name.

    Parameters
    ----------
    name : str
        ``adult``, ``bank``, ``ipums_br``, ``ipums_us`` or the name of any file in the folder;
        ``breast_cancer`` and ``digits`` are always there.
    folder : path, optional
        Where the files lie; default ``PAIRVEIL_DATA``.

    Examples
    --------
    >>> load("breast_cancer").X.shape
    (569, 30)
    """
    key = _key(name)
    if key in EMBEDDED:
        return _embedded(key)
    path = data_folder(folder)
    found = _files(path) if path is not None else {}
    if key in found:
        X, classes = _read(found[key])
        return _benchmark(key, X, classes, str(found[key].name))
    hint = "; --download fetches it from OpenML" if key in OPENML else ""
    raise InputError(
        f"no data set {name!r}: put {key}.npz (X, y) or {key}.dat into the data folder{hint}. "
        f"There now: {', '.join(sorted({*found, *EMBEDDED}))}"
    )


def download(folder: str | os.PathLike[str]) -> tuple[str, ...]:
    """Fetch Adult and Bank from OpenML into a folder, where they are missing; say which were.

    The user asks for this; nothing else goes to the network.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    missing = tuple(name for name in OPENML if name not in _files(path))
    for name in missing:
        X, classes = fetch(name)
        with file_draft(path / f"{name}.npz") as draft:
            np.savez_compressed(draft, X=X, y=classes)
    return missing


def fetch(name: str) -> tuple[FloatArray, NDArray[Any]]:
    """Adult or Bank from OpenML, categories one-hot (so the columns are not the paper's 123 / 32)."""
    from sklearn.datasets import fetch_openml

    if name not in OPENML:
        raise InputError(f"{name!r} is not on OpenML; choose from {', '.join(OPENML)}")
    try:
        # liac-arff needs no pandas; categories then come as codes, with their lists beside them.
        bunch = fetch_openml(data_id=OPENML[name], as_frame=False, parser="liac-arff")
    except OSError as problem:
        raise InputError(
            f"OpenML could not be reached ({type(problem).__name__}); put {name}.npz into the "
            "data folder instead"
        ) from problem
    columns = []
    for j, column in enumerate(bunch.feature_names):
        values = np.asarray(bunch.data)[:, j].astype(np.float64)
        categories = (bunch.categories or {}).get(column)
        if categories is None:
            columns.append(np.nan_to_num(values)[:, None])
        else:  # a missing category is a row of zeros
            columns.append((values[:, None] == np.arange(len(categories))).astype(np.float64))
    return np.hstack(columns), np.unique(np.asarray(bunch.target), return_inverse=True)[1]


def _key(name: str) -> str:
    return name.lower().replace("-", "_")


def _files(folder: Path) -> dict[str, Path]:
    """Benchmark files by name; .npz wins over .dat of the same name."""
    found: dict[str, Path] = {}
    for suffix in (".dat", ".npz"):
        for path in sorted(folder.glob(f"[!.]*{suffix}")):
            found[_key(path.stem)] = path
    return found


def _benchmark(name: str, X: Any, classes: Any, source: str) -> Benchmark:
    rows = np.asarray(X, dtype=np.float64)
    codes = np.unique(np.asarray(classes), return_inverse=True)[1].astype(np.int64)
    if rows.ndim != 2 or codes.shape != (rows.shape[0],):
        raise InputError(f"{source}: X must be a table and y must have one class a row")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise InputError(f"{source}: row {bad[0]} holds a value that is not a finite number")
    sizes = np.bincount(codes)
    if len(sizes) < 2 or sizes.min() < 2:
        raise InputError(f"{source}: two classes of at least two people are needed")
    # An unknown set follows the same rule: downsample what is as lopsided as Adult and Bank.
    lopsided = bool(sizes.max() > 0.7 * len(codes))
    balanced = len(sizes) * int(sizes.min()) if lopsided else len(codes)
    train, downsample = KNOWN.get(name, (int(0.7 * balanced), lopsided))
    pool = len(sizes) * int(sizes.min()) if downsample else len(codes)
    # A cut-down file of a known name still leaves people to test on.
    return Benchmark(name, rows, codes, min(train, int(0.85 * pool)), downsample, source)


def _embedded(name: str) -> Benchmark:
    people = load_patients() if name == "breast_cancer" else load_digits()
    X = people.features.values
    made = _benchmark(name, X, people.classes, f"scikit-learn {name}")
    # embedded tables come scaled by public bounds to [0, 1/sqrt(d)]
    d = X.shape[1]
    return replace(made, bounds=(np.zeros(d), np.full(d, d**-0.5)))


def _read(path: Path) -> tuple[Any, Any]:
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                return archive["X"], archive["y"]
        with path.open(encoding="utf-8") as lines:
            delimiter = "," if "," in lines.readline() else None
        table = np.loadtxt(path, delimiter=delimiter, ndmin=2)
    except KeyError:
        raise InputError(f"{path.name}: the arrays X and y are needed") from None
    except ValueError:
        # numpy's own message quotes the cell, and the cell is somebody's.
        raise InputError(f"{path.name}: not a table of numbers with equally long rows") from None
    labels = table[:, -1]
    if not np.isin(labels, (0.0, 1.0)).all():
        raise InputError(f"{path.name}: the last column must hold the label, 0 or 1")
    return table[:, :-1], labels.astype(np.int64)
