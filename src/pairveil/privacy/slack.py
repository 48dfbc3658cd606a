"""How much of delta a plan's exact discrete noise takes: one rule for who issues and for who verifies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pairveil.privacy.costs import MAX_KAPPA, Cost
from pairveil.privacy.grid import MAX_NOISE_IN_GRID, choose_grid, delta_slack

PURE = ("laplace", "exponential")
"""Mechanisms whose exact discrete noise takes nothing off delta (docs/theory/noise.md and choice.md)."""

_VERSION_1_DIRECTIONS = 10
_MOST_SAMPLES = 1 << 62  # of no fit; beyond the floats there is nothing to compute


def slack_of_plan(plan: Mapping[str, Any], largest_kappa: int) -> float:
    """What discrete instead of continuous Gaussian noise can add to delta, over all queries of a plan.

    Parameters
    ----------
    plan : mapping
        Public description of the queries, as certificates hold it: each query with its ``mechanism``,
        ``noise_multiplier``, ``steps`` and ``entries`` (numbers in one sum). Plans of version 0.1 do not
        state the entries; they follow from its names and the numbers of features and components.
    largest_kappa : int
        The largest number of records that a reported unit touches. Not twice that for replace: both worlds
        are compared with the one in which these records are null, and neither is further from it than one
        clip bound a record (docs/theory/noise.md).

    Returns
    -------
    float
        0 for Laplace noise (exact discrete Laplace noise is pure epsilon as it stands); 1, all there is,
        where the noise is too small for its grid.

    Raises
    ------
    KeyError, TypeError, ValueError
        The plan does not describe its releases.

    Examples
    --------
    >>> release = {"mechanism": "gaussian", "noise_multiplier": 40.0, "steps": 100, "entries": 300}
    >>> 0.0 < slack_of_plan({"releases": [release]}, largest_kappa=2) < 1e-12
    True
    """
    if largest_kappa > MAX_KAPPA:
        return 1.0
    samples, finest, shift = 0, math.inf, 0.0
    for release in plan["releases"]:
        if release["mechanism"] in PURE:  # exact discrete noise of these is pure as it stands
            continue
        if release["mechanism"] != "gaussian":
            return 1.0  # no proof of what its discrete noise costs
        noise = float(release["noise_multiplier"])
        if not noise > 0.0:
            return 1.0
        samples += _entries(release, plan) * int(release["steps"])
        # In units of the clip bound; a sum of more entries has a finer grid, never a coarser one.
        finest = min(finest, noise / choose_grid(1.0, 1))
        shift = max(shift, Cost(largest_kappa).sensitivity("zero-out") / noise)
    if samples == 0:
        return 0.0
    finest = min(finest, MAX_NOISE_IN_GRID / 2)  # where the engine coarsens the grid
    if finest < 2.0 or not shift < 1e100 or samples > _MOST_SAMPLES:
        return 1.0
    return delta_slack(samples, finest, shift=max(10.0, shift))


def _entries(release: Mapping[str, Any], plan: Mapping[str, Any]) -> int:
    if "entries" in release:
        entries = release["entries"]
    else:
        d = plan["n_features"]
        wide = min(d, plan["n_components"] or _VERSION_1_DIRECTIONS)
        entries = d * wide if release["name"] == "gradients" else max(d + 2, 8)
    if isinstance(entries, bool) or not isinstance(entries, int) or entries < 1:
        raise ValueError("entries must be a count")
    return entries
