"""A released metric in a notebook: which columns weigh how much, in place of a matrix of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pairveil.plots import html_table, new_axes

if TYPE_CHECKING:
    from pairveil.release.metric import ReleasedMetric

_SHOWN = 10


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
