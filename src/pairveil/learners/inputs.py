"""From what a scikit-learn user passes to a learner to plain numbers, features stored once and row indices.

*Parameters.* numpy's short floats would do arithmetic in their own precision: ``np.float32(1)`` as epsilon
was once certified at 1.0000000585. So every number is made a Python number before anything is computed from
it, and epsilon and delta are never rounded up on the way.

*People named by text.* A table names its people by a text index (pandas), by an index of whole numbers that
is called ``id``, or by a text column ``id`` (pandas, polars, arrow). Other numbers in an index are row
numbers. Whole numbers in pairs are row numbers, as metric-learn has it, whatever the table's ids are.

*Raw rows* (``schema=``, ``bounds=``). A learner sees rows that are no longer than ``data_norm``: raw columns
by a schema, or numbers by their bounds, times a public factor. The factor is then part of ``components_``, so
that the metric takes what the schema makes (numbers in [0, 1]) or, with bounds, the raw numbers.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pairveil.column_names import frame_of, in_order, names_of
from pairveil.engine.plan import too_large
from pairveil.errors import InputError, PrivacyLeakWarning, PrivateNote, warn
from pairveil.foreign import as_csr
from pairveil.graph import SELECTIONS
from pairveil.graph.kappa import digest_of, graph_digest
from pairveil.printable import many
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms import NOISES
from pairveil.privacy.units import (
    ADJACENCIES,
    ASSUMED_CLASSES,
    ASSUMED_TOPOLOGY,
    PEOPLE_TOGETHER,
    UNITS,
    float_at_most,
)
from pairveil.records.canonical import NULL
from pairveil.records.groups import NO_CLASS, People, class_numbers, one_by_one
from pairveil.records.identity import value_numbers
from pairveil.records.kinds import TUPLES
from pairveil.records.pairset import PairSet
from pairveil.records.records import Records
from pairveil.records.scaling import PublicBounds, scale_to_bounds
from pairveil.records.tables import LabelColumn, as_ids, ids_as_text, refuse_repeated
from pairveil.records.tupleset import TupleSet, answered
from pairveil.records.validation import check_members, is_text, neither, without_levels
from pairveil.schema.schema import Schema, read_schema, to_toml

# ---- parameters ----------------------------------------------------------------------------------

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-12, 1e6

LARGEST_KAPPA = 10**15  # more pairs than there are: beyond, noise leaves the floats

_CHOICES: dict[str, tuple[str, ...]] = {
    "unit": UNITS,
    "select": tuple(SELECTIONS),
    "adjacency": ADJACENCIES,
    "mechanism": NOISES,
    "backend": ("auto", "numpy", "dask"),
}

_LIMITS = ("epsilon", "delta")  # what must not be exceeded


def plain_parameters(learner: Any) -> Any:
    """The parameters of a learner, as attributes; numbers are Python's own.

    ``learner``: its parameters need not have been checked: what is no real number stays as it is.
    """
    parameters = learner.get_params(deep=False)
    return SimpleNamespace(
        **{name: _plain(value, limit=name in _LIMITS) for name, value in parameters.items()}
    )


def _plain(value: Any, *, limit: bool) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return value
    if limit:
        return float_at_most(value)
    return int(value) if isinstance(value, int | np.integer) else float(value)


def check_epsilon(epsilon: Any) -> None:
    """Refuse a plain epsilon that is no number above 0, or so far out that it is a slip of the hand."""
    number = isinstance(epsilon, int | float) and not isinstance(epsilon, bool)
    if not (number and epsilon > 0):
        raise InputError("epsilon must be a number above 0 (float('inf') for no privacy)")
    if epsilon < SMALLEST_EPSILON:
        raise InputError(
            f"epsilon={float(epsilon):g} is too small: nothing could be learned; choose at least "
            f"{SMALLEST_EPSILON:g}"
        )
    if epsilon > LARGEST_EPSILON and epsilon != float("inf"):
        raise too_large(epsilon)


def check_common(given: Any, units: tuple[str, ...] = UNITS) -> None:
    """Refuse what makes no sense for any learner; each checks its own parameters in ``_check``.

    A learner need not have all of them: one of people selects no pairs.
    """
    named = vars(given)
    if "data_norm" in named:
        check_bound("data_norm", given.data_norm)
    check_epsilon(given.epsilon)
    check_share("delta", given.delta)
    for name, allowed in _CHOICES.items():
        if name in named:
            check_choice(name, named[name], units if name == "unit" else allowed)
    if not isinstance(given.accountant, PrivacyLedger | None):
        raise InputError("accountant must be a PrivacyLedger or None")
    kappa = named.get("kappa", "auto")
    if kappa != "auto" and not (is_whole(kappa) and 1 <= kappa <= LARGEST_KAPPA):
        raise InputError("kappa must be 'auto' or a whole number from 1 to 10^15")


def check_components(k: Any, n_features: int) -> None:
    """Refuse a number of components that no metric over so many features has; None is all of them."""
    if k is not None and not (is_whole(k) and 1 <= k <= n_features):
        raise InputError(
            f"n_components must be None or from 1 to {n_features}, the number of features"
        )


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse what is none of the names allowed."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}")


def check_share(name: str, value: object) -> None:
    """Refuse what is no number between 0 and 1."""
    if not (is_number(value) and 0 < value < 1):  # type: ignore[operator]
        raise InputError(f"{name} must be a number between 0 and 1, both excluded")


def check_whole(name: str, value: Any, *also: object, least: int = 1, most: int = 2**63) -> None:
    """Refuse what is no whole number in a range, and none of what else is allowed (None, or a word)."""
    if isinstance(value, str | None) and value in also:
        return
    if not (is_whole(value) and least <= value <= most):
        numbers = f"of at least {least}" if most == 2**63 else f"from {least} to {most}"
        allowed = [*map(repr, also), f"a whole number {numbers}"]
        raise InputError(f"{name} must be {' or '.join(allowed)}")


def check_bound(name: str, value: object) -> None:
    """Refuse what is no positive number, or so far out that sums would leave the range of floats."""
    if not (is_number(value) and 1e-9 <= float(value) <= 1e9):  # type: ignore[arg-type]
        raise InputError(f"{name} must be a number above 0 (from 1e-9 to 1e9)")


def is_number(value: object) -> bool:
    """Whether a value is a real number, Python's or numpy's; NaN, True and False are not."""
    return (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and value == value
    )


def is_whole(value: object) -> bool:
    """Whether a value is a whole number; True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


# ---- pairs, labels and features ------------------------------------------------------------------


def as_pair_array(pairs: Any) -> NDArray[Any]:
    """Pairs as a NumPy array, (K, 2) of row indices or (K, 2, d) of feature rows."""
    array = np.asarray(pairs)
    if array.ndim in (2, 3) and array.shape[1] == 2:
        return array
    raise InputError(
        f"pairs must have shape (n_pairs, 2) with preprocessor=X, or (n_pairs, 2, n_features); "
        f"got shape {array.shape}"
    )


def as_labels(y: Any, n_pairs: int, *, null: bool = False) -> NDArray[np.int8]:
    """Labels as int8 in {+1, -1}; anything else is refused without being shown.

    Of a `PairSet` they may be ``null``: 0 where mentions of a pair contradict each other, which is private.
    """
    if y is None:
        raise InputError(
            "y is missing: give +1 for each similar pair and -1 for each dissimilar one"
        )
    labels = np.asarray(y)
    if labels.ndim == 1 and any(isinstance(one, str) for one in labels[:1].tolist()):
        labels = _words(labels)
    if labels.shape != (n_pairs,):
        raise InputError(
            f"y must have one label for each of the {n_pairs} pairs; got {labels.shape}"
        )
    try:
        wrong = neither(labels if labels.dtype.kind in "iu" else labels.astype(np.float64))
    except (TypeError, ValueError):
        raise InputError(
            "y must be numbers: +1 for similar pairs, -1 for dissimilar ones"
        ) from None
    wrong = wrong[labels[wrong] != NULL] if null else wrong
    if wrong.size:
        raise InputError(
            f"y must be +1 (similar) or -1 (dissimilar): {wrong.size} labels are neither, "
            f"the first at position {wrong[0]}"
        )
    return labels.astype(np.int8, copy=False)


def _words(labels: NDArray[Any]) -> NDArray[np.int8]:
    """Labels written as words ('same', 'different', ...), as in files."""
    words = LabelColumn()
    try:
        words.add(pa.array(labels.tolist(), pa.string()))
    except (pa.ArrowException, TypeError):  # whose messages quote
        raise InputError("y must be one kind: words for similar and dissimilar, or +1/-1") from None
    return words.finish(None)


def lookup(preprocessor: Any, rows: NDArray[Any], names: Any = None) -> NDArray[np.float64]:
    """Feature rows of the people that ``rows`` names, by array, table or callable.

    ``names`` are the columns the rows must have, in order, where a table names its columns.
    """
    if preprocessor is None:
        raise InputError(
            "indices were given but there is no preprocessor: pass preprocessor=X (a pickled learner "
            "forgets it, since it holds people's features), or pass feature rows"
        )
    if callable(preprocessor):
        return as_features(in_order(preprocessor(rows), names))  # type: ignore[no-any-return]
    table = as_features(in_order(preprocessor, names))
    check_rows(rows, table.shape[0])
    found = table[rows]
    return found.toarray() if sparse.issparse(found) else found  # type: ignore[no-any-return]


def as_features(X: Any) -> Any:
    """Features as a float array or CSR matrix; the values are never part of a message."""
    if sparse.issparse(X):
        return as_csr(X)
    try:
        array = np.asarray(X)
        if array.dtype != np.float32:
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError("features must be numbers: some column is not numeric") from None
    if array.ndim != 2:
        raise InputError(f"features must have shape (n_people, n_features); got {array.shape}")
    return array


def check_rows(rows: NDArray[Any], n_people: int) -> None:
    """Refuse row indices that are no integers or name nobody."""
    if not np.issubdtype(rows.dtype, np.integer):
        raise InputError(
            "pairs of shape (n_pairs, 2) must hold integer row indices into preprocessor"
        )
    if rows.size and (rows.min() < 0 or rows.max() >= n_people):
        raise InputError(
            f"a pair names a row outside the preprocessor's {n_people} rows (rows count from 0)"
        )


def people_of_rows(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Recognise people by equal rows: features stored once, and (K, 2) indices into them."""
    features, where = np.unique(rows, axis=0, return_inverse=True)
    pairs = where.reshape(-1, 2).astype(np.int64)
    # Two people with equal features are still two: the second gets a row of his own, so that
    # the pair stays an edge of the graph (with a zero difference) instead of a loop. One twin for each
    # such row, whose number does not depend on the order of the pairs.
    loops = pairs[:, 0] == pairs[:, 1]
    twins, which = np.unique(pairs[loops, 1], return_inverse=True)
    pairs[loops, 1] = len(features) + which
    return np.concatenate([features, features[twins]]), pairs


class Resolved(NamedTuple):
    """What a fit learns from, in canonical order."""

    data: Any
    positions: NDArray[Any] | None = None  # of each record among those given; None: where they were
    inferred: bool = False  # whether the topology had to be read off equal rows
    # What else is known of them: attributes of `pairveil.learners.preparing.PreparedRecords` (``public``
    # and ``for_release`` add to its own), ``kappas`` of units that no graph tells
    facts: Mapping[str, Any] = {}
    secret: bytes | None = None  # what pairs of row numbers are named with (`own_secret`)


def given_pairs(
    pairs: Any, y: ArrayLike | None, preprocessor: Any, ids: Any = None
) -> tuple[PairSet, bool]:
    """What was passed to ``fit`` as a PairSet in the order given, and whether the topology was read off
    equal rows. ``ids`` name the rows of the preprocessor."""
    if isinstance(pairs, PairSet):
        if y is None and pairs.labels is not None:
            return pairs, False
        labels = as_labels(pairs.labels if y is None else y, pairs.n_pairs)
        return pairs.replace(labels=labels), False
    if np.ndim(pairs) == 2 and np.shape(pairs)[1] != 2:
        raise InputError(
            f"pairs must have shape (n_pairs, 2); got {np.shape(pairs)}. People with a class each are for "
            "fit_classes(X, y, classes), or for fit(X, y) of DPPMetricLearner(classes=[...])"
        )
    array = as_pair_array(pairs)
    if len(array) == 0:
        raise InputError("there are no pairs to learn from")
    labels = as_labels(y, len(array))
    if array.ndim == 3:
        rows = as_features(array.reshape(-1, array.shape[2]))
        advice = "; pass preprocessor=X and index pairs instead"
        warn(ASSUMED_TOPOLOGY + advice, PrivacyLeakWarning)
        return PairSet(*people_of_rows(rows), labels), True
    if preprocessor is None:
        lookup(None, array)
    table, places = _looked_up(preprocessor, array)
    features = as_features(table)
    check_rows(places, features.shape[0])
    return PairSet(features, places, labels, ids, names_of(table)), False


def _looked_up(preprocessor: Any, array: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    """A table of people, and their rows in it; of those who occur, where the preprocessor is a function."""
    if not callable(preprocessor):
        return preprocessor, array
    people, where = np.unique(array, return_inverse=True)
    return preprocessor(people), where.reshape(array.shape)


def resolve_tuples(tuples: Any, y: Any, preprocessor: Any, ids: Any = None) -> TupleSet:
    """What was passed to ``fit`` as a TupleSet, in the order given.

    y: the column of who is nearest to the one in column 0; None: column 1.
    """
    if isinstance(tuples, TupleSet):
        if y is not None:
            raise InputError("a TupleSet holds its answers: leave y out")
        return tuples
    if hasattr(tuples, "features"):
        raise InputError(
            "this learner learns from tuples: a TupleSet, or row numbers of shape (K, m)"
        )
    if preprocessor is None:
        raise InputError("tuples of row numbers need preprocessor=X, one row a person")
    table, places = _looked_up(preprocessor, check_members(tuples, TUPLES))
    features = as_features(table)
    members = check_members(places, TUPLES, features.shape[0])
    order = None if y is None else answered(y, members.shape)
    return TupleSet(features, members, order, ids, names_of(table))


def resolve_people(X: Any, y: Any, classes: Any, ids: Any, together: Any) -> Resolved:
    """People with classes, in the order of their ids; parameters as for ``fit_classes``."""
    people, listed = _people(X, y, classes, ids)
    read_off = classes is None and not isinstance(X, People)
    unlisted = int(np.count_nonzero(people.classes == NO_CLASS))
    if unlisted:
        warn(
            f"{many(unlisted, 'person has', 'people have')} a class that is not in the list, and "
            f"{'contributes' if unlisted == 1 else 'contribute'} nothing",
            PrivateNote,
        )
    people, order = people.canonical()
    facts: dict[str, Any] = {"classes": tuple(listed), "for_release": not read_off}
    facts["public"] = (ASSUMED_CLASSES,) if read_off else ()
    if together is not None:  # people with equal public values change together
        shared = value_numbers(together, people.n_records)
        facts["together"] = shared if order is None else shared[order]
        facts["public"] += (PEOPLE_TOGETHER,)
        facts["kappas"] = {"person": int(np.bincount(shared).max())}
    return Resolved(people, order, facts=facts)


def _people(X: Any, y: Any, classes: Any, ids: Any) -> tuple[People, list[Any]]:
    if isinstance(X, People):
        if y is not None or classes is not None or ids is not None:
            raise InputError("People hold their classes and ids: leave y, classes and ids out")
        return _distinct(X), list(range(X.n_classes))
    if y is None:
        raise InputError("y is missing: give each person's class")
    values = one_by_one(y)
    if values.ndim != 1:
        raise InputError("y must hold one class a person")
    listed = _read_off(values) if classes is None else list(one_by_one(classes).tolist())
    features = as_features(X)
    if len(values) != features.shape[0]:
        raise InputError(f"{features.shape[0]} people need as many classes; got {len(values)}")
    if features.shape[0] == 0:
        raise InputError("there are no people to learn from")
    named = None if ids is None else np.asarray(ids)
    if named is not None and named.shape != values.shape:
        raise InputError(f"{len(values)} people need as many ids; got {named.size}")
    numbers = class_numbers(values, listed)
    return _distinct(People(features, numbers, len(listed), named)), listed


def _read_off(values: NDArray[Any]) -> list[Any]:
    """Classes that occur; a missing one (None or NaN) is none."""
    found = {one for one in values.tolist() if one is not None and one == one}
    if len(found) < 2:
        raise InputError("there must be at least two classes to tell apart; list them in classes=")
    return sorted(found, key=lambda one: (type(one).__name__, one))


def _distinct(people: People) -> People:
    if people.ids is None:
        return people
    ids = np.asarray(people.ids)
    if ids.dtype.kind not in "iu":
        whole = [int(i) if isinstance(i, float) and i.is_integer() else i for i in ids.tolist()]
        ids = np.array(list(map(str, whole)), dtype=object)  # 1.0 and 1 are one person
    if len(set(ids.tolist())) != len(ids):
        raise InputError(
            "an id occurs twice: a person is one row, or would be protected by half (a text index of a table "
            "names people: reset it if it does not)"
        )
    return people.replace(ids=ids)


# ---- people named by text ------------------------------------------------------------------------

ID = "id"


def row_numbers(pairs: Any, table: Any, called: str = "preprocessor") -> Any:
    """Pairs, tuples or people as row numbers where text names people; anything else as it is."""
    if isinstance(pairs, Records) or sparse.issparse(pairs) or not hasattr(pairs, "__len__"):
        return pairs
    pairs = without_levels(pairs)
    array = np.asarray(pairs)
    if array.ndim > 2 or not is_text(array):
        return pairs
    what = "rows" if array.ndim == 1 else "pairs" if array.shape[1] == 2 else "tuples"
    known = ids_of(table)
    if known is None:
        raise InputError(
            f"{what} name people by text, but {called} does not: give it a text index (pandas) or a text "
            f"column '{ID}', whatever a schema calls the ids"
        )
    refuse_repeated(known)
    asked = ids_as_text(as_ids(array.ravel().astype(object), what))
    found = pc.index_in(
        pa.array(asked, pa.large_string()), value_set=pa.array(known, pa.large_string())
    )
    nobody = found.is_null().to_numpy(zero_copy_only=False).reshape(len(array), -1).any(axis=1)
    unknown = np.flatnonzero(nobody)
    if unknown.size:
        raise InputError(
            f"{unknown.size} of {len(array)} {what} name an id without features (the first at position "
            f"{unknown[0]})"
        )
    rows: NDArray[Any] = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return rows.reshape(array.shape)


OWN_ROWS = "rows "
"""How the names begin that one learner gives to pairs of its own row numbers."""

_OWN: WeakKeyDictionary[Any, tuple[tuple[ref[Any], ...], str, bytes]] = WeakKeyDictionary()
"""Learner -> the table whose rows it counts, and a secret. Outside the learner: no copy or pickle of it has
them, and the table lives no longer than with whoever else holds it."""

FITTED: WeakKeyDictionary[Any, tuple[str | None, Mapping[str, str]]] = WeakKeyDictionary()
"""Learner -> the name of the pairs that it was fitted to last, and what units mean; for the same reason."""


def own_secret(learner: Any, pairs: Any, *, guessed: bool) -> bytes | None:
    """What a learner names pairs of its own row numbers with; None where they number no table's rows.

    Ids name people, whoever fits them. Row numbers do not: row 3 of two tables is two people, so a name made
    of row numbers alone would call different pairs the same, and a relationship that runs through both would
    be charged for one of them. But row 3 of *one table object* is one person as long as the object is. So
    pairs of row numbers are named with a secret of this learner and this table: equal names mean the same
    learner, the same object and the same row numbers, and a copy, a clone, another process or another table
    makes other names, which are added up as different pairs are. So does an array that was written to, as by
    a shuffle in place.
    """
    table = pairs.features if isinstance(pairs, PairSet) else learner.preprocessor
    if guessed or table is None or callable(table):
        return None
    # The table, and its index: pandas gives a table that it sorts in place a new one.
    here = (table, getattr(table, "index", table))
    held: Any = np.ascontiguousarray(table).view(np.uint8) if _is_plain_array(table) else b""
    mark = hashlib.sha256(held).hexdigest()
    seen, before, secret = _OWN.get(learner, ((), "", b""))
    same = before == mark and all(one() is part for one, part in zip(seen, here, strict=True))
    if seen and same:
        return secret
    try:
        _OWN[learner] = tuple(map(ref, here)), mark, secrets.token_bytes(32)
    except TypeError:  # a list: nothing tells whether it is the same one
        return None
    return _OWN[learner][-1]


def _is_plain_array(table: Any) -> bool:
    return isinstance(table, np.ndarray) and not table.dtype.hasobject


def name_of_pairs(used: Any, secret: bytes | None) -> str | None:
    """A name for who is paired with whom, by which a ledger knows the very same pairs; None: not known."""
    named = graph_digest(used)
    if named is not None or secret is None or not isinstance(used, PairSet):
        return named
    return OWN_ROWS + digest_of(np.arange(used.n_people), used.pairs, secret)


def ids_of(table: Any) -> NDArray[Any] | None:
    """The ids of a table's rows, or None where it names nobody."""
    column = _text_column(table)
    if column is not None:
        return column
    index = getattr(table, "index", None)
    if index is None or callable(index) or not hasattr(table, "iloc"):
        return None
    if index.name == ID and index.dtype.kind in "iu":
        numbers: NDArray[Any] = index.to_numpy()
        return numbers
    values = index.to_numpy(dtype=object)
    return values if len(values) and all(isinstance(one, str) for one in values.tolist()) else None


def without_ids(table: Any) -> Any:
    """A table without its text column ``id``, which is no feature; anything else as it is."""
    return table if _text_column(table) is None else frame_of(table).drop(ID).to_native()


def _text_column(table: Any) -> NDArray[Any] | None:
    if ID not in (names_of(table) or ()):
        return None
    values = np.array(frame_of(table).get_column(ID).to_list(), dtype=object)
    return values if len(values) and all(isinstance(one, str) for one in values.tolist()) else None


# ---- raw rows ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RawRows:
    """How a learner's rows are read: by a schema, by bounds, or as they are."""

    schema: Schema | None
    bounds: PublicBounds | None
    data_norm: float

    @classmethod
    def of(cls, learner: Any) -> RawRows:
        """What a learner's parameters say; refuses what cannot be, before anything is spent."""
        schema, bounds = getattr(learner, "schema", None), getattr(learner, "bounds", None)
        if schema is not None and bounds is not None:
            raise InputError("give schema or bounds, not both: a schema states bounds itself")
        if isinstance(schema, str | Path):
            schema = read_schema(schema)
        if schema is not None and not isinstance(schema, Schema):
            raise InputError("schema must be a Schema (read_schema), or the path of its file")
        if schema is not None:
            schema.check()
        if isinstance(bounds, str | Path):
            bounds = PublicBounds.read(bounds)
        if isinstance(bounds, Mapping | list | tuple | np.ndarray):
            bounds = _from_pairs(bounds)
        if bounds is not None and not isinstance(bounds, PublicBounds):
            raise InputError(
                "bounds must be {column: (lower, upper)}, a list of (lower, upper), PublicBounds or a "
                "file's path"
            )
        return cls(schema, bounds, getattr(learner, "data_norm", 1.0))

    @property
    def is_plain(self) -> bool:
        """Whether rows are taken as they are."""
        return self.schema is None and self.bounds is None

    def scale(self, n_columns: int) -> NDArray[np.float64] | None:
        """What each column that the metric takes is multiplied by before learning; None: nothing."""
        if self.schema is not None:
            return np.full(n_columns, self.schema.factor(self.data_norm))
        if self.bounds is not None:
            width = self.bounds.upper - self.bounds.lower
            return np.asarray(self.data_norm / width / np.sqrt(n_columns))
        return None

    def names(self) -> tuple[str, ...] | None:
        """Names of the raw columns, where they are known here."""
        if self.schema is not None:
            return self.schema.raw_names
        return None if self.bounds is None else self.bounds.names

    def named(self, about: str) -> str:
        """By what rows were read, for a checkpoint; ``about`` where they were taken as they are."""
        if self.schema is not None:
            return to_toml(self.schema)
        if self.bounds is None:
            return about
        names, lower, upper = self.bounds.names, self.bounds.lower, self.bounds.upper
        return repr([names, lower.tolist(), upper.tolist()])

    # ---- rows -----------------------------------------------------------------------------------

    def measured(self, table: Any) -> Any:
        """Rows as the metric takes them."""
        if self.schema is not None:
            return self.schema.apply(table)
        return self._ordered(table)

    def learned(self, table: Any) -> Any:
        """Rows as the learner sees them: no longer than ``data_norm``."""
        if self.schema is not None:
            return self.schema.apply(table) * self.schema.factor(self.data_norm)
        if self.bounds is None:
            return table
        rows = as_features(self._ordered(table))
        return scale_to_bounds(rows, self.bounds, data_norm=self.data_norm)

    def _ordered(self, table: Any) -> Any:
        """A table with the columns of the bounds, in their order, which is that of the metric."""
        return table if self.bounds is None else in_order(table, self.bounds.names)

    def inputs(self, pairs: Any, preprocessor: Any, *, learning: bool) -> tuple[Any, Any]:
        """Pairs and preprocessor as the resolver takes them, their rows read."""
        if self.is_plain:
            return pairs, preprocessor
        read = self.learned if learning else self.measured
        if isinstance(pairs, PairSet):
            return _read_pair_set(pairs, read, self.schema), preprocessor
        array = as_pair_array(pairs)
        if array.ndim == 3:
            rows = np.asarray(read(array.reshape(-1, array.shape[2])))
            return rows.reshape(len(array), 2, -1), preprocessor
        return pairs, _read_table(preprocessor, read)

    def table(self, preprocessor: Any, records: Any) -> Any:
        """A preprocessor whose rows are read for learning, for records that are row numbers into it."""
        if self.is_plain:
            return preprocessor
        if hasattr(records, "features"):
            raise InputError(
                f"a {type(records).__name__} holds numbers that were scaled: leave schema and bounds out"
            )
        return _read_table(preprocessor, self.learned)

    def people(self, X: Any) -> Any:
        """People with classes, their rows read for learning."""
        if self.is_plain:
            return X
        if isinstance(X, People):
            raise InputError("People hold numbers that were scaled: leave schema and bounds out")
        return self.learned(X)


def _read_table(preprocessor: Any, read: Any) -> Any:
    if callable(preprocessor):
        return lambda rows: read(preprocessor(rows))
    return None if preprocessor is None else read(preprocessor)


def _read_pair_set(data: PairSet, read: Any, schema: Schema | None) -> PairSet:
    table = data.features
    if data.feature_names is not None and not sparse.issparse(table):
        table = pa.table({name: table[:, at] for at, name in enumerate(data.feature_names)})
    names = data.feature_names if schema is None else schema.feature_names
    return data.replace(features=as_features(read(table)), feature_names=names)


def _from_pairs(bounds: Any) -> PublicBounds:
    """Bounds from (lower, upper) by column name, or one for each column in order."""
    named = bounds if isinstance(bounds, Mapping) else {None: None}
    given = bounds if isinstance(bounds, Mapping) else dict(enumerate(bounds, start=1))
    for name, pair in given.items():
        if np.shape(pair) != (2,):
            column = f"column {name}" if named is not bounds else f"'{name}'"
            raise InputError(f"the bounds of {column} must be (lower, upper)")
    names = tuple(map(str, bounds)) if named is bounds else None
    ends = np.array([list(pair) for pair in given.values()], dtype=object).reshape(-1, 2)
    return PublicBounds(ends[:, 0], ends[:, 1], names)
