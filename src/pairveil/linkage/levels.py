"""Comparison levels of two texts by shared bigrams: a public rule, for those who have no comparisons yet.

Random pairs of records: they hardly ever match, so they say without a clerk how often others agree.

From noisy counts to probabilities of levels: post-processing, so it costs no privacy.

Before looking, matches are believed to agree mostly and others hardly ever: each count is Gamma distributed,
with shapes that are public and a scale from the noisy number of labels. A noisy count is replaced by its mean
given the noise on it. Where counts are large the belief is lost in them; where noise is all, it decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import IsotonicRegression

from pairveil.array_types import FloatArray
from pairveil.errors import InputError
from pairveil.learners.inputs import is_whole
from pairveil.records.tables import as_ids, same_kind

# ---- a public rule, for those who have no comparisons yet ----------------------------------------


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


# ---- they hardly ever match, so they say without a clerk how often others agree ------------------


def random_pairs(
    ids: ArrayLike, n: int, labelled: ArrayLike = (), others: ArrayLike | None = None
) -> NDArray[Any]:
    """At most n pairs along a path through random records that no labelled pair has.

    Compared, and added with the label -1 to the labelled pairs, they make u many times more precise: labels
    are few, records are many. They are counted and paid for like all pairs. A path through records of their
    own has the kappa of any path: 1 for a relationship, 2 for a record. With ``select='matching'`` every
    other pair of it counts, and kappa is 1 for a record too. Which records are drawn follows from ids alone.

    Parameters
    ----------
    ids : array of shape (n_records,)
        All records, or those of the first of two tables.
    n : int
        How many pairs; there are fewer where records are.
    labelled : array of ids, any shape
        Records of the labelled pairs.
    others : array of ids, optional
        Records of the second table: each pair then has one of either.

    Examples
    --------
    >>> random_pairs(["a", "b", "c", "d", "e"], 2, labelled=[["a", "b"]]).shape
    (2, 2)
    """
    if not (is_whole(n) and n >= 0):
        raise InputError("the number of random pairs must be a whole number, 0 or more")
    taken = as_ids(np.ravel(np.asarray(labelled)), "the ids of the labelled pairs")
    rng = np.random.default_rng(0)
    sides = [
        rng.permutation(_without(*same_kind(as_ids(np.asarray(side), "the ids"), taken)))
        for side in (ids, others)
        if side is not None
    ]
    short = min(map(len, sides))
    walk = np.column_stack([side[:short] for side in sides]).ravel()[: n + 1]  # from table to table
    return np.column_stack([walk[:-1], walk[1:]])


def _without(ids: NDArray[Any], taken: NDArray[Any]) -> NDArray[Any]:
    """The ids, each once and in order, that are not taken; `numpy.setdiff1d` is quadratic on text."""
    found, known = np.unique(ids), set(taken.tolist())
    return found[[one not in known for one in found.tolist()]]


# ---- From noisy counts to probabilities of levels: post-processing, so it costs no privacy -------

MATCHES_BEST, MATCHES_FALL = 0.6, 0.3
"""Belief on matches: the share of the highest level, and the factor by which shares fall below it."""

OTHERS_AGREE, OTHERS_AGREE_OF_TWO, OTHERS_FALL = 0.05, 0.3, 0.5
"""On other pairs: the share of all levels above the lowest; the same where there are two levels only (sex,
state: agreeing by chance is common there); and the factor by which shares fall from the second level on."""

MATCHES_WEIGHT, OTHERS_WEIGHT = 6.0, 4.0
"""How many pairs the belief is worth: the sum of the shapes."""

LEAST_COUNT = 0.5
"""Added to every count: no probability is zero, whatever was sampled."""

_REACH, _POINTS = 9.0, 400  # of the quadrature: standard deviations, and points on either grid


def belief(size: int, *, matches: bool) -> FloatArray:
    """Shares of the levels of a comparison that are believed before any pair is seen, the lowest first.

    Examples
    --------
    >>> belief(4, matches=True).round(3), belief(4, matches=False).round(3)
    (array([0.026, 0.086, 0.288, 0.6  ]), array([0.95 , 0.029, 0.014, 0.007]))
    """
    if size == 1:
        return np.ones(1)
    steps = np.arange(size - 1)
    ladder = MATCHES_FALL ** steps[::-1] if matches else OTHERS_FALL**steps
    ladder /= ladder.sum()
    if matches:
        return np.append((1 - MATCHES_BEST) * ladder, MATCHES_BEST)
    agree = OTHERS_AGREE_OF_TWO if size == 2 else OTHERS_AGREE
    return np.append(1 - agree, agree * ladder)


def less_noise(counts: FloatArray, noise: float, total: float, *, matches: bool) -> FloatArray:
    """Noisy counts of the levels of one comparison, less their noise: m or u is their shares.

    ``noise``: its standard deviation on each. ``total``: about how many labels of this kind there are.

    Examples
    --------
    >>> less_noise(np.array([10.0, 30.0, 160.0]), 0.0, 200.0, matches=True)
    array([ 10.5,  30.5, 160.5])
    >>> less_noise(np.array([-40.0, 10.0]), 30.0, 50.0, matches=False).round()
    array([19., 13.])
    """
    if len(counts) == 1 or noise == 0:
        return np.maximum(counts, 0.0) + LEAST_COUNT
    weight = MATCHES_WEIGHT if matches else OTHERS_WEIGHT
    means = [
        posterior_mean(count, noise, weight * share, total / weight)
        for count, share in zip(counts, belief(len(counts), matches=matches), strict=True)
    ]
    return np.array(means) + LEAST_COUNT


def posterior_mean(count: float, noise: float, shape: float, scale: float) -> float:
    """Mean of a Gamma(shape, scale) variable x, given that x plus Gaussian noise is ``count``.

    By the trapezoidal rule in log x, on one grid that follows the noise and one that goes down to 0.

    Examples
    --------
    >>> round(posterior_mean(1000.0, 1.0, 3.0, 500.0), 1), round(posterior_mean(-50.0, 20.0, 0.4, 50.0), 1)
    (1000.0, 2.4)
    """
    low, high = max(count - _REACH * noise, 0.0), max(count, 0.0) + _REACH * noise
    near = np.linspace(low, high, _POINTS + 1)[1:]
    x = np.union1d(near, np.geomspace(1e-6 * noise, high, _POINTS))
    # The density of log x is x^shape exp(-x / scale), up to a factor.
    log_density = shape * np.log(x) - x / scale - ((count - x) / noise) ** 2 / 2
    density = np.exp(log_density - log_density.max())
    place = np.log(x)
    below = (
        density[0] / shape
    )  # all of it that lies under the first point, where it is x^shape alone
    return float(np.trapezoid(density * x, place) / (np.trapezoid(density, place) + below))


def monotone(m: FloatArray, u: FloatArray) -> FloatArray:
    """m with m / u not falling from level to level; levels out of order share one ratio.

    Of all m with a monotone ratio it is the nearest to the given one in squares weighted by u.

    Examples
    --------
    >>> monotone(np.array([0.1, 0.5, 0.4]), np.array([0.6, 0.2, 0.2])).round(3)
    array([0.1 , 0.45, 0.45])
    """
    if len(m) < 2:
        return m
    ratio = IsotonicRegression().fit_transform(np.arange(len(m)), m / u, sample_weight=u)
    raised: FloatArray = ratio * u
    return np.asarray(raised / raised.sum())


def level_frequencies(levels: NDArray[np.int64], n_levels: Sequence[int]) -> list[FloatArray]:
    """How often each level occurs in public or random pairs: the ``u`` of a model that pays for m alone.

    Parameters
    ----------
    levels : integer array of shape (K, C)
        -1 is null.
    n_levels : sequence of int

    Examples
    --------
    >>> level_frequencies(np.array([[0], [0], [1], [-1]]), [2])
    [array([0.625, 0.375])]
    """
    found = []
    for column, size in enumerate(n_levels):
        known = levels[:, column][levels[:, column] >= 0]
        count = np.bincount(known, minlength=size) + LEAST_COUNT
        found.append(count / count.sum())
    return found
