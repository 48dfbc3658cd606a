"""Nearest neighbours under the released metric: FAISS, hnswlib and PostgreSQL with pgvector.

All three search Euclidean neighbours, and the learned distance of a and b is the Euclidean distance of
L a and L b. So an index over projected vectors is exact for the metric and has n_components columns
instead of n_features. An index holds the people put into it: it is as private as they are, and the
certificate says nothing about them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairveil.errors import InputError
from pairveil.release.exporters import default_names, matrix_of, need


def faiss_index(components: ArrayLike) -> Any:
    """An empty exact FAISS index that takes raw feature rows and searches under the metric.

    The projection is part of the index (``IndexPreTransform``), so ``add`` and ``search`` take rows of
    n_features float32 columns. FAISS returns squared distances.

    Examples
    --------
    >>> import numpy as np, pytest
    >>> _ = pytest.importorskip("faiss")
    >>> index = faiss_index([[3.0, 0.0]])
    >>> index.add(np.array([[0, 0], [1, 9]], dtype=np.float32))
    >>> squared, rows = index.search(np.array([[1, 0]], dtype=np.float32), 1)
    >>> int(rows[0, 0]), float(squared[0, 0])
    (1, 0.0)
    """
    matrix = matrix_of(components)
    faiss = need("faiss", "", "A FAISS index")
    n_components, n_features = matrix.shape
    projection = faiss.LinearTransform(n_features, n_components, False)
    faiss.copy_array_to_vector(matrix.astype(np.float32).ravel(), projection.A)
    projection.is_trained = True
    # The wrapper keeps its two parts alive as long as the index lives.
    return faiss.IndexPreTransform(projection, faiss.IndexFlatL2(n_components))


def hnswlib_index(components: ArrayLike, people: ArrayLike, *, ef_search: int = 64) -> Any:
    """An approximate index over the projected people; query it with projected rows.

    Parameters
    ----------
    components : array of shape (n_components, n_features)
    people : array of shape (n, n_features)
        Labels of the index are the row numbers.
    ef_search : int, default 64
        Larger finds more of the true neighbours and is slower; at least the k you ask for.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("hnswlib")
    >>> L = np.array([[3.0, 0.0]])
    >>> index = hnswlib_index(L, [[0.0, 0.0], [1.0, 9.0]])
    >>> rows, squared = index.knn_query(np.array([[1.0, 0.0]]) @ L.T, k=1)
    >>> int(rows[0, 0])
    1
    """
    matrix = matrix_of(components)
    points = np.asarray(people, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != matrix.shape[1]:
        raise InputError(f"the metric takes rows of {matrix.shape[1]} features")
    hnswlib = need("hnswlib", "", "An hnswlib index")
    index = hnswlib.Index(space="l2", dim=matrix.shape[0])
    index.init_index(max_elements=max(len(points), 1), M=16, ef_construction=200, random_seed=0)
    index.add_items((points @ matrix.T).astype(np.float32), np.arange(len(points)))
    index.set_ef(ef_search)
    return index


def pgvector_sql(
    components: ArrayLike, feature_names: Sequence[str] | None = None, *, table: str = "people"
) -> str:
    """SQL that projects and indexes people inside PostgreSQL with the pgvector extension.

    It makes a function ``pairveil_project(double precision[])`` with the matrix in it (plain PostgreSQL,
    no extension), a table with a projected column and an HNSW index for the metric, and shows the
    nearest-neighbour query.

    Examples
    --------
    >>> sql = pgvector_sql([[3.0, 0.0]], ["age", "bmi"])
    >>> "vector(1)" in sql and "-- 2. bmi" in sql
    True
    """
    matrix = matrix_of(components, feature_names)
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,50}", table):
        raise InputError("a table name has lower-case letters, digits and underscores only")
    n_components, n_features = matrix.shape
    names = feature_names if feature_names is not None else default_names(n_features)
    columns = "\n".join(f"-- {i}. {_one_line(name)}" for i, name in enumerate(names, start=1))
    rows = ",\n".join(
        f"    ({number}, ARRAY[{', '.join(repr(weight) for weight in row)}]::double precision[])"
        for number, row in enumerate(matrix.tolist(), start=1)
    )
    return f"""\
-- A released metric for PostgreSQL 13+ with pgvector 0.5+, written by pairveil.
-- The learned distance of two people is the Euclidean distance (<->) of their projections.
-- Features, in the order of the array that pairveil_project takes:
{columns}

BEGIN;
CREATE FUNCTION pairveil_project(features double precision[]) RETURNS double precision[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $pairveil$
BEGIN
  IF cardinality(features) <> {n_features} OR array_position(features, NULL) IS NOT NULL THEN
    RAISE EXCEPTION 'the metric takes {n_features} features, none of them null';
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

CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE {table} (
  id bigint PRIMARY KEY,
  projected vector({n_components}) NOT NULL
);
CREATE INDEX ON {table} USING hnsw (projected vector_l2_ops);
COMMIT;

-- Put a person in:
--   INSERT INTO {table} VALUES (1, pairveil_project(ARRAY[...])::vector({n_components}));
-- The ten nearest under the metric:
--   SELECT id, projected <-> pairveil_project(ARRAY[...])::vector({n_components}) AS distance
--   FROM {table} ORDER BY distance LIMIT 10;
"""


def _one_line(name: str) -> str:
    """A feature name as a comment: a line break in it would end the comment and start SQL."""
    return "".join(letter if letter.isprintable() else " " for letter in name)
