"""Deep metrics: pairs through a network, under the same guarantee as every other learner (extra ``torch``).

`PrivateMetricTrainer` trains any torch module whose layers treat samples apart on labelled pairs. Each
pair's gradient, through both branches, is clipped as a whole and summed in exact integers by the project's
own engine, so that plan, accountant, certificate, ledger, checkpoint and audit are those of every learner.
`make_private` is the same one level lower, for training loops of one's own.
"""

from __future__ import annotations

from pairveil.errors import InputError

try:
    import torch as _torch  # noqa: F401
except ImportError:  # pragma: no cover - a machine without the extra
    raise InputError(
        "pairveil.deep needs torch: install the extra (pip install 'pairveil[torch]')"
    ) from None

from pairveil.deep.gradients import NetworkGradient
from pairveil.deep.losses import LOSSES
from pairveil.deep.network import Network
from pairveil.deep.release import ReleasedNetwork
from pairveil.deep.stepping import PrivateSteps, make_private
from pairveil.deep.trainer import PrivateMetricTrainer

__all__ = [
    "LOSSES",
    "Network",
    "NetworkGradient",
    "PrivateMetricTrainer",
    "PrivateSteps",
    "ReleasedNetwork",
    "make_private",
]
