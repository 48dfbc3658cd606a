"""The one way to write a file, or a folder of files, whole or not at all.

A draft is written beside its target under one fixed name, ``.NAME.draft``, and made durable (fsync); then it
takes the target's name in one step, and the step is made durable too (fsync of the folder). A kill at any
moment leaves the old or the new content under the name, never a mixture and never nothing.

Whoever writes a draft holds a lock on it (flock), which the operating system takes back when the process
dies. So the next writer knows whether a draft that it finds is somebody's work or was left behind by a
kill: it writes over the latter. Nothing has to be cleaned by hand.

A folder that exists is exchanged with its draft by the operating system (``renameat2`` on Linux,
``renamex_np`` on macOS). Where the file system cannot do that the old folder is first put aside as
``.NAME.old``; a kill between the two steps is repaired by the next writer (`recover`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from pairveil.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_ROOM = ".room"
_BOTH, _IF_FREE = (2, 2), (1, 4)  # flags of renameat2 (Linux) and renamex_np (macOS)
_NO_FLAGS = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EPERM}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EINVAL}
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class CannotWrite(InputError):
    """A file or folder cannot be written; ``reason`` is the operating system's."""

    def __init__(self, path: str | Path, reason: str, advice: str) -> None:
        super().__init__(f"{path} cannot be written: {reason}; {advice}")
        self.reason = reason


# ---- one file ------------------------------------------------------------------------------------


def write_file(
    path: str | Path, content: bytes | str, *, mode: int | None = None, new: bool = False
) -> Path:
    """Write a file whole or not at all; text is UTF-8. ``mode`` and ``new`` as in `file_draft`.

    Raises InputError: it cannot be written, with the reason.
    """
    with file_draft(path, mode=mode, new=new) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(path)


@contextmanager
def file_draft(path: str | Path, *, mode: int | None = None, new: bool = False) -> Iterator[Path]:
    """A path to write to, which takes the place of ``path`` when the block ends without an error.

    Links are followed: the file that a link names is replaced, and the link stays. A file that is
    replaced keeps its permissions.
    """
    target = _place_of(path)
    with _told(path):
        # The ending stays the same: some writers choose the format by it, or add one that is missing.
        draft, lock = claim(target, target.suffix, folder=False, mode=mode or 0o666)
        try:
            if mode is not None:
                draft.chmod(mode)  # of a draft that a kill left
            yield draft
            if mode is None and target.exists():
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
            _sync(draft)
            if not new:
                os.replace(draft, target)
            elif not _rename(draft, target, _IF_FREE):
                if target.exists():
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                os.replace(draft, target)
            _sync(target.parent)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        finally:
            let_go(lock)


def check_file(path: str | Path, room: int = 0) -> None:
    """Refuse a path at which no file of ``room`` bytes can be written now; nothing stays behind."""
    target = _place_of(path)
    with _told(path):
        draft, lock = claim(target, target.suffix, folder=False)
        try:
            take_room(draft, room)
        finally:
            draft.unlink(missing_ok=True)
            let_go(lock)


# ---- a folder of files ---------------------------------------------------------------------------


class FolderDraft:
    """A folder that appears under its name whole or not at all.

    Making one proves that it can be written, makes the folders above it and keeps ``room`` bytes free for
    it: make it before anything is spent on what goes into it. A folder that is there is replaced as a whole
    by `commit`, so the caller decides first whether it may be. InputError: it cannot be written, or another
    run is writing it.
    """

    def __init__(self, target: str | Path, room: int = 0) -> None:
        self.target = Path(target)
        self._place = self.target.resolve()
        self._made: list[Path] = []
        self._lock: int | None = None
        self._draft: Path | None = None
        with _told(target):
            try:
                self._make_parents()
                if _is_mount(self._place):
                    raise InputError(
                        f"{target} is where a disk is mounted and cannot be replaced as a whole; "
                        "name a folder inside it"
                    )
                self._draft, self._lock = claim(self._place, "", folder=True)
                take_room(self._draft / _ROOM, room)
            except Busy:
                raise InputError(
                    f"another run is writing to {target}; wait for it, or name another folder"
                ) from None
            except BaseException:
                self.close()
                raise

    @property
    def folder(self) -> Path:
        """Where the files are until `commit`."""
        assert self._draft is not None
        return self._draft

    def write(self, name: str, content: bytes | str) -> None:
        """Write one of the folder's files, durably."""
        assert self._draft is not None
        with _told(self.target):
            (self._draft / _ROOM).unlink(missing_ok=True)
            with (self._draft / name).open("wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())

    def commit(self) -> Path:
        """Give the folder its name; what had the name before is removed."""
        assert self._draft is not None
        with _told(self.target):
            (self._draft / _ROOM).unlink(missing_ok=True)
            _sync(self._draft)
            _swap(self._draft, self._place)
            for folder in {self._place.parent, *(made.parent for made in self._made)}:
                _sync(folder)
        self._draft, self._made = None, []
        self.close()
        return self.target

    def close(self) -> None:
        """Forget what was not committed."""
        if self._draft is not None:
            shutil.rmtree(self._draft, ignore_errors=True)
            self._draft = None
        for folder in reversed(self._made):
            with suppress(OSError):  # somebody has put something else there
                folder.rmdir()
        self._made = []
        let_go(self._lock)
        self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make_parents(self) -> None:
        missing = [folder for folder in self._place.parents if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            self._made.append(folder)


def recover(target: str | Path) -> None:
    """Repair what a kill left where folders cannot be exchanged; changes nothing else.

    The draft was whole when the old folder was put aside, so it takes its place.
    """
    place = Path(target).resolve()
    aside = _aside(place)
    if not aside.is_dir():
        return
    with _told(target):
        try:
            draft, lock = claim(place, "", folder=True, keep=True)
        except Busy:
            return  # somebody is between the two steps
        try:
            if not place.exists():
                whole = draft if any(draft.iterdir()) else aside
                os.replace(whole, place)
                _sync(place.parent)
            shutil.rmtree(aside, ignore_errors=True)
            with suppress(OSError):
                draft.rmdir()  # made by the claim
        finally:
            let_go(lock)


def _place_of(path: str | Path) -> Path:
    """Where a file will really be; refuses what is no place for a file."""
    target = Path(path).resolve()
    if target.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if not target.parent.is_dir():
        raise InputError(f"the folder {target.parent} does not exist")
    if target.exists() and not target.is_file():
        raise InputError(f"{path} is no ordinary file; name another")
    return target


# ---- names ---------------------------------------------------------------------------------------


def _aside(place: Path) -> Path:
    return place.with_name(f".{place.name}.old")


def _swap(draft: Path, place: Path) -> None:
    """Put a draft in the place of a folder; the old one goes only after the new one stands."""
    if not place.exists():
        os.replace(draft, place)
        return
    # Locked before it gets the draft's name, so that nobody takes it for a draft to write into.
    old = os.open(place, os.O_RDONLY) if os.name == "posix" else None
    try:
        if old is not None:
            lock_draft(old, wait=True)
        if _exchange(draft, place):
            shutil.rmtree(draft, ignore_errors=True)
            return
        aside = _aside(place)
        shutil.rmtree(aside, ignore_errors=True)
        os.replace(place, aside)
        os.replace(draft, place)
        _sync(place.parent)
        shutil.rmtree(aside, ignore_errors=True)
    finally:
        let_go(old)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; False where that cannot be done."""
    return _rename(one, other, _BOTH)


def _rename(one: Path, other: Path, how: tuple[int, int]) -> bool:
    """Rename in one step as ``how`` says; False where the file system cannot do that."""
    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        here = -100  # AT_FDCWD
        failed = library.renameat2(here, names[0], here, names[1], how[0])  # type: ignore[union-attr]
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(*names, how[1])
    else:
        return False
    if not failed:
        _sync(other.parent)
        return True
    reason = ctypes.get_errno()
    if reason in _NO_FLAGS:
        return False
    raise OSError(reason, os.strerror(reason), str(other))


def _is_mount(place: Path) -> bool:
    """Whether a disk, or another folder, is mounted at a place: such a folder cannot be renamed."""
    if not place.is_dir():
        return False
    if os.path.ismount(place):
        return True
    try:
        table = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return False
    shown = os.fsencode(place)
    for character in b"\\ \t\n":  # as the table writes them
        shown = shown.replace(bytes([character]), b"\\%03o" % character)
    return any(line.split()[4] == shown for line in table.splitlines() if line)


def _sync(path: Path) -> None:
    """Make a file's content, or the names in a folder, durable (Windows does the latter by itself)."""
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _told(path: str | Path) -> Iterator[None]:
    """An error of the operating system as a sentence about the path that was asked for."""
    try:
        yield
    except OSError as error:
        if isinstance(error, InputError):
            raise
        if error.errno in _NO_ROOM:
            reason, advice = (
                "there is not enough room on its disk",
                "make room, or name another place",
            )
        else:
            reason, advice = error.strerror or str(error), "name another place"
        raise CannotWrite(path, reason, advice) from None


# ---- drafts, and who holds them -------------------------------------------------------------------


class Busy(Exception):
    """Somebody else is writing the draft."""


def draft_of(name: str) -> str | None:
    """Which file or folder a name is a draft of, at work or left by a kill; None where it is no draft."""
    found = re.fullmatch(r"\.(.+)\.draft(\.[^/]*)?", name, re.DOTALL)
    return None if found is None else found[1]


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
