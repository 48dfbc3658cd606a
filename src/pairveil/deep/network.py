"""A torch module made ready for records: what learns, how their gradients are found, what is refused.

All checks run on random inputs of the data's shape, before any data are touched and anything is charged.
The module itself never runs: every pass, of trials and of data, has a new copy of it and of the loss, which
is thrown away, so that no record meets what another left behind and nothing of the data is handed out.

What a module or a loss keeps of the data it saw is compared by every value that can be reached from it
(`kept`): buffers and parameters, attributes, containers in them, closures of hooks, globals that code of
one's own names. That is for what a copy shares with its original (closures, globals), and for people who
expect a module to remember.
"""

from __future__ import annotations

import copy
import dis
import hashlib
import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import _lru_cache_wrapper, partial
from types import CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pairveil.deep.arithmetic import Recorded, wide
from pairveil.deep.layers import (
    LayerParts,
    Parts,
    Rule,
    formed_parts,
    parts_by_layer,
    rule_of,
    together,
)
from pairveil.deep.records import (
    NetworkRecords,
    PairLoss,
    PairRecords,
    check_apart,
    is_null,
    same_bits,
)
from pairveil.errors import InputError

# ---- what a module or a loss keeps ------------------------------------------------------------------

_PLAIN = (int, float, complex, str, bytes, type(None))

_OURS = {"torch", "pairveil"}
"""Packages whose objects are not looked into, modules aside: they keep caches and counters of their own."""

_CLOSED = {*sys.stdlib_module_names, "numpy", *_OURS}
"""Packages whose code is not followed; what their objects hold is."""


def kept(root: Any) -> dict[str, str]:
    """Every value that can be reached from an object, by path; tensors and arrays by their digests.

    Examples
    --------
    >>> layer = nn.Linear(1, 1)
    >>> before = kept(layer)
    >>> layer.seen = [torch.ones(1)]
    >>> sorted(kept(layer).keys() - before.keys())
    ['seen', 'seen.0']
    """
    found: dict[str, str] = {}
    seen: dict[int, Any] = {}  # holds on to what it names: ids are not used again
    left = [("", root)]
    while left:
        path, value = left.pop()
        if isinstance(value, _PLAIN):
            found[path] = repr(value)
        elif id(value) not in seen:
            seen[id(value)] = value
            found[path] = _digest(value)
            left += [(f"{path}.{name}" if path else name, one) for name, one in _parts(value)]
    return found


def _digest(value: Any) -> str:
    """Names the contents of an array; other things are named by their kind, and their parts follow."""
    if isinstance(value, torch.Generator):
        value = value.get_state()
    if isinstance(value, Tensor):
        try:
            held = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        except (RuntimeError, TypeError, ValueError):  # one of a layout of its own
            return repr(value)
        return f"{value.dtype}{tuple(value.shape)}{hashlib.sha256(held).hexdigest()}"
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, bytearray | memoryview | array):
        return hashlib.sha256(memoryview(value)).hexdigest()
    if isinstance(value, _lru_cache_wrapper):
        return f"of {value.cache_info().currsize}"
    return type(value).__name__


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What a value is made of, by name."""
    if isinstance(value, Mapping):
        yield from ((str(name), one) for name, one in value.items())
    elif isinstance(value, list | tuple | deque):
        yield from ((str(place), one) for place, one in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from ((str(place), one) for place, one in enumerate(sorted(value, key=repr)))
    elif isinstance(value, np.ndarray):
        yield from _parts(value.tolist()) if value.dtype.hasobject else ()
    elif isinstance(value, partial):
        yield from (("func", value.func), ("args", value.args), ("keywords", value.keywords))
    elif isinstance(value, MethodType):
        yield from (("__self__", value.__self__), ("__func__", value.__func__))
    elif isinstance(value, staticmethod | classmethod):
        yield "__func__", value.__func__
    elif isinstance(value, property):
        yield "fget", value.fget
    elif isinstance(value, FunctionType):
        yield from _of_function(value)
    elif isinstance(value, type):
        yield from vars(value).items() if _is_own_code(value) else ()
    elif isinstance(value, nn.Module) or _package(type(value)) not in _CLOSED:
        if isinstance(value, torch.jit.ScriptModule):
            yield from value.named_buffers()
        yield from getattr(value, "__dict__", {}).items()
        for kind in type(value).__mro__:
            yield from ((name, getattr(value, name, None)) for name in _slots(kind))
            yield kind.__qualname__, kind
    elif isinstance(value, GeneratorType):
        yield from ({} if value.gi_frame is None else value.gi_frame.f_locals).items()
    elif _package(type(value)) not in _OURS and not isinstance(value, ModuleType):
        yield "state", _state(value)


def _state(value: Any) -> Any:
    """What an object of Python's own or of numpy says it is made of, as for a copy."""
    try:
        return value.__reduce_ex__(4)
    except Exception:  # it cannot be copied: a queue with its lock
        return dict(getattr(value, "__dict__", {}))


def _of_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function holds, and the globals that it names."""
    if not _is_own_code(function):
        return
    yield "__dict__", vars(function)
    yield "__defaults__", (function.__defaults__, function.__kwdefaults__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            continue
    codes = list(_codes(function.__code__))
    loads = {
        one.argval for code in codes for one in dis.get_instructions(code) if "GLOBAL" in one.opname
    }
    for name in sorted(loads & function.__globals__.keys()):
        value = function.__globals__[name]
        if isinstance(value, ModuleType):
            held = vars(value) if _is_own_code(value) else {}
            said = {one for code in codes for one in code.co_names} & held.keys()
            yield from ((f"{name}.{one}", held[one]) for one in sorted(said))
        else:
            yield name, value


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Code, and that of functions inside it."""
    yield code
    for one in code.co_consts:
        yield from _codes(one) if isinstance(one, CodeType) else ()


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _package(thing: Any) -> str:
    where = "__name__" if isinstance(thing, ModuleType) else "__module__"
    return str(getattr(thing, where, "builtins")).split(".")[0]


def _is_own_code(thing: Any) -> bool:
    """Whether a function or class was written by the user: that of installed packages is not followed."""
    where = str(getattr(sys.modules.get(_package(thing)), "__file__", ""))
    installed = "site-packages" in where or "dist-packages" in where
    return _package(thing) not in _CLOSED and not installed


# ---- a module made ready for records ---------------------------------------------------------------

CANCELLING = 64.0
"""Terms of a pair's gradient that are this much longer than their sum are clipped as if their sum was longer:
what floating point adds up then stays below ``CANCELLING`` clips a pair."""

MIXING = (nn.modules.batchnorm._BatchNorm, nn.SyncBatchNorm)

_ONE_BY_ONE = 64  # records whose gradients are formed at once where a layer has no rule

_AGREEMENT = 1e-3  # of sums by the rules with torch's own, relative, in the network's own precision

_Thing = TypeVar("_Thing")


class Pass(NamedTuple):
    """What one pass runs on."""

    module: nn.Module
    records: NetworkRecords


class Network:
    """A copy of a module, in evaluation mode, and all that is known of its pairs' gradients.

    ``loss`` is one of pairs, or other records with theirs (`pairveil.deep.records`). ``shape`` is that of one
    person's data, ``tokens`` says whether those are whole numbers for an embedding. So many records as
    ``micro_batch`` says are run at once, and memory follows it. With ``autocast`` the module runs under
    torch.autocast; losses, norms and sums are not part of it. Parameters with ``requires_grad=False`` stay as
    they are. ``module`` is the copy, with the parameters of now; it never ran.

    Examples
    --------
    >>> from pairveil.deep.records import contrastive
    >>> net = Network(nn.Linear(3, 2), contrastive, (3,))
    >>> net.n_parameters, net.by_rules
    (8, True)
    """

    def __init__(
        self,
        module: nn.Module,
        loss: PairLoss | NetworkRecords,
        shape: tuple[int, ...],
        *,
        tokens: bool = False,
        micro_batch: int = 256,
        device: str = "cpu",
        autocast: str | None = None,
    ) -> None:
        if not isinstance(module, nn.Module):
            raise InputError("module must be a torch.nn.Module")
        self.device = _device(device)
        self.module = _prepared(module).to(self.device)
        self.records: NetworkRecords = PairRecords(loss) if callable(loss) else loss
        self.shape, self.tokens = tuple(shape), tokens
        self.micro_batch = micro_batch
        self.parameters = [
            (name, one) for name, one in self.module.named_parameters() if one.requires_grad
        ]
        if not self.parameters:
            raise InputError("the module has no parameter that learns (requires_grad)")
        self.n_parameters = sum(one.numel() for _, one in self.parameters)
        self.positions, self.rounding = 1, 0.0
        self._sums: dict[float, Recorded] = {}
        self.held: tuple[NDArray[Any], Tensor] | None = (
            None  # people's rows, and where they lie now
        )
        self.half = False  # the checks look at structure, in full precision
        self._rules = self._with_rules()
        self._at_two_weights(self._check_rows_apart)
        for n in self._sizes():
            with torch.no_grad():
                run = self._fresh()
                *people, said = self._trial(n=n)
                embedded = torch.stack([run.module(one) for one in people])
            check_apart(run.records, embedded, said)
        self.by_rules = self._rules is not None and self._rules_agree()
        self._check_pass("the module has layers without a rule, and torch.func cannot form them")
        self._at_two_weights(self._check_slopes_apart)
        self.half = autocast is not None
        self._check_pass(
            f"the module does not run with autocast={autocast!r}, leave that out; torch"
        )
        self.rounding = self.gradients(*self._trial()).rounding
        self._check_memory()

    # ---- parameters as one vector ------------------------------------------------------------------

    def flat(self) -> NDArray[np.float64]:
        """All parameters that learn, as one vector."""
        parts = [one.detach().double().reshape(-1) for _, one in self.parameters]
        vector: NDArray[np.float64] = torch.cat(parts).cpu().numpy()
        return vector

    def load(self, values: NDArray[np.float64]) -> None:
        """Set the parameters that learn."""
        vector = torch.as_tensor(values, dtype=torch.float64, device=self.device)
        place = 0
        with torch.no_grad():
            for _, one in self.parameters:
                one.copy_(vector[place : place + one.numel()].reshape(one.shape))
                place += one.numel()

    def made(self, values: NDArray[np.float64]) -> nn.Module:
        """A module with these values of the parameters that learn; like every copy of ours it never ran."""
        now = self.flat()
        self.load(values)
        try:
            return self._fresh().module.cpu()
        finally:
            self.load(now)

    # ---- gradients of records ------------------------------------------------------------------------

    def _fresh(self) -> Pass:
        """A module and a loss that saw nothing, for one pass."""
        return _copied(Pass(self.module, self.records))

    def gradients(self, *given: Tensor) -> Parts:
        """Norms and weighted sums of the gradients of n records; a null one (said 0) has none.

        ``weighted`` gives one vector, in the order of `flat`.

        ``*given``: the records' people, (n, ...) for each place in a record; last, what is said of the
        records: for pairs left, right and labels.
        """
        return self._gradients(self._fresh(), *given)

    def _gradients(self, run: Pass, *given: Tensor) -> Parts:
        if self.by_rules:
            return self._joined(self._by_layer(run, *given))
        return self._pair_by_pair(run, *given)

    def clipped_sum(self, clip: float, *given: Tensor) -> Tensor:
        """Sum of the records' gradients, each clipped; given as for `gradients`."""
        parts = self.gradients(*given)
        safe = (parts.square + (parts.terms / CANCELLING) ** 2).sqrt()
        # A gradient too long for floats contributes nothing: its own record, and no other.
        counted = torch.isfinite(safe) & ~is_null(given[-1])
        factors = torch.where(counted, 1 / safe.clamp(min=clip), 0.0)
        return clip * parts.weighted(factors)[0]

    def recorded_sum(self, clip: float) -> Recorded:
        """`clipped_sum` of micro-batches, recorded at the first of them."""
        return self._sums.setdefault(clip, Recorded(partial(self.clipped_sum, clip)))

    def forget(self) -> None:
        """Let go of what a fit held on the device."""
        self.held, self._sums = None, {}

    def _embedded(self, run: Pass, people: Tensor) -> Tensor:
        """Embeddings of people, at least float32 outside of the module."""
        with self._cast():
            return wide(run.module(people))

    def _cast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.half)

    def _losses(self, run: Pass, embedded: Tensor, said: Tensor) -> Tensor:
        """Of embeddings (n * size, k), record by record."""
        by_record = embedded.reshape(len(said), run.records.size, -1)
        losses = run.records.losses(by_record.transpose(0, 1), said)
        return torch.where(is_null(said), torch.zeros_like(losses), losses)

    def _by_layer(
        self, run: Pass, *given: Tensor, steepened: Tensor | float = 1.0
    ) -> list[LayerParts]:
        *places, said = given
        rules = (self._rules or {}).items()
        return parts_by_layer(
            {name: (run.module.get_submodule(name), rule) for name, rule in rules},
            lambda: self._losses(run, self._embedded(run, by_record(places)), said) * steepened,
            len(said),
        )

    def _joined(self, found: list[LayerParts]) -> Parts:
        """The layers' parts as those of the whole network."""
        whole = together([one.parts for one in found])
        finite = torch.isfinite(whole.square) & torch.isfinite(whole.terms)

        def weighted(factors: Tensor) -> list[Tensor]:
            # A pair that overflows somewhere contributes nothing anywhere, itself only.
            counted, sums = torch.where(finite, factors, 0.0), {}
            for one in found:
                totals = one.parts.weighted(counted)
                for own, total in zip(one.learn, totals, strict=True):
                    sums[f"{one.name}.{own}" if one.name else own] = total.reshape(-1)
            return [
                torch.cat(
                    [
                        sums.get(name, at.new_zeros(at.numel()).double())
                        for name, at in self.parameters
                    ]
                )
            ]

        return Parts(whole.square, whole.terms, weighted, whole.rounding)

    def _pair_by_pair(self, run: Pass, *given: Tensor) -> Parts:
        """Every record's gradient, formed by torch.func: for layers without a rule."""
        *places, said = given
        values = {name: one.detach() for name, one in run.module.named_parameters()}
        learned = {name: values.pop(name) for name, _ in self.parameters}
        buffers = dict(run.module.named_buffers())

        def loss_of(learned: dict[str, Tensor], people: Tensor, said: Tensor) -> Tensor:
            state = {**learned, **values, **buffers}
            with self._cast():
                embedded = torch.func.functional_call(run.module, state, (people,))
            return self._losses(run, wide(embedded), said[None])[0]

        each = torch.func.vmap(
            torch.func.grad(loss_of), in_dims=(None, 0, 0), chunk_size=_ONE_BY_ONE
        )
        formed = each(learned, torch.stack(places, dim=1), said)
        rows = torch.cat([formed[name].flatten(1).double() for name, _ in self.parameters], dim=1)
        finite = torch.isfinite(rows).all(dim=1)
        return formed_parts(torch.where(finite[:, None], rows, 0.0))

    # ---- checks, on random inputs ---------------------------------------------------------------------

    def example(self, n: int, seed: int = 0) -> Tensor:
        """Random inputs of the data's shape."""
        draw = torch.Generator().manual_seed(seed)
        if self.tokens:
            return torch.randint(0, self.vocabulary, (n, *self.shape), generator=draw).to(
                self.device
            )
        return torch.randn((n, *self.shape), generator=draw).to(self.device, self.dtype)

    @property
    def dtype(self) -> torch.dtype:
        """What the network computes in."""
        return next(self.module.parameters()).dtype

    @property
    def vocabulary(self) -> int:
        """Tokens that every embedding knows."""
        return min((one.num_embeddings for one in self._embeddings()), default=2)

    def _with_rules(self) -> dict[str, Rule] | None:
        """The rules of the layers that learn, by name, or None where some has none."""
        found: dict[str, Rule] = {}
        for name, layer in self.module.named_modules():
            if not any(one.requires_grad for one in layer.parameters(recurse=False)):
                continue
            rule = rule_of(layer)
            if rule is None or layer._forward_pre_hooks:  # such a hook may make the weights
                return None
            found[name] = rule
        return found

    def _sizes(self) -> tuple[int, ...]:
        """Records of the batches that are tried: few, and as many as are run at once.

        What looks for the hardest of a batch, or cuts it into parts, may leave a small one alone.
        """
        return (4,) if self.micro_batch <= 4 else (4, self.micro_batch)

    def _at_two_weights(self, check: Callable[[], None]) -> None:
        """A branch that starts at zero mixes nothing yet; after the first step it would."""
        start = self.flat()
        check()
        try:
            self.load(start + 0.1 * np.random.default_rng(6).normal(size=len(start)))
            check()
        finally:
            self.load(start)

    def _check_rows_apart(self) -> None:
        for n in (4, *(n * self.records.size for n in self._sizes()[1:])):
            self._try_rows_apart(n)

    def _try_rows_apart(self, n: int) -> None:
        module, rows = self._fresh().module, self.example(n)
        # One row among others that stay, and half of all: the largest of a batch is seldom one given row.
        one, *parts = (torch.arange(n, device=rows.device) == 1, *_parted(n, rows.device))
        tried = [(each, scale) for each in (one, parts[0]) for scale in self._scales()]
        others = [self._with_others(rows, each, scale) for each, scale in tried]
        with torch.no_grad():
            try:
                first, *changed, again = (module(one) for one in (rows, *others, rows))
            except (RuntimeError, ValueError, TypeError, IndexError) as problem:
                raise InputError(
                    f"the module cannot embed data of shape {self.shape}: {problem}"
                ) from None
        if not isinstance(first, Tensor) or first.ndim != 2 or len(first) != n:
            raise InputError("the module must map (n, ...) to (n, k) embeddings, one row a person")
        if not same_bits(first, again):
            raise InputError(
                "the module embeds the same rows differently the second time: it remembers what it saw, or "
                "draws at random in evaluation mode, so that no bound holds on what one pair contributes"
            )
        # To the bit: however little a row takes of another, that other may be as large as it likes.
        apart = all(
            same_bits(first[~each], second[~each])
            for (each, _), second in zip(tried, changed, strict=True)
        )
        for usual, other in self._unusual(rows):
            with torch.no_grad(), suppress(RuntimeError, ValueError, IndexError):
                mixed = torch.where(parts[0].reshape(-1, *[1] * (rows.ndim - 1)), other, usual)
                first, second = module(usual)[~parts[0]], module(mixed)[~parts[0]]
                apart = apart and same_bits(first, second)
        if not apart:
            raise InputError(
                "the module mixes the samples of a batch: one row of data changes another row's embedding, "
                "so that no bound holds on what one pair contributes; use layers that treat samples apart"
            )

    def _unusual(self, rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows as random ones are not, and others: what mixes only to leave out what no row of a batch has
        (padding, empty columns), or to bring counts to scale, mixes none that are random."""
        others = self.example(len(rows), seed=1)
        for empty in {0, *(one.padding_idx or 0 for one in self._embeddings())}:
            yield torch.full_like(rows, empty), others
            for axis in {1, rows.ndim - 1}:
                padded, half = rows.clone(), rows.shape[axis] // 2
                padded.narrow(axis, half, rows.shape[axis] - half).fill_(empty)
                yield padded, others
        yield rows[:1].expand_as(rows), others
        if not self.tokens:
            yield rows.abs(), 1e3 * others.abs()
            yield rows.round(), (1e3 * others).round()

    def _embeddings(self) -> list[nn.Embedding]:
        return [m for m in self.module.modules() if isinstance(m, nn.Embedding)]

    def _check_slopes_apart(self) -> None:
        """Hooks and functions with a way back of their own may mix there what they keep apart on the way."""
        problem = self._mixed_slopes(same_bits)
        if problem is not None and self.device.type != "cpu":
            # A device may add up in any order, which tells nothing of other records and would hide what does.
            # A copy where there is one order decides; on the device what is far off is refused beside it.
            problem = self._mixed_on_cpu() or self._mixed_slopes(_roughly)
        if problem is not None:
            raise InputError(problem)

    def _mixed_on_cpu(self) -> str | None:
        """What `_mixed_slopes` finds of a copy on the CPU, to the bit."""
        moved = copy.copy(self)
        moved.device, run = torch.device("cpu"), self._fresh()
        try:
            moved.module = run.module.cpu()
            if isinstance(run.records.loss, nn.Module):
                run.records.loss.cpu()
            moved.records = run.records
            return moved._mixed_slopes(same_bits)
        except (RuntimeError, ValueError, TypeError, AssertionError) as problem:
            raise InputError(
                f"the module's gradients of the same records differ from run to run on {self.device}, and it "
                "does not run on the CPU, where no order of additions could hide that one record changes "
                f"another's: take other layers there: {str(problem).splitlines()[:1]}"
            ) from None

    def _mixed_slopes(self, alike: Callable[[Tensor, Tensor], bool]) -> str | None:
        """What is wrong where records' gradients change with other records, or from run to run."""
        for n in self._sizes():
            *people, said = self._trial(n=n)
            for each in _parted(n, said.device)[: 4 if n == 4 else 1]:
                own = ~each * torch.linspace(1, 2, n, dtype=torch.float64, device=said.device)
                first = self._slopes(own, *people, said)
                if not alike(first, self._slopes(own, *people, said)):
                    return (
                        "the module's gradients of the same records differ the second time, so that no bound "
                        "holds on what one pair contributes: it remembers or draws on the way back, or torch "
                        "adds up in any order (torch.use_deterministic_algorithms(True) ends that)"
                    )
                for scale in self._scales():
                    others = [self._with_others(one, each, scale) for one in people]
                    then = torch.where(each.reshape(-1, *[1] * (said.ndim - 1)), -said, said)
                    steepened = torch.where(each, scale, 1.0)
                    if not alike(first, self._slopes(own, *others, then, steepened=steepened)):
                        return (
                            "the module mixes the samples of a batch on the way back: one record changes "
                            "another's gradient, so that no bound holds on what one pair contributes; take "
                            "backward hooks and functions out that look at a whole batch"
                        )
        return None

    def _slopes(self, factors: Tensor, *given: Tensor, steepened: Tensor | float = 1.0) -> Tensor:
        """Squared norms of some records' gradients, and their sum, as one vector; others have factor 0."""
        run = self._fresh()
        parts = (
            self._joined(self._by_layer(run, *given, steepened=steepened))
            if self.by_rules
            else self._pair_by_pair(run, *given)
        )
        return torch.cat([parts.square[factors > 0], *parts.weighted(factors)])

    def _scales(self) -> tuple[float, ...]:
        """Of rows that are put in others' stead."""
        return (1.0,) if self.tokens else (1.0, 1e9)

    def _with_others(self, rows: Tensor, chosen: Tensor, scale: float) -> Tensor:
        """Rows with others in the place of those chosen."""
        found = rows.clone()
        found[chosen] = self.example(len(rows), seed=1)[chosen]
        if scale != 1:
            found[chosen] *= scale
        return found

    def _trial(self, seed: int = 2, n: int = 4) -> tuple[Tensor, ...]:
        """Random records: people place by place, and what is said of them."""
        people = [self.example(n, seed=seed + place) for place in range(self.records.size)]
        said = torch.tensor(self.records.trial, dtype=torch.float32, device=self.device)
        return *people, said.repeat(-(-n // 4), *[1] * (said.ndim - 1))[:n]

    def _rules_agree(self) -> bool:
        """Whether the rules' sum is torch's own: not where parameters are shared or used elsewhere."""
        *places, said = self._trial()
        found = self._by_layer(self._fresh(), *places, said)
        if sorted(one.name for one in found) != sorted(self._rules or {}):
            return False  # a layer that is called twice, or never
        self.positions = self.records.size * max(one.outputs for one in found)
        run = self._fresh()
        learned = [run.module.get_parameter(name) for name, _ in self.parameters]
        losses = self._losses(run, run.module(by_record(places)), said)
        own = torch.autograd.grad(losses.sum(), learned, allow_unused=True)
        expected = torch.cat(
            [
                (torch.zeros_like(one) if g is None else g).double().reshape(-1)
                for one, g in zip(learned, own, strict=True)
            ]
        )
        ones = torch.ones(4, dtype=torch.float64, device=self.device)
        total = self._joined(found).weighted(ones)[0]
        size = expected.norm().clamp(min=1e-30)
        return bool((total - expected).norm() <= _AGREEMENT * size)

    def _check_pass(self, refused: str) -> None:
        try:
            self.gradients(*self._trial())
        except (RuntimeError, ValueError, NotImplementedError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(f"{refused}: {str(problem).splitlines()[0]}") from None

    def _random(self) -> Tensor:
        """Where torch's random numbers are."""
        if self.device.type == "cuda":
            return torch.cuda.get_rng_state(self.device)
        return torch.random.get_rng_state()

    def _check_memory(self) -> None:
        """Refuse what keeps something of its input, wherever: other inputs must leave the same behind."""
        first: dict[str, str] | None = None
        drawn = self._random()
        for seed, scale in ((2, 1), (102, 1), (202, 1e3), (302, 1e9), (402, 0)):
            *people, said = self._trial(seed)
            run = self._fresh()
            self._gradients(run, *(one if self.tokens else one * scale for one in people), said)
            left = kept({"module": run.module, "loss": run.records.loss})
            first = left if first is None else first
            differ = [name for name in {**first, **left} if first.get(name) != left.get(name)]
            if differ:
                where = differ[0].replace("_modules.", "").replace("_buffers.", "")
                raise InputError(
                    f"the module or its loss keeps something of the data it sees, in {where}: the next "
                    "records would be computed with it, and no epsilon covers it; take the layer out (an "
                    "observer, a cache, a running mean, a hook), or fix its values beforehand"
                )
        if not torch.equal(drawn, self._random()):
            raise InputError(
                "the module or its loss draws at random in evaluation mode (such as torch's dropout as a "
                "function, without training=self.training): what one pair contributes would hang on others"
            )


def _roughly(first: Tensor, other: Tensor) -> bool:
    """Whether two sums differ by no more than an order of additions may: what nearly cancels, by a part of
    the largest."""
    return bool(torch.allclose(first, other, rtol=1e-3, atol=1e-4 * float(first.abs().max())))


def _parted(n: int, device: torch.device) -> tuple[Tensor, ...]:
    """Masks of half of n rows: of any two rows among four, one has the first and the other not."""
    row = torch.arange(n, device=device)
    return row % 2 == 1, row % 2 == 0, row < n // 2, row >= n // 2


def by_record(places: Sequence[Tensor]) -> Tensor:
    """People of n records, place by place, as rows (n * size, ...), one record after the other."""
    return torch.stack(list(places), dim=1).flatten(0, 1)


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device {name!r} is not known to torch") from None
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InputError(
            f"device={name!r} was asked for, and this machine has none: use device='cpu'"
        ) from None
    return device


def _copied(one: _Thing) -> _Thing:
    try:
        return copy.deepcopy(one)
    except (RuntimeError, TypeError, NotImplementedError) as problem:
        raise InputError(
            "every pass needs its own copy of the module and the loss, and copy.deepcopy cannot make one: "
            f"{str(problem).splitlines()[0]}"
        ) from None


def _prepared(module: nn.Module) -> nn.Module:
    for name, layer in module.named_modules():
        kind = type(layer).__name__
        where = f"{kind} ('{name}')" if name else kind
        if isinstance(layer, MIXING):
            raise InputError(
                f"{where} mixes the samples of a batch, so that no bound holds on what one pair contributes: "
                "replace it, for instance by torch.nn.GroupNorm"
            )
        if isinstance(layer, nn.Embedding) and layer.max_norm is not None:
            raise InputError(f"{where} changes its weights while it runs (max_norm): leave it out")
        if isinstance(layer, nn.modules.lazy.LazyModuleMixin):
            raise InputError(f"{where} has no size yet: run the module once on random numbers")
    ready = _copied(module).eval()
    if {*module.parameters(), *module.buffers()} & {*ready.parameters(), *ready.buffers()}:
        raise InputError(
            "the module's copy (copy.deepcopy) shares tensors with it: each must have its own"
        )
    for layer in ready.modules():
        if getattr(layer, "inplace", False):
            layer.inplace = False  # type: ignore[assignment]  # outputs of layers are looked at again
    return ready
