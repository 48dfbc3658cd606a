"""Releases in a notebook: which columns weigh how much, and error curves with their bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pairveil.errors import InputError
from pairveil.plots import html_table, new_axes

if TYPE_CHECKING:
    from pairveil.release.error_curve import ErrorCurve
    from pairveil.release.metric import ReleasedMetric

_SHOWN = 10
DET_TICKS = (0.0001, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


def column_weights(metric: ReleasedMetric) -> dict[str, float]:
    """Share of each column in the metric: its part of the trace of L^T L, scaled columns compared.

    Examples
    --------
    >>> from pairveil import ReleasedMetric
    >>> column_weights(ReleasedMetric([[3.0, 0.0], [0.0, 1.0]], feature_names=("a", "b")))
    {'a': 0.9, 'b': 0.1}
    """
    scale = np.ones(metric.n_features) if metric.column_scale is None else metric.column_scale
    unscaled = metric.components / np.where(scale > 0, scale, 1.0)
    squares = np.sum(unscaled**2, axis=0)
    shares = squares / max(float(squares.sum()), 1e-300)
    names = metric.feature_names or tuple(f"column {at}" for at in range(metric.n_features))
    return dict(zip(names, shares.tolist(), strict=True))


def metric_html(metric: ReleasedMetric) -> str:
    """The columns that weigh most, and what is promised."""
    weights = column_weights(metric)
    heaviest = sorted(weights, key=lambda name: -weights[name])
    rows = [[name, f"{weights[name]:.1%}"] for name in heaviest[:_SHOWN]]
    more = len(heaviest) - len(rows)
    size = f"{metric.n_components} x {metric.n_features} matrix"
    rest = f"; {more} more columns" if more else ""
    promise = "no certificate" if metric.certificate is None else metric.certificate.promise()
    return html_table(["column", "weight in the metric"], rows, f"{size}{rest}. {promise}")


def plot_weights(metric: ReleasedMetric, ax: Any = None, most: int = 20) -> Any:
    """Bars of the columns that weigh most."""
    ax = new_axes() if ax is None else ax
    weights = column_weights(metric)
    heaviest = sorted(weights, key=lambda name: -weights[name])[:most][::-1]
    ax.barh(heaviest, [weights[name] for name in heaviest])
    ax.set(xlabel="weight in the metric")
    return ax


def deviates(rates: Any) -> NDArray[np.float64]:
    """Rates on the scale of normal deviates, on which DET curves are drawn; 0 and 1 are cut off.

    Examples
    --------
    >>> deviates(np.array([0.0, 0.5, 1.0])).round(2)
    array([-3.72,  0.  ,  3.72])
    """
    return np.asarray(ndtri(np.clip(rates, DET_TICKS[0], 1 - DET_TICKS[0])))


def plot_errors(curve: ErrorCurve, kind: str = "det", ax: Any = None) -> Any:
    """A DET or ROC curve with its band."""
    if kind not in ("det", "roc"):
        raise InputError("kind must be 'det' or 'roc'")
    ax = new_axes() if ax is None else ax
    det = kind == "det"
    best, worst = curve.outline()
    middle = np.column_stack([curve.fmr, curve.fnmr])
    lines = [deviates(one) if det else one * [1, -1] + [0, 1] for one in (middle, best, worst)]
    band = np.concatenate([lines[1], lines[2][::-1]])
    words = f"{curve.confidence:.0%} band, sampling and noise"
    ax.fill(band[:, 0], band[:, 1], alpha=0.25, linewidth=0, label=words)
    ax.plot(lines[0][:, 0], lines[0][:, 1])
    ax.set(xlabel="false-match rate", ylabel="false non-match rate" if det else "matches found")
    if det:
        places, names = ndtri(DET_TICKS), [f"{100 * tick:g} %" for tick in DET_TICKS]
        ax.set_xticks(places, names)
        ax.set_yticks(places, names)
    ax.legend()
    return ax
