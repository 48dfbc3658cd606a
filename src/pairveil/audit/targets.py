"""What can be audited: a learner with its own plan and recipe, and plans on a worst case; every answer seen.

What was published is in `pairveil.audit.published`. Where a plan stands alone, the learner's own engine runs
it: start and margin are chosen so that the canary's gradient reaches the clip bound under both labels, which
is as much as any pair can do.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import binom

from pairveil.array_types import FloatArray
from pairveil.audit import TARGETS
from pairveil.audit.auditor import Claim, Finding, Scores, Target, audit_scores, mixture_loss
from pairveil.audit.canaries import Inputs, Neighbours, canary_of, worst_case
from pairveil.engine.engine import Engine
from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss
from pairveil.engine.plan import Plan, Recipe
from pairveil.engine.statistics import GRID, Labels, Statistic, clipped_sum
from pairveil.engine.statistics import Scores as ChoiceScores
from pairveil.errors import DataWarning, InputError
from pairveil.learners import learner_class
from pairveil.learners.base import PrivateLearner
from pairveil.privacy.calibrate import calibrate_choice, calibrate_gaussian, calibrate_laplace
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.compose import mu_from_epsilon
from pairveil.privacy.events import cost_of
from pairveil.privacy.grid import choose_grid
from pairveil.privacy.mechanisms import EXPONENTIAL, LAPLACE, Budget, Query
from pairveil.privacy.noise import NoiseMaker, SeededNoise
from pairveil.privacy.profile import epsilon_of
from pairveil.privacy.units import UNITS, Adjacency, Unit
from pairveil.records.kinds import KINDS

KAPPA: dict[Unit, int] = {"pair": 1, "relationship": 3, "person": 3}
"""Size of the canary for each unit: a graph with kappa 3 for relationships and for people."""

DELTA = 1e-5


def make_target(
    name: str,
    epsilon: float = 1.0,
    *,
    n_components: int = 1,
    n_features: int = 2,
    unit: Unit = "pair",
    adjacency: Adjacency = "zero-out",
    learner: str = "contrastive",
    records: str | None = None,
) -> Target:
    """Build a target with its claim and its worst case.

    ``n_components`` is d' of the published learners, ``n_features`` the dimension of everything. ``unit`` and
    ``adjacency`` are for our own targets: the published mechanisms claim replace, for kappa 1. Of "learner",
    ``learner`` is which, and ``records`` of what it `learns_from` the worst case is made.
    """
    if not epsilon > 0:
        raise InputError("epsilon must be positive")
    if n_components < 1 or n_features < 1:
        raise InputError("components and features must be at least 1")
    if unit not in KAPPA:
        raise InputError("unit must be 'pair', 'relationship' or 'person'")
    if name not in TARGETS:
        raise InputError(f"target must be one of {', '.join(TARGETS)}")
    module, _, function = TARGETS[name].partition(":")
    make = getattr(import_module(module), function)
    known: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": DELTA,
        "unit": unit,
        "kappa": KAPPA[unit],
        "adjacency": adjacency,
        "n_components": n_components,
        "n_features": n_features,
        "learner": learner,
        "records": records,
    }
    target: Target = make(**{key: known[key] for key in signature(make).parameters})
    return target


def audit_target(
    target: Target,
    *,
    runs: int | None = None,
    confidence: float = 0.95,
    random_state: int | None = None,
) -> Finding:
    """Audit a target with its own number of runs, or with ``runs``."""
    said = {"target": target.name, "canary": target.canary, "adjacency": target.adjacency}
    how: dict[str, Any] = {"confidence": confidence, "random_state": random_state, **said}
    return audit_scores(target.scores, target.claim, runs=runs or target.runs, **how)


# ---- an attacker who sees every answer -----------------------------------------------------------

# Differential privacy of a fit is proved for all its noisy sums together; the released metric is computed
# from them. So the strongest attacker that the proof covers sees each sum, knows W (it follows from the
# earlier sums) and everything but the canary. For that attacker the best score is known.


class _Part(NamedTuple):
    """Some of an input's records, and where they stand in it (disjoint batches are dealt by position)."""

    data: Any
    positions: NDArray[np.intp]


class Watcher:
    """Adds up the log likelihood ratio, second input against first, over the answers of one fit.

    Give it to the engine as ``on_answer``; read `score` after the fit, `reset` before the next.

    Gaussian sums: the sum is projected on the direction in which the inputs differ; there the number
    of the kappa pairs in the batch is Binomial(kappa, q), so the ratio is that of two mixtures.
    Exact for full and for disjoint batches, and for sampled ones when the changed pairs are equal and the
    others null; otherwise the others' expected part is subtracted and the score is only a good one.
    Laplace sums: the exact ratio entry by entry. Choices: the exact ratio of their probabilities.
    """

    def __init__(self, neighbours: Inputs) -> None:
        self.score = 0.0
        # Of each kind of Gaussian query how far apart the two inputs' sums were, in deviations of the noise,
        # squared and added up: the part of mu^2 that this pair of inputs realises.
        self.reached: dict[str, float] = defaultdict(float)
        self._steps: Counter[Any] = Counter()
        self._changed = neighbours.changed
        self._kappa = len(self._changed)
        self._first = _without_nulls(neighbours.first, self._changed)
        self._second = _without_nulls(neighbours.second, self._changed)
        rest = np.setdiff1d(np.arange(neighbours.first.n_records), self._changed)
        self._others = _without_nulls(neighbours.second, rest)

    def reset(self) -> None:
        """Forget the last fit."""
        self.score = 0.0
        self.reached.clear()
        self._steps.clear()

    def __call__(self, query: Query, statistic: Statistic, noisy: FloatArray) -> None:
        """Take one answer into account."""
        step = self._steps[query]
        self._steps[query] = step + 1
        if query.noise_multiplier == 0:
            return
        first, second, others = (
            self._sum(part, query, statistic, step)
            for part in (self._first, self._second, self._others)
        )
        if isinstance(statistic, ChoiceScores):
            self.score += _choice(query, int(noisy[0]), first + others, second + others)
            return
        rate = query.sample_rate if query.sampling == "poisson" else 1.0
        seen = noisy - rate * others
        scale = query.noise_multiplier * statistic.clip
        if query.mechanism.norm == "l1":
            self.score += float((np.abs(seen - first) - np.abs(seen - second)).sum() / scale)
        else:
            self.reached[query.name] += float(((second - first) ** 2).sum()) / scale**2
            self.score += self._gaussian(seen, first, second, rate, scale)

    def _sum(self, part: _Part | None, query: Query, statistic: Statistic, step: int) -> FloatArray:
        """What these pairs add to a batch that holds them all, by the learner's own (compiled) sum."""
        if part is None:
            return np.zeros(statistic.shape)
        rows = None
        if query.n_batches > 1:
            rows = np.flatnonzero(part.positions % query.n_batches == step % query.n_batches)
        n_entries, norm = math.prod(statistic.shape), query.mechanism.norm
        grid = GRID
        if not query.is_choice:
            grid = choose_grid(statistic.clip, n_entries, norm=norm, n_pairs=part.data.n_records)
        total = clipped_sum(part.data, rows, statistic, norm, grid)
        return np.asarray(total * grid, dtype=np.float64)

    def _gaussian(
        self, seen: FloatArray, first: FloatArray, second: FloatArray, rate: float, sigma: float
    ) -> float:
        apart = second - first
        length = float(np.sqrt((apart * apart).sum()))
        if length == 0.0:
            return 0.0
        along = [float((part * apart).sum()) / length for part in (seen, first, second)]
        if rate == 1.0:
            return ((along[0] - along[1]) ** 2 - (along[0] - along[2]) ** 2) / (2.0 * sigma**2)
        counts, weights = _binomial(self._kappa, rate)
        each = along[1] / self._kappa, along[2] / self._kappa
        return mixture_loss(along[0], counts, weights, *each, sigma)


@cache
def _binomial(kappa: int, rate: float) -> tuple[FloatArray, FloatArray]:
    counts = np.arange(kappa + 1, dtype=np.float64)
    return counts, np.maximum(binom.pmf(counts, kappa, rate), 1e-300)


def _choice(query: Query, chosen: int, first: FloatArray, second: FloatArray) -> float:
    """Log of the probability of this choice by the second input's scores over that by the first's."""
    logs = [total / query.noise_multiplier for total in (first, second)]
    shares = [one[chosen] - logsumexp(one) for one in logs]
    return float(shares[1] - shares[0])


def _without_nulls(data: Any, positions: NDArray[np.intp]) -> _Part | None:
    """The records with contents: null ones add nothing to any sum, so there is no need to ask them."""
    positions = data.occupied(positions)
    return _Part(data.subset(positions), positions) if len(positions) else None


# ---- a learner ------------------------------------------------------------------------------------

OTHERS_PER_NOISE = 100.0
"""Other pairs in the worst case for each standard deviation of the noise (one sum, all of the budget)."""
MOST_OTHERS = 5000
"""More would only take time; with fewer than the noise asks for, a canary is weaker and as valid."""


CANARIES: dict[str, str] = {
    "pairs": "pairveil.audit.targets:canary_of_pairs",
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

    ``plan`` is what the learner runs, for as many records as the canary has. ``noise`` makes the source of
    randomness from a generator; a broken one is a broken learner.
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
    # a canary among few pairs is no useful fit
    with warnings.catch_warnings(action="ignore", category=DataWarning):
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
    """How many other pairs make themselves heard through a budget's noise."""
    wanted = OTHERS_PER_NOISE * budget.sensitivity / mu_from_epsilon(budget.epsilon, budget.delta)
    return min(MOST_OTHERS, round(wanted))


# ---- plans ----------------------------------------------------------------------------------------

CLIP = 0.5
MARGIN = 2.0
MOST_ANSWERS = 200_000
"""Answers of all runs on a released plan together: half a minute at most."""
RUNS = 2000


def one_step_laplace(
    epsilon: float, unit: Unit, kappa: int, adjacency: Adjacency, n_features: int
) -> Target:
    """One full-batch Laplace sum, calibrated for the claim."""
    scale = calibrate_laplace(epsilon, kappa=kappa, adjacency=adjacency)
    query = Query("gradients", (1, n_features), scale, mechanism=LAPLACE)
    canary = canary_of(unit, kappa, n_features, adjacency)
    return Target("laplace", watch(query, canary), Claim(epsilon), canary.name, adjacency, 60_000)


def one_step_gaussian(
    epsilon: float, delta: float, unit: Unit, kappa: int, adjacency: Adjacency, n_features: int
) -> Target:
    """One full-batch Gaussian sum, calibrated for the claim."""
    multiplier = calibrate_gaussian(epsilon, delta, kappa=kappa, adjacency=adjacency)
    query = Query("gradients", (1, n_features), multiplier)
    canary = canary_of(unit, kappa, n_features, adjacency)
    claim = Claim(epsilon, delta, assume="gaussian")
    return Target("gaussian", watch(query, canary), claim, canary.name, adjacency, 60_000)


@dataclass(frozen=True)
class FirstOfMany(ChoiceScores):
    """A similar pair votes for the first candidate, a dissimilar one against it; null pairs do not vote.

    The more others there are, the rarer the first one is chosen and the closer the ratio of its
    probabilities comes to e^eta.
    """

    n_candidates: int = 8

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a candidate."""
        return (self.n_candidates,)

    def contributions(self, contents: Any, labels: Labels) -> tuple[FloatArray, NDArray[np.int8]]:
        """1 for the first candidate, 0 for all others."""
        values = np.zeros((len(labels), self.n_candidates))
        values[:, 0] = np.abs(contents).sum(axis=1) > 0
        return values, np.where(labels > 0, 1, -1).astype(np.int8)


def one_choice(
    epsilon: float, unit: Unit, kappa: int, adjacency: Adjacency, n_features: int
) -> Target:
    """One choice among eight candidates, calibrated for the claim at delta = 0."""
    eta = calibrate_choice(epsilon, 0.0, kappa=kappa, adjacency=adjacency)
    canary = canary_of(unit, kappa, n_features, adjacency)
    scores = watch_choice(1 / eta, canary)
    return Target("choice", scores, Claim(epsilon), canary.name, adjacency, 60_000)


def watch_choice(
    noise_multiplier: float,
    canary: Neighbours,
    *,
    noise: NoiseMaker = SeededNoise,
    scores: ChoiceScores | None = None,
) -> Scores:
    """Scores of an attacker who sees which candidate was chosen.

    ``noise_multiplier`` is 1 / eta, ``noise`` as for `watch_fit`.
    """
    by = FirstOfMany() if scores is None else scores
    query = Query("choice", by.shape, noise_multiplier, mechanism=EXPONENTIAL)
    ratios = []  # of each candidate, once for all runs
    for index in range(query.n_entries):
        watcher = Watcher(canary)
        watcher(query, by, np.array([float(index)]))
        ratios.append(round(watcher.score, 9))

    def run(which: int, n: int, rng: np.random.Generator) -> FloatArray:
        engine = Engine(canary.second if which else canary.first, noise(rng))
        many = replace(query, steps=n)
        return np.array([ratios[engine.choose(many, by)] for _ in range(n)])

    return run


def plan_claim(
    query: Query, epsilon: float, delta: float, kappa: int, adjacency: Adjacency
) -> Claim:
    """The claim of a plan with the family of its trade-off curves: the same plan at another noise."""

    def curve(noise: float, at: float) -> float:
        event = replace(query, noise_multiplier=noise).event()
        return epsilon_of([event], kappa=kappa, adjacency=adjacency, delta=at)

    return Claim(epsilon, delta, assume="family", curve=curve, noise=query.noise_multiplier)


def attack_plan(certificate: Certificate, confidence: float = 0.95) -> Finding:
    """What an attack sees of a release's plan; of a fit and its score the part that shows more.

    The bounds of both parts hold together with this confidence.
    """
    parts = (0, 1) if "score" in certificate.plan else (0,)
    sure = 1 - (1 - confidence) / len(parts)
    found = [
        audit_target(released_plan(certificate, part), confidence=sure, random_state=part)
        for part in parts
    ]
    most = max(found, key=lambda one: (one.verdict == "violated", one.lower_bound))
    return replace(most, confidence=confidence, n_runs=sum(one.n_runs for one in found))


def released_plan(certificate: Certificate, part: int = 0) -> Target:
    """The plan of a release on a made-up worst case, every answer visible; only the certificate is read.

    ``part``: of a fit that scores itself what is learned (0), or the score (1); nobody is in both. What a
    protected unit moves follows from the stated costs: a contribution of one clip bound against null,
    or against its opposite where two clip bounds are charged (replaced contents; a person inside a group).

    ``certificate``: its numbers must hold, and the unit must cost the same in all queries: pairs, people
    or groups.
    """
    if not certificate.verify():
        raise InputError("the certificate does not hold: there is no claim to audit")
    try:
        queries = [Query.from_dict(one) for one in certificate.plan.get("releases", ())]
    except TypeError:
        raise InputError("the plan does not describe its queries") from None
    events = list(certificate.events)
    if "score" in certificate.plan:
        queries = queries[-1:] if part else queries[:-1]
        events = list(events[0]["parts"][part])
    adjacency, group = certificate.adjacency, certificate.group_of()
    costs = set(group) if isinstance(group, tuple) else {cost_of(group)}
    moved = {cost.moved(adjacency) for cost in costs}
    plain = len(costs) == 1 and moved <= {1.0, 2.0} and certificate.unit in UNITS
    if not plain or [query.event().to_dict() for query in queries] != events:
        raise InputError(
            "this release is not made of plain sums over pairs, people or groups: "
            "`pairveil audit --learner NAME` audits its learner"
        )
    n_answers = sum(query.steps for query in queries)
    runs = min(RUNS, MOST_ANSWERS // max(n_answers, 1))
    if runs < 100:
        raise InputError(f"the plan has {n_answers:,} answers: too many to run it often enough")
    n_changed = costs.pop().records
    unit: Unit = "person" if n_changed > 1 and certificate.unit == "pair" else certificate.unit
    canary = canary_of(unit, n_changed, 1, "replace" if moved == {2.0} else "zero-out")
    queries = [replace(query, records="pairs") for query in queries]  # stand in for any record
    claim = Claim(certificate.epsilon, certificate.delta)
    if certificate.mu() is not None:
        claim = replace(claim, assume="gaussian")
    elif len(queries) == 1 and queries[0].is_sampled and KINDS[certificate.records].pairwise:
        claim = plan_claim(
            queries[0], certificate.epsilon, certificate.delta, certificate.kappa, adjacency
        )
    return Target("plan", watch(queries, canary), claim, canary.name, adjacency, runs)


def watch(
    asked: Query | Sequence[Query], canary: Neighbours, *, noise: NoiseMaker = SeededNoise
) -> Scores:
    """Scores of an attacker who sees each of the plan's noisy sums.

    The engine runs what is asked, one query after the other; ``noise`` as for `watch_fit`.
    """
    queries = [asked] if isinstance(asked, Query) else asked
    start = np.zeros((1, canary.first.n_features))
    start[0, 0] = 0.5  # D = 1 for the canary's difference of 2: half of the margin
    gradient = SetGradient(start, ContrastiveLoss(MARGIN), CLIP)
    watcher = Watcher(canary)

    def score(which: int, rng: np.random.Generator) -> float:
        watcher.reset()
        engine = Engine(canary.second if which else canary.first, noise(rng), on_answer=watcher)
        for query in queries:
            if query.is_choice:
                by = FirstOfMany(n_candidates=min(query.n_entries, 8))
                for _ in range(query.steps):
                    engine.choose(query, by)
            else:
                # Small, and divided by the plan's own noise: to stay near the start.
                step = 0.01 / (CLIP * (1 + query.noise_multiplier) * np.sqrt(query.steps))
                engine.descend(query, gradient, step, query.steps)
        # Rounded: ties of the ideal mechanism must not be broken by the last bits.
        return round(watcher.score, 9)

    return lambda which, n, rng: np.array([score(which, rng) for _ in range(n)])
