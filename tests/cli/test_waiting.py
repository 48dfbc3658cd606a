"""What is said while a command works, and to whom."""

from __future__ import annotations

import io
import sys

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


@pytest.mark.parametrize(("at_terminal", "talk"), [(True, True), (True, False), (False, True)])
def test_waiting_is_shown_at_a_terminal_and_what_is_said_meanwhile_stands_whole(
    terminal, at_terminal, talk
):
    """As what says that loops are compiled (tests/engine/test_compiled_files.py)."""
    terminal._force_terminal = at_terminal
    wanted = at_terminal and talk
    with speaking.Terminal(quiet=not talk).waiting("working"):
        print("loops are compiled", file=sys.stderr)
    said = terminal.file.getvalue()
    assert ("loops are compiled\n" in said) == wanted  # else it went to stderr as it is
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
