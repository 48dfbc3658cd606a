"""The certificate: what is promised to whom, as plain data from which epsilon is recomputed.

Importing this module loads no accountant; only issuing, verifying and explaining a certificate do, so
a released metric can be loaded with little more than NumPy.

Decoding is strict in kinds and names; what the values say is judged by `Certificate` and by
`pairveil.privacy.verify`. Version 1 knows no other records than pairs: it states no costs. The JSON Schema is
generated of these structures: `tools.certificate_schema`.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from pairveil import __version__
from pairveil._lazy import naming, new_axes
from pairveil.errors import InputError
from pairveil.foreign import decode, parse_json
from pairveil.printable import html_table, printable
from pairveil.privacy.events import (
    Event,
    GaussianEvent,
    StoredEvent,
    UnitCost,
    check_events,
    event_from_dict,
)
from pairveil.privacy.mechanisms import MECHANISMS, NOISES
from pairveil.privacy.units import (
    ADJACENCIES,
    ASSUMED,
    NOISE_SOURCES,
    POINTS_ARE_PUBLIC,
    PROMISE,
    SEEDED_NOISE,
    UNFIT,
    UNITS,
    UNITS_OF_CHOICES,
    WORDS,
    Adjacency,
    Unit,
    Words,
    public_of,
    round_up,
    times_in_100,
)
from pairveil.records.kinds import KINDS, MAX_KAPPA, PAIRS, Cost, CostFields, units_of

if TYPE_CHECKING:
    from pairveil.privacy.profile import Tradeoff
    from pairveil.privacy.verify import VerificationResult


# ---- a certificate as a file: its fields, and what each of them is -----------------------------------

FORMAT = "pairveil-certificate"
VERSION = 2
VERSIONS = (1, VERSION)
"""Versions that are read: 1 knows no other records than pairs."""

BY_UNIT = {
    "oneOf": [
        {"required": list(units), "maxProperties": len(units)}
        for units in (UNITS, UNITS_OF_CHOICES)
    ]
}
_BY_ADJACENCY = {"required": list(ADJACENCIES), "maxProperties": len(ADJACENCIES)}
Real = Annotated[float, Meta(ge=0)]
Epsilon = Real | Literal["inf"]
Size = Annotated[int, Meta(ge=0)]
Kappa = Annotated[int, Meta(ge=1)]
ByAdjacency = Annotated[dict[str, Epsilon], Meta(extra_json_schema=_BY_ADJACENCY)]
Costs = Annotated[dict[str, CostFields], Meta(extra_json_schema=BY_UNIT)]


class SelectionFields(Struct):
    """How the used records were taken from the given ones; verification asks for all of it."""

    how: str = ""
    caveat: str | None = None
    full_graph_relationship_kappa: int | None = None


class ReleaseFields(Struct):
    """A query as plans list it; `pairveil.privacy.mechanisms.Query.from_dict` reads its numbers."""

    name: str = ""
    mechanism: str = ""
    sampling: str = ""
    records: str = ""


class PlanFields(Struct):
    """Public parameters of the training, of which these are looked at."""

    releases: list[ReleaseFields] | None = None
    n_features: int | None = None
    n_components: int | None = None


class PartyFields(Struct, forbid_unknown_fields=True):
    """One party's public numbers: kappas of the pairs that are used, counted in its own graph."""

    name: Annotated[str, Meta(min_length=1, max_length=40)]
    n_pairs_given: Kappa
    n_pairs_used: Kappa
    kappas: dict[str, Kappa]


class PartiesFields(Struct, forbid_unknown_fields=True):
    """Who learned this together, and whom the promise holds against."""

    who: Annotated[list[PartyFields], Meta(min_length=2)]
    kappa_rule: Literal["union", "sum", "disjoint"]
    noise: Literal["parties", "coordinator"]
    colluders: Size
    secrecy: Literal["computational"]

    @property
    def shares(self) -> int:
        """How many shares of noise are enough: those of the parties that do not collude."""
        return len(self.who) - self.colluders if self.noise == "parties" else 1


class CertificateFields(Struct, forbid_unknown_fields=True, kw_only=True):
    """All fields, and what kind of value each of them is; ``words.toml`` says what they mean."""

    format: str
    version: int
    epsilon: Epsilon
    delta: Real
    unit: str
    adjacency: str
    kappa: Kappa
    kappas: dict[str, Kappa]
    mechanism: str
    events: list[StoredEvent]
    epsilons: dict[str, ByAdjacency]
    n_pairs_given: Size
    n_pairs_used: Size
    selection: SelectionFields
    noise_source: str
    for_release: bool
    delta_slack: Real
    public: list[str]
    plan: PlanFields
    versions: dict[str, str]
    metric_sha256: str | None
    graph_digest: str | None = None
    costs: dict[str, Costs] | None = None
    parties: PartiesFields | None = None


OPTIONAL = ("graph_digest", "costs", "parties")
"""Absent from a file where there is none of it. So files of version 1 stay readable."""


def joint_kappas(rule: str, kappas: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The least that kappa of each unit can be for several parties together, from their own kappas.

    Without shared ids a person may be in the pairs of all parties, and a relationship may run through all of
    them: both are bounded by the sum of the person kappas. A union that was counted is at least the largest.
    Where nobody is in two parties, the second largest b of all (docs/theory/graph.md) may be another's.

    ``rule`` is 'union', 'sum' or 'disjoint'; kappas are by unit, one mapping a party.

    Examples
    --------
    >>> path = {"pair": 1, "relationship": 1, "person": 2}
    >>> joint_kappas("sum", [path, path]), joint_kappas("disjoint", [path, path]) == path
    ({'pair': 2, 'relationship': 4, 'person': 4}, True)
    """
    if rule != "sum":
        found: dict[str, int] = {unit: max(one[unit] for one in kappas) for unit in UNITS}
        if rule == "disjoint":
            # A party's largest b is at most its largest degree, and 1 where its second largest is: without a
            # cycle nobody has more.
            most = sorted(
                one["person" if one["relationship"] > 1 else "relationship"] for one in kappas
            )
            found["relationship"] = max(found["relationship"], most[-2])
        return found
    person = sum(one["person"] for one in kappas)
    return {"pair": sum(one["pair"] for one in kappas), "relationship": person, "person": person}


def parties_of(stated: Any) -> PartiesFields | None:
    """What a certificate says of several parties; None where there is one."""
    if stated is None:
        return None
    found: PartiesFields = decode(stated, PartiesFields, "the certificate's parties")
    return found


def check_header(format_: object, version_: object) -> None:
    """Refuse what is no certificate, or one of a version that is not known."""
    if format_ != FORMAT:
        raise InputError("this is not a pairveil certificate")
    if isinstance(version_, bool) or version_ not in VERSIONS:
        raise InputError("the certificate was written by another version of pairveil")


def decoded(data: Any) -> dict[str, Any]:
    """The fields of a certificate, each of its kind; anything else is refused."""
    if not isinstance(data, Mapping):
        raise InputError("a certificate must be a JSON object")
    check_header(data.get("format"), data.get("version"))
    found: CertificateFields = decode(data, CertificateFields, "the certificate")
    if found.version == 1 and found.costs is not None:
        raise InputError("a certificate of version 1 has no costs")
    if found.version == 1 and found.parties is not None:
        raise InputError("a certificate of version 1 has no parties")
    values = dict(data)
    for name in ("epsilon", "delta", "delta_slack"):
        values[name] = float(getattr(found, name))
    values["epsilons"] = {
        unit: {adjacency: float(epsilon) for adjacency, epsilon in by.items()}
        for unit, by in found.epsilons.items()
    }
    if found.costs is not None:
        values["costs"] = {
            kind: {unit: Cost.from_dict(cost) for unit, cost in by.items()}
            for kind, by in data["costs"].items()
        }
    return values


def encoded(value: Any) -> Any:
    """Plain JSON-able data; infinity is the string 'inf'."""
    if isinstance(value, Cost):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): encoded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


# ---- the certificate -----------------------------------------------------------------------------


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
    ...     mechanism="gaussian", n_pairs_given=500, n_pairs_used=500,
    ...     selection={"how": "paths", "caveat": None, "full_graph_relationship_kappa": 1},
    ...     noise_source="seeded NumPy floating-point noise", for_release=False)
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
    public: tuple[str, ...] = WORDS["pairs"].public
    plan: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    metric_sha256: str | None = None
    graph_digest: str | None = None
    costs: Mapping[str, Mapping[Unit, Cost]] | None = None
    parties: Mapping[str, Any] | None = None
    format: str = FORMAT
    version: int = VERSION

    def __post_init__(self) -> None:
        check_header(self.format, self.version)
        if self.costs is not None and not self.costs:
            raise InputError("the certificate states costs, but of no records")
        if not set(self.costs or ()) <= KINDS.keys():
            raise InputError("the certificate states costs of unknown records or units")
        units = self.units
        if self.unit not in units or self.adjacency not in ADJACENCIES:
            raise InputError("the certificate names an unknown unit or adjacency")
        noise = MECHANISMS.get(self.mechanism)  # the published algorithms are not there, on purpose
        if noise is None or not noise.on_sums:
            raise InputError(
                f"only noise of the kinds {', '.join(NOISES)} can be certified; the published algorithms "
                "do not give the epsilon they claim"
            )
        object.__setattr__(self, "events", tuple(dict(event) for event in self.events))
        object.__setattr__(self, "public", tuple(self.public))
        for event in self.events:
            event_from_dict(event)
        if set(self.kappas) != set(units) or set(self.epsilons) != set(units):
            raise InputError(f"the certificate must state kappa and epsilon for {units}")
        if min(self.kappas.values()) < 1 or not 0.0 <= self.delta < 1.0:
            raise InputError("the certificate needs kappas of at least 1 and delta in [0, 1)")
        if max(self.kappas.values()) > MAX_KAPPA:
            raise InputError("the certificate's kappas must be at most 2^53")
        if any(set(by_unit) != set(units) for by_unit in (self.costs or {}).values()):
            raise InputError("the certificate states costs of unknown records or units")
        if any(set(by) != set(ADJACENCIES) for by in self.epsilons.values()):
            raise InputError(f"the certificate must state every epsilon for {ADJACENCIES}")
        parties_of(self.parties)
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
        costs: Mapping[str, Mapping[Unit, Cost]] | None = None,
        parties: Mapping[str, Any] | None = None,
    ) -> Certificate:
        """Compute every epsilon of the events and return the certificate.

        ``events`` are everything that was released with noise, training and margin and counts alike;
        ``kappas`` count the records of each unit among those that were used; ``selection`` has ``how``,
        ``caveat`` (a sentence or None) and ``full_graph_relationship_kappa``. The epsilons hold at
        ``delta`` with ``delta_slack`` included, the part that discrete noise takes. ``costs`` say, for each
        kind of records, what each unit can move of them; by default records are pairs, and a unit empties
        or replaces its kappa of them. ``public`` sentences are added to the usual. ``parties``
        say who learned it together (`PartiesFields`).
        """
        checked = check_events(events)
        if not checked:
            raise InputError(
                "a certificate needs at least one event: without one nothing was released"
            )
        given = {PAIRS.name: PAIRS.costs(kappas)} if costs is None else costs
        by_kind = {kind: dict(by_unit) for kind, by_unit in given.items()}
        units = units_of(by_kind)
        plain: dict[str, int] = {name: int(kappas[name]) for name in units}
        by_event = {name: costs_by_event(by_kind, plan or {}, len(checked), name) for name in units}
        epsilons = all_epsilons(checked, by_event, delta, delta_slack)
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
            public=(*public_of(by_kind), *public),
            plan=dict(plan or {}),
            versions=dict(_versions()),
            costs=by_kind,
            parties=parties,
        )

    def verify(self) -> VerificationResult:
        """Recompute every epsilon from the events and kappas; list what does not follow.

        What it cannot see: whether the noise was drawn and the records were clipped as stated, and whether
        kappa is that of the graph. Those are the sender's word (`pairveil certificate DIR --pairs` recounts
        kappa).
        """
        with naming("verify", "Recomputing epsilon"):
            from pairveil.privacy.verify import verify

            return verify(self)

    # ---- what the promise means to a person (docs/theory/accounting.md) ----------------------

    def best_guess(self, unit: Unit | None = None, prior: float = 0.5) -> float:
        """How often the best possible guesser between two contents of a unit is right, at most.

        The guesser knows everything else about the data, how likely each content was before, and what
        was released.

        Parameters
        ----------
        unit : {"pair", "relationship", "person"}, optional
            The certificate's own when left out.
        prior : float, default 0.5
            How likely one of the two contents was before. With a rare condition, say 0.01, always saying
            'no' is right 99 times in 100: see `tradeoff` for how likely a 'yes' is right.

        Examples
        --------
        >>> certificate = _example()
        >>> round(certificate.best_guess(), 3), round(certificate.best_guess("person"), 3)
        (0.599, 0.691)
        """
        with naming("verify", "The best guess"):
            from pairveil.privacy.profile import best_guess_of

        group, slack = self.group_of(unit), self.delta_slack
        return best_guess_of(self._events(), kappa=group, prior=prior, delta_slack=slack)

    def tradeoff(self, unit: Unit | None = None) -> Tradeoff:
        """The curve of false positives against the least false negatives of any guesser.

        Parameters
        ----------
        unit : {"pair", "relationship", "person"}, optional

        Returns
        -------
        Tradeoff
            Arrays ``false_positives`` and ``false_negatives``; ``at(share)`` reads the curve off
            anywhere, ``posterior(prior, share)`` says how likely a 'yes' is right.

        Examples
        --------
        >>> round(_example().tradeoff().posterior(prior=0.01, false_positives=0.01), 3)
        0.033
        """
        from pairveil.privacy.profile import tradeoff_of

        group = self.group_of(unit)
        return tradeoff_of(self._events(), kappa=group, delta_slack=self.delta_slack)

    def mu(self, unit: Unit | None = None) -> float | None:
        """The Gaussian parameter (replace) of a plan that is exactly Gaussian, else None.

        Exact discrete noise stays within ``delta_slack`` of it.

        Examples
        --------
        >>> _example().mu()
        0.5
        """
        from pairveil.privacy.profile import mu_of

        return mu_of(self._events(), kappa=self.group_of(unit), adjacency="replace")

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units that this certificate speaks of.

        Examples
        --------
        >>> _example().units
        ('pair', 'relationship', 'person')
        """
        return UNITS if self.costs is None else units_of(self.costs)

    @property
    def costs_of(self) -> Mapping[str, Mapping[Unit, Cost]]:
        """What each unit can move of each kind of records; version 1 knows pairs alone, and states kappas."""
        return self.costs or {PAIRS.name: PAIRS.costs(self.kappas)}  # type: ignore[arg-type]

    @property
    def records(self) -> str:
        """What the fit learned from: 'pairs', 'groups', 'people', 'choices' or 'workers'.

        Examples
        --------
        >>> _example().records
        'pairs'
        """
        queries = self.plan.get("releases")
        first = queries[0] if isinstance(queries, list | tuple) and queries else None
        kind = first.get("records", "pairs") if isinstance(first, Mapping) else "pairs"
        return kind if kind in KINDS else "pairs"

    @property
    def worded_as(self) -> str:
        """Its kind of records; pairs of public points are links, whose labels alone are private."""
        return "links" if POINTS_ARE_PUBLIC in self.public else self.records

    @property
    def words(self) -> Words:
        """How its records are worded."""
        return WORDS[self.worded_as]

    def group_of(self, unit: Unit | None = None) -> UnitCost:
        """What one unit can move: its kappa (version 1), or its cost in each event."""
        if unit is not None and unit not in self.units:
            raise InputError(f"unit must be one of {', '.join(self.units)}")
        asked: Unit = self.unit if unit is None else unit
        if self.costs is None:
            return self.kappas[asked]
        return costs_by_event(self.costs, self.plan, len(self.events), asked)

    def _events(self) -> tuple[Event, ...]:
        return tuple(event_from_dict(event) for event in self.events)

    def promise(self) -> str:
        """Return one paragraph of plain English: what is promised to whom.

        Examples
        --------
        >>> "is right at most 59.9 times in 100" in _example().promise()
        True
        """
        if not math.isfinite(self.epsilon):
            return PROMISE["none"]
        share, words, alike = self.best_guess(), self.words, one_number(self)
        found = {
            **vars(words),
            "released": _released(self),
            "epsilon": round_up(self.epsilon),
            "delta": self.delta,
            "records": words.one if self.kappa == 1 else words.several.format(self.kappa),
            "covers": words.covers[self.unit],
            "adjacency": self.adjacency,
            "compared": words.compared[self.adjacency],
            "times": times_in_100(share),
            "zero_out": round_up(self.epsilons[self.unit]["zero-out"]),
            "replace": round_up(self.epsilons[self.unit]["replace"]),
        }
        why = " and ".join(self.why_not_for_release())
        sentences = [
            PROMISE["not_for_release"].format(why) if why else "",
            PROMISE["one_number"] if alike else "",
            PROMISE["private"].format_map(found),
            PROMISE["weak" if share > 0.99 else "guess"].format_map(found),
            PROMISE["same" if alike else "both"].format_map(found),
            PROMISE["scored"] if "score" in self.plan else "",
            words.not_protected,
            *(f"{said[0].upper()}{said[1:]}." for said in ASSUMED if said in self.public),
            _together(self.parties),
            _caveat(self.selection),
        ]
        # The caveat is the sender's text: nothing in it may speak to a terminal.
        return printable(" ".join(sentence for sentence in sentences if sentence))

    def why_not_for_release(self) -> tuple[str, ...]:
        """Why this must not be handed out; nothing when it may be."""
        return tuple(UNFIT[why]["reason"] for why in self.unfit())

    def unfit(self) -> list[str]:
        """Names of what makes this unfit for a release, as in `pairveil.privacy.units.UNFIT`."""
        if self.for_release:
            return []
        said = [why for why, of in UNFIT.items() if of.get("said") in self.public]
        seed = [] if NOISE_SOURCES.get(self.noise_source, False) else ["seed"]
        return seed + said or ["topology"]

    def _repr_html_(self) -> str:
        """A table for notebooks: epsilon for each unit, and what it means to a guesser."""
        rows = [
            [
                f"{unit} (promised)" if unit == self.unit else unit,
                self.kappas[unit],
                *(round_up(e) if math.isfinite(e) else "infinite" for e in by.values()),
                f"{times_in_100(self.best_guess(unit))} in 100",
            ]
            for unit, by in ((unit, self.epsilons[unit]) for unit in self.units)
        ]
        adjacencies = next(iter(self.epsilons.values()))
        heads = ["protected unit", "kappa", *(f"epsilon ({one})" for one in adjacencies)]
        release = "" if self.for_release else " NOT for release."
        return html_table([*heads, "best guess"], rows, f"{self.promise()}{release}")

    def plot(self, unit: Unit | None = None, ax: Any = None) -> Any:
        """Draw `tradeoff` beside a coin's; returns matplotlib's axes (``pip install 'pairveil[plots]'``)."""
        ax = new_axes() if ax is None else ax
        curve = self.tradeoff(unit)
        ax.plot([0, 1], [1, 0], linestyle=":", color="grey", label="a coin")
        ax.plot(curve.false_positives, curve.false_negatives, label=unit or self.unit)
        labels = {"xlabel": "false positives", "ylabel": "false negatives, at least"}
        ax.set(**labels, xlim=(0, 1), ylim=(0, 1))
        ax.legend()
        return ax

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-able data; infinity is the string 'inf', optional fields only where set."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: encoded(value)
            for name, value in values.items()
            if value is not None or name not in OPTIONAL
        }

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Certificate:
        """Rebuild a certificate, strictly: unknown versions and fields are errors."""
        try:
            return cls(**decoded(data))
        except (TypeError, AttributeError, KeyError) as error:
            raise InputError(f"the certificate is malformed: {type(error).__name__}") from None

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Rebuild a certificate from JSON text."""
        return cls.from_dict(parse_json(text, "the certificate"))


# ---- the epsilon of every unit and adjacency, from events and what a unit can move in each ---------


def costs_by_event(
    costs: Mapping[str, Mapping[Unit, Cost]], plan: Mapping[str, Any], n_events: int, unit: Unit
) -> tuple[Cost, ...]:
    """The cost of a unit in each event: a plan says what kind of records its queries are about."""
    queries = plan.get("releases")
    kinds = [
        query.get("records", "pairs") if isinstance(query, Mapping) else "pairs"
        for query in (queries if isinstance(queries, list | tuple) else ())
    ]
    kinds += [next(iter(costs))] * (n_events - len(kinds))
    if not all(kind in costs for kind in kinds[:n_events]):
        raise InputError("the plan has queries about records whose cost is not stated")
    return tuple(costs[kind][unit] for kind in kinds[:n_events])


def all_epsilons(
    events: Iterable[Event], kappas: Mapping[Unit, UnitCost], delta: float, delta_slack: float
) -> dict[str, dict[str, float]]:
    """Return epsilon for every unit and adjacency at ``delta``, the slack of discrete noise included."""
    from pairveil.privacy.profile import epsilon_of

    if delta_slack > 0.0 and delta_slack >= delta:
        return {unit: dict.fromkeys(ADJACENCIES, math.inf) for unit in kappas}
    return {
        unit: {
            adjacency: epsilon_of(
                events, kappa=kappas[unit], adjacency=adjacency, delta=delta - delta_slack
            )
            for adjacency in ADJACENCIES
        }
        for unit in kappas
    }


# ---- parts of its promise -------------------------------------------------------------------------


def _released(c: Certificate) -> str:
    """What is handed out."""
    curve = c.plan.get("error_curve")
    if curve is not None and POINTS_ARE_PUBLIC not in c.public:
        several = isinstance(curve, Mapping) and "scores" in curve
        return PROMISE["scores" if several else "error_curve"]
    return PROMISE["clustering"] if "n_clusters" in c.plan else c.words.released


def one_number(certificate: Certificate) -> bool:
    """Whether one epsilon holds for every unit and adjacency, as it does where records are groups."""
    stated = {epsilon for by in certificate.epsilons.values() for epsilon in by.values()}
    kind = KINDS[certificate.records]
    return set(kind.parts) == set(kind.units) and len(stated) == 1


def _together(stated: Mapping[str, Any] | None) -> str:
    """Against whom the promise of several parties holds."""
    parties = parties_of(stated)
    if parties is None:
        return ""
    said = PROMISE["parties" if parties.noise == "parties" else "coordinator"]
    return said.format(n=len(parties.who), t=parties.colluders)


def _caveat(selection: Mapping[str, Any]) -> str:
    if not (caveat := selection.get("caveat")):
        return ""
    full, text = selection.get("full_graph_relationship_kappa"), str(caveat).rstrip(".") + "."
    return text if full is None else f"{text} {PROMISE['full_graph'].format(full)}"


@cache
def _versions() -> dict[str, str]:
    """Read off the installed packages once: it would take longer than all epsilons."""
    found = {"python": platform.python_version(), "pairveil": __version__}
    for package in ("numpy", "scipy", "dp-accounting"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _example() -> Certificate:
    """For examples: a full-batch plan with mu = 1/2 for one replaced pair."""
    return Certificate.issue(
        [GaussianEvent(40.0, steps=100)],
        delta=1e-5,
        unit="relationship",
        adjacency="zero-out",
        kappas={"pair": 1, "relationship": 1, "person": 2},
        mechanism="gaussian",
        n_pairs_given=500,
        n_pairs_used=500,
        selection={"how": "paths", "caveat": None, "full_graph_relationship_kappa": 1},
        noise_source=SEEDED_NOISE,
        for_release=False,
    )
