"""A reader who stops reading, and streams that are closed, are no mistakes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from running import PAIRVEIL, environment


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.csv"
    file.write_text("left,right,label\n1,2,same\n2,3,different\n1,3,different\n")
    return file


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_reader_may_stop_reading(pairs: Path, flags: list[str]) -> None:
    started = subprocess.Popen(
        [*PAIRVEIL, "kappa", str(pairs), *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert started.stdout is not None
    assert started.stderr is not None
    started.stdout.close()  # before anything is written: every write fails
    said = started.stderr.read()
    started.stderr.close()
    assert (started.wait(timeout=300), said) == (0, b"")


@pytest.mark.parametrize("flags", ["", "--json"])
def test_a_stream_may_be_closed(pairs: Path, flags: str) -> None:
    words = " ".join([*PAIRVEIL, "kappa", str(pairs), flags])
    for closing in (">&-", "2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{words} {closing}"], capture_output=True, env=environment(), check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
