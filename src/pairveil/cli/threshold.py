"""`threshold`: a private operating point for a released model, or for the scores of any system."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from pairveil.cli.budget import (
    CheckpointFile,
    EntityRecords,
    OverwriteFlag,
    Spending,
    UnitOption,
    keep_budget,
    privacy_option,
    promised,
)
from pairveil.cli.choices import SelectName
from pairveil.cli.learning import about, hold_checkpoint, is_begun
from pairveil.cli.link import RecordsFile, by_splink
from pairveil.cli.output import JsonFlag, QuietFlag, plain, print_json, spoken_warnings, stdout
from pairveil.cli.pair_options import PANEL, IdColumn, PairOptions, Together
from pairveil.cli.planned import judge, print_epsilons, print_released
from pairveil.cli.waiting import charge_said
from pairveil.errors import InputError
from pairveil.privacy.units import round_up

METRIC_CELLS = 256
"""Thresholds of a metric: its longest possible distance is far above the usual ones."""


class Scored(NamedTuple):
    """Scores of labelled pairs; larger means more alike."""

    scores: Any
    found: Any
    score_range: tuple[float, float]
    n_cells: int
    of_distance: bool = False
    model: Any = None  # certificate of the release
    together: dict[Any, Any] | None = None  # each person's value, where --together names a column

    @property
    def sha256(self) -> str | None:
        """Of the release that scored the pairs."""
        return None if self.model is None else str(self.model.metric_sha256)


def threshold(
    source: Annotated[
        Path,
        typer.Argument(
            help="Folder of a release; or a table of scores: two ids, a label and a score.",
            metavar="DIR_OR_SCORES",
        ),
    ],
    features: Annotated[
        Path | None,
        typer.Argument(
            help="People's features; for a linkage model comparison levels, or Splink settings (.json) with "
            "--records.",
            metavar="FEATURES",
        ),
    ] = None,
    pairs: Annotated[
        Path | None, typer.Argument(help="Labelled pairs, private.", metavar="PAIRS")
    ] = None,
    fmr: Annotated[float, typer.Option("--fmr", help="False-match rate to aim at.")] = 0.01,
    spending: Spending = Spending(),
    unit: UnitOption = "relationship",
    entity_records: EntityRecords = None,
    select: Annotated[
        SelectName,
        privacy_option("--select", "Which pairs to use; looks at who is paired with whom only."),
    ] = SelectName("paths"),
    checkpoint: CheckpointFile = None,
    together: Together = None,
    records: RecordsFile = None,
    score_range: Annotated[
        str | None,
        typer.Option(
            "--score-range",
            help="Public bounds of the scores, such as 0,1. A release has its own.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    score: Annotated[
        str, typer.Option("--score", help="Column with the score.", rich_help_panel=PANEL)
    ] = "score",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for a release of the whole curve, for `pairveil certificate` and `report`; or a "
            "JSON file.",
        ),
    ] = None,
    overwrite: OverwriteFlag = False,
    id_: IdColumn = "id",
    reading: PairOptions = PairOptions(),
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Choose a threshold on private labelled pairs, for a false-match rate.

    The curve of both error rates is released once, with bands that hold sampling and noise.

    Example: `pairveil threshold release/ people.csv pairs.csv --epsilon 0.5 --fmr 0.01`

    Example: `pairveil threshold linkage/ settings.json labels.csv --records people.parquet --epsilon 1`

    Example: `pairveil threshold scores.csv --score-range 0,1 --epsilon 0.5 --fmr 0.001 --out point/`
    """
    budget_file = spending.ledger_of(unit, checkpoint)
    with spoken_warnings(quiet), ExitStack() as open_:
        if source.is_dir():
            if features is None or pairs is None:
                raise InputError("a release needs FEATURES (or LEVELS) and PAIRS to be scored on")
            scored = _by_release(source, features, pairs, id_, reading, records, together)
        else:
            if features is not None:
                raise InputError("a table of scores stands alone: leave FEATURES and PAIRS out")
            if records is not None:
                raise InputError("--records goes with a linkage model and Splink settings (.json)")
            _refuse_together(together, "a table of scores")
            scored = _by_scores(source, score, score_range, reading)
        from pairveil.evaluation.curve import plan_curve

        found = scored.found
        ends = np.column_stack([found.left, found.right])
        planned = plan_curve(
            scored.scores, found.labels, ends, score_range=scored.score_range, unit=unit,
            select=str(select), n_cells=scored.n_cells, entity_records=entity_records, null=True,
            **together_of(scored.together), **spending.parameters,
        )  # fmt: skip
        planned = planned._replace(prepared=about(planned.prepared, scored.sha256))
        promise = promised(planned.prepared)
        planned.check_pairs(fmr)
        budget_file.rehearse(
            planned.prepared, not (json_ or quiet), out if out and overwrite else None
        )
        from pairveil.files import check_file, write_file
        from pairveil.release.curve import ErrorCurve
        from pairveil.release.release import commit

        held = open_.enter_context(hold_checkpoint(checkpoint, promise))
        draft = None
        if out is not None and out.suffix == ".json":
            check_file(out, 1 << 20)
        elif out is not None:
            draft = open_.enter_context(
                ErrorCurve.reserve(out, overwrite=overwrite or is_begun(checkpoint))
            )
        ledger = budget_file.open()
        open_.enter_context(charge_said(ledger, out, checkpoint))
        curve = planned.curve(ledger, held)
        judged = judge(curve.certificate, ledger)
        shown = {**_shown(curve, fmr, scored.of_distance), "verdict": asdict(judged)}
        if scored.model is not None:
            shown["with_model"] = _together(curve, scored.model)
        if draft is not None:
            replace(curve, asked=fmr, of_distance=scored.of_distance).save(draft)
            keep_budget(draft, ledger)
            commit(draft, overwrite)
        elif out is not None:
            content = {**shown, "curve": curve.to_dict()}
            write_file(out, json.dumps(plain(content), indent=1, allow_nan=False).encode() + b"\n")
        if json_:
            print_json(shown)
        elif not quiet and shown["threshold"] is not None:
            _say(shown, curve)
            if draft is None:
                stdout.print(judged.line)
            else:
                print_released(out, judged)
                stdout.print(f"`pairveil report {out}` draws the curve.")
        missed = shown["threshold"] is None
        if held is not None and not (missed and out is None):  # last: what is lost is spent anew
            held.remove()
    if missed:  # how many are impostors is private: it shows when it was paid for
        kept = "nothing was kept (--out keeps the curve)"
        if out is not None:
            kept = f"the curve is in {out}"
        elif held is not None:
            kept = "the same command with another --fmr costs nothing more: the checkpoint has the curve"
        raise InputError(f"{shown['problem']}. Epsilon was spent; {kept}")


def _shown(curve: Any, fmr: float, of_distance: bool) -> dict[str, Any]:
    """What is handed out: the threshold with its bands, and the certificate."""
    about = {
        "of": "distance" if of_distance else "score",
        "fmr": fmr,
        "confidence": curve.confidence,
        "effective_share": curve.effective_share,
        "certificate": curve.certificate.to_dict(),
    }
    try:
        at = curve.threshold(fmr)
    except InputError as problem:
        return {"threshold": None, "fmr_high": None, "problem": str(problem), **about}
    low, high = curve.fmr_at(at)
    missed = curve.fnmr_at(at)
    return {
        "threshold": -at if of_distance else at,
        "fmr_low": low,
        "fmr_high": high,
        "fnmr_low": missed[0],
        "fnmr_high": missed[1],
        "advice": curve.advice(fmr) or None,
        **about,
    }


def _together(curve: Any, model: Any) -> dict[str, Any] | None:
    """The certificate of model and curve together, where there is one; a ledger knows of all cases."""
    try:
        return dict(curve.with_model(model).to_dict())
    except InputError:
        return None


def _say(shown: dict[str, Any], curve: Any) -> None:
    side = "at most" if shown["of"] == "distance" else "at least"
    stdout.print(f"Call pairs a match whose {shown['of']} is {side} {shown['threshold']:.6g}.")
    stdout.print(
        f"Aimed at a false-match rate of {shown['fmr']:g}. "
        f"False matches: {shown['fmr_low']:.2%} to {shown['fmr_high']:.2%} of impostor pairs; false "
        f"non-matches: {shown['fnmr_low']:.2%} to {shown['fnmr_high']:.2%} of genuine pairs "
        f"({shown['confidence']:.0%} confidence for all thresholds together, noise included)."
    )
    if shown["advice"]:
        stdout.print(shown["advice"])
    if curve.effective_share < 1:
        stdout.print(
            f"Pairs share people: bands count {curve.effective_share:.0%} of them as independent."
        )
    both = shown.get("with_model")
    if both is not None:
        stdout.print(
            f"Model and threshold together: epsilon {round_up(float(both['epsilon']))} at delta "
            f"{both['delta']:g} (unit '{both['unit']}', {both['adjacency']}), by their certificates alone: "
            "they do not say that the pairs are the same. A ledger that was charged for both may know it, "
            "and then says less."
        )
    print_epsilons(curve.certificate, f"epsilon at delta {curve.certificate.delta:g}, by unit")


def together_of(values: dict[Any, Any] | None) -> dict[str, Any]:
    """The argument ``together``, where there is one."""
    return {} if values is None else {"together": values}


def read_together(features: Path, column: str | None, ids: Any) -> dict[Any, Any] | None:
    """Each person's value of a public column, by id; ``ids`` are in the order of the rows."""
    from pairveil.cli.reading import read_column

    if column is None:
        return None
    values = read_column(features, column, "--together")
    return dict(zip(ids.tolist(), values.tolist(), strict=True))


def _refuse_together(column: str | None, what: str) -> None:
    if column is not None:
        raise InputError(
            f"--together names a column of FEATURES or of --records, and {what} has no people: in Python "
            "give error_curve(..., together=...)"
        )


def _by_release(
    folder: Path, features: Path, pairs: Path, id_: str, reading: PairOptions, records: Path | None,
    together: str | None,
) -> Scored:  # fmt: skip
    from pairveil.release.curve import ErrorCurve
    from pairveil.release.linkage import ReleasedLinkage
    from pairveil.release.metric import ReleasedMetric
    from pairveil.release.release import load_release

    released = load_release(folder)
    if isinstance(released, ErrorCurve):
        raise InputError(f"{folder} is an operating point already: name the model's folder")
    if isinstance(released, ReleasedLinkage):
        return _by_weights(released, features, pairs, reading, records, together)
    if not isinstance(released, ReleasedMetric):
        raise InputError(
            f"{folder} holds no metric and no linkage model: there is nothing to score"
        )
    from pairveil.cli.release import read_placed
    from pairveil.evaluation.curve import lengths_of

    values, placed = read_placed(features, pairs, id_, released, reading, together)
    longest = _longest(released)
    # Not `distance`: where there is a schema, it was applied when the rows were read.
    ends = (released.project(values[placed.pairs[:, side]]) for side in (0, 1))
    near = np.minimum(lengths_of(np.subtract(*ends)), longest)
    listed = _Listed(placed.ids[placed.pairs[:, 0]], placed.ids[placed.pairs[:, 1]], placed.labels)
    shared = read_together(features, together, placed.ids)
    return Scored(-near, listed, (-longest, 0.0), METRIC_CELLS, True, released.certificate, shared)


class _Listed(NamedTuple):
    left: Any
    right: Any
    labels: Any


def _longest(metric: Any) -> float:
    """The longest distance that is possible (public), which must be one."""
    from pairveil.evaluation.curve import longest_distance

    found = longest_distance(metric.components, metric.column_scale, norm_of(metric.certificate))
    if not (math.isfinite(found) and found > 0):
        raise InputError("the metric gives every pair the same distance: there is no threshold")
    return found


def norm_of(certificate: Any) -> float:
    """How long people's rows may be, by the certificate of a fit."""
    return 1.0 if certificate is None else float(certificate.plan.get("data_norm", 1.0))


def _by_weights(
    model: Any, levels: Path, pairs: Path, reading: PairOptions, records: Path | None,
    together: str | None,
) -> Scored:  # fmt: skip
    from pairveil.column_names import in_order_of
    from pairveil.records.readers import read_levels, rows_of

    found, shared = reading.read(pairs), None
    if levels.suffix == ".json":
        given, settings = by_splink(levels, found, records)
        names, values = given.names, given.levels
        found = _Listed(given.pairs[:, 0], given.pairs[:, 1], given.labels)
        if together is not None:
            shared = _of_records(records, together, settings)
    else:
        if records is not None:
            raise InputError("--records goes with Splink settings (.json)")
        _refuse_together(together, "a table of levels")
        listed = read_levels(levels, reading.left, reading.right, (reading.label,))
        names, values = listed.names, listed.values[rows_of(found, listed.pairs)]
    order = list(range(len(names)))
    if model.names is not None:
        if not set(model.names) <= set(names):
            raise InputError(f"{levels} lacks a comparison of the model: {', '.join(model.names)}")
        in_order_of(names, list(model.names))
        order = [names.index(name) for name in model.names]
    scores = model.match_weights(values[:, order])
    bits = [np.append(np.log2(m / u), 0.0) for m, u in zip(model.m, model.u, strict=True)]
    most, least = sum(one.max() for one in bits), sum(one.min() for one in bits)
    around = 1e-9 * (1 + most - least)  # sums in another order may round otherwise
    return Scored(
        scores,
        found,
        (float(least) - around, float(most) + around),
        METRIC_CELLS,
        False,
        model.certificate,
        shared,
    )


def _of_records(records: Any, column: str, settings: dict[str, Any]) -> dict[Any, Any]:
    """Each record's value of a public column, by the id that the settings name."""
    from pairveil.linkage.splink import read_records

    if settings.get("link_type") != "dedupe_only":
        raise InputError("--together goes with the records of one table (link_type 'dedupe_only')")
    table, key = read_records(records), settings.get("unique_id_column_name") or "unique_id"
    if column not in table.column_names:
        raise InputError(f"--together: {records} has no column '{column}'")
    return dict(zip(table.column(key).to_pylist(), table.column(column).to_pylist(), strict=True))


def _by_scores(source: Path, score: str, score_range: str | None, reading: PairOptions) -> Scored:
    from pairveil.records.readers import read_pair_values

    if score_range is None:
        raise InputError("--score-range is missing: the public bounds of scores, such as 0,1")
    try:
        low, high = (float(one) for one in score_range.split(","))
    except ValueError:
        raise InputError("--score-range must be two numbers with a comma, such as 0,1") from None
    found = reading.read(source)
    values = read_pair_values(source, reading.left, reading.right, [score])
    from pairveil.evaluation.curve import N_CELLS

    return Scored(values.values[:, 0], found, (low, high), N_CELLS)
