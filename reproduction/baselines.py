"""What the paper compares with: Duchi's mechanism, Warner's for labels, and InputPer, which uses it.

InputPer perturbs every pair before anyone collects it; training is post-processing. With
l1-normalised people two differences are at most 4 apart in l1, so Laplace noise of scale ``4 / epsilon_x``
hides one; a flip with probability ``1/(1 + e^epsilon_y)`` hides the label (docs/theory/guarantee.md).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from pairveil.array_types import FloatArray
from pairveil.audit.published import unit_rows
from pairveil.errors import InputError, PrivacyLeakWarning
from reproduction.published import Laplace, Mechanism, PublishedResult, Settings, train

#: Largest l1 distance between two differences of l1-normalised people.
DIFFERENCE_SENSITIVITY = 4.0


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


class Duchi(Mechanism):
    """Duchi, Jordan and Wainwright's mechanism for a vector in a box.

    ``sensitivity`` is the box's width: values lie in ``[-sensitivity/2, sensitivity/2]^d`` and any two
    are neighbours, so inside Algorithm 1 it hides a whole batch, not kappa pairs of it. Each coordinate
    is first rounded to a sign v_j at random; the answer is a corner ``B * s`` with s uniform among
    the corners that agree with v (s.v >= 0) with probability e^eps/(1+e^eps), else among those that
    disagree (s.v <= 0).

    ``pad``: even d has ties (s.v = 0) which belong to both halves, so the cost is ln(1 + e^epsilon). True
    adds a null coordinate and drops it from the answer: the cost is epsilon again. False is the mechanism
    as published.

    Examples
    --------
    >>> Duchi(1.0).epsilon_sound(4)
    1.0
    >>> round(Duchi(1.0, pad=False).epsilon_sound(4), 3)
    1.313
    """

    name = "Duchi"
    norm = np.inf

    def __init__(self, epsilon: float, pad: bool = True) -> None:
        super().__init__(epsilon)
        self.pad = pad

    def epsilon_sound(self, d: int) -> float:
        even = d % 2 == 0 and not self.pad
        return float(np.log1p(np.exp(self.epsilon))) if even else self.epsilon

    def _length(self, d: int) -> int:
        return d + 1 if self.pad and d % 2 == 0 else d

    def corner(self, d: int) -> float:
        """B: how far out the corners lie, so that the answer is unbiased (box [-1, 1]^d)."""
        n = self._length(d)
        if n % 2:
            log_half, log_tilt = (n - 1) * np.log(2), _log_choose(n - 1, (n - 1) // 2)
        else:  # corners with s.v >= 0: half of all, and half of the ties
            log_half = np.logaddexp((n - 1) * np.log(2), _log_choose(n, n // 2) - np.log(2))
            log_tilt = _log_choose(n - 1, n // 2)
        return float(np.exp(log_half - log_tilt) / np.tanh(self.epsilon / 2))

    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        d = value.size
        n = self._length(d)
        t = np.zeros(n)
        t[:d] = np.clip(value.ravel() / (sensitivity / 2), -1.0, 1.0)
        v = np.where(rng.random(n) < (1 + t) / 2, 1.0, -1.0)
        side = 1.0 if rng.random() < 1 / (1 + np.exp(-self.epsilon)) else -1.0
        s = rng.integers(0, 2, n) * 2.0 - 1.0
        while side * (s @ v) < 0:
            # odd n has no ties, so mirroring is a bijection; with ties only redrawing is uniform
            s = -s if n % 2 else rng.integers(0, 2, n) * 2.0 - 1.0
        return np.reshape(sensitivity / 2 * self.corner(d) * s[:d], value.shape)

    def log_density(self, output: FloatArray, value: FloatArray, sensitivity: float) -> float:
        """Log mass of the corner ``output`` (the sign of each coordinate is what counts)."""
        signs = np.sign(np.asarray(output)).ravel()
        t = np.clip(np.asarray(value).ravel() / (sensitivity / 2), -1.0, 1.0)
        if self._length(t.size) == t.size:
            return float(np.log(self._mass(signs, t)))
        t = np.append(t, 0.0)
        return float(np.log(sum(self._mass(np.append(signs, last), t) for last in (-1.0, 1.0))))

    def _mass(self, s: FloatArray, t: FloatArray) -> float:
        """P(s | t), summing over v through the number of coordinates where v agrees with s."""
        n = s.size
        agree = np.zeros(n + 1)
        agree[0] = 1.0
        for p in (1 + s * t) / 2:
            agree[1:] = agree[1:] * (1 - p) + agree[:-1] * p
            agree[0] *= 1 - p
        count = 2 * np.arange(n + 1) - n  # s.v
        yes = 1 / (1 + np.exp(-self.epsilon))
        log_half = (n - 1) * np.log(2)
        if n % 2 == 0:
            log_half = np.logaddexp(log_half, _log_choose(n, n // 2) - np.log(2))
        weight = yes * (count >= 0) + (1 - yes) * (count <= 0)
        return float((agree * weight).sum() * np.exp(-log_half))

    def variance(self, d: int, sensitivity: float) -> float:
        """At value 0; at value t it is smaller by t^2."""
        return (sensitivity / 2 * self.corner(d)) ** 2


class Warner:
    """Randomised response: each label is flipped with probability 1/(1 + e^epsilon).

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = Warner(np.log(3.0))
    >>> round(mechanism.flip_probability, 6)
    0.25
    >>> mechanism.debiased(np.array([1, -1])).round(6)
    array([ 2., -2.])
    """

    name = "Warner"

    def __init__(self, epsilon: float) -> None:
        if not epsilon > 0:
            raise InputError("epsilon must be positive")
        self.epsilon = float(epsilon)
        self.flip_probability = float(1 / (1 + np.exp(epsilon)))

    @property
    def epsilon_claimed(self) -> float:
        """What publishing one label is said to cost."""
        return self.epsilon

    def epsilon_sound(self, n_labels: int = 1) -> float:
        """What publishing costs when ``n_labels`` labels may differ."""
        return n_labels * self.epsilon

    def sample(self, rng: np.random.Generator, labels: NDArray[np.int8]) -> NDArray[np.int8]:
        """Flip labels in {+1, -1}."""
        flips = rng.random(labels.shape) < self.flip_probability
        return np.where(flips, -labels, labels).astype(np.int8)

    def log_mass(self, answer: int, label: int) -> float:
        """Log probability of ``answer`` when the label is ``label``."""
        p = self.flip_probability
        return float(np.log(1 - p if answer == label else p))

    def debiased(self, answers: NDArray[np.int8]) -> FloatArray:
        """Unbiased real-valued estimates of the labels: answer / (1 - 2p)."""
        estimate: FloatArray = answers / (1 - 2 * self.flip_probability)
        return estimate

    def variance(self) -> float:
        """Variance of a debiased label: 4 p (1-p) / (1-2p)^2."""
        p = self.flip_probability
        return 4 * p * (1 - p) / (1 - 2 * p) ** 2


class PerturbedPairs(NamedTuple):
    """Pairs as a collector sees them: noisy differences, answers in {+1, -1}, and what each costs."""

    dx: FloatArray
    labels: NDArray[np.int8]
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
    seen = noise.sample(rng, dx, DIFFERENCE_SENSITIVITY)
    return PerturbedPairs(seen, answers, noise.epsilon, response.epsilon)


def input_perturbation(
    X: ArrayLike,
    pairs: ArrayLike,
    labels: ArrayLike,
    settings: Settings,
    random_state: int | np.random.Generator | None = None,
    start: FloatArray | None = None,
) -> PublishedResult:
    """Perturb the pairs, then train the non-private algorithm (`algorithm1`) on what is left.

    The margin comes from the noisy pairs (or from ``settings.margin``). ``epsilon_claimed`` is the
    cost of one pair, ``epsilon_sound`` that of ``settings.kappa`` pairs: the paper says that no
    consideration is needed for correlated pairs, but kappa noisy copies of one relationship cost
    kappa times one.

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
    dx = rows[index[:, 0]] - rows[index[:, 1]]
    seen = perturb_pairs(dx, labels, settings.epsilon, random_state=rng)
    y = (1.0 - seen.labels) / 2  # the paper's y is 0 for +1 and 1 for -1
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
