"""Certificates say what holds, can be recomputed, and cannot be made for what does not hold."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys

import pytest

from pairveil.errors import InputError
from pairveil.privacy.accounting import epsilon_of
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.events import GaussianEvent, LaplaceEvent
from pairveil.privacy.noise import SeededNoise, TrustedNoise

EVENTS = [GaussianEvent(40.0, 0.2, 100), LaplaceEvent(50.0)]


def make(**changes):
    arguments = {
        "events": EVENTS,
        "delta": 1e-5,
        "unit": "relationship",
        "adjacency": "zero-out",
        "kappas": {"pair": 1, "relationship": 2, "person": 5},
        "mechanism": "gaussian",
        "n_pairs_given": 900,
        "n_pairs_used": 500,
        "selection": {
            "how": "paths",
            "caveat": "Pairs with labels were dropped",
            "full_graph_relationship_kappa": 13,
        },
        "noise_source": TrustedNoise().name,
        "for_release": True,
        "delta_slack": 1e-9,
        "plan": {"clip": 0.1, "steps": 100},
    }
    return Certificate.issue(**{**arguments, **changes})


def test_every_epsilon_follows_from_the_events():
    certificate = make()
    for unit, kappa in certificate.kappas.items():
        for adjacency in ("zero-out", "replace"):
            expected = epsilon_of(EVENTS, kappa=kappa, adjacency=adjacency, delta=1e-5 - 1e-9)
            assert certificate.epsilons[unit][adjacency] == expected
    assert certificate.epsilon == certificate.epsilons["relationship"]["zero-out"]
    assert certificate.kappa == 2
    result = certificate.verify()
    assert result
    assert result.problems == ()


def test_json_is_plain_and_gives_the_same_certificate_back():
    certificate = make()
    data = json.loads(certificate.to_json())
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert Certificate.from_dict(data).verify()
    assert set(data["versions"]) >= {"python", "numpy", "dp-accounting", "pairveil"}
    assert data["public"]


def test_infinity_is_written_as_a_word():
    certificate = make(events=[GaussianEvent(0.0)], for_release=False)
    data = json.loads(certificate.to_json())
    assert data["epsilon"] == "inf"
    assert data["epsilons"]["pair"]["replace"] == "inf"
    again = Certificate.from_json(certificate.to_json())
    assert again.epsilon == math.inf
    assert again.verify()
    assert "No privacy is promised" in again.promise()


LIES = {
    "smaller epsilon": lambda d: (
        d.update(epsilon=0.1),
        d["epsilons"]["relationship"].update({"zero-out": 0.1}),
    ),
    "smaller epsilon elsewhere": lambda d: d["epsilons"]["person"].update(replace=0.2),
    "far larger epsilon": lambda d: d["epsilons"]["person"].update(replace=900.0),
    "headline differs": lambda d: d.update(epsilon=d["epsilon"] * 0.99),
    "kappa understated": lambda d: (d.update(kappa=1), d["kappas"].update(relationship=1)),
    "kappa differs from its table": lambda d: d.update(kappa=1),
    "less noise": lambda d: d["events"][0].update(noise_multiplier=20.0),
    "an event left out": lambda d: d["events"].clear(),
    "smaller delta": lambda d: d.update(delta=1e-9),
    "slack eats delta": lambda d: d.update(delta_slack=1e-5),
    "an event of the plan left out": lambda d: d["plan"].update(releases=[]),
    "another mechanism": lambda d: d.update(mechanism="laplace"),
    "no part of delta for discrete noise": lambda d: d.update(delta_slack=0.0),
    "seeded but for release": lambda d: d.update(noise_source=SeededNoise.name),
    "more pairs used than given": lambda d: d.update(n_pairs_used=901),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_found(lie):
    data = make().to_dict()
    LIES[lie](data)
    result = Certificate.from_dict(data).verify()
    assert not result
    assert len(result.problems) >= 1


MALFORMED = {
    "unknown version": lambda d: d.update(version=2),
    "another format": lambda d: d.update(format="diploma"),
    "unknown field": lambda d: d.update(seal="gold"),
    "missing field": lambda d: d.pop("events"),
    "unknown event": lambda d: d["events"][0].update(kind="staircase"),
    "published mechanism": lambda d: d.update(mechanism="DPP-S"),
    "unknown unit": lambda d: d.update(unit="household"),
    "unknown adjacency": lambda d: d.update(adjacency="remove"),
    "a unit missing": lambda d: d["kappas"].pop("person"),
    "an adjacency missing": lambda d: d["epsilons"]["pair"].pop("replace"),
    "negative epsilon": lambda d: d.update(epsilon=-1.0),
    "epsilon is text": lambda d: d.update(epsilon="small"),
    "epsilon is true": lambda d: d.update(epsilon=True),
    "kappa is a fraction": lambda d: d["kappas"].update(pair=0.5),
    "kappa is zero": lambda d: d["kappas"].update(pair=0),
    "delta is one": lambda d: d.update(delta=1.0),
    "for_release is text": lambda d: d.update(for_release="yes"),
    "events is a number": lambda d: d.update(events=3),
    "epsilons is a list": lambda d: d.update(epsilons=[]),
}


@pytest.mark.parametrize("how", MALFORMED)
def test_a_malformed_certificate_is_refused(how):
    data = make().to_dict()
    MALFORMED[how](data)
    with pytest.raises(InputError):
        Certificate.from_dict(data)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"format": "pairveil-certificate"}'])
def test_text_that_is_no_certificate_is_refused(text):
    with pytest.raises(InputError):
        Certificate.from_json(text)


@pytest.mark.parametrize("mechanism", ["staircase", "duchi", "DPP-S", "published", ""])
def test_published_algorithms_cannot_be_certified(mechanism):
    with pytest.raises(InputError, match="can be certified"):
        make(mechanism=mechanism)


def test_what_is_not_an_event_cannot_be_certified():
    with pytest.raises(InputError):
        make(events=[{"kind": "gaussian"}])


def test_no_finite_epsilon_no_release():
    with pytest.raises(InputError, match="finite epsilon"):
        make(events=[GaussianEvent(0.0)])


def test_the_promise_says_who_what_and_how_much():
    certificate = make()
    text = certificate.promise()
    by = certificate.epsilons["relationship"]
    for part in (
        "one relationship",
        "at most 2 used pairs",
        "zero-out",
        f"{by['zero-out']:.4g}",
        f"{by['replace']:.4g}",
        f"{math.exp(by['replace']):.3g}",
        "Who is paired with whom is public",
        "Pairs with labels were dropped",
        "kappa is 13",
    ):
        assert part in text
    assert "NOT FOR RELEASE" not in text
    seeded = make(for_release=False, noise_source=SeededNoise.name)
    assert seeded.promise().startswith("NOT FOR RELEASE: its randomness can be reproduced.")
    recognised = make(
        for_release=False
    ).promise()  # fresh noise, but who is who was read off the rows
    assert recognised.startswith("NOT FOR RELEASE: people were recognised by equal rows")
    assert "reproduced" not in recognised
    clean = make(selection={"how": "all", "caveat": None, "full_graph_relationship_kappa": 2})
    assert "full graph" not in clean.promise()


def test_a_huge_epsilon_is_not_dressed_up():
    text = make(events=[GaussianEvent(0.5, 1.0, 100)]).promise()
    assert "no real protection" in text


def test_certificates_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        make().epsilon = 0.0


def test_reading_a_certificate_loads_no_accountant():
    code = (
        "import sys, pairveil.privacy.certificate as c;"
        "c.Certificate.from_json(sys.stdin.read());"
        "print([m for m in ('scipy', 'dp_accounting', 'opendp', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=make().to_json(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
