"""`fit` killed at any step: the release is the old or the new one, and the ledger is charged once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from running import environment

SCRIPT = Path(__file__).with_name("kill_fitting.py")
NIGHTLY = bool(os.environ.get("PAIRVEIL_NIGHTLY"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
def test_a_killed_fit_leaves_a_whole_release_and_a_true_ledger(files: Path, tmp_path: Path) -> None:
    """Every step is tried each night, else one in seventeen (the last of all among them)."""
    stride = 1 if NIGHTLY else 17
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(files), str(tmp_path), str(stride)],
        env=environment() | {"NUMBA_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert [how for how, *_ in seen] == ["killed"] * (len(seen) - 1) + ["done"]
    assert len(seen) > 40 / stride
    for _, is_old, charged, again, entries, is_new, left in seen:
        assert charged <= 1
        assert is_old or charged == 1  # no release that was not paid for
        assert (again, entries, is_new) == ("done", 1, True)
        assert left == ["fit.lock", "ledger.json", "ledger.json.lock", "out"]
