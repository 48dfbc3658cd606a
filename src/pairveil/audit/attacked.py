"""The attacked learners: non-private, as published, and ours, each with its best simple attacker."""

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
    odds_bound,
    patients,
    play,
)
from pairveil.audit.canaries import Neighbours
from pairveil.audit.learner_target import FitWatcher
from pairveil.errors import DataWarning, PrivacyLeakWarning
from pairveil.graph.kappa import kappa
from pairveil.learning.certifying import Prepared, prepare
from pairveil.learning.dpp import DPPMetricLearner
from pairveil.learning.engine import Engine
from pairveil.learning.training import train
from pairveil.pairs.pairset import PairSet
from pairveil.privacy.accounting import epsilon_of
from pairveil.privacy.noise import SeededNoise
from pairveil.published.algorithm1 import Settings, algorithm1

EPSILONS = (0.1, 1.0, 4.0)
PUBLISHED_EPSILON = 1.0
N_STEPS = 12
"""Steps of our private learner here: fewer than the default, at the same epsilon, to save time."""

N_STEPS_WITHOUT_NOISE = 40


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

    def row(name: str, epsilon: float, guess: Guess, bound: float) -> Row:
        recovered = play(guess, data, attacker, n_targets, random_state)
        return Row(name, epsilon, attacker, n_targets, recovered, bound)

    selected = attacker in ("dropped-labels", "two-halves")
    used = data.all.subset(data.used) if selected else data.all
    yield row("non-private", math.inf, match_ours(used), 1.0)
    group = kappa(used).relationship
    for name, variant in (("published-dpp", "dpp"), ("published-dpp-s", "dpp-s")):
        settings = Settings(variant, epsilon=PUBLISHED_EPSILON, n_components=4, kappa=group)  # type: ignore[arg-type]
        yield row(name, PUBLISHED_EPSILON, match_published(settings), odds_bound(PUBLISHED_EPSILON))
    open_labels = {"all-other-pairs": 1, "dropped-labels": kappa(data.all).relationship}
    for epsilon in EPSILONS:
        prepared = _prepared(used, epsilon)
        spent = epsilon_of(
            prepared.plan.events(),
            kappa=open_labels.get(attacker, group),
            adjacency="replace",
            delta=_DELTA,
        )
        yield row("pairveil", epsilon, watch_ours(prepared), odds_bound(spent, _DELTA))


def match_published(settings: Settings) -> Guess:
    """The paper's own attack: train under both conjectures and take the nearer metric.

    The start and the batches do not depend on the contents, so the attacker may know them; the
    conjectures are trained without noise.
    """
    noiseless = replace(settings, variant="nonpriv")

    def guess(worlds: Neighbours, real: int, seed: int) -> bool:
        seen = _metric((worlds.first, worlds.second)[real], settings, seed)
        gaps = [
            float(np.linalg.norm(seen - _metric(world, noiseless, seed)))
            for world in (worlds.first, worlds.second)
        ]
        return int(gaps[1] < gaps[0]) == real

    return guess


def match_ours(used: PairSet) -> Guess:
    """The same attack on our learner without noise: it is deterministic, so the match is exact."""
    prepared = _prepared(used, math.inf)
    fits: dict[bytes, np.ndarray] = {}

    def fit(data: PairSet) -> np.ndarray:
        assert data.labels is not None
        key = data.labels.tobytes()
        if key not in fits:
            W = train(prepared.plan, data, Engine(data, SeededNoise(0)))
            fits[key] = W.T @ W
        return fits[key]

    def guess(worlds: Neighbours, real: int, seed: int) -> bool:  # noqa: ARG001 - nothing is random
        conjectures = fit(worlds.first), fit(worlds.second)
        gaps = [float(np.linalg.norm(conjectures[real] - one)) for one in conjectures]
        return int(gaps[1] < gaps[0]) == real

    return guess


def watch_ours(prepared: Prepared) -> Guess:
    """The strongest attacker that the proof covers: every noisy sum is seen, everything else known."""

    def guess(worlds: Neighbours, real: int, seed: int) -> bool:
        watcher = FitWatcher(worlds, prepared.plan)
        world = (worlds.first, worlds.second)[real]
        train(prepared.plan, world, Engine(world, SeededNoise(seed), on_release=watcher))
        return int(watcher.score > 0) == real

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


def _metric(data: PairSet, settings: Settings, seed: int) -> np.ndarray:
    assert data.labels is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # the leak is what is being measured
        return algorithm1(data.features, data.pairs, data.labels, settings, random_state=seed).M
