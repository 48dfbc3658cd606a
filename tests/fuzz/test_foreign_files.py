"""Damaged files and forged releases end in one sentence, in bounded time and memory.

The ordinary run takes a small sample; ``PAIRVEIL_NIGHTLY=1`` (`make audit`) takes 2,000 files a layout,
1,000 forged releases and 1,000 forged ledgers. A failure names the layout, the number and the seed:
the same words to ``worker.py`` repeat it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from seeds import seeds  # noqa: E402

NIGHTLY = bool(os.environ.get("PAIRVEIL_NIGHTLY"))
nightly = pytest.mark.skipif(not NIGHTLY, reason="takes minutes: make audit runs it")
SEED = "1"


def outcome(*words: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "worker.py"), *words],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    print(" ".join(words), {key: value for key, value in found.items() if key != "failures"})
    assert found["failures"] == []
    return found


@nightly
@pytest.mark.parametrize("layout", list(seeds()))
def test_damaged_files(layout: str) -> None:
    found = outcome("files", layout, "2000", SEED)
    # Most blows are noticed; the whole file, first of all, is read.
    assert found["refused"] > 200
    assert found["accepted"] > 0


@nightly
@pytest.mark.parametrize("kind", ["releases", "ledgers"])
def test_forgeries(kind: str) -> None:
    found = outcome(kind, "1000", SEED)
    assert found["refused"] > 100
    assert found["accepted"] > 0


def test_a_sample_of_each() -> None:
    """One process: importing takes longer than the reading."""
    found = outcome("sample", "12", SEED)
    assert found["refused"] > 50
    assert found["accepted"] > 10
