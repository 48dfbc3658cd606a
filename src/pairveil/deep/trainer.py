"""PrivateMetricTrainer: a network trained on labelled pairs, groups or tuples, with a certificate.

`make_private` gives private steps to a training loop of one's own, in the shape that users of Opacus know:

    steps = make_private(module, optimizer, pairs, y, data, epsilon=1.0, n_steps=200)
    for _ in steps:                       # each turn: one private gradient, one optimizer.step()
        ...                               # schedules, logging of public numbers
    steps.certificate
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NoReturn, Self, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score
from torch import nn

from pairveil.deep.layers import is_known_apart
from pairveil.deep.network import Network, kept
from pairveil.deep.ranks import (
    SharedCheckpoint,
    SharedNoise,
    check_alike,
    from_first,
    holds_anywhere,
    is_first,
    n_ranks,
)
from pairveil.deep.recipe import (
    NetworkRecipe,
    gradient_at,
    put_gradient,
    rows_stand_alone,
    sample_rate_of,
)
from pairveil.deep.records import PairLoss, with_loss
from pairveil.engine.backends.local import backend_for
from pairveil.engine.checkpoint import Checkpoint, fit_digest
from pairveil.engine.engine import Engine
from pairveil.errors import InputError
from pairveil.learners import base as charging
from pairveil.learners.base import WITHOUT_ROWS, PrivateLearner
from pairveil.learners.inputs import Resolved, check_bound, check_whole, given_pairs, resolve_tuples
from pairveil.learners.preparing import Prepared, PreparedRecords
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.noise import NoiseSource
from pairveil.privacy.units import NETWORK_CODE, Unit
from pairveil.records.kinds import KINDS, PAIRS
from pairveil.records.validation import check_features, check_labels, check_members

NO_BOUND = 1e30
"""A network needs no bound on people's rows: gradients are clipped, not data."""


class PrivateMetricTrainer(PrivateLearner):
    """Train a network on pairs, groups or tuples under differential pairwise privacy.

    Parameters
    ----------
    module : torch.nn.Module
        Maps (n, ...) to (n, k) embeddings; its layers treat samples apart. Its weights are where training
        starts, so they must be public (random, or learned elsewhere). Parameters with
        ``requires_grad=False`` stay.
    loss : {'contrastive', 'cosine', 'logistic', 'triplet'} or callable
        A function of the embeddings of pairs, or of triplets, see `pairveil.deep.records`.
    epsilon, delta, unit
        As in `pairveil.DPPMetricLearner`.
    n_steps : int
    sample_rate : float or 'auto'
        Share of the records that enter a step, each on its own; 1 is all of them. ``'auto'`` expects 4,096.
    max_grad_norm : float
        Records' gradients are clipped to this length.
    learning_rate : float
        Of Adam.
    micro_batch : int
        Records run at once; memory follows it, the result does not.
    device : str
    autocast : 'bfloat16' or None
        Run the network itself in bfloat16 where torch deems it safe: faster on a GPU, the same guarantee.
    **common
        ``select``, ``kappa``, ``adjacency``, ``accountant`` and ``random_state``, as in
        `pairveil.DPPMetricLearner`.

    Attributes
    ----------
    module_ : torch.nn.Module
        A copy of the module with the trained parameters; it never ran on data, and its buffers and frozen
        parameters are those of the start.
    certificate_ : Certificate or None
        None when epsilon is infinite.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from pairveil import design_pairs
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = (rng.normal(size=(400, 5)) + 2 * y[:, None]).astype(np.float32)
    >>> pairs = design_pairs(400, random_state=0)
    >>> labels = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 1, -1)
    >>> _ = torch.manual_seed(0)
    >>> net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    >>> trainer = PrivateMetricTrainer(net, epsilon=4.0, n_steps=20, random_state=0)
    >>> trainer.fit(pairs, labels, X).certificate_.epsilon <= 4.0
    True
    >>> trainer.transform(X[:3]).shape, trainer.pair_distance([[0, 1]], X).shape
    ((3, 2), (1,))
    >>> trainer.score(pairs, labels, X) > 0.5
    True
    """

    module_: nn.Module
    _fixed = WITHOUT_ROWS | {"data_norm": NO_BOUND}
    _takes = ("data",)
    _kinds = ("pairs", "groups", "tuples")

    def __init__(
        self,
        module: nn.Module,
        loss: str | PairLoss = "contrastive",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        unit: Unit = "relationship",
        n_steps: int = 100,
        sample_rate: float | Literal["auto"] = "auto",
        max_grad_norm: float = 0.1,
        learning_rate: float = 0.01,
        micro_batch: int = 256,
        device: str = "cpu",
        autocast: Literal["bfloat16"] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(epsilon=epsilon, delta=delta, unit=unit, **common)
        self.module = module
        self.loss = loss
        self.n_steps = n_steps
        self.sample_rate = sample_rate
        self.max_grad_norm = max_grad_norm
        self.learning_rate = learning_rate
        self.micro_batch = micro_batch
        self.device = device
        self.autocast = autocast

    def _resolve(  # type: ignore[override]
        self, given: Any, pairs: Any, y: Any, *, data: Any = None
    ) -> Resolved:
        """Whatever was passed, as records of people's flattened rows."""
        if given.mechanism != "gaussian":
            raise InputError("a network's gradients are clipped in l2: use mechanism='gaussian'")
        rows, shape, tokens = _people(pairs, data)
        found = _resolved(pairs, y, rows)
        known = isinstance(self.loss, str) and is_known_apart(self.module)
        said = () if known else (NETWORK_CODE,)
        return found._replace(facts={"context": (rows, shape, tokens), "public": said})

    def _recipe(self, given: Any, records: PreparedRecords) -> NetworkRecipe:
        rows, shape, tokens = records.context
        name, contributions = with_loss(records.kind, getattr(records.used, "size", 2), self.loss)
        network = Network(
            self.module,
            contributions,
            shape,
            tokens=tokens,
            micro_batch=given.micro_batch,
            device=given.device,
            autocast=given.autocast,
        )
        _check_tokens(rows, network)
        sampled = sample_rate_of(given.sample_rate, records.used.n_records) < 1
        return NetworkRecipe(
            network,
            name,
            given.n_steps,
            given.sample_rate,
            given.max_grad_norm,
            given.learning_rate,
            in_place=sampled and not rows_stand_alone(network),
        )

    def _about(self, prepared: Prepared) -> str:
        recipe: Any = prepared.recipe
        return _first_weights(recipe.network)

    def _check(self, given: Any, n_features: int) -> None:
        del n_features
        for name in ("n_steps", "micro_batch"):
            check_whole(name, getattr(given, name))
        for name in ("max_grad_norm", "learning_rate"):
            check_bound(name, getattr(given, name))
        if given.autocast not in (None, "bfloat16"):
            raise InputError("autocast must be 'bfloat16' or None")
        rate = given.sample_rate
        if rate != "auto" and not (isinstance(rate, int | float) and 0 < rate <= 1):
            raise InputError("sample_rate must be 'auto' or a number above 0 and at most 1")

    # ---- training --------------------------------------------------------------------------------

    def fit(  # type: ignore[override]
        self, pairs: Any, y: ArrayLike | None = None, data: Any = None, **options: Any
    ) -> Self:
        """Train, and issue the certificate.

        Parameters
        ----------
        pairs : integer array of shape (K, 2), or PairSet, GroupSet, TupleSet
            Row numbers of two different people in ``data``; or of m people, (K, m), the anchor first.
        y : array of shape (K,)
            +1 similar, -1 dissimilar; of tuples the column of who is nearest to the anchor (none: 1).
        data : array or tensor of shape (n_people, ...)
            What the network takes, one row a person; whole numbers are tokens. A PairSet, GroupSet or
            TupleSet may hold it.
        **options
            ``on_step``, ``on_answer``, ``checkpoint``, ``keep_checkpoint`` as in
            `pairveil.DPPMetricLearner.fit`.
        """
        prepared = self.agreed(self.prepare(pairs, y, data))
        if n_ranks() == 1:
            return super().fit(prepared, **options)
        if options.get("checkpoint") is not None and self.random_state is None:
            file, used = options["checkpoint"], prepared.records.used
            options["checkpoint"] = SharedCheckpoint(file, prepared.plan, used, prepared.about)
        ledger = self.accountant
        try:
            self.accountant = ledger if is_first() else None  # charged once
            return super().fit(prepared, **options)
        finally:
            self.accountant = ledger

    def agreed(self, prepared: Prepared) -> Prepared:
        """A fit that is the same one in all processes; refused where it is not, before it is charged."""
        recipe = prepared.recipe
        assert isinstance(recipe, NetworkRecipe)
        if n_ranks() == 1:
            return prepared
        check_alike(_digest(prepared, recipe.network), has_ledger=self.accountant is not None)
        # Another device may compute rows otherwise; buckets of two kinds would hold some pairs twice.
        recipe = dataclasses.replace(recipe, in_place=holds_anywhere(recipe.in_place))
        return dataclasses.replace(prepared, recipe=recipe)

    def _noise(self) -> NoiseSource:
        own = super()._noise()
        return own if n_ranks() == 1 else cast(NoiseSource, SharedNoise(own))

    def _keep(self, model: Any, prepared: Prepared) -> None:
        recipe = prepared.recipe
        assert isinstance(recipe, NetworkRecipe)
        self.module_ = recipe.network.made(model)
        self.shape_in_, self.tokens_ = recipe.network.shape, recipe.network.tokens
        kind = KINDS[prepared.records.kind].graph or PAIRS.name  # inside groups pairs are counted
        setattr(self, f"n_{kind}_used_", prepared.records.n_used)
        setattr(self, f"used_{kind}_", prepared.records.used_positions)
        self.by_rules_ = recipe.network.by_rules

    def transform(self, data: Any) -> NDArray[np.float64]:
        """Embeddings of people, (n, k)."""
        from pairveil.deep.release import embed

        if not hasattr(self, "module_"):
            raise InputError("this trainer is not fitted yet: call fit first")
        return embed(self.module_, data, self.shape_in_)

    def pair_distance(self, pairs: Any, data: Any) -> NDArray[np.float64]:
        """Distance of the embeddings of each pair of rows of ``data``."""
        embedded = self.transform(data)
        ends = check_members(pairs, PAIRS, len(embedded))
        distance: NDArray[np.float64] = np.linalg.norm(
            embedded[ends[:, 0]] - embedded[ends[:, 1]], axis=1
        )
        return distance

    def score(self, pairs: Any, y: ArrayLike, data: Any) -> float:
        """ROC AUC of small distances for the labels ``y`` (+1 similar, -1 dissimilar).

        Not private: of pairs that were not trained on, or of public ones.
        """
        distance = self.pair_distance(pairs, data)
        return float(roc_auc_score(check_labels(y, len(distance)), -distance))

    def release(self, folder: str | Path, *, overwrite: bool = False, onnx: bool = False) -> Path:
        """Write weights, a description, the certificate and, if asked, ONNX: see `pairveil.deep.release`."""
        return self._hand_out(folder, overwrite=overwrite, onnx=onnx)

    def _released(self) -> Any:
        from pairveil.deep.release import ReleasedNetwork

        return ReleasedNetwork(self.module_, self.certificate_, self.shape_in_)


def _first_weights(network: Network) -> str:
    """Names what training starts from; answers that are kept are gradients at it."""
    state = sorted(kept(dict(network.module.state_dict())).items())
    return hashlib.sha256(repr(state).encode()).hexdigest()


def _digest(prepared: Prepared, network: Network) -> str:
    """Names all that a process adds up and how; for the owner's own processes, as it follows from labels."""
    used, certificate = prepared.records.used, prepared.certificate
    people, said = network.records.contents(used, np.arange(used.n_records))
    stated = [
        fit_digest(prepared.plan, used, prepared.about),
        "" if certificate is None else certificate.to_json(),
        *(network.shape, network.tokens, network.by_rules, network.positions, network.rounding),
    ]
    digest = hashlib.sha256(repr(stated).encode())
    for array in (used.features, people, said):
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _resolved(records: Any, y: Any, rows: NDArray[Any]) -> Resolved:
    """Whatever was passed, as records in canonical order."""
    kind = KINDS.get(getattr(records, "kind", ""))
    groups, tuples = kind is not None and kind.holds_pairs, kind is not None and kind.on_tuples
    if kind is not None and (groups or tuples):
        if y is not None:
            raise InputError(f"{kind.name} hold what is said of them: leave y out")
        if len(rows) != records.n_people:
            raise InputError(
                f"data must have {records.n_people} rows, one a person of the {kind.name}"
            )
        records = records.with_features(check_features(rows))
    if groups:
        return Resolved(records.canonical()[0])
    if tuples or (kind is None and np.ndim(records) == 2 and np.shape(records)[1] > 2):
        return Resolved(*resolve_tuples(records, y, None if kind else rows).canonical())
    given, inferred = given_pairs(records, y, rows)
    return Resolved(*given.canonical(), inferred)


def _people(records: Any, data: Any) -> tuple[NDArray[Any], tuple[int, ...], bool]:
    """People's rows, flattened; the shape of one; and whether they are tokens."""
    if data is None:
        if not hasattr(records, "features"):
            raise InputError("data is missing: give one row a person, in the order pairs count")
        data = records.features
    array = np.asarray(data.detach().cpu() if hasattr(data, "detach") else data)
    if array.ndim < 2 or array.dtype.kind not in "fiu":
        raise InputError("data must be numbers of shape (n_people, ...), one row a person")
    tokens = array.dtype.kind in "iu"
    flat = array.reshape(len(array), -1)
    if flat.shape[1] == 0:
        raise InputError("data have no columns")
    kind = np.float64 if tokens or array.dtype == np.float64 else np.float32
    return np.ascontiguousarray(flat, dtype=kind), array.shape[1:], tokens


def _check_tokens(rows: NDArray[Any], network: Network) -> None:
    if network.tokens and rows.size and not (rows.min() >= 0 and rows.max() < network.vocabulary):
        raise InputError(
            f"data hold tokens outside 0 to {network.vocabulary - 1}, which the module's embeddings know"
        )


# ---- private steps for a training loop of one's own -------------------------------------------------


class PrivateSteps:
    """A budget of private gradient steps that was charged at once; made by `make_private`.

    Iterating takes them one after the other: the noisy mean gradient is written into the module's ``grad``
    and the optimiser makes its step. Neither copied nor pickled: one charge would pay for both.

    Notes
    -----
    Promised are the gradients. They are taken at the module's parameters of now, by copies of the module as
    it was given: its buffers and frozen parameters stay those of the start, and the module itself never runs
    here. Whatever else is done with it (a validation pass that fills a buffer, a loss of one's own on private
    rows) is not covered, and gradients that do not come from here are not taken to the optimiser.
    """

    def __init__(
        self,
        trainer: PrivateMetricTrainer,
        optimizer: Any,
        prepared: Prepared,
        checkpoint: str | Path | None = None,
    ) -> None:
        if checkpoint is not None and trainer.random_state is not None:
            raise InputError("a checkpoint is for releases: leave random_state=None")
        prepared = trainer.agreed(prepared)
        recipe, used = prepared.recipe, prepared.records.used
        assert isinstance(recipe, NetworkRecipe)
        self._network, self._clip, self._in_place = recipe.network, recipe.clip, recipe.in_place
        self._plan, self._certificate = prepared.plan, prepared.certificate
        self._own = [one for one in trainer.module.parameters() if one.requires_grad]
        self._optimizer = optimizer
        self._check_optimizer()
        backend = backend_for(used, "auto")
        self._saved: Checkpoint | None = None
        if checkpoint is not None:
            kind = Checkpoint if n_ranks() == 1 else SharedCheckpoint
            self._saved = kind(checkpoint, prepared.plan, used, prepared.about)
        try:
            from_first(charging.charge, trainer.accountant, prepared, self._saved)
        except BaseException:
            self._close()
            raise
        self._engine = Engine(backend, prepared.noise, checkpoint=self._saved)
        self._left = self._plan["gradients"].steps

    def __reduce__(self) -> NoReturn:
        raise InputError(
            "private steps cannot be copied or pickled: one charge would pay for every copy. To resume a "
            "loop that was stopped, give make_private a checkpoint=FILE"
        )

    def __len__(self) -> int:
        return self._left

    def __iter__(self) -> Iterator[int]:
        while self._left:
            self.step()
            yield self._plan["gradients"].steps - self._left

    def step(self) -> None:
        """One private gradient and one step of the optimiser."""
        if not self._left:
            raise InputError("all steps that were charged have been taken")
        self._check_optimizer()
        query = self._plan["gradients"]
        with torch.no_grad():
            for (_, inner), outer in zip(self._network.parameters, self._own, strict=True):
                inner.copy_(outer)
        gradient = gradient_at(self._network, query, self._clip, self._in_place)
        answer = self._engine.answer(query, gradient)
        self._left -= 1
        expected = query.sample_rate * self._plan.n_records
        put_gradient([("", one) for one in self._own], answer / expected)
        self._optimizer.step()
        self._optimizer.zero_grad()
        if not self._left:
            self._close()

    def _check_optimizer(self) -> None:
        """Refuse gradients of other parameters: nothing is known of where they come from."""
        own = {id(one) for one in self._own}
        for group in self._optimizer.param_groups:
            if any(id(one) not in own and one.grad is not None for one in group["params"]):
                raise InputError(
                    "the optimiser holds gradients of parameters that are not private steps' own: set them "
                    "to None (zero_grad), or leave these parameters to another optimiser"
                )

    def _close(self) -> None:
        """Let go of people's rows and of the checkpoint, whose file stays."""
        self._network.forget()
        if self._saved is not None:
            self._saved.close()

    @property
    def certificate(self) -> Certificate | None:
        """What was promised and charged: all steps, whether or not they have been taken."""
        return self._certificate


def make_private(
    module: nn.Module,
    optimizer: Any,
    pairs: Any,
    y: ArrayLike,
    data: Any,
    *,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> PrivateSteps:
    """Charge a budget of private steps for a module and an optimiser.

    Parameters
    ----------
    module : torch.nn.Module
    optimizer : torch.optim.Optimizer
        Of the module's parameters. Weight decay and momentum are free: they see released numbers only.
    pairs, y, data
        As for `PrivateMetricTrainer.fit`.
    checkpoint : path, optional
        Answers are kept there. A loop that was stopped begins anew with the same module, optimiser and file:
        steps that were taken are taken again by the answers of then, without the data and without a charge,
        and the others follow. Remove it when the result is written. Not with a seed.
    **options
        Parameters of `PrivateMetricTrainer`: epsilon, delta, unit, loss, n_steps, accountant, ...

    Examples
    --------
    >>> import numpy as np
    >>> net = nn.Linear(3, 2)
    >>> sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    >>> pairs = np.arange(50).reshape(25, 2)
    >>> y = np.resize([1, -1], 25)
    >>> steps = make_private(net, sgd, pairs, y, X, epsilon=8.0, n_steps=3, random_state=0)
    >>> list(steps), steps.certificate.epsilon <= 8.0
    ([1, 2, 3], True)
    """
    trainer = PrivateMetricTrainer(module, **options)
    return PrivateSteps(trainer, optimizer, trainer.prepare(pairs, y, data), checkpoint)
