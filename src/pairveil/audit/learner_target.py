"""Our learner as an audit target: its default plan, its own training loop, every release visible."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pairveil.audit.auditor import Claim, Target
from pairveil.audit.canaries import Neighbours
from pairveil.audit.watching import Watcher
from pairveil.audit.worst_case import worst_case
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Plan, Recipe, Setting
from pairveil.engine.planning import make_plan
from pairveil.learners.contrastive.recipe import ContrastiveRecipe
from pairveil.privacy.gdp import mu_from_epsilon
from pairveil.privacy.mechanisms import Budget
from pairveil.privacy.noise import NoiseSource, SeededNoise
from pairveil.privacy.units import Adjacency, Unit

FloatArray = NDArray[np.float64]
NoiseMaker = Callable[[np.random.Generator], NoiseSource]

OTHERS_PER_NOISE = 100.0
"""Other pairs in the worst case for each standard deviation of the noise (one sum, all of the budget)."""
MOST_OTHERS = 5000
"""More would only take time; with fewer than the noise asks for, a canary is weaker and as valid."""


def watch_fit(
    recipe: Recipe, plan: Plan, canary: Neighbours, *, noise: NoiseMaker = SeededNoise
) -> Callable[[int, int, np.random.Generator], FloatArray]:
    """Scores of an attacker who sees every answer of a whole fit.

    Parameters
    ----------
    recipe : Recipe
    plan : Plan
        What the learner runs; its ``n_records`` must be the canary's.
    canary : Neighbours
    noise : callable
        Makes the source of randomness from a generator; a broken one is a broken learner.
    """
    watcher = Watcher(canary)
    worlds = canary.first, canary.second

    def score(which: int, rng: np.random.Generator) -> float:
        watcher.reset()
        recipe.run(plan, Engine(worlds[which], noise(rng), on_answer=watcher))
        return watcher.score

    return lambda which, n, rng: np.array([score(which, rng) for _ in range(n)])


def learner_target(
    epsilon: float, delta: float, unit: Unit, kappa: int, adjacency: Adjacency, n_features: int
) -> Target:
    """The default plan of `DPPMetricLearner` on a worst case.

    All sums of the default plan are full-batch Gaussian ones, so the fit as a whole is a Gaussian
    mechanism and one point of its trade-off curve fixes the rest.

    Examples
    --------
    >>> target = learner_target(1.0, 1e-5, "pair", 1, "zero-out", n_features=2)
    >>> target.claim.assume, target.canary
    ('gaussian', 'label-flip')
    """
    budget = Budget(epsilon, delta, kappa, adjacency)
    canary = worst_case(unit, kappa, n_features, adjacency, n_others(budget))
    recipe = ContrastiveRecipe()
    plan = make_plan(recipe, Setting(budget, canary.first.n_pairs, n_features))
    claim = Claim(epsilon, delta, assume="gaussian")
    return Target("learner", watch_fit(recipe, plan, canary), claim, canary.name, adjacency, 8000)


def n_others(budget: Budget) -> int:
    """How many other pairs make themselves heard through a budget's noise.

    Examples
    --------
    >>> n_others(Budget(1.0, 1e-5, 1, "zero-out")), n_others(Budget(1.0, 1e-5, 3, "replace"))
    (373, 2238)
    """
    wanted = OTHERS_PER_NOISE * budget.reach / mu_from_epsilon(budget.epsilon, budget.delta)
    return min(MOST_OTHERS, round(wanted))
