"""PrivateLearner: what every learner that spends a privacy budget has in common.

A learner prepares once (its records in canonical order, which of them are used, the costs of each unit, the
plan and its certificate), charges, runs its recipe, checks that the plan was followed, and keeps the model.
A new learner writes its own parameters, `_recipe`, and `_check` or `_keep` where it needs them; see
docs/guides/new-learner.md.

A ledger is charged for a fit once, however often it is killed and resumed. A fit with a checkpoint is charged
when it starts. When it is resumed, the charge must be its own (the same events, kappas, graph and slack) and
the checkpoint must begin with every answer that the ledger knows of (docs/theory/guarantee.md).
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypedDict
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from pairveil.engine.backends.local import backend_for, check_backend
from pairveil.engine.checkpoint import (
    Checkpoint,
    CheckpointLock,
    Content,
    fit_digest,
    name_of,
    read,
)
from pairveil.engine.engine import Engine, OnAnswer
from pairveil.engine.plan import Recipe
from pairveil.errors import ClusterError, InputError, PairveilWarning, PrivacyLeakWarning, warn
from pairveil.learners.inputs import (
    FITTED,
    OWN_ROWS,
    RawRows,
    Resolved,
    check_common,
    given_pairs,
    ids_of,
    own_secret,
    plain_parameters,
    row_numbers,
    without_ids,
)
from pairveil.learners.preparing import (
    Prepared,
    PreparedRecords,
    cut_pairs,
    plan_fit,
    prepare_records,
)
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms import GAUSSIAN, Query
from pairveil.privacy.noise import NoiseSource, SeededNoise, TrustedNoise
from pairveil.privacy.profile import epsilon_of
from pairveil.privacy.units import UNITS, Adjacency, Unit
from pairveil.records.kinds import KINDS, PAIRS
from pairveil.records.pairset import PairSet
from pairveil.records.records import Records

# ---- charging a ledger ---------------------------------------------------------------------------


def charge(ledger: PrivacyLedger | None, prepared: Prepared, saved: Checkpoint | None) -> None:
    """Charge a fit before any noise is drawn, unless the ledger was charged for this very fit.

    A killed fit has spent, never the other way round. A fit without noise costs infinitely much, so a ledger
    refuses it.
    """
    if ledger is None:
        return
    cost, note = prepared.cost(), f"fit of {prepared.plan.n_records} {prepared.records.kind}"
    if saved is None:
        ledger.spend(**cost, note=note)
        return
    known = _charged_mark(ledger, cost, saved.content)
    if known is None:
        ledger.spend(**cost, note=note, checkpoint=(saved.content.name, saved.mark))
    else:  # a file that is ahead: its last answer is about to be used
        ledger.advance(saved.content.name, known, saved.mark)
    saved.follow(ledger)


def check_resumable(ledger: PrivacyLedger | None, prepared: Prepared, path: Path | str) -> None:
    """Refuse a checkpoint that a fit would not resume from; charges and changes nothing.

    ``path``: there may be nothing there yet.

    Raises InputError: the checkpoint is of another fit, damaged, or not what the ledger knows of it.
    """
    if not Path(path).exists():
        return
    content = read(path, fit_digest(prepared.plan, prepared.records.used, prepared.about))
    if ledger is not None:
        _charged_mark(ledger, prepared.cost(), content)


def how_to_resume(ledger: PrivacyLedger | None, saved: Checkpoint | None) -> str:
    """What a fit that was stopped has been charged, and how it is resumed: for people."""
    if saved is not None:
        charged = "" if ledger is None else "The ledger was charged for this fit, once. "
        more = "" if ledger is None else ", and charges nothing more"
        return f"{charged}Run the same again: it resumes from its checkpoint{more}"
    if ledger is None:
        return (
            "No ledger was charged. Run it again; with checkpoint=FILE it can be resumed next time"
        )
    return (
        "The ledger was charged for this fit and stays charged; another fit is charged anew. With "
        "checkpoint=FILE a fit can be resumed, and is charged once"
    )


def is_charged(ledger: PrivacyLedger, path: Path | str) -> bool:
    """Whether a ledger was charged for the fit of this checkpoint, which `check_resumable` accepts."""
    name = name_of(path)
    return any(entry.checkpoint and entry.checkpoint[0] == name for entry in ledger.entries)


def _charged_mark(ledger: PrivacyLedger, cost: dict[str, Any], content: Content) -> str | None:
    """How far the ledger knows this fit has come; None where it was not charged for it."""
    for entry in ledger.entries:
        if entry.checkpoint is None or entry.checkpoint[0] != content.name:
            continue
        # A name by row numbers is that of the object that died with its process; the checkpoint itself is of
        # these pairs and no others. Entries of version 2 do not say what units mean.
        kept = {name: getattr(entry, name) for name in cost}
        if str(kept["graph"]).startswith(OWN_ROWS):
            kept["graph"] = cost["graph"]
        if entry.meanings is None:
            kept["meanings"] = cost["meanings"]
        if kept != cost:
            raise InputError(
                "the ledger was charged for another fit under this checkpoint's name; "
                "remove it to start anew, which spends anew"
            )
        mark = entry.checkpoint[1]
        if mark not in content.marks:
            raise InputError(
                "the ledger knows of sums that are not in this checkpoint: it is an older copy, or "
                "damaged; remove it to start anew, which spends anew"
            )
        return mark
    return None


# ---- sizes of files, so that there is room for them before anything is spent ---------------------

_RECORD = 400  # bytes beside the numbers of a sum: its name, its head, numpy's own

_FIRST_LINE = 1_000


def most_rows(recipe: Recipe, n_features: int) -> int:
    """Rows of the metric that a recipe returns, at most.

    A recipe that can tell has ``most_rows(n_features)``; others return ``n_components`` rows if they have
    such a parameter, or a square matrix.
    """
    own = getattr(recipe, "most_rows", None)
    if own is not None:
        return int(own(n_features))
    return int(getattr(recipe, "n_components", None) or n_features)


def checkpoint_bytes(plan: Mapping[str, Any]) -> int:
    """Bytes of the checkpoint of a whole fit, at most; ``plan`` is that of the certificate of any learner."""
    sums = (one["steps"] * (8 * one["entries"] + _RECORD) for one in plan["releases"])
    return int(_FIRST_LINE + sum(sums))


# ---- progress ------------------------------------------------------------------------------------

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
            kappa=self._prepared.records.costs[certificate.unit],
            adjacency=certificate.adjacency,
            delta=certificate.delta - certificate.delta_slack,
        )


# ---- the learner ---------------------------------------------------------------------------------


class _Features:
    """Stands for people's features wherever an estimator is shown."""

    def __repr__(self) -> str:
        return "<features>"


def _is_shown() -> bool:
    """Whether scikit-learn asks for parameters in order to show them: it offers no hook for it."""
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code.co_name not in ("__repr__", "_get_params_html"):
        frame = frame.f_back
    return frame is not None


class WithoutData(BaseEstimator):
    """Base of all that is fitted to private data: a pickle of what was fitted, or what is shown of it, alone
    or inside pipelines and searches, holds none of them."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; people's features are not shown."""
        found: dict[str, Any] = super().get_params(deep)
        return _without_tables(found) if _is_shown() else found

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        shown = super()._get_fitted_attr_html(doc_link)
        shown.data = {name: one for name, one in shown.data.items() if not name.startswith("used_")}
        return shown

    def __getstate__(self) -> dict[str, Any]:
        """Once fitted, without what is its owner's alone; learners inside (a search's, a grid's) likewise.

        These are people's features, and places in the owner's file: it may be sorted by label, and then the
        positions of the used pairs tell of labels. Unfitted it is whole, as worker processes need it.
        """
        state: dict[str, Any] = dict(super().__getstate__())
        fitted = any(name.endswith("_") and not name.startswith("_") for name in state)
        return _without_owners(state) if fitted else state


def _without_tables(value: Any) -> Any:
    """Parameters, and what a grid tries of them, with a word in place of people's features."""
    if type(value) is dict:
        return {
            name: _Features()
            if str(name).split("__")[-1] == "preprocessor" and one is not None
            else _without_tables(one)
            for name, one in value.items()
        }
    return list(map(_without_tables, value)) if type(value) is list else value


def _without_owners(state: Mapping[str, Any]) -> dict[str, Any]:
    """A learner's parameters and attributes, the owner's own left out."""
    return {
        name: None if name == "preprocessor" else _for_others(value)
        for name, value in state.items()
        if not name.startswith("used_")
    }


def _for_others(value: Any) -> Any:
    """The same value, where learners in it have nothing of their owners."""
    if isinstance(value, WithoutData):
        bare = object.__new__(type(value))
        bare.__dict__ = _without_owners(vars(value))
        return bare
    if type(value) is dict:
        return {name: _for_others(one) for name, one in value.items()}
    return type(value)(map(_for_others, value)) if type(value) in (list, tuple) else value


# Not an attribute: scikit-learn holds that an estimator has its parameters and nothing else.
_CLONES: WeakSet[Any] = WeakSet()


class Further(TypedDict, total=False):
    """What every learner takes by keyword; see `PrivateLearner`."""

    data_norm: float
    accountant: PrivacyLedger | None
    preprocessor: Any
    backend: Literal["auto", "numpy", "dask"]
    random_state: int | np.random.Generator | np.random.RandomState | None
    schema: Any
    bounds: Any


class Common(Further, total=False):
    """What every learner takes; see `PrivateLearner`."""

    epsilon: float
    delta: float
    unit: Unit
    select: str
    kappa: int | Literal["auto"]
    adjacency: Adjacency
    mechanism: str


def _parameters_of(learner: type[Any]) -> dict[str, Parameter]:
    """Parameters of a learner by name; ``**common`` stands for those of the class above, by keyword."""
    found: dict[str, Parameter] = {}
    takers = [vars(kind)["__init__"] for kind in learner.__mro__ if "__init__" in vars(kind)]
    for number, taker in enumerate(takers):
        taken = list(signature(taker).parameters.values())[1:]
        for one in taken:
            if one.kind is not Parameter.VAR_KEYWORD:
                kind = Parameter.KEYWORD_ONLY if number else one.kind
                found.setdefault(one.name, one.replace(kind=kind))
        if all(one.kind is not Parameter.VAR_KEYWORD for one in taken):
            break
    return {name: one for name, one in found.items() if name not in learner._fixed}


def _described(parameters: str, lacking: Iterable[str]) -> str:
    """What the docstring says of the common parameters, without those that a learner says itself or lacks."""
    for name in lacking:
        parameters = re.sub(rf"(?m)^ {{4}}{name} :.*\n?(?: {{8}}.*\n?)*", "", parameters)
    return parameters.rstrip("\n")


WITHOUT_ROWS: dict[str, Any] = {
    "data_norm": 1.0, "preprocessor": None, "backend": "auto", "schema": None, "bounds": None
}  # fmt: skip
"""For `PrivateLearner._fixed`: what concerns people's rows, of learners that take none."""


class PrivateLearner(WithoutData):
    """Base of the learners: from parameters and records to a certified model.

    Parameters
    ----------
    epsilon : float, default 1.0
        Privacy budget of one fit, for ``unit`` and ``adjacency``. ``inf`` is the non-private learner.
    delta : float, default 1e-5
        Must be well below 1 / number of records. Not used where the noise is pure.
    unit : {'relationship', 'person', 'pair'}
        What is protected; it decides kappa.
    select : {'paths', 'forest', 'matching', 'groups', 'all'}
        Which of the given records to use. Looks at who is in which of them only.
    kappa : 'auto' or int
        'auto' reads it off the graph of the used records; a number is refused when the graph needs more.
    adjacency : {'zero-out', 'replace'}
        What epsilon compares; the certificate states both.
    mechanism : str
        Kind of noise: 'gaussian', or 'laplace' for pure epsilon (`pairveil.privacy.mechanisms`).
    data_norm : float, default 1.0
        Public bound on a person's l2 norm; longer rows are clipped, with a warning.
    accountant : PrivacyLedger or None
        A budget across fits; charged before any noise is drawn.
    preprocessor : array, DataFrame, sparse matrix or callable, optional
        People's features, when records are given as row indices or ids.
    backend : {'auto', 'numpy', 'dask'}
        Where sums are taken: compiled loops, numpy, or the workers of the connected Dask cluster.
    random_state : int, Generator, RandomState or None
        None: exact noise from the operating system, a release. A seed: repeatable, not for release.
    schema : Schema or path, optional
        Public facts of raw columns (`pairveil.read_schema`): rows are then raw ones everywhere.
    bounds : {column: (lower, upper)}, list of (lower, upper), PublicBounds or path, optional
        Public bounds of columns that are numbers; values outside are set to them while learning.

    Notes
    -----
    A learner with parameters of its own takes these as ``**common: Unpack[Common]`` and hands them to
    ``super().__init__``: its signature, its help and scikit-learn then show all of them by name.
    """

    learns_from: ClassVar[tuple[str, ...]] = ("pairs",)
    """What it can be fitted to: 'pairs' (FEATURES and PAIRS on the command line), 'classes' (FEATURES with a
    column of classes), or another kind that the learner documents. Audits play with the first."""

    # None where epsilon is infinite: | Any spares everybody else a check for it.
    certificate_: Certificate | Any
    __signature__: ClassVar[Signature]
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

    _fixed: ClassVar[Mapping[str, Any]] = {}
    """Common parameters that a learner does not have, and their values."""
    _units: ClassVar[tuple[str, ...]] = UNITS
    """What it can protect."""

    _kinds: ClassVar[tuple[str, ...]] = (PAIRS.name,)
    """Kinds of records that its statistics bound contributions of; others are refused."""

    _takes: ClassVar[tuple[str, ...]] = ()
    """What ``fit`` takes by position behind records and labels: names of keywords of `_resolve`."""

    def _resolve(self, given: Any, data: Any, y: Any) -> Resolved:  # noqa: ARG002
        """What was passed to ``fit``, as records in canonical order; by default pairs, or groups.

        Further parameters of ``fit`` are keyword parameters here.
        """
        if isinstance(data, Records) and data.record_kind.holds_pairs:
            if y is not None:
                raise InputError("groups hold the labels of the pairs inside them: leave y out")
            RawRows.of(self).table(None, data)
            return Resolved(data.canonical()[0])
        found = self._read_pairs(data, y, learning=True)
        return found._replace(secret=own_secret(self, data, guessed=found.inferred))

    def _read_pairs(self, pairs: Any, y: Any, *, learning: bool, quiet: bool = False) -> Resolved:
        """Labelled pairs whose rows are as this learner sees them, or as its metric takes them."""
        if quiet:  # said already
            with warnings.catch_warnings(action="ignore", category=PairveilWarning):
                return self._read_pairs(pairs, y, learning=learning)
        given, inferred = self._given_pairs(pairs, y, learning=learning)
        return Resolved(*given.canonical(), inferred)

    def _given_pairs(self, pairs: Any, y: Any, *, learning: bool) -> tuple[PairSet, bool]:
        """The same in the order given, and whether the topology was read off equal rows."""
        table = self.preprocessor
        named, people = row_numbers(pairs, table), without_ids(table)
        read, preprocessor = RawRows.of(self).inputs(named, people, learning=learning)
        return given_pairs(read, y, preprocessor, ids_of(table))

    def _check(self, given: Any, n_features: int) -> None:
        """Refuse senseless values of the learner's own parameters, before anything is spent."""

    def _prepare_records(self, given: Any, found: Resolved) -> PreparedRecords:
        """Which records are used, and what each unit moves of them."""
        if KINDS[found.data.kind].pairwise and given.select == "groups":
            return cut_pairs(given, found)
        return prepare_records(given, found)

    def _recipe(self, given: Any, records: PreparedRecords) -> Recipe:
        """What is asked of the records, from the parameters as plain numbers (attributes of ``given``)."""
        raise NotImplementedError

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

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.__signature__ = Signature(list(_parameters_of(cls).values()))
        words = (PrivateLearner.__doc__ or "").partition("----------\n")[2].partition("\n\n")[0]
        # A **common of the docstring gives way to the parameters that it stands for.
        own = cls.__doc__ or ""
        words = _described(words, (*cls._fixed, *re.findall(r"(?m)^ {4}(\w+) :", own)))
        cls.__doc__ = re.sub(r" {4}\*\*common\n(?: {8}.*\n)*", f"{words}\n", own)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """scikit-learn's list of parameters."""
        return sorted(signature(cls).parameters)

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

    def prepare(self, pairs: Any, y: Any = None, *further: Any, **more: Any) -> Prepared:
        """All of a fit that comes before its noise: which records, kappa, plan and certificate.

        Parameters
        ----------
        pairs, y, *further, **more
            As for ``fit``.

        Returns
        -------
        Prepared
            Give it to ``fit`` in place of pairs; it spends nothing by itself.
        """
        if isinstance(pairs, Prepared):
            return pairs
        given = self._parameters()
        more |= dict(zip(self._takes[: len(further)], further, strict=True))
        found = self._resolve(given, pairs, y, **more)
        self._check(given, found.data.n_features)
        records = self._prepare_records(given, found)
        if records.kind not in self._kinds:
            raise InputError(f"{type(self).__name__} does not learn from {records.kind}")
        return self._planned(given, records, found.secret)

    def replan(self, prepared: Prepared) -> Prepared:
        """The same records by this learner's parameters, as of now: none is read or chosen again.

        Its unit, ``select``, ``kappa`` and ``data_norm`` must be those that the records were prepared for.
        """
        given = self._parameters()
        self._check(given, prepared.records.used.n_features)
        return self._planned(given, prepared.records, prepared.secret)

    def _parameters(self) -> Any:
        """The parameters as plain numbers, checked."""
        given = plain_parameters(self)
        given.unit = self._protected()
        check_common(given, self._units)
        vars(given).update(self._fixed)
        return given

    def _planned(self, given: Any, records: PreparedRecords, secret: bytes | None) -> Prepared:
        made = plan_fit(self._recipe(given, records), given, records, self._noise())
        return replace(made, about=RawRows.of(self).named(self._about(made)), secret=secret)

    def _about(self, prepared: Prepared) -> str:
        """What else the answers depend on (`Prepared.about`)."""
        del prepared
        return ""

    def _noise(self) -> NoiseSource:
        return TrustedNoise() if self.random_state is None else SeededNoise(self.random_state)

    def certify(
        self,
        pairs: Any,
        y: Any = None,
        *further: Any,
        checkpoint: str | Path | None = None,
        **more: Any,
    ) -> Certificate | None:
        """The certificate that ``fit`` would issue. Draws no noise and spends nothing.

        Parameters
        ----------
        pairs, y, *further, **more
            As for ``fit``; labels and features are checked, and do not enter the certificate.
        checkpoint : path, optional
            Refused if ``fit`` would refuse to resume from it.
        """
        prepared = self.prepare(pairs, y, *further, **more)
        if checkpoint is not None:
            check_resumable(self.accountant, prepared, checkpoint)
        return prepared.certificate

    def fit(
        self,
        pairs: Any,
        y: ArrayLike | None = None,
        *,
        on_step: OnStep | None = None,
        on_answer: OnAnswer | None = None,
        checkpoint: str | Path | CheckpointLock | Checkpoint | None = None,
        keep_checkpoint: bool = False,
        **more: Any,
    ) -> Self:
        """Learn, and issue the certificate.

        Parameters
        ----------
        pairs : (K, 2) row indices with ``preprocessor``, (K, 2, d) feature rows, or PairSet
            What `prepare` returned is taken too.
        y : array of shape (K,)
            +1 similar, -1 dissimilar. None takes a PairSet's own labels.
        on_step : callable, optional
            Called with (share done, epsilon spent so far) after each answer.
        on_answer : callable, optional
            Called with each query, its statistic and the noisy answer; for auditors.
        checkpoint : path, CheckpointLock or Checkpoint, optional
            Answers are kept there; a fit of the same pairs that was killed resumes from them and charges
            no ledger twice. Removed when the fit is done. Not with a seed, whose noise would repeat.
        keep_checkpoint : bool
            Leave the file when the fit is done, for those who must write its result down first; with a
            `pairveil.engine.checkpoint.CheckpointLock` no other run gets at it in between.
        **more
            What a learner takes beside records and labels.

        Returns
        -------
        self
        """
        if checkpoint is not None and self.random_state is not None:
            raise InputError("a checkpoint is for releases: leave random_state=None")
        check_backend(self.backend)
        prepared = self.prepare(pairs, y, **more)
        if prepared.certificate is not None and self.accountant is None and self in _CLONES:
            warn(
                "this learner is a clone, as cross-validation and parameter searches make them: every fit "
                "spends its own epsilon and choosing between them spends too; pass "
                "accountant=PrivacyLedger(...) to keep the total within a budget",
                PrivacyLeakWarning,
            )
        used = prepared.records.used
        backend = backend_for(used, self.backend)  # before anything is charged
        if checkpoint is None or isinstance(checkpoint, Checkpoint):
            saved = checkpoint
        else:
            saved = Checkpoint(checkpoint, prepared.plan, used, prepared.about)
        try:
            charge(self.accountant, prepared, saved)
            watcher = Progress(prepared, on_step, on_answer)
            engine = Engine(backend, prepared.noise, watcher, checkpoint=saved)
            model = prepared.recipe.run(prepared.plan, engine)
            if not engine.followed(prepared.plan.queries):
                raise RuntimeError("the engine did not follow its plan; nothing is released")
            FITTED[self] = prepared.graph, prepared.records.meanings
            self.certificate_ = prepared.certificate
            self.kappa_ = prepared.records.kappas[self._protected()]
            self.noise_multiplier_ = prepared.plan[prepared.recipe.headline].noise_multiplier
            self._keep(model, prepared)
            prepared.finish(self, saved)
        except BaseException as problem:
            if saved is not None:
                saved.close()
            if isinstance(problem, ClusterError):
                resume = how_to_resume(self.accountant, saved)
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
        summary = import_module("pairveil.report.facts").summary_text(self)
        saved: Path = self._released().save(folder, summary=summary, **options)
        return saved
