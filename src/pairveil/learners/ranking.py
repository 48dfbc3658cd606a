"""PrivatePreferenceRanker: a ranking of items from workers' choices, under differential privacy.

One noisy sum is released: chosen minus other, in the items' features, over all choices, where all choices
of a worker are clipped as one record. Strengths, ranking and how sure it is are post-processing
(`pairveil.learners.strengths`). What a worker and a choice can move is proved in docs/theory/choices.md.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pairveil.array_types import FloatArray, IntArray
from pairveil.data.choices import Choices
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.engine.statistics import Statistic, row_norms, shrink
from pairveil.errors import DataWarning, InputError, PrivateNote
from pairveil.learners.base import PrivateLearner
from pairveil.learners.choice_inputs import (
    Items,
    as_choices,
    as_items,
    is_connected,
    record_weights,
    whitened,
)
from pairveil.learners.material import Material, stated_selection
from pairveil.learners.parameters import check_bound, check_common, is_number, plain_parameters
from pairveil.learners.preparing import Prepared, prepare
from pairveil.learners.strengths import Asked, fit_strengths, rank_sets
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.costs import A_CHOICE_OF_A_WORKER, Cost
from pairveil.privacy.grid import Norm
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms import mechanism_named
from pairveil.privacy.mechanisms.gaussian import GAUSSIAN
from pairveil.privacy.units import UNITS_OF_CHOICES, Adjacency, Unit

LOUD = 1.0
"""Where a worker's choices are clipped, in lengths of as many choices by coin."""

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

    def tile_sum(self, differences: Any, labels: IntArray, norm: Norm) -> FloatArray:  # type: ignore[override]
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
    """One noisy sum, and coefficients fitted to it.

    Parameters
    ----------
    asked : Asked
        What is public about the choices.
    back : array of shape (n_features, n_features) or None
        From coefficients to those of the items' own features; None where items have no features.
    """

    asked: Asked
    items: Items
    back: FloatArray | None
    prior_std: float
    headline = "choices"

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """Everything goes into one sum."""
        return (Ask("choices", (setting.n_features,), 1.0),)

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {"prior_std": self.prior_std, "item_features": self.items.featured}

    def run(self, plan: Plan, engine: Engine) -> Ranked:
        """Ask, and fit."""
        query = plan["choices"]
        answer = engine.answer(query, NetChoices(plan.n_features))
        noise = query.noise_std(NetChoices.clip)
        return Ranked(*fit_strengths(self.asked, answer, noise, self._prior(plan.n_features)))

    def _prior(self, n_features: int) -> float:
        """Of one coefficient: the two items' strengths differ by about prior_std * sqrt(2) in either case."""
        featured = self.items.featured
        return self.prior_std * float(np.sqrt(2 / n_features)) if featured else self.prior_std


class PrivatePreferenceRanker(PrivateLearner):
    """Rank items from workers' choices between two of them, under differential privacy.

    With features of the items, strengths are linear in them (logistic regression on differences); without,
    every item has a strength of its own (Bradley-Terry). The items, who was asked and about what is public;
    what was chosen is private.

    Parameters
    ----------
    epsilon : float, default 1.0
        Privacy budget of one fit, for ``unit`` and ``adjacency``. ``inf`` is the non-private fit.
    delta : float, default 1e-5
        Must be well below 1 / number of workers. Not used by ``mechanism='laplace'`` (pure epsilon).
    unit : {'worker', 'choice'}
        What is protected: everything that a worker chose, clipped as one record; or one choice.
    adjacency : {'zero-out', 'replace'}
        What epsilon compares; the certificate states both.
    mechanism : str
    prior_std : float, default 2.0
        How far strengths (log odds) spread before anything is heard. Public.
    confidence : float, default 0.95
        That all true ranks are in their sets.
    accountant : PrivacyLedger or None
        A budget across fits, of unit 'worker' or 'choice'; charged before any noise is drawn.
    random_state : int, Generator or None
        None: operating-system entropy and exact discrete noise, a release. A seed: repeatable, and the
        certificate says ``for_release: false``.

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

    backend: Any = "auto"  # choices are summed on this machine
    learns_from = ("choices",)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        unit: Unit = "worker",
        adjacency: Adjacency = "zero-out",
        mechanism: str = GAUSSIAN.name,
        prior_std: float = 2.0,
        confidence: float = 0.95,
        accountant: PrivacyLedger | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.unit = unit
        self.adjacency = adjacency
        self.mechanism = mechanism
        self.prior_std = prior_std
        self.confidence = confidence
        self.accountant = accountant
        self.random_state = random_state

    def prepare(self, pairs: Any, y: Any = None, *, items: Any = None) -> Prepared:
        """All of a fit that comes before its noise; spends nothing.

        Parameters
        ----------
        pairs, items
            Choices and items, as for ``fit``; items may also be given second.
        """
        return self._prepare(pairs, y if items is None else items)

    def certify(
        self, pairs: Any, y: Any = None, *, items: Any = None, checkpoint: Any = None
    ) -> Certificate | None:
        """The certificate that ``fit`` would issue. Draws no noise and spends nothing."""
        return super().certify(pairs, y if items is None else items, checkpoint=checkpoint)

    def fit(self, choices: Any, items: Any = None, **watching: Any) -> Self:  # type: ignore[override]
        """Rank, and issue the certificate.

        Parameters
        ----------
        choices : DataFrame with columns worker, chosen and other, array of such rows, or Choices
            `pairveil.data.choices.Choices` can also hold null choices. A worker may contradict herself.
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

    def _prepare(self, pairs: Any, y: ArrayLike | None) -> Prepared:
        if isinstance(pairs, Prepared):
            return pairs
        given = SimpleNamespace(**vars(plain_parameters(self)), data_norm=1.0)
        check_common(given, UNITS_OF_CHOICES)
        check_bound("prior_std", given.prior_std)
        if not (is_number(given.confidence) and 0 < given.confidence < 1):
            raise InputError("confidence must be a number between 0 and 1, both excluded")
        recipe, choices = self._settle(given, pairs, y)
        return prepare(recipe, given, _material(choices), self._noise(), stacklevel=4)

    def _settle(self, given: Any, choices: Any, items: Any) -> tuple[RankingRecipe, Choices]:
        """Choices as records of about the same length; what is public about them is in the recipe."""
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
        if not found.featured and not is_connected(data):
            warnings.warn(
                "some items are not compared with others, not even through third ones: where the "
                "parts of the ranking lie relative to each other is a guess",
                DataWarning,
                stacklevel=5,
            )
        if data.n_null:
            warnings.warn(
                f"{data.n_null} choices are for neither item, and contribute nothing",
                PrivateNote,
                stacklevel=5,
            )
        back = None
        if found.featured:
            data, back = whitened(data)
        norm = mechanism_named(given.mechanism).norm
        private = given.epsilon != float("inf")
        weights = record_weights(data, norm, LOUD, private=private)
        data = replace(data, weights=weights)
        return RankingRecipe(_asked(data, weights), found, back, given.prior_std), data

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
            sets = rank_sets(strengths, _covariance(rows, covariance), float(self.confidence))
        self.rank_low_, self.rank_high_ = sets
        self.items_ = names

    def _write(self, folder: str | Path, overwrite: bool) -> Path:
        import pairveil  # what is past the trust boundary stands above this part

        saved: Path = pairveil.ReleasedRanking(  # type: ignore[attr-defined]
            strengths=self.strengths_,
            names=self.items_,
            rank_low=self.rank_low_,
            rank_high=self.rank_high_,
            certificate=self.certificate_,
        ).save(folder, overwrite=overwrite)
        return saved

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


def _covariance(rows: FloatArray | None, covariance: FloatArray) -> FloatArray:
    """Of the strengths, from that of the coefficients; without features they are the same."""
    return covariance if rows is None else rows @ covariance @ rows.T


def _asked(choices: Choices, weights: FloatArray) -> Asked:
    """What is public about all choices, each pair of items once."""
    by_choice = np.repeat(weights, np.diff(choices.edges()))
    pairs, where = np.unique(choices.pairs, axis=0, return_inverse=True)
    left, right = pairs.T
    where = where.ravel()
    return Asked(
        choices.features[left] - choices.features[right],
        np.bincount(where, by_choice, len(pairs)).astype(np.float64),
        np.bincount(where, by_choice**2, len(pairs)).astype(np.float64),
    )


def _material(choices: Choices) -> Material:
    """Choices as material: what a choice and a worker can move (docs/theory/choices.md)."""
    costs: dict[Unit, Cost]
    if choices.by == "worker":
        costs = {"choice": A_CHOICE_OF_A_WORKER, "worker": Cost(1)}
    else:
        costs = {"choice": Cost(1), "worker": Cost(choices.most_of_a_worker)}
    return Material(
        given=choices,
        used=choices,
        used_rows=range(choices.n_records),
        kind=choices.kind,
        costs=costs,
        selection=stated_selection("all", None, 1),
    )
