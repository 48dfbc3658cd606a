"""read_tuples: a file of relative comparisons, and answers made into orders of roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pairveil._warn import warn
from pairveil.errors import InputError, PrivateNote
from pairveil.records.columns import IdColumn, ids_as_text
from pairveil.records.files import ColumnKind, TableSource, open_table
from pairveil.records.resolving import rows_of_ids
from pairveil.records.similar_ids import folded_ids, say_similar
from pairveil.records.tables import FeatureTable
from pairveil.records.tupleset import ABSENT, Orders, TupleSet

ANCHOR, POSITIVE, NEGATIVE = "anchor", "positive", "negative"
ANSWER, CANDIDATE = "answer", "candidate"


def read_tuples(
    source: Any, features: FeatureTable, *, merge_similar_ids: bool = False
) -> TupleSet:
    """Read relative comparisons between people: 'the anchor is closer to the positive than to the negative'.

    Parameters
    ----------
    source : path, DataFrame or mapping
        A row a comparison, all with as many people. Columns ``anchor``, ``positive``, ``negative`` and, for
        more negatives, others whose names begin with 'negative' hold ids. Or columns ``anchor``,
        ``candidate1``, ``candidate2``, ... (at least two) hold ids, and ``answer`` says which candidate is
        nearest to the anchor: 1, 2, ... in the order of the columns. Other columns are not looked at.
    features : FeatureTable
        The people, as `read_features` gives them.
    merge_similar_ids : bool
        As for `read_pairs`.

    Returns
    -------
    TupleSet
        A comparison whose answer is missing, or names no candidate, is null: who was asked about is public
        and stays, what was answered is private and stops nothing.

    Raises
    ------
    InputError
        A column or an id is missing, a row names somebody without features, or somebody twice.

    Examples
    --------
    >>> people = FeatureTable(ids=["ann", "bob", "cid"], values=np.eye(3))
    >>> read_tuples({"anchor": ["ann"], "positive": ["cid"], "negative": ["bob"]}, people).tuples.tolist()
    [[0, 2, 1]]
    >>> asked = {"anchor": ["ann"], "candidate1": ["bob"], "candidate2": ["cid"], "answer": [2]}
    >>> read_tuples(asked, people).order.tolist()
    [[0, 2, 1]]
    """
    table = open_table(source)
    by_answer = ANSWER in table.names
    columns = _columns(table, by_answer)
    ids, answers = _read(table, columns, by_answer)
    if merge_similar_ids:
        ids = [folded_ids(one) for one in ids]
    else:
        say_similar("the tuples", *ids)
    if any(one.dtype.kind == "O" for one in ids):
        ids = [ids_as_text(one) for one in ids]
    rows = np.arange(1, len(ids[0]) + 1)
    members = rows_of_ids(ids, features.ids, "tuples", rows).astype(np.int64)
    order = None if answers is None else answered(answers, members.shape)
    return TupleSet(features.values, members, order, features.ids, features.names)


def _columns(table: TableSource, by_answer: bool) -> list[str]:
    """The columns of ids by role: the anchor first."""
    begins, first = (CANDIDATE, [ANCHOR]) if by_answer else (NEGATIVE, [ANCHOR, POSITIVE])
    others = [name for name in table.names if name.startswith(begins)]
    table.require(first, f"Tuples have {ANCHOR}, {POSITIVE} and {NEGATIVE}")
    if len(first) + len(others) < 3:
        wanted = f"{CANDIDATE}1, {CANDIDATE}2, ... and {ANSWER}" if by_answer else NEGATIVE
        raise InputError(f"{table.title} lacks columns of ids: {', '.join(first)}, {wanted}")
    return [*first, *others]


def _read(
    table: TableSource, columns: Sequence[str], by_answer: bool
) -> tuple[list[np.ndarray], np.ndarray | None]:
    wanted: dict[str, ColumnKind] = dict.fromkeys(columns, "text")
    if by_answer:
        wanted[ANSWER] = "text"
    ids = [IdColumn(f"column '{name}'") for name in columns]
    answers: list[float] = []
    for batch in table.batches(wanted):
        for place, column in enumerate(ids):
            column.add(batch.column(place))
        if by_answer:
            answers += map(_number, batch.column(len(columns)).to_pylist())
    found = [column.finish() for column in ids]
    if not len(found[0]):
        raise InputError(f"{table.title}: there are no tuples")
    return found, np.array(answers) if by_answer else None


def _number(answer: Any) -> float:
    """An answer as a number; what is none is private contents, and names no column."""
    try:
        return float(answer)
    except (TypeError, ValueError):
        return 0.0


def answered(y: Any, shape: tuple[int, ...]) -> Orders:
    """Orders from answers: column 0 is the anchor, the column named is the positive, the rest negatives.

    Examples
    --------
    >>> answered([1, 2], (2, 3)).tolist()
    [[0, 1, 2], [0, 2, 1]]
    """
    n, m = shape
    given = np.asarray(y)
    if given.shape != (n,) or given.dtype.kind not in "iuf":
        raise InputError(
            f"y must name, for each of the {n} tuples, the column (1 to {m - 1}) of who is nearest to the "
            f"one in column 0; got shape {given.shape}"
        )
    valid = np.isin(given, np.arange(1, m))
    if not valid.all():
        count = int((~valid).sum())
        warn(
            f"{count} answer{'s' * (count > 1)} name{'' if count > 1 else 's'} no column from 1 to {m - 1}: "
            "such a tuple contributes nothing",
            PrivateNote,
        )
    chosen = np.where(valid, given, 1).astype(np.int64)
    order = np.tile(np.arange(m), (n, 1))
    # The positive comes to place 1; those before it move back by one.
    for place in range(2, m):
        order[:, place] = np.where(place <= chosen, place - 1, place)
    order[:, 1] = chosen
    return np.where(valid[:, None], order, ABSENT).astype(np.int8)
