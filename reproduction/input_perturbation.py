"""InputPer: every pair is perturbed before anyone collects it; training is post-processing.

Laplace noise on each coordinate of the difference, Warner's randomised response on the label. With
l1-normalised people two differences are at most 4 apart in l1, so scale ``4 / epsilon_x`` hides one;
a flip with probability ``1/(1 + e^epsilon_y)`` hides the label (docs/theory/published.md).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairveil.array_types import FloatArray
from pairveil.audit.published import Laplace, PublishedResult, Settings, train, unit_rows
from pairveil.errors import InputError, PrivacyLeakWarning
from reproduction.responses import Warner

#: Largest l1 distance between two differences of l1-normalised people.
DIFFERENCE_SENSITIVITY = 4.0


@dataclass(frozen=True)
class PerturbedPairs:
    """Pairs as a collector sees them.

    ``dx``: noisy differences; ``labels``: answers in {+1, -1}; ``label_estimates``: the same,
    unbiased for the true labels; ``epsilon_x + epsilon_y`` is the cost of one pair.
    """

    dx: FloatArray
    labels: NDArray[np.int8]
    label_estimates: FloatArray
    epsilon_x: float
    epsilon_y: float


def perturb_pairs(
    dx: FloatArray,
    labels: ArrayLike,
    epsilon: float,
    *,
    feature_share: float = 0.5,
    random_state: int | np.random.Generator | None = None,
) -> PerturbedPairs:
    """Perturb differences and labels.

    Parameters
    ----------
    dx : array of shape (K, d)
        Differences of people with l1 norm at most 1.
    labels : array of shape (K,)
        +1 similar, -1 dissimilar.
    epsilon : float
        Cost of one pair.
    feature_share : float
        Share of epsilon that hides the features; the rest hides the label.

    Examples
    --------
    >>> seen = perturb_pairs(np.zeros((4, 2)), [1, -1, 1, 1], epsilon=2.0, random_state=0)
    >>> seen.epsilon_x, seen.epsilon_y, seen.dx.shape
    (1.0, 1.0, (4, 2))
    """
    if not 0 < feature_share < 1:
        raise InputError("feature_share must lie between 0 and 1")
    rng = np.random.default_rng(random_state)
    noise = Laplace(epsilon * feature_share)
    response = Warner(epsilon * (1 - feature_share))
    answers = response.sample(rng, np.asarray(labels, dtype=np.int8))
    return PerturbedPairs(
        dx=noise.sample(rng, dx, DIFFERENCE_SENSITIVITY),
        labels=answers,
        label_estimates=response.debiased(answers),
        epsilon_x=noise.epsilon,
        epsilon_y=response.epsilon,
    )


def input_perturbation(
    X: ArrayLike,
    pairs: ArrayLike,
    labels: ArrayLike,
    settings: Settings,
    random_state: int | np.random.Generator | None = None,
    start: FloatArray | None = None,
    *,
    feature_share: float = 0.5,
    debias: bool = False,
) -> PublishedResult:
    """Perturb the pairs, then train the non-private algorithm on what is left.

    The margin comes from the noisy pairs (or from ``settings.margin``). ``epsilon_claimed`` is the
    cost of one pair, ``epsilon_sound`` that of ``settings.kappa`` pairs: the paper says that no
    consideration is needed for correlated pairs, but kappa noisy copies of one relationship cost
    kappa times one.

    Parameters
    ----------
    X, pairs, labels, random_state, start
        As for :func:`algorithm1`.
    settings : Settings
        ``variant`` is ignored.
    feature_share : float
        Share of epsilon spent on the features.
    debias : bool
        Train on unbiased label estimates instead of the answers themselves.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((6, 3))
    >>> plan = Settings(epsilon=2.0, n_components=2, margin=1.0, batch_size=2, kappa=3)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     result = input_perturbation(X, [[0, 1], [2, 3]], [1, -1], plan, random_state=0)
    >>> result.epsilon_claimed, result.epsilon_sound
    (2.0, 6.0)
    """
    rng = np.random.default_rng(random_state)
    rows, index = unit_rows(X), np.asarray(pairs, dtype=np.int64)
    seen = perturb_pairs(
        rows[index[:, 0]] - rows[index[:, 1]],
        labels,
        settings.epsilon,
        feature_share=feature_share,
        random_state=rng,
    )
    # the paper's y is 0 for +1 and 1 for -1; debiased, it leaves [0, 1]
    y = (1.0 - (seen.label_estimates if debias else seen.labels)) / 2
    result = train(seen.dx, y, replace(settings, variant="nonpriv", mechanism=None), rng, start)
    sound = settings.kappa * settings.epsilon
    warnings.warn(
        f"InputPer claims epsilon {settings.epsilon:g} for one pair; {settings.kappa} correlated "
        f"pairs cost {sound:g}. It is here for comparison: use DPPMetricLearner to release a metric.",
        PrivacyLeakWarning,
        stacklevel=2,
    )
    return replace(
        result, variant="inputper", epsilon_claimed=settings.epsilon, epsilon_sound=sound
    )
