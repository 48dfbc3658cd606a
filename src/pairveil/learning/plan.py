"""What will be released during training, fixed before any data are touched.

A plan is a list of releases. A release is the only thing the engine can take from the data: a sum over
pairs, each pair's part clipped, with noise. The same frozen object tells the engine what to run and the
accountant what was run, so the two cannot disagree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from pairveil.errors import InputError
from pairveil.privacy.events import (
    DisjointGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
)

Mechanism = Literal["gaussian", "laplace"]
Sampling = Literal["poisson", "disjoint"]


@dataclass(frozen=True)
class NoisySums:
    """A sequence of noisy sums over pairs, all with one clip bound and one noise scale.

    Parameters
    ----------
    clip : float
        No pair adds more than this to a sum (l2 norm for Gaussian noise, l1 for Laplace).
    noise_multiplier : float
        Noise scale divided by ``clip``: standard deviation (Gaussian) or scale (Laplace). 0 is no noise.
    steps : int
        How many sums.
    mechanism : {'gaussian', 'laplace'}
    sampling : {'poisson', 'disjoint'}
        Each pair enters a sum with probability ``sample_rate`` on its own; or the pairs are dealt
        into ``1 / sample_rate`` batches, by their position alone, and every batch is used once an epoch.
    sample_rate : float
        1 is the full batch.
    name : str
        What is summed. Two kinds of sums with one name are one kind to the engine, whatever their clip
        bound: noise is in units of the clip bound, so that bound may be chosen from earlier releases.
    entries : int or None
        Numbers in one sum, at most: what exact noise costs in delta follows from it. The engine releases
        no larger sum. None: not stated; then nothing can be certified for release.

    Examples
    --------
    >>> NoisySums(clip=0.5, noise_multiplier=20.0, steps=100).event()
    GaussianEvent(noise_multiplier=20.0, sample_rate=1.0, steps=100)
    >>> NoisySums(1.0, 8.0, steps=40, sampling="disjoint", sample_rate=0.1).event()
    DisjointGaussianEvent(noise_multiplier=8.0, epochs=4)
    """

    clip: float = field(compare=False)
    noise_multiplier: float
    steps: int
    mechanism: Mechanism = "gaussian"
    sampling: Sampling = "poisson"
    sample_rate: float = 1.0
    name: str = "gradients"
    entries: int | None = None

    def __post_init__(self) -> None:
        if not (self.clip > 0 and math.isfinite(self.clip)):
            raise InputError("the clip bound must be a positive number")
        if not 0 < self.sample_rate <= 1:
            raise InputError("sample_rate must be above 0 and at most 1")
        if self.mechanism == "laplace" and self.sampling == "poisson" and self.sample_rate < 1:
            raise InputError(
                "mechanism='laplace' needs full or disjoint batches: use sample_rate=1 or sampling='disjoint'"
            )

    @property
    def norm(self) -> Literal["l2", "l1"]:
        """The norm in which pairs are clipped."""
        return "l1" if self.mechanism == "laplace" else "l2"

    @property
    def n_batches(self) -> int:
        """Batches an epoch (disjoint batches), or 1."""
        return round(1 / self.sample_rate) if self.sampling == "disjoint" else 1

    @property
    def epochs(self) -> int:
        """How often each pair takes part at most, for disjoint batches."""
        return math.ceil(self.steps / self.n_batches)

    def event(self) -> Event:
        """What the accountant must know."""
        if self.mechanism == "laplace":
            return LaplaceEvent(self.noise_multiplier, steps=self.epochs)
        if self.sampling == "disjoint":
            return DisjointGaussianEvent(self.noise_multiplier, epochs=self.epochs)
        return GaussianEvent(self.noise_multiplier, sample_rate=self.sample_rate, steps=self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Public description for the certificate."""
        described = {
            "name": self.name,
            "norm": self.norm,
            "noise_multiplier": self.noise_multiplier,
            "steps": self.steps,
            "mechanism": self.mechanism,
            "sampling": self.sampling,
            "sample_rate": self.sample_rate,
        }
        return described if self.entries is None else {**described, "entries": self.entries}

    def noise_std(self, clip: float) -> float:
        """Standard deviation of the noise on each entry of a sum clipped to ``clip``."""
        return self.noise_multiplier * clip * (math.sqrt(2) if self.mechanism == "laplace" else 1.0)


@dataclass(frozen=True)
class TrainingPlan:
    """All releases of one fit, and the public numbers the training may use.

    Parameters
    ----------
    survey, signal, gradients : NoisySums
        In the order in which they are made; see `pairveil.learning.training`.
    moments, contest : NoisySums or None
        The comparison with Euclid; None where ``n_components`` leaves no room for Euclid.
    margins : NoisySums or None
        Release of the mean distance of dissimilar pairs, for ``margin='private'``.
    n_features, n_pairs : int
    data_norm : float
        Public bound on a person's norm.
    n_components : int or None
        Rows asked for.
    margin : float
        Distance beyond which dissimilar pairs are left alone.
    max_grad_norm, learning_rate : float or None
        None follows the public rule.
    """

    survey: NoisySums
    signal: NoisySums
    gradients: NoisySums
    moments: NoisySums | None
    contest: NoisySums | None
    margins: NoisySums | None
    n_features: int
    n_pairs: int
    data_norm: float
    n_components: int | None
    margin: float
    max_grad_norm: float | None
    learning_rate: float | None

    @property
    def releases(self) -> tuple[NoisySums, ...]:
        """Everything that is taken from the data, in order."""
        wanted = (
            self.survey, self.signal, self.margins, self.gradients, self.moments, self.contest
        )  # fmt: skip
        return tuple(sums for sums in wanted if sums is not None)

    def events(self) -> tuple[Event, ...]:
        """What the accountant is told: one event for each release."""
        return tuple(sums.event() for sums in self.releases)

    def to_dict(self) -> dict[str, Any]:
        """Public description for the certificate."""
        return {
            "releases": [sums.to_dict() for sums in self.releases],
            "n_features": self.n_features,
            "data_norm": self.data_norm,
            "n_components": self.n_components,
            "margin": "private" if self.margins is not None else self.margin,
            "max_grad_norm": self.max_grad_norm if self.max_grad_norm is not None else "auto",
            "learning_rate": self.learning_rate if self.learning_rate is not None else "auto",
        }
