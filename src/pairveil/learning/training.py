"""How a metric is learned from noisy sums.

1. *Survey*: how the columns spread, how long differences are, how many pairs are similar. Columns are
   put on one scale, pairs on balanced weights.
2. *Signal*: which columns differ more between dissimilar pairs. The strongest start the directions; how
   many stand out of the noise decides their number.
3. *Descent*: clipped full-batch steps on the contrastive loss. Each step shrinks singular values and
   columns by half of what noise alone would add to them; the second half of the iterates is averaged.
4. *Contest*: the learned metric, with a little of Euclid in it, and Euclid itself are compared on the
   pairs. With little signal Euclid stays unless it is beaten: this is what does no harm.

Everything between two releases is post-processing of released numbers and public ones.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import DataWarning
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
USUAL_DIRECTIONS = 5  # as many at most, unless there are more classes
SIGNAL_CLIP = 0.6
STANDS_OUT = 5.0  # standard deviations of noise above which a column's signal counts
START_LENGTH = 2.0
TOTAL_STEP = 1000.0  # summed step sizes, in units of the clip bound, at most
TOTAL_STEP_WITHOUT_NOISE = 2000.0
STEP_PER_SIGNAL = 2.5
MAX_STEP = 20.0
SHRINKAGE = 0.5  # of what noise alone would add to a singular value, and to a column
CLIP = (0.05, 0.4)  # at little and at much signal
REFERENCE_SIGNAL = 30.0
TYPICAL_DISTANCE = 0.6
MOST_SHRINKINGS = 100  # from twice as many steps on, steps share them: one costs many small batches
BLEND, MAX_BLEND = (
    0.03,
    0.3,
)  # weight of Euclid beside what was learned: at the usual signal, at most
WIDE = 4096  # columns above which no square matrix is formed, so none is Euclid's
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
    # Fewer rows than features leave no room for Euclid: then what was learned is the metric.
    blend = 0.0 if plan.contest is None else hold_contest(plan, engine, balance, W)
    if plan.n_features > WIDE:
        if blend == 1:
            _say_euclid_won(plan.n_features)
        blend = 0.0
    return assemble(W, balance, blend)


def _say_euclid_won(n_features: int) -> None:
    # Public: it follows from the released scores of the contest.
    warnings.warn(
        f"the Euclidean metric orders these pairs about as well as what was learned, but over {n_features} "
        "features it cannot be written as a matrix of components: the learned directions are returned "
        f"alone. Compare them with Euclid, or reduce to {WIDE} features or fewer to have them blended",
        DataWarning,
        stacklevel=4,
    )


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
    if not 0.02 < share < 0.98 and sums.noise_std(sums.clip) < 0.01 * SIDE * n:
        # The count is a released one, so this may be said aloud.
        warnings.warn(
            "nearly all pairs seem to have the same label: there is little to tell apart",
            DataWarning,
            stacklevel=4,
        )
    weights = (min(1.0, (1 - share) / share), min(1.0, share / (1 - share)))
    return Balance(scale, length, share, weights, 2 * n * min(share, 1 - share))


def find_start(plan: TrainingPlan, engine: Engine, balance: Balance) -> FloatArray:
    """Release which columns carry signal; start one direction on each that stands out."""
    sums = replace(plan.signal, clip=SIGNAL_CLIP)
    signal = engine.release(sums, ColumnSignal(plan.n_features, balance.weights))
    noise = sums.noise_std(SIGNAL_CLIP)
    most = min(plan.n_features, plan.n_components or MAX_DIRECTIONS)
    order = np.argsort(-signal)[:most]
    # C balanced classes have one pair in C similar and C - 1 directions between them.
    classes = round(1 / balance.share) - 1
    clear = int(np.sum(signal[order] > STANDS_OUT * noise))
    if noise > 0:
        clear = min(clear, USUAL_DIRECTIONS)
    k = plan.n_components or min(most, max(1, clear, classes))
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
    widen, noise = l1_width(plan, k), descent_noise(plan, k)
    batch = sums.sample_rate * balance.mass
    clip = plan.max_grad_norm or _clip(signal_to_noise(plan, balance, k))
    step = plan.learning_rate or min(MAX_STEP, total_step(batch, noise, d * k) / sums.steps)
    faded = step * SHRINKAGE * noise / batch
    loss, ones = ContrastiveLoss(margin), np.ones(d)
    longest = 2 * plan.data_norm * float(balance.scale.max())
    average, counted = np.zeros_like(W), 0
    stretch = max(1, sums.steps // MOST_SHRINKINGS)
    for t in range(0, sums.steps, stretch):
        now = min(stretch, sums.steps - t)
        bound = clip * widen
        if sums.norm == "l2" and now == 1:
            # No pair's gradient exceeds a bound that W alone gives (docs/theory/guarantee.md).
            bound = min(bound, loss.gradient_bound(float(np.linalg.norm(W, 2)), longest))
        sums = replace(sums, clip=bound)
        gradient = LossGradient(W, loss, balance.weights, ones)
        W = engine.descend(sums, gradient, step / (batch * clip), now)
        if faded > 0:
            W = shrink_singular_values(W, now * faded * (math.sqrt(d) + math.sqrt(k)))
            W = shrink_columns(W, now * faded * math.sqrt(k))
        if t + now > sums.steps // 2:
            average, counted = average + now * W, counted + now
    return average / counted


def signal_to_noise(plan: TrainingPlan, balance: Balance, k: int) -> float:
    """Pairs that speak, over the length of the noise in one direction; infinite without noise."""
    noise = descent_noise(plan, k)
    batch = plan.gradients.sample_rate * balance.mass
    return batch / (noise * math.sqrt(plan.n_features)) if noise > 0 else math.inf


def descent_noise(plan: TrainingPlan, k: int) -> float:
    """Noise that the average of all gradients keeps on each entry, in units of the clip bound."""
    sums = plan.gradients
    return sums.noise_std(l1_width(plan, k)) / math.sqrt(sums.steps)


def l1_width(plan: TrainingPlan, k: int) -> float:
    """Clip bound in the mechanism's norm, relative to the one in l2."""
    return L1_PER_L2 * math.sqrt(plan.n_features * k) if plan.gradients.norm == "l1" else 1.0


def total_step(batch: float, noise: float, n_entries: int) -> float:
    """Summed step sizes: as far as the signal carries, not as far as the noise would."""
    if noise == 0:
        return TOTAL_STEP_WITHOUT_NOISE
    return min(TOTAL_STEP, STEP_PER_SIGNAL * batch / (noise * math.sqrt(n_entries)))


def _clip(signal: float) -> float:
    return float(np.clip(CLIP[0] * signal / REFERENCE_SIGNAL, *CLIP))


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


def shrink_columns(W: FloatArray, threshold: float) -> FloatArray:
    """Proximal step of the group lasso: columns that noise could have made fade.

    Examples
    --------
    >>> shrink_columns(np.array([[3.0, 0.5], [4.0, 0.0]]), 1.0)
    array([[2.4, 0. ],
           [3.2, 0. ]])
    """
    lengths = np.linalg.norm(W, axis=0)
    shrunk: FloatArray = W * np.maximum(0.0, 1 - threshold / np.maximum(lengths, 1e-300))
    return shrunk


def hold_contest(plan: TrainingPlan, engine: Engine, balance: Balance, W: FloatArray) -> float:
    """Weight of Euclid in the metric: little if the learned metric orders the pairs well, else 1.

    How well is well depends on the signal, a public or released number: with much of it the learned metric
    stays unless the pairs speak against it, with little of it the pairs must speak for it.
    """
    assert plan.moments is not None
    assert plan.contest is not None
    signal = signal_to_noise(plan, balance, len(W))
    blend = float(np.clip(BLEND * REFERENCE_SIGNAL / signal, BLEND, MAX_BLEND))
    euclid = 1 / (balance.scale * balance.length)
    candidates = Candidates(W / TYPICAL_DISTANCE, euclid, (blend, 1.0))
    wide = 2.0 if plan.moments.norm == "l1" else 1.0
    moments = engine.release(replace(plan.moments, clip=0.6 * wide), DistanceMoments(candidates))
    first, second = np.split(moments / plan.n_pairs, 2)
    mean = np.clip(first, -1, 1)
    std = np.sqrt(np.clip(second - mean**2, 0.03**2, 1))
    clip = float(np.clip(0.2 * math.sqrt(signal / 40), 0.2, 1))
    sums = replace(plan.contest, clip=clip)
    score = engine.release(sums, Contest(candidates, mean, std, balance.weights))[0]
    demand = float(np.clip(60 / signal - 4.8, -2, 3))
    return blend if score > demand * sums.noise_std(clip) else 1.0


def across(Vt: FloatArray) -> FloatArray:
    """An orthonormal basis of all that is orthogonal to the k orthonormal rows of ``Vt``, (d - k, d).

    The rows behind the k-th of the reflection that maps the first k axes onto the rows: one product of a
    d x k matrix with its transpose, where a decomposition of a d x d matrix would take minutes.

    Examples
    --------
    >>> across(np.array([[0.6, 0.8, 0.0]])).round(12)
    array([[-0.8,  0.6,  0. ],
           [ 0. ,  0. ,  1. ]])
    """
    k, d = Vt.shape
    left, sigma, right = np.linalg.svd(Vt[:, :k].T)
    steps = Vt.T.copy()
    steps[:k] += (
        left @ right
    )  # onto minus the nearest rotation of the axes: 1 + sigma is never small
    steps = steps @ right.T
    rows: FloatArray = -(steps[k:] / (1.0 + sigma)) @ steps.T
    rows[np.arange(d - k), np.arange(k, d)] += 1.0
    return rows


def assemble(W: FloatArray, balance: Balance, blend: float) -> FloatArray:
    """One matrix for the blended metric, in the columns' original units."""
    learned = math.sqrt(1 - blend) / TYPICAL_DISTANCE * W * balance.scale
    if blend == 0:
        return learned
    # Singular values and vectors of [learned; euclid I], from the few rows of ``learned`` alone: where it
    # stretches, sqrt(s^2 + euclid^2); in every direction across, euclid. No square matrix is decomposed.
    euclid = math.sqrt(blend) / balance.length
    _, s, Vt = np.linalg.svd(learned, full_matrices=False)
    components: FloatArray = np.concatenate(
        [np.hypot(s, euclid)[:, None] * Vt, euclid * across(Vt)]
    )
    # A direction and its opposite are one metric: the largest entry of a row is made positive.
    for row in components:
        if row[np.abs(row).argmax()] < 0:
            np.negative(row, out=row)
    return components
