"""A certificate as a file: the fields it has, what each of them is, and the JSON Schema that says so.

Decoding is strict in kinds and names; what the values say is judged by `Certificate` and by
`pairveil.privacy.verify`. Version 1 knows no other records than pairs: it states no costs. The schema is
generated of these structures: `tools.certificate_schema`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from pairveil.errors import InputError
from pairveil.foreign import decode
from pairveil.privacy.events import StoredEvent
from pairveil.privacy.units import (
    ADJACENCIES,
    UNITS,
    UNITS_OF_CHOICES,
)
from pairveil.records.kinds import Cost, CostFields

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
