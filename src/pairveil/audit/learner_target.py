"""A learner as an audit target: its own plan, its own recipe, every answer visible."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.audit.auditor import Claim, Finding, Target
from pairveil.audit.canaries import Inputs, Neighbours, worst_case
from pairveil.audit.targets import audit_target
from pairveil.audit.watching import Watcher
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Plan, Recipe
from pairveil.errors import DataWarning, InputError, PrivateNote
from pairveil.learners import learner_class
from pairveil.learners.base import PrivateLearner
from pairveil.privacy.compose import mu_from_epsilon
from pairveil.privacy.mechanisms import Budget
from pairveil.privacy.noise import NoiseMaker, SeededNoise
from pairveil.privacy.units import Adjacency, Unit

OTHERS_PER_NOISE = 100.0
"""Other pairs in the worst case for each standard deviation of the noise (one sum, all of the budget)."""
MOST_OTHERS = 5000
"""More would only take time; with fewer than the noise asks for, a canary is weaker and as valid."""


CANARIES: dict[str, str] = {
    "pairs": "pairveil.audit.learner_target:canary_of_pairs",
    "classes": "pairveil.audit.canaries:canary_of_people",
    "tuples": "pairveil.audit.canaries:canary_of_tuples",
    "choices": "pairveil.audit.canaries:canary_of_choices",
    "links": "pairveil.audit.canaries:canary_of_links",
}
"""The worst case for each kind of input that a learner `learns_from`: 'module:function', called with the
learner, kappa and the number of features."""


def watch_fit(
    recipe: Recipe, plan: Plan, canary: Inputs, *, noise: NoiseMaker = SeededNoise
) -> Callable[[int, int, np.random.Generator], FloatArray]:
    """Scores of an attacker who sees every answer of a whole fit.

    Parameters
    ----------
    plan : Plan
        What the learner runs; its ``n_records`` must be the canary's.
    canary : Neighbours, or inputs of other records
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
    epsilon: float,
    delta: float,
    unit: Unit,
    kappa: int,
    adjacency: Adjacency,
    n_features: int,
    learner: str = "contrastive",
    records: str | None = None,
) -> Target:
    """The default plan of a registered learner on a worst case.

    Where all its answers are full-batch Gaussian sums, the fit as a whole is a Gaussian mechanism and one
    point of its trade-off curve fixes the rest.

    Examples
    --------
    >>> target = learner_target(1.0, 1e-5, "pair", 1, "zero-out", n_features=2)
    >>> target.claim.assume, target.canary
    ('gaussian', 'label-flip')
    """
    made = learner_class(learner)(epsilon=epsilon, delta=delta, unit=unit, adjacency=adjacency)
    return target_of(made, kappa=kappa, n_features=n_features, records=records)


def audit(
    learner: PrivateLearner | str = "contrastive",
    *,
    kappa: int = 1,
    n_features: int = 2,
    runs: int = 8000,
    confidence: float = 0.95,
    random_state: int | None = None,
    canary: Inputs | None = None,
    records: str | None = None,
) -> Finding:
    """Fit a learner many times on a worst case, and bound its epsilon from outside.

    Parameters
    ----------
    learner : PrivateLearner, or its name in `pairveil.learners.LEARNERS`
        Its parameters are the claim. It is not changed, and no ledger is charged.
    kappa : int
        Size of the canary: pairs that change together. At least 2 only where the unit allows it. Where
        records are people the unit says how many change: one, or two.
    n_features : int
    runs : int
        Fits in all, half of them on each input.
    confidence : float
        Of the lower bound.
    random_state : int, optional
    canary : Neighbours, or inputs of other records, optional
        Two inputs of your own, for the learner's adjacency; they differ in one unit.
    records : str, optional
        Of what the learner `learns_from` the worst case is made; the first of it by default.

    Returns
    -------
    Finding

    Examples
    --------
    >>> from pairveil import DPPMetricLearner
    >>> found = audit(DPPMetricLearner(unit="pair", n_steps=2), runs=200, random_state=0)
    >>> found.verdict
    'consistent'
    """
    target = target_of(learner, kappa=kappa, n_features=n_features, canary=canary, records=records)
    return audit_target(target, runs=runs, confidence=confidence, random_state=random_state)


def target_of(
    learner: PrivateLearner | str,
    *,
    kappa: int = 1,
    n_features: int = 2,
    canary: Inputs | None = None,
    records: str | None = None,
) -> Target:
    """A learner on a canary as an audit target; parameters as for `audit`."""
    audited, canary = on_canary(learner, kappa, n_features, 0, canary, records)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # a canary among few pairs is no useful fit
        warnings.simplefilter("ignore", PrivateNote)
        prepared = audited.prepare(canary.second)
    certificate = prepared.certificate
    if certificate is None:
        raise InputError("an audit needs a private learner: epsilon is infinite")
    full = all(query.n_batches == 1 and not query.is_sampled for query in prepared.plan.queries)
    is_gaussian = full and certificate.mu(certificate.unit) is not None
    claim = Claim(
        certificate.epsilon, certificate.delta, assume="gaussian" if is_gaussian else "nothing"
    )
    scores = watch_fit(prepared.recipe, prepared.plan, canary)
    return Target("learner", scores, claim, canary.name, canary.adjacency, 8000)


def on_canary(
    learner: PrivateLearner | str,
    kappa: int,
    n_features: int,
    random_state: int,
    canary: Inputs | None,
    records: str | None = None,
) -> tuple[PrivateLearner, Inputs]:
    """A copy of a learner that may be run on a canary, and the canary: the given one or the worst case."""
    if isinstance(learner, str):
        learner = learner_class(learner)()
    if canary is None:
        kind = learner.learns_from[0] if records is None else records
        if kind not in learner.learns_from:
            raise InputError(
                f"{type(learner).__name__} learns from {' or '.join(learner.learns_from)}, not from {kind}"
            )
        if kind not in CANARIES:
            raise InputError(
                f"no worst case is known for a learner of {kind}: give two neighbouring inputs as canary"
            )
        module, _, function = CANARIES[kind].partition(":")
        canary = getattr(import_module(module), function)(learner, kappa, n_features)
    if canary.adjacency != learner.adjacency:
        raise InputError("the canary was made for the other adjacency")
    own = learner.get_params(deep=False)
    ours = {"select": "all", "accountant": None, "preprocessor": None, "random_state": random_state}
    own |= {name: value for name, value in ours.items() if name in own}
    return type(learner)(**own), canary


def canary_of_pairs(learner: PrivateLearner, kappa: int, n_features: int) -> Neighbours:
    """The worst case among as many other pairs as the learner's noise leaves audible."""
    budget = Budget(learner.epsilon, learner.delta, kappa, learner.adjacency)
    return worst_case(
        learner.unit,
        kappa,
        n_features,
        learner.adjacency,
        n_others(budget),
        data_norm=learner.data_norm,
    )


def n_others(budget: Budget) -> int:
    """How many other pairs make themselves heard through a budget's noise.

    Examples
    --------
    >>> n_others(Budget(1.0, 1e-5, 1, "zero-out")), n_others(Budget(1.0, 1e-5, 3, "replace"))
    (373, 2238)
    """
    wanted = OTHERS_PER_NOISE * budget.sensitivity / mu_from_epsilon(budget.epsilon, budget.delta)
    return min(MOST_OTHERS, round(wanted))
