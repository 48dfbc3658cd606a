"""What comes in from forms, checked; and a schema as fields of a form."""

from __future__ import annotations

import datetime
import math
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from pairveil.errors import InputError
from pairveil.files import write_file
from pairveil.printable import printable
from pairveil.schema.columns import ClassColumn
from pairveil.schema.schema import Schema, to_toml
from pairveil.studio.commands import EPSILONS
from pairveil.studio.project import Decisions, Project, bounded

MOST_BYTES = 1 << 20
TYPES = ("number", "category", "date", "class", "id", "skip")
MOST_TEXT = 300


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form; the last of several with one name."""
    too_long = "the form is too long: leave columns out of the table"
    body = b"".join([piece async for piece in bounded(request.stream(), MOST_BYTES, too_long)])
    try:
        pairs = parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=50_000
        )
    except ValueError:
        raise InputError("the form has too many fields: leave columns out of the table") from None
    return dict(pairs)


def with_columns(settings: Decisions, form: Mapping[str, str]) -> Decisions:
    """Settings with the names of columns that a form gives."""
    named: dict[str, Any] = {
        name: text(form, name)
        for name in ("id", "left", "right", "label", "classes")
        if text(form, name)
    }  # fmt: skip
    zero = text(form, "zero_means")
    named |= {name: text(form, name) for name in ("merge_similar_ids", "leave_out")}
    public, source = text(form, "public_classes"), form.get("learns_from", "pairs")
    decided = replace(settings, **named, learns_from=source, zero_means=zero, public_classes=public)
    if source == "classes" != settings.learns_from:
        return replace(decided, unit="person")  # where people are the records, the usual promise
    return decided


def with_choice(settings: Decisions, form: Mapping[str, str]) -> Decisions:
    """Settings with the plan that a form chooses."""
    try:
        epsilon = float(form.get("epsilon", ""))
    except ValueError:
        raise InputError("epsilon must be a number") from None
    if not (math.isfinite(epsilon) and 0 < epsilon <= max(EPSILONS)):
        raise InputError(f"epsilon must be above 0 and at most {max(EPSILONS):g} here")
    unit, select = form.get("unit", ""), form.get("select", settings.select)
    cover: dict[str, Any] = {
        n: text(form, n) for n in ("title", "institution", "purpose", "recipient", "audit", "score")
    }
    return replace(settings, epsilon=epsilon, unit=unit, select=select, **cover)


def with_levels(settings: Decisions, form: Mapping[str, str], n_comparisons: int) -> Decisions:
    """Settings with what is public about the levels of each comparison, and the prior."""
    sizes, prior = [text(form, f"levels-{at}") for at in range(n_comparisons)], text(form, "prior")
    if not all(one.isascii() and one.isdecimal() and int(one) > 1 for one in sizes):
        raise InputError("say of each comparison how many levels it has: two at least")
    try:
        if prior and not 0 < float(prior) < 1:
            raise ValueError
    except ValueError:
        raise InputError("how likely two records are a match is a number between 0 and 1") from None
    return replace(settings, n_levels=",".join(sizes), prior=prior)


def text(form: Mapping[str, str], name: str) -> str:
    """A line that somebody typed.

    Examples
    --------
    >>> text({"title": "  Tumours "}, "title"), text({}, "title")
    ('Tumours', '')
    """
    return printable(form.get(name, "")).strip()[:MOST_TEXT]


# ---- the schema -----------------------------------------------------------------------------------


def fields_of(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A schema's plain data, complete or not, as a form shows it: of each column text and ticks."""
    found = []
    for number, (name, table) in enumerate(data.get("columns", {}).items()):
        bounds = [_shown(value) for value in table.get("bounds", [])] or ["", ""]
        values = table.get("categories", table.get("values", []))
        one = {"name": str(name), "type": str(table.get("type", "skip")), "low": bounds[0]}
        one |= {"high": bounds[-1], "values": ", ".join(map(str, values))}
        one |= {key: _shown(table.get(key, "")) for key in ("fill", "format", "unit", "offset")}
        ticks = {"indicator": table.get("indicator") is True, "log": table.get("scale") == "log"}
        found.append({"number": number, **one, **ticks})
    return found


def _shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def keep_what_was_said(project: Project, kept: str) -> None:
    """Put what was said of columns before into a new template, where it has columns of the same names."""
    try:
        said = tomllib.loads(kept).get("columns", {})
        data = tomllib.loads(project.schema.read_text(encoding="utf-8"))
        columns = data.get("columns", {})
        fixed = ("id", "class")  # by the columns that were just chosen
        for name, facts in columns.items():
            before = said.get(name, facts)
            if facts.get("type") == before.get("type") or not {
                facts.get("type"), before.get("type")
            } & set(fixed):  # fmt: skip
                columns[name] = before
        if said:
            write_file(project.schema, to_toml(Schema.from_dict(data, "the columns")))
    except (InputError, AttributeError, TypeError, tomllib.TOMLDecodeError):
        return  # a template without it is as good


def save_schema(project: Project, data: Mapping[str, Any], form: Mapping[str, str]) -> Schema:
    """Write down the schema that a form says; blanks may stay.

    Raises InputError: with the column and what is wrong with it; nothing is written then.
    """
    decimal = form.get("decimal", data.get("decimal", "."))
    columns = {
        name: _column(number, name, form, decimal)
        for number, name in enumerate(map(str, data.get("columns", {})))
    }
    schema = Schema.from_dict({"version": 1, "decimal": decimal, "columns": columns}, "the columns")
    write_file(project.schema, to_toml(schema))
    return check_classes(project, schema)


def check_classes(project: Project, schema: Schema) -> Schema:
    """Refuse a column of classes without its public list, where it is learned from."""
    wanted = project.settings.classes
    if project.by_classes:
        listed = [len(one.values) for one in schema.columns if isinstance(one, ClassColumn)]
        if schema.classes != wanted:
            raise InputError(f"column '{wanted}' holds the classes: its kind must be class")
        if max(listed) < 2:
            raise InputError(f"column '{wanted}': list all classes that are possible, two at least")
    return schema


def _column(number: int, name: str, form: Mapping[str, str], decimal: str) -> dict[str, Any]:
    def said(key: str) -> str:
        return text(form, f"{key}-{number}")

    type_ = said("type")
    if type_ not in TYPES:
        raise InputError(f"column '{name}': choose a type")
    made: dict[str, Any] = {"type": type_}
    if type_ in ("number", "date"):
        format_ = said("format")
        read = partial(_number, decimal=decimal) if type_ == "number" else partial(_date, format_)
        ends = [said("low"), said("high")]
        if type_ == "number" and not any(ends):
            ends = [text(form, "all-low"), text(form, "all-high")]
        made["bounds"] = [read(name, end) for end in ends] if all(ends) else []
        if any(ends) and not all(ends):
            raise InputError(f"column '{name}': give both the lowest and the highest value")
        if said("fill"):
            made["fill"] = read(name, said("fill"))
        if type_ == "number" and said("unit"):
            made["unit"] = said("unit")
        if type_ == "number" and form.get(f"log-{number}") == "yes":
            made["scale"] = "log"
            if said("offset"):
                made["offset"] = read(name, said("offset"))
        if type_ == "date" and format_:
            made["format"] = format_
    elif type_ in ("category", "class"):
        listed = [part.strip() for part in form.get(f"values-{number}", "").split(",")]
        made["categories" if type_ == "category" else "values"] = [part for part in listed if part]
        if type_ == "category" and said("fill"):
            made["fill"] = said("fill")
    if type_ in ("number", "date", "category") and form.get(f"indicator-{number}") == "yes":
        made["indicator"] = True
    return made


def _number(name: str, said: str, decimal: str) -> float | int:
    """A number with either decimal mark; 1,500 is read only where the table has decimal commas."""
    plain = said
    whole, comma, rest = said.partition(",")
    if comma and "." not in said and (decimal == "," or len(rest) != 3):
        plain = f"{whole}.{rest}"
    try:
        value = float(plain)
    except ValueError:
        hint = "; write the decimal mark as a point, as in 36.5" if comma else ""
        raise InputError(f"column '{name}': '{said}' is not a number{hint}") from None
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _date(format_: str, name: str, said: str) -> str:
    """A day as 2025-12-31, or as the table writes it."""
    for known in ("%Y-%m-%d", format_):
        with suppress(ValueError):
            return datetime.datetime.strptime(said, known).date().isoformat()
    raise InputError(f"column '{name}': write dates as 2025-12-31, or as the table does")
