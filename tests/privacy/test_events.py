"""Events are plain data; whatever cannot be accounted is refused."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from pairveil.errors import InputError
from pairveil.privacy.events import (
    DisjointGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    check_events,
    event_from_dict,
)
from pairveil.privacy.units import ADJACENCIES, UNITS, UNITS_OF_CHOICES, WORDS

EVENTS = [
    GaussianEvent(20.0, 0.05, 200),
    GaussianEvent(0.0),
    DisjointGaussianEvent(8.0, 4),
    LaplaceEvent(10.0, 5),
]


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_events_survive_json(event):
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_events_are_frozen(event):
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.steps = 1


def test_numpy_numbers_become_plain_and_equal():
    event = GaussianEvent(np.float32(2.0), np.float64(0.5), np.int64(3))
    assert event == GaussianEvent(2.0, 0.5, 3)
    assert [type(value) for value in dataclasses.astuple(event)] == [float, float, int]
    assert GaussianEvent(2) == GaussianEvent(2.0)
    assert type(GaussianEvent(2).noise_multiplier) is float


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: GaussianEvent(-1.0),
        lambda: GaussianEvent(math.nan),
        lambda: GaussianEvent(math.inf),
        lambda: GaussianEvent("2"),
        lambda: GaussianEvent(True),
        lambda: GaussianEvent(1.0, 0.0),
        lambda: GaussianEvent(1.0, 1.0001),
        lambda: GaussianEvent(1.0, math.nan),
        lambda: GaussianEvent(1.0, 0.5, 0),
        lambda: GaussianEvent(1.0, 0.5, 2.0),
        lambda: GaussianEvent(1.0, 0.5, True),
        lambda: GaussianEvent(1.0, 0.5, 10**8),
        lambda: DisjointGaussianEvent(1.0, 0),
        lambda: DisjointGaussianEvent(-1.0, 1),
        lambda: LaplaceEvent(-0.1),
        lambda: LaplaceEvent(1.0, -1),
    ],
)
def test_impossible_numbers_are_refused(wrong):
    with pytest.raises(InputError):
        wrong()


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "staircase", "scale_multiplier": 1.0, "steps": 1},
        {"kind": "gaussian", "noise_multiplier": 1.0, "sample_rate": 0.5},  # steps forgotten
        {"kind": "laplace", "scale_multiplier": 1.0, "steps": 1, "free": True},
        {"scale_multiplier": 1.0, "steps": 1},
        {"kind": ["laplace"], "scale_multiplier": 1.0, "steps": 1},
        [],
        None,
    ],
)
def test_unknown_events_fail_closed(data):
    with pytest.raises(InputError):
        event_from_dict(data)


def test_objects_that_are_not_events_fail_closed():
    class Sneaky(LaplaceEvent):
        """A subclass could describe another mechanism."""

    for wrong in ([object()], [LaplaceEvent], [Sneaky(1.0)], ["laplace"]):
        with pytest.raises(InputError):
            check_events(wrong)


def test_a_single_event_may_stand_for_a_list():
    assert check_events(LaplaceEvent(1.0)) == (LaplaceEvent(1.0),)


@pytest.mark.parametrize("kind", WORDS)
def test_every_unit_and_adjacency_has_its_sentence(kind):
    words = WORDS[kind]
    for sentences in (words.covers, words.guessed, words.meaning):
        assert set(sentences) == {*UNITS, *UNITS_OF_CHOICES}
    for sentences in (words.compared, words.against):
        assert set(sentences) == set(ADJACENCIES) == {"zero-out", "replace"}
    assert len(words.public) == len(words.public_plain)
    said = [one for name in vars(words) for one in _texts(getattr(words, name))]
    assert all(one == one.strip() and "\n" not in one and "  " not in one for one in said)
    assert set(UNITS) == {"pair", "relationship", "person"}


def _texts(said):
    if isinstance(said, str):
        return [said]
    return list(said.values() if isinstance(said, dict) else said)
