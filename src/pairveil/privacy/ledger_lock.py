"""Waiting for a ledger that another process is using: said after some seconds, and given up in the end."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pairveil.errors import InputError, WaitWarning
from pairveil.files import check_file

SAY_AFTER = 3.0
"""Seconds after which a wait is said (a `WaitWarning`; the command line shows it)."""
GIVE_UP_AFTER = 120.0
"""Seconds after which a wait is an error. A spend takes well below a second."""


@contextmanager
def ledger_lock(ledger: Path) -> Iterator[None]:
    """Hold the lock of a ledger file. The operating system frees it when its holder dies.

    Raises InputError: another process held it all the time, or nothing can be written there.

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
    except OSError as error:
        if isinstance(error, Timeout):
            raise InputError(
                f"another process has held {lock.lock_file} for {GIVE_UP_AFTER:g} seconds, so nothing was "
                "spent. Look for another pairveil that uses this ledger (a stopped or stuck one holds it "
                "too), end it and try again; the lock file itself may stay"
            ) from None
        raise InputError(
            f"the ledger at {ledger} cannot be locked: {error.strerror or type(error).__name__}"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _acquire(lock: FileLock, ledger: Path) -> None:
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
