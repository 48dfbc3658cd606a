"""Ctrl-C ends every command with 130 and one line, whatever it was doing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from running import environment

from pairveil.cli import app

# As numba does: the interrupt arrives in compiled code, and something else comes out.
SWALLOWED = """
import os, signal, sys
from pairveil.cli import app

def breaking(*_, **__):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        import time; time.sleep(5)
    except KeyboardInterrupt:
        raise {kind} from None

import pairveil.graph.choosing as choosing
choosing.design_pairs = breaking
sys.argv = ["pairveil", "design", "--people", "5"]
app.main()
"""


@pytest.mark.parametrize(
    "kind", ["KeyboardInterrupt", "SystemError('a result with an exception set')"]
)
def test_an_interrupt_is_one_whatever_becomes_of_it(kind, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWED.format(kind=kind)], cwd=tmp_path, env=environment(),
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert done.stderr == f"pairveil: {app.STOPPED}\n"


def test_an_interrupt_that_python_ignores_is_raised_again(tmp_path):
    # As in callbacks while modules are imported: "Exception ignored in ...".
    code = SWALLOWED.format(kind="KeyboardInterrupt").replace(
        "def breaking(*_, **__):", "class Ignoring:\n  def __del__(self):"
    )
    code = code.replace(
        "choosing.design_pairs = breaking",
        "import time; choosing.design_pairs = lambda *_, **__: (Ignoring() and 0, time.sleep(5))",
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, f"pairveil: {app.STOPPED}\n")


def test_a_bug_without_an_interrupt_is_still_called_one(tmp_path):
    code = SWALLOWED.format(kind="SystemError()").replace(
        "os.kill(os.getpid(), signal.SIGINT)", "1 / 0"
    )
    code = code.replace("except KeyboardInterrupt", "except ArithmeticError")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "this is a bug" in done.stderr


@pytest.mark.parametrize("wait", [1.0, 2.5])
def test_an_audit_can_be_stopped(wait, tmp_path):
    running = subprocess.Popen(
        [sys.executable, "-m", "pairveil", "audit"], cwd=tmp_path, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(wait)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=300)
    assert running.returncode in (130, -signal.SIGINT)  # the latter while Python itself still loads
    assert "this is a bug" not in err


def test_the_handler_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    with app.noticed_interrupts() as seen:
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    assert seen == []
