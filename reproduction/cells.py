"""Long experiments in small pieces: every finished cell is kept, and skipped on the next run.

A cell is one measurement (say: Bank, DPP, epsilon 4, repeat 7) with a key that says everything it
depends on. Its result is one JSON file under ``OUT/cells/``; delete the folder to measure
afresh. Tables are assembled from the cells.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from pairveil import __version__
from pairveil.files import file_draft, write_file

Key = dict[str, Any]
Rows = list[dict[str, Any]]
#: Called with (jobs done, jobs in all, what was done last).
Progress = Callable[[int, int, str], None]
#: (key, data folder) -> what was measured; importable, so that a worker can be handed it.
Measure = Callable[[Key, str | None], dict[str, Any]]


def run_cells(
    measure: Measure,
    keys: Sequence[Key],
    out: Path,
    *,
    data: str | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Rows:
    """Fill the cells that are missing and return all, key and result merged, in the order of ``keys``.

    Cells of one data set, graph and repeat share their set-up, so one worker (one thread) fills them.
    """
    folder = out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    todo: dict[tuple[Any, ...], list[Key]] = {}
    for key in keys:
        if not cell_path(folder, key).exists():
            shared = (key.get("data"), key.get("graph"), key.get("seed"))
            todo.setdefault(shared, []).append(key)
    for done, title in enumerate(_run(measure, list(todo.values()), folder, data, jobs), start=1):
        if progress is not None:
            progress(done, len(todo), title)
    return [_read(cell_path(folder, key)) for key in keys]


def cell_path(folder: Path, key: Key) -> Path:
    """The file of a cell: named after everything the cell depends on, this version included."""
    text = json.dumps({**key, "pairveil": __version__}, sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"


def _run(
    measure: Measure, todo: list[list[Key]], folder: Path, data: str | None, jobs: int
) -> Iterator[str]:
    if jobs == 1 or len(todo) < 2:
        for keys in todo:
            yield _fill(measure, keys, folder, data)
        return
    # one thread a worker: the matrices are small, and two pools on two cores fight
    with parallel_config(backend="loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=jobs, return_as="generator_unordered")
        yield from pool(delayed(_fill)(measure, keys, folder, data) for keys in todo)


def _fill(measure: Measure, keys: list[Key], folder: Path, data: str | None) -> str:
    with threadpool_limits(1):
        for key in keys:
            path = cell_path(folder, key)
            if not path.exists():  # two settings may share a cell
                cell = {"key": key, "result": measure(key, data)}
                write_whole(path, json.dumps(cell, allow_nan=False))
    first = keys[0]
    return ", ".join(str(first[n]) for n in ("figure", "data", "graph", "seed") if n in first)


def _read(path: Path) -> dict[str, Any]:
    cell = json.loads(path.read_text(encoding="utf-8"))
    return {**cell["key"], **cell["result"]}


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
