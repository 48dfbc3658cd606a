"""Drafts of files and folders: one fixed name beside the target, locked by whoever writes it.

The operating system takes the lock (flock) back when its holder dies, so a draft that nobody holds was left
by a kill and may be written over.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import threading
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EINVAL}


class Busy(Exception):
    """Somebody else is writing the draft."""


def draft_of(name: str) -> str | None:
    """Which file or folder a name is a draft of, at work or left by a kill; None where it is no draft."""
    found = re.fullmatch(r"\.(.+)\.draft(\.[^/]*)?", name, re.DOTALL)
    return None if found is None else found[1]


def is_draft(name: str) -> bool:
    """Whether a file or folder of this name is a draft."""
    return draft_of(name) is not None


def claim(
    target: Path, ending: str, *, folder: bool, keep: bool = False, mode: int = 0o666
) -> tuple[Path, int | None]:
    """An empty draft that nobody else writes, and the lock that says so (None where there are no locks)."""
    draft = target.with_name(f".{target.name}.draft{ending}")
    while True:
        if folder:
            draft.mkdir(exist_ok=True)
            descriptor = os.open(draft, os.O_RDONLY) if fcntl is not None else None
        else:
            descriptor = os.open(draft, os.O_RDWR | os.O_CREAT, mode)
        try:
            locked = descriptor is not None and lock_draft(descriptor, wait=not folder)
            if not locked:  # then names must differ, and what a kill leaves stays
                let_go(descriptor)
                return _unlocked(draft, folder, mode), None
            if not _is_at(descriptor, draft):  # its last writer gave it the target's name meanwhile
                let_go(descriptor)
                continue
            if not keep:
                _empty(draft, descriptor, folder)
        except BaseException:
            let_go(descriptor)
            raise
        return draft, descriptor


def _unlocked(draft: Path, folder: bool, mode: int) -> Path:
    """A draft with a name of its own, instead of one that cannot be locked."""
    whose = f"{os.getpid()}-{threading.get_ident()}"
    own = draft.with_name(f"{draft.stem}.{whose}{draft.suffix}")
    if folder:
        with suppress(OSError):
            draft.rmdir()
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir()
    else:
        draft.unlink(missing_ok=True)
        let_go(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode))
    return own


def lock_draft(descriptor: int, *, wait: bool) -> bool:
    """Lock a draft; False where the file system has no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise Busy from None
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True


def let_go(descriptor: int | None) -> None:
    if descriptor is not None:
        with suppress(OSError):
            os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _empty(draft: Path, descriptor: int, folder: bool) -> None:
    """Remove what a killed writer left in a draft."""
    if not folder:
        os.ftruncate(descriptor, 0)
        return
    for entry in draft.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def take_room(path: Path, room: int) -> None:
    """A file of ``room`` bytes that are really there."""
    with path.open("wb") as file:
        if room <= 0:
            return
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, room)
        else:
            block = bytes(1 << 20)
            for start in range(0, room, len(block)):
                file.write(block[: room - start])
