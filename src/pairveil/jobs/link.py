"""`link`: a private linkage model from comparison levels, or a Splink settings file, and labels."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pairveil.errors import InputError
from pairveil.jobs.job import FILES, PRIVACY, RELEASE, Job, Telling, argument, option
from pairveil.jobs.options import CoverOptions, PageOptions, PairOptions, selection, write_page
from pairveil.jobs.spending import (
    Spending,
    learn,
    promised,
    spends,
    tell_epsilons,
    tell_released,
)

if TYPE_CHECKING:
    from pairveil.linkage.levels import LabelledLevels

MUCH_NOISE = 0.01
"""Noise on a count, as a share of the pairs, above which random pairs gain much (the guide has a table)."""


@dataclass(frozen=True, kw_only=True)
class RecordsOptions:
    """Records that Splink settings are about, and how many of them a person has."""

    records: Path | None = option(
        None,
        "With Splink settings: the records, CSV (all columns are text) or Parquet.",
        panel=FILES,
    )
    entity_records: int | None = option(
        None, "Public: the most records that one person has.", panel=PRIVACY, min=1
    )


@dataclass(frozen=True, kw_only=True)
class HalfOption:
    """Which half of the pairs counts, so that a model and its threshold share one set of pairs."""

    heading: ClassVar[str | None] = FILES

    half: Literal["first", "second"] | None = option(
        None,
        "Count this half of the pairs alone, drawn by their ids: a model from the first, its threshold from "
        "the second. A ledger knows both as the same pairs, which cost less than two sets.",
    )

    def halved(self, pairs: Any, labels: Any) -> Any:
        """Labels, null in the other half: its pairs stay in the graph, which is the same for both halves."""
        if self.half is None:
            return labels
        from pairveil.records.tables import as_ids, pair_ids

        ids = pair_ids(*(as_ids(pairs[:, side]) for side in (0, 1))).tolist()
        bits = [hashlib.sha256(one.encode("utf-8", "surrogatepass")).digest()[0] & 1 for one in ids]
        return np.where(np.array(bits) == (self.half == "second"), labels, 0)


@dataclass(frozen=True, kw_only=True)
class LinkJob(RecordsOptions, HalfOption, PairOptions, CoverOptions, Spending, Job):
    """Learn a private linkage model (Fellegi-Sunter match weights) and release it.

    Says what it will spend before it spends it. Nothing is written unless all of it is.

    Example: `pairveil link levels.csv labels.csv --n-levels 4,4,2 --epsilon 1 --out release/`

    Example: `pairveil link splink.json labels.csv --records people.parquet --epsilon 0.1 --out release/`
    """

    name: ClassVar = "link"
    panel: ClassVar = RELEASE
    shown: ClassVar = (
        "out", "n_levels", "records", "prior", "half", "epsilon", "delta", "unit",
        "ledger", "budget", "dry_run", "report", "overwrite", "json", "quiet",
    )  # fmt: skip

    source: Path = argument(
        "LEVELS_OR_SETTINGS",
        "Comparison levels: CSV or Parquet with two id columns and a column a comparison (-1 or empty: null; "
        "the highest is the best agreement). Or a Splink settings file (.json).",
    )
    labels: Path = argument("LABELS", "Labelled pairs: two ids and a label.")
    out: Path = option(Path("release"), "Folder for the release.", "-o")
    unit: Literal["pair", "relationship", "person", "entity"] = option(
        "relationship",
        "What is protected; entity: a person of --entity-records records.",
        panel=PRIVACY,
    )
    select: str = selection(
        "paths", "Which pairs to use; looks at who is compared with whom only.", panel=PRIVACY
    )
    n_levels: str | None = option(
        None,
        "Public number of levels of each comparison: 4,4,2 in the order of the columns. Without it the "
        "numbers are read off the pairs, and nothing is for release.",
        panel=FILES,
    )
    random_pairs: int = option(
        0,
        "With Splink settings: so many random pairs of other records count as pairs that do not match, and "
        "are paid for like the labelled ones. They help most with few labels. Give --prior.",
        panel=FILES,
        min=0,
    )
    prior: float | None = option(
        None,
        "How likely a pair is a match; Splink settings get it too. [default: released; Splink settings keep "
        "theirs]",
    )
    monotone: bool = option(False, "A higher level never weighs less.")
    dry_run: bool = option(False, "Say what would be spent, and stop.")
    report: bool = option(False, "Write the report page as well.", typed=True)

    @property
    def protected(self) -> Any:
        """The unit of a new ledger."""
        return "person" if self.unit == "entity" else self.unit

    def work(self, tell: Telling) -> None:
        """Read, prepare, show, and unless it is a dry run learn and release."""
        from pairveil.release.release import check_folder

        if any(self.is_set(one.name) for one in fields(CoverOptions)) and not self.report:
            raise InputError("options of the report go with --report")
        if not self.dry_run:
            check_folder(self.out, self.replaces)
        self.check_spending()
        given, settings, left_out = self._read()
        from pairveil.linkage import PrivateLinkageModel

        model = PrivateLinkageModel(
            unit=self.unit,
            select=self.select,
            entity_records=self.entity_records,
            prior=self.prior,
            monotone=self.monotone,
            **self.parameters,
        )
        if settings is not None and not self.random_pairs:
            from pairveil.linkage.splink import warn_of_frequencies

            warn_of_frequencies(settings)
        labels = self.halved(given.pairs, given.labels)
        prepared = model.prepare(given.levels, labels, given.pairs, given.n_levels, null=True)
        prepared = self.about(prepared, given.names, settings)
        planned = promised(prepared)
        used = f"{planned.n_pairs_used:,} of {planned.n_pairs_given:,} pairs used."
        tell.say(spends(planned), used if self.half is None else f"{used} Half of them count.")
        tell_epsilons(tell, planned)
        self._tell_noise(prepared, tell)
        releases = self.rehearse(prepared, tell)
        if self.dry_run:
            tell.say("Dry run: nothing was spent and nothing was written.")
            then = None if releases is None else asdict(releases)
            shown = {"certificate": planned.to_dict(), "out": None, "releases": then}
            tell.result(shown | left_out)
            return
        shown = self._spend(model, prepared, given.names, settings, tell)
        tell.result(shown | left_out)

    def _spend(
        self, model: Any, prepared: Any, names: Any, settings: Any, tell: Telling
    ) -> dict[str, Any]:
        from pairveil.linkage.splink import splink_text
        from pairveil.release.linkage import ReleasedLinkage
        from pairveil.release.release import SPLINK_FILE, commit

        reserve = partial(ReleasedLinkage.reserve, self.out, overwrite=self.replaces)
        with self.charged(prepared, tell, reserve) as charge:
            model.accountant = charge.ledger
            learn(model, prepared, tell, charge.held)
            model.feature_names_in_ = np.array(names, dtype=object)
            if settings is not None:
                charge.draft.write(SPLINK_FILE, splink_text(model.to_splink(settings)))
            model._hand_out(charge.draft)
            try:
                if self.report:
                    cover = {one.name: getattr(self, one.name) for one in fields(CoverOptions)}
                    name = self.out.resolve().name
                    write_page(charge.draft.folder, PageOptions(**cover), name=name)
            finally:  # what was paid for is kept where its report fails
                commit(charge.draft, self.overwrite)
            _tell_weights(tell, model.released())
            more = {"report": str(self.out / "report.html")} if self.report else {}
            if self.report:
                tell.say(f"Report: {more['report']}")
            return more | tell_released(tell, self.out, model.certificate_, charge.ledger)

    def _read(self) -> tuple[LabelledLevels, Any, dict[str, Any]]:
        """Levels of exactly the labelled pairs, and of random ones where asked for; and Splink's settings.

        And what was left out by ids alone, where that was asked for.
        """
        if self.source.suffix == ".json":
            if self.n_levels is not None:
                raise InputError(
                    "--n-levels: Splink settings say how many levels there are; leave it out"
                )
            given, settings, left_out = by_splink(
                self, self.source, self.labels, self.records, self.random_pairs
            )
            return given, settings, {} if left_out is None else {"left_out": left_out}
        if self.records is not None:
            raise InputError("--records goes with a Splink settings file (.json)")
        if self.random_pairs:
            raise InputError(
                "--random-pairs goes with Splink settings and --records: levels of random pairs are rows of "
                "the levels like any other; label them as different"
            )
        n_levels = self.n_levels
        given, left_out = by_levels(
            self, self.source, self.labels, lambda names: n_levels and _sizes(n_levels, len(names))
        )
        return given, None, {} if left_out is None else {"left_out": left_out}

    def _tell_noise(self, prepared: Any, tell: Telling) -> None:
        """What the noise will be, where it is large for so few pairs."""
        noise, n_pairs = prepared.recipe.noise(prepared.plan)[1], prepared.plan.n_records
        if noise <= MUCH_NOISE * n_pairs:
            return
        more = (
            "Random pairs need no clerk and help most: --random-pairs, or rows of levels that are labelled "
            "as different."
            if not self.random_pairs
            else "More labels, more records outside the labels for --random-pairs, or a larger epsilon help."
        )
        tell.say(
            f"Each count of these {n_pairs:,} pairs will have a noise of {noise:,.0f}, so how often others "
            f"agree by chance will be half a guess. {more}"
        )


def by_levels(
    reading: PairOptions, source: Path, labels: Path, sizes: Callable[[tuple[str, ...]], Any]
) -> tuple[LabelledLevels, dict[str, int] | None]:
    """Levels of the labelled pairs in a table; and what was left out by ids alone, if that was asked for.

    ``sizes`` gives the public number of levels of the comparisons of these names, or None.
    """
    from pairveil.linkage.levels import LabelledLevels
    from pairveil.records.identity import look_up_some
    from pairveil.records.readers import read_levels

    ends = (reading.left, reading.right)
    table = read_levels(source, *ends, (reading.label,), sizes, reading.merge_similar_ids)
    found, left_out = reading.sifted(table, reading.read_pairs(labels, whole=True))
    rows = look_up_some(table.asked(found), table.ids)[:, 0]
    names = table.names or ()
    pairs = np.column_stack([found.left, found.right])
    return LabelledLevels(table.values[rows], found.labels, pairs, sizes(names), names), left_out


def by_splink(
    reading: PairOptions, source: Path, labels: Path, records: Path | None, n_random: int = 0
) -> tuple[LabelledLevels, Any, dict[str, int] | None]:
    """Levels of the labelled pairs by Splink settings and records; the settings; and what was left out."""
    from pairveil.linkage.splink import check_loads, from_splink, levels_of_settings, settings_of
    from pairveil.records.tables import FeatureTable, pair_ids

    if records is None:
        raise InputError(
            "Splink settings need --records FILE, the records that the labels are about"
        )
    settings = settings_of(source)
    levels_of_settings(settings)
    check_loads(settings)
    left_out: list[dict[str, int] | None] = []

    def sift(listed: Any, there: Any) -> Any:
        if not there.any():  # is refused, with its reason
            return listed
        known = np.unique(pair_ids(listed.left, listed.right)[there])
        table = FeatureTable(known, np.zeros((len(known), 1)), of="levels")
        kept, counts = reading.sifted(table, listed)
        left_out.append(counts)
        return kept

    found = reading.read_pairs(labels, whole=True)
    given = from_splink(settings, found, n_random=n_random, records=records, sift=sift)
    return given, settings, left_out[0]


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


def _tell_weights(tell: Telling, released: Any) -> None:
    """Match weights by comparison."""
    rows = [
        [name, len(m), *(float(np.log2(m[i] / u[i])) for i in (0, -1))]
        for name, m, u in zip(released.shown_names, released.m, released.u, strict=True)
    ]
    columns = ["comparison", "levels", "does not agree, bits", "agrees best, bits"]
    tell.table("match weights", columns, rows)
    tell.say(
        "Bits add up over the comparisons: above 0 they speak for a match, below 0 against it, and ten bits "
        "make the odds a thousand times larger."
    )
