"""Waiting for a Dask cluster, and saying so in one sentence when it has gone away.

A scheduler that dies cancels what was asked of it, and distributed raises one of several errors of its own. A
cluster whose workers have all died raises nothing at all: it waits for others to come. A scheduler that is
frozen answers nothing. All end in a `ClusterError` here; `pairveil.learners.charging.how_to_resume` adds what
was charged.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pairveil.errors import ClusterError

NO_WORKERS_FOR = 300.0
"""Seconds without a single worker, or without an answer, after which a cluster is taken to be gone."""
LOOK_EVERY = 5.0
GONE = "the Dask cluster went away"


def results(client: Any, futures: list[Any]) -> list[Any]:
    """What some futures come to, however long it takes, while there is a cluster that works on them.

    Raises ClusterError: the scheduler is gone or frozen, or no worker is left and none comes.
    """
    from distributed import KilledWorker, wait

    with answering():
        _while_it_works(client, lambda: _is_done(wait, futures))
        broken = [future for future in futures if future.status == "error"]
        problem = broken[0].exception() if broken else None
        if isinstance(problem, KilledWorker):
            raise problem
        if problem is None:
            # In a thread: to gather is to ask the scheduler, and one that is frozen never answers.
            asked = _in_background(lambda: list(client.gather(futures)))
            _while_it_works(client, lambda: bool(concurrent.futures.wait([asked], LOOK_EVERY).done))
            return asked.result()
    raise problem  # the task's own: what it says of a connection is not about the cluster


def n_workers(client: Any) -> int:
    """How many workers the scheduler has; 0 where it does not answer within some seconds."""
    try:
        return len(client.nthreads(callback_timeout=LOOK_EVERY))
    except TimeoutError:
        return 0


def _is_done(wait: Callable[..., Any], futures: list[Any]) -> bool:
    try:
        wait(futures, timeout=LOOK_EVERY)
    except TimeoutError:
        return False
    return True


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
