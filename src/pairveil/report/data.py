"""What the page is made of: plain data, so that nothing here can reach pairs or a learner.

A release folder may hold ``summary.json`` (a `Summary`): the graph's shape, points, a score
and the ledger. None of it is private under the stated guarantee: who is paired with whom is public, scores
come from public people or were paid for, and points are public or synthetic. `Summary` has no place for
anything else.

``summary.json``: written whole, and read strictly, since it may come from anybody.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pairveil.errors import InputError
from pairveil.foreign import parse_json, plain, read_regular, taking_apart
from pairveil.graph import GraphSummary
from pairveil.release.release import SUMMARY_FILE
from pairveil.report.words import in_bits

if TYPE_CHECKING:
    from pairveil.audit.auditor import Finding
    from pairveil.privacy.certificate import Certificate
    from pairveil.release.curve import ErrorCurve

# ---- plain data, so that nothing here can reach pairs or a learner -------------------------------

MAX_PLACE = 1e100  # of a point: distances are squared

LEAST_GAIN = 0.01  # of a score: a share of less says nothing

POINTS_SOURCES = ("public", "synthetic")


@dataclass(frozen=True)
class ProjectedPoints:
    """The same people before and after the metric, in two dimensions."""

    source: str  # 'public' or 'synthetic'
    note: str  # one sentence: whose points these are
    before: tuple[tuple[float, float], ...]
    after: tuple[tuple[float, float], ...]
    groups: tuple[str, ...]  # of each point; at most four

    def __post_init__(self) -> None:
        if self.source not in POINTS_SOURCES:
            raise InputError("points must be public or synthetic; private people are never drawn")
        if not len(self.before) == len(self.after) == len(self.groups) > 0:
            raise InputError("before, after and groups must have one entry for each point")
        if len(set(self.groups)) > 4:
            raise InputError("at most four groups can be told apart on the page")
        if not np.all(np.abs([self.before, self.after]) <= MAX_PLACE):
            raise InputError("points must be finite numbers, of a size that can be drawn")


@dataclass(frozen=True)
class ChargedEntry:
    """One spending: what for, and the epsilon of all spendings so far."""

    note: str
    epsilon_so_far: float
    when: str = ""


@dataclass(frozen=True)
class ChargedLedger:
    """The ledger this fit was charged to.

    ``best_guess`` is that of `pairveil.privacy.verdict.Releases`: of each unit, for all entries together.
    """

    epsilon: float
    delta: float
    unit: str
    adjacency: str
    entries: tuple[ChargedEntry, ...]
    best_guess: Mapping[str, float | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shares = [share for share in self.best_guess.values() if share is not None]
        if not all(0.5 <= share <= 1.0 for share in shares):
            raise InputError("a best guess is a share from one half to 1")


@dataclass(frozen=True)
class Score:
    """How well a metric orders private pairs that were held out: paid for, with both ends of its interval.

    A score says how often a pair that is alike is closer than one that is not.
    """

    score: tuple[float, float, float]  # value, low, high
    plain: tuple[float, float, float]  # of plain distance
    n_pairs: int
    confidence: float  # of both intervals together
    # The part of the release's epsilon that was spent on it, of its certificate's unit; None where the
    # score has a certificate of its own
    epsilon: float | None = None

    def __post_init__(self) -> None:
        if not all(0 <= share <= 1 for share in (*self.score, *self.plain, self.confidence)):
            raise InputError("a score and its confidence are shares from 0 to 1")
        if not 0 < self.n_pairs < 2**53 or not (self.epsilon is None or self.epsilon > 0):
            raise InputError("a score is of pairs, and paid for")


@dataclass(frozen=True)
class Summary:
    """All that the page shows beside the certificate and the metric; every part may be absent.

    Examples
    --------
    >>> Summary.from_json(Summary(title="Patients").to_json()).title
    'Patients'
    """

    used: GraphSummary | None = None  # the pairs used for learning
    given: GraphSummary | None = None  # all pairs there were
    points: ProjectedPoints | None = None
    budget: ChargedLedger | None = None
    title: str = ""  # what was learned, for the top of the page
    score: Score | None = None

    def to_json(self) -> str:
        """The text of ``summary.json``."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(plain(content), indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Summary:
        """Read ``summary.json``; InputError when it is damaged, foreign or of a newer version."""
        content = parse_json(text, SUMMARY_FILE)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError(f"{SUMMARY_FILE} is no pairveil summary")
        if not isinstance(content.get("version"), int) or content["version"] > VERSION:
            raise InputError(f"{SUMMARY_FILE} was written by a newer pairveil; update pairveil")
        with taking_apart(SUMMARY_FILE):
            try:
                summary = msgspec.convert(_with_infinities(content), cls)
            except msgspec.ValidationError as problem:
                raise problem.__cause__ or problem from None  # a class's own check says it better
        for graph in (summary.used, summary.given):
            if graph is not None:
                _check_counts(graph)
        return summary


@dataclass(frozen=True)
class MetricShape:
    """The released matrix as the page shows it; a thousand features are listed at most."""

    n_components: int
    n_features: int
    weights: tuple[tuple[str, float], ...]  # feature and share of the squared length, largest first
    rest: float = 0.0  # share of the features that are not listed; all sum to 1
    columns: tuple[str, ...] = ()  # of a raw row, where they have names


@dataclass(frozen=True)
class WeightRow:
    """One level of one comparison of a linkage model."""

    comparison: str
    level: int  # 0 is the least agreement
    n_levels: int
    bits: float  # log2(m / u)
    noise: float | None  # how far the noise moves it: a standard deviation; None: not known

    @property
    def words(self) -> str:
        """How well it agrees."""
        if self.level == self.n_levels - 1:
            return "agrees best"
        return f"level {self.level}" if self.level else "does not agree"

    @property
    def shown(self) -> str:
        """Bits, with their noise where it is known."""
        return in_bits(self.bits, self.noise)


@dataclass(frozen=True)
class PublicTest:
    """How often people of different classes are farther apart than of one class; nothing private is in it."""

    note: str  # which people, in a few words
    n_people: int
    n_pairs: int  # random pairs that were scored
    score: float
    plain: float
    curve: tuple[
        tuple[float, float], ...
    ]  # (wrongly taken for alike, rightly found), from (0, 0) to (1, 1)
    plain_curve: tuple[tuple[float, float], ...]
    reference: float | None = None  # of a metric learned without privacy
    learned_from: str = (
        "the public people themselves (one half learns, the other is scored, both ways)"
    )

    @property
    def gain_kept(self) -> float | None:
        """Share of the reference's gain over plain distance; None where it gains next to nothing."""
        if self.reference is None or self.reference - self.plain < LEAST_GAIN:
            return None
        return (self.score - self.plain) / (self.reference - self.plain)


@dataclass(frozen=True)
class Evaluation:
    """A score on private pairs that was measured after the release, and what that cost."""

    score: Score
    certificate: Certificate


@dataclass(frozen=True)
class Cover:
    """What the sender writes on the page; every line may be empty."""

    title: str = ""
    institution: str = ""
    purpose: str = ""
    recipient: str = ""


@dataclass(frozen=True)
class ReportData:
    """Everything `pairveil.report.page.render` needs."""

    certificate: Certificate | None  # None for a metric that promises nothing
    metric: MetricShape
    summary: Summary = field(default_factory=Summary)
    folder: str = "RELEASE"  # how commands on the page name it
    problems: tuple[str, ...] | None = None  # what `verify` found; None: not asked
    made: str = ""  # the day
    linkage: tuple[WeightRow, ...] = ()  # match weights of a linkage model
    prior: float = 0.5  # of the linkage model
    curve: ErrorCurve | None = None  # the operating point: the release, or made for it
    together: Certificate | None = None  # cost of model and curve
    file: str = "metric.safetensors"  # what the certificate is about
    cover: Cover = field(default_factory=Cover)  # the sender's own words
    public_test: PublicTest | None = None  # scores on a public table
    # (epsilon, low, high): the range of the gain to expect with the same plan at other epsilons
    expected: tuple[tuple[float, float, float], ...] = ()
    evaluation: Evaluation | None = None  # scores on private pairs that were paid for
    audit: Finding | None = None  # what an attack on the plan saw
    answer: Any = None  # a released ranking, clusters or network


# ---- ``summary.json``: written whole, and read strictly, since it may come from anybody ----------

FORMAT, VERSION = "pairveil-summary", 1

KAPPAS = ("pair", "relationship", "paper_bound", "person", "intransitive")


def read_summary(folder: Path) -> Summary:
    """The folder's ``summary.json``, or an empty summary when there is none."""
    file = folder / SUMMARY_FILE
    if not file.exists():
        return Summary()
    return Summary.from_json(read_regular(file).decode("utf-8", errors="replace"))


def _with_infinities(value: Any) -> Any:
    """What `pairveil.foreign.plain` was given, where a number may be infinite."""
    if isinstance(value, Mapping):
        return {
            key: math.inf if item == "inf" and key in _MAY_BE_INFINITE else _with_infinities(item)
            for key, item in value.items()
        }
    return [_with_infinities(item) for item in value] if isinstance(value, list) else value


_MAY_BE_INFINITE = ("epsilon", "epsilon_so_far")


def _check_counts(graph: GraphSummary) -> None:
    """How many people have which degree or b: ascending, each with somebody."""
    rows = [*graph.degrees, *graph.b, *((one.rank, one.b, one.degree) for one in graph.top)]
    counts = [
        graph.n_people,
        graph.n_pairs,
        *graph.kappa.values(),
        *(n for row in rows for n in row),
    ]
    if min(counts) < 0 or set(graph.kappa) != set(KAPPAS):
        raise InputError(f"{SUMMARY_FILE} holds something that is not a count")
    for found in (graph.degrees, graph.b):
        values = [value for value, _ in found]
        if not found or values != sorted(set(values)) or not all(people for _, people in found):
            raise InputError(f"{SUMMARY_FILE} holds counts that are none")
