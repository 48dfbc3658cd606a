"""dedupe: comparison levels of the records in its training file, and match weights as its classifier.

recordlinkage: match weights as the coefficients of its logistic classifier.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.errors import InputError
from pairveil.foreign import taking_apart
from pairveil.linkage.levels import LabelledLevels, text_levels
from pairveil.records.layouts import dedupe_records
from pairveil.records.readers import read_pairs
from pairveil.release.linkage import ReleasedLinkage

# ---- comparison levels of the records in its training file, and match weights as its classi ------


def from_dedupe(
    training: str | Path, cuts: Mapping[str, Sequence[float]], record_id: str = "id"
) -> LabelledLevels:
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
    with taking_apart(file.name):
        listed = read_pairs(file, layout="dedupe", record_id=record_id)
        records = [pair for _, pair in dedupe_records(file)]
        columns = [
            text_levels([a.get(field) for a, _ in records], [b.get(field) for _, b in records], at)
            for field, at in cuts.items()
        ]
    return LabelledLevels(
        np.column_stack(columns),
        np.asarray(listed.labels),
        np.column_stack([listed.left, listed.right]),
        tuple(len(at) + 2 for at in cuts.values()),
        tuple(cuts),
    )


@dataclass(frozen=True)
class DedupeComparator:
    """One comparison of `from_dedupe` for ``dedupe.variables.Custom(field, comparator=...)``.

    Parameters
    ----------
    cuts : ascending numbers between 0 and 1
        As for `text_levels`.

    Examples
    --------
    >>> DedupeComparator((0.4, 0.7))("garcia", "garzia")
    3.0
    """

    cuts: tuple[float, ...]
    __name__ = "text_levels"  # dedupe shows it

    def __call__(self, left: Any, right: Any) -> float:
        """The level plus 1: dedupe itself writes 0 where a value is missing."""
        return float(text_levels([left], [right], self.cuts)[0]) + 1


@dataclass(frozen=True)
class DedupeClassifier:
    """Match weights as ``deduper.classifier``: dedupe asks it how likely each pair is a match.

    Parameters
    ----------
    model : ReleasedLinkage
    prior : float
        How likely a pair that dedupe scores is a match; such pairs agree in a blocking rule.

    Examples
    --------
    >>> model = ReleasedLinkage((np.array([0.2, 0.8]),), (np.array([0.9, 0.1]),), 0.5)
    >>> DedupeClassifier(model, 0.5).predict_proba(np.array([[2.0], [0.0]])).round(2)
    array([[0.11, 0.89],
           [0.5 , 0.5 ]])
    """

    model: ReleasedLinkage
    prior: float

    def fit(self, X: Any, y: Any) -> Self:  # noqa: ARG002
        """Keep the weights: ``deduper.train`` then learns blocking rules alone."""
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Of no match and of a match; the comparisons are the first columns of dedupe's distances."""
        levels = np.asarray(X)[:, : len(self.model.m)].astype(np.int64) - 1
        match = self.model.match_probability(levels, self.prior)
        return np.column_stack([1 - match, match])


# ---- recordlinkage: match weights as the coefficients of its logistic classifier -----------------


def to_recordlinkage(model: Any, prior: float | None = None) -> tuple[FloatArray, float]:
    """Coefficients and intercept for ``recordlinkage.LogisticRegressionClassifier``.

    A model with its ``prior`` *is* a logistic regression on indicators of levels: the log odds are those of
    the prior plus the natural logarithm of m / u of every level that a pair has. recordlinkage compares into
    0 and 1, so each comparison must have two levels; a null is not known to it, and counts as 0.

    Parameters
    ----------
    model : PrivateLinkageModel or ReleasedLinkage
    prior : float, optional
        How likely a pair of yours is a match; the model's own by default.

    Examples
    --------
    >>> from pairveil.linkage import ReleasedLinkage
    >>> model = ReleasedLinkage((np.array([0.2, 0.8]),), (np.array([0.9, 0.1]),), 0.5)
    >>> coefficients, intercept = to_recordlinkage(model)
    >>> coefficients.round(3), round(intercept, 3)
    (array([3.584]), -1.504)
    """
    released = model.released() if hasattr(model, "released") else model
    if set(released.n_levels) != {2}:
        raise InputError(
            "recordlinkage's features are 0 or 1: every comparison of the model must have two levels"
        )
    before = released.prior if prior is None else float(prior)
    if not 0 < before < 1:
        raise InputError("prior must be a number between 0 and 1, both excluded")
    ratios = [np.log(m / u) for m, u in zip(released.m, released.u, strict=True)]
    intercept = math.log(before / (1 - before)) + sum(float(one[0]) for one in ratios)
    return np.array([float(one[1] - one[0]) for one in ratios]), intercept
