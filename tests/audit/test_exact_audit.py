"""The audit without statistics: honest fits stay within their charge, every planted error is convicted."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from pairveil import DPPMetricLearner
from pairveil.audit import audit_exactly
from pairveil.audit.canaries import label_flip
from pairveil.audit.exact_audit import audit_scored
from pairveil.audit.targets import KAPPA, attack_plan, audit_target, released_plan
from pairveil.cli.app import app
from pairveil.engine.backends import local as records
from pairveil.engine.gradients import SetGradient
from pairveil.engine.plan import Plan
from pairveil.engine.statistics import Statistic
from pairveil.errors import InputError
from pairveil.learners.contrastive import recipe

STEPS = 12  # fewer than the default, to save time: the claim is the same


def audited(n_features=2, kappa=1, canary=None, **options):
    learner = DPPMetricLearner(**{"unit": "pair", "n_steps": STEPS, **options})
    return audit_exactly(learner, kappa=kappa, n_features=n_features, canary=canary)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize(("unit", "kappa"), list(KAPPA.items()))
def test_an_honest_fit_moves_up_to_its_charge_and_no_further(unit, kappa, adjacency):
    found = audited(5, kappa=kappa, unit=unit, adjacency=adjacency)
    moves = {query.name: query for query in found.queries}
    assert found.verdict == "consistent"
    assert {"survey", "signal", "gradients"} == moves.keys()
    assert all(
        query.charged == kappa * (2 if adjacency == "replace" else 1) for query in moves.values()
    )
    # Signed contributions reach the charge to the last digits; the rest is what rounding is charged for.
    assert all(0.999999 < moves[name].ratio <= 1 for name in ("signal", "gradients"))
    assert found.mu_realised <= found.mu_claimed
    assert found.realised_epsilon <= found.claimed_epsilon <= 1.0


def test_nearly_all_of_the_claimed_mu_is_realised():
    found = audited(5, n_steps="auto")  # the default plan: 0.2673 of 0.2681
    assert 0.99 * found.mu_claimed < found.mu_realised <= found.mu_claimed
    assert found.mu_claimed == pytest.approx(0.2681, abs=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "laplace"},
        {"sample_rate": 0.1},
        {"sample_rate": 0.1, "sampling": "disjoint"},
        {"margin": "private"},
        {"backend": "numpy"},
    ],
)
def test_other_plans_are_measured_too(options):
    found = audited(3, **options)
    assert found.verdict == "consistent"
    assert max(query.ratio for query in found.queries) > 0.9999
    assert 0 < found.realised_epsilon <= found.claimed_epsilon


# ---- planted errors: each would make a certificate false ------------------------------------------


def test_a_statistic_clipped_too_late_is_convicted(monkeypatch):
    honest = recipe.shrink
    monkeypatch.setattr(recipe, "shrink", lambda lengths, clip: honest(lengths, 1.1 * clip))
    found = audited()
    assert found.verdict == "violated"
    # Only those contributions that are longer than the clip bound can show it.
    assert max(query.ratio for query in found.queries) == pytest.approx(1.1, rel=1e-3)


def test_a_gradient_clipped_too_late_is_convicted(monkeypatch):
    honest = SetGradient.compiled_sum
    monkeypatch.setattr(
        SetGradient,
        "compiled_sum",
        lambda self, *rest: honest(replace(self, clip=1.1 * self.clip), *rest),
    )
    found = audited()
    assert found.verdict == "violated"
    assert {q.name for q in found.queries if q.ratio > 1} == {"gradients"}


@pytest.mark.parametrize("unit", ["relationship", "person"])
def test_a_kappa_counted_too_small_is_convicted(monkeypatch, unit):
    honest = records.kappa
    monkeypatch.setattr(
        records, "kappa", lambda pairs: replace(honest(pairs), relationship=2, person=2)
    )
    found = audited(kappa=3, unit=unit)
    assert found.verdict == "violated"
    assert found.mu_realised > found.mu_claimed


def test_noise_scaled_too_small_is_convicted(monkeypatch):
    for kind in (Statistic, SetGradient):
        honest = kind.sensitivity
        monkeypatch.setattr(kind, "sensitivity", lambda *given, h=honest: h(*given) / 2)
    found = audited()
    assert found.verdict == "violated"
    assert all(query.ratio > 1.9 for query in found.queries)


def test_a_query_that_the_certificate_leaves_out_is_convicted(monkeypatch):
    honest = Plan.events
    monkeypatch.setattr(Plan, "events", lambda self: honest(self)[1:])
    found = audited(5, n_steps=60)
    assert found.realised_epsilon > found.claimed_epsilon
    assert found.verdict == "violated"


# ---- the door ---------------------------------------------------------------------------------------


def test_a_canary_for_another_adjacency_is_refused():
    with pytest.raises(InputError, match="adjacency"):
        audited(canary=label_flip(n_features=2), adjacency="replace")


def test_a_given_canary_is_used():
    found = audited(3, canary=label_flip(n_features=3, n_pairs=40), n_steps=2)
    assert found.canary == "label-flip"
    assert found.verdict == "consistent"


def test_the_command_reports_every_query():
    result = CliRunner().invoke(app, ["audit", "--exact", "--json"])
    found = json.loads(result.stdout)
    assert found["verdict"] == "consistent"
    for move in found["queries"].values():
        assert move.keys() == {"steps", "largest_move", "charged", "ratio"}
        assert move["ratio"] == move["largest_move"] / move["charged"]
    assert 0 < found["mu_realised"] <= found["mu_claimed"]
    assert np.isclose(found["claimed_epsilon"], 1.0)
    said = CliRunner().invoke(app, ["audit", "--exact"]).stdout
    assert "No query moved further than was charged" in said


def test_the_command_refuses_an_exact_audit_of_other_targets():
    for words in (["--target", "gaussian"], ["--runs", "100"]):
        assert isinstance(
            CliRunner().invoke(app, ["audit", "--exact", *words]).exception, InputError
        )


# ---- a fit that scores itself ------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize(("unit", "kappa"), list(KAPPA.items()))
def test_of_a_fit_with_a_score_both_parts_are_audited(unit, kappa, adjacency, monkeypatch):
    learner = DPPMetricLearner(unit=unit, n_steps=STEPS, adjacency=adjacency)
    found = audit_scored(learner, 0.5, kappa=kappa, n_features=3)
    moves = {query.name: query for query in found.queries}
    assert found.verdict == "consistent"
    assert list(moves) == ["survey", "signal", "gradients", "score counts"]
    charged = kappa * (2 if adjacency == "replace" else 1)
    assert {query.charged for query in moves.values()} == {charged}
    assert 0.999999 < moves["gradients"].ratio <= 1
    assert 0.5 < moves["score counts"].ratio <= 1
    assert found.realised_epsilon <= found.claimed_epsilon <= 1.0
    if kappa > 1:  # planted: what a unit moves is counted as one pair
        from pairveil.evaluation import held_out

        honest = held_out.kappa_of
        monkeypatch.setattr(
            held_out, "kappa_of", lambda data: replace(honest(data), relationship=1, person=1)
        )
        wrong = audit_scored(learner, 0.5, kappa=kappa, n_features=3)
        assert wrong.verdict == "violated"
        assert next(one for one in wrong.queries if one.name == "score counts").ratio > 1


def test_the_command_audits_both_parts():
    words = ["audit", "--exact", "--score", "0.5", "--mechanism", "laplace", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["verdicts"] == {"laplace": "consistent"}
    assert list(said["queries"])[-1] == "score counts"
    assert "--score goes with --exact" in str(
        CliRunner().invoke(app, ["audit", "--score", "1"]).exception
    )


def test_an_attack_on_a_released_plan_sees_both_parts(monkeypatch):
    from pairveil import PairSet
    from pairveil.audit import targets
    from pairveil.evaluation.held_out import with_score

    rng = np.random.default_rng(0)
    pairs = np.arange(400).reshape(-1, 2)
    data = PairSet(rng.normal(size=(400, 3)) * 0.1, pairs, np.resize([1, -1], 200))
    certificate = with_score(DPPMetricLearner(), data, epsilon=1.0).certificate
    assert len(certificate.plan["releases"]) == 4
    runs = [released_plan(certificate, part).runs for part in (0, 1)]
    seen = []
    monkeypatch.setattr(
        targets,
        "audit_target",
        lambda target, **how: seen.append(target) or audit_target(target, **(how | {"runs": 200})),
    )
    found = attack_plan(certificate)
    assert found.verdict == "consistent"
    assert found.n_runs == 400
    assert found.confidence == 0.95
    assert len(seen) == 2
    assert runs[1] >= runs[0]
