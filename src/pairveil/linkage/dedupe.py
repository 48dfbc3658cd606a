"""dedupe: comparison levels of the whole records in its training file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.data.layouts.dedupe import read_dedupe, read_dedupe_records
from pairveil.errors import InputError
from pairveil.linkage.comparing import text_levels


class DedupeLevels(NamedTuple):
    """What `PrivateLinkageModel.fit` takes, in its order, and the names of the comparisons.

    Attributes
    ----------
    levels : int array of shape (K, C)
    labels : int8 array of shape (K,)
    pairs : (K, 2) array of ids
    n_levels : tuple of int
    names : tuple of str
    """

    levels: NDArray[np.int64]
    labels: NDArray[np.int8]
    pairs: NDArray[Any]
    n_levels: tuple[int, ...]
    names: tuple[str, ...]


def from_dedupe(
    training: str | Path, cuts: Mapping[str, Sequence[float]], record_id: str = "id"
) -> DedupeLevels:
    """Levels of the labelled pairs of dedupe's training file, which holds whole records.

    Parameters
    ----------
    training : path
        What ``deduper.write_training`` wrote: lists of pairs under ``match`` and ``distinct``.
    cuts : mapping from field to ascending numbers
        The fields to compare and their `text_levels`; all of it public.
    record_id : str
        The field with the record's id. dedupe keeps it if it was in the data; kappa needs it.

    Examples
    --------
    >>> import json, tempfile
    >>> pair = {"__class__": "tuple", "__value__": [{"id": 1, "name": "ann"}, {"id": 2, "name": "ann"}]}
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     _ = file.write(json.dumps({"match": [pair], "distinct": []})); file.flush()
    ...     found = from_dedupe(file.name, {"name": (0.5,)})
    >>> found.levels.tolist(), found.labels.tolist(), found.n_levels
    ([[2]], [1], (3,))
    """
    if not cuts:
        raise InputError("cuts must name at least one field to compare")
    file = Path(training)
    listed = read_dedupe(file, record_id)
    records = read_dedupe_records(file)
    columns = [
        text_levels([left.get(field) for left, _ in records], [right.get(field) for _, right in records], at)
        for field, at in cuts.items()
    ]  # fmt: skip
    return DedupeLevels(
        np.column_stack(columns),
        np.asarray(listed.labels),
        np.column_stack([listed.left, listed.right]),
        tuple(len(at) + 2 for at in cuts.values()),
        tuple(cuts),
    )
