"""Nearest neighbours under the released metric: FAISS, hnswlib and PostgreSQL with pgvector.

All three search Euclidean neighbours, and the learned distance of a and b is the Euclidean distance of
L a and L b. So an index over projected vectors is exact for the metric and has n_components columns
instead of n_features. An index holds the people put into it: it is as private as they are, and the
certificate says nothing about them.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from pairveil.errors import InputError
from pairveil.release.exporters import matrix_alone, names_in, need
from pairveil.release.metric import ReleasedMetric, as_released
from pairveil.release.projector import SqlMaths, quoted
from pairveil.schema.schema import Schema

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
        arguments.append(f"{quoted(column.name, chr(34))} {type_}")
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
