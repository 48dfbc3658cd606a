"""Counted pairs made ready for a fit: selected by their graph, and what each unit costs of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.engine.backends.records import kappa_of
from pairveil.errors import InputError
from pairveil.graph.choosing import select_pairs, select_together
from pairveil.graph.kappa import Kappa
from pairveil.learners.material import Material, _group_sizes, selection_seed, stated_selection
from pairveil.learners.parameters import is_whole
from pairveil.learners.preparing import Prepared
from pairveil.privacy.mechanisms import mechanism_named
from pairveil.privacy.units import (
    ADJACENCIES,
    DECLARED_KAPPA,
    PEOPLE_TOGETHER,
    SELECTED_CAVEAT,
    UNITS,
    UNKNOWN_TOPOLOGY,
    Unit,
)
from pairveil.records.counted import CountedPairs
from pairveil.records.kinds import COUNTED_PAIRS


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
