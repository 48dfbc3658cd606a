"""The paper's attack (its Fig. 1): read 'same' or 'different' of one relationship off a metric.

The attacker knows the learner, the public start and everything about the pairs but one bit: whether
a set of labels is as it is or flipped. Each target is played in both worlds; the attacker sees the
outcome and names the world. Right half of the time is what guessing gives. A plan caps it at
(1 + delta(0)) / 2, its best guess for as many replaced pairs as labels flip
(`pairveil.privacy.profile.best_guess_of`).

What is flipped depends on what the attacker knows:

- ``all-other-pairs``: every other pair, so one label is open;
- ``all-but-key-pairs``: what is left without the target's key pairs. Labels chain ('same as the same' is
  'same'), so the open labels hang together and flip together;
- ``dropped-labels``: the labels that a selected fit dropped and all but a minimum cut of those it used
  (docs/theory/graph.md);
- ``two-halves``: every label inside each of two halves of the people and none between them. All pairs
  between the halves flip together, far more than kappa: this attacker knows *less* and learns more.
  No promise about kappa pairs covers it, and none can for a metric that is any good.

The paper's Fig. 3 for one target: which pairs an attacker must miss, and how many.

Pairs must be missing until s and t are in different components and one of them, the cheaper end v, is on no
cycle. That takes exactly b(v) = degree - blocks + 1 pairs (one less when s and t are not connected), and the
largest such count over all targets is the second largest b, the relationship-level kappa. The proof, and why
the paper's own count can be too small, is in docs/theory/graph.md.

The attacked learners: ours with and without noise, and whatever else is given beside them.

Without noise the attacker matches the metric, as in the paper's Fig. 1. Where there is noise the same
attacker, who trains under both conjectures, sees every noisy sum of the fit and weighs how likely they are:
matching the final metric would show less.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from pairveil.audit.canaries import Neighbours
from pairveil.audit.targets import Watcher
from pairveil.engine.engine import Engine
from pairveil.errors import DataWarning, InputError
from pairveil.graph.choosing import select_pairs
from pairveil.graph.kappa import checked_pairs, compacted, kappa
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.preparing import Prepared, clusters_of
from pairveil.privacy.noise import SeededNoise
from pairveil.privacy.profile import best_guess_of
from pairveil.records.embedded import label_pairs, load_patients
from pairveil.records.pairset import PairSet

# ---- The paper's figure 3 for one target: which pairs an attacker must miss, and how many --------


@dataclass(frozen=True)
class KeyPairs:
    """What stands between an attacker and one target."""

    # A maximum set of edge-disjoint paths from s to t, each as positions in `pairs`, in order
    paths: tuple[tuple[int, ...], ...]
    cut: tuple[
        int, ...
    ]  # as many pairs whose absence alone separates s from t (Menger): hides the label
    # Pairs at `endpoint` that must be missing to separate s from t and leave `endpoint` on no cycle; no
    # smaller set does it. First those towards the other end, then the cycle-breaking ones
    key: tuple[int, ...]
    endpoint: int  # the cheaper of s and t (s when equal)
    count: int  # of `key`
    paper_count: int  # the paper's |P_st| + min(c_s, c_t) for these paths; at most `count`


def key_pairs(pairs: Any, s: int, t: int) -> KeyPairs:
    """The edge-disjoint paths between two people and the pairs that must be missing.

    Parameters
    ----------
    pairs : (K, 2) array_like of integers, or a PairSet
    s, t : int
        The target; both must occur in `pairs`. They need not be a pair.

    Returns
    -------
    KeyPairs

    Examples
    --------
    The paper's Fig. 3. Two edge-disjoint paths join s and t; the key pairs are st and sc, which
    carry them, and one pair (sa or bs) of the cycle s, a, b: three in all.

    >>> names = "st sc ce et cu ut sa ab bs".split()
    >>> fig3 = [("stceuab".index(a), "stceuab".index(b)) for a, b in names]
    >>> found = key_pairs(fig3, s=0, t=1)
    >>> [names[j] for j in sorted(found.cut)]
    ['st', 'sc']
    >>> [names[j] for j in found.key], found.count, len(found.paths)
    (['st', 'sc', 'bs'], 3, 2)
    """
    array = checked_pairs(pairs)
    people, ends = compacted(array)
    s_row, t_row = _row_of(people, s, "s"), _row_of(people, t, "t")
    if s_row == t_row:
        raise InputError("s and t are the same person; a target has two people")
    capacity = _symmetric(ends, len(people))
    flow = csgraph.maximum_flow(capacity, s_row, t_row).flow
    paths = _paths(flow, _positions(ends), s_row, t_row)
    at_s = _separating(ends, len(people), s_row, t_row)
    at_t = _separating(ends, len(people), t_row, s_row)
    key, endpoint = (at_s, s) if len(at_s) <= len(at_t) else (at_t, t)
    rest = np.ones(len(ends), dtype=bool)
    rest[[j for path in paths for j in path]] = False
    cycle = [len(_cycle_breaking(ends[rest], len(people), v)) for v in (s_row, t_row)]
    return KeyPairs(
        paths=paths,
        cut=_cut(capacity, flow, ends, s_row),
        key=tuple(int(j) for j in key),
        endpoint=int(endpoint),
        count=len(key),
        paper_count=len(paths) + min(cycle),
    )


def _row_of(people: NDArray[np.signedinteger], person: int, name: str) -> int:
    """Where a person is among those who occur in pairs."""
    row = int(np.searchsorted(people, person))
    if row == len(people) or people[row] != person:
        raise InputError(f"{name} does not occur in any pair")
    return row


def _symmetric(ends: NDArray[np.int32], n: int) -> sparse.csr_matrix:
    """Adjacency matrix whose entries are multiplicities."""
    one = np.ones(2 * len(ends), dtype=np.int32)
    rows, columns = np.concatenate([ends, ends[:, ::-1]]).T
    return sparse.csr_matrix((one, (rows, columns)), shape=(n, n))


def _positions(ends: NDArray[np.int32]) -> dict[tuple[int, int], list[int]]:
    """The positions of the (possibly parallel) pairs between two people, lower number first."""
    found: dict[tuple[int, int], list[int]] = {}
    for j, (a, b) in enumerate(ends.tolist()):
        found.setdefault((min(a, b), max(a, b)), []).append(j)
    return found


def _paths(
    flow: sparse.csr_matrix, positions: dict[tuple[int, int], list[int]], s: int, t: int
) -> tuple[tuple[int, ...], ...]:
    """Take the flow apart into simple paths of pair positions."""
    out: dict[int, list[int]] = {}
    carried = flow.tocoo()
    for a, b, units in zip(carried.row, carried.col, carried.data, strict=True):
        if units > 0:
            out.setdefault(int(a), []).extend([int(b)] * int(units))
    paths = []
    while out.get(s):
        walk, on_walk = [s], {s}
        while walk[-1] != t:
            w = out[walk[-1]].pop()
            # A flow may contain circulations: when the walk meets itself, forget the loop.
            while w in on_walk:
                on_walk.discard(walk.pop())
            on_walk.add(w)
            walk.append(w)
        steps = pairwise(walk)
        paths.append(tuple(positions[min(a, b), max(a, b)].pop() for a, b in steps))
    return tuple(sorted(paths, key=len))


def _cut(
    capacity: sparse.csr_matrix, flow: sparse.csr_matrix, ends: NDArray[np.int32], s: int
) -> tuple[int, ...]:
    """Pairs from what the residual graph reaches from s to the rest: a minimum cut."""
    residual = capacity - flow
    residual.eliminate_zeros()
    reached = np.zeros(capacity.shape[0], dtype=bool)
    reached[csgraph.breadth_first_order(residual, s, return_predecessors=False)] = True
    return tuple(np.flatnonzero(reached[ends[:, 0]] != reached[ends[:, 1]]).tolist())


def _components_without(
    ends: NDArray[np.int32], n: int, v: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """v's pairs (positions), the component of G - v each leads to, and every person's component."""
    mine = (ends == v).any(axis=1)
    component = clusters_of(ends[~mine], n)[1]
    positions = np.flatnonzero(mine)
    partner = ends[positions].sum(axis=1) - v
    return positions, component[partner], component


def _cycle_breaking(ends: NDArray[np.int32], n: int, v: int) -> NDArray[np.int64]:
    """v's pairs but the first into each component of G - v."""
    positions, leads_to, _ = _components_without(ends, n, v)
    _, first = np.unique(leads_to, return_index=True)
    return np.delete(positions, first)


def _separating(ends: NDArray[np.int32], n: int, v: int, other: int) -> NDArray[np.int64]:
    """A smallest set of pairs that cuts v from `other` and leaves v on no cycle (b(v) pairs)."""
    positions, leads_to, component = _components_without(ends, n, v)
    towards = leads_to == component[other]
    _, first = np.unique(leads_to, return_index=True)
    spare = np.ones(len(positions), dtype=bool)
    spare[first] = False
    return np.concatenate([positions[towards], positions[spare & ~towards]])


# ---- read 'same' or 'different' of one relationship off a metric ---------------------------------

Attacker = Literal["all-other-pairs", "all-but-key-pairs", "dropped-labels", "two-halves"]

ATTACKERS: tuple[Attacker, ...] = (
    "all-other-pairs",
    "all-but-key-pairs",
    "dropped-labels",
    "two-halves",
)

Guess = Callable[[Neighbours, int], int]
"""(both worlds, seed of the fits) -> in how many of the two the attacker named the real one: 0, 1 or 2."""


@dataclass(frozen=True)
class Row:
    """How one attacker fared against one learner."""

    learner: str
    epsilon: float
    attacker: Attacker
    n_targets: int
    recovered: float  # share of the targets whose relationship was named rightly; 0.5 is guessing
    # What the learner's promise allows: 1 where it promises nothing, None where it does not cover this
    # attacker, who lacks more labels than it speaks of
    bound: float | None

    def to_dict(self) -> dict[str, Any]:
        """The row for JSON."""
        return asdict(self)


class Patients(NamedTuple):
    """The attacked data: all labelled pairs, and which of them a selected fit uses."""

    all: PairSet
    used: NDArray[np.int64]


def patients(n_people: int = 300, random_state: int = 0) -> Patients:
    """Breast-cancer patients in a random graph with two pairs a person."""
    rng = np.random.default_rng(random_state)
    embedded = load_patients()
    people = rng.permutation(len(embedded.classes))[:n_people]
    possible = np.column_stack(np.triu_indices(n_people, 1))
    pairs = possible[np.sort(rng.permutation(len(possible))[: 2 * n_people])]
    labels = label_pairs(pairs, embedded.classes[people])
    everything = PairSet(np.asarray(embedded.features.values)[people], pairs, labels)
    return Patients(everything, select_pairs(pairs, "paths", random_state=random_state))


def flipped_pairs(
    data: PairSet,
    used: NDArray[np.int64],
    target: int,
    attacker: Attacker,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Positions, among the used pairs, of the labels that are open to this attacker.

    ``used`` are the positions of the pairs that the learner uses, ``target`` is one of them.

    Examples
    --------
    In a triangle the two other pairs give the target away; without its key pairs two labels are open:

    >>> triangle = PairSet(np.eye(3), [[0, 1], [1, 2], [0, 2]], [1, 1, 1])
    >>> rng = np.random.default_rng(0)
    >>> flipped_pairs(triangle, np.arange(3), 0, "all-other-pairs", rng).tolist()
    [0]
    >>> flipped_pairs(triangle, np.arange(3), 0, "all-but-key-pairs", rng).tolist()
    [0, 2]
    """
    ends = data.pairs[used]
    s, t = (int(v) for v in ends[target])
    if attacker == "all-other-pairs":
        return np.array([target])
    if attacker == "all-but-key-pairs":
        found = key_pairs(ends, s, t)
        side = _reached(np.delete(ends, found.key, axis=0), data.n_people, found.endpoint)
    elif attacker == "dropped-labels":
        cut = key_pairs(data.pairs, s, t).cut
        side = _reached(np.delete(data.pairs, cut, axis=0), data.n_people, s)
    elif attacker == "two-halves":
        side = rng.random(data.n_people) < 0.5
        side[s], side[t] = True, False
    else:
        raise InputError(f"attacker must be one of {', '.join(ATTACKERS)}")
    return np.flatnonzero(side[ends[:, 0]] != side[ends[:, 1]])


def _reached(pairs: NDArray[Any], n_people: int, start: int) -> NDArray[np.bool_]:
    """Who hangs together with ``start`` through the known pairs."""
    part = clusters_of(pairs, n_people)[1]
    return np.asarray(part == part[start])


def games(
    data: Patients, attacker: Attacker, n_targets: int, random_state: int
) -> Iterator[tuple[Neighbours, int]]:
    """The games to play: both worlds of a target, and a seed for the fits."""
    rng = np.random.default_rng([random_state, 1])  # not the stream that made the graph
    selected = attacker in ("dropped-labels", "two-halves")
    used = data.used if selected else np.arange(data.all.n_pairs)
    if n_targets > len(used):
        raise InputError(f"there are {len(used)} pairs to attack, fewer than the targets asked for")
    pairs = data.all.subset(used)
    assert pairs.labels is not None
    for target in rng.permutation(len(used))[:n_targets]:
        labels = pairs.labels.copy()
        open_labels = flipped_pairs(data.all, used, int(target), attacker, rng)
        labels[open_labels] *= -1
        flipped = PairSet(pairs.features, pairs.pairs, labels)
        worlds = Neighbours(flipped, pairs, "replace", attacker)
        yield worlds, int(rng.integers(2**31))


def play(guess: Guess, rounds: Iterable[tuple[Neighbours, int]]) -> float:
    """Share of the worlds that the attacker names rightly, over the rounds that `games` made.

    Both worlds of a target are played with the same noise, instead of one by a coin: the expected share
    is the same and luck cancels (an attacker who follows the noise alone is right exactly once).
    """
    return float(np.mean([guess(worlds, seed) for worlds, seed in rounds])) / 2


# ---- ours with and without noise, and whatever else is given beside them -------------------------

EPSILONS = (0.1, 1.0, 4.0)

N_STEPS = 5
"""Steps of our learner here: fewer than the default, to save time. The promise and its bound are the same:
fewer steps have less noise each, and an attacker who sees them all learns as much."""

N_STEPS_WITHOUT_NOISE = 40
"""Enough for every label to leave a trace: after 5 steps two targets in five had one metric either way."""

Attacked = tuple[str, float, Guess, float | None]
"""Name and claimed epsilon of a learner, how it is attacked, and what its promise allows (None: nothing)."""

OthersOf = Callable[[int, int], Iterable[Attacked]]
"""(kappa of the used pairs, most labels that flip together) -> further learners to attack."""


def attack_all(
    n_targets: int = 200, random_state: int = 0, others: OthersOf | None = None
) -> list[Row]:
    """Every attacker against every learner.

    ``others`` are further learners: `pairveil.audit.published.published_learners` for the paper's.
    """
    data = patients(random_state=random_state)
    return [
        row
        for attacker in ATTACKERS
        for row in attack_learners(data, attacker, n_targets, random_state, others)
    ]


def attack_learners(
    data: Patients,
    attacker: Attacker,
    n_targets: int,
    random_state: int,
    others: OthersOf | None = None,
    epsilons: tuple[float, ...] = EPSILONS,
) -> Iterator[Row]:
    """One attacker against the non-private learner, the others given, and ours."""
    rounds = list(games(data, attacker, n_targets, random_state))  # the same for every learner

    def row(name: str, epsilon: float, guess: Guess, bound: float | None) -> Row:
        return Row(name, epsilon, attacker, n_targets, play(guess, rounds), bound)

    selected = attacker in ("dropped-labels", "two-halves")
    used = data.all.subset(data.used) if selected else data.all
    flips = max(worlds.kappa for worlds, _ in rounds)
    yield row("non-private", math.inf, match_ours(used), 1.0)
    group = kappa(used).relationship
    for name, claimed, guess, bound in () if others is None else others(group, flips):
        yield row(name, claimed, guess, bound)
    # Whoever knows all other pairs lacks one. For those who know the dropped labels too, the certificate
    # of a selected fit states kappa of the full graph too.
    lacking = {"all-other-pairs": 1, "dropped-labels": kappa(data.all).relationship}
    covered = lacking.get(attacker, group)
    for epsilon in epsilons:
        prepared = _prepared(used, epsilon)
        bound = None
        if flips <= covered:
            bound = best_guess_of(prepared.plan.events(), kappa=covered)
        yield row("pairveil", epsilon, watch_ours(prepared), bound)


def match_ours(used: PairSet) -> Guess:
    """The same attack on our learner without noise: it is deterministic, so the match is exact."""
    prepared = _prepared(used, math.inf)
    fits: dict[bytes, np.ndarray] = {}

    def fit(data: PairSet) -> np.ndarray:
        assert data.labels is not None
        key = data.labels.tobytes()
        if key not in fits:
            W = prepared.recipe.run(prepared.plan, Engine(data, SeededNoise(0)))
            fits[key] = W.T @ W
        return fits[key]

    def guess(worlds: Neighbours, seed: int) -> int:  # noqa: ARG001 - nothing is random
        # The metric seen is one of the two; it is told from the other unless they are equal.
        return 2 if np.linalg.norm(fit(worlds.first) - fit(worlds.second)) > 0 else 1

    return guess


def watch_ours(prepared: Prepared) -> Guess:
    """The strongest attacker that the proof covers: every noisy sum is seen, everything else known."""

    def guess(worlds: Neighbours, seed: int) -> int:
        watcher, right = Watcher(worlds), 0
        for real, world in enumerate((worlds.first, worlds.second)):
            watcher.reset()
            prepared.recipe.run(prepared.plan, Engine(world, SeededNoise(seed), on_answer=watcher))
            right += int(watcher.score > 0) == real
        return right

    return guess


_DELTA = 1e-5


def _prepared(used: PairSet, epsilon: float) -> Prepared:
    steps = N_STEPS_WITHOUT_NOISE if math.isinf(epsilon) else N_STEPS
    learner = DPPMetricLearner(
        epsilon=epsilon, delta=_DELTA, select="all", n_steps=steps, random_state=0
    )
    # few pairs for so small an epsilon: known
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        return learner.prepare(used)
