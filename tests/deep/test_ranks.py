"""Two processes give the sums of one, bit for bit, charge once, and resume together."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="pairveil.deep needs the extra 'torch'")

from pairveil import PrivacyLedger

SCRIPT = Path(__file__).with_name("two_ranks.py")
AT_NIGHT = pytest.mark.skipif(
    not os.environ.get("PAIRVEIL_NIGHTLY"), reason="PAIRVEIL_NIGHTLY is not set"
)


def run_both(folder, *how):
    """What each of two processes was answered."""
    (folder / "meeting").unlink(missing_ok=True)
    running = [
        subprocess.Popen(
            [
                sys.executable, str(SCRIPT), str(rank), str(folder / "meeting"),
                str(folder / f"{rank}"), str(folder / "ledger.json"), *how,
            ],
            env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
            stderr=subprocess.PIPE,
        )
        for rank in (0, 1)
    ]  # fmt: skip
    for process in running:
        said = process.communicate(timeout=300)[1]
        assert process.returncode == 0, said.decode()[-2000:]
    return [np.load(folder / f"{rank}.npy") for rank in (0, 1)]


def charges(folder):
    ledger = PrivacyLedger(path=folder / "ledger.json", epsilon=100.0, delta=1e-3)
    return len(ledger.entries)


@pytest.mark.parametrize("how", ["even", pytest.param("uneven", marks=AT_NIGHT)])
def test_two_processes_give_the_integers_of_one(tmp_path, how):
    both = run_both(tmp_path, how)
    alone = np.load(tmp_path / "0-alone.npy")
    assert len(alone) == 6
    for found in both:
        np.testing.assert_array_equal(found, alone)
    assert charges(tmp_path) == 2  # both name one ledger; only the first process charges it
    for rank in (0, 1):
        refused = json.loads((tmp_path / f"{rank}-refused.json").read_text())
        assert len(refused) == 9
        for what, said in refused.items():
            assert ("has none" if what == "ledger" else "different things") in said, what


@AT_NIGHT
def test_two_processes_resume_where_they_were_stopped(tmp_path):
    """Two of four answers are kept; both processes take them again, and nothing is charged twice."""
    file = tmp_path / "fit.checkpoint"
    stopped = run_both(tmp_path, "kept", "2", str(file))
    done = run_both(tmp_path, "kept", "9", str(file))
    assert (len(stopped[0]), len(done[0])) == (2, 4)
    np.testing.assert_array_equal(done[0], done[1])
    np.testing.assert_array_equal(done[0][:2], stopped[0])
    assert charges(tmp_path) == 1
    assert not file.exists()
