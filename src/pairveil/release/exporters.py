"""The released metric in other people's formats: ONNX, CSV, a scikit-learn transformer, SQL, a Dense module.

Every exporter takes a `ReleasedMetric` and writes something that takes the same raw rows as its `transform`
and gives the same distances; a format that cannot hold the schema refuses a metric that has one. It is
post-processing: the certificate holds for what is written here, and no exporter can be given a training row.

What runs without pairveil (ONNX, SQL) is written from the formulas of the schema's columns
(`pairveil.schema.columns`), so that a new kind of column or scale is one formula there: a `Term` is a piece
of one, and its maths says how the language writes it.

Nearest neighbours under the released metric: FAISS, hnswlib and PostgreSQL with pgvector.

All three search Euclidean neighbours, and the learned distance of a and b is the Euclidean distance of
L a and L b. So an index over projected vectors is exact for the metric and has n_components columns
instead of n_features. An index holds the people put into it: it is as private as they are, and the
certificate says nothing about them.
"""

from __future__ import annotations

import csv
import io
import json
import pickle
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairveil._lazy import need
from pairveil.array_types import FloatArray
from pairveil.errors import InputError
from pairveil.files import FolderDraft, write_file
from pairveil.printable import as_cell
from pairveil.release.metric import ReleasedMetric, as_released
from pairveil.schema.columns import Column, DateColumn, NumberColumn
from pairveil.schema.schema import Schema

# ---- FAISS, hnswlib and PostgreSQL with pgvector -------------------------------------------------

MAX_ARGUMENTS = 100
"""Of a function in PostgreSQL."""


def faiss_index(metric: ReleasedMetric) -> Any:
    """An empty exact FAISS index that takes raw feature rows and searches under the metric.

    The projection is part of the index (``IndexPreTransform``), so ``add`` and ``search`` take rows of
    n_features float32 columns. FAISS returns squared distances. A metric with a schema is refused: index what
    its `ReleasedMetric.transform` gives.

    Examples
    --------
    >>> import numpy as np, pytest
    >>> from pairveil import ReleasedMetric
    >>> _ = pytest.importorskip("faiss")
    >>> index = faiss_index(ReleasedMetric([[3.0, 0.0]]))
    >>> index.add(np.array([[0, 0], [1, 9]], dtype=np.float32))
    >>> squared, rows = index.search(np.array([[1, 0]], dtype=np.float32), 1)
    >>> int(rows[0, 0]), float(squared[0, 0])
    (1, 0.0)
    """
    matrix = matrix_alone(metric, "A FAISS index with the projection inside")
    faiss = need("faiss", "", "A FAISS index")
    projection = faiss.LinearTransform(metric.n_features, metric.n_components, False)
    faiss.copy_array_to_vector(matrix.astype(np.float32).ravel(), projection.A)
    projection.is_trained = True
    # The wrapper keeps its two parts alive as long as the index lives.
    return faiss.IndexPreTransform(projection, faiss.IndexFlatL2(metric.n_components))


def hnswlib_index(metric: ReleasedMetric, people: Any, *, ef_search: int = 64) -> Any:
    """An approximate index over the projected people; query it with projected rows.

    Parameters
    ----------
    metric : ReleasedMetric
    people : array or table
        What `ReleasedMetric.transform` takes. Labels of the index are the row numbers.
    ef_search : int, default 64
        Larger finds more of the true neighbours and is slower; at least the k you ask for.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("hnswlib")
    >>> from pairveil import ReleasedMetric
    >>> metric = ReleasedMetric([[3.0, 0.0]])
    >>> index = hnswlib_index(metric, [[0.0, 0.0], [1.0, 9.0]])
    >>> rows, squared = index.knn_query(metric.transform([[1.0, 0.0]]), k=1)
    >>> int(rows[0, 0])
    1
    """
    points = as_released(metric).transform(people)
    hnswlib = need("hnswlib", "", "An hnswlib index")
    index = hnswlib.Index(space="l2", dim=metric.n_components)
    index.init_index(max_elements=max(len(points), 1), M=16, ef_construction=200, random_seed=0)
    index.add_items(points.astype(np.float32), np.arange(len(points)))
    index.set_ef(ef_search)
    return index


def pgvector_sql(metric: ReleasedMetric, *, table: str = "people") -> str:
    """SQL that projects and indexes people inside PostgreSQL with the pgvector extension.

    It makes a function ``pairveil_project`` of a raw row with the metric in it (plain PostgreSQL, no
    extension), a table with a projected column and an HNSW index for the metric, and shows the
    nearest-neighbour query. The function takes an array of numbers, or with a schema an argument for each raw
    column, by its name: double precision, text or date, each of which may be null.

    Examples
    --------
    >>> from pairveil import ReleasedMetric
    >>> sql = pgvector_sql(ReleasedMetric([[3.0, 0.0]], feature_names=("age", "bmi")))
    >>> "vector(1)" in sql and "-- 2. bmi" in sql
    True
    """
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,50}", table):
        raise InputError("a table name has lower-case letters, digits and underscores only")
    names = names_in(as_released(metric))
    columns = "\n".join(f"-- {i}. {_one_line(name)}" for i, name in enumerate(names, start=1))
    rows = ",\n".join(
        f"    ({number}, ARRAY[{', '.join(repr(weight) for weight in row)}]::double precision[])"
        for number, row in enumerate(metric.components.tolist(), start=1)
    )
    linear = "pairveil_project" if metric.schema is None else "pairveil_project_encoded"
    row = "ARRAY[...]" if metric.schema is None else "..."
    return f"""\
-- A released metric for PostgreSQL 13+ with pgvector 0.5+, written by pairveil.
-- The learned distance of two people is the Euclidean distance (<->) of their projections.
-- Features, in the order of the array that {linear} takes:
{columns}

BEGIN;
CREATE FUNCTION {linear}(features double precision[]) RETURNS double precision[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $pairveil$
BEGIN
  IF cardinality(features) <> {metric.n_features} OR array_position(features, NULL) IS NOT NULL THEN
    RAISE EXCEPTION 'the metric takes {metric.n_features} features, none of them null';
  END IF;
  RETURN (
    SELECT array_agg(
      (SELECT sum(w * x) FROM unnest(metric.weights, features) AS cell(w, x))
      ORDER BY metric.component)
    FROM (VALUES
{rows}
    ) AS metric(component, weights)
  );
END
$pairveil$;
{"" if metric.schema is None else _of_raw_rows(metric.schema)}
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE {table} (
  id bigint PRIMARY KEY,
  projected vector({metric.n_components}) NOT NULL
);
CREATE INDEX ON {table} USING hnsw (projected vector_l2_ops);
COMMIT;

-- Put a person in:
--   INSERT INTO {table} VALUES (1, pairveil_project({row})::vector({metric.n_components}));
-- The ten nearest under the metric:
--   SELECT id, projected <-> pairveil_project({row})::vector({metric.n_components}) AS distance
--   FROM {table} ORDER BY distance LIMIT 10;
"""


def _of_raw_rows(schema: Schema) -> str:
    """The function of raw columns, each by its name."""
    if len(schema.raw_names) > MAX_ARGUMENTS or "\0" in "".join(schema.feature_names):
        raise InputError(
            f"PostgreSQL's functions take at most {MAX_ARGUMENTS} columns, and no NUL character in a name or "
            "category: project outside the database (ReleasedMetric.transform) and store what comes out"
        )
    maths = SqlMaths()
    arguments, made = [], []
    for place, column in enumerate(schema.features, start=1):
        type_, cell = maths.cell(column, f"${place}")
        arguments.append(f"{sql_text(column.name, chr(34))} {type_}")
        made += column.formulas(cell, maths)
    features = ",\n    ".join(one.text for one in made)
    return f"""
CREATE FUNCTION pairveil_project({", ".join(arguments)}) RETURNS double precision[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $pairveil$
  SELECT pairveil_project_encoded(ARRAY[
    {features}
  ]::double precision[])
$pairveil$;
"""


def _one_line(name: str) -> str:
    """A feature name as a comment: a line break in it would end the comment and start SQL."""
    return "".join(letter if letter.isprintable() else " " for letter in name)


# ---- ONNX, CSV, a scikit-learn transformer, SQL, a Dense module ----------------------------------

ONNX_INPUT, ONNX_OUTPUT = "features", "projected"

# MatMul on doubles has been in the standard since opset 9; 17 is the first that every maintained
# onnxruntime reads, and nothing newer is needed.
ONNX_OPSET, ONNX_IR_VERSION = 17, 8

ONNX_TEXT_OPSET, ONNX_TEXT_IR_VERSION = 20, 9  # the first that compares texts (onnxruntime 1.17)


def to_onnx(metric: ReleasedMetric, path: str | Path) -> Path:
    """Write the metric as an ONNX model of raw rows, ``projected (n, n_components)`` in doubles.

    The Euclidean distance of two projected rows is the learned distance. Doubles, not floats, so that a
    service gives the same distances as `ReleasedMetric` to the last digits.

    A metric without a schema takes one input ``features (n, n_features)``, double; names of the columns
    travel in the model's metadata under ``feature_names`` (JSON). With a schema there is an input ``(n, 1)``
    for each raw column, by its name: double for a number (NaN is missing), string for a category (an empty
    one is missing). ONNX has no dates.

    Parameters
    ----------
    metric : ReleasedMetric
    path : str or Path
        The ``.onnx`` file; written whole or not at all.

    Raises
    ------
    InputError
        The schema has a date, or the optional package ``onnx`` is absent (``pip install "pairveil[onnx]"``).

    Examples
    --------
    >>> import tempfile
    >>> from pairveil import ReleasedMetric
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_onnx(ReleasedMetric([[3.0, 0.0]]), folder + "/metric.onnx").name
    'metric.onnx'
    """
    metric = as_released(metric)
    onnx = need("onnx", "onnx", "Writing ONNX")
    helper, double = onnx.helper, onnx.TensorProto.DOUBLE
    names = (ONNX_INPUT,) if metric.schema is None else metric.schema.raw_names
    if ONNX_OUTPUT in names or "" in names:
        raise InputError(f"ONNX cannot have a column called '{ONNX_OUTPUT}', or one without a name")
    maths = OnnxMaths(onnx, (*names, ONNX_OUTPUT))
    opset, ir_version = ONNX_OPSET, ONNX_IR_VERSION
    if metric.schema is None:
        shape = ["people", metric.n_features]
        maths.inputs.append(helper.make_tensor_value_info(ONNX_INPUT, double, shape))
        rows = Term(ONNX_INPUT, maths)
    else:
        cells = [(column, maths.cell(column)) for column in metric.schema.features]
        made = [one for column, cell in cells for one in column.formulas(cell, maths)]
        rows = maths.node("Concat", *made, axis=1)
        if any(cell.is_text for _, cell in cells):
            opset, ir_version = ONNX_TEXT_OPSET, ONNX_TEXT_IR_VERSION
    maths.node("MatMul", rows, metric.components.T, output=ONNX_OUTPUT)
    graph = helper.make_graph(
        maths.nodes,
        "pairveil_metric",
        maths.inputs,
        [helper.make_tensor_value_info(ONNX_OUTPUT, double, ["people", metric.n_components])],
        initializer=maths.constants,
        doc_string="Learned metric: distance(a, b) is the Euclidean length of projected(a) - projected(b).",
    )
    model = helper.make_model(
        graph,
        producer_name="pairveil",
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=ir_version,
    )
    if metric.feature_names is not None:
        helper.set_model_props(model, {"feature_names": json.dumps(list(metric.feature_names))})
    onnx.checker.check_model(model)
    return write_file(path, model.SerializeToString())


def to_csv(metric: ReleasedMetric, path: str | Path) -> Path:
    """Write the matrix as CSV: a header of feature names, then one row a component.

    Numbers are written so that reading them back gives the same doubles. A name that a spreadsheet would
    run as a formula gets an apostrophe in front (`pairveil.printable`). A metric with a schema is refused.

    Examples
    --------
    >>> import tempfile
    >>> from pairveil import ReleasedMetric
    >>> metric = ReleasedMetric([[3.0, 0.5]], feature_names=("age", "bmi"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = to_csv(metric, folder + "/metric.csv")
    ...     print(file.read_text())
    component,age,bmi
    1,3.0,0.5
    """
    matrix = matrix_alone(metric, "A table of weights")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["component", *map(as_cell, names_in(metric))])
    for number, row in enumerate(matrix.tolist(), start=1):
        writer.writerow([number, *(repr(weight) for weight in row)])
    return write_file(path, text.getvalue().encode("utf-8"))


def to_sklearn(metric: ReleasedMetric, path: str | Path) -> Path:
    """Write a pickled, fitted `MetricTransformer`.

    A pickle runs code when it is read: send this file only inside your own house, and give others the
    release folder, from which ``MetricTransformer(ReleasedMetric.load(folder))`` makes the same object.

    Examples
    --------
    >>> import pickle, tempfile
    >>> from pairveil import ReleasedMetric
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = to_sklearn(ReleasedMetric([[3.0, 0.0]]), folder + "/metric.pkl")
    ...     pickle.loads(file.read_bytes()).transform([[2.0, 9.0]])
    array([[6.]])
    """
    from pairveil.release.sklearn_transformer import MetricTransformer

    return write_file(path, pickle.dumps(MetricTransformer(as_released(metric))))


def to_sql(metric: ReleasedMetric, path: str | Path) -> Path:
    """Write the SQL that makes the metric usable in PostgreSQL with pgvector.

    Examples
    --------
    >>> import tempfile
    >>> from pairveil import ReleasedMetric
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sql = to_sql(ReleasedMetric([[3.0, 0.0]]), folder + "/metric.sql").read_text()
    >>> "CREATE FUNCTION pairveil_project" in sql
    True
    """

    return write_file(path, pgvector_sql(metric).encode("utf-8"))


def to_dense(metric: ReleasedMetric, path: str | Path, *, bias: ArrayLike | None = None) -> Path:
    """Write a folder that sentence-transformers loads as a ``Dense`` module, behind encoder and pooling.

    Parameters
    ----------
    metric : ReleasedMetric
        Learned from the encoder's embeddings: one with a schema is refused.
    path : str or Path
        The folder: ``config.json`` and ``model.safetensors``, numbers in float32.
    bias : array of shape (n_components,), optional

    Examples
    --------
    >>> import tempfile
    >>> from pairveil import ReleasedMetric
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = to_dense(ReleasedMetric([[3.0, 0.0]]), folder + "/2_Dense")
    ...     sorted(file.name for file in made.iterdir())
    ['config.json', 'model.safetensors']
    """
    from safetensors.numpy import save

    matrix = matrix_alone(metric, "A Dense module")
    held = {"linear.weight": np.ascontiguousarray(matrix, dtype=np.float32)}
    if bias is not None:
        held["linear.bias"] = np.ascontiguousarray(bias, dtype=np.float32)
    config = {
        "in_features": matrix.shape[1],
        "out_features": matrix.shape[0],
        "bias": bias is not None,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    if Path(path).exists():
        raise InputError(f"{path} is there already; name a new folder")
    with FolderDraft(path) as draft:
        draft.write("config.json", json.dumps(config, indent=2) + "\n")
        draft.write("model.safetensors", save(held))
        return draft.commit()


def matrix_alone(metric: ReleasedMetric, what: str) -> FloatArray:
    """The matrix for a format that holds nothing else; refused where a schema goes with it.

    Examples
    --------
    >>> from pairveil import ReleasedMetric
    >>> matrix_alone(ReleasedMetric([[3.0, 0.0]]), "A table of weights")
    array([[3., 0.]])
    """
    if as_released(metric).schema is not None:
        raise InputError(
            f"{what} cannot hold the schema by which this release reads raw rows, and gives wrong distances "
            "without it: export as sklearn, sql or onnx, or load the release (ReleasedMetric.load)"
        )
    return metric.components


def names_in(metric: ReleasedMetric) -> Sequence[str]:
    """Names of the matrix's columns, numbered where they have none.

    Examples
    --------
    >>> from pairveil import ReleasedMetric
    >>> names_in(ReleasedMetric([[3.0, 0.0]]))
    ['feature_1', 'feature_2']
    """
    numbered = [f"feature_{number}" for number in range(1, metric.n_features + 1)]
    return numbered if metric.feature_names is None else metric.feature_names


# ---- formulas in other languages -----------------------------------------------------------------

SPACES = "".join(letter for letter in map(chr, range(0x3001)) if letter.isspace())
"""What is taken off around a category before it is compared."""


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
        return "text", Term(f"btrim({argument}, {sql_text(SPACES)})", self, is_text=True)

    def missing(self, cell: Term) -> Term:
        nothing = "''" if cell.is_text else "'NaN'"
        return Term(f"{cell.text} IS NULL OR {cell.text} = {nothing}", self)

    def equals(self, cell: Term, level: str) -> Term:
        return Term(f"({cell.text} = {sql_text(level)})::int", self)

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


def sql_text(value: str, quote: str = "'") -> str:
    """A text (or, between ", a name) for PostgreSQL: escapes, so that nothing in it can end it.

    Examples
    --------
    >>> print(sql_text("it's"))
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
