"""The paper's Fig. 9: the objective during one epoch under different mechanisms (Adult, Bank).

Noise alone changes the objective: it lengthens W, and longer distances cost dissimilar pairs less. So
the pair AUC of the metric at the end stands beside the objective.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pairveil.audit.published import Laplace, ReducedLaplace, Settings
from pairveil.audit.published_targets import GengViswanath, JointStaircase, Staircase
from pairveil.evaluation.scores import pair_auc
from pairveil.graph.kappa import kappa
from reproduction.cells import Job, Key
from reproduction.data import Benchmark, available
from reproduction.drawing import band, require_plots
from reproduction.experiment import Data, Experiment, Rows, repeats, rerun
from reproduction.protocol import make_split, paper_graph
from reproduction.responses import Duchi

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


def _jobs(data: Data, seeds: int, quick: bool) -> list[Job]:
    """Adult and Bank, or what there is; quick takes 200 people and one epsilon."""
    sizes = {
        "n_components": 4 if quick else 16,
        "max_people": 200 if quick else None,
        "test_pairs": 5_000 if quick else 200_000,
    }
    cells = [
        {**sizes, "method": method, "epsilon": epsilon}
        for epsilon in (EPSILONS[-1:] if quick else EPSILONS)
        for method in METHODS
    ]
    names = available(data)
    chosen = [name for name in PAPER_SETS if name in names] or names[:1]
    return repeats(chosen, data, seeds, cells, measure)


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
        result = rerun(split.X_train, graph, plan, np.random.default_rng([seed, 3]))
        auc = pair_auc(result.W, split.X_test, split.y_test, key["test_pairs"], seed)
        yield {
            "kappa": group,
            "objective_end": float(result.objective[-1]),
            "objective_mean": float(result.objective.mean()),
            "pair_auc": auc,
            "at": result.objective_at.tolist(),
            "objective": result.objective.tolist(),
        }


def _figure(rows: Rows) -> Any:
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


run = Experiment(
    "mechanisms",
    _jobs,
    tables=lambda rows: {"mechanisms": rows},
    figures=lambda rows: {"mechanisms": _figure(rows)},
).run
