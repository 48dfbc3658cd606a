"""How good a metric is, and which of several to take.

`scores` measures on public people: pair AUC, nearest neighbours, gain kept. `curve` measures on private
labelled pairs, which is charged: error rates and AUCs. `search` is the best of several private fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairveil._lazy import offered

__all__ = ["private_pair_auc"]

__getattr__ = offered(
    __name__,
    {
        "pairveil.evaluation.curve": "private_pair_auc",
    },
)

if TYPE_CHECKING:
    from pairveil.evaluation.curve import private_pair_auc as private_pair_auc
