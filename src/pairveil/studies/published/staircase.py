"""Staircase noise: one coordinate at a time as published, and jointly as it must be for vectors.

The density is constant on shells and falls by exp(-epsilon) from one to the next. Shell k holds
``k - 1 + gamma <= |x| / sensitivity < k + gamma`` (shell 0 starts at 0), so that a shift by the
sensitivity crosses at most one edge. In one dimension this is exactly epsilon-private. Independent
coordinates under an l1 sensitivity are not: every coordinate may cross an edge, and d edges cost
d * epsilon (docs/theory/published.md). The joint form puts the shells in the l1 norm of the whole vector.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from pairveil.array_types import FloatArray
from pairveil.studies.published.mechanisms import Mechanism


def scdf_gamma(epsilon: float) -> float:
    """Width of the centre step in Soria-Comas and Domingo-Ferrer: 1/eps - 1/(e^eps - 1)."""
    return float(1.0 / epsilon - 1.0 / np.expm1(epsilon))


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
        q, gamma, shape = np.exp(-self.epsilon), self.gamma(), value.shape
        sign = rng.integers(0, 2, shape) * 2 - 1
        step = rng.geometric(-np.expm1(-self.epsilon), shape) - 1
        inner = rng.random(shape) < gamma / (gamma + (1 - gamma) * q)
        place = rng.random(shape)
        size = step + np.where(inner, gamma * place, gamma + (1 - gamma) * place)
        return value + sensitivity * sign * size

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


class _Shells(NamedTuple):
    """Inner and outer radius, log weight and cumulative probability of each shell."""

    inner: FloatArray
    outer: FloatArray
    log_weight: FloatArray
    cumulative: FloatArray


@lru_cache(maxsize=64)
def _shells(epsilon: float, gamma: float, d: int) -> _Shells:
    """Weight shell k by exp(-k eps) times its d-volume (radius 1 ball = 1).

    Weights peak near k = d/epsilon; the table ends where they are below e^-50 of the largest.
    """
    last = int(np.ceil((d + 60 + 12 * np.sqrt(d)) / epsilon)) + 2
    k = np.arange(last + 1, dtype=np.float64)
    outer = k + gamma
    inner = np.maximum(k - 1 + gamma, 0.0)
    log_weight = -epsilon * k + d * np.log(outer) + np.log1p(-((inner / outer) ** d))
    cumulative = np.cumsum(np.exp(log_weight - logsumexp(log_weight)))
    return _Shells(inner, outer, log_weight, cumulative)


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
        d = value.size
        shells = _shells(self.epsilon, self.gamma(), d)
        k = int(np.searchsorted(shells.cumulative[:-1], rng.random(), side="right"))
        # r^d uniform between inner^d and outer^d, without leaving the range of floats
        low = (shells.inner[k] / shells.outer[k]) ** d
        radius = shells.outer[k] * (low + (1 - low) * rng.random()) ** (1 / d)
        direction = rng.standard_exponential(d)
        direction /= direction.sum()  # Dirichlet(1, ..., 1)
        sign = rng.integers(0, 2, d) * 2 - 1
        noise: FloatArray = (sensitivity * radius * sign * direction).reshape(value.shape)
        return value + noise

    def log_density(self, output: FloatArray, value: FloatArray, sensitivity: float) -> float:
        distance = np.abs(np.asarray(output) - value) / sensitivity
        d, gamma = distance.size, self.gamma()
        log_weight = _shells(self.epsilon, gamma, d).log_weight
        # the l1 ball of radius r has volume (2 r)^d / d!
        log_ball = d * np.log(2 * sensitivity) - gammaln(d + 1)
        level = np.floor(distance.sum() + 1 - gamma)
        return float(-self.epsilon * level - logsumexp(log_weight) - log_ball)

    def variance(self, d: int, sensitivity: float) -> float:
        """``E[r^2] E[u_j^2]`` with ``E[u_j^2] = 2/(d(d+1))`` for a Dirichlet(1_d) direction."""
        shells = _shells(self.epsilon, self.gamma(), d)
        weight = np.exp(shells.log_weight - logsumexp(shells.log_weight))
        share = shells.inner / shells.outer
        mean_square = shells.outer**2 * d / (d + 2) * (1 - share ** (d + 2)) / (1 - share**d)
        return float(sensitivity**2 * (weight * mean_square).sum() * 2 / (d * (d + 1)))
