"""People's features in blocks of rows that the workers of a Dask cluster read.

The driver knows how many rows and columns there are and of which type, and nothing of what they hold. A
``.npy`` file on a file system that all machines share is mapped by the workers; any other
path that fsspec knows (``s3://``, ``gs://``, ``zip://``, ...) is read in blocks of rows, as are Dask arrays,
Dask DataFrames and Parquet.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.engine.backends.dask import results
from pairveil.errors import ClusterError, InputError
from pairveil.records.clipping import clip_rows, say_clipped

BLOCK_BYTES = 1 << 26  # read at a time from a .npy file that cannot be mapped


@dataclass(frozen=True)
class FeatureBlocks:
    """Features that stay with the workers.

    Parameters
    ----------
    blocks : tuple of Delayed
        Arrays of some rows each, in order.
    starts : tuple of int
        Number of each block's first row; the last is the number of rows.
    dtype : dtype
        float32 or float64; blocks are brought to it.
    names : tuple of str or None
        Of the columns, where they have any.
    path : str or None
        A whole ``.npy`` file that workers map instead of reading blocks.
    data_norm : float or None
        Rows are clipped to this length as they are taken.
    """

    blocks: tuple[Any, ...]
    starts: tuple[int, ...]
    n_features: int
    dtype: Any
    names: tuple[str, ...] | None = None
    path: str | None = None
    data_norm: float | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """People and columns."""
        return self.starts[-1], self.n_features

    def clipped(self, client: Any, data_norm: float) -> FeatureBlocks:
        """Check every row, on the workers, and have long ones clipped as they are taken."""
        looks = fetch(
            client,
            [
                delayed_task(_look)(block, self.n_features, self.dtype, data_norm)
                for block in self.blocks
            ],
            "features",
        )
        for start, stop, look in zip(self.starts[:-1], self.starts[1:], looks, strict=True):
            if look.n_rows != stop - start:
                raise InputError("the features are not whole, or changed while they were read")
            if look.problem is not None:
                raise InputError(look.problem)
            if look.not_finite is not None:
                row, column = look.not_finite
                raise InputError(
                    "the features hold a NaN, an infinity or a missing value: "
                    f"column {column + 1}, row {start + row + 1}. Fill it in or leave that person out"
                )
        n_clipped = sum(look.n_clipped for look in looks)
        say_clipped(n_clipped, self.shape[0], data_norm)
        # A file whose rows are all short enough may be used as it lies.
        untouched = not any(look.touched for look in looks)
        return replace(self, data_norm=data_norm, path=self.path if untouched else None)

    def rows_of(self, people: Any) -> Any:
        """Delayed: the rows of ``people`` (Delayed, ascending numbers), clipped.

        None where a block is not what was checked.
        """
        starts = zip(self.blocks, self.starts[:-1], self.starts[1:], strict=True)
        taken = [
            delayed_task(_take)(block, people, (start, stop), self.n_features, self.dtype)
            for block, start, stop in starts
        ]
        return delayed_task(_stack)(taken, self.data_norm)


@dataclass(frozen=True)
class _Look:
    """What a worker reports about a block: counts and places, never a value."""

    n_rows: int
    problem: str | None = None
    not_finite: tuple[int, int] | None = None
    n_clipped: int = 0
    touched: bool = False


def open_features(source: Any, client: Any) -> FeatureBlocks:
    """Features from a Dask array, a Dask DataFrame, or a path.

    Parameters
    ----------
    source : dask.array.Array, dask.dataframe.DataFrame, str or path
        A path ends in ``.npy``, or is Parquet: a file, a folder or a pattern, of which every column is a
        feature. Rows count from 0, in the order of the files' names.
    client : distributed.Client
    """
    if hasattr(source, "__fspath__") or isinstance(source, str):
        path = source if isinstance(source, str) else str(source)
        if path.split("::")[0].endswith(".npy"):  # the first of a chain is the file itself
            return _open_npy(path)
        source = read_parquet(path, "features")
    if not hasattr(source, "to_delayed"):
        raise InputError("features must be a Dask array, a Dask DataFrame or a path")
    if hasattr(source, "columns"):
        kinds = [_numpy_dtype(kind) for kind in source.dtypes]
        blocks, n_features = tuple(source.to_delayed()), len(kinds)
        names: Any = tuple(map(str, source.columns))
    else:
        if source.ndim != 2:
            raise InputError("features must have two dimensions: people and columns")
        kinds, n_features = [source.dtype], int(source.shape[1])
        blocks, names = tuple(source.rechunk({1: -1}).to_delayed()[:, 0]), None
    if n_features == 0 or any(kind.kind not in "fiub" for kind in kinds):
        raise InputError("every column of the features must hold numbers")
    dtype = np.result_type(*kinds)
    heights = fetch(client, [delayed_task(len)(block) for block in blocks], "features")
    return replace(_blocks(blocks, heights, n_features, dtype), names=names)


def _numpy_dtype(kind: Any) -> Any:
    """The NumPy type of a column, object for what has none."""
    try:
        return np.dtype(getattr(kind, "numpy_dtype", kind))
    except TypeError:
        return np.dtype(object)


def _blocks(
    blocks: tuple[Any, ...], heights: list[int], n_features: int, dtype: Any
) -> FeatureBlocks:
    starts = tuple(np.concatenate([[0], np.cumsum(heights)]).tolist())
    if starts[-1] == 0:
        raise InputError("the features have no rows")
    kept = np.dtype(np.float32 if dtype in (np.float16, np.float32) else np.float64)
    return FeatureBlocks(blocks, starts, n_features, kept)


def _open_npy(path: str) -> FeatureBlocks:
    """Read the head of a .npy file, wherever it is."""
    from fsspec.implementations.local import LocalFileSystem

    filesystem, inside = file_system(path)
    try:
        with filesystem.open(inside, "rb") as file:
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, by_column, dtype = read(file)
            head = file.tell()
            held = file.seek(0, os.SEEK_END) - head
    except FileNotFoundError:
        raise InputError("there is no file of features at that place") from None
    except (OSError, ValueError, EOFError, KeyError):
        raise InputError("the features are not a whole NumPy file without Python objects") from None
    if len(shape) != 2 or by_column or dtype.kind not in "fiub" or shape[1] == 0:
        raise InputError(
            "the features must be a NumPy file of numbers, people by columns, row by row"
        )
    n, d = shape
    if n * d * dtype.itemsize > held:
        raise InputError("the features are not a whole NumPy file without Python objects")
    height = max(1, BLOCK_BYTES // (d * dtype.itemsize))
    edges = [*range(0, n, height), n]
    blocks = tuple(
        delayed_task(_read_rows)(path, head, first, last, d, dtype)
        for first, last in pairwise(edges)
    )
    local = isinstance(filesystem, LocalFileSystem) and dtype in (np.float32, np.float64)
    heights = np.diff(edges).tolist()
    return replace(_blocks(blocks, heights, d, dtype), path=str(inside) if local else None)


def file_system(path: str) -> tuple[Any, Any]:
    """The file system of a path and the path within it."""
    from fsspec.core import url_to_fs

    try:
        return url_to_fs(path)  # type: ignore[no-any-return]
    except (ImportError, ValueError, OSError) as error:
        kind = path.split("://", 1)[0]
        raise InputError(
            f"paths of the kind '{kind}' cannot be read here ({type(error).__name__}): "
            "install the fsspec package for them, as s3fs for s3"
        ) from None


def read_parquet(path: str, what: str) -> Any:
    """A Dask DataFrame over Parquet on any path that fsspec knows."""
    try:
        import dask.dataframe as dd
    except ImportError:
        raise InputError("Parquet needs Dask's DataFrame: pip install 'pairveil[dask]'") from None
    file_system(path)
    try:
        return dd.read_parquet(path)
    except Exception as error:
        # Whatever a reader says may quote what it read.
        raise InputError(
            f"the {what} are not Parquet that can be read at that place ({type(error).__name__})"
        ) from None


def fetch(client: Any, wanted: list[Any], what: str) -> list[Any]:
    """Results of Delayed objects, as `gathered` gives those of futures."""
    return gathered(client, client.compute(wanted), what)


def gathered(client: Any, futures: list[Any], what: str) -> list[Any]:
    """Results of futures; a reader's complaint is told without its words."""
    try:
        return results(client, futures)
    except ClusterError as gone:  # everything is read before anything is charged
        raise ClusterError(f"{gone} while it read the {what}; nothing was charged") from None
    except Exception as error:
        raise InputError(f"a worker could not read the {what} ({type(error).__name__})") from None


def delayed_task(function: Any) -> Any:
    """A task whose key is drawn and not made from contents."""
    from dask import delayed

    return delayed(function, pure=False)


def _read_rows(path: str, head: int, first: int, last: int, d: int, dtype: Any) -> NDArray[Any]:
    """Some rows of a .npy file, on a worker."""
    width = d * dtype.itemsize
    filesystem, inside = file_system(path)
    with filesystem.open(inside, "rb") as file:
        file.seek(head + first * width)
        content = file.read((last - first) * width)
    whole = len(content) // width * width  # of a file that was cut short; the driver counts rows
    return np.frombuffer(content[:whole], dtype=dtype).reshape(-1, d)


def _look(block: Any, n_features: int, dtype: Any, data_norm: float) -> _Look:
    """Check a block, on a worker. Nothing is raised: Dask logs the arguments of a task that fails."""
    try:
        rows = np.asarray(block).astype(dtype, copy=False)
    except (TypeError, ValueError):
        return _Look(len(block), "every column of the features must hold numbers")
    if rows.ndim != 2 or rows.shape[1] != n_features:
        return _Look(len(rows), "a part of the features has another number of columns")
    finite = np.isfinite(rows)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        return _Look(len(rows), not_finite=(row, column))
    clipped, n_clipped = clip_rows(rows, data_norm)
    return _Look(len(rows), n_clipped=n_clipped, touched=clipped is not rows)


def _take(
    block: Any, people: Any, edges: tuple[int, int], n_features: int, dtype: Any
) -> NDArray[Any] | None:
    """The rows of those people who are in a block, on a worker; None of a block that has changed."""
    first, last = np.searchsorted(people, edges)
    if first == last:
        return np.empty((0, n_features), dtype=dtype)
    try:
        rows: NDArray[Any] = np.asarray(block).astype(dtype, copy=False)
    except (TypeError, ValueError):
        return None
    if rows.shape != (edges[1] - edges[0], n_features):
        return None
    taken = rows[people[first:last] - edges[0]]
    return taken if bool(np.isfinite(taken).all()) else None


def _stack(taken: list[Any], data_norm: float | None) -> NDArray[Any] | None:
    """The rows of all people asked for, on a worker."""
    if any(rows is None for rows in taken):
        return None
    rows = np.ascontiguousarray(np.concatenate(taken))
    return rows if data_norm is None else clip_rows(rows, data_norm)[0]
