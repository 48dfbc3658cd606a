"""A ledger's file as plain data of the right kinds, before any of it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pairveil.errors import InputError
from pairveil.foreign import check_kinds, read_json

MAX_BYTES = 64 * 2**20
"""An entry takes about a kilobyte: room for fifty thousand fits."""

_KINDS: dict[str, Any] = {"budget": Mapping, "entries": [Mapping], "sha256": str}
_BUDGET: dict[str, Any] = {"epsilon": float, "delta": float, "unit": str, "adjacency": str}
_ENTRY: dict[str, Any] = {
    "events": [Mapping],
    "kappas": {str: (int, Mapping, [Mapping])},
    "note": str,
    "delta_slack": float,
    "time": str,
    "graph": (str, None),
    "checkpoint": [str],
}


def ledger_fields(path: Path) -> Any:
    """What the file holds; InputError where it cannot be a ledger.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> ledger_fields(Path("no-such-ledger.json"))
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: the ledger at no-such-ledger.json has vanished; restore it from a backup
    """
    if not path.exists():
        raise InputError(f"the ledger at {path} has vanished; restore it from a backup")
    title = f"the ledger at {path}"
    data = read_json(path, title, MAX_BYTES)
    if not isinstance(data, dict):
        return data
    check_kinds(data, _KINDS, title)
    budget = data.get("budget", _BUDGET)
    if set(budget) != set(_BUDGET):
        raise InputError(f"{title} is not valid: its budget has missing or unknown fields")
    check_kinds(data.get("budget", {}), _BUDGET, f"the budget of {title}")
    if "inf" in (budget["epsilon"], budget["delta"]):
        raise InputError(f"{title} is not valid: its budget has no end")
    for entry in data.get("entries", ()):
        check_kinds(entry, _ENTRY, f"an entry of {title}")
    return data
