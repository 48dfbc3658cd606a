"""What is said while a command works, and to whom."""

from __future__ import annotations

import io

import numba
import numpy as np
import pytest
from rich.console import Console

from pairveil import DPPMetricLearner, PairSet, PrivacyLedger, design_pairs
from pairveil.cli import terminal as speaking
from pairveil.jobs.spending import learn


@pytest.fixture
def terminal(monkeypatch):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120, _environ={"TERM": "xterm"})
    monkeypatch.setattr(speaking, "stderr", console)
    return console


def compile_something() -> None:
    numba.njit(lambda x: x + 1)(1)
    numba.njit(lambda x: x + 2)(1)


@pytest.mark.parametrize(("at_terminal", "talk"), [(True, True), (True, False), (False, True)])
def test_compiling_is_said_once_at_a_terminal(terminal, at_terminal, talk):
    terminal._force_terminal = at_terminal
    with speaking.Terminal(quiet=not talk).waiting("working"):
        compile_something()
    said = terminal.file.getvalue()
    wanted = at_terminal and talk
    assert said.count("compiling once") == wanted
    assert ("working" in said) == wanted


@pytest.mark.parametrize("ledger", [True, False])
def test_the_bar_agrees_with_the_ledger(terminal, ledger):
    pairs = design_pairs(300, random_state=0)
    data = PairSet(np.random.default_rng(0).normal(size=(300, 3)) / 9, pairs, np.ones(len(pairs)))
    account = PrivacyLedger(2.0, 1e-5) if ledger else None
    learner = DPPMetricLearner(epsilon=1.0, random_state=0, n_steps=2, accountant=account)
    learn(learner, learner.prepare(data), speaking.Terminal())
    said = terminal.file.getvalue()
    assert ("epsilon charged 1" in said) == ledger
    assert ("epsilon so far" in said) != ledger
