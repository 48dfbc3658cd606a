"""`threshold` and `evaluate`: a released model on private pairs, or on public people."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from pairveil.errors import InputError
from pairveil.jobs.job import FILES, PRIVACY, RELEASE, Job, Telling, argument, option
from pairveil.jobs.link import HalfOption, RecordsOptions, by_levels, by_splink
from pairveil.jobs.options import (
    FEATURES_HELP,
    IdOption,
    PairOptions,
    TogetherOption,
    released_folder,
    selection,
)
from pairveil.jobs.reading import read_people_of, read_placed
from pairveil.jobs.spending import (
    Spending,
    judge,
    keep_budget,
    promised,
    tell_epsilons,
    tell_released,
    write_json,
)
from pairveil.privacy.units import round_up

METRIC_CELLS = 256
"""Thresholds of a metric: its longest possible distance is far above the usual ones."""
RANDOM_PAIRS = 200_000
_SHARED = "Pairs share people: {what} count {share:.0%} of them as independent."
UnitName = Literal["pair", "relationship", "person"]


class Scored(NamedTuple):
    """Scores of labelled pairs; larger means more alike."""

    scores: Any
    ends: Any  # ids of both people
    labels: Any
    score_range: tuple[float, float]
    n_cells: int
    of_distance: bool = False
    model: Any = None  # certificate of the release
    together: dict[str, Any] = {}  # noqa: RUF012 - the argument of that name, if any

    @property
    def sha256(self) -> str | None:
        """Of the release that scored the pairs."""
        return None if self.model is None else str(self.model.metric_sha256)


@dataclass(frozen=True, kw_only=True)
class ThresholdJob(
    RecordsOptions, HalfOption, TogetherOption, IdOption, PairOptions, Spending, Job
):
    """Choose a threshold on private labelled pairs, for a false-match rate.

    The curve of both error rates is released once, with bands that hold sampling and noise.

    Example: `pairveil threshold release/ people.csv pairs.csv --epsilon 0.5 --fmr 0.01`

    Example: `pairveil threshold linkage/ settings.json labels.csv --records people.parquet --epsilon 1`

    Example: `pairveil threshold scores.csv --score-range 0,1 --epsilon 0.5 --fmr 0.001 --out point/`
    """

    name: ClassVar = "threshold"
    panel: ClassVar = RELEASE
    shown: ClassVar = (
        "out", "fmr", "score_range", "score", "half", "epsilon", "delta", "unit", "ledger", "budget",
        "overwrite", "json", "quiet",
    )  # fmt: skip

    source: Path = argument(
        "DIR_OR_SCORES", "Folder of a release; or a table of scores: two ids, a label and a score."
    )
    features: Path | None = argument(
        "FEATURES",
        "People's features; for a linkage model comparison levels, or Splink settings (.json) with "
        "--records.",
        None,
    )
    pairs: Path | None = argument("PAIRS", "Labelled pairs, private.", None)
    fmr: float = option(0.01, "False-match rate to aim at.")
    unit: UnitName = option("relationship", "What is protected.", panel=PRIVACY)
    select: str = selection(
        "paths", "Which pairs to use; looks at who is paired with whom only.", panel=PRIVACY
    )
    score_range: str | None = option(
        None, "Public bounds of the scores, such as 0,1. A release has its own.", panel=FILES
    )
    score: str = option("score", "Column with the score.", panel=FILES)
    out: Path | None = option(
        None,
        "Folder for a release of the whole curve, for `pairveil certificate` and `report`; or a JSON file.",
        "-o",
    )

    def work(self, tell: Telling) -> None:
        """Score, count privately, and tell the threshold."""
        self.check_spending()
        scored = self._scored()
        from pairveil.evaluation.curve import plan_curve

        labels = self.halved(scored.ends, scored.labels)
        planned = plan_curve(
            scored.scores, labels, scored.ends, score_range=scored.score_range, unit=self.unit,
            select=self.select, n_cells=scored.n_cells, entity_records=self.entity_records, null=True,
            **scored.together, **self.parameters,
        )  # fmt: skip
        planned = planned._replace(prepared=self.about(planned.prepared, scored.sha256))
        promised(planned.prepared)
        planned.check_pairs(self.fmr, 1.0 if self.half is None else 0.5)
        self.rehearse(planned.prepared, tell)
        from pairveil.release.curve import ErrorCurve
        from pairveil.release.release import commit

        reserve = None
        if self.out is not None and self.out.suffix == ".json":
            self.check_result(self.out)
        elif self.out is not None:
            reserve = partial(ErrorCurve.reserve, self.out, overwrite=self.replaces)
        with self.charged(planned.prepared, tell, reserve) as charge:
            curve = planned.curve(charge.ledger, charge.held)
            judged = judge(curve.certificate, charge.ledger)
            shown = self._shown(curve, scored) | {"verdict": asdict(judged)}
            if scored.model is not None:
                shown["with_model"] = _with_model(curve, scored.model)
            if charge.draft is not None:
                replace(curve, asked=self.fmr, of_distance=scored.of_distance).save(charge.draft)
                keep_budget(charge.draft, charge.ledger)
                commit(charge.draft, self.overwrite)
            elif self.out is not None:
                write_json(self.out, {**shown, "curve": curve.to_dict()})
            if shown["threshold"] is not None:
                self._tell(shown, curve, tell)
                if charge.draft is None:
                    tell.say(judged.line)
                else:
                    tell.say(f"`pairveil report {self.out}` draws the curve.")
                    tell_released(tell, self.out, curve.certificate, charge.ledger)
            tell.result(shown)
            missed = shown["threshold"] is None
            charge.keeps = missed and self.out is None
        if missed:  # how many are impostors is private: it shows when it was paid for
            kept = "nothing was kept (--out keeps the curve)"
            if self.out is not None:
                kept = f"the curve is in {self.out}"
            elif charge.held is not None:
                kept = "the same command with another --fmr costs nothing more: the checkpoint has the curve"
            raise InputError(f"{shown['problem']}. Epsilon was spent; {kept}")

    def _shown(self, curve: Any, scored: Scored) -> dict[str, Any]:
        """What is handed out: the threshold with its bands, and the certificate."""
        facts = {
            "of": "distance" if scored.of_distance else "score",
            "fmr": self.fmr,
            "confidence": curve.confidence,
            "effective_share": curve.effective_share,
            "certificate": curve.certificate.to_dict(),
        }
        try:
            at = curve.threshold(self.fmr)
        except InputError as problem:
            return {"threshold": None, "fmr_high": None, "problem": str(problem), **facts}
        (low, high), missed = curve.fmr_at(at), curve.fnmr_at(at)
        return {
            "threshold": -at if scored.of_distance else at,
            "fmr_low": low,
            "fmr_high": high,
            "fnmr_low": missed[0],
            "fnmr_high": missed[1],
            "advice": curve.advice(self.fmr) or None,
            **facts,
        }

    def _tell(self, shown: dict[str, Any], curve: Any, tell: Telling) -> None:
        side = "at most" if shown["of"] == "distance" else "at least"
        tell.say(
            f"Call pairs a match whose {shown['of']} is {side} {shown['threshold']:.6g}.",
            f"Aimed at a false-match rate of {shown['fmr']:g}. "
            f"False matches: {shown['fmr_low']:.2%} to {shown['fmr_high']:.2%} of impostor pairs; false "
            f"non-matches: {shown['fnmr_low']:.2%} to {shown['fnmr_high']:.2%} of genuine pairs "
            f"({shown['confidence']:.0%} confidence for all thresholds together, noise included).",
        )
        if shown["advice"]:
            tell.say(shown["advice"])
        if curve.effective_share < 1:
            tell.say(_SHARED.format(what="bands", share=curve.effective_share))
        if (both := shown.get("with_model")) is not None:
            tell.say(
                f"Model and threshold together: epsilon {round_up(float(both['epsilon']))} at delta "
                f"{both['delta']:g} (unit '{both['unit']}', {both['adjacency']}), by their certificates "
                "alone: they do not say that the pairs are the same. A ledger that was charged for both may "
                "know it, and then says less."
            )
        tell_epsilons(tell, curve.certificate)

    # ---- scores of the pairs -------------------------------------------------------------------

    def _scored(self) -> Scored:
        if self.source.is_dir():
            if self.features is None or self.pairs is None:
                raise InputError("a release needs FEATURES (or LEVELS) and PAIRS to be scored on")
            return self._by_release(self.features, self.pairs)
        if self.features is not None:
            raise InputError("a table of scores stands alone: leave FEATURES and PAIRS out")
        if self.records is not None:
            raise InputError("--records goes with a linkage model and Splink settings (.json)")
        self._refuse_together("a table of scores")
        from pairveil.evaluation.curve import N_CELLS
        from pairveil.records.identity import look_up_some
        from pairveil.records.readers import read_pair_values

        if self.score_range is None:
            raise InputError("--score-range is missing: the public bounds of scores, such as 0,1")
        try:
            low, high = (float(one) for one in self.score_range.split(","))
        except ValueError:
            raise InputError(
                "--score-range must be two numbers with a comma, such as 0,1"
            ) from None
        table = read_pair_values(
            self.source, self.left, self.right, lambda _: [(low, high, False)], columns=[self.score],
            merge_similar_ids=self.merge_similar_ids, of="scores",
        )  # fmt: skip
        found = self.sifted(table, self.read_pairs(self.source, whole=True))[0]
        scores = table.values[look_up_some(table.asked(found), table.ids)[:, 0], 0]
        null, ends = np.isnan(scores), np.column_stack([found.left, found.right])
        labels = np.where(null, 0, found.labels)
        return Scored(np.where(null, low, scores), ends, labels, (low, high), N_CELLS)

    def _by_release(self, features: Path, pairs: Path) -> Scored:
        from pairveil.evaluation.curve import lengths_of, longest_distance
        from pairveil.release.curve import ErrorCurve
        from pairveil.release.linkage import ReleasedLinkage
        from pairveil.release.metric import ReleasedMetric
        from pairveil.release.release import load_release

        released = load_release(self.source)
        if isinstance(released, ErrorCurve):
            raise InputError(
                f"{self.source} is an operating point already: name the model's folder"
            )
        if isinstance(released, ReleasedLinkage):
            return self._by_weights(released, features, pairs)
        if not isinstance(released, ReleasedMetric):
            raise InputError(
                f"{self.source} holds no metric and no linkage model: there is nothing to score"
            )
        placed = read_placed(released, features, pairs, self.id, self, self.together)
        norm = norm_of(released.certificate)
        longest = longest_distance(released.components, released.column_scale, norm)
        if not (math.isfinite(longest) and longest > 0):
            raise InputError("the metric gives every pair the same distance: there is no threshold")
        # Not `distance`: where there is a schema, it was applied when the rows were read.
        ends = (released.project(placed.values[placed.pairs[:, side]]) for side in (0, 1))
        near = np.minimum(lengths_of(np.subtract(*ends)), longest)
        return Scored(
            -near, placed.ids, placed.labels, (-longest, 0.0), METRIC_CELLS, True,
            released.certificate, placed.together,
        )  # fmt: skip

    def _by_weights(self, model: Any, levels: Path, pairs: Path) -> Scored:
        from pairveil.column_names import in_order_of
        from pairveil.records.validation import MOST_LEVELS

        shared = {}
        if levels.suffix == ".json":
            given, settings, _ = by_splink(self, levels, pairs, self.records)
            if self.together is not None:
                shared = {"together": _of_records(self.records, self.together, settings)}
        else:
            if self.records is not None:
                raise InputError("--records goes with Splink settings (.json)")
            self._refuse_together("a table of levels")

            def sizes(names: tuple[str, ...]) -> list[int]:
                known = dict(zip(model.names or names, map(len, model.m), strict=False))
                return [known.get(one, MOST_LEVELS) for one in names]

            given, _ = by_levels(self, levels, pairs, sizes)
        names = given.names
        order = list(range(len(names)))
        if model.names is not None:
            if not set(model.names) <= set(names):
                raise InputError(
                    f"{levels} lacks a comparison of the model: {', '.join(model.names)}"
                )
            in_order_of(names, list(model.names))
            order = [names.index(name) for name in model.names]
        scores = model.match_weights(given.levels[:, order])
        bits = [np.append(np.log2(m / u), 0.0) for m, u in zip(model.m, model.u, strict=True)]
        most, least = sum(one.max() for one in bits), sum(one.min() for one in bits)
        around = 1e-9 * (1 + most - least)  # sums in another order may round otherwise
        bounds = (float(least) - around, float(most) + around)
        return Scored(
            scores, given.pairs, given.labels, bounds, METRIC_CELLS, False, model.certificate, shared
        )  # fmt: skip

    def _refuse_together(self, what: str) -> None:
        if self.together is not None:
            raise InputError(
                f"--together names a column of FEATURES or of --records, and {what} has no people: in Python "
                "error_curve takes who changes together"
            )


def _with_model(curve: Any, model: Any) -> dict[str, Any] | None:
    """The certificate of model and curve together, where there is one; a ledger knows of all cases."""
    try:
        return dict(curve.with_model(model).to_dict())
    except InputError:
        return None


def norm_of(certificate: Any) -> float:
    """How long people's rows may be, by the certificate of a fit."""
    return 1.0 if certificate is None else float(certificate.plan.get("data_norm", 1.0))


def _of_records(records: Any, column: str, settings: dict[str, Any]) -> dict[Any, Any]:
    """Each record's value of a public column, by the id that the settings name."""
    from pairveil.linkage.splink import read_records

    if settings.get("link_type") != "dedupe_only":
        raise InputError("--together goes with the records of one table (link_type 'dedupe_only')")
    table, key = read_records(records), settings.get("unique_id_column_name") or "unique_id"
    if column not in table.column_names:
        raise InputError(f"--together: {records} has no column '{column}'")
    return dict(zip(table.column(key).to_pylist(), table.column(column).to_pylist(), strict=True))


@dataclass(frozen=True, kw_only=True)
class EvaluateJob(TogetherOption, IdOption, PairOptions, Spending, Job):
    """Score a released metric on people it was not learned from.

    Example: `pairveil evaluate release/ test-people.csv --classes diagnosis`

    Example: `pairveil evaluate release/ people.csv --pairs held-out.csv --epsilon 0.5 --ledger budget.json`
    """

    name: ClassVar = "evaluate"
    panel: ClassVar = RELEASE
    shown: ClassVar = (
        "classes", "pairs", "epsilon", "delta", "unit", "ledger", "budget", "out", "overwrite", "id", "json",
        "quiet",
    )  # fmt: skip

    folder: Path = released_folder()
    features: Path = argument("FEATURES", FEATURES_HELP)
    classes: str | None = option(None, "Column with each person's class: public people.")
    pairs: str | None = option(
        None,
        "With --epsilon: file of private labelled pairs. With --classes: how many random pairs to score "
        f"[default: {RANDOM_PAIRS}].",
        typed=True,
    )
    epsilon: float | None = option(  # type: ignore[assignment]
        None,
        "The pairs are private: noise for this budget, and a certificate.",
        panel=PRIVACY,
    )
    unit: UnitName = option("relationship", "What is protected.", panel=PRIVACY)
    select: str = selection(
        "paths", "Which private pairs to use; looks at who is paired with whom only.", panel=PRIVACY
    )
    seed: int | None = option(
        None,
        "Of random pairs [default: 0]; with --epsilon: repeatable, and NOT for release.",
        panel=PRIVACY,
        min=0,
    )
    out: Path | None = option(None, "With --epsilon: JSON file for the result.", "-o")

    def work(self, tell: Telling) -> None:
        """Score on public people, or on private pairs."""
        from pairveil.release.metric import ReleasedMetric

        if (self.epsilon is None) == (self.classes is None):
            raise InputError(
                "give either --classes COLUMN, for people whose classes are public, or --epsilon with "
                "--pairs FILE, for private labelled pairs"
            )
        if self.epsilon is None:
            charged = (self.ledger, self.budget, self.out, self.checkpoint, self.together)
            if any(one is not None for one in charged):
                raise InputError(
                    "--ledger, --budget, --out, --checkpoint and --together go with --epsilon"
                )
            n_pairs = _count(self.pairs)
            self._on_public_people(ReleasedMetric.load(self.folder), n_pairs, tell)
            return
        if self.pairs is None:
            raise InputError(
                "--pairs is missing: the file of private labelled pairs to evaluate on"
            )
        self.check_spending()
        self._on_private_pairs(ReleasedMetric.load(self.folder), Path(self.pairs), tell)

    def _on_private_pairs(self, metric: Any, pairs: Path, tell: Telling) -> None:
        from pairveil.evaluation.curve import plan_comparison

        placed = read_placed(metric, self.features, pairs, self.id, self, self.together)
        planned = plan_comparison(
            placed.values, placed.pairs, placed.labels, placed.ids, metric.components, metric.column_scale,
            norm_of(metric.certificate), unit=self.unit, select=self.select, **self.parameters,
            **placed.together,
        )  # fmt: skip
        sha256 = None if metric.certificate is None else metric.certificate.metric_sha256
        planned = planned._replace(prepared=self.about(planned.prepared, sha256))
        promised(planned.prepared)
        planned.say_width()
        self.rehearse(planned.prepared, tell)
        if self.out is not None:
            self.check_result(self.out)
        with self.charged(planned.prepared, tell) as charge:
            found = planned.auc(charge.ledger, charge.held)
            judged = judge(found.certificate, charge.ledger)
            shown = shown_auc(found, planned.prepared.plan.n_records) | {
                "knn_accuracy": None,  # of people with classes only
                "certificate": promised(planned.prepared).to_dict(),
                "metric_sha256": sha256,
                "verdict": asdict(judged),
            }
            if self.out is not None:
                write_json(self.out, shown)
            self._tell(shown, found, tell)
            tell.say(judged.line)
            tell.result(shown)

    def _tell(self, shown: dict[str, Any], found: Any, tell: Telling) -> None:
        rows = [
            [name, f"{auc.value:.3f}", f"{auc.low:.3f} to {auc.high:.3f}"]
            for name, auc in zip(("this metric", "Euclidean"), found.aucs, strict=True)
        ]
        title = f"{shown['n_pairs']:,} private pairs, with noise"
        interval = f"{shown['confidence']:.0%} interval, both together"
        tell.table(title, ["metric", "pair AUC", interval], rows)
        tell.say(
            "Pair AUC: how often a dissimilar pair is farther apart than a similar one. Intervals hold "
            "sampling and noise."
        )
        if found.effective_share < 1:
            tell.say(_SHARED.format(what="intervals", share=found.effective_share))
        tell_epsilons(tell, found.certificate)

    def _on_public_people(self, metric: Any, n_pairs: int, tell: Telling) -> None:
        from pairveil.evaluation.scores import evaluate_release
        from pairveil.records.readers import read_classes

        people = read_people_of(metric, self.features, self.id)
        groups = read_classes(self.features, str(self.classes))
        how = {"n_pairs": n_pairs, "random_state": self.seed or 0}
        scores = evaluate_release(metric, people.values, groups, **how)
        rows = [
            [name, scores[f"{prefix}pair_auc"], scores[f"{prefix}knn_accuracy"]]
            for name, prefix in (
                ("this metric", ""),
                ("Euclidean", "euclidean_"),
                ("untrained (random projection)", "untrained_"),
            )
        ]
        title = f"{scores['n_people']:,} people, {scores['n_pairs']:,} random pairs"
        tell.table(title, ["metric", "pair AUC", "5-NN accuracy"], rows)
        tell.say(
            "Pair AUC: how often two people of different classes are farther apart than two of one class. "
            "Scores on people whose pairs were used for training are not covered by the certificate; for "
            "private labelled pairs use --epsilon."
        )
        tell.result(scores)


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


def shown_auc(found: Any, n_pairs: int) -> dict[str, Any]:
    """Scores of a metric and of plain distance on private pairs, for JSON."""
    from pairveil.report.facts import SCORES

    learned, euclid = found.aucs
    scores = dict(zip(SCORES, (*learned, *euclid), strict=True))
    about = {"confidence": found.confidence, "effective_share": found.effective_share}
    return {**scores, "n_pairs": n_pairs, **about}
