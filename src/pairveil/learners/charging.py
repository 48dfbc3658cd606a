"""Charging a ledger for a fit: once, however often the fit is killed and resumed.

A fit with a checkpoint is charged when it starts. When it is resumed, the charge must be its own (the same
events, kappas, graph and slack) and the checkpoint must begin with every answer that the ledger knows of;
docs/theory/resuming.md says what that prevents.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pairveil.engine.checkpoint import Checkpoint, Content, fit_digest, name_of, read
from pairveil.errors import InputError
from pairveil.learners.named_people import OWN_ROWS
from pairveil.learners.preparing import Prepared
from pairveil.privacy.ledger import PrivacyLedger


def charge(ledger: PrivacyLedger | None, prepared: Prepared, saved: Checkpoint | None) -> None:
    """Charge a fit before any noise is drawn, unless the ledger was charged for this very fit.

    A killed fit has spent, never the other way round. A fit without noise costs infinitely much, so a ledger
    refuses it.

    Parameters
    ----------
    ledger : PrivacyLedger or None
        None keeps no account.
    saved : Checkpoint or None
        Tells the ledger of each answer from here on, before it is used.

    Raises
    ------
    BudgetError
        The budget does not allow it.
    InputError
        The checkpoint is not what the ledger knows of it.
    """
    if ledger is None:
        return
    cost, note = prepared.cost(), f"fit of {prepared.plan.n_records} {prepared.material.kind}"
    if saved is None:
        ledger.spend(**cost, note=note)
        return
    known = _charged_mark(ledger, cost, saved.content)
    if known is None:
        ledger.spend(**cost, note=note, checkpoint=(saved.content.name, saved.mark))
    else:  # a file that is ahead: its last answer is about to be used
        ledger.advance(saved.content.name, known, saved.mark)
    saved.follow(ledger)


def check(ledger: PrivacyLedger | None, prepared: Prepared, path: Path | str) -> None:
    """Refuse a checkpoint that a fit would not resume from; charges and changes nothing.

    ``path``: there may be nothing there yet.

    Raises InputError: the checkpoint is of another fit, damaged, or not what the ledger knows of it.
    """
    if not Path(path).exists():
        return
    content = read(path, fit_digest(prepared.plan, prepared.material.used, prepared.about))
    if ledger is not None:
        _charged_mark(ledger, prepared.cost(), content)


def how_to_resume(ledger: PrivacyLedger | None, saved: Checkpoint | None) -> str:
    """What a fit that was stopped has been charged, and how it is resumed: for people.

    Examples
    --------
    >>> how_to_resume(None, None)
    'No ledger was charged. Run it again; with checkpoint=FILE it can be resumed next time'
    """
    if saved is not None:
        charged = "" if ledger is None else "The ledger was charged for this fit, once. "
        more = "" if ledger is None else ", and charges nothing more"
        return f"{charged}Run the same again: it resumes from its checkpoint{more}"
    if ledger is None:
        return (
            "No ledger was charged. Run it again; with checkpoint=FILE it can be resumed next time"
        )
    return (
        "The ledger was charged for this fit and stays charged; another fit is charged anew. With "
        "checkpoint=FILE a fit can be resumed, and is charged once"
    )


def is_charged(ledger: PrivacyLedger, path: Path | str) -> bool:
    """Whether a ledger was charged for the fit whose checkpoint, which `check` accepts, is at a path."""
    name = name_of(path)
    return any(entry.checkpoint and entry.checkpoint[0] == name for entry in ledger.entries)


def _charged_mark(ledger: PrivacyLedger, cost: dict[str, Any], content: Content) -> str | None:
    """How far the ledger knows this fit has come; None where it was not charged for it."""
    for entry in ledger.entries:
        if entry.checkpoint is None or entry.checkpoint[0] != content.name:
            continue
        # A name by row numbers is that of the object that died with its process; the checkpoint itself is of
        # these pairs and no others. Entries of version 2 do not say what units mean.
        kept = {name: getattr(entry, name) for name in cost}
        if str(kept["graph"]).startswith(OWN_ROWS):
            kept["graph"] = cost["graph"]
        if entry.meanings is None:
            kept["meanings"] = cost["meanings"]
        if kept != cost:
            raise InputError(
                "the ledger was charged for another fit under this checkpoint's name; "
                "remove it to start anew, which spends anew"
            )
        mark = entry.checkpoint[1]
        if mark not in content.marks:
            raise InputError(
                "the ledger knows of sums that are not in this checkpoint: it is an older copy, or "
                "damaged; remove it to start anew, which spends anew"
            )
        return mark
    return None
