"""Run by test_kills.py: `fit` killed (SIGKILL) at steps of its writing, then run again with the same words.

Prints, as JSON, what was found after each kill and after the command was run again.
"""

import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from pairveil import files
from pairveil.cli.app import app
from pairveil.learners import base as sizes  # noqa: F401 (loaded once, before the forks)
from pairveil.learners.contrastive import recipe
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.release.metric import ReleasedMetric

STEPS = ("fsync", "replace", "unlink")


def kill_before(step: int) -> None:
    """From now on this process dies before its step-th call that changes what is on disk."""
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
    """How `fit` ended, in a process of its own."""
    child = os.fork()
    if child == 0:
        if step:
            kill_before(step)
        done = CliRunner().invoke(app, words)
        if done.exit_code != 0:
            print(repr(done.exception), done.output, file=sys.stderr)
        os._exit(0 if done.exit_code == 0 else 1)
    status = os.waitpid(child, 0)[1]
    return {0: "done", signal.SIGKILL: "killed"}.get(status, "failed")


def found(folder: Path) -> str | None:
    """Which release is there: its certificate's word of honour; None where there is none."""
    if not folder.exists():
        return None
    certificate = ReleasedMetric.load(folder).certificate
    assert certificate is not None
    assert certificate.verify()
    return str(certificate.metric_sha256)


def main(data: Path, scratch: Path, stride: int) -> None:
    words = ["fit", "--no-scale", str(data / "people.csv"), str(data / "pairs.csv"), "-q"]
    run([*words, "-o", str(scratch / "earlier"), "--epsilon", "3"])
    words += ["-o", "out", "--ledger", "ledger.json", "--budget", "1.5"]
    words += ["--checkpoint", "fit", "--report"]
    seen: list[list[list[object]]] = [[], []]
    for replaces in (False, True):
        step = 1
        while True:
            here = scratch / f"{replaces}-{step}"
            here.mkdir()
            os.chdir(here)
            seen[replaces].append(killed_at(step, [*words, *(["--overwrite"] * replaces)], scratch))
            if seen[replaces][-1][0] != "killed":
                break
            step += stride
    print(json.dumps(seen))


def killed_at(step: int, words: list[str], scratch: Path) -> list[object]:
    """What was there after a kill, and after the same command was run again."""
    out = Path("out")
    if "--overwrite" in words:
        shutil.copytree(scratch / "earlier", out)
    old = found(out)
    how = run(words, step)
    between = found(out)
    charged = Path("ledger.json").exists() and len(PrivacyLedger.open("ledger.json").entries)
    whole = between == old or (out / "report.html").is_file()  # the report comes with the release
    # Where all was done and the checkpoint gone, the same words would be a second fit.
    finished = between != old and not Path("fit").exists()
    again = "done" if finished else run(words)
    entries = len(PrivacyLedger.open("ledger.json").entries)
    is_new = found(out) != old and (out / "report.html").is_file()
    return [how, old == between, whole, int(charged), again, entries, is_new, sorted(os.listdir())]


if (
    __name__ == "__main__"
):  # not where doctests are collected: this changes every fit of the process
    recipe.NUMBERS = replace(
        recipe.NUMBERS, steps=2
    )  # a short fit has as many kinds of steps as a long one
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
