"""The real command line in a process of its own, on files with canaries in them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

# None of these may ever be printed: an id, a feature's value, a label that is no label.
CANARIES = ("kanarienvogel", "0.271828", "verdächtig")
PAIRVEIL = [sys.executable, "-m", "pairveil"]


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
    """Run `pairveil WORDS` in ``cwd``; no canary may be spoken."""
    done = subprocess.run(
        [*PAIRVEIL, *map(str, words)],
        cwd=cwd,
        env=environment() | variables,
        capture_output=True,
        input=None if stdin is None else stdin.decode(),
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    for canary in CANARIES:
        assert canary not in done.stdout + done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def run_here(*words: object, cwd: Path) -> Done:
    """The same without a process of its own: a tenth of the time, where nothing hangs on the process."""
    from pairveil.cli import app

    out, err = io.StringIO(), io.StringIO()
    kept = sys.argv
    sys.argv = ["pairveil", *map(str, words)]
    code: object = 0
    try:
        with (
            contextlib.chdir(cwd),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            app.main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = kept
    for canary in CANARIES:
        assert canary not in out.getvalue() + err.getvalue()
    assert isinstance(code, int)
    return Done(code, out.getvalue(), err.getvalue())
