"""Certificates as JSON: strict in what is read, plain in what is written.

What kind of value each field must be is checked before any of them is used.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from pairveil.errors import InputError
from pairveil.foreign import check_kinds
from pairveil.privacy.costs import Cost

FORMAT = "pairveil-certificate"
VERSION = 2
VERSIONS = (1, VERSION)
"""Versions that are read: 1 knows no other records than pairs."""

_OPTIONAL = {
    "graph_digest",
    "costs",
}  # absent from a file: None. So files of version 1 stay readable
_KINDS: dict[str, Any] = {
    "epsilon": float,
    "delta": float,
    "unit": str,
    "adjacency": str,
    "kappa": int,
    "kappas": {str: int},
    "mechanism": str,
    "events": [Mapping],
    "epsilons": {str: {str: float}},
    "n_pairs_given": int,
    "n_pairs_used": int,
    "selection": Mapping,
    "noise_source": str,
    "for_release": bool,
    "delta_slack": float,
    "public": [str],
    "plan": Mapping,
    "versions": {str: str},
    "metric_sha256": (str, None),
    "graph_digest": (str, None),
    "costs": ({str: {str: Mapping}}, None),
}
_SELECTION = {"how": str, "caveat": (str, None), "full_graph_relationship_kappa": (int, None)}
_PLAN = {"releases": ([Mapping], None), "n_features": (int, None), "n_components": (int, None)}
_RELEASE = {"name": str, "mechanism": str, "sampling": str, "records": str}


def decoded(data: Any, names: Collection[str]) -> dict[str, Any]:
    """Values of the fields ``names``, each of its kind; anything else is refused.

    Examples
    --------
    >>> decoded([], {"epsilon"})
    Traceback (most recent call last):
        ...
    pairveil.errors.InputError: a certificate must be a JSON object
    """
    if not isinstance(data, Mapping):
        raise InputError("a certificate must be a JSON object")
    check_header(data.get("format"), data.get("version"))
    if set(data) | _OPTIONAL != set(names):
        raise InputError("the certificate has missing or unknown fields")
    values = _of_their_kinds(data)
    for name in ("epsilon", "delta", "delta_slack"):
        values[name] = _number(values[name])
    values["epsilons"] = {
        unit: {adjacency: _number(value) for adjacency, value in by.items()}
        for unit, by in data["epsilons"].items()
    }
    values["kappas"] = {unit: _count(kappa) for unit, kappa in data["kappas"].items()}
    for name in ("kappa", "n_pairs_given", "n_pairs_used"):
        values[name] = _count(values[name])
    if data["version"] == 1 and data.get("costs") is not None:
        raise InputError("a certificate of version 1 has no costs")
    if data.get("costs") is not None:
        values["costs"] = {
            str(kind): {unit: Cost.from_dict(cost) for unit, cost in by.items()}
            for kind, by in data["costs"].items()
        }
    return values


def encoded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Plain JSON-able data; infinity is the string 'inf', optional fields only where they are set.

    Examples
    --------
    >>> encoded({"epsilon": float("inf"), "graph_digest": None})
    {'epsilon': 'inf'}
    """
    return {
        key: _encode(value)
        for key, value in values.items()
        if value is not None or key not in _OPTIONAL
    }


def check_header(format_: object, version_: object) -> None:
    if format_ != FORMAT:
        raise InputError("this is not a pairveil certificate")
    if isinstance(version_, bool) or version_ not in VERSIONS:
        raise InputError("the certificate was written by another version of pairveil")


def _of_their_kinds(data: Any) -> dict[str, Any]:
    """The fields, of the right kinds; what they say is not judged here."""
    values = check_kinds(data, _KINDS, "the certificate")
    check_kinds(values["selection"], _SELECTION, "the certificate's selection")
    plan = check_kinds(values["plan"], _PLAN, "the certificate's plan")
    for release in plan.get("releases") or ():
        check_kinds(release, _RELEASE, "a release of the certificate's plan")
    return values


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
    if isinstance(value, Cost):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
