"""`evaluate`: how good a released metric is, on public people or, charged, on private labelled pairs."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from pairveil.cli.budget import (
    CheckpointFile,
    Spending,
    UnitOption,
    privacy_option,
    promised,
)
from pairveil.cli.learning import about, hold_checkpoint
from pairveil.cli.output import (
    JsonFlag,
    QuietFlag,
    plain,
    print_json,
    spoken_warnings,
    stdout,
    table,
)
from pairveil.cli.pair_options import FeaturesFile, IdColumn, PairOptions, Together
from pairveil.cli.planned import judge, print_epsilons
from pairveil.cli.release import ReleaseFolder, read_people, read_placed
from pairveil.cli.threshold import norm_of, read_together, together_of
from pairveil.cli.waiting import charge_said
from pairveil.errors import InputError

RANDOM_PAIRS = 200_000


MaybeEpsilon = Annotated[
    float | None,
    privacy_option("--epsilon", "The pairs are private: noise for this budget, and a certificate."),
]


@dataclass(frozen=True)
class Charged(Spending):
    """What an evaluation on private pairs may spend; nothing where it is on public people."""

    epsilon: MaybeEpsilon = None  # type: ignore[assignment]
    seed: Annotated[
        int | None,
        privacy_option(
            "--seed",
            "Of random pairs [default: 0]; with --epsilon: repeatable, and NOT for release.",
            min=0,
        ),
    ] = None


def evaluate(
    folder: ReleaseFolder,
    features: FeaturesFile,
    classes: Annotated[
        str | None,
        typer.Option("--classes", help="Column with each person's class: public people."),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            "--pairs",
            help=f"With --epsilon: file of private labelled pairs. With --classes: how many random pairs "
            f"to score [default: {RANDOM_PAIRS}].",
        ),
    ] = None,
    spending: Charged = Charged(),
    unit: UnitOption = "relationship",
    checkpoint: CheckpointFile = None,
    together: Together = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="With --epsilon: JSON file for the result.")
    ] = None,
    id_: IdColumn = "id",
    reading: PairOptions = PairOptions(),
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Score a released metric on people it was not learned from.

    Example: `pairveil evaluate release/ test-people.csv --classes diagnosis`

    Example: `pairveil evaluate release/ people.csv --pairs held-out.csv --epsilon 0.5 --ledger budget.json`
    """  # fmt: skip
    from pairveil.release.metric import ReleasedMetric

    if (spending.epsilon is None) == (classes is None):
        raise InputError(
            "give either --classes COLUMN, for people whose classes are public, or --epsilon with --pairs "
            "FILE, for private labelled pairs"
        )
    if spending.epsilon is None:
        charged = (spending.ledger, spending.budget, out, checkpoint, together)
        if any(one is not None for one in charged):
            raise InputError(
                "--ledger, --budget, --out, --checkpoint and --together go with --epsilon"
            )
        n_pairs = _count(pairs)
        metric = ReleasedMetric.load(folder)
        _on_public_people(
            metric, features, id_, str(classes), n_pairs, spending.seed or 0, json_, quiet
        )
        return
    if pairs is None:
        raise InputError("--pairs is missing: the file of private labelled pairs to evaluate on")
    budget_file = spending.ledger_of(unit, checkpoint)
    metric = ReleasedMetric.load(folder)
    with spoken_warnings(quiet), ExitStack() as open_:
        values, placed = read_placed(features, Path(pairs), id_, metric, reading, together)
        shared = read_together(features, together, placed.ids)
        promise = {"unit": unit, **spending.parameters, **together_of(shared)}
        planned = _planned(metric, values, placed, promise)
        sha256 = None if metric.certificate is None else metric.certificate.metric_sha256
        planned = planned._replace(prepared=about(planned.prepared, sha256))
        certificate = promised(planned.prepared)
        budget_file.rehearse(planned.prepared, not (json_ or quiet))
        held = open_.enter_context(hold_checkpoint(checkpoint, certificate))
        if out is not None:
            from pairveil.files import check_file

            check_file(out, 1 << 20)
        ledger = budget_file.open()
        open_.enter_context(charge_said(ledger, out, checkpoint))
        found = planned.auc(ledger, held)
        judged = judge(found.certificate, ledger)
        shown = {
            **_shown(found, len(placed.pairs)),
            "metric_sha256": sha256,
            "verdict": asdict(judged),
        }
        if out is not None:
            from pairveil.files import write_file

            write_file(out, json.dumps(plain(shown), indent=1, allow_nan=False).encode() + b"\n")
        if json_:
            print_json(shown)
        elif not quiet:
            _say(shown, found)
            stdout.print(judged.line)
        if held is not None:  # last: what is lost between counts and here would be spent anew
            held.remove()


def _count(pairs: str | None) -> int:
    try:
        found = RANDOM_PAIRS if pairs is None else int(pairs)
    except ValueError:
        raise InputError(
            "--pairs must be a number with --classes; private pairs go with --epsilon"
        ) from None
    if found < 100:
        raise InputError("--pairs must be at least 100")
    return found


def _planned(metric: Any, values: Any, placed: Any, promise: dict[str, Any]) -> Any:
    """The evaluation of the metric and of Euclid, on the same pairs."""
    from pairveil.evaluation.curve import lengths_of, longest_distance, plan_auc

    scale = np.ones(metric.n_features) if metric.column_scale is None else metric.column_scale
    norm = norm_of(metric.certificate)
    gap = values[placed.pairs[:, 0]] - values[placed.pairs[:, 1]]
    lengths = [lengths_of(gap @ metric.components.T), lengths_of(gap * scale)]
    longest = [longest_distance(metric.components, metric.column_scale, norm), 2 * norm]
    ids = placed.ids[placed.pairs]
    return plan_auc(
        np.column_stack(lengths), placed.labels, ids, longest=longest, null=True, **promise
    )


def _shown(found: Any, n_pairs: int) -> dict[str, Any]:
    learned, euclid = found.aucs
    return {
        "pair_auc": learned.value,
        "pair_auc_low": learned.low,
        "pair_auc_high": learned.high,
        "euclidean_pair_auc": euclid.value,
        "euclidean_pair_auc_low": euclid.low,
        "euclidean_pair_auc_high": euclid.high,
        "knn_accuracy": None,  # of people with classes only
        "n_pairs": n_pairs,
        "confidence": found.confidence,
        "effective_share": found.effective_share,
        "certificate": found.certificate.to_dict(),
    }


def _say(shown: dict[str, Any], found: Any) -> None:
    rows = [
        [name, f"{auc.value:.3f}", f"{auc.low:.3f} to {auc.high:.3f}"]
        for name, auc in zip(("this metric", "Euclidean"), found.aucs, strict=True)
    ]
    title = f"{shown['n_pairs']:,} private pairs, with noise"
    interval = f"{shown['confidence']:.0%} interval, both together"
    stdout.print(table(title, ["metric", "pair AUC", interval], rows))
    stdout.print(
        "Pair AUC: how often a dissimilar pair is farther apart than a similar one. Intervals hold sampling "
        "and noise."
    )
    if found.effective_share < 1:
        stdout.print(
            f"Pairs share people: intervals count {found.effective_share:.0%} of them as independent."
        )
    print_epsilons(found.certificate, f"epsilon at delta {found.certificate.delta:g}, by unit")


def _on_public_people(
    metric: Any, features: Path, id_: str, classes: str, n_pairs: int, seed: int, json_: bool,
    quiet: bool,
) -> None:  # fmt: skip
    from pairveil.evaluation.scores import evaluate_release
    from pairveil.records.readers import read_classes

    with spoken_warnings(quiet or json_):
        people = read_people(features, id_, metric)
        groups = read_classes(features, classes)
    scores = evaluate_release(metric, people.values, groups, n_pairs=n_pairs, random_state=seed)
    if json_:
        print_json(scores)
    elif not quiet:
        rows = [
            [name, scores[f"{prefix}pair_auc"], scores[f"{prefix}knn_accuracy"]]
            for name, prefix in (
                ("this metric", ""),
                ("Euclidean", "euclidean_"),
                ("untrained (random projection)", "untrained_"),
            )
        ]
        title = f"{scores['n_people']:,} people, {scores['n_pairs']:,} random pairs"
        stdout.print(table(title, ["metric", "pair AUC", "5-NN accuracy"], rows))
        stdout.print(
            "Pair AUC: how often two people of different classes are farther apart than two of one class. "
            "Scores on people whose pairs were used for training are not covered by the certificate; for "
            "private labelled pairs use --epsilon."
        )
