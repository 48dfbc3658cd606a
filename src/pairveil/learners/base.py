"""PrivateLearner: what every learner that spends a privacy budget has in common.

A learner prepares once (its records in canonical order, which of them are used, the costs of each unit, the
plan and its certificate), charges, runs its recipe, checks that the plan was followed, and keeps the model.
A new learner writes its own parameters, `_recipe`, and `_check` or `_keep` where it needs them; see
docs/guides/new-learner.md.

How far a fit is, and what it has spent so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, ClassVar, Literal, Self
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from pairveil._warn import warn
from pairveil.engine.backends.records import backend_for, check_backend
from pairveil.engine.checkpoint import Checkpoint, Hold
from pairveil.engine.engine import Engine, OnAnswer
from pairveil.engine.plan import Recipe
from pairveil.errors import ClusterError, InputError, PrivacyLeakWarning
from pairveil.learners import charging
from pairveil.learners.contract import WithoutData
from pairveil.learners.grouped import cut_pairs, material_of_groups
from pairveil.learners.inputs import resolve_training
from pairveil.learners.material import Material, material_of_pairs
from pairveil.learners.named_people import (
    ids_of,
    own_secret,
    remember_fit,
    rows_of,
    without_ids,
)
from pairveil.learners.parameters import check_bound, check_common, plain_parameters
from pairveil.learners.preparing import Prepared, prepare
from pairveil.learners.raw_rows import RawRows
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms import GAUSSIAN, Query
from pairveil.privacy.noise import NoiseSource, SeededNoise, TrustedNoise
from pairveil.privacy.profile import epsilon_of
from pairveil.privacy.units import Adjacency, Unit

# ---- How far a fit is, and what it has spent so far ----------------------------------------------

OnStep = Callable[[float, float], None]


class Progress:
    """Tells how far a fit is and what it has spent so far."""

    def __init__(
        self, prepared: Prepared, on_step: OnStep | None, on_answer: OnAnswer | None
    ) -> None:
        self._prepared = prepared
        self._on_step, self._on_answer = on_step, on_answer
        self._total = sum(query.steps for query in prepared.plan.queries)
        self._done: dict[str, int] = {}

    def __call__(self, query: Query, statistic: Any, noisy: Any) -> None:
        if self._on_answer is not None:
            self._on_answer(query, statistic, noisy)
        self._done[query.name] = self._done.get(query.name, 0) + 1
        if self._on_step is not None:
            done = sum(self._done.values())
            self._on_step(done / self._total, self._spent(done))

    def _spent(self, done: int) -> float:
        """Epsilon of the answers given so far (in closed form; the whole at the end)."""
        certificate = self._prepared.certificate
        if certificate is None:
            return math.inf
        if done == self._total:
            return certificate.epsilon
        made = [
            replace(query, steps=self._done[query.name]).event()
            for query in self._prepared.plan.queries
            if query.name in self._done
        ]
        return epsilon_of(
            made,
            # What the unit moves, which is not one clip bound a record where records are groups.
            kappa=self._prepared.material.costs[certificate.unit],
            adjacency=certificate.adjacency,
            delta=certificate.delta - certificate.delta_slack,
        )


# ---- PrivateLearner: what every learner that spends a privacy budget has in common ---------------

# Not an attribute: scikit-learn holds that an estimator has its parameters and nothing else.
_CLONES: WeakSet[Any] = WeakSet()


class PrivateLearner(WithoutData):
    """Base of the learners: from parameters and records to a certified model.

    Parameters
    ----------
    epsilon, delta, unit, adjacency
        The promise: budget of one fit, and what it protects.
    select, kappa
        Which of the given pairs are used, and how many of them one unit may touch.
    mechanism, data_norm
        Kind of noise; public bound on a person's l2 norm.
    accountant, preprocessor, backend, random_state
        Ledger, people's features, where sums are taken, and a seed for fits that are not released.
    schema, bounds
        Public facts by which raw rows become numbers (`pairveil.learners.raw_rows`).

    Notes
    -----
    A learner with parameters of its own takes these as ``**common`` and hands them to ``super().__init__``.
    """

    learns_from: ClassVar[tuple[str, ...]] = ("pairs",)
    """What it can be fitted to: 'pairs' (FEATURES and PAIRS on the command line), 'classes' (FEATURES with a
    column of classes), or another kind that the learner documents. Audits play with the first."""

    certificate_: Certificate | None
    kappa_: int
    noise_multiplier_: float

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        unit: Unit = "relationship",
        select: str = "paths",
        kappa: int | Literal["auto"] = "auto",
        adjacency: Adjacency = "zero-out",
        mechanism: str = GAUSSIAN.name,
        data_norm: float = 1.0,
        accountant: PrivacyLedger | None = None,
        preprocessor: Any = None,
        backend: Literal["auto", "numpy", "dask"] = "auto",
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        schema: Any = None,
        bounds: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.unit: Unit = unit
        self.select = select
        self.kappa = kappa
        self.adjacency: Adjacency = adjacency
        self.mechanism = mechanism
        self.data_norm = data_norm
        self.accountant = accountant
        self.preprocessor = preprocessor
        self.backend = backend
        self.random_state = random_state
        self.schema = schema
        self.bounds = bounds

    # ---- what a learner writes -------------------------------------------------------------------

    def _recipe(self, given: Any) -> Recipe:
        """What is asked of the data, from the parameters as plain numbers (attributes of ``given``)."""
        raise NotImplementedError

    def _group_recipe(self, given: Any, material: Material) -> Recipe:
        """What is asked of groups (select='groups', a GroupSet, people dealt into groups)."""
        del given, material
        raise InputError(f"{type(self).__name__} does not learn from groups of people")

    def _check(self, given: Any, n_features: int) -> None:
        """Refuse senseless values of the learner's own parameters, before anything is spent."""

    def _keep(self, model: Any, prepared: Prepared) -> None:
        """Take the model that the recipe made into fitted attributes."""
        raise NotImplementedError

    def _released(self) -> Any:
        """What is handed out; `release` has seen that there is something and that it is promised."""
        raise NotImplementedError

    def _protected(self) -> Unit:
        """The certificate's unit; a learner may know it by another name too."""
        return self.unit

    # ---- what all of them have --------------------------------------------------------------------

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """scikit-learn's list of parameters; ``**common`` stands for those of the class above."""
        names: set[str] = set()
        for kind in cls.__mro__:
            if "__init__" not in vars(kind):
                continue
            taken = list(signature(vars(kind)["__init__"]).parameters.values())[1:]
            names.update(one.name for one in taken if one.kind is not Parameter.VAR_KEYWORD)
            if all(one.kind is not Parameter.VAR_KEYWORD for one in taken):
                break
        return sorted(names)

    def __sklearn_clone__(self) -> Self:
        """A clone knows it is one: searches and cross-validation fit clones, and each fit spends."""
        copy = type(self)(
            **{
                # A ledger's copy is the ledger itself; features need no second copy.
                name: value if name in ("accountant", "preprocessor") else clone(value, safe=False)
                for name, value in self.get_params(deep=False).items()
            }
        )
        _CLONES.add(copy)
        return copy

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled; a clone stays one in another process."""
        state: dict[str, Any] = dict(super().__getstate__())
        return state | {"_is_clone": True} if self in _CLONES else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state.pop("_is_clone", False):
            _CLONES.add(self)
        super().__setstate__(state)

    def prepare(self, pairs: Any, y: ArrayLike | None = None) -> Prepared:
        """All of a fit that comes before its noise: which pairs, kappa, plan and certificate.

        Parameters
        ----------
        pairs, y
            As for ``fit``.

        Returns
        -------
        Prepared
            Give it to ``fit`` in place of pairs; it spends nothing by itself.
        """
        return self._prepare(pairs, y)

    def _prepare(self, pairs: Any, y: ArrayLike | None) -> Prepared:
        if isinstance(pairs, Prepared):
            return pairs
        kind = getattr(pairs, "kind", None)
        if kind == "people" and "classes" in self.learns_from:
            return self.prepare_classes(pairs, y)  # type: ignore[attr-defined, no-any-return]
        given = plain_parameters(self)
        check_bound("data_norm", given.data_norm)
        if kind == "groups":
            return self._prepare_groups(given, pairs, y)
        table = self.preprocessor
        named, people = rows_of(pairs, table), without_ids(table)
        read, preprocessor = RawRows.of(self).inputs(named, people, learning=True)
        found = resolve_training(read, y, preprocessor, self.backend, ids=ids_of(table))
        check_common(given)
        self._check(given, found.data.n_features)
        if given.select == "groups":
            material = cut_pairs(given, found)
            asked = self._group_recipe(given, material)
            return prepare(asked, given, material, self._noise())
        material = material_of_pairs(given, found)
        prepared = prepare(self._recipe(given), given, material, self._noise())
        return replace(prepared, secret=own_secret(self, pairs, guessed=found.inferred))

    def _prepare_groups(self, given: Any, groups: Any, y: ArrayLike | None) -> Prepared:
        if y is not None:
            raise InputError("groups hold the labels of the pairs inside them: leave y out")
        RawRows.of(self).table(None, groups)
        check_common(given)
        self._check(given, groups.n_features)
        material = material_of_groups(given, groups)
        asked = self._group_recipe(given, material)
        return prepare(asked, given, material, self._noise())

    def _noise(self) -> NoiseSource:
        return TrustedNoise() if self.random_state is None else SeededNoise(self.random_state)

    def certify(
        self, pairs: Any, y: ArrayLike | None = None, *, checkpoint: str | Path | None = None
    ) -> Certificate | None:
        """The certificate that ``fit`` would issue. Draws no noise and spends nothing.

        Parameters
        ----------
        pairs, y
            As for ``fit``; labels and features are checked, and do not enter the certificate.
        checkpoint : path, optional
            Refused if ``fit`` would refuse to resume from it.
        """
        prepared = RawRows.of(self).named(self._prepare(pairs, y))
        if checkpoint is not None:
            charging.check(self.accountant, prepared, checkpoint)
        return prepared.certificate

    def fit(
        self,
        pairs: Any,
        y: ArrayLike | None = None,
        *,
        on_step: OnStep | None = None,
        on_answer: OnAnswer | None = None,
        checkpoint: str | Path | Hold | Checkpoint | None = None,
        keep_checkpoint: bool = False,
    ) -> Self:
        """Learn, and issue the certificate.

        Parameters
        ----------
        pairs : (K, 2) row indices with ``preprocessor``, (K, 2, d) feature rows, PairSet or DaskPairs
            `pairveil.engine.backends.dask_pairs.open_dask_pairs` makes the last, for ``backend='dask'``. What
            `prepare` returned is taken too.
        y : array of shape (K,)
            +1 similar, -1 dissimilar. None takes a PairSet's own labels.
        on_step : callable, optional
            Called with (share done, epsilon spent so far) after each answer.
        on_answer : callable, optional
            Called with each query, its statistic and the noisy answer; for auditors.
        checkpoint : path, Hold or Checkpoint, optional
            Answers are kept there; a fit of the same pairs that was killed resumes from them and charges
            no ledger twice. Removed when the fit is done. Not with a seed, whose noise would repeat.
        keep_checkpoint : bool
            Leave the file when the fit is done, for those who must write its result down first; with a
            `pairveil.engine.checkpoint.Hold` no other run gets at it in between.

        Returns
        -------
        self
        """
        if checkpoint is not None and self.random_state is not None:
            raise InputError("a checkpoint is for releases: leave random_state=None")
        check_backend(self.backend)
        prepared = RawRows.of(self).named(self._prepare(pairs, y))
        self._warn_of_clones(prepared.certificate)
        used = prepared.material.used
        backend = backend_for(used, self.backend)  # before anything is charged
        if checkpoint is None or isinstance(checkpoint, Checkpoint):
            saved = checkpoint
        else:
            saved = Checkpoint(checkpoint, prepared.plan, used, prepared.about)
        try:
            charging.charge(self.accountant, prepared, saved)
            watcher = Progress(prepared, on_step, on_answer)
            engine = Engine(backend, prepared.noise, watcher, checkpoint=saved)
            model = prepared.recipe.run(prepared.plan, engine)
            if not engine.followed(prepared.plan.queries):
                raise RuntimeError("the engine did not follow its plan; nothing is released")
            remember_fit(self, prepared.graph, prepared.material.meanings)
            self.certificate_ = prepared.certificate
            self.kappa_ = prepared.material.kappas[self._protected()]
            self.noise_multiplier_ = prepared.plan[prepared.recipe.headline].noise_multiplier
            self._keep(model, prepared)
        except BaseException as problem:
            if saved is not None:
                saved.close()
            if isinstance(problem, ClusterError):
                resume = charging.how_to_resume(self.accountant, saved)
                raise ClusterError(f"{problem}. {resume}") from None
            raise
        if saved is not None:  # only now: answers that were paid for outlive whatever fails above
            saved.close() if keep_checkpoint else saved.finish()
        return self

    def release(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write what ``pairveil fit --out`` writes: what was learned and its certificate, to be handed out.

        Parameters
        ----------
        folder : path
            Written whole or not at all.
        overwrite : bool
            Whether an earlier release may be replaced.

        Returns
        -------
        Path
            The folder; ``load`` of `pairveil.ReleasedMetric`, `pairveil.ReleasedRanking` or
            `pairveil.ReleasedClusters` reads it.
        """
        return self._hand_out(folder, overwrite=overwrite)

    def _hand_out(self, folder: Any, **options: Any) -> Path:
        """Write the release with its summary, which states what all releases of the ledger spend together."""
        check_is_fitted(self, "certificate_")
        if self.certificate_ is None:
            raise InputError("epsilon=inf promises nothing: there is nothing to release")
        # What is past the trust boundary stands above this part.
        summary = import_module("pairveil.report.summaries").summary_text(self)
        saved: Path = self._released().save(folder, summary=summary, **options)
        return saved

    def _warn_of_clones(self, certificate: Certificate | None) -> None:
        if certificate is not None and self.accountant is None and self in _CLONES:
            warn(
                "this learner is a clone, as cross-validation and parameter searches make them: every fit "
                "spends its own epsilon and choosing between them spends too; pass "
                "accountant=PrivacyLedger(...) to keep the total within a budget",
                PrivacyLeakWarning,
            )
