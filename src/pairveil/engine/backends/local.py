"""Where sums are taken: on this machine, or wherever else a backend keeps the records.

A backend answers one question: the clipped sum of a statistic over some records, in whole multiples of a
grid. Integers add up to the same total whoever adds them, so all backends give the same answer.

Here is also what a fit does with records before it asks anything of them: which are used, and how many of
them a unit touches.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.array_types import FloatArray, IntArray
from pairveil.engine.backends.dask import OnCluster, connected_client
from pairveil.engine.gradients import SetGradient
from pairveil.engine.statistics import Statistic, clipped_sum
from pairveil.errors import InputError
from pairveil.graph.choosing import select_pairs, select_together
from pairveil.graph.kappa import Kappa, kappa, kappa_together
from pairveil.privacy.grid import Norm
from pairveil.privacy.mechanisms import Query
from pairveil.privacy.noise import NoiseSource
from pairveil.records.records import Records
from pairveil.records.validation import clip_rows_and_say_so


class Backend(Protocol):
    """The private records, seen only through clipped sums."""

    @property
    def n_records(self) -> int:
        """How many records there are (public)."""
        ...

    @property
    def kind(self) -> str:
        """Of records, as `Query.records` names it: a unit's cost depends on it."""
        ...

    @property
    def dtype(self) -> Any:
        """Type of the features."""
        ...

    def add_up(
        self,
        rows: IntArray | None,
        statistic: Statistic,
        norm: Norm,
        grid: float,
        *,
        separately: bool = False,
    ) -> IntArray:
        """The sum over some records (None: all), as `pairveil.engine.statistics.clipped_sum` gives it."""
        ...


class NoisyBackend:
    """A backend whose sums come with their noise, because nobody may see them without (several parties)."""

    n_records: int
    kind: str
    dtype: Any = np.float64

    def noisy_sum(
        self,
        query: Query,
        statistic: Statistic,
        step: int,
        grid: float,
        scale: float,
        noise: NoiseSource,
    ) -> FloatArray:
        """One answer of a query: the sum of its batch number ``step``, with noise of this scale."""
        raise NotImplementedError

    def add_up(self, *asked: Any, **options: Any) -> IntArray:
        """Not there: whatever needs sums without noise, as a noisy choice does, cannot be answered."""
        del asked, options
        raise InputError(
            "several parties answer sums with noise on them and nothing else: no sum can be had without, and "
            "no noisy choice"
        )


def batch_of(
    query: Query, step: int, n_records: int, noise: NoiseSource
) -> NDArray[np.int64] | None:
    """Which records enter this sum, chosen without looking at them; None is all."""
    if query.is_sampled:
        return noise.sample(n_records, query.sample_rate)
    if query.n_batches == 1:
        return None
    # Dealt like cards, by position: disjoint, the same every epoch, and blind to the contents.
    return np.arange(step % query.n_batches, n_records, query.n_batches)


class Local:
    """Records in the memory, or in the files, of this machine: many small steps are taken at once here."""

    def __init__(self, data: Any, *, compiled: bool = True) -> None:
        self._data, self._compiled = data, compiled
        self.kind: str = data.kind
        self.n_records, self.dtype = int(data.n_records), data.features.dtype

    def add_up(
        self,
        rows: IntArray | None,
        statistic: Statistic,
        norm: Norm,
        grid: float,
        *,
        separately: bool = False,
    ) -> IntArray:
        """`pairveil.engine.statistics.clipped_sum` of the records."""
        return clipped_sum(
            self._data, rows, statistic, norm, grid, compiled=self._compiled, separately=separately
        )

    def descends(self, gradient: SetGradient) -> bool:
        """Whether `descend` is there for this gradient: compiled loops cover dense features."""
        dense = isinstance(self._data.features, np.ndarray)
        return self._compiled and dense and gradient.is_compilable(self._data)

    def descend(
        self,
        gradient: SetGradient,
        batches: tuple[IntArray, IntArray],
        noise: FloatArray,
        rate: float,
        norm: Norm,
        grid: float,
    ) -> tuple[FloatArray, FloatArray]:
        """All steps in one compiled loop: W after the last one, and the noisy sums of all."""
        return gradient.compiled_descent(self._data, batches, noise, rate, norm, grid)


# ---- what a fit does with records before it asks anything of them ---------------------------------


class Chosen(NamedTuple):
    """Which pairs a fit uses, and kappa of those given and of those used."""

    used: Any
    rows: NDArray[np.int64]
    given_kappa: Kappa
    used_kappa: Kappa


def select_used(records: Any, how: str, seed: Any) -> Chosen:
    """Which of the pairs to use, by who is paired with whom alone, and kappa before and after."""
    together = getattr(records, "together", None)
    if together is None:
        kept = select_pairs(records, how, random_state=seed)
    else:
        kept = select_together(records.pairs, together, how, seed)
    given = kappa_of(records)
    if len(kept) == records.n_records:
        return Chosen(records, kept, given, given)
    used = records.subset(kept)
    return Chosen(used, kept, given, kappa_of(used))


def kappa_of(records: Any) -> Kappa:
    """The numbers of the graph of pairs in memory; people who change together count as one person."""
    found, together = kappa(records.pairs), getattr(records, "together", None)
    return found if together is None else kappa_together(found, records.pairs, together)


def clipped(records: Any, data_norm: float) -> Any:
    """The same records, with people's rows no longer than ``data_norm`` and in one layout."""
    features = _uniform(clip_rows_and_say_so(records.features, data_norm))
    return records if features is records.features else records.with_features(features)


def _uniform(features: Any) -> Any:
    """Features in one layout, whatever they hold: which loop sums them must not depend on contents."""
    if sparse.issparse(features):
        rows = sparse.csr_array(features)
        rows.sum_duplicates()
        return rows
    return np.ascontiguousarray(features)


def topology_digest(records: Any) -> bytes:
    """Names what is public of the records: who is paired or grouped with whom, or how many people."""
    if isinstance(records, np.ndarray):
        return np.ascontiguousarray(records, dtype=np.int64).tobytes()
    return bytes(records.topology())


def check_backend(name: str) -> None:
    """Refuse a backend that is not there, before anything else is done."""
    if name == "dask":
        connected_client()


def backend_for(records: Any, name: str) -> Backend:
    """Where sums over these records are taken: ``'auto'``, ``'numpy'`` or ``'dask'``.

    Workers build their parts here: what they cannot read is said before anything is charged.
    """
    own = getattr(records, "backend", None)
    if isinstance(own, NoisyBackend):  # records of several parties, which are not here
        return own
    if name == "dask":
        if not isinstance(records, Records):
            kind = getattr(records, "kind", "these records")
            raise InputError(f"{kind} are summed on this machine: backend='auto'")
        return OnCluster(records, connected_client())
    return Local(records, compiled=name != "numpy")
