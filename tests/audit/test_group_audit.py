"""A person in a group costs two clip bounds: a fit reaches them, and one that charges one is convicted."""

import pytest

from pairveil import DPPMetricLearner
from pairveil.audit import audit_exactly
from pairveil.audit.canaries.groups import group_canary
from pairveil.learners import grouped
from pairveil.privacy.costs import Cost
from pairveil.privacy.units import UNITS


def audit_group(adjacency, unit="person", **options):
    """Of one person's whole content, in a fit of a few steps."""
    learner = DPPMetricLearner(4.0, unit=unit, adjacency=adjacency, n_steps=8, **options)
    return audit_exactly(learner, canary=group_canary(adjacency))


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_person_moves_no_query_further_than_is_charged(adjacency, mechanism):
    found = audit_group(adjacency, mechanism=mechanism)
    assert found.verdict == "consistent"
    assert found.kappa == 1
    assert all(query.charged == 2.0 and query.ratio <= 1 for query in found.queries)


@pytest.mark.parametrize("unit", UNITS)
def test_nulling_a_person_reaches_the_whole_charge(unit):
    found = audit_group("zero-out", unit)
    moves = {query.name: query.ratio for query in found.queries}
    assert moves["gradients"] > 0.999


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_charging_one_clip_for_a_person_is_convicted(adjacency, monkeypatch):
    cheap = Cost(1) if adjacency == "zero-out" else Cost(1, 1.0, 1.0)
    monkeypatch.setattr(grouped, "COSTS_OF_GROUPS", dict.fromkeys(UNITS, cheap))
    found = audit_group(adjacency)
    assert found.verdict == "violated"


def test_the_others_of_the_group_are_the_same():
    canary = group_canary()
    assert canary.changed.tolist() == [0]
    assert (canary.first.features == canary.second.features).all()
