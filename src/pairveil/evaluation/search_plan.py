"""What a private search asks, before anything is drawn: candidates, their trials' events, one certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from pairveil.data.pairset import PairSet
from pairveil.engine.backends.records import kappa_of
from pairveil.errors import InputError
from pairveil.evaluation.private_auc import AucPlan, lengths_of, longest_distance, plan_auc
from pairveil.learners.metric import PrivateMetricLearner
from pairveil.learners.preparing import Prepared, refuse_large_delta
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.costs import costs_of_pairs
from pairveil.privacy.events import BestOfEvent
from pairveil.privacy.slack import slack_of_plan
from pairveil.privacy.units import SEARCHED, UNITS, Unit


class Candidate(NamedTuple):
    """One of the settings: its parameters, and its learner, fit and score made ready for a trial."""

    params: dict[str, Any]
    learner: PrivateMetricLearner
    prepared: Prepared
    score: AucPlan

    def queries(self) -> list[dict[str, Any]]:
        """What a trial asks. The score's counted pairs are charged as pairs are: never less."""
        asked = (*self.prepared.plan.queries, *self.score.prepared.plan.queries)
        return [{**query.to_dict(), "records": "pairs"} for query in asked]


class PreparedSearch(NamedTuple):
    """A search that is ready to start; nothing was drawn or spent.

    Attributes
    ----------
    candidates : list of Candidate
    certificate : Certificate or None
        None when epsilon is infinite.
    test : PairSet
        The pairs that scores are of.
    """

    candidates: list[Candidate]
    certificate: Certificate | None
    test: PairSet

    @property
    def mean_trials(self) -> int | None:
        """As it is certified; None where there is no certificate."""
        return None if self.certificate is None else self.certificate.plan["search"]["mean_trials"]

    def cost(self) -> dict[str, Any]:
        """What a ledger is charged: one event for all of it."""
        if self.certificate is None:
            raise InputError("epsilon=inf promises nothing: a ledger cannot be charged for it")
        # Every part is of the same people: the first candidate's material knows what a person is.
        meanings = self.candidates[0].prepared.material.meanings
        return {
            "events": self.certificate._events(),
            "kappas": self.certificate.kappas,
            "meanings": meanings,
        }


def split_pairs(
    pairs: Any, y: ArrayLike | None, test_share: float, seed: int | None
) -> tuple[Any, Any, Any, Any]:
    """Pairs and labels to learn from, then those to score by, at random: by no contents."""
    given = pairs if isinstance(pairs, PairSet) else np.asarray(pairs)
    own = isinstance(given, PairSet) and y is None and given.labels is not None
    n = given.n_pairs if isinstance(given, PairSet) else len(given)
    labels = None if own else np.asarray(y)  # its own stay in a PairSet: some may be null
    if labels is not None and labels.shape != (n,):
        raise InputError(f"y must be one label for each of the {n} pairs")
    n_test = round(n * test_share)
    if not 1 <= n_test < n:
        raise InputError(
            "there are too few pairs to hold some out: bring more, or change test_share"
        )
    order = np.random.default_rng(seed).permutation(n)
    parts: list[NDArray[np.int64]] = [np.sort(order[n_test:]), np.sort(order[:n_test])]
    found: list[Any] = []
    for rows in parts:
        taken = given.subset(rows) if isinstance(given, PairSet) else given[rows]
        found += [taken, None if labels is None else labels[rows]]
    return found[0], found[1], found[2], found[3]


def plan_score(
    learner: PrivateMetricLearner, test: PairSet, epsilon: float, delta: float, seed: int | None
) -> AucPlan:
    """The score of a fitted learner; one that is not fitted yet has the same plan."""
    lengths, longest = np.zeros(test.n_pairs), 1.0
    if hasattr(learner, "components_"):
        points = test.features @ learner.components_.T
        lengths = lengths_of(points[test.pairs[:, 0]] - points[test.pairs[:, 1]])
        scale = getattr(learner, "column_scale_", None)
        longest = longest_distance(learner.components_, scale, learner.data_norm)
    return plan_auc(
        lengths, np.asarray(test.labels), test.pairs, epsilon, delta, longest, learner.unit,
        adjacency=learner.adjacency, mechanism=learner.mechanism, random_state=seed,
        kappa="auto" if test.together is None else kappa_of(test).of(learner.unit), null=True,
    )  # fmt: skip


def event_of(
    candidates: Sequence[Candidate], test: PairSet, mean_trials: int, *, exact: bool
) -> tuple[BestOfEvent, dict[Unit, int]]:
    """What the accountant is told, and how many pairs a unit holds in any of the queries.

    ``exact``: whether noise is exact and discrete, whose slack is the event's.
    """
    # Of the scored pairs it is `test` that knows who changes together, not its counts.
    scored, fitted = kappa_of(test), [one.prepared.material.kappas for one in candidates]
    kappas = {unit: max(scored.of(unit), *(one[unit] for one in fitted)) for unit in UNITS}
    # Chains of pairs run through those that are fitted and those that are scored (guarantee.md).
    kappas["relationship"] = max(kappas["relationship"], kappas["person"])
    trials = tuple(
        (*one.prepared.plan.events(), *one.score.prepared.plan.events()) for one in candidates
    )
    asked = [query for one in candidates for query in one.queries()]
    slack = slack_of_plan({"releases": asked}, max(kappas.values())) if exact else 0.0
    return BestOfEvent(mean_trials, slack, trials), kappas


def certificate_of(
    candidates: Sequence[Candidate],
    event: BestOfEvent,
    kappas: dict[Unit, int],
    test: PairSet,
    delta: float,
    full_kappa: int,
    *,
    for_release: bool,
) -> Certificate:
    """The one certificate of a search: every candidate is listed in it.

    ``full_kappa`` is that of a relationship in all given pairs, fitted or held out.
    """
    fewest = min((one.prepared for one in candidates), key=lambda p: p.material.counts[1])
    learner, held_out, scored = candidates[0].learner, test.n_pairs, kappa_of(test)
    said = [said for one in candidates for said in one.prepared.material.public]
    noise, given = fewest.noise, fewest.material.counts
    named = [
        {
            "options": {name: _told(value) for name, value in one.params.items()},
            "queries": len(one.queries()),
        }
        for one in candidates
    ]
    issued = Certificate.issue(
        [event],
        delta=delta,
        unit=learner.unit,
        adjacency=learner.adjacency,
        kappas=kappas,
        mechanism=learner.mechanism,
        n_pairs_given=given[0] + held_out,
        n_pairs_used=given[1] + held_out,
        selection={**fewest.material.selection, "full_graph_relationship_kappa": full_kappa},
        noise_source=noise.name,
        for_release=for_release
        and noise.for_release
        and all(one.prepared.material.for_release for one in candidates),
        public=[*dict.fromkeys(said), SEARCHED],
        plan={
            "releases": [query for one in candidates for query in one.queries()],
            "n_features": fewest.plan.n_features,
            "data_norm": fewest.plan.data_norm,
            "search": {"mean_trials": event.mean_trials, "candidates": named},
            "thresholds": [
                {"n_pairs": held_out, "kappas": {unit: scored.of(unit) for unit in UNITS}}
            ],
        },
        costs={"pairs": costs_of_pairs(kappas)},
    )
    refuse_large_delta(issued)
    return issued


def _told(value: Any) -> Any:
    """An option as the certificate tells it."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return type(value).__name__ if isinstance(value, BaseEstimator) else str(value)
