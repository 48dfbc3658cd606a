"""How large the files of a fit can get, from its plan: room is made sure of before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairveil.learners.contrastive.recipe import MAX_DIRECTIONS, WIDE

_RECORD = 400  # bytes beside the numbers of a sum: its name, its head, numpy's own
_FIRST_LINE = 1_000


def most_rows(n_features: int, n_components: int | None) -> int:
    """Rows of the metric that a fit returns, at most.

    Examples
    --------
    >>> most_rows(30, None), most_rows(30, 2), most_rows(10_000, None)
    (30, 2, 10)
    """
    if n_components is not None:
        return n_components
    return n_features if n_features <= WIDE else MAX_DIRECTIONS


def checkpoint_bytes(plan: Mapping[str, Any]) -> int:
    """Bytes of the checkpoint of a whole fit, at most; ``plan`` is that of its certificate.

    Examples
    --------
    >>> checkpoint_bytes({"releases": [{"entries": 300, "steps": 100}]})
    281000
    """
    queries = plan["releases"]
    total: int = _FIRST_LINE + sum(
        query["steps"] * (8 * query["entries"] + _RECORD) for query in queries
    )
    return total
