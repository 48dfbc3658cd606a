"""The table of kinds: each cost as docs/theory/records.md derives it, and as random neighbours reach it."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest

import pairveil
from pairveil.errors import InputError
from pairveil.records.kinds import ADJACENCIES, KINDS, Cost, units_of

ROOT = math.sqrt(2.0)
# kind, unit -> records (None: counted), zero-out, replace in l2, replace in l1 and range, emptied
DERIVED = {
    ("pairs", "pair"): (None, 1, 2, 2, True),
    ("pairs", "relationship"): (None, 1, 2, 2, True),
    ("pairs", "person"): (None, 1, 2, 2, True),
    ("counted pairs", "pair"): (None, 1, ROOT, 2, True),
    ("counted pairs", "relationship"): (None, 1, ROOT, 2, True),
    ("counted pairs", "person"): (None, 1, ROOT, 2, True),
    ("tuples", "pair"): (None, 1, 2, 2, True),
    ("tuples", "relationship"): (None, 1, 2, 2, True),
    ("tuples", "person"): (None, 1, 2, 2, True),
    ("groups", "pair"): (1, 2, 2, 2, False),
    ("groups", "relationship"): (1, 2, 2, 2, False),
    ("groups", "person"): (1, 2, 2, 2, False),
    ("people", "pair"): (2, 1, 2, 2, True),
    ("people", "relationship"): (2, 1, 2, 2, True),
    ("people", "person"): (1, 1, 2, 2, True),
    ("choices", "choice"): (1, 1, 2, 2, True),
    ("choices", "worker"): (None, 1, 2, 2, True),
    ("workers", "choice"): (1, 2, 2, 2, False),
    ("workers", "worker"): (1, 1, 2, 2, True),
}


def test_the_table_is_the_one_that_was_derived():
    assert {(kind.name, unit) for kind in KINDS.values() for unit in kind.units} == set(DERIVED)
    for (name, unit), (records, null, l2, other, emptied) in DERIVED.items():
        kind = KINDS[name]
        assert kind.touches.get(unit) == records
        assert kind.moves(unit) == Cost(1, null, l2, emptied)
        assert kind.moves(unit, l2=False) == Cost(1, null, other, emptied)
        counted = {} if records else {unit: 7}
        whole = kind.costs({**dict.fromkeys(kind.units, 3), **counted, **kind.touches})[unit]
        assert whole.records == (records or 7)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("signed", [True, False])
def test_clipped_vectors_are_no_further_apart_than_is_charged_and_that_far(order, signed):
    """Two vectors of length 1 at most: 2 apart, or sqrt(2) in l2 where no entry is negative."""
    rng = np.random.default_rng(order)
    drawn = rng.normal(size=(2, 4000, 3)) ** 3
    ends = np.eye(3)[:2, None] if not signed else np.stack([np.eye(3)[:1], -np.eye(3)[:1]])
    drawn = np.concatenate([drawn if signed else np.abs(drawn), ends], axis=1)
    one, other = drawn / np.linalg.norm(drawn, ord=order, axis=2, keepdims=True)
    apart = np.linalg.norm(one - other, ord=order, axis=1).max()
    kind = KINDS["pairs" if signed else "counted pairs"]
    assert apart == pytest.approx(kind.moves("pair", l2=order == 2).replace)


def test_units_that_are_not_the_same_are_not_mixed():
    assert units_of(["pairs", "groups", "people"]) == ("pair", "relationship", "person")
    with pytest.raises(InputError, match="no promise in common"):
        units_of(["pairs", "workers"])


def test_units_that_are_counted_must_be():
    with pytest.raises(KeyError):
        KINDS["pairs"].costs()
    person = KINDS["people"].costs({"person": 5})["person"]
    assert [person.sensitivity(adjacency) for adjacency in ADJACENCIES] == [5, 10]


# What else is called as a kind of records is: selections, losses, files that are given.
OTHER_MEANINGS = {"select", "loss", "which", "source", "given", "kinds"}


def compared_names(code: str) -> list[int]:
    """Lines that compare something with the name of a kind of records, or with a kind."""
    rows = {name for name, value in vars(pairveil.records.kinds).items() if value in KINDS.values()}
    found = []
    for one in ast.walk(ast.parse(code)):
        if not isinstance(one, ast.Compare):
            continue
        sides = [one.left, *one.comparators]
        parts = [part for side in sides for part in ast.walk(side)]
        named = any(
            isinstance(part, ast.Constant) and part.value in KINDS
            for side in sides
            for part in [side, *getattr(side, "elts", ())]
        )
        last = {getattr(side, "attr", getattr(side, "id", None)) for side in sides}
        last |= {getattr(part.args[1], "value", None) for part in parts if _is_getattr(part)}
        of_row = any(
            isinstance(side, ast.Attribute)
            and side.attr == "name"
            and getattr(side.value, "id", "") in rows
            for side in parts
        )
        if (named and not last & OTHER_MEANINGS) or of_row or last & rows:
            found.append(one.lineno)
    return found


def _is_getattr(part: ast.AST) -> bool:
    return isinstance(part, ast.Call) and getattr(part.func, "id", "") == "getattr"


def test_kinds_are_told_apart_by_their_row_alone():
    """A new kind is a row: nothing else may ask for a kind by its name."""
    source = Path(pairveil.__file__).parent
    found = {
        f"{file.relative_to(source)}:{line}"
        for file in source.rglob("*.py")
        if file != source / "records" / "kinds.py"
        for line in compared_names(file.read_text(encoding="utf-8"))
    }
    assert not found, "add a field to the row in records/kinds.py"


@pytest.mark.parametrize(
    "code",
    [
        'c.records == "groups"',
        'kind in ("pairs", "tuples")',
        "kind != PAIRS.name",
        "data.record_kind is GROUPS",
    ],
)
def test_a_comparison_with_a_kind_is_noticed(code):
    assert compared_names(code) == [1]
    assert compared_names('given.select == "groups" and loss == "pairs"') == []
