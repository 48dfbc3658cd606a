"""Sums over records that lie with the workers of a Dask cluster.

The used records (pairs, groups, tuples, people) are cut into parts; each part, with the features of its own
people, becomes one task's result and stays with a worker. For every query each worker sums its parts into
whole multiples of the grid and sends back one integer array; the driver adds those, and adds noise once.
Noise, sampling, order, kappa, selection and the ledger stay with the driver, which holds 9 bytes a pair.

Integer addition is exact, so it does not matter who summed what, or in which order. A part is counted once
however often it was computed: the driver adds one result for each part. When a worker dies, Dask
computes its parts anew from their recipe, which is why parts are made by tasks and not scattered: scattered
data would be lost with their worker. Features that are mapped from a file are opened by the workers
under the same path (a shared file system); others travel once, inside the recipe.

A scheduler that dies cancels what was asked of it, and distributed raises one of several errors of its own. A
cluster whose workers have all died raises nothing at all: it waits for others to come. A scheduler that is
frozen answers nothing. All end in a `ClusterError` here; `pairveil.learners.base.how_to_resume` adds what
was charged.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil._lazy import naming
from pairveil.array_types import IntArray
from pairveil.engine import kernels
from pairveil.engine import statistics as sums
from pairveil.engine.statistics import Statistic
from pairveil.errors import ClusterError, InputError
from pairveil.privacy.grid import Norm
from pairveil.records.pairset import PairSet
from pairveil.records.records import Records

# ---- Waiting for a Dask cluster, and saying so in one sentence when it has gone away -------------

NO_WORKERS_FOR = 300.0
"""Seconds without a single worker, or without an answer, after which a cluster is taken to be gone."""

LOOK_EVERY = 5.0

GONE = "the Dask cluster went away"


def results(client: Any, futures: list[Any]) -> list[Any]:
    """What some futures come to, however long it takes, while there is a cluster that works on them.

    Raises ClusterError: the scheduler is gone or frozen, or no worker is left and none comes.
    """
    from distributed import KilledWorker

    with answering():
        # In a thread: to gather is to ask the scheduler, and one that is frozen never answers.
        asked = _in_background(lambda: list(client.gather(futures)))
        _while_it_works(client, lambda: bool(concurrent.futures.wait([asked], LOOK_EVERY).done))
        problem = asked.exception()
        if problem is None:
            return asked.result()
        if isinstance(problem, KilledWorker) or all(one.status != "error" for one in futures):
            raise problem
    raise problem  # the task's own: what it says of a connection is not about the cluster


def n_workers(client: Any) -> int:
    """How many workers the scheduler has; 0 where it does not answer within some seconds."""
    try:
        return len(client.nthreads(callback_timeout=LOOK_EVERY))
    except TimeoutError:
        return 0


def _while_it_works(client: Any, done: Callable[[], bool]) -> None:
    """Ask again and again whether something is done, for as long as somebody may be working on it."""
    deserted: float | None = None
    while not done():
        check_open(client)
        if client.status == "running" and n_workers(client):
            deserted = None
            continue
        now = time.monotonic()
        deserted = now if deserted is None else deserted
        if now - deserted >= NO_WORKERS_FOR:
            raise ClusterError(
                f"the Dask cluster has had no workers, or has not answered, for {NO_WORKERS_FOR:g} seconds"
            )


def _in_background(call: Callable[[], list[Any]]) -> concurrent.futures.Future[list[Any]]:
    """A call in a thread that holds nobody up when the program ends."""
    found: concurrent.futures.Future[list[Any]] = concurrent.futures.Future()

    def work() -> None:
        try:
            found.set_result(call())
        except BaseException as problem:
            found.set_exception(problem)

    threading.Thread(target=work, daemon=True).start()
    return found


def check_open(client: Any) -> None:
    """Refuse a client that has lost its scheduler: it would never answer."""
    if client.status in ("closing", "closed"):
        raise ClusterError(GONE)


@contextmanager
def answering() -> Iterator[None]:
    """What distributed raises when a cluster is gone, as a `ClusterError`."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    lost = (
        concurrent.futures.CancelledError,
        asyncio.CancelledError,
        CommClosedError,
        ConnectionError,
        TimeoutError,
    )
    try:
        yield
    except KilledWorker:
        # The error names tasks and workers; a task's arguments may be private.
        raise ClusterError(
            "workers of the Dask cluster died again and again while they summed, most likely because their "
            "memory was too small"
        ) from None
    except lost:
        raise ClusterError(GONE) from None


# ---- Sums over records that lie with the workers of a Dask cluster -------------------------------

PARTS_PER_WORKER = 2  # so that the parts of a worker that died can be shared

_WHOLE_TILES = int(np.lcm(sums.TILE, kernels.TILE))


def connected_client() -> Any:
    """The Dask client in use.

    Raises InputError: dask.distributed is not installed, or no client is connected.
    """
    with naming("dask", "backend='dask'"):
        from distributed import get_client
    try:
        client = get_client()
    except ValueError:
        client = None
    if client is None or client.status != "running":  # a closed one may still be remembered
        raise InputError(
            "backend='dask' needs a cluster: connect first with dask.distributed.Client(...)"
        )
    return client


@contextmanager
def cluster(scheduler: str | None) -> Iterator[None]:
    """Connect to a scheduler for the time of a ``with`` block; None connects to nothing.

    ``scheduler``: its address, as ``tcp://10.0.0.5:8786``.
    """
    if scheduler is None:
        yield
        return
    with naming("dask", "A cluster"):
        from distributed import Client
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError):
        raise InputError("no Dask scheduler answers at the address given") from None
    with _silent("distributed"), client:
        yield


@contextmanager
def _silent(package: str) -> Iterator[None]:
    """Keep a package's logs off the screen: a lost cluster is reported in one line of our own."""
    known = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == package]
    before = {name: logging.getLogger(name).level for name in known}
    try:
        for name in known:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


class OnCluster:
    """Records that lie with the workers of a cluster: a backend of the engine.

    ``data`` are the used records, labelled. Parts hold whole tiles, so that full batches give the very
    integers of a local fit.
    """

    def __init__(self, data: Records, client: Any, n_parts: int | None = None) -> None:
        wanted = n_parts or PARTS_PER_WORKER * max(1, n_workers(client))
        self.n_records, self.dtype = data.n_records, data.features.dtype
        self.kind: str = data.kind
        # Every tile is a power of two up to `_WHOLE_TILES`, or a part would not be cut as the whole is.
        share = -(-self.n_records // (wanted * _WHOLE_TILES)) * _WHOLE_TILES
        self._edges = [*range(0, self.n_records, share), self.n_records]
        self._client = client
        self._parts = [
            # Not pure: two fits with equal pairs share nothing, and keys never hash contents.
            client.submit(_build, *_recipe(data, slice(first, last)), pure=False)
            for first, last in zip(self._edges[:-1], self._edges[1:], strict=True)
        ]

    def add_up(
        self,
        rows: IntArray | None,
        statistic: Statistic,
        norm: Norm,
        grid: float,
        *,
        separately: bool = False,
    ) -> IntArray:
        """The integers of `pairveil.engine.statistics.clipped_sum`, added up over all parts."""
        asked = (statistic, norm, grid, separately)
        with answering():
            check_open(self._client)
            whole = self._client.submit(_nothing, asked, pure=False)  # W and all else travel once
            shares = [
                self._client.submit(_sum_part, part, chosen, whole, pure=False)
                for part, chosen in zip(self._parts, self._local(rows), strict=True)
                if chosen is None or len(chosen)
            ]
        total = np.zeros(statistic.shape, dtype=np.int64)
        for share in results(self._client, shares):
            if share is None:
                raise InputError("the file of features changed during the fit: nothing is released")
            total += share
        return total

    def _local(self, rows: IntArray | None) -> list[IntArray | None]:
        """Which pairs of each part are asked for, in the part's own count."""
        if rows is None:
            return [None] * len(self._parts)
        cuts = np.searchsorted(rows, self._edges)  # a batch is in ascending order
        return [rows[cuts[i] : cuts[i + 1]] - self._edges[i] for i in range(len(self._parts))]


def _recipe(data: Records, block: slice) -> tuple[type[Records], dict[str, Any]]:
    """What a worker needs to build a part: the kind of records, and their contents or where features are."""
    path = _mapped_path(data.features) if not data.record_kind.own_rows else None
    contents = vars(data.part(block, own_people=path is None))
    if path is not None:
        contents = contents | {"features": (path, data.features.shape, data.features.dtype)}
    return type(data), contents


def _mapped_path(features: Any) -> str | None:
    """The .npy file that these features are, all of it and as it is on disk; None for anything else."""
    base = features
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    name = str(getattr(base, "filename", None))
    if not isinstance(base, np.memmap) or base.mode == "c" or not name.endswith(".npy"):
        return None  # 'c': what was changed in memory alone is not in the file
    # A slice of a mapped file is mapped, too: workers would take other people's rows for its own.
    with suppress(OSError, ValueError):
        whole = np.load(name, mmap_mode="r", allow_pickle=False)
        same = (whole.shape, whole.dtype) == (features.shape, features.dtype)
        in_order = whole.flags.c_contiguous and features.flags.c_contiguous
        return name if same and in_order and whole.offset == base.offset else None
    return None


def _build(kind: type[Records], contents: dict[str, Any]) -> Records | None:
    """A part, on a worker; None if the file of features is not the one that the driver checked."""
    if isinstance(contents["features"], tuple):
        path, *seen = contents["features"]
        try:
            features = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        if [features.shape, features.dtype] != seen:
            return None
        contents = contents | {"features": features}
    # The driver has checked it, who has seen it whole.
    return kind.checked_before(**contents)


def _nothing(asked: Any) -> Any:
    return asked


def _sum_part(part: Any, rows: IntArray | None, asked: Any) -> IntArray | None:
    """One part's integers, on a worker; None if the part could not be built again."""
    if part is None:
        return None
    statistic, norm, grid, separately = asked
    return sums.clipped_sum(part, rows, statistic, norm, grid, separately=separately)


# ---- Pairs and features that the workers read ------------------------------------------------------


def open_dask_pairs(
    features: Any, pairs: Any, columns: tuple[str, str, str] = ("left", "right", "label")
) -> PairSet:
    """Pairs and features from Dask collections, or from any file system that fsspec knows.

    The workers of the connected cluster read and check them, partition by partition; the driver holds the
    pairs (9 bytes each) and the features, or maps those from a ``.npy`` file.

    Parameters
    ----------
    features : dask.array.Array, dask.dataframe.DataFrame, str or path
        One row a person. A path is ``.npy`` or Parquet; one of this machine's ``.npy`` files is mapped, here
        and by the workers.
    pairs : dask.dataframe.DataFrame, str or path
        Two columns of row numbers (from 0) and one of labels, +1 (similar) and -1 (dissimilar). A
        path is Parquet: a file, a folder, a pattern.
    columns : (str, str, str)
        Their names.

    Returns
    -------
    PairSet
        For ``DPPMetricLearner(backend="dask").fit``, or any other learner of pairs.

    Raises
    ------
    InputError
        No cluster, a missing column, numbers that name nobody, labels other than +1 and -1.

    Examples
    --------
    >>> open_dask_pairs("s3://people/features.npy", "s3://people/pairs/")  # doctest: +SKIP
    PairSet(1000000 people, 100000000 pairs, 64 features, labelled)
    """
    client = connected_client()
    table, names = _read_features(features, client)
    if hasattr(pairs, "__fspath__") or isinstance(pairs, str):
        pairs = _read_parquet(str(pairs), "pairs")
    if not (hasattr(pairs, "to_delayed") and hasattr(pairs, "columns")):
        raise InputError("pairs must be a Dask DataFrame or the path of Parquet files")
    missing = [name for name in columns if name not in list(pairs.columns)]
    if missing:
        raise InputError(f"the pairs have no column '{missing[0]}'")
    parts = _read(
        client, pairs[list(columns)].to_delayed(), partial(_whole_numbers, columns), "pairs"
    )
    if any(part is None for part in parts):
        raise InputError(
            f"columns '{columns[0]}', '{columns[1]}' and '{columns[2]}' must hold whole numbers without "
            "gaps: people's row numbers below 2^31, and labels of +1 and -1"
        )
    ends, labels = (np.concatenate([part[i] for part in parts]) for i in range(2))
    return PairSet(table, ends, labels, feature_names=names)


def _read_features(source: Any, client: Any) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """People's rows, and the names of their columns where they have any."""
    if hasattr(source, "__fspath__") or isinstance(source, str):
        path = str(source)
        if path.split("::")[0].endswith(".npy"):  # the first of a chain is the file itself
            return _read_npy(path), None
        source = _read_parquet(path, "features")
    if not hasattr(source, "to_delayed"):
        raise InputError("features must be a Dask array, a Dask DataFrame or a path")
    if hasattr(source, "columns"):
        blocks, names = source.to_delayed(), tuple(map(str, source.columns))
    elif source.ndim == 2:
        blocks, names = source.rechunk({1: -1}).to_delayed()[:, 0], None
    else:
        raise InputError("features must have two dimensions: people and columns")
    parts = _read(client, list(blocks), _numbers, "features")
    if any(part is None for part in parts):
        raise InputError("every column of the features must hold numbers")
    if {part.shape[1] for part in parts} != {int(source.shape[1])}:
        raise InputError("a part of the features has another number of columns")
    return np.concatenate(parts), names


def _read_npy(path: str) -> NDArray[Any]:
    """A .npy file, mapped where it lies on this machine."""
    from fsspec.implementations.local import LocalFileSystem

    filesystem, inside = _file_system(path)
    try:
        if isinstance(filesystem, LocalFileSystem):
            found = np.load(inside, mmap_mode="r", allow_pickle=False)
        else:
            with filesystem.open(inside, "rb") as file:
                found = np.load(file, allow_pickle=False)
    except FileNotFoundError:
        raise InputError("there is no file of features at that place") from None
    except (OSError, ValueError, EOFError, KeyError):
        raise InputError("the features are not a whole NumPy file without Python objects") from None
    return np.asanyarray(found)


def _read_parquet(path: str, what: str) -> Any:
    """A Dask DataFrame over Parquet on any path that fsspec knows."""
    with naming("dask", "Parquet on a cluster"):
        import dask.dataframe as dd
    _file_system(path)
    try:
        return dd.read_parquet(path)
    except Exception as error:
        # Whatever a reader says may quote what it read.
        raise InputError(
            f"the {what} are not Parquet that can be read at that place ({type(error).__name__})"
        ) from None


def _file_system(path: str) -> tuple[Any, Any]:
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


def _read(client: Any, parts: list[Any], task: Callable[[Any], Any], what: str) -> list[Any]:
    """What a task makes of each part, on the workers; a reader's complaint is told without its words."""
    from dask import delayed

    # Not pure: keys never hash contents.
    futures = client.compute([delayed(task, pure=False)(part) for part in parts])
    try:
        return results(client, futures)
    except ClusterError as gone:
        raise ClusterError(f"{gone} while it read the {what}; nothing was charged") from None
    except Exception as error:
        raise InputError(f"a worker could not read the {what} ({type(error).__name__})") from None


def _whole_numbers(
    columns: tuple[str, str, str], frame: Any
) -> tuple[NDArray[np.int32], NDArray[np.int8]] | None:
    """Some pairs and their labels, on a worker; None where they hold anything but whole numbers.

    Nothing is raised on bad contents: Dask logs the arguments of a task that fails.
    """
    if not set(columns) <= set(frame.columns):  # Dask believes what a collection says of its parts
        return None
    frame = frame[list(columns)]
    if any(kind.kind not in "iuf" for kind in frame.dtypes) or bool(frame.isna().any(axis=None)):
        return None
    values = frame.to_numpy()
    with np.errstate(invalid="ignore"):  # an infinity becomes a number, which is not equal to it
        whole = values.astype(np.int32)
    if not bool((whole == values).all()):
        return None
    # Labels that int8 does not hold are not +1 or -1 either: the driver names their rows.
    return np.ascontiguousarray(whole[:, :2]), np.clip(whole[:, 2], -2, 2).astype(np.int8)


def _numbers(block: Any) -> NDArray[Any] | None:
    """Some people's rows, on a worker; None where something is not a number."""
    values = np.asarray(block)
    if values.dtype == object:
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            return None
    return values if values.ndim == 2 and values.dtype.kind in "fiub" else None
