"""A released metric as a comparison of Splink: levels of the learned distance, in plain SQL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pairveil.errors import InputError
from pairveil.release.exporters import matrix_alone

MOST_FEATURES = 256
"""A distance over more columns than this is too long an expression: join projected columns instead."""


def metric_comparison(metric: Any, cuts: Sequence[float], name: str = "metric") -> dict[str, Any]:
    """A comparison for the list of Splink's settings: how near two records are under a released metric.

    Parameters
    ----------
    metric : ReleasedMetric
        With feature names, which are the columns of the records; one with a schema is refused.
    cuts : ascending distances
        A pair within the first has the highest level; one beyond the last has level 0.
    name : str
        Of the comparison in Splink's output.

    Examples
    --------
    >>> import numpy as np
    >>> from pairveil import ReleasedMetric
    >>> found = metric_comparison(ReleasedMetric(np.array([[3.0, 0.0]]), None, ("age", "bmi")), [0.5])
    >>> found["comparison_levels"][1]["sql_condition"]
    '(3.0*("age_l"-"age_r"))^2 <= 0.25'
    """
    matrix = matrix_alone(metric, "A comparison of Splink")
    names = metric.feature_names
    if names is None or metric.n_features > MOST_FEATURES:
        raise InputError(f"the metric must name its columns, {MOST_FEATURES} at most")
    bounds = [float(cut) for cut in cuts]
    if not bounds or bounds != sorted(set(bounds)) or not 0 < bounds[0] <= bounds[-1] < math.inf:
        raise InputError("cuts must be ascending distances above 0")
    if any('"' in one for one in names):
        raise InputError("a column's name holds a quotation mark, which SQL would take for its end")
    differences = [f'("{one}_l"-"{one}_r")' for one in names]
    rows = [
        "+".join(f"{w!r}*{d}" for w, d in zip(row, differences, strict=True) if w != 0)
        for row in matrix.tolist()
    ]
    square = "+".join(f"({row})^2" for row in rows if row) or "0.0"
    null = " OR ".join(f'"{one}_l" IS NULL OR "{one}_r" IS NULL' for one in names)
    levels: list[dict[str, Any]] = [
        {"sql_condition": null, "label_for_charts": f"{name} is NULL", "is_null_level": True}
    ]
    for cut in bounds:
        within = {"sql_condition": f"{square} <= {cut * cut!r}"}
        levels.append({**within, "label_for_charts": f"distance <= {cut:g}"})
    levels.append({"sql_condition": "ELSE", "label_for_charts": "farther apart"})
    return {"output_column_name": name, "comparison_levels": levels}
