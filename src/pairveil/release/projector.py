"""From a raw row to projected coordinates: rows of numbers checked here, formulas for other languages.

`ReleasedMetric.transform` is the only projection of a release. What runs without pairveil (ONNX, SQL) is
written from the formulas of the schema's columns (`pairveil.schema.columns`), so that a new kind of column
or scale is one formula there: a `Term` is a piece of one, and its maths says how the language writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairveil.column_names import in_order
from pairveil.errors import InputError
from pairveil.foreign import as_csr
from pairveil.schema.columns import Column, DateColumn, NumberColumn

SPACES = "".join(letter for letter in map(chr, range(0x3001)) if letter.isspace())
"""What is taken off around a category before it is compared."""


def numbers_of(table: Any, names: Any = None, width: int | None = None) -> Any:
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


# ---- formulas in other languages -----------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """A piece of a formula: an expression in SQL, the name of a tensor in ONNX."""

    text: str
    maths: SqlMaths | OnnxMaths
    is_text: bool = False

    def __add__(self, other: Any) -> Term:
        return self.maths.operation("+", self, other)

    def __radd__(self, other: Any) -> Term:
        return self.maths.operation("+", other, self)

    def __sub__(self, other: Any) -> Term:
        return self.maths.operation("-", self, other)

    def __truediv__(self, other: Any) -> Term:
        return self.maths.operation("/", self, other)


class SqlMaths:
    """Formulas in PostgreSQL."""

    def cell(self, column: Column, argument: str) -> tuple[str, Term]:
        """The type of a raw column's argument, and the argument as formulas take it."""
        if isinstance(column, DateColumn):
            return "date", Term(f"({argument} - DATE '1970-01-01')::float8", self)
        if isinstance(column, NumberColumn):
            return "double precision", Term(argument, self)
        return "text", Term(f"btrim({argument}, {quoted(SPACES)})", self, is_text=True)

    def missing(self, cell: Term) -> Term:
        nothing = "''" if cell.is_text else "'NaN'"
        return Term(f"{cell.text} IS NULL OR {cell.text} = {nothing}", self)

    def equals(self, cell: Term, level: str) -> Term:
        return Term(f"({cell.text} = {quoted(level)})::int", self)

    def where(self, condition: Term, yes: Any, no: Any) -> Term:
        return Term(f"CASE WHEN {condition.text} THEN {_sql(yes)} ELSE {_sql(no)} END", self)

    def clip(self, value: Term, low: float, high: float) -> Term:
        return Term(f"LEAST(GREATEST({value.text}, {_sql(low)}), {_sql(high)})", self)

    def log(self, value: Term) -> Term:
        return Term(f"ln({value.text})", self)

    def operation(self, sign: str, left: Any, right: Any) -> Term:
        return Term(f"({_sql(left)} {sign} {_sql(right)})", self)


def _sql(value: Any) -> str:
    return value.text if isinstance(value, Term) else f"'{float(value)!r}'::float8"


def quoted(value: str, quote: str = "'") -> str:
    """A text (or, between ", a name) for PostgreSQL: escapes, so that nothing in it can end it.

    Examples
    --------
    >>> print(quoted("it's"))
    U&'it\\+000027s'
    """
    safe = (c if c.isascii() and c.isalnum() else f"\\+{ord(c):06x}" for c in value)
    return f"U&{quote}{''.join(safe)}{quote}"


class OnnxMaths:
    """Formulas in ONNX: tensors of one row a person and one column; nodes and constants gather here."""

    def __init__(self, onnx: Any, taken: Iterable[str]) -> None:
        self._onnx, self._taken = onnx, set(taken)
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def cell(self, column: Column) -> Term:
        """An input of the model for a raw column."""
        if isinstance(column, DateColumn):
            raise InputError(
                f"ONNX has no dates, and column '{column.name}' holds some: export as sklearn or sql, or "
                "load the release (ReleasedMetric.load)"
            )
        is_text = not isinstance(column, NumberColumn)
        kinds = self._onnx.TensorProto
        kind = kinds.STRING if is_text else kinds.DOUBLE
        made = self._onnx.helper.make_tensor_value_info(column.name, kind, ["people", 1])
        self.inputs.append(made)
        return Term(column.name, self, is_text)

    def missing(self, cell: Term) -> Term:
        return self._matches(cell, "") if cell.is_text else self.node("IsNaN", cell)

    def equals(self, cell: Term, level: str) -> Term:
        return self.node("Cast", self._matches(cell, level), to=self._onnx.TensorProto.DOUBLE)

    def _matches(self, cell: Term, text: str) -> Term:
        around, wanted = ("".join(f"\\x{{{ord(c):x}}}" for c in part) for part in (SPACES, text))
        return self.node("RegexFullMatch", cell, pattern=f"[{around}]*{wanted}[{around}]*")

    def where(self, condition: Term, yes: Any, no: Any) -> Term:
        return self.node("Where", condition, yes, no)

    def clip(self, value: Term, low: float, high: float) -> Term:
        return self.node("Clip", value, low, high)

    def log(self, value: Term) -> Term:
        return self.node("Log", value)

    def operation(self, sign: str, left: Any, right: Any) -> Term:
        return self.node({"+": "Add", "-": "Sub", "/": "Div"}[sign], left, right)

    def node(self, kind: str, *inputs: Any, output: str | None = None, **more: Any) -> Term:
        """One operation on terms and numbers."""
        names = [one.text if isinstance(one, Term) else self._constant(one) for one in inputs]
        name = output or self._new_name()
        self.nodes.append(self._onnx.helper.make_node(kind, names, [name], **more))
        return Term(name, self)

    def _constant(self, value: Any) -> str:
        numbers = np.ascontiguousarray(value, dtype=np.float64).reshape(np.shape(value))
        self.constants.append(self._onnx.numpy_helper.from_array(numbers, name=self._new_name()))
        return str(self.constants[-1].name)

    def _new_name(self) -> str:
        name = f"step_{len(self._taken)}"
        while name in self._taken:  # a column may be called so
            name += "_"
        self._taken.add(name)
        return name
