"""What a fit will learn from, and what is public of it: the same questions for every kind of record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.engine.backends.records import choose, clipped
from pairveil.errors import InputError
from pairveil.graph.kappa import Kappa
from pairveil.learners.inputs import Resolved
from pairveil.privacy.costs import Cost, costs_of_pairs
from pairveil.privacy.units import (
    ASSUMED_TOPOLOGY,
    DECLARED_KAPPA,
    SELECTED_CAVEAT,
    UNITS,
    Unit,
)

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
    kind : {'pairs', 'groups', 'people'}
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

    @property
    def kappas(self) -> dict[Unit, int]:
        """How many records each unit touches."""
        return {unit: self.costs[unit].records for unit in UNITS}


def material_of_pairs(given: Any, found: Resolved, stacklevel: int) -> Material:
    """Pairs as material: rows clipped, pairs selected, kappa read off their graph.

    Parameters
    ----------
    given : parameters
        Plain and checked: select, unit, kappa, data_norm, random_state.
    found : Resolved
        The pairs, in canonical order.
    """
    data = clipped(found.data, given.data_norm, stacklevel + 1)
    chosen = choose(data, given.select, given.unit, _selection_seed(given.random_state))
    positions, rows = found.positions, chosen.rows
    if positions is not None:
        rows = np.sort(positions[rows]).astype(np.int64)
    said = {
        ASSUMED_TOPOLOGY: found.inferred,
        BOUNDED_BY_DEGREES: chosen.by_degrees,
        DECLARED_KAPPA: given.kappa != "auto",
    }
    return Material(
        given=data,
        used=chosen.used,
        used_rows=rows,
        kind="pairs",
        costs=costs_of_pairs(_group_sizes(given, chosen.taken)),
        selection={
            "how": given.select,
            "caveat": None if chosen.used is data else SELECTED_CAVEAT,
            "full_graph_relationship_kappa": chosen.given.relationship,
        },
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


def _selection_seed(random_state: Any) -> Any:
    """The choice of pairs follows the seed, without using up a generator that also makes noise."""
    if random_state is None:
        return 0  # the graph is public, so the choice may be too: certify and fit make the same one
    if isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state.bit_generator.seed_seq.spawn(1)[0])  # type: ignore[attr-defined]
    return random_state
