"""Tuples made ready for a fit: resolved, clipped, selected, and the public numbers read off them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairveil.column_names import names_of
from pairveil.engine.backends.records import clipped
from pairveil.errors import InputError
from pairveil.graph.choosing import select_tuples
from pairveil.graph.kappa import kappa_of_tuples
from pairveil.learners.inputs import as_features
from pairveil.learners.material import Material, _group_sizes, selection_seed, stated_selection
from pairveil.privacy.units import DECLARED_KAPPA, SELECTED_TUPLES_CAVEAT
from pairveil.records.kinds import TUPLES
from pairveil.records.tuple_reader import answered
from pairveil.records.tupleset import TupleSet, check_tuples


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
