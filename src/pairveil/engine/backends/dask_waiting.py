"""Waiting for a Dask cluster, and saying so in one sentence when it has gone away.

A scheduler that dies cancels what was asked of it, and distributed raises one of several errors of its own. A
cluster whose workers have all died raises nothing at all: it waits for others to come. Both end in a
`ClusterError` here; `pairveil.learners.charging.how_to_resume` adds what was charged.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pairveil.errors import ClusterError

NO_WORKERS_FOR = 300.0
"""Seconds without a single worker after which a cluster is taken to be gone."""
LOOK_EVERY = 5.0
GONE = "the Dask cluster went away"


def results(client: Any, futures: list[Any]) -> list[Any]:
    """What some futures come to, however long it takes, while there is a cluster that works on them.

    Raises ClusterError: the scheduler is gone, or no worker is left and none comes.
    """
    from distributed import KilledWorker, wait

    with answering():
        deserted: float | None = None
        while True:
            try:
                wait(futures, timeout=LOOK_EVERY)
                break
            except TimeoutError:
                check_open(client)
                if client.status == "running" and client.nthreads():
                    deserted = None
                    continue
            now = time.monotonic()
            deserted = now if deserted is None else deserted
            if now - deserted >= NO_WORKERS_FOR:
                raise ClusterError(
                    f"the Dask cluster has had no workers for {NO_WORKERS_FOR:g} seconds"
                )
        broken = [future for future in futures if future.status == "error"]
        problem = broken[0].exception() if broken else None
        if isinstance(problem, KilledWorker):
            raise problem
        if problem is None:
            return list(client.gather(futures))
    raise problem  # the task's own: what it says of a connection is not about the cluster


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
