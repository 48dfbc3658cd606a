"""The checks that people's rows and records pass, and the one way in which pairveil clips features.

Messages name rows and columns by number or by column name; never a value, a label or an id.

A row is clipped by its own length only, so clipping one person never depends on another: it may be done
before learning without any privacy cost. Scaling by the table's longest row would not be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pairveil.errors import InputError, PrivateNote, warn
from pairveil.foreign import as_csr, is_sparse
from pairveil.printable import many
from pairveil.records.kinds import RecordKind

# Rows looked at together: bounds the memory that a check needs, whatever the table's size.
BLOCK_ROWS = 16_384

MOST_LEVELS = 1000
"""Of one comparison of pairs."""


def row_blocks(n_rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cover ``range(n_rows)`` in order, each at most ``size`` long."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def name_rows(rows: Sequence[int] | np.ndarray) -> str:
    """'row 3' or 'rows 3, 5, 8 and 4 more': how every message names rows."""
    shown = [f"{int(row):d}" for row in rows[:5]]
    more = len(rows) - len(shown)
    if len(rows) == 1:
        return f"row {shown[0]}"
    return f"rows {', '.join(shown)}" + (f" and {more} more" if more else "")


def name_column(column: int, names: Sequence[str] | None) -> str:
    """A column by its name where it has one, else by its number from 1."""
    return f"column '{names[column]}'" if names is not None else f"column {column + 1}"


def check_features(values: Any, names: Sequence[str] | None = None, *, finite: bool = True) -> Any:
    """Features as an (n, d) float array or CSR matrix, ``finite``; float32 and float64 stay as they are."""
    table: Any = as_csr(values) if is_sparse(values) else np.asarray(values)
    if table.ndim != 2:
        raise InputError(
            f"features must be a table of people by columns, not an array of {table.ndim} dimensions"
        )
    if table.dtype.kind not in "fiub":
        raise InputError("the features hold something that is not a number")
    if table.shape[0] == 0:
        raise InputError("the features have no rows")
    if table.shape[1] == 0:
        raise InputError("the features have no numeric columns")
    if names is not None and len(names) != table.shape[1]:
        raise InputError(f"{len(names)} column names for {table.shape[1]} feature columns")
    if table.dtype not in (np.float32, np.float64):
        table = table.astype(np.float32 if table.dtype == np.float16 else np.float64)
    if finite:
        _check_finite(table, names)
    return table


def unreadable_rows(values: Any) -> np.ndarray:
    """Which rows hold something that is no finite number."""
    found = np.zeros(values.shape[0], dtype=bool)
    if is_sparse(values):
        wrong = np.flatnonzero(~np.isfinite(values.data))
        found[np.searchsorted(values.indptr, wrong, side="right") - 1] = True
        return found
    for block in row_blocks(len(values)):
        found[block] = ~np.isfinite(values[block]).all(axis=1)
    return found


def _check_finite(table: Any, names: Sequence[str] | None) -> None:
    if is_sparse(table):
        bad = np.flatnonzero(~np.isfinite(table.data))
        if bad.size:
            row = int(np.searchsorted(table.indptr, bad[0], side="right")) - 1
            _refuse_value(row, int(table.indices[bad[0]]), names)
        return
    for block in row_blocks(len(table)):
        # A block's sum is finite only if every entry is (finite sums may overflow: then look again).
        with np.errstate(over="ignore", invalid="ignore"):
            clean = np.isfinite(table[block].sum(dtype=np.float64))
        if not clean:
            places = np.argwhere(~np.isfinite(table[block]))
            if len(places):
                _refuse_value(block.start + int(places[0, 0]), int(places[0, 1]), names)


def _refuse_value(row: int, column: int, names: Sequence[str] | None) -> None:
    raise InputError(
        "the features hold a NaN, an infinity or a missing value: "
        f"{name_column(column, names)}, row {row + 1}. Fill it in or leave that person out"
    )


def without_levels(members: Any) -> Any:
    """A MultiIndex of pandas, as recordlinkage has pairs, as an array; anything else as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> without_levels(pd.MultiIndex.from_tuples([("a", "b"), ("b", "c")])).tolist()
    [['a', 'b'], ['b', 'c']]
    """
    return members.to_frame(index=False).to_numpy() if hasattr(members, "levels") else members


def is_text(array: np.ndarray) -> bool:
    """Whether an array holds text; of objects the first two say so.

    Examples
    --------
    >>> is_text(np.array(["a", "b"])), is_text(np.array([1, 2]))
    (True, False)
    """
    some = array.ravel()[:2].tolist() if array.dtype.kind in "UOT" else []
    return bool(some) and all(isinstance(one, str) for one in some)


def check_members(members: Any, kind: RecordKind, n_people: int | None = None) -> np.ndarray:
    """Members as a (K, m) integer array of row numbers of different people; int32 and int64 stay as they are.

    ``n_people``: how many people there are; None where nobody said.
    """
    (least, most), name = kind.sizes, kind.name
    m = f"{most}" if least == most else "m"
    try:
        table = np.asarray(members)
    except ValueError:  # ragged lists
        raise InputError(f"{name} must all have as many members: a (K, {m}) array") from None
    if table.size == 0:
        raise InputError(f"there are no {name}")
    if table.ndim != 2 or not least <= table.shape[1] <= most:
        wanted = f"(K, {m}), a {kind.one} a row" + f", m from {least} to {most}" * (m == "m")
        raise InputError(f"{name} must have shape {wanted}; got {table.shape}")
    if table.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be integers, the row numbers of people counted from 0: "
            "pairveil.PairSet.join turns ids into row numbers"
        )
    above = 2**63 if n_people is None else n_people
    if table.min() < 0 or table.max() >= above:
        bad = np.flatnonzero(((table < 0) | (table >= above)).any(axis=1))
        those = "the people: a number is negative or above 2**63 - 1"
        if n_people is not None:
            those = f"the {n_people} people"
        raise InputError(
            f"{many(bad.size, f'{kind.one} points', f'{kind.one}s point')} outside {those} "
            f"({name_rows(bad + 1)}); people are counted from 0"
        )
    if table.dtype not in (np.int32, np.int64):
        table = table.astype(np.int64)
    if most == 2:
        refuse_self_pairs(table)
        return table
    ordered = np.sort(table, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if twice.size:
        raise InputError(
            f"{many(twice.size, f'{kind.one} names', f'{kind.one}s name')} a person twice "
            f"({name_rows(twice + 1)}). Everybody is in a {kind.one} once at most"
        )
    return table


def self_pairs(rows: np.ndarray) -> str:
    """Which rows join a person with herself, in words."""
    one, several = "pair joins a person with herself", "pairs join a person with themselves"
    return f"{many(len(rows), one, several)} ({name_rows(rows)})"


def refuse_self_pairs(pairs: np.ndarray, rows: np.ndarray | None = None) -> None:
    """Raise InputError, with row numbers (by default 1, 2, ...), if a pair joins a person with herself."""
    selves = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if selves.size:
        said = self_pairs(selves + 1 if rows is None else rows[selves])
        it = "it" if selves.size == 1 else "them"
        raise InputError(f"{said}. Correct {it}, or leave {it} out: leave_out=True")


def check_labels(labels: Any, n_pairs: int, rows: np.ndarray | None = None) -> np.ndarray:
    """Labels as (K,) int8 in {+1 similar, -1 dissimilar}."""
    values = np.asarray(labels)
    if values.shape != (n_pairs,):
        raise InputError(f"{n_pairs} pairs need {n_pairs} labels, one each; got {values.shape}")
    if values.dtype.kind not in "iuf":
        raise InputError("labels must be the numbers +1 (similar) and -1 (dissimilar)")
    bad = neither(values)
    if bad.size:
        named = bad + 1 if rows is None else rows[bad]
        raise InputError(
            f"{many(bad.size, 'label', 'labels')} not +1 (similar) or -1 (dissimilar): {name_rows(named)}"
        )
    return values.astype(np.int8, copy=False)


def neither(labels: np.ndarray) -> np.ndarray:
    """Positions of the labels that are neither +1 nor -1, found block by block."""
    found = [np.empty(0, dtype=np.int64)]
    for block in row_blocks(len(labels)):
        part = labels[block]
        found.append(block.start + np.flatnonzero((part != 1) & (part != -1)))
    return np.concatenate(found)


# ---- clipping -----------------------------------------------------------------------------------


def clip_rows(values: Any, data_norm: float) -> tuple[Any, int]:
    """Scale every row longer than ``data_norm`` (in l2) back to that length."""
    bound = check_data_norm(data_norm)
    table: Any = as_csr(values) if is_sparse(values) else np.asarray(values)
    if table.dtype.kind != "f":
        table = table.astype(np.float64)
    norms = exact_row_norms(table)
    long = np.flatnonzero(norms > bound)
    if not long.size:
        return values, 0
    # Shrink by the rounding that computing the norm and the product may hide, so that the clipped
    # row's true norm is at most data_norm.
    slack = 2 * np.finfo(table.dtype).eps + (table.shape[1] + 4) * np.finfo(np.float64).eps
    factors = bound / norms[long] * (1 - slack)
    # A row scaled to the bound by its owner may be a rounding error longer: clipped, not counted.
    rounding = 1e-6 if table.dtype == np.float32 else 1e-9
    n_clipped = int(np.count_nonzero(norms > bound * (1 + rounding)))
    clipped = table.copy()
    if is_sparse(clipped):
        scale = np.ones(len(norms))
        scale[long] = factors
        clipped.data *= np.repeat(scale, np.diff(clipped.indptr)).astype(clipped.dtype)
        return clipped, n_clipped
    for block in row_blocks(len(long)):
        rows = long[block]
        clipped[rows] = (table[rows] * factors[block, None]).astype(table.dtype, copy=False)
    return clipped, n_clipped


def clip_rows_and_say_so(values: Any, data_norm: float) -> Any:
    """`clip_rows`, with a `PrivateNote` that says how many rows were clipped."""
    clipped, n_clipped = clip_rows(values, data_norm)
    if n_clipped:
        n_rows = values.shape[0]
        message = (
            f"{n_clipped} of {n_rows} people's rows were longer than {data_norm:g} and clipped"
        )
        if 2 * n_clipped > n_rows:
            message += (
                ". That is more than half: scale the columns by public bounds first "
                "(pairveil.records.scaling.scale_to_bounds)"
            )
        warn(message, PrivateNote)  # how many there are depends on their contents
    return clipped


def exact_row_norms(values: Any) -> np.ndarray:
    """The l2 norm of every row, as float64, without overflow and block by block."""
    n_rows = values.shape[0]
    norms = np.empty(n_rows)
    if is_sparse(values):
        table = as_csr(values)
        for row_block in row_blocks(n_rows):
            part = table[row_block]
            largest = np.asarray(abs(part).max(axis=1).todense(), dtype=np.float64).ravel()
            unit = np.where(largest > 0, largest, 1.0)
            scaled = part.data / np.repeat(unit, np.diff(part.indptr))
            owner = np.repeat(np.arange(len(unit)), np.diff(part.indptr))
            squares = np.bincount(owner, weights=scaled**2, minlength=len(unit))
            norms[row_block] = unit * np.sqrt(squares)
        return norms
    for row_block in row_blocks(n_rows):
        part = np.asarray(values[row_block], dtype=np.float64)
        largest = np.abs(part).max(axis=1, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)
        scaled = part / unit[:, None]
        norms[row_block] = unit * np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    return norms


def check_data_norm(data_norm: float) -> float:
    """``data_norm`` as a float, refused unless positive and finite."""
    bound = float(data_norm)
    if not (math.isfinite(bound) and bound > 0):
        raise InputError("data_norm must be a positive number")
    return bound
