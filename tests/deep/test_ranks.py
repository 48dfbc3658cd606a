"""Two processes give the sums of one, bit for bit, and charge once."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="pairveil.deep needs the extra 'torch'")

from pairveil import PrivacyLedger

SCRIPT = Path(__file__).with_name("two_ranks.py")


def start(rank, tmp_path, name, *more):
    return subprocess.Popen(
        [
            sys.executable, str(SCRIPT), str(rank), str(tmp_path / "meeting"),
            str(tmp_path / f"{name}.npy"), str(tmp_path / f"ledger-{name[:3]}.json"), *more,
        ],
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
        stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        pytest.param((), id="even"),
        pytest.param(
            ("uneven",),
            id="uneven",
            marks=pytest.mark.skipif(
                not os.environ.get("PAIRVEIL_NIGHTLY"), reason="PAIRVEIL_NIGHTLY is not set"
            ),
        ),
    ],
)
def test_two_processes_give_the_integers_of_one(tmp_path, more):
    running = [start(-1, tmp_path, "one", *more)]
    running += [start(rank, tmp_path, f"two{rank}", *more) for rank in (0, 1)]
    for process in running:
        said = process.communicate(timeout=300)[1]
        assert process.returncode == 0, said.decode()[-2000:]
    alone = np.load(tmp_path / "one.npy")
    assert len(alone) == 6
    for rank in (0, 1):
        np.testing.assert_array_equal(np.load(tmp_path / f"two{rank}.npy"), alone)
    # Both processes name one ledger; only the first charges it.
    assert (
        len(PrivacyLedger(path=tmp_path / "ledger-two.json", epsilon=100.0, delta=1e-3).entries)
        == 2
    )


@pytest.mark.skipif(not os.environ.get("PAIRVEIL_NIGHTLY"), reason="PAIRVEIL_NIGHTLY is not set")
def test_two_processes_resume_where_they_were_stopped(tmp_path):
    """Two of four answers are kept; both processes take them again, and nothing is charged twice."""
    found = []
    for limit in ("2", "9"):
        (tmp_path / "meeting").unlink(missing_ok=True)
        more = ("kept", limit, str(tmp_path / "fit.checkpoint"))
        running = [start(rank, tmp_path, f"two{rank}", *more) for rank in (0, 1)]
        for process in running:
            said = process.communicate(timeout=300)[1]
            assert process.returncode == 0, said.decode()[-2000:]
        found.append([np.load(tmp_path / f"two{rank}.npy") for rank in (0, 1)])
    stopped, done = found
    assert (len(stopped[0]), len(done[0])) == (2, 4)
    np.testing.assert_array_equal(done[0], done[1])
    np.testing.assert_array_equal(done[0][:2], stopped[0])
    ledger = PrivacyLedger(path=tmp_path / "ledger-two.json", epsilon=100.0, delta=1e-3)
    assert len(ledger.entries) == 1
    assert not (tmp_path / "fit.checkpoint").exists()
