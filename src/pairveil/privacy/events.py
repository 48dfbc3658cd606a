"""What a mechanism did, and what a protected unit costs: plain data from which anyone can recompute epsilon.

Every event describes answers made of sums over records in which each record's contribution is clipped: the
noisy sum itself, or (`ChoiceEvent`) the index of a candidate chosen by its sum. Its numbers are in units
of that clip bound, so that zeroing one record out moves the sum by at most 1 (a choice: by amounts whose
range over the candidates is at most 1) and replacing it by at most 2 (the triangle inequality), or by what
is proved of its kind of records. The events do not know what a unit costs: the accountant multiplies by it,
once, for the unit asked about.

What a unit can move of each kind of records is a `Cost` (`pairveil.records.kinds`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_type_hints

from msgspec import Meta, Struct, defstruct

from pairveil.errors import InputError
from pairveil.foreign import decode
from pairveil.records.kinds import MAX_KAPPA, Cost

MAX_STEPS = 10**7
"""More steps than this is taken for a mistake: no accountant here was tested beyond it."""

MAX_CANDIDATES = 64
"""Of one selection: verifying a certificate accounts for each of them."""

Noise = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1, le=MAX_STEPS)]
Share = Annotated[float, Meta(gt=0, le=1)]
Eta = Annotated[float, Meta(gt=0)]


_RULES: dict[str, tuple[Any, Callable[[Any], bool], str]] = {
    "Noise": (
        Real,
        lambda v: 0.0 <= v < math.inf,
        "finite and at least 0 (0: no noise, epsilon is inf)",
    ),
    "Eta": (Real, lambda v: v > 0.0, "greater than 0 (inf: no noise, epsilon is inf)"),
    "Share": (Real, lambda v: 0.0 < v <= 1.0, "in (0, 1]"),
    "Count": (Integral, lambda v: 1 <= v <= MAX_STEPS, f"between 1 and {MAX_STEPS}"),
}
"""What a number of each kind is; a NaN is none of them."""


def _checked(value: Any, kind: str, name: str) -> Any:
    """A number that its kind allows, as Python's own: equal events are equal as JSON too."""
    number, holds, says = _RULES[kind]
    if isinstance(value, bool) or not isinstance(value, number):
        wanted = "an integer" if number is Integral else "a number"
        raise InputError(f"{name} must be {wanted}, not {type(value).__name__}")
    plain = (int if number is Integral else float)(value)
    if not holds(plain):
        raise InputError(f"{name} must be {says}")
    return plain


@dataclass(frozen=True)
class _Event:
    """What all events share: numbers that are checked and made Python's own, and their kind in JSON.

    A kind says whether it is pure (epsilon at delta = 0), whether its answer is a choice and not a sum, and
    what it is, in words for people.
    """

    kind: ClassVar[str]
    is_pure: ClassVar[bool] = False
    is_choice: ClassVar[bool] = False
    words: ClassVar[str]

    def __post_init__(self) -> None:
        for field in fields(self):
            value = _checked(getattr(self, field.name), str(field.type), field.name)
            object.__setattr__(self, field.name, value)

    @property
    def noise(self) -> float:
        """Scale of the noise in clip bounds; 0 is none."""
        return float(getattr(self, self._noise_field()))

    def with_noise(self, noise: float) -> Self:
        """The same answers with other noise."""
        return replace(self, **{self._noise_field(): noise})

    def _noise_field(self) -> str:
        return next(field.name for field in fields(self) if field.name.endswith("_multiplier"))

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON-able data with its kind."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class GaussianEvent(_Event):
    """Gaussian noise on clipped sums of a Poisson sample of the pairs.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on the sum, divided by one pair's l2 clip bound C.
    sample_rate : float, default 1.0
        Each pair enters each sum independently with this probability; 1.0 is the full batch.
    steps : int, default 1
        How many such sums are answered; each may depend on the earlier outputs.

    Examples
    --------
    >>> GaussianEvent(noise_multiplier=20.0, sample_rate=0.05, steps=200).to_dict()["kind"]
    'gaussian'
    """

    kind = "gaussian"
    words = "Gaussian noise on sums over a random sample of the records"
    noise_multiplier: Noise
    sample_rate: Share = 1.0
    steps: Count = 1


@dataclass(frozen=True)
class DisjointGaussianEvent(_Event):
    """Gaussian noise on clipped sums over batches that partition the pairs, epoch after epoch.

    The partition must not depend on the pairs' contents. In one epoch the kappa pairs fall into
    batches with counts k_b, and sum(k_b**2) <= kappa**2, so an epoch costs no more than one full
    batch.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on each batch's sum, divided by one pair's l2 clip bound C.
    epochs : int
        How often every pair is used.

    Examples
    --------
    >>> DisjointGaussianEvent(noise_multiplier=8.0, epochs=4).epochs
    4
    """

    kind = "disjoint-gaussian"
    words = "Gaussian noise on sums over disjoint batches"
    noise_multiplier: Noise
    epochs: Count


@dataclass(frozen=True)
class LaplaceEvent(_Event):
    """Laplace noise on every entry of clipped sums (pure epsilon).

    Parameters
    ----------
    scale_multiplier : float
        Scale of each entry's noise divided by one pair's l1 clip bound h of the full matrix.
    steps : int, default 1
        How many sums each pair takes part in (epochs, when the batches are disjoint and chosen
        without looking at the contents).

    Examples
    --------
    >>> LaplaceEvent(scale_multiplier=10.0, steps=5)
    LaplaceEvent(scale_multiplier=10.0, steps=5)
    """

    kind = "laplace"
    is_pure = True
    words = "Laplace noise on sums over the records"
    scale_multiplier: Noise
    steps: Count = 1


@dataclass(frozen=True)
class ChoiceEvent(_Event):
    """A noisy choice: a candidate c with probability proportional to exp(eta * u_c), over all pairs.

    The scores u_c are sums of the pairs' contributions. Zeroing one pair out must move them by amounts
    that differ by at most 1 between candidates (for instance all one way, by 0 to 1); the accountant
    takes twice that for replace, and kappa times that for kappa pairs (docs/theory/accounting.md). A choice
    by scores whose records are groups is charged as kappa=2 under zero-out. There is no sampling rate:
    choices are made from all pairs and never amplified.

    Parameters
    ----------
    eta : float
        Greater than 0: the range of the log-probabilities' change when one pair is zeroed out.
        ``inf`` is no noise (epsilon is inf; in JSON the string "inf").
    steps : int, default 1
        How many choices with this eta; each may depend on the earlier outputs.

    Examples
    --------
    >>> ChoiceEvent(eta=0.1, steps=2).to_dict()
    {'kind': 'choice', 'eta': 0.1, 'steps': 2}
    """

    kind = "choice"
    is_pure = True
    is_choice = True
    words = "a noisy choice among candidates"
    eta: Eta
    steps: Count = 1

    def __post_init__(self) -> None:
        if isinstance(self.eta, str) and self.eta == "inf":
            # As `to_dict` writes it: JSON has no infinity.
            object.__setattr__(self, "eta", math.inf)
        super().__post_init__()

    @property
    def noise(self) -> float:
        """Scale of the Gumbel noise that makes the same choice; 0 is none."""
        return 1 / self.eta

    def with_noise(self, noise: float) -> Self:
        """The same choices with other noise."""
        return replace(self, eta=1 / noise if noise > 0 else math.inf)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON-able data with its kind."""
        eta = "inf" if math.isinf(self.eta) else self.eta
        return {"kind": "choice", "eta": eta, "steps": self.steps}


@dataclass(frozen=True)
class _Several:
    """What events have that are made of several lists of events, which are their last field."""

    kind: ClassVar[str]
    is_choice: ClassVar[bool] = False
    words: ClassVar[str]
    fewest: ClassVar[int]
    """Lists that there are, at least."""
    called: ClassVar[str]
    """What the lists are of."""

    def __post_init__(self) -> None:
        *numbers, last = fields(self)
        for field in numbers:
            value = _checked(getattr(self, field.name), str(field.type), field.name)
            object.__setattr__(self, field.name, value)
        lists = getattr(self, last.name)
        listed = isinstance(lists, list | tuple) and len(lists) >= self.fewest
        if not (listed and all(isinstance(one, list | tuple) and one for one in lists)):
            raise InputError(f"a '{self.kind}' event must list the events of {self.called}")
        if len(lists) > MAX_CANDIDATES:
            raise InputError(f"a '{self.kind}' event has {MAX_CANDIDATES} lists at most")
        object.__setattr__(self, last.name, tuple(_plain_events(one) for one in lists))

    @property
    def _within(self) -> list[Event]:
        return [event for one in getattr(self, fields(self)[-1].name) for event in one]

    @property
    def is_pure(self) -> bool:
        """Whether it has an epsilon at delta 0: all its events have."""
        return all(event.is_pure for event in self._within)

    @property
    def noise(self) -> float:
        """The least noise of any of its events."""
        return min(event.noise for event in self._within)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON-able data with its kind."""
        *numbers, last = (field.name for field in fields(self))
        lists = [[event.to_dict() for event in one] for one in getattr(self, last)]
        return {"kind": self.kind, **{name: getattr(self, name) for name in numbers}, last: lists}


@dataclass(frozen=True)
class BestOfEvent(_Several):
    """The best of a random number of trials, and nothing else of them (docs/theory/accounting.md).

    The number of trials is geometric from 1 on and depends on no data; each trial takes one of the
    candidates, none for the data's sake, and its answers include the score that trials are compared by.

    Parameters
    ----------
    mean_trials : int
        Mean number of trials.
    slack : float
        What exact discrete noise adds to delta of one trial, at most.
    trials : tuple of tuples of events
        Of each candidate: everything that one trial of it asks.

    Examples
    --------
    >>> BestOfEvent(6, 0.0, ((LaplaceEvent(20.0), LaplaceEvent(60.0)),)).is_pure
    True
    """

    kind = "best-of"
    words = "the best of a random number of trials"
    fewest, called = 1, "a trial of each candidate"
    mean_trials: Count
    slack: Noise
    trials: tuple[tuple[Event, ...], ...]

    @property
    def is_pure(self) -> bool:
        """Whether it has an epsilon at delta 0: all its events have, and no trial a slack."""
        return self.slack == 0.0 and super().is_pure


@dataclass(frozen=True)
class ParallelEvent(_Several):
    """Parts that were asked of different people: no unit is in more than one (docs/theory/guarantee.md).

    A later part may depend on the answers of an earlier one. The unit costs what the dearest part does.

    Parameters
    ----------
    parts : tuple of tuples of events
        Everything that was asked of each part.

    Examples
    --------
    >>> ParallelEvent(((LaplaceEvent(20.0),), (LaplaceEvent(60.0),))).noise
    20.0
    """

    kind = "parallel"
    words = "parts that were asked of different people"
    fewest, called = 2, "two parts or more"
    parts: tuple[tuple[Event, ...], ...]


def _plain_events(listed: Iterable[Any]) -> tuple[Event, ...]:
    """The events inside another one, which are none of several events themselves."""
    found = check_events(event_from_dict(e) if isinstance(e, Mapping) else e for e in listed)
    if any(isinstance(event, BestOfEvent | ParallelEvent) for event in found):
        raise InputError("a trial or a part holds no selection and no parts of its own")
    return found


Event = (
    GaussianEvent | DisjointGaussianEvent | LaplaceEvent | ChoiceEvent | BestOfEvent | ParallelEvent
)

_KINDS: dict[str, type[Event]] = {cls.kind: cls for cls in get_args(Event)}


def _stored(cls: type[Event], **others: Any) -> type[Struct]:
    """An event as JSON, with all fields: a missing steps must not be read as one step."""
    kinds = get_type_hints(cls, include_extras=True) | others
    listed = [(field.name, kinds[field.name]) for field in fields(cls)]
    options: dict[str, Any] = {"tag_field": "kind", "tag": cls.kind, "forbid_unknown_fields": True}
    return defstruct(cls.__name__, listed, **options)


_Trial: Any = (
    _stored(GaussianEvent)
    | _stored(DisjointGaussianEvent)
    | _stored(LaplaceEvent)
    | _stored(ChoiceEvent, eta=Eta | Literal["inf"])
)
_Candidates: Any = Annotated[
    list[Annotated[list[_Trial], Meta(min_length=1)]], Meta(min_length=1, max_length=MAX_CANDIDATES)
]
StoredEvent: Any = (
    _Trial | _stored(BestOfEvent, trials=_Candidates) | _stored(ParallelEvent, parts=_Candidates)
)
"""Any event as certificates and ledgers have it."""


def event_from_dict(data: Mapping[str, Any]) -> Event:
    """Rebuild an event from its dictionary; an unknown kind or field is an error, never skipped."""
    decode(data, StoredEvent, "a privacy event")
    return _KINDS[data["kind"]](**{name: one for name, one in data.items() if name != "kind"})


def check_events(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events as a tuple; anything that is not a known event is refused."""
    checked = (events,) if isinstance(events, Event) else tuple(events)
    for event in checked:
        if type(event) not in _KINDS.values():
            raise InputError(
                f"{type(event).__name__} is not a privacy event that can be accounted; "
                f"use one of {sorted(cls.__name__ for cls in _KINDS.values())}"
            )
    return checked


# ---- what changing one protected unit does to the records, in units of their clip ----------------

UnitCost = int | Cost | tuple[Cost, ...]
"""What a unit can move: kappa, where records are pairs; a cost; or one cost for each event."""


def check_kappa(kappa: object) -> int:
    """Return ``kappa`` as an int; it must be at least 1 (a unit of no pairs needs no privacy)."""
    if isinstance(kappa, bool) or not isinstance(kappa, Integral):
        raise InputError(f"kappa must be an integer, not {type(kappa).__name__}")
    if not 1 <= int(kappa) <= MAX_KAPPA:
        raise InputError(
            "kappa must be at least 1" if int(kappa) < 1 else "kappa must be at most 2^53"
        )
    return int(kappa)


def cost_of(kappa: int | Cost) -> Cost:
    """A kappa as a cost: that many pairs."""
    return kappa if isinstance(kappa, Cost) else Cost(check_kappa(kappa))


def cost_by_event(group: UnitCost, n_events: int) -> tuple[Cost, ...]:
    """What a unit can move in each event."""
    return group if isinstance(group, tuple) else (cost_of(group),) * n_events


def larger(one: UnitCost, other: UnitCost) -> UnitCost:
    """A cost that covers both, event by event where there is one for each."""
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    lengths = [len(group) for group in (one, other) if isinstance(group, tuple)]
    n_events = lengths[0] if lengths else 1
    both = zip(cost_by_event(one, n_events), cost_by_event(other, n_events), strict=True)
    covering = tuple(
        Cost(
            max(a.records, b.records),
            max(a.zero_out, b.zero_out),
            max(a.replace, b.replace),
            a.empties and b.empties,
        )
        for a, b in both
    )
    return covering if lengths else covering[0]
