"""What kind of value each field of a certificate must be, checked before any of them is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairveil.foreign import check_kinds

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
}
_SELECTION = {"how": str, "caveat": (str, None), "full_graph_relationship_kappa": (int, None)}
_PLAN = {"releases": ([Mapping], None), "n_features": (int, None)}


def checked_fields(data: Any) -> dict[str, Any]:
    """The fields of a certificate, of the right kinds; what they say is not judged here.

    Examples
    --------
    >>> checked_fields({"selection": "paths"})
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: the certificate is not valid: 'selection' must be an object
    """
    fields = check_kinds(data, _KINDS, "the certificate")
    check_kinds(fields.get("selection", {}), _SELECTION, "the certificate's selection")
    check_kinds(fields.get("plan", {}), _PLAN, "the certificate's plan")
    return fields
