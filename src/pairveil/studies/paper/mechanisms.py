"""The paper's Fig. 9: the objective during one epoch under different mechanisms (Adult, Bank).

Noise alone changes the objective: it lengthens W, and longer distances cost dissimilar pairs less. So
the pair AUC of the metric at the end stands beside the objective.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pairveil.errors import PrivacyLeakWarning
from pairveil.evaluation.scores import pair_auc
from pairveil.graph.kappa import kappa
from pairveil.studies.cells import Job, Key, Progress, run_jobs, write_table
from pairveil.studies.data import Benchmark, available, load
from pairveil.studies.paper.drawing import band, require_plots, save
from pairveil.studies.protocol import make_split, paper_graph
from pairveil.studies.published.algorithm1 import Settings, algorithm1
from pairveil.studies.published.mechanisms import Laplace, ReducedLaplace
from pairveil.studies.published.responses import Duchi
from pairveil.studies.published.staircase import GengViswanath, JointStaircase, Staircase

#: Method -> (variant, mechanism); Lap-S is Laplace with Theorem 2's sensitivity.
METHODS: dict[str, tuple[Any, Any]] = {
    "NonPriv": ("nonpriv", None),
    "Lap": ("dpp", Laplace),
    "Lap-S": ("dpp-s", ReducedLaplace),
    "SCDF": ("dpp", Staircase),
    "GV": ("dpp", GengViswanath),
    "SCDF-joint": ("dpp", JointStaircase),
    "Duchi": ("dpp", Duchi),
}
STYLE = {
    "NonPriv": "#000000", "Lap": "#E69F00", "Lap-S": "#D55E00", "SCDF": "#0072B2",
    "GV": "#009E73", "SCDF-joint": "#56B4E9", "Duchi": "#CC79A7",
}  # fmt: skip
EPSILONS = (1.0, 4.0)
PAPER_SETS = ("adult", "bank")


def run(
    data: str | Path | None,
    out: str | Path,
    seeds: int = 20,
    quick: bool = False,
    jobs: int = 2,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """One epoch under every mechanism, on Adult and Bank (or on what there is).

    Parameters
    ----------
    data : path or None
    out : path
        Folder for mechanisms.csv and the figure.
    seeds, quick, jobs, progress
        As for the other experiments; quick takes 200 people and one epsilon.

    Returns
    -------
    dict
        ``rows`` (with the objective curves) and ``files``.
    """
    require_plots()
    out = Path(out)
    names = available(data)
    chosen = [name for name in PAPER_SETS if name in names] or list(names)[:1]
    todo = []
    for name in chosen:
        benchmark = load(name, data)
        todo += [_job(benchmark, seed, quick) for seed in range(seeds)]
    rows = run_jobs("mechanisms", todo, out, jobs, progress)
    files = [
        write_table(out / "mechanisms.csv", rows).name,
        *save(_figure(rows), out / "mechanisms"),
    ]
    return {"rows": rows, "files": files}


def _job(benchmark: Benchmark, seed: int, quick: bool) -> Job:
    shared = {
        "data": benchmark.name,
        "people": len(benchmark.classes),
        "seed": seed,
        "n_components": 4 if quick else 16,
        "max_people": 200 if quick else None,
        "test_pairs": 5_000 if quick else 200_000,
    }
    keys = tuple(
        {**shared, "method": method, "epsilon": epsilon}
        for epsilon in (EPSILONS[-1:] if quick else EPSILONS)
        for method in METHODS
    )
    return Job(f"{benchmark.name}, repeat {seed}", keys, functools.partial(measure, benchmark))


def measure(benchmark: Benchmark, keys: Sequence[Key]) -> Iterator[dict[str, Any]]:
    """Every mechanism from one start on one graph."""
    seed = keys[0]["seed"]
    split = make_split(benchmark, np.random.default_rng([seed, 0]), "l1", keys[0]["max_people"])
    graph = paper_graph(split, np.random.default_rng([seed, 1]))
    group = kappa(graph.pairs).paper_bound
    steps = len(graph.pairs) // 50
    for key in keys:
        variant, mechanism = METHODS[key["method"]]
        plan = Settings(
            variant, epsilon=key["epsilon"], n_components=key["n_components"], kappa=group,
            epochs=1, mechanism=mechanism, record_every=max(1, steps // 25),
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            result = algorithm1(
                split.X_train, graph.pairs, graph.labels, plan, np.random.default_rng([seed, 3])
            )
        auc = pair_auc(result.W, split.X_test, split.y_test, key["test_pairs"], seed)
        yield {
            "kappa": group,
            "objective_end": float(result.objective[-1]),
            "objective_mean": float(result.objective.mean()),
            "pair_auc": auc,
            "at": result.objective_at.tolist(),
            "objective": result.objective.tolist(),
        }


def _figure(rows: list[dict[str, Any]]) -> Any:
    names = list(dict.fromkeys(row["data"] for row in rows))
    budgets = list(dict.fromkeys(row["epsilon"] for row in rows))
    figure = require_plots()(
        figsize=(4.0 * len(names) + 1.2, 2.9 * len(budgets)), layout="constrained"
    )
    axes = figure.subplots(len(budgets), len(names), squeeze=False)
    for i, epsilon in enumerate(budgets):
        for ax, name in zip(axes[i], names, strict=True):
            ax.spines[["top", "right"]].set_visible(False)
            here = [r for r in rows if r["data"] == name and r["epsilon"] == epsilon]
            for method, colour in STYLE.items():
                mine = [r for r in here if r["method"] == method]
                band(ax, mine[0]["at"], [r["objective"] for r in mine], method, color=colour)
            # Duchi is some hundred times the others: said in words, so that they can be told apart
            ends = [r["objective_end"] for r in here if r["method"] == "Duchi"]
            others = [r["objective"] for r in here if r["method"] != "Duchi"]
            ax.set_ylim(0.95 * np.min(others), 1.05 * np.max(others))
            ax.set(xlabel="iteration", title=f"{name}, epsilon {epsilon:g}")
            ax.text(0.98, 0.03, f"Duchi ends at {np.mean(ends):.0f}", ha="right", fontsize=7,
                    transform=ax.transAxes, color=STYLE["Duchi"])  # fmt: skip
        axes[i][0].set_ylabel("objective")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=7, frameon=False)
    return figure
