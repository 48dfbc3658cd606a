"""One interface for the noise mechanisms that the paper compares, and the two plain families.

Every mechanism says what it is claimed to cost and what it does cost: ``epsilon_claimed`` is the
budget it was asked to respect, ``epsilon_sound(d)`` the smallest epsilon that holds for d-dimensional
values whose neighbours lie within ``sensitivity`` (in the norm ``norm``). The two differ for some
mechanisms as published. Noise here comes from a numpy generator: for measurement, not for release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.errors import InputError
from pairveil.privacy.gdp import epsilon_from_mu


class Mechanism(ABC):
    """A way to publish a vector with noise.

    ``epsilon``: the budget that one use is claimed to cost.
    """

    name: str
    #: Norm in which ``sensitivity`` bounds the distance of neighbouring values (inf: a box).
    norm: float = 1
    #: Whether a shift of a share of the sensitivity costs only that share of epsilon. If not, k pairs
    #: that fall into k batches cost k times epsilon, and 'disjoint batches compose in parallel' fails.
    linear: bool = False

    def __init__(self, epsilon: float) -> None:
        if not epsilon > 0:
            raise InputError("epsilon must be positive")
        self.epsilon = float(epsilon)

    @property
    def epsilon_claimed(self) -> float:
        """What one use is said to cost."""
        return self.epsilon

    @abstractmethod
    def epsilon_sound(self, d: int) -> float:
        """What one use costs for values of dimension d (inf when nothing finite holds)."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        """Publish ``value``."""

    @abstractmethod
    def log_density(self, output: FloatArray, value: FloatArray, sensitivity: float) -> float:
        """Log density (log mass for discrete outputs) of ``output`` when ``value`` is published."""

    @abstractmethod
    def variance(self, d: int, sensitivity: float) -> float:
        """Variance of one coordinate of the output (at value 0 where it depends on the value)."""


class Laplace(Mechanism):
    """Independent Laplace noise of scale ``sensitivity / epsilon`` (the paper's Definition 5).

    Examples
    --------
    >>> Laplace(1.0).variance(d=3, sensitivity=2.0)
    8.0
    """

    name = "Lap"
    linear = True

    def epsilon_sound(self, d: int) -> float:  # noqa: ARG002 - joint over coordinates: no price in d
        return self.epsilon

    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        return value + rng.laplace(0.0, sensitivity / self.epsilon, value.shape)

    def log_density(self, output: FloatArray, value: FloatArray, sensitivity: float) -> float:
        scale = sensitivity / self.epsilon
        distance = np.abs(np.asarray(output) - value)
        return float(-distance.sum() / scale - distance.size * np.log(2 * scale))

    def variance(self, d: int, sensitivity: float) -> float:  # noqa: ARG002
        return 2.0 * (sensitivity / self.epsilon) ** 2


class ReducedLaplace(Laplace):
    """Laplace noise whose scale follows the private batch (the paper's Lap-S, Theorem 2).

    The caller passes the sensitivity of *this* batch, so two neighbouring batches use two scales
    b < b', and the log ratio ``|x| (1/b - 1/b')`` has no bound over x: no finite epsilon holds
    (docs/theory/published.md).

    Examples
    --------
    >>> ReducedLaplace(1.0).epsilon_sound(d=1)
    inf
    """

    name = "Lap-S"

    def epsilon_sound(self, d: int) -> float:  # noqa: ARG002
        return float("inf")


class ClassicGaussian(Mechanism):
    """Gaussian noise of ``sqrt(2 ln(1.25/delta)) sensitivity / epsilon`` (paper, Appendix C).

    The formula is proved for epsilon <= 1 only; ``epsilon_sound`` is exact.

    Examples
    --------
    >>> ClassicGaussian(1.0, 1e-5).epsilon_sound(d=5) < 1.0
    True
    """

    name = "Gauss"
    norm = 2

    def __init__(self, epsilon: float, delta: float = 1e-5) -> None:
        super().__init__(epsilon)
        if not 0 < delta < 1:
            raise InputError("delta must lie between 0 and 1")
        self.delta = float(delta)

    def noise_multiplier(self) -> float:
        """Standard deviation for sensitivity 1."""
        return float(np.sqrt(2 * np.log(1.25 / self.delta)) / self.epsilon)

    def epsilon_sound(self, d: int) -> float:  # noqa: ARG002 - depends on the l2 shift only
        return epsilon_from_mu(1.0 / self.noise_multiplier(), self.delta)

    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        return value + rng.normal(0.0, sensitivity * self.noise_multiplier(), value.shape)

    def log_density(self, output: FloatArray, value: FloatArray, sensitivity: float) -> float:
        sigma = sensitivity * self.noise_multiplier()
        distance = (np.asarray(output) - value) / sigma
        return float(-(distance**2).sum() / 2 - distance.size * np.log(sigma * np.sqrt(2 * np.pi)))

    def variance(self, d: int, sensitivity: float) -> float:  # noqa: ARG002
        return (sensitivity * self.noise_multiplier()) ** 2
