"""Error curves and pair AUCs on private labelled pairs, from one noisy histogram of their scores.

The histogram is that of `pairveil.learners.histogram`, asked for by one query; rates, bands and AUCs are
post-processing of it (docs/theory/learner.md, 'Operating points').
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load on first use
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.isotonic import IsotonicRegression

from pairveil.array_types import FloatArray
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Plan, PublicFacts, QuerySpec
from pairveil.errors import DataWarning, InputError, warn
from pairveil.learners.base import WITHOUT_ROWS, PrivateLearner
from pairveil.learners.histogram import ScoreCounts, cells_of, decoder, edges_of
from pairveil.learners.inputs import Resolved, as_labels, check_share, check_whole
from pairveil.learners.preparing import Prepared, check_entity_records, entity_sentence
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.grid import Norm
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.noise import SeededNoise
from pairveil.privacy.units import SCORE_QUERY, Adjacency, Unit
from pairveil.records.kinds import COUNTED_PAIRS
from pairveil.records.pairset import counted_pairs
from pairveil.release.curve import ErrorCurve, check_rate, pairs_needed, upper_end

N_CELLS = 96
"""Of an error curve: thresholds at which rates are released."""
AUC_CELLS, DECADES = 256, 3.0
"""Of an AUC: logarithms of distances are counted, from a thousandth of the longest possible one up."""
_BINS = 24
"""Cells are joined to so many of about equal size: more would add noise, fewer would tie more pairs."""


# ---- the query -----------------------------------------------------------------------------------


class NoisyScores(NamedTuple):
    """What was released: summed columns, the noise on each entry (a standard deviation), and its norm."""

    sums: FloatArray
    noise: float
    norm: Norm = "l2"

    @property
    def decoder(self) -> FloatArray:
        """What makes counts above each edge of the sums."""
        return decoder(self.sums.shape[1], self.norm)


@dataclass(frozen=True)
class ScoreRecipe:
    """One query: all counts together."""

    n_cells: int
    score_range: tuple[float, float]
    entity_records: int | None = None
    n_scores: int = 1
    headline = SCORE_QUERY

    def ask(self, facts: PublicFacts) -> tuple[QuerySpec, ...]:
        """The counts have the whole budget."""
        del facts
        return (QuerySpec(SCORE_QUERY, (2 * self.n_scores, self.n_cells), 1.0),)

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        told: dict[str, Any] = {"cells": self.n_cells, "score_range": list(self.score_range)}
        if self.entity_records is not None:
            told["entity_records"] = self.entity_records
        if self.n_scores > 1:
            told["scores"] = self.n_scores
        return {"error_curve": told}

    def run(self, plan: Plan, engine: Engine) -> NoisyScores:
        """Ask."""
        query = plan[SCORE_QUERY]
        norm = query.mechanism.norm
        clip = ScoreCounts.bound(self.n_cells, norm, self.n_scores)
        answer = engine.answer(query, ScoreCounts(self.n_cells, clip, self.n_scores))
        return NoisyScores(answer, query.noise_std(clip), norm)


class PrivateScoreCounts(PrivateLearner):
    """Releases how scores of genuine and impostor pairs are spread; `pairveil.error_curve` is the way in."""

    def __init__(
        self,
        score_range: tuple[float, float] = (0.0, 1.0),
        n_cells: int = 96,
        entity_records: int | None = None,
        n_scores: int = 1,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.entity_records = entity_records
        self.n_scores = n_scores
        self.score_range = score_range
        self.n_cells = n_cells

    _fixed = WITHOUT_ROWS
    _kinds = (COUNTED_PAIRS.name,)

    def _resolve(self, given: Any, data: Any, y: Any, *, positions: Any = None) -> Resolved:
        """Pairs whose values are the cells of their scores (`counted_pairs`)."""
        del y
        if data.pairs is None and given.unit != "pair":
            raise InputError(
                "pairs are missing: give the ids of the two people of each score, or choose unit='pair'"
            )
        bound = given.entity_records
        check_entity_records(bound, data.pairs)
        said = () if bound is None else (entity_sentence(bound),)
        return Resolved(data, positions, facts={"entity_records": bound, "public": said})

    def _recipe(self, given: Any, records: Any) -> ScoreRecipe:
        del records
        bound, n_scores = given.entity_records, int(self.n_scores)
        return ScoreRecipe(int(self.n_cells), self.score_range, bound, n_scores)

    def _keep(self, model: NoisyScores, prepared: Prepared) -> None:
        self.counts_ = model
        self.n_pairs_used_ = prepared.plan.n_records


class ScorePlan(NamedTuple):
    """A histogram of scores that is ready to be released; nothing was spent yet."""

    counter: PrivateScoreCounts
    prepared: Prepared
    confidence: float  # of all bands or intervals together
    share: float  # pairs that share people are not independent: bands count this share of them

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise on a number of pairs, at most (public)."""
        query, n_cells = self.prepared.plan[SCORE_QUERY], self.counter.n_cells
        norm = query.mechanism.norm
        rows = np.sqrt((decoder(n_cells, norm) ** 2).sum(axis=1))
        return query.noise_std(ScoreCounts.bound(n_cells, norm)) * float(rows.max())

    def check_pairs(self, fmr: float, share: float = 1.0) -> None:
        """Refuse a rate that so few pairs, a share of all, cannot show even if all were impostors."""
        check_rate(fmr)
        needed = pairs_needed(fmr, self.count_noise)
        there = int(share * self.prepared.plan.n_records)
        if needed > there:
            unit, select = self.counter.unit, self.counter.select
            kappa = self.prepared.records.kappas[unit]
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

    def counts(
        self, accountant: PrivacyLedger | None = None, checkpoint: Any = None
    ) -> NoisyScores:
        """Charge and release; whoever gives a checkpoint removes it when what follows is safe."""
        self.counter.accountant = accountant
        self.counter.fit(self.prepared, checkpoint=checkpoint, keep_checkpoint=True)
        return self.counter.counts_

    def curve(self, accountant: PrivacyLedger | None = None, checkpoint: Any = None) -> ErrorCurve:
        """`counts`, as error rates with bands."""
        released, counter = self.counts(accountant, checkpoint), self.counter
        return curve_of(
            released, counter.score_range, self.confidence, self.share, counter.certificate_
        )

    def auc(self, accountant: PrivacyLedger | None = None, checkpoint: Any = None) -> PairAuc:
        """`counts`, as AUCs with intervals."""
        return self.aucs(self.counts(accountant, checkpoint))

    def aucs(self, released: NoisyScores) -> PairAuc:
        """AUCs of what was released; post-processing."""
        aucs = tuple(
            auc_of(released, score, self.confidence, self.share)
            for score in range(self.counter.n_scores)
        )
        return PairAuc(aucs, self.confidence, self.share, self.prepared.certificate)

    def expected_width(self) -> float:
        """How wide an interval is likely to be, from as many made-up pairs: public, always the same."""
        n, rng = self.prepared.plan.n_records, np.random.default_rng(0)
        labels = np.resize([1, -1], n)
        apart = np.abs(rng.normal(np.where(labels > 0, 0.3, 0.6), 0.25))  # an AUC of about 0.8
        data, _ = counted_pairs(
            _cells(apart[:, None].repeat(self.counter.n_scores, 1), 2.0), labels, None
        )
        noisy = self.prepared.recipe.run(self.prepared.plan, Engine(data, SeededNoise(0)))
        return max(one.high - one.low for one in self.aucs(noisy).aucs)

    def say_width(self) -> None:
        """Say so where the score's interval is likely to hold both a coin's 0.5 and a perfect 1."""
        if (width := self.expected_width()) >= 0.5:
            warn(
                f"the score will be an interval about {width:.2f} wide, and a coin (0.5) is no further from "
                "a perfect score (1). A larger epsilon or more pairs narrow it",
                DataWarning,
            )


def plan_scores(
    cells: NDArray[np.int64],
    y: ArrayLike,
    pairs: Any,
    *,
    confidence: float = 0.95,
    together: Mapping[Any, Any] | None = None,
    null: bool = False,
    **counting: Any,
) -> ScorePlan:
    """Plan the histogram of pairs in these cells, (K, n_scores).

    ``null`` as for `as_labels`, ``counting`` as `PrivateScoreCounts`, the rest as for `error_curve`.
    """
    check_share("confidence", confidence)
    labels = as_labels(y, len(cells), null=null)
    data, positions = counted_pairs(cells, labels, pairs, together=together)
    counter = PrivateScoreCounts(n_scores=cells.shape[1], **counting)
    prepared = counter.prepare(data, positions=positions)
    share = independent_share(prepared.records.used.pairs)
    return ScorePlan(counter, prepared, float(confidence), share)


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


# ---- error curves ---------------------------------------------------------------------------------


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
    return planned.curve(accountant)


def plan_curve(
    scores: ArrayLike,
    y: ArrayLike,
    pairs: Any,
    epsilon: float,
    delta: float,
    score_range: tuple[float, float],
    unit: Unit = "relationship",
    *,
    n_cells: int = N_CELLS,
    **options: Any,
) -> ScorePlan:
    """Check and plan an error curve: `error_curve` without its noise; ``options`` as for `plan_scores`."""
    low, high = _checked_range(score_range)
    values = _checked_scores(scores, low, high)
    check_whole("n_cells", n_cells, least=2, most=1024)
    cells = cells_of(values, (low, high), int(n_cells))[:, None]
    return plan_scores(
        cells, y, pairs, score_range=(low, high), n_cells=int(n_cells), epsilon=epsilon, delta=delta,
        unit=unit, **options,
    )  # fmt: skip


def curve_of(
    released: NoisyScores,
    score_range: tuple[float, float],
    confidence: float,
    share: float,
    certificate: Certificate | None,
) -> ErrorCurve:
    """Rates and bands of what was released; post-processing."""
    n_cells, matrix = released.sums.shape[1], released.decoder
    above = released.sums @ matrix.T  # pairs at or above each edge, from the top; the last is all
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


# ---- pair AUCs ------------------------------------------------------------------------------------


class Auc(NamedTuple):
    """A pair AUC with noise, and an interval that holds sampling and noise."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PairAuc:
    """What an evaluation on private pairs releases."""

    aucs: tuple[Auc, ...]  # one for each metric, on the same pairs
    confidence: float  # of all intervals together
    effective_share: float  # pairs that share people are not independent: so many of them count
    certificate: Certificate | None  # None where epsilon is infinite


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
    return plan_auc(distances, y, pairs, epsilon, delta, longest, unit, **options).auc(accountant)


def plan_auc(
    distances: ArrayLike,
    y: ArrayLike,
    pairs: Any,
    epsilon: float,
    delta: float,
    longest: ArrayLike,
    unit: Unit = "relationship",
    select: str = "all",
    **options: Any,
) -> ScorePlan:
    """Check and plan an evaluation: `private_pair_auc` without its noise; options as for `plan_scores`."""
    return plan_scores(
        _cells(distances, longest), y, pairs, score_range=(0.0, DECADES), n_cells=AUC_CELLS,
        epsilon=epsilon, delta=delta, unit=unit, select=select, **options,
    )  # fmt: skip


def plan_comparison(
    values: Any,
    ends: NDArray[np.integer[Any]],
    labels: ArrayLike,
    pairs: Any,
    components: Any = None,
    column_scale: Any = None,
    data_norm: float = 1.0,
    **promise: Any,
) -> ScorePlan:
    """The evaluation of a metric and of plain distance on the same pairs.

    ``values`` are people's rows as the metric takes them, ``ends`` rows of these. ``components`` None is a
    metric that is not learned yet, which has the same plan. ``column_scale`` brings columns to scale, where
    rows may be as long as ``data_norm``. The rest as for `plan_auc`; a label of 0 is null.
    """
    matrix = np.zeros((1, values.shape[1])) if components is None else np.asarray(components)
    scale = np.ones(values.shape[1]) if column_scale is None else np.asarray(column_scale)
    lengths, step = np.zeros((len(ends), 2)), max(1, 2_000_000 // values.shape[1])
    for start in range(0, len(ends), step):
        some = ends[start : start + step]
        gap = values[some[:, 0]] - values[some[:, 1]]
        of_both = lengths_of(gap @ matrix.T), lengths_of(gap * scale)
        lengths[start : start + step] = np.column_stack(of_both)
    longest = [longest_distance(matrix, column_scale, data_norm), 2 * data_norm]
    return plan_auc(lengths, labels, pairs, longest=longest, null=True, **promise)


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
    return cells_of(np.clip(nearness, 0.0, DECADES), (0.0, DECADES), AUC_CELLS)


def lengths_of(gaps: Any) -> FloatArray:
    """Lengths of rows; one that floats cannot hold is infinite: private features never stop a release.

    Examples
    --------
    >>> lengths_of([[3.0, 4.0], [float("inf"), float("nan")]])
    array([ 5., inf])
    """
    if scipy.sparse.issparse(gaps):
        found = np.asarray(scipy.sparse.linalg.norm(gaps.tocsr(), axis=1))
    else:
        found = np.linalg.norm(np.asarray(gaps, dtype=np.float64), axis=1)
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
    matrix = released.decoder
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
