"""Pair AUC on private labelled pairs: from noisy counts of their distances, with intervals.

The counts are those of error curves (`pairveil.learners.score_counts`); what is made of them here is
post-processing (docs/theory/selection.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.isotonic import IsotonicRegression

from pairveil.array_types import FloatArray
from pairveil.data.counted import counted_pairs
from pairveil.errors import InputError
from pairveil.evaluation.error_curve import independent_share
from pairveil.learners.counting import stated_plainly
from pairveil.learners.inputs import as_labels
from pairveil.learners.parameters import is_number
from pairveil.learners.preparing import Prepared
from pairveil.learners.score_counts import NoisyScores, PrivateScoreCounts, cells_of, decoder
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms.gaussian import GAUSSIAN
from pairveil.privacy.units import Adjacency, Unit
from pairveil.release.error_curve import upper_end

N_CELLS, DECADES = 256, 3.0
"""Distances are counted by their logarithm, from a thousandth of the longest possible one (public) up."""

_BINS = 24
"""Cells are joined to so many of about equal size: more would add noise, fewer would tie more pairs."""


class Auc(NamedTuple):
    """A pair AUC with noise, and an interval that holds sampling and noise."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PairAuc:
    """What an evaluation on private pairs releases.

    Attributes
    ----------
    aucs : tuple of Auc
        One for each metric, on the same pairs.
    confidence : float
        Of all intervals together.
    effective_share : float
        Pairs that share people are not independent: intervals count this share of them.
    certificate : Certificate or None
        None where epsilon is infinite.
    """

    aucs: tuple[Auc, ...]
    confidence: float
    effective_share: float
    certificate: Certificate | None


class AucPlan(NamedTuple):
    """An evaluation that is ready to be released; nothing was spent yet."""

    counter: PrivateScoreCounts
    prepared: Prepared
    confidence: float
    share: float

    def run(self, accountant: PrivacyLedger | None = None, checkpoint: Any = None) -> PairAuc:
        """Charge and release; whoever gives a checkpoint removes it when the result is safe."""
        self.counter.accountant = accountant
        self.counter.fit(self.prepared, checkpoint=checkpoint, keep_checkpoint=True)
        counts, n = self.counter.counts_, self.counter.n_scores
        aucs = tuple(auc_of(counts, score, self.confidence, self.share) for score in range(n))
        return PairAuc(aucs, self.confidence, self.share, self.counter.certificate_)


def private_pair_auc(
    distances: ArrayLike,
    y: ArrayLike,
    pairs: Any,
    epsilon: float,
    delta: float,
    longest: ArrayLike,
    unit: Unit = "relationship",
    accountant: PrivacyLedger | None = None,
    **options: Any,
) -> PairAuc:
    """How often a dissimilar pair is farther apart than a similar one, from private labelled pairs.

    Parameters
    ----------
    distances : array of shape (K,) or (K, n_metrics)
        Of each pair, by one metric or several that are compared on the same pairs.
    y : array of shape (K,)
        +1 similar, -1 dissimilar.
    pairs : (K, 2) array of ids, or None
        Who is in each pair, for kappa; None goes with ``unit='pair'`` alone.
    epsilon, delta, unit
        The promise for this release, all metrics together.
    longest : float, or one for each metric
        The longest distance that is possible (public); longer ones count as this long.
    accountant : PrivacyLedger, optional
        Charged before any noise is drawn.
    **options
        ``adjacency``, ``mechanism``, ``confidence`` (0.95), ``together`` and ``random_state``, as for
        `error_curve`.

    Returns
    -------
    PairAuc

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, -1], 5000)
    >>> near = np.abs(rng.normal(np.where(y > 0, 0.5, 0.8), 0.2))
    >>> people = np.arange(20_000).reshape(-1, 2)
    >>> found = private_pair_auc(near, y, people, 1.0, 1e-5, longest=2.0, random_state=0).aucs[0]
    >>> found.low < 0.856 < found.high, round(found.value, 2)          # Phi(0.3 / 0.2 sqrt(2))
    (True, 0.86)
    """
    planned = plan_auc(distances, y, pairs, epsilon, delta, longest, unit, **options)
    return planned.run(accountant)


def plan_auc(
    distances: ArrayLike,
    y: ArrayLike,
    pairs: Any,
    epsilon: float,
    delta: float,
    longest: ArrayLike,
    unit: Unit = "relationship",
    *,
    adjacency: Adjacency = "zero-out",
    mechanism: str = GAUSSIAN.name,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = None,
    kappa: int | str = "auto",
    together: Mapping[Any, Any] | None = None,
    null: bool = False,
) -> AucPlan:
    """Check and plan an evaluation: `private_pair_auc` without its noise; ``null`` as for `as_labels`."""
    if not (is_number(confidence) and 0 < confidence < 1):
        raise InputError("confidence must be a number between 0 and 1, both excluded")
    cells = _cells(distances, longest)
    labels = as_labels(y, len(cells), null=null)
    data, positions = counted_pairs(cells, labels, pairs, stacklevel=3, together=together)
    counter = PrivateScoreCounts(
        (0.0, DECADES), N_CELLS, n_scores=cells.shape[1], epsilon=epsilon, delta=delta, unit=unit,
        select="all", adjacency=adjacency, mechanism=mechanism, random_state=random_state, kappa=kappa,
    )  # fmt: skip
    prepared = stated_plainly(counter.prepare_scores(data, positions))
    return AucPlan(counter, prepared, float(confidence), independent_share(data.pairs))


def _cells(distances: ArrayLike, longest: ArrayLike) -> NDArray[np.int64]:
    """The cell of each distance, on a public scale of logarithms; 0 holds the shortest."""
    lengths = np.asarray(distances, dtype=np.float64)
    lengths = lengths[:, None] if lengths.ndim == 1 else lengths
    if lengths.ndim != 2 or lengths.size == 0 or np.isnan(lengths).any():
        raise InputError("distances must be numbers, one row for each pair")
    most = np.broadcast_to(np.asarray(longest, dtype=np.float64), lengths.shape[1:])
    # A metric that gives all pairs the same distance, 0, has a score all the same: nothing is learned of it.
    share = np.divide(lengths, most, out=np.zeros_like(lengths), where=most > 0)
    nearness = -np.log10(np.clip(share, 10**-DECADES, 1.0))
    return cells_of(np.clip(nearness, 0.0, DECADES), (0.0, DECADES), N_CELLS)


def lengths_of(gaps: Any) -> FloatArray:
    """Lengths of rows; one that floats cannot hold is infinite: private features never stop a release.

    Examples
    --------
    >>> lengths_of([[3.0, 4.0], [float("inf"), float("nan")]])
    array([ 5., inf])
    """
    found = np.linalg.norm(np.asarray(gaps), axis=1)
    return np.where(np.isnan(found), np.inf, found)


def longest_distance(components: Any, column_scale: Any = None, data_norm: float = 1.0) -> float:
    """The longest distance of two people whose rows are as long as a fit allows; public.

    Examples
    --------
    >>> longest_distance([[3.0, 0.0]])
    6.0
    """
    matrix = np.asarray(components, dtype=np.float64)
    scale = np.ones(matrix.shape[1]) if column_scale is None else np.asarray(column_scale)
    on_scale = np.divide(matrix, scale, out=np.zeros_like(matrix), where=scale > 0)
    return 2 * data_norm * float(np.linalg.norm(on_scale, 2))


def auc_of(released: NoisyScores, score: int, confidence: float, share: float) -> Auc:
    """AUC and interval of one score of what was released; post-processing."""
    matrix = decoder(released.sums.shape[1])
    both = released.sums[2 * score : 2 * score + 2]
    edges = _edges(both.sum(axis=0) @ matrix.T)
    # Counts of the joined cells are what the sums above one edge exceed those above the last one by.
    encode = np.diff(matrix[edges], axis=0, prepend=0.0)
    similar, dissimilar = both @ encode.T
    n_similar, n_dissimilar = float(similar.sum()), float(dissimilar.sum())
    tail = (1 - confidence) / (4 * len(released.sums) / 2)  # sides, sampling and noise, metrics
    z = -float(ndtri(tail))
    n_noise = released.noise * float(np.linalg.norm(matrix[-1]))
    if min(n_similar, n_dissimilar) <= z * n_noise:
        return Auc(0.5, 0.0, 1.0)  # perhaps there are none of a kind
    # AUC = sum_c g_c (pairs of the other kind that are farther, and half of those that tie) / (n m).
    farther = np.triu(np.ones((len(encode), len(encode))), 1) + 0.5 * np.eye(len(encode))
    of_similar, of_dissimilar = farther @ dissimilar / n_dissimilar, similar @ farther / n_similar
    value = float(similar @ of_similar) / n_similar
    # The noise enters through either kind, and through both at once.
    moved = np.linalg.norm(encode.T @ (of_similar - value)) / n_similar
    other = np.linalg.norm(encode.T @ (of_dissimilar - value)) / n_dissimilar
    twice = np.linalg.norm(encode.T @ farther @ encode) / (n_similar * n_dissimilar)
    noise = z * released.noise * float(np.sqrt(moved**2 + other**2 + (released.noise * twice) ** 2))
    n = share * (min(n_similar, n_dissimilar) - z * n_noise)
    value = min(max(value, 0.0), 1.0)
    most, least = min(value + noise, 1.0), max(value - noise, 0.0)
    # No AUC varies more than a share of the rarer kind of pairs does (van Dantzig 1951).
    high = float(upper_end(most * n, n, tail))
    low = float(1 - upper_end((1 - least) * n, n, tail))
    return Auc(value, min(low, value), max(high, value))


def _edges(above: FloatArray) -> NDArray[np.int64]:
    """The cells whose lower edges part the pairs into bins of about equal size, by noisy counts."""
    rising = IsotonicRegression().fit_transform(np.arange(len(above)), above)
    wanted = rising[-1] * np.arange(1, _BINS) / _BINS
    last = len(above) - 1
    # Where noise has made the number of all pairs negative, what is wanted of it lies above all of them.
    found = np.minimum(np.searchsorted(rising, wanted), last)
    return np.unique(np.append(found, last)).astype(np.int64)
