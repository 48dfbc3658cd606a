"""Operating points: false matches and non-matches against the threshold, from private labelled pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri
from sklearn.isotonic import IsotonicRegression

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

FloatArray = NDArray[np.float64]

N_CELLS = 96
SHOWN = 2.0
"""A rate can be asked for where its pairs exceed so many standard deviations of sampling and noise."""


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """Error rates against the threshold, with simultaneous bands; all of it may be handed out.

    A pair is called a match when its score is at least the threshold.

    Attributes
    ----------
    thresholds : array, ascending
    fmr, fnmr : arrays
        False-match rate (impostor pairs at or above) and false non-match rate (genuine pairs below).
    fmr_low, fmr_high, fnmr_low, fnmr_high : arrays
        Hold for all thresholds of both curves together with probability ``confidence``, sampling and noise
        included.
    n_impostors, n_genuine : float
        How many pairs there are, with noise.
    effective_share : float
        Pairs that share people are not independent: bands count this share of them.
    count_noise : float
        Standard deviation of the noise on a number of pairs, at most.
    score_range : (float, float)
    confidence : float
    certificate : Certificate or None

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, -1], 10_000)
    >>> scores = np.clip(rng.normal(np.where(y > 0, 0.7, 0.3), 0.1), 0, 1)
    >>> people = np.arange(40_000).reshape(-1, 2)            # pairs that share nobody
    >>> from pairveil import error_curve
    >>> curve = error_curve(scores, y, people, epsilon=0.5, delta=1e-6, score_range=(0, 1), random_state=0)
    >>> round(curve.threshold(fmr=0.01), 2)                  # the true one is 0.533
    0.53
    >>> low, high = curve.fmr_at(curve.threshold(fmr=0.01))
    >>> low < 0.01 < high
    True
    """

    thresholds: FloatArray
    fmr: FloatArray
    fmr_low: FloatArray
    fmr_high: FloatArray
    fnmr: FloatArray
    fnmr_low: FloatArray
    fnmr_high: FloatArray
    n_impostors: float
    n_genuine: float
    effective_share: float
    count_noise: float
    score_range: tuple[float, float]
    confidence: float
    certificate: Certificate | None

    def threshold(self, fmr: float) -> float:
        """The score from which pairs are matches, at a false-match rate of about ``fmr``.

        Raises
        ------
        InputError
            There are too few impostor pairs to show so small a rate; says how many are needed.
        """
        check_rate(fmr)
        needed = pairs_needed(fmr, self.count_noise)
        if needed > self.n_impostors:
            raise InputError(
                f"a false-match rate of {fmr:g} takes about {needed:,} impostor pairs at this epsilon, and "
                f"there are about {max(0, round(self.n_impostors)):,}; ask for a larger rate, or bring more "
                "pairs"
            )
        # From the top of the range, where nothing is above, down to the first edge that reaches the rate.
        edges = np.append(self.thresholds, self.score_range[1])[::-1]
        rates = np.append(self.fmr, 0.0)[::-1]
        at = int(np.searchsorted(rates, fmr))
        if at >= len(rates):
            return float(self.thresholds[0])
        if at == 0:
            return float(edges[0])
        before, after = float(rates[at - 1]), float(rates[at])
        if before > fmr / 4:  # tails fall by factors, not by steps
            part = math.log(fmr / before) / math.log(after / before)
        else:
            part = (fmr - before) / (after - before)
        return float(edges[at - 1] + part * (edges[at] - edges[at - 1]))

    def fmr_at(self, threshold: float) -> tuple[float, float]:
        """The band of the false-match rate at a threshold; between edges rates only fall."""
        return self._band(threshold, self.fmr_low, self.fmr_high)

    def fnmr_at(self, threshold: float) -> tuple[float, float]:
        """The band of the false non-match rate at a threshold; between edges rates only rise."""
        return self._band(threshold, self.fnmr_low, self.fnmr_high)

    def _band(self, threshold: float, low: FloatArray, high: FloatArray) -> tuple[float, float]:
        if not (is_number(threshold) and math.isfinite(threshold)):
            raise InputError("threshold must be a finite number")
        last = len(self.thresholds) - 1
        under = int(np.clip(np.searchsorted(self.thresholds, threshold, "right") - 1, 0, last))
        over = int(np.clip(np.searchsorted(self.thresholds, threshold, "left"), 0, last))
        return float(min(low[under], low[over])), float(max(high[under], high[over]))

    def with_model(self, certificate: Certificate) -> Certificate:
        """What this curve and the model that it was measured for cost together; see `model_and_curve`."""
        from pairveil.evaluation.together import model_and_curve

        if self.certificate is None:
            raise InputError("this curve promises nothing: it was counted without noise")
        return model_and_curve(certificate, self.certificate)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data: what is handed out with a model."""
        rows = zip(
            self.thresholds, self.fmr, self.fmr_low, self.fmr_high, self.fnmr, self.fnmr_low, self.fnmr_high,
            strict=True,
        )  # fmt: skip
        names = (
            "threshold", "fmr", "fmr_low", "fmr_high", "fnmr", "fnmr_low", "fnmr_high",
        )  # fmt: skip
        return {
            "confidence": self.confidence,
            "n_impostors": self.n_impostors,
            "n_genuine": self.n_genuine,
            "effective_share": self.effective_share,
            "points": [dict(zip(names, map(float, row), strict=True)) for row in rows],
        }


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
    confidence: float = 0.95,
    n_cells: int = N_CELLS,
    entity_records: int | None = None,
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
        scores, y, pairs, epsilon, delta, score_range, unit, adjacency=adjacency,
        confidence=confidence, n_cells=n_cells, entity_records=entity_records,
        random_state=random_state,
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
            raise InputError(
                f"a false-match rate of {fmr:g} takes about {needed:,} impostor pairs at this epsilon, and "
                f"there are {there:,} pairs in all; ask for a larger rate, or bring more pairs"
            )

    def run(self, accountant: PrivacyLedger | None = None) -> ErrorCurve:
        """Charge and release."""
        self.counter.accountant = accountant
        self.counter.fit(self.prepared)
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
    confidence: float = 0.95,
    n_cells: int = N_CELLS,
    entity_records: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> CurvePlan:
    """Check and plan an error curve: `error_curve` without its noise."""
    low, high = _checked_range(score_range)
    values = _checked_scores(scores, low, high)
    labels = as_labels(y, len(values))
    if not (is_number(confidence) and 0 < confidence < 1):
        raise InputError("confidence must be a number between 0 and 1, both excluded")
    if not (is_whole(n_cells) and 2 <= n_cells <= 1024):
        raise InputError("n_cells must be a whole number from 2 to 1024")
    cells = cells_of(values, (low, high), int(n_cells))[:, None]
    data, positions = counted_pairs(cells, labels, pairs, stacklevel=3)
    counter = PrivateScoreCounts(
        (low, high), int(n_cells), epsilon=epsilon, delta=delta, unit=unit, select="all",
        entity_records=entity_records, adjacency=adjacency, random_state=random_state,
    )  # fmt: skip
    prepared = stated_plainly(counter.prepare_scores(data, positions))
    return CurvePlan(
        counter, prepared, (low, high), float(confidence), independent_share(data.pairs)
    )


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
        high = np.asarray(upper_rate(worst * share, fewest * share, tail))
    best = np.clip(counts - z * noise, 0.0, most)
    low = np.asarray(1 - upper_rate((most - best) * share, most * share, tail))
    high = np.minimum.accumulate(high[::-1])[::-1]  # the true rate rises: so may both ends
    low = np.maximum.accumulate(low)
    return rate, np.minimum(low, rate), np.maximum(high, rate)


def upper_rate(count: Any, n: float, tail: float) -> Any:
    """Upper end of Clopper and Pearson's interval: a larger rate gives so few with probability ``tail``."""
    inside = np.minimum(count, n)
    free = np.maximum(n - inside, 1e-9)
    return np.where(inside >= n, 1.0, betaincinv(inside + 1.0, free, 1 - tail))


def pairs_needed(fmr: float, count_noise: float) -> int:
    """Impostor pairs from which a rate stands out from sampling and noise.

    Examples
    --------
    >>> pairs_needed(0.01, 0.0), pairs_needed(0.01, 17.0)
    (400, 3606)
    """
    # fmr n = SHOWN sqrt(fmr n + noise^2), solved for fmr n.
    square = SHOWN**2
    expected = (square + math.sqrt(square**2 + 4 * square * count_noise**2)) / 2
    return math.ceil(expected / fmr - 1e-9)


def check_rate(fmr: object) -> None:
    """Refuse what is no rate."""
    if not (is_number(fmr) and 0 < float(fmr) < 1):  # type: ignore[arg-type]
        raise InputError("fmr must be a number between 0 and 1, both excluded")


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
