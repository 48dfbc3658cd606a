"""What the command line can audit, by name."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from pairveil.errors import InputError
from pairveil.privacy.units import Adjacency, Unit

if TYPE_CHECKING:  # the names alone are wanted where the command line starts
    from pairveil.audit.auditor import Finding, Target

_PUBLISHED = "pairveil.audit.published"
TARGETS: dict[str, str] = {
    "learner": "pairveil.audit.learner_target:learner_target",
    "published-dpp": f"{_PUBLISHED}:published_dpp",
    "published-dpp-s": f"{_PUBLISHED}:published_dpp_s",
    "laplace": "pairveil.audit.plan_targets:one_step_laplace",
    "gaussian": "pairveil.audit.plan_targets:one_step_gaussian",
    "choice": "pairveil.audit.plan_targets:one_choice",
    "staircase-iid": f"{_PUBLISHED}:staircase_iid",
    "staircase-joint": f"{_PUBLISHED}:staircase_joint",
}
"""Everything that the command line can audit: a name, and where the function is that makes it. It is called
with as many of `make_target`'s arguments, of kappa and of delta, as it has parameters for."""

KAPPA: dict[Unit, int] = {"pair": 1, "relationship": 3, "person": 3}
"""Size of the canary for each unit: a graph with kappa 3 for relationships and for people."""

DELTA = 1e-5


def make_target(
    name: str,
    epsilon: float = 1.0,
    *,
    n_components: int = 1,
    n_features: int = 2,
    unit: Unit = "pair",
    adjacency: Adjacency = "zero-out",
    learner: str = "contrastive",
    records: str | None = None,
) -> Target:
    """Build a target with its claim and its worst case.

    Parameters
    ----------
    name : str
        One of `TARGETS`.
    epsilon : float
        The claim.
    n_components, n_features : int
        d' of the published learners; the dimension of everything.
    unit, adjacency : str
        For "learner", "laplace", "gaussian" and "choice". The published mechanisms claim replace, for
        kappa 1.
    learner : str
        For "learner": which one, a name in `pairveil.learners.LEARNERS`.
    records : str, optional
        For "learner": of what it `learns_from` the worst case is made, as 'classes'.

    Examples
    --------
    >>> make_target("staircase-joint", 1.0, n_features=8).adjacency
    'replace'
    """
    if not epsilon > 0:
        raise InputError("epsilon must be positive")
    if n_components < 1 or n_features < 1:
        raise InputError("components and features must be at least 1")
    if unit not in KAPPA:
        raise InputError("unit must be 'pair', 'relationship' or 'person'")
    if name not in TARGETS:
        raise InputError(f"target must be one of {', '.join(TARGETS)}")
    module, _, function = TARGETS[name].partition(":")
    make = getattr(import_module(module), function)
    known: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": DELTA,
        "unit": unit,
        "kappa": KAPPA[unit],
        "adjacency": adjacency,
        "n_components": n_components,
        "n_features": n_features,
        "learner": learner,
        "records": records,
    }
    target: Target = make(**{key: known[key] for key in signature(make).parameters})
    return target


def audit_target(
    target: Target,
    *,
    runs: int | None = None,
    confidence: float = 0.95,
    random_state: int | None = None,
) -> Finding:
    """Audit a target with its own number of runs, or with ``runs``.

    Examples
    --------
    >>> found = audit_target(make_target("staircase-iid", n_features=8), random_state=0, runs=400_000)
    >>> found.verdict
    'violated'
    """
    from pairveil.audit.auditor import audit_scores

    return audit_scores(
        target.scores,
        target.claim,
        runs=target.runs if runs is None else runs,
        confidence=confidence,
        random_state=random_state,
        target=target.name,
        canary=target.canary,
        adjacency=target.adjacency,
    )
