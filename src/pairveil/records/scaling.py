"""Columns on one scale, by public bounds.

A column's minimum and maximum over the data are the values of two people. Scaling by them moves
everybody's features by what those two are: it leaks, outside any guarantee. Bounds must come from
outside the data: from a code book, from physiology, from an instrument's range. They are given
here as numbers and are never computed from the table.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from pairveil.errors import InputError, PrivateNote, warn
from pairveil.files import file_draft
from pairveil.foreign import as_csr, parse_json
from pairveil.printable import as_cell, from_cell
from pairveil.records.files import read_text, require_file
from pairveil.records.validation import check_data_norm, check_features, name_column, row_blocks


@dataclass(frozen=True, eq=False)
class PublicBounds:
    """The range each column can have, known before anybody looks at the data.

    Parameters
    ----------
    lower, upper : array of shape (d,)
    names : sequence of str, optional
        The columns, in the same order.

    Examples
    --------
    >>> bounds = PublicBounds(lower=[0, 30], upper=[120, 250], names=["age", "height_cm"])
    >>> bounds.ordered(["height_cm", "age"]).upper
    array([250., 120.])
    """

    lower: np.ndarray
    upper: np.ndarray
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        try:
            lower = np.asarray(self.lower, dtype=np.float64)
            upper = np.asarray(self.upper, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("bounds must be numbers, a lower and an upper one a column") from None
        names = None if self.names is None else tuple(str(name) for name in self.names)
        if lower.ndim != 1 or lower.shape != upper.shape:
            raise InputError("bounds need as many lower as upper numbers, one each a column")
        if names is not None and (len(names) != len(lower) or len(set(names)) != len(names)):
            raise InputError("bounds need as many column names as numbers, each name once")
        wrong = np.flatnonzero(~(np.isfinite(lower) & np.isfinite(upper) & (lower < upper)))
        if wrong.size:
            raise InputError(
                f"the bounds of {name_column(int(wrong[0]), names)} must be finite, lower < upper"
            )
        for field, value in (("lower", lower), ("upper", upper), ("names", names)):
            object.__setattr__(self, field, value)

    def ordered(self, columns: Sequence[str]) -> PublicBounds:
        """The bounds of ``columns``, in that order."""
        if self.names is None:
            raise InputError("these bounds have no column names; give names to match them by")
        place = {name: at for at, name in enumerate(self.names)}
        missing = [column for column in columns if column not in place]
        if missing:
            raise InputError(f"no bounds for column '{missing[0]}' ({len(missing)} without)")
        take = [place[column] for column in columns]
        return PublicBounds(self.lower[take], self.upper[take], tuple(columns))

    @classmethod
    def read(cls, path: str | Path) -> PublicBounds:
        """Read JSON ``{"age": [0, 120], ...}`` or CSV with columns ``column,lower,upper``.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     PublicBounds([0], [120], ["age"]).write(Path(folder) / "bounds.csv")
        ...     PublicBounds.read(Path(folder) / "bounds.csv").upper
        array([120.])
        """
        file = require_file(path)
        text = read_text(file)
        rows = _json_rows(text, file) if _is_json(file) else _csv_rows(text, file)
        if not rows:
            raise InputError(f"{file.name} has no bounds")
        names, lower, upper = zip(*rows, strict=True)
        return cls(np.array(lower, dtype=object), np.array(upper, dtype=object), names)

    def write(self, path: str | Path) -> None:
        """Write JSON or CSV, by the suffix; whole or not at all."""
        file = Path(path)
        names = self.names or tuple(str(at) for at in range(len(self.lower)))
        rows = list(zip(names, self.lower.tolist(), self.upper.tolist(), strict=True))
        with file_draft(file) as draft, draft.open("w", encoding="utf-8", newline="") as out:
            if _is_json(file):
                json.dump({name: [low, high] for name, low, high in rows}, out, indent=2)
            else:
                safe = [(as_cell(name), low, high) for name, low, high in rows]
                csv.writer(out).writerows([("column", "lower", "upper"), *safe])


def scale_to_bounds(values: Any, bounds: PublicBounds, data_norm: float | None = None) -> Any:
    """Put every column on [0, 1] by its public bounds; what lies outside is set to the bound, and counted.

    Parameters
    ----------
    values : ndarray or scipy sparse matrix of shape (n, d)
        A sparse matrix needs lower bounds of 0, else it would become dense.
    bounds : PublicBounds
        In the order of the columns (see `PublicBounds.ordered`).
    data_norm : float, optional
        Multiply by ``data_norm / sqrt(d)`` as well: then no row is longer than ``data_norm`` and
        none will be clipped.

    Returns
    -------
    ndarray or scipy.sparse.csr_array
        float32 stays float32.

    Warns
    -----
    PrivateNote
        Values lay outside their bounds: how many, and in which columns. The counts are private: they are
        for the operator, not for the release.

    Examples
    --------
    >>> import numpy as np
    >>> scale_to_bounds(np.array([[30.0], [120.0]]), PublicBounds([0], [120]))
    array([[0.25],
           [1.  ]])
    """
    table = check_features(values, bounds.names, finite=False)
    if len(bounds.lower) != table.shape[1]:
        raise InputError(f"bounds for {len(bounds.lower)} columns, features of {table.shape[1]}")
    factor = 1.0 if data_norm is None else check_data_norm(data_norm) / np.sqrt(table.shape[1])
    width = bounds.upper - bounds.lower
    if sparse.issparse(table):
        if np.any(bounds.lower != 0):
            raise InputError("a sparse table needs lower bounds of 0 in every column")
        scaled = as_csr(table).copy()
        outside = (scaled.data < 0) | (scaled.data > bounds.upper[scaled.indices])
        counts = np.bincount(scaled.indices[outside], minlength=table.shape[1])
        _say_clamped(counts, bounds.names)
        unit = np.clip(scaled.data / width[scaled.indices], 0.0, 1.0)
        scaled.data = (unit * factor).astype(table.dtype)
        return scaled
    result = np.empty(table.shape, dtype=table.dtype)
    counts = np.zeros(table.shape[1], dtype=np.int64)
    for block in row_blocks(len(table)):
        outside = (table[block] < bounds.lower) | (table[block] > bounds.upper)
        counts += np.count_nonzero(outside, axis=0)
        unit = np.clip((table[block] - bounds.lower) / width, 0.0, 1.0)
        result[block] = unit * factor
    _say_clamped(counts, bounds.names)
    return result


def _say_clamped(counts: np.ndarray, names: Sequence[str] | None) -> None:
    """Warn of values outside the bounds, the columns with most of them first."""
    total = int(counts.sum())
    if not total:
        return
    worst = np.argsort(-counts, kind="stable")[: min(5, np.count_nonzero(counts))]
    shown = ", ".join(f"{name_column(int(at), names)} ({counts[at]:,})" for at in worst)
    more = np.count_nonzero(counts) - len(worst)
    warn(
        f"{total:,} value{'s' if total > 1 else ''} lay outside the public bounds and "
        f"{'were' if total > 1 else 'was'} set to them: {shown}"
        f"{f' and {more} more columns' if more else ''}. "
        "Check the bounds and the unit of the column",
        PrivateNote,
    )


def _is_json(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def _json_rows(text: str, path: Path) -> list[tuple[str, Any, Any]]:
    content = parse_json(text, path.name)
    if not isinstance(content, Mapping):
        raise InputError(f'{path.name}: expected {{"column": [lower, upper], ...}}')
    for name, pair in content.items():
        if not (isinstance(pair, list) and len(pair) == 2):
            raise InputError(f"{path.name}: column '{name}' needs [lower, upper]")
    return [(str(name), pair[0], pair[1]) for name, pair in content.items()]


def _csv_rows(text: str, path: Path) -> list[tuple[str, Any, Any]]:
    try:
        rows = list(csv.DictReader(text.splitlines()))
    except csv.Error:
        raise InputError(f"{path.name} is not a readable table") from None
    for number, row in enumerate(rows, start=1):
        if None in row.values() or None in row or not {"column", "lower", "upper"} <= set(row):
            raise InputError(f"{path.name}, row {number}: needs columns column, lower, upper")
    return [(from_cell(row["column"]), row["lower"], row["upper"]) for row in rows]
