"""`report` and `export`: the page a person looks at, and the metric in other formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairveil.cli.choices import FormatName
from pairveil.cli.output import JsonFlag, QuietFlag, print_json, spoken_warnings, stderr, stdout
from pairveil.cli.page_options import (
    AuditFlag,
    ClassesAlias,
    EvaluationFile,
    Institution,
    OperatingPoint,
    PageOptions,
    PublicTestFile,
    Purpose,
    Recipient,
    TestClasses,
    Title,
    write_page,
)
from pairveil.cli.pair_options import IdColumn
from pairveil.cli.release import ReleaseFolder
from pairveil.cli.waiting import waiting


def report(
    folder: ReleaseFolder,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="HTML file to write.", show_default="DIR/report.html"),
    ] = None,
    title: Title = "",
    institution: Institution = "",
    purpose: Purpose = "",
    recipient: Recipient = "",
    public_test: PublicTestFile = None,
    test_classes: TestClasses = None,
    classes: ClassesAlias = None,
    evaluation: EvaluationFile = None,
    audit: AuditFlag = False,
    threshold: OperatingPoint = None,
    id_: IdColumn = "id",
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Write the page that says what is promised to whom, for people who do not code.

    One HTML file that needs no network. Every epsilon on it is recomputed first. Scores come from a public
    test table or from an evaluation that was charged; maps from a public table only.

    Example: `pairveil report release/ -o report.html`

    Example: `pairveil report linkage/ --threshold operating-point/`

    Example: `pairveil report release/ --title "Tumours" --public-test public.csv --test-classes diagnosis`

    Example: `pairveil report release/ --audit --evaluation score.json`
    """
    from rich.markup import escape

    from pairveil.release.release import REPORT_FILE, check_unsigned
    from pairveil.report.promise import verdict_of

    check_unsigned(folder, folder / REPORT_FILE if out is None else out)
    columns = test_classes if test_classes is not None else classes
    options = PageOptions(
        title, institution, purpose, recipient, public_test, columns, id_, threshold, audit, evaluation
    )  # fmt: skip
    with (
        waiting("attacking the plan", audit and not (quiet or json_)),
        spoken_warnings(quiet or json_),
    ):
        page, data = write_page(folder, out, options)
    if json_:
        print_json(
            {
                "out": str(page),
                "bytes": page.stat().st_size,
                "valid": None if data.problems is None else not data.problems,
                "problems": list(data.problems or ()),
            }
        )
        return
    judged = verdict_of(data)
    if not judged.usable:
        stderr.print(f"[yellow]note:[/yellow] {escape(judged.line)}")
    if not quiet:
        stdout.print(f"Report: {page} ({page.stat().st_size / 1000:.0f} kB, no network needed)")


def export(
    folder: ReleaseFolder,
    to: Annotated[FormatName, typer.Option("--to", help="Format to write.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="File (or folder, for dense) to write.", show_default=False
        ),
    ],
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Write a released metric as ONNX, CSV, a scikit-learn pickle, SQL or sentence-transformers' Dense.

    It takes the same raw rows as the release; a format that cannot hold the release's schema is refused.

    Example: `pairveil export release/ --to onnx -o metric.onnx`
    """
    from pairveil.release.exporters import export as write
    from pairveil.release.metric import ReleasedMetric

    metric = ReleasedMetric.load(folder)
    file = write(metric, to, out)
    if json_:
        parts = file.iterdir() if file.is_dir() else [file]
        print_json({"out": str(file), "to": to, "bytes": sum(one.stat().st_size for one in parts)})
    elif not quiet:
        rows = "" if metric.schema is None else ", of raw rows (the schema is inside)"
        stdout.print(f"{metric.n_components} x {metric.n_features} metric as {to}{rows}: {file}")
        if to == "sklearn":
            stdout.print(
                "A pickle runs code when it is read: keep this file inside your own house."
            )
