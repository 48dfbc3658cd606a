"""Options of every command that writes the report, and the writing itself."""

from __future__ import annotations

import filecmp
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from pairveil.errors import InputError

PANEL = "Report"


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
PublicClasses = Annotated[
    str | None, _option("--classes", "Column of --public-test with each person's class.")
]
TestClasses = Annotated[
    str | None, _option("--test-classes", "Column of --public-test with each person's class.")
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

    def check(self, private: Path | None = None) -> None:
        """Refuse options that do not go together, before anything is spent.

        Parameters
        ----------
        private : path, optional
            The table that is learned from: scores on it would not be covered by any epsilon.
        """
        if (self.public_test is None) != (self.classes is None):
            raise InputError(
                "--public-test FILE goes with the column of its classes (report: --classes, "
                "fit: --test-classes)"
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
            from pairveil.data.readers import read_classes

            read_classes(self.public_test, self.classes)  # says what is wrong with it


def write_page(folder: Path, out: Path | None = None, options: PageOptions | None = None) -> Any:
    """Write the page of a release; returns its path and what is on it.

    Everything comes from the release folder, the options and the public test table: no pair and no person
    that was learned from is looked at.
    """
    from pairveil.report.data import Cover
    from pairveil.report.page import write
    from pairveil.report.summaries import read_release, with_curve

    said = options or PageOptions()
    said.check()
    data = read_release(folder)
    data = replace(data, cover=Cover(said.title, said.institution, said.purpose, said.recipient))
    if said.threshold is not None:
        data = with_curve(data, said.threshold)
    if said.public_test is not None:
        data = _with_public_test(data, folder, said)
    return write(data, folder / "report.html" if out is None else out), data


def _with_public_test(data: Any, folder: Path, said: PageOptions) -> Any:
    from pairveil.cli.release import read_people
    from pairveil.data.readers import read_classes
    from pairveil.release.metric import ReleasedMetric
    from pairveil.report.public_test import score_public

    assert said.public_test is not None
    assert said.classes is not None
    metric = ReleasedMetric.load(folder)
    people = read_people(said.public_test, said.id, metric)
    classes = read_classes(said.public_test, said.classes)
    test, points = score_public(metric, people.values, classes, said.public_test.name)
    return replace(data, public_test=test, summary=replace(data.summary, points=points))
