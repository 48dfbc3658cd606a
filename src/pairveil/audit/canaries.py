"""Canaries: two neighbouring inputs that differ as much as a promise allows, for each kind of record.

A promise is about two inputs that differ in the contents of at most kappa records while who is in them stays
public. Any two may be audited: a class here refuses those that the promise does not cover. `worst_case` puts
a canary of pairs on the stage that makes all queries of a fit show it, and ``CANARIES`` in
`pairveil.audit.targets` says which kind a learner gets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.errors import InputError
from pairveil.privacy.units import Adjacency, Unit
from pairveil.records.choices import NO_CHOICE, Choices
from pairveil.records.groups import NO_CLASS, People
from pairveil.records.kinds import PEOPLE
from pairveil.records.pairset import PairSet
from pairveil.records.tupleset import ABSENT, FEWEST, TupleSet

if TYPE_CHECKING:
    from pairveil.learners.base import PrivateLearner

Input = TypeVar("Input")
CanaryName = Literal["label-flip", "beyond-margin", "person"]

SMALL_PEOPLE, SMALL_MEMBERS = 0.05, 0.02
"""Length of the others beside a person, and beside a tuple."""
OTHERS = 60
"""Other links, each between two points at one place."""
SHORT = 0.05
"""Length of the pairs on stage that lie in the canary's column, relative to the longest."""
REPLACED = 0.4
"""Length of the canary's dissimilar contents: no distance to the margin is too long."""


@dataclass(frozen=True)
class Inputs(Generic[Input]):
    """Two inputs that a promise must not let anyone tell apart: the same records with other contents."""

    first: Input  # for zero-out, the changed records of it are null
    second: Input
    adjacency: Adjacency
    name: str = "given"

    hides_features: ClassVar[bool] = True
    """Whether features are contents, so that an audit may turn them into other directions."""

    def __post_init__(self) -> None:
        """Refuse two inputs that no promise covers."""

    @property
    def changed(self) -> NDArray[np.intp]:
        """Positions of the records whose contents differ."""
        raise NotImplementedError

    @property
    def kappa(self) -> int:
        """How many records' contents differ."""
        return len(self.changed)


# ---- pairs ------------------------------------------------------------------------------------


class Neighbours(Inputs[PairSet]):
    """Two inputs with the same pairs of people.

    Anything but the changed pairs is null (equal people, difference 0, no gradient) in those made here, so
    that nothing hides the change:

    - zero-out: the pairs' contents against null;
    - replace: the pairs' contents against the same pairs with the label flipped, which turns a similar pair's
      gradient ``(W dx) dx^T`` into the opposite direction ``(1 - m/D) (W dx) dx^T`` while D < m.
    """

    def __post_init__(self) -> None:
        if self.first.labels is None or self.second.labels is None:
            raise InputError("neighbouring inputs need labels")
        if not np.array_equal(self.first.pairs, self.second.pairs):
            raise InputError(
                "neighbouring inputs have the same pairs of people: the topology is public"
            )
        if self.first.n_features != self.second.n_features:
            raise InputError("neighbouring inputs have the same features")
        if self.adjacency == "zero-out":
            contents = _dense(self.first)[self.changed]
            if contents.any():
                raise InputError(
                    "zero-out compares with nulls: the changed pairs of first must have none"
                )

    @property
    def changed(self) -> NDArray[np.intp]:
        """Positions of the pairs whose contents differ; a null pair's label is no content."""
        one, other = _dense(self.first), _dense(self.second)
        moved = (one != other).any(axis=1)
        contents = one.any(axis=1) | other.any(axis=1)
        return np.flatnonzero(moved | ((self.first.labels != self.second.labels) & contents))


def label_flip(
    n_features: int = 1,
    adjacency: Adjacency = "zero-out",
    *,
    n_pairs: int = 1,
    data_norm: float = 1.0,
) -> Neighbours:
    """One similar pair as far apart as the norm bound allows, so that its gradient is clipped.

    Against null, or against the flipped label; the other pairs are null. The difference is twice as long as
    ``data_norm`` and points along the first feature, so that the change is l1-concentrated.
    """
    return _star(1, n_pairs - 1, n_features, adjacency, data_norm, "label-flip", hub=False)


def relationship_pairs(
    kappa: int, n_features: int = 1, adjacency: Adjacency = "zero-out", *, data_norm: float = 1.0
) -> Neighbours:
    """Two people joined by ``kappa`` chains of two pairs: one end's pairs change, the rest is null.

    Examples
    --------
    >>> from pairveil.graph.kappa import kappa
    >>> chains = relationship_pairs(kappa=3)
    >>> kappa(chains.first).relationship, chains.kappa, chains.first.n_pairs
    (3, 3, 6)
    """
    star = _star(kappa, 0, n_features, adjacency, data_norm, "person", hub=True)
    far = np.column_stack([np.full(kappa, kappa + 1), np.arange(1, kappa + 1)])
    worlds = []
    for data in (star.first, star.second):
        # The other end is where the middle people are: her pairs have no contents.
        features = np.concatenate([data.features, data.features[1:2]])
        labels = np.concatenate([data.labels, np.ones(kappa, dtype=np.int8)])
        worlds.append(PairSet(features, np.concatenate([data.pairs, far]), labels))
    return Neighbours(worlds[0], worlds[1], adjacency, "relationship")


def canary_of(
    unit: Unit, kappa: int, n_features: int, adjacency: Adjacency, *, data_norm: float = 1.0
) -> Neighbours:
    """The worst case for a protected unit: a pair, a relationship or a person."""
    if unit == "pair":
        if kappa != 1:
            raise InputError("the unit 'pair' is one pair: kappa must be 1")
        return label_flip(n_features, adjacency, data_norm=data_norm)
    if unit == "relationship":
        return relationship_pairs(kappa, n_features, adjacency, data_norm=data_norm)
    if unit != "person":
        raise InputError("unit must be 'pair', 'relationship' or 'person'")
    return _star(kappa, 0, n_features, adjacency, data_norm, "person", hub=True)


def beyond_margin(n_pairs: int, n_features: int = 1) -> Neighbours:
    """Dissimilar pairs that all lie beyond the margin, of which one becomes similar.

    No pair of the first input has a gradient, so whatever is read off the largest gradient of the
    batch (published DPP-S) jumps. Needs a start W that puts the pairs beyond the margin.
    """
    features = np.zeros((2 * n_pairs, n_features))
    features[0::2, 0], features[1::2, 0] = 1.0, -1.0
    pairs = np.arange(2 * n_pairs).reshape(-1, 2)
    labels = np.full(n_pairs, -1, dtype=np.int8)
    turned = np.append(np.ones(1, dtype=np.int8), labels[1:])
    worlds = PairSet(features, pairs, labels), PairSet(features, pairs, turned)
    return Neighbours(*worlds, "replace", "beyond-margin")


def _star(
    changed: int,
    nulls: int,
    n_features: int,
    adjacency: Adjacency,
    data_norm: float,
    name: CanaryName,
    *,
    hub: bool,
) -> Neighbours:
    """``changed`` equal pairs, on one hub or on people of their own, and null pairs beside them."""
    if changed < 1 or nulls < 0:
        raise InputError("a canary changes at least one pair and no more than there are")
    if adjacency not in ("zero-out", "replace"):
        raise InputError("adjacency must be 'zero-out' or 'replace'")
    arrow = data_norm * np.eye(n_features)[0]
    if hub:
        pairs = np.column_stack([np.zeros(changed, dtype=np.int64), np.arange(1, changed + 1)])
    else:
        pairs = np.arange(2 * changed).reshape(-1, 2)
    n_changed = int(pairs.max()) + 1
    features = np.zeros((n_changed + 2 * nulls, n_features))
    features[pairs[:, 0]], features[pairs[:, 1]] = arrow, -arrow
    others = n_changed + np.arange(2 * nulls).reshape(-1, 2)
    pairs = np.concatenate([pairs, others])
    labels = np.ones(len(pairs), dtype=np.int8)
    second = PairSet(features, pairs, labels)
    if adjacency == "replace":
        flipped = labels.copy()
        flipped[:changed] = -1
        first = PairSet(features, pairs, flipped)
    else:
        first = PairSet(np.zeros_like(features), pairs, labels)
    return Neighbours(first, second, adjacency, name)


def _dense(pairs: PairSet) -> NDArray[np.float64]:
    rows = pairs.differences()
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


# ---- a whole fit on pairs ---------------------------------------------------------------------


def worst_case(
    unit: Unit,
    kappa: int,
    n_features: int,
    adjacency: Adjacency,
    n_others: int,
    *,
    data_norm: float = 1.0,
) -> Neighbours:
    """A unit's pairs among others that keep them visible throughout a fit.

    A fit is a chain of queries, and a canary that is loud in one may be silent in the next: the signal is
    blind to a pair that points along all columns, a gradient is 0 where W is, a dissimilar pair beyond the
    margin pulls nowhere. The attacker knows all other pairs, so they may be chosen as well; here they set the
    stage:

    - as many similar as dissimilar pairs: the balanced weights are 1 for both labels;
    - zero-out: dissimilar ones, short and in the canary's column, pull W there as long as the margin allows,
      so that the canary, similar and long, is clipped at every step, however little noise there is;
    - replace: similar ones, short and in the canary's column, pull W there to the size of its noise, small
      enough for a dissimilar canary to lie within the margin and, the canary being long, large enough for a
      similar one to be clipped (with much less noise, or in a few large steps, W ends too short for that);
    - the others, long and in the other columns: differences have their full length, and the learned metric
      ranks the canary far from where Euclid does.

    The survey stays what it is: its contributions have no negative entries, so replacing a pair never moves
    it by twice the clip bound (by 0.65 of that at most, by 0.22 in this case); the accounting charges twice
    all the same.

    The ``n_others`` pairs, of people of their own, are the same in both inputs, and must be many enough to be
    heard through the noise.
    """
    canary = canary_of(unit, kappa, n_features, adjacency, data_norm=data_norm)
    people, similar = _on_stage(n_others, n_features, data_norm)
    labels = similar if adjacency == "replace" else -similar
    # Zero-out compares with nulls; replace with a shorter pair that has the other label.
    worlds = [
        _add(canary.first, people, labels, REPLACED if adjacency == "replace" else 1.0),
        _add(canary.second, people, labels, 1.0),
    ]
    return Neighbours(worlds[0], worlds[1], adjacency, canary.name)


def _on_stage(n: int, d: int, data_norm: float) -> tuple[np.ndarray, np.ndarray]:
    """People and labels of the pairs on stage: half similar in column 0, half dissimilar elsewhere.

    Zero-out turns the labels around.
    """
    similar = n // 2
    columns = np.eye(d)[1:] if d > 1 else np.eye(1)
    ends = np.concatenate(
        [
            np.tile(SHORT * np.eye(d)[0], (similar, 1)),
            columns[np.arange(n - similar) % len(columns)],
        ]
    )
    people = np.empty((2 * n, d))
    people[0::2], people[1::2] = data_norm * ends, -data_norm * ends
    return people, np.where(np.arange(n) < similar, 1, -1).astype(np.int8)


def _add(data: PairSet, people: np.ndarray, labels: np.ndarray, length: float) -> PairSet:
    assert data.labels is not None
    features = np.concatenate([length * np.asarray(data.features), people])
    pairs = data.n_people + np.arange(len(people)).reshape(-1, 2)
    return PairSet(
        features, np.concatenate([data.pairs, pairs]), np.concatenate([data.labels, labels])
    )


# ---- people -----------------------------------------------------------------------------------


class PeopleNeighbours(Inputs[People]):
    """Two inputs of people that differ in the contents of a few of them.

    The others are many and small, in two classes, so that the released centre is near zero and the released
    scale is theirs. The canary is as long as a row may be: after scaling she is shortened to length 1, and
    her contribution is as long as the clip bound allows. Compared with null that moves every sum by all of
    its charge. Replaced by her opposite in the same class it moves class sums by twice their weight and
    nothing else: three quarters of the charge (docs/theory/records.md says what the most is).
    """

    def __post_init__(self) -> None:
        same = self.first.features.shape == self.second.features.shape
        if not same or self.first.n_classes != self.second.n_classes:
            raise InputError("neighbouring inputs have as many people, features and classes")
        if self.adjacency == "zero-out" and (self.first.classes[self.changed] != NO_CLASS).any():
            raise InputError("zero-out compares with nulls: changed people of first have no class")

    @property
    def changed(self) -> NDArray[np.intp]:
        """Positions of the people whose contents differ."""
        moved = (np.asarray(self.first.features) != np.asarray(self.second.features)).any(axis=1)
        return np.flatnonzero(moved | (self.first.classes != self.second.classes))


def person_canary(
    n_people: int = 1,
    n_features: int = 3,
    adjacency: Adjacency = "zero-out",
    n_others: int = 4000,
    data_norm: float = 1.0,
    n_classes: int = 2,
) -> PeopleNeighbours:
    """One person, or a few, against null or against their opposites, among ``n_others`` small ones."""
    rng = np.random.default_rng(0)
    others = (
        rng.choice([-1.0, 1.0], size=(n_others, n_features)) * SMALL_PEOPLE / np.sqrt(n_features)
    )
    loud = np.zeros((n_people, n_features))
    loud[:, 0] = 1.0
    features = data_norm * np.concatenate([loud, others])
    classes = np.concatenate([np.zeros(n_people, dtype=int), np.arange(n_others) % n_classes])
    opposite, elsewhere = features.copy(), classes.copy()
    opposite[:n_people] *= -1.0
    if adjacency == "zero-out":
        elsewhere[:n_people] = NO_CLASS
    neighbours = (People(opposite, elsewhere, n_classes), People(features, classes, n_classes))
    return PeopleNeighbours(*neighbours, adjacency, "person")


def canary_of_people(learner: PrivateLearner, kappa: int, n_features: int) -> PeopleNeighbours:  # noqa: ARG001
    """As many people as a learner's unit touches: one, or two for a fact about two people.

    Those are among three classes: two classes would be learned from pairs, where they are what it protects.
    """
    n_people = PEOPLE.touches[learner.unit]
    return person_canary(
        n_people,
        n_features,
        learner.adjacency,
        data_norm=learner.data_norm,
        n_classes=1 + n_people,
    )


# ---- tuples -----------------------------------------------------------------------------------


class TupleNeighbours(Inputs[TupleSet]):
    """Two inputs of tuples that differ in the contents of a few of them.

    The others are small and their own people, so that the released scale is theirs; the canary's members are
    as far from its anchor as rows may be, and each of its contributions is as long as the clip bound allows.
    Compared with null that moves a sum by all of its charge. Replaced by the opposite answer (positive and
    negatives exchanged) it turns the contrast around: twice the clip bound.
    """

    def __post_init__(self) -> None:
        if not np.array_equal(self.first.tuples, self.second.tuples):
            raise InputError(
                "neighbouring inputs have the same members: who is in a tuple is public"
            )
        first = self.first.order
        assert first is not None
        if self.adjacency == "zero-out" and (first[self.changed] != ABSENT).any():
            raise InputError("zero-out compares with nulls: changed tuples of first are null")

    @property
    def changed(self) -> NDArray[np.intp]:
        """Positions of the tuples whose contents differ."""
        rows = (np.asarray(one.features) for one in (self.first, self.second))
        moved = np.logical_or.reduce(next(rows) != next(rows), axis=1)
        before, after = np.asarray(self.first.order), np.asarray(self.second.order)
        return np.flatnonzero(
            np.any(before != after, axis=1) | moved[self.first.tuples].any(axis=1)
        )


def tuple_canary(
    unit: Unit,
    kappa: int = 1,
    n_features: int = 3,
    adjacency: Adjacency = "zero-out",
    size: int = 3,
    n_others: int = 3000,
    data_norm: float = 1.0,
) -> TupleNeighbours:
    """All tuples of one person, or of two people, against null or against the opposite answers."""
    shared = 1 if unit == "person" else 2  # people that all changed tuples have in common
    own = shared + (size - shared) * np.arange(kappa + 1)
    loud = [[*range(shared), *range(own[i], own[i + 1])] for i in range(kappa)]
    n_loud = int(own[-1])
    quiet = n_loud + np.arange(size * n_others).reshape(n_others, size)
    tuples = np.concatenate([np.array(loud), quiet])
    rng = np.random.default_rng(0)
    features = rng.choice([-1.0, 1.0], size=(n_loud + size * n_others, n_features)) * SMALL_MEMBERS
    features /= np.sqrt(n_features)
    # The anchor at one end, the first other (the positive) opposite, the negatives where it is.
    axes = np.eye(n_features)
    features[:n_loud] = axes[0]
    for members in loud:
        features[members[1]] = -axes[0]
    order = np.tile(np.arange(size, dtype=np.int8), (len(tuples), 1))
    second = TupleSet(data_norm * features, tuples, order)
    is_canary = np.arange(len(tuples)) < kappa
    if adjacency == "zero-out":
        return TupleNeighbours(second.emptied(is_canary), second, adjacency, unit)
    turned = order.copy()
    # Another anchor: the one opposite. And whoever was near is far now.
    turned[:kappa, :3] = [0, 2, 1]
    return TupleNeighbours(second.with_order(turned), second, adjacency, unit)


def canary_of_tuples(
    learner: PrivateLearner, kappa: int, n_features: int, size: int | None = None
) -> TupleNeighbours:
    """The worst case for a learner's unit: by default triplets, or two pairs for a loss of pairs."""
    if size is None:
        size = 4 if getattr(learner, "loss", "") == "pairs" else FEWEST
    return tuple_canary(
        learner.unit, kappa, n_features, learner.adjacency, size, data_norm=learner.data_norm
    )


# ---- choices ----------------------------------------------------------------------------------


class ChoiceNeighbours(Inputs[Choices]):
    """Two inputs of choices that differ in what was chosen, by one worker or once.

    Under 'worker' she prefers the same item again and again, so that her choices add up to the longest vector
    and are clipped to the bound: null, or turned round, they move the sum by all of their charge. A single
    'choice' inside a worker is worst where everybody was asked once (``asked=1``): turned round it moves the
    sum by 2 clips. As null it moves it by 1, of 2 charged: in l2 no choice inside a worker moves more
    (docs/theory/records.md), and that is not relied on.
    """

    hides_features = False  # the items are public

    def __post_init__(self) -> None:
        one, two = self.first, self.second
        same = len(one.pairs) == len(two.pairs) and bool((one.pairs == two.pairs).all())
        if not same or not (one.workers == two.workers).all():
            raise InputError("neighbouring inputs have the same workers and the same questions")
        moved = one.labels != two.labels
        if self.adjacency == "zero-out" and (one.labels[moved] != NO_CHOICE).any():
            raise InputError("zero-out compares with nulls: changed choices of first are null")

    @property
    def changed(self) -> NDArray[np.intp]:
        """Positions of the records whose contents differ."""
        rows = np.flatnonzero(self.first.labels != self.second.labels)
        return np.unique(np.searchsorted(self.second.edges(), rows, side="right") - 1)


def choice_canary(
    unit: Literal["choice", "worker"] = "worker",
    adjacency: Adjacency = "zero-out",
    *,
    n_others: int = 50,
    n_items: int = 4,
    asked: int = 6,
) -> ChoiceNeighbours:
    """One worker's choices, or one choice, against null or the opposite, among ``n_others`` workers."""
    rng = np.random.default_rng(0)
    of_canary = 1 if unit == "choice" else asked
    left = rng.integers(n_items, size=n_others * asked)
    right = (left + rng.integers(1, n_items, size=n_others * asked)) % n_items
    pairs = np.concatenate([np.tile([0, 1], (of_canary, 1)), np.column_stack([left, right])])
    workers = np.repeat(np.arange(n_others + 1), [of_canary, *[asked] * n_others])
    labels = np.concatenate([np.ones(of_canary), rng.choice([-1, 1], n_others * asked)])
    second = Choices(workers, pairs, labels, sparse.eye_array(n_items, format="csr"))
    other = second.labels.copy()
    other[:of_canary] = NO_CHOICE if adjacency == "zero-out" else -other[:of_canary]
    return ChoiceNeighbours(replace(second, labels=other), second, adjacency, unit)


def canary_of_choices(learner: Any, kappa: int, n_features: int) -> ChoiceNeighbours:  # noqa: ARG001
    """The worst case for a ranker's own unit and adjacency; ``n_features`` is the number of items."""
    made = choice_canary(learner.unit, learner.adjacency, n_items=max(2, n_features))
    worlds = [replace(world, by=learner.unit) for world in (made.first, made.second)]
    return ChoiceNeighbours(worlds[0], worlds[1], made.adjacency, made.name)


# ---- links ------------------------------------------------------------------------------------


class LinkNeighbours(Inputs[PairSet]):
    """Two inputs with the same points and links, some of which say something else.

    The points are public, so two inputs differ in what links say alone: null (label 0) or the opposite.
    Counts are divided by the longest row of votes among the links, whatever clusterings the learned metric
    adds. So the other links join points at one place, which every clustering puts together: their rows are 0,
    and the canary's row is the longest. Links of one person all go to one place: their rows are equal and add
    up.
    """

    hides_features = False  # the points are public

    @property
    def changed(self) -> NDArray[np.intp]:
        """Positions of the links that differ."""
        return np.flatnonzero(np.asarray(self.first.labels) != np.asarray(self.second.labels))


def canary_of_links(learner: Any, kappa: int, n_features: int) -> LinkNeighbours:
    """``kappa`` links of one point (a pair, a relationship: one) against null or the opposite, among others.

    No links close a circle here, so a relationship is in one link alone.
    """
    from pairveil.learners.clustering import candidates, votes_of

    if learner.unit != "person":
        kappa = 1
    rng = np.random.default_rng(0)
    copies = max(2, kappa)
    places = rng.normal(size=(max(2 * OTHERS, 4 * learner.n_clusters), n_features))
    places /= np.sqrt((places**2).sum(axis=1)).max() * (1 + 1e-12)
    points = np.repeat(places, copies, axis=0)
    labels = candidates(points, None, learner.n_clusters, spectral=learner.spectral)[1][:, ::copies]
    n = len(places)
    every = np.indices((n, n)).reshape(2, -1).T
    lengths = (votes_of(labels, every, "l2")[0] ** 2).sum(axis=1)
    hub, partner = every[int(lengths.argmax())]
    rest = copies * np.setdiff1d(np.arange(n), [hub, partner])[:OTHERS]
    star = np.column_stack([np.full(kappa, copies * hub), copies * partner + np.arange(kappa)])
    said = np.concatenate([np.ones(kappa), rng.choice([-1, 1], OTHERS)]).astype(np.int8)
    links = PairSet(points, np.concatenate([star, np.column_stack([rest, rest + 1])]), said)
    second = links.canonical()[0]
    changed = (second.pairs == copies * hub).any(axis=1)
    if learner.adjacency == "zero-out":
        first = second.emptied(changed)
    else:
        first = second.replace(labels=np.where(changed, -1, np.asarray(second.labels)))
    return LinkNeighbours(first, second, learner.adjacency, "links")
