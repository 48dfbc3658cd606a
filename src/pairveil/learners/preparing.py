"""From parameters and records to a plan and its certificate, before any noise is drawn.

Records are clipped, selected by what is public of them, and the costs of each unit are read off their graph
(`Material`); `prepare` plans and certifies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from pairveil._warn import warn
from pairveil.column_names import names_of
from pairveil.engine.backends.records import choose, clipped, kappa_of
from pairveil.engine.plan import Plan, Recipe, Setting
from pairveil.engine.planning import SLACK_SHARE, plan_within
from pairveil.errors import DataWarning, InputError, PrivateNote
from pairveil.graph.choosing import (
    check_size,
    design_groups,
    design_pairs,
    select_pairs,
    select_together,
    select_tuples,
)
from pairveil.graph.kappa import Kappa, kappa, kappa_of_tuples
from pairveil.learners.inputs import Resolved, as_features, is_whole, name_of_pairs
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.mechanisms import Budget, mechanism_named
from pairveil.privacy.noise import NoiseSource
from pairveil.privacy.units import (
    ADJACENCIES,
    ASSUMED_CLASSES,
    ASSUMED_TOPOLOGY,
    DECLARED_KAPPA,
    LINKS_ALONE,
    PEOPLE_TOGETHER,
    POINTS_ARE_PUBLIC,
    SELECTED_CAVEAT,
    SELECTED_TUPLES_CAVEAT,
    UNITS,
    UNKNOWN_TOPOLOGY,
    Unit,
    meanings_of,
)
from pairveil.privacy.verdict import delta_too_large
from pairveil.records.counted import CountedPairs
from pairveil.records.groups import GroupSet, check_numbers, members_of
from pairveil.records.kinds import COUNTED_PAIRS, GROUPS, PAIRS, PEOPLE, TUPLES, Cost
from pairveil.records.pairset import PairSet
from pairveil.records.people import NO_CLASS, People, class_numbers
from pairveil.records.shared_values import numbered, together_digest
from pairveil.records.tupleset import TupleSet, answered, check_tuples

# ---- pairs, and people with classes --------------------------------------------------------------


@dataclass(frozen=True)
class Material:
    """Records that are ready to be learned from; only what is public of them was looked at.

    Attributes
    ----------
    given, used : records
        All of them, and those that are used, in canonical order.
    used_rows : int array or range
        Positions of the used ones among those given to ``fit``, ascending.
    kind : {'pairs', 'groups', 'people', 'choices', 'workers'}
    costs : mapping
        What each unit can move of these records.
    selection : mapping
        How they were selected, for the certificate.
    public : tuple of str
        Sentences on what else is public.
    for_release : bool
        False where something private had to be guessed.
    given_kappa, used_kappa : Kappa or None
        Numbers of the graphs of all pairs and of the used ones, where records are pairs.
    classes : tuple or None
        The public list of classes, where people have one each.
    n_given : int or None
        Pairs given, where that is not the number of records given.
    group_limit : int or None
        Most people that a group was allowed, where pairs were cut into groups.
    order : int array or None
        Where people were brought into the order of their ids: who stands where.
    together : int array or None
        Where a column says which people change together: the number of each one's value.
    entity_records : int or None
        Records of one person, at most, where people have several.
    """

    given: Any
    used: Any
    used_rows: NDArray[np.int64] | range
    kind: str
    costs: Mapping[Unit, Cost]
    selection: Mapping[str, Any]
    public: tuple[str, ...] = ()
    for_release: bool = True
    given_kappa: Kappa | None = None
    used_kappa: Kappa | None = None
    classes: tuple[Any, ...] | None = None
    n_given: int | None = None
    group_limit: int | None = None
    order: NDArray[np.int64] | None = None
    together: NDArray[np.int64] | None = None
    entity_records: int | None = None

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
    def counts(self) -> tuple[int, int]:
        """Pairs (or people) given and used, for the certificate."""
        given = self.given.n_records if self.n_given is None else self.n_given
        used = len(self.used_rows) if self.kind == "groups" else self.used.n_records
        return int(given), int(used)

    @property
    def kappas(self) -> dict[Unit, int]:
        """How many records each unit touches."""
        return {unit: cost.records for unit, cost in self.costs.items()}


def stated_selection(how: str, caveat: str | None, full_kappa: int) -> dict[str, Any]:
    """How records were selected, for the certificate; kappa of the relationship in the full graph."""
    return {"how": how, "caveat": caveat, "full_graph_relationship_kappa": full_kappa}


def material_of_pairs(given: Any, found: Resolved) -> Material:
    """Pairs as material: rows clipped, pairs selected, kappa read off their graph.

    Parameters
    ----------
    given : parameters
        Plain and checked: select, unit, kappa, data_norm, random_state.
    found : Resolved
        The pairs, in canonical order.
    """
    data = clipped(found.data, given.data_norm)
    chosen = choose(data, given.select, selection_seed(given.random_state))
    positions, rows = found.positions, chosen.rows
    if positions is not None:
        rows = np.sort(positions[rows]).astype(np.int64)
    said = {
        ASSUMED_TOPOLOGY: found.inferred,
        PEOPLE_TOGETHER: getattr(data, "together", None) is not None,
        DECLARED_KAPPA: given.kappa != "auto",
    }
    return Material(
        given=data,
        used=chosen.used,
        used_rows=rows,
        kind=PAIRS.name,
        costs=PAIRS.costs(_group_sizes(given, chosen.taken)),
        selection=stated_selection(
            given.select,
            None if chosen.used is data else SELECTED_CAVEAT,
            chosen.given.relationship,
        ),
        public=tuple(sentence for sentence, holds in said.items() if holds),
        # Who is who was read off the features: fine for a look, too weak for a promise to others.
        for_release=not found.inferred,
        given_kappa=chosen.given,
        used_kappa=chosen.taken,
    )


def _group_sizes(given: Any, found: Kappa) -> dict[Unit, int]:
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


def material_of_people(
    given: Any, X: Any, y: Any, classes: Sequence[Any] | None, ids: Any
) -> Material:
    """People with classes as material, in the order of their ids.

    Parameters
    ----------
    given : parameters
        Plain: data_norm.
    X, y, classes, ids
        As for ``fit_classes``.
    """
    people, listed = _people(X, y, classes, ids)
    read_off = classes is None and not isinstance(X, People)
    unlisted = int(np.count_nonzero(people.classes == NO_CLASS))
    if unlisted:
        warn(
            f"{unlisted} people have a class that is not in the list, and contribute nothing",
            PrivateNote,
        )
    people, order = people.canonical()
    people = clipped(people, given.data_norm)
    return Material(
        given=people,
        used=people,
        used_rows=range(people.n_records),
        kind=PEOPLE.name,
        costs=PEOPLE.costs(),
        selection=stated_selection("all", None, PEOPLE.touches["relationship"]),
        public=(ASSUMED_CLASSES,) if read_off else (),
        for_release=not read_off,
        classes=tuple(listed),
        order=order,
    )


def standing_together(people: Material, values: Any) -> Material:
    """The same people; those with equal public values change together.

    Parameters
    ----------
    people : Material
        Of `material_of_people`.
    values : array of shape (n,)
        In the order in which the people were given.
    """
    shared = numbered(values, people.used.n_records)
    if people.order is not None:
        shared = shared[people.order]
    most = int(np.bincount(shared).max())
    return replace(
        people,
        costs=PEOPLE.costs({"person": most}),
        public=(*people.public, PEOPLE_TOGETHER),
        together=shared,
    )


def _people(X: Any, y: Any, classes: Any, ids: Any) -> tuple[People, list[Any]]:
    if isinstance(X, People):
        if y is not None or classes is not None or ids is not None:
            raise InputError("People hold their classes and ids: leave y, classes and ids out")
        return _distinct(X), list(range(X.n_classes))
    if y is None:
        raise InputError("y is missing: give each person's class")
    values = np.asarray(y)
    if values.ndim != 1:
        raise InputError("y must hold one class a person")
    listed = _read_off(values) if classes is None else list(np.asarray(classes).tolist())
    features = as_features(X)
    if len(values) != features.shape[0]:
        raise InputError(f"{features.shape[0]} people need as many classes; got {len(values)}")
    if features.shape[0] == 0:
        raise InputError("there are no people to learn from")
    named = None if ids is None else np.asarray(ids)
    if named is not None and named.shape != values.shape:
        raise InputError(f"{len(values)} people need as many ids; got {named.size}")
    numbers = class_numbers(values, listed)
    return _distinct(People(features, numbers, len(listed), named)), listed


def _read_off(values: NDArray[Any]) -> list[Any]:
    """Classes that occur; a missing one (None or NaN) is none."""
    found = {one for one in values.tolist() if one is not None and one == one}
    if len(found) < 2:
        raise InputError("there must be at least two classes to tell apart; list them in classes=")
    return sorted(found, key=lambda one: (type(one).__name__, one))


def _distinct(people: People) -> People:
    if people.ids is None:
        return people
    ids = np.asarray(people.ids)
    if ids.dtype.kind not in "iu":
        whole = [int(i) if isinstance(i, float) and i.is_integer() else i for i in ids.tolist()]
        ids = np.array(list(map(str, whole)), dtype=object)  # 1.0 and 1 are one person
    if len(set(ids.tolist())) != len(ids):
        raise InputError(
            "an id occurs twice: a person is one row, or would be protected by half (a text index of a table "
            "names people: reset it if it does not)"
        )
    return people.replace(ids=ids)


def designed_pairs(given: Any, people: Material) -> Material:
    """Pairs of people with classes, designed before any class is looked at: everyone in one or two.

    Parameters
    ----------
    given : parameters
        Plain and checked.
    """
    data = people.used
    how = "matching" if given.unit == "person" else "paths"
    if data.n_records < 2:
        raise InputError("one person makes no pair: there must be at least two")
    pairs = design_pairs(data.n_records, how=how, random_state=selection_seed(given.random_state))
    left, right = data.classes[pairs[:, 0]], data.classes[pairs[:, 1]]
    labels = np.where(left == right, 1, -1).astype(np.int8)
    null = (left == NO_CLASS) | (right == NO_CLASS)
    found = PairSet(data.features, pairs, labels, ids=data.ids, together=people.together).emptied(
        null
    )
    settled = SimpleNamespace(**{**vars(given), "select": "all"})
    material = material_of_pairs(settled, Resolved(*found.canonical(), False))
    return replace(
        material,
        public=tuple(dict.fromkeys((*material.public, *people.public))),
        for_release=material.for_release and people.for_release,
        classes=people.classes,
    )


def selection_seed(random_state: Any) -> Any:
    """The choice of pairs follows the seed, without using up a generator that also makes noise."""
    if random_state is None:
        return 0  # the graph is public, so the choice may be too: certify and fit make the same one
    if isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state.bit_generator.seed_seq.spawn(1)[0])  # type: ignore[attr-defined]
    if isinstance(random_state, np.random.RandomState):
        return int(deepcopy(random_state).randint(2**31))
    return random_state


# ---- groups: given, cut out of pairs, or dealt from people with classes --------------------------

SIZES = (3, 8)

GROUPS_PER_NOISE = 20.0


def material_of_groups(given: Any, groups: GroupSet) -> Material:
    """Given groups as material: in canonical order, rows clipped, all of them used.

    Parameters
    ----------
    given : parameters
        Plain: data_norm.
    """
    data = clipped(groups.canonical()[0], given.data_norm)
    return Material(
        given=data,
        used=data,
        used_rows=range(data.n_pairs),
        kind=GROUPS.name,
        costs=GROUPS.costs(),
        selection=stated_selection("all", None, 1),
        n_given=data.n_pairs,
    )


def cut_pairs(given: Any, found: Resolved) -> Material:
    """Given pairs, cut into groups by who is paired with whom alone.

    Parameters
    ----------
    given : parameters
        Plain and checked, with select='groups'.
    found : Resolved
        The pairs, in canonical order.
    """
    refuse_together(getattr(found.data, "together", None))
    if given.kappa != "auto":
        raise InputError("kappa is for single pairs: a unit is in one group, so leave kappa='auto'")
    data = clipped(found.data, given.data_norm)
    size, seed = usual_size(given, data), selection_seed(given.random_state)
    kept = select_pairs(data, "groups", random_state=seed, group_size=size)
    used = data if len(kept) == data.n_pairs else data.subset(kept)
    full = kappa(data.pairs)
    return Material(
        given=data,
        used=GroupSet.of_pairs(used, components(used.pairs, used.n_people)),
        used_rows=kept if found.positions is None else np.sort(found.positions[kept]),
        kind=GROUPS.name,
        costs=GROUPS.costs(),
        selection=stated_selection(
            given.select, None if used is data else SELECTED_CAVEAT, full.relationship
        ),
        public=(ASSUMED_TOPOLOGY,) if found.inferred else (),
        for_release=not found.inferred,
        given_kappa=full,
        used_kappa=kappa(used.pairs),
        group_limit=size,
    )


def refuse_together(together: Any) -> None:
    """Refuse groups where people change together: such people may be in several groups."""
    if together is not None:
        raise InputError(
            "groups are records of their own, and people who change together may be in several: leave "
            "'together' out, or choose select='paths', 'forest', 'matching' or 'all'"
        )


def usual_size(given: Any, data: Any) -> int:
    """Most people of a group, from public numbers alone: smaller groups where the noise is louder.

    Large groups average sampling error away, but leave few records against the noise. So many people that
    groups stay `GROUPS_PER_NOISE` times as many as the noise is long in one direction; within `SIZES`.

    Parameters
    ----------
    given : parameters
        Plain and checked: epsilon, delta, unit, adjacency, mechanism.
    data : PairSet
    """
    delta = 0.0 if mechanism_named(given.mechanism).is_pure else given.delta
    budget = Budget(given.epsilon, delta, GROUPS.costs()[given.unit], given.adjacency)
    if not budget.is_private:
        return SIZES[1]
    noise = mechanism_named(given.mechanism).multiplier(budget, 1.0)
    people = len(np.unique(data.pairs))
    wanted = people / (noise * math.sqrt(data.n_features)) / GROUPS_PER_NOISE
    return int(np.clip(round(min(wanted, SIZES[1])), *SIZES))


def components(ends: NDArray[Any], n_people: int) -> NDArray[np.int64]:
    """Which cluster everybody is in; -1 for people without pairs. Groups were cut as connected clusters."""
    joined = sparse.coo_array((np.ones(len(ends)), tuple(ends.T)), shape=(n_people, n_people))
    found = connected_components(joined, directed=False)[1].astype(np.int64)
    paired = np.zeros(n_people, dtype=np.bool_)
    paired[ends] = True
    return np.where(paired, found, -1)


def grouped_people(given: Any, people: Material, groups: Any) -> Material:
    """People with classes in groups: dealt by a size, or as their numbers say.

    Parameters
    ----------
    given : parameters
        Plain and checked.
    people : Material
        Of people with classes, in canonical order.
    groups : int or integer array of shape (n,)
        Size of the groups, or each person's group (-1 for none) in the order in which people were given.
    """
    data = people.used
    if np.ndim(groups) == 0:
        check_size(groups)
        if data.n_records < groups:
            raise InputError(f"{data.n_records} people are fewer than one group of {groups}")
        seed = selection_seed(given.random_state)
        members = design_groups(data.n_records, int(groups), random_state=seed)
    else:
        numbers = check_numbers(groups, data.n_records)
        if people.order is not None:
            numbers = numbers[people.order]
        members = members_of(numbers)[0]
    made = GroupSet.of_classes(
        data.features, members, data.classes, data.ids, data.feature_names
    ).canonical()[0]
    return replace(
        people,
        given=made,
        used=made,
        used_rows=range(made.n_pairs),
        kind=GROUPS.name,
        costs=GROUPS.costs(),
        selection={**people.selection, "full_graph_relationship_kappa": 1},
        n_given=made.n_pairs,
    )


# ---- counted pairs -------------------------------------------------------------------------------


def material_of_counts(
    given: Any, data: CountedPairs, positions: NDArray[np.int64], entity_records: int | None = None
) -> Material:
    """Counted pairs as material: pairs selected, kappa read off their graph.

    Parameters
    ----------
    given : parameters
        Plain and checked: unit, mechanism, select, kappa, random_state.
    data : CountedPairs
        In canonical order.
    positions : int array
        Where each pair was among those given.
    entity_records : int, optional
        At most so many records are of one person. Without it a person is one record.
    """
    l2 = mechanism_named(given.mechanism).norm == "l2"
    if data.pairs is None:
        return _without_graph(data, l2)
    # Text ids are in order already: numbers are what the choice may depend on.
    seed = selection_seed(given.random_state)
    if data.together is None:
        rows = select_pairs(data.pairs, given.select, random_state=seed)
    else:
        rows = select_together(data.pairs, data.together, given.select, seed)
    used = data if len(rows) == data.n_records else data.subset(rows)
    full, taken = kappa_of(data), kappa_of(used)
    if entity_records is not None:
        if data.together is not None:
            raise InputError("give together or entity_records: either says what a person is")
        full = _of_entities(full, data.pairs, entity_records)
        taken = _of_entities(taken, used.pairs, entity_records)
    said = {PEOPLE_TOGETHER: data.together is not None, DECLARED_KAPPA: given.kappa != "auto"}
    return Material(
        given=data,
        used=used,
        used_rows=np.sort(positions[rows]).astype(np.int64),
        kind=data.kind,
        costs=COUNTED_PAIRS.costs(_group_sizes(given, taken), l2=l2),
        selection=stated_selection(
            given.select, None if used is data else SELECTED_CAVEAT, full.relationship
        ),
        public=tuple(sentence for sentence, holds in said.items() if holds),
        given_kappa=full,
        used_kappa=taken,
        entity_records=entity_records,
    )


def _without_graph(data: CountedPairs, l2: bool) -> Material:
    """Nobody knows who is in which pair: somebody may be in all of them."""
    kappas: dict[Unit, int] = {unit: 1 if unit == "pair" else data.n_records for unit in UNITS}
    return Material(
        given=data,
        used=data,
        used_rows=range(data.n_records),
        kind=data.kind,
        costs=COUNTED_PAIRS.costs(kappas, l2=l2),
        selection=stated_selection("all", None, kappas["relationship"]),
        public=(UNKNOWN_TOPOLOGY,),
    )


def _of_entities(found: Kappa, pairs: Any, entity_records: int) -> Kappa:
    """Numbers of the graph where people have several records.

    How two people relate is in every pair of a record of one with a record of the other, and chains run from
    record to record of a person in between; which records those are is private. All of them go through the
    records of either of the two, so they are in no more pairs than a person is (docs/theory/linkage.md).
    """
    person = pairs_of_entity(pairs, entity_records)
    related = found.relationship if entity_records == 1 else max(found.relationship, person)
    return replace(found, person=person, relationship=related)


def pairs_of_entity(pairs: Any, entity_records: int) -> int:
    """The most pairs that so many records are in: those with the most pairs each, at worst.

    Examples
    --------
    >>> pairs_of_entity(np.array([[0, 1], [1, 2], [2, 3]]), 2)
    3
    """
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
    if not (is_whole(records) and records >= 1):
        raise InputError("entity_records must be a whole number, at least 1")
    if pairs is None:
        raise InputError("entity_records goes with pairs, which name the records")


def stated_plainly(prepared: Prepared) -> Prepared:
    """Nothing is promised of units that nobody can count the pairs of."""
    certificate = prepared.certificate
    if certificate is None or UNKNOWN_TOPOLOGY not in certificate.public:
        return prepared
    nothing: dict[str, float] = dict.fromkeys(ADJACENCIES, math.inf)
    epsilons: dict[str, Any] = {
        unit: by if unit == "pair" else nothing for unit, by in certificate.epsilons.items()
    }
    return replace(prepared, certificate=replace(certificate, epsilons=epsilons))


# ---- tuples --------------------------------------------------------------------------------------


def resolve_tuples(tuples: Any, y: Any, preprocessor: Any) -> TupleSet:
    """What was passed to ``fit`` as a TupleSet, in the order given.

    Parameters
    ----------
    tuples : TupleSet, or (K, m) row numbers with a preprocessor
    y : array of shape (K,) or None
        The column of who is nearest to the one in column 0; None: column 1.
    preprocessor : array, table or callable
    """
    if isinstance(tuples, TupleSet):
        if y is not None:
            raise InputError("a TupleSet holds its answers: leave y out")
        return tuples
    if hasattr(tuples, "features"):
        raise InputError(
            "this learner learns from tuples: a TupleSet, or row numbers of shape (K, m)"
        )
    if preprocessor is None:
        raise InputError("tuples of row numbers need preprocessor=X, one row a person")
    array = check_tuples(tuples)
    if callable(preprocessor):
        people, where = np.unique(array, return_inverse=True)
        table, array = preprocessor(people), where.reshape(array.shape)
    else:
        table = preprocessor
    features = as_features(table)
    members = check_tuples(array, features.shape[0])
    order = None if y is None else answered(y, members.shape)
    return TupleSet(features, members, order, None, names_of(table))


def material_of_tuples(given: Any, found: TupleSet) -> Material:
    """Tuples as material: rows clipped, tuples selected, kappa read off their hypergraph.

    Parameters
    ----------
    given : parameters
        Plain and checked: select, unit, kappa, data_norm, random_state.
    """
    ordered, positions = found.canonical()
    data = clipped(ordered, given.data_norm)
    kept = select_tuples(data, given.select, random_state=selection_seed(given.random_state))
    everything = kappa_of_tuples(data)
    dropped = len(kept) < data.n_records
    used = data.subset(kept) if dropped else data
    taken = kappa_of_tuples(used) if dropped else everything
    rows = kept if positions is None else np.sort(positions[kept])
    return Material(
        given=data,
        used=used,
        used_rows=rows.astype(np.int64),
        kind=TUPLES.name,
        costs=TUPLES.costs(_group_sizes(given, taken)),
        selection=stated_selection(
            given.select, SELECTED_TUPLES_CAVEAT if dropped else None, everything.relationship
        ),
        public=(DECLARED_KAPPA,) if given.kappa != "auto" else (),
        given_kappa=everything,
        used_kappa=taken,
    )


# ---- plan and certificate ------------------------------------------------------------------------

_TOO_FEW = dict.fromkeys(("choices", "workers"), "the ranking will be mostly chance")


@dataclass(frozen=True)
class Prepared:
    """A fit that is ready to start.

    Attributes
    ----------
    material : Material
    recipe : Recipe
    plan : Plan
    certificate : Certificate or None
        None when epsilon is infinite.
    noise : NoiseSource
        Where sampling and noise will come from.
    about : str
        What the answers depend on, is public, and is not in the plan: a schema, a metric that is measured,
        a network's first weights. A checkpoint is of this and of nothing else.
    secret : bytes or None
        What pairs of row numbers are named with (`own_secret`).
    """

    material: Material
    recipe: Recipe
    plan: Plan
    certificate: Certificate | None
    noise: NoiseSource
    about: str = ""
    secret: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def graph(self) -> str | None:
        """A name for who is paired with whom, where it is known."""
        return name_of_pairs(self.material.used, self.secret)

    def cost(self) -> dict[str, Any]:
        """What a ledger is charged for the fit; where records are pairs kappa is the cost of a unit."""
        material, certificate = self.material, self.certificate
        return {
            "events": tuple(self.plan.events()),
            "kappas": dict(material.kappas if material.kind == "pairs" else material.costs),
            "delta_slack": 0.0 if certificate is None else certificate.delta_slack,
            "graph": self.graph,
            "meanings": material.meanings,
        }


def prepare(recipe: Recipe, given: Any, material: Material, noise: NoiseSource) -> Prepared:
    """Plan and certify a fit.

    Parameters
    ----------
    given : parameters
        Plain and checked: epsilon, delta, unit, adjacency, mechanism, data_norm.
    noise : NoiseSource
        Says whether the fit is for release.
    """
    mechanism, costs, n = mechanism_named(given.mechanism), material.costs, material.used.n_records
    delta = 0.0 if mechanism.is_pure else given.delta
    left = delta * (1 - SLACK_SHARE) if noise.for_release else delta
    setting = setting_of(given, material, left)
    largest = max(cost.records for cost in costs.values())
    plan, slack = plan_within(recipe, setting, delta, largest, exact=noise.for_release)
    certificate = None
    if setting.budget.is_private:
        certificate = Certificate.issue(
            plan.events(),
            delta=delta,
            unit=given.unit,
            adjacency=given.adjacency,
            kappas=material.kappas,
            mechanism=given.mechanism,
            n_pairs_given=material.counts[0],
            n_pairs_used=material.counts[1],
            selection=material.selection,
            noise_source=noise.name,
            for_release=noise.for_release and material.for_release,
            delta_slack=slack,
            public=material.public,
            plan=plan.to_dict(),
            costs={material.kind: costs},
        )
        refuse_large_delta(certificate)
        _warn(n, plan)
    return Prepared(material, recipe, plan, certificate, noise)


def setting_of(given: Any, material: Material, delta: float) -> Setting:
    """The public numbers that a recipe may plan with, from plain parameters and material."""
    return Setting(
        Budget(given.epsilon, delta, material.costs[given.unit], given.adjacency),
        n_records=material.used.n_records,
        n_features=material.used.n_features,
        data_norm=given.data_norm,
        mechanism=mechanism_named(given.mechanism),
        records=material.kind,
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
    if kind == "counted pairs":  # counts have no features to hide behind noise
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
