"""The paper's attack (its Fig. 1): read 'same' or 'different' of one relationship off a metric.

The attacker knows the learner, the public start and everything about the pairs but one bit: whether
a set of labels is as it is or flipped. Each target is played in both worlds; the attacker sees the
outcome and names the world. Right half of the time is what guessing gives. A plan caps it at
(1 + delta(0)) / 2, its best guess for as many replaced pairs as labels flip
(`pairveil.privacy.tradeoff.best_guess_of`).

What is flipped depends on what the attacker knows:

- ``all-other-pairs``: every other pair, so one label is open;
- ``all-but-key-pairs``: what is left without the target's key pairs. Labels chain ('same as the same' is
  'same'), so the open labels hang together and flip together;
- ``dropped-labels``: the labels that a selected fit dropped and all but a minimum cut of those it used
  (docs/theory/graph.md);
- ``two-halves``: every label inside each of two halves of the people and none between them. All pairs
  between the halves flip together, far more than kappa: this attacker knows *less* and learns more.
  No promise about kappa pairs covers it, and none can for a metric that is any good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph, csr_matrix

from pairveil.audit.canaries import Neighbours
from pairveil.data.embedded import label_pairs, load_patients
from pairveil.data.pairset import PairSet
from pairveil.errors import InputError
from pairveil.graph.choosing import select_pairs
from pairveil.graph.key_pairs import key_pairs

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
    """How one attacker fared against one learner.

    Attributes
    ----------
    recovered : float
        Share of the targets whose relationship the attacker named rightly; 0.5 is guessing.
    bound : float or None
        What the learner's promise allows: 1 where it promises nothing, None where its promise does not
        cover this attacker, who lacks more labels than it speaks of.
    """

    learner: str
    epsilon: float
    attacker: Attacker
    n_targets: int
    recovered: float
    bound: float | None

    def to_dict(self) -> dict[str, Any]:
        """The row for JSON."""
        return asdict(self)


class Patients(NamedTuple):
    """The attacked data: all labelled pairs, and which of them a selected fit uses."""

    all: PairSet
    used: NDArray[np.int64]


def patients(n_people: int = 300, random_state: int = 0) -> Patients:
    """Breast-cancer patients in a random graph with two pairs a person.

    Examples
    --------
    >>> data = patients(n_people=100)
    >>> data.all.n_pairs, len(data.used) < 100
    (200, True)
    """
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

    Parameters
    ----------
    data : PairSet
        All pairs.
    used : int array
        Those the learner uses.
    target : int
        Position of the target in `used`.

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
    one = np.ones(len(pairs), dtype=np.int8)
    graph = csr_matrix((one, (pairs[:, 0], pairs[:, 1])), shape=(n_people, n_people))
    _, part = csgraph.connected_components(graph, directed=False)
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

    Examples
    --------
    >>> rounds = list(games(patients(n_people=60), "all-other-pairs", 20, random_state=0))
    >>> play(lambda worlds, seed: 1, rounds)
    0.5
    """
    return float(np.mean([guess(worlds, seed) for worlds, seed in rounds])) / 2
