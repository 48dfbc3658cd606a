"""A mechanism is one file and one line: whoever needs to know its kind asks the object."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import pairveil
from pairveil import Certificate, DPPMetricLearner
from pairveil.learners import inputs as parameters
from pairveil.privacy.events import ChoiceEvent, GaussianEvent, LaplaceEvent, event_from_dict
from pairveil.privacy.mechanisms import MECHANISMS, NOISES, Drawn, Laplace, Mechanism, slack_of_plan

SOURCE = Path(pairveil.__file__).parent
OTHER_MEANINGS = {
    "privacy/events.py": "the kind of an event, as certificates write it",
    "privacy/samplers.py": "families of tables of exact noise",
    "audit/auditor.py": "a family of trade-off curves",
    "audit/__init__.py": "names of targets",
    "audit/one_fit.py": "a family of trade-off curves",
    "audit/targets.py": "names of targets, a family of trade-off curves",
    "privacy/certificate.py": "the example certificate",
    "deep/trainer.py": "the only noise it takes",
}


def test_no_file_compares_the_names_of_mechanisms() -> None:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE).as_posix()
        if where == "privacy/mechanisms.py" or where in OTHER_MEANINGS:
            continue
        texts = [
            n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)
        ]
        found[where] = sorted({text for text in texts if text in MECHANISMS})
    assert {where: names for where, names in found.items() if names} == {}


@dataclass(frozen=True)
class Calm(Laplace):
    """Laplace noise of twice the scale that it needs."""

    name: str = "calm"

    def multiplier(self, budget, share, times=1):  # type: ignore[no-untyped-def]
        return 2 * super().multiplier(budget, share, times)


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_a_new_one_is_certified_and_verified_by_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS, "calm", Calm())
    monkeypatch.setitem(parameters._CHOICES, "mechanism", (*NOISES, "calm"))
    rng = np.random.default_rng(0)
    X, pairs = rng.random((30, 3)) / 2, np.array([(i, i + 1) for i in range(29)])
    y = np.where(np.arange(29) % 2, 1, -1)
    learner = DPPMetricLearner(epsilon=2.0, preprocessor=X, mechanism="calm").fit(pairs, y)
    made = Certificate.from_json(learner.certificate_.to_json())
    assert made.mechanism == "calm"
    assert made.delta == made.delta_slack == 0.0
    assert made.epsilon == pytest.approx(1.0, rel=1e-6)  # twice the noise
    assert made.verify().problems == ()


def test_noise_without_a_proof_takes_all_of_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    release = {"name": "sums", "noise_multiplier": 40.0, "steps": 2, "entries": 3}
    plan = {"releases": [{**release, "mechanism": name} for name in ("gaussian", "unproved")]}
    assert slack_of_plan(plan, 2) == 1.0  # unknown
    unproved = type("Unproved", (Laplace,), {"slack": Mechanism.slack})()
    monkeypatch.setitem(MECHANISMS, "unproved", unproved)
    assert slack_of_plan(plan, 2) == 1.0
    known = slack_of_plan({"releases": plan["releases"][:1]}, 2)
    assert 0.0 < known == MECHANISMS["gaussian"].slack([Drawn(40.0, 6)], 2) < 1e-12
    twice = {"releases": [plan["releases"][0], {**release, "mechanism": "laplace"}]}
    assert slack_of_plan(twice, 2) == known


def test_events_know_their_noise() -> None:
    for event, noise in [
        (GaussianEvent(3.0, steps=2), 3.0),
        (LaplaceEvent(4.0), 4.0),
        (ChoiceEvent(0.5), 2.0),
        (ChoiceEvent(float("inf")), 0.0),
    ]:
        assert event.noise == noise
        again = event.with_noise(8.0)
        assert again.noise == 8.0
        assert type(again) is type(event)
        assert again.steps == event.steps
    assert ChoiceEvent(0.5).with_noise(0.0).eta == float("inf")
    assert [event_from_dict(e).is_pure for e in (
        {"kind": "gaussian", "noise_multiplier": 1.0, "sample_rate": 1.0, "steps": 1},
        {"kind": "laplace", "scale_multiplier": 1.0, "steps": 1},
    )] == [False, True]  # fmt: skip


def test_the_first_noise_is_the_default_of_every_learner() -> None:
    assert DPPMetricLearner().mechanism == NOISES[0]
    assert all(MECHANISMS[name].on_sums for name in NOISES)
