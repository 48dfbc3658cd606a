"""Long experiments in small pieces: every finished cell is kept, and skipped on the next run.

A cell is one measurement (say: Bank, DPP, epsilon 4, repeat 7) with a key that says everything it
depends on. Its result is one JSON file under ``OUT/cells/EXPERIMENT/``; delete the folder to measure
afresh. Tables are assembled from the cells.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from pairveil import __version__
from pairveil.files import file_draft, write_file

Key = dict[str, Any]
#: Called with (jobs done, jobs in all, what was done last).
Progress = Callable[[int, int, str], None]
Work = Callable[[Sequence[Key]], Iterator[dict[str, Any]]]


@dataclass(frozen=True)
class Job:
    """Cells that share their set-up, so that one worker fills them one after the other.

    ``work(keys)`` yields the result of each key in turn; it must be picklable.
    """

    title: str
    keys: tuple[Key, ...]
    work: Work


def run_jobs(
    experiment: str, jobs: Sequence[Job], out: Path, n_jobs: int, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """Fill the cells that are missing and return all of them, key and result merged.

    Parameters
    ----------
    experiment : str
        Name of the folder under ``out/cells``.
    n_jobs : int
        Worker processes, one thread each. 1 runs here.
    progress : callable, optional
        See ``Progress``.
    """
    folder = out / "cells" / experiment
    folder.mkdir(parents=True, exist_ok=True)
    todo = []
    for job in jobs:
        missing = tuple(key for key in job.keys if not cell_path(folder, key).exists())
        if missing:
            todo.append(Job(job.title, missing, job.work))
    for done, title in enumerate(_run(todo, folder, n_jobs), start=1):
        if progress is not None:
            progress(done, len(todo), f"{experiment}: {title}")
    return [_read(cell_path(folder, key)) for job in jobs for key in job.keys]


def cell_path(folder: Path, key: Key) -> Path:
    """The file of a cell: named after everything the cell depends on, this version included."""
    text = json.dumps({**key, "pairveil": __version__}, sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"


def _run(todo: list[Job], folder: Path, n_jobs: int) -> Iterator[str]:
    if n_jobs == 1 or len(todo) < 2:
        for job in todo:
            yield _fill(job, folder)
        return
    # one thread a worker: the matrices are small, and two pools on two cores fight
    with parallel_config(backend="loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        yield from pool(delayed(_fill)(job, folder) for job in todo)


def _fill(job: Job, folder: Path) -> str:
    with threadpool_limits(1):
        for key, result in zip(job.keys, job.work(job.keys), strict=True):
            write_whole(
                cell_path(folder, key), json.dumps({"key": key, "result": result}, allow_nan=False)
            )
    return job.title


def _read(path: Path) -> dict[str, Any]:
    cell = json.loads(path.read_text(encoding="utf-8"))
    return {**cell["key"], **cell["result"]}


def finite(value: float) -> float | None:
    """JSON has no infinity: None stands for 'no finite number'."""
    return value if math.isfinite(value) else None


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text)


def write_table(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write rows of plain values as CSV; lists (curves) are left to the cells."""
    names = list(dict.fromkeys(n for row in rows for n in row if not isinstance(row[n], list)))
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_draft(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, names, extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
    return path
