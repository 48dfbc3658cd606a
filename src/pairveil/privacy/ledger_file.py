"""A ledger as a file: JSON with a checksum, written in one way and read strictly.

Whatever is unexpected in a file is an error: a ledger that is misread would be a fresh budget.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pairveil.errors import InputError
from pairveil.foreign import check_kinds, read_json
from pairveil.privacy.ledger_entry import LedgerEntry

_FORMAT = "pairveil-ledger"
_VERSION = 3
_WITHOUT_MEANINGS = (1, 2)
"""Versions whose entries do not say what a unit means."""
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
    "meanings": ({str: str}, None),
}


def ledger_text(budget: Mapping[str, Any], entries: Iterable[LedgerEntry]) -> str:
    """The text of a ledger's file."""
    body = {
        "format": _FORMAT,
        "version": _VERSION,
        "budget": dict(budget),
        "entries": [entry.to_dict() for entry in entries],
    }
    sealed = {**body, "sha256": digest_of_ledger(body)}
    return json.dumps(sealed, indent=1, allow_nan=False) + "\n"


def digest_of_ledger(body: Mapping[str, Any]) -> str:
    """Return a checksum against damage and careless edits (it is no signature)."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def read_ledger(path: Path) -> tuple[dict[str, Any], tuple[LedgerEntry, ...]]:
    """Read a ledger file strictly: anything unexpected is an error."""
    data = ledger_fields(path)
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise InputError(f"{path} is not a pairveil ledger")
    version = data.get("version")
    if isinstance(version, bool) or version not in (*_WITHOUT_MEANINGS, _VERSION):
        raise InputError(f"the ledger at {path} was written by another version of pairveil")
    body = {key: value for key, value in data.items() if key != "sha256"}
    if set(body) != {"format", "version", "budget", "entries"} or data.get(
        "sha256"
    ) != digest_of_ledger(body):
        raise InputError(f"the ledger at {path} was changed or damaged: its checksum is wrong")
    try:
        entries = tuple(LedgerEntry.from_dict(entry) for entry in _list(data["entries"]))
        if version == 1 and not all(
            isinstance(kappa, int) for entry in entries for kappa in entry.kappas.values()
        ):  # version 1 knows no other records than pairs
            raise InputError(f"the ledger at {path} states what version 1 did not know")
        if any(("meanings" in one) == (version in _WITHOUT_MEANINGS) for one in data["entries"]):
            raise InputError(f"the ledger at {path} is none of its version: what units mean")
        return _check_budget(data["budget"]), entries
    except (TypeError, AttributeError, KeyError, OverflowError) as error:
        raise InputError(f"the ledger at {path} is malformed: {type(error).__name__}") from None


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _check_budget(value: object) -> dict[str, Any]:
    """The budget of a ledger file, by which a ledger can be made."""
    if not isinstance(value, dict) or set(value) != {"epsilon", "delta", "unit", "adjacency"}:
        raise KeyError
    for name in ("epsilon", "delta"):
        if isinstance(value[name], bool) or not isinstance(value[name], int | float):
            raise TypeError
        float(value[name])  # an int beyond all floats is an OverflowError
    return value


def ledger_fields(path: Path) -> Any:
    """What the file holds; InputError where it cannot be a ledger.

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
