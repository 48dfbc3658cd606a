"""A certificate as a file: the fields it has, what each of them is, and the JSON Schema that says so.

Decoding is strict in kinds and names; what the values say is judged by `Certificate` and by
`pairveil.privacy.verify`. Version 1 knows no other records than pairs: it states no costs. The schema is
generated:

    python -m pairveil.privacy.certificate_file > src/pairveil/privacy/certificate.schema.json
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from pairveil.errors import InputError
from pairveil.foreign import decode
from pairveil.graph import SELECTIONS
from pairveil.privacy.events import StoredEvent
from pairveil.privacy.units import ADJACENCIES, NOISE_SOURCES, UNITS, UNITS_OF_CHOICES, Unit
from pairveil.records.kinds import KINDS, Cost, CostFields

FORMAT = "pairveil-certificate"

VERSION = 2

VERSIONS = (1, VERSION)
"""Versions that are read: 1 knows no other records than pairs."""

_PATTERN = {"pattern": "^[0-9a-f]{64}$"}
_BY_UNIT = {
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


def _says(description: str, **also: Any) -> Meta:
    """What a field is for, and what the schema says of it beyond its kind."""
    return Meta(description=description, extra_json_schema=also or None)


class SelectionFields(Struct):
    """How the used records were taken from the given ones; verification asks for all of it."""

    how: Annotated[str, _says("The rule.", enum=list(SELECTIONS))] = ""
    caveat: Annotated[
        str | None, _says("A sentence when labelled pairs were dropped, null otherwise.")
    ] = None
    full_graph_relationship_kappa: Annotated[
        int | None, _says("b2 of the graph of all given pairs.", type="integer", minimum=1)
    ] = None


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


class CertificateFields(Struct, forbid_unknown_fields=True, kw_only=True):
    """What a released metric promises, and enough to recompute it."""

    format: Annotated[str, _says("What this file is.", const=FORMAT)]
    version: Annotated[
        int,
        _says(
            "Version 2 states the costs of its records; version 1 knows no other records than pairs. A "
            "reader refuses versions it does not know.",
            enum=list(VERSIONS),
        ),
    ]
    epsilon: Annotated[
        Epsilon,
        _says("Epsilon of 'unit' in 'adjacency' at 'delta': what the fit was calibrated for."),
    ]
    delta: Annotated[Real, _says("Below 1.", exclusiveMaximum=1)]
    unit: Annotated[str, _says("What is protected.", enum=list(get_args(Unit)))]
    adjacency: Annotated[
        str,
        _says(
            "What epsilon compares: the protected pairs with null pairs, or with other contents.",
            enum=list(ADJACENCIES),
        ),
    ]
    kappa: Annotated[Kappa, _says("Used pairs that one unit can hold; equals kappas[unit].")]
    kappas: Annotated[
        dict[str, Kappa],
        _says(
            "kappa of each unit in the graph of the used pairs, or a larger public constant.",
            **_BY_UNIT,
        ),
    ]
    mechanism: Annotated[
        str,
        _says(
            "Kind of noise on the sums: gaussian or laplace in this version. A reader refuses what it does "
            "not know.",
            pattern="^[a-z][a-z-]*$",
        ),
    ]
    events: Annotated[
        list[StoredEvent],
        _says(
            "Everything that was released with noise, in units of one pair's clip bound. Epsilon is "
            "recomputed from these.",
            minItems=1,
        ),
    ]
    epsilons: Annotated[
        dict[str, Annotated[dict[str, Epsilon], Meta(extra_json_schema=_BY_ADJACENCY)]],
        _says("Epsilon at 'delta' for every unit in both adjacencies.", **_BY_UNIT),
    ]
    n_pairs_given: Size
    n_pairs_used: Annotated[Size, _says("At most n_pairs_given.")]
    selection: Annotated[
        SelectionFields,
        _says(
            "How the used pairs were taken from the given ones.",
            required=list(SelectionFields.__struct_fields__),
        ),
    ]
    noise_source: Annotated[str, _says("Where the noise came from.", enum=list(NOISE_SOURCES))]
    for_release: Annotated[
        bool,
        _says(
            "False when the randomness was seeded, or people had to be recognised by equal rows."
        ),
    ]
    delta_slack: Annotated[
        Real,
        _says("Part of delta that exact discrete noise takes; the epsilons hold with it included."),
    ]
    public: Annotated[list[str], _says("What the promise treats as public.", minItems=1)]
    plan: Annotated[
        PlanFields,
        _says(
            "Public parameters of the training. 'releases' lists what was released, in the order of "
            "'events'; since 0.2 each states its 'entries', the numbers in one sum, from which delta_slack "
            "follows, and its 'records', whose costs apply to it. 'thresholds' lists the pairs of thresholds "
            "chosen privately. Needed where the certificate is for release or names a file."
        ),
    ]
    versions: Annotated[dict[str, str], _says("Packages that made the release.")]
    metric_sha256: Annotated[
        str | None,
        _says("SHA-256 of metric.safetensors; null before the metric is saved.", **_PATTERN),
    ]
    graph_digest: Annotated[
        str | None,
        _says(
            "Optional, since 0.2: salted digest (HMAC-SHA-256) of who is paired with whom, where the sender "
            "asked for it. The salt is not in the release.",
            **_PATTERN,
        ),
    ] = None
    costs: Annotated[
        dict[str, Annotated[dict[str, CostFields], Meta(extra_json_schema=_BY_UNIT)]] | None,
        _says(
            "Optional, since 0.2: for each kind of records, what each unit can move of them.",
            minProperties=1,
            propertyNames={"enum": list(KINDS)},
        ),
    ] = None


OPTIONAL = ("graph_digest", "costs")
"""Absent from a file where there is none of it. So files of version 1 stay readable."""


def check_header(format_: object, version_: object) -> None:
    """Refuse what is no certificate, or one of a version that is not known."""
    if format_ != FORMAT:
        raise InputError("this is not a pairveil certificate")
    if isinstance(version_, bool) or version_ not in VERSIONS:
        raise InputError("the certificate was written by another version of pairveil")


def decoded(data: Any) -> dict[str, Any]:
    """The fields of a certificate, each of its kind; anything else is refused.

    Examples
    --------
    >>> decoded([])
    Traceback (most recent call last):
        ...
    pairveil.errors.InputError: a certificate must be a JSON object
    """
    if not isinstance(data, Mapping):
        raise InputError("a certificate must be a JSON object")
    check_header(data.get("format"), data.get("version"))
    found: CertificateFields = decode(data, CertificateFields, "the certificate")
    if found.version == 1 and found.costs is not None:
        raise InputError("a certificate of version 1 has no costs")
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
    """Plain JSON-able data; infinity is the string 'inf'.

    Examples
    --------
    >>> encoded({"epsilon": float("inf"), "public": ("who",)})
    {'epsilon': 'inf', 'public': ['who']}
    """
    if isinstance(value, Cost):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): encoded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def certificate_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of certificates.

    Examples
    --------
    >>> certificate_schema()["properties"]["kappa"]["minimum"]
    1
    """
    _, parts = msgspec.json.schema_components((CertificateFields,), ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:pairveil:certificate:{VERSION}",
        **parts.pop("CertificateFields"),
        "title": "pairveil certificate, versions 1 and 2",
        "description": "What a released metric promises, and enough to recompute it. Numbers that are "
        "infinite are the string 'inf'. Unknown fields are errors.",
        "allOf": [
            {
                "if": {"properties": {"for_release": {"const": True}}},
                "then": {"properties": {"epsilon": {"type": "number"}}},
            }
        ],
        "$defs": parts,
    }


if __name__ == "__main__":
    print(json.dumps(certificate_schema(), indent=2))
