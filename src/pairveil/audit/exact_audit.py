"""An audit without statistics: how far one real fit moves under the worst canary, query by query.

A fit is run on one of two neighbouring inputs as a user would run it: its kappa is counted, its plan made and
its certificate issued by the learner's own code. Whenever the engine sums a query over the pairs, the
same sum is taken over the other input too, by the same code with the same clip bound, grid and scale. What
lies between the two sums is what the noise of that query must hide, and no run is luckier than another.

Both numbers are in clip units: noise scale divided by noise multiplier. So a sum that is clipped too late, a
kappa that is counted too small, a query that is asked too often and noise that is scaled too small
all show as a move above what was charged. Along one column l1, l2 and per-column bounds agree, so each query
is also asked about the changed records turned into other directions (`directions`), with everything released
so far as it is. Not seen: a source that draws other noise than it was asked for (`pairveil.audit.auditor`
measures that), and worse inputs than these (the proof covers those).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.audit.auditor import Verdict
from pairveil.audit.canaries import Inputs, Neighbours
from pairveil.audit.targets import on_canary
from pairveil.engine.engine import Engine
from pairveil.engine.statistics import GRID, Statistic, clipped_sum
from pairveil.errors import DataWarning, InputError
from pairveil.evaluation.held_out import planned_apart, planned_score
from pairveil.learners.base import PrivateLearner
from pairveil.learners.estimator import PrivateMetricLearner
from pairveil.learners.preparing import Prepared
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.compose import epsilon_from_mu
from pairveil.privacy.events import cost_of
from pairveil.privacy.grid import Norm
from pairveil.privacy.mechanisms import Query
from pairveil.privacy.noise import SeededNoise
from pairveil.privacy.profile import epsilon_of
from pairveil.privacy.samplers import Family
from pairveil.records.kinds import Cost
from pairveil.records.pairset import PairSet

ROUNDING = 1e-9
"""Relative error of the numbers compared; beyond it nothing may exceed what was charged."""
ADDITIVE = 1e-3
"""Gap, in clip bounds, between a sum and the sums over its halves that rounding explains."""


@dataclass(frozen=True)
class QueryMove:
    """How far one query of a fit moved, at its worst step, in clip units."""

    name: str
    steps: int  # how often it was asked
    # Distance of the two inputs' sums (l2 for Gaussian noise, l1 for Laplace, for choices the range over the
    # candidates), the largest over the steps and directions
    largest_move: float
    charged: float  # what the accounting assumes: kappa, twice that under replace
    ratio: float  # of the two; above 1 the promise is broken


@dataclass(frozen=True)
class ExactFinding:
    """What one fit realises of what its certificate claims.

    Attributes
    ----------
    queries : tuple of QueryMove
        In the order in which they were asked.
    mu_realised, mu_claimed : float or None
        Of all queries together, where all are full-batch sums with Gaussian noise; else None.
    realised_epsilon, claimed_epsilon : float
        At `delta`: what the moves add up to (without mu: at most, from each query's largest move), and what
        the certificate says.
    verdict : {"consistent", "violated"}
    """

    target: str
    unit: str
    kappa: int
    adjacency: str
    canary: str
    delta: float
    queries: tuple[QueryMove, ...]
    mu_realised: float | None
    mu_claimed: float | None
    realised_epsilon: float
    claimed_epsilon: float
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """The finding for JSON; queries by name."""
        found = asdict(self)
        found["queries"] = {move.pop("name"): move for move in found["queries"]}
        return found


def audit_exactly(
    learner: PrivateLearner | str = "contrastive",
    *,
    kappa: int = 1,
    n_features: int = 2,
    random_state: int = 0,
    canary: Inputs | None = None,
    records: str | None = None,
) -> ExactFinding:
    """Run one fit of a learner on the worst canary and measure every query's move.

    Parameters
    ----------
    learner : PrivateLearner, or its name in `pairveil.learners.LEARNERS`
        Its parameters are the claim. It is not changed: a copy without ledger and preprocessor, which uses
        all pairs, is run in its place.
    kappa : int
        Size of the canary: pairs that change together (people: one, or the unit's two, whatever this is).
    n_features : int
    random_state : int
        Of the noise. The noise decides where a descent goes, and with it the moves; it adds no chance to a
        move itself.
    canary : Neighbours, or inputs of other records, optional
        Two inputs of your own, for the learner's adjacency; they differ in one unit.
    records : str, optional
        Of what the learner `learns_from` the worst case is made; the first of it by default.

    Examples
    --------
    >>> from pairveil import DPPMetricLearner
    >>> found = audit_exactly(DPPMetricLearner(unit="pair"), n_features=5)
    >>> found.verdict, 0.9 * found.mu_claimed < found.mu_realised <= found.mu_claimed
    ('consistent', True)
    """
    audited, canary = on_canary(learner, kappa, n_features, random_state, canary, records)
    # a canary among few pairs is no useful fit
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        prepared = audited.prepare(canary.second)
        return measure(prepared, canary, random_state)


@dataclass(frozen=True)
class _Counted(Inputs[Any]):
    """Two inputs of counted pairs: cells of the pairs' scores, and their labels."""

    hides_features: ClassVar[bool] = False

    @property
    def changed(self) -> NDArray[np.intp]:
        moved = (self.first.values != self.second.values).any(axis=1)
        return np.flatnonzero(moved | (self.first.labels != self.second.labels))


def audit_scored(
    learner: PrivateMetricLearner,
    epsilon: float,
    *,
    kappa: int = 1,
    n_features: int = 2,
    random_state: int = 0,
) -> ExactFinding:
    """`audit_exactly` of a fit that scores itself: the unit is learned from, then among those scored.

    Everybody's pairs are in one part, so the certificate's epsilon must cover either. ``epsilon`` is that of
    the score; the finding shows the queries of both, and the epsilon of the part that realised more.

    Examples
    --------
    >>> from pairveil import DPPMetricLearner
    >>> found = audit_scored(DPPMetricLearner(unit="pair"), 0.5)
    >>> found.verdict, len(found.queries) > 1
    ('consistent', True)
    """
    audited, canary = on_canary(learner, kappa, n_features, random_state, None, "pairs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # a canary among few pairs is no useful fit
        first: PairSet = canary.first
        if canary.adjacency == "zero-out":  # of two equal people with a label a score is counted
            first = canary.second.emptied(canary.changed)
        given = [audited.prepare(world) for world in (first, canary.second)]
        used = [one.records.used for one in given]
        changed = Neighbours(used[0], used[1], canary.adjacency).changed
        others = np.setdiff1d(np.arange(used[1].n_pairs), changed)
        parts = []
        for is_scored in (False, True):
            rows = np.sort([*changed, *others[::2]]), others[1::2]
            learned, scored = rows[::-1] if is_scored else rows
            worlds = [
                planned_apart(audited, one, learned, scored, epsilon=epsilon) for one in given
            ]
            prepared: list[Prepared] = list(worlds)
            if is_scored:  # of both worlds by one metric, in which the canary has no part
                fitted = audited.fit(worlds[1])
                prepared = [planned_score(fitted, one) for one in worlds]
            one, other = (each.records.used for each in prepared)
            kind = _Counted if is_scored else Neighbours
            inputs: Inputs[Any] = kind(one, other, canary.adjacency, canary.name)
            parts.append(measure(prepared[1], inputs, random_state))
    whole, either = worlds[1].certificate, max(one.realised_epsilon for one in parts)
    assert whole is not None
    broken = any(one.verdict == "violated" for one in parts) or either > whole.epsilon * (
        1 + ROUNDING
    )
    return replace(
        parts[0],
        queries=(*parts[0].queries, *parts[1].queries),
        mu_realised=None,
        mu_claimed=None,
        realised_epsilon=either,
        claimed_epsilon=whole.epsilon,
        verdict="violated" if broken else "consistent",
    )


def measure(prepared: Prepared, canary: Inputs, random_state: int = 0) -> ExactFinding:
    """Run a prepared fit on a canary's second input, and measure every query's move."""
    recorder = _Recorder(canary, random_state)
    engine = Engine(recorder, recorder, recorder.answered)
    prepared.recipe.run(prepared.plan, engine)
    certificate = prepared.certificate
    if certificate is None or not engine.followed(prepared.plan.queries):
        raise InputError("an exact audit needs a private fit that follows its plan")
    return _finding(certificate, canary, recorder.moves)


def _finding(
    certificate: Certificate, canary: Inputs, moves: dict[Query, list[float]]
) -> ExactFinding:
    """Compare the moves with what the certificate charges its unit for them."""
    charged = _cost(certificate).sensitivity(certificate.adjacency)
    queries = tuple(
        QueryMove(query.name, len(seen), max(seen), charged, max(seen) / charged)
        for query, seen in moves.items()
    )
    mu_realised = mu_claimed = None
    if certificate.mu(certificate.unit) is not None and all(q.n_batches == 1 for q in moves):
        mu_realised = _mu(moves)
        mu_claimed = _mu({query: [charged] * query.steps for query in moves})
        realised = epsilon_from_mu(mu_realised, certificate.delta - certificate.delta_slack)
    else:
        realised = _epsilon_of_moves(certificate, moves, charged)
    broken = realised > certificate.epsilon * (1 + ROUNDING) or any(
        query.ratio > 1 + ROUNDING for query in queries
    )
    return ExactFinding(
        target="learner",
        unit=certificate.unit,
        kappa=canary.kappa,
        adjacency=certificate.adjacency,
        canary=canary.name,
        delta=certificate.delta,
        queries=queries,
        mu_realised=mu_realised,
        mu_claimed=mu_claimed,
        realised_epsilon=realised,
        claimed_epsilon=certificate.epsilon,
        verdict="violated" if broken else "consistent",
    )


def _cost(certificate: Certificate) -> Cost:
    """What the certificate's unit is charged for; all queries of a fit are about one kind of records."""
    group = certificate.group_of()
    return group[0] if isinstance(group, tuple) else cost_of(group)


def _mu(moves: dict[Query, list[float]]) -> float:
    """Moves in standard deviations of their noise, composed as a root of squares."""
    squares = ((one / query.noise_multiplier) ** 2 for query, seen in moves.items() for one in seen)
    return math.sqrt(sum(squares))


def _epsilon_of_moves(
    certificate: Certificate, moves: dict[Query, list[float]], charged: float
) -> float:
    """Epsilon of the same plan with as much more noise as each query's largest move leaves unused."""
    events = [
        replace(query, noise_multiplier=query.noise_multiplier * charged / max(seen)).event()
        for query, seen in moves.items()
        if max(seen) > 0
    ]
    return epsilon_of(
        events,
        kappa=_cost(certificate),
        adjacency=certificate.adjacency,
        delta=certificate.delta - certificate.delta_slack,
    )


def _length(apart: FloatArray, norm: Norm) -> float:
    if norm == "range":
        return float(np.ptp(apart))
    return float(np.linalg.norm(apart, 1 if norm == "l1" else 2))


def directions(n_features: int) -> list[FloatArray]:
    """Unit vectors that the canary is turned to: all columns, alternating signs, two columns, a random one.

    Examples
    --------
    >>> [axis.round(2).tolist() for axis in directions(2)[:2]]
    [[0.71, 0.71], [0.71, -0.71]]
    >>> directions(1)
    []
    """
    if n_features == 1:
        return []
    ones, two = np.ones(n_features), np.zeros(n_features)
    two[-2:] = 1.0
    signs = (-1.0) ** np.arange(n_features)
    found = (ones, signs, two, np.random.default_rng(0).normal(size=n_features))
    return [axis / np.linalg.norm(axis) for axis in found]


_NULLS = 4


def _uneven(records: Any) -> PairSet | None:
    """Pairs of all lengths that the canary's people allow, null ones first; None for other records.

    A canary stands alone among null pairs, and beside it no other pair's contribution could change.
    """
    if not isinstance(records, PairSet):
        return None
    longest = max(float(np.abs(records.features).max()), 1e-12)
    drawn = np.random.default_rng(0).normal(size=(20, records.n_features))
    lengths = longest * np.repeat([0.0, 1e-3, 0.1, 0.5, 1.0], 4)
    ends = drawn / np.linalg.norm(drawn, axis=1, keepdims=True) * lengths[:, None]
    features = np.stack([ends, -ends], axis=1).reshape(40, -1).astype(records.features.dtype)
    return PairSet(features, np.arange(40).reshape(-1, 2), np.resize([1, -1], 20))


def turned(records: Any, axis: FloatArray) -> Any:
    """Records of people whose first column is reflected onto ``axis``; all l2 lengths stay.

    Examples
    --------
    >>> from pairveil import PairSet
    >>> pair = PairSet(np.array([[1.0, 0.0], [0.0, 0.0]]), [[0, 1]], [1])
    >>> turned(pair, np.array([0.6, 0.8])).features[0].round(9).tolist()
    [0.6, 0.8]
    """
    normal = axis - np.eye(len(axis))[0]
    mirror = np.eye(len(axis)) - 2.0 * np.outer(normal, normal) / (normal @ normal)
    dtype = records.features.dtype
    return records.with_features((records.features @ mirror).astype(dtype))


class _Recorder(SeededNoise):
    """Stands at the engine's three seams: what it sums, how much noise it asks for, and for which query."""

    def __init__(self, canary: Inputs, random_state: int) -> None:
        self.kind: str = canary.second.kind
        super().__init__(random_state)
        self._worlds, self._changed = (canary.first, canary.second), canary.changed
        self._both = (*self._worlds, canary.second)
        self._turned = [
            tuple(
                turned(world.part(self._changed, own_people=False), axis) for world in self._worlds
            )
            for axis in (directions(canary.second.n_features) if canary.hides_features else ())
        ]
        self._uneven = _uneven(canary.second) if canary.hides_features else None
        self.moves: dict[Query, list[float]] = {}
        """For each kind of query, the move of each step in clip units."""
        self._apart: list[FloatArray] = []
        self._scale = math.nan

    @property
    def n_records(self) -> int:
        """Records of either input."""
        return int(self._worlds[1].n_records)

    @property
    def dtype(self) -> Any:
        """Type of the features."""
        return self._worlds[1].features.dtype

    def add_up(
        self,
        rows: NDArray[np.int64] | None,
        statistic: Statistic,
        norm: Norm,
        grid: float,
        *,
        separately: bool = False,
    ) -> NDArray[np.int64]:
        """`clipped_sum` over both inputs; the engine gets the second input's."""
        # A Poisson batch may hold all changed pairs: the largest move is that of such a batch.
        worst = np.union1d(rows, self._changed) if separately and rows is not None else rows
        first, second, own = (
            clipped_sum(world, chosen, statistic, norm, grid, separately=separately)
            for world, chosen in zip(self._both, (worst, worst, rows), strict=True)
        )
        self._check_halves(rows, own, statistic, norm, grid, separately)
        # Whole numbers: their difference is exact, and only then made a float.
        self._apart = [(second - first).astype(np.float64) * grid]
        present = slice(None) if worst is None else np.isin(self._changed, worst)
        here = np.arange(len(self._changed))[present]
        for worlds in self._turned if len(here) else ():
            one, two = (
                clipped_sum(world, here, statistic, norm, grid, separately=separately)
                for world in worlds
            )
            self._apart.append((two - one).astype(np.float64) * grid)
        return own

    def _check_halves(
        self,
        rows: NDArray[np.int64] | None,
        total: NDArray[np.int64],
        statistic: Statistic,
        norm: Norm,
        grid: float,
        separately: bool,
    ) -> None:
        """Refuse a statistic whose sums over two halves are not the sum over all: no clip bounds a record."""
        own = (np.arange(self.n_records) if rows is None else rows, self._worlds[1], total)
        tried = [own]
        if self._uneven is not None:
            every = np.arange(self._uneven.n_records)
            uneven, null = (
                clipped_sum(self._uneven, part, statistic, norm, grid, separately=separately)
                for part in (every, every[:_NULLS])
            )
            tried.append((every, self._uneven, uneven))
            if float(np.abs(null).max()) * grid > ADDITIVE * statistic.clip:
                raise InputError(
                    f"{type(statistic).__name__} counts pairs of two equal people: against such a pair, "
                    "which must add nothing, another one moves the sum further than its clip bound"
                )
        for rows_now, world, whole in tried:
            halves = (
                clipped_sum(world, half, statistic, norm, grid, separately=separately)
                for half in np.array_split(rows_now, 2)
            )
            gap = float(np.abs(sum(halves) - whole).max()) * grid
            if gap > ADDITIVE * statistic.clip:
                raise InputError(
                    f"{type(statistic).__name__} is no sum over records: over two halves it does not add up "
                    "to the whole, so a record changes what others contribute and no clip bound limits it"
                )

    def noisy(
        self, family: Family, total: NDArray[Any], scale: float, grid: float | None = None
    ) -> NDArray[np.float64]:
        """Seeded noise; how much was asked for is kept."""
        self._scale = scale
        return super().noisy(family, total, scale, grid)

    def choose(self, scores: NDArray[Any], eta: float, unit: int = 1) -> int:
        """A seeded choice; how much noise was asked for, in records, is kept."""
        self._scale = unit * GRID / eta
        return super().choose(scores, eta, unit)

    def answered(self, query: Query, statistic: Statistic, noisy: FloatArray) -> None:  # noqa: ARG002
        """One query was answered: measure its move in units of the noise that was asked for."""
        length = max(_length(apart.ravel(), query.mechanism.norm) for apart in self._apart)
        self.moves.setdefault(query, []).append(length * query.noise_multiplier / self._scale)
