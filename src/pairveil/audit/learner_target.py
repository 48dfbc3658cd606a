"""Our learner as an audit target: its default plan, its own training loop, every release visible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.audit.auditor import Claim
from pairveil.audit.canaries import Neighbours
from pairveil.audit.published_targets import Target
from pairveil.audit.watching import Watcher
from pairveil.audit.worst_case import worst_case
from pairveil.learning.defaults import Budget, make_plan
from pairveil.learning.engine import Engine
from pairveil.learning.plan import TrainingPlan
from pairveil.learning.training import take_survey, train
from pairveil.privacy.gdp import mu_from_epsilon
from pairveil.privacy.noise import NoiseSource, SeededNoise
from pairveil.privacy.units import Adjacency, Unit

FloatArray = NDArray[np.float64]
NoiseMaker = Callable[[np.random.Generator], NoiseSource]

OTHERS_PER_NOISE = 100.0
"""Other pairs in the worst case for each standard deviation of the noise (one sum, all of the budget)."""
MOST_OTHERS = 5000
"""More would only take time; with fewer than the noise asks for, a canary is weaker and as valid."""


class FitWatcher(Watcher):
    """A `Watcher` that follows the fit into the units that its survey chose.

    The scale of the columns is computed from the survey's noisy sum, so the attacker can compute it too.
    """

    def __init__(self, neighbours: Neighbours, plan: TrainingPlan) -> None:
        super().__init__(neighbours)
        self._plan = plan

    def reset(self) -> None:
        """Forget the last fit and its units."""
        super().reset()
        self.rescale(None)

    def __call__(self, sums: Any, statistic: Any, noisy: FloatArray) -> None:
        """Take one release into account."""
        super().__call__(sums, statistic, noisy)
        if sums.name == self._plan.survey.name:
            self.rescale(take_survey(self._plan, Replay(noisy)).scale)  # type: ignore[arg-type]


class Replay:
    """Stands where the engine stands and hands out a sum that was released before."""

    def __init__(self, noisy: FloatArray) -> None:
        self._noisy = noisy

    def release(self, sums: Any, statistic: Any) -> FloatArray:  # noqa: ARG002 - the engine's shape
        return self._noisy


def watch_fit(
    plan: TrainingPlan, canary: Neighbours, *, noise: NoiseMaker = SeededNoise
) -> Callable[[int, int, np.random.Generator], FloatArray]:
    """Scores of an attacker who sees every release of a whole fit.

    Parameters
    ----------
    plan : TrainingPlan
        What the learner runs; its ``n_pairs`` must be the canary's.
    canary : Neighbours
    noise : callable
        Makes the source of randomness from a generator; a broken one is a broken learner.
    """
    watcher = FitWatcher(canary, plan)
    worlds = canary.first, canary.second

    def score(which: int, rng: np.random.Generator) -> float:
        watcher.reset()
        train(plan, worlds[which], Engine(worlds[which], noise(rng), on_release=watcher))
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
    plan = make_plan(budget, n_features=n_features, n_pairs=canary.first.n_pairs, data_norm=1.0)
    claim = Claim(epsilon, delta, assume="gaussian")
    return Target("learner", watch_fit(plan, canary), claim, canary.name, adjacency, 8000)


def n_others(budget: Budget) -> int:
    """How many other pairs make themselves heard through a budget's noise.

    Examples
    --------
    >>> n_others(Budget(1.0, 1e-5, 1, "zero-out")), n_others(Budget(1.0, 1e-5, 3, "replace"))
    (373, 2238)
    """
    reach = budget.kappa * (2 if budget.adjacency == "replace" else 1)
    wanted = OTHERS_PER_NOISE * reach / mu_from_epsilon(budget.epsilon, budget.delta)
    return min(MOST_OTHERS, round(wanted))
