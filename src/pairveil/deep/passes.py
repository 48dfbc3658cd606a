"""One pass forward and one back through a module: what each layer that learns knows of pairs' gradients.

Inputs of layers are kept on the way forward; on the way back, as soon as the slope at a layer's output is
known, its rule is asked, and what it does not need any more is freed. Parameters are held still meanwhile:
torch forms no gradient of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pairveil.deep.layers import Parts, Rule
from pairveil.errors import InputError

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

    Parameters
    ----------
    layers : dict
        The layers that learn, and their rules.
    losses : callable
        Runs the module on all people, record after record, and returns one loss a record.
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
        torch.autograd.grad(total, [] if start is None else [start], allow_unused=True)
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
