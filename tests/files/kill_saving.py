"""Run by test_kills.py: saves a release over and over, killed (SIGKILL) one step later each time.

Prints, as JSON, what was found under the release's name after each kill and after the next start.
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

from pairveil import files
from pairveil.errors import InputError
from pairveil.release.metric import ReleasedMetric

STEPS = ("open", "mkdir", "fsync", "replace", "unlink", "rmdir")
OLD, NEW, NEXT = (ReleasedMetric(np.full((2, 2), value)) for value in (1.0, 2.0, 3.0))


def kill_before(step: int) -> None:
    """From now on this process dies before its step-th call to the file system."""
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


def found(folder: Path) -> str:
    try:
        components = ReleasedMetric.load(folder).components
    except InputError:
        return "broken" if folder.exists() else "nothing"
    return {1.0: "old", 2.0: "new", 3.0: "next"}[float(components[0, 0])]


def save_killed(folder: Path, step: int) -> bool:
    """Whether a child that saves a new release died before it was done."""
    child = os.fork()
    if child == 0:
        kill_before(step)
        NEW.save(folder, overwrite=True)
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0


def main(scratch: Path, exchange: bool, overwrite: bool) -> None:
    if not exchange:
        files._exchange = lambda *_: False
    seen, step = [], 0
    while True:
        step += 1
        folder = scratch / str(step) / "release"
        folder.parent.mkdir()
        if overwrite:
            OLD.save(folder)
        died = save_killed(folder, step)
        at_once = found(folder)
        files.recover(folder)
        recovered = found(folder)
        NEXT.save(folder, overwrite=True)
        left = sorted(os.listdir(folder.parent))
        seen.append([died, at_once, recovered, found(folder), left])
        if not died:
            break
    print(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "exchange", sys.argv[3] == "overwrite")
