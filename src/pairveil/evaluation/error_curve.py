"""Operating points: false matches and non-matches against the threshold, from private labelled pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.isotonic import IsotonicRegression

from pairveil.array_types import FloatArray
from pairveil.data.counted import counted_pairs
from pairveil.errors import InputError
from pairveil.learners.counting import stated_plainly
from pairveil.learners.inputs import as_labels
from pairveil.learners.parameters import is_number, is_whole
from pairveil.learners.preparing import Prepared
from pairveil.learners.score_counts import (
    QUERY,
    NoisyScores,
    PrivateScoreCounts,
    ScoreCounts,
    cells_of,
    decoder,
    edges_of,
)
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.units import Adjacency, Unit
from pairveil.release.error_curve import ErrorCurve, check_rate, pairs_needed, upper_end

N_CELLS = 96


def error_curve(
    scores: ArrayLike,
    y: ArrayLike,
    pairs: Any,
    epsilon: float,
    delta: float,
    score_range: tuple[float, float],
    unit: Unit = "relationship",
    accountant: PrivacyLedger | None = None,
    *,
    adjacency: Adjacency = "zero-out",
    select: str = "paths",
    confidence: float = 0.95,
    n_cells: int = N_CELLS,
    entity_records: int | None = None,
    together: Mapping[Any, Any] | None = None,
    random_state: int | np.random.Generator | None = None,
) -> ErrorCurve:
    """Error rates against the threshold, from the scores of private labelled pairs.

    Parameters
    ----------
    scores : array of shape (K,)
        Of any system; larger means more alike.
    y : array of shape (K,)
        +1 genuine (same person), -1 impostor.
    pairs : (K, 2) array of ids, or None
        Who is in each pair, for kappa; None goes with ``unit='pair'`` alone.
    epsilon, delta, unit, adjacency
        The promise for this release.
    select : {'paths', 'forest', 'matching', 'all'}
        Which pairs to use, by who is paired with whom alone: fewer pairs with a small kappa show smaller
        rates than all of them with a large one.
    score_range : (float, float)
        Public bounds of the scores, the finer the better: no score may lie outside.
    accountant : PrivacyLedger, optional
        Charged before any noise is drawn: with the model's, for instance.
    confidence : float
        Of the bands, for all thresholds together.
    n_cells : int
        Thresholds at which rates are released; between them they are interpolated.
    entity_records : int, optional
        At most so many records are of one person (public); without it a person is one id.
    together : mapping from id to value, optional
        A public value of each person: a household, a site. People with equal values change together, and
        the unit 'person' covers all of them; somebody whose value is None stands alone. Give the whole
        column, people without pairs too: a ledger tells by it whether two releases mean the same.
    random_state : int, Generator or None
        A seed makes it repeatable, and not for release.

    Returns
    -------
    ErrorCurve

    Raises
    ------
    InputError
        A score is NaN or outside the range, or labels or pairs are wrong. Nothing is charged then.
    """
    planned = plan_curve(
        scores, y, pairs, epsilon, delta, score_range, unit, adjacency=adjacency, select=select,
        confidence=confidence, n_cells=n_cells, entity_records=entity_records,
        together=together, random_state=random_state,
    )  # fmt: skip
    return planned.run(accountant)


class CurvePlan(NamedTuple):
    """An error curve that is ready to be released; nothing was spent yet.

    Attributes
    ----------
    counter : PrivateScoreCounts
    prepared : Prepared
    score_range : (float, float)
    confidence, share : float
        Of the bands; see `ErrorCurve`.
    """

    counter: PrivateScoreCounts
    prepared: Prepared
    score_range: tuple[float, float]
    confidence: float
    share: float

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise on a number of pairs, at most (public)."""
        query, n_cells = self.prepared.plan[QUERY], self.counter.n_cells
        clip = ScoreCounts.bound(n_cells, query.mechanism.norm)
        return query.noise_std(clip) * float(np.sqrt((decoder(n_cells) ** 2).sum(axis=1)).max())

    def check_pairs(self, fmr: float) -> None:
        """Refuse a rate that so few pairs cannot show, even if all of them were impostors."""
        check_rate(fmr)
        needed, there = pairs_needed(fmr, self.count_noise), self.prepared.plan.n_records
        if needed > there:
            unit, select = self.counter.unit, self.counter.select
            kappa = self.prepared.material.kappas[unit]
            fewer = (
                ", or select='paths' (--select paths), which lowers kappa"
                if select == "all"
                else ""
            )
            raise InputError(
                f"a false-match rate of {fmr:g} takes about {needed:,} impostor pairs at this epsilon and "
                f"kappa {kappa} (one {unit} is in so many of the pairs), and {there:,} are used in all; "
                f"ask for a larger rate, or bring more pairs{fewer}"
            )

    def run(self, accountant: PrivacyLedger | None = None, checkpoint: Any = None) -> ErrorCurve:
        """Charge and release; whoever gives a checkpoint removes it when the curve is safe."""
        self.counter.accountant = accountant
        self.counter.fit(self.prepared, checkpoint=checkpoint, keep_checkpoint=True)
        return curve_of(
            self.counter.counts_,
            self.score_range,
            self.confidence,
            self.share,
            self.counter.certificate_,
        )


def plan_curve(
    scores: ArrayLike,
    y: ArrayLike,
    pairs: Any,
    epsilon: float,
    delta: float,
    score_range: tuple[float, float],
    unit: Unit = "relationship",
    *,
    adjacency: Adjacency = "zero-out",
    select: str = "paths",
    confidence: float = 0.95,
    n_cells: int = N_CELLS,
    entity_records: int | None = None,
    together: Mapping[Any, Any] | None = None,
    random_state: int | np.random.Generator | None = None,
    null: bool = False,
) -> CurvePlan:
    """Check and plan an error curve: `error_curve` without its noise; ``null`` as for `as_labels`."""
    low, high = _checked_range(score_range)
    values = _checked_scores(scores, low, high)
    labels = as_labels(y, len(values), null=null)
    if not (is_number(confidence) and 0 < confidence < 1):
        raise InputError("confidence must be a number between 0 and 1, both excluded")
    if not (is_whole(n_cells) and 2 <= n_cells <= 1024):
        raise InputError("n_cells must be a whole number from 2 to 1024")
    cells = cells_of(values, (low, high), int(n_cells))[:, None]
    data, positions = counted_pairs(cells, labels, pairs, stacklevel=3, together=together)
    counter = PrivateScoreCounts(
        (low, high), int(n_cells), epsilon=epsilon, delta=delta, unit=unit, select=select,
        entity_records=entity_records, adjacency=adjacency, random_state=random_state,
    )  # fmt: skip
    prepared = stated_plainly(counter.prepare_scores(data, positions))
    share = independent_share(prepared.material.used.pairs)
    return CurvePlan(counter, prepared, (low, high), float(confidence), share)


def independent_share(pairs: Any) -> float:
    """The share of pairs that bands count: so many pairs, at least, can be taken that share nobody.

    Pairs of people who are in b of them at most fall into b + 1 sets of pairs that share nobody (Vizing).

    Examples
    --------
    >>> independent_share(np.array([[0, 1], [2, 3]])), independent_share(np.array([[0, 1], [1, 2]]))
    (1.0, 0.3333333333333333)
    """
    most = 1 if pairs is None else int(np.bincount(pairs.ravel()).max())
    return 1.0 if most == 1 else 1.0 / (most + 1)


def curve_of(
    released: NoisyScores,
    score_range: tuple[float, float],
    confidence: float,
    share: float,
    certificate: Certificate | None,
) -> ErrorCurve:
    """Rates and bands of what was released; post-processing."""
    n_cells = released.sums.shape[1]
    matrix = decoder(n_cells)
    above = (
        released.sums @ matrix.T
    )  # pairs at or above each edge, from the top; the last is all of them
    noise = released.noise * np.sqrt((matrix**2).sum(axis=1))
    below_noise = released.noise * np.sqrt(((matrix[-1] - matrix) ** 2).sum(axis=1))
    tail = (1 - confidence) / (8 * n_cells)
    genuine, impostors = above
    last = float(noise[-1])
    # Both rates rise along these: false matches from the top, false non-matches from the bottom.
    fmr = _rates(impostors, noise, float(impostors[-1]), last, tail, share)
    missed = (genuine[-1] - genuine)[::-1]
    fnmr = _rates(missed, below_noise[::-1], float(genuine[-1]), last, tail, share)
    return ErrorCurve(
        thresholds=edges_of(score_range, n_cells),
        fmr=fmr[0][::-1],
        fmr_low=fmr[1][::-1],
        fmr_high=fmr[2][::-1],
        fnmr=fnmr[0],
        fnmr_low=fnmr[1],
        fnmr_high=fnmr[2],
        n_impostors=float(impostors[-1]),
        n_genuine=float(genuine[-1]),
        effective_share=share,
        count_noise=float(noise.max()),
        score_range=score_range,
        confidence=float(confidence),
        certificate=certificate,
    )


def _rates(
    counts: FloatArray, noise: FloatArray, n: float, n_noise: float, tail: float, share: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A rate that rises along ``counts`` of ``n`` pairs, and a band for all of them together."""
    z = -float(ndtri(tail))
    rising = IsotonicRegression().fit_transform(np.arange(len(counts)), counts)
    rate = np.clip(rising / max(n, 1.0), 0.0, 1.0)
    fewest, most = max(n - z * n_noise, 0.0), max(n + z * n_noise, 1.0)
    high = np.ones_like(rate)
    if fewest > 0:
        worst = np.clip(counts + z * noise, 0.0, fewest)
        high = np.asarray(upper_end(worst * share, fewest * share, tail))
    best = np.clip(counts - z * noise, 0.0, most)
    low = np.asarray(1 - upper_end((most - best) * share, most * share, tail))
    high = np.minimum.accumulate(high[::-1])[::-1]  # the true rate rises: so may both ends
    low = np.maximum.accumulate(low)
    return rate, np.minimum(low, rate), np.maximum(high, rate)


def _checked_range(score_range: Any) -> tuple[float, float]:
    try:
        low, high = (float(one) for one in score_range)
    except (TypeError, ValueError):
        raise InputError("score_range must be two numbers, the public bounds of scores") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError("score_range must be two finite numbers, the lower first")
    return low, high


def _checked_scores(scores: Any, low: float, high: float) -> FloatArray:
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("scores must be numbers") from None
    if values.ndim != 1 or values.size == 0:
        raise InputError("scores must be a list of numbers, one for each pair")
    wrong = np.flatnonzero(~((values >= low) & (values <= high)))  # NaN is in no range
    if wrong.size:
        raise InputError(
            f"{wrong.size} scores are NaN or outside score_range, the first in row {wrong[0] + 1}; the "
            "range must be public and hold every score that the system can give"
        )
    return values
