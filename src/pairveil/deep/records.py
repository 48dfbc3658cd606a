"""Kinds of records that go through a network: pairs, groups of people, and tuples with an anchor.

A record is ``size`` people and what is *said* of them: small whole numbers, all 0 where the record is null.
Its loss is one number, a function of its own people's embeddings and of what is said of them, so that its
gradient is clipped as a whole and no record sees another (docs/theory/deep.md).

A loss of one's own is any function ``loss(left, right, labels)`` of two (n, k) tensors and n labels
(+1 similar, -1 dissimilar), or of tuples ``loss(anchor, positive, negative)``, that returns n numbers, each
from its own row alone. Miners, cross-batch memory and losses of whole batches, as pytorch-metric-learning has
them, choose or weigh pairs by what else is in a batch: no bound holds on what one pair contributes, and they
are refused.
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
from torch.nn import functional as F

from pairveil.array_types import IntArray
from pairveil.errors import InputError, PrivacyLeakWarning, warn
from pairveil.records.kinds import KINDS, VACANT

PairLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From left, right (n, k) and labels (n,) to one number a pair."""

TripletLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From anchor, positive, negative (n, k) to one number a triplet."""


@dataclass(frozen=True, eq=False)
class PairRecords:
    """A pair of people and its label.

    Examples
    --------
    >>> from pairveil.deep.records import contrastive
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

    Examples
    --------
    >>> from pairveil.deep.records import contrastive
    >>> people = torch.tensor([[[0.0]], [[2.0]], [[9.0]]])
    >>> GroupRecords(3, contrastive).losses(people, torch.tensor([[1.0, -1.0, 0.0]]))
    tensor([1.])
    """

    size: int
    loss: PairLoss | TripletLoss
    triplets: bool = False  # of everybody with somebody similar and somebody dissimilar

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
            ends = (embedded.index_select(0, first), embedded.index_select(0, second))
            return _mean(self.loss, ends, said.T)
        slot = torch.zeros(self.size, self.size, dtype=torch.int64, device=said.device)
        slot[first, second] = slot[second, first] = torch.arange(len(first), device=said.device)
        roles = torch.tensor(list(itertools.permutations(range(self.size), 3)), device=said.device)
        anchor, positive, negative = roles.T
        labels = said.T
        plays = (labels[slot[anchor, positive]] > 0) & (labels[slot[anchor, negative]] < 0)
        # Not embedded[anchor]: with several threads the slopes of that are added up in any order.
        played = tuple(embedded.index_select(0, role) for role in (anchor, positive, negative))
        return _mean(self.loss, played, plays.to(embedded.dtype), labelled=False)


@dataclass(frozen=True, eq=False)
class TupleRecords:
    """An anchor, a positive and negatives: the mean loss over the negatives that are there.

    ``size``: members of a tuple.

    Examples
    --------
    >>> from pairveil.deep.records import triplet
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


NetworkRecords = PairRecords | GroupRecords | TupleRecords


def something_said(said: NDArray[Any]) -> NDArray[np.bool_]:
    """Of which records something is said."""
    found: NDArray[np.bool_] = np.any(said, axis=tuple(range(1, said.ndim)))
    return found


def is_null(said: Tensor) -> Tensor:
    """Whether nothing is said of a record."""
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


def check_apart(records: NetworkRecords, embedded: Tensor, said: Tensor) -> None:
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


def _losses_and_slopes(records: NetworkRecords, embedded: Tensor, said: Tensor) -> Tensor:
    """For each record its loss and the slopes of all losses at its embeddings, one row a record."""
    given = embedded.detach().requires_grad_(True)
    losses = records.losses(given, said)
    slopes = torch.zeros_like(given)
    if losses.requires_grad:
        (slopes,) = torch.autograd.grad(losses.sum(), given)
    by_record = slopes.transpose(0, 1).reshape(len(said), -1)
    return torch.cat([losses.detach()[:, None], by_record], dim=1).double()


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two results are the same numbers, all of them; what is no number is one."""
    return bool(torch.equal(one.nan_to_num(), other.nan_to_num()))


# ---- what users of pytorch-metric-learning bring ---------------------------------------------------

_OF_TRIPLETS = (
    "for triplets, loss='triplet' or torch.nn.TripletMarginLoss(reduction='none') is the right one"
)
_REFUSED = (
    "{what} of pytorch-metric-learning couples the pairs of a batch, so that no bound holds on what one pair "
    "contributes: give pairs that were chosen without looking at data, and a loss of single pairs such as "
    "ContrastiveLoss; " + _OF_TRIPLETS
)


def from_indices(indices_tuple: Any) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """An ``indices_tuple`` as what `PrivateMetricTrainer.fit` takes: pairs and labels, or triplets and None.

    Who is paired with whom is public: indices that a miner found tell of data and are no pairs to promise
    anything for. Where they come from cannot be seen here, so a `PrivacyLeakWarning` says so.

    Parameters
    ----------
    indices_tuple : tuple of 1-d arrays or tensors
        (anchors, positives, anchors, negatives), or (anchors, positives, negatives).

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):  # these were drawn, and not mined
    ...     pairs, labels = from_indices(([0, 1], [2, 3], [0], [1]))
    ...     triplets, _ = from_indices(([0], [2], [1]))
    >>> pairs.tolist(), labels.tolist(), triplets.tolist()
    ([[0, 2], [1, 3], [0, 1]], [1, 1, -1], [[0, 2, 1]])
    """
    if not isinstance(indices_tuple, tuple | list) or len(indices_tuple) not in (3, 4):
        raise InputError("indices_tuple must hold three or four arrays of row numbers")
    given = [
        np.asarray(one.detach().cpu() if hasattr(one, "detach") else one) for one in indices_tuple
    ]
    if any(one.ndim != 1 or (one.size and one.dtype.kind not in "iu") for one in given):
        raise InputError("indices_tuple must hold arrays of row numbers")
    arrays = [one.astype(np.int64) for one in given]
    together = (arrays,) if len(arrays) == 3 else (arrays[:2], arrays[2:])
    if any(len({len(one) for one in part}) != 1 for part in together):
        raise InputError("the arrays of indices_tuple must be as long as one another")
    warn(
        "who is paired with whom is taken to be public: if a miner or labels chose these indices, they tell "
        "of data, and the certificate does not cover that; draw pairs with design_pairs or sample_tuples",
        PrivacyLeakWarning,
    )
    if len(arrays) == 3:
        return np.column_stack(arrays), None
    pairs = [np.column_stack(part) for part in together]
    labels = np.repeat(np.array([1, -1]), [len(one) for one in pairs])
    return np.concatenate(pairs), labels


def is_foreign(loss: Any) -> bool:
    """Whether a loss (or miner, or memory) is one of pytorch-metric-learning's."""
    return any(hasattr(loss, name) for name in ("compute_loss", "mine", "embedding_memory"))


def pair_loss_of(loss: Any) -> PairLoss:
    """A loss of pytorch-metric-learning as one of single pairs; refused where it is none.

    Every pair is asked for twice, as a similar and as a dissimilar one, and its label chooses: no shape that
    the loss sees depends on labels.
    """
    if hasattr(loss, "embedding_memory") or not hasattr(loss, "compute_loss"):
        raise InputError(_REFUSED.format(what=type(loss).__name__))
    return _SinglePairs(loss)


class _SinglePairs:
    """An object, not a closure: every pass copies it, and with it the loss and what that may keep."""

    def __init__(self, loss: Any) -> None:
        self.loss, self.__name__ = loss, type(loss).__name__

    def __call__(self, left: Tensor, right: Tensor, labels: Tensor) -> Tensor:
        n = len(labels)
        # It gives no loss for a single pair, so that one is shown twice.
        ends = [one if n > 1 else torch.cat([one, one]) for one in (left, right)]
        rows = torch.arange(len(ends[0]), device=left.device)
        try:
            found = self.loss.compute_loss(ends[0], None, (rows, rows, rows, rows), ends[1], None)
            kinds = {name: part["reduction_type"] for name, part in found.items()}
        except (AssertionError, AttributeError, KeyError, TypeError, ValueError):
            kinds = {}
        if kinds != {"pos_loss": "pos_pair", "neg_loss": "neg_pair"}:
            raise InputError(_REFUSED.format(what=self.__name__))
        near, far = (found[name]["losses"][:n] for name in ("pos_loss", "neg_loss"))
        return torch.where(labels > 0, near, far)


# ---- losses ----------------------------------------------------------------------------------------

_TINY = 1e-12  # inside a square root, whose slope has no bound at 0


def contrastive(left: Tensor, right: Tensor, labels: Tensor, margin: float = 1.0) -> Tensor:
    """Similar pairs close, dissimilar ones at least ``margin`` apart (the paper's loss).

    Examples
    --------
    >>> ends = torch.zeros(2, 3), torch.tensor([[0.6, 0.0, 0.0], [0.6, 0.0, 0.0]])
    >>> contrastive(*ends, torch.tensor([1.0, -1.0]))
    tensor([0.1800, 0.0800])
    """
    square = (left - right).pow(2).sum(dim=1)
    apart = F.relu(margin - (square + _TINY).sqrt()).pow(2)
    return 0.5 * torch.where(labels > 0, square, apart)


def cosine(left: Tensor, right: Tensor, labels: Tensor, margin: float = 0.0) -> Tensor:
    """Similar pairs in one direction, dissimilar ones with a cosine of at most ``margin``.

    Examples
    --------
    >>> cosine(torch.eye(2), torch.eye(2), torch.tensor([1.0, -1.0]))
    tensor([0., 1.])
    """
    alike = F.cosine_similarity(left, right, dim=1, eps=1e-6)
    return torch.where(labels > 0, 1 - alike, F.relu(alike - margin))


def logistic(left: Tensor, right: Tensor, labels: Tensor, margin: float = 1.0) -> Tensor:
    """Cross-entropy of the match probability ``1 / (1 + exp(||l - r||^2 - margin))``.

    Examples
    --------
    >>> logistic(torch.zeros(1, 2), torch.ones(1, 2), torch.tensor([-1.0]))
    tensor([0.3133])
    """
    return F.softplus(labels * ((left - right).pow(2).sum(dim=1) - margin))


def triplet(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0) -> Tensor:
    """The negative further from the anchor than the positive, by ``margin`` in squared distances.

    Examples
    --------
    >>> triplet(torch.zeros(1, 1), torch.full((1, 1), 0.5), torch.ones(1, 1))
    tensor([0.2500])
    """
    near, far = ((anchor - other).pow(2).sum(dim=1) for other in (positive, negative))
    return F.relu(margin + near - far)


LOSSES: dict[str, PairLoss] = {"contrastive": contrastive, "cosine": cosine, "logistic": logistic}

TRIPLET_LOSSES: dict[str, TripletLoss] = {"triplet": triplet}

COUPLED = (
    "losses that couple the pairs of a batch (miners, cross-batch memory, in-batch negatives) have no bound "
    "on what one pair contributes"
)


def with_loss(kind: str, size: int, loss: str | PairLoss) -> tuple[str, NetworkRecords]:
    """Records of some kind with their loss, and the loss's name.

    Groups take a loss of pairs, or 'triplet'; tuples one of triplets. A loss of single pairs of
    pytorch-metric-learning is taken too.
    """
    if is_foreign(loss) and KINDS[kind].on_tuples:
        raise InputError(
            f"losses of pytorch-metric-learning take no triplets of ours: {_OF_TRIPLETS}"
        )
    if is_foreign(loss):
        loss = pair_loss_of(loss)
    taken = {"pairs": LOSSES, "groups": LOSSES | TRIPLET_LOSSES, "tuples": TRIPLET_LOSSES}[kind]
    if not callable(loss) and loss not in taken:
        raise InputError(
            f"loss of {kind} must be one of {', '.join(taken)}, or a function of embeddings; {COUPLED}"
        )
    name = getattr(loss, "__name__", type(loss).__name__) if callable(loss) else loss
    function = loss if callable(loss) else taken[loss]
    if KINDS[kind].pairwise:
        return name, PairRecords(function)
    if KINDS[kind].on_tuples:
        return name, TupleRecords(size, function)
    if loss == "triplet" and size < 3:
        raise InputError("a triplet needs three people: these groups have two")
    return name, GroupRecords(size, function, triplets=loss == "triplet")
