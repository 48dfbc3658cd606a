"""From parameters and a graph to a plan and its certificate, before any noise is drawn."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import DataWarning, InputError
from pairveil.graph.kappa import Kappa, kappa
from pairveil.learning.dask_pairs import Chosen, DaskPairs
from pairveil.learning.plan import Plan, Recipe, Setting, make_plan
from pairveil.pairs.choosing import select_pairs
from pairveil.pairs.pairset import PairSet
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.grid import choose_grid
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms import MECHANISMS, Budget, mechanism_named
from pairveil.privacy.noise import NoiseSource
from pairveil.privacy.slack import slack_of_plan
from pairveil.privacy.units import (
    ADJACENCIES,
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
SLACK_SHARE = 1e-3
"""Part of delta set aside for what exact discrete noise costs; the true cost is far smaller."""


@dataclass(frozen=True)
class Prepared:
    """A fit that is ready to start."""

    used: Any  # PairSet or DaskPairs
    used_rows: NDArray[np.int64] | range
    kappas: Mapping[Unit, int]
    recipe: Recipe
    plan: Plan
    certificate: Certificate | None


def prepare(
    learner: Any, data: PairSet | DaskPairs, noise: NoiseSource, inferred_topology: bool
) -> Prepared:
    """Check parameters, choose the pairs, read kappa off their graph, plan and certify.

    Parameters
    ----------
    learner : DPPMetricLearner
        Its parameters, all public.
    data : PairSet or DaskPairs
        Only its shape and who is paired with whom are looked at.
    noise : NoiseSource
        Says whether the fit is for release.
    inferred_topology : bool
        Whether people had to be recognised by equal feature rows.
    """
    check_parameters(learner, data)
    seed = _selection_seed(learner.random_state)
    if isinstance(data, DaskPairs):
        chosen = data.choose(learner.select, learner.unit, seed)
    else:
        chosen = _choose(data, learner.select, seed)
    used = chosen.used
    kappas = _group_sizes(learner, chosen.taken)
    private = not math.isinf(learner.epsilon)
    mechanism = mechanism_named(learner.mechanism)
    delta = 0.0 if mechanism.is_pure else learner.delta
    reserve = SLACK_SHARE * delta if noise.for_release else 0.0
    recipe = learner._recipe()
    plan = make_plan(
        recipe,
        Setting(
            Budget(learner.epsilon, delta - reserve, kappas[learner.unit], learner.adjacency),
            n_records=used.n_pairs,
            n_features=data.n_features,
            data_norm=learner.data_norm,
            mechanism=mechanism,
        ),
    )
    _check_grids(plan)
    certificate = None
    if private:
        slack = slack_of_plan(plan.to_dict(), max(kappas.values())) if reserve else 0.0
        if slack > reserve:
            raise InputError(
                "delta is too small for exact discrete noise here: choose a larger delta"
            )
        certificate = Certificate.issue(
            plan.events(),
            delta=delta,
            unit=learner.unit,
            adjacency=learner.adjacency,
            kappas=kappas,
            mechanism=learner.mechanism,
            n_pairs_given=data.n_pairs,
            n_pairs_used=used.n_pairs,
            selection=_selection(learner.select, used is data, chosen.given),
            noise_source=noise.name,
            # Who is who was read off the features: fine for a look, too weak for a promise to others.
            for_release=noise.for_release and not inferred_topology,
            delta_slack=slack,
            public=_also_public(learner, data, inferred_topology),
            plan=plan.to_dict(),
        )
        _warn(learner, used, plan)
    return Prepared(used, chosen.rows, kappas, recipe, plan, certificate)


def _choose(data: PairSet, how: str, seed: Any) -> Chosen:
    """Select pairs, and the group sizes of those given and of those used."""
    kept = select_pairs(data.pairs, how, random_state=seed)
    given = kappa(data.pairs)
    if len(kept) == data.n_pairs:
        return Chosen(data, kept, given, given)
    used = data.subset(kept)
    return Chosen(used, kept, given, kappa(used.pairs))


def check_parameters(learner: Any, data: PairSet | DaskPairs) -> None:
    """Refuse parameters that make no sense; nothing has been spent yet."""
    epsilon, delta = learner.epsilon, learner.delta
    if not (_is_number(epsilon) and epsilon > 0):
        raise InputError("epsilon must be a number above 0 (float('inf') for no privacy)")
    if not (_is_number(delta) and 0 < delta < 1):
        raise InputError("delta must be a number between 0 and 1, both excluded")
    _check_choice("unit", learner.unit, UNITS)
    _check_choice("select", learner.select, ("paths", "forest", "matching", "all"))
    if not isinstance(learner.accountant, PrivacyLedger | None):
        raise InputError("accountant must be a PrivacyLedger or None")
    _check_choice("adjacency", learner.adjacency, ADJACENCIES)
    _check_choice("mechanism", learner.mechanism, tuple(MECHANISMS))
    _check_choice("sampling", learner.sampling, ("poisson", "disjoint"))
    _check_choice("loss", learner.loss, ("contrastive",))
    _check_choice("backend", learner.backend, ("auto", "numpy", "dask"))
    if learner.kappa != "auto" and not (_is_whole(learner.kappa) and learner.kappa >= 1):
        raise InputError("kappa must be 'auto' or a whole number of at least 1")
    k = learner.n_components
    if k is not None and not (_is_whole(k) and 1 <= k <= data.n_features):
        raise InputError(
            f"n_components must be None or from 1 to {data.n_features}, the number of features"
        )
    if learner.margin not in ("auto", "private"):
        check_bound("margin", learner.margin)
    for name in ("max_grad_norm", "sample_rate", "n_steps", "learning_rate"):
        if getattr(learner, name) != "auto":
            check_bound(name, getattr(learner, name))
    if learner.sample_rate != "auto" and learner.sample_rate > 1:
        raise InputError("sample_rate must be at most 1")
    if learner.n_steps != "auto" and not _is_whole(learner.n_steps):
        raise InputError("n_steps must be 'auto' or a whole number")


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}")


def check_bound(name: str, value: object) -> None:
    """Refuse what is no positive number, or so far out that sums would leave the range of floats."""
    if not (_is_number(value) and 1e-9 <= value <= 1e9):  # type: ignore[operator]
        raise InputError(f"{name} must be a number above 0 (from 1e-9 to 1e9)")


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float | np.number)
        and not isinstance(value, bool)
        and value == value
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


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


def graph_digest(data: PairSet) -> str | None:
    """A name for who is paired with whom, by ids; None where only row numbers are known."""
    if data.ids is None:
        return None
    people, rank = np.unique(np.asarray(data.ids).astype(str), return_inverse=True)
    ends = np.sort(rank[data.pairs], axis=1)
    ordered = ends[np.lexsort((ends[:, 1], ends[:, 0]))].astype(np.int64)
    return hashlib.sha256("\0".join(people).encode() + ordered.tobytes()).hexdigest()


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


def _check_grids(plan: Plan) -> None:
    """Refuse, before anything is spent, sums that would leave 64-bit integers."""
    for query in plan.queries:
        norm = query.mechanism.norm
        choose_grid(1.0, query.n_entries, norm=norm, n_pairs=plan.n_records)


def _warn(learner: Any, used: Any, plan: Plan) -> None:
    """Say what a careful user would want to know; all of it follows from public numbers."""
    if learner.mechanism == "gaussian" and learner.delta * used.n_pairs >= 1:
        warnings.warn(
            f"delta={learner.delta:g} is not below 1 / {used.n_pairs} pairs: a release could show one pair "
            "outright and still keep the promise; choose a smaller delta",
            DataWarning,
            stacklevel=4,
        )
    noise = max(query.noise_multiplier for query in plan.queries if query.steps == 1)
    signal = used.n_pairs / (noise * math.sqrt(plan.n_features))
    if signal < 3:
        warnings.warn(
            f"{used.n_pairs} pairs are few for {plan.n_features} features at this epsilon: the metric will "
            "most likely stay Euclidean; use more pairs, fewer features or a larger epsilon",
            DataWarning,
            stacklevel=4,
        )
