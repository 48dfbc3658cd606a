"""``summary.json``: written whole, and read strictly, since it may come from anybody."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pairveil.errors import InputError
from pairveil.foreign import parse_json, read_regular, taking_apart
from pairveil.graph import GraphSummary, RankedPerson
from pairveil.release.release import SUMMARY_FILE
from pairveil.report.data import (
    Budget,
    LedgerEntry,
    ProjectedPoints,
    Summary,
    UtilityCurve,
    UtilityPoint,
)

FORMAT, VERSION = "pairveil-summary", 1
KAPPAS = ("pair", "relationship", "paper_bound", "person", "intransitive")


def summary_to_json(summary: Summary) -> str:
    """The text of ``summary.json``."""
    content = {"format": FORMAT, "version": VERSION, **asdict(summary)}
    return json.dumps(_without_infinities(content), indent=1, allow_nan=False) + "\n"


def summary_from_json(text: str) -> Summary:
    """What `summary_to_json` wrote; InputError when it is damaged, foreign or of a newer version."""
    content = parse_json(text, SUMMARY_FILE)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{SUMMARY_FILE} is no pairveil summary")
    if not isinstance(content.get("version"), int) or content["version"] > VERSION:
        raise InputError(f"{SUMMARY_FILE} was written by a newer pairveil; update pairveil")
    with taking_apart(SUMMARY_FILE):
        return Summary(
            used=_graph(content["used"]),
            given=_graph(content["given"]),
            utility=_curve(content["utility"]),
            points=_points(content["points"]),
            budget=_budget(content["budget"]),
            title=str(content["title"]),
        )


def read_summary(folder: Path) -> Summary:
    """The folder's ``summary.json``, or an empty summary when there is none."""
    file = folder / SUMMARY_FILE
    if not file.exists():
        return Summary()
    return Summary.from_json(read_regular(file).decode("utf-8", errors="replace"))


def _without_infinities(value: Any) -> Any:
    """Strict JSON has no infinity; the string 'inf' stands for it, and ``float`` reads it back."""
    if isinstance(value, Mapping):
        return {key: _without_infinities(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(item) for item in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _graph(content: Mapping[str, Any] | None) -> GraphSummary | None:
    if content is None:
        return None
    return GraphSummary(
        n_people=_count(content["n_people"]),
        n_pairs=_count(content["n_pairs"]),
        kappa={name: _count(content["kappa"][name]) for name in KAPPAS},
        degrees=_counts(content["degrees"]),
        b=_counts(content["b"]),
        top=tuple(
            RankedPerson(_count(one["rank"]), _count(one["b"]), _count(one["degree"]))
            for one in content["top"]
        ),
    )


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{SUMMARY_FILE} holds something that is not a count")
    return value


def _counts(content: Any) -> tuple[tuple[int, int], ...]:
    """How many people have which value: ascending, each with somebody."""
    found = tuple((_count(value), _count(people)) for value, people in content)
    values = [value for value, _ in found]
    if not found or values != sorted(set(values)) or not all(people for _, people in found):
        raise InputError(f"{SUMMARY_FILE} holds counts that are none")
    return found


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _known(value: Any) -> float:
    """A number that may be infinite, but is one."""
    if math.isnan(number := float(value)):
        raise InputError(f"{SUMMARY_FILE} holds something that is not a number")
    return number


def _point(content: Mapping[str, Any]) -> UtilityPoint:
    return UtilityPoint(
        float(content["epsilon"]),
        float(content["score"]),
        _number(content["low"]),
        _number(content["high"]),
    )


def _curve(content: Mapping[str, Any] | None) -> UtilityCurve | None:
    if content is None:
        return None
    this_fit = content["this_fit"]
    return UtilityCurve(
        source=content["source"],
        note=str(content["note"]),
        points=tuple(_point(point) for point in content["points"]),
        this_fit=None if this_fit is None else _point(this_fit),
        euclidean=_number(content["euclidean"]),
        reference=_number(content["reference"]),
        score_name=str(content["score_name"]),
    )


def _points(content: Mapping[str, Any] | None) -> ProjectedPoints | None:
    if content is None:
        return None
    return ProjectedPoints(
        source=content["source"],
        note=str(content["note"]),
        before=tuple((float(x), float(y)) for x, y in content["before"]),
        after=tuple((float(x), float(y)) for x, y in content["after"]),
        groups=tuple(str(group) for group in content["groups"]),
    )


def _budget(content: Mapping[str, Any] | None) -> Budget | None:
    if content is None:
        return None
    return Budget(
        epsilon=_known(content["epsilon"]),
        delta=_known(content["delta"]),
        unit=str(content["unit"]),
        adjacency=str(content["adjacency"]),
        entries=tuple(
            LedgerEntry(str(one["note"]), _known(one["epsilon_so_far"]), str(one["when"]))
            for one in content["entries"]
        ),
        best_guess={
            str(unit): None if share is None else _share(share)
            for unit, share in content.get("best_guess", {}).items()  # not there before version 3
        },
    )


def _share(value: Any) -> float:
    if not 0.5 <= (share := float(value)) <= 1.0:
        raise InputError(f"{SUMMARY_FILE} holds a best guess that is none")
    return share
