"""The engine: answers the queries of a plan and nothing else.

It is the only way to the records' contents. An answer is a clipped sum with the query's noise on it, or a
candidate chosen by such sums; the engine counts its answers, so that a fit can be checked against its plan.
One engine was charged, so there is one: it is neither copied nor pickled, and a forked process has none.
"""

from __future__ import annotations

import math
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.engine.backends.local import Backend, Local, NoisyBackend, batch_of
from pairveil.engine.checkpoint import Checkpoint
from pairveil.engine.gradients import SetGradient
from pairveil.engine.kernels import SMALL_BATCH
from pairveil.engine.statistics import GRID, UNIT, Scores, Statistic
from pairveil.errors import InputError
from pairveil.privacy.grid import MAX_NOISE_IN_GRID, choose_grid
from pairveil.privacy.mechanisms import EXPONENTIAL, Query
from pairveil.privacy.noise import NoiseSource

MOST_AT_ONCE = 1 << 20  # numbers of noise that are drawn at once
OnAnswer = Callable[[Query, Statistic, FloatArray], None]


class Engine:
    """Answers queries about private records.

    ``records`` are those that are used, or the Backend where they lie. ``on_answer`` is called with (query,
    statistic, noisy sum) after each answer: it sees released values only, of a choice its index. Answers that
    a ``checkpoint`` holds are not drawn again; those that are drawn go into it.

    Examples
    --------
    >>> import numpy as np
    >>> from pairveil.records.pairset import PairSet
    >>> from pairveil.engine.losses import ContrastiveLoss
    >>> from pairveil.privacy.noise import SeededNoise
    >>> pairs = PairSet(np.eye(2), [[0, 1]], [1])
    >>> gradient = SetGradient(np.eye(2), ContrastiveLoss(1.0), clip=1.0)
    >>> Engine(pairs, SeededNoise(0)).answer(Query("gradients", (2, 2), 0.0), gradient).round(3)
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """

    def __init__(
        self,
        records: Any,
        noise: NoiseSource,
        on_answer: OnAnswer | None = None,
        *,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._backend: Backend = records if hasattr(records, "add_up") else Local(records)
        self._noise = noise
        self._on_answer = on_answer
        self._checkpoint = checkpoint
        self._done: Counter[Query] = Counter()
        self._process = os.getpid()
        self._alone = threading.RLock()  # threads that count at once would count one answer for two

    def __reduce__(self) -> NoReturn:
        raise TypeError("an engine cannot be copied or pickled: its answers were charged once")

    def answer(self, query: Query, statistic: Statistic) -> FloatArray:
        """One noisy sum of ``statistic`` over a batch of the query's kind."""
        if query.is_choice:
            raise RuntimeError("a choice is not answered by a sum: choose")
        with self._alone:
            place, step = sum(self._done.values()), self._done[query]
            self._count(query, statistic, 1)
            noisy, kept = None, self._checkpoint
            if kept is not None:
                noisy = kept.released(place, query.name, statistic.shape)
            if noisy is None:
                noisy = self._noisy_sum(query, statistic, step)
                if kept is not None:
                    kept.keep(query.name, noisy)
            if self._on_answer is not None:
                self._on_answer(query, statistic, noisy)
            return noisy

    def _noisy_sum(self, query: Query, statistic: Statistic, step: int) -> FloatArray:
        grid = self._grid(query, statistic)
        scale = self._scale(query, statistic, grid)
        if isinstance(self._backend, NoisyBackend):
            return self._backend.noisy_sum(query, statistic, step, grid, scale, self._noise)
        rows = batch_of(query, step, self._backend.n_records, self._noise)
        return self._add_noise(query, self._add_up(query, statistic, rows, grid), scale, grid)

    def choose(self, query: Query, scores: Scores) -> int:
        """One candidate, drawn with probability proportional to exp(eta * its score), over all records.

        Examples
        --------
        >>> from pairveil.records.pairset import PairSet
        >>> from pairveil.learners.contrastive.recipe import ColumnScores
        >>> from pairveil.privacy.noise import SeededNoise
        >>> pairs = PairSet(np.eye(2), [[0, 1]], [-1])
        >>> query = Query("start", (4,), 0.0, mechanism=EXPONENTIAL)
        >>> scores = ColumnScores(2, (0.5, 2.0), (1.0, 1.0))
        >>> scores.candidate(Engine(pairs, SeededNoise(0)).choose(query, scores))
        (0, 0.5)
        """
        with self._alone:
            place = sum(self._done.values())
            self._count(query, scores, 1)
            chosen, kept = None, self._checkpoint
            if kept is not None:
                chosen = kept.released(place, query.name, (1,))
                if chosen is not None and chosen[0] not in range(scores.shape[0]):
                    raise InputError("this checkpoint chose what was not there to be chosen")
            if chosen is None:
                total = self._backend.add_up(None, scores, query.mechanism.norm, GRID)
                eta = EXPONENTIAL.eta(query.noise_multiplier)
                chosen = np.array([self._noise.choose(total, eta, UNIT)], dtype=np.float64)
                if kept is not None:
                    kept.keep(query.name, chosen)
            if self._on_answer is not None:
                self._on_answer(query, scores, chosen)
            return int(chosen[0])

    def descend(self, query: Query, gradient: SetGradient, rate: float, steps: int) -> FloatArray:
        """W after some answers for its gradient, ``W -= rate * noisy sum`` after each of them.

        Small Poisson batches, and their noise, are drawn for many steps at once: they depend on
        nothing that happens in between.
        """
        expected = query.sample_rate * self._backend.n_records
        together = 1
        small = query.is_sampled and expected <= SMALL_BATCH
        # A backend that adds noise itself makes its answers one by one.
        if small and self._checkpoint is None and not isinstance(self._backend, NoisyBackend):
            together = max(1, MOST_AT_ONCE // max(math.prod(gradient.shape), SMALL_BATCH))
        with self._alone:
            while steps > 0:
                now = min(steps, together)
                if now > 1:
                    moved = self._descend_together(query, gradient, rate, now)
                else:
                    moved = gradient.W - rate * self.answer(query, gradient)
                gradient, steps = replace(gradient, W=moved), steps - now
        return gradient.W

    def _descend_together(
        self, query: Query, gradient: SetGradient, rate: float, steps: int
    ) -> FloatArray:
        self._count(query, gradient, steps)
        n, grid, norm = self._backend.n_records, self._grid(query, gradient), query.mechanism.norm
        # Each pair enters each step on its own: one sample from the pairs written down ``steps`` times.
        drawn = self._noise.sample(n * steps, query.sample_rate)
        edges = np.searchsorted(drawn, n * np.arange(steps + 1))
        rows, shape = drawn % n, (steps, *gradient.shape)
        nothing = np.zeros(shape, dtype=np.int64)
        noise = self._add_noise(query, nothing, self._scale(query, gradient, grid), grid)
        if isinstance(self._backend, Local) and self._backend.descends(gradient):
            moved, noisy = self._backend.descend(gradient, (rows, edges), noise, rate, norm, grid)
            for one in noisy if self._on_answer is not None else ():
                gradient = self._step(query, gradient, rate, one)  # repeated for the watcher
            return moved
        for t in range(steps):
            total = self._add_up(query, gradient, rows[edges[t] : edges[t + 1]], grid)
            # Whole numbers below 2^62 and 2^53: their sum is exact, and only then made a float.
            one = (total + (noise[t] / grid).astype(np.int64)) * grid
            gradient = self._step(query, gradient, rate, one)
        return gradient.W

    def _step(
        self, query: Query, gradient: SetGradient, rate: float, noisy: FloatArray
    ) -> SetGradient:
        if self._on_answer is not None:
            self._on_answer(query, gradient, noisy)
        return replace(gradient, W=gradient.W - rate * noisy)

    def _count(self, query: Query, statistic: Statistic, steps: int) -> None:
        """Answers are counted before they are drawn; none is drawn beyond what was charged."""
        if os.getpid() != self._process:
            raise InputError(
                "these answers were charged in another process, and a fork is a copy: make the fit here, "
                "which is charged on its own"
            )
        if query.records != self._backend.kind:
            raise RuntimeError("this query was charged for records of another kind")
        if self._done[query] + steps > query.steps:
            raise RuntimeError(f"the plan allows no further answer to '{query.name}'")
        if isinstance(statistic, Scores) != query.is_choice:
            raise RuntimeError("choices are made by scores, and nothing else is")
        if math.prod(statistic.shape) > query.n_entries:
            raise RuntimeError("this answer has more numbers than its query was charged for")
        self._done[query] += steps

    def _grid(self, query: Query, statistic: Statistic) -> float:
        grid = choose_grid(
            statistic.clip,
            math.prod(statistic.shape),
            norm=query.mechanism.norm,
            n_pairs=self._backend.n_records,
        )
        while query.noise_multiplier * statistic.clip > MAX_NOISE_IN_GRID * grid:
            grid *= 2  # so much noise drowns a coarser grid too; the sensitivity follows the grid
        return grid

    def _add_up(
        self, query: Query, statistic: Statistic, rows: NDArray[np.int64] | None, grid: float
    ) -> NDArray[np.int64]:
        norm = query.mechanism.norm
        return self._backend.add_up(rows, statistic, norm, grid, separately=query.is_sampled)

    def _scale(self, query: Query, statistic: Statistic, grid: float) -> float:
        """Scale of the noise; it follows what one record can move the integer sum, not the clip alone."""
        if query.noise_multiplier == 0:
            return 0.0
        moved = statistic.sensitivity(query.mechanism.norm, grid, self._backend.dtype)
        return query.noise_multiplier * moved

    def _add_noise(
        self, query: Query, total: NDArray[np.int64], scale: float, grid: float
    ) -> FloatArray:
        if query.noise_multiplier == 0:
            return total.astype(np.float64) * grid
        return query.mechanism.draw(self._noise, total, scale, grid)

    def followed(self, queries: Iterable[Query]) -> bool:
        """Whether exactly these queries were answered."""
        return self._done == Counter({query: query.steps for query in queries})
