"""What `fit` learns from: files read here, or paths that the workers of a cluster read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pairveil.errors import InputError


class Training(NamedTuple):
    """Labelled pairs, the columns' names, and the public factor that each column was brought by."""

    data: Any
    names: tuple[str, ...] | None
    scale: Any


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
    return Training(data, data.features.names, np.ones(data.n_features))


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
) -> tuple[Any, Any]:
    """People's features, and the public factor that brought each column to [0, data_norm / sqrt(d)]."""
    from pairveil.data.readers import read_features
    from pairveil.data.scaling import PublicBounds, scale_to_bounds

    people: Any = read_features(
        features, id=id_column, exclude=tuple(exclude or ()), merge_similar_ids=merge_similar_ids
    )
    if bounds is None:
        return people, np.ones(people.values.shape[1])
    public = PublicBounds.read(bounds).ordered(people.names)
    scaled = scale_to_bounds(people.values, public, data_norm=data_norm)
    factor = data_norm / (public.upper - public.lower) / np.sqrt(len(public.lower))
    return replace(people, values=scaled), factor
