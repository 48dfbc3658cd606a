"""``schema=`` and ``bounds=`` of a learner: raw rows in, and the public factors that brought them to scale.

A learner sees rows that are no longer than ``data_norm``: raw columns by a schema, or numbers by their
bounds, times a public factor. The factor is then part of ``components_``, so that the metric takes what the
schema makes (numbers in [0, 1]) or, with bounds, the raw numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from pairveil.column_names import in_order
from pairveil.errors import InputError
from pairveil.learners.inputs import as_features, as_pair_array
from pairveil.learners.preparing import Prepared
from pairveil.records.pairset import PairSet
from pairveil.records.people import People
from pairveil.records.scaling import PublicBounds, scale_to_bounds
from pairveil.schema.schema import Schema
from pairveil.schema.toml import read_schema, to_toml


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
        if isinstance(bounds, Mapping):
            bounds = _from_mapping(bounds)
        if bounds is not None and not isinstance(bounds, PublicBounds):
            raise InputError(
                "bounds must be {column: (lower, upper)}, PublicBounds or a file's path"
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

    def named(self, prepared: Prepared) -> Prepared:
        """A prepared fit that says by what its rows were read, for its checkpoint."""
        if self.schema is not None:
            return replace(prepared, about=to_toml(self.schema))
        if self.bounds is None:
            return prepared
        names, lower, upper = self.bounds.names, self.bounds.lower, self.bounds.upper
        return replace(prepared, about=repr([names, lower.tolist(), upper.tolist()]))

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
        """Pairs and preprocessor as the resolver takes them, their rows read.

        Parameters
        ----------
        pairs, preprocessor
            As for ``fit``.
        learning : bool
            For the learner, or for the metric.
        """
        if self.is_plain or isinstance(pairs, Prepared):
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
        """A preprocessor whose rows are read for learning, for records that are row numbers into it.

        Parameters
        ----------
        preprocessor : array, table or callable
        records : row numbers, or records that hold their features
        """
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
    return replace(data, features=as_features(read(table)), feature_names=names)


def _from_mapping(bounds: Mapping[Any, Any]) -> PublicBounds:
    for name, pair in bounds.items():
        if not (isinstance(pair, list | tuple) and len(pair) == 2):
            raise InputError(f"the bounds of '{name}' must be (lower, upper)")
    names = tuple(map(str, bounds))
    ends = [list(side) for side in zip(*bounds.values(), strict=True)]
    return PublicBounds(np.array(ends[0], dtype=object), np.array(ends[1], dtype=object), names)
