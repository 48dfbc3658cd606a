"""Options that several jobs share: how files are read, and what the sender says on the page."""

from __future__ import annotations

import filecmp
import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairveil.errors import DataWarning, InputError, PairveilWarning, warn
from pairveil.graph import SELECTIONS
from pairveil.jobs.job import FILES, REPORT, Telling, argument, option
from pairveil.privacy.mechanisms import MECHANISMS, NOISES

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
LAYOUT_NAMES = ("auto", "table", "splink", "dedupe", "lfw", "voxceleb", "links")
"""Those of `records.layouts.LAYOUTS`, which takes a library of tables to load."""
PURE = f"Pure epsilon (no delta): {', '.join(n for n in NOISES if MECHANISMS[n].is_pure)}."
PAIRS_HELP = "Pairs of people: CSV, Parquet or another tool's file."
LEARNER_HELP = (
    "Which learner: one of pairveil's, one that an installed package brings, or module:Class."
)
FEATURES_HELP = "People's features: CSV or Parquet, a row each."


def check_learner(name: str, typed: Collection[str], option: str = "learner") -> None:
    """Refuse to run code that nobody typed the name of, by this option."""
    if ":" in name and option not in typed:
        raise InputError(
            f"--{option}: module:Class runs what it names: type it, no file may set it"
        )


def listed(names: list[str] | None) -> list[str] | None:
    """Names of columns, which one option may hold several of; a comma in a name is doubled.

    Examples
    --------
    >>> listed(["age,dose", "ward"]), listed(["a,,b"]), listed(None)
    (['age', 'dose', 'ward'], ['a,b'], None)
    """
    if not names:
        return None
    parts = [part for text in names for part in text.replace(",,", "\0").split(",")]
    return [part.replace("\0", ",").strip() for part in parts if part.strip()]


def released_folder() -> Any:
    """The argument that names a release."""
    return argument("FOLDER", "Folder of a release.")


def selection(default: str, help: str, *names: str, **about: Any) -> Any:
    """An option that chooses pairs."""
    return option(default, help, *names, choices=tuple(SELECTIONS), **about)


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """Where a file says who is paired with whom."""

    heading: ClassVar[str | None] = FILES

    left: str = option("left", "Column with the first person's id.", label="First id")
    right: str = option("right", "Column with the second person's id.", label="Second id")
    layout: str = option("auto", "Layout of the pairs file.", choices=LAYOUT_NAMES)
    record_id: str = option("id", "dedupe: field of a record with the id.")
    merge_similar_ids: bool = option(
        False,
        "Ids that differ only in case, outer spaces or Unicode form are one.",
        label="Ids that differ only in case or spaces are one person",
    )
    leave_out: bool = option(
        False,
        "Leave out pairs of a person with herself and of ids without features, and people whose id is there "
        "twice, instead of refusing them.",
        panel=FILES,
        label="Leave out pairs and people whose ids are faulty",
    )
    problems: Path | None = option(
        None,
        "PRIVATE file to write: all that is wrong with the tables, by row numbers. Not for the release.",
        panel=FILES,
    )

    def sifted(self, people: Any, pairs: Any) -> tuple[Any, dict[str, int] | None]:
        """Pairs that can be joined with people, and what was left out, if that was asked for.

        All that is wrong with ids is told in one message; the list of all problems becomes a file where
        one is named.
        """
        from pairveil.records.dirt import sifted, write_problems
        from pairveil.release.release import check_private

        if self.problems is not None:
            check_private(self.problems)
        told = None if self.problems is None else partial(write_problems, self.problems)
        kept, found = sifted(people, pairs, leave_out=self.leave_out, told=told)
        if not self.leave_out:
            return kept, None
        if found.structural:
            warn(f"left out by ids alone: {found.left_out_in_words}", DataWarning)
        return kept, found.counts()

    def read_graph(
        self, path: Path | str, *, labels: bool = False, whole: bool = False, **more: Any
    ) -> Any:
        """Pairs of a file by these options; notes become warnings. ``labels``: they must be there.

        ``whole``: with pairs of a person with herself, whatever ``leave_out`` says.
        """
        from pairveil.records.readers import read_pairs

        names = ("left", "right", "layout", "record_id", "merge_similar_ids")
        said = {"label": None, **{name: getattr(self, name) for name in names}, **more}
        said["leave_out"] = self.leave_out and not whole
        found = read_pairs(Path(path), require_labels=labels, **said)
        for note in found.notes:
            warn(note, DataWarning)
        return found


@dataclass(frozen=True, kw_only=True)
class ZeroMeansOption:
    """What a label that is no word means."""

    heading: ClassVar[str | None] = FILES

    zero_means: Literal["similar", "dissimilar"] | None = option(
        None,
        "What a label 0, false or no means: labels of 0 and 1 or yes and no need it.",
        label="0, false or no means",
    )


@dataclass(frozen=True, kw_only=True)
class PairOptions(GraphOptions, ZeroMeansOption):
    """Where a file says who is paired with whom, and what their labels mean."""

    heading: ClassVar[str | None] = FILES

    label: str = option("label", "Column with the label.", label="Label")
    threshold: float = option(0.5, "Splink: the score from which a pair is similar.")

    def read_pairs(self, path: Path | str, *, labels: bool = True, whole: bool = False) -> Any:
        """Labelled pairs of a file by these options."""
        more = {"label": self.label, "zero_means": self.zero_means, "threshold": self.threshold}
        return self.read_graph(path, labels=labels, whole=whole, **more)


@dataclass(frozen=True, kw_only=True)
class IdOption:
    """Who is who in a table of people."""

    heading: ClassVar[str | None] = FILES

    id: str = option("id", "Column of FEATURES with the person's id.", label="Person's id")


@dataclass(frozen=True, kw_only=True)
class TogetherOption:
    """Who changes with whom."""

    heading: ClassVar[str | None] = FILES

    together: str | None = option(
        None,
        "Public column of FEATURES (household, site): who shares a value counts as one person.",
    )


@dataclass(frozen=True, kw_only=True)
class PeopleOptions(IdOption, TogetherOption):
    """Which columns of a table of people are used, and what is publicly known of them."""

    heading: ClassVar[str | None] = FILES

    schema: Path | None = option(
        None, "Public facts of raw columns, as `pairveil schema` writes them down.", typed=False
    )
    columns: list[str] | None = option(
        None, "Columns of FEATURES to use, and no others: a,b (repeatable).", panel=FILES
    )
    exclude: list[str] | None = option(
        None, "Columns of FEATURES to leave out: a,b (repeatable).", panel=FILES
    )


@dataclass(frozen=True, kw_only=True)
class ScalingOptions:
    """How raw columns are brought to scale, beside a schema; values have no say in it."""

    heading: ClassVar[str | None] = FILES

    bounds: Path | None = option(
        None, "Public lower and upper bound of each column (CSV or JSON).", typed=False
    )
    no_scale: bool = option(
        False, "Columns were brought to scale before, by public numbers: take them as they are."
    )
    data_norm: float = option(1.0, "Rows longer than this are clipped.")

    def check_scaling(self, features: str, schema: Path | None) -> None:
        """Refuse none of them, and more than one: nothing was read or spent yet."""
        said = sum((schema is not None, self.bounds is not None, self.no_scale))
        if said > 1:
            raise InputError(
                "--schema, --bounds and --no-scale say the same thing: give one of them"
            )
        if said == 0:
            raise InputError(
                "nothing says how the columns are brought to scale, and epsilon would be spent on clipped "
                "rows. Write down what is publicly known of them: pairveil schema "
                f"{features} -o schema.toml; complete it and add --schema schema.toml. Or give --bounds "
                "FILE; or --no-scale, if public numbers scaled them before. Nothing was spent"
            )


@dataclass(frozen=True, kw_only=True)
class CoverOptions:
    """What the sender says at the head of the page."""

    heading: ClassVar[str | None] = REPORT

    title: str = option("", "What was learned, for the top of the page.")
    institution: str = option("", "Who hands it out.")
    purpose: str = option("", "What it is for.")
    recipient: str = option("", "Who gets it.")


@dataclass(frozen=True, kw_only=True)
class PageOptions(CoverOptions):
    """What the sender says on the page, and what it is scored on."""

    heading: ClassVar[str | None] = REPORT

    public_test: Path | None = option(
        None, "Table of PUBLIC people to score the metric on; costs no privacy.", typed=False
    )
    test_classes: str | None = option(
        None, "Column of --public-test with each person's class.", label="Class in the public table"
    )
    audit: bool = option(
        False, "Attack this plan on made-up pairs, and show what was seen beside the bound."
    )

    def check_page(self, classes: str | None, private: Path | None = None) -> None:
        """Refuse options that do not go together, before anything is spent.

        ``classes``: of the public people. ``private``: the table that is learned from: scores on it would not
        be covered by any epsilon.
        """
        if (self.public_test is None) != (classes is None):
            raise InputError(
                "--public-test FILE and --test-classes COLUMN, the column of its classes, go together"
            )
        if self.public_test is None or classes is None:
            return
        if not self.public_test.is_file():
            raise InputError(f"--public-test: there is no file {self.public_test}")
        if (
            private is not None
            and private.is_file()
            and filecmp.cmp(str(self.public_test), str(private), shallow=False)
        ):
            raise InputError(
                "--public-test is the table that is learned from: those people are private, and scores on "
                "them are covered by no epsilon. Name a table of public people"
            )
        from pairveil.records.readers import read_classes

        read_classes(self.public_test, classes)  # says what is wrong with it


def write_page(
    folder: Path,
    said: PageOptions | None = None,
    out: Path | None = None,
    tell: Telling | None = None,
    *,
    name: str = "",
    id: str = "id",
    classes: str | None = None,
    curve: Path | None = None,
    evaluation: Path | None = None,
) -> Any:
    """Write the page of a release; returns its path and what is on it.

    Everything comes from the release folder, the options and the public test table: no pair and no person
    that was learned from is looked at. ``name``: of the folder that is shown, where it is a draft still.
    """
    from pairveil.report.data import Cover
    from pairveil.report.facts import read_evaluation, read_release, with_curve
    from pairveil.report.page import write

    said = said or PageOptions()
    said.check_page(classes)
    data = read_release(folder)
    cover = Cover(said.title, said.institution, said.purpose, said.recipient)
    data = replace(data, cover=cover, folder=name or data.folder)
    if curve is not None:
        data = with_curve(data, curve)
    if evaluation is not None:
        data = replace(data, evaluation=read_evaluation(evaluation, data.certificate))
    if said.public_test is not None:
        data = _with_public_test(data, folder, said.public_test, str(classes), id)
    if said.audit:
        from pairveil.audit.targets import attack_plan

        if data.certificate is None:
            raise InputError("this release has no certificate: there is no claim to audit")
        with (tell or Telling()).waiting("attacking the plan"):
            found = attack_plan(data.certificate)
        data = replace(data, audit=found)
    return write(data, folder / "report.html" if out is None else out), data


def _with_public_test(data: Any, folder: Path, table: Path, column: str, id: str) -> Any:
    from pairveil.jobs.reading import read_people_of
    from pairveil.records.readers import read_classes
    from pairveil.release.metric import ReleasedMetric
    from pairveil.report.facts import before_learning

    metric = ReleasedMetric.load(folder)
    people, classes = read_people_of(metric, table, id), read_classes(table, column)
    best = {"reference": yardstick(before_learning(metric, people.values), classes)}
    return with_scores(data, metric, people.values, classes, table.name, **best)


def with_scores(data: Any, metric: Any, X: Any, classes: Any, note: str, **best: Any) -> Any:
    """A page with scores on public people; ``best``: what learning without privacy reached, and from what."""
    from pairveil.report.facts import score_public

    test, points = score_public(metric, X, classes, note)
    test, summary = replace(test, **best), replace(data.summary, points=points)
    return replace(data, public_test=test, expected=_expected(data.certificate), summary=summary)


MOST_LEARN, FEWEST_LEARN = 2000, 20  # people of each half


def yardstick(X: NDArray[np.float64], classes: ArrayLike) -> float | None:
    """How well a metric learned from public people, without privacy, tells others of them apart.

    One half learns and the other is scored, both ways; None where a half is too small or of one class.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 5)); X /= 4
    >>> round(yardstick(X, (X[:, 0] > 0).astype(str)), 1)
    0.8
    """
    from pairveil.evaluation.scores import pair_auc
    from pairveil.graph.choosing import design_pairs
    from pairveil.learners.contrastive.learner import ContrastiveMetricLearner
    from pairveil.records.embedded import label_pairs
    from pairveil.records.pairset import PairSet

    labels = np.asarray(classes).astype(str)
    longest = float(np.linalg.norm(X, axis=1).max()) or 1.0
    order = np.random.default_rng(0).permutation(len(X))[: 2 * MOST_LEARN]
    halves = order[::2], order[1::2]
    if len(halves[1]) < FEWEST_LEARN or any(len(np.unique(labels[half])) < 2 for half in halves):
        return None
    scores = []
    for learn, score in (halves, halves[::-1]):
        pairs = design_pairs(len(learn), how="paths", random_state=0)
        data = PairSet(X[learn], pairs, label_pairs(pairs, labels[learn]))
        with warnings.catch_warnings(action="ignore", category=PairveilWarning):
            learned = ContrastiveMetricLearner(data_norm=longest).fit(data)
        scores.append(pair_auc(learned.components_, X[score], labels[score], n_pairs=20_000))
    return float(np.mean(scores))


def _expected(certificate: Any) -> tuple[tuple[float, float, float], ...]:
    """The range of the gain at a grid of epsilons, this one among them."""
    from pairveil.learners.outlook import gain_by_epsilon

    if certificate is None or not certificate.verify():
        return ()
    try:
        return gain_by_epsilon(certificate, sorted({*EPSILONS, certificate.epsilon}))
    except (KeyError, TypeError, ValueError, ArithmeticError):  # a plan that somebody else wrote
        return ()
