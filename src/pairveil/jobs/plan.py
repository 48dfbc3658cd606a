"""`plan` and `schema`: what is publicly known of the columns, and what each epsilon would buy."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from pairveil.errors import DataWarning, InputError, warn
from pairveil.jobs.fit import FitJob, TrainingOptions, make_learner
from pairveil.jobs.job import FILES, RELEASE, Job, Telling, argument, option, options
from pairveil.jobs.options import FEATURES_HELP, IdOption, ScalingOptions
from pairveil.jobs.reading import (
    Source,
    kept_of,
    likely_label,
    noticing_swapped,
    read_column,
    read_rows,
    read_training,
)
from pairveil.learners import DEFAULT_LEARNER
from pairveil.printable import shortened

WHAT_IS_LEFT = {
    "number": "bounds",
    "date": "bounds",
    "category": "categories",
    "class": "list of classes",
    "id": "nothing",
    "skip": "nothing",
}


@dataclass(frozen=True, kw_only=True)
class SchemaJob(IdOption, Job):
    """Write a template of public facts about the columns, for you to complete by hand.

    It names each column and guesses its type. Bounds, categories and fill values are left blank: they must
    come from public knowledge, not from the table, whose extremes are somebody's.

    Example: `pairveil schema people.csv -o schema.toml`

    Example: `pairveil schema people.csv --id patient --classes diagnosis -o schema.toml`
    """

    name: ClassVar = "schema"
    panel: ClassVar = RELEASE

    features: Path = argument("FEATURES", FEATURES_HELP)
    out: Path = option(Path("schema.toml"), "File to write, .toml.", "-o")
    classes: str | None = option(None, "Column with each person's class: no feature.")
    overwrite: bool = option(False, "Replace an earlier file.", typed=True)

    def work(self, tell: Telling) -> None:
        """Look at names and kinds of columns, and write the template."""
        from pairveil.files import file_draft
        from pairveil.records.readers import guess_decimal, guess_types
        from pairveil.schema.schema import template

        out = self.out
        if out.suffix.lower() != ".toml":
            raise InputError(f"{out}: the schema's name must end in .toml")
        if out.exists() and not self.overwrite:
            raise InputError(
                f"{out} is there already, and may be filled in: say --overwrite to lose it"
            )
        types = guess_types(self.features, self.id, self.classes)
        text = template(types, self.features.name, guess_decimal(self.features))
        with file_draft(out) as draft:
            draft.write_text(text, encoding="utf-8")
        rows = [
            [name, f"{guess.type} {guess.format}", WHAT_IS_LEFT[guess.type]]
            for name, guess in types.items()
        ]
        tell.table(f"{len(types)} columns", ["column", "type", "to fill in"], rows)
        tell.say(
            f"Complete {out} from public knowledge (open it in a text editor), then: "
            f"pairveil plan {self.features}{'' if self.classes else ' PAIRS'} --schema {out}"
        )
        columns = [{"name": name, "type": guess.type} for name, guess in types.items()]
        tell.result({"out": str(out), "columns": columns})


@dataclass(frozen=True, kw_only=True)
class PlanJob(TrainingOptions, Job):
    """Say what each epsilon, unit and selection of pairs would buy; spends nothing.

    Counts people, columns and records and looks at who is paired with whom. Labels, classes and features
    change nothing here, so the choice may follow this table freely.

    Example: `pairveil plan people.csv pairs.csv --schema schema.toml`

    Example: `pairveil plan people.csv pairs.csv --epsilon 1 --epsilon 2 --json`

    Example: `pairveil plan people.csv --schema schema.toml --classes diagnosis --class-list benign,malignant`

    Example: `pairveil plan people.csv triples.csv --schema schema.toml --learner triplet`
    """

    name: ClassVar = "plan"
    panel: ClassVar = RELEASE
    describes: ClassVar = True

    epsilon: list[float] | None = option(
        None, "Plan for this one (repeatable). [default: 0.3 to 8]"
    )
    delta: float = option(1e-5, "Must be well below 1 / pairs.")
    ledger: Path | None = option(
        None,
        "Budget file: what it would have spent after each fit, and none it refuses is recommended.",
    )
    all: bool = option(False, "Print every line, not those of the recommended selection.")
    groups: str | None = option(
        None,
        "Plan for groups as records: column of PAIRS that names them; with --classes their size, or a column "
        "of FEATURES.",
        panel=FILES,
    )

    def work(self, tell: Telling) -> None:
        """Make the table, and tell the fit that is recommended."""
        of = self.source(self.typed)
        if not of.records.pairwise:
            seen, title = self._of_others(of)
        else:
            likely = likely_label(str(of.pairs), self)
            if likely != self.label:
                tell.say(
                    f"Labels: column '{likely}', by how its cells are written; --label names another."
                )
            self = replace(self, label=likely)
            seen, title = self._of_pairs(of)
        if tell.talks:
            self._tell(seen, title, of, tell)
        tell.result(seen.to_dict())

    def _of_pairs(self, of: Source) -> tuple[Any, str]:
        """Lines for every selection of pairs; labels are not needed."""
        from pairveil.records.pairset import PairSet

        if self.learner != DEFAULT_LEARNER:
            raise InputError(
                f"selections of pairs are planned for learner '{DEFAULT_LEARNER}'; what one fit of another "
                f"spends: pairveil fit --learner {self.learner} --dry-run"
            )
        apart = () if of.together is None else (of.together,)
        with noticing_swapped(of.features, str(of.pairs), self.left, self.right, self.schema):
            people, schema = read_rows(
                Path(of.features), self, self.merge_similar_ids, apart, leave_out=True
            )
        shared = kept_of(people, read_column(of.features, of.together, "--together"))
        found = self.sifted(people, self.read_pairs(str(of.pairs), labels=False, whole=True))[0]
        data = PairSet.join(people, found, together=shared)
        if schema is not None and schema.wide:
            warn(
                f"the bounds of {shortened(schema.wide)} lie a factor of 100 or more apart: consider "
                'scale = "log" in the schema',
                DataWarning,
            )
        from pairveil.learners.outlook import EPSILONS, outlook

        size = f"a table of {data.n_people:,} people, {data.n_features} columns"
        epsilons = tuple(self.epsilon or EPSILONS)
        seen = outlook(data, epsilons, delta=self.delta, ledger=self._open_ledger())
        return seen, f"{data.n_pairs:,} pairs, {size}"

    def _of_others(self, of: Source) -> tuple[Any, str]:
        """Lines for people with classes, groups or tuples, read as `fit` reads them."""
        if of.kind == "classes" and of.public is None:
            raise InputError(
                "a plan may not tell which classes there are: give the public list, --class-list a,b,c"
            )
        training = read_training(of, self, ScalingOptions(), self)
        from pairveil.learners.outlook import EPSILONS, outlook_of

        model = make_learner(self.learner, {"delta": self.delta}, {"delta"})
        epsilons = tuple(self.epsilon or EPSILONS)
        seen = outlook_of(training.prepare, model, epsilons, ledger=self._open_ledger())
        counted = sorted({(row.n_records, row.records) for row in seen.rows})
        records = " or ".join(f"{n:,} {what}" for n, what in counted)
        return seen, f"{records}, {len(training.scale)} columns"

    def _open_ledger(self) -> Any:
        from pairveil.privacy.ledger import PrivacyLedger

        return None if self.ledger is None else PrivacyLedger.open(self.ledger)

    def _tell(self, seen: Any, title: str, of: Source, tell: Telling) -> None:
        from pairveil.learners.outlook import cells, headings

        row = seen.recommended
        shown = [one for one in seen.rows if self.all or one.select == row.select]
        lines = [list(headings(shown[0])), *map(cells, shown)]
        if (
            self.ledger is not None and not self.all
        ):  # the same in all lines, and 80 columns are few
            title += f", {lines[0][2]} {lines[1][2]}"
            for line in lines:
                del line[2]
        tell.table(title, lines[0], lines[1:])
        tell.say(
            "gain: what eight in ten such fits kept of what learning without privacy gains over plain "
            "distance. guess: how often, at most, anyone tells two contents of the unit apart; a coin is "
            "right 50 times in 100. person: epsilon of the same fit for all that is known of a person."
            + ("" if self.ledger is None else " ledger: all it would have spent after the fit."),
            f"Recommended: {seen.why}",
        )
        if self.schema is None:  # `fit` refuses to guess
            tell.say(
                "Add what brings the columns to scale: --schema FILE, --bounds FILE, or --no-scale."
            )
        same = {one.name: getattr(self, one.name) for one in options(TrainingOptions)}
        chosen = {"epsilon": row.epsilon, "delta": self.delta, "unit": row.unit}
        chosen |= {} if self.ledger is None else {"ledger": self.ledger}
        if of.records.pairwise:
            chosen["select"] = row.select
        fit = FitJob(**(same | {"classes": of.classes} | chosen))
        tell.say(f"pairveil {shlex.join(fit.words(*chosen, 'out'))}")
