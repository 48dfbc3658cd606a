"""How large the files of a fit can get, from its plan: room is made sure of before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairveil.engine.plan import Recipe

_RECORD = 400  # bytes beside the numbers of a sum: its name, its head, numpy's own
_FIRST_LINE = 1_000


def most_rows(recipe: Recipe, n_features: int) -> int:
    """Rows of the metric that a recipe returns, at most.

    A recipe that can tell has ``most_rows(n_features)``; others return ``n_components`` rows if they have
    such a parameter, or a square matrix.

    Examples
    --------
    >>> from pairveil.learners.contrastive.recipe import ContrastiveRecipe
    >>> from pairveil.learners.scatter import ScatterRecipe
    >>> most_rows(ContrastiveRecipe(), 30), most_rows(ContrastiveRecipe(), 10_000)
    (30, 10)
    >>> most_rows(ScatterRecipe(2, n_components=3), 30), most_rows(ScatterRecipe(2), 30)
    (3, 30)
    """
    own = getattr(recipe, "most_rows", None)
    if own is not None:
        return int(own(n_features))
    return int(getattr(recipe, "n_components", None) or n_features)


def checkpoint_bytes(plan: Mapping[str, Any]) -> int:
    """Bytes of the checkpoint of a whole fit, at most; ``plan`` is that of the certificate of any learner.

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
