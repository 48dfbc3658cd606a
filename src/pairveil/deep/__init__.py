"""Deep metrics: pairs through a network, under the same guarantee as every other learner (extra ``torch``).

`PrivateMetricTrainer` trains any torch module whose layers treat samples apart on labelled pairs, groups
of people or triplets. Each record's gradient, through all its people, is clipped as a whole and summed in
exact integers by the project's own engine, so that plan, accountant, certificate, ledger, checkpoint and
audit are those of every learner.
`make_private` is the same one level lower, for training loops of one's own.
"""

from __future__ import annotations

from pairveil.errors import MissingExtraError

try:
    import torch as _torch  # noqa: F401
except ImportError:  # pragma: no cover - a machine without the extra
    raise MissingExtraError(
        "pairveil.deep needs torch: install the extra (pip install 'pairveil[torch]')"
    ) from None

from pairveil.deep.layers import add_adapters, merge_adapters
from pairveil.deep.network import Network
from pairveil.deep.recipe import NetworkGradient
from pairveil.deep.records import LOSSES, from_indices
from pairveil.deep.release import ReleasedNetwork
from pairveil.deep.trainer import PrivateMetricTrainer, PrivateSteps, make_private

__all__ = [
    "LOSSES",
    "Network",
    "NetworkGradient",
    "PrivateMetricTrainer",
    "PrivateSteps",
    "ReleasedNetwork",
    "add_adapters",
    "from_indices",
    "make_private",
    "merge_adapters",
]
