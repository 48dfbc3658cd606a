"""PrivateLinkageModel: what it learns, what it promises, and what can and cannot stop it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from labelled import N_LEVELS, M, U, labelled
from sklearn.base import clone

from pairveil import BudgetError, InputError, PrivacyLedger
from pairveil.errors import DataWarning, PrivateNote
from pairveil.linkage import (
    PrivateLinkageModel,
    ReleasedLinkage,
    level_frequencies,
    to_recordlinkage,
)
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.units import UNITS

LEVELS, Y, PAIRS = labelled()


def fitted(levels=LEVELS, y=Y, pairs=PAIRS, n_levels=N_LEVELS, entities=None, **options):
    options = {"epsilon": 1.0, "random_state": 0, **options}
    return PrivateLinkageModel(**options).fit(levels, y, pairs, n_levels, entities=entities)


def test_weights_are_near_the_true_ones_and_exact_counts_without_privacy():
    model = fitted(*labelled(20000), epsilon=4.0)
    for m, u, true_m, true_u in zip(model.m_, model.u_, M, U, strict=True):
        assert m == pytest.approx(true_m, abs=0.03)
        assert u == pytest.approx(true_u, abs=0.03)
        assert m.sum() == pytest.approx(1) == u.sum()
    assert model.prior_ == pytest.approx(0.5, abs=0.02)
    plain = fitted(epsilon=float("inf"))
    assert plain.certificate_ is None
    counts = np.bincount(LEVELS[(Y > 0) & (LEVELS[:, 0] >= 0), 0], minlength=4) + 0.5
    assert plain.m_[0] == pytest.approx(counts / counts.sum())


def test_pairs_and_levels_may_be_those_of_recordlinkage():
    index = pd.MultiIndex.from_arrays(PAIRS.T, names=["rec_id_1", "rec_id_2"])
    levels = pd.DataFrame(LEVELS.astype(float), index=index, columns=["name", "town", "born"])
    model = fitted(levels, pairs=index)
    np.testing.assert_array_equal(np.concatenate(model.m_), np.concatenate(fitted().m_))


def test_match_weights_are_log2_ratios_and_nulls_add_nothing():
    model = fitted()
    bits = np.log2(model.m_[0][3] / model.u_[0][3]) + np.log2(model.m_[2][0] / model.u_[2][0])
    found = model.match_weights([[3, -1, 0], [-1, -1, -1]])
    assert found == pytest.approx([bits, 0.0])
    odds = 0.01 / 0.99 * 2 ** found[0]
    assert model.match_probability([[3, -1, 0]], prior=0.01) == pytest.approx(odds / (1 + odds))
    assert model.match_probability([[-1, -1, -1]]) == pytest.approx(model.prior_)
    assert fitted(prior=0.2).match_probability([[-1, -1, -1]]) == pytest.approx(0.2)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("unit", UNITS)
def test_the_certificate_holds_for_each_unit_adjacency_and_mechanism(unit, adjacency, mechanism):
    options = {"unit": unit, "adjacency": adjacency, "mechanism": mechanism, "random_state": None}
    planned = PrivateLinkageModel(**options).certify(LEVELS, Y, PAIRS, N_LEVELS)
    model = fitted(**options)
    certificate = model.certificate_
    assert certificate == planned
    assert certificate.verify().problems == ()
    assert 0.99 < certificate.epsilon <= 1.0
    assert certificate.for_release
    assert (certificate.unit, certificate.records) == (unit, "counted pairs")
    assert certificate.kappas == {"pair": 1, "relationship": 1, "person": 2}
    assert model.kappa_ == (2 if unit == "person" else 1)
    assert "linkage model" in certificate.promise()
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_replace_costs_root_two_in_l2_and_twice_in_l1():
    costs = {
        m: fitted(mechanism=m).certificate_.costs["counted pairs"]["pair"]
        for m in ("gaussian", "laplace")
    }
    assert costs["gaussian"].replace == pytest.approx(2**0.5)
    assert costs["laplace"].replace == 2.0


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_certificate_that_states_a_smaller_cost_is_refused(mechanism):
    content = fitted(mechanism=mechanism).certificate_.to_dict()
    for by_unit in content["costs"].values():
        for cost in by_unit.values():
            cost["replace"] = 1.4 if mechanism == "gaussian" else 2**0.5
    problems = Certificate.from_dict(content).verify().problems
    assert any("move further" in problem for problem in problems)


def test_without_pairs_only_the_unit_pair_is_promised():
    model = fitted(pairs=None, unit="pair", random_state=None)
    certificate = model.certificate_
    assert certificate.verify().problems == ()
    assert certificate.for_release
    assert certificate.epsilons["pair"]["zero-out"] <= 1.0
    for unit in ("relationship", "person"):
        assert set(certificate.epsilons[unit].values()) == {float("inf")}
    with pytest.raises(InputError, match="pairs are missing"):
        fitted(pairs=None)


def test_a_smaller_epsilon_for_unknown_units_than_the_events_give_is_refused():
    content = fitted(pairs=None, unit="pair").certificate_.to_dict()
    content["epsilons"]["person"] = {"zero-out": 1.0, "replace": 2.0}
    assert not Certificate.from_dict(content).verify()


def test_levels_read_off_the_data_are_not_for_release():
    certificate = fitted(n_levels=None, random_state=None).certificate_
    assert certificate.verify().problems == ()
    assert not certificate.for_release
    assert certificate.why_not_for_release() == ("the number of levels was read off the pairs",)
    content = certificate.to_dict() | {"for_release": True}
    assert not Certificate.from_dict(content).verify()


def test_a_person_may_have_several_records():
    entity = fitted(unit="entity", entity_records=5, select="matching", random_state=None)
    certificate = entity.certificate_
    assert certificate.kappas["person"] == 5 == entity.kappa_
    assert certificate.unit == "person"
    assert certificate.verify().problems == ()
    assert any(
        "5 records at most; that nobody has more is the sender's word" in s
        for s in certificate.public
    )
    with pytest.raises(InputError, match="needs entity_records"):
        fitted(unit="entity")


def test_how_two_people_of_several_records_relate_is_in_all_pairs_of_their_records():
    """Five pairs that share no record may all be between the same two people."""
    pairs = np.arange(40).reshape(-1, 2)
    model = PrivateLinkageModel(unit="relationship", entity_records=5, select="all")
    certificate = model.certify(np.ones((20, 1), dtype=int), np.ones(20), pairs, n_levels=[2])
    assert certificate.kappas == {"pair": 1, "relationship": 5, "person": 5}
    assert certificate.selection["full_graph_relationship_kappa"] == 5
    assert certificate.verify().problems == ()
    content = certificate.to_dict()
    content["costs"]["counted pairs"]["relationship"]["records"] = 1
    content |= {"kappa": 1, "kappas": {"pair": 1, "relationship": 1, "person": 5}}
    content["epsilons"]["relationship"] = content["epsilons"]["pair"]
    content["epsilon"] = content["epsilons"]["pair"]["zero-out"]
    assert any(
        "counted by records" in said for said in Certificate.from_dict(content).verify().problems
    )
    single = PrivateLinkageModel(unit="relationship", entity_records=1, select="all")
    certificate = single.certify(np.ones((20, 1), dtype=int), np.ones(20), pairs, n_levels=[2])
    assert certificate.kappas == {"pair": 1, "relationship": 1, "person": 1}


def test_the_bound_on_an_entity_is_enforced_where_entities_are_given():
    names = np.arange(2001) // 10  # ten records each, three of them count
    model = fitted(entities=names[PAIRS], entity_records=3, unit="entity", epsilon=float("inf"))
    ends = PAIRS % 10
    counted = (ends < 3).all(axis=1) & (Y > 0) & (LEVELS[:, 0] >= 0)
    counts = np.bincount(LEVELS[counted, 0], minlength=4) + 0.5
    assert model.m_[0] == pytest.approx(counts / counts.sum())
    private = fitted(entities=names[PAIRS], entity_records=3, unit="entity")
    assert any("contribute nothing" in said for said in private.certificate_.public)
    assert private.certificate_.kappas["person"] == 6
    with pytest.raises(InputError, match="entity_records"):
        fitted(entities=names[PAIRS])
    with pytest.raises(InputError, match="entity of both records"):
        fitted(entities=names, entity_records=3, unit="entity")


def test_a_record_without_an_entity_or_of_two_counts_for_nobody_and_stops_nothing():
    one = np.arange(2001)[PAIRS].astype(object)  # everybody has one record
    one[0, 1] = None  # pairs 0 and 1 share record 1
    one[5, 1] = 77_777  # record 6 is also said to be 6
    model = fitted(entities=one, entity_records=1, unit="entity", epsilon=float("inf"))
    kept = np.ones(2000, dtype=bool)
    kept[[0, 1, 5, 6]] = False
    without = fitted(LEVELS[kept], Y[kept], PAIRS[kept], epsilon=float("inf"))
    assert model.m_[0] == pytest.approx(without.m_[0])
    assert model.u_[1] == pytest.approx(without.u_[1])


def test_a_pickled_model_holds_no_place_of_a_pair():
    again = pickle.loads(pickle.dumps(fitted()))
    assert again.match_weights(LEVELS[:5]) == pytest.approx(fitted().match_weights(LEVELS[:5]))
    assert not any(
        np.size(value) > 100 for value in vars(again).values() if not isinstance(value, str | list)
    )


@pytest.mark.parametrize("unit", ["pair", "relationship"])
def test_an_enforced_bound_protects_entities_alone(unit):
    """One match more makes a record its entity's second, and nineteen pairs null: 20 clips, not one."""
    star = np.array([[0, 1], *([1, j] for j in range(2, 21))])
    found = []
    for match in (False, True):
        entities, y = star.astype(str).astype(object), -np.ones(20)
        if match:
            entities[star == 1], y[0] = "0", 1
        model = PrivateLinkageModel(unit="entity", select="all", entity_records=1)
        prepared = model.prepare(np.zeros((20, 1), dtype=int), y, star, [2], entities=entities)
        assert any("is not itself protected" in said for said in prepared.certificate.public)
        found.append(np.count_nonzero(prepared.records.used.labels))
    assert found == [20, 0]
    refused = PrivateLinkageModel(unit=unit, select="all", entity_records=1)
    with pytest.raises(InputError, match="unit='entity'"):
        refused.prepare(np.zeros((20, 1), dtype=int), y, star, [2], entities=entities)


def test_u_may_be_given_and_then_only_m_is_paid_for():
    u = [list(one) for one in U]
    model = fitted(u=u)
    assert model.u_[0] == pytest.approx(U[0])
    assert model.m_[0] == pytest.approx(M[0], abs=0.05)
    assert any("nothing is promised of it" in said for said in model.certificate_.public)
    assert model.certificate_.plan["releases"][0]["entries"] == 2 + sum(N_LEVELS)
    for wrong in (
        [[1.0]],
        [[0.5, 0.5], *u[1:]],
        [[0.5, 0.5, 0.5, 0.5], *u[1:]],
        [[1, 0, 0, 0], *u[1:]],
    ):
        with pytest.raises(InputError, match="u "):
            fitted(u=wrong)
    assert level_frequencies(LEVELS[Y < 0], N_LEVELS)[0] == pytest.approx(U[0], abs=0.03)


def test_a_monotone_model_never_weighs_a_higher_level_less():
    for seed in range(5):
        model = fitted(monotone=True, epsilon=0.05, random_state=seed)
        for m, u in zip(model.m_, model.u_, strict=True):
            assert (np.diff(m / u) >= -1e-12).all()
            assert m.sum() == pytest.approx(1)


def test_private_facts_stop_nothing():
    one_kind = fitted(y=np.ones(len(Y), dtype=int))
    assert one_kind.prior_ > 0.5
    absent = LEVELS.copy()
    absent[:, 1] = -1
    model = fitted(absent)
    assert np.abs(np.log2(model.m_[1] / model.u_[1])).max() < 2.5  # the guess, no more
    assert all((m > 0).all() and (u > 0).all() for m, u in zip(model.m_, model.u_, strict=True))


def test_the_same_pair_twice_with_other_contents_is_null_and_only_the_operator_is_told():
    twice, contrary = np.vstack([PAIRS, PAIRS[:1, ::-1]]), np.vstack([LEVELS, [[0, 0, 0]]])
    contrary[0] = [3, 2, 1]
    with pytest.warns(DataWarning) as caught:
        model = fitted(contrary, np.append(Y, Y[0]), twice, epsilon=float("inf"))
    assert any(issubclass(one.category, PrivateNote) for one in caught)
    without = fitted(LEVELS[1:], Y[1:], PAIRS[1:], epsilon=float("inf"))
    assert model.m_[0] == pytest.approx(without.m_[0])


def test_the_model_does_not_depend_on_the_order_of_rows_or_on_sides():
    order = np.random.default_rng(3).permutation(len(Y))
    again = fitted(LEVELS[order], Y[order], PAIRS[order][:, ::-1])
    assert again.m_[0] == pytest.approx(fitted().m_[0], abs=0)
    named = fitted(pairs=np.array([[f"r{a:05d}", f"r{b:05d}"] for a, b in PAIRS]))
    assert named.m_[0] == pytest.approx(fitted().m_[0], abs=0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_levels": (4, 3)}, "n_levels"),
        ({"n_levels": (4, 2, 2)}, "row .* column 2 is not below n_levels"),
        ({"n_levels": (4, 3, 0)}, "n_levels"),
        ({"levels": LEVELS - 1}, "below -1"),
        ({"levels": LEVELS + 0.5}, "not a whole number"),
        ({"levels": LEVELS[:, 0]}, "one row a pair"),
        ({"levels": LEVELS[:0], "y": Y[:0], "pairs": PAIRS[:0]}, "no pairs"),
        ({"y": np.zeros(len(Y))}, "y must be"),
        ({"pairs": PAIRS[:5]}, "pairs must name"),
        ({"pairs": np.zeros_like(PAIRS)}, "with itself"),
        ({"epsilon": 0}, "epsilon"),
        ({"unit": "household"}, "unit"),
        ({"prior": 1.0}, "prior"),
        ({"entity_records": 0}, "entity_records"),
        ({"monotone": "yes"}, "monotone"),
    ],
)
def test_mistakes_are_said_before_anything_is_charged(wrong, message):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with pytest.raises(InputError, match=message):
        fitted(**{"accountant": ledger, **wrong})
    assert ledger.entries == ()


def test_a_ledger_is_charged_and_refuses_what_it_cannot_pay():
    ledger = PrivacyLedger(epsilon=1.2, delta=1e-5)
    fitted(accountant=ledger)
    assert len(ledger.entries) == 1
    assert ledger.spent() == pytest.approx(1.0, rel=0.01)
    with pytest.raises(BudgetError):
        fitted(accountant=ledger)


def test_a_killed_fit_is_resumed_and_charged_once(tmp_path):
    ledger = PrivacyLedger(epsilon=1.5, delta=1e-5, path=tmp_path / "ledger.json")
    options = {"accountant": ledger, "epsilon": 1.0}
    file = tmp_path / "fit.checkpoint"
    model = PrivateLinkageModel(**options)
    first = model.fit(LEVELS, Y, PAIRS, N_LEVELS, checkpoint=file, keep_checkpoint=True)
    again = PrivateLinkageModel(**options).fit(LEVELS, Y, PAIRS, N_LEVELS, checkpoint=file)
    assert again.m_[0] == pytest.approx(first.m_[0], abs=0)
    assert len(ledger.entries) == 1


def test_it_is_an_estimator_and_knows_its_columns():
    model = fitted(pd.DataFrame(LEVELS, columns=["name", "dob", "sex"]))
    assert model.feature_names_in_.tolist() == ["name", "dob", "sex"]
    assert clone(model).get_params()["entity_records"] is None
    assert model.released().names == ("name", "dob", "sex")


def test_a_release_is_read_back_and_a_changed_one_is_refused(tmp_path):
    model = fitted(random_state=None)
    model.release(tmp_path / "out")
    found = ReleasedLinkage.load(tmp_path / "out")
    assert found.certificate.verify().problems == ()
    assert found.match_weights(LEVELS) == pytest.approx(model.match_weights(LEVELS), abs=0)
    assert found.n_levels == N_LEVELS
    with pytest.raises(InputError, match="already holds a release"):
        model.release(tmp_path / "out")
    model.release(tmp_path / "out", overwrite=True)
    file = tmp_path / "out" / "linkage.json"
    file.write_text(file.read_text().replace("0.", "0.1", 1))
    with pytest.raises(InputError, match="was changed after the release"):
        ReleasedLinkage.load(tmp_path / "out")


def test_recordlinkage_gets_the_same_odds():
    binary = np.minimum(LEVELS, 1)
    model = fitted(np.maximum(binary, 0), n_levels=2)
    coefficients, intercept = to_recordlinkage(model, prior=0.1)
    rows = np.array([[0, 0, 0], [1, 0, 1], [1, 1, 1]])
    odds = np.exp(intercept + rows @ coefficients)
    assert odds / (1 + odds) == pytest.approx(model.match_probability(rows, prior=0.1))
    with pytest.raises(InputError, match="two levels"):
        to_recordlinkage(fitted())
