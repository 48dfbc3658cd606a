"""Options of every command that writes the report, and the writing itself."""

from __future__ import annotations

import filecmp
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from pairveil.errors import InputError

PANEL = "Report"
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def _option(name: str, text: str) -> Any:
    return typer.Option(name, help=text, rich_help_panel=PANEL, show_default=False)


Title = Annotated[str, _option("--title", "What was learned, for the top of the page.")]
Institution = Annotated[str, _option("--institution", "Who hands it out.")]
Purpose = Annotated[str, _option("--purpose", "What it is for.")]
Recipient = Annotated[str, _option("--recipient", "Who gets it.")]
PublicTestFile = Annotated[
    Path | None,
    _option("--public-test", "Table of PUBLIC people to score the metric on; costs no privacy."),
]
TestClasses = Annotated[
    str | None, _option("--test-classes", "Column of --public-test with each person's class.")
]
ClassesAlias = Annotated[
    str | None, typer.Option("--classes", hidden=True, help="Earlier name of --test-classes.")
]
AuditFlag = Annotated[
    bool,
    _option(
        "--audit", "Attack this plan on made-up pairs, and show what was seen beside the bound."
    ),
]
EvaluationFile = Annotated[
    Path | None,
    _option("--evaluation", "What `pairveil evaluate --epsilon --out` wrote about this release."),
]
OperatingPoint = Annotated[
    Path | None,
    _option(
        "--threshold", "Release of `pairveil threshold` for this model: drawn on the same page."
    ),
]


class PageOptions(NamedTuple):
    """What the sender says about a page."""

    title: str = ""
    institution: str = ""
    purpose: str = ""
    recipient: str = ""
    public_test: Path | None = None
    classes: str | None = None
    id: str = "id"
    threshold: Path | None = None
    audit: bool = False
    evaluation: Path | None = None

    def check(self, private: Path | None = None) -> None:
        """Refuse options that do not go together, before anything is spent.

        ``private``: the table that is learned from: scores on it would not be covered by any epsilon.
        """
        if (self.public_test is None) != (self.classes is None):
            raise InputError(
                "--public-test FILE and --test-classes COLUMN, the column of its classes, go together"
            )
        if self.public_test is not None and not self.public_test.is_file():
            raise InputError(f"--public-test: there is no file {self.public_test}")
        tested = self.public_test is not None and private is not None and private.is_file()
        if tested and filecmp.cmp(str(self.public_test), str(private), shallow=False):
            raise InputError(
                "--public-test is the table that is learned from: those people are private, and scores on "
                "them are covered by no epsilon. Name a table of public people"
            )
        if self.public_test is not None and self.classes is not None:
            from pairveil.records.readers import read_classes

            read_classes(self.public_test, self.classes)  # says what is wrong with it


def write_page(
    folder: Path, out: Path | None = None, options: PageOptions | None = None, name: str = ""
) -> Any:
    """Write the page of a release; returns its path and what is on it.

    Everything comes from the release folder, the options and the public test table: no pair and no person
    that was learned from is looked at. ``name``: of the folder that is shown, where it is a draft still.
    """
    from pairveil.report.data import Cover
    from pairveil.report.measured import read_evaluation
    from pairveil.report.page import write
    from pairveil.report.summaries import read_release, with_curve

    said = options or PageOptions()
    said.check()
    data = read_release(folder)
    cover = Cover(said.title, said.institution, said.purpose, said.recipient)
    data = replace(data, cover=cover, folder=name or data.folder)
    if said.threshold is not None:
        data = with_curve(data, said.threshold)
    if said.evaluation is not None:
        data = replace(data, evaluation=read_evaluation(said.evaluation, data.certificate))
    if said.public_test is not None:
        data = _with_public_test(data, folder, said)
    if said.audit:
        data = replace(data, audit=_audited(data.certificate))
    return write(data, folder / "report.html" if out is None else out), data


def _with_public_test(data: Any, folder: Path, said: PageOptions) -> Any:
    from pairveil.cli.release import read_people
    from pairveil.evaluation.yardstick import yardstick
    from pairveil.records.readers import read_classes
    from pairveil.release.metric import ReleasedMetric
    from pairveil.report.public_test import scaled, score_public

    assert said.public_test is not None
    assert said.classes is not None
    metric = ReleasedMetric.load(folder)
    people = read_people(said.public_test, said.id, metric)
    classes = read_classes(said.public_test, said.classes)
    test, points = score_public(metric, people.values, classes, said.public_test.name)
    test = replace(test, reference=yardstick(scaled(metric, people.values), classes))
    summary = replace(data.summary, points=points)
    return replace(data, public_test=test, expected=_expected(data.certificate), summary=summary)


def _expected(certificate: Any) -> tuple[tuple[float, float, float], ...]:
    """The range of the gain at a grid of epsilons, this one among them."""
    from pairveil.learners.expected import gain_by_epsilon

    if certificate is None or not certificate.verify():
        return ()
    try:
        return gain_by_epsilon(certificate, sorted({*EPSILONS, certificate.epsilon}))
    except (KeyError, TypeError, ValueError, ArithmeticError):  # a plan that somebody else wrote
        return ()


def _audited(certificate: Any) -> Any:
    from pairveil.audit.plan_targets import released_plan
    from pairveil.audit.targets import audit_target

    if certificate is None:
        raise InputError("this release has no certificate: there is no claim to audit")
    return audit_target(released_plan(certificate), random_state=0)
