"""Bounding people's rows: the one way in which pairveil clips features.

A row is scaled by its own length only, so clipping one person never depends on another: it may be
done before learning without any privacy cost. Scaling by the table's longest row would not be.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from pairveil._warn import warn
from pairveil.errors import InputError, PrivateNote
from pairveil.foreign import as_csr
from pairveil.records.validation import row_blocks


def clip_rows(values: Any, data_norm: float) -> tuple[Any, int]:
    """Scale every row longer than ``data_norm`` (in l2) back to that length.

    Parameters
    ----------
    values : ndarray or scipy sparse matrix of shape (n, d)
        Finite float features.
    data_norm : float
        The public bound on a row's l2 norm.

    Returns
    -------
    clipped : ndarray or scipy.sparse.csr_array
        The same object where nothing had to be clipped.
    n_clipped : int
        How many rows were longer, beyond what rounding explains.

    Examples
    --------
    >>> import numpy as np
    >>> clipped, n_clipped = clip_rows(np.array([[3.0, 4.0], [0.0, 0.5]]), data_norm=1.0)
    >>> clipped.round(6), n_clipped
    (array([[0.6, 0.8],
           [0. , 0.5]]), 1)
    """
    bound = check_data_norm(data_norm)
    table: Any = as_csr(values) if sparse.issparse(values) else np.asarray(values)
    if table.dtype.kind != "f":
        table = table.astype(np.float64)
    norms = row_norms(table)
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
    if sparse.issparse(clipped):
        scale = np.ones(len(norms))
        scale[long] = factors
        clipped.data *= np.repeat(scale, np.diff(clipped.indptr)).astype(clipped.dtype)
        return clipped, n_clipped
    for block in row_blocks(len(long)):
        rows = long[block]
        clipped[rows] = (table[rows] * factors[block, None]).astype(table.dtype, copy=False)
    return clipped, n_clipped


def clip_rows_and_say_so(values: Any, data_norm: float) -> Any:
    """`clip_rows`, with a `PrivateNote` that says how many rows were clipped.

    Examples
    --------
    >>> import numpy as np
    >>> clip_rows_and_say_so(np.array([[0.6, 0.8]]), data_norm=1.0)
    array([[0.6, 0.8]])
    """
    clipped, n_clipped = clip_rows(values, data_norm)
    say_clipped(n_clipped, values.shape[0], data_norm)
    return clipped


def say_clipped(n_clipped: int, n_rows: int, data_norm: float) -> None:
    """Tell the operator that rows were clipped, if any were: how many there are depends on their contents.

    Examples
    --------
    >>> say_clipped(0, 5, data_norm=1.0)
    """
    if not n_clipped:
        return
    message = f"{n_clipped} of {n_rows} people's rows were longer than {data_norm:g} and clipped"
    if 2 * n_clipped > n_rows:
        message += (
            ". That is more than half: scale the columns by public bounds first "
            "(pairveil.records.scaling.scale_to_bounds)"
        )
    warn(message, PrivateNote)


def row_norms(values: Any) -> np.ndarray:
    """The l2 norm of every row, as float64, without overflow and block by block.

    Examples
    --------
    >>> import numpy as np
    >>> row_norms(np.array([[3e200, 4e200]])) / 1e200
    array([5.])
    """
    n_rows = values.shape[0]
    norms = np.empty(n_rows)
    if sparse.issparse(values):
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
