"""Certificates say what holds, can be recomputed, and cannot be made for what does not hold."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import subprocess
import sys

import pytest
from scipy.special import ndtr, ndtri

from pairveil.errors import InputError
from pairveil.privacy.certificate import Certificate, all_epsilons
from pairveil.privacy.events import GaussianEvent, LaplaceEvent
from pairveil.privacy.mechanisms import slack_of_plan
from pairveil.privacy.noise import PartiesNoise, SeededNoise, TrustedNoise
from pairveil.privacy.profile import epsilon_of
from pairveil.privacy.units import (
    ASSUMED_TOPOLOGY,
    DECLARED_KAPPA,
    NOISE_SOURCES,
    SELECTED_CAVEAT,
    TRUSTED_NOISE,
    UNITS,
)
from pairveil.records.kinds import Cost

EVENTS = [GaussianEvent(40.0, 0.2, 100), LaplaceEvent(50.0)]
RELEASES = [
    {
        "name": "gradients",
        "norm": "l2",
        "noise_multiplier": 40.0,
        "steps": 100,
        "mechanism": "gaussian",
        "sampling": "poisson",
        "sample_rate": 0.2,
        "entries": 300,
    },
    {
        "name": "threshold",
        "norm": "l1",
        "noise_multiplier": 50.0,
        "steps": 1,
        "mechanism": "laplace",
        "sampling": "poisson",
        "sample_rate": 1.0,
        "entries": 128,
    },
]


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
            "caveat": SELECTED_CAVEAT,
            "full_graph_relationship_kappa": 13,
        },
        "noise_source": TrustedNoise().name,
        "for_release": True,
        "delta_slack": 1e-9,
        "plan": {"releases": copy.deepcopy(RELEASES), "n_features": 30},
    }
    if "events" in changes:  # whose plan is not the subject
        arguments["plan"] = {}
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


LIES = {  # what is done to the certificate, and what verify() says of it
    "smaller epsilon": (
        lambda d: (
            d.update(epsilon=0.1),
            d["epsilons"]["relationship"].update({"zero-out": 0.1}),
        ),
        "but the events give",
    ),
    "smaller epsilon elsewhere": (
        lambda d: d["epsilons"]["person"].update(replace=0.2),
        "but the events give",
    ),
    "far larger epsilon": (lambda d: d["epsilons"]["person"].update(replace=900.0), "far above"),
    "headline differs": (lambda d: d.update(epsilon=d["epsilon"] * 0.99), "of its unit"),
    "kappa understated": (
        lambda d: (
            d.update(kappa=1),
            d["kappas"].update(relationship=1),
            d["costs"]["pairs"]["relationship"].update(records=1),
        ),
        "far above",
    ),
    "kappa and costs apart": (
        lambda d: d["costs"]["pairs"]["relationship"].update(records=1),
        "is not the number of records",
    ),
    "a record that moves less than is proved": (
        lambda d: d["costs"]["pairs"]["person"].update(replace=1.0),
        "move further for unit 'person'",
    ),
    "kappa differs from its table": (lambda d: d.update(kappa=1), "not the kappa of unit"),
    "less noise": (lambda d: d["events"][0].update(noise_multiplier=20.0), "but the events give"),
    "no events": (lambda d: d["events"].clear(), "no events"),
    "no events, no plan, no epsilon": (
        lambda d: (
            d["events"].clear(),
            d["plan"].clear(),
            d.update(epsilon=0.0, delta_slack=0.0),
            [by.update({"zero-out": 0.0, "replace": 0.0}) for by in d["epsilons"].values()],
        ),
        "no events",
    ),
    "smaller delta": (lambda d: d.update(delta=1e-9), "but the events give"),
    "slack eats delta": (lambda d: d.update(delta_slack=1e-5), "but the events give"),
    "an event of the plan left out": (
        lambda d: d["plan"]["releases"].pop(),
        "not those of the plan",
    ),
    "the plan's releases emptied": (lambda d: d["plan"].update(releases=[]), "list its releases"),
    "no plan": (lambda d: d["plan"].clear(), "list its releases"),
    "no plan of a saved metric": (
        lambda d: (d["plan"].clear(), d.update(for_release=False, metric_sha256="0" * 64)),
        "list its releases",
    ),
    "no selection": (lambda d: d["selection"].clear(), "selected is not stated"),
    "an unknown selection": (lambda d: d["selection"].update(how="best"), "selected is not stated"),
    "no kappa of the full graph": (
        lambda d: d["selection"].update(full_graph_relationship_kappa=None),
        "selected is not stated",
    ),
    "no caveat": (lambda d: d["selection"].update(caveat=None), "caveat that this demands"),
    "a softened caveat": (
        lambda d: d["selection"].update(caveat="fine"),
        "caveat that this demands",
    ),
    "all of them, but fewer": (lambda d: d["selection"].update(how="all"), "some were dropped"),
    "all of them, but another kappa": (
        lambda d: (d["selection"].update(how="all"), d.update(n_pairs_used=900)),
        "some were dropped",
    ),
    "nothing is public": (lambda d: d["public"].clear(), "what is public"),
    "less is public": (lambda d: d["public"].pop(0), "what is public"),
    "another mechanism": (lambda d: d.update(mechanism="laplace"), "does not go with the events"),
    "no part of delta for discrete noise": (lambda d: d.update(delta_slack=0.0), "set aside"),
    "too small a part of delta": (lambda d: d.update(delta_slack=1e-18), "set aside"),
    "entries that are none": (
        lambda d: d["plan"]["releases"][0].update(entries="many"),
        "does not describe its releases",
    ),
    "seeded but for release": (
        lambda d: d.update(noise_source=SeededNoise.name),
        "not from operating-system entropy",
    ),
    "a noise source of one's own": (
        lambda d: d.update(noise_source="operating-system entropy, honestly"),
        "none that pairveil has",
    ),
    "more pairs used than given": (lambda d: d.update(n_pairs_used=901), "more pairs used"),
    "fewer pairs than kappa": (lambda d: d.update(n_pairs_used=4), "number of used pairs"),
    "a person in fewer pairs than a relationship": (
        lambda d: (d["kappas"].update(person=1), d["costs"]["pairs"]["person"].update(records=1)),
        "no graph has a person-level kappa",
    ),
    "a person in fewer pairs than a relationship, under a declared person": (
        lambda d: (
            d["public"].append(DECLARED_KAPPA),
            d.update(unit="person"),
            d["costs"]["pairs"]["person"].update(records=1),
        ),
        "no graph has a person-level kappa",
    ),
    "no costs": (lambda d: d.pop("costs"), "does not state what a unit costs"),
    "no entries": (lambda d: d["plan"]["releases"][1].pop("entries"), "how many numbers"),
    "costs of records that were not asked about": (
        lambda d: d["costs"].update(people=d["costs"]["pairs"]),
        "exactly the records",
    ),
    "version 1 with records": (
        lambda d: (
            d.update(version=1),
            d.pop("costs"),
            d["plan"]["releases"][0].update(records="groups"),
        ),
        "what version 1 did not know",
    ),
    "version 1 with thresholds": (
        lambda d: (d.update(version=1), d.pop("costs"), d["plan"].update(thresholds=[])),
        "what version 1 did not know",
    ),
    "version 1 with a score": (
        lambda d: (d.update(version=1), d.pop("costs"), d["plan"].update(score={"n_pairs": 1})),
        "what version 1 did not know",
    ),
    "for release, and people were guessed": (
        lambda d: d["public"].append(ASSUMED_TOPOLOGY),
        "recognised by equal rows",
    ),
    "no pair used": (lambda d: d.update(n_pairs_used=0), "or none"),
    "nothing dropped, but another kappa": (
        lambda d: d.update(n_pairs_used=900),
        "some were dropped",
    ),
    "a caveat of one's own": (
        lambda d: (
            d.update(n_pairs_used=900),
            d["selection"].update(
                caveat="In fact epsilon is 0.01", full_graph_relationship_kappa=2
            ),
        ),
        "none that pairveil writes",
    ),
    "a full graph below its part": (
        lambda d: d["selection"].update(full_graph_relationship_kappa=1),
        "a part of its pairs",
    ),
    "a threshold on other pairs": (
        lambda d: d["plan"].update(
            thresholds=[{"n_pairs": 90, "kappas": {"pair": 1, "relationship": 1, "person": 1}}]
        ),
        "what the thresholds need",  # a chain across both: as many as a person has
    ),
    "thresholds that are none": (lambda d: d["plan"].update(thresholds="many"), "its thresholds"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_found(lie):
    data = make().to_dict()
    change, said = LIES[lie]
    change(data)
    result = Certificate.from_dict(json.loads(json.dumps(data))).verify()
    assert not result
    assert any(said in problem for problem in result.problems), result.problems


def test_a_plan_of_a_wrong_kind_is_refused():
    for wrong in ("none", [5], [{"records": ["pairs"]}], [{"mechanism": {}}]):
        data = make().to_dict()
        data["plan"]["releases"] = wrong
        with pytest.raises(InputError, match=r"plan is not valid: '\w+' must be"):
            Certificate.from_dict(data)


def of_records(kind, costs):
    """A certificate of a plan that asks about one kind of records only."""
    releases = [{**release, "records": kind} for release in RELEASES]
    return make(
        costs={kind: costs},
        kappas={unit: cost.records for unit, cost in costs.items()},
        plan={"releases": releases, "n_features": 30},
    )


def test_groups_cannot_pass_for_pairs_by_another_version():
    one = Cost(1, 2.0, 2.0, empties=False)
    honest = of_records("groups", dict.fromkeys(UNITS, one))
    assert honest.verify().problems == ()
    for version in (1, 2):
        data = {**honest.to_dict(), "version": version}
        del data["costs"]
        cheaper = all_epsilons(EVENTS, honest.kappas, honest.delta, honest.delta_slack)
        data |= {"epsilons": cheaper, "epsilon": cheaper["relationship"]["zero-out"]}
        forged = Certificate.from_dict(data)
        assert forged.epsilon < 0.7 * honest.epsilon
        assert not forged.verify()


def test_a_pair_of_people_is_two_people():
    costs = {"pair": Cost(2), "relationship": Cost(2), "person": Cost(1)}
    assert of_records("people", costs).verify().problems == ()
    found = of_records("people", {**costs, "relationship": Cost(1)}).verify()
    assert "unit 'relationship' holds more people than is stated" in found.problems


def test_costs_of_nothing_are_none():
    with pytest.raises(InputError, match="of no records"):
        Certificate.from_dict({**make().to_dict(), "costs": {}})


def test_a_declared_kappa_may_be_larger_than_the_number_of_pairs():
    kappas = {"pair": 1, "relationship": 2, "person": 5}
    few = {"n_pairs_given": 4, "n_pairs_used": 4, "kappas": kappas}
    clean = {"how": "paths", "caveat": None, "full_graph_relationship_kappa": 2}
    assert not make(**few, selection=clean).verify()
    assert not make(**few, selection=clean, public=[DECLARED_KAPPA]).verify()  # another unit's
    assert make(**few, selection=clean, public=[DECLARED_KAPPA], unit="person").verify()


def test_the_slack_is_that_of_the_entries_and_not_of_names():
    data = make().to_dict()
    data["plan"]["releases"][0]["name"] = "anything"
    assert Certificate.from_dict(data).verify()
    data["plan"]["releases"][0]["entries"] = 10**12
    assert "set aside" in Certificate.from_dict(data).verify().problems[0]
    plan = {"releases": RELEASES}
    doubled = {"releases": [{**RELEASES[0], "entries": 600}]}
    assert slack_of_plan(doubled, 5) == pytest.approx(2 * slack_of_plan(plan, 5), rel=1e-6)
    assert slack_of_plan({"releases": RELEASES[1:]}, 5) == 0.0  # discrete Laplace noise is pure
    assert slack_of_plan({"releases": [{**RELEASES[0], "noise_multiplier": 0.0}]}, 5) == 1.0
    assert slack_of_plan({"releases": [{**RELEASES[0], "noise_multiplier": 1e-12}]}, 5) == 1.0


def test_every_source_of_noise_is_known():
    assert {
        SeededNoise.name: False,
        TrustedNoise.name: True,
        PartiesNoise.name: True,
        TRUSTED_NOISE.format(sampler="opendp"): True,  # in certificates of version 0.1
    } == NOISE_SOURCES


def test_nothing_released_is_no_certificate():
    with pytest.raises(InputError, match="at least one event"):
        make(events=[])


def test_what_the_promise_means():
    """One full-batch Gaussian release: Phi(mu / 2), with the slack on top."""
    gaussian = make(events=[GaussianEvent(40.0, steps=100)])
    for unit, kappa in gaussian.kappas.items():
        mu = 2 * kappa * 10 / 40.0
        assert gaussian.mu(unit) == pytest.approx(mu)
        assert gaussian.best_guess(unit) == pytest.approx(ndtr(mu / 2) + 0.5e-9, abs=1e-11)
        assert gaussian.tradeoff(unit).at(0.1) <= ndtr(-ndtri(0.1) - mu)
    assert gaussian.best_guess() == gaussian.best_guess("relationship")
    assert gaussian.best_guess(prior=0.1) == gaussian.best_guess(prior=0.9) > 0.9
    assert make().mu() is None
    assert 0.5 < make().best_guess("pair") < make().best_guess("person") < 1.0
    nothing = make(events=[GaussianEvent(0.0)], for_release=False)
    assert nothing.best_guess() == 1.0
    with pytest.raises(InputError, match="unit"):
        make().best_guess("family")


MALFORMED = {
    "unknown version": lambda d: d.update(version=3),
    "costs in version 1": lambda d: d.update(version=1),
    "costs of unknown records": lambda d: d.update(costs={"crowds": d["costs"]["pairs"]}),
    "a cost without a unit": lambda d: d["costs"]["pairs"].pop("person"),
    "a cost that is none": lambda d: d["costs"]["pairs"].update(person=2),
    "a cost above twice the clip": lambda d: d["costs"]["pairs"]["person"].update(replace=3.0),
    "another format": lambda d: d.update(format="diploma"),
    "unknown field": lambda d: d.update(seal="gold"),
    "plan is text": lambda d: d.update(plan="secret"),
    "selection is a list": lambda d: d.update(selection=[]),
    "public holds numbers": lambda d: d.update(public=[1, 2]),
    "noise source is a number": lambda d: d.update(noise_source=7),
    "epsilons of a unit are a number": lambda d: d["epsilons"].update(pair=1.0),
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
        f"at most {math.ceil(1000 * certificate.best_guess()) / 10:g} times in 100",
        "Who is paired with whom is public",
        "selected from pairs that already had labels",
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


def test_an_optional_field_is_written_where_it_is_set():
    assert "graph_digest" not in make().to_dict()
    named = dataclasses.replace(make(), graph_digest="ab" * 32)
    assert Certificate.from_json(named.to_json()) == named


def test_a_name_that_occurs_twice_is_refused():
    """One reader takes the first epsilon, another the last: such a file says two things."""
    text = make().to_json()
    twice = text.replace('"epsilon":', '"epsilon": 0.01, "epsilon":', 1)
    with pytest.raises(InputError, match="occurs twice"):
        Certificate.from_json(twice)
    deep = text.replace('"pair":', '"pair": 1, "pair":', 1)
    with pytest.raises(InputError, match="occurs twice"):
        Certificate.from_json(deep)
    assert Certificate.from_json(text)
