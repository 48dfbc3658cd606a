"""The verdict: what headlines a release, for everything that was released, and when there is none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from pairveil import (
    DPPMetricLearner,
    InputError,
    PrivacyLedger,
    design_pairs,
    error_curve,
)
from pairveil.evaluation.search import PrivateSearch
from pairveil.learners.ranking import PrivatePreferenceRanker
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.events import GaussianEvent, LaplaceEvent
from pairveil.privacy.noise import TrustedNoise
from pairveil.privacy.units import PEOPLE_TOGETHER, SELECTED_CAVEAT
from pairveil.privacy.verdict import Releases, delta_too_large, releases_of, verdict

MU = 0.54  # of one replaced pair: the default plan at epsilon 1


def certificate(**changes) -> Certificate:
    """About 6,000 pairs of which 2,605 were dropped; kappa of all of them is 10."""
    told = {
        "delta": 1e-5, "unit": "relationship", "adjacency": "zero-out", "mechanism": "gaussian",
        "kappas": {"pair": 1, "relationship": 1, "person": 2}, "n_pairs_given": 5_990, "n_pairs_used": 3_385,
        "selection": {"how": "paths", "caveat": SELECTED_CAVEAT, "full_graph_relationship_kappa": 10},
        "noise_source": TrustedNoise().name, "for_release": True, **changes,
    }  # fmt: skip
    return Certificate.issue([GaussianEvent(2 / MU)], **told)


def test_the_numbers_of_a_selected_fit() -> None:
    found = verdict(certificate(), problems=())
    assert found.usable
    assert found.in_100 == {"relationship": 61, "person": 71}
    assert found.in_100["person"] == math.ceil(100 * norm.cdf(MU))
    # Rounded down, and never called a bound: other ties can join more (docs/threat-model.md).
    assert (found.left_out, found.open_in_100) == (2_605, math.floor(100 * norm.cdf(5 * MU)))
    assert found.open_in_100 == 99
    assert "at least 99 guesses in 100 may be right" in found.left_out_means
    assert "there is no promise" in found.left_out_means
    # Whoever knows everything else knows what was left out.
    assert "every other answer that was used" in found.about["relationship"]
    assert "at most" not in found.left_out_means
    assert "knows less can sometimes learn more" in found.limits[0]
    assert "61 guesses in 100 about one relationship are right, at most 71" in found.headline


def test_a_design_made_before_labelling_leaves_nothing_open() -> None:
    selection = {"how": "all", "caveat": None, "full_graph_relationship_kappa": 1}
    found = verdict(certificate(n_pairs_given=3_385, selection=selection), problems=())
    assert (found.left_out, found.open_in_100, found.left_out_means) == (0, None, "")
    assert "Left out" not in " ".join(found.sentences)
    assert "knows less can sometimes learn more" in " ".join(found.sentences)


def test_all_releases_of_a_ledger_together() -> None:
    ledger = PrivacyLedger(9.0, 1e-5)
    for _ in range(3):
        ledger.spend(
            [GaussianEvent(2 / MU)], {"pair": 1, "relationship": 1, "person": 2}, graph="May"
        )
    releases = releases_of(ledger)
    assert releases.best_guess["person"] == pytest.approx(norm.cdf(math.sqrt(3) * MU))
    one_more = {
        "events": [GaussianEvent(2 / MU)],
        "kappas": ledger.entries[0].kappas,
        "graph": "May",
    }
    planned = releases_of(ledger, one_more)
    assert (planned.count, len(ledger.entries)) == (4, 3)
    assert planned.best_guess["person"] == pytest.approx(norm.cdf(2 * MU))
    found = verdict(certificate(), problems=(), releases=releases)
    assert found.in_100 == {"relationship": 68, "person": 83}
    assert found.headline.startswith("All 3 releases together: at most 68")
    assert "sender's word" in found.limits[-1]
    # Other pairs of the same people: chains run through both, and a relationship is a person's.
    ledger.spend([GaussianEvent(2 / MU)], {"pair": 1, "relationship": 1, "person": 2}, graph="June")
    mixed = releases_of(ledger).best_guess
    assert mixed["relationship"] == mixed["person"] == pytest.approx(norm.cdf(2 * MU))


def test_the_slack_of_exact_noise_is_in_the_total() -> None:
    ledger = PrivacyLedger(9.0, 1e-5, unit="person")
    for _ in range(2):
        ledger.spend([GaussianEvent(8.0)], {"person": 1}, delta_slack=1e-6)
    assert ledger.best_guess() == pytest.approx(norm.cdf(math.sqrt(2) / 8) + 1e-6, abs=1e-9)


def test_a_total_never_says_less_than_the_release_alone() -> None:
    stated = Releases(2, {"relationship": 0.51, "person": 0.52})
    assert verdict(certificate(), releases=stated).in_100 == {"relationship": 61, "person": 71}
    more = Releases(2, {"relationship": 0.6201, "person": 0.7201})  # rounded up
    found = verdict(certificate(), releases=more)
    assert found.in_100 == {"relationship": 63, "person": 73}
    # What was left out of the others is not known here.
    assert "guesses in 100 may be right after this release alone" in found.left_out_means


@pytest.mark.parametrize("stated", [{}, {"relationship": 0.6, "person": None}])
def test_what_has_no_total_has_no_promise_in_common(stated) -> None:
    found = verdict(certificate(), problems=(), releases=Releases(2, stated))
    assert found.in_100["person"] is None
    assert "no promise in common" in found.about["person"]
    assert "at most 71" not in " ".join((found.headline, *found.sentences))


def test_an_entry_that_says_nothing_of_a_unit_leaves_no_total() -> None:
    ledger = PrivacyLedger(9.0, 1e-5, unit="pair")
    ledger.spend([GaussianEvent(4.0)], {"pair": 1, "relationship": 1, "person": 2})
    ledger.spend([GaussianEvent(4.0)], {"pair": 1})
    assert releases_of(ledger).best_guess["person"] is None
    assert releases_of(ledger).best_guess["pair"] == pytest.approx(norm.cdf(math.sqrt(2) / 4))


def test_mixed_noise_is_composed_exactly() -> None:
    ledger = PrivacyLedger(9.0, 1e-5, unit="person")
    ledger.spend([LaplaceEvent(4.0)], {"person": 1})
    assert ledger.best_guess() == pytest.approx(1 / (1 + math.exp(-0.5)), abs=1e-6)
    ledger.spend([GaussianEvent(4.0)], {"person": 1})
    assert norm.cdf(0.25) < ledger.best_guess() < norm.cdf(0.5)


UNUSABLE = {
    "no certificate": (None, {}, "promises nothing"),
    "seeded": ({"for_release": False, "noise_source": "seeded NumPy floating-point noise"}, {}, "a seed"),
    "does not hold": ({}, {"problems": ("epsilon is understated",)}, "epsilon is understated"),
    "signature": ({}, {"problems": (), "failures": ("it was tampered with",)}, "tampered with"),
    "delta": ({"delta": 0.1}, {"problems": ()}, "delta=0.1 is not below 1 / 3385 pairs"),
}  # fmt: skip


@pytest.mark.parametrize("why", UNUSABLE)
def test_what_must_not_be_used_headlines_no_number(why: str) -> None:
    changes, checks, reason = UNUSABLE[why]
    found = verdict(None if changes is None else certificate(**changes), **checks)
    assert not found.usable
    assert any(reason in one for one in found.reasons)
    assert found.headline == "Do not use."
    assert found.in_100 == {}
    assert found.sentences == ()
    assert found.line.startswith("Do not use, not for release: ")


def test_people_who_change_together_are_named() -> None:
    found = verdict(certificate(public=[PEOPLE_TOGETHER]))
    assert "all who share a household" in found.about["person"]


def test_choices_are_told_of_choices() -> None:
    rng = np.random.default_rng(0)
    items = rng.uniform(size=(12, 3)) / 2
    chosen = rng.permuted(np.tile(np.arange(12), (400, 1)), axis=1)[:, :2]
    choices = np.column_stack([np.repeat(np.arange(50), 8), chosen])
    found = verdict(PrivatePreferenceRanker(epsilon=2.0, unit="worker").certify(choices, items))
    assert set(found.in_100) == {"choice", "worker"}
    assert "pair" not in " ".join(found.sentences)


# ---- delta --------------------------------------------------------------------------------------

PAIRS = design_pairs(200, random_state=0)
X = np.random.default_rng(0).normal(size=(200, 3)) / 9
Y = np.resize([1, -1], len(PAIRS))


def _fit(**more):
    DPPMetricLearner(preprocessor=X, n_steps=2, **more).fit(PAIRS, Y)


def _curve(**more):
    error_curve(np.linspace(0, 1, len(PAIRS)), Y, PAIRS, 1.0, more["delta"], (0.0, 1.0),
                accountant=more["accountant"])  # fmt: skip


def _classes(**more):
    DPPMetricLearner(unit="person", **more).fit_classes(
        X, Y[np.arange(200) % len(Y)], classes=(1, -1)
    )


def _search(**more):
    learner = DPPMetricLearner(preprocessor=X, n_steps=2)
    PrivateSearch(learner, {"n_components": [1]}, epsilon=8.0, **more).fit(PAIRS, Y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("release", [_fit, _curve, _classes, _search])
def test_a_delta_that_could_show_a_record_is_refused_before_it_is_charged(release) -> None:
    ledger = PrivacyLedger(50.0, 0.5, unit="relationship")
    with pytest.raises(
        InputError, match=r"not below 1 / \d+ (pairs|people).*choose delta=0\.0001 or less"
    ):
        release(delta=0.01, accountant=ledger)
    assert ledger.entries == ()


def test_the_delta_that_is_named_is_taken_whatever_the_size() -> None:
    for n in (9, 10, 49, 100, 99_999, 100_000, 100_001, 10**7, 3 * 10**9):
        at = replace(certificate(), n_pairs_used=n, n_pairs_given=n, delta=1 / n)
        assert f"1 / {n} pairs" in delta_too_large(at)
        named = 10.0 ** -math.ceil(math.log10(10 * n))
        assert delta_too_large(replace(at, delta=named)) == ""
    assert delta_too_large(replace(certificate(), n_pairs_used=99_999)) == ""  # the default
    refused = delta_too_large(replace(certificate(), n_pairs_used=100_000, n_pairs_given=100_000))
    assert "choose delta=1e-06 or less" in refused
    assert delta_too_large(replace(certificate(), delta=0.0, n_pairs_used=10**9)) == ""  # pure
