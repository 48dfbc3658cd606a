"""PrivatePreferenceRanker: a ranking of items from workers' choices, under differential privacy.

One noisy sum is released: chosen minus other, in the items' features, over all choices, where all choices
of a worker are clipped as one record. Strengths, ranking and how sure it is are post-processing. What a
worker and a choice can move is proved in docs/theory/records.md.

In a logistic model of differences (Bradley-Terry, where items have no features) a choice is +1 with
probability ``1 / (1 + exp(-<b, x>))`` for the public difference x of the two items' features. The sum of
``y x`` over all choices says all that the choices say about b, and everything else in the likelihood is
public. So one noisy sum is enough: b is fitted to it by generalised least squares, with the noise in the
weights and a prior that keeps items about which nothing was heard near the mean (docs/theory/learner.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.utils.validation import check_is_fitted

from pairveil.array_types import FloatArray, IntArray
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Plan, PublicFacts, QuerySpec
from pairveil.engine.statistics import Statistic, dense_rows, row_norms, shrink
from pairveil.errors import DataWarning, IdentityWarning, InputError, PrivateNote, warn
from pairveil.learners.base import WITHOUT_ROWS, PrivateLearner
from pairveil.learners.inputs import Resolved, as_features, check_bound, check_share, is_whole
from pairveil.learners.preparing import Prepared, PreparedRecords, clusters_of
from pairveil.learners.recipes import fitted
from pairveil.privacy.grid import Norm
from pairveil.privacy.mechanisms import mechanism_named
from pairveil.privacy.units import UNITS_OF_CHOICES, Unit
from pairveil.records.choices import Choices
from pairveil.records.identity import count_similar
from pairveil.records.kinds import CHOICES, WORKERS

# ---- what is passed to ``fit``: choices between items with public features -----------------------

COLUMNS = ("worker", "chosen", "other")
"""The columns of a table of choices."""

MOST_FEATURES = 4096
"""More columns, or items without features, than this are too many to solve for."""


class Items(NamedTuple):
    """The items, which are public."""

    names: tuple[Any, ...] | None  # what choices call them; None: row numbers
    features: Any
    featured: bool  # whether they have features


def as_items(items: Any) -> Items:
    """Items from their number, a list of names, or a table of features."""
    if is_whole(items):
        return _bare(int(items), None)
    if hasattr(items, "index") and hasattr(
        items, "columns"
    ):  # a DataFrame: its index names the items
        names, features = _distinct(items.index.tolist()), as_features(items)
        return Items(names, _finite(features), True)
    array = np.asarray(items)
    if array.ndim == 1:
        return _bare(len(array), _distinct(array.tolist()))
    return Items(None, _finite(as_features(items)), True)


def _bare(n: int, names: tuple[Any, ...] | None) -> Items:
    if n < 2:
        raise InputError("there must be at least two items to choose between")
    if n > MOST_FEATURES:
        raise InputError(
            f"at most {MOST_FEATURES} items can be ranked without features; got {n}: give their features"
        )
    return Items(names, sparse.eye_array(n, format="csr"), False)


def _distinct(names: list[Any]) -> tuple[Any, ...]:
    if len(set(names)) != len(names):
        raise InputError("an item is listed twice")
    return tuple(names)


def _finite(features: Any) -> FloatArray:
    dense = dense_rows(features)
    n, d = dense.shape
    if n < 2:
        raise InputError("there must be at least two items to choose between")
    if d > MOST_FEATURES:
        raise InputError(f"items have at most {MOST_FEATURES} features; got {d}")
    if not np.isfinite(dense).all():
        raise InputError(
            "a feature of an item is missing or infinite: items are public, complete them"
        )
    widest = float(np.abs(dense).max()) if d else 0.0
    if widest == 0.0:
        raise InputError("all features of all items are zero")
    return dense


def as_choices(choices: Any, items: Items, by: Any) -> Choices:
    """Choices from a table with columns worker, chosen, other, or from an array of such rows."""
    if isinstance(choices, Choices):
        return replace(choices, features=items.features, by=by, weights=None)
    if hasattr(choices, "columns"):
        missing = [name for name in COLUMNS if name not in choices.columns]
        if missing:
            raise InputError(
                f"choices have no column '{missing[0]}': they need {', '.join(COLUMNS)}"
            )
        workers, chosen, other = (np.asarray(choices[name]) for name in COLUMNS)
    else:
        listed = isinstance(choices, list | tuple)  # names of workers may stand beside item numbers
        array = np.asarray(choices, dtype=object if listed else None)
        if array.ndim != 2 or array.shape[1] != 3:
            raise InputError(
                "choices must have shape (n_choices, 3): worker, item chosen, other item; "
                f"got {array.shape}"
            )
        workers, chosen, other = (np.asarray(c.tolist()) if listed else c for c in array.T)
    pairs = np.column_stack([_numbers(chosen, items, "chosen"), _numbers(other, items, "other")])
    made = Choices(workers, pairs, np.ones(len(pairs), dtype=np.int8), items.features, by)
    similar = (
        count_similar(np.unique(made.workers).astype(object))
        if made.workers.dtype.kind == "U"
        else 0
    )
    if similar:
        warn(
            f"{similar} workers' names differ from another one only in case, outer spaces or Unicode form, "
            "and each counts as a worker: if they are the same people, they are protected by half; give "
            "everyone one name",
            IdentityWarning,
        )
    return made


def _numbers(values: NDArray[Any], items: Items, column: str) -> NDArray[np.int64]:
    """Row numbers of items. Which items were asked about is public, so an unknown one is an error."""
    if items.names is None:
        if values.dtype.kind not in "iu":
            raise InputError(f"column '{column}' must hold item numbers, or give items by name")
        return values.astype(np.int64)
    place: dict[Any, int] = {}
    for number, name in enumerate(items.names):  # an array of mixed columns makes text of numbers
        place[name] = place[str(name)] = number
    found = np.array([place.get(one, -1) for one in values.tolist()], dtype=np.int64)
    if found.size and found.min() < 0:
        raise InputError(
            f"column '{column}' names an item that is not listed, first at row {int(np.argmin(found))}"
        )
    return found


def whitened(choices: Choices) -> tuple[Choices, FloatArray]:
    """The same choices over features whose differences have unit covariance, and the way to get there.

    Which differences were asked for is public. After whitening, the same noise on every column costs the same
    information in every direction.
    """
    features = np.asarray(choices.features, dtype=np.float64)
    widest = float(np.abs(features).max())
    features = features / widest
    apart = replace(choices, features=features).differences()
    values, vectors = np.linalg.eigh(apart.T @ apart / len(apart))
    if values[-1] <= 1e-24:
        raise InputError("no two items that were chosen between differ in any feature")
    solid = values > 1e-9 * values[-1]
    to = vectors * np.where(solid, 1 / np.sqrt(np.where(solid, values, 1.0)), 0.0)
    return replace(choices, features=features @ to), to / widest


def record_weights(choices: Choices, norm: str, loud: float, *, private: bool) -> FloatArray:
    """Public factors that bring records to about the same length, at most 1.

    A record's length is guessed from what was asked: ``loud`` times that of choices made by a coin, or that
    of all its differences laid end to end where that is less.
    """
    apart, edges = choices.differences(), choices.edges()
    squares = apart.multiply(apart).tocsr() if sparse.issparse(apart) else apart**2
    whose = np.repeat(np.arange(choices.n_records), np.diff(edges))
    of = sparse.csr_array(
        (np.ones(len(whose)), (whose, np.arange(len(whose)))), shape=(choices.n_records, len(whose))
    )
    by_column = dense_rows(of @ squares)
    if norm == "l1":
        lengths = np.asarray(abs(apart).sum(axis=1)).ravel()
        by_coin = np.sqrt(by_column).sum(axis=1)
    else:
        lengths = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
        by_coin = np.sqrt(by_column.sum(axis=1))
    most = np.asarray(of @ lengths)
    if not private:
        return np.full(choices.n_records, 1.0 / float(most.max()))
    typical = np.minimum(loud * by_coin, most)
    middle = float(np.median(typical[typical > 0]))
    weights: FloatArray = 1.0 / np.maximum(typical, middle)
    assert math.isfinite(float(weights.max()))
    return weights


# ---- from the noisy sum to strengths, and how sure they are --------------------------------------

STEPS = 100
"""Most Newton steps; they stop when nothing moves."""

DRAWS = 10_000
"""Of strengths, for the critical value of simultaneous statements."""


@dataclass(frozen=True)
class AskedDifferences:
    """What is public about all choices together: which differences were asked for, and with what weight."""

    differences: Any  # each pair of items once
    weight: FloatArray  # sum of the public weights of its choices, and of their squares
    square: FloatArray

    def moments(self, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean of the sum of ``weight y x`` at b, its derivative in b, and its covariance."""
        half = np.asarray(self.differences @ b) / 2
        mean = np.tanh(half)
        spread = 1 - mean**2
        return (
            np.asarray(self.differences.T @ (self.weight * mean)),
            self._gram(self.weight * spread / 2),
            self._gram(self.square * spread),
        )

    def _gram(self, by: FloatArray) -> FloatArray:
        x = self.differences
        if sparse.issparse(x):
            return np.asarray((x.T @ (sparse.diags_array(by) @ x)).todense())
        return np.asarray(x.T @ (by[:, None] * x))


def fit_strengths(
    asked: AskedDifferences, answer: FloatArray, noise: float, prior_std: float
) -> tuple[FloatArray, FloatArray]:
    """Coefficients and their covariance, from the noisy sum of ``weight y x`` over all choices."""
    d = len(answer)
    b, prior = np.zeros(d), np.eye(d) / prior_std**2
    precision = prior
    damping = 1.0
    last = math.inf
    for _ in range(STEPS):
        mean, slope, spread = asked.moments(b)
        tiny = 1e-9 * max(float(np.trace(spread)) / d, 1e-300)
        weighed = linalg.solve(spread + (noise**2 + tiny) * np.eye(d), slope, assume_a="pos").T
        precision = weighed @ slope + prior
        step = linalg.solve(precision, weighed @ (answer - mean) - prior @ b, assume_a="pos")
        length = float(np.abs(step).max())
        damping = damping / 2 if length > last else min(1.0, 1.5 * damping)
        b, last = b + damping * step, length
        if length < 1e-9 * prior_std:
            break
    return b, np.asarray(linalg.inv((precision + precision.T) / 2))


def rank_sets(
    strengths: FloatArray, covariance: FloatArray, confidence: float
) -> tuple[IntArray, IntArray]:
    """Best and worst rank of each item that no statement about two items rules out.

    With the stated confidence *all* true ranks are in their sets: each difference of two strengths gets an
    interval, all of them hold together, and an item's best rank is one more than the number of items above
    it for certain.

    Returns two integer arrays of shape (n,), low and high; ranks count from 1, the best.
    """
    n = len(strengths)
    variances = np.diag(covariance)
    spread = np.sqrt(np.maximum(variances[:, None] + variances[None, :] - 2 * covariance, 1e-300))
    critical = _critical(covariance, spread, confidence)
    above = strengths[None, :] - strengths[:, None] > critical * spread  # [i, j]: j is above i
    return above.sum(axis=1) + 1, n - above.sum(axis=0)


def _critical(covariance: FloatArray, spread: FloatArray, confidence: float) -> float:
    """What the largest of all standardised differences exceeds with probability 1 - confidence.

    By simulation with a fixed seed: the covariance is released, so this is arithmetic and no secret.
    """
    n = len(covariance)
    draws = max(1000, min(DRAWS, 20_000_000 // (n * n)))
    values, vectors = linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = np.random.default_rng(0).standard_normal((draws, n)) @ root.T
    largest = np.zeros(draws)
    for i in range(n):
        apart = np.abs(drawn - drawn[:, [i]]) / spread[i]
        np.maximum(largest, apart.max(axis=1), out=largest)
    return float(np.quantile(largest, confidence))


# ---- the learner ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class RankingNumbers:
    """The fitted number of rankings."""

    coin_lengths: float = fitted(
        1.0,
        "clip of a worker, in lengths of choices by coin",
        "benchmarks/results, rankings",
        0.0,
        -0.032,
    )


NUMBERS = RankingNumbers()

MOST_RANKED = 2000
"""Confidence sets compare every two items: above so many items there are none."""


@dataclass(frozen=True)
class NetChoices(Statistic):
    """Chosen minus other, summed over the choices of each record and clipped record by record.

    A record's contribution is the sum of its rows, shortened to length 1 as a whole.
    """

    n_features: int
    clip = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a column."""
        return (self.n_features,)

    def tile_sum(self, differences: Any, labels: IntArray, norm: Norm) -> FloatArray:
        """Sum of the clipped contributions; ``labels`` says which record of the tile a row belongs to."""
        owners = labels
        if not len(owners):
            return np.zeros(self.shape)
        whole = sparse.csr_array(
            (np.ones(len(owners)), owners, np.arange(len(owners) + 1)),
            shape=(len(owners), int(owners[-1]) + 1),
        ).T
        sums = whole @ differences  # a record's row depends on its own choices alone
        factor = shrink(row_norms(sums, norm), self.clip)
        return np.asarray(factor @ sums, dtype=np.float64).ravel()


class Ranked(NamedTuple):
    """What the recipe makes of the answer."""

    coefficients: FloatArray
    covariance: FloatArray


@dataclass(frozen=True)
class RankingRecipe:
    """One noisy sum, and coefficients fitted to it."""

    asked: AskedDifferences  # what is public about the choices
    items: Items
    # From coefficients to those of the items' own features; None where items have no features
    back: FloatArray | None
    prior_std: float
    headline = "choices"

    def ask(self, facts: PublicFacts) -> tuple[QuerySpec, ...]:
        """Everything goes into one sum."""
        return (QuerySpec("choices", (facts.n_features,), 1.0),)

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {"prior_std": self.prior_std, "item_features": self.items.featured}

    def run(self, plan: Plan, engine: Engine) -> Ranked:
        """Ask, and fit."""
        query = plan["choices"]
        answer = engine.answer(query, NetChoices(plan.n_features))
        noise, prior = query.noise_std(NetChoices.clip), self.prior_std
        if (
            self.items.featured
        ):  # two items' strengths differ by about prior_std * sqrt(2) in either case
            prior *= float(np.sqrt(2 / plan.n_features))
        return Ranked(*fit_strengths(self.asked, answer, noise, prior))


class PrivatePreferenceRanker(PrivateLearner):
    """Rank items from workers' choices between two of them, under differential privacy.

    With features of the items, strengths are linear in them (logistic regression on differences); without,
    every item has a strength of its own (Bradley-Terry). The items, who was asked and about what is public;
    what was chosen is private.

    Parameters
    ----------
    epsilon, delta
        As for every learner.
    unit : {'worker', 'choice'}
        What is protected: everything that a worker chose, clipped as one record; or one choice.
    prior_std : float, default 2.0
        How far strengths (log odds) spread before anything is heard. Public.
    confidence : float, default 0.95
        That all true ranks are in their sets.
    **common
        As for every learner.

    Attributes
    ----------
    strengths_ : array of shape (n_items,)
        Log odds; their mean is 0.
    ranking_ : array of shape (n_items,)
        Items, the best first: names where they have some, else row numbers.
    rank_low_, rank_high_ : arrays of shape (n_items,), or None above 2,000 items
        Best and worst rank of each item that is not ruled out. They hold for workers whose choices follow
        the model, each independently of her others.
    coef_ : array of shape (n_features,) or None
        Of the items' features.
    certificate_ : Certificate or None
        None when epsilon is infinite.
    kappa_ : int
    noise_multiplier_ : float

    Examples
    --------
    >>> from pairveil import PrivatePreferenceRanker
    >>> rng = np.random.default_rng(0)
    >>> taste = np.array([1.5, 0.5, -0.5, -1.5])
    >>> left, right = np.array([rng.choice(4, 2, replace=False) for _ in range(4000)]).T
    >>> first = rng.random(4000) < 1 / (1 + np.exp(taste[right] - taste[left]))
    >>> choices = np.column_stack([np.arange(4000) // 10, np.where(first, left, right),
    ...                            np.where(first, right, left)])
    >>> ranker = PrivatePreferenceRanker(epsilon=1.0, random_state=0).fit(choices, items=4)
    >>> ranker.ranking_.tolist(), ranker.certificate_.unit, ranker.kappa_
    ([0, 1, 2, 3], 'worker', 1)
    >>> ranker.certificate_.verify().problems
    ()
    """

    learns_from = ("choices",)
    _fixed = WITHOUT_ROWS | {"select": "all", "kappa": "auto"}
    _kinds, _units = (CHOICES.name, WORKERS.name), UNITS_OF_CHOICES

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        unit: Unit = "worker",
        prior_std: float = 2.0,
        confidence: float = 0.95,
        **common: Any,
    ) -> None:
        super().__init__(epsilon, delta, unit, **common)
        self.prior_std = prior_std
        self.confidence = confidence

    def fit(self, choices: Any, items: Any = None, **watching: Any) -> Self:  # type: ignore[override]
        """Rank, and issue the certificate.

        Parameters
        ----------
        choices : DataFrame with columns worker, chosen and other, array of such rows, or Choices
            `pairveil.records.choices.Choices` can also hold null choices. A worker may contradict herself.
        items : int, list of names, DataFrame or array of shape (n_items, n_features)
            How many there are, what they are called, or their features (rows of a DataFrame are called by its
            index). Public.
        **watching
            ``on_step``, ``on_answer``, ``checkpoint`` and ``keep_checkpoint`` as for other learners.

        Returns
        -------
        self
        """
        return super().fit(choices, items, **watching)

    def _check(self, given: Any, n_features: int) -> None:
        del n_features
        check_bound("prior_std", given.prior_std)
        check_share("confidence", given.confidence)

    def _resolve(self, given: Any, data: Any, y: Any, *, items: Any = None) -> Resolved:
        """Choices as records of about the same length; what is public about them is in the recipe."""
        choices, items = data, y if items is None else items
        if items is None:
            if not isinstance(choices, Choices):
                raise InputError(
                    "items are missing: give their number, their names or their features"
                )
            bare = sparse.issparse(choices.features)
            items = choices.n_items if bare else choices.features
        found = as_items(items)
        data = as_choices(choices, found, given.unit)
        if data.n_workers < 2:
            raise InputError("one worker alone cannot be hidden: there must be at least two")
        if not found.featured and clusters_of(data.pairs, data.n_items)[0] > 1:
            warn(
                "some items are not compared with others, not even through third ones: where the "
                "parts of the ranking lie relative to each other is a guess",
                DataWarning,
            )
        if data.n_null:
            warn(f"{data.n_null} choices are for neither item, and contribute nothing", PrivateNote)
        back = None
        if found.featured:
            data, back = whitened(data)
        norm = mechanism_named(given.mechanism).norm
        private = given.epsilon != float("inf")
        weights = record_weights(data, norm, NUMBERS.coin_lengths, private=private)
        data = replace(data, weights=weights)
        kappas = {"worker": data.most_of_a_worker} if data.by == "choice" else {}
        context = (_asked(data, weights), found, back)
        return Resolved(data, facts={"kappas": kappas, "context": context})

    def _recipe(self, given: Any, records: PreparedRecords) -> RankingRecipe:
        asked, items, back = records.context
        return RankingRecipe(asked, items, back, given.prior_std)

    def _keep(self, model: Any, prepared: Prepared) -> None:
        recipe: Any = prepared.recipe
        b, covariance = model.coefficients, model.covariance
        self.coef_, rows = None, None
        if recipe.back is not None:
            rows = np.asarray(recipe.items.features)
            self.coef_ = recipe.back @ b
            rows = (rows - rows.mean(axis=0)) @ recipe.back
            strengths = rows @ b
        else:
            strengths = b - b.mean()
        self.strengths_ = strengths
        best = np.argsort(-strengths, kind="stable")
        names = recipe.items.names
        self.ranking_ = best if names is None else np.array(names, dtype=object)[best]
        sets: Any = (None, None)
        if len(strengths) <= MOST_RANKED:
            # Of the strengths, from that of the coefficients; without features they are the same.
            spread = covariance if rows is None else rows @ covariance @ rows.T
            sets = rank_sets(strengths, spread, float(self.confidence))
        self.rank_low_, self.rank_high_ = sets
        self.items_ = names

    def _released(self) -> Any:
        import pairveil  # what is past the trust boundary stands above this part

        return pairveil.ReleasedRanking(  # type: ignore[attr-defined]
            strengths=self.strengths_,
            names=self.items_,
            rank_low=self.rank_low_,
            rank_high=self.rank_high_,
            certificate=self.certificate_,
        )

    def preference(self, left: Any, right: Any) -> FloatArray:
        """How likely a choice between two items is for the first, by their row numbers.

        Examples
        --------
        >>> choices = [[0, 0, 1], [1, 0, 1], [2, 1, 0]] * 30
        >>> ranker = PrivatePreferenceRanker(epsilon=float("inf"), prior_std=50.0).fit(choices, 2)
        >>> round(float(ranker.preference(0, 1)), 2)
        0.67
        """
        check_is_fitted(self, "strengths_")
        apart = self.strengths_[np.asarray(left)] - self.strengths_[np.asarray(right)]
        return np.asarray(1 / (1 + np.exp(-apart)))


def _asked(choices: Choices, weights: FloatArray) -> AskedDifferences:
    """What is public about all choices, each pair of items once."""
    by_choice = np.repeat(weights, np.diff(choices.edges()))
    pairs, where = np.unique(choices.pairs, axis=0, return_inverse=True)
    left, right = pairs.T
    where = where.ravel()
    return AskedDifferences(
        choices.features[left] - choices.features[right],
        np.bincount(where, by_choice, len(pairs)).astype(np.float64),
        np.bincount(where, by_choice**2, len(pairs)).astype(np.float64),
    )
