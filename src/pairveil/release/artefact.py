"""Whatever a release folder holds: a metric, a linkage model or an error curve, with its certificate."""

from __future__ import annotations

from pathlib import Path

from pairveil.release.error_curve import ErrorCurve
from pairveil.release.folder import CURVE_FILE, LINKAGE_FILE, METRIC_FILE
from pairveil.release.linkage import ReleasedLinkage
from pairveil.release.metric import ReleasedMetric


def load_release(folder: str | Path) -> ReleasedMetric | ReleasedLinkage | ErrorCurve:
    """Read a release of any kind, and check that it is what its certificate was made for.

    Raises
    ------
    InputError
        When a file is missing, truncated, tampered with or of a newer version.
    """
    source = Path(folder)
    if not (source / METRIC_FILE).exists():
        if (source / LINKAGE_FILE).exists():
            return ReleasedLinkage.load(source)
        if (source / CURVE_FILE).exists():
            return ErrorCurve.load(source)
    return ReleasedMetric.load(source)
