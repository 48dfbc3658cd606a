"""`link`: a private linkage model from comparison levels, or a Splink settings file, and labels."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from pairveil.cli.budget import (
    CheckpointFile,
    DryRunFlag,
    EntityRecords,
    OverwriteFlag,
    ReleaseOut,
    Spending,
    privacy_option,
    promised,
)
from pairveil.cli.choices import SelectName
from pairveil.cli.learning import about, hold_checkpoint, is_begun, learn
from pairveil.cli.output import JsonFlag, QuietFlag, print_json, spoken_warnings, stdout, table
from pairveil.cli.pair_options import PANEL, PairOptions
from pairveil.cli.planned import judge, print_epsilons, print_released
from pairveil.cli.waiting import charge_said
from pairveil.errors import InputError

if TYPE_CHECKING:
    from pairveil.linkage.levels import LabelledLevels

RecordsFile = Annotated[
    Path | None,
    typer.Option(
        "--records",
        help="With Splink settings: the records, CSV (all columns are text) or Parquet.",
        rich_help_panel=PANEL,
    ),
]
MUCH_NOISE = 0.01
"""Noise on a count, as a share of the pairs, above which random pairs gain much (the guide has a table)."""


def link(
    source: Annotated[
        Path,
        typer.Argument(
            help="Comparison levels: CSV or Parquet with two id columns and a column a comparison (-1 or "
            "empty: null; the highest is the best agreement). Or a Splink settings file (.json).",
            metavar="LEVELS_OR_SETTINGS",
        ),
    ],
    labels: Annotated[
        Path, typer.Argument(help="Labelled pairs: two ids and a label.", metavar="LABELS")
    ],
    out: ReleaseOut = Path("release"),
    spending: Spending = Spending(),
    unit: Annotated[
        Literal["pair", "relationship", "person", "entity"],
        privacy_option(
            "--unit", "What is protected; entity: a person of --entity-records records."
        ),
    ] = "relationship",
    entity_records: EntityRecords = None,
    select: Annotated[
        SelectName,
        privacy_option("--select", "Which pairs to use; looks at who is compared with whom only."),
    ] = SelectName("paths"),
    checkpoint: CheckpointFile = None,
    n_levels: Annotated[
        str | None,
        typer.Option(
            "--n-levels",
            help="Public number of levels of each comparison: 4,4,2 in the order of the columns. Without it "
            "the numbers are read off the pairs, and nothing is for release.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    records: RecordsFile = None,
    n_random: Annotated[
        int,
        typer.Option(
            "--random-pairs",
            min=0,
            help="With Splink settings: so many random pairs of other records count as pairs that do not "
            "match, and are paid for like the labelled ones. They help most with few labels. Give --prior.",
            rich_help_panel=PANEL,
        ),
    ] = 0,
    prior: Annotated[
        float | None,
        typer.Option(
            "--prior",
            help="How likely a pair is a match; Splink settings get it too. [default: released; Splink "
            "settings keep theirs]",
        ),
    ] = None,
    monotone: Annotated[
        bool, typer.Option("--monotone", help="A higher level never weighs less.")
    ] = False,
    dry_run: DryRunFlag = False,
    overwrite: OverwriteFlag = False,
    reading: PairOptions = PairOptions(),
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Learn a private linkage model (Fellegi-Sunter match weights) and release it.

    Says what it will spend before it spends it. Nothing is written unless all of it is.

    Example: `pairveil link levels.csv labels.csv --n-levels 4,4,2 --epsilon 1 --out release/`

    Example: `pairveil link splink.json labels.csv --records people.parquet --epsilon 0.1 --out release/`
    """
    from pairveil.release.linkage import ReleasedLinkage
    from pairveil.release.release import SPLINK_FILE, check_folder, commit

    talk = not (json_ or quiet)
    if not dry_run:
        check_folder(out, overwrite or is_begun(checkpoint))
    protected: Any = "person" if unit == "entity" else unit
    budget_file = spending.ledger_of(protected, checkpoint)
    with spoken_warnings(quiet), ExitStack() as open_:
        found = reading.read(labels)
        given, settings = _read(source, found, reading, n_levels, records, n_random)
        from pairveil.linkage import PrivateLinkageModel

        model = PrivateLinkageModel(
            unit=unit,
            select=str(select),
            entity_records=entity_records,
            prior=prior,
            monotone=monotone,
            **spending.parameters,
        )
        if settings is not None and not n_random:
            from pairveil.linkage.splink import warn_of_frequencies

            warn_of_frequencies(settings)
        prepared = model.prepare(given.levels, given.labels, given.pairs, given.n_levels)
        prepared = about(prepared, given.names, settings)
        planned = promised(prepared)
        if talk:
            stdout.print(f"{planned.n_pairs_used:,} of {planned.n_pairs_given:,} pairs used.")
            print_epsilons(planned, f"epsilon at delta {planned.delta:g}, by unit")
            _say_noise(prepared, n_random)
        budget_file.rehearse(prepared, talk, out if overwrite else None)
        if dry_run:
            if json_:
                print_json({"certificate": planned.to_dict(), "out": None})
            elif talk:
                stdout.print("Dry run: nothing was spent and nothing was written.")
            return
        held = open_.enter_context(hold_checkpoint(checkpoint, planned))
        replaces = overwrite or is_begun(checkpoint)
        draft = open_.enter_context(ReleasedLinkage.reserve(out, overwrite=replaces))
        model.accountant = budget_file.open()
        open_.enter_context(charge_said(model.accountant, out, checkpoint))
        learn(model, prepared, talk, held)
        model.feature_names_in_ = np.array(given.names, dtype=object)
        if settings is not None:
            draft.write(SPLINK_FILE, _splink_text(model, settings))
        model._hand_out(draft)
        commit(draft, overwrite)
        judged = judge(model.certificate_, model.accountant)
        if json_:
            certificate = model.certificate_.to_dict()  # type: ignore[union-attr]
            print_json({"certificate": certificate, "out": str(out), "verdict": asdict(judged)})
        elif talk:
            print_weights(model.released())
            print_released(out, judged)
        if held is not None:  # last: what is lost before is spent anew
            held.remove()


def _say_noise(prepared: Any, n_random: int) -> None:
    """What the noise will be, where it is large for so few pairs."""
    noise, n_pairs = prepared.recipe.noise(prepared.plan)[1], prepared.plan.n_records
    if noise <= MUCH_NOISE * n_pairs:
        return
    more = (
        "Random pairs need no clerk and help most: --random-pairs, or rows of levels that are labelled as "
        "different."
        if not n_random
        else "More labels, more records outside the labels for --random-pairs, or a larger epsilon help."
    )
    stdout.print(
        f"Each count of these {n_pairs:,} pairs will have a noise of {noise:,.0f}, so how often others "
        f"agree by chance will be half a guess. {more}"
    )


def _read(
    source: Path,
    found: Any,
    reading: PairOptions,
    n_levels: str | None,
    records: Path | None,
    n_random: int,
) -> tuple[LabelledLevels, Any]:
    """Levels of exactly the labelled pairs, and of random ones where asked for; and Splink's settings."""
    if source.suffix == ".json":
        if n_levels is not None:
            raise InputError(
                "--n-levels: Splink settings say how many levels there are; leave it out"
            )
        return by_splink(source, found, records, n_random)
    from pairveil.linkage.levels import LabelledLevels
    from pairveil.records.readers import read_levels, rows_of

    if records is not None:
        raise InputError("--records goes with a Splink settings file (.json)")
    if n_random:
        raise InputError(
            "--random-pairs goes with Splink settings and --records: levels of random pairs are rows of the "
            "levels like any other; label them as different"
        )
    values = read_levels(source, reading.left, reading.right, (reading.label,))
    rows = rows_of(found, values.pairs)
    sizes = None if n_levels is None else _sizes(n_levels, len(values.names))
    ends = np.column_stack([found.left, found.right])
    return LabelledLevels(values.values[rows], found.labels, ends, sizes, values.names), None


def by_splink(
    source: Path, found: Any, records: Path | None, n_random: int = 0
) -> tuple[LabelledLevels, Any]:
    """Levels of the labelled pairs by a Splink settings file and the records; and the settings."""
    from pairveil.linkage.splink import check_loads, from_splink, levels_of_settings, settings_of

    if records is None:
        raise InputError(
            "Splink settings need --records FILE, the records that the labels are about"
        )
    settings = settings_of(source)
    levels_of_settings(settings)
    check_loads(settings)
    return from_splink(settings, found, n_random=n_random, records=records), settings


def _splink_text(model: Any, settings: Any) -> str:
    from pairveil.linkage.splink import splink_text

    return splink_text(model.to_splink(settings))


def _sizes(text: str, n_comparisons: int) -> tuple[int, ...]:
    try:
        sizes = tuple(int(one) for one in text.split(","))
    except ValueError:
        raise InputError("--n-levels must be whole numbers with commas, such as 4,4,2") from None
    if len(sizes) == 1:
        sizes *= n_comparisons
    if len(sizes) != n_comparisons:
        raise InputError(
            f"--n-levels has {len(sizes)} numbers for {n_comparisons} comparisons (columns beside the ids)"
        )
    return sizes


def print_weights(released: Any) -> None:
    """Match weights by comparison, for a terminal."""
    rows = [
        [name, len(m), *(float(np.log2(m[i] / u[i])) for i in (0, -1))]
        for name, m, u in zip(released.shown_names, released.m, released.u, strict=True)
    ]
    columns = ["comparison", "levels", "does not agree, bits", "agrees best, bits"]
    stdout.print(table("match weights", columns, rows))
    stdout.print(
        "Bits add up over the comparisons: above 0 they speak for a match, below 0 against it, and ten bits "
        "make the odds a thousand times larger."
    )
