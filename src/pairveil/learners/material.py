"""Records made ready for a fit: clipped, selected, and the public numbers read off them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil._warn import warn
from pairveil.engine.backends.records import choose, clipped
from pairveil.errors import InputError, PrivateNote
from pairveil.graph.choosing import design_pairs
from pairveil.graph.kappa import Kappa
from pairveil.learners.inputs import Resolved, as_features
from pairveil.privacy.units import (
    ASSUMED_CLASSES,
    ASSUMED_TOPOLOGY,
    DECLARED_KAPPA,
    LINKS_ALONE,
    PEOPLE_TOGETHER,
    POINTS_ARE_PUBLIC,
    SELECTED_CAVEAT,
    UNITS,
    Unit,
    meanings_of,
)
from pairveil.records.canonical import order_of_ids
from pairveil.records.kinds import PAIRS, PEOPLE, Cost
from pairveil.records.pairset import PairSet
from pairveil.records.people import NO_CLASS, People, class_numbers
from pairveil.records.shared_values import numbered, together_digest

BOUNDED_BY_DEGREES = (
    "how many pairs each person is in; kappa of the units 'pair' and 'relationship', here and in the full "
    "graph, is bounded from above by these numbers and not counted"
)


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
    chosen = choose(data, given.select, given.unit, selection_seed(given.random_state))
    positions, rows = found.positions, chosen.rows
    if positions is not None:
        rows = np.sort(positions[rows]).astype(np.int64)
    said = {
        ASSUMED_TOPOLOGY: found.inferred,
        BOUNDED_BY_DEGREES: chosen.by_degrees,
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
    order = order_of_ids(people.ids)
    if order is not None:
        people = People(
            people.features[order],
            people.classes[order],
            people.n_classes,
            np.asarray(people.ids)[order],
            people.feature_names,
        )
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
    return replace(people, ids=ids)


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
