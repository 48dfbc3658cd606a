"""How every experiment is set up: scaling, who trains, which pairs, how a metric is scored.

The steps are those of docs/theory/learner.md, in its order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components
from sklearn.metrics import recall_score

from pairveil.array_types import FloatArray
from pairveil.errors import InputError
from pairveil.evaluation.scores import knn_guess, pair_auc
from pairveil.graph.choosing import design_pairs
from pairveil.records.embedded import label_pairs
from reproduction.data import Benchmark

Norm = Literal["l1", "l2"]
How = Literal["paths", "forest", "matching"]
#: Readings of 'as many similar as dissimilar pairs, two pairs a person' (the paper's Section VII-B).
GraphKind = Literal["random", "even", "blocks"]
#: People of a block: its pairs fill about one batch of 50.
BLOCK = 25


@dataclass(frozen=True)
class Split:
    """Training people and test people, scaled.

    ``X_train``, ``y_train``: features and classes of the people whose pairs may be used;
    ``X_test``, ``y_test``: everybody else.
    """

    name: str
    X_train: FloatArray
    y_train: NDArray[np.int64]
    X_test: FloatArray
    y_test: NDArray[np.int64]

    @property
    def n_people(self) -> int:
        """Number of training people, V."""
        return len(self.y_train)


@dataclass(frozen=True)
class LabelledPairs:
    """Index pairs of training people, label +1 (same class) or -1."""

    pairs: NDArray[np.int64]
    labels: NDArray[np.int8]


def scale(
    X: ArrayLike, norm: Norm = "l2", bounds: tuple[FloatArray, FloatArray] | None = None
) -> FloatArray:
    """Columns to [0, 1], then rows to norm at most 1.

    Without ``bounds`` those of the whole file serve and count as public (they are published with
    the benchmark); on private data they must be given from outside.

    Examples
    --------
    >>> scale([[0.0, 10.0], [2.0, 20.0]], norm="l1")
    array([[0. , 0. ],
           [0.5, 0.5]])
    """
    rows = np.asarray(X, dtype=np.float64)
    low, high = bounds if bounds is not None else (rows.min(axis=0), rows.max(axis=0))
    unit = (rows - low) / np.where(high > low, high - low, 1.0)
    size = np.linalg.norm(unit, ord=1 if norm == "l1" else 2, axis=1, keepdims=True)
    # a hair inside the ball, so that rounding puts no row outside its public bound
    scaled: FloatArray = unit / np.maximum(1.0, size * (1 + 1e-12))
    return scaled


def balanced_people(classes: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
    """As many people of each class as the smallest class has, at random."""
    codes = np.asarray(classes)
    names, sizes = np.unique(codes, return_counts=True)
    kept = [rng.permutation(np.flatnonzero(codes == name))[: sizes.min()] for name in names]
    return np.sort(np.concatenate(kept)).astype(np.int64)


def make_split(
    benchmark: Benchmark, rng: np.random.Generator, norm: Norm = "l2", max_people: int | None = None
) -> Split:
    """Draw the training people; everyone else is test.

    Equal generators give equal people whatever ``norm`` is, so that methods with different
    scalings are compared on the same people.

    Parameters
    ----------
    norm : {"l2", "l1"}
        Row scaling; the paper's own algorithm takes l1.
    max_people : int, optional
        Fewer training people than the benchmark asks for, and at most as many test people
        (quick runs).

    Examples
    --------
    >>> from reproduction.data import load
    >>> split = make_split(load("breast_cancer"), np.random.default_rng(0))
    >>> split.X_train.shape, split.X_test.shape
    ((398, 30), (171, 30))
    """
    X, classes = scale(benchmark.X, norm, benchmark.bounds), benchmark.classes
    everyone = np.arange(len(classes))
    pool = balanced_people(classes, rng) if benchmark.downsample else everyone
    chosen = rng.permutation(pool)
    train = np.sort(chosen[: min(benchmark.train_people, max_people or len(chosen))])
    test = np.setdiff1d(everyone, train)
    if max_people is not None and len(test) > max_people:
        test = np.sort(rng.permutation(test)[:max_people])
    return Split(benchmark.name, X[train], classes[train], X[test], classes[test])


def labelled(pairs: ArrayLike, classes: ArrayLike) -> LabelledPairs:
    """Pairs with the labels that people's classes give them."""
    index = np.asarray(pairs, dtype=np.int64)
    return LabelledPairs(index, label_pairs(index, classes))


def paper_graph(split: Split, rng: np.random.Generator, density: float = 2.0) -> LabelledPairs:
    """The paper's graph read as 'random': half similar, ``density`` pairs a person, none twice.

    Examples
    --------
    >>> from reproduction.data import load
    >>> rng = np.random.default_rng(0)
    >>> split = make_split(load("breast_cancer"), rng)
    >>> graph = paper_graph(split, rng)
    >>> len(graph.pairs), int((graph.labels == 1).sum())
    (796, 398)
    """
    people, classes = split.n_people, split.y_train
    wanted = round(density * people / 2)
    sizes = np.bincount(classes)
    similar = int((sizes * (sizes - 1) // 2).sum())
    if min(similar, people * (people - 1) // 2 - similar) < wanted:
        raise InputError(
            f"{people} people of these classes do not have {wanted} pairs of each kind"
        )
    codes = np.empty(0, dtype=np.int64)
    kept: dict[int, NDArray[np.int64]] = {}
    while len(kept) < 2:
        drawn = np.sort(rng.integers(people, size=(8 * wanted, 2)), axis=1)
        drawn = drawn[drawn[:, 0] < drawn[:, 1]]
        codes = np.concatenate([codes, drawn[:, 0] * people + drawn[:, 1]])
        # first occurrence, in the order drawn
        codes = codes[np.sort(np.unique(codes, return_index=True)[1])]
        same = classes[codes // people] == classes[codes % people]
        kept = {
            label: codes[same == (label > 0)][:wanted]
            for label in (1, -1)
            if np.count_nonzero(same == (label > 0)) >= wanted
        }
    chosen = rng.permutation(np.concatenate([kept[1], kept[-1]]))
    return labelled(np.column_stack([chosen // people, chosen % people]), classes)


def even_graph(
    split: Split, rng: np.random.Generator, people: NDArray[np.int64] | None = None
) -> LabelledPairs:
    """The paper's graph read as 'even': everybody in two similar and two dissimilar pairs, degree 4.

    Table I has as many similar and as many dissimilar pairs as people, one of each kind a person. So
    everybody opens one pair of each kind and closes one: a cycle through each class, and two matchings
    across classes. Classes of unequal size leave a few of the larger one without a dissimilar pair.
    ``people`` takes some only.

    Examples
    --------
    >>> split = Split("made", np.zeros((8, 1)), np.repeat([0, 1], 4), np.zeros((0, 1)), np.zeros(0, int))
    >>> graph = even_graph(split, np.random.default_rng(0))
    >>> np.bincount(graph.pairs.ravel()), int((graph.labels == 1).sum())
    (array([4, 4, 4, 4, 4, 4, 4, 4]), 8)
    """
    classes = split.y_train
    chosen = rng.permutation(np.arange(split.n_people) if people is None else people)
    groups = [chosen[classes[chosen] == c] for c in np.unique(classes[chosen])]
    found = [np.column_stack([group, np.roll(group, 1)]) for group in groups]
    in_order = np.concatenate([rng.permutation(group) for group in groups])
    half = len(in_order) // 2
    left, right = in_order[:half], in_order[half : 2 * half]
    for shift in (0, 1):
        across = np.column_stack([left, np.roll(right, shift)])
        found.append(across[classes[across[:, 0]] != classes[across[:, 1]]])
    pairs = np.sort(np.concatenate(found), axis=1)
    pairs = np.unique(
        pairs[pairs[:, 0] < pairs[:, 1]], axis=0
    )  # a cycle of one or two people is shorter
    return labelled(rng.permutation(pairs), classes)


def draw_graph(split: Split, kind: GraphKind, rng: np.random.Generator) -> LabelledPairs:
    """One of the three readings; 'blocks' is even in disjoint components of about one batch each."""
    if kind == "random":
        return paper_graph(split, rng)
    if kind == "even":
        return even_graph(split, rng)
    n_blocks = max(1, split.n_people // BLOCK)
    parts = [
        np.array_split(rng.permutation(np.flatnonzero(split.y_train == c)), n_blocks)
        for c in np.unique(split.y_train)
    ]
    blocks = [np.concatenate(block) for block in zip(*parts, strict=True)]
    pairs = np.concatenate([even_graph(split, rng, block).pairs for block in blocks])
    return labelled(rng.permutation(pairs), split.y_train)


def by_component(graph: LabelledPairs, rng: np.random.Generator) -> LabelledPairs:
    """The pairs so ordered that batches cut from them are collected from a component of the graph.

    The remark after Theorem 2 says so of 'usual' minibatches. Components come in random order, each by a
    breadth-first walk from a random person, so that batches of a connected graph hold neighbours too.
    """
    n = int(graph.pairs.max()) + 1
    shuffled = rng.permutation(n)  # scipy walks by number
    ends = shuffled[graph.pairs]
    links = sparse.coo_matrix((np.ones(len(ends)), ends.T), shape=(n, n)).tocsr()
    rank = np.empty(n, dtype=np.int64)
    _, component = connected_components(links, directed=False)
    reached = 0
    for root in np.unique(component, return_index=True)[1]:
        walk = breadth_first_order(links, root, directed=False, return_predecessors=False)
        rank[walk] = np.arange(reached, reached + len(walk))
        reached += len(walk)
    order = np.lexsort((rank[ends].max(axis=1), rank[ends].min(axis=1)))
    return LabelledPairs(graph.pairs[order], graph.labels[order])


def design(split: Split, how: How, rng: np.random.Generator) -> LabelledPairs:
    """Pairs that pairveil asks to have labelled (chosen before any label is seen)."""
    pairs = design_pairs(split.n_people, how=how, random_state=int(rng.integers(2**31)))
    return labelled(pairs, split.y_train)


def untrained(split: Split, n_components: int, rng: np.random.Generator) -> FloatArray:
    """A random projection: the metric that has seen nothing and must always be shown too."""
    shape = (n_components, split.X_train.shape[1])
    return rng.normal(scale=n_components**-0.5, size=shape)


def score(
    components: ArrayLike | None,
    split: Split,
    seed: int,
    *,
    n_pairs: int = 200_000,
    knn_people: int | None = None,
) -> dict[str, float]:
    """Pair AUC and nearest-neighbour accuracy (plain, class-balanced) on the test people.

    Parameters
    ----------
    components : array or None
        The metric; None is Euclidean.
    seed : int
        Fixes the test pairs (and the people that kNN is asked about), so that methods are compared
        on the same ones.
    n_pairs : int
        Class-balanced random test pairs.
    knn_people : int, optional
        Ask kNN about this many test people only; None is all of them. It is most of the cost.
    """
    X, classes = split.X_test, split.y_test
    asked = np.arange(len(classes))
    if knn_people is not None and knn_people < len(asked):
        asked = np.random.default_rng(seed).permutation(asked)[:knn_people]
    guess, truth = knn_guess(components, split.X_train, split.y_train, X[asked]), classes[asked]
    return {
        "pair_auc": pair_auc(components, X, classes, n_pairs, seed),
        "knn_accuracy": float(np.mean(guess == truth)),
        "knn_balanced": float(recall_score(truth, guess, labels=np.unique(truth), average="macro")),
    }
