"""The paper's toy example (its Figs. 6 and 7): two aligned strips, an acyclic graph of 150 pairs.

epsilon 2, m 1, h 0.5, batch 30, 10 epochs, W of 2 x 2, kappa 1. The margin is given, not read off the
data, so DPP has a sound epsilon here: 2 rows times the claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.audit.published import Settings
from pairveil.graph.kappa import kappa
from reproduction.cells import Job, Key, finite
from reproduction.drawing import COLOURS, LABELS, band, panels
from reproduction.experiment import Data, Experiment, Rows, rerun
from reproduction.protocol import LabelledPairs, labelled

VARIANTS = ("nonpriv", "dpp", "dpp-s")


def strips(rng: np.random.Generator, each: int = 100) -> tuple[FloatArray, NDArray[np.int64]]:
    """Two parallel, elongated Gaussians of ``each`` points, inside the l1 unit ball."""
    classes = np.repeat([0, 1], each)
    along = rng.normal(0.0, 0.07, 2 * each)
    across = rng.normal(0.0, 0.012, 2 * each) + np.where(classes == 1, 0.03, -0.03)
    turn = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    return np.array([0.3, 0.3]) + np.column_stack([along, across]) @ turn, classes


def acyclic_pairs(
    classes: NDArray[np.int64], rng: np.random.Generator, each: int = 50
) -> LabelledPairs:
    """``each`` pairs within class 0, within class 1 and between them, closing no cycle.

    Examples
    --------
    >>> graph = acyclic_pairs(np.repeat([0, 1], 100), np.random.default_rng(0))
    >>> len(graph.pairs), int((graph.labels == -1).sum()), kappa(graph.pairs).relationship
    (150, 50, 1)
    """
    root = np.arange(len(classes))

    def find(v: int) -> int:
        while root[v] != v:
            v = root[v]
        return v

    chosen: list[tuple[int, int]] = []
    for first, second in ((0, 0), (1, 1), (0, 1)):
        wanted = len(chosen) + each
        while len(chosen) < wanted:
            a = int(rng.choice(np.flatnonzero(classes == first)))
            b = int(rng.choice(np.flatnonzero(classes == second)))
            if find(a) != find(b):
                root[find(a)] = find(b)
                chosen.append((a, b))
    return labelled(chosen, classes)


def _jobs(_: Data, seeds: int, quick: bool) -> list[Job]:
    """Quick takes two epochs instead of ten."""
    epochs = 2 if quick else 10
    return [
        Job(
            f"repeat {seed}",
            tuple({"variant": v, "seed": seed, "epochs": epochs} for v in VARIANTS),
            measure,
        )
        for seed in range(seeds)
    ]


def measure(keys: Sequence[Key]) -> Iterator[dict[str, Any]]:
    """The three variants from one start on one graph."""
    for key in keys:
        rng = np.random.default_rng([key["seed"], 0])
        X, classes = strips(rng)
        graph = acyclic_pairs(classes, rng)
        plan = Settings(
            key["variant"], epsilon=2.0, n_components=2, margin=1.0, h=0.5, batch_size=30,
            epochs=key["epochs"], kappa=kappa(graph.pairs).paper_bound, record_every=1,
        )  # fmt: skip
        result = rerun(X, graph, plan, np.random.default_rng([key["seed"], 1]))
        yield {
            "kappa": result.kappa,
            "epsilon_claimed": finite(result.epsilon_claimed),
            "epsilon_sound": finite(result.epsilon_sound),
            "objective": result.objective.tolist(),
            "sensitivity": result.sensitivity.tolist(),
            "theorem1": 2 * result.kappa * plan.h / plan.batch_size,
            "W": result.W.tolist(),
        }


def _long(rows: Rows) -> Rows:
    """One row an iteration."""
    table = []
    for row in rows:
        for step, value in enumerate(row["objective"]):
            sensitivity = row["sensitivity"][step - 1] if step else [float("nan")] * 2
            table.append(
                {
                    "variant": row["variant"], "seed": row["seed"], "iteration": step,
                    "objective": value, "sensitivity_row_1": sensitivity[0],
                    "sensitivity_row_2": sensitivity[1], "theorem_1": row["theorem1"],
                    "epsilon_claimed": row["epsilon_claimed"],
                    "epsilon_sound": row["epsilon_sound"],
                }
            )  # fmt: skip
    return table


def _scatter(rows: Rows) -> Any:
    X, classes = strips(np.random.default_rng([0, 0]))
    figure, axes = panels(4)
    first = {row["variant"]: np.array(row["W"]) for row in rows if row["seed"] == 0}
    spaces = [
        ("Original", np.eye(2)),
        *((LABELS[v], first[v]) for v in ("dpp", "dpp-s", "nonpriv")),
    ]
    for ax, (title, W) in zip(axes, spaces, strict=True):
        points = X @ W.T
        for c, colour in ((0, "#0072B2"), (1, "#D55E00")):
            ax.scatter(*points[classes == c].T, s=7, color=colour, alpha=0.8, lw=0)
        ax.set_title(title, fontsize=10)
    return figure


def _curves(rows: Rows) -> Any:
    figure, (left, right) = panels(2, width=4.2)
    for variant in VARIANTS:
        curves = [row["objective"] for row in rows if row["variant"] == variant]
        band(left, range(len(curves[0])), curves, LABELS[variant], color=COLOURS[variant])
    left.set(xlabel="iteration", ylabel="objective", title="Convergence")
    reduced = np.array([row["sensitivity"] for row in rows if row["variant"] == "dpp-s"])
    steps = np.arange(1, reduced.shape[1] + 1)
    for r, colour in ((0, "#0072B2"), (1, "#56B4E9")):
        band(right, steps, reduced[:, :, r], f"Theorem 2, row {r + 1}", color=colour)
    right.axhline(rows[0]["theorem1"], color="#000000", ls="--", lw=1, label="2 kappa h / |B|")
    right.set(xlabel="iteration", ylabel="sensitivity", title="Sensitivity", ylim=(0, None))
    for ax in (left, right):
        ax.legend(fontsize=7, frameon=False)
    return figure


run = Experiment(
    "toy",
    _jobs,
    tables=lambda rows: {"toy": _long(rows)},
    figures=lambda rows: {"toy-scatter": _scatter(rows), "toy-curves": _curves(rows)},
).run
