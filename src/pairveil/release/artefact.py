"""Whatever a release folder holds: a metric, a linkage model, a ranking, clusters; with its certificate."""

from __future__ import annotations

from pathlib import Path

from pairveil.release.answers import ReleasedAnswer, ReleasedClusters, ReleasedRanking
from pairveil.release.linkage import LINKAGE_FILE, ReleasedLinkage
from pairveil.release.metric import METRIC_FILE, ReleasedMetric


def load_release(folder: str | Path) -> ReleasedMetric | ReleasedLinkage | ReleasedAnswer:
    """Read a release of any kind, and check that it is what its certificate was made for.

    Raises
    ------
    InputError
        When a file is missing, truncated, tampered with or of a newer version.
    """
    source = Path(folder)
    if (source / METRIC_FILE).exists():
        return ReleasedMetric.load(source)
    if (source / LINKAGE_FILE).exists():
        return ReleasedLinkage.load(source)
    for kind in (ReleasedRanking, ReleasedClusters):
        if (source / kind.file).exists():
            return kind.load(source)
    return ReleasedMetric.load(source)  # says what is missing
