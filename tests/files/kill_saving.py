"""Run by test_kills.py: saves a release over and over, killed (SIGKILL) one step later each time.

Prints, as JSON, what was found under the release's name after each kill and after the next start. With 'key'
or 'signature' it makes a key, or signs a release, in the same way.
"""

import json
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from pairveil import files
from pairveil.errors import InputError
from pairveil.release.metric import ReleasedMetric
from pairveil.release.release import check_folder
from pairveil.release.signing import check_signature, new_key, sign

STEPS = ("open", "mkdir", "fsync", "replace", "unlink", "rmdir", "chmod")
SIGNED = Path(__file__).parents[1] / "stored" / "v1" / "gaussian"
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
    files._rename = counted(files._rename)


def found(folder: Path) -> str:
    try:
        components = ReleasedMetric.load(folder).components
    except InputError:
        return "broken" if folder.exists() else "nothing"
    return {1.0: "old", 2.0: "new", 3.0: "next"}[float(components[0, 0])]


def killed(step: int, action) -> bool:
    """Whether a child that does something died before it was done."""
    child = os.fork()
    if child == 0:
        kill_before(step)
        action()
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0


def keys(scratch: Path, step: int) -> tuple[bool, bool, list[str]]:
    """Whether it died, whether the pair fits after the next start, and what else lies there."""
    died = killed(step, lambda: new_key(scratch / "k.pem"))
    with suppress(InputError):  # both are there
        new_key(scratch / "k.pem")
    private = load_pem_private_key((scratch / "k.pem").read_bytes(), None)
    public = load_pem_public_key((scratch / "k.pem.pub").read_bytes())
    return died, private.public_key() == public, sorted(os.listdir(scratch))


def signatures(scratch: Path, step: int) -> tuple[bool, bool, list[str]]:
    """Whether it died, whether the next signature holds, and what it does not cover."""
    folder = Path(shutil.copytree(SIGNED, scratch / "release"))
    public = new_key(scratch / "k.pem")
    died = killed(step, lambda: sign(folder, scratch / "k.pem"))
    check_folder(folder, overwrite=True)
    sign(folder, scratch / "k.pem")
    return died, True, list(check_signature(folder, public).uncovered)


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
        died = killed(step, lambda folder=folder: NEW.save(folder, overwrite=True))
        at_once = found(folder)
        files.recover(folder)
        recovered = found(folder)
        NEXT.save(folder, overwrite=True)
        left = sorted(os.listdir(folder.parent))
        seen.append([died, at_once, recovered, found(folder), left])
        if not died:
            break
    print(json.dumps(seen))


def repeat(what, scratch: Path) -> None:
    seen = []
    while not seen or seen[-1][0]:
        here = scratch / str(len(seen) + 1)
        here.mkdir()
        seen.append(what(here, len(seen) + 1))
    print(json.dumps(seen))


if __name__ == "__main__" and sys.argv[2] in ("key", "signature"):
    repeat({"key": keys, "signature": signatures}[sys.argv[2]], Path(sys.argv[1]))
elif __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "exchange", sys.argv[3] == "overwrite")
