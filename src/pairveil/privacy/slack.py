"""How much of delta a plan's exact discrete noise takes: one rule for issuing and for verifying."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairveil.privacy.costs import MAX_KAPPA
from pairveil.privacy.mechanisms import MECHANISMS, Drawn

_VERSION_1_DIRECTIONS = 10


def slack_of_plan(plan: Mapping[str, Any], largest_kappa: int) -> float:
    """What exact discrete noise can add to delta, over all queries of a plan.

    Parameters
    ----------
    plan : mapping
        Public description of the queries, as certificates hold it: each query with its ``mechanism``,
        ``noise_multiplier``, ``steps`` and ``entries`` (numbers in one sum). Plans of version 0.1 do not
        state the entries; they follow from its names and the numbers of features and components.
    largest_kappa : int
        The largest number of records that a reported unit touches.

    Returns the sum of what each mechanism says of its own noise; 1, all there is, for a mechanism that is
    unknown or has no proof.

    Raises KeyError, TypeError, ValueError: the plan does not describe its releases.

    Examples
    --------
    >>> release = {"mechanism": "gaussian", "noise_multiplier": 40.0, "steps": 100, "entries": 300}
    >>> 0.0 < slack_of_plan({"releases": [release]}, largest_kappa=2) < 1e-12
    True
    """
    if largest_kappa > MAX_KAPPA:
        return 1.0
    drawn: dict[str, list[Drawn]] = {}
    for release in plan["releases"]:
        numbers = _entries(release, plan) * int(release["steps"])
        noise = Drawn(float(release["noise_multiplier"]), numbers)
        drawn.setdefault(release["mechanism"], []).append(noise)
    if not all(name in MECHANISMS for name in drawn):
        return 1.0
    taken = sum(MECHANISMS[name].slack(noise, largest_kappa) for name, noise in drawn.items())
    return min(taken, 1.0)


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
