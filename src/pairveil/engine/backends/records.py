"""What a fit does with records before it asks anything of them, wherever they lie.

Records are in memory (`PairSet`, `People`) or with the workers of a cluster (`DaskPairs`). This is the only
place, beside the backends themselves, that looks which of them it has.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import numpy as np
from scipy import sparse

from pairveil.engine.backends.dask import OnCluster, connected_client
from pairveil.engine.backends.dask_pairs import Chosen, DaskPairs
from pairveil.engine.backends.local import Backend, Local
from pairveil.errors import InputError
from pairveil.graph.choosing import select_pairs, select_together
from pairveil.graph.kappa import Kappa, kappa, kappa_together
from pairveil.records.clipping import clip_rows_and_say_so
from pairveil.records.records import RecordsOfPeople


def is_remote(records: Any) -> bool:
    """Whether the records lie with the workers of a cluster."""
    return isinstance(records, DaskPairs)


def choose(
    records: Any, how: str, unit: Literal["pair", "relationship", "person"], seed: Any
) -> Chosen:
    """Which of the pairs to use, by who is paired with whom alone, and kappa before and after."""
    if isinstance(records, DaskPairs):
        return records.choose(how, unit, seed)
    together = getattr(records, "together", None)
    if together is None:
        kept = select_pairs(records, how, random_state=seed)
    else:
        kept = select_together(records.pairs, together, how, seed)
    given = kappa_of(records)
    if len(kept) == records.n_pairs:
        return Chosen(records, kept, given, given)
    used = records.subset(kept)
    return Chosen(used, kept, given, kappa_of(used))


def kappa_of(records: Any) -> Kappa:
    """The numbers of the graph of pairs in memory; people who change together count as one person."""
    found, together = kappa(records.pairs), getattr(records, "together", None)
    return found if together is None else kappa_together(found, records.pairs, together)


def clipped(records: Any, data_norm: float) -> Any:
    """The same records, with people's rows no longer than ``data_norm`` and in one layout."""
    if isinstance(records, DaskPairs):
        return records.clipped(data_norm)
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
    if hasattr(records, "topology"):
        return bytes(records.topology())
    ends = getattr(records, "pairs", None)
    if ends is None and not isinstance(records, np.ndarray):
        return hashlib.sha256(f"{records.n_records} people".encode()).digest()
    ends = records if ends is None else ends
    return np.ascontiguousarray(ends, dtype=np.int64).tobytes()


def check_backend(name: str) -> None:
    """Refuse a backend that is not there, before anything else is done."""
    if name == "dask":
        connected_client()


def backend_for(records: Any, name: str) -> Backend:
    """Where sums over these records are taken: ``'auto'``, ``'numpy'`` or ``'dask'``.

    Workers build their parts here: what they cannot read is said before anything is charged.
    """
    if name == "dask":
        if not isinstance(records, RecordsOfPeople | DaskPairs):
            kind = getattr(records, "kind", "these records")
            raise InputError(f"{kind} are summed on this machine: backend='auto'")
        return OnCluster(records, connected_client())
    return Local(records, compiled=name != "numpy")
