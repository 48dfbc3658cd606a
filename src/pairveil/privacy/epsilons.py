"""The epsilon of every unit and adjacency, from events and what a unit can move in each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from pairveil.errors import InputError
from pairveil.privacy.events import Event, Group
from pairveil.privacy.units import ADJACENCIES, Unit
from pairveil.records.kinds import Cost


def costs_by_event(
    costs: Mapping[str, Mapping[Unit, Cost]], plan: Mapping[str, Any], n_events: int, unit: Unit
) -> tuple[Cost, ...]:
    """The cost of a unit in each event: a plan says what kind of records its queries are about."""
    queries = plan.get("releases")
    kinds = [
        query.get("records", "pairs") if isinstance(query, Mapping) else "pairs"
        for query in (queries if isinstance(queries, list | tuple) else ())
    ]
    kinds += [next(iter(costs))] * (n_events - len(kinds))
    if not all(kind in costs for kind in kinds[:n_events]):
        raise InputError("the plan has queries about records whose cost is not stated")
    return tuple(costs[kind][unit] for kind in kinds[:n_events])


def all_epsilons(
    events: Iterable[Event], kappas: Mapping[Unit, Group], delta: float, delta_slack: float
) -> dict[str, dict[str, float]]:
    """Return epsilon for every unit and adjacency at ``delta``, the slack of discrete noise included."""
    from pairveil.privacy.profile import epsilon_of

    if delta_slack > 0.0 and delta_slack >= delta:
        return {unit: dict.fromkeys(ADJACENCIES, math.inf) for unit in kappas}
    return {
        unit: {
            adjacency: epsilon_of(
                events, kappa=kappas[unit], adjacency=adjacency, delta=delta - delta_slack
            )
            for adjacency in ADJACENCIES
        }
        for unit in kappas
    }
