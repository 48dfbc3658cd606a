"""How good a metric is, and which of several to take.

`scores` measures on public people: pair AUC, nearest neighbours, gain kept. `curve` measures on private
labelled pairs, which is charged: error rates and AUCs. `held_out` scores a fit on people who are kept out of
it, under its own certificate. `search` is the best of several private fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairveil._lazy import offered

__all__ = [
    "private_pair_auc",
    "with_score",
]
__getattr__ = offered(
    __name__,
    {
        "pairveil.evaluation.curve": "private_pair_auc",
        "pairveil.evaluation.held_out": "with_score",
    },
)

if TYPE_CHECKING:
    from pairveil.evaluation.curve import private_pair_auc as private_pair_auc
    from pairveil.evaluation.held_out import with_score as with_score
