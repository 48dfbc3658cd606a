"""What a fit says it may bring follows from public numbers alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pairveil import DPPMetricLearner
from pairveil.cli.terminal import Terminal
from pairveil.jobs.fit import expected_effect, tell_better_selection, tell_plan
from pairveil.learners.outlook import (
    RANGES,
    expected_gain,
    gain_by_epsilon,
    knots_for,
    signal_of,
    was_measured,
)


def planned(n_people: int, **parameters: object):
    X = np.full((n_people, 4), 0.1)
    pairs = np.array([(i, i + 1) for i in range(n_people - 1)])
    y = np.where(np.arange(n_people - 1) % 2, 1, -1)
    learner = DPPMetricLearner(preprocessor=X, random_state=0, **parameters)
    return learner.certify(pairs, y)


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_signal_is_pairs_over_noise_and_features() -> None:
    # At epsilon 1 and delta 1e-5 a Gaussian mechanism has mu = 0.268 (its noise is 3.73 clips).
    assert signal_of(planned(1001)) == pytest.approx(1000 * 0.268 / math.sqrt(4), rel=1e-2)
    assert signal_of(planned(1001, adjacency="replace")) == pytest.approx(67.0, rel=1e-2)
    assert signal_of(planned(1001, unit="person")) == pytest.approx(67.0, rel=1e-2)


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_more_pairs_promise_more() -> None:
    ranges = [expected_gain(planned(people)) for people in (60, 260, 700, 2000, 6000)]
    assert ranges == sorted(ranges, key=lambda r: (r.low, r.high))
    assert len({r[1:] for r in ranges}) == len(ranges)


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("people", [30, 400, 6000])
def test_words_and_numbers_are_one_range(people: int, mechanism: str) -> None:
    plan = planned(people, mechanism=mechanism)
    gain, said = expected_gain(plan), expected_effect(plan)
    if gain.high == 0:
        assert "kept nothing" in said
    else:
        assert f"kept {100 * gain.low:.0f} to {100 * gain.high:.0f} %" in said
    assert ("would help" in said) == (gain.low < 0.5)


def test_pure_noise_needs_more_signal() -> None:
    assert RANGES["PURE"][0][0] > RANGES["WITH_DELTA"][0][0]


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_what_was_not_run_is_not_predicted() -> None:
    assert was_measured(planned(60))
    without_euclid = planned(6000, n_components=2)
    assert not was_measured(without_euclid)
    assert expected_gain(without_euclid)[1:] == (0.0, 1.0)


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
@pytest.mark.parametrize(
    ("select", "unit", "advised"),
    [("all", "person", True), ("all", "relationship", True), ("paths", "person", False),
     ("matching", "person", False), ("forest", "relationship", False), ("forest", "person", True)],
)  # fmt: skip
def test_a_better_selection_is_named(
    select: str, unit: str, advised: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    pairs = np.unique(np.sort(rng.integers(0, 200, (500, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    learner = DPPMetricLearner(preprocessor=np.full((200, 3), 0.1), select=select, unit=unit)
    records = learner.prepare(pairs, np.ones(len(pairs))).records
    tell_better_selection(Terminal(), records, unit)
    assert ("--select paths" in capsys.readouterr().out) == advised


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
@pytest.mark.parametrize("unit", ["pair", "relationship", "person"])
def test_the_plan_tells_kappa_of_what_it_protects(
    unit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    star = np.array([(0, i) for i in range(1, 40)])
    learner = DPPMetricLearner(preprocessor=np.full((40, 3), 0.1), unit=unit)
    prepared = learner.prepare(star, np.ones(len(star)))
    assert prepared.certificate is not None
    tell_plan(Terminal(), prepared.certificate, prepared.recipe.headline)
    said = " ".join(capsys.readouterr().out.split())
    assert f"{unit}-level kappa of" in said
    assert (
        f"of those used {'is ' if unit != 'relationship' else ''}{prepared.certificate.kappa}"
        in said
    )


def test_people_with_classes_have_ranges_of_their_own() -> None:
    X, y = np.full((3000, 4), 0.1), np.arange(3000) % 2
    learner = DPPMetricLearner(unit="person", random_state=0)
    plan = learner.certify_classes(X, y, [0, 1])
    assert plan.records == "people"
    assert was_measured(plan)
    assert knots_for(plan) == RANGES["CLASSES_WITH_DELTA"]
    assert "3,000 people against" in expected_effect(plan)
    assert gain_by_epsilon(plan, (1.0,)) == ()
    few = learner.set_params(n_components=2).certify_classes(X, y, [0, 1])
    assert not was_measured(few)
