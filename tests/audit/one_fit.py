"""Audit a real-size fit in a single run: canary pairs among the real ones, each in or out by a coin.

Canaries are pairs of people of their own, far apart in random directions; "out" is null (zero-out) or
the flipped label (replace). They change nothing for the promise: it holds for any data. The attacker
sees every answer and knows the real pairs and all canaries' contents, and guesses the coins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from pairveil.audit.auditor import Finding, judged
from pairveil.audit.trainer_audit import largest_refuted, refutes_curve
from pairveil.engine.engine import Engine
from pairveil.engine.plan import PublicFacts, make_plan
from pairveil.engine.statistics import Statistic, scale_columns
from pairveil.errors import InputError
from pairveil.learners.contrastive.recipe import ContrastiveRecipe
from pairveil.privacy.compose import epsilon_from_mu
from pairveil.privacy.grid import Norm
from pairveil.privacy.mechanisms import Budget, Query
from pairveil.privacy.noise import NoiseSource, SeededNoise
from pairveil.privacy.units import Adjacency
from pairveil.records.pairset import PairSet

FloatArray = NDArray[np.float64]


def audit_one_fit(
    data: PairSet,
    epsilon: float,
    delta: float = 1e-5,
    *,
    adjacency: Adjacency = "zero-out",
    n_canaries: int = 300,
    share: float = 0.15,
    n_steps: int | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    noise: type[SeededNoise] = SeededNoise,
) -> Finding:
    """Lower bound on epsilon of the learner's default plan for one pair, from one fit.

    Parameters
    ----------
    data : PairSet
        The real pairs, labelled, rows of norm at most 1.
    epsilon, delta : float
        The claim, for kappa = 1.
    n_canaries, share : int and float
        Canary pairs added, and the share of them on which the attacker dares a guess.
    n_steps : int, optional
        Of the descent; default the plan's own.
    noise : class
        Source of randomness; a broken one is a broken learner.

    Examples
    --------
    >>> from pairveil.audit.attack import patients
    >>> audit_one_fit(patients().all, epsilon=1.0, n_canaries=100, n_steps=5).verdict
    'consistent'
    """
    if data.labels is None or n_canaries < 10:
        raise InputError("a one-run audit needs labelled pairs and at least ten canaries")
    rng = np.random.default_rng(random_state)
    coins = rng.integers(0, 2, n_canaries).astype(bool)
    inside, outside = _with_canaries(data, n_canaries, adjacency, rng)
    rows = np.arange(data.n_pairs, data.n_pairs + n_canaries)
    features, labels = inside.features.copy(), np.array(inside.labels)
    out = inside.pairs[rows[~coins]].ravel()
    features[out], labels[rows[~coins]] = outside.features[out], _labels(outside)[rows[~coins]]
    mixed = PairSet(features, inside.pairs, labels)
    budget = Budget(epsilon, delta, 1, adjacency)
    recipe = ContrastiveRecipe(n_steps=n_steps)
    plan = make_plan(recipe, PublicFacts(budget, mixed.n_pairs, data.n_features))
    watcher = _CoinWatcher(inside, outside, rows)
    source: NoiseSource = noise(rng)
    recipe.run(plan, Engine(mixed, source, on_answer=watcher))
    which, guess = guess_coins(watcher.scores, share)
    right = int((guess == np.where(coins[which], 1, -1)).sum())
    bound, verdict = judged(
        lambda sure: epsilon_one_run_gaussian(right, len(which), n_canaries, delta, sure),
        epsilon,
        confidence,
    )
    return Finding(
        "learner", epsilon, bound, confidence, 1, verdict, delta, "many pairs", adjacency, "gaussian"
    )  # fmt: skip


def epsilon_one_run_gaussian(
    correct: int, guesses: int, canaries: int, delta: float, confidence: float = 0.95
) -> float:
    """Like `epsilon_one_run` against Gaussian trade-off curves: tighter, for Gaussian mechanisms only.

    Examples
    --------
    >>> from pairveil.audit.trainer_audit import epsilon_one_run
    >>> seen = {"correct": 180, "guesses": 200, "canaries": 1000, "delta": 1e-5}
    >>> epsilon_one_run(**seen) < epsilon_one_run_gaussian(**seen)
    True
    """

    def refuted(mu: float) -> bool:
        return refutes_curve(
            lambda x: float(ndtr(ndtri(x) - mu)), correct, guesses, canaries, confidence
        )

    return epsilon_from_mu(largest_refuted(refuted), delta)


def guess_coins(scores: ArrayLike, share: float = 1.0) -> tuple[NDArray[np.intp], NDArray[np.int8]]:
    """Which coins to guess, and the guesses: the scores farthest from 0, by their sign.

    The share must be fixed before the run is seen.

    Examples
    --------
    >>> which, guess = guess_coins([0.1, -3.0, 2.0, 0.2], share=0.5)
    >>> which.tolist(), guess.tolist()
    ([1, 2], [-1, 1])
    """
    values = np.asarray(scores, dtype=np.float64)
    if not 0 < share <= 1:
        raise InputError("share must be above 0 and at most 1")
    wanted = max(1, round(share * values.size))
    which = np.sort(np.argsort(-np.abs(values), kind="stable")[:wanted])
    return which, np.where(values[which] >= 0, 1, -1).astype(np.int8)


def _with_canaries(
    data: PairSet, m: int, adjacency: Adjacency, rng: np.random.Generator
) -> tuple[PairSet, PairSet]:
    """Two inputs: the real pairs with all m canaries, and with none of them."""
    arrows = rng.normal(size=(m, data.n_features))
    arrows /= np.linalg.norm(arrows, axis=1, keepdims=True)
    people = np.empty((2 * m, data.n_features))
    people[0::2], people[1::2] = arrows, -arrows
    real = np.asarray(data.features, dtype=np.float64)
    pairs = np.concatenate([data.pairs, data.n_people + np.arange(2 * m).reshape(-1, 2)])
    labels = np.concatenate([_labels(data), np.ones(m, dtype=np.int8)])
    inside = PairSet(np.concatenate([real, people]), pairs, labels)
    if adjacency == "replace":
        flipped = np.concatenate([_labels(data), -np.ones(m, dtype=np.int8)])
        return inside, PairSet(inside.features, pairs, flipped)
    return inside, PairSet(np.concatenate([real, np.zeros_like(people)]), pairs, labels)


class _CoinWatcher:
    """Estimates every coin from all answers: least squares with the coins' own prior.

    An answer is ``base + sum_i x_i g_i + noise`` with x_i = +-1/2, so the best linear estimate solves
    ``(A + 4) x = b`` with ``A = sum G G^T / sigma^2`` and ``b = sum G (seen - base) / sigma^2``. Choices are
    not looked at: what the sums alone show is Gaussian, and its bound holds for all answers together.
    """

    def __init__(self, inside: PairSet, outside: PairSet, rows: NDArray[np.int64]) -> None:
        self._gram, self._match = np.zeros((len(rows), len(rows))), np.zeros(len(rows))
        self._rows = rows
        self._worlds = inside, outside

    def __call__(self, query: Query, statistic: Statistic, noisy: FloatArray) -> None:
        if query.is_choice:
            return
        real, norm = np.arange(self._rows[0]), query.mechanism.norm
        parts = [self._parts(world, statistic, norm) for world in self._worlds]
        base = self._sum(self._worlds[0], real, statistic, norm).ravel()
        left = noisy.ravel() - base - (parts[0] + parts[1]).sum(axis=0) / 2
        sigma = query.noise_multiplier * statistic.clip
        apart = (parts[0] - parts[1]) / sigma
        self._gram += apart @ apart.T
        self._match += apart @ left / sigma

    @property
    def scores(self) -> FloatArray:
        """One number a canary; above 0 speaks for 'in'."""
        prior = 4.0 * np.eye(len(self._match))
        return np.asarray(np.linalg.solve(self._gram + prior, self._match))

    def _sum(
        self, world: PairSet, rows: NDArray[np.int64], statistic: Statistic, norm: Norm
    ) -> FloatArray:
        differences = np.asarray(world.differences(rows))
        if statistic.scale is not None:
            differences = scale_columns(differences, statistic.scale)
        return statistic.tile_sum(differences, _labels(world)[rows], norm)

    def _parts(self, world: PairSet, statistic: Statistic, norm: Norm) -> FloatArray:
        one = [
            self._sum(world, self._rows[i : i + 1], statistic, norm) for i in range(len(self._rows))
        ]
        return np.stack([part.ravel() for part in one])


def _labels(data: PairSet) -> NDArray[np.int8]:
    assert data.labels is not None
    return np.asarray(data.labels)
