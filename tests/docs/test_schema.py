"""The published schema and the certificates that are really written say the same."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib.resources import files
from typing import Any

import jsonschema
import numpy as np
import pytest
from tools.certificate_schema import certificate_schema

from pairveil import Certificate, DPPMetricLearner
from pairveil.privacy.certificate import FORMAT, VERSION

SCHEMA = json.loads(files("pairveil.privacy").joinpath("certificate.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def certificate(**parameters: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X, pairs = rng.random((30, 3)) / 2, np.array([(i, i + 1) for i in range(29)] + [(0, 2)])
    y = np.where(np.arange(30) % 2, 1, -1)
    learner = DPPMetricLearner(epsilon=8.0, delta=1e-3, preprocessor=X, **parameters)
    return learner.certify(pairs, y).to_dict()


KINDS = [
    {},
    {"random_state": 0},
    {"select": "all", "unit": "person", "adjacency": "replace"},
    {"mechanism": "laplace"},
    {"sampling": "disjoint", "sample_rate": 0.25},
    {"margin": "private", "n_components": 2},
    {"kappa": 7},
]


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
@pytest.mark.parametrize("parameters", KINDS, ids=str)
def test_real_certificates_are_valid(parameters: dict[str, Any]) -> None:
    made = certificate(**parameters)
    VALIDATOR.validate(made)
    assert Certificate.from_dict(made).verify().problems == ()


def test_the_schema_is_the_one_that_is_generated() -> None:
    assert certificate_schema() == SCHEMA, "run: python -m tools.certificate_schema"


def test_the_schema_is_one_and_names_every_field() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    names = {field.name for field in fields(Certificate)}
    assert set(SCHEMA["properties"]) == names
    assert names - set(SCHEMA["required"]) == {"graph_digest", "costs", "parties"}
    assert SCHEMA["properties"]["format"]["const"] == FORMAT
    assert SCHEMA["properties"]["version"]["enum"][-1] == VERSION


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
@pytest.mark.parametrize(
    "change",
    [
        {"version": 3},
        {"unit": "household"},
        {"delta": 1.0},
        {"kappa": 0},
        {"epsilon": -1.0},
        {"epsilon": "inf"},  # together with for_release
        {"for_release": "yes"},
        {"events": []},
        {"events": [{"kind": "exponential", "steps": 1}]},
        {"mechanism": 1},
        {"metric_sha256": "abc"},
        {"signature": "mine"},
        {"epsilons": {"pair": {"zero-out": 1.0, "replace": 2.0}}},
    ],
    ids=str,
)
def test_what_is_no_certificate_is_refused(change: dict[str, Any]) -> None:
    good = certificate()
    assert VALIDATOR.is_valid(good)
    assert not VALIDATOR.is_valid(good | change)
