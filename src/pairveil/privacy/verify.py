"""Checking a certificate: every number that follows from others is recomputed, every contradiction named.

What cannot be checked from the file alone is the sender's word: that the noise was drawn as the plan says,
and that kappa is that of the public graph (which whoever has the graph can recount).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, TypeGuard

from pairveil.errors import InputError
from pairveil.graph import SELECTIONS
from pairveil.privacy.certificate import Certificate, all_epsilons, joint_kappas, parties_of
from pairveil.privacy.events import (
    BestOfEvent,
    ChoiceEvent,
    DisjointGaussianEvent,
    Event,
    GaussianEvent,
    ParallelEvent,
)
from pairveil.privacy.mechanisms import GAUSSIAN, Query, mechanism_named, slack_of_plan
from pairveil.privacy.units import (
    ADJACENCIES,
    DECLARED_KAPPA,
    KAPPA_RULES,
    NOISE_SOURCES,
    PARTIES,
    PARTIES_NOISE,
    POINTS_ARE_PUBLIC,
    SCORE_QUERY,
    SCORED_APART,
    SEARCHED,
    UNFIT,
    UNITS,
    UNKNOWN_TOPOLOGY,
    WORDS,
    Unit,
    public_of,
)
from pairveil.records.kinds import KINDS

RECOMPUTED = (
    "every epsilon, from the stated noise and kappa",
    "what exact discrete noise takes off delta, from the stated plan",
    "that events, plan, selection and kappas do not contradict each other",
)

SENDERS_WORD = (
    "that the noise was drawn as stated",
    "that what was asked is what the plan names: the kind of records of each query, and their clipping",
    "kappa and the numbers of pairs",
)

_UNDERSTATED = 1e-6  # relative: other machines round differently
_OVERSTATED = 2e-2  # a larger epsilon than needed is safe, but not this fit's
_SLACK_ROUNDING = 1e-5  # relative: version 0.1 counted the enlarged sensitivity in


@dataclass(frozen=True)
class VerificationResult:
    """Whether a certificate's numbers follow from its events; true in a boolean context if so."""

    valid: bool
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.valid


def verify(certificate: Certificate) -> VerificationResult:
    """Run every check; `Certificate.verify` is the usual way in."""
    problems = tuple(problem for check in CHECKS for problem in check(certificate))
    return VerificationResult(not problems, problems)


def _headline(c: Certificate) -> list[str]:
    problems = []
    if c.kappa != c.kappas[c.unit]:
        problems.append(f"kappa is not the kappa of unit '{c.unit}'")
    if c.epsilon != c.epsilons[c.unit][c.adjacency]:
        problems.append("epsilon is not the epsilon of its unit and adjacency")
    if not 1 <= c.n_pairs_used <= c.n_pairs_given:
        problems.append("more pairs used than given, or none")
    for one in UNFIT.values():
        if c.for_release and one.get("said") in c.public:
            problems.append(f"for release, but {one['reason']}")
    if "search" in c.plan and SEARCHED not in c.public:
        problems.append("it is the best of several fits, and it is not said what that makes public")
    if "score" in c.plan and SCORED_APART not in c.public:
        problems.append("some people were scored, and it is not said what that means")
    if {"score", "search"} & set(c.plan) and len(_kinds(c)) > 1:  # its one event has one cost
        problems.append("one event is charged for one kind of records, and several are stated")
    return problems


def _version(c: Certificate) -> list[str]:
    """A certificate says what its own version says: none passes by the laxer rules of another one."""
    described = [release for release in _releases(c) if isinstance(release, Mapping)]
    if c.version == 1:
        later = c.costs is not None or {"thresholds", "search", "score"} & set(c.plan)
        if later or any("records" in release for release in described):
            return ["it is said to be of version 1, and states what version 1 did not know"]
        return []
    problems = []
    if c.costs is None:
        problems.append("it does not state what a unit costs")
    if not all("entries" in release for release in described):
        problems.append("the plan does not state how many numbers were released")
    return problems


def _events(c: Certificate) -> list[str]:
    """The events are there, are those of the plan, and go with the mechanism."""
    if not c.events:
        return ["there are no events: a release without any is none"]
    problems = []
    events = list(c._events())
    # Choices go with both kinds of noise; thresholds have Laplace noise whatever the fit has.
    if mechanism_named(c.mechanism).is_pure:
        goes = c.delta == 0.0 and all(event.is_pure for event in events)
    else:
        goes = any(not event.is_pure or isinstance(event, ChoiceEvent) for event in events)
    if not goes:
        problems.append("the mechanism or delta does not go with the events")
    if "score" not in c.plan and any(isinstance(event, ParallelEvent) for event in events):
        problems.append("parts are charged as of different people, and the plan has no such parts")
    releases = _releases(c)
    if not releases and (c.for_release or c.metric_sha256 is not None):
        problems.append("the plan does not list its releases")
    elif {"releases", "score"} & set(c.plan) and _events_of_plan(c, releases) != events:
        problems.append("the events are not those of the plan")
    return problems


def _releases(c: Certificate) -> list[Any]:
    releases = c.plan.get("releases")
    return list(releases) if isinstance(releases, list | tuple) else []


def _events_of_plan(c: Certificate, releases: list[Any]) -> list[Event]:
    """What the plan says was released, or nothing; of a search, its queries candidate by candidate."""
    found = [_event_of(release) for release in releases]
    events = [event for event in found if event is not None]
    search = c.plan.get("search")
    if len(events) < len(found):
        return []
    if "score" in c.plan:
        return _events_of_parts(c, events)
    if search is None:
        return events
    try:
        ends = [0, *accumulate(one["queries"] for one in search["candidates"])]
        # A trial is a fit and its score; one fit cut into 'candidates' would pay for one query.
        scored = [place for place, one in enumerate(releases, 1) if one["name"] == SCORE_QUERY]
        if scored != ends[1:] or any(b - a < 2 for a, b in pairwise(ends)):
            return []
        trials = tuple(tuple(events[a:b]) for a, b in pairwise(ends))
        stated = c._events()[0]
        slack = stated.slack if isinstance(stated, BestOfEvent) else 0.0
        event = BestOfEvent(search["mean_trials"], slack, trials)
    except (InputError, KeyError, TypeError, ValueError):
        return []
    return [event] if ends[-1] == len(events) else []


def _events_of_parts(c: Certificate, events: list[Event]) -> list[Event]:
    """A fit, and last the one query that scores it; a fit cut in two would pay for one half."""
    named = [one["name"] == SCORE_QUERY for one in _releases(c)]
    about = c.plan["score"]
    held_out = about.get("n_pairs") if isinstance(about, Mapping) else None
    if named != [False] * (len(named) - 1) + [True] or len(named) < 2:
        return []
    # Of other records a unit may be in both parts, as may pairs that are declared to change together.
    alone = all(KINDS[kind].pairwise for kind in _kinds(c)) and not {"search", "thresholds"} & set(
        c.plan
    )
    if not alone or c.parties is not None or DECLARED_KAPPA in c.public:
        return []
    if not _is_count(held_out) or held_out >= c.n_pairs_used:
        return []
    return [ParallelEvent((tuple(events[:-1]), (events[-1],)))]


def _event_of(release: Any) -> Event | None:
    """The event of one query of a plan, rebuilt from its public description."""
    try:
        return Query.from_dict(release).event()
    except (InputError, TypeError, ValueError, ArithmeticError):
        return None


def _said(c: Certificate) -> list[str]:
    """What is public and how the pairs were selected is stated, with the caveat that it demands."""
    problems = []
    if not set(public_of(_kinds(c))) <= set(c.public):
        problems.append("the list of what is public is missing or shortened")
    clustered = "n_clusters" in c.plan and c.plan.get("protect") != "points"
    if clustered and POINTS_ARE_PUBLIC not in c.public:
        problems.append("points were clustered, and it is not said that they are public")
    how, full = c.selection.get("how"), c.selection.get("full_graph_relationship_kappa")
    if how not in SELECTIONS or "caveat" not in c.selection or not _is_count(full):
        return [*problems, "how the pairs were selected is not stated, or not all of it"]
    caveat, dropped = c.selection["caveat"], c.n_pairs_used < c.n_pairs_given
    all_used = how == "all" and not dropped
    dropped = dropped or any(_left_out(one) for one in _thresholds(c))
    usual = WORDS[c.records].dropped
    if dropped and caveat != usual:
        problems.append(
            "pairs were dropped, but the caveat that this demands is missing or altered"
        )
    if caveat not in (None, usual):
        problems.append("the caveat is none that pairveil writes")
    graph = _kappas_of_graph(c)
    graphs = {KINDS[kind].graph for kind in _kinds(c)}
    if graph is None or len(graphs) > 1 or None in graphs:  # none were selected
        return problems
    used = graph["relationship"]
    # A search divides the pairs between fits and scores: kappas are of either part, `full` is of both.
    divided = "search" in c.plan or "score" in c.plan
    divided_all = "score" in c.plan  # pairs across are dropped, whatever was selected
    if (how == "all" and not all_used and not divided_all) or (
        not dropped and full > used and not divided
    ):
        problems.append("all pairs are said to be used, but the numbers say that some were dropped")
    if full < used and not _thresholds(c) and not _is_declared(c, "relationship"):
        problems.append("no graph has a kappa below that of a part of its pairs")
    return problems


def _kinds(c: Certificate) -> set[str]:
    """The kinds of records that anything was asked about."""
    return set(c.costs_of)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _noise(c: Certificate) -> list[str]:
    """The noise comes from a known source, fit for what is promised, and its slack is taken off delta."""
    trusted = NOISE_SOURCES.get(c.noise_source)
    if trusted is None:
        return ["the source of the noise is none that pairveil has"]
    if not trusted:
        unfit = "for release, but the noise is not from operating-system entropy"
        return [unfit] if c.for_release else []
    if not _releases(c):
        return []
    parts = [c.plan]
    if "score" in c.plan:  # of what a unit is in: the fit, or the query that scores it
        parts = [{**c.plan, "releases": one} for one in (_releases(c)[:-1], _releases(c)[-1:])]
    try:
        parties = parties_of(c.parties)
        shares = max(1, 1 if parties is None else parties.shares)
        needed = max(slack_of_plan(one, max(c.kappas.values()), shares) for one in parts)
    except (KeyError, TypeError, ValueError, ArithmeticError, InputError):
        return ["the plan does not describe its releases"]
    # Of a search it is added to each trial's delta, before the bound of the best.
    searches = [e for e in c._events() if isinstance(e, BestOfEvent)]
    stated = min(e.slack for e in searches) if searches else c.delta_slack
    if stated < needed * (1.0 - _SLACK_ROUNDING):
        return [
            f"exact discrete noise takes {needed:.3g} of delta for the plan's sums, "
            f"and {stated:.3g} is set aside"
        ]
    return []


def _parties(c: Certificate) -> list[str]:
    """What is said of several parties goes together, and kappas follow from theirs by the stated rule."""
    parties = parties_of(c.parties)
    if parties is None:
        alone = c.noise_source != PARTIES_NOISE and PARTIES not in c.public
        return [] if alone else ["parties took part, and it is not said which"]
    problems = []
    if not {PARTIES, KAPPA_RULES[parties.kappa_rule]} <= set(c.public):
        problems.append("it is not said what several parties make public")
    least = 1 if parties.noise == "parties" else 0
    if not least <= parties.colluders < len(parties.who):
        problems.append(
            "so many colluders leave no noise that they do not know, or too few are stated"
        )
    if c.for_release and (c.noise_source == PARTIES_NOISE) != (parties.noise == "parties"):
        problems.append("it is not clear whether the parties or a coordinator drew the noise")
    if {one.get("mechanism") for one in _releases(c)} != {GAUSSIAN.name}:
        problems.append(
            "several parties have a proof for Gaussian noise on sums, and for nothing else"
        )
    if not all(KINDS[kind].pairwise for kind in c.costs or {}):
        problems.append("several parties learn from pairs, and from nothing else")
    for count in ("n_pairs_given", "n_pairs_used"):
        if getattr(c, count) != sum(getattr(one, count) for one in parties.who):
            problems.append("the numbers of pairs are not those of all parties together")
    if any(set(one.kappas) != set(c.units) for one in parties.who):
        return [*problems, "a party does not state its kappas"]
    wanted = joint_kappas(parties.kappa_rule, [one.kappas for one in parties.who])
    if any(c.kappas[unit] < wanted[unit] for unit in c.units):
        problems.append("kappa is below what follows from those of the parties")
    return problems


def _is_declared(c: Certificate, unit: Unit) -> bool:
    """Whether kappa of this unit was declared as a constant; only the protected unit's can be."""
    return DECLARED_KAPPA in c.public and unit == c.unit


def _group_sizes(c: Certificate) -> list[str]:
    """The kappas can be those of a graph with so many pairs, unless one was declared."""
    problems = []
    counted = [c.kappas[unit] for unit in c.units if not _is_declared(c, unit)]
    if max(counted) > max(_pair_counts(c)):
        problems.append("kappa is larger than the number of used pairs and not said to be declared")
    graph = _kappas_of_graph(c)
    below = graph is not None and graph["person"] < graph["relationship"]
    if below and not _is_declared(c, "relationship"):
        problems.append("no graph has a person-level kappa below its relationship-level kappa")
    linkage = c.plan.get("linkage")
    records = linkage.get("entity_records") if isinstance(linkage, Mapping) else None
    several = _is_count(records) and records > 1 and not _is_declared(c, "person")
    if several and c.kappas.get("relationship", 0) < c.kappas.get("person", 0):
        problems.append("people have several records, and a relationship is counted by records")
    for kind, by_unit in (c.costs or {}).items():
        shared, related = (by_unit.get(unit) for unit in ("pair", "relationship"))
        if shared and related and shared.records > related.records and not _is_declared(c, "pair"):
            problems.append(f"two people share no more {kind} than their relationship is in")
    return problems


def _kappas_of_graph(c: Certificate) -> Mapping[str, int] | None:
    """How many pairs each unit holds, or tuples where there are no pairs; None where there are neither."""
    for graph in ("pairs", "tuples"):
        if of := [by_unit for kind, by_unit in c.costs_of.items() if KINDS[kind].graph == graph]:
            return {unit: max(by_unit[unit].records for by_unit in of) for unit in UNITS}
    return None


def _thresholds(c: Certificate) -> list[Any]:
    thresholds = c.plan.get("thresholds", ())
    return list(thresholds) if isinstance(thresholds, list | tuple) else [None]


def _left_out(threshold: Any) -> bool:
    """Whether not all pairs that were given for thresholds were used."""
    if not isinstance(threshold, Mapping):
        return False
    used, given = threshold.get("n_pairs"), threshold.get("n_pairs_given")
    return _is_count(used) and _is_count(given) and used < given


def _chains_of_thresholds(c: Certificate) -> list[str]:
    """Kappas cover those of the pairs that thresholds were chosen on, and chains across them."""
    thresholds = _thresholds(c)
    if not thresholds:
        missing = (
            "a search scores its trials on pairs held out, and the plan does not describe them"
        )
        return [missing] if "search" in c.plan else []
    if c.units != UNITS:
        return ["thresholds are chosen on pairs, and this is not about people"]
    try:
        least = {unit: max(int(t["kappas"][unit]) for t in thresholds) for unit in UNITS}
    except (KeyError, TypeError, ValueError):
        return ["the plan does not describe its thresholds"]
    same = [t.get("same_pairs") is True for t in thresholds]
    if any(same):
        # The fit's own pairs: as many, and no chain leaves them. Which pairs they were is the sender's word,
        # as kappa is.
        if (
            not all(same)
            or not all(KINDS[kind].pairwise for kind in _kinds(c))
            or "search" in c.plan
        ):
            return ["thresholds are said to be of the fit's own pairs, and cannot all be"]
        if any(t.get("n_pairs") != c.n_pairs_used for t in thresholds):
            return ["thresholds are said to be of the fit's own pairs, which are more or fewer"]
    else:
        least["relationship"] = max(least["relationship"], c.kappas["person"])
    for kind, by_unit in (c.costs or {}).items():
        chained = by_unit["relationship"].records >= by_unit["person"].records
        if KINDS[kind].on_tuples and not chained:
            return ["chains of tuples and of the thresholds' pairs are not counted"]
    return [
        f"kappa of unit '{unit}' is below what the thresholds need"
        for unit in UNITS
        if c.kappas[unit] < least[unit]
    ]


def _costs(c: Certificate) -> list[str]:
    """No record is said to move less than is proved for its kind, and kappas are its counts."""
    problems = []
    for kind, by_unit in c.costs_of.items():
        for unit, cost in by_unit.items():
            least = KINDS[kind].moves(unit, l2=_is_gaussian(c))
            less = any(cost.moved(a) < least.moved(a) for a in ADJACENCIES)
            if less or (cost.empties and not least.empties):
                problems.append(f"{kind} move further for unit '{unit}' than is stated")
            if cost.records < KINDS[kind].touches.get(unit, 1):
                problems.append(f"unit '{unit}' holds more {kind} than is stated")
    used = {r.get("records", "pairs") for r in _releases(c) if isinstance(r, Mapping)}
    if used and used != _kinds(c):
        problems.append("costs are not stated for exactly the records that the plan asks about")
    kinds = used & _kinds(c) or _kinds(c)
    for unit in c.units:
        if c.kappas[unit] != max(c.costs_of[kind][unit].records for kind in kinds):
            problems.append(f"kappa of unit '{unit}' is not the number of records that it costs")
    return problems


def _is_gaussian(c: Certificate) -> bool:
    """Whether all noise is scaled to the l2 norm."""
    gaussian = (GaussianEvent, DisjointGaussianEvent)
    return all(isinstance(event, gaussian) for event in c._events())


def _pair_counts(c: Certificate) -> list[float]:
    """Pairs of the fit and of every threshold; no limit where version 0.1 did not say."""
    releases = _releases(c)
    if any(isinstance(r, Mapping) and "entries" not in r for r in releases):
        return [math.inf]
    counts = [t.get("n_pairs") for t in _thresholds(c) if isinstance(t, Mapping)]
    return [c.n_pairs_used, *(n for n in counts if isinstance(n, int))]


def _epsilon(c: Certificate) -> list[str]:
    """Every stated epsilon is the one that the events give."""
    problems = []
    groups = {unit: c.group_of(unit) for unit in c.units}
    recomputed = all_epsilons(c._events(), groups, c.delta, c.delta_slack)
    for unit in c.units:
        for adjacency in ADJACENCIES:
            stated, true = c.epsilons[unit][adjacency], recomputed[unit][adjacency]
            about = f"epsilon for unit '{unit}', {adjacency}, is stated as {stated:.6g}"
            if stated < true * (1.0 - _UNDERSTATED):
                problems.append(f"{about} but the events give {true:.6g}")
            elif math.isinf(stated) and unit != "pair" and UNKNOWN_TOPOLOGY in c.public:
                continue  # nothing is promised of who is in how many pairs
            elif math.isfinite(true) and stated > true * (1.0 + _OVERSTATED) + 1e-9:
                problems.append(f"{about}, far above the {true:.6g} that the events give")
    return problems


CHECKS: tuple[Callable[[Certificate], list[str]], ...] = (
    _headline,
    _version,
    _events,
    _said,
    _noise,
    _group_sizes,
    _chains_of_thresholds,
    _costs,
    _parties,
    _epsilon,
)
