"""Low-rank adapters (LoRA): a frozen base, and a small correction of each linear layer that learns.

A layer becomes ``W x + b + U D x`` with D (rank x inputs) drawn at random and U (outputs x rank) zero at
first. D and U are linear layers of their own, so the rules of linear layers clip them; only they are
trained, get noise and count in the certificate.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from pairveil.errors import InputError


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
