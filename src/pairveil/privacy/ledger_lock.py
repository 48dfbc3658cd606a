"""Waiting for a ledger that another process is using: said after some seconds, and given up in the end."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout

from pairveil.errors import InputError, WaitWarning
from pairveil.files import CannotWrite, check_file

SAY_AFTER = 3.0
"""Seconds after which a wait is said (a `WaitWarning`; the command line shows it)."""
GIVE_UP_AFTER = 120.0
"""Seconds after which a wait is an error. A spend takes well below a second."""


@contextmanager
def ledger_lock(ledger: Path) -> Iterator[None]:
    """Hold the lock of a ledger file, for reading and writing it. The lock goes when its holder dies.

    On a disk without locks of the operating system (flock) the lock is the lock file itself, and a kill may
    leave it.

    Raises InputError: another process held it all the time, nothing can be written there, or the ledger
    has a second name.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, ledger_lock(Path(folder, "budget.json")):
    ...     os.listdir(folder)
    ['budget.json.lock']
    """
    # A new lock object each time: threads of one process exclude each other too.
    lock = FileLock(f"{ledger}.lock")
    try:
        _acquire(lock, ledger)
        _check_one_name(ledger)
        yield
    except CannotWrite as problem:
        # Not 'name another place': another ledger is a fresh budget for the same people.
        raise InputError(
            f"the ledger at {ledger} cannot be written: {problem.reason}. Put that right and run again; do "
            "not start another ledger for the same people, it would not know what was spent from this one"
        ) from None
    finally:
        lock.release()


def _check_one_name(ledger: Path) -> None:
    """A write replaces the file under one name: under another the old entries would stay, for ever."""
    if ledger.exists() and ledger.stat().st_nlink > 1:
        raise InputError(
            f"the ledger at {ledger} has a second name on its disk (a hard link), which would keep a budget "
            "of its own from the next charge on: remove the other name, or use a symbolic link"
        )


def _acquire(lock: FileLock, ledger: Path) -> None:
    try:
        try:
            lock.acquire(timeout=SAY_AFTER)
        except Timeout:
            check_file(lock.lock_file)  # a lock that cannot be written is not obtained either
            warnings.warn(
                f"another process is using the ledger at {ledger}; waiting for it, at most "
                f"{GIVE_UP_AFTER:g} seconds",
                WaitWarning,
                stacklevel=6,
            )
            lock.acquire(timeout=max(0.0, GIVE_UP_AFTER - SAY_AFTER))
    except Timeout:
        # filelock turns a lock into a soft one where there is no flock.
        left = (
            "if there is none, a killed run has left the lock file, because this disk has no locks (flock): "
            "then remove it"
            if isinstance(lock, SoftFileLock)
            else "the lock file itself may stay"
        )
        raise InputError(
            f"another process has held {lock.lock_file} for {GIVE_UP_AFTER:g} seconds, so nothing was "
            "spent. Look for another pairveil that uses this ledger (a stopped or stuck one holds it "
            f"too), end it and try again; {left}"
        ) from None
    except OSError as error:
        raise InputError(
            f"the ledger at {ledger} cannot be locked: {error.strerror or type(error).__name__}"
        ) from None
