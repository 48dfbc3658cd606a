"""The paper's Algorithm 1 and the noise that it compares, as audit targets and under the paper's own attack.

Algorithm 1 does not give the epsilon that it claims (docs/theory/guarantee.md): it is here to be measured.
Its readings, variants and costs are `reproduction.published`. Scores are exact log likelihood ratios: the
attacker sees the whole output and knows all but which of two inputs was used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from pairveil.array_types import FloatArray
from pairveil.audit.auditor import Claim, Target
from pairveil.audit.canaries import Neighbours, beyond_margin, label_flip
from pairveil.errors import InputError
from pairveil.privacy.events import LaplaceEvent
from pairveil.privacy.profile import best_guess_of
from pairveil.records.pairset import PairSet

if TYPE_CHECKING:
    from pairveil.audit.attack import Attacked, Guess


class IndependentLaplace:
    """Independent Laplace noise of scale ``sensitivity / epsilon`` (the paper's Definition 5)."""

    norm: float = 1
    """Norm in which ``sensitivity`` bounds the distance of neighbouring values (inf: a box)."""

    def __init__(self, epsilon: float) -> None:
        if not epsilon > 0:
            raise InputError("epsilon must be positive")
        self.epsilon = float(epsilon)

    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        """Publish ``value``."""
        return value + rng.laplace(0.0, sensitivity / self.epsilon, value.shape)

    def log_density(self, output: FloatArray, value: FloatArray, sensitivity: float) -> float:
        """Log density of ``output`` when ``value`` is published."""
        scale = sensitivity / self.epsilon
        distance = np.abs(np.asarray(output) - value)
        return float(-distance.sum() / scale - distance.size * np.log(2 * scale))


@dataclass(frozen=True)
class Settings:
    """The box's parameters, and how we read what it leaves open."""

    variant: str = "dpp"  # Theorem 1's noise; "dpp-s": Theorem 2's
    epsilon: float = 1.0  # the claimed total
    n_components: int = 16  # d', rows of W
    # m. None computes ``rho`` times the mean norm of the dissimilar differences, as the paper does: from
    # private data, and uncharged
    margin: float | None = None
    rho: float = 1.0
    h: float = 0.5  # clip bound of a row's gradient
    kappa: int = 1
    batch_size: int = 50
    epochs: int = 3
    update: Literal["rowwise", "simultaneous"] = "rowwise"
    mechanism: Callable[[float], Any] | None = None  # of a budget; Laplace by default

    def __post_init__(self) -> None:
        for name in ("epsilon", "n_components", "h", "kappa", "batch_size", "epochs"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive")

    @property
    def norm(self) -> int:
        """In which gradients are clipped."""
        return 1

    @property
    def reduced(self) -> bool:
        """Whether the noise follows the batch (Theorem 2, Corollary 1)."""
        return self.variant.endswith("-s")

    @property
    def group(self) -> int:
        """How many times the reach of one pair the noise is made for."""
        return self.kappa

    def row_mechanism(self) -> Any:
        """The mechanism of one row of one batch, at the budget of one epoch (line 1); None: no noise."""
        return (self.mechanism or IndependentLaplace)(self.epsilon / self.epochs)

    def rate(self, last: float, tau: int) -> float:
        """The step size eta of step ``tau`` (line 5)."""
        del last
        return float(1.0 / np.sqrt(tau))

    def order(self, rng: np.random.Generator, n_pairs: int) -> Any:
        """Of the pairs, as they are cut into batches."""
        return rng.permutation(n_pairs)


def unit_rows(X: ArrayLike, norm: int = 1) -> FloatArray:
    """Rows to norm at most 1 (the paper: 'the l1-norm of every sample is preprocessed')."""
    rows = np.asarray(X, dtype=np.float64)
    size = np.linalg.norm(rows, ord=norm, axis=1, keepdims=True)
    scaled: FloatArray = rows / np.maximum(1.0, size)
    return scaled


def steps(
    dx: FloatArray,
    y: FloatArray,
    settings: Settings,
    rng: np.random.Generator,
    start: FloatArray | None = None,
) -> Iterator[FloatArray]:
    """The box, on differences ``dx`` and the paper's labels ``y`` (0 similar, 1 dissimilar).

    W before each step and after the last, which is one array all along. ``y`` may be any real number
    (debiased answers): the gradient is linear in it.
    """
    s, (n_pairs, d) = settings, dx.shape
    if n_pairs < s.batch_size:
        raise InputError(f"{n_pairs} pairs do not fill one batch of {s.batch_size}")
    margin = s.margin if s.margin is not None else data_margin(dx, y, s)
    size = np.linalg.norm(dx, ord=s.norm, axis=1)
    # Line 1. The start does not look at the data.
    W = rng.normal(scale=s.n_components**-0.5, size=(s.n_components, d))
    if start is not None:
        W = np.array(start, dtype=np.float64)
    eta, tau, n_batches = 1.0, 0, n_pairs // s.batch_size
    mechanism = s.row_mechanism()
    batches = s.order(rng, n_pairs)[: n_batches * s.batch_size].reshape(n_batches, -1)
    dx_of, y_of, size_of = dx[batches], y[batches], size[batches]
    for _ in range(s.epochs):  # line 2
        for it in range(n_batches):  # line 3
            yield W
            tau += 1  # line 4
            eta = s.rate(eta, tau)  # line 5
            P = dx_of[it] @ W.T
            for r in range(s.n_components):  # line 6
                # lines 7 and 8: gradients of row r, clipped to h; their mean and largest norm
                gradient, peak = _clipped_row(dx_of[it], y_of[it], size_of[it], P, r, margin, s.h)
                if mechanism is not None:
                    longest = _sensitivity(s, mechanism, W[r], peak, margin)  # line 9
                    gradient = mechanism.sample(rng, gradient, longest)  # line 10
                W[r] -= eta * gradient  # line 11
                if s.update == "rowwise":
                    _refresh(dx_of[it], W[r], P, r)
    yield W


def trained(
    dx: FloatArray,
    y: FloatArray,
    settings: Settings,
    rng: np.random.Generator,
    start: FloatArray | None = None,
) -> FloatArray:
    """W after the last step."""
    *_, W = steps(dx, y, settings, rng, start)
    return W


def data_margin(dx: FloatArray, y: FloatArray, settings: Settings) -> float:
    """The paper's margin, rho times the mean norm of the dissimilar differences. Not private."""
    apart = y > 0.5
    if not apart.any():
        raise InputError("a margin from the data needs at least one dissimilar pair; give margin=")
    size = np.linalg.norm(dx[apart], ord=settings.norm, axis=1)
    return float(settings.rho * size.mean())


@njit(cache=True)
def _clipped_row(
    dx: FloatArray, y: FloatArray, size: FloatArray, P: FloatArray, r: int, margin: float, h: float
) -> tuple[FloatArray, float]:
    """Mean of the clipped gradients of row r over the batch, and the largest of their norms.

    A pair's gradient is ``c P[j, r] dx_j`` (rank one), so its norm is ``|c P[j, r]| ||dx_j||`` and
    nothing per pair needs to be stored. ``P = dx W^T``.
    """
    n, d = dx.shape
    total, peak = np.zeros(d), 0.0
    for j in range(n):
        square = 0.0
        for k in range(P.shape[1]):
            square += P[j, k] * P[j, k]
        distance = np.sqrt(square)
        push = 0.0  # also at distance 0, where the dissimilar loss has no gradient
        if 0.0 < distance < margin:
            push = (distance - margin) / distance
        factor = (1.0 - y[j] + y[j] * push) * P[j, r]
        norm = abs(factor) * size[j]
        if norm > h:
            factor *= h / norm
            norm = h
        peak = max(peak, norm)
        if factor != 0.0:
            for i in range(d):
                total[i] += factor * dx[j, i]
    return total / n, peak


@njit(cache=True)
def _refresh(dx: FloatArray, row: FloatArray, P: FloatArray, r: int) -> None:
    """Column r of P after row r of W moved."""
    for j in range(dx.shape[0]):
        value = 0.0
        for i in range(dx.shape[1]):
            value += dx[j, i] * row[i]
        P[j, r] = value


def _sensitivity(s: Settings, mechanism: Any, row: FloatArray, peak: float, margin: float) -> float:
    """How far kappa pairs can move row r's mean gradient, by Theorem 1, Theorem 2 or Corollary 1."""
    if mechanism.norm == np.inf:
        return 2 * s.h  # hides any batch: a row's mean gradient lies in [-h, h]^d
    if not s.reduced:
        return s.group * 2 * s.h / s.batch_size
    longest = np.abs(row).sum() if s.norm == 1 else np.sqrt(row @ row)
    push = 2 * margin * np.sqrt(s.n_components) if s.norm == 1 else 2 * margin
    counterpart = min(s.h, max(4 * longest, push))
    return float(s.group * (peak + counterpart) / s.batch_size)


# ---- staircase noise, as published and jointly ------------------------------------------------------


def scdf_gamma(epsilon: float) -> float:
    """Width of the centre step in Soria-Comas and Domingo-Ferrer: 1/eps - 1/(e^eps - 1)."""
    return float(1.0 / epsilon - 1.0 / np.expm1(epsilon))


def staircase(
    rng: np.random.Generator,
    epsilon: float,
    shape: tuple[int, ...],
    sensitivity: float = 1.0,
    gamma: float | None = None,
) -> FloatArray:
    """Staircase noise as published: one coordinate at a time; ``gamma``: width of the centre step.

    Step k holds ``k - 1 + gamma <= |x| / sensitivity < k + gamma`` (step 0 starts at 0), so that a shift by
    the sensitivity crosses at most one edge. Independent coordinates under an l1 sensitivity may each cross
    an edge, and d edges cost d * epsilon (docs/theory/guarantee.md).
    """
    q, gamma = np.exp(-epsilon), scdf_gamma(epsilon) if gamma is None else gamma
    sign = rng.integers(0, 2, shape) * 2 - 1
    step = rng.geometric(-np.expm1(-epsilon), shape) - 1
    inner = rng.random(shape) < gamma / (gamma + (1 - gamma) * q)
    place = rng.random(shape)
    size = step + np.where(inner, gamma * place, gamma + (1 - gamma) * place)
    return np.asarray(sensitivity * sign * size, dtype=np.float64)


class Shells(NamedTuple):
    """Inner and outer radius, log weight and cumulative probability of each shell."""

    inner: FloatArray
    outer: FloatArray
    log_weight: FloatArray
    cumulative: FloatArray


@lru_cache(maxsize=64)
def shells_of(epsilon: float, gamma: float, d: int) -> Shells:
    """Weight shell k by exp(-k eps) times its d-volume (radius 1 ball = 1).

    Weights peak near k = d/epsilon; the table ends where they are below e^-50 of the largest.
    """
    last = int(np.ceil((d + 60 + 12 * np.sqrt(d)) / epsilon)) + 2
    k = np.arange(last + 1, dtype=np.float64)
    outer = k + gamma
    inner = np.maximum(k - 1 + gamma, 0.0)
    log_weight = -epsilon * k + d * np.log(outer) + np.log1p(-((inner / outer) ** d))
    cumulative = np.cumsum(np.exp(log_weight - logsumexp(log_weight)))
    return Shells(inner, outer, log_weight, cumulative)


def joint_staircase(
    rng: np.random.Generator, epsilon: float, shape: tuple[int, ...], sensitivity: float = 1.0
) -> FloatArray:
    """Staircase noise in the l1 norm of the whole vector, as it must be: epsilon in every dimension.

    The density is constant on shells and falls by exp(-epsilon) from one to the next. Shell k has
    probability proportional to ``exp(-k eps) [(k+gamma)^d - max(k-1+gamma, 0)^d]``; within it the radius is
    uniform in d-volume and the direction uniform on the l1 sphere.
    """
    d = math.prod(shape)
    shells = shells_of(epsilon, scdf_gamma(epsilon), d)
    k = int(np.searchsorted(shells.cumulative[:-1], rng.random(), side="right"))
    # r^d uniform between inner^d and outer^d, without leaving the range of floats
    low = (shells.inner[k] / shells.outer[k]) ** d
    radius = shells.outer[k] * (low + (1 - low) * rng.random()) ** (1 / d)
    direction = rng.standard_exponential(d)
    direction /= direction.sum()  # Dirichlet(1, ..., 1)
    sign = rng.integers(0, 2, d) * 2 - 1
    noise: FloatArray = (sensitivity * radius * sign * direction).reshape(shape)
    return noise


# ---- what was published, as audit targets -----------------------------------------------------------


def staircase_iid(epsilon: float, n_features: int) -> Target:
    """Staircase noise on each coordinate, against a shift spread evenly over all of them.

    A shift of 1/d crosses an edge of the staircase in each coordinate with some probability, and
    every crossing is worth epsilon: together up to d times that (docs/theory/guarantee.md).
    """
    shift, gamma = np.full(n_features, 1.0 / n_features), scdf_gamma(epsilon)

    def scores(which: int, n: int, rng: np.random.Generator) -> FloatArray:
        at_input = np.tile(which * shift, (n, 1))
        seen = at_input + staircase(rng, epsilon, at_input.shape)
        levels = [np.floor(np.abs(seen - at) + 1 - gamma) for at in (0.0, shift)]
        return np.asarray(epsilon * (levels[0] - levels[1]).sum(axis=1))

    return Target("staircase-iid", scores, Claim(epsilon), "even shift", "replace", 2_000_000)


def staircase_joint(epsilon: float, n_features: int) -> Target:
    """Staircase noise in the l1 norm of the vector, against the same shift."""
    shift, gamma = np.full(n_features, 1.0 / n_features), scdf_gamma(epsilon)

    def scores(which: int, n: int, rng: np.random.Generator) -> FloatArray:
        noise = [joint_staircase(rng, epsilon, shift.shape) for _ in range(n)]
        seen = np.stack([which * shift + one for one in noise])
        levels = [np.floor(np.abs(seen - at).sum(axis=1) + 1 - gamma) for at in (0.0, shift)]
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
    return np.stack([trained(dx, y, settings, rng, start) for _ in range(runs)])


PUBLISHED_EPSILON = 1.0


def published_learners(kappa: int, flips: int) -> Iterator[Attacked]:
    """DPP and DPP-S as published, with what their claim would allow.

    ``kappa`` is that of the used pairs; a claim about fewer pairs than flip together does not speak of them.
    """
    # A claim of pure epsilon for kappa replaced pairs, whatever the mechanism: randomised response.
    claimed = best_guess_of([LaplaceEvent(2.0 / PUBLISHED_EPSILON)], kappa=1)
    for name, variant in (("published-dpp", "dpp"), ("published-dpp-s", "dpp-s")):
        settings = Settings(variant, epsilon=PUBLISHED_EPSILON, n_components=4, kappa=kappa)
        bound = claimed if flips <= kappa else None
        yield name, PUBLISHED_EPSILON, watch_published(settings), bound


class _Watched(IndependentLaplace):
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
        rows, y = unit_rows(data.features), (data.labels < 0).astype(np.float64)
        dx = rows[data.pairs[:, 0]] - rows[data.pairs[:, 1]]
        trained(dx, y, chosen, np.random.default_rng(seed))
        return watched

    def guess(worlds: Neighbours, seed: int) -> int:
        shown = fit(worlds.first, seed, None)
        # A pair that no batch holds leaves a tie: then the first is named, which is right once in two.
        right = int(shown.score >= fit(worlds.second, seed, shown.seen).score)
        shown = fit(worlds.second, seed, None)
        return right + int(shown.score > fit(worlds.first, seed, shown.seen).score)

    return guess
