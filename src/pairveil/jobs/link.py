"""`link`: a private linkage model from comparison levels, or a Splink settings file, and labels."""

from __future__ import annotations

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
    about,
    learn,
    promised,
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
class LinkJob(RecordsOptions, PairOptions, CoverOptions, Spending, Job):
    """Learn a private linkage model (Fellegi-Sunter match weights) and release it.

    Says what it will spend before it spends it. Nothing is written unless all of it is.

    Example: `pairveil link levels.csv labels.csv --n-levels 4,4,2 --epsilon 1 --out release/`

    Example: `pairveil link splink.json labels.csv --records people.parquet --epsilon 0.1 --out release/`
    """

    name: ClassVar = "link"
    panel: ClassVar = RELEASE
    shown: ClassVar = (
        "out", "n_levels", "records", "random_pairs", "prior", "epsilon", "delta", "unit",
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
        given, settings = self._read()
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
        prepared = model.prepare(given.levels, given.labels, given.pairs, given.n_levels, null=True)
        prepared = about(prepared, given.names, settings)
        planned = promised(prepared)
        tell.say(f"{planned.n_pairs_used:,} of {planned.n_pairs_given:,} pairs used.")
        tell_epsilons(tell, planned)
        self._tell_noise(prepared, tell)
        releases = self.rehearse(prepared, tell)
        if self.dry_run:
            tell.say("Dry run: nothing was spent and nothing was written.")
            then = None if releases is None else asdict(releases)
            tell.result({"certificate": planned.to_dict(), "out": None, "releases": then})
            return
        self._spend(model, prepared, given.names, settings, tell)

    def _spend(self, model: Any, prepared: Any, names: Any, settings: Any, tell: Telling) -> None:
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
            tell.result(tell_released(tell, self.out, model.certificate_, charge.ledger))

    def _read(self) -> tuple[LabelledLevels, Any]:
        """Levels of exactly the labelled pairs, and of random ones where asked for; and Splink's settings."""
        found = self.read_pairs(self.labels)
        if self.source.suffix == ".json":
            if self.n_levels is not None:
                raise InputError(
                    "--n-levels: Splink settings say how many levels there are; leave it out"
                )
            return by_splink(self.source, found, self.records, self.random_pairs)
        from pairveil.linkage.levels import LabelledLevels
        from pairveil.records.readers import read_levels, rows_of_pairs

        if self.records is not None:
            raise InputError("--records goes with a Splink settings file (.json)")
        if self.random_pairs:
            raise InputError(
                "--random-pairs goes with Splink settings and --records: levels of random pairs are rows of "
                "the levels like any other; label them as different"
            )
        values = read_levels(self.source, self.left, self.right, (self.label,))
        rows = rows_of_pairs(found, values.pairs)
        sizes = None if self.n_levels is None else _sizes(self.n_levels, len(values.names))
        ends = np.column_stack([found.left, found.right])
        return LabelledLevels(values.values[rows], found.labels, ends, sizes, values.names), None

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
