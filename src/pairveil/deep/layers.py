"""Norms and clipped sums of pairs' gradients, layer by layer, without forming a gradient a pair.

Both branches of a pair run through one network, so its gradient is a sum over the positions of both: for a
linear layer ``G = sum_t delta_t x_t^T`` over t = positions of the left branch, then of the right one. The
pair is treated as one sequence, and

    ||G||^2 = sum_{t, t'} (delta_t . delta_t') (x_t . x_t')

is its exact norm, cross terms of the branches included (docs/theory/deep.md). A convolution is a linear layer
on patches. Everything here is float64, whatever the network computes in: what is clipped and summed are
exact products of the numbers that the network computed.

Each rule sees ``x`` (n, 2, ...), a layer's inputs in both branches, and ``d`` (n, 2, ...), the slope of each
pair's own loss at the layer's output, and answers for each of the n pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Parts(NamedTuple):
    """What a layer knows of the gradients of n pairs.

    Attributes
    ----------
    square : Tensor of shape (n,)
        Squared norm of each pair's gradient in this layer's parameters.
    terms : Tensor of shape (n,)
        Sum of the norms of the terms it is a sum of: a bound on what cancels in it.
    weighted : callable
        From factors (n,) to the sum of the gradients times their factors, parameter by parameter, in the
        order of ``module.named_parameters``; those that are frozen are left out.
    """

    square: Tensor
    terms: Tensor
    weighted: Callable[[Tensor], list[Tensor]]


def linear(layer: nn.Linear, x: Tensor, d: Tensor) -> Parts:
    """A linear layer at every position."""
    return _products(lambda: (_sequence(x), _sequence(d)), layer.weight, layer.bias)


def convolution(layer: nn.Conv1d | nn.Conv2d, x: Tensor, d: Tensor) -> Parts:
    """A convolution: a linear layer on patches."""
    return _products(lambda: _patches(layer, x, d), layer.weight, layer.bias)


def _patches(layer: nn.Conv1d | nn.Conv2d, x: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    """What each position of a convolution sees, and its slopes; strided views cut the patches out."""
    x, d = x.double(), d.double()
    n, branches = x.shape[0], x.shape[1]
    flat = x.reshape(n * branches, *x.shape[2:])
    sides = [side for pad in reversed(_padding(layer)) for side in pad]
    patches = nn.functional.pad(flat, sides)
    for axis, (size, stride) in enumerate(zip(layer.kernel_size, layer.stride, strict=True)):
        patches = patches.unfold(2 + axis, size, stride)
    space = len(layer.kernel_size)
    # (rows, channels, positions..., offsets...) -> (rows, positions, channels * offsets), as weights lie
    order = (0, *range(2, 2 + space), 1, *range(2 + space, 2 + 2 * space))
    patches = patches.permute(order)
    places = patches.shape[1 : 1 + space].numel()
    patches = patches.reshape(n, branches * places, -1)
    slopes = d.reshape(n, branches, d.shape[2], places).transpose(2, 3)
    return patches, slopes.reshape(n, branches * places, -1)


def _padding(layer: nn.Conv1d | nn.Conv2d) -> list[tuple[int, int]]:
    if layer.padding == "valid":
        return [(0, 0)] * len(layer.kernel_size)
    if layer.padding == "same":  # torch puts the odd one at the end
        return [((size - 1) // 2, size - 1 - (size - 1) // 2) for size in layer.kernel_size]
    return [(int(side), int(side)) for side in layer.padding]


def _products(
    form: Callable[[], tuple[Tensor, Tensor]], weight: Tensor, bias: Tensor | None
) -> Parts:
    """Gradients ``sum_t d_t x_t^T`` and ``sum_t d_t``, by whichever of two ways is shorter.

    The float64 sequences are formed twice, for the norms and for the sum: kept, they would be most of the
    memory.
    """
    x, d = form()
    square = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    terms = torch.zeros_like(square)
    length, inputs, outputs = x.shape[1], x.shape[2], d.shape[2]
    d_norms = d.norm(dim=2)
    if weight.requires_grad:
        if length * (inputs + outputs) <= inputs * outputs:
            square += ((x @ x.mT) * (d @ d.mT)).sum(dim=(1, 2))
        else:
            square += (d.mT @ x).pow(2).sum(dim=(1, 2))
        terms += (x.norm(dim=2) * d_norms).sum(dim=1)
    if bias is not None and bias.requires_grad:
        square += d.sum(dim=1).pow(2).sum(dim=1)
        terms += d_norms.sum(dim=1)

    def weighted(factors: Tensor) -> list[Tensor]:
        x, d = form()
        scaled = (d * factors[:, None, None]).reshape(-1, outputs)
        found = []
        if weight.requires_grad:
            found.append((scaled.T @ x.reshape(-1, inputs)).reshape(weight.shape))
        if bias is not None and bias.requires_grad:
            found.append(scaled.sum(dim=0))
        return found

    return Parts(square, terms, weighted)


def embedding(layer: nn.Embedding, x: Tensor, d: Tensor) -> Parts:
    """An embedding: a linear layer whose inputs are unit vectors, equal where the tokens are."""
    n = x.shape[0]
    tokens, slopes = x.reshape(n, -1), d.double().reshape(n, -1, layer.embedding_dim)
    if layer.padding_idx is not None:
        slopes = slopes * (tokens != layer.padding_idx)[:, :, None]
    alike = tokens[:, :, None] == tokens[:, None, :]
    square = ((slopes @ slopes.mT) * alike).sum(dim=(1, 2))

    def weighted(factors: Tensor) -> list[Tensor]:
        total = torch.zeros(layer.weight.shape, dtype=torch.float64, device=d.device)
        rows = (slopes * factors[:, None, None]).reshape(-1, layer.embedding_dim)
        return [total.index_add_(0, tokens.reshape(-1), rows)]

    return Parts(square, slopes.norm(dim=2).sum(dim=1), weighted)


def layer_norm(layer: nn.LayerNorm, x: Tensor, d: Tensor) -> Parts:
    """Scale and shift of normalised positions: a pair's own gradients are small enough to form."""
    axes = tuple(range(-len(layer.normalized_shape), 0))
    x, d = x.double(), d.double()
    centred = x - x.mean(dim=axes, keepdim=True)
    unit = centred / (centred.pow(2).mean(dim=axes, keepdim=True) + layer.eps).sqrt()
    shape = (x.shape[0], -1, *layer.normalized_shape)
    return _affine(unit.reshape(shape), d.reshape(shape), layer.weight, layer.bias)


def group_norm(layer: nn.GroupNorm, x: Tensor, d: Tensor) -> Parts:
    """The same for groups of channels."""
    n, branches, channels = x.shape[:3]
    x, d = x.double(), d.double()
    groups = x.reshape(n, branches, layer.num_groups, -1)
    centred = groups - groups.mean(dim=3, keepdim=True)
    unit = centred / (centred.pow(2).mean(dim=3, keepdim=True) + layer.eps).sqrt()
    shape = (n, branches, channels, -1)
    places = [one.reshape(shape).transpose(2, 3).reshape(n, -1, channels) for one in (unit, d)]
    return _affine(places[0], places[1], layer.weight, layer.bias)


def _affine(unit: Tensor, d: Tensor, weight: Tensor | None, bias: Tensor | None) -> Parts:
    n = unit.shape[0]
    formed: list[Tensor] = []
    terms = torch.zeros(n, dtype=torch.float64, device=d.device)
    for parameter, product in ((weight, unit * d), (bias, d)):
        if parameter is not None and parameter.requires_grad:
            formed.append(product.sum(dim=1))
            terms += product.reshape(n, product.shape[1], -1).norm(dim=2).sum(dim=1)
    square = torch.zeros_like(terms)
    for one in formed:
        square = square + one.reshape(n, -1).pow(2).sum(dim=1)
    # A pair without a finite gradient gets the factor 0, and 0 times infinity is no number.
    sure = torch.isfinite(square)
    formed = [torch.where(sure.reshape(-1, *[1] * (g.ndim - 1)), g, 0.0) for g in formed]
    return Parts(
        square, terms, lambda factors: [torch.tensordot(factors, g, dims=1) for g in formed]
    )


def _sequence(values: Tensor) -> Tensor:
    """(n, branches, ..., k) as (n, positions, k), in float64."""
    return values.double().reshape(values.shape[0], -1, values.shape[-1])


Rule = Callable[..., Parts]

RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: linear,
    nn.Conv1d: convolution,
    nn.Conv2d: convolution,
    nn.Embedding: embedding,
    nn.LayerNorm: layer_norm,
    nn.GroupNorm: group_norm,
}
"""One function a kind of layer; a network with any other layer that learns takes gradients pair by pair."""


def rule_of(layer: nn.Module) -> Rule | None:
    """The rule of a layer, or None where none covers it as it is configured.

    Examples
    --------
    >>> rule_of(nn.Linear(2, 3)).__name__, rule_of(nn.LSTM(2, 3))
    ('linear', None)
    """
    rule = RULES.get(type(layer))
    if isinstance(layer, nn.Conv1d | nn.Conv2d):
        plain = layer.groups == 1 and layer.padding_mode == "zeros" and set(layer.dilation) == {1}
        return rule if plain else None
    if isinstance(layer, nn.Embedding):
        plain = not (layer.max_norm or layer.scale_grad_by_freq or layer.sparse)
        return rule if plain else None
    return rule
