"""Errors and warnings for people: what is wrong, where, and what to do.

No message built from these classes may contain a feature value, a label or a person's id; rows and
columns are named by number or by column name.
"""

from __future__ import annotations


class PairveilError(Exception):
    """Base of every error that pairveil raises on purpose."""


class InputError(PairveilError, ValueError):
    """The input or an option is wrong; the command line exits with 2."""


class BudgetError(PairveilError):
    """The privacy budget does not allow it; the command line exits with 3."""


class ClusterError(PairveilError):
    """A Dask cluster went away during a fit; the command line exits with 2."""


class GuaranteeWarning(UserWarning):
    """What is promised is less than it seems; the command line always says so, under ``-q`` too."""


class PrivacyLeakWarning(GuaranteeWarning):
    """Something was done that the stated guarantee does not cover."""


class WaitWarning(UserWarning):
    """Another process holds a file that is needed; this one waits for it."""


class DataWarning(UserWarning):
    """The data were changed before use (rows clipped, duplicates merged) or are barely enough."""


class IdentityWarning(GuaranteeWarning, DataWarning):
    """Ids that may be one person's: if they are, kappa is too small and so is epsilon."""


class PrivateNote(DataWarning):
    """A note that tells of private contents: for the operator on stderr, never for an output."""
