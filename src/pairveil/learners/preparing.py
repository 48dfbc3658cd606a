"""From parameters and a graph to a plan and its certificate, before any noise is drawn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.data.pairset import PairSet
from pairveil.engine.backends.dask_pairs import Chosen, DaskPairs
from pairveil.engine.plan import Plan, Recipe, Setting
from pairveil.engine.planning import SLACK_SHARE, plan_within
from pairveil.errors import DataWarning, GuaranteeWarning, InputError
from pairveil.graph.choosing import select_pairs
from pairveil.graph.kappa import Kappa, kappa
from pairveil.learners.parameters import check_parameters, plain_parameters
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.mechanisms import Budget, mechanism_named
from pairveil.privacy.noise import NoiseSource
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
class Prepared:
    """A fit that is ready to start."""

    given: Any
    """All records, in canonical order."""
    used: Any
    """Those that are used, in canonical order."""
    used_rows: NDArray[np.int64] | range
    """Positions of the used pairs among those given, ascending."""
    given_kappa: Kappa
    """Numbers of the graph of all given pairs."""
    used_kappa: Kappa
    """Numbers of the graph of the used pairs."""
    kappas: Mapping[Unit, int]
    """Group size of each unit: those of the used graph, or a declared one."""
    recipe: Recipe
    plan: Plan
    certificate: Certificate | None
    """None when epsilon is infinite."""
    noise: NoiseSource
    """Where sampling and noise will come from."""


def prepare(
    learner: Any,
    data: PairSet | DaskPairs,
    noise: NoiseSource,
    inferred_topology: bool,
    positions: NDArray[np.integer] | None = None,
) -> Prepared:
    """Check parameters, choose the pairs, read kappa off their graph, plan and certify.

    Parameters
    ----------
    learner : DPPMetricLearner
        Its parameters, all public.
    data : PairSet or DaskPairs
        In canonical order. Only its shape and who is paired with whom are looked at.
    noise : NoiseSource
        Says whether the fit is for release.
    inferred_topology : bool
        Whether people had to be recognised by equal feature rows.
    positions : int array, optional
        Where each pair stood among those given; where it stands now by default.
    """
    given = plain_parameters(learner)
    check_parameters(given, data.n_features)
    seed = _selection_seed(given.random_state)
    if isinstance(data, DaskPairs):
        chosen = data.choose(given.select, given.unit, seed)
    else:
        chosen = _choose(data, given.select, seed)
    used, kappas = chosen.used, _group_sizes(given, chosen.taken)
    mechanism = mechanism_named(given.mechanism)
    delta = 0.0 if mechanism.is_pure else given.delta
    left = delta * (1 - SLACK_SHARE) if noise.for_release else delta
    recipe = learner._recipe(given)
    setting = Setting(
        Budget(given.epsilon, left, kappas[given.unit], given.adjacency),
        n_records=used.n_pairs,
        n_features=data.n_features,
        data_norm=given.data_norm,
        mechanism=mechanism,
    )
    largest = max(kappas.values())
    plan, slack = plan_within(recipe, setting, delta, largest, exact=noise.for_release)
    certificate = None
    if setting.budget.is_private:
        certificate = Certificate.issue(
            plan.events(),
            delta=delta,
            unit=given.unit,
            adjacency=given.adjacency,
            kappas=kappas,
            mechanism=given.mechanism,
            n_pairs_given=data.n_pairs,
            n_pairs_used=used.n_pairs,
            selection=_selection(given.select, used is data, chosen.given),
            noise_source=noise.name,
            # Who is who was read off the features: fine for a look, too weak for a promise to others.
            for_release=noise.for_release and not inferred_topology,
            delta_slack=slack,
            public=_also_public(given, data, inferred_topology),
            plan=plan.to_dict(),
        )
        _warn(given, used, plan)
    rows = chosen.rows if positions is None else np.sort(positions[chosen.rows]).astype(np.int64)
    return Prepared(
        data, used, rows, chosen.given, chosen.taken, kappas, recipe, plan, certificate, noise
    )


def _choose(data: PairSet, how: str, seed: Any) -> Chosen:
    """Select pairs, and the group sizes of those given and of those used."""
    kept = select_pairs(data, how, random_state=seed)
    given = kappa(data.pairs)
    if len(kept) == data.n_pairs:
        return Chosen(data, kept, given, given)
    used = data.subset(kept)
    return Chosen(used, kept, given, kappa(used.pairs))


def _group_sizes(learner: Any, found: Kappa) -> dict[Unit, int]:
    """kappa of each unit; a given one replaces the unit's own, if it is large enough."""
    kappas: dict[Unit, int] = {unit: found.of(unit) for unit in UNITS}
    if learner.kappa != "auto":
        needed = kappas[learner.unit]
        if learner.kappa < needed:
            raise InputError(
                f"kappa={learner.kappa} is too small: the used pairs need {needed} for '{learner.unit}'; "
                "leave kappa='auto' or use fewer pairs (select='paths')"
            )
        kappas[learner.unit] = int(learner.kappa)
    return kappas


def _selection_seed(random_state: Any) -> Any:
    """The choice of pairs follows the seed, without using up a generator that also makes noise."""
    if random_state is None:
        return 0  # the graph is public, so the choice may be too: certify and fit make the same one
    if isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state.bit_generator.seed_seq.spawn(1)[0])  # type: ignore[attr-defined]
    return random_state


def _also_public(
    learner: Any, data: PairSet | DaskPairs, inferred_topology: bool
) -> tuple[str, ...]:
    by_degrees = learner.select == "all" and learner.unit == "person"  # as DaskPairs.choose does
    by_degrees = by_degrees and isinstance(data, DaskPairs)
    said = {
        ASSUMED_TOPOLOGY: inferred_topology,
        BOUNDED_BY_DEGREES: by_degrees,
        DECLARED_KAPPA: learner.kappa != "auto",
    }
    return tuple(sentence for sentence, holds in said.items() if holds)


def _selection(how: str, everything: bool, full: Kappa) -> dict[str, Any]:
    return {
        "how": how,
        "caveat": None if everything else SELECTED_CAVEAT,
        "full_graph_relationship_kappa": full.relationship,
    }


def _warn(learner: Any, used: Any, plan: Plan) -> None:
    """Say what a careful user would want to know; all of it follows from public numbers."""
    if learner.mechanism == "gaussian" and learner.delta * used.n_pairs >= 1:
        warnings.warn(
            f"delta={learner.delta:g} is not below 1 / {used.n_pairs} pairs: a release could show one pair "
            "outright and still keep the promise; choose a smaller delta",
            GuaranteeWarning,
            stacklevel=4,
        )
    noise = plan.queries[0].noise_multiplier  # of the first look at the data
    signal = used.n_pairs / (noise * math.sqrt(plan.n_features))
    if signal < 3:
        warnings.warn(
            f"{used.n_pairs} pairs are few for {plan.n_features} features at this epsilon: the metric will "
            "most likely stay Euclidean; use more pairs, fewer features or a larger epsilon",
            DataWarning,
            stacklevel=4,
        )
