"""Figures: PNG and SVG side by side, written whole. matplotlib is the ``plots`` extra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairveil.errors import InputError
from pairveil.files import file_draft

#: Colour-blind safe (Okabe and Ito), one per method, the same in every figure.
COLOURS = {
    "nonpriv": "#000000",
    "dpp": "#E69F00",
    "dpp-s": "#D55E00",
    "node-dp": "#CC79A7",
    "inputper": "#999999",
    "ours-relationship": "#0072B2",
    "ours-person": "#56B4E9",
    "euclid": "#009E73",
    "untrained": "#B8A800",
}
LABELS = {
    "nonpriv": "NonPriv (paper)",
    "dpp": "DPP (paper)",
    "dpp-s": "DPP-S (paper)",
    "node-dp": "Node DP",
    "inputper": "InputPer",
    "ours-relationship": "pairveil, relationship",
    "ours-person": "pairveil, person",
    "ours-nonpriv": "pairveil, not private",
    "euclid": "Euclidean",
    "euclid-l2": "Euclidean (l2 rows)",
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


def mean_and_half_width(values: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Mean and half the interval (Student) over repeats; half width nan for one repeat."""
    from scipy.stats import t

    array = np.asarray(values, dtype=np.float64)
    if array.size < 2:
        return float(array.mean()), float("nan")
    error = array.std(ddof=1) / np.sqrt(array.size)
    return float(array.mean()), float(t.ppf((1 + level) / 2, array.size - 1) * error)


def band(ax: Any, x: ArrayLike, curves: ArrayLike, label: str, **style: Any) -> None:
    """The mean of several curves over x, with a band of one standard deviation."""
    array = np.asarray(curves, dtype=np.float64)
    mean, spread = array.mean(axis=0), array.std(axis=0)
    (line,) = ax.plot(x, mean, label=label, lw=1.4, **style)
    ax.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.15, lw=0)
