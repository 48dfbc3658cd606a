"""The auditor: how much of epsilon an attacker can see from outside, at stated confidence.

The mechanism runs many times on each of two neighbouring inputs; every run becomes one score. Some
runs are held out to train the score and to choose the threshold; the others are counted. The answer
is a lower bound on epsilon that is too high with probability at most ``1 - confidence``, whatever the score:
a bad score only makes the bound small. A bound above the claim, at `ACCUSATION` confidence, refutes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.audit.bounds import (
    choose_threshold,
    count_errors,
    epsilon_from_rates,
    middle_threshold,
    mu_from_duels,
)
from pairveil.audit.canaries import Neighbours
from pairveil.audit.families import Curve, epsilon_in_family
from pairveil.data.pairset import PairSet
from pairveil.errors import InputError
from pairveil.privacy.gdp import epsilon_from_mu

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
    """What is promised, and what may be assumed about the shape of the trade-off curve.

    Parameters
    ----------
    assume : {"nothing", "gaussian", "family"}
        "nothing": counting alone, for any mechanism. "gaussian": the curve is that of mu-GDP
        (full-batch Gaussian noise). "family": it is ``curve`` at some noise.
    curve, noise
        For "family": ``curve(noise, delta) -> epsilon`` and the claimed noise.
    """

    epsilon: float
    delta: float = 0.0
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
    """Something to audit.

    Attributes
    ----------
    scores : callable
        See `audit_scores`.
    runs : int
        How many runs make the audit sharp.
    """

    name: str
    scores: Scores
    claim: Claim
    canary: str
    adjacency: str
    runs: int


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

    Parameters
    ----------
    scores : callable
        ``scores(which, n, rng)``: n scores of fresh runs on the first (0) or second (1) input.
    runs : int
        Runs in all, half of them on each input.

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

    Parameters
    ----------
    bound_at : callable
        ``bound_at(confidence)`` is the lower bound on epsilon at that confidence.
    claimed : float
        The claimed epsilon.
    confidence : float
        Of the bound that is reported. The verdict takes `ACCUSATION` or this, whichever is more.

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
    """Lower bound on epsilon at the claim's delta from scores of both inputs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.normal(0, 1, 5000), rng.normal(1, 1, 5000)
    >>> round(lower_bound(first, second, Claim(5.0, 1e-5, "gaussian")), 1)
    4.3
    """
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


def audit(
    mechanism: Mechanism,
    neighbours: Neighbours,
    claim: Claim,
    *,
    score: Score | None = None,
    runs: int = 4000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = None,
    target: str = "mechanism",
) -> Finding:
    """Audit any callable ``mechanism(pairset, rng) -> array``.

    Parameters
    ----------
    neighbours : Neighbours
        From `pairveil.audit.canaries`, or your own.
    claim : Claim
        For the adjacency of `neighbours` and a kappa of at least ``neighbours.kappa``.
    score : callable, optional
        One number from one output, higher for the second input. Without it a linear score is trained
        on runs that are not counted.
    runs, confidence, random_state, target
        As in `audit_scores`; training takes a quarter of `runs` more.

    Examples
    --------
    >>> from pairveil.audit.canaries import label_flip
    >>> def noisy_sum(pairs, rng):
    ...     return pairs.differences().sum(axis=0) / 2 + rng.laplace(size=pairs.n_features)
    >>> found = audit(noisy_sum, label_flip(n_features=3), Claim(0.2), random_state=0)
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
        target=target,
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
