"""The published learners under the paper's own attack."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.audit.attack import Guess
from pairveil.audit.attacked import Attacked
from pairveil.audit.canaries import Neighbours
from pairveil.data.pairset import PairSet
from pairveil.errors import PrivacyLeakWarning
from pairveil.privacy.events import LaplaceEvent
from pairveil.privacy.tradeoff import best_guess_of
from pairveil.studies.published.algorithm1 import Settings, algorithm1
from pairveil.studies.published.mechanisms import Laplace

PUBLISHED_EPSILON = 1.0


def published_learners(kappa: int, flips: int) -> Iterator[Attacked]:
    """DPP and DPP-S as published, with what their claim would allow.

    Parameters
    ----------
    kappa : int
        Of the used pairs.
    flips : int
        Most labels that flip together; a claim about fewer pairs does not speak of them.
    """
    # A claim of pure epsilon for kappa replaced pairs, whatever the mechanism: randomised response.
    claimed = best_guess_of([LaplaceEvent(2.0 / PUBLISHED_EPSILON)], kappa=1)
    for name, variant in (("published-dpp", "dpp"), ("published-dpp-s", "dpp-s")):
        settings = Settings(variant, epsilon=PUBLISHED_EPSILON, n_components=4, kappa=kappa)  # type: ignore[arg-type]
        bound = claimed if flips <= kappa else None
        yield name, PUBLISHED_EPSILON, watch_published(settings), bound


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
