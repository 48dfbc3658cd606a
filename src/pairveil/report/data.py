"""What the page is made of: plain data, so that nothing here can reach pairs or a learner.

A release folder may hold ``summary.json`` (a `Summary`): the graph's shape, a measured curve, points and
the ledger. None of it is private under the stated guarantee: who is paired with whom is public, scores
come from public people or were paid for, and points are public or synthetic. `Summary` has no place for
anything else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from pairveil.errors import InputError
from pairveil.foreign import parse_json, read_regular

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate
    from pairveil.report.linkage import WeightRow

SUMMARY_FILE = "summary.json"
FORMAT, VERSION = "pairveil-summary", 1
MAX_PLACE = 1e100  # of a point: distances are squared
MAX_SCORE = 1e6  # a score is a share or a distance; an axis cannot show what is beyond all measure
KAPPAS = ("pair", "relationship", "paper_bound", "person", "intransitive")

CurveSource = Literal["public", "charged"]
PointsSource = Literal["public", "synthetic"]


@dataclass(frozen=True)
class RankedPerson:
    """One of the people who set kappa, by rank and never by name."""

    rank: int
    b: int
    degree: int


@dataclass(frozen=True)
class GraphSummary:
    """The shape of one set of pairs: counts only.

    Attributes
    ----------
    n_people, n_pairs : int
    kappa : mapping
        Keys pair, relationship, paper_bound, person, intransitive.
    degrees, b : tuple of (value, people)
        How many people have which degree, and which b; ascending, no zero counts.
    top : tuple of RankedPerson
        The people with the largest b, ties by degree.
    """

    n_people: int
    n_pairs: int
    kappa: Mapping[str, int]
    degrees: tuple[tuple[int, int], ...]
    b: tuple[tuple[int, int], ...]
    top: tuple[RankedPerson, ...]


@dataclass(frozen=True)
class UtilityPoint:
    """A score at an epsilon, with its 95 % interval where it was measured."""

    epsilon: float
    score: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class UtilityCurve:
    """Score against epsilon, from an evaluation that leaks nothing beyond the promise.

    Attributes
    ----------
    source : 'public' or 'charged'
        Scored on people who are public, or on private people with the cost in the ledger. Nothing
        else may be drawn.
    note : str
        One sentence: which people, how many runs.
    points : tuple of UtilityPoint
    this_fit : UtilityPoint or None
        The released metric's own score.
    euclidean, reference : float or None
        Score without learning, and of the best learner without privacy.
    score_name : str
    """

    source: CurveSource
    note: str
    points: tuple[UtilityPoint, ...]
    this_fit: UtilityPoint | None = None
    euclidean: float | None = None
    reference: float | None = None
    score_name: str = "pair AUC"

    def __post_init__(self) -> None:
        if self.source not in get_args(CurveSource):
            raise InputError("a curve must come from a public or a charged evaluation")
        marks = [*self.points, *([self.this_fit] if self.this_fit else [])]
        if not marks:
            raise InputError("a curve needs at least one point")
        if not all(point.epsilon > 0 for point in marks):
            raise InputError("a curve needs positive epsilons and finite scores")
        scores = [s for p in marks for s in (p.score, p.low, p.high)] + [
            self.euclidean,
            self.reference,
        ]
        if not all(score is None or abs(score) <= MAX_SCORE for score in scores):
            raise InputError("a curve needs positive epsilons and finite scores")


@dataclass(frozen=True)
class ProjectedPoints:
    """The same people before and after the metric, in two dimensions.

    Attributes
    ----------
    source : 'public' or 'synthetic'
    note : str
        One sentence: whose points these are.
    before, after : tuple of (x, y)
    groups : tuple of str
        Each point's group; at most four.
    """

    source: PointsSource
    note: str
    before: tuple[tuple[float, float], ...]
    after: tuple[tuple[float, float], ...]
    groups: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.source not in get_args(PointsSource):
            raise InputError("points must be public or synthetic; private people are never drawn")
        if not len(self.before) == len(self.after) == len(self.groups) > 0:
            raise InputError("before, after and groups must have one entry for each point")
        if len(set(self.groups)) > 4:
            raise InputError("at most four groups can be told apart on the page")
        if not np.all(np.abs([self.before, self.after]) <= MAX_PLACE):
            raise InputError("points must be finite numbers, of a size that can be drawn")


@dataclass(frozen=True)
class LedgerEntry:
    """One spending: what for, and the epsilon of all spendings so far."""

    note: str
    epsilon_so_far: float
    when: str = ""


@dataclass(frozen=True)
class Budget:
    """The ledger this fit was charged to."""

    epsilon: float
    delta: float
    unit: str
    adjacency: str
    entries: tuple[LedgerEntry, ...]


@dataclass(frozen=True)
class Summary:
    """All that the page shows beside the certificate and the metric; every part may be absent.

    Attributes
    ----------
    used, given : GraphSummary or None
        The pairs used for learning, and all pairs there were.
    utility, points, budget
        See the classes.
    title : str
        What was learned, for the top of the page.

    Examples
    --------
    >>> Summary.from_json(Summary(title="Patients").to_json()).title
    'Patients'
    """

    used: GraphSummary | None = None
    given: GraphSummary | None = None
    utility: UtilityCurve | None = None
    points: ProjectedPoints | None = None
    budget: Budget | None = None
    title: str = ""

    def to_json(self) -> str:
        """The text of ``summary.json``."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(_without_infinities(content), indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Summary:
        """Read ``summary.json``; InputError when it is damaged, foreign or of a newer version."""
        content = parse_json(text, SUMMARY_FILE)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError(f"{SUMMARY_FILE} is no pairveil summary")
        if not isinstance(content.get("version"), int) or content["version"] > VERSION:
            raise InputError(f"{SUMMARY_FILE} was written by a newer pairveil; update pairveil")
        try:
            return cls(
                used=_graph(content["used"]),
                given=_graph(content["given"]),
                utility=_curve(content["utility"]),
                points=_points(content["points"]),
                budget=_budget(content["budget"]),
                title=str(content["title"]),
            )
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise InputError(f"{SUMMARY_FILE} lacks a field or holds one of a wrong type") from None


@dataclass(frozen=True)
class MetricShape:
    """The released matrix as the page shows it.

    Attributes
    ----------
    n_components, n_features : int
    weights : tuple of (feature name, share)
        How much of the matrix's squared length each feature has, largest first, a thousand at most.
    rest : float
        The share of the features that are not listed; all shares sum to 1.
    """

    n_components: int
    n_features: int
    weights: tuple[tuple[str, float], ...]
    rest: float = 0.0


@dataclass(frozen=True)
class ReportData:
    """Everything `pairveil.report.page.render` needs.

    Attributes
    ----------
    certificate : Certificate or None
        None for a metric that promises nothing; the page then says so at the top.
    metric : MetricShape
    summary : Summary
    folder : str
        How the commands on the page name the release folder.
    problems : tuple of str or None
        What `Certificate.verify` found when the page was made; None when it was not asked.
    made : str
        The day, for the foot of the page.
    linkage : tuple of WeightRow
        Match weights, where the release is a linkage model.
    """

    certificate: Certificate | None
    metric: MetricShape
    summary: Summary = field(default_factory=Summary)
    folder: str = "RELEASE"
    problems: tuple[str, ...] | None = None
    made: str = ""
    linkage: tuple[WeightRow, ...] = ()


def read_summary(folder: Path) -> Summary:
    """The folder's ``summary.json``, or an empty summary when there is none."""
    file = folder / SUMMARY_FILE
    if not file.exists():
        return Summary()
    return Summary.from_json(read_regular(file).decode("utf-8", errors="replace"))


def _without_infinities(value: Any) -> Any:
    """Strict JSON has no infinity; the string 'inf' stands for it, and ``float`` reads it back."""
    if isinstance(value, Mapping):
        return {key: _without_infinities(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(item) for item in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _graph(content: Mapping[str, Any] | None) -> GraphSummary | None:
    if content is None:
        return None
    return GraphSummary(
        n_people=_count(content["n_people"]),
        n_pairs=_count(content["n_pairs"]),
        kappa={name: _count(content["kappa"][name]) for name in KAPPAS},
        degrees=_counts(content["degrees"]),
        b=_counts(content["b"]),
        top=tuple(
            RankedPerson(_count(one["rank"]), _count(one["b"]), _count(one["degree"]))
            for one in content["top"]
        ),
    )


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{SUMMARY_FILE} holds something that is not a count")
    return value


def _counts(content: Any) -> tuple[tuple[int, int], ...]:
    """How many people have which value: ascending, each with somebody."""
    found = tuple((_count(value), _count(people)) for value, people in content)
    values = [value for value, _ in found]
    if not found or values != sorted(set(values)) or not all(people for _, people in found):
        raise InputError(f"{SUMMARY_FILE} holds counts that are none")
    return found


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _known(value: Any) -> float:
    """A number that may be infinite, but is one."""
    if math.isnan(number := float(value)):
        raise InputError(f"{SUMMARY_FILE} holds something that is not a number")
    return number


def _point(content: Mapping[str, Any]) -> UtilityPoint:
    return UtilityPoint(
        float(content["epsilon"]),
        float(content["score"]),
        _number(content["low"]),
        _number(content["high"]),
    )


def _curve(content: Mapping[str, Any] | None) -> UtilityCurve | None:
    if content is None:
        return None
    this_fit = content["this_fit"]
    return UtilityCurve(
        source=content["source"],
        note=str(content["note"]),
        points=tuple(_point(point) for point in content["points"]),
        this_fit=None if this_fit is None else _point(this_fit),
        euclidean=_number(content["euclidean"]),
        reference=_number(content["reference"]),
        score_name=str(content["score_name"]),
    )


def _points(content: Mapping[str, Any] | None) -> ProjectedPoints | None:
    if content is None:
        return None
    return ProjectedPoints(
        source=content["source"],
        note=str(content["note"]),
        before=tuple((float(x), float(y)) for x, y in content["before"]),
        after=tuple((float(x), float(y)) for x, y in content["after"]),
        groups=tuple(str(group) for group in content["groups"]),
    )


def _budget(content: Mapping[str, Any] | None) -> Budget | None:
    if content is None:
        return None
    return Budget(
        epsilon=_known(content["epsilon"]),
        delta=_known(content["delta"]),
        unit=str(content["unit"]),
        adjacency=str(content["adjacency"]),
        entries=tuple(
            LedgerEntry(str(one["note"]), _known(one["epsilon_so_far"]), str(one["when"]))
            for one in content["entries"]
        ),
    )
