"""Losses of pairs, from the embeddings of their two ends: one number a pair, and no pair sees another.

A loss of one's own is any function ``loss(left, right, labels)`` of two (n, k) tensors and n labels
(+1 similar, -1 dissimilar) that returns n numbers, each from its own row alone.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from pairveil.errors import InputError

PairLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
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


LOSSES: dict[str, PairLoss] = {
    "contrastive": contrastive,
    "cosine": cosine,
    "logistic": logistic,
}


def loss_named(loss: str | PairLoss) -> tuple[str, PairLoss]:
    """A loss and its name; a function is taken as it is.

    Examples
    --------
    >>> loss_named("cosine")[0]
    'cosine'
    """
    if callable(loss):
        return getattr(loss, "__name__", type(loss).__name__), loss
    if loss not in LOSSES:
        raise InputError(
            f"loss must be one of {', '.join(LOSSES)}, or a function of the embeddings of pairs. Losses that "
            "couple the pairs of a batch (miners, cross-batch memory, in-batch negatives) have no bound on "
            "what one pair contributes"
        )
    return loss, LOSSES[loss]
