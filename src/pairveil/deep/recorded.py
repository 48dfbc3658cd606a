"""A function of tensors that is recorded once on a GPU and replayed: no time between its kernels.

Micro-batches have one fixed shape, so that all of them take the same kernels in the same order.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch
from torch import Tensor


class Recorded:
    """The same function; on a GPU through a CUDA graph, where torch can record it.

    ``function``: of tensors of the same shapes at every call; what else it reads stays where it lies.

    Examples
    --------
    >>> Recorded(torch.add)(torch.tensor(1), torch.tensor(2))
    tensor(3)
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self._function = function
        self._given: list[Tensor] = []
        self._result: Tensor | None = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._tried = False

    def __call__(self, *given: Tensor) -> Tensor:
        if not self._tried and given[0].is_cuda:
            self._tried = True
            with torch.cuda.device_of(given[0]):
                self._record(given)
        if self._graph is None or self._result is None:
            return self._function(*given)
        for own, one in zip(self._given, given, strict=True):
            own.copy_(one)
        self._graph.replay()
        return self._result.clone()

    def _record(self, given: tuple[Tensor, ...]) -> None:
        self._given = [one.clone() for one in given]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(
            aside
        ):  # kernels are compiled and chosen before anything is recorded
            for _ in range(2):
                self._function(*self._given)
        torch.cuda.current_stream().wait_stream(aside)
        gc.collect()  # an older recording must not be let go of while this one is made
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._result = self._function(*self._given)
        except RuntimeError:  # a module that waits for the GPU on its way cannot be recorded
            return
        self._graph = graph
