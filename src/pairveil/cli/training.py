"""What `fit` learns from: files read here, or paths that the workers of a cluster read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pairveil.errors import InputError, PrivacyLeakWarning
from pairveil.privacy.units import ASSUMED_CLASSES


class Training(NamedTuple):
    """What a fit learns from.

    Attributes
    ----------
    prepare : callable
        From a learner to its prepared fit.
    names : tuple of str or None
        Of the columns.
    scale : array
        The public factor that each column was brought by.
    pairs : PairTable or None
        The pairs by their ids, where they were read here.
    """

    prepare: Callable[[Any], Any]
    names: tuple[str, ...] | None
    scale: Any
    pairs: Any = None


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
    features: str, pairs: str, columns: tuple[str, str, str], unused: Mapping[str, object]
) -> Training:
    """Features and pairs that the workers of the connected cluster read, by row number.

    Parameters
    ----------
    features, pairs : str
        Paths that fsspec knows.
    columns : (str, str, str)
        Of the pairs.
    unused : mapping
        Options that change how files are read here, by name; none may have been given.
    """
    from pairveil.engine.backends.dask_pairs import open_dask_pairs

    for option, value in unused.items():
        if value:
            raise InputError(
                f"{option} does not apply to files that workers read: "
                "they hold row numbers, labels +1 and -1, and scaled columns"
            )
    data = open_dask_pairs(features, pairs, columns)
    return Training(lambda one: one.prepare(data), data.features.names, np.ones(data.n_features))


def join_pairs(people: Any, scale: Any, pairs: Any) -> Training:
    """People and pairs that were read from two files."""
    from pairveil.data.pairset import PairSet

    data = PairSet.join(people, pairs)
    return Training(lambda one: one.prepare(data), people.names, scale, pairs)


def join_classes(people: Any, scale: Any, classes: Any, listed: str | None) -> Training:
    """People and the class of each of them; ``listed`` is the public list, separated by commas."""
    public = None if listed is None else [one.strip() for one in listed.split(",")]
    if public is None:
        warnings.warn(
            f"{ASSUMED_CLASSES}; the metric is not for release. List the classes with --class-list",
            PrivacyLeakWarning,
            stacklevel=2,
        )
    elif len(set(public)) != len(public) or len(public) < 2 or not all(public):
        raise InputError("--class-list must name each class once, and at least two: a,b,c")
    return Training(
        lambda one: one.prepare_classes(people.values, classes, public, ids=people.ids),
        people.names,
        scale,
    )


def read_rows(
    features: Path,
    id_column: str,
    schema: Path | None,
    columns: list[str] | None,
    exclude: list[str] | None,
    merge_similar_ids: bool = False,
) -> tuple[Any, Any]:
    """People's features, encoded by a schema where one is given, and the schema of the columns used."""
    from pairveil.cli.pair_options import listed
    from pairveil.data.readers import read_features
    from pairveil.schema.toml import read_schema

    wanted, left_out = listed(columns), listed(exclude) or ()
    public = None if schema is None else read_schema(schema).only(wanted, left_out)
    if public is not None:
        wanted, left_out = None, ()
        id_column = public.id if public.id is not None and id_column == "id" else id_column
    people = read_features(
        features,
        id=id_column,
        columns=wanted,
        exclude=left_out,
        merge_similar_ids=merge_similar_ids,
        schema=public,
    )
    return people, public


def read_people(
    features: Path,
    id_column: str,
    exclude: list[str] | None,
    bounds: Path | None,
    data_norm: float,
    merge_similar_ids: bool = False,
    classes: str | None = None,
) -> tuple[Any, Any]:
    """People's features, and the public factor that brought each column to [0, data_norm / sqrt(d)].

    The column of ``classes`` is no feature.
    """
    from pairveil.data.arrays import is_array_file
    from pairveil.data.readers import read_features
    from pairveil.data.scaling import PublicBounds, scale_to_bounds

    left_out = tuple(exclude or ())
    if classes is not None and not is_array_file(features):
        left_out += (classes,)
    people: Any = read_features(
        features, id=id_column, exclude=left_out, merge_similar_ids=merge_similar_ids
    )
    if bounds is None:
        return people, np.ones(people.values.shape[1])
    public = PublicBounds.read(bounds).ordered(people.names)
    scaled = scale_to_bounds(people.values, public, data_norm=data_norm)
    factor = data_norm / (public.upper - public.lower) / np.sqrt(len(public.lower))
    return replace(people, values=scaled), factor


def read_class_column(features: str | Path, column: str) -> Any:
    """Each person's class as text, in the order of the rows; None where there is none.

    Classes are private: a person without one contributes nothing, and stops no fit.
    """
    from pairveil.data.arrays import is_array_file, read_array_column
    from pairveil.data.files import open_table, require_file

    if is_array_file(Path(features)):
        values = read_array_column(require_file(features), column).tolist()
    else:
        table = open_table(features)
        table.require([column], "Name one of these with --classes")
        values = [
            one for batch in table.batches({column: "text"}) for one in batch.column(0).to_pylist()
        ]
    texts = [None if one is None or one != one else str(one).strip() for one in values]
    return np.array([one or None for one in texts], dtype=object)
