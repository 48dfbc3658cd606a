"""The released metric: what leaves the house. Needs numpy and safetensors, and runs no foreign code.

A released metric in a notebook: which columns weigh how much, in place of a matrix of numbers.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from safetensors import SafetensorError
from safetensors.numpy import load, save

from pairveil._lazy import new_axes
from pairveil.array_types import FloatArray
from pairveil.column_names import in_order
from pairveil.errors import InputError, MissingExtraError
from pairveil.files import FolderDraft
from pairveil.foreign import as_csr, parse_json
from pairveil.printable import html_table, printable
from pairveil.privacy.certificate import Certificate
from pairveil.release import FORMATS
from pairveil.release.release import METRIC_FILE, ROOM, SCHEMA_FILE, About, Release, reserve
from pairveil.schema.schema import Schema, read_schema, to_toml

# ---- which columns weigh how much, in place of a matrix of numbers -------------------------------

_SHOWN = 10


def column_shares(components: Any, column_scale: Any = None) -> FloatArray:
    """Share of each column in the trace of L^T L, on the scale that it had during learning.

    Without dividing by the public factors a column of small numbers would look important for its unit alone;
    one with factor 0 was constant and has no part. Scaled by a power of two before squaring: the squares of
    what somebody else released may not fit a float.

    Examples
    --------
    >>> column_shares([[3.0, 4.0]])
    array([0.36, 0.64])
    """
    matrix = np.asarray(components, dtype=np.float64)
    if column_scale is not None:
        scale = np.asarray(column_scale, dtype=np.float64)
        with np.errstate(over="ignore"):
            matrix = np.divide(matrix, scale, out=np.zeros_like(matrix), where=scale != 0)
        matrix = np.nan_to_num(matrix)  # what overflowed weighs as much as a float can say
    matrix = np.ldexp(matrix, -int(np.frexp(np.abs(matrix).max())[1]))
    squares = np.einsum("ij,ij->j", matrix, matrix)
    shares: FloatArray = squares / max(squares.sum(), np.finfo(float).tiny)
    return shares


def column_weights(metric: ReleasedMetric) -> dict[str, float]:
    """Share of each column in the metric: its part of the trace of L^T L, scaled columns compared.

    Examples
    --------
    >>> from pairveil import ReleasedMetric
    >>> column_weights(ReleasedMetric([[3.0, 0.0], [0.0, 1.0]], feature_names=("a", "b")))
    {'a': 0.9, 'b': 0.1}
    """
    shares = column_shares(metric.components, metric.column_scale)
    names = metric.feature_names or tuple(f"column {at}" for at in range(metric.n_features))
    return dict(zip(names, shares.tolist(), strict=True))


# ---- The released metric: what leaves the house --------------------------------------------------

FORMAT = "pairveil-metric"

VERSION = 2  # 1 where there is no schema, so that older readers take what they can use

_ROOM_A_NAME = 1_000  # a column's name stands in certificate, README and report

MAX_HEADER = 100_000_000  # safetensors' own limit


@dataclass(frozen=True, eq=False)
class ReleasedMetric(Release):
    """A learned metric with its certificate, ready to be handed out.

    Parameters
    ----------
    components : array of shape (n_components, n_features)
        L; the distance of a and b is ``||L (a - b)||_2``.
    certificate : Certificate or None
        What is promised of the pairs it was learned from; None only for a metric that makes no
        promise (a non-private learner's).
    feature_names : tuple of str or None
        The columns, in order.
    column_scale : array of shape (n_features,) or None
        What each raw column was multiplied by before learning (public bounds). It is part of
        ``components`` already; it says what 'Euclidean' would have meant.
    schema : Schema or None
        Public facts by which raw rows became the metric's columns. Where there is one, `transform` and
        `distance` take raw rows, and ``feature_names`` are the schema's.

    Examples
    --------
    >>> import numpy as np
    >>> metric = ReleasedMetric(np.array([[3.0, 0.0]]))
    >>> metric.transform([[1.0, 7.0]])
    array([[3.]])
    >>> metric.distance([[1.0, 7.0]], [[0.0, 0.0]])
    array([3.])
    """

    file, what, most, formats = METRIC_FILE, "release", None, FORMATS

    components: FloatArray
    certificate: Certificate | Any = None
    feature_names: tuple[str, ...] | None = None
    column_scale: FloatArray | None = None
    schema: Schema | None = None

    def __post_init__(self) -> None:
        components = _numbers(self.components)
        if components.ndim != 2 or components.size == 0 or not np.all(np.isfinite(components)):
            raise InputError("a metric is a matrix of finite numbers, one row a component")
        if self.schema is not None:
            if self.feature_names not in (None, self.schema.check().feature_names):
                raise InputError("the metric's columns must be those that its schema makes")
            object.__setattr__(self, "feature_names", self.schema.feature_names)
        if self.feature_names is not None:
            object.__setattr__(self, "feature_names", _check_names(self.feature_names))
            if len(self.feature_names) != components.shape[1]:
                raise InputError("there must be one feature name for each column of the metric")
        if self.certificate is not None:
            _check_shape(components, self.certificate)
        if self.column_scale is not None:
            scale = _numbers(self.column_scale)
            if scale.shape != components.shape[1:] or not np.all(np.isfinite(scale) & (scale >= 0)):
                raise InputError(
                    "column_scale must be one finite number, 0 or more, for each column"
                )
            object.__setattr__(self, "column_scale", scale)
        object.__setattr__(self, "components", components)

    @property
    def n_features(self) -> int:
        """Columns a person must have."""
        return int(self.components.shape[1])

    @property
    def raw_names(self) -> tuple[str, ...] | None:
        """Columns of the rows that `transform` takes, in order, where they have names."""
        return self.feature_names if self.schema is None else self.schema.raw_names

    @property
    def n_components(self) -> int:
        """Columns of the projected space."""
        return int(self.components.shape[0])

    def transform(self, X: ArrayLike) -> FloatArray:
        """People in the space where the metric is Euclidean, (n, n_components).

        A pandas, polars or arrow table is matched by its column names: put in the metric's order, with a
        `DataWarning`, or refused where it has other columns. With a schema, rows are raw ones.
        """
        if self.schema is not None:
            X = self.schema.apply(X)
        return self.project(X)

    def project(self, table: Any) -> FloatArray:
        """`transform` of rows that are numbers already, in the metric's order (a schema was applied)."""
        points = finite_rows(table, self.feature_names, self.n_features)
        projected: FloatArray = np.asarray(points @ self.components.T)
        return projected

    def distance(self, A: ArrayLike, B: ArrayLike) -> FloatArray:
        """Distance of each row of A from the same row of B."""
        gap: FloatArray = self.transform(A) - self.transform(B)
        length: FloatArray = np.sqrt(np.einsum("ij,ij->i", gap, gap))
        return length

    def to_onnx(self, path: str | Path) -> Path:
        """Write the projection as an ONNX model (needs ``pip install 'pairveil[onnx]'``)."""
        from pairveil.release.exporters import to_onnx

        return to_onnx(self, path)

    def _repr_html_(self) -> str:
        """A table for notebooks: the columns that weigh most, and what is promised."""
        weights = column_weights(self)
        heaviest = sorted(weights, key=lambda name: -weights[name])
        rows = [[name, f"{weights[name]:.1%}"] for name in heaviest[:_SHOWN]]
        more = len(heaviest) - len(rows)
        size = f"{self.n_components} x {self.n_features} matrix"
        rest = f"; {more} more columns" if more else ""
        try:
            promise = "no certificate" if self.certificate is None else self.certificate.promise()
        except MissingExtraError as problem:  # a receiver who applies it
            promise = str(problem)
        return html_table(["column", "weight in the metric"], rows, f"{size}{rest}. {promise}")

    def plot(self, ax: Any = None, most: int = 20) -> Any:
        """Bars of the columns that weigh most, on matplotlib's axes (``pip install 'pairveil[plots]'``)."""
        ax = new_axes() if ax is None else ax
        weights = column_weights(self)
        heaviest = sorted(weights, key=lambda name: -weights[name])[:most][::-1]
        ax.barh(heaviest, [weights[name] for name in heaviest])
        ax.set(xlabel="weight in the metric")
        return ax

    # ---- files ----------------------------------------------------------------------------------

    @classmethod
    def reserve(
        cls,
        folder: str | Path,
        n_features: int = 0,
        n_components: int | None = None,
        *,
        overwrite: bool = False,
    ) -> FolderDraft:
        """Make sure of the folder of a release, and of room for it and its report, before anything is spent.

        Without ``n_components`` the metric to come is square. `save` takes what is returned.

        Examples
        --------
        >>> ReleasedMetric.reserve("/proc/release", n_features=3)
        Traceback (most recent call last):
        ...
        pairveil.files.CannotWrite: /proc/release cannot be written: ...
        """
        numbers = (n_components or n_features) * n_features + n_features
        return reserve(folder, overwrite, 8 * numbers + _ROOM_A_NAME * n_features + ROOM)

    def artefact(self) -> bytes:
        """The matrix with the names of its columns and the schema, in safetensors."""
        names = json.dumps(list(self.feature_names)) if self.feature_names is not None else ""
        metadata = {"format": FORMAT, "version": "1", "feature_names": names}
        if self.schema is not None:
            metadata |= {"version": str(VERSION), "schema": json.dumps(self.schema.to_dict())}
        tensors = {"components": self.components}
        if self.column_scale is not None:
            tensors["column_scale"] = np.ascontiguousarray(self.column_scale, dtype=np.float64)
        blob = bytes(save(tensors, metadata=metadata))
        # Its header comes in another order each time; sorted, one metric is one file and has one digest.
        size = int.from_bytes(blob[:8], "little")
        parts = json.loads(blob[8 : 8 + size])
        header = json.dumps(
            parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        ).encode()
        header += b" " * (-len(header) % 8)
        return len(header).to_bytes(8, "little") + header + blob[8 + size :]

    @classmethod
    def read(cls, artefact: bytes, file: Path) -> ReleasedMetric:
        """From the bytes of ``metric.safetensors``."""
        components, scale, metadata = _read_tensors(artefact, file)
        names, schema = _named(metadata, file)
        _check_schema_file(file.parent, schema)
        return cls(components, None, names, scale, schema)

    @classmethod
    def check_whole(cls, artefact: bytes, file: Path) -> None:
        """Refuse a file that is damaged or truncated."""
        _read_tensors(artefact, file)

    def further(self, digest: str) -> dict[str, bytes | str]:  # noqa: ARG002
        """The schema as people read it."""
        return {} if self.schema is None else {SCHEMA_FILE: to_toml(self.schema)}

    def about(self) -> About:
        """How raw rows become distances, and the columns."""
        columns = (
            "\n".join(f"{i + 1}. `{printable(name)}`" for i, name in enumerate(self.feature_names))
            if self.feature_names
            else f"{self.n_features} numeric columns, in the order used for training."
        )
        schema = "" if self.schema is None else _ABOUT_SCHEMA
        return About(
            "A distance metric learned from pairs",
            f"- `metric.safetensors`: the matrix L ({self.n_components} x {self.n_features}). The distance "
            "of two people a and b is\n  the Euclidean length of L (a - b).",
            _USE,
            schema + _ABOUT_REPORT,
            f"\n## Columns, in order\n\n{columns}\n",
        )


_ABOUT_SCHEMA = """\
- `schema.toml`: how raw rows become these columns; given a raw table with its column names,
  `distance` and `transform` apply it by themselves.
"""
_ABOUT_REPORT = """\
- `report.html` and `summary.json`, where there are any: the page for people who do not code, and what
  it draws.
"""
_USE = """\
from pairveil import ReleasedMetric

metric = ReleasedMetric.load("path/to/this/folder")
metric.distance(A, B)   # one distance for each row of A and B
metric.transform(A)     # points whose Euclidean distance is the learned one"""


def finite_rows(table: Any, names: Any = None, width: int | None = None) -> Any:
    """Rows of finite numbers in the order of ``names``, dense or sparse; no value is part of a message.

    Sentences are scikit-learn's where its checks look for them.
    """
    table = in_order(table, names)
    points = _floats(table)
    if points.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {points.ndim}D array instead. Reshape your data: one row a person"
        )
    if width is not None and points.shape[1] != width:
        raise InputError(
            f"X has {points.shape[1]} features, but it is expecting {width} features as input"
        )
    if not np.all(np.isfinite(points.data if hasattr(points, "tocsr") else points)):
        raise InputError(
            "every feature must be a finite number: X holds a NaN or an infinity (inf)"
        )
    return points


class _NotANumber(InputError, TypeError):
    """A cell that is no number at all, as scikit-learn's own checks call it."""


def _floats(table: Any) -> Any:
    kind = table.dtype.kind if hasattr(table, "dtype") else np.asarray(table).dtype.kind
    if kind == "c":
        raise InputError("Complex data not supported: every feature must be a number")
    if hasattr(table, "tocsr"):  # sparse; scipy is not loaded for those who have none
        return as_csr(table).astype(np.float64)
    try:
        return np.asarray(table, dtype=np.float64)
    except ValueError:
        # numpy's own message quotes the value it cannot read, and that value is a person's.
        raise InputError("every feature must be a number") from None
    except TypeError:
        raise _NotANumber(
            "every feature must be a number: argument must be a string or a number"
        ) from None


def as_released(metric: Any) -> ReleasedMetric:
    """What was handed to an export, refused where it is a matrix alone.

    Examples
    --------
    >>> as_released([[3.0, 0.0]])
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: give the ReleasedMetric, not its matrix: ...
    """
    if isinstance(metric, ReleasedMetric):
        return metric
    raise InputError(
        "give the ReleasedMetric, not its matrix: a matrix has lost the schema that makes its columns from "
        "raw rows. For a matrix that never had one, give ReleasedMetric(matrix)"
    )


def _check_shape(components: FloatArray, certificate: Certificate) -> None:
    """The certified plan was for a matrix of this shape, where it says for which."""
    plan = certificate.plan
    for name, axis in (("n_features", 1), ("n_components", 0)):
        stated = plan.get(name)
        if stated is not None and stated != components.shape[axis]:
            side = "columns" if axis else "rows"
            raise InputError(
                f"the certificate belongs to a fit with another number of {name.removeprefix('n_')} than the "
                f"metric has {side} ({components.shape[axis]}): they do not belong together"
            )


def _named(metadata: dict[str, Any], file: Path) -> tuple[tuple[str, ...] | None, Schema | None]:
    """The columns' names and the schema that makes them, where the file has them."""
    names, schema = metadata.get("feature_names") or None, metadata.get("schema") or None
    if names is not None:
        names = _check_names(parse_json(names, f"the feature names of {file}", None, depth=1))
    if schema is not None:
        title = f"the schema of {file}"
        schema = Schema.from_dict(parse_json(schema, title, None, depth=4), title).check(title)
    return names, schema


def _check_schema_file(folder: Path, schema: Schema | None) -> None:
    """The file that people read says what the metric's own file says, whose digest is certified."""
    file = folder / SCHEMA_FILE
    if file.exists() and (schema is None or read_schema(file) != schema):
        raise InputError(
            f"{file} is not the schema that the metric was learned with: it was changed after the release; "
            "ask the sender for the folder again"
        )


def _read_tensors(blob: bytes, file: Path) -> tuple[FloatArray, FloatArray | None, dict[str, Any]]:
    # The header is read here for its metadata, which safetensors gives of open files only: a file that is
    # opened twice may be two files.
    size = int.from_bytes(blob[:8], "little")
    damaged = InputError(f"{file} cannot be read: it is damaged or truncated")
    if len(blob) < 8 or size > min(len(blob) - 8, MAX_HEADER):
        raise damaged
    header = parse_json(blob[8 : 8 + size].rstrip(b" \0"), f"the header of {file}", None)
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise InputError(f"{file} is no pairveil metric")
    version = metadata.get("version")
    if not (isinstance(version, str) and re.fullmatch("[0-9]{1,6}", version)):
        raise damaged
    if int(version) > VERSION:
        raise InputError(f"{file} was written by a newer pairveil; update pairveil to read it")
    try:
        tensors = load(blob)
        components, scale = tensors["components"], tensors.get("column_scale")
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise damaged from None
    return components, scale, metadata


def _numbers(values: Any) -> FloatArray:
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("a metric is a matrix of finite numbers, one row a component") from None


def _check_names(names: Any) -> tuple[str, ...]:
    """Feature names as a tuple; each must be text that can be written to a file."""
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InputError("feature names must be a list of texts, one for each column of the metric")
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        raise InputError("a feature name holds characters that cannot be written") from None
    return tuple(names)
