"""The page of an audited trainer: what was claimed, what was found, and what it does not say."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from pairveil.report.data import Cover
from pairveil.report.page import environment, shell

if TYPE_CHECKING:  # the page sees plain findings, never the data that they came from
    from pairveil.audit.trainer_audit import TrainerFinding


def render(found: TrainerFinding, command: Sequence[str], cover: Cover | None = None) -> str:
    """The page as a string.

    ``command``: what was typed, for whoever repeats it.

    Examples
    --------
    >>> from pairveil.audit.trainer_audit import audit_trainer
    >>> def noise(X, pairs, y, seed):
    ...     return [seed % 7]
    >>> page = render(audit_trainer(noise, 1.0, runs=40), ["pairveil", "audit"])
    >>> page.startswith("<!doctype html>"), "Nothing found" in page
    (True, True)
    """
    return environment("report").get_template("report/trainer_audit.html").render(
        shell("report", "audit"),
        found=found,
        worst=max(reversed(found.levels), key=lambda level: level.finding.lower_bound),
        cover=cover or Cover(),
        made=date.today().isoformat(),
        command=shlex.join(command),
    )  # fmt: skip
