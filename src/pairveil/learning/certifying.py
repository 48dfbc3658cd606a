"""From parameters and a graph to a plan and its certificate, before any noise is drawn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import DataWarning, InputError
from pairveil.graph.digest import graph_digest as graph_digest
from pairveil.graph.kappa import Kappa, kappa
from pairveil.learning.dask_pairs import Chosen, DaskPairs
from pairveil.learning.defaults import Budget, make_plan
from pairveil.learning.engine import MAX_NOISE_IN_GRID
from pairveil.learning.inputs import ASSUMED_TOPOLOGY
from pairveil.learning.plan import NoisySums, TrainingPlan
from pairveil.learning.training import MAX_DIRECTIONS
from pairveil.pairs.choosing import select_pairs
from pairveil.pairs.pairset import PairSet
from pairveil.privacy.certificate import PUBLIC, Certificate
from pairveil.privacy.events import event_from_dict
from pairveil.privacy.grid import choose_grid, delta_slack, grid_sensitivity
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.noise import NoiseSource
from pairveil.privacy.units import ADJACENCIES, UNITS, Unit

SELECTED_CAVEAT = (
    "The pairs were selected from pairs that already had labels; whoever knows the labels of the dropped "
    "pairs may be able to tie more than kappa used pairs together, and what changes together beyond kappa "
    "pairs is not covered"
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
    plan: TrainingPlan
    certificate: Certificate | None


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
    check_parameters(learner, data)
    seed = _selection_seed(learner.random_state)
    if isinstance(data, DaskPairs):
        chosen = data.choose(learner.select, learner.unit, seed)
    else:
        chosen = _choose(data, learner.select, seed)
    used = chosen.used
    kappas = _group_sizes(learner, chosen.taken)
    private = not math.isinf(learner.epsilon)
    pure = learner.mechanism == "laplace"
    delta = 0.0 if pure else learner.delta
    reserve = SLACK_SHARE * delta if noise.for_release else 0.0
    plan = make_plan(
        Budget(learner.epsilon, delta - reserve, kappas[learner.unit], learner.adjacency),
        n_features=data.n_features,
        n_pairs=used.n_pairs,
        data_norm=learner.data_norm,
        mechanism=learner.mechanism,
        sampling=learner.sampling,
        sample_rate=1.0 if learner.sample_rate == "auto" else learner.sample_rate,
        n_steps=_number(learner.n_steps),
        n_components=learner.n_components,
        **({} if learner.margin == "auto" else {"margin": learner.margin}),
        max_grad_norm=_number(learner.max_grad_norm),
        learning_rate=_number(learner.learning_rate),
    )
    certificate = None
    if private:
        slack = _slack(plan, max(kappas.values())) if reserve else 0.0
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
    rows = chosen.rows if positions is None else np.sort(positions[chosen.rows]).astype(np.int64)
    return Prepared(used, rows, kappas, plan, certificate)


def _choose(data: PairSet, how: str, seed: Any) -> Chosen:
    """Select pairs, and the group sizes of those given and of those used."""
    kept = select_pairs(data, how, random_state=seed)
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
    _check_choice("mechanism", learner.mechanism, ("gaussian", "laplace"))
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


def _number(value: Any) -> Any:
    return None if value == "auto" else value


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


def with_threshold(
    certificate: Certificate, sums: NoisySums, kappas: Mapping[Unit, int]
) -> Certificate:
    """What the metric and a threshold cost together.

    The threshold's pairs may be others than the fit's, so a unit is given as many pairs as it has in either;
    chains of pairs run across the two, so a relationship may hold all pairs of a person in each
    (docs/theory/guarantee.md, 'Several releases').
    """
    joint = {unit: max(certificate.kappas[unit], kappas[unit]) for unit in UNITS}
    joint["relationship"] = max(joint["relationship"], joint["person"])
    return Certificate.issue(
        [*(event_from_dict(event) for event in certificate.events), sums.event()],
        delta=certificate.delta,
        unit=certificate.unit,
        adjacency=certificate.adjacency,
        kappas=joint,
        mechanism=certificate.mechanism,
        n_pairs_given=certificate.n_pairs_given,
        n_pairs_used=certificate.n_pairs_used,
        selection=certificate.selection,
        noise_source=certificate.noise_source,
        for_release=certificate.for_release,
        delta_slack=certificate.delta_slack,
        public=[said for said in certificate.public if said not in PUBLIC],
        plan={
            **certificate.plan,
            "releases": [*certificate.plan["releases"], sums.to_dict()],
        },
    )


def _also_public(
    learner: Any, data: PairSet | DaskPairs, inferred_topology: bool
) -> tuple[str, ...]:
    if inferred_topology:
        return (ASSUMED_TOPOLOGY,)
    by_degrees = learner.select == "all" and learner.unit == "person"  # as DaskPairs.choose does
    by_degrees = by_degrees and isinstance(data, DaskPairs)
    return (BOUNDED_BY_DEGREES,) if by_degrees else ()


def _selection(how: str, everything: bool, full: Kappa) -> dict[str, Any]:
    return {
        "how": how,
        "caveat": None if everything else SELECTED_CAVEAT,
        "full_graph_relationship_kappa": full.relationship,
    }


def _slack(plan: TrainingPlan, largest_kappa: int) -> float:
    """What exact discrete noise instead of continuous noise can add to delta, over the whole fit."""
    d = plan.n_features
    entries = {"gradients": d * min(d, plan.n_components or MAX_DIRECTIONS)}
    total, finest, shift = 0, math.inf, 0.0
    for sums in plan.releases:
        n_entries = entries.get(sums.name, max(d + 2, 8))
        grid = choose_grid(1.0, n_entries, norm=sums.norm, n_pairs=plan.n_pairs)
        total += n_entries * sums.steps
        finest = min(
            finest, sums.noise_multiplier * grid_sensitivity(1.0, grid, n_entries, sums.norm) / grid
        )
        shift = max(shift, largest_kappa / sums.noise_multiplier)
    finest = min(finest, MAX_NOISE_IN_GRID / 2)  # where the engine coarsens the grid
    return delta_slack(total, finest, shift=max(10.0, shift)) if finest >= 2 else 1.0


def _warn(learner: Any, used: Any, plan: TrainingPlan) -> None:
    """Say what a careful user would want to know; all of it follows from public numbers."""
    if learner.mechanism == "gaussian" and learner.delta * used.n_pairs >= 1:
        warnings.warn(
            f"delta={learner.delta:g} is not below 1 / {used.n_pairs} pairs: a release could show one pair "
            "outright and still keep the promise; choose a smaller delta",
            DataWarning,
            stacklevel=4,
        )
    signal = used.n_pairs / (plan.survey.noise_multiplier * math.sqrt(plan.n_features))
    if signal < 3:
        warnings.warn(
            f"{used.n_pairs} pairs are few for {plan.n_features} features at this epsilon: the metric will "
            "most likely stay Euclidean; use more pairs, fewer features or a larger epsilon",
            DataWarning,
            stacklevel=4,
        )
