"""A query: what is asked of the private records, and all that the accountant needs to know of it.

The engine answers queries and nothing else, and the accountant is told of queries and nothing else, so
the two cannot disagree. Epsilon, the slack of discrete noise and the certificate's text are read off a
query's shape, mechanism and sampling, never off its name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

from pairveil.errors import InputError
from pairveil.privacy.costs import RECORD_KINDS
from pairveil.privacy.events import Event
from pairveil.privacy.mechanisms import Mechanism, Sampling, mechanism_named
from pairveil.privacy.mechanisms.gaussian import GAUSSIAN


@dataclass(frozen=True)
class Query:
    """A sequence of noisy sums over records, or of choices by them, all with one noise multiplier.

    Parameters
    ----------
    name : str
        What is asked, for people.
    shape : tuple of int
        Of each answer; an answer may have fewer numbers, never more. Of a choice: its candidates.
    noise_multiplier : float
        Noise scale in units of one record's clip bound: a standard deviation (Gaussian) or a scale
        (Laplace); of a choice 1/eta. 0 is no noise. Because of this unit the bound itself may follow from
        earlier answers.
    steps : int
        How many sums.
    sampling : {'poisson', 'disjoint'}
        Each record enters a sum with probability ``sample_rate`` on its own; or the records are dealt
        into ``1 / sample_rate`` batches, by their position alone, and every batch is used once an epoch.
    sample_rate : float
        1 is the full batch.
    records : {'pairs', 'groups', 'people', 'choices', 'workers'}
        What is summed over; what a protected unit costs depends on it (`pairveil.privacy.costs`).

    Examples
    --------
    >>> Query("gradients", (2, 30), noise_multiplier=20.0, steps=100).event()
    GaussianEvent(noise_multiplier=20.0, sample_rate=1.0, steps=100)
    >>> Query("gradients", (2, 30), 8.0, steps=40, sampling="disjoint", sample_rate=0.1).event()
    DisjointGaussianEvent(noise_multiplier=8.0, epochs=4)
    """

    name: str
    shape: tuple[int, ...]
    noise_multiplier: float
    steps: int = 1
    mechanism: Mechanism = GAUSSIAN
    sampling: Sampling = "poisson"
    sample_rate: float = 1.0
    records: str = "pairs"

    def __post_init__(self) -> None:
        if self.records not in RECORD_KINDS:
            raise InputError(f"records must be one of {', '.join(RECORD_KINDS)}")
        if not 0 < self.sample_rate <= 1:
            raise InputError("sample_rate must be above 0 and at most 1")
        self.mechanism.check(self)

    @property
    def n_entries(self) -> int:
        """Numbers in one answer."""
        return math.prod(self.shape)

    @property
    def n_batches(self) -> int:
        """Batches an epoch (disjoint batches), or 1."""
        return round(1 / self.sample_rate) if self.sampling == "disjoint" else 1

    @property
    def epochs(self) -> int:
        """How often each record takes part at most, for disjoint batches."""
        return math.ceil(self.steps / self.n_batches)

    @property
    def is_sampled(self) -> bool:
        """Whether each sum takes a Poisson sample instead of all records."""
        return self.sampling == "poisson" and self.sample_rate < 1

    @property
    def is_choice(self) -> bool:
        """Whether the answer is one of several candidates, not a sum."""
        return not self.mechanism.on_sums

    def event(self) -> Event:
        """What the accountant is told."""
        return self.mechanism.event(self)

    def noise_std(self, clip: float) -> float:
        """Standard deviation of the noise on each entry of a sum whose records are clipped to ``clip``."""
        return self.noise_multiplier * clip * self.mechanism.deviation

    def to_dict(self) -> dict[str, Any]:
        """Public description for the certificate."""
        return {
            "name": self.name,
            "norm": self.mechanism.norm,
            "noise_multiplier": self.noise_multiplier,
            "steps": self.steps,
            "mechanism": self.mechanism.name,
            "sampling": self.sampling,
            "sample_rate": self.sample_rate,
            "entries": self.n_entries,
            "records": self.records,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Query:
        """Rebuild a query from its public description, strictly in what its cost follows from.

        Descriptions of version 1 know pairs only and may not state their entries.

        Examples
        --------
        >>> query = Query("gradients", (2, 30), 20.0, steps=100)
        >>> Query.from_dict(query.to_dict()).event() == query.event()
        True
        """
        try:
            steps, noise, rate = data["steps"], data["noise_multiplier"], data["sample_rate"]
            kinds = (data["sampling"], data.get("records", "pairs"))
            shape = (data.get("entries", 1),)
            mechanism = mechanism_named(data["mechanism"])
        except (AttributeError, KeyError, TypeError):
            raise InputError("the plan does not describe its queries") from None
        whole = all(
            isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in (steps, *shape)
        )
        plain = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (noise, rate))
        if not (whole and plain and math.isfinite(noise) and kinds[0] in get_args(Sampling)):
            raise InputError("the plan does not describe its queries")
        name = str(data.get("name", ""))
        return cls(name, shape, float(noise), steps, mechanism, kinds[0], float(rate), kinds[1])
