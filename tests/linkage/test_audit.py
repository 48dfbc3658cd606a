"""The exact audit of a linkage model: the worst neighbours move it by all of its charge, and no more."""

from types import SimpleNamespace

import numpy as np
import pytest

from pairveil.audit.exact_audit import measure
from pairveil.linkage import PrivateLinkageModel
from pairveil.linkage.model import LevelCounts

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.GuaranteeWarning")
STAR = np.array([[0, 1], [0, 2], [0, 3], [4, 5], [6, 7]])
N_LEVELS = (3, 2)


def audited(unit, adjacency, mechanism="gaussian"):
    """All pairs of the unit turn from a full match into nothing, or into a full non-match."""
    held = 3 if unit == "person" else 1
    y = np.array([1, 1, 1, -1, 1])
    levels = np.tile([2, 1], (5, 1))
    model = PrivateLinkageModel(
        epsilon=4.0, delta=1e-3, unit=unit, adjacency=adjacency, mechanism=mechanism, select="all",
        random_state=0,
    )  # fmt: skip
    prepared = model.prepare(levels, y, STAR, N_LEVELS)
    used = prepared.records.used
    changed = np.arange(5) < held
    if adjacency == "zero-out":
        other = used.emptied(changed)
    else:
        other = used.replace(labels=np.where(changed, -1, used.labels).astype(np.int8))
    canary = SimpleNamespace(
        first=other, second=used, adjacency=adjacency, name="flip", kappa=held,
        changed=np.flatnonzero(changed), hides_features=False,
    )  # fmt: skip
    return measure(prepared, canary)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("unit", ["pair", "person"])
def test_the_worst_neighbours_move_the_counts_by_all_of_the_charge(unit, adjacency, mechanism):
    found = audited(unit, adjacency, mechanism)
    assert found.verdict == "consistent"
    assert [query.ratio for query in found.queries] == pytest.approx([1.0], rel=1e-4)


def test_contributions_that_are_too_long_are_found(monkeypatch):
    honest = LevelCounts.tile_sum
    monkeypatch.setattr(LevelCounts, "tile_sum", lambda *given: 1.1 * honest(*given))
    assert audited("pair", "replace").verdict == "violated"
