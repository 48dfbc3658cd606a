"""What the command line can audit, by name."""

from __future__ import annotations

from typing import Literal, get_args

from pairveil.audit.auditor import Finding, Target, audit_scores
from pairveil.audit.learner_target import learner_target
from pairveil.audit.plan_targets import one_step_gaussian, one_step_laplace
from pairveil.errors import InputError
from pairveil.privacy.units import Adjacency, Unit
from pairveil.studies.published.audit_targets import (
    published_dpp,
    published_dpp_s,
    staircase_iid,
    staircase_joint,
)

TargetName = Literal[
    "learner",
    "published-dpp",
    "published-dpp-s",
    "laplace",
    "gaussian",
    "staircase-iid",
    "staircase-joint",
]
TARGETS: tuple[TargetName, ...] = get_args(TargetName)

KAPPA: dict[Unit, int] = {"pair": 1, "relationship": 3, "person": 3}
"""Size of the canary for each unit: a graph with kappa 3 for relationships and for people."""

DELTA = 1e-5


def make_target(
    name: TargetName,
    epsilon: float = 1.0,
    *,
    n_components: int = 1,
    n_features: int = 2,
    unit: Unit = "pair",
    adjacency: Adjacency = "zero-out",
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
        For "learner", "laplace" and "gaussian". The published mechanisms claim replace, for kappa 1.

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
    kappa = KAPPA[unit]
    if name == "learner":
        return learner_target(epsilon, DELTA, unit, kappa, adjacency, n_features)
    if name == "laplace":
        return one_step_laplace(epsilon, unit, kappa, adjacency, n_features)
    if name == "gaussian":
        return one_step_gaussian(epsilon, DELTA, unit, kappa, adjacency, n_features)
    if name == "published-dpp":
        return published_dpp(epsilon, n_components, n_features)
    if name == "published-dpp-s":
        return published_dpp_s(epsilon, n_components, n_features)
    if name == "staircase-iid":
        return staircase_iid(epsilon, n_features)
    if name == "staircase-joint":
        return staircase_joint(epsilon, n_features)
    raise InputError(f"target must be one of {', '.join(TARGETS)}")


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
