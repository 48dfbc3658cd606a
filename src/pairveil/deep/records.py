"""Kinds of records that go through a network: pairs, groups of people, and tuples with an anchor.

A record is ``size`` people and what is *said* of them: small whole numbers, all 0 where the record is null.
Its loss is one number, a function of its own people's embeddings and of what is said of them, so that its
gradient is clipped as a whole and no record sees another (docs/theory/deep.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pairveil.array_types import IntArray
from pairveil.errors import InputError
from pairveil.records.kinds import VACANT

PairLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From left, right (n, k) and labels (n,) to one number a pair."""
TripletLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From anchor, positive, negative (n, k) to one number a triplet."""


@dataclass(frozen=True, eq=False)
class PairRecords:
    """A pair of people and its label.

    Examples
    --------
    >>> from pairveil.deep.losses import contrastive
    >>> ends = torch.tensor([[[0.0]], [[2.0]]])  # by place, then by record
    >>> PairRecords(contrastive).losses(ends, torch.tensor([1.0]))
    tensor([2.])
    """

    loss: PairLoss
    size: ClassVar[int] = 2
    trial: ClassVar[tuple[Any, ...]] = (1, -1, 1, -1)  # what is said of four records that are tried

    def contents(self, data: Any, rows: IntArray) -> tuple[IntArray, NDArray[Any]]:
        """Which people (n, size) some records hold, and what is said of them (n, ...)."""
        return data.pairs[rows], data.labels[rows]

    def losses(self, embedded: Tensor, said: Tensor) -> Tensor:
        """One number a record, from embeddings (size, n, k)."""
        return _present(self.loss, embedded[0], embedded[1], said)


@dataclass(frozen=True, eq=False)
class GroupRecords:
    """A group of people and the labels of the pairs inside it: the mean loss over those that are not null.

    Parameters
    ----------
    size : int
        People of a group.
    loss : PairLoss or TripletLoss
    triplets : bool
        Whether the loss is one of triplets: everybody with somebody similar and somebody dissimilar.

    Examples
    --------
    >>> from pairveil.deep.losses import contrastive
    >>> people = torch.tensor([[[0.0]], [[2.0]], [[9.0]]])
    >>> GroupRecords(3, contrastive).losses(people, torch.tensor([[1.0, -1.0, 0.0]]))
    tensor([1.])
    """

    size: int
    loss: PairLoss | TripletLoss
    triplets: bool = False

    @property
    def trial(self) -> tuple[Any, ...]:
        """Labels that leave each kind of pair in each of four groups."""
        places = self.size * (self.size - 1) // 2
        return tuple(tuple(np.resize(start, places)) for start in ((1, -1), (-1, 1)) * 2)

    def contents(self, data: Any, rows: IntArray) -> tuple[IntArray, NDArray[Any]]:
        """People and the labels of their pairs (0, 1), (0, 2), ..., (1, 2), ..."""
        return data.members[rows], data.labels[rows]

    def losses(self, embedded: Tensor, said: Tensor) -> Tensor:
        """Mean over a group's own pairs, or triplets."""
        first, second = torch.triu_indices(self.size, self.size, 1, device=said.device)
        if not self.triplets:
            return _mean(self.loss, (embedded[first], embedded[second]), said.T)
        slot = torch.zeros(self.size, self.size, dtype=torch.int64, device=said.device)
        slot[first, second] = slot[second, first] = torch.arange(len(first), device=said.device)
        roles = torch.tensor(list(itertools.permutations(range(self.size), 3)), device=said.device)
        anchor, positive, negative = roles.T
        labels = said.T
        plays = (labels[slot[anchor, positive]] > 0) & (labels[slot[anchor, negative]] < 0)
        played = (embedded[anchor], embedded[positive], embedded[negative])
        return _mean(self.loss, played, plays.to(embedded.dtype), labelled=False)


@dataclass(frozen=True, eq=False)
class TupleRecords:
    """An anchor, a positive and negatives: the mean loss over the negatives that are there.

    ``size``: members of a tuple.

    Examples
    --------
    >>> from pairveil.deep.losses import triplet
    >>> people = torch.tensor([[[0.0]], [[0.0]], [[3.0]], [[0.5]]])
    >>> TupleRecords(4, triplet).losses(people, torch.tensor([4.0]))  # no loss, and 1 - 0.25
    tensor([0.3750])
    """

    size: int
    loss: TripletLoss

    @property
    def trial(self) -> tuple[Any, ...]:
        """Members that play a part, in four tuples."""
        return (self.size, 3, self.size, 3)

    def contents(self, data: Any, rows: IntArray) -> tuple[IntArray, NDArray[Any]]:
        """People by role, and how many play one."""
        order = data.order[rows]
        people = np.take_along_axis(data.tuples[rows], np.maximum(order, 0).astype(np.int64), 1)
        played = order >= 0
        return np.where(played, people, VACANT), played.sum(axis=1).astype(np.int8)

    def losses(self, embedded: Tensor, said: Tensor) -> Tensor:
        """Mean over the negatives."""
        negatives = self.size - 2
        places = torch.arange(2, self.size, device=said.device)
        there = (said[None] > places[:, None]).to(embedded.dtype)
        played = (*(embedded[role].expand(negatives, -1, -1) for role in (0, 1)), embedded[2:])
        return _mean(self.loss, played, there, labelled=False)


Records = PairRecords | GroupRecords | TupleRecords


def something_said(said: NDArray[Any]) -> NDArray[np.bool_]:
    """Of which records something is said.

    Examples
    --------
    >>> something_said(np.zeros((0, 3))), something_said(np.array([0, -1]))
    (array([], dtype=bool), array([False,  True]))
    """
    found: NDArray[np.bool_] = np.any(said, axis=tuple(range(1, said.ndim)))
    return found


def is_null(said: Tensor) -> Tensor:
    """Whether nothing is said of a record.

    Examples
    --------
    >>> is_null(torch.tensor([[0, 1], [0, 0]]))
    tensor([False,  True])
    """
    found: Tensor = (said.reshape(len(said), -1) == 0).all(dim=1)
    return found


def _mean(loss: Any, ends: tuple[Tensor, ...], said: Tensor, *, labelled: bool = True) -> Tensor:
    """The mean of a loss over the parts (parts, n) of each of n records of which something is said."""
    flat = [one.reshape(-1, one.shape[-1]) for one in ends]
    values = _present(loss, *flat, said.reshape(-1), labelled=labelled).reshape(said.shape)
    return values.sum(dim=0) / (said != 0).sum(dim=0).clamp(min=1)


def _present(loss: Any, *given: Tensor, labelled: bool = True) -> Tensor:
    """A loss where something is said; elsewhere 0, without a slope even where the loss has none."""
    *ends, said = given
    null = said == 0
    held = [torch.where(null[:, None], one.detach(), one) for one in ends]
    values = loss(*held, said) if labelled else loss(*held)
    if not isinstance(values, Tensor) or values.shape != said.shape:
        got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        what = "pair" if labelled else "triplet"
        raise InputError(f"the loss must return one number a {what}: {len(said)}, not {got}")
    return torch.where(null, torch.zeros_like(values), values)


def check_apart(records: Records, embedded: Tensor, said: Tensor) -> None:
    """Refuse a loss in which one record moves another's number or slopes, or that remembers records.

    ``embedded``: Tensor of shape (size, n, k); of random people. ``said``: of the n records. The first four
    of them are changed in turn.
    """
    first, n = _losses_and_slopes(records, embedded, said), len(said)
    if not bool(torch.isfinite(first[:, 0]).any()):
        raise InputError("the loss gives no number on random people: nothing could be learned")
    for record, by in itertools.product(range(min(n, 4)), (1e9, 1e3, -1.0, 1e-3)):
        others, changed = embedded.clone(), said.clone()
        signs = torch.ones(records.size, 1, device=embedded.device, dtype=embedded.dtype)
        signs[1::2] = -1.0
        others[:, record] *= by * signs
        changed[record] = said[(record + 1) % n]
        kept = [row for row in range(n) if row != record]
        if not same_bits(_losses_and_slopes(records, others, changed)[kept], first[kept]):
            raise InputError(
                "the loss couples the pairs of a batch: changing one of them changes what another gives, "
                "so that no bound holds on what one pair contributes; write one of each pair's own row"
            )
    if not same_bits(_losses_and_slopes(records, embedded, said), first):
        raise InputError(
            "the loss gives the same pairs other numbers the second time: it keeps something of earlier "
            "pairs or draws at random, so that no bound holds on what one pair contributes"
        )


def _losses_and_slopes(records: Records, embedded: Tensor, said: Tensor) -> Tensor:
    """For each record its loss and the slopes of all losses at its embeddings, one row a record."""
    given = embedded.detach().requires_grad_(True)
    losses = records.losses(given, said)
    slopes = torch.zeros_like(given)
    if losses.requires_grad:
        (slopes,) = torch.autograd.grad(losses.sum(), given)
    by_record = slopes.transpose(0, 1).reshape(len(said), -1)
    return torch.cat([losses.detach()[:, None], by_record], dim=1).double()


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two results are the same numbers, all of them; what is no number is one.

    Examples
    --------
    >>> same_bits(torch.tensor([1.0, torch.nan]), torch.tensor([1.0, torch.nan]))
    True
    """
    return bool(torch.equal(one.nan_to_num(), other.nan_to_num()))
