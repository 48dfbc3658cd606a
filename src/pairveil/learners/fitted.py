"""Numbers that were fitted on data: each stands in one frozen table with what changing it costs.

A table is a frozen dataclass whose fields are made by `fitted`. ``python -m tools.constants`` halves and
doubles each number and prints what that does to the gain kept (benchmarks/results/README.md).
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any, NamedTuple


class Fitted(NamedTuple):
    """What is known about a number."""

    meaning: str
    origin: str  # where the value comes from
    halved: float | None  # change of the mean gain kept; None where it was not measured
    doubled: float | None


def fitted(
    value: Any,
    meaning: str,
    origin: str,
    halved: float | None = None,
    doubled: float | None = None,
) -> Any:
    """A field of a table of fitted numbers."""
    return field(default=value, metadata={"fitted": Fitted(meaning, origin, halved, doubled)})


def numbers_of(table: Any) -> dict[str, tuple[float, Fitted]]:
    """Value and description of each number of a table, by name."""
    return {one.name: (getattr(table, one.name), one.metadata["fitted"]) for one in fields(table)}
