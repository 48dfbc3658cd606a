"""How each experiment of the paper runs: measure what is missing, then write tables and figures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.audit.published import PublishedResult, Settings, algorithm1
from pairveil.errors import PrivacyLeakWarning
from reproduction.cells import Job, Key, Progress, run_jobs, write_table
from reproduction.data import Benchmark, load
from reproduction.drawing import require_plots, save
from reproduction.protocol import LabelledPairs

Rows = list[dict[str, Any]]
Data = str | Path | None


@dataclass(frozen=True)
class Experiment:
    """What sets one experiment apart; ``run`` is the same for all of them.

    Parameters
    ----------
    name : str
        Names its cells.
    jobs : callable (data, seeds, quick)
        The work, a job a repeat.
    tables, figures : callable (rows)
        What is written of the finished rows, by file name without its ending.
    """

    name: str
    jobs: Callable[[Data, int, bool], list[Job]]
    tables: Callable[[Rows], dict[str, Rows]]
    figures: Callable[[Rows], dict[str, Any]]

    def run(
        self,
        data: Data,
        out: str | Path,
        seeds: int = 20,
        quick: bool = False,
        jobs: int = 2,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Measure, tabulate and draw.

        Parameters
        ----------
        data : path or None
            Folder of benchmark files; None is PAIRVEIL_DATA or the embedded tables.
        out : path
            Folder for tables, figures and finished cells.
        seeds : int
            Repeats: people, pairs, start and noise all change.
        quick : bool
            Small sizes: a check that everything runs.
        jobs, progress
            See ``cells.run_jobs``.

        Returns ``rows`` (one a cell, with its curves) and ``files``.
        """
        require_plots()
        out = Path(out)
        rows = run_jobs(self.name, self.jobs(data, seeds, quick), out, jobs, progress)
        tables, figures = self.tables(rows), self.figures(rows)
        files = [write_table(out / f"{stem}.csv", table).name for stem, table in tables.items()]
        files += [name for stem, figure in figures.items() for name in save(figure, out / stem)]
        return {"rows": rows, "files": files}


def repeats(
    names: Iterable[str],
    data: Data,
    seeds: int,
    cells: Sequence[Key],
    measure: Callable[[Benchmark, Sequence[Key]], Iterator[dict[str, Any]]],
) -> list[Job]:
    """A job for every data set and repeat, which measures all ``cells`` on it."""
    todo = []
    for benchmark in (load(name, data) for name in names):
        about = {"data": benchmark.name, "people": len(benchmark.classes)}
        for seed in range(seeds):
            keys = tuple({**about, "seed": seed, **cell} for cell in cells)
            title = f"{benchmark.name}, repeat {seed}"
            todo.append(Job(title, keys, partial(measure, benchmark)))
    return todo


def rerun(
    X: FloatArray,
    graph: LabelledPairs,
    plan: Settings,
    rng: np.random.Generator,
    learn: Callable[..., PublishedResult] = algorithm1,
    start: FloatArray | None = None,
) -> PublishedResult:
    """A published learner as published: what it leaks is the subject here and no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return learn(X, graph.pairs, graph.labels, plan, rng, start)
