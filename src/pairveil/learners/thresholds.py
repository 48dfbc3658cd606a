"""Choosing a threshold from how similar and dissimilar pairs spread over distances.

The choice needs only two histograms. Counted exactly it is metric-learn's calibration; counted with
noise (each pair falls into one cell, so one pair moves the joint histogram by 1 in l1 and in l2) it is
a private release, and everything here is post-processing of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pairveil.engine.statistics import Labels, Statistic, row_norms
from pairveil.errors import InputError
from pairveil.privacy.grid import Norm

STANDS_OUT = 5.0
"""Scales of noise that the pairs in a cell must exceed to be heard."""
Strategy = Literal["accuracy", "f_beta", "max_tpr", "max_tnr"]


def best_threshold(
    edges: NDArray[np.float64],
    similar: NDArray[np.float64],
    dissimilar: NDArray[np.float64],
    strategy: Strategy = "accuracy",
    min_rate: float | None = None,
    beta: float = 1.0,
) -> float:
    """The distance up to which pairs are called similar.

    Parameters
    ----------
    edges : array of shape (n,)
        Increasing; calling 'similar' all pairs with distance <= edges[i] accepts cells 0..i.
    similar, dissimilar : arrays of shape (n,)
        Pairs of each kind per cell, exact or noisy.
    strategy, min_rate, beta
        As in ``calibrate_threshold``. Where no edge reaches ``min_rate``, the threshold accepts nobody
        ('max_tpr') or everybody ('max_tnr').

    Examples
    --------
    >>> import numpy as np
    >>> best_threshold(np.array([0.1, 0.2, 0.3]), np.array([5, 4, 0]), np.array([0, 1, 9]))
    0.2
    """
    check_strategy(strategy, min_rate)
    accepted_similar = np.cumsum(np.maximum(similar, 0.0))
    accepted_dissimilar = np.cumsum(np.maximum(dissimilar, 0.0))
    n_similar = max(float(accepted_similar[-1]), 1e-12)
    n_dissimilar = max(float(accepted_dissimilar[-1]), 1e-12)
    true_positive = accepted_similar / n_similar
    true_negative = 1.0 - accepted_dissimilar / n_dissimilar

    if strategy == "accuracy":
        merit = accepted_similar - accepted_dissimilar
    elif strategy == "f_beta":
        predicted = accepted_similar + accepted_dissimilar
        merit = (
            (1 + beta**2) * accepted_similar / np.maximum(predicted + beta**2 * n_similar, 1e-12)
        )
    else:
        ours, other = (
            (true_positive, true_negative)
            if strategy == "max_tpr"
            else (true_negative, true_positive)
        )
        assert min_rate is not None
        merit = np.where(other >= min_rate, ours, -np.inf)
    if not np.any(np.isfinite(merit)):
        # Not an error: the counts may have been paid for. To accept nobody keeps every dissimilar pair out,
        # to accept everybody keeps every similar one in, whatever min_rate is.
        nobody = 0.0 if edges[0] > 0 else math.nextafter(edges[0], -math.inf)
        return nobody if strategy == "max_tpr" else float(edges[-1])
    return float(edges[int(np.argmax(merit))])


def match_odds(
    edges: NDArray[np.float64],
    similar: NDArray[np.float64],
    dissimilar: NDArray[np.float64],
    noise: float = 0.0,
) -> tuple[float, float]:
    """Log odds of 'similar' as ``a - b distance^2``, by logistic regression on counts, exact or noisy.

    ``b`` is not below 0: farther pairs are never likelier to be similar.

    Parameters
    ----------
    edges, similar, dissimilar
        As in `best_threshold`; a cell's distance is the middle between its edges.
    noise : float
        Scale of the noise on each count. Cells that do not stand out of it are left out: there are many of
        them, far away, and noise that is cut off at 0 would speak for 'neither'.

    Examples
    --------
    >>> a, b = match_odds(np.array([1.0, 2.0]), np.array([75, 25]), np.array([25, 75]))
    >>> round(a - b * 0.25, 2), round(a - b * 2.25, 2)
    (1.1, -1.1)
    """
    middle = (edges + np.concatenate([[0.0], edges[:-1]])) / 2
    scale = max(float(edges[-1]) ** 2, 1e-300)
    rows = np.column_stack([np.ones(len(edges)), -(middle**2) / scale])
    heard = similar + dissimilar > STANDS_OUT * noise
    yes, no = np.maximum(similar, 0.0) * heard, np.maximum(dissimilar, 0.0) * heard
    found, ridge = np.zeros(2), 1e-3
    for _ in range(50):
        share = 1.0 / (1.0 + np.exp(-np.clip(rows @ found, -500, 500)))
        slope = rows.T @ (yes - (yes + no) * share) - ridge * found
        bend = rows.T @ (((yes + no) * share * (1 - share))[:, None] * rows) + ridge * np.eye(2)
        step = np.linalg.solve(bend, slope)
        found = found + step * min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-300))
        if float(np.abs(step).max()) < 1e-10:
            break
    if found[1] < 0:
        return math.log((yes.sum() + ridge) / (no.sum() + ridge)), 0.0
    return float(found[0]), float(found[1]) / scale


def check_strategy(strategy: object, min_rate: float | None) -> None:
    """Refuse what no threshold can be chosen by.

    Examples
    --------
    >>> check_strategy("accuracy", None)
    """
    if strategy not in get_args(Strategy):
        raise InputError("strategy must be 'accuracy', 'f_beta', 'max_tpr' or 'max_tnr'")
    needs_rate = strategy in ("max_tpr", "max_tnr")
    if needs_rate and (min_rate is None or not 0 <= min_rate <= 1):
        raise InputError(f"strategy {strategy!r} needs min_rate between 0 and 1")


@dataclass(frozen=True)
class DistanceHistogram(Statistic):
    """How many similar and dissimilar pairs lie in each of 64 equal ranges of distance.

    Parameters
    ----------
    components : array of shape (k, d)
    longest : float
        Public bound on distances.
    """

    components: NDArray[np.float64]
    longest: float
    n_cells: int = 64
    clip = 1.0  # a pair adds one to one cell

    @property
    def shape(self) -> tuple[int, ...]:
        """Similar and dissimilar counts."""
        return (2, self.n_cells)

    @property
    def edges(self) -> NDArray[np.float64]:
        """Upper end of each cell."""
        return self.longest * np.arange(1, self.n_cells + 1) / self.n_cells

    def tile_sum(self, differences: Any, labels: Labels, norm: Norm) -> NDArray[np.float64]:  # noqa: ARG002
        """Counts; a pair adds one to one cell, so its norm is 1 in l1 and in l2."""
        distance = row_norms(np.asarray(differences @ self.components.T))
        cell = np.clip((distance / self.longest * self.n_cells).astype(int), 0, self.n_cells - 1)
        weight = (row_norms(differences) > 0).astype(np.float64)
        counts = np.zeros(self.shape)
        np.add.at(counts, ((labels < 0).astype(int), cell), weight)
        return counts
