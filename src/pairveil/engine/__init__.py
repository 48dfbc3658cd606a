"""The only code that sums private contents: it answers the queries of a plan, and nothing else.

A *statistic* says what a record contributes and how far that can move the sum; a *plan* says which queries
are asked; the *engine* sums, adds noise and counts. ``backends`` says where the records lie, ``kernels``
holds the compiled loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairveil._lazy import offered

__all__ = ["Plan", "PublicFacts", "QuerySpec", "Recipe", "Statistic", "open_dask_pairs"]

__getattr__ = offered(
    __name__,
    {
        "pairveil.engine.plan": "Plan PublicFacts QuerySpec Recipe Ask Setting",
        "pairveil.engine.statistics": "Statistic",
        "pairveil.engine.backends.dask": "open_dask_pairs",
    },
)

if TYPE_CHECKING:
    from pairveil.engine.backends.dask import open_dask_pairs as open_dask_pairs
    from pairveil.engine.plan import Plan as Plan
    from pairveil.engine.plan import PublicFacts as PublicFacts
    from pairveil.engine.plan import QuerySpec as QuerySpec
    from pairveil.engine.plan import Recipe as Recipe
    from pairveil.engine.statistics import Statistic as Statistic
