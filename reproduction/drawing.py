"""Figures: PNG and SVG side by side, written whole. matplotlib is the ``plots`` extra."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairveil.errors import InputError
from pairveil.files import file_draft
from reproduction.experiments import EPSILONS, MECHANISMS, PANELS, PUBLISHED
from reproduction.verdicts import Rows, curves_of, mean_and_half_width, pick

#: Colour-blind safe (Okabe and Ito), one per method, the same in every figure.
COLOURS = {
    "nonpriv": "#000000",
    "dpp": "#E69F00",
    "dpp-s": "#D55E00",
    "node-dp": "#CC79A7",
    "inputper": "#999999",
    "euclid": "#009E73",
    "untrained": "#B8A800",
}
LABELS = {
    "nonpriv": "NonPriv (paper)",
    "dpp": "DPP (paper)",
    "dpp-s": "DPP-S (paper)",
    "node-dp": "Node DP",
    "inputper": "InputPer",
    "euclid": "Euclidean",
    "untrained": "untrained random",
}


def require_plots() -> Any:
    """matplotlib's Figure class, or a message that says what to install."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "figures need matplotlib: install it with  pip install 'pairveil[plots]'"
        ) from None
    return Figure


def panels(n: int, width: float = 3.4, height: float = 2.9) -> tuple[Any, list[Any]]:
    """A row of n axes (no pyplot: nothing global, no display needed)."""
    figure = require_plots()(figsize=(width * n, height), layout="constrained")
    axes = figure.subplots(1, n, squeeze=False)[0]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, list(axes)


def save(figure: Any, path: Path) -> list[str]:
    """Write ``path`` as .png and .svg; return the names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = []
    for kind in ("png", "svg"):
        target = path.with_suffix(f".{kind}")
        # no date inside, so that equal results give equal files
        about = {"Date": None} if kind == "svg" else {}
        with file_draft(target) as draft:
            figure.savefig(draft, format=kind, dpi=150, metadata=about)
        names.append(target.name)
    return names


def band(ax: Any, x: ArrayLike, rows: Rows, label: str, **style: Any) -> None:
    """The mean objective of several repeats over x, with a band of one standard deviation."""
    array = curves_of(rows)
    _band(ax, np.asarray(x)[: array.shape[1]], array, label, **style)


def _band(ax: Any, x: ArrayLike, array: NDArray[np.float64], label: str, **style: Any) -> None:
    mean, spread = array.mean(axis=0), array.std(axis=0)
    (line,) = ax.plot(x, mean, label=label, lw=1.4, **style)
    ax.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.15, lw=0)


def _errors(ax: Any, x: ArrayLike, repeats: list[list[float]], label: str, colour: str) -> None:
    """Means with their 95 % intervals."""
    means, halves = zip(*(mean_and_half_width(values) for values in repeats), strict=True)
    ax.errorbar(
        x, means, yerr=np.nan_to_num(halves), color=colour, marker="o", ms=3, lw=1.3, capsize=2,
        label=label,
    )  # fmt: skip


def toy(rows: Rows) -> Any:
    """Fig. 7: objective and sensitivity."""
    figure, (left, right) = panels(2, width=4.2)
    for variant in ("nonpriv", "dpp", "dpp-s"):
        mine = pick(rows, variant=variant)
        band(left, range(len(mine[0]["objective"])), mine, LABELS[variant], color=COLOURS[variant])
    left.set(xlabel="iteration", ylabel="objective", title="Convergence")
    reduced = np.array([row["sensitivity"] for row in pick(rows, variant="dpp-s")])
    for r, colour in ((0, "#0072B2"), (1, "#56B4E9")):
        steps = np.arange(1, reduced.shape[1] + 1)
        _band(right, steps, reduced[:, :, r], f"Theorem 2, row {r + 1}", color=colour)
    right.axhline(rows[0]["theorem1"], color="#000000", ls="--", lw=1, label="2 kappa h / |B|")
    right.set(xlabel="iteration", ylabel="sensitivity", title="Sensitivity", ylim=(0, None))
    for ax in (left, right):
        ax.legend(fontsize=7, frameon=False)
    return figure


def accuracy(rows: Rows) -> Any:
    """Fig. 8: kNN accuracy above, pair AUC below, a column of panels a data set."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure = require_plots()(figsize=(3.6 * len(names) + 1.6, 6.0), layout="constrained")
    axes = figure.subplots(2, len(names), squeeze=False)
    for i, column in enumerate(("knn_accuracy", "pair_auc")):
        for ax, name in zip(axes[i], names, strict=True):
            ax.spines[["top", "right"]].set_visible(False)
            for method in PUBLISHED:
                at = [pick(rows, data=name, method=method, epsilon=e) for e in EPSILONS]
                values = [[row[column] for row in of] for of in at]
                _errors(ax, EPSILONS, values, LABELS[method], COLOURS[method])
            for method, style in (("nonpriv", "-"), ("euclid", "--"), ("untrained", ":")):
                level = np.mean([row[column] for row in pick(rows, data=name, method=method)])
                ax.axhline(level, color=COLOURS[method], ls=style, lw=1, label=LABELS[method])
            ax.set_xscale("log", base=2)
            ax.set(xlabel="epsilon (as claimed)", title=name if i == 0 else "")
        axes[i][0].set_ylabel(column.replace("_", " "))
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=7, frameon=False)
    return figure


def mechanisms(rows: Rows) -> Any:
    """Fig. 9. Duchi is some hundred times the others: said in words, so that they can be told apart."""
    cases = list(dict.fromkeys((row["data"], row["epsilon"]) for row in rows))
    figure, axes = panels(len(cases))
    shades = dict(
        zip(MECHANISMS, ("#000000", "#E69F00", "#D55E00", "#0072B2", "#56B4E9"), strict=False)
    )
    for ax, (name, epsilon) in zip(axes, cases, strict=True):
        for method, colour in shades.items():
            mine = pick(rows, data=name, epsilon=epsilon, method=method)
            band(ax, mine[0]["at"], mine, method, color=colour)
        duchi = [
            row["objective_end"] for row in pick(rows, data=name, epsilon=epsilon, method="Duchi")
        ]
        ax.set(
            xlabel="iteration", title=f"{name}, epsilon {epsilon:g} (Duchi {np.mean(duchi):.0f})"
        )
    axes[0].set_ylabel("objective")
    axes[0].legend(fontsize=7, frameon=False)
    return figure


def parameters(rows: Rows) -> Any:
    """Fig. 10: curves for h and |B|, scores for rho and d'."""
    figure, axes = panels(4)
    shades = ("#56B4E9", "#009E73", "#000000", "#E69F00", "#D55E00")
    for ax, (panel, (_, values)) in zip(axes, PANELS.items(), strict=True):
        at = {value: pick(rows, panel=panel, value=value) for value in values}
        if "objective" in at[values[0]][0]:
            for (value, of), colour in zip(at.items(), shades, strict=True):
                band(ax, of[0]["at"], of, f"{panel} = {value:g}", color=colour)
            ax.set(xlabel="epoch", ylabel="objective", yscale="log")
        else:
            for column, colour in (("knn_accuracy", "#0072B2"), ("pair_auc", "#D55E00")):
                scores = [[row[column] for row in of] for of in at.values()]
                _errors(ax, values, scores, column.replace("_", " "), colour)
            ax.set_xscale("log", base=2)
            ax.set(xlabel=panel, ylabel="test score")
        ax.legend(fontsize=7, frameon=False)
    return figure


FIGURES: dict[str, Callable[[Rows], Any]] = {
    "toy": toy,
    "accuracy": accuracy,
    "mechanisms": mechanisms,
    "parameters": parameters,
}
