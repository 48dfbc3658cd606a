"""Canaries: two neighbouring inputs that differ as much as a promise allows. One file a kind of record.

Those of pairs can be imported from here. `pairveil.audit.worst_case` puts one on the stage that makes all
queries of a fit show it, and ``CANARIES`` in `pairveil.audit.learner_target` says which kind a learner gets.
"""

from pairveil.audit.canaries.pairs import (
    Neighbours,
    beyond_margin,
    canary_of,
    label_flip,
    person_pairs,
    relationship_pairs,
)

__all__ = [
    "Neighbours",
    "beyond_margin",
    "canary_of",
    "label_flip",
    "person_pairs",
    "relationship_pairs",
]
