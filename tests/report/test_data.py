"""The plain data behind the page: counted right, written and read back, refused when private."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from pairveil.errors import InputError
from pairveil.graph.kappa import graph_summary, kappa
from pairveil.privacy.events import GaussianEvent
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.report.data import ProjectedPoints, Summary
from pairveil.report.facts import budget_of, metric_shape

FIG3 = np.array([(0, 1), (0, 2), (2, 3), (3, 1), (2, 4), (4, 1), (0, 5), (5, 6), (6, 0)])


def test_graph_summary_counts_the_papers_figure() -> None:
    found = graph_summary(kappa(FIG3), FIG3)
    assert (found.n_people, found.n_pairs) == (7, 9)
    assert found.degrees == ((2, 4), (3, 2), (4, 1))  # e, u, a, b; t, c; s
    assert sum(people for _, people in found.b) == 7
    assert [one.rank for one in found.top] == list(range(1, 8))
    assert found.top[0].b == found.kappa["paper_bound"] == 3
    assert found.top[1].b == found.kappa["relationship"] == 3


@pytest.mark.parametrize(
    "numbers", [np.arange(7), 10**12 + 977 * np.arange(7), [5, 0, 9, 2, 30, 8, 4]]
)
def test_graph_summary_does_not_depend_on_how_people_are_numbered(numbers) -> None:
    pairs = np.asarray(numbers)[FIG3]
    assert graph_summary(kappa(pairs), pairs) == graph_summary(kappa(FIG3), FIG3)


def test_summary_names_nobody() -> None:
    pairs = 10**12 + 977 * FIG3
    text = Summary(used=graph_summary(kappa(pairs), pairs)).to_json()
    assert "1000000" not in text


def test_shares_are_of_the_scaled_columns() -> None:
    scale = np.array([100.0, 0.01, 0.0])
    learned = np.array([[1.0, 2.0, 0.0]])
    assert metric_shape(learned * scale, ("a", "b", "c"), scale).weights == (
        ("b", 0.8),
        ("a", 0.2),
        ("c", 0.0),
    )
    assert (
        metric_shape(learned * scale, ("a", "b", "c")).weights[0][0] == "a"
    )  # the units would win


def test_budget_of_adds_up_like_the_ledger() -> None:
    ledger = PrivacyLedger(epsilon=3.0, delta=1e-5)
    for note in ("one", "two"):
        ledger.spend([GaussianEvent(60.0, steps=100)], {"relationship": 1, "person": 2}, note=note)
    budget = budget_of(ledger)
    assert [entry.note for entry in budget.entries] == ["one", "two"]
    assert budget.entries[-1].epsilon_so_far == pytest.approx(ledger.spent())
    assert budget.entries[0].epsilon_so_far < budget.entries[1].epsilon_so_far


def test_summary_survives_json(full_data) -> None:
    summary = full_data.summary
    assert Summary.from_json(summary.to_json()) == summary
    one = replace(summary.budget.entries[0], epsilon_so_far=math.inf)
    endless = replace(summary, budget=replace(summary.budget, entries=(one,)))
    assert Summary.from_json(endless.to_json()) == endless


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-20], "not JSON|damaged"),
        (lambda text: "[]", "no pairveil summary"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "newer"),
        (lambda text: text.replace('"version": 1', '"version": "x"'), "newer"),
        (lambda text: text.replace('"n_people"', '"people"', 1), "lacks a field"),
        (lambda text: text.replace('"source": "synthetic"', '"source": "patients"'), "never drawn"),
        (lambda text: json.dumps({**json.loads(text), "points": 7}), "wrong type"),
    ],
)  # fmt: skip
def test_a_bad_summary_is_refused(full_data, change, message) -> None:
    with pytest.raises(InputError, match=message):
        Summary.from_json(change(full_data.summary.to_json()))


def test_private_evaluations_and_points_have_no_place() -> None:
    with pytest.raises(InputError, match="never drawn"):
        ProjectedPoints("private", "", ((0, 0),), ((0, 0),), ("a",))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one entry"):
        ProjectedPoints("public", "", ((0, 0),), (), ("a",))
    with pytest.raises(InputError, match="four groups"):
        ProjectedPoints("public", "", ((0, 0),) * 5, ((0, 0),) * 5, tuple("abcde"))
