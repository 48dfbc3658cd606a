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
from pairveil.graph.kappa import Kappa, kappa
from pairveil.learning.defaults import Budget, make_plan
from pairveil.learning.inputs import ASSUMED_TOPOLOGY
from pairveil.learning.plan import TrainingPlan
from pairveil.learning.training import MAX_DIRECTIONS
from pairveil.pairs.choosing import select_pairs
from pairveil.pairs.pairset import PairSet
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.grid import choose_grid, delta_slack, grid_sensitivity
from pairveil.privacy.noise import NoiseSource
from pairveil.privacy.units import ADJACENCIES, UNITS, Unit

SELECTED_CAVEAT = (
    "The pairs were selected from pairs that already had labels; whoever knows the labels of the dropped "
    "pairs can tie used pairs together, at most as many as the full graph's kappa"
)
SLACK_SHARE = 1e-3
"""Part of delta set aside for what exact discrete noise costs; the true cost is far smaller."""


@dataclass(frozen=True)
class Prepared:
    """A fit that is ready to start."""

    used: PairSet
    used_rows: NDArray[np.int64]
    kappas: Mapping[Unit, int]
    plan: TrainingPlan
    certificate: Certificate | None


def prepare(learner: Any, data: PairSet, noise: NoiseSource, inferred_topology: bool) -> Prepared:
    """Check parameters, choose the pairs, read kappa off their graph, plan and certify.

    Parameters
    ----------
    learner : DPPMetricLearner
        Its parameters, all public.
    data : PairSet
        Only its shape and who is paired with whom are looked at.
    noise : NoiseSource
        Says whether the fit is for release.
    inferred_topology : bool
        Whether people had to be recognised by equal feature rows.
    """
    check_parameters(learner, data)
    seed = _selection_seed(learner.random_state)
    kept = select_pairs(data.pairs, learner.select, random_state=seed)
    used = data if len(kept) == data.n_pairs else data.subset(kept)
    given_kappa = kappa(data.pairs)
    used_kappa = given_kappa if used is data else kappa(used.pairs)
    kappas = _group_sizes(learner, used_kappa)
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
            selection=_selection(learner.select, used is data, given_kappa),
            noise_source=noise.name,
            for_release=noise.for_release,
            delta_slack=slack,
            public=(ASSUMED_TOPOLOGY,) if inferred_topology else (),
            plan=plan.to_dict(),
        )
        _warn(learner, used, plan)
    return Prepared(used, kept, kappas, plan, certificate)


def check_parameters(learner: Any, data: PairSet) -> None:
    """Refuse parameters that make no sense; nothing has been spent yet."""
    epsilon, delta = learner.epsilon, learner.delta
    if not (_is_number(epsilon) and epsilon > 0):
        raise InputError("epsilon must be a number above 0 (float('inf') for no privacy)")
    if not (_is_number(delta) and 0 < delta < 1):
        raise InputError("delta must be a number between 0 and 1, both excluded")
    _check_choice("unit", learner.unit, UNITS)
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
        _check_positive("margin", learner.margin)
    for name in ("max_grad_norm", "sample_rate", "n_steps", "learning_rate"):
        if getattr(learner, name) != "auto":
            _check_positive(name, getattr(learner, name))
    _check_positive("data_norm", learner.data_norm)
    if learner.sample_rate != "auto" and learner.sample_rate > 1:
        raise InputError("sample_rate must be at most 1")
    if learner.n_steps != "auto" and not _is_whole(learner.n_steps):
        raise InputError("n_steps must be 'auto' or a whole number")


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}")


def _check_positive(name: str, value: object) -> None:
    if not (_is_number(value) and math.isfinite(value) and value > 0):  # type: ignore[arg-type, operator]
        raise InputError(f"{name} must be 'auto' or a number above 0")


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
    if isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state.bit_generator.seed_seq.spawn(1)[0])  # type: ignore[attr-defined]
    return random_state


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
        n_entries = entries.get(sums.name, d + 2)
        grid = choose_grid(1.0, n_entries, norm=sums.norm, n_pairs=plan.n_pairs)
        total += n_entries * sums.steps
        finest = min(
            finest, sums.noise_multiplier * grid_sensitivity(1.0, grid, n_entries, sums.norm) / grid
        )
        shift = max(shift, largest_kappa / sums.noise_multiplier)
    return delta_slack(total, finest, shift=max(10.0, shift)) if finest >= 2 else 1.0


def _warn(learner: Any, used: PairSet, plan: TrainingPlan) -> None:
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
