"""A person in a group costs two clip bounds: a fit reaches them, and one that charges one is convicted."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from pairveil import DPPMetricLearner
from pairveil.audit import audit_exactly
from pairveil.engine import gradients
from pairveil.privacy.units import UNITS
from pairveil.records.groups import NO_CLASS, GroupSet
from pairveil.records.kinds import GROUPS, KINDS, Cost

SMALL = 0.05  # length of the others


@dataclass(frozen=True)
class GroupNeighbours:
    """Two inputs of groups that differ in what one person says."""

    first: GroupSet
    second: GroupSet
    adjacency: str
    name = "person in a group"
    kappa = 1
    hides_features = True

    @property
    def changed(self):
        """Positions of the groups whose contents differ."""
        people = np.any(self.first.features != self.second.features, axis=1)
        moved = np.any((self.first.members >= 0) & people[self.first.members], axis=1)
        return np.flatnonzero(moved | (self.first.labels != self.second.labels).any(axis=1))


def group_canary(adjacency="zero-out", n_others=400, n_features=3):
    """A against null, or against somebody like C, among ``n_others`` other groups of three.

    B and C differ a little and are dissimilar: alone they push apart along one column. A is far from both
    and similar to B: with her the group pulls together along that column. Both contributions are clipped to
    the same length and point opposite ways, so A moves the sum of gradients by two clip bounds, whether she
    is nulled or replaced (docs/theory/records.md).
    """
    rng = np.random.default_rng(0)
    features = rng.choice([-1.0, 1.0], size=(3 * n_others + 3, n_features)) * SMALL
    features /= np.sqrt(n_features)
    classes = rng.integers(2, size=len(features))
    a, b, c = 0, 1, 2
    features[:3] = 0.0
    features[a, 0], features[c, 0] = -0.5, SMALL / 5
    classes[[a, b, c]] = 0, 0, 1
    other, elsewhere = features.copy(), classes.copy()
    if adjacency == "zero-out":
        elsewhere[a] = NO_CLASS
    else:
        other[a], elsewhere[a] = features[c], 1
    members = np.arange(len(features)).reshape(-1, 3)
    return GroupNeighbours(
        GroupSet.of_classes(other, members, elsewhere),
        GroupSet.of_classes(features, members, classes),
        adjacency,
    )


def audit_group(adjacency, unit="person", **options):
    """Of one person's whole content, in a fit of a few steps that clips what the canary contributes."""
    options = {"n_steps": 8, "max_grad_norm": 0.02, **options}
    learner = DPPMetricLearner(4.0, unit=unit, adjacency=adjacency, **options)
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
    monkeypatch.setitem(KINDS, "groups", replace(GROUPS, parts=dict.fromkeys(UNITS, cheap)))
    found = audit_group(adjacency)
    assert found.verdict == "violated"


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_groups_are_turned_into_other_directions(adjacency, monkeypatch):
    """In the canary's own column l1 and l2 agree: a group that is clipped in l2 shows when it is turned."""
    honest = gradients.shrinking
    monkeypatch.setattr(gradients, "shrinking", lambda U, X, clip, _: honest(U, X, clip, "l2"))
    found = audit_group(adjacency, mechanism="laplace")
    assert found.verdict == "violated"


def test_the_others_of_the_group_are_the_same():
    canary = group_canary()
    assert canary.changed.tolist() == [0]
    assert (canary.first.features == canary.second.features).all()
