"""`attack` and `audit` on the command line: keys, verdicts, exit codes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from pairveil.cli import app as cli

runner = CliRunner()


@pytest.fixture
def app():
    return cli.app


def said(app, *words):
    result = runner.invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_audit_speaks_json(app):
    found = said(
        app, "audit", "--target", "published-dpp", "--components", "4", "--runs", "16000", "--json"
    )
    wanted = {"target", "claimed_epsilon", "lower_bound", "confidence", "n_runs", "verdict"}
    assert wanted <= found.keys()
    assert found["verdict"] == "violated"
    assert found["lower_bound"] >= 3


def test_audit_leaves_a_sound_mechanism_alone(app):
    words = [
        "audit",
        "--target",
        "staircase-joint",
        "--features",
        "8",
        "--runs",
        "6000",
        "--confidence",
        "0.999",
    ]
    assert said(app, *words, "--json")["verdict"] == "consistent"
    plain = runner.invoke(app, words)
    assert "does not prove it" in plain.stdout


def test_audit_says_what_a_bound_above_the_claim_means():
    from pairveil.audit.auditor import Claim, audit_scores
    from pairveil.jobs.check import conclusion

    def noisy(which, n, rng):
        return 1.1 * which + rng.laplace(size=n)

    found = [audit_scores(noisy, Claim(e), runs=4000, random_state=0) for e in (0.3, 0.9, 2.0)]
    assert found[1].lower_bound > 0.9
    assert [one.verdict for one in found] == ["violated", "consistent", "consistent"]
    words = [conclusion(one) for one in found]
    assert "violated" in words[0]
    assert "0.999" in words[1]
    assert "does not prove" in words[2]


def test_audit_knows_units_and_adjacencies(app):
    for target in ("laplace", "gaussian", "learner"):
        found = said(
            app, "audit", "--target", target, "--unit", "person", "--adjacency", "replace",
            "--runs", "30", "--json",
        )  # fmt: skip
        assert found["canary"] == "person"
        assert found["adjacency"] == "replace"


def test_audit_refuses_what_it_does_not_know(app):
    assert runner.invoke(app, ["audit", "--target", "rumour"]).exit_code == 2
    assert runner.invoke(app, ["audit", "--runs", "0"]).exit_code == 2
