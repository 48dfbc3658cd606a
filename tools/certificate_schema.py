"""``python -m tools.certificate_schema`` writes the JSON Schema of certificates.

It is made of the structures by which they are read, and lies beside them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec

from pairveil.graph import SELECTIONS
from pairveil.privacy import certificate
from pairveil.privacy.certificate import (
    BY_UNIT,
    FORMAT,
    VERSION,
    VERSIONS,
    CertificateFields,
    SelectionFields,
)
from pairveil.privacy.units import ADJACENCIES, FIELDS, NOISE_SOURCES, Unit
from pairveil.records.kinds import KINDS

# What the schema says of a field beyond its kind. Verification looks deeper and says it in sentences.
NARROWER: dict[str, dict[str, Any]] = {
    "format": {"const": FORMAT},
    "version": {"enum": list(VERSIONS)},
    "delta": {"exclusiveMaximum": 1},
    "unit": {"enum": list(get_args(Unit))},
    "adjacency": {"enum": list(ADJACENCIES)},
    "kappas": BY_UNIT,
    "mechanism": {"pattern": "^[a-z][a-z-]*$"},
    "events": {"minItems": 1},
    "epsilons": BY_UNIT,
    "selection": {"required": list(SelectionFields.__struct_fields__)},
    "how": {"enum": list(SELECTIONS)},
    "full_graph_relationship_kappa": {"type": "integer", "minimum": 1},
    "noise_source": {"enum": list(NOISE_SOURCES)},
    "public": {"minItems": 1},
    "metric_sha256": {"pattern": "^[0-9a-f]{64}$"},
    "graph_digest": {"pattern": "^[0-9a-f]{64}$"},
    "costs": {"minProperties": 1, "propertyNames": {"enum": list(KINDS)}},
}


def certificate_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of certificates."""
    _, parts = msgspec.json.schema_components((CertificateFields,), ref_template="#/$defs/{name}")
    whole = parts.pop(CertificateFields.__name__)
    for name, field in {
        **whole["properties"],
        **parts[SelectionFields.__name__]["properties"],
    }.items():
        field.update(NARROWER.get(name, {}), description=FIELDS[name])
    private = {"properties": {"for_release": {"const": True}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:pairveil:certificate:{VERSION}",
        **whole,
        "title": "pairveil certificate, versions 1 and 2",
        "description": FIELDS["file"],
        "allOf": [{"if": private, "then": {"properties": {"epsilon": {"type": "number"}}}}],
        "$defs": parts,
    }


if __name__ == "__main__":
    place = Path(certificate.__file__).with_name("certificate.schema.json")
    place.write_text(json.dumps(certificate_schema(), indent=2) + "\n", encoding="utf-8")
