"""How a metric is learned from noisy sums.

1. *Survey*: how the columns spread, how long differences are, how many pairs are similar. Columns are
   put on one scale, pairs on balanced weights.
2. *Signal*: which columns differ more between dissimilar pairs. The strongest start the directions; how
   many stand out of the noise decides their number.
3. *Descent*: clipped full-batch steps on the contrastive loss. Each step shrinks the singular values by
   what noise alone would add to them; the second half of the iterates is averaged.
4. *Contest*: the learned metric, a blend with Euclid, and Euclid itself are compared on the pairs; Euclid
   stays unless something beats it by more than the noise. This is what does no harm.

Everything between two releases is post-processing of released numbers and public ones.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.learning.engine import Engine
from pairveil.learning.losses import ContrastiveLoss
from pairveil.learning.plan import TrainingPlan
from pairveil.learning.statistics import (
    Candidates,
    ColumnSignal,
    Contest,
    DissimilarDistances,
    DistanceMoments,
    Survey,
)
from pairveil.learning.sums import LossGradient
from pairveil.pairs.pairset import PairSet

FloatArray = NDArray[np.float64]

SIDE = 0.5  # weight of the survey's length and count beside the columns
MAX_DIRECTIONS = 10
STANDS_OUT = 3.0  # standard deviations of noise above which a column's signal counts
START_LENGTH = 2.0
TOTAL_STEP = 500.0  # summed step sizes without noise, in units of the clip bound
STEP_PER_SIGNAL = 4.0
SHRINKAGE = 0.7  # of the noise's expected operator norm
CLIP = (0.1, 0.5)  # at little and at much signal
CLIP_WITHOUT_NOISE = 0.6
REFERENCE_SIGNAL = 40.0
TYPICAL_DISTANCE = 0.6
BLENDS = (0.0, 0.3, 1.0)
L1_PER_L2 = 0.5  # clip in l1 relative to sqrt(entries) times the clip in l2


class Balance(NamedTuple):
    """What the survey says: column scale, typical length of a difference, weights."""

    scale: FloatArray
    length: float
    share: float
    weights: tuple[float, float]
    mass: float


def train(plan: TrainingPlan, data: PairSet, engine: Engine) -> FloatArray:
    """Learn the components of a metric by the releases of ``plan``.

    Parameters
    ----------
    plan : TrainingPlan
    data : PairSet
        Handed to the engine's view only: its contents are not looked at.
    engine : Engine

    Returns
    -------
    array of shape (n_components, n_features)
    """
    balance = take_survey(plan, engine)
    engine = engine.on(data, balance.scale)
    W = find_start(plan, engine, balance)
    margin = plan.margin if plan.margins is None else private_margin(plan, engine)
    W = descend(plan, engine, balance, W, margin)
    blend = hold_contest(plan, engine, balance, W)
    return assemble(W, balance, blend, plan.n_components)


def take_survey(plan: TrainingPlan, engine: Engine) -> Balance:
    """Release how the differences spread; put columns on one scale and pairs on balanced weights."""
    longest = 2 * plan.data_norm
    survey = Survey(plan.n_features, longest, SIDE)
    sums = replace(plan.survey, clip=survey.bound(plan.survey.norm))
    found = engine.release(sums, survey)
    spread, d, n = found[:-2], plan.n_features, plan.n_pairs
    # A column whose spread is below the noise is taken to spread as much as the noise: weak columns
    # are not blown up.
    floor = max(sums.noise_std(sums.clip), 0.01 * float(spread.max()), 1e-9)
    kept = np.maximum(spread, floor)
    length = longest * float(np.clip(found[d] / SIDE / n, 0.1, 1.0)) ** 2
    share = float(np.clip(found[d + 1] / SIDE / n, 0.02, 0.98))
    positive = np.clip(spread, 0.0, None)
    # After scaling, E||z||^2 is about 1.
    stretch = math.sqrt(
        float((positive / kept).sum()) / max(float(positive.sum() / kept.max()), 1e-9)
    )
    scale = 1.0 / (np.sqrt(kept / kept.max()) * length * max(stretch, 1e-9))
    weights = (min(1.0, (1 - share) / share), min(1.0, share / (1 - share)))
    return Balance(scale, length, share, weights, 2 * n * min(share, 1 - share))


def find_start(plan: TrainingPlan, engine: Engine, balance: Balance) -> FloatArray:
    """Release which columns carry signal; start one direction on each that stands out."""
    signal = engine.release(plan.signal, ColumnSignal(plan.n_features, balance.weights))
    noise = plan.signal.noise_std(plan.signal.clip)
    most = min(plan.n_features, plan.n_components or MAX_DIRECTIONS)
    order = np.argsort(-signal)[:most]
    # C balanced classes have one pair in C similar and C - 1 directions between them.
    classes = round(1 / balance.share) - 1
    k = min(most, max(1, int(np.sum(signal[order] > STANDS_OUT * noise)), classes))
    W = np.zeros((k, plan.n_features))
    W[np.arange(k), order[:k]] = np.sqrt(np.maximum(signal[order[:k]], 1e-9))
    return W * (START_LENGTH / np.linalg.norm(W))


def private_margin(plan: TrainingPlan, engine: Engine) -> float:
    """Mean scaled distance of dissimilar pairs, from a noisy sum and a noisy count."""
    assert plan.margins is not None
    longest = 4.0
    total, count = engine.release(
        replace(plan.margins, clip=DissimilarDistances.bound(plan.margins.norm)),
        DissimilarDistances(longest),
    )
    return float(np.clip(longest * total / max(count, 1.0), 0.25, longest))


def descend(
    plan: TrainingPlan, engine: Engine, balance: Balance, W: FloatArray, margin: float
) -> FloatArray:
    """Clipped noisy steps on the contrastive loss, shrunk against the noise, averaged."""
    sums, (k, d) = plan.gradients, W.shape
    widen = L1_PER_L2 * math.sqrt(d * k) if sums.norm == "l1" else 1.0
    batch = sums.sample_rate * balance.mass
    # Noise left on the average of all gradients, in units of the clip bound.
    noise = sums.noise_std(widen) / math.sqrt(sums.steps)
    clip = plan.max_grad_norm or _clip(signal_to_noise(batch, noise, d))
    total_step = TOTAL_STEP
    if noise > 0:
        total_step = min(total_step, STEP_PER_SIGNAL * batch / (noise * math.sqrt(d * k)))
    step = plan.learning_rate or total_step / sums.steps
    threshold = step * SHRINKAGE * (math.sqrt(d) + math.sqrt(k)) * noise / batch
    loss, ones = ContrastiveLoss(margin), np.ones(d)
    longest = 2 * plan.data_norm * float(balance.scale.max())
    average = np.zeros_like(W)
    for t in range(sums.steps):
        bound = clip * widen
        if sums.norm == "l2":
            # No pair's gradient exceeds a bound that W alone gives (docs/theory/guarantee.md).
            bound = min(bound, loss.gradient_bound(float(np.linalg.norm(W, 2)), longest))
        sums = replace(sums, clip=bound)
        gradient = engine.release(sums, LossGradient(W, loss, balance.weights, ones))
        W = W - step / (batch * clip) * gradient
        if threshold > 0:
            W = shrink_singular_values(W, threshold)
        if t >= sums.steps // 2:
            average += W
    return average / (sums.steps - sums.steps // 2)


def signal_to_noise(batch: float, noise: float, d: int) -> float:
    """Pairs that speak, over the length of the noise in one direction."""
    return batch / (noise * math.sqrt(d)) if noise > 0 else math.inf


def _clip(signal: float) -> float:
    if math.isinf(signal):
        return CLIP_WITHOUT_NOISE
    return float(np.clip(CLIP[0] * (signal / REFERENCE_SIGNAL) ** 0.6, *CLIP))


def shrink_singular_values(W: FloatArray, threshold: float) -> FloatArray:
    """Proximal step of the nuclear norm: directions that noise could have made fade.

    Examples
    --------
    >>> shrink_singular_values(np.diag([3.0, 0.5]), 1.0)
    array([[2., 0.],
           [0., 0.]])
    """
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    shrunk: FloatArray = (U * np.maximum(s - threshold, 0.0)) @ Vt
    return shrunk


def hold_contest(plan: TrainingPlan, engine: Engine, balance: Balance, W: FloatArray) -> float:
    """Weight of Euclid in the metric: 1 unless a blend orders the pairs better, beyond the noise."""
    candidates = Candidates(W / TYPICAL_DISTANCE, 1 / (balance.scale * balance.length), BLENDS)
    many = 2.0 if plan.moments.norm == "l1" else 1.0
    moments = engine.release(replace(plan.moments, clip=0.7 * many), DistanceMoments(candidates))
    first, second = np.split(moments / plan.n_pairs, 2)
    mean = np.clip(first, -1, 1)
    std = np.sqrt(np.clip(second - mean**2, 0.03**2, 1))
    k, d = W.shape
    widen = L1_PER_L2 * math.sqrt(d * k) if plan.gradients.norm == "l1" else 1.0
    noise = plan.gradients.noise_std(widen) / math.sqrt(plan.gradients.steps)
    signal = signal_to_noise(plan.gradients.sample_rate * balance.mass, noise, d)
    clip = 1.0 if math.isinf(signal) else float(np.clip(0.2 * math.sqrt(signal / 40), 0.2, 1))
    sums = replace(plan.contest, clip=clip)
    scores = engine.release(sums, Contest(candidates, mean, std, balance.weights))
    best = int(np.argmax(scores))
    demand = 0.0 if math.isinf(signal) else float(np.clip(30.0 / signal - 1, 0, 2))
    return BLENDS[best] if scores[best] > demand * sums.noise_std(clip) else 1.0


def assemble(W: FloatArray, balance: Balance, blend: float, n_components: int | None) -> FloatArray:
    """One matrix for the blended metric, in the columns' original units."""
    d = W.shape[1]
    learned = math.sqrt(1 - blend) / TYPICAL_DISTANCE * W * balance.scale
    if blend == 0 and n_components is None:
        return learned
    stacked = np.vstack([learned, math.sqrt(blend) / balance.length * np.eye(d)])
    _, s, Vt = np.linalg.svd(stacked, full_matrices=False)
    components: FloatArray = s[:n_components, None] * Vt[:n_components]
    return components
