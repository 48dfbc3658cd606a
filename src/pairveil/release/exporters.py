"""The released metric in other people's formats: ONNX, CSV, a scikit-learn transformer, SQL, a Dense module.

Every exporter takes a `ReleasedMetric` and writes something that takes the same raw rows as its `transform`
and gives the same distances; a format that cannot hold the schema refuses a metric that has one. It is
post-processing: the certificate holds for what is written here, and no exporter can be given a training row.
"""

from __future__ import annotations

import csv
import io
import json
import pickle
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from pairveil.array_types import FloatArray
from pairveil.csv_cells import as_cell
from pairveil.errors import InputError
from pairveil.files import FolderDraft, write_file
from pairveil.release.metric import ReleasedMetric, as_released
from pairveil.release.projector import OnnxMaths, Term

PYPI_NAMES = {"faiss": "faiss-cpu"}
ONNX_INPUT, ONNX_OUTPUT = "features", "projected"
# MatMul on doubles has been in the standard since opset 9; 17 is the first that every maintained
# onnxruntime reads, and nothing newer is needed.
ONNX_OPSET, ONNX_IR_VERSION = 17, 8
ONNX_TEXT_OPSET, ONNX_TEXT_IR_VERSION = 20, 9  # the first that compares texts (onnxruntime 1.17)


def need(package: str, extra: str, purpose: str) -> ModuleType:
    """An optional package, or an error that says how to get it.

    Examples
    --------
    >>> need("no_such_package", "onnx", "Writing ONNX")
    Traceback (most recent call last):
        ...
    pairveil.errors.InputError: Writing ONNX needs the package no_such_package; install it with:
    pip install "pairveil[onnx]"
    """
    try:
        return import_module(package)
    except ImportError:
        wanted = f'"pairveil[{extra}]"' if extra else PYPI_NAMES.get(package, package)
        raise InputError(
            f"{purpose} needs the package {package}; install it with: pip install {wanted}"
        ) from None


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
    run as a formula gets an apostrophe in front (`pairveil.csv_cells`). A metric with a schema is refused.

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
    from pairveil.release.recipes import pgvector_sql

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
