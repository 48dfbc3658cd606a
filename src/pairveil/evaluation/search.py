"""PrivateSearch: the best of several private fits, at one stated epsilon (docs/theory/accounting.md).

What a private search asks, before anything is drawn: candidates, their trials' events, one certificate.
"""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import ParameterGrid

from pairveil.engine.backends.local import kappa_of
from pairveil.errors import InputError, PairveilWarning
from pairveil.evaluation.curve import ScorePlan, lengths_of, longest_distance, plan_auc
from pairveil.learners.base import WithoutData
from pairveil.learners.estimator import PrivateMetricLearner
from pairveil.learners.inputs import check_epsilon, check_share, check_whole, is_number
from pairveil.learners.preparing import Prepared, refuse_large_delta
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.events import BestOfEvent
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms import mechanism_named, slack_of_plan
from pairveil.privacy.noise import NoiseSource
from pairveil.privacy.profile import epsilon_of
from pairveil.privacy.units import SEARCHED, UNITS, Unit, float_at_most
from pairveil.records.canonical import mentioned, order_of_ids, ranks
from pairveil.records.kinds import KINDS, PAIRS
from pairveil.records.pairset import PairSet
from pairveil.records.validation import without_levels

# ---- candidates, their trials' events, one certificate -------------------------------------------


class Candidate(NamedTuple):
    """One of the settings: its parameters, and its learner, fit and score made ready for a trial."""

    params: dict[str, Any]
    learner: PrivateMetricLearner
    prepared: Prepared
    score: ScorePlan

    def queries(self) -> list[dict[str, Any]]:
        """What a trial asks. The score's counted pairs are charged as pairs are: never less."""
        asked = (*self.prepared.plan.queries, *self.score.prepared.plan.queries)
        return [{**query.to_dict(), "records": "pairs"} for query in asked]


class PreparedSearch(NamedTuple):
    """A search that is ready to start; nothing was drawn or spent."""

    candidates: list[Candidate]
    certificate: Certificate | None  # None when epsilon is infinite
    test: PairSet  # the pairs that scores are of

    @property
    def mean_trials(self) -> int | None:
        """As it is certified; None where there is no certificate."""
        return None if self.certificate is None else self.certificate.plan["search"]["mean_trials"]

    def cost(self) -> dict[str, Any]:
        """What a ledger is charged: one event for all of it."""
        if self.certificate is None:
            raise InputError("epsilon=inf promises nothing: a ledger cannot be charged for it")
        # Every part is of the same people: the first candidate knows what a person is.
        meanings = self.candidates[0].prepared.records.meanings
        return {
            "events": self.certificate._events(),
            "kappas": self.certificate.kappas,
            "meanings": meanings,
        }


def split_pairs(
    learner: PrivateMetricLearner,
    pairs: Any,
    y: ArrayLike | None,
    test_share: float,
    seed: int | None,
) -> tuple[tuple[Any, Any], tuple[Any, Any], PairSet]:
    """Pairs and labels to learn from, those to score by, at random, and all of them in canonical order.

    By who is paired with whom alone: neither contents nor the order of rows decide, and rows that mention
    the same pair stay together.
    """
    # what there is to say is said of the parts
    with warnings.catch_warnings(action="ignore", category=PairveilWarning):
        placed, _ = learner._given_pairs(pairs, y, learning=False)
        whole = placed.canonical()[0]
    n_test = round(whole.n_pairs * test_share)
    if not 1 <= n_test < whole.n_pairs:
        raise InputError(
            "there are too few pairs to hold some out: bring more, or change test_share"
        )
    held_out = np.zeros(whole.n_pairs, dtype=bool)
    held_out[np.random.default_rng(seed).permutation(whole.n_pairs)[:n_test]] = True
    people = ranks(order_of_ids(placed.ids))
    ends = placed.pairs if people is None else people[placed.pairs]
    scored = held_out[mentioned(whole.pairs, ends)]
    given = pairs if isinstance(pairs, PairSet) else np.asarray(without_levels(pairs))
    take = given.subset if isinstance(given, PairSet) else given.__getitem__
    train, test = np.flatnonzero(~scored), np.flatnonzero(scored)
    # Its own labels stay in a PairSet: some may be null.
    inside = isinstance(given, PairSet) and y is None and given.labels is not None
    own = [None if inside else np.asarray(y)[rows] for rows in (train, test)]
    return (take(train), own[0]), (take(test), own[1]), whole


def plan_score(
    learner: PrivateMetricLearner, test: PairSet, epsilon: float, delta: float, seed: int | None
) -> ScorePlan:
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
    scored, fitted = kappa_of(test), [one.prepared.records.kappas for one in candidates]
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
    fewest = min((one.prepared for one in candidates), key=lambda p: p.records.n_used)
    learner, held_out, scored = candidates[0].learner, test.n_pairs, kappa_of(test)
    said = [said for one in candidates for said in one.prepared.records.public]
    noise, records = fewest.noise, fewest.records
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
        n_pairs_given=records.n_given + held_out,
        n_pairs_used=records.n_used + held_out,
        selection={**fewest.records.selection, "full_graph_relationship_kappa": full_kappa},
        noise_source=noise.name,
        for_release=for_release
        and noise.for_release
        and all(one.prepared.records.for_release for one in candidates),
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
        costs={PAIRS.name: PAIRS.costs(kappas)},
    )
    refuse_large_delta(issued)
    return issued


def _told(value: Any) -> Any:
    """An option as the certificate tells it."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return type(value).__name__ if isinstance(value, BaseEstimator) else str(value)


# ---- the best of several private fits, at one stated epsilon (docs/theory/accounting.md) ----------

OF_THE_PROMISE = (
    "delta", "unit", "adjacency", "mechanism", "kappa", "data_norm", "accountant", "preprocessor",
    "backend", "random_state", "schema", "bounds",
)  # fmt: skip
"""What all candidates share: the learner's own, or the search's."""

TRIALS_A_CANDIDATE = 3

_CLOSE = 0.99  # of the budget: a plan that spends this much of it is not refined


class PrivateSearch(WithoutData):
    """Choose the options of a learner privately: only the best of a random number of fits leaves.

    Each trial takes one candidate of the grid at random, fits it, and scores it by a noisy pair AUC on
    pairs that were held out. How many trials there are is random, of mean ``mean_trials``, and is not told.

    Parameters
    ----------
    learner : PrivateMetricLearner
        Of pairs; ``unit``, ``adjacency``, ``mechanism``, ``preprocessor`` and the like are its own.
    grid : dict or list of dicts
        As scikit-learn's: names of the learner's parameters with the values to try. The name ``learner``
        stands for other learners to try in its place. Candidates whose selections have different kappas
        are all charged for the largest. ``epsilon`` may be tried too: its largest value must be the search's,
        the fit of a candidate has that part of a trial's budget, and the promise is that of the largest
        whichever wins.
    epsilon, delta : float
        The promise for what leaves: the best metric, its parameters and its score.
    mean_trials : int or "auto"
        Three for each candidate when "auto". A candidate among m is never tried with probability
        m / (m + mean_trials), about.
    score_share : float
        Part of each trial's budget that its score has.
    test_share : float
        Part of the pairs, taken at random, that scores are of.
    accountant : PrivacyLedger, optional
        Charged once, for the whole search, before anything is drawn.
    random_state : int or None
        A seed makes it repeatable, and not for release.

    Attributes
    ----------
    best_params_ : dict
    best_score_ : float
        The noisy pair AUC by which it was the best: too good by what is gained by choosing.
    best_estimator_ : PrivateMetricLearner
        Fitted; its certificate is the search's.
    certificate_ : Certificate or None

    Examples
    --------
    >>> from pairveil import DPPMetricLearner, design_pairs
    >>> from pairveil.records.embedded import label_pairs, load_patients
    >>> patients = load_patients()
    >>> pairs = design_pairs(569, random_state=0)
    >>> y = label_pairs(pairs, patients.classes)
    >>> learner = DPPMetricLearner(preprocessor=patients.features.values)
    >>> search = PrivateSearch(learner, {"n_components": [1, 4]}, epsilon=8.0, random_state=0)
    >>> found = search.fit(pairs, y)
    >>> found.certificate_.epsilon <= 8.0, bool(found.certificate_.verify())
    (True, True)
    >>> sorted(found.best_params_), found.best_estimator_.certificate_ == found.certificate_
    (['n_components'], True)
    """

    def __init__(
        self,
        learner: PrivateMetricLearner,
        grid: Any,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        mean_trials: Any = "auto",
        score_share: float = 0.2,
        test_share: float = 0.3,
        accountant: PrivacyLedger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.learner = learner
        self.grid = grid
        self.epsilon = epsilon
        self.delta = delta
        self.mean_trials = mean_trials
        self.score_share = score_share
        self.test_share = test_share
        self.accountant = accountant
        self.random_state = random_state

    def prepare(self, pairs: Any, y: ArrayLike | None = None) -> PreparedSearch:
        """All of a search that comes before its noise; give it to ``fit`` in place of pairs."""
        if isinstance(pairs, PreparedSearch):
            return pairs
        self._check()
        train, held_out, whole = split_pairs(
            self.learner, pairs, y, float(self.test_share), self.random_state
        )
        settings = [self._setting(params) for params in ParameterGrid(self.grid)]
        test = self.learner._read_pairs(*held_out, learning=False, quiet=True)
        first = [(params, one, one.prepare(*train)) for params, one in settings]
        if not all(KINDS[prepared.records.kind].pairwise for _, _, prepared in first):
            raise InputError("a search is among fits to pairs; select='groups' is not one")
        return self._within_budget(first, test.data, kappa_of(whole).relationship, test.inferred)

    def certify(self, pairs: Any, y: ArrayLike | None = None) -> Certificate | None:
        """The certificate that ``fit`` would issue for a split of this size; spends nothing."""
        return self.prepare(pairs, y).certificate

    def fit(self, pairs: Any, y: ArrayLike | None = None) -> Self:
        """Search, and keep the best.

        Parameters
        ----------
        pairs : (K, 2) row indices with the learner's ``preprocessor``, (K, 2, d) rows, or PairSet
            What `prepare` returned is taken too.
        y : array of shape (K,)
            +1 similar, -1 dissimilar. None takes a PairSet's own labels.

        Returns
        -------
        self
        """
        prepared = self.prepare(pairs, y)
        candidates, certificate, test = prepared
        # What was certified, whatever was set since: the noise and the mean number of trials.
        source, mean = candidates[0].prepared.noise, prepared.mean_trials
        if self.accountant is not None:
            self.accountant.spend(
                **prepared.cost(), note=f"search among {len(candidates)} candidates"
            )
        # Nothing of a trial is kept but the best so far, not even how many there were.
        best: tuple[float, PrivateMetricLearner, dict[str, Any]] | None = None
        for place in self._places(len(candidates), mean, exact=source.for_release):
            score, fitted = self._trial(candidates[place], test, source)
            if best is None or score > best[0]:  # the first of equals: trials are exchangeable
                best = score, fitted, candidates[place].params
        assert best is not None  # there is always a first trial
        self.best_score_, self.best_estimator_, self.best_params_ = best
        self.certificate_ = self.best_estimator_.certificate_ = certificate
        self.best_estimator_.accountant = self.accountant  # its release states what was charged
        return self

    # ---- the trials -------------------------------------------------------------------------------

    def _places(self, n: int, mean: int | None, *, exact: bool) -> Iterator[int]:
        """Which candidate each trial takes; after each, one more with probability 1 - 1 / mean."""
        if mean is None:
            yield from range(n)
            return
        # Not the noise's own stream: a seed would tie how many trials there are to what they say.
        rng = np.random.default_rng(self.random_state).spawn(1)[0]
        draw: Callable[[int], int] = secrets.randbelow if exact else lambda m: int(rng.integers(m))
        while True:
            yield draw(n)
            if draw(mean) == 0:
                return

    def _trial(
        self, candidate: Candidate, test: PairSet, source: NoiseSource
    ) -> tuple[float, PrivateMetricLearner]:
        """One fit and its score, by the candidate's plan."""
        learner = type(candidate.learner)(**candidate.learner.get_params(deep=False))
        # what there was to say was said when it was planned
        with warnings.catch_warnings(action="ignore"):
            learner.fit(replace(candidate.prepared, noise=source))
            epsilon = candidate.score.counter.epsilon
            seed = cast("int | None", learner.random_state)  # as it was prepared
            scored = plan_score(learner, test, epsilon, learner.delta, seed)
        if scored.prepared.plan != candidate.score.prepared.plan:
            raise RuntimeError("a score was not planned like this; nothing is released")
        with_noise = replace(scored.prepared, noise=source)
        return scored._replace(prepared=with_noise).auc().aucs[0].value, learner

    # ---- the plan ---------------------------------------------------------------------------------

    def _within_budget(
        self,
        first: list[tuple[dict[str, Any], Any, Prepared]],
        test: PairSet,
        full_kappa: int,
        guessed: bool,
    ) -> PreparedSearch:
        """Trials with as much epsilon as the budget has room for."""
        budget, trials = float_at_most(self.epsilon), self._mean_trials(len(first))
        if math.isinf(budget):
            return PreparedSearch(self._candidates(first, test, budget), None, test)
        exact = self.random_state is None
        # Epsilon of the whole is about in proportion to that of a trial: a few corrections find it.
        trial, best = budget / 2, None
        for _ in range(12):
            candidates = self._candidates(first, test, trial)
            event, kappas = event_of(candidates, test, trials, exact=exact)
            spent = epsilon_of(
                [event], kappa=PAIRS.costs(kappas)[self.learner.unit],
                adjacency=self.learner.adjacency, delta=self._delta(),
            )  # fmt: skip
            if spent <= budget:
                best = candidates, event, kappas
                if spent > _CLOSE * budget:
                    break
            trial *= min(2.0, 0.997 * budget / spent) if spent > 0 else 2.0
        if best is None:
            raise InputError(
                f"no noise was found for the best of {trials} trials at this epsilon and delta: choose "
                "larger ones, or fewer trials"
            )
        issued = certificate_of(*best, test, self._delta(), full_kappa, for_release=not guessed)
        return PreparedSearch(best[0], issued, test)

    def _candidates(
        self, first: list[tuple[dict[str, Any], Any, Prepared]], test: PairSet, epsilon: float
    ) -> list[Candidate]:
        """All candidates, planned for trials of so much epsilon."""
        pure = mechanism_named(self.learner.mechanism).is_pure
        part = float(self.score_share)
        shares = (1 - part, part) if pure else (math.sqrt(1 - part), math.sqrt(part))
        found = []
        with warnings.catch_warnings(action="ignore"):
            for params, learner, prepared in first:
                delta = float_at_most(self.delta) / (2 * self._mean_trials(len(first)))
                one = type(learner)(**learner.get_params(deep=False))
                weight = (
                    params.get("epsilon", self.epsilon) / self.epsilon if epsilon < math.inf else 1
                )
                one.set_params(epsilon=epsilon * shares[0] * weight, delta=delta)
                planned = replace(one.replan(prepared), noise=prepared.noise)
                score = plan_score(one, test, epsilon * shares[1], delta, self.random_state)
                found.append(Candidate(params, one, planned, score))
        return found

    # ---- what was given ---------------------------------------------------------------------------

    def _delta(self) -> float:
        pure = mechanism_named(self.learner.mechanism).is_pure
        return 0.0 if pure else float_at_most(self.delta)

    def _mean_trials(self, n_candidates: int) -> int:
        given = self.mean_trials
        return TRIALS_A_CANDIDATE * n_candidates if given == "auto" else int(given)

    def _check(self) -> None:
        """Refuse what makes no sense; nothing was spent."""
        if not isinstance(self.learner, PrivateMetricLearner):
            raise InputError(
                "learner must be a private learner of a metric, such as DPPMetricLearner"
            )
        if self.learner.accountant is not None:
            raise InputError(
                "a search is charged as one: give the ledger to it, not to its learner"
            )
        check_epsilon(self.epsilon if not is_number(self.epsilon) else float_at_most(self.epsilon))
        for name in ("delta", "score_share", "test_share"):
            check_share(name, getattr(self, name))
        check_whole("mean_trials", self.mean_trials, "auto", most=10_000)
        try:
            tried = list(ParameterGrid(self.grid))
        except (TypeError, ValueError):
            raise InputError(
                "grid must be a dict of lists, or a list of such, as for scikit-learn's ParameterGrid"
            ) from None
        names = {name for params in tried for name in params}
        refused = sorted(names & set(OF_THE_PROMISE))
        if refused:
            raise InputError(
                f"the grid sets {', '.join(refused)}: all candidates share it; give it to the learner, or "
                "to the search"
            )
        if "epsilon" in names:
            values = [params.get("epsilon", self.epsilon) for params in tried]
            sound = all(is_number(e) and 0 < e < math.inf for e in values)
            if not sound or max(values) != self.epsilon:
                raise InputError(
                    "epsilon of the grid must be numbers above 0, the largest of them the search's own: that "
                    "is what is promised, whichever wins"
                )

    def _setting(self, params: dict[str, Any]) -> tuple[dict[str, Any], PrivateMetricLearner]:
        """A learner with these options; not a clone, whose fits would each have to be charged."""
        chosen = params.get("learner", self.learner)
        if not isinstance(chosen, PrivateMetricLearner):
            raise InputError("every learner of the grid must be a private learner of a metric")
        shared = {name: getattr(self.learner, name) for name in OF_THE_PROMISE}
        options = {
            name: value for name, value in params.items() if name not in ("learner", "epsilon")
        }
        one = type(chosen)(**chosen.get_params(deep=False))
        try:
            one.set_params(**options)
        except ValueError:
            raise InputError(
                f"the grid sets {', '.join(sorted(options))}, and {type(chosen).__name__} lacks one of them"
            ) from None
        one.set_params(**shared)
        one.set_params(
            epsilon=self.epsilon, delta=self.delta, accountant=None, random_state=self.random_state
        )
        return params, one
