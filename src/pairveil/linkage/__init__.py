"""Record linkage: match weights that are learned privately from labelled pairs, and can be handed out."""

from pairveil.linkage.comparing import text_levels
from pairveil.linkage.dedupe import DedupeClassifier, DedupeComparator, from_dedupe
from pairveil.linkage.estimating import level_frequencies
from pairveil.linkage.metric_comparison import metric_comparison
from pairveil.linkage.model import PrivateLinkageModel
from pairveil.linkage.random_pairs import random_pairs
from pairveil.linkage.recordlinkage import to_recordlinkage
from pairveil.linkage.splink import from_splink
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
