"""What a fit does with records before it asks anything of them.

Which are used, how many of them a unit touches, and where their sums are taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.engine.backends.dask import OnCluster, connected_client
from pairveil.engine.backends.local import Backend, Local
from pairveil.errors import InputError
from pairveil.graph.choosing import select_pairs, select_together
from pairveil.graph.kappa import Kappa, kappa, kappa_together
from pairveil.records.clipping import clip_rows_and_say_so
from pairveil.records.records import Records


class Chosen(NamedTuple):
    """Which pairs a fit uses, and the group sizes of those given and of those used."""

    used: Any
    rows: NDArray[np.int64]
    given: Kappa
    taken: Kappa


def choose(records: Any, how: str, seed: Any) -> Chosen:
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
    if name == "dask":
        if not isinstance(records, Records):
            kind = getattr(records, "kind", "these records")
            raise InputError(f"{kind} are summed on this machine: backend='auto'")
        return OnCluster(records, connected_client())
    return Local(records, compiled=name != "numpy")
