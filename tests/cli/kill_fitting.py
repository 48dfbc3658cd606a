"""Run by test_kills.py: a command killed (SIGKILL) at steps of its writing, then simply run again.

Prints, as JSON, what was found after each kill and after the command was run again.
"""

import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

from pairveil import files
from pairveil.cli import app
from pairveil.learners import base as sizes  # noqa: F401 (loaded once, before the forks)
from pairveil.learners.contrastive import recipe
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.release.release import load_release

STEPS = ("fsync", "replace", "unlink", "_exit")


def kill_before(step: int) -> None:
    """From now on this process dies before its step-th call that changes what is on disk, or ends it."""
    done = 0

    def counted(function):
        def call(*arguments, **options):
            nonlocal done
            done += 1
            if done == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))
    files._exchange = counted(files._exchange)


def run(words: list[str], step: int = 0) -> str:
    """How a command ended, in a process of its own."""
    child = os.fork()
    if child == 0:
        if step:
            kill_before(step)
        sys.argv = ["pairveil", *words]
        code = 1
        try:
            app.main()
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    return {0: "done", signal.SIGKILL: "killed"}.get(status, "failed")


def found(out: Path) -> str | None:
    """Which release is there: what its certificate certifies; None where there is none."""
    if out.is_file():
        return json.dumps(json.loads(out.read_text()))  # with its certificate: scores may be equal
    if not out.exists():
        return None
    certificate = load_release(out).certificate
    assert certificate.verify()
    return str(certificate.metric_sha256)


def main(data: Path, scratch: Path, command: str, stride: int) -> None:
    release, here = str(data / "metric"), [str(data / "people.csv"), str(data / "pairs.csv")]
    words = {
        "fit": ["fit", "--no-scale", *here, "--report", "-o", "out"],
        "link": ["link", str(data / "levels.csv"), here[1], "--n-levels", "3,3", "-o", "out"],
        "threshold": ["threshold", release, *here, "--fmr", "0.95", "-o", "out"],
        "evaluate": ["evaluate", release, here[0], "--pairs", here[1], "-o", "out.json"],
    }[command] + ["-q", "--epsilon", "1"]
    out = Path(words[words.index("-o") + 1])
    earlier = scratch / out
    run([*words[:-5], "-o", str(earlier), "-q", "--epsilon", "3"])
    words += ["--ledger", "ledger.json", "--budget", "1.5", "--checkpoint", "fit"]
    seen: list[list[list[object]]] = [[], []]
    for replaces in (False, True):
        step = 1
        while True:
            place = scratch / f"{replaces}-{step}"
            place.mkdir()
            os.chdir(place)
            if replaces:
                (shutil.copy if earlier.is_file() else shutil.copytree)(earlier, out)
            seen[replaces].append(killed_at(step, [*words, *(["--overwrite"] * replaces)], out))
            if seen[replaces][-1][0] != "killed":
                break
            step += stride
    print(json.dumps(seen))


def killed_at(step: int, words: list[str], out: Path) -> list[object]:
    """What was there after a kill, and after the same command was run again."""
    old = found(out)
    how = run(words, step)
    between = found(out)
    charged = Path("ledger.json").exists() and len(PrivacyLedger.open("ledger.json").entries)
    report = out / "report.html" if words[0] == "fit" else out
    whole = between == old or report.exists()  # the report comes with the release
    # The checkpoint goes in the last step: without it the command was finished, though its parent saw a kill.
    finished = between != old and not Path("fit").exists()
    again = "done" if finished else run(words)
    entries = len(PrivacyLedger.open("ledger.json").entries)
    is_new = found(out) != old and report.exists()
    left = sorted(set(os.listdir()) - {out.name})
    return [how, finished, old == between, whole, int(charged), again, entries, is_new, left]


if (
    __name__ == "__main__"
):  # not where doctests are collected: this changes every fit of the process
    # A short fit has as many kinds of steps as a long one.
    recipe.NUMBERS = replace(recipe.NUMBERS, steps=2)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
