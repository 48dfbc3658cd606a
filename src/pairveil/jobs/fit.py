"""`fit`: learn a metric from files and release it, or the best of several (`--tune`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from pairveil.errors import InputError
from pairveil.jobs.job import (
    FILES,
    PRIVACY,
    RELEASE,
    Job,
    Telling,
    argument,
    option,
    spelling,
)
from pairveil.jobs.options import (
    FEATURES_HELP,
    LEARNER_HELP,
    PURE,
    PageOptions,
    PairOptions,
    PeopleOptions,
    ScalingOptions,
    check_learner,
    selection,
    write_page,
)
from pairveil.jobs.parties import CoordinatorOptions, coordinate_fit
from pairveil.jobs.reading import (
    Source,
    Training,
    for_workers,
    marked_classes,
    open_for_workers,
    read_training,
)
from pairveil.jobs.spending import (
    Spending,
    learn,
    promised,
    spends,
    tell_epsilons,
    tell_released,
)
from pairveil.learners import DEFAULT_LEARNER, LEARNERS, learner_class
from pairveil.privacy.mechanisms import NOISES
from pairveil.records.kinds import KINDS

FILES_OF = {
    "pairs": "FEATURES and PAIRS",
    "classes": "FEATURES and --classes COLUMN",
    "tuples": "FEATURES and TUPLES",
}
"""What `fit` reads for each kind of input that a learner can learn from (`learns_from`)."""
_OF_FILES = {"layout", "threshold", "record_id", "graph_salt", "problems"}
_OF_COLUMNS = {"left", "right", "label", "zero_means"}
_REFUSED = {
    "--classes": _OF_FILES | _OF_COLUMNS | {"select", "kappa"},
    "--groups": _OF_FILES | {"select", "kappa", "leave_out"},
    "tuples": _OF_FILES | _OF_COLUMNS | {"groups", "leave_out"},
}
"""Options that say nothing beside what is learned from."""
_NOT_FOR_WORKERS = (
    "bounds", "schema", "columns", "exclude", "zero_means", "layout", "graph_salt", "merge_similar_ids",
    "together", "leave_out", "problems",
)  # fmt: skip
_NOT_TUNED = {
    "checkpoint": "only the best of the trials may ever leave, so none of them is kept. A search that is "
    "killed stays charged and starts anew",
    "dask": "a search is summed and released on this machine, as one",
    "audit": "the attack is on the plan of a single fit",
    "score": "a search scores its trials, and releases the best score",
}
WIDE = 0.3
"""An interval wider than this says little of a number between a half and 1."""
_NOT_SCORED = {
    "kappa": "pairs that are declared to change together may be of people on both sides",
    "dask": "the pairs held out are scored on this machine",
}


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(PeopleOptions, PairOptions):
    """What is learned from, and by which learner."""

    features: str = argument("FEATURES", FEATURES_HELP)
    pairs: str | None = argument(
        "PAIRS",
        "Pairs of people: CSV, Parquet or another tool's file; tuples of people for --learner triplet or "
        "tuplet; none with --classes.",
        None,
    )
    learner: str = option(DEFAULT_LEARNER, LEARNER_HELP)
    classes: str | None = option(
        None,
        "Column of FEATURES with each person's class: learn from people, without PAIRS. [default: the "
        "schema's, where no PAIRS are given]",
        panel=FILES,
        label="Class",
    )
    class_list: str | None = option(
        None,
        "The public list of classes, as a,b,c. [default: the schema's] Without any the classes that occur "
        "count as public, and the metric is not for release.",
        panel=FILES,
    )
    groups: str | None = option(
        None,
        "Records are disjoint groups of people: public column of PAIRS that names them; with --classes "
        "their size, or a public column of FEATURES.",
        panel=PRIVACY,
    )

    def source(self, typed: Collection[str]) -> Source:
        """The files and what of them is learned from; refuses options that were typed and say nothing."""
        schema = self.schema if self.pairs is None else None
        check_learner(self.learner, typed)
        classes, public = marked_classes(schema, self.classes, self.class_list)
        kind = input_of(self.learner, self.pairs, classes)
        if kind != "classes" and self.class_list is not None:
            raise InputError("--class-list goes with --classes COLUMN")
        beside = {"classes": "--classes", "tuples": "tuples"}.get(
            kind, "--groups" if self.groups is not None else ""
        )
        for one in sorted(_REFUSED.get(beside, set()) & set(typed)):
            raise InputError(f"--{one.replace('_', '-')} goes with PAIRS, not with {beside}")
        found = Source(self.features, self.pairs, kind, classes, public, self.groups, self.together)
        if self.together is not None and not (found.records.on_pairs or found.records.alone):
            raise InputError(
                f"--together does not go with {found.records.name}: who changes with others may be in "
                "several of them"
            )
        return found


def input_of(name: str, pairs: str | None, classes: str | None) -> str:
    """The kind of input that was given: a key of `FILES_OF` that the learner can learn from.

    Examples
    --------
    >>> input_of("contrastive", None, "ward")
    'classes'
    >>> input_of("triplet", "triples.csv", None)
    'tuples'
    >>> input_of("contrastive", None, None)
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: learner 'contrastive' needs FEATURES and PAIRS or ...
    """
    if pairs is not None and classes is not None:
        raise InputError("give PAIRS or --classes, not both: a fit learns from one of them")
    given = None
    if pairs is not None or classes is not None:
        given = "pairs" if classes is None else "classes"
        if name == DEFAULT_LEARNER:  # learns from both; loading it takes a second
            return given
    from pairveil.learners.estimator import PrivateMetricLearner

    learner = learner_class(name)
    kinds = learner.learns_from
    if given == "pairs" and "tuples" in kinds:
        given = "tuples"
    readable = [FILES_OF[kind] for kind in kinds if kind in FILES_OF]
    if not readable or not issubclass(learner, PrivateMetricLearner):
        raise InputError(
            f"learner '{name}' learns from {' or '.join(kinds)}, or makes no metric: fit it in Python"
        )
    if given not in kinds:
        got = "FEATURES alone was" if given is None else f"{FILES_OF[given]} were"
        raise InputError(f"learner '{name}' needs {' or '.join(readable)}; {got} given")
    return str(given)


def make_learner(name: str, options: Mapping[str, Any], typed: Collection[str]) -> Any:
    """The learner with those options that it has as parameters; those that were typed it must have."""
    kind = learner_class(name)
    known = set(kind._get_param_names())
    for one in options:
        if one in typed and one not in known:
            raise InputError(f"--{one.replace('_', '-')} is no option of learner '{name}'")
    return kind(**{one: value for one, value in options.items() if one in known})


@dataclass(frozen=True, kw_only=True)
class FitJob(TrainingOptions, ScalingOptions, Spending, CoordinatorOptions, PageOptions, Job):
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

    Example: `pairveil fit --parties 3 --listen 10.0.0.5:8788 --schema schema.toml --out release/`

    Example: `pairveil fit s3://b/people.npy s3://b/pairs --no-scale --dask tcp://10.0.0.5:8786`
    """

    name: ClassVar = "fit"
    panel: ClassVar = RELEASE
    shown: ClassVar = (
        "out", "schema", "id", "left", "right", "label", "leave_out", "epsilon", "delta", "unit", "score",
        "ledger", "budget", "dry_run", "report",
    )  # fmt: skip

    features: str = argument("FEATURES", FEATURES_HELP, None)  # none with --parties
    out: Path = option(Path("release"), "Folder for the release.", "-o")
    unit: Literal["pair", "relationship", "person"] | None = option(
        None, "What is protected. [default: relationship; with --classes: person]", panel=PRIVACY
    )
    select: str = selection(
        "paths", "Which pairs to use; looks at who is paired with whom only.", panel=PRIVACY
    )
    mechanism: str = option(
        NOISES[0], f"Kind of noise. {PURE}", choices=tuple(NOISES), panel=PRIVACY
    )
    kappa: int | None = option(
        None, "Public constant instead of the graph's own number.", panel=PRIVACY, min=1
    )
    graph_salt: Path | None = option(
        None,
        "Put a digest of who is paired with whom into the certificate, salted by this file (made if missing; "
        "keep it, and give it to whom may check).",
        panel=PRIVACY,
    )
    n_components: int | None = option(None, "Dimensions. [default: all, blended]", min=1)
    sets: list[str] | None = option(
        None, "Any other parameter of the learner (repeatable). NAME=VALUE", "--set"
    )
    tune: list[str] | None = option(
        None,
        "Try these values of an option of the learner (repeatable; epsilon and learner too) and release the "
        "best by a noisy score on pairs held out: one charge for all of it. OPTION=A,B,C",
        panel=PRIVACY,
    )
    score: float | None = option(
        None,
        "Keep some people out of learning and score the metric on their pairs for this epsilon, in the same "
        "certificate. As much as --epsilon costs no more: nobody is in both parts.",
        panel=PRIVACY,
        label="Score it on people kept out of learning",
    )
    dask: str | None = option(
        None,
        "Sum on the Dask cluster at this address (pip install 'pairveil[dask]'); its workers read FEATURES "
        "and PAIRS that are paths as s3://... or file:///...",
        panel=FILES,
        typed=True,
    )
    dry_run: bool = option(False, "Say what would be spent, and stop.")
    report: bool = option(False, "Write the report page as well.", typed=True)

    @property
    def tested(self) -> str | None:
        """The column of classes of the public test table: by default the one that is learned from."""
        return self.classes if self.test_classes is None and self.public_test else self.test_classes

    def check(self, of: Source) -> bool:
        """Refuse what does not go together, before any file is read; returns whether workers read them."""
        from pairveil.release.release import check_folder

        if self.tune:
            if not of.records.pairwise or self.select == "groups":
                raise InputError(
                    "--tune compares fits to single pairs: it goes with PAIRS and no groups"
                )
            self._refuse_beside("--tune", _NOT_TUNED)
        if self.score is not None:
            if not of.records.pairwise or self.select == "groups":
                raise InputError("--score is of single pairs: it goes with PAIRS and no groups")
            self._refuse_beside("--score", _NOT_SCORED)
        self.check_page(self.tested, Path(self.features))
        if any(self.is_set(one.name) for one in fields(PageOptions)) and not self.report:
            raise InputError("options of the report go with --report")
        if not self.dry_run:
            check_folder(self.out, self.replaces)
        far = for_workers(*[path for path in (self.features, self.pairs) if path is not None])
        if far and (not of.records.pairwise or self.select == "groups"):
            raise InputError(
                "workers read single pairs: give files of this machine, which --dask sums too"
            )
        if far and self.dask is None:
            raise InputError("paths as s3://... are read by a cluster: say --dask SCHEDULER")
        if self.features == "-" and self.pairs == "-":
            raise InputError(
                "FEATURES and PAIRS cannot both be standard input: save one of them to a file"
            )
        self.check_scaling(self.features, self.schema)
        self.check_spending()
        return far

    def _refuse_beside(self, option: str, others: Mapping[str, str]) -> None:
        for one, why in others.items():
            if self.is_set(one):
                raise InputError(f"--{one} does not go with {option}: {why}")

    def read(self, of: Source, far: bool) -> Training:
        """What is learned from."""
        if not far:
            return read_training(of, self, self, self)
        ends = (self.left, self.right, self.label)
        known = type(self).__dataclass_fields__
        unused = [spelling(known[one]) for one in _NOT_FOR_WORKERS if self.is_set(one)]
        return open_for_workers(self.features, str(self.pairs), ends, unused)

    def model(self) -> Any:
        """The learner, or the search around it, with these options."""
        options = {
            **self.parameters,
            "unit": self.unit,
            "select": self.select,
            "kappa": "auto" if self.kappa is None else self.kappa,
            "mechanism": self.mechanism,
            "n_components": self.n_components,
            "data_norm": self.data_norm,
            "backend": "auto" if self.dask is None else "dask",
        }
        said = read_settings(self.sets or ())
        elsewhere = {*options, "accountant", "preprocessor", "schema", "bounds"}
        if known := sorted(set(said) & elsewhere):
            raise InputError(f"--set is for what has no option of its own, as {known[0]} has")
        own = set(learner_class(self.learner)._get_param_names()) - elsewhere
        if lacking := sorted(set(said) - own):
            raise InputError(
                f"--set: learner '{self.learner}' has no parameter '{lacking[0]}'; there are: "
                f"{', '.join(sorted(own)) or 'none'}"
            )
        options, typed = options | said, self.typed | set(said)
        if self.tune:
            return make_search(self.tune, self.learner, options, typed)
        return make_learner(self.learner, options, typed)

    def prepare(self, model: Any, training: Training) -> Any:
        """The one plan of this fit: what is summed, charged and certified."""
        if self.checkpoint is not None:  # which must go with the ledger
            model.accountant = self.open_ledger(look=True)
        prepared = training.prepare(model)
        if self.score is not None:
            from pairveil.evaluation.held_out import with_score

            prepared = with_score(model, prepared, epsilon=self.score)
        if self.checkpoint is not None:
            by = _read_by(training, self.bounds)
            prepared = self.about(prepared, *by, *([prepared.about] if self.score else []))
            model.certify(prepared, checkpoint=self.checkpoint)
        if self.audit:
            from pairveil.audit.targets import released_plan

            for part in (
                (0, 1) if self.score else (0,)
            ):  # refuses what cannot be attacked, before it is spent
                released_plan(promised(prepared), part)
        return prepared

    def show(self, prepared: Any, tell: Telling) -> None:
        """What will be spent, and what it may bring."""
        planned = promised(prepared)
        if self.tune:
            tell_search(tell, planned)
            return
        usual = self.learner == DEFAULT_LEARNER
        tell_plan(tell, planned, prepared.recipe.headline, expected=usual)
        if self.score is not None:
            width = prepared.score.expected_width()
            tell.say(
                f"The score will be an interval about {100 * width:.0f} in 100 wide."
                + (" That says little." if width > WIDE else "")
                + (
                    f" --score {self.epsilon:g} costs no more: nobody is in both parts."
                    if self.score < self.epsilon
                    else ""
                )
            )
        if tell.talks:  # counting takes time
            tell_better_selection(tell, prepared.records, planned.unit)

    def work(self, tell: Telling) -> None:
        """Check what was typed, and fit: here, or as the coordinator of several parties."""
        if self.parties is not None:
            check_learner(self.learner, self.typed)
            coordinate_fit(replace(self, unit=self.unit or "relationship"), tell)
            return
        if self.features is None:
            raise InputError("FEATURES are missing: people's features, a row each")
        if said := sorted(one.name for one in fields(CoordinatorOptions) if self.is_set(one.name)):
            raise InputError(f"--{said[0].replace('_', '-')} goes with --parties")
        of = self.source(self.typed)
        usual: Any = "person" if of.kind == "classes" else "relationship"
        job = replace(self, unit=self.unit or usual, classes=of.classes, given=self.typed)
        job.fit(of, tell)

    def fit(self, of: Source, tell: Telling) -> None:
        """Read, prepare, show and learn, once it is known what is learned from and protected."""
        far = self.check(of)
        with ExitStack() as cluster:
            if far:
                cluster.enter_context(_cluster(self.dask))
            training = self.read(of, far)
            model = self.model()  # loading it takes a second: mistakes in files are told before
            prepared = self.prepare(model, training)
            self.show(prepared, tell)
            releases = self.rehearse(prepared, tell)
            if self.dry_run:
                tell.say("Dry run: nothing was spent and nothing was written.")
                planned = promised(prepared).to_dict()
                then = None if releases is None else asdict(releases)
                shown = {"certificate": planned, "out": None, "releases": then}
                tell.result(shown | _left_out(training))
                return
            digest = None
            if self.graph_salt is not None:
                from pairveil.jobs.received import salted_digest

                digest = salted_digest(training.pairs, self.graph_salt)
            if not far:
                cluster.enter_context(_cluster(self.dask))
            self.spend(model, prepared, training, digest, tell)

    def spend(
        self, model: Any, prepared: Any, training: Training, digest: str | None, tell: Telling
    ) -> None:
        """Charge, learn, write everything into the draft, and commit it once."""
        from pairveil.learners.base import most_rows
        from pairveil.release.metric import ReleasedMetric
        from pairveil.release.release import commit

        n_features = promised(prepared).plan["n_features"]
        fits = [one.prepared for one in prepared.candidates] if self.tune else [prepared]
        rows = max(most_rows(one.recipe, n_features) for one in fits)
        place = (self.out, n_features, rows)
        reserve = partial(ReleasedMetric.reserve, *place, overwrite=self.replaces)
        with self.charged(prepared, tell, reserve) as charge:
            model.accountant = charge.ledger
            if self.tune:
                with tell.waiting("searching"):
                    fitted = model.fit(prepared).best_estimator_
            else:
                fitted = learn(model, prepared, tell, charge.held)
            certificate = _save(fitted, training, charge.draft, digest)
            try:
                if self.report:
                    name, folder = self.out.resolve().name, charge.draft.folder
                    write_page(folder, self, None, tell, name=name, id=self.id, classes=self.tested)
            finally:  # what was paid for is kept where its report fails; the same command makes that up
                commit(charge.draft, self.overwrite)
            more = _left_out(training) | _scored(fitted, tell)
            self.tell_made(certificate, model, charge.ledger, tell, more)

    def tell_made(
        self, certificate: Any, model: Any, ledger: Any, tell: Telling, more: Mapping[str, Any]
    ) -> None:
        """What was released, and in the last line what it promises."""
        shown = dict(more)
        if self.report:
            shown["report"] = str(self.out / "report.html")
            tell.say(f"Report: {shown['report']}")
        if self.tune:
            best = shown["best"] = best_of(model)
            won = ", ".join(f"{name} {value}" for name, value in best["options"].items())
            tell.say(f"Best: {won}; noisy pair AUC {best['score']:.3f} on the pairs held out.")
        tell.result(tell_released(tell, self.out, certificate, ledger) | shown)


def _left_out(training: Training) -> dict[str, Any]:
    """What was left out by ids alone, for the JSON of a fit that was asked to."""
    return {} if training.left_out is None else {"left_out": dict(training.left_out)}


def _scored(fitted: Any, tell: Telling) -> dict[str, Any]:
    """How well the metric does on the pairs held out, where it was scored."""
    from pairveil.jobs.measure import shown_auc

    found = getattr(fitted, "score_", None)
    if found is None:
        return {}
    spent = found.certificate
    ours, plain = (
        f"{100 * one.low:.0f} to {100 * one.high:.0f} times in 100"
        + (f" (best estimate {100 * one.value:.0f})" if one.high - one.low <= WIDE else "")
        for one in found.aucs
    )
    tell.say(
        f"Score: of two pairs of people kept out of learning, one alike and one not, the metric puts the "
        f"right one closer {ours}, plain distance {plain}; {spent.n_pairs_used:,} pairs, "
        f"{found.confidence:.0%} confidence, noise included."
    )
    return {"score": {**shown_auc(found, spent.n_pairs_used), "epsilon": spent.epsilon}}


def _read_by(training: Training, bounds: Path | None) -> list[Any]:
    """The public facts by which columns became numbers."""
    from pairveil.records.files import read_text
    from pairveil.schema.schema import to_toml

    schema = None if training.schema is None else to_toml(training.schema)
    limits = None if bounds is None else read_text(bounds)
    return [training.names, list(map(float, training.scale)), schema, limits]


def _cluster(scheduler: str | None) -> Any:
    from pairveil.engine.backends.dask import cluster

    return cluster(scheduler)


def _save(learner: Any, training: Training, draft: Any, digest: str | None) -> Any:
    """Write the release of a fitted learner into its draft; returns its certificate."""
    from pairveil.release.metric import ReleasedMetric
    from pairveil.report.facts import summary_text

    scale = training.scale
    certificate = replace(learner.certificate_, graph_digest=digest)
    metric = ReleasedMetric(
        learner.components_ * scale, certificate, training.names, scale, training.schema
    )
    metric.save(draft, summary=summary_text(learner))
    return certificate


# ---- what is about to be spent, told from public numbers -----------------------------------------


def expected_effect(planned: Any) -> str:
    """One line on what to expect of a planned fit, from its certificate."""
    from pairveil.learners.outlook import expected_gain, n_learned

    gain = expected_gain(planned)
    used, features = n_learned(planned), planned.plan["n_features"]
    return (
        f"Expected effect: {used:,} {planned.records} against this noise and {features} features give a "
        f"signal of {gain.signal:,.0f}. {gain.said(planned.records)}"
    )


def tell_plan(tell: Telling, planned: Any, headline: str, *, expected: bool = True) -> None:
    """What is about to be spent, before it is; ``headline`` is the query whose noise stands for the fit.

    ``expected``: whether the learner's fits were measured, so that its effect may be told.
    """
    selected = planned.selection
    counted = KINDS[planned.records].counted
    line = f"{planned.n_pairs_used:,} of {planned.n_pairs_given:,} {counted} used"
    if planned.n_pairs_used < planned.n_pairs_given:
        line += f" (select {selected['how']})"
        if planned.unit == "relationship":
            line += (
                "; relationship-level kappa of all "
                f"{counted} is {selected['full_graph_relationship_kappa']}, of those used {planned.kappa}"
            )
        else:
            line += f"; {planned.unit}-level kappa of those used is {planned.kappa}"
    main = next(r for r in planned.plan["releases"] if r["name"] == headline)
    one = {"people": "person"}.get(
        main.get("records", "pairs"), main.get("records", "pairs").removesuffix("s")
    )
    asked = "once" if main["steps"] == 1 else f"{main['steps']:,} times"
    tell.say(
        spends(planned),
        f"{line}.",
        f"Noise: '{headline}' is asked {asked}, with noise on each entry "
        f"{main['noise_multiplier']:.3g} times the most that one {one} can add; other queries: "
        f"{len(planned.plan['releases']) - 1}.",
    )
    if "score" in planned.plan:
        held_out = planned.plan["score"]["n_pairs"]
        tell.say(
            f"{held_out:,} of these pairs, of people kept out of learning, are scored. Nobody is in both "
            f"parts, so nobody pays for both."
        )
    tell_epsilons(tell, planned)
    from pairveil.learners.outlook import was_measured

    if tell.talks and expected and was_measured(planned):
        tell.say(expected_effect(planned))


def tell_better_selection(tell: Telling, records: Any, unit: Any) -> None:
    """Name the recommended selection where it leaves clearly more pairs for the noise than the one in use."""
    from pairveil.engine.backends.local import kappa_of
    from pairveil.graph.choosing import (
        NEARLY,
        SELECTIONS_OF_PAIRS,
        recommended_selection,
        select_pairs,
        select_together,
    )
    from pairveil.records.pairset import PairSet

    given, used = records.given, records.used_kappa
    if used is None or not isinstance(given, PairSet):
        return

    def kept(how: str) -> Any:  # as `fit` chooses: people who change together count as one
        if given.together is None:
            return select_pairs(given, how, random_state=0)
        return select_together(given.pairs, given.together, how, 0)

    # What the fit itself counted is not counted again.
    counted = {"all": records.given_kappa, records.selection["how"]: used}
    for how in SELECTIONS_OF_PAIRS:
        if how not in counted:
            counted[how] = kappa_of(given.subset(kept(how)))
    counted = {how: counted[how] for how in SELECTIONS_OF_PAIRS}
    how = recommended_selection(counted)
    now, better = (one.n_pairs / one.of(unit) for one in (used, counted[how]))
    if now < NEARLY * better:
        tell.say(
            f"Recommended: --select {how}, which leaves {better / now:.1f} times as many pairs for the noise."
        )


# ---- the best of several fits, chosen privately and charged as one release -----------------------


def read_grid(tuned: Sequence[str]) -> dict[str, list[Any]]:
    """The values to try of each option.

    Examples
    --------
    >>> read_grid(["n-components=4,16,none", "select=paths,forest"])
    {'n_components': [4, 16, None], 'select': ['paths', 'forest']}
    """
    grid: dict[str, list[Any]] = {}
    for words in tuned:
        said, equals, values = words.partition("=")
        name = said.strip().removeprefix("--").replace("-", "_")
        texts = [one.strip() for one in values.split(",")]
        if not (name and equals and all(texts)):
            raise InputError("--tune takes OPTION=A,B,C: --tune select=paths,forest")
        if name in grid or len(set(texts)) < len(texts):
            raise InputError(f"--tune names '{name}' or one of its values twice")
        grid[name] = [_value(one) for one in texts]
    return grid


def read_settings(said: Sequence[str]) -> dict[str, Any]:
    """Parameters of a learner, as --set gives them.

    Examples
    --------
    >>> read_settings(["margin=private", "n-steps=20"])
    {'margin': 'private', 'n_steps': 20}
    """
    found: dict[str, Any] = {}
    for words in said:
        name, equals, value = words.partition("=")
        name = name.strip().replace("-", "_")
        if not (name and equals and value.strip()):
            raise InputError("--set takes NAME=VALUE: --set margin=private")
        if name in found:
            raise InputError(f"--set names '{name}' twice")
        found[name] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    """A number where it is one, None for 'none', else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None if text == "none" else text


def make_search(
    tuned: Sequence[str], learner: str, options: dict[str, Any], typed: Collection[str]
) -> Any:
    """The search that ``--tune`` asks for, around the learner with the other options."""
    from pairveil.evaluation.search import PrivateSearch

    grid = read_grid(tuned)
    for name in sorted(set(grid) & set(typed) - {"epsilon"}):
        raise InputError(
            f"--{name.replace('_', '-')} is given, and --tune tries others: leave one out"
        )
    if "epsilon" in grid and "epsilon" not in typed:
        numbers = [one for one in grid["epsilon"] if isinstance(one, int | float)]
        options = options | {"epsilon": max(numbers, default=options["epsilon"])}
    if "learner" in grid:
        for name in grid["learner"]:
            check_learner(str(name), typed, "tune")
        grid["learner"] = [make_learner(str(name), options, ()) for name in grid["learner"]]
    model = make_learner(learner, options, typed)
    return PrivateSearch(
        model, grid, options["epsilon"], options["delta"], random_state=options["random_state"]
    )


def tell_search(tell: Telling, planned: Any) -> None:
    """What a search is about to spend, before it does."""
    search = planned.plan["search"]
    held_out = planned.plan["thresholds"][0]["n_pairs"]
    tell.say(
        f"{len(search['candidates'])} candidates; a random number of trials, {search['mean_trials']} on "
        f"average, each a fit to up to {planned.n_pairs_given - held_out:,} pairs and a noisy score of "
        f"{held_out:,} others. Only the best leaves: one certificate, one charge."
    )
    tell_epsilons(tell, planned)


def best_of(search: Any) -> dict[str, Any]:
    """The options that won and their score; both are covered by the certificate."""
    options = dict(search.best_params_)
    if "learner" in options:
        kind = type(options["learner"]).__name__
        named = (name for name, path in LEARNERS.items() if path.endswith(f":{kind}"))
        options["learner"] = next(named, kind)
    return {"options": options, "score": search.best_score_}
