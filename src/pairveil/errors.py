"""Errors and warnings for people: what is wrong, where, and what to do.

No message built from these classes may contain a feature value, a label or a person's id; rows and
columns are named by number or by column name. Names of columns and files are foreign text: whatever a
terminal would act on is taken out of every message here (`pairveil.printable`).
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from pairveil.printable import printable


def _safe(parts: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(printable(part, lines=True) if isinstance(part, str) else part for part in parts)


class PairveilError(Exception):
    """Base of every error that pairveil raises on purpose."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*_safe(parts))


class InputError(PairveilError, ValueError):
    """The input or an option is wrong; the command line exits with 2."""


class MissingExtraError(InputError, ImportError):
    """Something optional is not installed; the message says what to install."""


class BudgetError(PairveilError):
    """The privacy budget does not allow it; the command line exits with 3."""


class ClusterError(PairveilError):
    """A Dask cluster went away during a fit; the command line exits with 2."""


class PartyError(PairveilError):
    """A party or the coordinator of a joint fit left, or said what nobody can go on with; exits with 2."""


class PairveilWarning(UserWarning):
    """Base of every warning that pairveil gives."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*_safe(parts))


class GuaranteeWarning(PairveilWarning):
    """What is promised is less than it seems; the command line always says so, under ``-q`` too."""


class PrivacyLeakWarning(GuaranteeWarning):
    """Something was done that the stated guarantee does not cover."""


class WaitWarning(PairveilWarning):
    """Another process holds a file that is needed; this one waits for it."""


class DataWarning(PairveilWarning):
    """The data were changed before use (rows clipped, duplicates merged) or are barely enough."""


class IdentityWarning(GuaranteeWarning, DataWarning):
    """Ids that may be one person's: if they are, kappa is too small and so is epsilon."""


class PrivateNote(DataWarning):
    """A note that tells of private contents: for the operator on stderr, never for an output.

    ``brief``: the same in a few words, for commands after the one that first reads the table.
    """

    def __init__(self, *parts: object, brief: str = "") -> None:
        super().__init__(*parts)
        self.brief = printable(brief)


# ---- one way to warn: of the line of the caller's own code, however deep it arose here ---------------

BETWEEN = {"pairveil", "sklearn"}  # scikit-learn's wrappers stand between a caller and `transform`


def warn(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Warn at the nearest line outside this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and _is_between(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_between(frame: FrameType) -> bool:
    """Whether a frame is no caller's; an example in a docstring runs under its module's name."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package in BETWEEN and not frame.f_code.co_filename.startswith("<doctest")
