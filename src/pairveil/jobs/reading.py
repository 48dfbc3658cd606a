"""Reads what jobs take: files read here, or paths that the workers of a cluster read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pairveil.errors import InputError, PrivacyLeakWarning, warn
from pairveil.jobs.options import PairOptions, PeopleOptions, ScalingOptions, listed
from pairveil.privacy.units import ASSUMED_CLASSES
from pairveil.records.kinds import GROUPS, PAIRS, PEOPLE, TUPLES, RecordKind


class Training(NamedTuple):
    """What a fit learns from."""

    prepare: Callable[[Any], Any]  # from a learner to its prepared fit
    names: tuple[str, ...] | None  # of the columns
    scale: Any  # the public factor that each column was brought by
    pairs: Any = None  # by their ids, where they were read here
    schema: Any = None  # by which raw columns became numbers
    left_out: Mapping[str, int] | None = None  # by ids alone, where that was asked for


def for_workers(*paths: str) -> bool:
    """Whether the workers of a cluster read these: all or none name a file system (``s3://...``).

    Examples
    --------
    >>> for_workers("people.csv", "pairs.csv"), for_workers("s3://b/people.npy", "s3://b/pairs")
    (False, True)
    """
    far = ["://" in path for path in paths]
    if any(far) and not all(far):
        raise InputError(
            "FEATURES and PAIRS are both read here or both by the workers; "
            "file:///FOLDER/FILE is a file that workers read"
        )
    return all(far)


def open_for_workers(
    features: str, pairs: str, columns: tuple[str, str, str], unused: Sequence[str]
) -> Training:
    """Features and pairs that the workers of the connected cluster read, by row number.

    ``unused``: options that were given and change how files are read here; there must be none.
    """
    from pairveil.engine.backends.dask import open_dask_pairs

    if unused:
        raise InputError(
            f"{unused[0]} does not apply to files that workers read: "
            "they hold row numbers, labels +1 and -1, and scaled columns"
        )
    data = open_dask_pairs(features, pairs, columns)
    return Training(lambda one: one.prepare(data), data.feature_names, np.ones(data.n_features))


def read_rows(
    features: Path,
    used: PeopleOptions,
    merge_similar_ids: bool,
    apart: Sequence[str] = (),
    leave_out: bool = False,
) -> tuple[Any, Any]:
    """People's features, encoded by a schema where one is given, and the schema of the columns used.

    Columns that are read ``apart``, such as that of classes, are no features.
    """
    from pairveil.records.ondisk import is_array_file
    from pairveil.records.readers import read_features
    from pairveil.schema.schema import read_schema

    wanted, left_out, id_column = listed(used.columns), listed(used.exclude) or [], used.id
    if not is_array_file(features):
        left_out = [*left_out, *apart]
    public = None if used.schema is None else read_schema(used.schema)
    if public is not None:
        named = {column.name for column in public.columns}
        public = public.only(wanted, [one for one in left_out if one not in apart or one in named])
        wanted, left_out = None, []
        id_column = public.id if public.id is not None and id_column == "id" else id_column
    people = read_features(
        features,
        id=id_column,
        columns=wanted,
        exclude=left_out,
        merge_similar_ids=merge_similar_ids,
        schema=public,
        leave_out=leave_out,
    )
    return people, public


@contextmanager
def noticing_swapped(
    features: Path | str, listed: Path | str, left: str, right: str, schema: Path | None = None
) -> Iterator[None]:
    """Where tables cannot be read because the two files are swapped, that is said."""
    from pairveil.records.files import open_table
    from pairveil.records.readers import guess_label
    from pairveil.schema.schema import read_schema

    try:
        yield
    except InputError:
        swapped = False
        with suppress(InputError):
            people, pairs = open_table(features), open_table(listed)
            raw = set() if schema is None else set(read_schema(schema).raw_names)
            swapped = {left, right} <= set(people.names) and not {left, right} & set(pairs.names)
            swapped |= raw != set() and raw <= set(pairs.names) and not raw & set(people.names)
            if not swapped and len(people.names) < len(pairs.names):
                swapped = guess_label(features) is not None and guess_label(listed) is None
        if swapped:
            raise InputError(
                f"{people.title} has the columns of pairs, and {pairs.title} has not: are the two files "
                "swapped?"
            ) from None
        raise


def likely_label(file: str, said: PairOptions) -> str:
    """The column of labels for a command to paste: as it was named, or guessed where it is not there."""
    from pairveil.records.files import open_table
    from pairveil.records.readers import guess_label

    with suppress(InputError):  # another layout, or a file that was read once
        names, ends = open_table(file).names, (said.left, said.right)
        if said.label not in names and set(ends) <= set(names):
            return guess_label(file, ends) or said.label
    return said.label


def kept_of(people: Any, values: Any) -> Any:
    """One value a row of the features, for those people who were not left out."""
    return values if people.rows is None or values is None else values[people.rows - 1]


def bring_to_scale(people: Any, schema: Any, scaling: ScalingOptions) -> tuple[Any, Any]:
    """People brought to scale, and the public factor that each column was brought by."""
    from pairveil.records.scaling import PublicBounds, scale_to_bounds
    from pairveil.records.validation import check_data_norm

    norm = scaling.data_norm
    if schema is not None:
        factor = schema.factor(check_data_norm(norm))
        return replace(people, values=people.values * factor), np.full(people.n_features, factor)
    if scaling.bounds is None:
        return people, np.ones(people.n_features)
    public = PublicBounds.read(scaling.bounds).ordered(people.names)
    values = scale_to_bounds(people.values, public, data_norm=norm)
    factors = norm / (public.upper - public.lower) / np.sqrt(len(public.lower))
    return replace(people, values=values), factors


def read_column(features: str | Path, column: str | None, option: str) -> Any:
    """Each person's class, household or the like as text, in the order of the rows; None where there is none.

    Classes are private: a person without one contributes nothing, and stops no fit.
    """
    from pairveil.column_names import cell_text
    from pairveil.records.files import open_table, require_file
    from pairveil.records.ondisk import is_array_file, read_array_column

    if column is None:
        return None
    if is_array_file(Path(features)):
        values = read_array_column(require_file(features), column).tolist()
    else:
        table = open_table(features)
        table.require([column], f"Name one of these with {option}")
        values = [one for batch in table.batches([column]) for one in batch.column(0)]
    texts = [(cell_text(one) or "").strip() or None for one in values]
    return np.array(texts, dtype=object)


class Source(NamedTuple):
    """The files that are read here, and what of them is learned from."""

    features: str
    pairs: str | None
    kind: str  # a key of `pairveil.jobs.fit.FILES_OF`
    classes: str | None = None
    public: list[str] | None = None
    groups: str | None = None
    together: str | None = None

    @property
    def records(self) -> RecordKind:
        """What is learned from."""
        if self.groups is not None:
            return GROUPS
        return {"pairs": PAIRS, "tuples": TUPLES, "classes": PEOPLE}[self.kind]


def read_training(
    of: Source, used: PeopleOptions, scaling: ScalingOptions, reading: PairOptions
) -> Training:
    """People with pairs, groups, tuples or classes, read here."""
    shared = read_column(of.features, of.together, "--together")
    apart = [one for one in (of.classes, of.together) if one is not None]
    dealt: Any = "auto"
    if of.classes is not None:
        classes = read_column(of.features, of.classes, "--classes")
        dealt = read_dealing(of.features, of.groups)
        apart += [str(of.groups)] if np.ndim(dealt) else []
        _check_list(of.public)
    # Where there are pairs, all that is wrong with both tables is told at once, further down.
    lenient = reading.leave_out or of.records.pairwise
    with noticing_swapped(of.features, str(of.pairs), reading.left, reading.right, used.schema):
        raw, facts = read_rows(Path(of.features), used, reading.merge_similar_ids, apart, lenient)
    people, scale = bring_to_scale(raw, facts, scaling)

    def training(data: Any, pairs: Any = None) -> Training:
        return Training(lambda one: one.prepare(data), people.names, scale, pairs, facts)

    if of.classes is not None:
        dealt = kept_of(people, dealt) if np.ndim(dealt) else dealt
        values, null = people.readable()
        given = (values, np.where(null, None, kept_of(people, classes)), of.public, dealt)
        who = {"ids": people.ids, "together": kept_of(people, shared)}
        return training(None)._replace(prepare=lambda one: one.prepare_classes(*given, **who))
    file = Path(str(of.pairs))
    if of.records.on_tuples:
        from pairveil.records.readers import read_tuples

        return training(read_tuples(file, people, merge_similar_ids=reading.merge_similar_ids))
    if of.groups is not None:
        from pairveil.records.readers import read_groups

        said = ("left", "right", "label", "zero_means", "merge_similar_ids")
        options = {name: getattr(reading, name) for name in said}
        return training(read_groups(file, people, of.groups, **options))
    from pairveil.records.pairset import PairSet

    found, left_out = reading.sifted(people, reading.read_pairs(file, whole=True))
    data = PairSet.join(people, found, together=kept_of(people, shared))
    return training(data, found)._replace(left_out=left_out)


def _check_list(public: Sequence[str] | None) -> None:
    if public is None:
        warn(
            f"{ASSUMED_CLASSES}; the metric is not for release. List the classes with --class-list",
            PrivacyLeakWarning,
        )
    elif len(set(public)) != len(public) or len(public) < 2 or not all(public):
        raise InputError("--class-list must name each class once, and at least two: a,b,c")


def marked_classes(
    schema: Path | None, column: str | None, class_list: str | None
) -> tuple[str | None, list[str] | None]:
    """The column of classes and their public list; what was not said is what a schema marks."""
    public = None if class_list is None else [one.strip() for one in class_list.split(",")]
    if schema is None:
        return column, public
    from pairveil.schema.schema import read_schema

    facts = read_schema(schema)
    column = facts.classes if column is None else column
    if public is None and column is not None and column == facts.classes:
        marked = next(one for one in facts.columns if one.name == column)
        public = list(marked.to_dict().get("values", ())) or None
    return column, public


def read_dealing(features: str | Path, groups: str | None) -> Any:
    """How people with classes are dealt into groups: 'auto', a size, or each one's group (-1 for none).

    Examples
    --------
    >>> read_dealing("people.csv", "8"), read_dealing("people.csv", None)
    (8, 'auto')
    """
    if groups is None:
        return "auto"
    if groups.isdecimal():
        return int(groups)
    values = read_column(features, groups, "--groups, or a size")
    texts = np.array([one or "" for one in values.tolist()])
    names, numbers = np.unique(texts, return_inverse=True)
    return numbers - (1 if names[0] == "" else 0)  # empty text comes first


# ---- for a release that is there -----------------------------------------------------------------


def read_people_of(
    metric: Any, features: Path, id: str, apart: str | None = None, leave_out: bool = False
) -> Any:
    """The metric's own columns of a features file, in the metric's order; raw ones where it has a schema.

    ``apart``: a column that is read by itself, and is no feature where the metric does not name its own.
    """
    from pairveil.column_names import in_order_of
    from pairveil.records.files import open_table
    from pairveil.records.ondisk import is_array_file
    from pairveil.records.readers import read_features

    if metric.schema is not None:
        named = metric.schema.id if id == "id" else None
        return read_features(features, id=named or id, schema=metric.schema, leave_out=leave_out)
    names, plain = list(metric.feature_names or ()) or None, not is_array_file(features)
    if names is not None and plain:
        in_order_of(open_table(features).names, names)
    left_out = [apart] if apart is not None and names is None and plain else []
    people = read_features(features, id=id, columns=names, exclude=left_out, leave_out=leave_out)
    if people.values.shape[1] != metric.n_features:
        raise InputError(
            f"{features} has {people.values.shape[1]} feature columns, the metric takes {metric.n_features}"
        )
    return people


class Placed(NamedTuple):
    """Labelled pairs of people whose rows a metric takes."""

    values: Any  # everybody's row
    pairs: Any  # places of both ends among the rows
    ids: Any  # of both ends
    labels: Any
    together: dict[Any, Any]  # the argument of that name, where --together names a column


def read_placed(
    metric: Any, features: Path, pairs: Path, id: str, reading: PairOptions, together: str | None
) -> Placed:
    """People's rows as the metric takes them, and labelled pairs as places among them."""
    from pairveil.records.identity import index_pairs

    people = read_people_of(metric, features, id, together, leave_out=True)
    found = index_pairs(
        reading.sifted(people, reading.read_pairs(pairs, whole=True))[0], people.ids
    )
    shared = {}
    if together is not None:
        said = kept_of(people, read_column(features, together, "--together"))
        shared = {"together": dict(zip(found.ids.tolist(), said.tolist(), strict=True))}
    values, null = people.readable()
    assert found.labels is not None
    labels = np.where(null[found.pairs].any(axis=1), 0, found.labels).astype(np.int8)
    return Placed(values, found.pairs, found.ids[found.pairs], labels, shared)
