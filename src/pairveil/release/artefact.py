"""Whatever a release folder holds: a metric, a network, a linkage model, an error curve, an answer."""

from __future__ import annotations

from pathlib import Path

from pairveil.release.answers import ReleasedAnswer, ReleasedClusters, ReleasedRanking
from pairveil.release.curve import ErrorCurve
from pairveil.release.folder import (
    CLUSTERS_FILE,
    CURVE_FILE,
    LINKAGE_FILE,
    METRIC_FILE,
    NETWORK_FILE,
    RANKING_FILE,
)
from pairveil.release.linkage import ReleasedLinkage
from pairveil.release.metric import ReleasedMetric
from pairveil.release.network import DescribedNetwork

_OTHERS: dict[str, type[ReleasedLinkage | ErrorCurve | ReleasedAnswer | DescribedNetwork]] = {
    LINKAGE_FILE: ReleasedLinkage,
    CURVE_FILE: ErrorCurve,
    RANKING_FILE: ReleasedRanking,
    CLUSTERS_FILE: ReleasedClusters,
    NETWORK_FILE: DescribedNetwork,
}


def load_release(
    folder: str | Path,
) -> ReleasedMetric | ReleasedLinkage | ErrorCurve | ReleasedAnswer | DescribedNetwork:
    """Read a release of any kind, and check that it is what its certificate was made for.

    Raises InputError: when a file is missing, truncated, tampered with or of a newer version.
    """
    source = Path(folder)
    if not (source / METRIC_FILE).exists():
        for file, kind in _OTHERS.items():
            if (source / file).exists():
                return kind.load(source)
    return ReleasedMetric.load(source)
