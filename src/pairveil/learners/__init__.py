"""The learners: one file or one small package each, on `pairveil.learners.base.PrivateLearner`.

`LEARNERS` is the registry: the tests of the contract, the audit and the tables of the docs run over it, so a
learner that is listed is certified, audited and documented like the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pairveil._lazy import offered

if TYPE_CHECKING:
    from pairveil.learners.base import PrivateLearner

LEARNERS: dict[str, str] = {
    "contrastive": "pairveil.learners.contrastive.learner:DPPMetricLearner",
    "triplet": "pairveil.learners.tuples:DPPTripletLearner",
    "tuplet": "pairveil.learners.tuples:DPPTupletLearner",
    "ranking": "pairveil.learners.ranking:PrivatePreferenceRanker",
    "clustering": "pairveil.learners.clustering:PrivateConstrainedKMeans",
}
"""Private learners by name: 'module:class'. Nothing is imported before it is asked for."""

DEFAULT_LEARNER = "contrastive"
"""What `pairveil fit` and `pairveil audit` take when no learner is named."""


def learner_class(name: str) -> type[PrivateLearner]:
    """The class of a registered learner.

    ``name``: one of `LEARNERS`.

    Examples
    --------
    >>> learner_class("contrastive").__name__
    'DPPMetricLearner'
    """
    from pairveil.errors import InputError

    if name not in LEARNERS:
        raise InputError(f"learner must be one of {', '.join(LEARNERS)}")
    module, _, kind = LEARNERS[name].partition(":")
    found: type[PrivateLearner] = getattr(import_module(module), kind)
    return found


__all__ = ["Outlook", "PrivateLearner", "PrivateMetricLearner"]

__getattr__ = offered(
    __name__,
    {
        "pairveil.learners.base": "PrivateLearner",
        "pairveil.learners.estimator": "PrivateMetricLearner",
        "pairveil.learners.outlook": "Outlook",
    },
)

if TYPE_CHECKING:
    from pairveil.learners.base import PrivateLearner as PrivateLearner
    from pairveil.learners.estimator import PrivateMetricLearner as PrivateMetricLearner
    from pairveil.learners.outlook import Outlook as Outlook
