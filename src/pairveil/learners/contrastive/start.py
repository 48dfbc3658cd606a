"""What a fit asks first: how columns spread, and on which of them the descent starts.

The survey puts columns on one scale and pairs on balanced weights. Then a vector of signals, or a noisy
choice of one column, says where directions start (docs/theory/learner.md).
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Plan
from pairveil.errors import DataWarning
from pairveil.learners.contrastive.column_scores import THRESHOLDS, ColumnScores
from pairveil.learners.contrastive.statistics import ColumnSignal, Survey

SIDE = 0.5  # weight of the survey's length and count beside the columns
EVEN = 2.0  # standard deviations of noise within which as many pairs are taken to be similar as not
MAX_DIRECTIONS = 10
USUAL_DIRECTIONS = 5  # as many at most, unless there are more classes
SIGNAL_CLIP = 0.6
HIDDEN = 3.0  # standard deviations of noise below which a column's spread is not known
OF_THRESHOLD = 0.3  # scaled difference at a chosen threshold
STANDS_OUT = 5.0  # standard deviations of noise above which a column's signal counts
START_LENGTH = 2.0


class Balance(NamedTuple):
    """What the survey says: column scale, typical length, share, weights, and which columns noise hides."""

    scale: FloatArray
    length: float
    share: float
    weights: tuple[float, float]
    mass: float
    hidden: NDArray[np.bool_] | None = None


def take_survey(plan: Plan, engine: Engine) -> Balance:
    """Ask how the differences spread; put columns on one scale and pairs on balanced weights."""
    query, longest = plan["survey"], 2 * plan.data_norm
    clip = Survey.bound(SIDE, query.mechanism.norm)
    found = engine.answer(query, Survey(plan.n_features, longest, SIDE, clip))
    spread, d, n, noise = found[:-2], plan.n_features, plan.n_records, query.noise_std(clip)
    # A column whose spread is below the noise is taken to spread as much as the noise: weak columns
    # are not blown up.
    floor = max(noise, 0.01 * float(spread.max()), 1e-9)
    kept = np.maximum(spread, floor)
    length = longest * float(np.clip(found[d] / SIDE / n, 0.1, 1.0)) ** 2
    share = float(np.clip(found[d + 1] / SIDE / n, 0.02, 0.98))
    if abs(share - 0.5) < EVEN * noise / SIDE / n:
        # Weights that a noisy share makes unequal favour columns that differ in pairs of either kind.
        share = 0.5
    positive = np.clip(spread, 0.0, None)
    # After scaling, E||z||^2 is about 1.
    stretch = math.sqrt(
        float((positive / kept).sum()) / max(float(positive.sum() / kept.max()), 1e-9)
    )
    scale = 1.0 / (np.sqrt(kept / kept.max()) * length * max(stretch, 1e-9))
    if not 0.02 < share < 0.98 and noise < 0.01 * SIDE * n:
        # The count is a released one, so this may be said aloud.
        warnings.warn(
            "nearly all pairs seem to have the same label: there is little to tell apart",
            DataWarning,
            stacklevel=4,
        )
    weights = (min(1.0, (1 - share) / share), min(1.0, share / (1 - share)))
    hidden = spread < HIDDEN * noise
    return Balance(scale, length, share, weights, 2 * n * min(share, 1 - share), hidden)


def find_start(
    n_components: int | None, plan: Plan, engine: Engine, balance: Balance
) -> FloatArray:
    """Ask which columns carry signal; start one direction on each that stands out."""
    query = plan["signal"]
    statistic = ColumnSignal(plan.n_features, balance.weights, SIGNAL_CLIP, balance.scale)
    signal = engine.answer(query, statistic)
    noise = query.noise_std(SIGNAL_CLIP)
    most = min(plan.n_features, n_components or MAX_DIRECTIONS)
    order = np.argsort(-signal)[:most]
    classes = _classes(balance)
    clear = int(np.sum(signal[order] > STANDS_OUT * noise))
    if noise > 0:
        clear = min(clear, USUAL_DIRECTIONS)
    k = n_components or min(most, max(1, clear, classes))
    W = np.zeros((k, plan.n_features))
    W[np.arange(k), order[:k]] = np.sqrt(np.maximum(signal[order[:k]], 1e-9))
    return W * (START_LENGTH / np.linalg.norm(W))


def choose_start(
    n_components: int | None, plan: Plan, engine: Engine, balance: Balance
) -> tuple[Balance, FloatArray]:
    """Choose the column to start on, and its scale where noise hides how it spreads."""
    limits = tuple(plan.data_norm * t for t in THRESHOLDS)
    scores = ColumnScores(plan.n_features, limits, balance.weights)
    column, threshold = scores.candidate(engine.choose(plan["start"], scores))
    scale = balance.scale.copy()
    if balance.hidden is not None and balance.hidden[column]:
        # The survey only says that it spreads less than the noise; the threshold says how much.
        scale[column] = max(scale[column], OF_THRESHOLD / threshold)
    # More classes have more directions between them: on the columns that spread most.
    k = n_components or min(MAX_DIRECTIONS, plan.n_features, max(1, _classes(balance)))
    order = [column, *(j for j in np.argsort(balance.scale) if j != column)][:k]
    W = np.zeros((k, plan.n_features))
    W[np.arange(k), order] = START_LENGTH / math.sqrt(k)
    return balance._replace(scale=scale), W


def _classes(balance: Balance) -> int:
    """Directions between the classes: C balanced ones have one pair in C similar, and C - 1 directions."""
    return round(1 / balance.share) - 1
