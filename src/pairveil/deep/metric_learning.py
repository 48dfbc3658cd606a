"""What users of pytorch-metric-learning bring: indices of pairs or triplets, and losses of single pairs.

Its miners, its cross-batch memory and its losses of whole batches choose or weigh pairs by what else is in a
batch: no bound holds on what one pair contributes, and they are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pairveil.deep.records import PairLoss
from pairveil.errors import InputError

_REFUSED = (
    "{what} of pytorch-metric-learning couples the pairs of a batch, so that no bound holds on what one pair "
    "contributes: give pairs that were chosen without looking at data, and a loss of single pairs"
)


def from_indices(indices_tuple: Any) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """An ``indices_tuple`` as what `PrivateMetricTrainer.fit` takes: pairs and labels, or triplets and None.

    Who is paired with whom is public: indices that a miner found tell of data and are no pairs to promise
    anything for.

    Parameters
    ----------
    indices_tuple : tuple of 1-d arrays or tensors
        (anchors, positives, anchors, negatives), or (anchors, positives, negatives).

    Examples
    --------
    >>> pairs, labels = from_indices(([0, 1], [2, 3], [0], [1]))
    >>> pairs.tolist(), labels.tolist()
    ([[0, 2], [1, 3], [0, 1]], [1, 1, -1])
    >>> from_indices(([0], [2], [1]))[0].tolist()
    [[0, 2, 1]]
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
    if len(arrays) == 3:
        return np.column_stack(arrays), None
    pairs = [np.column_stack(part) for part in together]
    labels = np.repeat(np.array([1, -1]), [len(one) for one in pairs])
    return np.concatenate(pairs), labels


def is_foreign(loss: Any) -> bool:
    """Whether a loss (or miner, or memory) is one of pytorch-metric-learning's.

    Examples
    --------
    >>> is_foreign(len)
    False
    """
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
