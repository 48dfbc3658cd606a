"""The attacked learners: non-private, as published, and ours.

Without noise the attacker matches the metric, as in the paper's Fig. 1. Where there is noise the same
attacker, who trains under both conjectures, sees every noisy sum of the fit and weighs how likely they are:
matching the final metric would show less.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pairveil.audit.attack import (
    ATTACKERS,
    Attacker,
    Guess,
    Patients,
    Row,
    games,
    patients,
    play,
)
from pairveil.audit.canaries import Neighbours
from pairveil.audit.watching import Watcher
from pairveil.data.pairset import PairSet
from pairveil.engine.engine import Engine
from pairveil.errors import DataWarning, PrivacyLeakWarning
from pairveil.graph.kappa import kappa
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.preparing import Prepared, prepare
from pairveil.privacy.events import LaplaceEvent
from pairveil.privacy.noise import SeededNoise
from pairveil.privacy.tradeoff import best_guess_of
from pairveil.studies.published.algorithm1 import Settings, algorithm1
from pairveil.studies.published.mechanisms import FloatArray, Laplace

EPSILONS = (0.1, 1.0, 4.0)
PUBLISHED_EPSILON = 1.0
N_STEPS = 5
"""Steps of our learner here: fewer than the default, to save time. The promise and its bound are the same:
fewer steps have less noise each, and an attacker who sees them all learns as much."""

N_STEPS_WITHOUT_NOISE = 40
"""Enough for every label to leave a trace: after 5 steps two targets in five had one metric either way."""


def attack_all(n_targets: int = 200, random_state: int = 0) -> list[Row]:
    """Every attacker against every learner.

    Parameters
    ----------
    n_targets : int
        Relationships attacked, each in a game of its own.
    random_state : int

    Returns
    -------
    list of Row
    """
    data = patients(random_state=random_state)
    return [
        row
        for attacker in ATTACKERS
        for row in attack_learners(data, attacker, n_targets, random_state)
    ]


def attack_learners(
    data: Patients, attacker: Attacker, n_targets: int, random_state: int
) -> Iterator[Row]:
    """One attacker against the non-private learner, the published ones and ours."""
    rounds = list(games(data, attacker, n_targets, random_state))  # the same for every learner

    def row(name: str, epsilon: float, guess: Guess, bound: float | None) -> Row:
        return Row(name, epsilon, attacker, n_targets, play(guess, rounds), bound)

    selected = attacker in ("dropped-labels", "two-halves")
    used = data.all.subset(data.used) if selected else data.all
    flips = max(worlds.kappa for worlds, _ in rounds)
    yield row("non-private", math.inf, match_ours(used), 1.0)
    group = kappa(used).relationship
    # A claim of pure epsilon for kappa replaced pairs, whatever the mechanism: randomised response.
    claimed = best_guess_of([LaplaceEvent(2.0 / PUBLISHED_EPSILON)], kappa=1)
    for name, variant in (("published-dpp", "dpp"), ("published-dpp-s", "dpp-s")):
        settings = Settings(variant, epsilon=PUBLISHED_EPSILON, n_components=4, kappa=group)  # type: ignore[arg-type]
        bound = claimed if flips <= group else None
        yield row(name, PUBLISHED_EPSILON, watch_published(settings), bound)
    # Who knows all other pairs lacks one. A selected fit's certificate states kappa of the full graph too,
    # for who knows the dropped labels.
    lacking = {"all-other-pairs": 1, "dropped-labels": kappa(data.all).relationship}
    covered = lacking.get(attacker, group)
    for epsilon in EPSILONS:
        prepared = _prepared(used, epsilon)
        bound = None
        if flips <= covered:
            bound = best_guess_of(prepared.plan.events(), kappa=covered)
        yield row("pairveil", epsilon, watch_ours(prepared), bound)


class _Watched(Laplace):
    """Laplace noise that is drawn, or taken from a fit seen before, and the likelihood of it."""

    def __init__(self, epsilon: float, seen: list[FloatArray] | None) -> None:
        super().__init__(epsilon)
        self.seen: list[FloatArray] = []
        self.score = 0.0
        self._given = None if seen is None else iter(seen)

    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        if self._given is None:
            noisy = super().sample(rng, value, sensitivity)
        else:
            noisy = next(self._given)
        self.seen.append(noisy)
        self.score += self.log_density(noisy, value, sensitivity)
        return noisy


def watch_published(settings: Settings) -> Guess:
    """The attacker who trains under both conjectures, and sees every noisy gradient of the real fit.

    Start and batches do not depend on the contents, so the attacker may know them. Each conjecture is
    trained along the iterates that were seen; the one under which they are likelier is named.
    """

    def fit(data: PairSet, seed: int, seen: list[FloatArray] | None) -> _Watched:
        watched = _Watched(settings.epsilon / settings.epochs, seen)
        chosen = replace(settings, mechanism=lambda _: watched)
        assert data.labels is not None
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", PrivacyLeakWarning
            )  # the leak is what is being measured
            algorithm1(data.features, data.pairs, data.labels, chosen, random_state=seed)
        return watched

    def guess(worlds: Neighbours, seed: int) -> int:
        shown = fit(worlds.first, seed, None)
        # A pair that no batch holds leaves a tie: then the first is named, which is right once in two.
        right = int(shown.score >= fit(worlds.second, seed, shown.seen).score)
        shown = fit(worlds.second, seed, None)
        return right + int(shown.score > fit(worlds.first, seed, shown.seen).score)

    return guess


def match_ours(used: PairSet) -> Guess:
    """The same attack on our learner without noise: it is deterministic, so the match is exact."""
    prepared = _prepared(used, math.inf)
    fits: dict[bytes, np.ndarray] = {}

    def fit(data: PairSet) -> np.ndarray:
        assert data.labels is not None
        key = data.labels.tobytes()
        if key not in fits:
            W = prepared.recipe.run(prepared.plan, Engine(data, SeededNoise(0)))
            fits[key] = W.T @ W
        return fits[key]

    def guess(worlds: Neighbours, seed: int) -> int:  # noqa: ARG001 - nothing is random
        # The metric seen is one of the two; it is told from the other unless they are equal.
        return 2 if np.linalg.norm(fit(worlds.first) - fit(worlds.second)) > 0 else 1

    return guess


def watch_ours(prepared: Prepared) -> Guess:
    """The strongest attacker that the proof covers: every noisy sum is seen, everything else known."""

    def guess(worlds: Neighbours, seed: int) -> int:
        watcher, right = Watcher(worlds), 0
        for real, world in enumerate((worlds.first, worlds.second)):
            watcher.reset()
            prepared.recipe.run(prepared.plan, Engine(world, SeededNoise(seed), on_answer=watcher))
            right += int(watcher.score > 0) == real
        return right

    return guess


_DELTA = 1e-5


def _prepared(used: PairSet, epsilon: float) -> Prepared:
    steps = N_STEPS_WITHOUT_NOISE if math.isinf(epsilon) else N_STEPS
    learner = DPPMetricLearner(
        epsilon=epsilon, delta=_DELTA, select="all", n_steps=steps, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # few pairs for so small an epsilon: known
        return prepare(learner, used, SeededNoise(0), inferred_topology=False)
