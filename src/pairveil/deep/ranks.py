"""Several processes, one fit (torch.distributed): each sums its share, the first draws samples and noise.

Every process calls ``fit`` with the same pairs and data, which is checked before anything is charged. Buckets
are dealt out by their number; integer sums are added up over the processes, so that the total is the one
that a single process gets, bit for bit. Samples and noise are drawn by the first process alone and sent to
the others; only the first charges a ledger and keeps a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed as dist

from pairveil.engine.checkpoint import Checkpoint, CheckpointLock
from pairveil.engine.plan import Plan
from pairveil.errors import InputError, PairveilError
from pairveil.privacy.noise import NoiseSource


def n_ranks() -> int:
    """How many processes take part."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def is_first() -> bool:
    """Whether this process draws, charges and writes."""
    return n_ranks() == 1 or dist.get_rank() == 0


def own_share(buckets: Iterable[Any]) -> Iterator[Any]:
    """The buckets that this process sums."""
    world = n_ranks()
    own = dist.get_rank() if world > 1 else 0
    return (bucket for place, bucket in enumerate(buckets) if place % world == own)


def add_over_ranks(total: torch.Tensor) -> torch.Tensor:
    """The sum of all processes' integer totals, in every one of them."""
    if n_ranks() > 1:
        dist.all_reduce(total)
    return total


def holds_anywhere(holds: bool) -> bool:
    """Whether something holds in any process: what cuts pairs into buckets must be one thing in all."""
    found = [holds]
    if n_ranks() > 1:
        found *= n_ranks()
        dist.all_gather_object(found, holds)
    return any(found)


def check_alike(digest: str, *, has_ledger: bool) -> None:
    """Refuse a fit that is not the same one in all processes, before anything is charged.

    ``digest``: names all that a process adds up and how. What one person moves of the sum was counted in the
    pairs of one process; with a shard in each, as in plain distributed training, it moves the parts of all.
    """
    found = [(digest, has_ledger)]
    if n_ranks() > 1:
        found *= n_ranks()
        dist.all_gather_object(found, (digest, has_ledger))
    if len({one for one, _ in found}) > 1:
        raise InputError(
            "the processes of this fit were given different things: give each of them all pairs, labels and "
            "data, in the same order, the same options and a module that starts at the same weights "
            "(torch.manual_seed); shares are dealt out here. Nothing was charged"
        )
    if any(has for _, has in found) and not found[0][1]:
        raise InputError(
            "the first process charges the ledger, and has none: give it the accountant. Nothing was charged"
        )


def from_first(ask: Callable[..., Any], *given: Any) -> Any:
    """What a function returns in the first process, or the error of ours it raises there, in all of them."""
    box: list[Any] = [None]
    if is_first():
        try:
            box = [(ask(*given), None)]
        except PairveilError as problem:
            box = [(None, problem)]
    if n_ranks() > 1:
        dist.broadcast_object_list(box, src=0)
    found, refused = box[0]
    if refused is not None:
        raise refused
    return found


class SharedCheckpoint(Checkpoint):
    """The first process's checkpoint: it alone reads and writes the file, and all take its answers."""

    def __init__(
        self, path: str | Path | CheckpointLock, plan: Plan, pairs: Any, about: str = ""
    ) -> None:
        from_first(super().__init__, path, plan, pairs, about)

    def released(self, place: int, name: str, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
        """As the file says."""
        found: NDArray[np.float64] | None = from_first(super().released, place, name, shape)
        return found

    def keep(self, name: str, value: NDArray[np.float64]) -> None:
        """Nobody goes on before the answer is written."""
        from_first(super().keep, name, value)

    def close(self) -> None:
        """Let go of the file."""
        if is_first():
            super().close()

    def finish(self) -> None:
        """Remove the file."""
        if is_first():
            super().finish()


class SharedNoise:
    """The first process's samples and noise, in every process.

    ``own``: a NoiseSource, asked in the first process only.
    """

    def __init__(self, own: NoiseSource) -> None:
        self._own = own
        self.name, self.for_release = own.name, own.for_release

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in vars(NoiseSource):
            raise AttributeError(name)  # copying and pickling ask, before there is an own
        return partial(from_first, getattr(self._own, name))
