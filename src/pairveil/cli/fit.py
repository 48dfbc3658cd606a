"""`fit`: learn a metric from files and release it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairveil.cli.budget import (
    DryRunFlag,
    OverwriteFlag,
    ReleaseOut,
    Spending,
    privacy_option,
    promised,
)
from pairveil.cli.choices import (
    DEFAULT_LEARNER_NAME,
    DEFAULT_NOISE,
    LearnerName,
    NoiseName,
    SelectName,
    pure_noises,
)
from pairveil.cli.learning import about, hold_checkpoint, is_begun, learn
from pairveil.cli.output import JsonFlag, QuietFlag, print_json, spoken_warnings, stdout
from pairveil.cli.page_options import (
    AuditFlag,
    Institution,
    PageOptions,
    PublicTestFile,
    Purpose,
    Recipient,
    TestClasses,
    Title,
    write_page,
)
from pairveil.cli.pair_options import (
    PANEL,
    Columns,
    Exclude,
    FeaturesPath,
    IdColumn,
    PairOptions,
    SchemaFile,
    Together,
)
from pairveil.cli.planned import judge, print_better_selection, print_plan, print_released
from pairveil.cli.reading import Columns as ColumnsUsed
from pairveil.cli.reading import (
    Scaling,
    Source,
    Training,
    for_workers,
    marked_classes,
    open_for_workers,
    read_training,
)
from pairveil.cli.recount import salted_digest
from pairveil.cli.tuning import check_tune, found, make_search, print_search, run_search
from pairveil.cli.waiting import charge_said, waiting
from pairveil.cli.which_learner import (
    check_options,
    input_of,
    make_learner,
    refuse_together,
    typed_options,
)
from pairveil.errors import InputError


def fit(
    context: typer.Context,
    features: FeaturesPath,
    pairs: Annotated[
        str | None,
        typer.Argument(
            help="Pairs of people: CSV, Parquet or another tool's file; tuples of people for --learner "
            "triplet or tuplet; none with --classes.",
            metavar="[PAIRS]",
            show_default=False,
        ),
    ] = None,
    out: ReleaseOut = Path("release"),
    learner: Annotated[
        LearnerName, typer.Option("--learner", help="Which learner.")
    ] = DEFAULT_LEARNER_NAME,
    spending: Spending = Spending(),
    unit: Annotated[
        Literal["pair", "relationship", "person"] | None,
        privacy_option(
            "--unit", "What is protected. [default: relationship; with --classes: person]"
        ),
    ] = None,
    select: Annotated[
        SelectName,
        privacy_option("--select", "Which pairs to use; looks at who is paired with whom only."),
    ] = SelectName("paths"),
    mechanism: Annotated[
        NoiseName, privacy_option("--mechanism", f"Kind of noise. {pure_noises()}")
    ] = DEFAULT_NOISE,
    kappa: Annotated[
        int | None,
        privacy_option("--kappa", "Public constant instead of the graph's own number.", min=1),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        privacy_option(
            "--checkpoint", "File to resume from if this is killed; nothing is spent twice."
        ),
    ] = None,
    graph_salt: Annotated[
        Path | None,
        privacy_option(
            "--graph-salt",
            "Put a digest of who is paired with whom into the certificate, salted by this file (made if "
            "missing; keep it, and give it to whom may check).",
        ),
    ] = None,
    n_components: Annotated[
        int | None,
        typer.Option("--n-components", min=1, help="Dimensions. [default: all, blended]"),
    ] = None,
    bounds: Annotated[
        Path | None,
        typer.Option(
            "--bounds",
            help="Public lower and upper bound of each column (CSV or JSON).",
            rich_help_panel=PANEL,
        ),
    ] = None,
    schema: SchemaFile = None,
    no_scale: Annotated[
        bool,
        typer.Option(
            "--no-scale",
            help="Columns were brought to scale before, by public numbers: take them as they are.",
            rich_help_panel=PANEL,
        ),
    ] = False,
    data_norm: Annotated[
        float,
        typer.Option(
            "--data-norm", help="Rows longer than this are clipped.", rich_help_panel=PANEL
        ),
    ] = 1.0,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            help="Column of FEATURES with each person's class: learn from people, without PAIRS. "
            "[default: the schema's, where no PAIRS are given]",
            rich_help_panel=PANEL,
        ),
    ] = None,
    class_list: Annotated[
        str | None,
        typer.Option(
            "--class-list",
            help="The public list of classes, as a,b,c. [default: the schema's] Without any the classes that "
            "occur count as public, and the metric is not for release.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    groups: Annotated[
        str | None,
        privacy_option(
            "--groups",
            "Records are disjoint groups of people: public column of PAIRS that names them; with --classes "
            "their size, or a public column of FEATURES.",
        ),
    ] = None,
    together: Together = None,
    tune: Annotated[
        list[str] | None,
        privacy_option(
            "--tune",
            "Try these values of an option of the learner (repeatable; epsilon and learner too) and release "
            "the best by a noisy score on pairs held out: one charge for all of it.",
            metavar="OPTION=A,B,C",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="SCHEDULER",
            help="Sum on the Dask cluster at this address (pip install 'pairveil[dask]'); its workers "
            "read FEATURES and PAIRS that are paths as s3://... or file:///...",
            rich_help_panel=PANEL,
        ),
    ] = None,
    dry_run: DryRunFlag = False,
    report: Annotated[
        bool, typer.Option("--report", help="Write the report page as well.")
    ] = False,
    title: Title = "",
    institution: Institution = "",
    purpose: Purpose = "",
    recipient: Recipient = "",
    public_test: PublicTestFile = None,
    test_classes: TestClasses = None,
    audit: AuditFlag = False,
    overwrite: OverwriteFlag = False,
    id_: IdColumn = "id",
    columns: Columns = None,
    exclude: Exclude = None,
    reading: PairOptions = PairOptions(),
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Learn a private metric from people's features and labelled pairs, or their classes, and release it.

    Says what it will spend before it spends it. Nothing is written unless all of it is.

    Example: `pairveil fit people.csv pairs.csv --schema schema.toml --epsilon 1 --delta 1e-5 --out release/`

    Example: `pairveil fit people.csv pairs.csv --schema schema.toml --dry-run`

    Example: `pairveil fit raw.csv pairs.csv --bounds bounds.json --unit person --report`

    Example: `pairveil fit scaled.csv pairs.csv --no-scale --ledger budget.json --budget 3`

    Example: `pairveil fit people.csv --schema schema.toml --classes diagnosis --class-list benign,malignant`

    Example: `pairveil fit people.csv pairs.csv --schema schema.toml --tune select=paths,forest --epsilon 4`

    Example: `pairveil fit people.csv pairs.csv --schema schema.toml --groups ward --unit person`

    Example: `pairveil fit people.csv triples.csv --schema schema.toml --learner triplet --unit person`

    Example: `pairveil fit s3://b/people.npy s3://b/pairs --no-scale --dask tcp://10.0.0.5:8786`
    """
    from pairveil.release.metric import ReleasedMetric
    from pairveil.release.release import check_folder, commit

    typed = typed_options(context)
    classes, public = marked_classes(schema if pairs is None else None, classes, class_list)
    kind = input_of(str(learner), pairs, classes)
    if unit is None:
        unit = "person" if kind == "classes" else "relationship"
    if kind != "classes" and class_list is not None:
        raise InputError("--class-list goes with --classes COLUMN")
    records = kind if groups is None else "groups"
    check_options(kind, groups is not None, typed)
    refuse_together(together, records)
    if tune:
        beside = {"--checkpoint": checkpoint, "--dask": dask, "--audit": audit}
        check_tune(records, str(select), beside)
    talk = not (json_ or quiet)
    tested = classes if test_classes is None and public_test is not None else test_classes
    said = PageOptions(
        title, institution, purpose, recipient, public_test, tested, id_, audit=audit
    )
    said.check(Path(features))
    if said != PageOptions(id=id_) and not report:
        raise InputError("options of the report go with --report")
    if not dry_run:
        check_folder(out, overwrite or is_begun(checkpoint))
    if checkpoint is not None and spending.seed is not None:
        raise InputError("--checkpoint is for releases: leave --seed out")
    far = for_workers(*[path for path in (features, pairs) if path is not None])
    if far and (records != "pairs" or select == "groups"):
        raise InputError(
            "workers read single pairs: give files of this machine, which --dask sums too"
        )
    if far and dask is None:
        raise InputError("paths as s3://... are read by a cluster: say --dask SCHEDULER")
    if features == "-" and pairs == "-":
        raise InputError(
            "FEATURES and PAIRS cannot both be standard input: save one of them to a file"
        )
    scaling = Scaling(schema, bounds, no_scale)
    scaling.check(features)
    columns_used = ColumnsUsed(id_, columns, exclude, reading.merge_similar_ids)
    budget_file = spending.ledger_of(unit, checkpoint)
    # Notes may tell of private rows (how many were clipped): to the operator on stderr, never in the JSON.
    with spoken_warnings(quiet), ExitStack() as connection:
        if far:
            connection.enter_context(_cluster(dask))
            unused = {
                "--bounds": bounds,
                "--schema": schema,
                "--columns": columns,
                "--exclude": exclude,
                "--zero-means": reading.zero_means,
                "--layout": reading.layout != PairOptions.layout,
                "--graph-salt": graph_salt,
                "--merge-similar-ids": reading.merge_similar_ids,
                "--together": together,
            }
            ends = (reading.left, reading.right, reading.label)
            training = open_for_workers(features, str(pairs), ends, unused)
        else:
            of = Source(features, pairs, kind, classes, public, groups, together)
            training = read_training(of, columns_used, scaling, data_norm, reading)
        # Loading the learner takes a second: mistakes in files are told before it.
        from pairveil.learners.base import most_rows

        options = {
            **spending.parameters,
            "unit": unit,
            "select": str(select),
            "kappa": "auto" if kappa is None else kappa,
            "mechanism": str(mechanism),
            "n_components": n_components,
            "data_norm": data_norm,
            "backend": "auto" if dask is None else "dask",
        }
        make = partial(make_search, tune) if tune else make_learner
        model = make(str(learner), options, typed)
        if checkpoint is not None:  # which must go with the ledger
            model.accountant = budget_file.look()
        prepared = training.prepare(model)
        if checkpoint is not None:
            prepared = about(prepared, *_read_by(training, bounds))
            model.certify(prepared, checkpoint=checkpoint)
        planned = promised(prepared)
        if audit:
            from pairveil.audit.plan_targets import released_plan

            released_plan(planned)  # refuses what cannot be attacked, before anything is spent
        if talk:
            if context.find_root().obj is not None:
                stdout.print(f"Options not given here come from {context.find_root().obj}.")
            if tune:
                print_search(planned)
            else:
                usual = learner == DEFAULT_LEARNER_NAME
                print_plan(planned, prepared.recipe.headline, expected=usual)
                print_better_selection(prepared.material, planned.unit)
        budget_file.rehearse(prepared, talk, out if overwrite else None)
        digest = None
        if graph_salt is not None and not dry_run:
            digest = salted_digest(training.pairs, graph_salt)
        if dry_run:
            if json_:
                counted = budget_file.releases(prepared)
                then = None if counted is None else asdict(counted)
                print_json({"certificate": planned.to_dict(), "out": None, "releases": then})
            elif talk:
                stdout.print("Dry run: nothing was spent and nothing was written.")
            return
        if not far:
            connection.enter_context(_cluster(dask))
        # Where the result goes is made sure of before the ledger is charged, or even made.
        replaces = overwrite or is_begun(checkpoint)
        held = context.with_resource(hold_checkpoint(checkpoint, planned))
        n_features = planned.plan["n_features"]
        fits = [one.prepared for one in prepared.candidates] if tune else [prepared]
        rows = max(most_rows(one.recipe, n_features) for one in fits)
        draft = connection.enter_context(
            ReleasedMetric.reserve(out, n_features, rows, overwrite=replaces)
        )
        model.accountant = budget_file.open()
        connection.enter_context(charge_said(model.accountant, out, checkpoint))
        fitted = (run_search if tune else learn)(model, prepared, talk, held)
        certificate = _save(fitted, training, draft, digest)
        try:
            if report:
                with waiting("attacking the plan", talk and audit):
                    write_page(draft.folder, options=said, name=out.resolve().name)
        finally:  # what was paid for is kept where its report fails; the same command makes that up
            commit(draft, overwrite)
    page = out / "report.html" if report else None
    best = found(model) if tune else None
    judged = judge(certificate, model.accountant)
    if json_:
        shown = {"certificate": certificate.to_dict(), "out": str(out), "verdict": asdict(judged)}
        more = {"report": None if page is None else str(page), "best": best}
        print_json(shown | {name: value for name, value in more.items() if value is not None})
    elif talk:
        if best is not None:
            won = ", ".join(f"{name} {value}" for name, value in best["options"].items())
            stdout.print(f"Best: {won}; noisy pair AUC {best['score']:.3f} on the pairs held out.")
        if page is not None:
            stdout.print(f"Report: {page}")
        print_released(out, judged)
    if (
        held is not None
    ):  # last: whoever did not see the result runs the same again, which costs nothing
        held.remove()


def _read_by(training: Training, bounds: Path | None) -> list[Any]:
    """The public facts by which columns became numbers."""
    from pairveil.records.files import read_text
    from pairveil.schema.toml import to_toml

    schema = None if training.schema is None else to_toml(training.schema)
    limits = None if bounds is None else read_text(bounds)
    return [training.names, list(map(float, training.scale)), schema, limits]


def _cluster(scheduler: str | None) -> Any:
    from pairveil.engine.backends.dask import cluster

    return cluster(scheduler)


def _save(learner: Any, training: Training, draft: Any, digest: str | None) -> Any:
    """Write the release of a fitted learner into its draft; returns its certificate."""
    from pairveil.release.metric import ReleasedMetric
    from pairveil.report.summaries import summary_text

    scale = training.scale
    certificate = replace(learner.certificate_, graph_digest=digest)
    metric = ReleasedMetric(
        learner.components_ * scale, certificate, training.names, scale, training.schema
    )
    metric.save(draft, summary=summary_text(learner))
    return certificate
