"""The attacked learners: ours with and without noise, and whatever else is given beside them.

Without noise the attacker matches the metric, as in the paper's Fig. 1. Where there is noise the same
attacker, who trains under both conjectures, sees every noisy sum of the fit and weighs how likely they are:
matching the final metric would show less.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from pairveil.audit.attack import ATTACKERS, Attacker, Guess, Patients, Row, games, patients, play
from pairveil.audit.canaries import Neighbours
from pairveil.audit.watching import Watcher
from pairveil.data.pairset import PairSet
from pairveil.engine.engine import Engine
from pairveil.errors import DataWarning
from pairveil.graph.kappa import kappa
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.preparing import Prepared
from pairveil.privacy.noise import SeededNoise
from pairveil.privacy.tradeoff import best_guess_of

EPSILONS = (0.1, 1.0, 4.0)
N_STEPS = 5
"""Steps of our learner here: fewer than the default, to save time. The promise and its bound are the same:
fewer steps have less noise each, and an attacker who sees them all learns as much."""

N_STEPS_WITHOUT_NOISE = 40
"""Enough for every label to leave a trace: after 5 steps two targets in five had one metric either way."""


Attacked = tuple[str, float, Guess, float | None]
"""Name and claimed epsilon of a learner, how it is attacked, and what its promise allows (None: nothing)."""

OthersOf = Callable[[int, int], Iterable[Attacked]]
"""(kappa of the used pairs, most labels that flip together) -> further learners to attack."""


def attack_all(
    n_targets: int = 200, random_state: int = 0, others: OthersOf | None = None
) -> list[Row]:
    """Every attacker against every learner.

    Parameters
    ----------
    n_targets : int
        Relationships attacked, each in a game of its own.
    others : callable, optional
        Further learners; `pairveil.audit.published_targets.published_learners` for the paper's.
    """
    data = patients(random_state=random_state)
    return [
        row
        for attacker in ATTACKERS
        for row in attack_learners(data, attacker, n_targets, random_state, others)
    ]


def attack_learners(
    data: Patients,
    attacker: Attacker,
    n_targets: int,
    random_state: int,
    others: OthersOf | None = None,
) -> Iterator[Row]:
    """One attacker against the non-private learner, the others given, and ours."""
    rounds = list(games(data, attacker, n_targets, random_state))  # the same for every learner

    def row(name: str, epsilon: float, guess: Guess, bound: float | None) -> Row:
        return Row(name, epsilon, attacker, n_targets, play(guess, rounds), bound)

    selected = attacker in ("dropped-labels", "two-halves")
    used = data.all.subset(data.used) if selected else data.all
    flips = max(worlds.kappa for worlds, _ in rounds)
    yield row("non-private", math.inf, match_ours(used), 1.0)
    group = kappa(used).relationship
    for name, claimed, guess, bound in () if others is None else others(group, flips):
        yield row(name, claimed, guess, bound)
    # Whoever knows all other pairs lacks one. For those who know the dropped labels too, the certificate
    # of a selected fit states kappa of the full graph too.
    lacking = {"all-other-pairs": 1, "dropped-labels": kappa(data.all).relationship}
    covered = lacking.get(attacker, group)
    for epsilon in EPSILONS:
        prepared = _prepared(used, epsilon)
        bound = None
        if flips <= covered:
            bound = best_guess_of(prepared.plan.events(), kappa=covered)
        yield row("pairveil", epsilon, watch_ours(prepared), bound)


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
        return learner.prepare(used)
