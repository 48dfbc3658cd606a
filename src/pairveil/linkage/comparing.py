"""Comparison levels of two texts by shared bigrams: a public rule, for those who have no comparisons yet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError


class LabelledLevels(NamedTuple):
    """What `PrivateLinkageModel.fit` takes, in its order, and the names of the comparisons."""

    levels: NDArray[np.int64]  # (K, C)
    labels: NDArray[np.int8]
    pairs: NDArray[Any]  # (K, 2) ids
    n_levels: tuple[int, ...] | None  # public; None where nobody said
    names: tuple[str, ...]


def text_levels(
    left: Sequence[Any], right: Sequence[Any], cuts: Sequence[float] = (0.4, 0.7)
) -> NDArray[np.int64]:
    """How well the texts of each row agree: -1 null, 0 not at all, the highest level equal.

    Parameters
    ----------
    left, right : sequences
        Texts; None, NaN and empty texts are null.
    cuts : ascending numbers between 0 and 1
        A Dice similarity of bigrams from each of them on is one level more; equal texts are one above all.

    Examples
    --------
    >>> text_levels(["garcia", "garcia", "garcia", None], ["garcia", "garzia", "smith", "smith"]).tolist()
    [3, 2, 0, -1]
    """
    bounds = [float(cut) for cut in cuts]
    if bounds != sorted(bounds) or not all(0 < cut < 1 for cut in bounds):
        raise InputError("cuts must be ascending numbers between 0 and 1")
    if len(left) != len(right):
        raise InputError(
            f"{len(left)} texts are compared with {len(right)}; both need a row a pair"
        )
    return np.array(
        [_level(a, b, bounds) for a, b in zip(left, right, strict=True)], dtype=np.int64
    )


def _level(left: Any, right: Any, bounds: list[float]) -> int:
    if not (isinstance(left, str) and isinstance(right, str) and left and right):
        return -1
    if left == right:
        return len(bounds) + 1
    one, other = _bigrams(left), _bigrams(right)
    similarity = 2 * len(one & other) / (len(one) + len(other))
    return sum(similarity >= cut for cut in bounds)


@lru_cache(maxsize=1 << 16)
def _bigrams(text: str) -> frozenset[str]:
    padded = f" {text} "
    return frozenset(padded[at : at + 2] for at in range(len(padded) - 1))
