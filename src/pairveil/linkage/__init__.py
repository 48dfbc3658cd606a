"""Record linkage: match weights that are learned privately from labelled pairs, and can be handed out."""

from pairveil.linkage.dedupe import (
    DedupeClassifier,
    DedupeComparator,
    from_dedupe,
    to_recordlinkage,
)
from pairveil.linkage.levels import level_frequencies, random_pairs, text_levels
from pairveil.linkage.model import PrivateLinkageModel
from pairveil.linkage.splink import from_splink, metric_comparison
from pairveil.records.embedded import make_records
from pairveil.release.linkage import ReleasedLinkage

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
