"""Plans as audit targets: the learner's own engine on a worst case, every noisy sum visible.

The start and the margin are chosen so that the canary's gradient reaches the clip bound under both
labels, which is as much as any pair can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.audit.auditor import Claim, Scores, Target
from pairveil.audit.canaries import Neighbours, canary_of
from pairveil.audit.watching import Watcher
from pairveil.engine.engine import Engine
from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss
from pairveil.engine.statistics import Labels
from pairveil.engine.statistics import Scores as ChoiceScores
from pairveil.errors import InputError
from pairveil.privacy.calibrate import calibrate_choice, calibrate_gaussian, calibrate_laplace
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.events import cost_of
from pairveil.privacy.mechanisms import EXPONENTIAL, LAPLACE, Query
from pairveil.privacy.noise import NoiseMaker, SeededNoise
from pairveil.privacy.profile import epsilon_of
from pairveil.privacy.units import UNITS, Adjacency, Unit
from pairveil.records.kinds import KINDS

CLIP = 0.5
MARGIN = 2.0
MOST_ANSWERS = 200_000
"""Answers of all runs on a released plan together: half a minute at most."""
RUNS = 2000


def one_step_laplace(
    epsilon: float, unit: Unit, kappa: int, adjacency: Adjacency, n_features: int
) -> Target:
    """One full-batch Laplace sum, calibrated for the claim.

    Examples
    --------
    >>> from pairveil.audit.auditor import audit_scores
    >>> target = one_step_laplace(1.0, "pair", 1, "zero-out", n_features=2)
    >>> audit_scores(target.scores, target.claim, runs=2000, random_state=0).verdict
    'consistent'
    """
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
    """One choice among eight candidates, calibrated for the claim at delta = 0.

    Examples
    --------
    >>> from pairveil.audit.auditor import audit_scores
    >>> target = one_choice(1.0, "pair", 1, "zero-out", n_features=2)
    >>> audit_scores(target.scores, target.claim, runs=2000, random_state=0).verdict
    'consistent'
    """
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

    Parameters
    ----------
    noise_multiplier : float
        1 / eta.
    noise : callable
        As for `watch`.
    scores : scores of candidates, optional
        `FirstOfMany` if left out.
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
    """The claim of a plan with the family of its trade-off curves: the same plan at another noise.

    Examples
    --------
    >>> query = Query("gradients", (1, 2), noise_multiplier=20.0, steps=200, sample_rate=0.05)
    >>> claim = plan_claim(query, 1.83, 1e-5, kappa=13, adjacency="zero-out")
    >>> round(claim.curve(20.0, 1e-5), 2)
    1.83
    """

    def curve(noise: float, at: float) -> float:
        event = replace(query, noise_multiplier=noise).event()
        return epsilon_of([event], kappa=kappa, adjacency=adjacency, delta=at)

    return Claim(epsilon, delta, assume="family", curve=curve, noise=query.noise_multiplier)


def released_plan(certificate: Certificate) -> Target:
    """The plan of a release on a made-up worst case, every answer visible; only the certificate is read.

    What a protected unit moves follows from the stated costs: a contribution of one clip bound against null,
    or against its opposite where two clip bounds are charged (replaced contents; a person inside a group).

    ``certificate``: its numbers must hold, and the unit must cost the same in all queries: pairs, people
    or groups.

    Examples
    --------
    >>> from pairveil import DPPMetricLearner, design_pairs
    >>> from pairveil.audit.auditor import audit_scores
    >>> pairs = design_pairs(200, random_state=0)
    >>> learner = DPPMetricLearner(preprocessor=np.zeros((200, 3)), n_steps=5)
    >>> target = released_plan(learner.certify(pairs, np.ones(len(pairs))))
    >>> target.claim.assume, audit_scores(target.scores, target.claim, runs=200, random_state=0).verdict
    ('gaussian', 'consistent')
    """
    if not certificate.verify():
        raise InputError("the certificate does not hold: there is no claim to audit")
    try:
        queries = [Query.from_dict(one) for one in certificate.plan.get("releases", ())]
    except TypeError:
        raise InputError("the plan does not describe its queries") from None
    events = list(certificate.events)
    if "score" in certificate.plan:  # nobody is in what was scored too
        queries, events = queries[:-1], list(events[0]["parts"][0])
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

    Parameters
    ----------
    asked : Query, or several
        What the engine runs, one after the other.
    noise : callable
        Makes the source of randomness from a generator; a broken one is a broken learner.
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
