"""Kappa of several relations: each as if it were alone, and all together by brute force on their union."""

import numpy as np
import pytest

from pairveil import DPPMetricLearner, InputError, PairSet, kappa
from pairveil.graph.relations import relations
from pairveil.privacy.units import DECLARED_KAPPA


def drawn(seed):
    rng = np.random.default_rng(seed)
    kinds = {}
    for name in ("a", "b", "c"):
        pairs = {tuple(sorted(rng.choice(9, 2, replace=False).tolist())) for _ in range(7)}
        kinds[name] = np.array(sorted(pairs))
    return kinds


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_is_within_the_union(seed):
    kinds = drawn(seed)
    found = relations(kinds, intransitive={"c"})
    for name, pairs in kinds.items():
        alone = kappa(pairs)
        assert found.by_kind[name].relationship == alone.relationship
        assert found.relationship(name) <= found.union.relationship
        assert alone.person <= found.union.person
    everybody = np.concatenate(list(kinds.values()))
    assert found.union.person == np.bincount(everybody.ravel()).max()
    assert found.union.n_pairs == len(everybody)
    assert found.relationship("c") == max(1, kappa(kinds["c"]).intransitive)


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_the_note_says_what_covers_the_union_and_a_fit_takes_it():
    kinds = {"one": [[0, 1], [1, 2]], "two": [[0, 2], [2, 3]]}
    found = relations(kinds)
    assert "kappa=2" in found.note("one")
    assert "labels only" in relations(kinds, {"one"}).note("one")
    assert found.to_dict()["union"] == {"relationship": 2, "person": 3}
    same = relations({"one": kinds["one"]})
    assert "and 1 with all 1 relations" in same.note("one")
    data = PairSet(np.eye(4), kinds["one"], [1, -1])
    certificate = DPPMetricLearner(kappa=found.union.relationship, delta=1e-3, epsilon=4.0).certify(
        data
    )
    assert certificate.kappa == 2
    assert DECLARED_KAPPA in certificate.public


def test_what_is_no_relation_is_refused():
    with pytest.raises(InputError, match="at least one"):
        relations({})
    with pytest.raises(InputError, match="'x'"):
        relations({"a": [[0, 1]]}, {"x"})
    with pytest.raises(InputError, match="'x'"):
        relations({"a": [[0, 1]]}).relationship("x")
