"""The certificate: what is promised to whom, as plain data from which epsilon is recomputed.

Importing this module loads no accountant; only `Certificate.issue` and `Certificate.verify` do, so
a released metric can be loaded with little more than NumPy.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pairveil.errors import InputError
from pairveil.foreign import parse_json
from pairveil.printable import printable
from pairveil.privacy.certificate_fields import checked_fields
from pairveil.privacy.events import (
    DisjointGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    check_events,
    event_from_dict,
)
from pairveil.privacy.units import (
    ADJACENCIES,
    ADJACENCY_SENTENCES,
    UNIT_SENTENCES,
    UNITS,
    Adjacency,
    Unit,
    round_up,
)

FORMAT = "pairveil-certificate"
VERSION = 1
MECHANISMS = ("gaussian", "laplace")
"""Mechanisms that can be certified. The published algorithms are not among them, on purpose."""

PUBLIC = (
    "who is paired with whom, the number of people and of pairs, and which pairs were used",
    "kappa, the sampling rate, the number of steps, the clip bound and the noise scale",
    "the bound on the features' norm, the margin's rule, and where the learning started",
)
"""What every certificate treats as public."""

_UNDERSTATED = 1e-6  # relative: other machines round differently
_OVERSTATED = 2e-2  # a larger epsilon than needed is safe, but not this fit's


@dataclass(frozen=True)
class VerificationResult:
    """Whether a certificate's numbers follow from its events; true in a boolean context if so."""

    valid: bool
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.valid


@dataclass(frozen=True)
class Certificate:
    """What a release promises, and enough to recompute it.

    Build it with `Certificate.issue`, which computes every epsilon; read it with `from_json`.

    Examples
    --------
    >>> from pairveil.privacy.events import GaussianEvent
    >>> certificate = Certificate.issue(
    ...     [GaussianEvent(40.0, steps=100)],
    ...     delta=1e-5, unit="relationship", adjacency="zero-out",
    ...     kappas={"pair": 1, "relationship": 1, "person": 2},
    ...     mechanism="gaussian", n_pairs_given=900, n_pairs_used=500,
    ...     selection={"how": "paths", "caveat": None, "full_graph_relationship_kappa": 13},
    ...     noise_source="seeded", for_release=False)
    >>> round(certificate.epsilon, 2), bool(certificate.verify())
    (0.93, True)
    >>> Certificate.from_json(certificate.to_json()) == certificate
    True
    """

    epsilon: float
    delta: float
    unit: Unit
    adjacency: Adjacency
    kappa: int
    kappas: Mapping[str, int]
    mechanism: str
    events: tuple[Mapping[str, Any], ...]
    epsilons: Mapping[str, Mapping[str, float]]
    n_pairs_given: int
    n_pairs_used: int
    selection: Mapping[str, Any]
    noise_source: str
    for_release: bool
    delta_slack: float = 0.0
    public: tuple[str, ...] = PUBLIC
    plan: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    metric_sha256: str | None = None
    format: str = FORMAT
    version: int = VERSION

    def __post_init__(self) -> None:
        _check_header(self.format, self.version)
        if self.unit not in UNITS or self.adjacency not in ADJACENCIES:
            raise InputError("the certificate names an unknown unit or adjacency")
        if self.mechanism not in MECHANISMS:
            raise InputError(
                f"only {' and '.join(MECHANISMS)} noise can be certified; the published "
                "algorithms do not give the epsilon they claim"
            )
        object.__setattr__(self, "events", tuple(dict(event) for event in self.events))
        object.__setattr__(self, "public", tuple(self.public))
        for event in self.events:
            event_from_dict(event)
        if set(self.kappas) != set(UNITS) or set(self.epsilons) != set(UNITS):
            raise InputError(f"the certificate must state kappa and epsilon for {UNITS}")
        if min(self.kappas.values()) < 1 or not 0.0 <= self.delta < 1.0:
            raise InputError("the certificate needs kappas of at least 1 and delta in [0, 1)")
        if any(set(by) != set(ADJACENCIES) for by in self.epsilons.values()):
            raise InputError(f"the certificate must state every epsilon for {ADJACENCIES}")
        if self.for_release and not math.isfinite(self.epsilon):
            raise InputError("a fit without a finite epsilon cannot be certified for release")

    @classmethod
    def issue(
        cls,
        events: Iterable[Event],
        *,
        delta: float,
        unit: Unit,
        adjacency: Adjacency,
        kappas: Mapping[Unit, int],
        mechanism: str,
        n_pairs_given: int,
        n_pairs_used: int,
        selection: Mapping[str, Any],
        noise_source: str,
        for_release: bool,
        delta_slack: float = 0.0,
        public: Iterable[str] = (),
        plan: Mapping[str, Any] | None = None,
    ) -> Certificate:
        """Compute every epsilon of the events and return the certificate.

        Parameters
        ----------
        events : iterable of events
            Everything that was released with noise, training and margin and counts alike.
        delta, unit, adjacency
            What the fit was calibrated for.
        kappas : mapping
            kappa of each of the three units in the graph of the pairs that were used.
        mechanism : {"gaussian", "laplace"}
        n_pairs_given, n_pairs_used : int
        selection : mapping
            ``how``, ``caveat`` (a sentence or None), ``full_graph_relationship_kappa``.
        noise_source : str
            The ``name`` of the noise source.
        for_release : bool
            False when seeded.
        delta_slack : float, default 0.0
            Part of delta that discrete noise takes (`pairveil.privacy.grid.delta_slack`); the
            epsilons hold at ``delta`` with it included.
        public : iterable of str, optional
            Sentences on what else is public, added to the usual ones.
        plan : mapping, optional
            Public parameters of the training.
        """
        checked = check_events(events)
        plain: dict[str, int] = {name: int(kappas[name]) for name in UNITS}
        epsilons = _epsilons(checked, plain, delta, delta_slack)
        return cls(
            epsilon=epsilons[unit][adjacency],
            delta=float(delta),
            unit=unit,
            adjacency=adjacency,
            kappa=plain[unit],
            kappas=plain,
            mechanism=mechanism,
            events=tuple(event.to_dict() for event in checked),
            epsilons=epsilons,
            n_pairs_given=int(n_pairs_given),
            n_pairs_used=int(n_pairs_used),
            selection=dict(selection),
            noise_source=noise_source,
            for_release=bool(for_release),
            delta_slack=float(delta_slack),
            public=(*PUBLIC, *public),
            plan=dict(plan or {}),
            versions=_versions(),
        )

    def verify(self) -> VerificationResult:
        """Recompute every epsilon from the events and kappas; list what does not follow."""
        problems: list[str] = []
        events = tuple(event_from_dict(event) for event in self.events)
        if self.kappa != self.kappas[self.unit]:
            problems.append(f"kappa is not the kappa of unit '{self.unit}'")
        if self.epsilon != self.epsilons[self.unit][self.adjacency]:
            problems.append("epsilon is not the epsilon of its unit and adjacency")
        if self.n_pairs_used > self.n_pairs_given:
            problems.append("more pairs used than given")
        problems += self._contradictions(events)
        recomputed = _epsilons(events, self.kappas, self.delta, self.delta_slack)
        for unit in UNITS:
            for adjacency in ADJACENCIES:
                stated, true = self.epsilons[unit][adjacency], recomputed[unit][adjacency]
                if stated < true * (1.0 - _UNDERSTATED):
                    problems.append(
                        f"epsilon for unit '{unit}', {adjacency}, is stated as {stated:.6g} "
                        f"but the events give {true:.6g}"
                    )
                elif math.isfinite(true) and stated > true * (1.0 + _OVERSTATED) + 1e-9:
                    problems.append(
                        f"epsilon for unit '{unit}', {adjacency}, is stated as {stated:.6g}, "
                        f"far above the {true:.6g} that the events give"
                    )
        return VerificationResult(not problems, tuple(problems))

    def _contradictions(self, events: tuple[Event, ...]) -> list[str]:
        """What the certificate says twice, and not the same way."""
        problems = []
        if self.for_release and "operating-system entropy" not in self.noise_source:
            problems.append("for release, but the noise is not from operating-system entropy")
        if self.for_release and self.mechanism == "gaussian" and not self.delta_slack > 0.0:
            problems.append("for release, but discrete noise's part of delta is missing")
        pure = all(isinstance(event, LaplaceEvent) for event in events)
        if pure != (self.mechanism == "laplace") or (pure and self.delta > 0.0):
            problems.append("the mechanism or delta does not go with the events")
        releases = self.plan.get("releases")
        if releases is not None and [_event_of(r) for r in releases] != list(events):
            problems.append("the events are not those of the plan")
        return problems

    def promise(self) -> str:
        """Return one paragraph of plain English: what is promised to whom."""
        if not math.isfinite(self.epsilon):
            return "No privacy is promised: this metric was learned without enough noise."
        by = self.epsilons[self.unit]
        pairs = "1 used pair" if self.kappa == 1 else f"at most {self.kappa} used pairs"
        sentences = [
            "" if self.for_release else f"NOT FOR RELEASE: {self._why_not()}.",
            f"This metric is (epsilon={round_up(self.epsilon)}, delta={self.delta:g})-differentially "
            f"private for the contents of {pairs}, which covers {UNIT_SENTENCES[self.unit]} "
            f"(adjacency '{self.adjacency}': {ADJACENCY_SENTENCES[self.adjacency]}).",
            f"Epsilon is {round_up(by['zero-out'])} when those pairs are compared with none at all "
            f"and {round_up(by['replace'])} when they are compared with other contents: whoever weighs "
            f"'same' against 'different' can change the odds {_odds(by['replace'])}, except with "
            "probability about delta.",
            "Who is paired with whom is public and not protected.",
            self._selection_sentence(),
        ]
        return printable(" ".join(sentence for sentence in sentences if sentence))

    def _why_not(self) -> str:
        if "operating-system entropy" in self.noise_source:
            return "people were recognised by equal rows of features"
        return "its randomness can be reproduced"

    def _selection_sentence(self) -> str:
        caveat = self.selection.get("caveat")
        if not caveat:
            return ""
        full = self.selection.get("full_graph_relationship_kappa")
        text = str(caveat).rstrip(".") + "."
        return text if full is None else f"{text} In the full graph kappa is {full}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-able data; infinity is the string 'inf'."""
        return {key: _encode(value) for key, value in asdict(self).items()}

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Certificate:
        """Rebuild a certificate, strictly: unknown versions and fields are errors."""
        data = checked_fields(data)
        _check_header(data.get("format"), data.get("version"))
        if set(data) != {f.name for f in fields(cls)}:
            raise InputError("the certificate has missing or unknown fields")
        try:
            values = dict(data)
            for name in ("epsilon", "delta", "delta_slack"):
                values[name] = _number(values[name])
            values["epsilons"] = {
                unit: {adjacency: _number(value) for adjacency, value in by.items()}
                for unit, by in data["epsilons"].items()
            }
            values["kappas"] = {unit: _count(kappa) for unit, kappa in data["kappas"].items()}
            for name in ("kappa", "n_pairs_given", "n_pairs_used"):
                values[name] = _count(values[name])
            if not isinstance(data["for_release"], bool):
                raise InputError("the certificate does not say plainly whether it is for release")
            return cls(**values)
        except (TypeError, AttributeError, KeyError) as error:
            raise InputError(f"the certificate is malformed: {type(error).__name__}") from None

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Rebuild a certificate from JSON text."""
        return cls.from_dict(parse_json(text, "the certificate"))


def _event_of(release: Mapping[str, Any]) -> Event | None:
    """The event of one release of a plan, rebuilt from its public description."""
    try:
        steps, noise = int(release["steps"]), float(release["noise_multiplier"])
        batches = round(1 / release["sample_rate"]) if release["sampling"] == "disjoint" else 1
        if release["mechanism"] == "laplace":
            return LaplaceEvent(noise, math.ceil(steps / batches))
        if release["sampling"] == "disjoint":
            return DisjointGaussianEvent(noise, math.ceil(steps / batches))
        return GaussianEvent(noise, float(release["sample_rate"]), steps)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return None


def _check_header(format_: object, version_: object) -> None:
    if format_ != FORMAT:
        raise InputError("this is not a pairveil certificate")
    if version_ != VERSION:
        raise InputError("the certificate was written by another version of pairveil")


def _number(value: object) -> float:
    if value == "inf":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise InputError("the certificate holds something that is not a non-negative number")
    return float(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError("the certificate holds something that is not a count")
    return value


def _encode(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def _odds(epsilon: float) -> str:
    if epsilon >= 30.0:
        return "by a factor of more than 10^13 (no real protection)"
    return f"by a factor of at most {round_up(math.exp(epsilon), 3)}"


def _epsilons(
    events: Iterable[Event], kappas: Mapping[str, int], delta: float, delta_slack: float
) -> dict[str, dict[str, float]]:
    """Return epsilon for every unit and adjacency at ``delta``, discrete noise's part included."""
    from pairveil.privacy.accounting import epsilon_of

    if delta_slack > 0.0 and delta_slack >= delta:
        return {unit: dict.fromkeys(ADJACENCIES, math.inf) for unit in UNITS}
    return {
        unit: {
            adjacency: epsilon_of(
                events, kappa=kappas[unit], adjacency=adjacency, delta=delta - delta_slack
            )
            for adjacency in ADJACENCIES
        }
        for unit in UNITS
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("pairveil", "numpy", "scipy", "dp-accounting", "opendp"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
