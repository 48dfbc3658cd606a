"""The released metric in other people's formats: ONNX, CSV, a scikit-learn transformer, SQL, a Dense module.

Every exporter takes the released matrix alone. It is post-processing: the certificate holds for what is
written here as it does for the matrix, and no exporter can be given a training row.
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
from numpy.typing import ArrayLike, NDArray

from pairveil.csv_cells import as_cell
from pairveil.errors import InputError
from pairveil.files import FolderDraft, write_file

PYPI_NAMES = {"faiss": "faiss-cpu"}
ONNX_INPUT, ONNX_OUTPUT = "features", "projected"
# MatMul on doubles has been in the standard since opset 9; 17 is the first that every maintained
# onnxruntime reads, and nothing newer is needed.
ONNX_OPSET, ONNX_IR_VERSION = 17, 8


def matrix_of(
    components: ArrayLike, feature_names: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """The matrix as float64, checked against its feature names.

    Examples
    --------
    >>> matrix_of([[1, 2]], ["age", "bmi"]).shape
    (1, 2)
    """
    matrix = np.ascontiguousarray(components, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0 or not np.all(np.isfinite(matrix)):
        raise InputError("a metric is a matrix of finite numbers, one row a component")
    if feature_names is not None and len(feature_names) != matrix.shape[1]:
        raise InputError("there must be one feature name for each column of the metric")
    return matrix


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


def to_onnx(
    components: ArrayLike, path: str | Path, feature_names: Sequence[str] | None = None
) -> Path:
    """Write the metric as an ONNX model: ``features (n, d) -> projected (n, d')``, both double.

    The Euclidean distance of two projected rows is the learned distance. Doubles, not floats, so that a
    service gives the same distances as `ReleasedMetric` to the last digits. Feature names travel in the
    model's metadata under ``feature_names`` (JSON).

    Parameters
    ----------
    components : array of shape (n_components, n_features)
    path : str or Path
        The ``.onnx`` file; written whole or not at all.
    feature_names : sequence of str, optional

    Raises
    ------
    InputError
        When the optional package ``onnx`` is absent (``pip install "pairveil[onnx]"``).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_onnx([[3.0, 0.0]], folder + "/metric.onnx").name
    'metric.onnx'
    """
    matrix = matrix_of(components, feature_names)
    onnx = need("onnx", "onnx", "Writing ONNX")
    helper, double = onnx.helper, onnx.TensorProto.DOUBLE
    n_components, n_features = matrix.shape
    weights = onnx.numpy_helper.from_array(np.ascontiguousarray(matrix.T), name="metric")
    graph = helper.make_graph(
        [helper.make_node("MatMul", [ONNX_INPUT, "metric"], [ONNX_OUTPUT])],
        "pairveil_metric",
        [helper.make_tensor_value_info(ONNX_INPUT, double, ["people", n_features])],
        [helper.make_tensor_value_info(ONNX_OUTPUT, double, ["people", n_components])],
        initializer=[weights],
        doc_string="Learned metric: distance(a, b) is the Euclidean length of projected(a) - projected(b).",
    )
    model = helper.make_model(
        graph,
        producer_name="pairveil",
        opset_imports=[helper.make_opsetid("", ONNX_OPSET)],
        ir_version=ONNX_IR_VERSION,
    )
    if feature_names is not None:
        helper.set_model_props(model, {"feature_names": json.dumps(list(feature_names))})
    onnx.checker.check_model(model)
    return write_file(path, model.SerializeToString())


def to_csv(
    components: ArrayLike, path: str | Path, feature_names: Sequence[str] | None = None
) -> Path:
    """Write the matrix as CSV: a header of feature names, then one row a component.

    Numbers are written so that reading them back gives the same doubles. A name that a spreadsheet would
    run as a formula gets an apostrophe in front (`pairveil.csv_cells`).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = to_csv([[3.0, 0.5]], folder + "/metric.csv", ["age", "bmi"])
    ...     print(file.read_text())
    component,age,bmi
    1,3.0,0.5
    """
    matrix = matrix_of(components, feature_names)
    names = feature_names if feature_names is not None else default_names(matrix.shape[1])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["component", *map(as_cell, names)])
    for number, row in enumerate(matrix.tolist(), start=1):
        writer.writerow([number, *(repr(weight) for weight in row)])
    return write_file(path, text.getvalue().encode("utf-8"))


def to_sklearn(
    components: ArrayLike, path: str | Path, feature_names: Sequence[str] | None = None
) -> Path:
    """Write a pickled, fitted `MetricTransformer`.

    A pickle runs code when it is read: send this file only inside your own house, and give others the
    release folder, from which ``MetricTransformer(metric.components)`` makes the same object.

    Examples
    --------
    >>> import pickle, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = to_sklearn([[3.0, 0.0]], folder + "/metric.pkl")
    ...     pickle.loads(file.read_bytes()).transform([[2.0, 9.0]])
    array([[6.]])
    """
    from pairveil.release.sklearn_transformer import MetricTransformer

    matrix = matrix_of(components, feature_names)
    names = tuple(feature_names) if feature_names is not None else None
    return write_file(path, pickle.dumps(MetricTransformer(matrix, feature_names=names)))


def to_sql(
    components: ArrayLike, path: str | Path, feature_names: Sequence[str] | None = None
) -> Path:
    """Write the SQL that makes the metric usable in PostgreSQL with pgvector.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sql = to_sql([[3.0, 0.0]], folder + "/metric.sql").read_text()
    >>> "CREATE FUNCTION pairveil_project" in sql
    True
    """
    from pairveil.release.recipes import pgvector_sql

    return write_file(path, pgvector_sql(components, feature_names).encode("utf-8"))


def to_dense(
    components: ArrayLike,
    path: str | Path,
    feature_names: Sequence[str] | None = None,
    *,
    bias: ArrayLike | None = None,
) -> Path:
    """Write a folder that sentence-transformers loads as a ``Dense`` module, behind encoder and pooling.

    Parameters
    ----------
    components : array of shape (n_components, n_features)
        Learned from the encoder's embeddings.
    path : str or Path
        The folder: ``config.json`` and ``model.safetensors``, numbers in float32.
    feature_names : sequence of str, optional
        Checked; the format has no place for them.
    bias : array of shape (n_components,), optional

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(file.name for file in to_dense([[3.0, 0.0]], folder + "/2_Dense").iterdir())
    ['config.json', 'model.safetensors']
    """
    from safetensors.numpy import save

    matrix = matrix_of(components, feature_names)
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


def default_names(n_features: int) -> list[str]:
    """Names for columns that have none.

    Examples
    --------
    >>> default_names(2)
    ['feature_1', 'feature_2']
    """
    return [f"feature_{number}" for number in range(1, n_features + 1)]
