"""Anyone's trainer: honest for pairs, broken for people, or broken outright; and what a bad one is told."""

import json
import sys

import numpy as np
import pytest
from reproduction.trainers import (
    batch_clipped,
    diffprivlib_differences,
    opacus_pairs,
    pair_clipped,
    published,
)

from pairveil.audit.auditor import Finding
from pairveil.audit.canaries import worst_case
from pairveil.audit.trainer_audit import Level, TrainerFinding, audit_trainer, load_trainer
from pairveil.cli.app import main as run_main
from pairveil.errors import InputError
from pairveil.report.page import render_audit as render


def verdicts(trainer, delta, **options):
    runs = 1 if options.get("mode") == "one-run" else 800
    options = {"kappa": 8, "runs": runs, "random_state": 0, **options}
    found = audit_trainer(trainer, options.pop("epsilon", 1.0), delta, **options)
    return {level.unit: level.finding.verdict for level in found.levels}


def test_pairs_as_examples_are_private_and_people_are_not():
    assert verdicts(pair_clipped, 1e-5) == {
        "pair": "consistent", "relationship": "violated", "person": "violated"
    }  # fmt: skip


def test_a_batch_clipped_as_a_whole_is_not_even_private_for_a_pair():
    options = {"levels": ("pair",), "mode": "one-run", "n_features": 200}
    assert verdicts(batch_clipped, 1e-5, **options) == {"pair": "violated"}


def test_the_published_algorithm_is_convicted():
    assert verdicts(published, 0.0, levels=("person",)) == {"person": "violated"}


def test_one_run_tells_a_trainer_without_noise_from_one_of_noise_alone():
    def plain(X, pairs, y, seed):
        apart = X[pairs[:, 0]] - X[pairs[:, 1]]
        return (y[:, None] * apart**2).sum(axis=0) + 50

    def deaf(X, pairs, y, seed):
        return np.random.default_rng(seed).normal(size=X.shape[1])

    for adjacency in ("replace", "zero-out"):
        options = {"mode": "one-run", "n_features": 60, "adjacency": adjacency}
        assert set(verdicts(plain, 0.0, **options).values()) == {"violated"}
        assert set(verdicts(deaf, 0.0, **options).values()) == {"consistent"}


def test_one_run_convicts_where_a_thousand_runs_do_and_several_are_sharper():
    """Pairs as examples: a person's eight pairs are seen in one run, one pair is not in five."""
    options = {"mode": "one-run", "n_features": 200, "kappa": 8}
    assert verdicts(pair_clipped, 1e-5, **options) == {
        "pair": "consistent", "relationship": "violated", "person": "violated"
    }  # fmt: skip
    once, often = (
        audit_trainer(pair_clipped, 1.0, 1e-5, levels=("person",), runs=runs, **options).levels[0]
        for runs in (1, 5)
    )
    assert often.finding.lower_bound > once.finding.lower_bound + 0.5
    assert (once.finding.canary, often.finding.canary) == ("200 planted", "1000 planted")


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_one_run_leaves_the_tightest_honest_trainer_alone(delta):
    """Randomised response of every column at epsilon 1, told outright with probability delta: each of 40
    audits errs with probability 0.001 at most, 5 of them with probability below 1e-9."""

    def honest(X, pairs, y, seed):
        rng = np.random.default_rng(seed)
        apart = X[pairs[:, 0]] - X[pairs[:, 1]]
        true = np.sign((y[:, None] * np.abs(apart)).sum(axis=0))
        told = rng.random(len(true)) < delta
        lies = rng.random(len(true)) < 1 / (1 + np.e)
        return np.where(told, 2 * true, np.where(lies, -true, true))

    options = {"mode": "one-run", "n_features": 100, "levels": ("pair",), "runs": 5}
    found = [verdicts(honest, delta, random_state=seed, **options) for seed in range(40)]
    assert sum(one["pair"] == "violated" for one in found) < 5
    loose = [
        verdicts(honest, delta, random_state=seed, epsilon=0.2, **options) for seed in range(40)
    ]
    assert sum(one["pair"] == "violated" for one in loose) > 5  # a claim of 0.2 is refuted often


def test_trainers_of_other_libraries_are_right_for_pairs_alone():
    """Their figures are in docs/guides/new-learner.md; here that they run, where they are installed."""
    data = worst_case("person", 8, 3, "zero-out", 60).first
    for package, trainer, size in (
        ("opacus", opacus_pairs, 12),
        ("diffprivlib", diffprivlib_differences, 4),
    ):
        try:
            __import__(f"{package}.{'models' if package == 'diffprivlib' else 'accountants'}")
        except ImportError:
            continue
        given = np.array(data.features), np.array(data.pairs), data.labels
        models = [np.asarray(trainer(*given, seed)) for seed in (0, 0, 1)]
        assert models[0].size == size
        assert (models[0] == models[1]).all()
        assert not (models[0] == models[2]).all()


def test_an_honest_trainer_for_people_is_left_alone():
    """The same trainer with noise for 8 pairs: false accusations have probability 0.001 a level at most."""

    def for_people(X, pairs, y, seed):
        apart = X[pairs[:, 0]] - X[pairs[:, 1]]
        rows = y[:, None] * apart / 2  # length 1 at most
        return rows.sum(axis=0) + np.random.default_rng(seed).laplace(
            scale=2 * 8 * 3, size=X.shape[1]
        )

    assert set(verdicts(for_people, 0.0).values()) == {"consistent"}


@pytest.mark.parametrize(
    ("trainer", "told"),
    [
        (lambda *_: None, "returned no model"),
        (lambda *_: [], "returned no model"),
        (lambda *_: "model", "returned no model"),
        (lambda *_: np.array([np.nan]), "NaN"),
        (lambda *_: 1 / 0, "failed in run 1: ZeroDivisionError"),
        (lambda X: X, "failed in run 1: TypeError"),
        (lambda X, pairs, y, seed: np.zeros(1 + seed % 2), "differ in size"),
    ],
)
def test_a_trainer_that_crashes_or_returns_nothing_is_told_why(trainer, told):
    with pytest.raises(InputError, match=told):
        audit_trainer(trainer, 1.0)


def test_models_of_many_kinds_are_read():
    class Fitted:
        def __init__(self, seed):
            self.components_ = np.random.default_rng(seed).normal(size=(1, 3))

    for model in (
        Fitted,
        lambda s: {"a": s % 7, "b": [s % 5, 1.0]},
        lambda s: ([1.0, s % 3], np.eye(2)),
    ):
        found = audit_trainer(lambda *given, m=model: m(given[3]), 1.0, runs=60, levels=("pair",))
        assert isinstance(found, TrainerFinding)
        assert found.verdict == "consistent"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nothing", "module:function"),
        ("no.such.module:f", "cannot be imported"),
        ("json:nothing", "no function"),
    ],
)
def test_names_that_lead_nowhere_are_refused(name, told):
    with pytest.raises(InputError, match=told):
        load_trainer(name)


def test_parameters_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="at least 2 pairs"):
        audit_trainer(pair_clipped, 1.0, kappa=1)
    with pytest.raises(InputError, match="20 features"):
        audit_trainer(pair_clipped, 1.0, mode="one-run")


def test_the_command_finds_a_trainer_in_the_working_folder(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_trainer.py").write_text(
        "def train(X, pairs, y, seed):\n    return (y[:, None] * X[pairs[:, 0]]).sum(axis=0)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys,
        "argv",
        [
            "pairveil",
            "audit",
            "--trainer",
            "my_trainer:train",
            "--runs",
            "200",
            "--json",
            "--report",
            "page.html",
        ],
    )
    with pytest.raises(SystemExit) as ended:
        run_main()
    assert ended.value.code in (0, None)
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] == "violated"
    assert [level["unit"] for level in said["levels"]] == ["pair", "relationship", "person"]
    assert said["out"] == "page.html"
    page = (tmp_path / "page.html").read_text()
    assert "Claim refuted" in page
    assert "--trainer my_trainer:train" in page
    monkeypatch.setattr(sys, "argv", ["pairveil", "audit", "--trainer", "my_trainer:nothing"])
    with pytest.raises(SystemExit) as ended:
        run_main()
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert "no function 'nothing'" in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("mode", "bound", "verdict", "said"),
    [
        ("many-run", 0.4, "consistent", "No more than the claimed epsilon of 1 was seen."),
        ("many-run", 1.4, "consistent", "was seen, but within chance: repeat it with more runs."),
        ("one-run", 2.4, "violated", "For one person epsilon is at least 2.40. Claimed is 1."),
    ],
)
def test_the_page_says_what_was_seen(mode, bound, verdict, said):
    seen = Finding("t", 1.0, bound, 0.95, 60, verdict, 0.0, "512", "replace", "nothing")
    page = render(TrainerFinding("train", 1.0, 0.0, (Level("person", 4, mode, seen),)), ["audit"])
    assert said in page
    assert ("512 secrets" in page) == (mode == "one-run")
    assert ("Claim refuted" in page) == (verdict == "violated")
