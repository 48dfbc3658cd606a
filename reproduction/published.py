"""Algorithm 1 as the paper published it, in every variant and reading: for measurement, not for release.

It does not give the epsilon that it claims (docs/theory/guarantee.md). Every mechanism says what it is
claimed to cost and what it does cost: ``epsilon_claimed`` is the budget it was asked to respect,
``epsilon_sound(d)`` the smallest epsilon that holds for d-dimensional values whose neighbours lie within
``sensitivity`` (in the norm ``norm``). The loops are those of `pairveil.audit.published`, which audits them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairveil.array_types import FloatArray
from pairveil.audit import published
from pairveil.audit.published import data_margin, steps, unit_rows
from pairveil.errors import InputError, PrivacyLeakWarning, warn
from pairveil.privacy.compose import epsilon_from_mu


class Mechanism(ABC):
    """A way to publish a vector with noise.

    ``epsilon``: the budget that one use is claimed to cost.
    """

    name: str
    #: Norm in which ``sensitivity`` bounds the distance of neighbouring values (inf: a box).
    norm: float = 1
    #: Whether a shift of a share of the sensitivity costs only that share of epsilon. If not, k pairs
    #: that fall into k batches cost k times epsilon, and 'disjoint batches compose in parallel' fails.
    linear: bool = False

    def __init__(self, epsilon: float) -> None:
        if not epsilon > 0:
            raise InputError("epsilon must be positive")
        self.epsilon = float(epsilon)

    @property
    def epsilon_claimed(self) -> float:
        """What one use is said to cost."""
        return self.epsilon

    @abstractmethod
    def epsilon_sound(self, d: int) -> float:
        """What one use costs for values of dimension d (inf when nothing finite holds)."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        """Publish ``value``."""

    @abstractmethod
    def log_density(self, output: FloatArray, value: FloatArray, sensitivity: float) -> float:
        """Log density (log mass for discrete outputs) of ``output`` when ``value`` is published."""

    @abstractmethod
    def variance(self, d: int, sensitivity: float) -> float:
        """Variance of one coordinate of the output (at value 0 where it depends on the value)."""


class Laplace(published.IndependentLaplace, Mechanism):
    """Independent Laplace noise of scale ``sensitivity / epsilon`` (the paper's Definition 5).

    Examples
    --------
    >>> Laplace(1.0).variance(d=3, sensitivity=2.0)
    8.0
    """

    name = "Lap"
    linear = True

    def epsilon_sound(self, d: int) -> float:  # noqa: ARG002 - joint over coordinates: no price in d
        return self.epsilon

    def variance(self, d: int, sensitivity: float) -> float:  # noqa: ARG002
        return 2.0 * (sensitivity / self.epsilon) ** 2


class ClassicGaussian(Mechanism):
    """Gaussian noise of ``sqrt(2 ln(1.25/delta)) sensitivity / epsilon`` (paper, Appendix C).

    The formula is proved for epsilon <= 1 only; ``epsilon_sound`` is exact.

    Examples
    --------
    >>> ClassicGaussian(1.0, 1e-5).epsilon_sound(d=5) < 1.0
    True
    """

    name = "Gauss"
    norm = 2

    def __init__(self, epsilon: float, delta: float = 1e-5) -> None:
        super().__init__(epsilon)
        if not 0 < delta < 1:
            raise InputError("delta must lie between 0 and 1")
        self.delta = float(delta)

    def noise_multiplier(self) -> float:
        """Standard deviation for sensitivity 1."""
        return float(np.sqrt(2 * np.log(1.25 / self.delta)) / self.epsilon)

    def epsilon_sound(self, d: int) -> float:  # noqa: ARG002 - depends on the l2 shift only
        return epsilon_from_mu(1.0 / self.noise_multiplier(), self.delta)

    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        return value + rng.normal(0.0, sensitivity * self.noise_multiplier(), value.shape)

    def log_density(self, output: FloatArray, value: FloatArray, sensitivity: float) -> float:
        sigma = sensitivity * self.noise_multiplier()
        distance = (np.asarray(output) - value) / sigma
        return float(-(distance**2).sum() / 2 - distance.size * np.log(sigma * np.sqrt(2 * np.pi)))

    def variance(self, d: int, sensitivity: float) -> float:  # noqa: ARG002
        return (sensitivity * self.noise_multiplier()) ** 2


Variant = Literal["nonpriv", "dpp", "dpp-s", "adp", "adp-s", "node-dp"]

StepRule = Literal["sqrt", "recursive"]


@dataclass(frozen=True)
class Settings(published.Settings):
    """The box's parameters and our readings of it.

    Parameters
    ----------
    variant : {"nonpriv", "dpp", "dpp-s", "adp", "adp-s", "node-dp"}
        "dpp": Theorem 1's noise; "dpp-s": Theorem 2's; "adp" and "adp-s": Appendix C, l2 norms and
        Gaussian noise, with the plain sensitivity and with Corollary 1's; "node-dp": Theorem 1's
        noise with kappa the maximum degree; "nonpriv": the box without line 10's noise (line 7's
        clipping stays, it is what makes the objective h-Lipschitz).
    delta : float
        The claimed total; for "adp" and "adp-s".
    step_rule, kappa_factor, update
        See the module's text.
    mechanism : callable epsilon -> Mechanism, optional
        Another mechanism for the l1 variants; default Laplace.
    record_every : int
        Record the objective every so many iterations (0: never).
    shuffle : bool
        Cut batches from a random order of the pairs (False: from the order given).
    """

    delta: float = 1e-5
    step_rule: StepRule = "sqrt"
    kappa_factor: Literal["once", "twice"] = "once"
    record_every: int = 0
    shuffle: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in get_args(Variant):
            raise InputError(f"variant must be one of {', '.join(get_args(Variant))}")
        if self.mechanism is not None and self.variant in ("nonpriv", "adp", "adp-s"):
            raise InputError("a mechanism can be chosen for dpp, dpp-s and node-dp only")

    @property
    def private(self) -> bool:
        """Whether noise is added."""
        return self.variant != "nonpriv"

    @property
    def norm(self) -> int:
        """1 for the paper's body, 2 for its Appendix C."""
        return 2 if self.variant in ("adp", "adp-s") else 1

    @property
    def group(self) -> int:
        """How many times the reach of one pair the noise is made for."""
        return self.kappa if self.kappa_factor == "once" else self.kappa**2

    def row_mechanism(self) -> Mechanism | None:
        """The mechanism of one row of one batch, at the budget of one epoch (line 1)."""
        if not self.private:
            return None
        budget = self.epsilon / self.epochs
        if self.norm == 2:
            return ClassicGaussian(budget, self.delta / self.epochs)
        return (self.mechanism or Laplace)(budget)

    def rate(self, last: float, tau: int) -> float:
        """The step size by either reading of line 5."""
        return last / np.sqrt(tau) if self.step_rule == "recursive" else super().rate(last, tau)

    def order(self, rng: np.random.Generator, n_pairs: int) -> NDArray[np.int64]:
        """Random, or as given."""
        return super().order(rng, n_pairs) if self.shuffle else np.arange(n_pairs)


@dataclass(frozen=True)
class PublishedResult:
    """What Algorithm 1 returns, and what it cost.

    ``epsilon_claimed`` is the paper's figure. ``epsilon_sound`` is the smallest we can prove for the
    same neighbours (kappa pairs replaced, topology public); it is infinite when the noise follows the
    batch or the margin was read off the pairs, both of which are charged nowhere. The curves are
    computed from the private pairs and covered by neither.
    """

    W: FloatArray
    variant: str
    epsilon_claimed: float
    epsilon_sound: float
    delta: float
    margin: float
    kappa: int
    objective: FloatArray = field(repr=False)
    objective_at: NDArray[np.int64] = field(repr=False)
    sensitivity: FloatArray = field(repr=False)

    @property
    def M(self) -> FloatArray:
        """Line 15: the metric W^T W."""
        return self.W.T @ self.W


def algorithm1(
    X: ArrayLike,
    pairs: ArrayLike,
    labels: ArrayLike,
    settings: Settings,
    random_state: int | np.random.Generator | None = None,
    start: FloatArray | None = None,
) -> PublishedResult:
    """Learn a metric by the published algorithm.

    Parameters
    ----------
    X : array of shape (n, d)
        Features; rows are scaled to norm at most 1 (l1, or l2 for the Appendix C variants).
    pairs, labels : arrays of shape (K, 2) and (K,)
        Index pairs, and +1 similar / -1 dissimilar (the paper's y = 0 / 1).
    start : array of shape (n_components, d), optional
        W's start; by default Gaussian entries of variance 1/d'.

    Warns
    -----
    PrivacyLeakWarning
        Always, for a private variant: the claim is not what the algorithm gives.

    Examples
    --------
    >>> import warnings
    >>> X = np.random.default_rng(0).random((6, 3))
    >>> pairs, labels = [[0, 1], [1, 2], [2, 3], [3, 4]], [1, -1, 1, -1]
    >>> plan = Settings("dpp", epsilon=2.0, n_components=2, margin=1.0, batch_size=2)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     result = algorithm1(X, pairs, labels, plan, random_state=0)
    >>> result.epsilon_claimed, result.epsilon_sound
    (2.0, 4.0)
    """
    rows, index = unit_rows(X, settings.norm), np.asarray(pairs, dtype=np.int64)
    dx = rows[index[:, 0]] - rows[index[:, 1]]
    y = (np.asarray(labels) < 0).astype(np.float64)
    return train(dx, y, settings, random_state, start)


class _Noted:
    """A mechanism that notes the sensitivities it was asked for."""

    def __init__(self, of: Mechanism) -> None:
        self.of, self.norm, self.asked = of, of.norm, []

    def sample(self, rng: np.random.Generator, value: FloatArray, sensitivity: float) -> FloatArray:
        self.asked.append(sensitivity)
        return self.of.sample(rng, value, sensitivity)


@dataclass(frozen=True)
class _Watched(Settings):
    noted: _Noted | None = None

    def row_mechanism(self) -> Any:
        return self.noted


def train(
    dx: FloatArray,
    y: FloatArray,
    settings: Settings,
    random_state: int | np.random.Generator | None = None,
    start: FloatArray | None = None,
) -> PublishedResult:
    """The box (`pairveil.audit.published.steps`), its objective, and what it cost."""
    rng = np.random.default_rng(random_state)
    s, (n_pairs, d) = settings, dx.shape
    mechanism = s.row_mechanism()
    noted = None if mechanism is None else _Noted(mechanism)
    given = {field.name: getattr(s, field.name) for field in fields(Settings)}
    walk = steps(dx, y, _Watched(**given, noted=noted), rng, start)
    first = next(walk)
    margin = s.margin if s.margin is not None else data_margin(dx, y, s)
    n_batches, every = n_pairs // s.batch_size, s.record_every
    objective, at = [], []
    last = s.epochs * n_batches
    for tau, W in enumerate(chain([first], walk)):
        if every and (tau == last or tau % every == 0):
            objective.append(mean_loss(W, dx, y, margin))
            at.append(tau)
    sensitivity = np.zeros((last, s.n_components))
    if noted is not None:
        sensitivity[:] = np.reshape(noted.asked, sensitivity.shape)
    claimed, sound = _cost(s, mechanism, d, n_batches)
    if s.private:
        _warn(s, claimed, sound)
    return PublishedResult(
        W, s.variant, claimed, sound, s.delta if s.norm == 2 else 0.0, margin, s.kappa,
        np.array(objective), np.array(at, dtype=np.int64), sensitivity,
    )  # fmt: skip


def mean_loss(W: FloatArray, dx: FloatArray, y: FloatArray, margin: float) -> float:
    """Mean contrastive loss (the paper's Eq. 5) over the pairs given."""
    distance = np.linalg.norm(dx @ W.T, axis=1)
    below = np.maximum(0.0, margin - distance)
    return float(np.mean(0.5 * (1 - y) * distance**2 + 0.5 * y * below**2))


def _cost(s: Settings, mechanism: Mechanism | None, d: int, n_batches: int) -> tuple[float, float]:
    """Claimed and sound epsilon.

    Every row of W is a further answer about the same batch, so d' rows cost d' times
    (docs/theory/guarantee.md; sqrt(d') in the Gaussian case). kappa pairs may lie in kappa batches: a
    mechanism whose cost is linear in the shift pays the same in sum, another pays each time.
    """
    if mechanism is None:
        return float("inf"), float("inf")
    if s.reduced or s.margin is None:
        return s.epsilon, float("inf")
    spare = s.kappa if s.kappa_factor == "twice" else 1
    if isinstance(mechanism, ClassicGaussian):
        answers = s.n_components * s.epochs
        mu = np.sqrt(answers) / (mechanism.noise_multiplier() * spare)
        return s.epsilon, epsilon_from_mu(float(mu), s.delta)
    each = s.epochs * s.n_components * mechanism.epsilon_sound(d)
    spread = 1 / spare if mechanism.linear else min(s.kappa, n_batches)
    return s.epsilon, each * spread


def _warn(s: Settings, claimed: float, sound: float) -> None:
    why = "each row of W is a further answer about the same batch"
    if s.margin is None:
        why = "the margin was computed from the private pairs and is charged nowhere"
    if s.reduced:
        why = "the noise scale is read off the private batch"
    warn(
        f"the published algorithm ({s.variant}) claims epsilon {claimed:g}; what can be proved is "
        f"{sound:.4g}: {why}. It is here for comparison: use DPPMetricLearner to release a metric.",
        PrivacyLeakWarning,
    )
