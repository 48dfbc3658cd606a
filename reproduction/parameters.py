"""The paper's Fig. 10: h, batch size, rho and d' on Bank.

As in the paper: h and |B| by the objective of a private run (epsilon 4, three epochs; Theorem 2's noise,
which the text argues from), rho and d' by the test accuracy of the non-private run. Pair AUC is kept
too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pairveil.audit.published import Settings
from pairveil.graph.kappa import kappa
from reproduction.accuracy import KNN_PEOPLE
from reproduction.cells import Job, Key
from reproduction.data import Benchmark, available
from reproduction.drawing import band, mean_and_half_width, panels
from reproduction.experiment import Data, Experiment, Rows, repeats, rerun
from reproduction.protocol import make_split, paper_graph, score

#: Panel -> (variant, values). Only 0.5 and 2, 50, 1 and 2, 16 and 32 are named in the paper.
PANELS: dict[str, tuple[Any, tuple[float, ...]]] = {
    "h": ("dpp-s", (0.1, 0.25, 0.5, 1.0, 2.0)),
    "batch_size": ("dpp-s", (10, 25, 50, 100, 200)),
    "rho": ("nonpriv", (0.25, 0.5, 1.0, 2.0, 4.0)),
    "n_components": ("nonpriv", (2, 4, 8, 16, 32)),
}
DEFAULT = {"h": 0.5, "batch_size": 50, "rho": 1.0, "n_components": 16}
RECORDS = 40


def _jobs(data: Data, seeds: int, quick: bool) -> list[Job]:
    """One parameter changed at a time, on Bank or on what there is; quick: 200 people, one epoch."""
    sizes = {
        "epochs": 1 if quick else 3,
        "max_people": 200 if quick else None,
        "test_pairs": 5_000 if quick else 200_000,
    }
    cells = [
        {**sizes, "panel": panel, "value": value}
        for panel, (_, values) in PANELS.items()
        for value in values
    ]
    names = available(data)
    chosen = "bank" if "bank" in names else names[0]
    return repeats([chosen], data, seeds, cells, measure)


def measure(benchmark: Benchmark, keys: Sequence[Key]) -> Iterator[dict[str, Any]]:
    """Every value of every panel on one graph."""
    seed = keys[0]["seed"]
    split = make_split(benchmark, np.random.default_rng([seed, 0]), "l1", keys[0]["max_people"])
    graph = paper_graph(split, np.random.default_rng([seed, 1]))
    group = kappa(graph.pairs).paper_bound
    for key in keys:
        chosen: dict[str, Any] = {**DEFAULT, key["panel"]: key["value"]}
        steps = len(graph.pairs) // int(chosen["batch_size"]) * key["epochs"]
        plan = Settings(
            PANELS[key["panel"]][0], epsilon=4.0, kappa=group, epochs=key["epochs"],
            record_every=max(1, steps // RECORDS), **chosen,
        )  # fmt: skip
        result = rerun(split.X_train, graph, plan, np.random.default_rng([seed, 3]))
        scores = score(result.W, split, seed, n_pairs=key["test_pairs"], knn_people=KNN_PEOPLE)
        yield {
            **scores,
            "kappa": group,
            "objective_start": float(result.objective[0]),
            "objective_end": float(result.objective[-1]),
            # share of the run at which each value was recorded, so that batch sizes can be compared
            "at": (result.objective_at / result.objective_at[-1] * key["epochs"]).tolist(),
            "objective": result.objective.tolist(),
        }


def of(rows: Sequence[dict[str, Any]], panel: str, value: float, column: str) -> list[Any]:
    """One column over the repeats of one value."""
    return [r[column] for r in rows if r["panel"] == panel and r["value"] == value]


def _figure(rows: Rows) -> Any:
    figure, axes = panels(4)
    shades = ("#56B4E9", "#009E73", "#000000", "#E69F00", "#D55E00")
    for ax, panel, symbol in zip(axes[:2], ("h", "batch_size"), ("h", "|B|"), strict=True):
        for value, colour in zip(PANELS[panel][1], shades, strict=True):
            curves = of(rows, panel, value, "objective")
            at = of(rows, panel, value, "at")[0]
            band(ax, at, curves, f"{symbol} = {value:g}", color=colour)
        ax.set(xlabel="epoch", ylabel="objective", yscale="log")
        ax.legend(fontsize=7, frameon=False)
    for ax, panel, symbol in zip(axes[2:], ("rho", "n_components"), ("rho", "d'"), strict=True):
        values = PANELS[panel][1]
        for column, colour in (("knn_accuracy", "#0072B2"), ("pair_auc", "#D55E00")):
            stats = [mean_and_half_width(of(rows, panel, v, column)) for v in values]
            means, halves = zip(*stats, strict=True)
            ax.errorbar(
                values, means, yerr=np.nan_to_num(halves), color=colour, marker="o", ms=3,
                lw=1.3, capsize=2, label=column.replace("_", " "),
            )  # fmt: skip
        ax.set_xscale("log", base=2)
        ax.set(xlabel=symbol, ylabel="test score")
        ax.legend(fontsize=7, frameon=False)
    return figure


run = Experiment(
    "parameters",
    _jobs,
    tables=lambda rows: {"parameters": rows},
    figures=lambda rows: {"parameters": _figure(rows)},
).run
