"""Going on with a fit that was killed, without spending twice.

All training is post-processing of released sums, so the sums are all there is to keep: a fit that reads
them back instead of drawing them again arrives where the killed one was, and has released nothing new on
its way. A sum is on disk before anything is made of it. One that was drawn and not yet kept when the
process died was seen by nobody; it is drawn anew, once, as the plan says.

The file starts with a line of JSON that names the fit (a digest of the plan and of who is paired with whom:
public things only) and goes on with one record a sum. A last record that is not whole is cut off.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import struct
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.learning.dask_pairs import DaskPairs
from pairveil.learning.plan import TrainingPlan

_FORMAT = "pairveil-checkpoint-1"
_HEAD = struct.Struct("<Q32s")  # length and sha256 of what follows
FloatArray = NDArray[np.float64]


class Checkpoint:
    """The released sums of one fit, in a file.

    Parameters
    ----------
    path : path
        Made when it does not exist. One fit at a time may hold it; a copy of it must not be gone on
        with as well, since the two would draw different noise for one charge.
    plan : TrainingPlan
    pairs : (K, 2) array, PairSet or DaskPairs
        The used pairs.

    Attributes
    ----------
    name : str
        Under which the ledger was charged.

    Examples
    --------
    >>> import tempfile
    >>> from pairveil.learning.defaults import Budget, make_plan
    >>> plan = make_plan(Budget(1.0, 1e-5, 1, "zero-out"), n_features=2, n_pairs=9, data_norm=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = Checkpoint(f"{folder}/fit", plan, np.eye(2, dtype=int))
    ...     first.keep("survey", np.array([1.0, 2.0]))
    ...     first.close()
    ...     again = Checkpoint(f"{folder}/fit", plan, np.eye(2, dtype=int))
    ...     again.released(0, "survey", (2,)), again.released(1, "signal", (2,))
    ...     again.finish()
    (array([1., 2.]), None)
    """

    def __init__(self, path: str | Path, plan: TrainingPlan, pairs: Any) -> None:
        self.path = Path(path)
        self._lock = FileLock(f"{self.path}.lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise InputError("another fit is using this checkpoint; give each its own") from None
        except OSError:
            raise InputError("the checkpoint cannot be written there") from None
        try:
            self.name, self._sums = self._open(_digest(plan, pairs))
        except BaseException:
            self._lock.release()
            raise

    def _open(self, digest: str) -> tuple[str, list[tuple[str, FloatArray]]]:
        if not self.path.exists():
            header = {"format": _FORMAT, "name": secrets.token_hex(8), "fit": digest}
            temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
            temporary.write_text(json.dumps(header) + "\n")
            os.replace(temporary, self.path)
        first, _, rest = self.path.read_bytes().partition(b"\n")
        try:
            header = json.loads(first)
            known = header["format"] == _FORMAT
        except (ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise InputError("this file is not a checkpoint of this version")
        if header["fit"] != digest:
            raise InputError(
                "this checkpoint is of another fit (other pairs, parameters or version); "
                "remove it to start anew, which spends anew"
            )
        sums, whole = _read(rest)
        with self.path.open("r+b") as file:
            file.truncate(len(first) + 1 + whole)
        return str(header["name"]), sums

    def released(self, place: int, name: str, shape: tuple[int, ...]) -> FloatArray | None:
        """The sum at a place of the fit, if it has been released already."""
        if place >= len(self._sums):
            return None
        kept, value = self._sums[place]
        if kept != name or value.shape != shape:
            raise InputError("this checkpoint does not follow the plan; remove it to start anew")
        return value

    def keep(self, name: str, value: FloatArray) -> None:
        """Write a sum that was just drawn, durably, before anything is made of it."""
        buffer = io.BytesIO()
        buffer.write(name.encode() + b"\n")
        np.save(buffer, value, allow_pickle=False)
        record = buffer.getvalue()
        with self.path.open("ab") as file:
            file.write(_HEAD.pack(len(record), hashlib.sha256(record).digest()) + record)
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        """Let go of the file; another fit may go on with it."""
        self._lock.release()

    def finish(self) -> None:
        """The fit is done: there is nothing to go on with."""
        self.close()
        remove(self.path)


def charged_note(note: str, name: str) -> str:
    """What a ledger writes for a fit with a checkpoint of this name.

    Examples
    --------
    >>> charged_note("fit of 3 pairs", "ab12")
    'fit of 3 pairs, checkpoint ab12'
    """
    return f"{note}, checkpoint {name}"


def is_charged(path: str | Path, entries: Iterable[Any]) -> bool:
    """Whether a ledger with these entries was charged for the fit whose checkpoint this file is."""
    try:
        with Path(path).open("rb") as file:
            name = json.loads(file.readline())["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return False  # no file, or none of ours: the fit itself says so
    return any(entry.note.endswith(charged_note("", str(name))) for entry in entries)


def remove(path: str | Path) -> None:
    """Delete the checkpoint of a fit whose result is safe."""
    Path(path).unlink(missing_ok=True)
    Path(f"{path}.lock").unlink(missing_ok=True)


def _digest(plan: TrainingPlan, pairs: Any) -> str:
    """Names a fit by what is public of it: features and labels are not in it."""
    described = json.dumps([version("pairveil"), plan.to_dict(), plan.n_pairs], sort_keys=True)
    digest = hashlib.sha256(described.encode())
    if isinstance(pairs, DaskPairs):
        digest.update(pairs.topology())
    else:
        ends = getattr(pairs, "pairs", pairs)
        digest.update(np.ascontiguousarray(ends, dtype=np.int64).tobytes())
    return digest.hexdigest()


def _read(content: bytes) -> tuple[list[tuple[str, FloatArray]], int]:
    """The whole records, and how many bytes they take."""
    sums, at = [], 0
    while at + _HEAD.size <= len(content):
        length, check = _HEAD.unpack_from(content, at)
        record = content[at + _HEAD.size : at + _HEAD.size + length]
        if len(record) < length or hashlib.sha256(record).digest() != check:
            break
        name, _, array = record.partition(b"\n")
        sums.append((name.decode(), np.load(io.BytesIO(array), allow_pickle=False)))
        at += _HEAD.size + length
    return sums, at
