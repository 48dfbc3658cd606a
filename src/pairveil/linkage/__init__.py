"""Record linkage: match weights that are learned privately from labelled pairs, and can be handed out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairveil._lazy import offered

__all__ = [
    "DedupeClassifier",
    "DedupeComparator",
    "PrivateLinkageModel",
    "ReleasedLinkage",
    "from_dedupe",
    "from_splink",
    "level_frequencies",
    "make_records",
    "metric_comparison",
    "random_pairs",
    "text_levels",
    "to_recordlinkage",
]
__getattr__ = offered(
    __name__,
    {
        "pairveil.linkage.dedupe": "DedupeClassifier DedupeComparator from_dedupe to_recordlinkage",
        "pairveil.linkage.levels": "level_frequencies random_pairs text_levels",
        "pairveil.linkage.model": "PrivateLinkageModel",
        "pairveil.linkage.splink": "from_splink metric_comparison",
        "pairveil.records.embedded": "make_records",
        "pairveil.release.linkage": "ReleasedLinkage",
    },
)

if TYPE_CHECKING:
    from pairveil.linkage.dedupe import DedupeClassifier as DedupeClassifier
    from pairveil.linkage.dedupe import DedupeComparator as DedupeComparator
    from pairveil.linkage.dedupe import from_dedupe as from_dedupe
    from pairveil.linkage.dedupe import to_recordlinkage as to_recordlinkage
    from pairveil.linkage.levels import level_frequencies as level_frequencies
    from pairveil.linkage.levels import random_pairs as random_pairs
    from pairveil.linkage.levels import text_levels as text_levels
    from pairveil.linkage.model import PrivateLinkageModel as PrivateLinkageModel
    from pairveil.linkage.splink import from_splink as from_splink
    from pairveil.linkage.splink import metric_comparison as metric_comparison
    from pairveil.records.embedded import make_records as make_records
    from pairveil.release.linkage import ReleasedLinkage as ReleasedLinkage
