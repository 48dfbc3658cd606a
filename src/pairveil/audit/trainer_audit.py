"""An audit of anyone's trainer of pairs: data in, model out, and what the model tells of a planted person.

A trainer is a function ``train(X, pairs, y, seed) -> model``. It claims an epsilon, often for one example.
Here pairs are planted that belong together, as real ones do: all pairs of one person, or the pairs that tie
two people together, hold one secret. The trainer is run many times with either secret, or once with many
planted people, and what an observer of the model can tell is a lower bound on epsilon at each level
(`pairveil.audit.auditor`). Where a trainer keeps its promise for a pair and breaks it for a person, the
promise was about pairs.

Auditing in one run: many canaries, each in or out by a coin, one output, many guesses.

The auditor tosses a fair coin for each of m canaries, runs the mechanism once and guesses some of the
coins from the output. Each canary must be a group of pairs as large as the claim's kappa, and the
two sides of the coin must be neighbours in the claim's adjacency (contents or null; label or flipped
label). Both bounds are one-sided tests of the hypothesis "the mechanism keeps its promise".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairveil._lazy import load_named
from pairveil.array_types import FloatArray
from pairveil.audit.auditor import Claim, Finding, Verdict, audit_mechanism, judged
from pairveil.audit.canaries import worst_case
from pairveil.errors import InputError
from pairveil.privacy.units import Adjacency, Unit
from pairveil.records.pairset import PairSet

# ---- Auditing in one run: many canaries, each in or out by a coin, one output, many guesses ------

Blow = Callable[[float], float]


def epsilon_one_run(
    correct: int, guesses: int, canaries: int, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Largest epsilon that one run refutes, whatever the mechanism.

    `refutes_curve` against the trade-off curve of (epsilon, delta)-privacy. Where delta is next to nothing it
    is within 0.02 of the theorem of Steinke, Nasr and Jagielski (2023), else sharper, with many canaries much
    so. A delta above ``(1 - confidence) * guesses / canaries`` leaves nothing to refute.

    The auditor may abstain: of ``canaries`` coins that were tossed it made so many guesses.

    Examples
    --------
    >>> round(epsilon_one_run(correct=190, guesses=200, canaries=1000), 2)
    2.38
    >>> epsilon_one_run(correct=105, guesses=200, canaries=1000)
    0.0
    """

    def refuted(epsilon: float) -> bool:
        odds = math.exp(epsilon)

        def shrink(x: float) -> float:
            """Least probability under one input of an event that has probability x under the other."""
            return max(0.0, (x - delta) / odds, 1.0 - delta - odds * (1.0 - x))

        return refutes_curve(shrink, correct, guesses, canaries, confidence)

    return largest_refuted(refuted)


def refutes_curve(
    shrink: Blow, correct: int, guesses: int, canaries: int, confidence: float = 0.95
) -> bool:
    """Whether one run refutes an f-DP promise (Mahloujifar, Melis and Chaudhuri 2024).

    ``shrink``: ``x -> g^-1(x)`` with g(x) = 1 - f(x) the largest probability under one input of an event
    of probability x under the other. For mu-GDP: ``Phi(Phi^-1(x) - mu)``.

    Their Theorem 3.2, for two-sided coins: let h and r be the probabilities, over all canaries, of a wrong
    and of a right guess in the event of at least c' right guesses. From c' = c downwards, h is at
    least ``shrink(r)``, and r grows by ``c'/(guesses - c')`` of what h grows. Starting from what
    a test at this confidence allows, a sum beyond ``guesses/canaries`` cannot be.
    """
    _check(correct, guesses, canaries)
    error = 1.0 - confidence
    right, wrong = error * correct / canaries, error * (guesses - correct) / canaries
    for c in range(correct - 1, -1, -1):
        more = max(wrong, shrink(right))
        if more == wrong:
            break
        right = min(1.0, right + c / (guesses - c) * (more - wrong))
        wrong = more
    return right + wrong > guesses / canaries


def largest_refuted(refuted: Callable[[float], bool]) -> float:
    """The largest value that is refuted, to 1e-6, on the safe side; 0 if none is."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high) and high < 64.0:
        low, high = high, 2.0 * high
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _check(correct: int, guesses: int, canaries: int) -> None:
    if not 0 <= correct <= guesses <= canaries or guesses < 1:
        raise InputError("need 0 <= correct <= guesses <= canaries, and at least one guess")


# ---- data in, model out, and what the model tells of a planted person ----------------------------

Trainer = Callable[[FloatArray, NDArray[np.int64], NDArray[np.int8], int], Any]
"""(features (n, d) of length 1 at most, pairs (K, 2), labels +1 similar or -1, seed) -> model."""

Mode = Literal["many-run", "one-run"]

LEVELS: tuple[Unit, ...] = ("pair", "relationship", "person")

PARTS = ("components_", "coef_", "W", "weights")
"""Attributes in which models keep their numbers, the first that is there."""

GUESSED, FEW = 0.25, 100
"""Share of the coins of a one-run audit that are guessed (of few coins, half or `FEW`); of the others the
audit abstains."""


@dataclass(frozen=True)
class Level:
    """What was found about one kind of secret."""

    unit: Unit
    kappa: int  # pairs that hold the secret together
    mode: Mode
    finding: Finding

    @property
    def least(self) -> float:
        """The bound to two decimals, rounded down: what may be said of it."""
        return math.floor(100 * self.finding.lower_bound) / 100

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"unit": self.unit, "kappa": self.kappa, "mode": self.mode, **self.finding.to_dict()}


@dataclass(frozen=True)
class TrainerFinding:
    """What was found about a trainer, level by level."""

    trainer: str
    claimed_epsilon: float
    delta: float
    levels: tuple[Level, ...]

    @property
    def violated(self) -> list[str]:
        """The levels at which the claim is violated."""
        return [level.unit for level in self.levels if level.finding.verdict == "violated"]

    @property
    def verdict(self) -> Verdict:
        """'violated' if the claim is, at any level."""
        return "violated" if self.violated else "consistent"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "trainer": self.trainer,
            "claimed_epsilon": self.claimed_epsilon,
            "delta": self.delta,
            "verdict": self.verdict,
            "violated": self.violated,
            "levels": [level.to_dict() for level in self.levels],
        }

    def summary(self) -> str:
        """What it means, in a sentence."""
        if not self.violated:
            return "The audit is consistent with the claim at every level; it does not prove it."
        if "pair" not in self.violated:
            return (
                f"The claim does not hold for one {' or one '.join(self.violated)}: the trainer counts "
                "pairs, and pairs that share a secret change together."
            )
        return "The claim does not even hold for one pair."


def load_trainer(name: str) -> Trainer:
    """The function that 'module:function' names; modules of the working folder are found too."""
    found = load_named(name, "function")
    if not callable(found):
        raise InputError(f"'{name}' is no function")
    trainer: Trainer = found
    return trainer


def audit_trainer(
    trainer: Trainer,
    epsilon: float,
    delta: float = 0.0,
    *,
    levels: tuple[Unit, ...] = LEVELS,
    kappa: int = 4,
    n_features: int = 3,
    n_others: int = 60,
    adjacency: Adjacency = "replace",
    mode: Mode = "many-run",
    runs: int | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    name: str = "trainer",
) -> TrainerFinding:
    """Bound from below what a trainer's models tell of a pair, of a relationship and of a person.

    Parameters
    ----------
    trainer : callable
        ``trainer(X, pairs, y, seed) -> model``: an array, several, or an object with ``components_`` or
        ``coef_``. All its randomness must follow from the seed, or from the operating system.
    epsilon, delta : float
        The claim.
    levels : tuple of {'pair', 'relationship', 'person'}
    kappa : int
        Pairs of the planted relationship and of the planted person.
    n_features, n_others : int
        Of the data; other pairs are public and the same always.
    adjacency : {'replace', 'zero-out'}
        What the claim compares.
    mode : {'many-run', 'one-run'}
        Many runs on two inputs; or one, with as many planted secrets as there are features (at least 20).
    runs : int or None
        Of the trainer, for each level: by default 1,000, or 1. A one-run audit of several runs tosses all
        coins anew in each: as many more secrets, each of them in one run alone.
    confidence : float
    random_state : int
    name : str

    Examples
    --------
    >>> from reproduction.trainers import pair_clipped
    >>> found = audit_trainer(pair_clipped, 1.0, 1e-5, levels=("person",), kappa=8, runs=600)
    >>> found.verdict, found.levels[0].finding.lower_bound > 1
    ('violated', True)
    """
    if kappa < 2:
        raise InputError("a planted relationship or person holds at least 2 pairs")
    if mode == "one-run" and n_features < 20:
        raise InputError("a one-run audit plants one secret a feature: take at least 20 features")
    claim, guarded = Claim(epsilon, delta), _Guarded(trainer)
    found = []
    for unit in levels:
        held = 1 if unit == "pair" else kappa
        finding = (
            _one_run(
                guarded, claim, held, n_features, adjacency, runs or 1, confidence, random_state
            )
            if mode == "one-run"
            else audit_mechanism(
                guarded,
                worst_case(unit, held, n_features, adjacency, n_others),
                claim,
                runs=1000 if runs is None else runs,
                confidence=confidence,
                random_state=random_state,
            )
        )
        found.append(Level(unit, held, mode, replace(finding, target=name)))
    return TrainerFinding(name, epsilon, delta, tuple(found))


class _Guarded:
    """A trainer as a mechanism: whatever it does wrong is an error with its reason."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._runs = 0
        self._size: int | None = None

    def __call__(self, data: PairSet, rng: np.random.Generator) -> FloatArray:
        self._runs += 1
        assert data.labels is not None
        given = np.array(data.features, dtype=np.float64), np.array(data.pairs, dtype=np.int64)
        seed = int(rng.integers(2**31))
        try:
            model = self._trainer(*given, data.labels.copy(), seed)
        except Exception as problem:
            raise InputError(
                f"the trainer failed in run {self._runs}: {type(problem).__name__}: {problem}"
            ) from None
        numbers = _numbers(model)
        if numbers.size == 0:
            raise InputError(
                f"the trainer returned no model in run {self._runs}: return an array, or an object with "
                f"{' or '.join(PARTS)}"
            )
        if not np.isfinite(numbers).all():
            raise InputError(f"the trainer's model holds NaN or infinity in run {self._runs}")
        if self._size not in (None, numbers.size):
            raise InputError("the trainer's models differ in size from run to run")
        self._size = numbers.size
        return numbers


def _numbers(model: Any) -> FloatArray:
    """All numbers of a model in one row; none where there are none."""
    for part in PARTS:
        if hasattr(model, part):
            return _numbers(getattr(model, part))
    if model is None:
        return np.zeros(0)
    if isinstance(model, dict):
        model = list(model.values())
    if isinstance(model, list | tuple) and not all(np.isscalar(one) for one in model):
        parts = [_numbers(one) for one in model]
        return np.concatenate(parts) if parts else np.zeros(0)
    try:
        return np.asarray(model, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        return np.zeros(0)


def _one_run(
    trainer: _Guarded,
    claim: Claim,
    kappa: int,
    n_features: int,
    adjacency: Adjacency,
    runs: int,
    confidence: float,
    seed: int,
) -> Finding:
    """One secret a column, each by a coin; the columns of the models tell which.

    Coins of different runs are coins of one mechanism, that of all runs together: changing a coin changes one
    run, so it is as private as the trainer.
    """
    rng = np.random.default_rng([seed, 21])

    def columns(coins: NDArray[np.bool_]) -> FloatArray:
        """What the model holds of each column, (n_features, numbers)."""
        numbers = trainer(_planted(coins, kappa, adjacency), rng)
        if numbers.size % n_features:
            raise InputError(
                "a one-run audit needs a model with one number, or more, for each feature"
            )
        return numbers.reshape(-1, n_features).T

    score = _column_score(columns, rng.random((2, n_features)) < 0.5)
    tossed = rng.random((runs, n_features)) < 0.5
    scores = np.concatenate([score(columns(coins)) for coins in tossed])
    coins = tossed.ravel()
    each = int(max(GUESSED * coins.size, min(FEW, coins.size / 2)) / 2)
    order = np.argsort(scores, kind="stable")
    right = int(coins[order[-each:]].sum() + (~coins[order[:each]]).sum())
    bound, verdict = judged(
        lambda sure: epsilon_one_run(right, 2 * each, coins.size, claim.delta, sure),
        claim.epsilon,
        confidence,
    )
    return Finding(
        target="", claimed_epsilon=claim.epsilon, lower_bound=bound, confidence=confidence, n_runs=runs,
        verdict=verdict, delta=claim.delta, canary=f"{coins.size} planted", adjacency=adjacency,
        assumes="nothing",
    )  # fmt: skip


def _column_score(
    columns: Callable[[NDArray[np.bool_]], FloatArray], tosses: NDArray[np.bool_]
) -> Callable[[FloatArray], FloatArray]:
    """How to guess a column's coin, learned from four runs that are not counted: two tosses, each both ways.

    Both ways of one toss give what a column is like on average (its start, say) and what its secret does to
    it. Three scores are tried on the second toss with what the first one taught, and the best is taken: the
    column's length, its way along its own shift, its way along the shift that all columns have.
    """
    seen = [(columns(coins), columns(~coins)) for coins in tosses]
    middles = np.stack([(one + other) / 2 for one, other in seen])
    shifts = np.stack(
        [(2.0 * coins - 1)[:, None] * (one - other)
         for coins, (one, other) in zip(tosses, seen, strict=True)]
    )  # fmt: skip

    def scores(x: FloatArray, middle: FloatArray, shift: FloatArray) -> FloatArray:
        away = x - middle
        own, shared = (away * shift).sum(axis=1), away @ shift.mean(axis=0)
        return np.stack([(x**2).sum(axis=1), own, shared])

    tried = scores(seen[1][0], middles[0], shifts[0])
    ranks = tried.argsort(axis=1, kind="stable").argsort(axis=1)
    apart = ranks @ (tosses[1] - tosses[1].mean())
    best = int(np.argmax(np.abs(apart)))
    towards = 1.0 if apart[best] >= 0 else -1.0
    middle, shift = middles.mean(axis=0), shifts.mean(axis=0)
    return lambda x: towards * scores(x, middle, shift)[best]


def _planted(secrets: NDArray[np.bool_], kappa: int, adjacency: Adjacency) -> PairSet:
    """For each column the pairs of one person along it: similar or dissimilar, or contents or none.

    The pairs of a relationship are those of one of its two people: both are a star here.
    """
    d = len(secrets)
    size = kappa + 1  # the person and those she is paired with
    features = np.zeros((d * size, d))
    pairs = np.empty((d * kappa, 2), dtype=np.int64)
    labels = np.ones(d * kappa, dtype=np.int8)
    for column in range(d):
        people = column * size + np.arange(size)
        mine = slice(column * kappa, (column + 1) * kappa)
        pairs[mine, 0], pairs[mine, 1] = people[0], people[1:]
        if adjacency == "replace" or secrets[column]:
            features[people[0], column], features[people[1:], column] = 1.0, -1.0
        if adjacency == "replace" and not secrets[column]:
            labels[mine] = -1
    return PairSet(features, pairs, labels)
