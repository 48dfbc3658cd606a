"""What is wrong with tables as they are read: one list, by kind of problem and row numbers, never a value.

Two kinds of faults are kept apart. *Structural* ones follow from ids alone, which are public: a pair of a
person with herself, an id without features, two rows of one id. They are refused, all of them in one
message, or left out where ``leave_out`` says so; what is released may depend on them. All others are private
contents: a label that is none, a cell that cannot be read. Such a row is never left out. It keeps its place
in the graph and contributes nothing (its cell is filled by a public value), so that neither the number of
pairs nor kappa, selection or digest tell that it was there; it is told to the operator alone.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from pairveil.errors import InputError
from pairveil.files import file_draft
from pairveil.printable import as_cell, many
from pairveil.records.identity import look_up_some, unknown_ids
from pairveil.records.tables import (
    BETWEEN,
    FeatureTable,
    PairTable,
    Problem,
    as_arrow,
    as_numpy,
    numbered,
    repeated_ids,
)
from pairveil.records.validation import name_rows, self_pairs

STRUCTURAL = ("repeated id", "repeated pair", "self-pair", "unknown id", "unknown pair")
"""Kinds of problems that follow from ids alone."""
SPACED = rf"(^|{BETWEEN})\s|\s({BETWEEN}|$)"


@dataclass(frozen=True)
class Problems:
    """All that is wrong with a table of people, levels or scores, and one of pairs."""

    found: tuple[Problem, ...] = ()
    # How many rows of people and of pairs were left out, by their ids alone
    left_out: tuple[int, int] = (0, 0)
    of: str = "people"

    def __str__(self) -> str:
        return "\n".join(f"{one.table}: {_sentence(one)}" for one in self.found)

    @property
    def structural(self) -> tuple[Problem, ...]:
        """Those that follow from ids alone."""
        return tuple(one for one in self.found if one.kind in STRUCTURAL)

    def counts(self) -> dict[str, int]:
        """What was left out, for an output: by kinds that follow from ids alone, and in rows."""
        kinds = {
            f"{one.kind.replace(' ', '_').replace('-', '_')}s": one.count for one in self.structural
        }
        return kinds | dict(zip((self.of, "pairs"), self.left_out, strict=True))

    @property
    def left_out_in_words(self) -> str:
        """How many rows and pairs were left out."""
        n_people, n_pairs = self.left_out
        return f"{many(n_pairs, 'pair', 'pairs')}, {many(n_people, 'row', 'rows')} of {self.of}"

    def refuse(self) -> None:
        """Raise InputError where something is wrong with ids: everything in one message."""
        if not self.structural:
            return
        said = [_sentence(one) for one in self.found]
        if len(said) == 1:
            or_else = f"or leave such pairs and {self.of} out, by their ids alone: leave_out=True"
            raise InputError(f"{said[0]}. Correct it, {or_else}")
        items = "".join(f"\n- {one}" for one in said)
        raise InputError(
            f"{len(said)} kinds of faults. Correct the tables, or leave out the pairs and {self.of} whose "
            f"ids are faulty, by their ids alone: leave_out=True{items}"
        )


def write_problems(path: str | Path, problems: Problems) -> None:
    """Write a list as CSV, for its owner alone: a row for each, without values.

    It is private: a file may be sorted by label, and then the number of a row tells one.
    """
    text = io.StringIO()
    rows = [
        (one.table, one.kind, as_cell(one.column), int(row))
        for one in problems.found
        for row in one.rows
    ]
    csv.writer(text).writerows([("table", "problem", "column", "row"), *rows])
    with file_draft(path, mode=0o600) as draft:
        draft.write_text(text.getvalue(), encoding="utf-8")


def sifted(
    people: FeatureTable,
    pairs: PairTable,
    *,
    leave_out: bool = False,
    told: Callable[[Problems], None] | None = None,
) -> tuple[PairTable, Problems]:
    """Pairs that can be joined with people (or levels, scores), and all that is wrong with both tables."""
    assert pairs.rows is not None
    asked, of = people.asked(pairs), people.of
    ends = look_up_some(asked, people.ids)
    unknown = np.any(ends < 0, axis=1)
    selves = np.asarray(pairs.left == pairs.right, dtype=bool)
    found = [*people.problems, *_spaces(of, people.ids, people.rows)]
    found += [Problem("pairs", "label", pairs.rows[pairs.null])] if pairs.null is not None else []
    found += _spaces("pairs", pairs.left, pairs.rows) + _spaces("pairs", pairs.right, pairs.rows)
    if selves.any():
        found.append(Problem("pairs", "self-pair", pairs.rows[selves]))
    strange = unknown
    if people.left_out is not None and unknown.any():  # somebody twice is no stranger
        again = look_up_some(asked, np.unique(people.left_out))
        strange = np.any((ends < 0) & (again < 0), axis=1)
    if of == "levels":  # a pair of a person with herself has none
        strange = strange & ~selves
    if strange.any():
        hint = unknown_ids(asked, people.ids, strange, "pairs", pairs.rows)
        kind = "unknown pair" if of == "levels" else "unknown id"
        found.append(Problem("pairs", kind, pairs.rows[strange], said=hint))
    wrong = unknown | selves
    n_people = 0 if people.left_out is None else len(people.left_out)
    problems = Problems(tuple(found), (n_people, int(wrong.sum()) if leave_out else 0), of)
    if told is not None:
        told(problems)
    if not leave_out:
        problems.refuse()
    elif wrong.all():
        raise InputError(
            "no pair is left: every one names an id without features (a pair without levels), or one "
            "person twice"
        )
    return pairs.subset(~wrong) if wrong.any() else pairs, problems


def _spaces(table: str, ids: np.ndarray, rows: np.ndarray | None) -> list[Problem]:
    """Ids with spaces around them: each is another id than the one without."""
    if ids.dtype.kind != "O":
        return []
    distinct, which = numbered(ids)
    spaced = as_numpy(pc.match_substring_regex(as_arrow(distinct), SPACED))[which]
    if not spaced.any():
        return []
    numbers = np.arange(1, len(ids) + 1) if rows is None else rows
    return [Problem(table, "spaces", numbers[spaced])]


def _sentence(problem: Problem) -> str:
    """A problem for people."""
    n, rows, where = problem.count, problem.rows, name_rows(problem.rows)
    if problem.kind == "cell":
        cells = many(n, "cell", "cells")
        return f"column '{problem.column}': {cells} cannot be read ({where}); {problem.said}"
    if problem.said:
        return problem.said
    if problem.kind == "repeated id":
        return repeated_ids(rows)
    if problem.kind == "repeated pair":
        return repeated_ids(rows, "levels", "a pair")
    if problem.kind == "self-pair":
        return self_pairs(rows)
    if problem.kind == "label":
        labels = many(n, "label", "labels")
        return f"{labels} cannot be read ({where}): such a pair stays and contributes nothing"
    spaced = f"{many(n, 'id', 'ids')} of the {problem.table} with spaces around ({where})"
    return f"{spaced}: other ids than those without, unless merge_similar_ids=True"
