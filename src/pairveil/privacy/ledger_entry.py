"""What a ledger keeps of one spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pairveil.errors import InputError
from pairveil.privacy.composition import check_delta, check_kappa
from pairveil.privacy.costs import Cost, Group
from pairveil.privacy.events import Event, event_from_dict
from pairveil.privacy.units import SINGLE, UNITS, UNITS_OF_CHOICES, Unit

_FIELDS = {"events", "kappas", "note", "delta_slack", "time", "graph"}
_LATER = {"checkpoint", "meanings"}


@dataclass(frozen=True)
class LedgerEntry:
    """One spend: what was released, and what a unit can move of it (kappa, where records are pairs).

    ``checkpoint`` is there if the fit can be resumed: the name of its checkpoint, and a digest of that
    file up to the last answer that was used (docs/theory/resuming.md says why).

    ``meanings`` says what each unit means, `SINGLE` where it is not listed. None: a ledger of version 1 or 2
    did not keep it.
    """

    events: tuple[Event, ...]
    kappas: Mapping[str, Group]
    note: str
    delta_slack: float
    time: str
    graph: str | None = None
    checkpoint: tuple[str, str] | None = None
    meanings: Mapping[str, str] | None = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Of every unit, whichever is counted now: an entry that a later charge cannot be composed with
        # would lock the ledger for good.
        for group in self.kappas.values():
            if isinstance(group, tuple) and (
                len(group) != len(self.events) or not all(isinstance(one, Cost) for one in group)
            ):
                raise InputError("a unit whose costs differ by event needs one cost for each event")

    def meaning(self, unit: str) -> str | None:
        """What a unit means here; None where it is not known.

        Examples
        --------
        >>> LedgerEntry((), {}, "", 0.0, "").meaning("person")
        'single'
        """
        return None if self.meanings is None else self.meanings.get(unit, SINGLE)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON-able data."""
        data = {
            "events": [event.to_dict() for event in self.events],
            "kappas": {unit: _plain(group) for unit, group in self.kappas.items()},
            "note": self.note,
            "delta_slack": self.delta_slack,
            "time": self.time,
            "graph": self.graph,
            "meanings": None if self.meanings is None else dict(self.meanings),
        }
        if self.checkpoint is not None:
            data["checkpoint"] = list(self.checkpoint)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LedgerEntry:
        """Rebuild an entry, strictly."""
        if set(data) - _LATER != _FIELDS:
            raise InputError("a ledger entry has missing or unknown fields")
        return cls(
            events=tuple(event_from_dict(event) for event in _events(data["events"])),
            kappas={unit: _group(kappa) for unit, kappa in check_units(data["kappas"]).items()},
            note=str(data["note"]),
            delta_slack=check_delta(data["delta_slack"]),
            time=str(data["time"]),
            graph=None if data["graph"] is None else str(data["graph"]),
            checkpoint=_check_checkpoint(data["checkpoint"]) if "checkpoint" in data else None,
            meanings=check_meanings(data.get("meanings")),
        )


def check_unit(unit: object) -> Unit:
    """Refuse what is no unit.

    Examples
    --------
    >>> check_unit("person")
    'person'
    """
    known = (*UNITS, *UNITS_OF_CHOICES)
    if unit not in known:
        raise InputError(f"unit must be one of {', '.join(known)}")
    return unit  # type: ignore[return-value]


def check_kappas(kappas: Mapping[Any, Group]) -> dict[str, Group]:
    """Refuse units that are none and group sizes below 1.

    Examples
    --------
    >>> check_kappas({"pair": 1, "person": 2})
    {'pair': 1, 'person': 2}
    """
    return {
        unit: group if isinstance(group, Cost | tuple) else check_kappa(group)
        for unit, group in check_units(kappas).items()
    }


def check_units(by_unit: Mapping[Any, Any]) -> dict[Unit, Any]:
    """Refuse units that are none.

    Examples
    --------
    >>> check_units({"pair": 1})
    {'pair': 1}
    """
    return {check_unit(unit): value for unit, value in by_unit.items()}


def check_meanings(meanings: Mapping[Any, Any] | None) -> dict[str, str] | None:
    """Refuse meanings of what is no unit.

    Examples
    --------
    >>> check_meanings({"person": "entity 5"})
    {'person': 'entity 5'}
    """
    if meanings is None:
        return None
    return {unit: str(meaning) for unit, meaning in check_units(meanings).items()}


def _plain(group: Group) -> Any:
    """A group size as JSON-able data."""
    if isinstance(group, tuple):
        return [cost.to_dict() for cost in group]
    return group.to_dict() if isinstance(group, Cost) else group


def _group(data: Any) -> Group:
    """A group size from JSON, strictly."""
    if isinstance(data, list):
        return tuple(Cost.from_dict(one) for one in data)
    return Cost.from_dict(data) if isinstance(data, Mapping) else check_kappa(data)


def _events(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise InputError("a ledger entry does not list its events")
    return value


def _check_checkpoint(value: object) -> tuple[str, str]:
    if not (isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) for v in value)):
        raise InputError("a ledger entry does not say how far its fit has come")
    return value[0], value[1]
