"""PrivateLinkageModel: Fellegi-Sunter match weights from labelled pairs, with a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pairveil.array_types import FloatArray
from pairveil.column_names import names_of
from pairveil.data.canonical import NULL
from pairveil.data.counted import counted_pairs, record_numbers
from pairveil.engine.plan import Recipe
from pairveil.errors import InputError
from pairveil.learners.base import PrivateLearner
from pairveil.learners.counting import (
    check_entity_records,
    entity_sentence,
    material_of_counts,
    stated_plainly,
)
from pairveil.learners.inputs import as_labels
from pairveil.learners.parameters import check_common, is_number, plain_parameters
from pairveil.learners.preparing import Prepared, prepare
from pairveil.linkage.counts import CountRecipe, NoisyCounts
from pairveil.linkage.estimating import in_order, shrunk
from pairveil.linkage.inputs import beyond_bound, check_n_levels, check_u, read_off
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms.gaussian import GAUSSIAN
from pairveil.privacy.units import ASSUMED_LEVELS, Adjacency, Unit
from pairveil.release.linkage import ReleasedLinkage, as_levels, match_weights

GIVEN_U = (
    "u, how often pairs that are no match agree, was given, not learned: nothing is promised of it"
)


class PrivateLinkageModel(PrivateLearner):
    """Learn Fellegi-Sunter match weights from labelled pairs, under differential pairwise privacy.

    Parameters
    ----------
    epsilon : float, default 1.0
        Privacy budget of one fit, for ``unit`` and ``adjacency``. ``inf`` counts without noise.
    delta : float, default 1e-5
        Must be well below 1 / number of pairs. Not used by ``mechanism='laplace'`` (pure epsilon).
    unit : {'relationship', 'person', 'pair', 'entity'}
        What is protected. 'person' is one record, unless ``entity_records`` says that people have several;
        'entity' is the same as 'person' and demands it.
    select : {'paths', 'forest', 'matching', 'all'}
        Which pairs to use, by who is compared with whom alone.
    kappa : int or 'auto'
    adjacency : {'zero-out', 'replace'}
        What epsilon compares; the certificate states both. Replacing costs sqrt(2) of zeroing out here.
    mechanism : str
    entity_records : int, optional
        Public bound on the records of one person. With ``fit(entities=...)`` it is enforced.
    u : list of arrays, optional
        Probabilities of levels among pairs that do not match, from public or random pairs (see
        `level_frequencies`): then only m is paid for, and the promise says nothing of u.
    prior : float, optional
        How likely a pair is a match before it is compared. None releases the share among the labelled pairs.
    monotone : bool, default False
        A higher level never weighs less.
    accountant : PrivacyLedger or None
    random_state : int, Generator or None
        None: operating-system entropy and exact discrete noise, a release. A seed: not for release.

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
        select: str = "paths",
        kappa: int | Literal["auto"] = "auto",
        adjacency: Adjacency = "zero-out",
        mechanism: str = GAUSSIAN.name,
        entity_records: int | None = None,
        u: Sequence[ArrayLike] | None = None,
        prior: float | None = None,
        monotone: bool = False,
        accountant: PrivacyLedger | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.unit = unit  # type: ignore[assignment]
        self.select = select
        self.kappa = kappa
        self.adjacency = adjacency
        self.mechanism = mechanism
        self.entity_records = entity_records
        self.u = u
        self.prior = prior
        self.monotone = monotone
        self.accountant = accountant
        self.random_state = random_state

    backend = "numpy"

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
    ) -> Prepared:
        """All of a fit that comes before its noise: which pairs, kappa, plan and certificate.

        Parameters
        ----------
        levels, y, pairs, n_levels, entities
            As for `fit`.

        Returns
        -------
        Prepared
            Give it to `fit` in place of levels; it spends nothing by itself.
        """
        if isinstance(levels, Prepared):
            return levels
        given = plain_parameters(self)
        given.unit, given.data_norm = self._protected(), 1.0
        check_common(given)
        self._check_own(given, pairs)
        array = as_levels(levels)
        if len(array) == 0:
            raise InputError("there are no pairs to learn from")
        labels = as_labels(y, len(array))
        sizes = read_off(array) if n_levels is None else check_n_levels(n_levels, array)
        known = None if self.u is None else check_u(self.u, sizes)
        if entities is not None:
            labels = self._bounded(labels, pairs, entities)
        data, positions = counted_pairs(array, labels, pairs, names_of(levels), stacklevel=3)
        material = material_of_counts(given, data, positions, given.entity_records)
        said = {
            ASSUMED_LEVELS: n_levels is None,
            GIVEN_U: known is not None,
            entity_sentence(given.entity_records, entities is not None): given.entity_records
            is not None,
        }
        material = replace(
            material,
            public=(*material.public, *(sentence for sentence, holds in said.items() if holds)),
            for_release=n_levels is not None,
        )
        recipe = self._counting(given, sizes, known is not None)
        return stated_plainly(prepare(recipe, given, material, self._noise(), stacklevel=3))

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
        if given.prior is not None and not (is_number(given.prior) and 0 < given.prior < 1):
            raise InputError("prior must be a number between 0 and 1, both excluded")
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

    def _counting(self, given: Any, sizes: tuple[int, ...], matches_only: bool) -> Recipe:
        told: dict[str, Any] = {
            "monotone": given.monotone,
            "u": "given" if matches_only else "counted",
        }
        if given.entity_records is not None:
            told["entity_records"] = given.entity_records
        return CountRecipe(sizes, matches_only, tuple(told.items()))

    def certify(  # type: ignore[override]
        self,
        levels: Any,
        y: ArrayLike | None = None,
        pairs: Any = None,
        n_levels: Any = None,
        *,
        entities: Any = None,
    ) -> Certificate | None:
        """The certificate that `fit` would issue. Draws no noise and spends nothing."""
        return self.prepare(levels, y, pairs, n_levels, entities=entities).certificate

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

    def _prepare(self, pairs: Any, y: ArrayLike | None) -> Prepared:  # noqa: ARG002
        assert isinstance(pairs, Prepared)
        return pairs

    def _keep(self, model: NoisyCounts, prepared: Prepared) -> None:
        recipe: Any = prepared.recipe
        self.n_levels_ = recipe.n_levels
        noise, n_pairs = model.noise, prepared.plan.n_records
        # Below the noise a number of labels says nothing, and there are no more labels than pairs.
        n_matches, n_others = np.clip(model.labels, noise, n_pairs).tolist()
        matches = [shrunk(one, noise, n_matches, matches=True) for one in model.matches]
        others = [shrunk(one, noise, n_others, matches=False) for one in model.others]
        self.m_ = [one / one.sum() for one in matches]
        self.u_ = [one / one.sum() for one in others] or check_u(self.u, self.n_levels_)
        self.n_behind_ = tuple(
            (float(matches[c].sum()), float(others[c].sum()) if others else 0.0)
            for c in range(len(matches))
        )
        if self.monotone:
            self.m_ = [in_order(m, u) for m, u in zip(self.m_, self.u_, strict=True)]
        pairs = np.maximum(model.labels, max(2 * model.noise, 1.0))  # below it a count says nothing
        self.prior_ = float(pairs[0] / pairs.sum()) if self.prior is None else float(self.prior)
        self.count_noise_ = float(model.noise)
        self.n_pairs_used_ = prepared.plan.n_records
        self.n_features_in_ = prepared.plan.n_features
        self.__dict__.pop("feature_names_in_", None)
        if prepared.material.used.feature_names is not None:
            self.feature_names_in_ = np.array(prepared.material.used.feature_names, dtype=object)

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

    def decision_function(self, levels: Any) -> FloatArray:
        """Same as `match_weights`: larger means 'match'."""
        return self.match_weights(levels)

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
        linker : splink.Linker on DuckDB, or settings
            As for `pairveil.linkage.from_splink`; it is not changed.
        labels : table or path
            Splink's clerical labels: ``unique_id_l``, ``unique_id_r``, ``clerical_match_score``.
        threshold : float
            A score from here on is a match, one below is none.
        n_random : int
            So many `random_pairs` of other records count as pairs that do not match: with few labels u is
            hardly known without them.
        records : table or path, optional
            The records, where settings are given and no linker.
        entities : (K, 2) array, optional
            As for `fit`; without random pairs.
        """
        from pairveil.linkage.splink import from_splink, settings_of, warn_of_frequencies

        found = from_splink(linker, labels, threshold, n_random, records)
        if not n_random and self.u is None:
            warn_of_frequencies(settings_of(linker))
        self.fit(found.levels, found.labels, found.pairs, found.n_levels, entities=entities)
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

    def release(self, folder: Any, *, overwrite: bool = False) -> Any:
        """Write the release: tables, certificate and a README for whoever receives it."""
        return self.released().save(folder, overwrite=overwrite)
