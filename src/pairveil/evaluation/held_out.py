"""A fit whose certificate covers a score as well, on the pairs of people who were kept out of learning.

The people of the used pairs are split in two by who is paired with whom alone, and pairs across are dropped.
Every unit has its pairs in one part, so it costs what the dearer part does, not the sum of both
(docs/theory/guarantee.md, 'Two parts of people').
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from pairveil.engine.backends.local import kappa_of, topology_digest
from pairveil.engine.engine import Engine
from pairveil.errors import DataWarning, InputError
from pairveil.evaluation.curve import ScorePlan, plan_comparison
from pairveil.learners.estimator import PrivateMetricLearner
from pairveil.learners.inputs import check_share, is_number, name_of_pairs
from pairveil.learners.preparing import Prepared, refuse_large_delta, selection_seed
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.events import ParallelEvent
from pairveil.privacy.mechanisms import slack_of_plan
from pairveil.privacy.units import (
    SCORED_APART,
    SELECTED_CAVEAT,
    UNITS,
    Unit,
    float_at_most,
)
from pairveil.records.kinds import PAIRS
from pairveil.records.pairset import PairSet

TEST_SHARE = 0.3
"""Part of the used pairs that are scored, about."""


def split_people(
    pairs: NDArray[Any], n_scored: int, seed: Any, together: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the pairs to learn from, and of those to score by; pairs across are in neither.

    ``pairs`` are in canonical order, by numbers that follow the order of ids: contents have no say in it.

    Clusters of people are put in line at random, within a cluster neighbours stand close; the first of the
    line are scored, as many as have ``n_scored`` pairs among them. So few pairs are cut: none where everybody
    is in one pair, one at most where pairs make paths. People who change together are one in the line.

    Examples
    --------
    >>> path = np.column_stack([np.arange(9), np.arange(1, 10)])
    >>> learned, scored = split_people(path, 3, seed=0)
    >>> len(learned), len(scored), np.intersect1d(path[learned], path[scored]).tolist()
    (5, 3, [])
    """
    who = np.asarray(pairs) if together is None else np.asarray(together)[np.asarray(pairs)]
    # By their places among those who are in pairs: whoever has the graph alone finds the same parts.
    ends = np.unique(who, return_inverse=True)[1].reshape(-1, 2)
    n, rng = int(ends.max()) + 1, np.random.default_rng(seed)
    ends = rng.permutation(n)[ends]
    joined = sparse.coo_array((np.ones(len(ends)), tuple(ends.T)), shape=(n, n)).tocsr()
    n_clusters, cluster = connected_components(joined, directed=False)
    near = np.argsort(reverse_cuthill_mckee((joined + joined.T).tocsr(), symmetric_mode=True))
    line = np.argsort(np.lexsort([near, rng.permutation(n_clusters)[cluster]]))
    first, last = np.sort(line[ends], axis=1).T
    end = np.partition(last, n_scored - 1)[n_scored - 1]
    return np.flatnonzero(first > end), np.flatnonzero(last <= end)


@dataclass(frozen=True)
class ScoredFit(Prepared):
    """A fit that is ready to start, and the score that ends it; `with_score` makes it."""

    both: PairSet | None = None  # the pairs that are learned from and those that are scored
    scored: PairSet | None = None
    score: ScorePlan | None = None

    @property
    def graph(self) -> str | None:
        """A name for all pairs that are used."""
        return name_of_pairs(self.both, self.secret)

    def cost(self) -> dict[str, Any]:
        """What a ledger is charged: one event, whose parts no unit has pairs in both of."""
        assert self.certificate is not None
        return super().cost() | {"events": self.certificate._events()}

    def finish(self, learner: Any, saved: Any) -> None:
        """Score what was learned; the answer is kept where those of the fit are."""
        assert self.score is not None
        planned = _plan(learner, self.scored, self.score.counter.epsilon, self.records.costs)
        if planned.prepared.plan != self.score.prepared.plan:
            raise RuntimeError("a score was not planned like this; nothing is released")
        if saved is not None:
            saved.go_on(sum(query.steps for query in self.plan.queries))
        engine = Engine(planned.prepared.records.used, self.noise, checkpoint=saved)
        counts = planned.prepared.recipe.run(planned.prepared.plan, engine)
        if not engine.followed(planned.prepared.plan.queries):
            raise RuntimeError("the engine did not follow its plan; nothing is released")
        learner.score_ = planned.aucs(counts)


def with_score(
    learner: PrivateMetricLearner,
    pairs: Any,
    y: ArrayLike | None = None,
    *,
    epsilon: float,
    test_share: float = TEST_SHARE,
) -> ScoredFit:
    """Prepare a fit that scores itself: give it to the learner's ``fit`` in place of pairs.

    Some of the people are kept out of learning, and how well the metric orders their pairs is released with
    noise, beside how well plain distance does. One certificate covers both. Nobody is in both parts, so it
    states the larger of the two epsilons, which is the learner's.

    Parameters
    ----------
    learner : PrivateMetricLearner
        Of pairs. Its parameters are the promise.
    pairs, y
        As for ``fit``.
    epsilon : float
        What the score may cost those whom it is of: at most the learner's own.
    test_share : float
        Part of the used pairs that are scored, about.

    Returns
    -------
    ScoredFit
        After ``learner.fit(...)`` of it the learner has ``score_``, a `pairveil.evaluation.curve.PairAuc` of
        the metric and of plain distance.

    Examples
    --------
    >>> from pairveil import DPPMetricLearner, design_pairs
    >>> from pairveil.records.embedded import label_pairs, load_patients
    >>> patients = load_patients()
    >>> pairs = design_pairs(569, random_state=0)
    >>> y = label_pairs(pairs, patients.classes)
    >>> learner = DPPMetricLearner(8.0, preprocessor=patients.features.values, random_state=0)
    >>> found = learner.fit(with_score(learner, pairs, y, epsilon=4.0))
    >>> found.certificate_.epsilon <= 8.0, bool(found.certificate_.verify())
    (True, True)
    >>> metric, plain = found.score_.aucs
    >>> metric.low < metric.value < metric.high
    True
    """
    if not isinstance(learner, PrivateMetricLearner):
        raise InputError("learner must be a private learner of a metric, such as DPPMetricLearner")
    if not (is_number(epsilon) and 0 < epsilon <= learner.epsilon):
        raise InputError(
            f"the score's epsilon must be above 0 and at most the fit's own, {learner.epsilon:g}: nobody is "
            "in both, and a unit costs the larger of the two"
        )
    check_share("test_share", test_share)
    if learner.kappa != "auto":
        raise InputError(
            "a score goes with kappa='auto': pairs that are declared to change together may be of people who "
            "are learned from and of people who are scored"
        )
    first = learner.prepare(pairs, y)
    if first.certificate is None:
        raise InputError("epsilon=inf promises nothing: a score of it is charged on its own")
    used = first.records.used
    if not isinstance(used, PairSet) or used.labels is None:
        raise InputError(
            "a score is of single labelled pairs: groups, tuples and classes have none"
        )
    n_scored, seed = round(test_share * used.n_pairs), selection_seed(learner.random_state)
    rows = split_people(used.pairs, max(n_scored, 1), seed, used.together)
    if not all(len(one) for one in rows):
        raise InputError(
            "no people can be held out: their pairs hang together too closely, or are too few. Bring more, "
            "or leave the score out"
        )
    return planned_apart(learner, first, *rows, epsilon=float_at_most(epsilon))


def planned_apart(
    learner: PrivateMetricLearner,
    first: Prepared,
    learned: NDArray[np.int64],
    scored: NDArray[np.int64],
    *,
    epsilon: float,
) -> ScoredFit:
    """The fit to some of the pairs and the score of others, under one certificate.

    Nobody may be in a pair of both: see `split_people`.
    """
    records = first.records
    used: PairSet = records.used
    both, held_out = used.subset(np.sort([*learned, *scored])), used.subset(scored)
    # What a unit moves is counted in both parts together: a relationship's pairs are taken at one of the two.
    found = kappa_of(both)
    costs = PAIRS.costs({unit: found.of(unit) for unit in UNITS})
    part = used.subset(learned)
    rows = np.asarray(records.used_rows)
    records = replace(records, used=part, used_rows=rows[learned], costs=costs, used_kappa=found)
    # said of all pairs already
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        fitted = learner.replan(replace(first, records=records))
    score = _plan(learner, held_out, epsilon, costs)
    issued = _certificate(learner, fitted, score, both)
    # A checkpoint names the pairs that are learned from; those that are scored must be the same too.
    pairs = hashlib.sha256(topology_digest(held_out)).hexdigest()
    about = f"{fitted.about} scored: {score.prepared.plan.to_dict()} of {pairs}"
    return ScoredFit(
        records=records, recipe=fitted.recipe, plan=fitted.plan, certificate=issued, noise=fitted.noise,
        about=about, secret=fitted.secret, both=both, scored=held_out, score=score,
    )  # fmt: skip


def planned_score(learner: PrivateMetricLearner, of: ScoredFit) -> Prepared:
    """The score of a fitted learner on the pairs that a fit keeps out."""
    assert of.score is not None
    return _plan(learner, of.scored, of.score.counter.epsilon, of.records.costs).prepared


def _plan(
    learner: PrivateMetricLearner, scored: Any, epsilon: float, costs: Mapping[Unit, Any]
) -> ScorePlan:
    """The score of a learner and of plain distance; one that is not fitted yet has the same plan.

    It is charged as sums over pairs are, by the costs of both parts: never less.
    """
    components = getattr(learner, "components_", None)
    if components is not None:  # of rows as they were learned from
        scale = np.broadcast_to(getattr(learner, "column_scale_", 1.0), components.shape[1:])
        components = np.divide(components, scale, out=np.zeros_like(components), where=scale > 0)
    planned = plan_comparison(
        scored.features, scored.pairs, scored.labels, scored.pairs, components,
        data_norm=learner.data_norm, epsilon=epsilon, delta=learner.delta, unit=learner.unit,
        adjacency=learner.adjacency, mechanism=learner.mechanism, random_state=learner.random_state,
    )  # fmt: skip
    prepared = planned.prepared
    charged = replace(prepared, records=replace(prepared.records, costs=costs))
    return planned._replace(prepared=planned.counter.replan(charged))


def _certificate(
    learner: PrivateMetricLearner, fitted: Prepared, score: ScorePlan, both: PairSet
) -> Certificate:
    """The one certificate of a fit and its score: one event of two parts."""
    records, counted = fitted.records, score.prepared
    assert fitted.certificate is not None
    parts = [
        [{**query.to_dict(), "records": PAIRS.name} for query in one.plan.queries]
        for one in (fitted, counted)
    ]
    kappas = records.kappas
    exact = fitted.noise.for_release
    slacks = [slack_of_plan({"releases": one}, max(kappas.values())) for one in parts if exact]
    selection = dict(records.selection)
    if both.n_pairs < records.given.n_pairs:
        selection["caveat"] = SELECTED_CAVEAT
    issued = Certificate.issue(
        [ParallelEvent((tuple(fitted.plan.events()), tuple(counted.plan.events())))],
        delta=fitted.certificate.delta,
        unit=learner.unit,
        adjacency=learner.adjacency,
        kappas=kappas,
        mechanism=learner.mechanism,
        n_pairs_given=records.n_given,
        n_pairs_used=both.n_pairs,
        selection=selection,
        noise_source=fitted.noise.name,
        for_release=exact and records.for_release,
        delta_slack=max(slacks, default=0.0),
        public=[*records.public, SCORED_APART],
        plan={
            **fitted.plan.to_dict(),
            "releases": [*parts[0], *parts[1]],
            "score": {"n_pairs": counted.plan.n_records},
        },
        costs={PAIRS.name: records.costs},
    )
    refuse_large_delta(issued)
    return issued
