"""Choices: workers say which of two items they prefer; a record is one worker, or one choice.

Who was asked about which items is public, what was chosen is private. The order of records follows from who
and which alone, so that no row's place tells what was chosen.

They are no face of `pairveil.records.records.Records`: a worker's record is a bag of as many choices as she
made, two equal rows of it are two choices and not one record mentioned twice, and items are not people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.array_types import FloatArray, IntArray
from pairveil.errors import InputError
from pairveil.foreign import as_csr
from pairveil.records.validation import row_blocks

NO_CHOICE = 0
"""The label of a null choice, which contributes nothing to any sum."""


@dataclass(frozen=True, eq=False, repr=False)
class Choices:
    """Choices of workers between two items each, in canonical order.

    Parameters
    ----------
    workers : array of shape (K,)
        Who chose: whole numbers or text. Public.
    pairs : integer array of shape (K, 2)
        Between which items, as row numbers of ``features``. Public.
    labels : integer array of shape (K,)
        +1: the first of the two was chosen, -1: the second, 0: neither. Private. What is neither +1 nor -1
        becomes 0.
    features : array or sparse matrix of shape (n_items, d)
        Public features of the items; ones on the diagonal where items have no features.
    by : {'worker', 'choice'}
        What a record is: all choices of one worker, or one choice.
    weights : array of shape (n_records,), optional
        Public factor of each record's contribution; by default 1.

    Examples
    --------
    >>> Choices(["ann", "bob"], [[0, 1], [1, 0]], [1, 1], np.eye(2))
    Choices(2 choices of 2 workers between 2 items)
    """

    workers: NDArray[Any]
    pairs: IntArray
    labels: NDArray[np.int8]
    features: Any
    by: Literal["worker", "choice"] = "worker"
    weights: FloatArray | None = None

    def __post_init__(self) -> None:
        if sparse.issparse(self.features):
            object.__setattr__(self, "features", as_csr(self.features))
        pairs = np.asarray(self.pairs)
        labels, workers = np.asarray(self.labels), _names(self.workers)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise InputError("choices need two item numbers each: pairs of shape (n_choices, 2)")
        if len(pairs) == 0:
            raise InputError("there are no choices to learn from")
        if workers.shape != (len(pairs),) or labels.shape != (len(pairs),):
            raise InputError(f"{len(pairs)} choices need as many workers and as many labels")
        if pairs.min() < 0 or pairs.max() >= self.features.shape[0]:
            raise InputError(
                f"a choice names an item outside the {self.features.shape[0]} items (they count from 0)"
            )
        same = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
        if same.size:
            raise InputError(
                f"a choice is between two different items; {same.size} are not, the first at row {same[0]}"
            )
        usable = np.isin(labels, (-1, 1))
        signs = np.where(usable, np.where(labels == 1, 1, -1), NO_CHOICE)
        for name, value in _canonical(workers, pairs.astype(np.int64), signs).items():
            object.__setattr__(self, name, value)
        if self.weights is not None and self.weights.shape != (self.n_records,):
            raise InputError("weights must have one number for each record")

    def __repr__(self) -> str:
        return (
            f"Choices({len(self.pairs)} choices of {self.n_workers} workers between "
            f"{self.n_items} items)"
        )

    @property
    def kind(self) -> str:
        """Of records, for what a protected unit costs."""
        return "workers" if self.by == "worker" else "choices"

    @property
    def starts(self) -> IntArray:
        """Where each worker's choices begin, and where the last one's end."""
        new = np.flatnonzero(self.workers[1:] != self.workers[:-1]) + 1
        return np.concatenate([[0], new, [len(self.pairs)]]).astype(np.int64)

    @property
    def n_workers(self) -> int:
        """How many workers chose at least once."""
        return len(self.starts) - 1

    @property
    def n_items(self) -> int:
        """How many items there are, chosen between or not."""
        return int(self.features.shape[0])

    @property
    def most_of_a_worker(self) -> int:
        """The most choices that one worker was asked for (public)."""
        return int(np.diff(self.starts).max())

    @property
    def n_records(self) -> int:
        """Workers, or choices."""
        return self.n_workers if self.by == "worker" else len(self.pairs)

    @property
    def n_features(self) -> int:
        """Columns of the items' features."""
        return int(self.features.shape[1])

    @property
    def n_null(self) -> int:
        """Choices that contribute nothing. Private."""
        return int(np.count_nonzero(self.labels == NO_CHOICE))

    def edges(self) -> IntArray:
        """Where each record's choices begin, and where the last one's end."""
        if self.by == "worker":
            return self.starts
        return np.arange(len(self.pairs) + 1, dtype=np.int64)

    def differences(self, rows: Any = slice(None)) -> Any:
        """Features of the first item minus those of the second, for some choices. Public."""
        left, right = self.pairs[rows].T
        return self.features[left] - self.features[right]

    def contents(self, rows: Any = None) -> tuple[Any, IntArray]:
        """What a statistic sees of some records: a row for each of their choices, and whose it is.

        A row is the difference of the two items' features, chosen minus other, times the record's weight;
        zero for a null choice.
        """
        edges = self.edges()
        wanted = np.arange(self.n_records)[slice(None) if rows is None else rows]
        counts = edges[wanted + 1] - edges[wanted]
        owners = np.repeat(np.arange(len(wanted)), counts)
        inside = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = edges[wanted][owners] + inside
        signs = self.labels[chosen].astype(np.float64)
        if self.weights is not None:
            signs = signs * self.weights[wanted][owners]
        rows_of = self.differences(chosen)
        if sparse.issparse(rows_of):
            return sparse.diags_array(signs) @ rows_of, owners
        return signs[:, None] * rows_of, owners

    def blocks(self, size: int) -> Iterator[slice]:
        """Slices of at most ``size`` records that cover all of them in order."""
        return row_blocks(self.n_records, size)

    def without(self, rows: Any) -> Choices:
        """The same choices, some of them null: what zero-out compares with."""
        labels = self.labels.copy()
        labels[rows] = NO_CHOICE
        return replace(self, labels=labels)

    def topology(self) -> bytes:
        """Names what is public of the choices: who was asked about what, and the items."""
        digest = hashlib.sha256(f"{self.kind} {self.features.shape}".encode())
        table = self.features
        parts = (self.edges(), self.starts, self.pairs, *_plain(table))
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.digest()


def _plain(table: Any) -> tuple[NDArray[Any], ...]:
    return (table.data, table.indices, table.indptr) if sparse.issparse(table) else (table,)


def _names(workers: Any) -> NDArray[Any]:
    """Workers as whole numbers or as text; who is missing cannot be protected."""
    array = np.asarray(workers)
    if array.dtype.kind in "iu":
        return array
    values = array.tolist()
    if not all(isinstance(one, str | int) and not isinstance(one, bool) for one in values):
        raise InputError("workers must be whole numbers or text, one for each choice")
    return np.array([str(one) for one in values], dtype=np.str_)


def _canonical(
    workers: NDArray[Any], pairs: IntArray, signs: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """Choices by worker, then by items, the smaller item number first; equal ones by what was chosen.

    Equal rows of one worker differ in their sign alone, so a sum over them is a function of the set of
    choices.
    """
    turned = pairs[:, 0] > pairs[:, 1]
    signs = np.where(turned, -signs, signs)
    pairs = np.where(turned[:, None], pairs[:, ::-1], pairs)
    order = np.lexsort((signs, pairs[:, 1], pairs[:, 0], workers))
    return {
        "workers": workers[order],
        "pairs": pairs[order],
        "labels": signs[order].astype(np.int8),
    }
