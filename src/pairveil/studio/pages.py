"""What each page of the studio shows, prepared apart from its layout."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations, takewhile
from typing import Any

from pairveil.errors import InputError
from pairveil.graph import SELECTIONS
from pairveil.jobs.fit import FitJob
from pairveil.jobs.job import about_of, options, spelling
from pairveil.printable import printable
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.units import WORDS
from pairveil.privacy.verdict import Releases
from pairveil.report.data import MetricShape, ReportData, WeightRow
from pairveil.report.page import first_screen
from pairveil.schema.schema import SKEWED, read_schema
from pairveil.studio.commands import EPSILONS, usual_delta
from pairveil.studio.forms import TYPES, check_classes, fields_of
from pairveil.studio.project import TABLES, Decisions, Project

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
    if not project.has_tables or project.answer("columns.json") is None:
        return "files"
    if not project.by_levels and not schema_is_complete(project):
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
    try:
        check_classes(project, read_schema(project.schema))
    except InputError:
        return False
    return True


FIELD_OF = {
    spelling(one): about_of(one).label for one in options(FitJob) if about_of(one).label
}  # fmt: skip
_ON_PAGES = {
    "`bounds = [...]`": "the lowest and highest possible value",
    "`categories = [...]`": "all that are possible",
    "`values = [...]`": "all classes that are possible",
    'set type = "skip"': "choose 'leave out' as their kind",
    ' (decimal = "," in the schema)': "",
    ' (decimal = "." in the schema)': "",
    "schema.toml": "the columns",
    "Check the schema and the column's unit": "Check what was said of the column, and its unit",
    "of the features": "of the people",
    "an id without features": "an id that is not among the people",
    "--public-test": "the public table",
    "--n-levels": "the numbers of levels",
}
"""How pages say what files and commands say."""


def on_the_page(problem: str, project: Project) -> str:
    """What a command said, with the page's fields for options and the user's names for files.

    Examples
    --------
    >>> import tempfile
    >>> on_the_page("note: say which with --zero-means", Project(tempfile.mkdtemp()))
    "say which with the field '0, false or no means'"
    """
    problem = problem.removeprefix("note: ").replace(f"{project.folder}/", "")
    for option, field in FIELD_OF.items():
        problem = re.sub(rf"{option}(?![\w-])", f"the field '{field}'", problem)
    for said, meant in _ON_PAGES.items():
        problem = problem.replace(said, meant)
    files = {
        file.name: getattr(project.settings, f"{which}_name")
        for which in TABLES
        if (file := project.table(which)) is not None
    }  # all at once: the user's own name for one may be ours for another
    ours = "|".join(map(re.escape, files)) or "(?!)"
    return re.sub(ours, lambda found: files[found[0]], _without_commands(problem))


_COMMAND = re.compile(r"`pairveil |(?<![\w-])--[a-z]|\bpairveil [a-z]+ ")


def _without_commands(said: str) -> str:
    """What was said, without the parts that only help those who type commands.

    Examples
    --------
    >>> _without_commands("the ledger exists; leave --budget out. Nothing was spent")
    'the ledger exists. Nothing was spent'
    >>> _without_commands("use --seed")
    'use --seed'
    """
    sentences = []
    for sentence in re.split(r"(?<=[.?!]) +", said):
        parts = re.split(r"(?=[;:(,] )|(?<=\))", sentence)
        kept = "".join(part for part in parts if not _COMMAND.search(part))
        end = "." if sentence.endswith(".") and kept and not kept.endswith(".") else ""
        sentences.append(f"{kept}{end}")
    return " ".join(one for one in sentences if one) or said


# ---- pages ----------------------------------------------------------------------------------------


def files_page(project: Project, names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Which files there are, and what their columns are called: ``names`` by table, where known."""
    settings = project.settings
    return {
        "settings": settings,
        "words": {
            name: about_of(one).label
            for name, one in FitJob.__dataclass_fields__.items()
            if "option" in one.metadata
        }
        | {"public_classes": FIELD_OF["--test-classes"]},
        "names": {field: names.get(FIELDS[field], ()) for field in FIELDS},
        "of": FIELDS,
        "given": {w: getattr(settings, f"{w}_name") for w in TABLES if project.table(w)},
    }


FIELDS = {
    "id": "people",
    "classes": "people",
    "left": "pairs",
    "right": "pairs",
    "label": "pairs",
    "public_classes": "public",
}
"""Which table's column each field of the first page names."""


def likely_columns(
    which: str, names: Sequence[str], settings: Decisions, label: str | None = None
) -> dict[str, str]:
    """What each field of a table probably is, by the names and order of its columns; none where in doubt.

    ``label``: the column of labels, where `pairveil.records.readers.guess_label` knows it; else the last.

    Examples
    --------
    >>> likely_columns("pairs", ["a", "b", "verdict"], Decisions())
    {'left': 'a', 'right': 'b', 'label': 'verdict'}
    >>> likely_columns("people", ["patient", "age"], Decisions())
    {'id': 'patient'}
    >>> likely_columns("pairs", ["course", "a", "b", "judged_on"], Decisions(), label="course")
    {'left': 'a', 'right': 'b', 'label': 'course'}
    >>> likely_columns("pairs", ["day", "patient_a", "patient_b", "verdict"], Decisions())
    {'left': 'patient_a', 'right': 'patient_b', 'label': 'verdict'}
    """
    if which == "public":  # the class that is learned from, where it has that name there too
        return {"public_classes": settings.classes} if settings.classes in names else {}
    usual = {"people": {"id": 0}, "pairs": {"left": 0, "right": 1, "label": -1}}.get(which, {})
    if len(names) < max(2, len(usual)):
        return {}
    label = names[-1] if label is None else printable(label)
    in_order = [*(name for name in names if name != label), label]
    if which == "pairs":
        in_order = [*_alike(in_order[:-1], settings.id), *in_order]
    return {
        field: getattr(settings, field) if getattr(settings, field) in names else in_order[place]
        for field, place in usual.items()
    }


def _alike(names: Sequence[str], id: str) -> tuple[str, ...]:
    """The two of these names that differ least, as those of both ids do (patient_a, patient_b); or none."""
    found = []
    for one, other in combinations(names, 2):
        start = _shared(one, other)
        end = _shared(one[start:][::-1], other[start:][::-1])
        if start + end >= 2 and max(len(one), len(other)) - start - end <= len("right"):
            found.append((id in one, start + end, (one, other)))
    return max(found, key=lambda each: each[:2])[2] if found else ()


def _shared(one: str, other: str) -> int:
    """How many letters two words begin with together."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def schema_page(project: Project, form: dict[str, str] | None = None) -> dict[str, Any]:
    """Each column with what is to be filled in; what was typed stands where a form was refused."""
    fields = fields_of(read_schema_data(project))
    for field in fields if form else ():
        for name in field.keys() - {"number", "name"}:
            typed = (form or {}).get(f"{name}-{field['number']}")
            is_tick = isinstance(field[name], bool)
            field[name] = typed == "yes" if is_tick else field[name] if typed is None else typed
    for field in fields:
        field["skewed"] = bool(SKEWED.search(field["name"])) and not field["log"]
    empty = sum(f["type"] == "number" and not f["low"] for f in fields)
    learned = project.settings.classes if project.by_classes else None
    decimal = (form or {}).get("decimal") or read_schema_data(project).get("decimal", ".")
    shown = {"fields": fields, "types": TYPES, "empty_numbers": empty, "learned": learned}
    return shown | {"decimal": decimal}


def comparisons(names: Sequence[str], said: Decisions) -> list[str]:
    """The comparisons of a table of levels, by its header.

    Examples
    --------
    >>> comparisons(["left", "right", "name", "born"], Decisions())
    ['name', 'born']
    >>> comparisons(["unique_id_l", "unique_id_r", "gamma_name", "tf_name"], Decisions())
    ['name']
    """
    if splink := [one.removeprefix("gamma_") for one in names if one.startswith("gamma_")]:
        return splink
    if not {said.left, said.right} <= set(names):
        raise InputError(
            "the levels and the labels must call the columns of both ids alike; choose the levels again"
        )
    return [one for one in names if one not in (said.left, said.right, said.label)]


def levels_page(project: Project, form: dict[str, str] | None = None) -> dict[str, Any]:
    """What is public of each comparison, and what may be spent."""
    kappa, columns = project.answer("kappa.json") or {}, project.answer("columns.json") or {}
    if "kappa" not in kappa:
        raise InputError("choose the files again")
    settings, form = project.settings, form or {}
    sizes = [*settings.n_levels.split(","), *[""] * len(columns["columns"])]
    meanings = WORDS["counted pairs"].meaning
    return {
        "settings": settings,
        "comparisons": [
            (name, form.get(f"levels-{at}", sizes[at]))
            for at, name in enumerate(columns["columns"])
        ],
        "epsilons": EPSILONS,
        "prior": form.get("prior", settings.prior),
        "budget": budget(project),
        "delta": usual_delta(project),
        "units": [(unit, meanings[unit]) for unit in ("relationship", "person", "pair")],
        "n_pairs": kappa["n_pairs"],
    }


def plan_page(project: Project) -> dict[str, Any]:
    """The pair graph, and what each choice buys."""
    from pairveil.evaluation.held_out import TEST_SHARE
    from pairveil.learners.outlook import RANGES, range_at

    plan, kappa = project.answer("plan.json") or {}, project.answer("kappa.json") or {}
    rows = plan.get("rows", [])
    if not rows or not (project.by_classes or "kappa" in kappa):
        raise InputError("the plan is not made yet; choose the files again")
    settings, ledger = project.settings, budget(project)
    for row in rows:  # without a ledger the fit's unit is that of the one that is made for it
        after = row.get("ledger_epsilon")
        spent = row["epsilon"] if after is None else float(after)
        row["left"] = max(-1.0, ledger["epsilon"] - spent)
        if row.get("gain_low") is not None:  # what is kept out for the score is not learned from
            row["scored"] = range_at(RANGES["WITH_DELTA"], (1 - TEST_SHARE) * row["signal"])
    meanings = WORDS["people" if project.by_classes else "pairs"].meaning
    planned = {row["unit"] for row in rows}
    units = [unit for unit in ("relationship", "person", "pair") if unit in planned]
    shown = settings.unit if settings.unit in units else units[0]
    return {
        "settings": settings,
        "rows": json.dumps(rows),
        "epsilons": EPSILONS,
        "recommended": plan["recommended"],
        "budget": ledger,
        "delta": usual_delta(project),
        "units": [(unit, meanings[unit], unit == shown) for unit in units],
        "graph": None if project.by_classes else _graph(rows, kappa, plan["recommended"]["select"]),
    }


def _graph(rows: list[dict[str, Any]], kappa: dict[str, Any], recommended: str) -> dict[str, Any]:
    """How the pairs hang together, before and after each selection."""
    given = kappa["kappa"]
    rows_of: dict[str, dict[str, Any]] = {}
    for row in rows:
        rows_of.setdefault(row["select"], {})[row["unit"]] = row
    counts = [("as given", kappa["n_pairs"], given["relationship"], given["person"])]
    for name, by in rows_of.items():
        kept = by["relationship"]
        counts.append(
            (f"selection '{name}'", kept["n_pairs_used"], kept["kappa"], by["person"]["kappa"])
        )
    return {
        "selects": [(name, SELECTIONS[name].says) for name in rows_of if name in SELECTIONS],
        "before": given["person"],
        "after": rows_of.get(recommended, {}).get("person", {}).get("kappa", 2),
        "n_pairs": kappa["n_pairs"],
        "n_people": kappa["n_people"],
        "counts": counts,
    }


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
    shape = MetricShape(features, features, (("", 1.0),))
    weights = (WeightRow("", 0, 2, 0.0, None),) if project.by_levels else ()
    data = ReportData(certificate, shape, linkage=weights)
    together = content.get("releases")
    return {
        **first_screen(data, None if together is None else Releases(**together)),
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
    from pairveil.release.signing import is_signed
    from pairveil.report.facts import read_release

    data = read_release(project.release)
    files = sorted(file.name for file in project.release.iterdir() if file.is_file())
    return {
        **first_screen(data),
        "files": files,
        "folder": str(project.release),
        "ledger": str(project.ledger),
        "key": str(project.key),
        "signed": is_signed(project.release),
        "score": data.summary.score,
        "uploads_left": any(project.table(which) for which in TABLES),
    }
