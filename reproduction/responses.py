"""Mechanisms that answer with one of finitely many values: Duchi et al., and Warner's for labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pairveil.array_types import FloatArray
from pairveil.audit.published import Mechanism
from pairveil.errors import InputError


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
