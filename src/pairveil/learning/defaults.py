"""The one set of defaults: public rules in (d, K, epsilon, delta, kappa), never in the data.

How they were found, and what did not help: docs/decisions/0005-learner.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, NamedTuple

from pairveil.learning.plan import Mechanism, NoisySums, Sampling, TrainingPlan
from pairveil.learning.training import MAX_DIRECTIONS
from pairveil.privacy.calibration import calibrate_gaussian
from pairveil.privacy.gdp import mu_from_epsilon
from pairveil.privacy.units import Adjacency


class Shares(NamedTuple):
    """How the budget is divided: parts of mu^2 (Gaussian) or of epsilon (Laplace)."""

    survey: float
    signal: float
    gradients: float
    moments: float
    contest: float


SHARES: dict[Mechanism, Shares] = {
    "gaussian": Shares(0.18, 0.18, 0.54, 0.03, 0.07),
    "laplace": Shares(0.10, 0.20, 0.50, 0.10, 0.10),
}
SCARCE = 50.0
"""Where there are fewer pairs than this for each unit of noise, the side releases get their full share."""
MARGIN_SHARE = 0.03
"""What ``margin='private'`` takes off all other shares."""

N_STEPS: dict[Mechanism, int] = {"gaussian": 100, "laplace": 8}
N_STEPS_WITHOUT_NOISE = 300
MARGIN = 1.0
_ROUNDING = 1 + 1e-9  # keeps the recomposed epsilon on the safe side of the asked one


class Budget(NamedTuple):
    """What a fit may spend, on which graph."""

    epsilon: float
    delta: float
    kappa: int
    adjacency: Adjacency


def make_plan(
    budget: Budget,
    *,
    n_features: int,
    n_pairs: int,
    data_norm: float,
    mechanism: Mechanism = "gaussian",
    sampling: Sampling = "poisson",
    sample_rate: float = 1.0,
    n_steps: int | None = None,
    n_components: int | None = None,
    margin: float | Literal["private"] = MARGIN,
    max_grad_norm: float | None = None,
    learning_rate: float | None = None,
) -> TrainingPlan:
    """Divide a budget over the releases of a fit.

    Examples
    --------
    >>> plan = make_plan(Budget(1.0, 1e-5, 1, "zero-out"), n_features=30, n_pairs=500, data_norm=1.0)
    >>> from pairveil.privacy.accounting import epsilon_of
    >>> 0.999 < epsilon_of(plan.events(), kappa=1, delta=1e-5) <= 1.0
    True
    """
    shares = divide(budget, mechanism, n_features, n_pairs)
    if n_components is not None:
        spare = shares.moments + shares.contest
        shares = shares._replace(gradients=shares.gradients + spare, moments=0.0, contest=0.0)
    taken = MARGIN_SHARE if margin == "private" else 0.0
    entries = _entries(n_features, n_components)

    def once(name: str, share: float) -> NoisySums | None:
        if share == 0:
            return None
        noise = _noise_for_share(budget, mechanism, share)
        return NoisySums(1.0, noise, 1, mechanism, name=name, entries=entries[name])

    single = {
        name: once(name, share * (1 - taken))
        for name, share in shares._asdict().items()
        if name != "gradients"
    }
    single["margins"] = once("margins", taken)
    others = [sums.event() for sums in single.values() if sums is not None]
    usual = N_STEPS_WITHOUT_NOISE if math.isinf(budget.epsilon) else N_STEPS[mechanism]
    steps = n_steps or usual
    shape = NoisySums(1.0, 0.0, steps, mechanism, sampling, sample_rate)
    noise = _gradient_noise(budget, shape, shares.gradients * (1 - taken), others)
    return TrainingPlan(
        gradients=replace(shape, noise_multiplier=noise, entries=entries["gradients"]),
        n_features=n_features,
        n_pairs=n_pairs,
        data_norm=data_norm,
        n_components=n_components,
        margin=MARGIN if margin == "private" else margin,
        max_grad_norm=max_grad_norm,
        learning_rate=learning_rate,
        **single,  # type: ignore[arg-type]
    )


def _entries(n_features: int, n_components: int | None) -> dict[str, int]:
    """Numbers in one sum of each release, at most (`pairveil.learning.training` makes them)."""
    return {
        "survey": n_features + 2,
        "signal": n_features,
        "margins": 2,
        "gradients": n_features * min(n_features, n_components or MAX_DIRECTIONS),
        "moments": 4,
        "contest": 1,
    }


def divide(budget: Budget, mechanism: Mechanism, n_features: int, n_pairs: int) -> Shares:
    """Shares of the releases: the more pairs there are for the noise, the more goes to the descent.

    Examples
    --------
    >>> budget = Budget(1.0, 1e-5, 1, "zero-out")
    >>> [round(divide(budget, "gaussian", 30, n).gradients, 2) for n in (400, 40_000)]
    [0.54, 0.86]
    """
    shares = SHARES[mechanism]
    if math.isinf(budget.epsilon) or mechanism == "laplace":
        return shares
    noise = _noise_for_share(budget, mechanism, 1.0) * math.sqrt(n_features)
    part = min(1.0, max(0.3, math.sqrt(SCARCE * noise / n_pairs)))
    side = {name: part * share for name, share in shares._asdict().items() if name != "gradients"}
    return Shares(gradients=1 - sum(side.values()), **side)


def _noise_for_share(budget: Budget, mechanism: Mechanism, share: float) -> float:
    """Noise multiplier of one full-batch sum that costs ``share`` of the budget."""
    if math.isinf(budget.epsilon):
        return 0.0
    reach = budget.kappa * (2 if budget.adjacency == "replace" else 1)
    if mechanism == "laplace":
        return reach / (budget.epsilon * share) * _ROUNDING
    return reach / (mu_from_epsilon(budget.epsilon, budget.delta) * math.sqrt(share)) * _ROUNDING


def _gradient_noise(budget: Budget, shape: NoisySums, share: float, others: list) -> float:
    """Noise multiplier of the descent: its share in closed form, or what the others leave it."""
    if math.isinf(budget.epsilon):
        return 0.0
    if shape.mechanism == "laplace":
        return shape.epochs * _noise_for_share(budget, "laplace", share)
    if shape.sampling == "disjoint" or shape.sample_rate == 1:
        count = shape.epochs if shape.sampling == "disjoint" else shape.steps
        return math.sqrt(count) * _noise_for_share(budget, "gaussian", share)
    return calibrate_gaussian(
        budget.epsilon,
        budget.delta,
        kappa=budget.kappa,
        adjacency=budget.adjacency,
        sample_rate=shape.sample_rate,
        steps=shape.steps,
        other_events=others,
    )
