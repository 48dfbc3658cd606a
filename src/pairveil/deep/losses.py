"""Losses of pairs and of triplets, from embeddings: one number each, and none sees another.

A loss of one's own is any function ``loss(left, right, labels)`` of two (n, k) tensors and n labels
(+1 similar, -1 dissimilar), or of tuples ``loss(anchor, positive, negative)``, that returns n numbers, each
from its own row alone.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from pairveil.deep.metric_learning import is_foreign, pair_loss_of
from pairveil.deep.records import (
    GroupRecords,
    PairLoss,
    PairRecords,
    Records,
    TripletLoss,
    TupleRecords,
)
from pairveil.errors import InputError

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


def records_of(kind: str, size: int, loss: str | PairLoss) -> tuple[str, Records]:
    """Records of some kind with their loss, and the loss's name.

    Parameters
    ----------
    kind : {'pairs', 'groups', 'tuples'}
    size : int
        People in a record.
    loss : str or callable
        Groups take a loss of pairs, or 'triplet'; tuples one of triplets. A loss of single pairs of
        pytorch-metric-learning is taken too.

    Examples
    --------
    >>> records_of("pairs", 2, "cosine")[0], records_of("groups", 4, "triplet")[1].triplets
    ('cosine', True)
    """
    if is_foreign(loss):
        loss = pair_loss_of(loss)
    taken = {"pairs": LOSSES, "groups": LOSSES | TRIPLET_LOSSES, "tuples": TRIPLET_LOSSES}[kind]
    if not callable(loss) and loss not in taken:
        raise InputError(
            f"loss of {kind} must be one of {', '.join(taken)}, or a function of embeddings; {COUPLED}"
        )
    name = getattr(loss, "__name__", type(loss).__name__) if callable(loss) else loss
    function = loss if callable(loss) else taken[loss]
    if kind == "pairs":
        return name, PairRecords(function)
    if kind == "tuples":
        return name, TupleRecords(size, function)
    if loss == "triplet" and size < 3:
        raise InputError("a triplet needs three people: these groups have two")
    return name, GroupRecords(size, function, triplets=loss == "triplet")
