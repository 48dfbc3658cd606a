"""The kinds of noise that can be certified, and the queries that are answered with them.

A mechanism is an object. It knows the norm in which contributions are clipped, the event that the
accountant is told, how its noise follows from a share of a budget, how that noise is drawn, and what exact
noise takes off delta. Options, certificates and their verification ask the object; none knows its name.

A query is what is asked of the private records, and all that the accountant needs to know of it. The engine
answers queries and nothing else, and the accountant is told of queries and nothing else, so the two cannot
disagree. Epsilon, the slack of discrete noise and the certificate's text are read off a query's shape,
mechanism and sampling, never off its name.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.foreign import decode
from pairveil.privacy.events import (
    ChoiceEvent,
    DisjointGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    cost_of,
)
from pairveil.privacy.grid import MAX_NOISE_IN_GRID, Norm, choose_grid, delta_slack
from pairveil.privacy.units import Adjacency
from pairveil.records.kinds import KINDS, MAX_KAPPA, PAIRS, Cost

if TYPE_CHECKING:
    from pairveil.privacy.noise import NoiseSource

# ---- What every mechanism can do, and the budget that its noise is computed from -----------------

Sampling = Literal["poisson", "disjoint"]
"""Each record enters a sum with some probability on its own; or batches partition the records."""

ROUNDING = 1 + 1e-9
"""Keeps the recomposed epsilon on the safe side of the one that was asked for."""


class Budget(NamedTuple):
    """What a fit may spend, and what a protected unit can move."""

    epsilon: float
    delta: float
    kappa: int | Cost  # what one protected unit can move; a number is that of pairs
    adjacency: Adjacency  # {'zero-out', 'replace'}

    @property
    def sensitivity(self) -> float:
        """How far the protected unit can move a sum, in units of one record's clip bound."""
        return cost_of(self.kappa).sensitivity(self.adjacency)

    @property
    def is_private(self) -> bool:
        """Whether any noise is wanted."""
        return not math.isinf(self.epsilon)


class Drawn(NamedTuple):
    """The noise of one query: how strong it is, in clip bounds, and how many numbers get some."""

    noise_multiplier: float
    numbers: int


class Mechanism(ABC):
    """A kind of noise on clipped sums. Everything that depends on the kind is asked of this object."""

    name: str  # what users and certificates call it
    norm: Norm  # in which a record's contribution is clipped
    is_pure: bool  # whether it gives epsilon at delta = 0
    deviation: float  # standard deviation of noise of scale 1
    on_sums: bool = (
        True  # whether a learner can be given it as ``mechanism=``, for noise on its sums
    )

    @abstractmethod
    def check(self, query: Query) -> None:
        """Refuse a query that this mechanism has no proof for."""

    @abstractmethod
    def event(self, query: Query) -> Event:
        """What the accountant is told of a query."""

    @abstractmethod
    def multiplier(self, budget: Budget, share: float, times: int = 1) -> float:
        """Noise multiplier of each of ``times`` sums that together cost ``share`` of the budget."""

    def draw(
        self, noise: NoiseSource, total: NDArray[Any], scale: float, grid: float
    ) -> NDArray[np.float64]:
        """The total, in whole multiples of the grid, with noise of this scale on every entry."""
        if not self.on_sums:
            raise RuntimeError("a choice has no noisy sum: ask the engine to choose")
        return noise.noisy(self.name, total, scale, grid)  # type: ignore[arg-type]

    def slack(self, drawn: Sequence[Drawn], largest_kappa: int, shares: int = 1) -> float:  # noqa: ARG002
        """The part of delta that its exact noise uses, over all draws; 1 (all there is) without a proof.

        ``largest_kappa``: the largest number of records that a reported unit touches.
        ``shares``: how many independent draws, each of a share of the variance, make up the noise.
        """
        return 1.0


# ---- Gaussian noise: contributions clipped in l2, (epsilon, delta) -------------------------------

_MOST_SAMPLES = 1 << 62  # of no fit; beyond the floats there is nothing to compute


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Gaussian noise on every entry of a sum."""

    name: str = "gaussian"
    norm: Norm = "l2"
    is_pure: bool = False
    deviation: float = 1.0

    def check(self, query: Query) -> None:
        """Every sampling is covered (docs/theory/accounting.md)."""

    def event(self, query: Query) -> Event:
        """Full and Poisson batches, or batches that partition the records."""
        if query.sampling == "disjoint":
            return DisjointGaussianEvent(query.noise_multiplier, epochs=query.epochs)
        return GaussianEvent(
            query.noise_multiplier, sample_rate=query.sample_rate, steps=query.steps
        )

    def multiplier(self, budget: Budget, share: float, times: int = 1) -> float:
        """Shares are parts of mu^2: n full-batch sums with noise s have mu^2 = n (sensitivity / s)^2."""
        if not budget.is_private:
            return 0.0
        from pairveil.privacy.compose import mu_from_epsilon  # loads SciPy: only when needed

        mu = mu_from_epsilon(budget.epsilon, budget.delta)
        return math.sqrt(times) * (budget.sensitivity / (mu * math.sqrt(share)) * ROUNDING)

    def slack(self, drawn: Sequence[Drawn], largest_kappa: int, shares: int = 1) -> float:
        """Discrete instead of continuous noise (docs/theory/noise.md); 1 where it is too small for its grid.

        Not twice kappa for replace: both worlds are compared with the one in which these records are null,
        and neither is further from it than one clip bound a record.
        """
        least = min(one.noise_multiplier for one in drawn)
        samples = sum(one.numbers for one in drawn)
        if not least > 0.0 or samples > _MOST_SAMPLES:
            return 1.0
        # In units of the clip bound; a sum of more entries has a finer grid, never a coarser one. Where the
        # noise is very large the engine coarsens the grid.
        finest = min(least / choose_grid(1.0, 1), MAX_NOISE_IN_GRID / 2)
        shift = Cost(largest_kappa).sensitivity("zero-out") / least
        if finest < 2.0 or not shift < 1e100:
            return 1.0
        return delta_slack(samples, finest, shift=max(10.0, shift), shares=shares)


GAUSSIAN = Gaussian()

# ---- Laplace noise: contributions clipped in l1, pure epsilon ------------------------------------


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise on every entry of a sum."""

    name: str = "laplace"
    norm: Norm = "l1"
    is_pure: bool = True
    deviation: float = math.sqrt(2)  # a Laplace variable of scale b has variance 2 b^2

    def check(self, query: Query) -> None:
        """Poisson samples have no proof here."""
        if query.sampling == "poisson" and query.sample_rate < 1:
            raise InputError(
                "mechanism='laplace' needs full or disjoint batches: use sample_rate=1 or "
                "sampling='disjoint'"
            )

    def event(self, query: Query) -> Event:
        """A record takes part once an epoch."""
        return LaplaceEvent(query.noise_multiplier, steps=query.epochs)

    def multiplier(self, budget: Budget, share: float, times: int = 1) -> float:
        """Shares are parts of epsilon: n sums with noise s cost n sensitivity / s."""
        if not budget.is_private:
            return 0.0
        return times * (budget.sensitivity / (budget.epsilon * share) * ROUNDING)

    def slack(self, drawn: Sequence[Drawn], largest_kappa: int, shares: int = 1) -> float:  # noqa: ARG002
        """Exact discrete Laplace noise is pure epsilon as it stands (docs/theory/noise.md), in one share."""
        return 0.0 if shares == 1 else 1.0


LAPLACE = Laplace()

# ---- Noisy choices: charged for the range of what one record moves -------------------------------


@dataclass(frozen=True)
class Exponential(Mechanism):
    """The exponential mechanism: candidate c with probability proportional to exp(eta * u_c).

    That is the largest of the scores with Gumbel noise of scale 1/eta on each of them, so a query's
    ``noise_multiplier`` is 1/eta. The norm is the range over the candidates (docs/theory/accounting.md).
    """

    name: str = "exponential"
    norm: Norm = "range"
    is_pure: bool = True
    deviation: float = math.pi / math.sqrt(6)  # of Gumbel noise of scale 1
    on_sums: bool = False

    def check(self, query: Query) -> None:
        """Neither samples nor batches have a proof: every choice is made from all records."""
        if query.sample_rate < 1:
            raise InputError("a choice is made from all records: use sample_rate=1")

    def event(self, query: Query) -> Event:
        """A choice for each step."""
        return ChoiceEvent(self.eta(query.noise_multiplier), steps=query.steps)

    def multiplier(self, budget: Budget, share: float, times: int = 1) -> float:
        """Shares are parts of epsilon where delta is 0, else of mu^2.

        n choices cost n sensitivity eta at delta = 0. As zCDP they cost n (sensitivity eta)^2 / 8, where
        mu costs mu^2 / 2: mu = sqrt(n) sensitivity eta / 2. That is a start only: the accountant decides.
        """
        if not budget.is_private:
            return 0.0
        if budget.delta == 0:
            return times * ROUNDING * budget.sensitivity / (budget.epsilon * share)
        from pairveil.privacy.compose import mu_from_epsilon  # loads SciPy: only when needed

        mu = mu_from_epsilon(budget.epsilon, budget.delta)
        return math.sqrt(times / share) * ROUNDING * budget.sensitivity / (2 * mu)

    def slack(self, drawn: Sequence[Drawn], largest_kappa: int, shares: int = 1) -> float:  # noqa: ARG002
        """One exact draw takes nothing off delta (docs/theory/noise.md, 'Exact sampling')."""
        return 0.0 if shares == 1 else 1.0

    @staticmethod
    def eta(noise_multiplier: float) -> float:
        """Range of the log-probabilities' change for one record; infinite without noise."""
        return 1.0 / noise_multiplier if noise_multiplier else math.inf


EXPONENTIAL = Exponential()

# ---- all of them -----------------------------------------------------------------------------------

MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism for mechanism in (GAUSSIAN, LAPLACE, EXPONENTIAL)
}
"""Every mechanism by the name that users and certificates give it."""

NOISES: tuple[str, ...] = tuple(name for name, one in MECHANISMS.items() if one.on_sums)
"""Those that a learner can be given as ``mechanism=``; the first is the default. Choices are asked for by
recipes (`pairveil.engine.plan.QuerySpec`)."""

__all__ = ["MECHANISMS", "NOISES", "Budget", "Drawn", "Mechanism", "Sampling", "mechanism_named"]


def mechanism_named(name: object) -> Mechanism:
    """The mechanism of that name."""
    if not isinstance(name, str) or name not in MECHANISMS:
        raise InputError(f"mechanism must be one of {', '.join(MECHANISMS)}")
    return MECHANISMS[name]


# ---- queries ---------------------------------------------------------------------------------------


class QueryFields(Struct):
    """A query as plans describe it: what its cost follows from. Version 1 knows pairs only."""

    steps: Annotated[int, Meta(ge=1)]
    noise_multiplier: Annotated[float, Meta(ge=0, le=sys.float_info.max)]
    mechanism: str
    sampling: Sampling
    sample_rate: float
    records: str = PAIRS.name
    entries: Annotated[int, Meta(ge=1)] = 1
    name: Any = ""


@dataclass(frozen=True)
class Query:
    """A sequence of noisy sums over records, or of choices by them, all with one noise multiplier."""

    name: str  # what is asked, for people
    # Of each answer; an answer may have fewer numbers, never more. Of a choice: its candidates.
    shape: tuple[int, ...]
    # Noise scale in units of one record's clip bound: a standard deviation (Gaussian) or a scale
    # (Laplace); of a choice 1/eta. 0 is no noise. Because of this unit the bound itself may follow from
    # earlier answers.
    noise_multiplier: float
    steps: int = 1  # how many sums
    mechanism: Mechanism = GAUSSIAN
    # {'poisson', 'disjoint'}: each record enters a sum with probability ``sample_rate`` on its own; or
    # the records are dealt into ``1 / sample_rate`` batches, by their position alone, and every batch is
    # used once an epoch
    sampling: Sampling = "poisson"
    sample_rate: float = 1.0  # 1 is the full batch
    # {'pairs', 'groups', 'people', 'choices', 'workers'}: what is summed over; what a protected unit
    # costs depends on it (`pairveil.privacy.events`)
    records: str = "pairs"

    def __post_init__(self) -> None:
        if self.records not in KINDS:
            raise InputError(f"records must be one of {', '.join(KINDS)}")
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
        """
        found: QueryFields = decode(data, QueryFields, "a query of the plan")
        return cls(
            str(found.name), (found.entries,), found.noise_multiplier, found.steps,
            mechanism_named(found.mechanism), found.sampling, found.sample_rate, found.records,
        )  # fmt: skip


# ---- what exact noise takes off delta: one rule for issuing and for verifying --------------------

_VERSION_1_DIRECTIONS = 10


def slack_of_plan(plan: Mapping[str, Any], largest_kappa: int, shares: int = 1) -> float:
    """What exact discrete noise, in so many shares, can add to delta over all queries of a plan."""
    if largest_kappa > MAX_KAPPA:
        return 1.0
    drawn: dict[str, list[Drawn]] = {}
    for release in plan["releases"]:
        numbers = _entries(release, plan) * int(release["steps"])
        noise = Drawn(float(release["noise_multiplier"]), numbers)
        drawn.setdefault(release["mechanism"], []).append(noise)
    if not all(name in MECHANISMS for name in drawn):
        return 1.0
    taken = sum(MECHANISMS[name].slack(one, largest_kappa, shares) for name, one in drawn.items())
    return min(taken, 1.0)


def _entries(release: Mapping[str, Any], plan: Mapping[str, Any]) -> int:
    if "entries" in release:
        entries = release["entries"]
    else:
        d = plan["n_features"]
        wide = min(d, plan["n_components"] or _VERSION_1_DIRECTIONS)
        entries = d * wide if release["name"] == "gradients" else max(d + 2, 8)
    if isinstance(entries, bool) or not isinstance(entries, int) or entries < 1:
        raise ValueError("entries must be a count")
    return entries
