"""PrivateLinkageModel: Fellegi-Sunter match weights from labelled pairs, with a certificate.

What is given to a linkage model, checked: levels, the number of levels, entities, and u.

What a linkage model asks of labelled pairs: how often each comparison has each level, by label.

A pair adds 1 to the cell of its label, for each comparison that is not null, and a little to the count of its
label. No entry is negative and all are whole halves, so sums are exact in every order of the pairs. What one
pair can move is proved in docs/theory/records.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pairveil.array_types import FloatArray, IntArray
from pairveil.column_names import names_of
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Plan, PublicFacts, QuerySpec
from pairveil.engine.statistics import Labels, Statistic
from pairveil.errors import InputError
from pairveil.learners.base import WITHOUT_ROWS, PrivateLearner
from pairveil.learners.inputs import Resolved, as_labels, check_share, is_whole
from pairveil.learners.preparing import (
    Prepared,
    PreparedRecords,
    check_entity_records,
    entity_sentence,
)
from pairveil.linkage.levels import less_noise, monotone
from pairveil.privacy.grid import Norm
from pairveil.privacy.units import ASSUMED_LEVELS, Unit
from pairveil.records.canonical import NULL
from pairveil.records.identity import meant
from pairveil.records.kinds import COUNTED_PAIRS
from pairveil.records.pairset import counted_pairs, record_numbers
from pairveil.records.validation import MOST_LEVELS
from pairveil.release.linkage import (
    ReleasedLinkage,
    as_levels,
    match_weights,
    place,
    probabilities,
)

# ---- levels, the number of levels, entities, and u -----------------------------------------------


def check_n_levels(n_levels: Any, levels: IntArray) -> tuple[int, ...]:
    """The public number of levels of each comparison, which all levels must be below."""
    sizes = np.asarray(n_levels).tolist() if not isinstance(n_levels, list | tuple) else n_levels
    if is_whole(sizes):
        sizes = [sizes] * levels.shape[1]
    if not isinstance(sizes, list | tuple) or len(sizes) != levels.shape[1]:
        raise InputError(
            f"n_levels must say how many levels each of the {levels.shape[1]} comparisons has"
        )
    if not all(is_whole(size) and 1 <= size <= MOST_LEVELS for size in sizes):
        raise InputError(f"n_levels must hold whole numbers from 1 to {MOST_LEVELS}")
    above = np.argwhere(levels >= np.asarray(sizes, dtype=np.int64))
    if above.size:
        column = int(above[0][1])
        raise InputError(
            f"levels: {place(above[0])} is not below n_levels, which is {sizes[column]} for this "
            "comparison (levels count from 0)"
        )
    return tuple(int(size) for size in sizes)


def read_off(levels: IntArray) -> tuple[int, ...]:
    """The number of levels that occur: private, so a model that uses it is not for release."""
    return tuple(int(max(2, top + 1)) for top in levels.max(axis=0, initial=0))


def check_u(u: Any, n_levels: Sequence[int]) -> list[FloatArray]:
    """Probabilities of the levels of pairs that do not match, as given: positive, each sums to 1."""
    if not isinstance(u, list | tuple) or len(u) != len(n_levels):
        raise InputError(f"u must be a list of {len(n_levels)} arrays, one for each comparison")
    titles = (f"u of comparison {number}" for number in range(1, len(u) + 1))
    found = map(probabilities, u, titles, n_levels)
    return [one / one.sum() for one in found]


def beyond_bound(entities: Any, pairs: Any, most: int) -> NDArray[np.bool_]:
    """Pairs with a record that is not among the first ``most`` records of its entity (private), by id.

    Whether a record counts follows from its own entity's records alone, so emptying one entity empties pairs
    of its own and brings no other pair back (docs/theory/records.md). A record without an entity, or of which
    two are said, counts for nobody: that is private, and stops nothing.

    Examples
    --------
    >>> beyond_bound([["x", "x"], ["x", "x"]], np.array([[0, 1], [1, 2]]), 2).tolist()
    [False, True]
    """
    listed, ends = np.asarray(entities, dtype=object), np.asarray(pairs)
    if listed.shape != ends.shape:
        raise InputError("entities must name the entity of both records of each pair: shape (n, 2)")
    named = [_owner(one) for one in listed.ravel().tolist()]
    unknown = np.array([one is None for one in named])
    numbers: dict[Any, int] = {}
    who = np.array([numbers.setdefault(one, len(numbers)) for one in named], dtype=np.int64)
    record = ends.reshape(-1)
    found, first = np.unique(record, return_index=True)
    at = np.searchsorted(found, record)
    # Nobody can say whose a record is that has no entity, or two: it counts for nobody.
    nobodys = np.zeros(len(found), dtype=bool)
    nobodys[at[unknown | (who != who[first][at])]] = True
    place = np.full(len(found), most, dtype=np.int64)
    kept = np.flatnonzero(~nobodys)
    order = kept[np.argsort(who[first][kept], kind="stable")]  # within an entity by record
    owner = who[first][order]
    place[order] = np.arange(len(order)) - np.searchsorted(owner, owner)
    late = (place >= most)[at]
    return np.asarray(late.reshape(-1, 2).any(axis=1))


def _owner(cell: Any) -> Any:
    """What an entity is compared by (`meant`), however a table writes it; None where none is said."""
    try:
        missing = cell is None or bool(cell != cell)
    except (TypeError, ValueError):  # pandas' NA; an array
        return None
    found = None if missing else meant(str(cell))
    return None if found == "" else found


# ---- how often each comparison has each level, by label ------------------------------------------

LABEL_WEIGHT = 0.5
"""What a pair adds to the count of its label; small, since one count needs little precision."""

QUERY = "level counts"


@dataclass(frozen=True)
class LevelCounts(Statistic):
    """Counts of levels by label, as one long vector."""

    n_levels: tuple[int, ...]  # of each comparison (public)
    matches_only: bool  # those of other pairs are known already
    clip: float  # `bound` of the query's norm

    @property
    def shape(self) -> tuple[int, ...]:
        """Matches and non-matches, then levels of matches, then those of non-matches."""
        return (2 + sum(self.n_levels) * (1 if self.matches_only else 2),)

    @staticmethod
    def bound(n_comparisons: int, norm: Norm) -> float:
        """Largest norm of a contribution: one cell for each comparison, and the label's own."""
        if norm == "l1":
            return n_comparisons + LABEL_WEIGHT
        return math.sqrt(n_comparisons + LABEL_WEIGHT**2)

    def tile_sum(self, levels: Any, labels: Labels, norm: Norm) -> FloatArray:
        """Sum of the contributions; null levels and null pairs add nothing."""
        del norm  # whole numbers below the bound in either: nothing is left to clip
        total = np.zeros(self.shape)
        start = 2
        for row, label in enumerate((1, -1)):
            chosen = labels == label
            total[row] = LABEL_WEIGHT * np.count_nonzero(chosen)
            if label < 0 and self.matches_only:
                break
            for column, size in enumerate(self.n_levels):
                found = levels[chosen, column]
                total[start : start + size] = np.bincount(found[found >= 0], minlength=size)
                start += size
        return total


@dataclass(frozen=True)
class NoisyCounts:
    """What was released, in plain counts."""

    matches: list[FloatArray]  # of the levels of each comparison
    others: list[FloatArray]  # empty where they were not asked for
    labels: FloatArray  # matches and non-matches
    noise: float  # standard deviation on a count of levels; on those of labels it is twice that


@dataclass(frozen=True)
class CountRecipe:
    """One query: all counts together."""

    n_levels: tuple[int, ...]
    matches_only: bool = False
    told: tuple[tuple[str, Any], ...] = ()  # further public parameters, for the certificate
    headline = QUERY

    def ask(self, facts: PublicFacts) -> tuple[QuerySpec, ...]:
        """The counts have the whole budget."""
        del facts
        return (QuerySpec(QUERY, LevelCounts(self.n_levels, self.matches_only, 1.0).shape, 1.0),)

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {"linkage": {"n_levels": list(self.n_levels), **dict(self.told)}}

    def noise(self, plan: Plan) -> tuple[float, float]:
        """Clip bound of a pair, and the standard deviation of the noise on each count."""
        query = plan[QUERY]
        clip = LevelCounts.bound(len(self.n_levels), query.mechanism.norm)
        return clip, query.noise_std(clip)

    def run(self, plan: Plan, engine: Engine) -> NoisyCounts:
        """Ask, and put the answer in order."""
        query, (clip, noise) = plan[QUERY], self.noise(plan)
        answer = engine.answer(query, LevelCounts(self.n_levels, self.matches_only, clip))
        cut = np.cumsum((2, *self.n_levels, *(() if self.matches_only else self.n_levels)))
        parts = np.split(answer, cut[:-1])
        k = len(self.n_levels)
        return NoisyCounts(parts[1 : k + 1], parts[k + 1 :], parts[0] / LABEL_WEIGHT, noise)


# ---- Fellegi-Sunter match weights from labelled pairs, with a certificate ------------------------

GIVEN_U = (
    "u, how often pairs that are no match agree, was given, not learned: nothing is promised of it"
)


class PrivateLinkageModel(PrivateLearner):
    """Learn Fellegi-Sunter match weights from labelled pairs, under differential pairwise privacy.

    Parameters
    ----------
    epsilon, delta
        As for every learner; ``epsilon=inf`` counts without noise.
    unit : {'relationship', 'person', 'pair', 'entity'}
        What is protected. 'person' is one record, unless ``entity_records`` says that people have several;
        'entity' is the same as 'person' and demands it.
    entity_records : int, optional
        Public bound on the records of one person. With ``fit(entities=...)`` it is enforced.
    u : list of arrays, optional
        Probabilities of levels among pairs that do not match, from public or random pairs (see
        `level_frequencies`): then only m is paid for, and the promise says nothing of u.
    prior : float, optional
        How likely a pair is a match before it is compared. None releases the share among the labelled pairs.
    monotone : bool, default False
        A higher level never weighs less.
    **common
        As for every learner. Replacing costs sqrt(2) of zeroing out here.

    Attributes
    ----------
    m_, u_ : list of arrays
        Probability of each level among matches and among other pairs, comparison by comparison.
    prior_ : float
    certificate_ : Certificate or None
    n_levels_ : tuple of int
    kappa_ : int
    noise_multiplier_ : float
    count_noise_ : float
        Standard deviation of the noise on each count.
    n_behind_ : tuple of (float, float)
        How many matches and other pairs are behind each comparison's m and u, noise and shrinkage included.
    n_pairs_used_, n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pairveil.linkage import PrivateLinkageModel
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice([-1, 1], 4000)
    >>> levels = np.where(rng.random((4000, 2)) < 0.9, y[:, None] > 0, y[:, None] < 0).astype(int)
    >>> pairs = np.column_stack([np.arange(4000), np.arange(1, 4001)])      # a path: kappa 1
    >>> model = PrivateLinkageModel(epsilon=1.0, random_state=0)
    >>> model = model.fit(levels, y, pairs, n_levels=[2, 2])
    >>> model.match_weights([[1, 1], [0, 0], [1, -1]]).round(1)             # bits; -1 is null
    array([ 6.5, -6.3,  3.1])
    >>> model.match_probability([[1, 1]], prior=0.01).round(2)
    array([0.49])
    >>> model.certificate_.epsilon <= 1.0, model.certificate_.unit
    (True, 'relationship')
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        unit: Unit | Literal["entity"] = "relationship",
        entity_records: int | None = None,
        u: Sequence[ArrayLike] | None = None,
        prior: float | None = None,
        monotone: bool = False,
        **common: Any,
    ) -> None:
        super().__init__(epsilon, delta, unit, **common)  # type: ignore[arg-type]
        self.entity_records = entity_records
        self.u = u
        self.prior = prior
        self.monotone = monotone

    _fixed = WITHOUT_ROWS
    _kinds = (COUNTED_PAIRS.name,)

    def _protected(self) -> Unit:
        return "person" if self.unit == "entity" else self.unit  # type: ignore[comparison-overlap]

    # ---- before anything is spent ----------------------------------------------------------------

    def prepare(  # type: ignore[override]
        self,
        levels: Any,
        y: ArrayLike | None = None,
        pairs: Any = None,
        n_levels: Any = None,
        *,
        entities: Any = None,
        null: bool = False,
    ) -> Prepared:
        """All of a fit that comes before its noise: which pairs, kappa, plan and certificate.

        Parameters
        ----------
        levels, y, pairs, n_levels, entities
            As for `fit`.
        null : bool
            ``y`` may be 0, where a file's label could not be read: such a pair contributes nothing.

        Returns
        -------
        Prepared
            Give it to `fit` in place of levels; it spends nothing by itself.
        """
        about = {"n_levels": n_levels, "entities": entities, "null": null}
        return super().prepare(levels, y, ends=pairs, **about)

    def _resolve(  # type: ignore[override]
        self,
        given: Any,
        levels: Any,
        y: Any,
        *,
        ends: Any,
        n_levels: Any,
        entities: Any,
        null: bool = False,
    ) -> Resolved:
        pairs = ends
        self._check_own(given, pairs)
        array = as_levels(levels)
        if len(array) == 0:
            raise InputError("there are no pairs to learn from")
        labels = as_labels(y, len(array), null=null)
        sizes = read_off(array) if n_levels is None else check_n_levels(n_levels, array)
        known = None if self.u is None else check_u(self.u, sizes)
        if entities is not None:
            labels = self._bounded(labels, pairs, entities)
        data, positions = counted_pairs(array, labels, pairs, names_of(levels))
        bound = given.entity_records
        said = {
            ASSUMED_LEVELS: n_levels is None,
            GIVEN_U: known is not None,
            entity_sentence(bound, entities is not None): bound is not None,
        }
        facts = {
            "public": tuple(sentence for sentence, holds in said.items() if holds),
            "for_release": n_levels is not None,
            "entity_records": bound,
            "context": sizes,
        }
        return Resolved(data, positions, facts=facts)

    def _check_own(self, given: Any, pairs: Any) -> None:
        if pairs is None and given.unit != "pair":
            raise InputError(
                "pairs are missing: give the ids of the two records of each row, or choose unit='pair'"
            )
        records = given.entity_records
        if records is None and self.unit == "entity":  # type: ignore[comparison-overlap]
            raise InputError(
                "unit='entity' needs entity_records: the most records that one entity may have"
            )
        check_entity_records(records, pairs)
        if given.prior is not None:
            check_share("prior", given.prior)
        if not isinstance(given.monotone, bool):
            raise InputError("monotone must be True or False")

    def _bounded(self, labels: NDArray[np.int8], pairs: Any, entities: Any) -> NDArray[np.int8]:
        """Labels of the pairs; those of an entity's further records are null."""
        if self.entity_records is None:
            raise InputError("entities go with entity_records, the most records of one entity")
        if self._protected() != "person":
            # One match more or less makes another record a further one, and all its pairs null.
            raise InputError(
                "entities decide which pairs count, and how one pair is labelled follows from them: a bound "
                "that is enforced goes with unit='entity'"
            )
        ends = record_numbers(pairs, len(labels))[1]
        late = beyond_bound(entities, ends, int(self.entity_records))
        return np.where(late, NULL, labels).astype(np.int8)

    def _recipe(self, given: Any, records: PreparedRecords) -> CountRecipe:
        matches_only = self.u is not None
        told: dict[str, Any] = {
            "monotone": given.monotone,
            "u": "given" if matches_only else "counted",
        }
        if given.entity_records is not None:
            told["entity_records"] = given.entity_records
        return CountRecipe(records.context, matches_only, tuple(told.items()))

    # ---- learning --------------------------------------------------------------------------------

    def fit(  # type: ignore[override]
        self,
        levels: Any,
        y: ArrayLike | None = None,
        pairs: Any = None,
        n_levels: Any = None,
        *,
        entities: Any = None,
        **watching: Any,
    ) -> Self:
        """Learn, and issue the certificate.

        Parameters
        ----------
        levels : (K, C) integer array or table
            The level of each comparison for each pair: -1 null, 0 up to the highest, which is the best
            agreement. What `prepare` returned is taken too.
        y : array of shape (K,)
            +1 match, -1 no match.
        pairs : (K, 2) array, optional
            Ids of the two records of each row, for kappa. Without it only ``unit='pair'`` is promised.
        n_levels : int or sequence of int, optional
            The public number of levels of each comparison. None reads it off the data, which would show a
            level that one pair alone has: the certificate says so and is not for release.
        entities : (K, 2) array, optional
            The entity of both records of each row (private), to enforce ``entity_records``.
        **watching
            ``on_step``, ``on_answer``, ``checkpoint`` and ``keep_checkpoint`` as for every learner.

        Returns
        -------
        self
        """
        prepared = self.prepare(levels, y, pairs, n_levels, entities=entities)
        return super().fit(prepared, **watching)

    def _keep(self, model: NoisyCounts, prepared: Prepared) -> None:
        recipe: Any = prepared.recipe
        self.n_levels_ = recipe.n_levels
        noise, n_pairs = model.noise, prepared.plan.n_records
        # Below the noise a number of labels says nothing, and there are no more labels than pairs.
        n_matches, n_others = np.clip(model.labels, noise, n_pairs).tolist()
        matches = [less_noise(one, noise, n_matches, matches=True) for one in model.matches]
        others = [less_noise(one, noise, n_others, matches=False) for one in model.others]
        self.m_ = [one / one.sum() for one in matches]
        self.u_ = [one / one.sum() for one in others] or check_u(self.u, self.n_levels_)
        self.n_behind_ = tuple(
            (float(matches[c].sum()), float(others[c].sum()) if others else 0.0)
            for c in range(len(matches))
        )
        if self.monotone:
            self.m_ = [monotone(m, u) for m, u in zip(self.m_, self.u_, strict=True)]
        pairs = np.maximum(model.labels, max(2 * model.noise, 1.0))  # below it a count says nothing
        self.prior_ = float(pairs[0] / pairs.sum()) if self.prior is None else float(self.prior)
        self.count_noise_ = float(model.noise)
        self.n_pairs_used_ = prepared.plan.n_records
        self.n_features_in_ = prepared.plan.n_features
        self.__dict__.pop("feature_names_in_", None)
        if prepared.records.used.feature_names is not None:
            self.feature_names_in_ = np.array(prepared.records.used.feature_names, dtype=object)

    # ---- using it --------------------------------------------------------------------------------

    def match_weights(self, levels: Any) -> FloatArray:
        """Evidence for a match of each row, in bits: the sum of log2(m / u); nulls add nothing."""
        check_is_fitted(self, "m_")
        return match_weights(self.m_, self.u_, levels)

    def match_probability(self, levels: Any, prior: float | None = None) -> FloatArray:
        """How likely each row is a match, if a pair is one with probability ``prior`` before.

        Parameters
        ----------
        levels : (K, C) integer array
        prior : float, optional
            The model's own by default, which may be that of a balanced set of labels: say what holds where
            the model is used.
        """
        check_is_fitted(self, "m_")
        return self.released().match_probability(levels, prior)

    decision_function = match_weights  # larger means 'match'

    # ---- Splink ----------------------------------------------------------------------------------

    def from_splink(
        self,
        linker: Any,
        labels: Any,
        *,
        threshold: float = 0.5,
        n_random: int = 0,
        records: Any = None,
        entities: Any = None,
    ) -> Self:
        """Fit on clerical labels, with the levels of exactly the labelled pairs by Splink's settings.

        Parameters
        ----------
        linker, labels, threshold, n_random, records
            As for `pairveil.linkage.from_splink`. With few labels u is hardly known without random pairs.
        entities : (K, 2) array, optional
            As for `fit`; without random pairs.
        """
        from pairveil.linkage.splink import from_splink, settings_of, warn_of_frequencies

        found = from_splink(linker, labels, threshold, n_random, records)
        if not n_random and self.u is None:
            warn_of_frequencies(settings_of(linker))
        about = (found.levels, found.labels, found.pairs, found.n_levels)
        self.fit(self.prepare(*about, entities=entities, null=True))
        self.feature_names_in_ = np.array(found.names, dtype=object)
        return self

    def to_splink(self, settings: Any, *, prior: float | None = None) -> dict[str, Any]:
        """Splink settings with m and u written in and fixed, for ``Linker(records, settings)``.

        Parameters
        ----------
        settings : dict, path, SettingsCreator or Linker
            Comparisons must be those of the levels, in the same order or by the same names.
        prior : float, optional
            For ``probability_two_random_records_match``: how likely two random records match. By default
            the model's ``prior``, where one was given; else the settings keep theirs, for the share of
            matches among labels is not that of the pairs that Splink scores.
        """
        from pairveil.linkage.splink import to_splink

        check_is_fitted(self, "m_")
        names = getattr(self, "feature_names_in_", None)
        own = self.prior if prior is None else prior
        return to_splink(self.m_, self.u_, settings, None if names is None else list(names), own)

    def released(self) -> ReleasedLinkage:
        """The model as it is handed out: tables and certificate."""
        check_is_fitted(self, "m_")
        names = getattr(self, "feature_names_in_", None)
        return ReleasedLinkage(
            tuple(self.m_),
            tuple(self.u_),
            self.prior_,
            self.certificate_,
            None if names is None else tuple(names.tolist()),
            self.count_noise_,
            self.n_behind_,
        )

    _released = released
