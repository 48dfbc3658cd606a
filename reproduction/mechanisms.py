"""The noise that the paper compares with Laplace's, with its density, variance and cost: all for measurement.

The draws are those of `pairveil.audit.published`, which audits them.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from pairveil.array_types import FloatArray
from pairveil.audit.published import joint_staircase, scdf_gamma, shells_of, staircase
from reproduction.published import Laplace, Mechanism


class ReducedLaplace(Laplace):
    """Laplace noise whose scale follows the private batch (the paper's Lap-S, Theorem 2).

    The caller passes the sensitivity of *this* batch, so two neighbouring batches use two scales
    b < b', and the log ratio ``|x| (1/b - 1/b')`` has no bound over x: no finite epsilon holds
    (docs/theory/guarantee.md).

    Examples
    --------
    >>> ReducedLaplace(1.0).epsilon_sound(d=1)
    inf
    """

    name = "Lap-S"

    def epsilon_sound(self, d: int) -> float:  # noqa: ARG002
        return float("inf")


def geng_viswanath_gamma(epsilon: float) -> float:
    """Width that minimises E|x| in Geng and Viswanath: 1/(1 + e^(eps/2))."""
    return float(1.0 / (1.0 + np.exp(epsilon / 2)))


class Staircase(Mechanism):
    """SCDF: independent staircase noise on each coordinate, as published.

    Examples
    --------
    >>> Staircase(1.0).epsilon_sound(d=1), Staircase(1.0).epsilon_sound(d=10)
    (1.0, 10.0)
    """

    name = "SCDF"

    def gamma(self) -> float:
        """Width of the centre step in units of the sensitivity."""
        return scdf_gamma(self.epsilon)

    def epsilon_sound(self, d: int) -> float:
        return d * self.epsilon

    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        return value + staircase(rng, self.epsilon, value.shape, sensitivity, self.gamma())

    def log_density(self, output: FloatArray, value: FloatArray, sensitivity: float) -> float:
        q, gamma = np.exp(-self.epsilon), self.gamma()
        distance = np.abs(np.asarray(output) - value) / sensitivity
        level = np.floor(distance + 1 - gamma)
        top = np.log(1 - q) - np.log(2 * sensitivity * (gamma + q * (1 - gamma)))
        return float((top - self.epsilon * level).sum())

    def variance(self, d: int, sensitivity: float) -> float:  # noqa: ARG002
        """In closed form, from the sums of q^k, k q^k and k^2 q^k."""
        q, g = np.exp(-self.epsilon), self.gamma()
        s0, s1, s2 = 1 / (1 - q), q / (1 - q) ** 2, q * (1 + q) / (1 - q) ** 3
        inner = 3 * g * s2 + 3 * g**2 * s1 + g**3 * s0  # sum q^k ((k+g)^3 - k^3)
        outer = 3 * (1 - g) * s2 + 3 * (1 - g**2) * s1 + (1 - g**3) * s0
        top = (1 - q) / (2 * (g + q * (1 - g)))
        return float(sensitivity**2 * 2 * top * (inner + q * outer) / 3)


class GengViswanath(Staircase):
    """The same noise with the step width that minimises the mean absolute error.

    Examples
    --------
    >>> round(GengViswanath(2.0).gamma(), 4)
    0.2689
    """

    name = "GV"

    def gamma(self) -> float:
        return geng_viswanath_gamma(self.epsilon)


class JointStaircase(Staircase):
    """Staircase in the l1 norm of the whole vector: epsilon in every dimension.

    Shell k has probability proportional to ``exp(-k eps) [(k+gamma)^d - max(k-1+gamma, 0)^d]``; within
    it the radius is uniform in d-volume and the direction uniform on the l1 sphere.

    Examples
    --------
    >>> JointStaircase(1.0).epsilon_sound(d=10)
    1.0
    """

    name = "SCDF-joint"

    def epsilon_sound(self, d: int) -> float:  # noqa: ARG002
        return self.epsilon

    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        return value + joint_staircase(rng, self.epsilon, value.shape, sensitivity)

    def log_density(self, output: FloatArray, value: FloatArray, sensitivity: float) -> float:
        distance = np.abs(np.asarray(output) - value) / sensitivity
        d, gamma = distance.size, self.gamma()
        log_weight = shells_of(self.epsilon, gamma, d).log_weight
        # the l1 ball of radius r has volume (2 r)^d / d!
        log_ball = d * np.log(2 * sensitivity) - gammaln(d + 1)
        level = np.floor(distance.sum() + 1 - gamma)
        return float(-self.epsilon * level - logsumexp(log_weight) - log_ball)

    def variance(self, d: int, sensitivity: float) -> float:
        """``E[r^2] E[u_j^2]`` with ``E[u_j^2] = 2/(d(d+1))`` for a Dirichlet(1_d) direction."""
        shells = shells_of(self.epsilon, self.gamma(), d)
        weight = np.exp(shells.log_weight - logsumexp(shells.log_weight))
        share = shells.inner / shells.outer
        mean_square = shells.outer**2 * d / (d + 2) * (1 - share ** (d + 2)) / (1 - share**d)
        return float(sensitivity**2 * (weight * mean_square).sum() * 2 / (d * (d + 1)))
