"""What was published as audit targets and under the paper's own attack, each with its worst case.

Scores are exact log likelihood ratios: the attacker sees the whole output and knows everything but which
of the two inputs was used. Staircase noise stands here as published, one coordinate at a time, and
jointly as it must be for vectors: its density is constant on shells and falls by exp(-epsilon) from one
to the next. Shell k holds ``k - 1 + gamma <= |x| / sensitivity < k + gamma`` (shell 0 starts at 0), so
that a shift by the sensitivity crosses at most one edge. Independent coordinates under an l1 sensitivity
may each cross an edge, and d edges cost d * epsilon (docs/theory/guarantee.md).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from pairveil.array_types import FloatArray
from pairveil.audit.attack import Attacked, Guess
from pairveil.audit.auditor import Claim, Target
from pairveil.audit.canaries import Neighbours, beyond_margin, label_flip
from pairveil.audit.published import Laplace, Mechanism, Settings, algorithm1, train
from pairveil.errors import PrivacyLeakWarning
from pairveil.privacy.events import LaplaceEvent
from pairveil.privacy.profile import best_guess_of
from pairveil.records.pairset import PairSet


def scdf_gamma(epsilon: float) -> float:
    """Width of the centre step in Soria-Comas and Domingo-Ferrer: 1/eps - 1/(e^eps - 1)."""
    return float(1.0 / epsilon - 1.0 / np.expm1(epsilon))


def geng_viswanath_gamma(epsilon: float) -> float:
    """Width that minimises E|x| in Geng and Viswanath: 1/(1 + e^(eps/2))."""
    return float(1.0 / (1.0 + np.exp(epsilon / 2)))


class Staircase(Mechanism):
    """SCDF: independent staircase noise on each coordinate, as published.

    Examples
    --------
    >>> Staircase(1.0).epsilon_sound(d=1), Staircase(1.0).epsilon_sound(d=10)
    (1.0, 10.0)
    """

    name = "SCDF"

    def gamma(self) -> float:
        """Width of the centre step in units of the sensitivity."""
        return scdf_gamma(self.epsilon)

    def epsilon_sound(self, d: int) -> float:
        return d * self.epsilon

    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        q, gamma, shape = np.exp(-self.epsilon), self.gamma(), value.shape
        sign = rng.integers(0, 2, shape) * 2 - 1
        step = rng.geometric(-np.expm1(-self.epsilon), shape) - 1
        inner = rng.random(shape) < gamma / (gamma + (1 - gamma) * q)
        place = rng.random(shape)
        size = step + np.where(inner, gamma * place, gamma + (1 - gamma) * place)
        return value + sensitivity * sign * size

    def log_density(self, output: FloatArray, value: FloatArray, sensitivity: float) -> float:
        q, gamma = np.exp(-self.epsilon), self.gamma()
        distance = np.abs(np.asarray(output) - value) / sensitivity
        level = np.floor(distance + 1 - gamma)
        top = np.log(1 - q) - np.log(2 * sensitivity * (gamma + q * (1 - gamma)))
        return float((top - self.epsilon * level).sum())

    def variance(self, d: int, sensitivity: float) -> float:  # noqa: ARG002
        """In closed form, from the sums of q^k, k q^k and k^2 q^k."""
        q, g = np.exp(-self.epsilon), self.gamma()
        s0, s1, s2 = 1 / (1 - q), q / (1 - q) ** 2, q * (1 + q) / (1 - q) ** 3
        inner = 3 * g * s2 + 3 * g**2 * s1 + g**3 * s0  # sum q^k ((k+g)^3 - k^3)
        outer = 3 * (1 - g) * s2 + 3 * (1 - g**2) * s1 + (1 - g**3) * s0
        top = (1 - q) / (2 * (g + q * (1 - g)))
        return float(sensitivity**2 * 2 * top * (inner + q * outer) / 3)


class GengViswanath(Staircase):
    """The same noise with the step width that minimises the mean absolute error.

    Examples
    --------
    >>> round(GengViswanath(2.0).gamma(), 4)
    0.2689
    """

    name = "GV"

    def gamma(self) -> float:
        return geng_viswanath_gamma(self.epsilon)


class _Shells(NamedTuple):
    """Inner and outer radius, log weight and cumulative probability of each shell."""

    inner: FloatArray
    outer: FloatArray
    log_weight: FloatArray
    cumulative: FloatArray


@lru_cache(maxsize=64)
def _shells(epsilon: float, gamma: float, d: int) -> _Shells:
    """Weight shell k by exp(-k eps) times its d-volume (radius 1 ball = 1).

    Weights peak near k = d/epsilon; the table ends where they are below e^-50 of the largest.
    """
    last = int(np.ceil((d + 60 + 12 * np.sqrt(d)) / epsilon)) + 2
    k = np.arange(last + 1, dtype=np.float64)
    outer = k + gamma
    inner = np.maximum(k - 1 + gamma, 0.0)
    log_weight = -epsilon * k + d * np.log(outer) + np.log1p(-((inner / outer) ** d))
    cumulative = np.cumsum(np.exp(log_weight - logsumexp(log_weight)))
    return _Shells(inner, outer, log_weight, cumulative)


class JointStaircase(Staircase):
    """Staircase in the l1 norm of the whole vector: epsilon in every dimension.

    Shell k has probability proportional to ``exp(-k eps) [(k+gamma)^d - max(k-1+gamma, 0)^d]``; within
    it the radius is uniform in d-volume and the direction uniform on the l1 sphere.

    Examples
    --------
    >>> JointStaircase(1.0).epsilon_sound(d=10)
    1.0
    """

    name = "SCDF-joint"

    def epsilon_sound(self, d: int) -> float:  # noqa: ARG002
        return self.epsilon

    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        d = value.size
        shells = _shells(self.epsilon, self.gamma(), d)
        k = int(np.searchsorted(shells.cumulative[:-1], rng.random(), side="right"))
        # r^d uniform between inner^d and outer^d, without leaving the range of floats
        low = (shells.inner[k] / shells.outer[k]) ** d
        radius = shells.outer[k] * (low + (1 - low) * rng.random()) ** (1 / d)
        direction = rng.standard_exponential(d)
        direction /= direction.sum()  # Dirichlet(1, ..., 1)
        sign = rng.integers(0, 2, d) * 2 - 1
        noise: FloatArray = (sensitivity * radius * sign * direction).reshape(value.shape)
        return value + noise

    def log_density(self, output: FloatArray, value: FloatArray, sensitivity: float) -> float:
        distance = np.abs(np.asarray(output) - value) / sensitivity
        d, gamma = distance.size, self.gamma()
        log_weight = _shells(self.epsilon, gamma, d).log_weight
        # the l1 ball of radius r has volume (2 r)^d / d!
        log_ball = d * np.log(2 * sensitivity) - gammaln(d + 1)
        level = np.floor(distance.sum() + 1 - gamma)
        return float(-self.epsilon * level - logsumexp(log_weight) - log_ball)

    def variance(self, d: int, sensitivity: float) -> float:
        """``E[r^2] E[u_j^2]`` with ``E[u_j^2] = 2/(d(d+1))`` for a Dirichlet(1_d) direction."""
        shells = _shells(self.epsilon, self.gamma(), d)
        weight = np.exp(shells.log_weight - logsumexp(shells.log_weight))
        share = shells.inner / shells.outer
        mean_square = shells.outer**2 * d / (d + 2) * (1 - share ** (d + 2)) / (1 - share**d)
        return float(sensitivity**2 * (weight * mean_square).sum() * 2 / (d * (d + 1)))


def staircase_iid(epsilon: float, n_features: int) -> Target:
    """Staircase noise on each coordinate, against a shift spread evenly over all of them.

    A shift of 1/d crosses an edge of the staircase in each coordinate with some probability, and
    every crossing is worth epsilon: together up to d times that (docs/theory/guarantee.md).
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
