"""Resuming a fit that was killed, without spending twice and without drawing any answer twice.

Training is post-processing of noisy answers, so the answers are all there is to keep. The file starts with a
line of JSON that names the fit (a random name; a digest of the plan, of who is paired with whom, and of the
schema, metric or network that features go through: public things only); one record for each answer follows.
A last record that is not whole is cut off; anything else that is wrong with the file is refused.

The ledger's entry of a fit holds the checkpoint's name and its *mark*: the sha256 of the file up to the last
answer that was used. A file may be resumed only if it begins with what was marked, and the mark moves
before an answer is used. So one charge pays for one sequence of answers, whatever copies of the
file there are: docs/theory/guarantee.md has the argument and its limits.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from filelock import FileLock, Timeout
from msgspec import Struct
from msgspec.structs import asdict

from pairveil import __version__
from pairveil.array_types import FloatArray
from pairveil.engine.backends.local import topology_digest
from pairveil.engine.plan import Plan
from pairveil.errors import InputError
from pairveil.files import check_file, write_file
from pairveil.foreign import decode, parse_json, taking_apart
from pairveil.privacy.ledger import PrivacyLedger

_FORMAT = "pairveil-checkpoint-3"
_HEAD = struct.Struct("<Q32s")  # length and sha256 of what follows
_CHECK = struct.Struct("<I")  # crc32 of the head: a wrong length must not pass for a short tail
_LINE = 4096  # bytes of a line of JSON, at most
_HEAD_SIZE = _HEAD.size + _CHECK.size
_LARGEST = 1e100
"""Beyond any noisy sum of ours; its square is still a number."""
_ANEW = "remove it to start anew, which spends anew"


class CheckpointLock:
    """The right to a checkpoint: one run has it at a time, until it lets go.

    The lock's own file stays: whoever waits for it may have it open, and would share it with nobody else
    if it were unlinked.

    ``path``: links are followed, so that all names of a file have one lock.

    Raises InputError: another run has it, or nothing can be written there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, CheckpointLock(f"{folder}/fit") as held:
    ...     CheckpointLock(f"{folder}/fit")
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: another fit is using this checkpoint; give each its own
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()
        self._lock = FileLock(f"{self.path}.lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            check_file(self._lock.lock_file)  # a lock that cannot be written is not obtained either
            raise InputError("another fit is using this checkpoint; give each its own") from None
        except OSError as error:
            raise InputError(
                f"the checkpoint cannot be written there: {error.strerror or type(error).__name__}"
            ) from None

    def remove(self) -> None:
        """Delete the checkpoint: its result is safe."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let others have it."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_held(path: str | Path) -> bool:
    """Whether a run has the checkpoint now."""
    try:
        CheckpointLock(path).close()
    except InputError:
        return True
    return False


class Content(NamedTuple):
    """What a checkpoint file holds."""

    name: str
    sums: list[tuple[str, FloatArray]]
    marks: list[str]  # sha256 of the file up to its first line and up to each sum
    size: int  # of all that is whole


class Checkpoint:
    """The answers of one fit, in a file.

    Made when it does not exist. With a path the file is held until `close` or `finish`; a lock stays with
    whoever made it. ``about`` is what else is public and changes the answers
    (`pairveil.learners.preparing.Prepared`); ``content`` is what was found.

    Examples
    --------
    >>> import tempfile
    >>> plan = Plan((), n_records=9, n_features=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = Checkpoint(f"{folder}/fit", plan, np.eye(2, dtype=int))
    ...     first.keep("survey", np.array([1.0, 2.0]))
    ...     first.close()
    ...     again = Checkpoint(f"{folder}/fit", plan, np.eye(2, dtype=int))
    ...     again.released(0, "survey", (2,)), again.released(1, "signal", (2,))
    ...     again.finish()
    (array([1., 2.]), None)
    """

    def __init__(
        self, path: str | Path | CheckpointLock, plan: Plan, pairs: Any, about: str = ""
    ) -> None:
        self._own = None if isinstance(path, CheckpointLock) else CheckpointLock(path)
        self._hold = path if isinstance(path, CheckpointLock) else self._own
        assert self._hold is not None
        self.path = self._hold.path
        self._ledger: PrivacyLedger | None = None
        self._before = 0  # answers of engines that are done
        try:
            digest = fit_digest(plan, pairs, about)
            if not self.path.exists():
                _create(self.path, digest)
            self.content = read(self.path, digest)
            with self.path.open("r+b") as file:
                file.truncate(self.content.size)
                file.seek(0)
                self._hash = hashlib.sha256(file.read())
        except BaseException:
            self.close()
            raise
        self._size = self.content.size

    @property
    def mark(self) -> str:
        """Names the file as this fit last left it."""
        return self._hash.hexdigest()

    def follow(self, ledger: PrivacyLedger) -> None:
        """From now on no sum is used before the ledger that was charged knows of it."""
        self._ledger = ledger

    def go_on(self, answers: int) -> None:
        """Another engine of the same fit comes now, after one with so many answers."""
        self._before = answers

    def released(self, place: int, name: str, shape: tuple[int, ...]) -> FloatArray | None:
        """The answer at a place of the fit, if it was given already."""
        if self._before + place >= len(self.content.sums):
            return None
        kept, value = self.content.sums[self._before + place]
        if kept != name or value.shape != shape:
            raise InputError(f"this checkpoint does not follow the plan; {_ANEW}")
        return value

    def keep(self, name: str, value: FloatArray) -> None:
        """Write a sum that was just drawn, durably, before anything is made of it.

        Raises InputError: somebody else wrote to the file, or went on with a copy of it: the sum must not
        be used.
        """
        record = (
            json.dumps([name, list(value.shape)]).encode() + b"\n" + value.astype("<f8").tobytes()
        )
        head = _HEAD.pack(len(record), hashlib.sha256(record).digest())
        written = head + _CHECK.pack(zlib.crc32(head)) + record
        try:
            file = self.path.open("r+b")
        except FileNotFoundError:
            raise InputError("the checkpoint was removed while its fit ran") from None
        with file:
            if file.seek(0, os.SEEK_END) != self._size:  # a hard link has a lock of its own
                raise InputError("another fit wrote to this checkpoint; give each its own")
            file.write(written)
            file.flush()
            os.fsync(file.fileno())
        before = self.mark
        self._hash.update(written)
        self._size += len(written)
        if self._ledger is not None:
            self._ledger.advance(self.content.name, before, self.mark)

    def close(self) -> None:
        """Let go of the file; another process may resume the fit."""
        if self._own is not None:
            self._own.close()

    def finish(self) -> None:
        """The fit is done: there is nothing to resume, and the file is removed."""
        assert self._hold is not None
        self._hold.remove()
        self.close()


def fit_digest(plan: Plan, pairs: Any, about: str = "") -> str:
    """Names a fit by what is public of it: features and labels are not in it."""
    stated = [__version__, plan.to_dict(), plan.n_records, about]
    described = json.dumps(stated, sort_keys=True)
    digest = hashlib.sha256(described.encode())
    digest.update(topology_digest(pairs))
    return digest.hexdigest()


def read(path: str | Path, digest: str) -> Content:
    """What the checkpoint of the fit with this `fit_digest` holds; changes nothing.

    Raises InputError: the file is none of ours, of another fit, or damaged.
    """
    if not Path(path).is_file():
        raise InputError(
            "the checkpoint is no file: name one that may be made, or was made by a fit"
        )
    first, newline, rest = Path(path).read_bytes().partition(b"\n")
    header = _header(first)
    if header is None or not newline:
        raise InputError("this file is not a checkpoint of this version")
    if header["fit"] != digest:
        raise InputError(
            "this checkpoint is of another fit (other pairs or parameters, another schema, metric or "
            f"network, or another version); {_ANEW}"
        )
    return _records(header["name"], first + newline, rest)


def name_of(path: str | Path) -> str | None:
    """The name of the checkpoint at a path; None where there is none."""
    try:
        with Path(path).open("rb") as file:
            header = _header(file.readline(_LINE))
    except OSError:
        return None
    return None if header is None else header["name"]


class _Header(Struct):
    """The first line."""

    format: str
    name: str
    fit: str


def _header(line: bytes) -> dict[str, str] | None:
    """What the first line names, as text each; None where it is no such line."""
    try:
        found = parse_json(line, "the checkpoint", _LINE)
        known: dict[str, str] = asdict(decode(found, _Header, "the checkpoint"))
    except InputError:
        return None
    return known if known["format"] == _FORMAT else None


def _records(name: str, line: bytes, rest: bytes) -> Content:
    """The sums behind the first line. Only a write that was cut short is forgiven."""
    digest = hashlib.sha256(line)
    sums, marks, at = [], [digest.hexdigest()], 0
    while at + _HEAD_SIZE <= len(rest):
        head = rest[at : at + _HEAD.size]
        length, check = _HEAD.unpack(head)
        start = at + _HEAD_SIZE
        record = rest[start : start + length]
        sound = _CHECK.pack(zlib.crc32(head)) == rest[at + _HEAD.size : start]
        if sound and len(record) < length:
            break
        if not sound or hashlib.sha256(record).digest() != check:
            raise InputError(f"this checkpoint is damaged; {_ANEW}")
        try:
            sums.append(_sum(record))
        except InputError:
            raise InputError(f"this checkpoint is damaged; {_ANEW}") from None
        digest.update(rest[at : start + length])
        marks.append(digest.hexdigest())
        at = start + length
    return Content(name, sums, marks, len(line) + at)


def _sum(record: bytes) -> tuple[str, FloatArray]:
    """The name and the numbers of a record: whoever wrote it could also write its digest."""
    line, _, numbers = record.partition(b"\n")
    title = "this checkpoint"
    with taking_apart(title):
        name, shape = parse_json(line, title, _LINE)
        values = np.frombuffer(numbers, dtype="<f8").astype(np.float64)
        if not isinstance(name, str) or len(values) != math.prod(shape):
            raise ValueError
        if not (np.abs(values) <= _LARGEST).all():  # nor a NaN
            raise ValueError
        return name, values.reshape(shape)


def _create(path: Path, digest: str) -> None:
    header = {"format": _FORMAT, "name": secrets.token_hex(8), "fit": digest}
    write_file(path, json.dumps(header).encode() + b"\n")
