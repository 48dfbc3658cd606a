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
from pairveil.privacy.ledger_entry import LedgerEntry
from pairveil.privacy.ledger_fields import ledger_fields

_FORMAT = "pairveil-ledger"
_VERSION = 2


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
    if isinstance(version, bool) or version not in (1, _VERSION):
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
