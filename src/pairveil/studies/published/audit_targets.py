"""The published mechanisms and learners as audit targets, each with its worst case.

Scores are exact log likelihood ratios: the attacker sees the whole output and knows everything but
which of the two inputs was used.
"""

from __future__ import annotations

import warnings

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.audit.auditor import Claim, Target
from pairveil.audit.canaries import Neighbours, beyond_margin, label_flip
from pairveil.errors import PrivacyLeakWarning
from pairveil.studies.published.algorithm1 import Settings, train
from pairveil.studies.published.staircase import JointStaircase, Staircase


def staircase_iid(epsilon: float, n_features: int) -> Target:
    """Staircase noise on each coordinate, against a shift spread evenly over all of them.

    A shift of 1/d crosses an edge of the staircase in each coordinate with some probability, and
    every crossing is worth epsilon: together up to d times that (docs/theory/published.md).
    """
    mechanism = Staircase(epsilon)
    shift = np.full(n_features, 1.0 / n_features)

    def scores(which: int, n: int, rng: np.random.Generator) -> FloatArray:
        seen = mechanism.sample(rng, np.tile(which * shift, (n, 1)), 1.0)
        levels = [np.floor(np.abs(seen - at) + 1 - mechanism.gamma()) for at in (0.0, shift)]
        return np.asarray(epsilon * (levels[0] - levels[1]).sum(axis=1))

    return Target("staircase-iid", scores, Claim(epsilon), "even shift", "replace", 2_000_000)


def staircase_joint(epsilon: float, n_features: int) -> Target:
    """Staircase noise in the l1 norm of the vector, against the same shift."""
    mechanism = JointStaircase(epsilon)
    shift = np.full(n_features, 1.0 / n_features)

    def scores(which: int, n: int, rng: np.random.Generator) -> FloatArray:
        seen = np.stack([mechanism.sample(rng, which * shift, 1.0) for _ in range(n)])
        levels = [
            np.floor(np.abs(seen - at).sum(axis=1) + 1 - mechanism.gamma()) for at in (0.0, shift)
        ]
        return np.asarray(epsilon * (levels[0] - levels[1]))

    return Target("staircase-joint", scores, Claim(epsilon), "even shift", "replace", 40_000)


def published_dpp(epsilon: float, n_components: int, n_features: int) -> Target:
    """Algorithm 1 with Theorem 1's noise, one epoch of one batch, against a flipped label.

    The start makes every row's clipped gradient +h or -h in one entry, according to the label, so each
    of the d' rows spends the whole claim.
    """
    h, canary = 0.5, label_flip(n_features, "replace")
    start = np.zeros((n_components, n_features))
    start[:, 0] = 1.0
    # Margin 100 keeps the dissimilar pair inside the margin whatever the noise does to W.
    settings = Settings(
        "dpp", epsilon=epsilon, n_components=n_components, margin=100.0, h=h, batch_size=1, epochs=1
    )
    scale = 2 * h / epsilon

    def scores(which: int, n: int, rng: np.random.Generator) -> FloatArray:
        steps = start - _metrics(canary, which, settings, start, n, rng)
        seen = steps[:, :, 0]  # eta is 1 in the first step: W moves by the noisy gradient
        ratio = (np.abs(seen + h) - np.abs(seen - h)).sum(axis=1) / scale
        # Unrounded, the last bits alone refute the claim even at d' = 1: numpy's Laplace noise is
        # floating-point noise (Mironov 2012). This target is about the algorithm, not about that.
        return np.asarray(np.round(ratio, 9))

    return Target("published-dpp", scores, Claim(epsilon), canary.name, "replace", 40_000)


def published_dpp_s(epsilon: float, n_components: int, n_features: int) -> Target:
    """Algorithm 1 with Theorem 2's noise: every pair beyond the margin, then one turns similar.

    The largest gradient of the batch goes from 0 to h, and the noise scale doubles with it.
    """
    h, n, canary = 0.5, 50, beyond_margin(50, n_features)
    start = np.zeros((n_components, n_features))
    start[:, 0] = 1.0
    settings = Settings(
        "dpp-s", epsilon=epsilon, n_components=n_components, margin=1.0, h=h, batch_size=n, epochs=1,
        update="simultaneous",
    )  # fmt: skip
    quiet, loud = h / (n * epsilon), 2 * h / (n * epsilon)
    turned = np.zeros(n_features)
    turned[0] = h / n

    def scores(which: int, runs: int, rng: np.random.Generator) -> FloatArray:
        seen = start - _metrics(canary, which, settings, start, runs, rng)
        first = -np.abs(seen) / quiet - np.log(2 * quiet)
        second = -np.abs(seen - turned) / loud - np.log(2 * loud)
        return np.asarray((second - first).sum(axis=(1, 2)))

    return Target("published-dpp-s", scores, Claim(epsilon), canary.name, "replace", 40_000)


def _metrics(
    canary: Neighbours,
    which: int,
    settings: Settings,
    start: FloatArray,
    runs: int,
    rng: np.random.Generator,
) -> FloatArray:
    """W after one fit, for many fits on one of the two inputs."""
    data = canary.second if which else canary.first
    assert data.labels is not None
    dx, y = np.asarray(data.differences(), dtype=np.float64), (data.labels < 0).astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # the leak is what is being measured
        return np.stack([train(dx, y, settings, rng, start).W for _ in range(runs)])
