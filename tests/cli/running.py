"""The real command line on files with canaries in them: in this process, or in one of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

# None of these may ever be printed: an id, a feature's value, a label that is no label.
CANARIES = ("kanarienvogel", "0.271828", "verdächtig")
PAIRVEIL = [sys.executable, "-m", "pairveil"]
LEAVE = sys.exit  # what `os._exit` is in this process


def environment() -> dict[str, str]:
    """One thread, plain 80 columns, and no configuration from outside."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PAIRVEIL", "FORCE_COLOR"))}
    return kept | {
        "OMP_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
    }


class Done(NamedTuple):
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object; anything else on stdout is an error."""
        assert self.code == 0, self.err
        assert len(self.out.splitlines()) == 1
        found = json.loads(self.out, parse_constant=_no_constant)
        assert isinstance(found, dict)
        return found


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not strict JSON")


def run(*words: object, cwd: Path, stdin: bytes | None = None, **variables: str) -> Done:
    """Run `pairveil WORDS` in ``cwd``, in a process of its own: seconds, most of them imports."""
    done = subprocess.run(
        [*PAIRVEIL, *map(str, words)],
        cwd=cwd,
        env=environment() | variables,
        capture_output=True,
        input=None if stdin is None else stdin.decode(),
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    return _heard(done.returncode, done.stdout, done.stderr)


def run_here(*words: object, cwd: Path, **variables: str) -> Done:
    """The same in this process: a tenth of the time, where nothing hangs on the process."""
    from pairveil.cli import app

    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    try:
        with (
            contextlib.chdir(cwd),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            patch.dict(os.environ, environment() | variables, clear=True),
            patch.object(sys, "argv", ["pairveil", *map(str, words)]),
            patch.object(os, "_exit", LEAVE),
        ):
            app.main()
    except SystemExit as end:
        code = end.code or 0
    assert isinstance(code, int)
    return _heard(code, out.getvalue(), err.getvalue())


def _heard(code: int, out: str, err: str) -> Done:
    """No canary may be spoken."""
    for canary in CANARIES:
        assert canary not in out + err
    return Done(code, out, err)
