"""One way to warn: the warning names the line of the caller's own code, however deep it arose here."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

BETWEEN = {"pairveil", "sklearn"}  # scikit-learn's wrappers stand between a caller and `transform`


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the nearest line outside this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and _is_between(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_between(frame: FrameType) -> bool:
    """Whether a frame is no caller's; an example in a docstring runs under its module's name."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package in BETWEEN and not frame.f_code.co_filename.startswith("<doctest")
