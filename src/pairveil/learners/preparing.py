"""From parameters and records to a plan and its certificate, before any noise is drawn.

Records are clipped, selected by what is public of them, and the costs of each unit are read off their graph
(`prepare_records`, for every kind of record); `plan_fit` plans and certifies. `PrivateLearner.prepare` calls
both, once per fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from pairveil.engine.backends.local import Chosen, clipped, select_used
from pairveil.engine.backends.parties import JointRecords, check_room
from pairveil.engine.plan import SLACK_SHARE, Plan, PublicFacts, Recipe, plan_within
from pairveil.errors import DataWarning, InputError, warn
from pairveil.graph.choosing import (
    check_size,
    design_groups,
    design_pairs,
    select_pairs,
    select_tuples,
)
from pairveil.graph.kappa import Kappa, kappa, kappa_of_tuples
from pairveil.learners.inputs import Resolved, check_whole, name_of_pairs
from pairveil.learners.recipes import fitted
from pairveil.privacy.certificate import Certificate, parties_of
from pairveil.privacy.mechanisms import Budget, mechanism_named
from pairveil.privacy.noise import NoiseSource
from pairveil.privacy.units import (
    ADJACENCIES,
    ASSUMED_TOPOLOGY,
    DECLARED_KAPPA,
    LINKS_ALONE,
    PEOPLE_TOGETHER,
    POINTS_ARE_PUBLIC,
    UNITS,
    UNKNOWN_TOPOLOGY,
    WORDS,
    Unit,
    meanings_of,
)
from pairveil.privacy.verdict import delta_too_large
from pairveil.records.groups import NO_CLASS, GroupSet, People, check_numbers, members_by_group
from pairveil.records.identity import together_digest
from pairveil.records.kinds import GROUPS, KINDS, Cost
from pairveil.records.pairset import CountedPairs, PairSet
from pairveil.records.records import Records

# ---- records that are ready ----------------------------------------------------------------------


@dataclass(frozen=True)
class PreparedRecords:
    """Records that are ready to be learned from; only what is public of them was looked at."""

    given: Any  # all of them, and those that are used, in canonical order
    used: Any
    # Where each of the used ones was among those given to ``fit``; of groups, where their pairs were
    used_rows: NDArray[np.int64] | range
    costs: Mapping[Unit, Cost]  # what each unit can move of these records
    selection: Mapping[str, Any]  # how they were selected, for the certificate
    public: tuple[str, ...] = ()  # sentences on what else is public
    for_release: bool = True  # false where something private had to be guessed
    # Numbers of the graphs of all pairs and of the used ones, where there is a graph
    given_kappa: Kappa | None = None
    used_kappa: Kappa | None = None
    classes: tuple[Any, ...] | None = None  # the public list of classes, where people have one each
    group_limit: int | None = None  # most people of a group, where pairs were cut into groups
    # Where a column says which people change together: the number of each one's value
    together: NDArray[np.int64] | None = None
    entity_records: int | None = None  # records of one person, at most, where people have several
    # What else is public and a recipe takes: the items of a ranking, the points of a clustering
    context: Any = None
    parties: Mapping[str, Any] | None = None  # where several hold them, as certificates state it

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "what is prepared holds people's features and places in their owner's file, and cannot be "
            "pickled: prepare it where it is fitted"
        )

    @property
    def kind(self) -> str:
        """What noise is added to sums over, as in `pairveil.records.kinds`."""
        return str(self.used.kind)

    @property
    def used_positions(self) -> NDArray[np.int64] | range:
        """Positions of the used ones among those given, ascending."""
        return self.used_rows if isinstance(self.used_rows, range) else np.sort(self.used_rows)

    @property
    def column(self) -> str | None:
        """The name of the column that says who changes together; None where there is none, or no ids."""
        shared = self._shared
        if shared is None or hasattr(self.used, "column"):
            return getattr(self.used, "column", None)
        return together_digest(self.used.ids, shared)

    @property
    def meanings(self) -> dict[str, str]:
        """What units mean, where that is not one person or two."""
        if POINTS_ARE_PUBLIC in self.public:
            return dict.fromkeys(UNITS, LINKS_ALONE)
        return meanings_of(
            shares=self._shared is not None,
            column=self.column,
            entity_records=self.entity_records,
        )

    @property
    def _shared(self) -> NDArray[np.int64] | None:
        return getattr(self.used, "together", None) if self.together is None else self.together

    @property
    def n_given(self) -> int:
        """Pairs (or people) that were given, for the certificate."""
        return _size(self.given)

    @property
    def n_used(self) -> int:
        """Those of them that are used."""
        return len(self.used_rows)

    @property
    def kappas(self) -> dict[Unit, int]:
        """How many records each unit touches."""
        return {unit: cost.records for unit, cost in self.costs.items()}


def _size(records: Any) -> int:
    """Records, or the pairs inside them where they are groups."""
    return int(getattr(records, "n_pairs", records.n_records))


def prepare_records(given: Any, found: Resolved) -> PreparedRecords:
    """Records made ready: rows clipped, records selected and kappa counted where they have a graph."""
    data = found.data
    if isinstance(data, Records) and not isinstance(data, CountedPairs):  # people's rows
        data = clipped(data, given.data_norm)
    kind, l2 = KINDS[data.kind], mechanism_named(given.mechanism).norm == "l2"
    known = kind.graph is None
    if known or (kind.on_pairs and data.pairs is None):
        # Where nobody knows who is in which pair somebody may be in all of them.
        related = kind.touches.get("relationship", 1) if known else data.n_records
        counted = found.facts.get("kappas")
        if not known:
            counted = {unit: 1 if unit == "pair" else related for unit in UNITS}
        costs, public = kind.costs(counted, l2=l2), () if known else (UNKNOWN_TOPOLOGY,)
        rows, selection = range(_size(data)), _selection("all", None, related)
        return _with_facts(PreparedRecords(data, data, rows, costs, selection, public), found)
    chosen = _chosen(given, data, found.facts.get("entity_records"))
    costs = kind.costs(_kappas(given, chosen.used_kappa), l2=l2)
    return _selected(given, found, data, chosen, costs)


def _selected(
    given: Any,
    found: Resolved,
    data: Any,
    chosen: Chosen,
    costs: Mapping[Unit, Cost],
    group_limit: int | None = None,
) -> PreparedRecords:
    """Some of the records, by who is in which of them."""
    rows, positions = chosen.rows, found.positions
    caveat = None if len(rows) == data.n_records else WORDS[data.kind].dropped
    said = {
        ASSUMED_TOPOLOGY: found.inferred,
        PEOPLE_TOGETHER: getattr(data, "together", None) is not None,
        DECLARED_KAPPA: given.kappa != "auto",
    }
    made = PreparedRecords(
        given=data,
        used=chosen.used,
        used_rows=rows if positions is None else positions[rows].astype(np.int64),
        costs=costs,
        selection=_selection(given.select, caveat, chosen.given_kappa.relationship),
        public=tuple(sentence for sentence, holds in said.items() if holds),
        # Who is who was read off the features: fine for a look, too weak for a promise to others.
        for_release=not found.inferred,
        given_kappa=chosen.given_kappa,
        used_kappa=chosen.used_kappa,
        group_limit=group_limit,
    )
    return _with_facts(made, found)


def _with_facts(made: PreparedRecords, found: Resolved) -> PreparedRecords:
    """The same records with what else is known of them."""
    facts = {name: value for name, value in found.facts.items() if name != "kappas"}
    public = tuple(dict.fromkeys((*made.public, *facts.pop("public", ()))))
    for_release = made.for_release and facts.pop("for_release", True)
    return replace(made, public=public, for_release=for_release, **facts)


def _selection(how: str, caveat: str | None, full_kappa: int) -> dict[str, Any]:
    """How records were selected, for the certificate; kappa of the relationship in the full graph."""
    return {"how": how, "caveat": caveat, "full_graph_relationship_kappa": full_kappa}


def _chosen(given: Any, data: Any, entity_records: int | None) -> Chosen:
    """Which records are used, by who is in which of them alone, and kappa before and after."""
    seed = selection_seed(given.random_state)
    if KINDS[data.kind].on_tuples:
        kept = select_tuples(data, given.select, random_state=seed)
        full = kappa_of_tuples(data)
        if len(kept) == data.n_records:
            return Chosen(data, kept, full, full)
        used = data.subset(kept)
        return Chosen(used, kept, full, kappa_of_tuples(used))
    found = select_used(data, given.select, seed)
    if entity_records is None:
        return found
    if data.together is not None:
        raise InputError("give together or entity_records: either says what a person is")
    full, used = (
        _of_entities(one, records.pairs, entity_records)
        for one, records in ((found.given_kappa, data), (found.used_kappa, found.used))
    )
    return found._replace(given_kappa=full, used_kappa=used)


def _kappas(given: Any, found: Kappa) -> dict[Unit, int]:
    """kappa of each unit; a given one replaces the unit's own, if it is large enough."""
    kappas: dict[Unit, int] = {unit: found.of(unit) for unit in UNITS}
    if given.kappa != "auto":
        needed = kappas[given.unit]
        if given.kappa < needed:
            raise InputError(
                f"kappa={given.kappa} is too small: the used pairs need {needed} for '{given.unit}'; "
                "leave kappa='auto' or use fewer pairs (select='paths')"
            )
        kappas[given.unit] = int(given.kappa)
    return kappas


def selection_seed(random_state: Any) -> Any:
    """The choice of pairs follows the seed, without using up a generator that also makes noise."""
    if random_state is None:
        return 0  # the graph is public, so the choice may be too: certify and fit make the same one
    if isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state.bit_generator.seed_seq.spawn(1)[0])  # type: ignore[attr-defined]
    if isinstance(random_state, np.random.RandomState):
        return int(deepcopy(random_state).randint(2**31))
    return random_state


# ---- people with several records -----------------------------------------------------------------


def _of_entities(found: Kappa, pairs: Any, entity_records: int) -> Kappa:
    """Numbers of the graph where people have several records.

    How two people relate is in every pair of a record of one with a record of the other, and chains run from
    record to record of a person in between; which records those are is private. All of them go through the
    records of either of the two, so they are in no more pairs than a person is (docs/theory/records.md).
    """
    person = pairs_of_entity(pairs, entity_records)
    related = found.relationship if entity_records == 1 else max(found.relationship, person)
    return replace(found, person=person, relationship=related)


def pairs_of_entity(pairs: Any, entity_records: int) -> int:
    """The most pairs that so many records are in: those with the most pairs each, at worst."""
    degrees = np.sort(np.bincount(np.asarray(pairs).ravel()))[::-1]
    return int(min(degrees[:entity_records].sum(), len(pairs)))


ENTITY = (
    "a person is an entity of {n} records at most; {how}, and the unit 'person' covers all pairs that so "
    "many records are in"
)
ENFORCED = (
    "pairs of any further record contribute nothing, where whose records are whose is taken as given and is "
    "not itself protected"
)
DECLARED = "that nobody has more is the sender's word"


def entity_sentence(records: int | None, enforced: bool = False) -> str:
    """What a certificate says of people with several records."""
    return ENTITY.format(n=records, how=ENFORCED if enforced else DECLARED)


def check_entity_records(records: Any, pairs: Any) -> None:
    """Refuse a bound on a person's records that is no whole number above 0, or comes without pairs."""
    if records is None:
        return
    check_whole("entity_records", records)
    if pairs is None:
        raise InputError("entity_records goes with pairs, which name the records")


# ---- groups cut out of pairs; pairs and groups of people with classes ----------------------------

_FROM = "benchmarks/results, people with classes"


@dataclass(frozen=True)
class GroupNumbers:
    """The fitted numbers of groups, beside those of pairs."""

    least_people: int = fitted(3, "people of a group, at least", _FROM, 0.03, -0.108)
    groups_per_noise: float = fitted(20.0, "groups / length of the noise", _FROM, -0.093, 0.008)
    clip_power: float = fitted(
        0.25, "clip bound / this power of a group's pairs", _FROM, -0.016, 0.025
    )


NUMBERS = GroupNumbers()
MOST_PEOPLE = 8  # of a group; half or double moves nothing


def cut_pairs(given: Any, found: Resolved) -> PreparedRecords:
    """Pairs, cut into groups by who is paired with whom alone: ``select='groups'``."""
    refuse_together(getattr(found.data, "together", None))
    if given.kappa != "auto":
        raise InputError("kappa is for single pairs: a unit is in one group, so leave kappa='auto'")
    data = clipped(found.data, given.data_norm)
    size, seed = usual_size(given, data), selection_seed(given.random_state)
    kept = select_pairs(data, "groups", random_state=seed, group_size=size)
    used = data if len(kept) == data.n_pairs else data.subset(kept)
    groups = GroupSet.of_pairs(used, components(used.pairs, used.n_people))
    chosen = Chosen(groups, kept, kappa(data.pairs), kappa(used.pairs))
    return _selected(given, found, data, chosen, GROUPS.costs(), size)


def refuse_together(together: Any) -> None:
    """Refuse groups where people change together: such people may be in several groups."""
    if together is not None:
        raise InputError(
            "groups are records of their own, and people who change together may be in several: leave "
            "'together' out, or choose select='paths', 'forest', 'matching' or 'all'"
        )


def usual_size(given: Any, data: Any) -> int:
    """Most people of a group, from public numbers alone: smaller groups where the noise is larger.

    Large groups average sampling error away, but leave few records against the noise. So many people that
    groups stay many times as many as the noise is long in one direction.
    """
    delta = 0.0 if mechanism_named(given.mechanism).is_pure else given.delta
    budget = Budget(given.epsilon, delta, GROUPS.costs()[given.unit], given.adjacency)
    if not budget.is_private:
        return MOST_PEOPLE
    noise = mechanism_named(given.mechanism).multiplier(budget, 1.0)
    people = len(np.unique(data.pairs))
    wanted = people / (noise * math.sqrt(data.n_features)) / NUMBERS.groups_per_noise
    return int(np.clip(round(min(wanted, MOST_PEOPLE)), NUMBERS.least_people, MOST_PEOPLE))


def clusters_of(ends: NDArray[Any], n_people: int) -> tuple[int, NDArray[np.int64]]:
    """How many connected clusters pairs make of people, and which of them everybody is in."""
    joined = sparse.coo_array((np.ones(len(ends)), tuple(ends.T)), shape=(n_people, n_people))
    n_clusters, found = connected_components(joined, directed=False)
    return int(n_clusters), found.astype(np.int64)


def components(ends: NDArray[Any], n_people: int) -> NDArray[np.int64]:
    """Which cluster everybody is in; -1 for people without pairs. Groups were cut as connected clusters."""
    paired = np.zeros(n_people, dtype=np.bool_)
    paired[ends] = True
    return np.where(paired, clusters_of(ends, n_people)[1], -1)


def groups_of(given: Any, people: People, groups: Any) -> GroupSet:
    """People with classes in groups: dealt by a size, or by each person's group (-1 for none)."""
    if np.ndim(groups) == 0:
        check_size(groups)
        if people.n_records < groups:
            raise InputError(f"{people.n_records} people are fewer than one group of {groups}")
        seed = selection_seed(given.random_state)
        members = design_groups(people.n_records, int(groups), random_state=seed)
    else:
        members = members_by_group(check_numbers(groups, people.n_records))[0]
    return GroupSet.of_classes(
        people.features, members, people.classes, people.ids, people.feature_names
    ).canonical()[0]


def pairs_of(given: Any, people: People, together: NDArray[np.int64] | None) -> PairSet:
    """Pairs of people with classes, designed before any class is looked at: everyone in one or two."""
    how = "matching" if given.unit == "person" else "paths"
    if people.n_records < 2:
        raise InputError("one person makes no pair: there must be at least two")
    seed = selection_seed(given.random_state)
    pairs = design_pairs(people.n_records, how=how, random_state=seed)
    left, right = people.classes[pairs[:, 0]], people.classes[pairs[:, 1]]
    labels = np.where(left == right, 1, -1).astype(np.int8)
    null = (left == NO_CLASS) | (right == NO_CLASS)
    return PairSet(people.features, pairs, labels, ids=people.ids, together=together).emptied(null)


# ---- plan and certificate ------------------------------------------------------------------------

_TOO_FEW = dict.fromkeys(("choices", "workers"), "the ranking will be mostly chance")


@dataclass(frozen=True)
class Prepared:
    """A fit that is ready to start."""

    records: PreparedRecords
    recipe: Recipe
    plan: Plan
    certificate: Certificate | None  # None when epsilon is infinite
    noise: NoiseSource  # where sampling and noise will come from
    # What the answers depend on, is public, and is not in the plan: a schema, a metric that is
    # measured, a network's first weights. A checkpoint is of this and of nothing else
    about: str = ""
    # What pairs of row numbers are named with (`own_secret`)
    secret: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def graph(self) -> str | None:
        """A name for who is paired with whom, where it is known."""
        used = self.records.used
        return used.graph if isinstance(used, JointRecords) else name_of_pairs(used, self.secret)

    def cost(self) -> dict[str, Any]:
        """What a ledger is charged for the fit; where records are pairs kappa is the cost of a unit."""
        records, certificate = self.records, self.certificate
        return {
            "events": tuple(self.plan.events()),
            "kappas": dict(records.kappas if KINDS[records.kind].pairwise else records.costs),
            "delta_slack": 0.0 if certificate is None else certificate.delta_slack,
            "graph": self.graph,
            "meanings": records.meanings,
        }

    def finish(self, learner: Any, saved: Any) -> None:
        """What else this was charged for, once the model is kept: of a fit alone nothing."""


PARTIES_NEED = (
    "several parties learn together with Gaussian noise and a finite epsilon: no sum of their noise gives "
    "pure epsilon"
)


def plan_fit(recipe: Recipe, given: Any, records: PreparedRecords, noise: NoiseSource) -> Prepared:
    """Plan and certify a fit."""
    mechanism, costs, n = mechanism_named(given.mechanism), records.costs, records.used.n_records
    delta = 0.0 if mechanism.is_pure else given.delta
    left = delta * (1 - SLACK_SHARE) if noise.for_release else delta
    facts = public_facts(given, records, left)
    largest = max(cost.records for cost in costs.values())
    parties = parties_of(records.parties)
    if parties is not None and (mechanism.is_pure or not facts.budget.is_private):
        raise InputError(PARTIES_NEED)
    shares = 1 if parties is None else parties.shares
    exact = noise.for_release
    plan, slack = plan_within(recipe, facts, delta, largest, exact=exact, shares=shares)
    if parties is not None:
        check_room(plan, len(parties.who), shares)
    certificate = None
    if facts.budget.is_private:
        certificate = Certificate.issue(
            plan.events(),
            delta=delta,
            unit=given.unit,
            adjacency=given.adjacency,
            kappas=records.kappas,
            mechanism=given.mechanism,
            n_pairs_given=records.n_given,
            n_pairs_used=records.n_used,
            selection=records.selection,
            noise_source=noise.name,
            for_release=noise.for_release and records.for_release,
            delta_slack=slack,
            public=records.public,
            plan=plan.to_dict(),
            costs={records.kind: costs},
            parties=records.parties,
        )
        refuse_large_delta(certificate)
        _warn(n, plan)
        if UNKNOWN_TOPOLOGY in certificate.public:
            # Nothing is promised of units that nobody can count the pairs of.
            nothing: dict[str, float] = dict.fromkeys(ADJACENCIES, math.inf)
            stated = {
                unit: by if unit == "pair" else nothing for unit, by in certificate.epsilons.items()
            }
            certificate = replace(certificate, epsilons=stated)
    return Prepared(records, recipe, plan, certificate, noise)


def public_facts(given: Any, records: PreparedRecords, delta: float) -> PublicFacts:
    """The public numbers that a recipe may plan with, from plain parameters and prepared records."""
    return PublicFacts(
        Budget(given.epsilon, delta, records.costs[given.unit], given.adjacency),
        n_records=records.used.n_records,
        n_features=records.used.n_features,
        data_norm=given.data_norm,
        mechanism=mechanism_named(given.mechanism),
        records=records.kind,
        choices=records.parties is None,
    )


def refuse_large_delta(certificate: Certificate) -> None:
    """Refuse, before anything is charged, a delta that would allow to show one of the records.

    Raises InputError: it is not below 1 over the number of records; says which would be.
    """
    if reason := delta_too_large(certificate):
        raise InputError(reason)


def _warn(n: int, plan: Plan) -> None:
    """Say what a careful user would want to know; all of it follows from public numbers."""
    kind = plan.queries[0].records
    if KINDS[kind].adds_counts:  # they have no features to hide behind noise
        return
    first = plan.queries[0]  # the first look at the data; a choice pays for one number only
    noise = first.noise_multiplier * math.sqrt(1 if first.is_choice else plan.n_features)
    if n / noise < 3:
        warn(
            f"{n} {kind} are few for {plan.n_features} features at this epsilon: "
            f"{_TOO_FEW.get(kind, 'the metric will most likely stay Euclidean')}; use more {kind}, fewer "
            "features or a larger epsilon",
            DataWarning,
        )
