"""Random bits for a release: the keystream of ChaCha20 under a key from the operating system.

A reader is shown the words not yet read, uses some of them and says how many. That is all the
state there is, and it gives the two things exact sampling needs:

*No word is used twice.* ``spend`` is the only way on, and it never goes back. A forked child draws a
key of its own, a stream cannot be copied or pickled, and readers hold ``lock`` for a whole draw.

*No word is lost because a block ended.* When the words run out in the middle of a sample, the
sampler gives that sample up, spends nothing on it, calls ``refill``, which appends fresh words to
the unread ones, and starts the same sample again over the same words. So each sample is a function
of the endless stream alone. Dropping the half-read sample instead would be a bias: samples that
need many words would be dropped more often than the others.

"Uniform" means indistinguishable from uniform for whoever cannot break ChaCha20 with 256 bits of key.
"""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from typing import NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

from pairveil.errors import InputError

KEY_BYTES = 32
_ROOM = 64  # words that a draw left behind: more are rare, and get a place of their own


class Keystream:
    """Uniform 64-bit words from ChaCha20, each used once.

    Parameters
    ----------
    key : bytes of length 32, optional
        For tests only: the same key gives the same words. By default a key is drawn from the
        operating system (``os.urandom``) and kept nowhere else.
    block : int, default=16384
        How many words one ``refill`` adds. It changes the speed and never the words.

    Attributes
    ----------
    for_release : bool
        False when the key was given.
    lock : threading.RLock
        To be held from ``unread`` to the last ``spend`` of one draw.

    Examples
    --------
    >>> stream = Keystream()
    >>> stream.refill()
    >>> first = int(stream.unread()[0])
    >>> stream.spend(1)
    >>> stream.unread().size
    16383
    """

    def __init__(self, key: bytes | None = None, block: int = 16384) -> None:
        if key is not None and len(key) != KEY_BYTES:
            raise InputError(f"a key has {KEY_BYTES} bytes")
        if block < 1:
            raise InputError("a block has at least one word")
        self.for_release = key is None
        self.lock = threading.RLock()
        self._zeros = bytes(8 * block)
        # One place for the words, kept: the last unread ones move in front of each new block.
        self._space = np.empty(_ROOM + block, dtype=np.uint64)
        self._fresh = self._space[_ROOM:].view(np.uint8).data
        self._start(os.urandom(KEY_BYTES) if key is None else key)

    def _start(self, key: bytes) -> None:
        # The key is fresh, so the nonce (and the counter beside it) may start at zero.
        self._cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._words: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._process = os.getpid()

    def unread(self) -> NDArray[np.uint64]:
        """Return the words at hand that no one has used, oldest first; look, then ``spend``.

        The array is a view that the next ``refill`` writes over: ask again after it.
        """
        if os.getpid() != self._process:
            # A forked child holds the parent's words: using them would use them twice.
            if not self.for_release:
                raise RuntimeError("a keystream with a given key must not be used after a fork")
            self._start(os.urandom(KEY_BYTES))
        return self._words

    def spend(self, count: int) -> None:
        """Declare the oldest ``count`` unread words used."""
        if not 0 <= count <= self._words.size:
            raise ValueError("more words were spent than were unread")
        self._words = self._words[count:]

    def refill(self) -> None:
        """Append one block of fresh words behind the unread ones."""
        unread = self.unread()
        start = _ROOM - unread.size
        space, fresh = self._space, self._fresh
        if start < 0:
            start, space = 0, np.empty(unread.size + len(self._zeros) // 8, dtype=np.uint64)
            fresh = space[unread.size :].view(np.uint8).data
        space[start : start + unread.size] = unread
        self._cipher.update_into(self._zeros, fresh)
        self._words = space[start:]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a keystream cannot be copied or pickled: its words would be used twice")


@lru_cache(maxsize=1)
def process_keystream() -> Keystream:
    """Return the stream of this process, so that who draws from it need not hold (or pickle) one.

    Examples
    --------
    >>> process_keystream() is process_keystream()
    True
    """
    return Keystream()


if hasattr(os, "register_at_fork"):
    # The parent's lock may be held by a thread that the child does not have: start anew there.
    os.register_at_fork(after_in_child=process_keystream.cache_clear)
