"""What each page of the studio shows, prepared apart from its layout."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import asdict
from typing import Any

from pairveil.errors import InputError
from pairveil.graph.selections import SELECTIONS
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.report import promise
from pairveil.report.data import MetricShape, ReportData
from pairveil.report.parts import table
from pairveil.report.pictures import hundred_guesses, star
from pairveil.report.words import UNIT_MEANINGS, cost, number
from pairveil.studio.commands import EPSILONS
from pairveil.studio.forms import TYPES, fields_of
from pairveil.studio.project import TABLES, Project

STEPS = (
    ("files", "Files"),
    ("schema", "Columns"),
    ("plan", "Privacy"),
    ("confirm", "Confirm"),
    ("progress", "Learning"),
    ("done", "Release"),
)


def reached(project: Project, state: str) -> str:
    """The step that the project is at."""
    if state == "done":
        return "done"
    if state != "none":
        return "progress"
    if project.table("people") is None or project.table("pairs") is None:
        return "files"
    if project.answer("columns.json") is None:
        return "files"
    if not schema_is_complete(project):
        return "schema"
    return "confirm" if project.answer("certificate.json") else "plan"


def read_schema_data(project: Project) -> dict[str, Any]:
    """The schema file as plain data, complete or not."""
    try:
        return tomllib.loads(project.schema.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise InputError("schema.toml cannot be read; choose the people's file again") from None


def schema_is_complete(project: Project) -> bool:
    """Whether every blank is filled in."""
    from pairveil.schema.toml import read_schema

    try:
        read_schema(project.schema)
    except InputError:
        return False
    return True


# ---- pages ----------------------------------------------------------------------------------------


def files_page(project: Project) -> dict[str, Any]:
    """Which files there are, and what their columns are called."""
    settings = project.settings
    return {
        "settings": settings,
        "tables": [
            {
                "which": "people",
                "title": "People",
                "help": "One row for each person: an id, and a column for each thing that is known.",
                "name": settings.people_name if project.table("people") else "",
            },
            {
                "which": "pairs",
                "title": "Labelled pairs",
                "help": "One row for each pair: the ids of two people, and whether they are the same or "
                "different.",
                "name": settings.pairs_name if project.table("pairs") else "",
            },
            {
                "which": "public",
                "title": "Public people to score on (may be left out)",
                "help": "The people's columns and a class, of public people who are in none of the pairs. "
                "The report then says how good the metric is; without it quality is not measured.",
                "name": settings.public_name if project.table("public") else "",
            },
        ],
        "ready": project.table("people") is not None and project.table("pairs") is not None,
    }


def schema_page(project: Project, form: dict[str, str] | None = None) -> dict[str, Any]:
    """Each column with what is to be filled in; what was typed stands where a form was refused."""
    fields = [asdict(field) for field in fields_of(read_schema_data(project))]
    if form:
        for field in fields:
            number = field["number"]
            for name in ("type", "low", "high", "values", "fill", "format", "unit"):
                field[name] = form.get(f"{name}-{number}", field[name])
            field["indicator"] = form.get(f"indicator-{number}") == "yes"
    empty = sum(f["type"] == "number" and not f["low"] for f in fields)
    return {"fields": fields, "types": TYPES, "empty_numbers": empty}


def plan_page(project: Project) -> dict[str, Any]:
    """The pair graph, and what each choice buys."""
    plan, kappa = project.answer("plan.json") or {}, project.answer("kappa.json") or {}
    rows = plan.get("rows", [])
    if not rows or "kappa" not in kappa:
        raise InputError("the plan is not made yet; choose the files again")
    settings, ledger = project.settings, budget(project)
    for row in rows:
        row["charged"] = _charged(row, ledger["unit"])
    chosen = plan["recommended"] if settings.epsilon not in EPSILONS else None
    given = kappa["kappa"]
    kept = [row for row in rows if row["unit"] == "relationship"]
    counts = {row["select"]: row["n_pairs_used"] for row in kept}
    person = {row["select"]: row["kappa"] for row in rows if row["unit"] == "person"}
    return {
        "settings": settings,
        "rows": json.dumps(rows),
        "epsilons": EPSILONS,
        "recommended": plan["recommended"],
        "chosen": chosen,
        "budget": ledger,
        "units": [(unit, UNIT_MEANINGS[unit]) for unit in ("relationship", "person", "pair")],
        "selects": [(name, SELECTIONS[name].says) for name in counts if name in SELECTIONS],
        "before": star(
            given["person"], title="Before: the person in most pairs.", strong=False
        ),
        "after": star(
            person.get(plan["recommended"]["select"], 2),
            title="After: the person in most pairs.",
            strong=True,
        ),
        "counts": table(
            f"{number(kappa['n_pairs'])} pairs of {number(kappa['n_people'])} people: how many pairs count "
            "together (kappa), and what is left",
            ("", "pairs", "for a relationship", "for a person"),
            [
                _as_given(kappa),
                *(_selected(rows, name) for name in counts),
            ],
        ),
        "icons": hundred_guesses(61),
    }  # fmt: skip


def _as_given(kappa: dict[str, Any]) -> tuple[str, str, str, str]:
    by = kappa["kappa"]
    return "as given", number(kappa["n_pairs"]), number(by["relationship"]), number(by["person"])


def _selected(rows: list[dict[str, Any]], select: str) -> tuple[str, str, str, str]:
    mine = {row["unit"]: row for row in rows if row["select"] == select}
    return (
        f"selection '{select}'",
        number(mine["relationship"]["n_pairs_used"]),
        number(mine["relationship"]["kappa"]),
        number(mine["person"]["kappa"]),
    )


def _charged(row: dict[str, Any], unit: str) -> float:
    """Epsilon that a ledger of this unit is charged at most, beside what it has."""
    if unit in ("", row["unit"]):
        return float(row["epsilon"])
    return float(max(row["epsilon"], row["person_epsilon"]))


def budget(project: Project) -> dict[str, Any]:
    """What the ledger allows and has spent; an empty unit where it is still to be made."""
    if not project.ledger.exists():
        return {"epsilon": project.budget, "spent": 0.0, "unit": "", "file": str(project.ledger)}
    ledger = PrivacyLedger.open(project.ledger)
    spent = ledger.spent() if ledger.entries else 0.0
    unit, file = ledger.unit, str(project.ledger)
    return {"epsilon": ledger.epsilon, "spent": spent, "unit": unit, "file": file}


def confirm_page(project: Project) -> dict[str, Any]:
    """What will be promised and what not, from the certificate of the rehearsed fit."""
    content = project.answer("certificate.json")
    if content is None:
        raise InputError("choose the privacy first")
    certificate = Certificate.from_dict(content["certificate"])
    features = int(certificate.plan.get("n_features", 1))
    data = ReportData(certificate, MetricShape(features, features, (("", 1.0),)))
    return {
        "first": promise.first_screen(data),
        "limits": promise.limits(data),
        "protected": promise.protected(certificate),
        "epsilon": cost(certificate.epsilon),
        "unit": certificate.unit,
        "budget": budget(project),
        "shown": shown(project),
    }


def shown(project: Project) -> str:
    """Names what is about to be confirmed: a change in another tab gives another name."""
    parts = [asdict(project.settings)]
    for file in (*map(project.table, TABLES), project.schema):
        stat = file.stat() if file is not None and file.exists() else None
        parts.append({"file": str(file), "at": stat and [stat.st_mtime_ns, stat.st_size]})
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def done_page(project: Project) -> dict[str, Any]:
    """Where the release is, and which commands use it."""
    from pairveil.report.summaries import read_release

    data = read_release(project.release)
    words, good = promise.status(data)
    files = sorted(file.name for file in project.release.iterdir() if file.is_file())
    return {
        "status": words,
        "status_is_good": good,
        "first": promise.first_screen(data),
        "files": files,
        "folder": str(project.release),
        "ledger": str(project.ledger),
        "uploads_left": any(project.table(which) for which in TABLES),
    }
