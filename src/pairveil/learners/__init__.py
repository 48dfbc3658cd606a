"""The learners: one file or one small package each, on `pairveil.learners.base.PrivateLearner`.

`LEARNERS` is the registry: the tests of the contract, the audit and the tables of the docs run over it, so a
learner that is listed is certified, audited and documented like the others.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from pairveil._lazy import load_named, offered

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
    """The class of a learner by its name.

    One of `LEARNERS`, an entry point of the group ``pairveil.learners`` of an installed package, or
    'module:Class': any subclass of `PrivateLearner`.
    """
    from pairveil.errors import InputError
    from pairveil.learners.base import PrivateLearner

    if ":" in name:
        place = name
    elif (known := registered_learners()).get(name) is not None:
        place = known[name]
    else:
        raise InputError(f"learner must be one of {', '.join(known)}, or module:Class")
    found = load_named(place, "class")
    if not (isinstance(found, type) and issubclass(found, PrivateLearner)):
        raise InputError(f"'{place}' is no learner: it must be a subclass of PrivateLearner")
    return found


def registered_learners() -> dict[str, str]:
    """Names and places of our own learners, and of those that installed packages bring."""
    brought = {one.name: one.value for one in entry_points(group="pairveil.learners")}
    return brought | LEARNERS  # none of ours is replaced


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
