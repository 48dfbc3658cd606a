"""Norms and clipped sums of pairs' gradients, layer by layer, without forming large gradients pair by pair.

All branches of a pair run through one network, so its gradient is a sum over the positions of all: for
a linear layer ``G = sum_t delta_t x_t^T``, t over the positions of the left branch, then of the right, and

    ||G||^2 = sum_{t, t'} (delta_t . delta_t') (x_t . x_t')

is its exact norm, cross terms of the branches included. A convolution is a linear layer on patches. Where G
has few entries beside what it is made of (`FORMED`), it is formed, and *what was formed* is the contribution.

Norms are taken in the network's own precision (at least float32) and enlarged by a bound on their
rounding error; sums are float64, or exact in digits (`pairveil.deep.arithmetic`) where a layer ran in
bfloat16. docs/theory/deep.md has the proofs.

Each rule sees ``x`` (n, b, ...), a layer's inputs in the b branches, ``d`` (n, b, ...), the slope of each
record's own loss at the layer's output, and the names of the parameters that learn.

Rules are asked in one pass forward and one back. Inputs of layers are kept on the way forward; on the way
back, as soon as the slope at a layer's output is known, its rule is asked, and what it does not need any more
is freed. Parameters are held still meanwhile: torch forms no gradient of its own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pairveil.deep.arithmetic import ROUNDING, DigitSum, over, products, scaled, weighted_sum, wide
from pairveil.errors import InputError

PIECE = 1 << 24
"""Numbers that are widened at once: pairs are worked through in pieces, which keeps memory low."""

FLOOR = 2.0**-50
"""Added to the lengths of rows: products below the smallest float32 may vanish (docs/theory/deep.md)."""

FORMED = 2
"""A gradient is formed where it has at most this many times the entries of what it is made of: that
is one product instead of two, and frees the rest."""


class Parts(NamedTuple):
    """What a layer knows of the gradients of n pairs."""

    square: (
        Tensor  # (n,): squared norm of each pair's contribution in its parameters, never too small
    )
    terms: (
        Tensor  # (n,): sum of the norms of the terms it is a sum of, a bound on what cancels in it
    )
    # From factors (n,), at which no contribution is longer than 1, to the sum of the contributions times
    # their factors, parameter by parameter, in the order of ``module.named_parameters``; those that are
    # frozen are left out. Numbers of a pair whose factor is 0 are not read.
    weighted: Callable[[Tensor], list[Tensor]]
    # How much longer than that a contribution may be, because it is rounded after it was scaled
    rounding: float = 0.0


def together(parts: list[Parts]) -> Parts:
    """Parts of several parameters as one."""
    return Parts(
        torch.stack([one.square for one in parts]).sum(dim=0),
        torch.stack([one.terms for one in parts]).sum(dim=0),
        lambda factors: [g for one in parts for g in one.weighted(factors)],
        math.hypot(*(one.rounding for one in parts)),
    )


Rule = Callable[..., Parts]
RULES: dict[type[nn.Module], tuple[Rule, Callable[[Any], bool]]] = {}
"""One rule a kind of layer; a network with any other layer that learns takes gradients pair by pair."""


def register(
    *kinds: type[nn.Module], covers: Callable[[Any], bool] = lambda _: True
) -> Callable[[Rule], Rule]:
    """Decorator: the rule of some kinds of layer, for those that ``covers`` says it holds for.

    A rule carries the guarantee: no norm of its `Parts` may be too small. `Network` compares its sums with
    torch's own gradients on random inputs, and cannot see more.
    """

    def add(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, (rule, covers)))
        return rule

    return add


def rule_of(layer: nn.Module) -> Rule | None:
    """The rule of a layer, or None where none covers it as it is configured."""
    rule, covers = RULES.get(type(layer), (None, None))
    return rule if covers is not None and covers(layer) else None


@register(nn.Linear)
def linear(layer: nn.Linear, x: Tensor, d: Tensor, learn: Collection[str]) -> Parts:
    """A linear layer at every position."""
    x, d = _one_sequence(x), _one_sequence(d)
    return _products(lambda piece: x[piece], d, layer.weight, learn, copied=0)


def _is_plain(layer: nn.Conv1d | nn.Conv2d) -> bool:
    return layer.groups == 1 and layer.padding_mode == "zeros" and set(layer.dilation) == {1}


@register(nn.Conv1d, nn.Conv2d, covers=_is_plain)
def convolution(
    layer: nn.Conv1d | nn.Conv2d, x: Tensor, d: Tensor, learn: Collection[str]
) -> Parts:
    """A convolution: a linear layer on patches."""
    slopes = d.flatten(3).mT
    copied = slopes.shape[1] * slopes.shape[2] * layer.weight[0].numel()
    return _products(lambda piece: _patches(layer, x[piece]), slopes, layer.weight, learn, copied)


def _patches(layer: nn.Conv1d | nn.Conv2d, x: Tensor) -> Tensor:
    """What each position of a convolution sees; strided views cut the patches out."""
    sides = [side for pad in reversed(_padding(layer)) for side in pad]
    patches = F.pad(x.flatten(0, 1), sides)
    for axis, (size, stride) in enumerate(zip(layer.kernel_size, layer.stride, strict=True)):
        patches = patches.unfold(2 + axis, size, stride)
    space = len(layer.kernel_size)
    # (rows, channels, positions..., offsets...) -> (rows, channels * offsets, positions), as weights lie
    order = (0, 1, *range(2 + space, 2 + 2 * space), *range(2, 2 + space))
    patches = patches.permute(order)
    return patches.reshape(*x.shape[:2], patches.shape[1 : 2 + space].numel(), -1).mT


def _padding(layer: nn.Conv1d | nn.Conv2d) -> list[tuple[int, int]]:
    if layer.padding == "valid":
        return [(0, 0)] * len(layer.kernel_size)
    if layer.padding == "same":  # torch puts the odd one at the end
        return [((size - 1) // 2, size - 1 - (size - 1) // 2) for size in layer.kernel_size]
    return [(int(side), int(side)) for side in layer.padding]


def _products(
    form: Callable[[slice], Tensor], d: Tensor, weight: Tensor, learn: Collection[str], copied: int
) -> Parts:
    """Gradients ``sum_t d_t x_t^T`` and ``sum_t d_t``.

    ``form`` gives x (m, b, length, inputs) of m pairs, for which it copies ``copied`` numbers a pair.
    """
    (b, length, outputs), inputs = d.shape[1:], weight[0].numel()
    if FORMED * b * length * (inputs + outputs) < inputs * outputs:
        return _kept_products(form, d, weight.shape, learn, copied)
    found = []
    if "weight" in learn:
        found.append(_formed_products(form, d, weight.shape, copied))
    if "bias" in learn:
        found.append(formed_parts(over(d, (1, 2))))
    return together(found)


def _formed_products(
    form: Callable[[slice], Tensor], d: Tensor, weight: torch.Size, copied: int
) -> Parts:
    """Every pair's gradient, formed, in the precision in which the layer ran."""
    (n, _, _, outputs), inputs = d.shape, weight[1:].numel()
    in_half = d.dtype == torch.bfloat16
    kind = d.dtype if in_half else torch.promote_types(d.dtype, torch.float32)
    gradients = torch.empty((n, outputs, inputs), dtype=kind, device=d.device)
    for piece in pieces(n, copied):
        x, slopes = form(piece).to(kind), d[piece].to(kind)
        if in_half:  # branches that cancel are added before anything is rounded to eight bits
            x, slopes = _one_sequence(x), _one_sequence(slopes)
        torch.bmm(slopes[:, 0].mT, x[:, 0], out=gradients[piece])
        for branch in range(1, x.shape[1]):
            gradients[piece].baddbmm_(slopes[:, branch].mT, x[:, branch])
    return formed_parts(gradients, weight)


def _kept_products(
    form: Callable[[slice], Tensor],
    d: Tensor,
    weight: torch.Size,
    learn: Collection[str],
    copied: int,
) -> Parts:
    """Norms by products of positions; the sum by one product of all pairs' numbers."""
    (n, b, length, outputs), inputs = d.shape, weight[1:].numel()
    size = copied + (b * length) ** 2
    found = [_squared(form(piece), d[piece], learn) for piece in pieces(n, size)]
    square, terms, lengths = (torch.cat(one) for one in zip(*found, strict=True))
    digits = None
    if d.dtype == torch.bfloat16 and "weight" in learn:
        digits = DigitSum((b * length, outputs, inputs))
        square = digits.square(square, terms, d, lengths)

    def weighted(factors: Tensor) -> list[Tensor]:
        total = torch.zeros((outputs, inputs), dtype=torch.float64, device=d.device)
        shift = torch.zeros(outputs, dtype=torch.float64, device=d.device)
        numbers = b * length * (inputs + outputs)
        for piece in pieces(n, numbers if digits is None else numbers // 16):
            x, slopes = form(piece).reshape(-1, inputs), d[piece].reshape(-1, outputs)
            each = factors[piece].repeat_interleave(b * length)
            if digits is not None:
                digits.add(total, x, slopes, lengths[piece].flatten(), each)
            elif "weight" in learn:
                total.addmm_(scaled(slopes, each).T, scaled(x, each != 0))
            if "bias" in learn:
                shift += weighted_sum(slopes, each)
        sums = {"weight": total.reshape(weight), "bias": shift}
        return [sums[name] for name in learn]

    return Parts(square, terms, weighted, 0.0 if digits is None else ROUNDING)


def _squared(x: Tensor, d: Tensor, learn: Collection[str]) -> tuple[Tensor, Tensor, Tensor]:
    """Squared length of sum_t d_t x_t^T of each pair, never too small; sum_t ||d_t|| ||x_t||; and ||x_t||.

    A bias is a weight of an input of 1, which adds 1 to every product of inputs.
    """
    x, d = _one_sequence(x)[:, 0], _one_sequence(d)[:, 0]
    weigh, one = float("weight" in learn), float("bias" in learn)
    gammas = [_gamma(values.shape[-1], wide(values[:0]).dtype) for values in (x, d)]
    with ieee():
        inner, slopes = products(x).double(), products(d).double()
    own, steep = (each.diagonal(dim1=1, dim2=2) for each in (inner, slopes))
    square = ((inner * weigh + one) * slopes).sum(dim=(1, 2))
    lengths, long, steep = (
        (each * (1 + 2 * gamma)).sqrt() + FLOOR
        for each, gamma in zip((own, own * weigh + one, steep), (gammas[0], *gammas), strict=True)
    )
    terms = (long * steep).sum(dim=1)
    # Each product of rows is off by at most gamma times their lengths: over all t, t', gamma terms^2.
    square = square + ((1 + gammas[0]) * (1 + gammas[1]) - 1) * terms**2
    return square, terms, lengths


def _one_sequence(values: Tensor) -> Tensor:
    """The positions (n, b, ..., k) of all branches as one branch, (n, 1, positions, k)."""
    return values.reshape(len(values), 1, -1, values.shape[-1])


def _gamma(addends: int, dtype: torch.dtype) -> float:
    """Relative error of a sum of products in any order; 4 more for products, underflow and float64."""
    off = (addends + 4) * torch.finfo(dtype).eps / 2
    return off / (1 - off) if off < 0.25 else float("inf")


def formed_parts(gradients: Tensor, shape: torch.Size | None = None) -> Parts:
    """Contributions that are there, one a pair: what rounding made of them is what is clipped and summed."""
    n, shape = len(gradients), shape or gradients.shape[1:]
    rows = gradients.reshape(n, -1)
    # Rows of entries in their own precision, and their lengths in float64.
    kind = torch.promote_types(gradients.dtype, torch.float32)
    by_row = gradients.reshape(n, -1, gradients.shape[-1])
    lengths = torch.linalg.vector_norm(by_row, dim=2, dtype=kind)
    norms = torch.linalg.vector_norm(lengths.double() + FLOOR, dim=1)
    norms = norms * (1 + _gamma(gradients.shape[-1], kind))

    def weighted(factors: Tensor) -> list[Tensor]:
        total = torch.zeros(rows.shape[1], dtype=torch.float64, device=rows.device)
        for piece in pieces(
            n, rows.shape[1] // (64 if rows.is_cuda else 1)
        ):  # a GPU widens on the way
            total += weighted_sum(rows[piece], factors[piece])
        return [total.reshape(shape)]

    return Parts(norms**2, norms, weighted)


@register(
    nn.Embedding,
    covers=lambda layer: not (layer.max_norm or layer.scale_grad_by_freq or layer.sparse),
)
def embedding(layer: nn.Embedding, x: Tensor, d: Tensor, learn: Collection[str]) -> Parts:
    """An embedding: a linear layer whose inputs are unit vectors, equal where the tokens are."""
    del learn
    n = x.shape[0]
    tokens, slopes = x.reshape(n, -1), wide(d).reshape(n, -1, layer.embedding_dim)
    if layer.padding_idx is not None:
        slopes = slopes * (tokens != layer.padding_idx)[:, :, None]
    terms = (torch.linalg.vector_norm(slopes, dim=2, dtype=torch.float64) + FLOOR).sum(dim=1)
    square = torch.empty_like(terms)
    for piece in pieces(n, tokens.shape[1] ** 2):
        alike = tokens[piece, :, None] == tokens[piece, None, :]
        with ieee():
            square[piece] = ((slopes[piece] @ slopes[piece].mT).double() * alike).sum(dim=(1, 2))
    square += _gamma(layer.embedding_dim, slopes.dtype) * terms**2

    def weighted(factors: Tensor) -> list[Tensor]:
        total = torch.zeros(layer.weight.shape, dtype=torch.float64, device=d.device)
        rows = scaled(slopes, factors).reshape(-1, layer.embedding_dim)
        return [total.index_add_(0, tokens.reshape(-1), rows)]

    return Parts(square, terms, weighted)


@register(nn.LayerNorm)
def layer_norm(layer: nn.LayerNorm, x: Tensor, d: Tensor, learn: Collection[str]) -> Parts:
    """Scale and shift of normalised positions: a pair's own gradients are small enough to form."""
    unit = F.layer_norm(wide(x), layer.normalized_shape, eps=layer.eps)
    return _scale_and_shift(unit, d, range(1, x.ndim - len(layer.normalized_shape)), learn)


@register(nn.GroupNorm)
def group_norm(layer: nn.GroupNorm, x: Tensor, d: Tensor, learn: Collection[str]) -> Parts:
    """The same for groups of channels."""
    unit = F.group_norm(wide(x).flatten(0, 1), layer.num_groups, eps=layer.eps).reshape(x.shape)
    return _scale_and_shift(unit, d, (1, *range(3, x.ndim)), learn)


def _scale_and_shift(
    unit: Tensor, d: Tensor, positions: Iterable[int], learn: Collection[str]
) -> Parts:
    axes, made = tuple(positions), []
    if "weight" in learn:
        made.append(over(unit * wide(d), axes))
    if "bias" in learn:
        made.append(over(d, axes))
    return together([formed_parts(one) for one in made])


def pieces(n: int, size: int) -> Iterator[slice]:
    """Slices of n pairs of ``size`` numbers each, about `PIECE` numbers in one."""
    step = max(1, PIECE // max(1, size))
    step -= step % 64 if step > 64 else 0  # GPUs like round numbers
    return (slice(start, min(n, start + step)) for start in range(0, n, step))


_SWITCHES: tuple[Any, ...] = (
    torch.backends.cuda.matmul,
    getattr(torch.backends.mkldnn, "matmul", None),
)
_ONE_SWITCH = not all(hasattr(one, "fp32_precision") for one in _SWITCHES)  # torch below 2.9


@contextmanager
def ieee() -> Iterator[None]:
    """Products of float32 in float32: TF32 or bfloat16, which a user may allow, would break the bounds."""
    if _ONE_SWITCH:
        whole = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(whole)
        return
    before = [place.fp32_precision for place in _SWITCHES]
    try:
        for place in _SWITCHES:
            place.fp32_precision = "ieee"
        yield
    finally:
        for place, own in zip(_SWITCHES, before, strict=True):
            place.fp32_precision = own


# ---- one pass forward and one back -----------------------------------------------------------------

Layers = dict[str, tuple[nn.Module, Rule]]


class _Started(torch.autograd.Function):
    """The same output, as if it followed from ``start``: slopes are wanted, and no more is kept for that."""

    @staticmethod
    def forward(_ctx: Any, output: Tensor, _start: Tensor) -> Tensor:  # type: ignore[override]
        return output.view_as(output)

    @staticmethod
    def backward(_ctx: Any, d: Tensor) -> tuple[None, Tensor]:  # type: ignore[override]
        return None, d.new_zeros(())


class LayerParts(NamedTuple):
    """A layer's name, its parameters that learn, the numbers it gives a row, its part of gradients."""

    name: str
    learn: list[str]
    outputs: int
    parts: Parts


def parts_by_layer(layers: Layers, losses: Callable[[], Tensor], n: int) -> list[LayerParts]:
    """What each call of a layer knows of n pairs' gradients.

    ``layers`` are those that learn, and their rules. ``losses`` runs the module on all people, record after
    record, and returns one loss a record.
    """
    found: list[LayerParts] = []
    start: Tensor | None = None  # where gradients go back to
    learn = {name: _learning(layer) for name, (layer, _) in layers.items()}
    ahead = True

    def came_back(name: str, x: Tensor, d: Tensor) -> None:
        layer, rule = layers[name]
        with torch.no_grad(), torch.autocast(d.device.type, enabled=False):
            parts = rule(layer, _by_record(x, n), _by_record(d, n), learn[name])
        found.append(LayerParts(name, learn[name], d[0].numel(), parts))

    def hook_of(name: str) -> Any:
        def hook(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            nonlocal start
            if not torch.is_grad_enabled() and ahead:
                raise InputError(
                    "the module runs a layer that learns without gradients (torch.no_grad, or a checkpoint "
                    "of activations with use_reentrant=True): use use_reentrant=False, or freeze the layer"
                )
            if not output.requires_grad:
                if start is None:
                    start = torch.zeros((), device=output.device, requires_grad=True)
                output = _Started.apply(output, start)
            if ahead:  # checkpointed layers run once more on the way back
                kept = [inputs[0].detach()]
                output.register_hook(lambda d: came_back(name, kept.pop(), d))
            return output

        return hook

    with _held_still(layers, hook_of):
        total = losses().sum()
        ahead = False
        if start is not None:  # some layer was called
            torch.autograd.grad(total, [start], allow_unused=True)
    return found


def _learning(layer: nn.Module) -> list[str]:
    return [name for name, one in layer.named_parameters(recurse=False) if one.requires_grad]


@contextmanager
def _held_still(layers: Layers, hook_of: Callable[[str], Any]) -> Iterator[None]:
    """Layers with a hook each, whose parameters do not learn."""
    held = [one for layer, _ in layers.values() for one in layer.parameters(recurse=False)]
    learning = [one.requires_grad for one in held]
    hooks = [layer.register_forward_hook(hook_of(name)) for name, (layer, _) in layers.items()]
    try:
        for one in held:
            one.requires_grad_(False)
        yield
    finally:
        for one, learns in zip(held, learning, strict=True):
            one.requires_grad_(learns)
        for hook in hooks:
            hook.remove()


def _by_record(values: Tensor, n: int) -> Tensor:
    """(n b, ...), record after record, as (n, b, ...)."""
    return values.reshape(n, -1, *values.shape[1:])


# ---- adapters: linear layers whose correction alone learns ---------------------------------------
#
# Low-rank adapters (LoRA): a frozen base, and a small correction of each linear layer that learns. A layer
# becomes ``W x + b + U D x`` with D (rank x inputs) drawn at random and U (outputs x rank) zero at first. D
# and U are linear layers of their own, so the rules of linear layers clip them; only they are trained, get
# noise and count in the certificate.


class Adapted(nn.Module):
    """A linear layer that stays, and a low-rank one beside it that learns."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        at = {"device": base.weight.device, "dtype": base.weight.dtype}
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False, **at)
        self.up = nn.Linear(rank, base.out_features, bias=False, **at)
        nn.init.normal_(self.down.weight, std=1 / math.sqrt(base.in_features))
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        """The base's output, corrected."""
        given: Tensor = self.base(x) + self.up(self.down(x))
        return given

    @property
    def weight(self) -> Tensor:
        """Of the one layer that both are: torch's fast paths read it instead of calling the layer."""
        return self.base.weight + self.up.weight @ self.down.weight

    @property
    def bias(self) -> Tensor | None:
        """The base's."""
        return self.base.bias


_APART = (
    nn.Linear, nn.Conv1d, nn.Conv2d, nn.Embedding, nn.LayerNorm, nn.GroupNorm, Adapted, nn.Sequential,
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish,
    nn.Tanh, nn.Sigmoid, nn.Softplus, nn.Softsign, nn.Hardtanh, nn.Identity, nn.Flatten, nn.Unflatten,
    nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d,
    nn.Dropout, nn.Dropout1d, nn.Dropout2d,
)  # fmt: skip


def is_known_apart(module: object) -> bool:
    """Whether a module can do no other than treat each row alone and remember none.

    Of torch's layers those that have no way to mix rows, whatever they are given: others may in a place that
    a layer before them opens for some rows only (``nn.Softmax(0)`` behind an ``nn.ReLU``).
    """
    return isinstance(module, nn.Module) and all(
        type(layer) in _APART
        and getattr(layer, "start_dim", 1) > 0
        and getattr(layer, "dim", 1) > 0
        and not any(held for name, held in vars(layer).items() if name.endswith("_hooks"))
        and not any(callable(held) for held in vars(layer).values())
        for layer in module.modules()
    )


def add_adapters(module: nn.Module, rank: int = 4) -> nn.Module:
    """A copy of a module whose linear layers learn by adapters, and which learns nothing else.

    Parameters
    ----------
    module : torch.nn.Module
        With public weights.
    rank : int
        A layer learns ``rank * (inputs + outputs)`` numbers.

    Examples
    --------
    >>> net = add_adapters(nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2)), rank=1)
    >>> sum(one.numel() for one in net.parameters() if one.requires_grad)
    22
    """
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise InputError("rank must be a whole number of at least 1")
    if not isinstance(module, nn.Module):
        raise InputError("module must be a torch.nn.Module")
    adapted = copy.deepcopy(module).requires_grad_(False)
    changed = _replaced(
        adapted, lambda layer: type(layer) is nn.Linear, lambda one: Adapted(one, rank)
    )
    if not any(one.requires_grad for one in changed.parameters()):
        raise InputError("the module has no linear layer to adapt")
    return changed


def merge_adapters(module: nn.Module) -> nn.Module:
    """A copy of a trained module in which every adapter is part of its layer again.

    Parameters
    ----------
    module : torch.nn.Module
        That `add_adapters` made; the copy has the architecture that it was made of.

    Examples
    --------
    >>> merge_adapters(add_adapters(nn.Linear(3, 2)))
    Linear(in_features=3, out_features=2, bias=True)
    """
    return _replaced(copy.deepcopy(module), lambda layer: isinstance(layer, Adapted), _merged)


def _merged(layer: Adapted) -> nn.Linear:
    with torch.no_grad():
        layer.base.weight.copy_(layer.weight)
    return layer.base


def _replaced(
    module: nn.Module, chosen: Callable[[nn.Module], bool], by: Callable[[Any], nn.Module]
) -> nn.Module:
    """The module with some of its layers replaced; a layer that stands at two places is one at both."""
    if chosen(module):
        return by(module)
    new: dict[int, nn.Module] = {}
    for parent in list(module.modules()):
        for name, layer in list(parent.named_children()):
            if chosen(layer):
                if id(layer) not in new:
                    new[id(layer)] = by(layer)
                setattr(parent, name, new[id(layer)])
    return module
