"""The auditor: how much of epsilon an attacker can see from outside, at stated confidence.

The mechanism runs many times on each of two neighbouring inputs; every run becomes one score, and above a
threshold the attacker says "second". Some runs are held out to train the score and to choose the threshold;
the others are counted. The answer is a lower bound on epsilon that is too high with probability at most
``1 - confidence``, whatever the score. A bound above the claim, at `ACCUSATION` confidence, refutes it. Two
ways to turn error rates into a bound:

- `epsilon_from_rates` assumes nothing: (epsilon, delta)-DP forces
  ``1 - fnr <= e^epsilon fpr + delta`` and ``1 - fpr <= e^epsilon fnr + delta``.
- `mu_from_duels` assumes that the mechanism's trade-off curve is a Gaussian one (mu-GDP, Dong, Roth and
  Su 2019): ``fnr >= Phi(Phi^-1(1 - fpr) - mu)``. One number then fixes the whole curve, so that
  a few thousand runs say something about delta = 1e-5, where the first way sees nothing. It needs no
  threshold.

Rates are replaced by Clopper-Pearson upper limits at half the error probability each; both
directions of each inequality use the same two limits, so no further correction is needed. The
threshold must come from other runs than the rates: `choose_threshold`, `middle_threshold`.

A promise made by an accountant is a whole curve, epsilon as a function of delta, and one number, the
noise, moves it. If a test beats the curve of some noise, the mechanism has less noise than that. So
the audit looks where counting is sharp (error rates near one half) and the family carries the answer to
the delta of the claim, as mu-GDP does for plain Gaussian noise, but for any plan: Poisson-sampled
Gaussian steps with kappa pairs, Laplace steps, mixtures of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri

from pairveil.array_types import FloatArray
from pairveil.audit.canaries import Neighbours
from pairveil.errors import InputError
from pairveil.privacy.compose import epsilon_from_mu
from pairveil.records.pairset import PairSet

# ---- Lower bounds on epsilon from how often an attacker is right ---------------------------------

Criterion = Callable[[Any, Any], Any]


def clopper_pearson_upper(events: ArrayLike, trials: int, alpha: float) -> FloatArray:
    """Upper confidence limit of a probability; it is too low with probability at most ``alpha``.

    Examples
    --------
    Nothing in 100 trials leaves 3 % possible at 95 % confidence:

    >>> round(float(clopper_pearson_upper(0, 100, 0.05)), 4)
    0.0295
    """
    count = np.asarray(events, dtype=np.float64)
    if trials < 1 or np.any(count < 0) or np.any(count > trials):
        raise InputError("events must lie between 0 and a positive number of trials")
    inside = np.minimum(count, trials - 1)
    limit = betaincinv(inside + 1.0, trials - inside, 1.0 - alpha)
    upper: FloatArray = np.where(count < trials, limit, 1.0)
    return upper


def epsilon_from_rates(fpr: ArrayLike, fnr: ArrayLike, delta: float = 0.0) -> FloatArray:
    """Smallest epsilon at which a test with these error rates (or lower ones) is allowed.

    Examples
    --------
    >>> float(epsilon_from_rates(0.1, 0.1).round(3)), float(epsilon_from_rates(0.5, 0.5))
    (2.197, 0.0)
    """
    rates = np.asarray(fpr, dtype=np.float64), np.asarray(fnr, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ways = [
            np.where(
                1 - miss - delta > 0, np.log(np.maximum(1 - miss - delta, 0)) - np.log(alarm), 0
            )
            for alarm, miss in (rates, rates[::-1])
        ]
    epsilon: FloatArray = np.maximum(0.0, np.maximum(*ways))
    return epsilon


@dataclass(frozen=True)
class ErrorCounts:
    """Errors of a test on fresh runs.

    "Second" was said ``false_alarms`` times in ``n_first`` runs on the first input, "first" ``misses`` times
    in ``n_second`` on the second.
    """

    false_alarms: int
    n_first: int
    misses: int
    n_second: int

    def limits(self, confidence: float) -> tuple[float, float]:
        """Upper limits of both error rates, together right with probability ``confidence``."""
        alpha = _half_error(confidence)
        return (
            float(clopper_pearson_upper(self.false_alarms, self.n_first, alpha)),
            float(clopper_pearson_upper(self.misses, self.n_second, alpha)),
        )

    def epsilon(self, delta: float = 0.0, confidence: float = 0.95) -> float:
        """Lower bound on epsilon at ``delta``, whatever the mechanism."""
        return float(epsilon_from_rates(*self.limits(confidence), delta))


def choose_threshold(
    first: ArrayLike, second: ArrayLike, criterion: Criterion, confidence: float = 0.95
) -> float:
    """Threshold that would have given the best bound on these (held-out) scores.

    "Second" is said at or above it; these runs must not be counted afterwards. ``criterion``, of the two
    rates' upper limits, is maximised: `epsilon_from_rates` at some delta.
    """
    low, high = np.sort(np.asarray(first, float)), np.sort(np.asarray(second, float))
    if not (low.size and high.size):
        raise InputError("choosing a threshold needs held-out runs of both inputs")
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise InputError("a score is not finite")
    values = np.unique(np.concatenate([low, high]))
    # Every tail matters: take the candidates evenly in rank, and all of the outermost ones.
    edge = min(values.size, 100)
    even = np.linspace(0, values.size - 1, 200).round().astype(int)
    values = np.unique(np.concatenate([values[:edge], values[even], values[values.size - edge :]]))
    alpha = _half_error(confidence)
    alarms = clopper_pearson_upper(low.size - np.searchsorted(low, values), low.size, alpha)
    misses = clopper_pearson_upper(np.searchsorted(high, values), high.size, alpha)
    return float(values[int(np.argmax(criterion(alarms, misses)))])


def middle_threshold(first: ArrayLike, second: ArrayLike) -> float:
    """Half way between the (held-out) medians: the best place to look when one point fixes the curve.

    Every threshold would give the same noise but for sampling error, and that is smallest in the
    middle. Maximising a noisy bound over thresholds instead would pick the noisiest.
    """
    low, high = np.asarray(first, float), np.asarray(second, float)
    if not (low.size and high.size):
        raise InputError("choosing a threshold needs held-out runs of both inputs")
    return float(np.median(low) + np.median(high)) / 2.0


def mu_from_duels(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> float:
    """Lower bound on mu from how often the second input's score is the higher of two; ties go to the first.

    Telling (first, second) from (second, first) is telling two inputs apart in two runs, and two
    runs of a mu-GDP mechanism are sqrt(2) mu-GDP. Naming the order by the higher score is then right
    with probability at most ``Phi(sqrt(2) mu / 2)``. No threshold, so nothing is held out, and one
    exact binomial limit instead of two: a given precision takes about a quarter of the runs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(mu_from_duels(rng.normal(0, 1, 4000), rng.normal(1, 1, 4000)), 2)
    0.98
    """
    low, high = np.asarray(first, float), np.asarray(second, float)
    if low.size != high.size or not low.size:
        raise InputError("duels need as many runs of one input as of the other")
    lost = clopper_pearson_upper(int((high <= low).sum()), low.size, _error(confidence))
    return float(max(0.0, -np.sqrt(2.0) * ndtri(lost)))


def count_errors(first: ArrayLike, second: ArrayLike, threshold: float) -> ErrorCounts:
    """Errors of "second at or above ``threshold``" on fresh scores."""
    low, high = np.asarray(first, float), np.asarray(second, float)
    alarms, misses = int((low >= threshold).sum()), int((high < threshold).sum())
    return ErrorCounts(alarms, low.size, misses, high.size)


def _error(confidence: float) -> float:
    if not 0.5 < confidence < 1:
        raise InputError("confidence must be above 0.5 and below 1")
    return 1.0 - confidence


def _half_error(confidence: float) -> float:
    return _error(confidence) / 2.0


# ---- Bounds that use the shape of a claimed trade-off curve --------------------------------------

Curve = Callable[[float, float], float]
"""(noise, delta) -> epsilon; falls as the noise grows."""

_SHARES = (0.999, 0.8, 0.6, 0.4, 0.2, 0.05)

_REACH = 2.0**10


def epsilon_in_family(fpr: float, fnr: float, curve: Curve, noise: float, delta: float) -> float:
    """Lower bound on epsilon at ``delta``, if the mechanism is of the family with some noise.

    ``fpr`` and ``fnr`` are upper limits of a test's error rates. ``curve(noise, delta)`` is the family's
    epsilon, or an upper bound on it: what is refuted is refuted for the true curve too. Noise is searched
    within a factor of 1,000 around the claimed one; returned is epsilon of the largest that is refuted, or 0.
    """
    gain = 1.0 - fpr - fnr
    if gain <= 0.0:
        return 0.0
    deltas = [share * gain for share in _SHARES]

    def refuted(at: float) -> bool:
        return any(float(epsilon_from_rates(fpr, fnr, d)) > curve(at, d) for d in deltas)

    low, high = noise / _REACH, noise * _REACH
    if not refuted(high):
        # More noise is refuted first: nothing refuted at the far end means a useless test.
        return 0.0
    if refuted(low):
        return curve(low, delta)
    while high / low > 1.0 + 1e-4:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return curve(high, delta)


def mixture_loss(
    position: float,
    counts: np.ndarray,
    weights: np.ndarray,
    first: float,
    second: float,
    sigma: float,
) -> float:
    """Log likelihood ratio, second against first, of one noisy sum seen along the canary.

    ``position`` is the sum's coordinate along the canary's direction. ``counts`` of the kappa pairs are in
    the batch, each as likely as its weight, and a pair adds ``first`` or ``second``.
    """
    logs = [
        np.log(weights) - 0.5 * ((position - counts * step) / sigma) ** 2
        for step in (first, second)
    ]
    tops = [log.max() for log in logs]
    sums = [top + np.log(np.exp(log - top).sum()) for top, log in zip(tops, logs, strict=True)]
    return float(sums[1] - sums[0])


# ---- how much of epsilon an attacker can see from outside, at stated confidence ------------------

Mechanism = Callable[[PairSet, np.random.Generator], Any]

Score = Callable[[FloatArray], float]

Scores = Callable[[int, int, np.random.Generator], FloatArray]
"""(0 first or 1 second input, number of runs, generator) -> one score a run; higher means second."""

Verdict = Literal["consistent", "violated"]

ACCUSATION = 0.999
"""Confidence without which no claim is called violated, however small that of the bound."""

HELD_OUT = 0.25
"""Share of the runs that choose the threshold (and train the score) and are not counted."""


@dataclass(frozen=True)
class Claim:
    """What is promised, and what may be assumed about the shape of the trade-off curve."""

    epsilon: float
    delta: float = 0.0
    # "nothing": counting alone. "gaussian": the curve is that of mu-GDP (full-batch Gaussian noise).
    # "family": it is ``curve`` at some noise, the claimed one being ``noise``
    assume: Literal["nothing", "gaussian", "family"] = "nothing"
    curve: Curve | None = None
    noise: float = 1.0

    def __post_init__(self) -> None:
        if not self.epsilon >= 0 or not 0 <= self.delta < 1:
            raise InputError("a claim needs epsilon >= 0 and delta in [0, 1)")
        if self.assume == "gaussian" and self.delta == 0:
            raise InputError("a Gaussian mechanism has no epsilon at delta = 0")
        if (self.assume == "family") != (self.curve is not None):
            raise InputError("assume='family' goes with a curve")


@dataclass(frozen=True)
class Target:
    """Something to audit."""

    name: str
    scores: Scores
    claim: Claim
    canary: str
    adjacency: str
    runs: int  # how many make the audit sharp


@dataclass(frozen=True)
class Finding:
    """What an audit saw.

    Attributes
    ----------
    lower_bound : float
        Epsilon is at least this with probability `confidence` over the audit's runs.
    verdict : {"consistent", "violated"}
        "violated" when the claim is exceeded at `ACCUSATION` confidence or that of the bound, whichever
        is more: an honest claim is accused in at most one audit of a thousand. So a bound a little above
        the claim may still be consistent with it.
    """

    target: str
    claimed_epsilon: float
    lower_bound: float
    confidence: float
    n_runs: int
    verdict: Verdict
    delta: float
    canary: str
    adjacency: str
    assumes: str

    def to_dict(self) -> dict[str, Any]:
        """The finding for JSON."""
        return asdict(self)


def audit_scores(
    scores: Scores,
    claim: Claim,
    *,
    runs: int = 4000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = None,
    target: str = "mechanism",
    canary: str = "given",
    adjacency: str = "zero-out",
) -> Finding:
    """Audit what already comes as scores.

    ``scores(which, n, rng)``: n scores of fresh runs on the first (0) or second (1) input; half of the
    ``runs`` are on each.

    Examples
    --------
    Laplace noise of scale 1 on a value that moves by 1 is 1-private, and the audit comes close:

    >>> noisy = lambda which, n, rng: which + rng.laplace(size=n)
    >>> found = audit_scores(noisy, Claim(epsilon=1.0), runs=40_000, random_state=0)
    >>> found.verdict, 0.9 < found.lower_bound <= 1.0
    ('consistent', True)
    >>> audit_scores(noisy, Claim(epsilon=0.5), runs=40_000, random_state=0).verdict
    'violated'
    """
    each = runs // 2
    if each < 15:
        raise InputError("an audit needs at least 30 runs")
    rng = np.random.default_rng(random_state)
    first, second = (np.asarray(scores(which, each, rng), dtype=np.float64) for which in (0, 1))
    bound, verdict = judged(
        lambda sure: lower_bound(first, second, claim, sure), claim.epsilon, confidence
    )
    return Finding(
        target=target,
        claimed_epsilon=claim.epsilon,
        lower_bound=bound,
        confidence=confidence,
        n_runs=2 * each,
        verdict=verdict,
        delta=claim.delta,
        canary=canary,
        adjacency=adjacency,
        assumes=claim.assume,
    )


def judged(
    bound_at: Callable[[float], float], claimed: float, confidence: float
) -> tuple[float, Verdict]:
    """The bound at ``confidence``, and the verdict: the one rule by which any audit accuses.

    The verdict takes the bound at `ACCUSATION` or ``confidence``, whichever is more.

    Examples
    --------
    A bound of 1.1 at 0.95 that falls to 0.9 at 0.999 is reported, and accuses nobody of a claim of 1:

    >>> judged(lambda sure: 1.1 if sure < 0.999 else 0.9, claimed=1.0, confidence=0.95)
    (1.1, 'consistent')
    """
    sure = bound_at(max(confidence, ACCUSATION))
    # The slack is for rounding in the bound's own search, never for chance.
    verdict: Verdict = "violated" if sure > claimed * (1 + 1e-9) else "consistent"
    return bound_at(confidence), verdict


def lower_bound(
    first: FloatArray, second: FloatArray, claim: Claim, confidence: float = 0.95
) -> float:
    """Lower bound on epsilon at the claim's delta from scores of both inputs."""
    if claim.assume == "gaussian":
        return epsilon_from_mu(mu_from_duels(first, second, confidence), claim.delta)
    held = max(1, round(HELD_OUT * len(first)))
    if claim.curve is None:
        criterion = partial(epsilon_from_rates, delta=claim.delta)
        threshold = choose_threshold(first[:held], second[:held], criterion, confidence)
        return count_errors(first[held:], second[held:], threshold).epsilon(claim.delta, confidence)
    threshold = middle_threshold(first[:held], second[:held])
    limits = count_errors(first[held:], second[held:], threshold).limits(confidence)
    return epsilon_in_family(*limits, claim.curve, claim.noise, claim.delta)


def audit_mechanism(
    mechanism: Mechanism,
    neighbours: Neighbours,
    claim: Claim,
    *,
    score: Score | None = None,
    runs: int = 4000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = None,
) -> Finding:
    """Audit any callable ``mechanism(pairset, rng) -> array``.

    ``neighbours`` are from `pairveil.audit.canaries`, or your own; the claim is for their adjacency and a
    kappa of at least theirs. ``score`` is one number from one output, higher for the second input; without it
    a linear one is trained, on a quarter of ``runs`` more that are not counted.

    Examples
    --------
    >>> from pairveil.audit.canaries import label_flip
    >>> def noisy_sum(pairs, rng):
    ...     return pairs.differences().sum(axis=0) / 2 + rng.laplace(size=pairs.n_features)
    >>> found = audit_mechanism(noisy_sum, label_flip(n_features=3), Claim(0.2), random_state=0)
    >>> found.verdict
    'violated'
    """
    rng = np.random.default_rng(random_state)
    if score is None:
        score = train_score(mechanism, neighbours, max(64, runs // 4), rng)
    trained = score

    def scores(which: int, n: int, generator: np.random.Generator) -> FloatArray:
        data = neighbours.second if which else neighbours.first
        return np.array([trained(_flat(mechanism(data, generator))) for _ in range(n)])

    return audit_scores(
        scores,
        claim,
        runs=runs,
        confidence=confidence,
        random_state=rng,
        canary=neighbours.name,
        adjacency=neighbours.adjacency,
    )


def train_score(
    mechanism: Mechanism, neighbours: Neighbours, runs: int, rng: np.random.Generator
) -> Score:
    """Fisher's linear score on the outputs and their distances from the median.

    The distances let it see a mechanism whose noise, not its mean, depends on the data.
    """
    outputs = [
        np.stack([_flat(mechanism(data, rng)) for _ in range(max(2, runs // 2))])
        for data in (neighbours.first, neighbours.second)
    ]
    centre = np.median(np.concatenate(outputs), axis=0)

    def features(x: FloatArray) -> FloatArray:
        return np.concatenate([x, np.abs(x - centre)], axis=-1)

    one, other = features(outputs[0]), features(outputs[1])
    spread = (np.cov(one, rowvar=False) + np.cov(other, rowvar=False)) / 2
    spread = np.atleast_2d(spread)
    ridge = 1e-3 * np.trace(spread) / len(spread) + np.finfo(float).tiny
    weights = np.linalg.solve(spread + ridge * np.eye(len(spread)), other.mean(0) - one.mean(0))
    return lambda x: float(features(x) @ weights)


def _flat(output: Any) -> FloatArray:
    return np.asarray(output, dtype=np.float64).ravel()
