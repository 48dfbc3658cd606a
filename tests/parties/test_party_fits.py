"""Fits of several parties: the same as one over all pairs, certified as what they are, refused in time."""

import json
import threading
from dataclasses import replace
from functools import partial

import msgspec
import numpy as np
import pytest
from joint import Watched, hospital, hospitals
from jsonschema import Draft202012Validator
from tools.certificate_schema import certificate_schema

from pairveil import Certificate, DPPMetricLearner, PairSet, PrivacyLedger
from pairveil.engine.backends import parties as wire
from pairveil.engine.backends.local import backend_for
from pairveil.errors import BudgetError, InputError, PartyError
from pairveil.graph.kappa import kappa
from pairveil.jobs.received import recount
from pairveil.learners.tuples import DPPTripletLearner
from pairveil.parties import Consent, Party, coordinate, simulate, take_part, terms_for
from pairveil.parties.agreement import _union, hashed, own_records, trust_of
from pairveil.parties.rehearsal import line
from pairveil.privacy.certificate import joint_kappas
from pairveil.privacy.events import GaussianEvent
from pairveil.privacy.noise import PartiesNoise
from pairveil.privacy.units import PARTIES_NOISE, REHEARSED, UNITS
from pairveil.records.identity import IndexedPairs

QUICK = {"n_steps": 3, "select": "all"}
KEY = b"k" * 32


def of(parts):
    """All pairs of several hospitals as one."""
    first = np.cumsum([0, *(part.n_people for part in parts)])
    return PairSet(
        np.vstack([part.features for part in parts]),
        np.vstack([part.pairs + first[i] for i, part in enumerate(parts)]),
        np.concatenate([part.labels for part in parts]),
        ids=np.concatenate([part.ids for part in parts]),
    )


def fit_for_real(
    parts, learner, *, consents=None, names=None, ledgers=None, change=None, keys=None, **terms
):
    """A fit that is no rehearsal: the coordinator's result, and each party's result or problem."""
    proposed = terms_for(learner, len(parts), **terms)
    rule = proposed.kappa_rule
    usual = Consent(10.0, 1e-4, rules=(rule,), trusts_coordinator=proposed.noise == "coordinator")
    lines = [line(10.0) for _ in parts]
    results = [None] * len(parts)

    def run(i):
        party = Party(
            name=(names or "ABCDEFGH")[i],
            records=partial(own_records, pairs=parts[i]),
            consent=(consents or {}).get(i, usual),
            ledger=None if ledgers is None else ledgers[i],
            graph_key=KEY if keys is None else keys[i],
        )
        end = lines[i][1] if change is None else change(i, lines[i][1])
        try:
            results[i] = take_part(end, party)
        except Exception as problem:
            results[i] = problem

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(parts))]
    for thread in threads:
        thread.start()
    try:
        found = coordinate(proposed, [ends[0] for ends in lines])
    except Exception as problem:
        found = problem
    for thread in threads:
        thread.join()
    return found, results


@pytest.fixture(scope="module")
def released():
    return fit_for_real(hospitals(3), DPPMetricLearner(**QUICK), kappa_rule="disjoint")


@pytest.mark.parametrize("sampling", [{}, {"sampling": "disjoint", "sample_rate": 1.0}])
def test_with_a_coordinators_noise_it_is_the_fit_of_all_pairs_bit_for_bit(sampling):
    """Whole tiles of 1,024 pairs, so that the same floating-point sums are rounded."""
    parts = hospitals(3, n_pairs=1024)
    learner = DPPMetricLearner(random_state=5, **QUICK, **sampling)
    joint = simulate(learner, parts, noise="coordinator", kappa_rule="disjoint")
    alone = DPPMetricLearner(random_state=5, **QUICK, **sampling).fit(of(parts))
    assert (joint.learner.components_ == alone.components_).all()
    assert (joint.components == alone.components_).all()
    ours, theirs = joint.certificate, alone.certificate_
    assert ours.epsilons == theirs.epsilons
    assert ours.events == theirs.events
    assert ours.parties["noise"] == "coordinator"
    assert theirs.parties is None
    assert "nothing is promised against the coordinator" in ours.promise()
    assert "parties" not in theirs.to_dict()


def test_sampled_batches_are_drawn_by_each_party_and_tell_the_same():
    parts = hospitals(2, n_pairs=400)
    learner = DPPMetricLearner(random_state=5, sample_rate=0.2, n_steps=5, epsilon=5.0)
    joint = simulate(learner, parts, noise="parties", kappa_rule="disjoint")
    assert any(event.get("sample_rate") == 0.2 for event in joint.certificate.events)
    assert joint.certificate.verify()


def test_a_release_of_several_parties_says_whom_it_holds_against(released):
    joint, parties = released
    certificate = joint.certificate
    assert certificate.for_release
    assert certificate.verify().problems == ()
    assert certificate.noise_source == PARTIES_NOISE
    assert certificate.parties["colluders"] == 1
    assert [one["name"] for one in certificate.parties["who"]] == ["A", "B", "C"]
    assert "together with any 1 of the parties" in certificate.promise()
    assert "of any 2 of the 3 parties suffices" in trust_of(certificate)
    assert Certificate.from_json(certificate.to_json()) == certificate
    Draft202012Validator(certificate_schema()).validate(json.loads(certificate.to_json()))
    for party in parties:
        assert party.fingerprint == joint.fingerprint
        assert party.finished.certificate == joint.finished.certificate
        assert np.allclose(party.learner.components_, joint.components)
    local = DPPMetricLearner(**QUICK).fit(of(hospitals(3))).certificate_
    assert local.parties is None
    assert local.epsilons == certificate.epsilons


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"colluders": 3}, "so many colluders"),
        ({"colluders": 0}, "too few are stated"),
        ({"noise": "coordinator"}, "who drew|drew the noise"),
        ({"kappa_rule": "sum"}, "kappa is below|several parties make public"),
    ],
)
def test_a_changed_statement_about_parties_does_not_verify(released, change, problem):
    certificate = released[0].certificate
    changed = replace(certificate, parties={**certificate.parties, **change})
    assert any(part in one for one in changed.verify().problems for part in problem.split("|")), (
        changed.verify().problems
    )


def test_who_took_part_cannot_be_left_out_or_made_smaller(released):
    certificate = released[0].certificate
    assert not replace(certificate, parties=None).verify()
    who = certificate.parties["who"]
    fewer = replace(certificate, parties={**certificate.parties, "who": who[:2]})
    assert any("numbers of pairs" in one for one in fewer.verify().problems)
    larger = [{**one, "kappas": {**one["kappas"], "person": 7}} for one in who]
    small = replace(certificate, parties={**certificate.parties, "who": larger})
    assert any("kappa is below" in one for one in small.verify().problems)
    with pytest.raises(InputError, match="parties"):
        replace(certificate, parties={"who": []})


def path(ids, seed=0):
    """A path through some people, by their ids."""
    rng = np.random.default_rng(seed)
    people = rng.uniform(-0.5, 0.5, size=(len(ids), 3))
    pairs = np.stack([np.arange(len(ids) - 1), np.arange(1, len(ids))], axis=1)
    return PairSet(people, pairs, rng.choice([-1, 1], len(pairs)), ids=np.array(ids))


def test_kappa_of_people_in_two_institutions():
    """Two paths, kappa 1 each, whose union has a minimum cut of 4 between some two people."""
    n = 60
    rng = np.random.default_rng(1)
    one, other = list(range(n)), rng.permutation(n).tolist()
    paths = [path(one), path(other)]
    union = kappa(np.vstack([p.ids[p.pairs] for p in paths]))
    assert [kappa(p.pairs).relationship for p in paths] == [1, 1]
    assert union.relationship == 4
    learner = DPPMetricLearner(epsilon=15.0, random_state=0, **QUICK)
    summed = simulate(learner, paths, kappa_rule="sum").certificate
    assert summed.kappas == {"pair": 2, "relationship": 4, "person": 4}
    counted = simulate(learner, paths, kappa_rule="union", graph_key=KEY).certificate
    assert counted.kappas == {unit: union.of(unit) for unit in ("pair", "relationship", "person")}
    assert counted.verify().problems == summed.verify().problems == ()
    apart = [path(one), path([i + n for i in other])]
    assert simulate(learner, apart, kappa_rule="disjoint").certificate.kappas["person"] == 2
    assert simulate(learner, apart, kappa_rule="union", graph_key=KEY).certificate.kappas == {
        "pair": 1, "relationship": 1, "person": 2,
    }  # fmt: skip


def test_one_person_under_two_spellings_is_counted_once_in_the_union():
    """Nobody sees the ids of two parties side by side, so nobody could warn of them."""
    n = 60
    one = list(range(n))
    other = np.random.default_rng(1).permutation(n).tolist()
    plain = [path(one), path(other)]
    spelt = [
        path([f"Patient {i}" for i in one]),
        path([f" patient {i} " if i % 2 else f"\uff30ATIENT {i}" for i in other]),
    ]
    numbers = [path(one), path([f"{i:03d}" if i % 2 else f"{i}.0" for i in other])]
    learner = DPPMetricLearner(epsilon=15.0, random_state=0, **QUICK)
    wanted, *found = (
        simulate(learner, parts, kappa_rule="union", graph_key=KEY).certificate.kappas
        for parts in (plain, spelt, numbers)
    )
    assert found == [wanted, wanted]
    with pytest.raises(PartyError, match="are they one person"):
        simulate(learner, [path(["7", "07", "b"]), path(one)], kappa_rule="union", graph_key=KEY)


def test_kappa_of_several_parties_is_not_recounted_from_one_selection(released):
    """Each party selected its own pairs: a selection from all of them would be pairs that nobody used."""
    certificate = released[0].certificate
    parts = of(hospitals(3))
    ids = parts.ids[np.sort(parts.pairs, axis=1)]
    for rows in (ids, ids[:100]):
        people, ends = np.unique(rows, return_inverse=True)
        found = recount(certificate, IndexedPairs(ends.reshape(-1, 2), None, people, None), None)
        assert found.kappa_matches is None
        assert found.unknown == UNITS
        assert not found.problems


def test_parties_that_hash_with_two_keys_are_told_apart_before_any_charge():
    """A line end more in one of the files: nobody would be found at both, and kappa would be 1 and not 4."""
    n = 60
    paths = [path(list(range(n))), path(np.random.default_rng(1).permutation(n).tolist())]
    ledgers = [PrivacyLedger(99.0, 1e-5) for _ in paths]
    learner = DPPMetricLearner(epsilon=9.0, **QUICK)
    problem, _ = fit_for_real(
        paths, learner, kappa_rule="union", keys=[KEY, KEY + b"\n"], ledgers=ledgers
    )
    assert "party 'B' hashed ids with another key than party 'A'" in str(problem)
    assert not any(ledger.entries for ledger in ledgers)
    # What shows that keys are alike is of one fit: it does not show which fits were made with one key.
    shown = []

    class Joining(Watched):
        def send(self, message):
            found = msgspec.msgpack.decode(message)
            shown.extend([found["same_key"]] if "same_key" in found else [])
            super().send(message)

    for _ in range(2):
        joint, _ = fit_for_real(
            paths, learner, kappa_rule="union", change=lambda i, end: Joining(end)
        )
        assert joint.certificate.kappas["relationship"] == 4
    assert shown[0] == shown[1] != shown[2] == shown[3]


def test_joined_kappas_cover_every_union_of_graphs_that_share_people():
    """By the sum; and the union of hashed ids is that of the ids, whichever side they are on."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        graphs, joined = [], []
        every = np.column_stack(np.triu_indices(int(rng.integers(2, 9)), 1))
        for place in range(int(rng.integers(2, 5))):
            some = every[rng.permutation(len(every))[: rng.integers(1, len(every) + 1)]]
            graphs.append(some)
            found = kappa(some)
            stated = {unit: found.of(unit) for unit in UNITS}
            turned = np.where(rng.random((len(some), 1)) < 0.5, some, some[:, ::-1])
            joined.append(
                wire.Joining(
                    f"{place}", bytes(32), None, 1, len(some), len(some), stated, stated, "0" * 64,
                    edges=hashed(np.arange(9), KEY)[turned].tobytes(),
                    used=np.packbits(np.ones(len(some), dtype=bool)).tobytes(),
                )
            )  # fmt: skip
        union = {unit: kappa(np.vstack(graphs)).of(unit) for unit in UNITS}
        summed = joint_kappas("sum", [one.kappas_used for one in joined])
        assert all(summed[unit] >= union[unit] for unit in UNITS)
        assert _union(joined) == (union, union)


def friendship(first, n_triangles):
    """Triangles that share one person: she has a large b, everybody else 2."""
    ends = first + 1 + np.arange(2 * n_triangles).reshape(-1, 2)
    hub = np.full(2 * n_triangles, first)
    return np.vstack([np.column_stack([hub, ends.ravel()]), ends])


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_kappa_of_a_relationship_may_be_of_two_people_of_disjoint_parties():
    """Each hub is the largest b of its party, and the union has both."""
    parts = []
    for first in (0, 100):
        pairs = friendship(first, 4)
        rng = np.random.default_rng(first)
        people = rng.uniform(-0.5, 0.5, size=(9, 3))
        labels = rng.choice([-1, 1], len(pairs))
        parts.append(PairSet(people, pairs - first, labels, ids=np.arange(first, first + 9)))
    union = kappa(of(parts).pairs)
    assert [kappa(part.pairs).relationship for part in parts] == [2, 2]
    assert union.relationship == 5
    learner = DPPMetricLearner(epsilon=15.0, delta=1e-3, random_state=0, **QUICK)
    stated = simulate(learner, parts, kappa_rule="disjoint").certificate
    assert union.relationship <= stated.kappas["relationship"] <= union.person
    assert stated.verify().problems == ()


def test_joined_kappas_cover_every_union_of_disjoint_graphs():
    rng = np.random.default_rng(0)
    for _ in range(300):
        graphs = []
        for place in range(int(rng.integers(2, 5))):
            n = int(rng.integers(2, 9))
            every = np.column_stack(np.triu_indices(n, 1))
            some = every[rng.permutation(len(every))[: rng.integers(1, len(every) + 1)]]
            graphs.append(some + 100 * place)
        stated = joint_kappas(
            "disjoint", [{unit: kappa(one).of(unit) for unit in UNITS} for one in graphs]
        )
        union = kappa(np.vstack(graphs))
        assert all(stated[unit] >= union.of(unit) for unit in UNITS)
        assert all(stated[unit] == union.of(unit) for unit in ("pair", "person"))
        if union.relationship == 1:  # no cycles: nothing is added
            assert stated["relationship"] == 1


def test_row_numbers_of_two_tables_are_not_the_same_pairs_to_a_ledger():
    """Row 3 of another table is another person: a relationship may run through both fits."""
    pairs = np.column_stack([np.arange(299), np.arange(1, 300)])
    learner, ledger = DPPMetricLearner(epsilon=2.0, **QUICK), PrivacyLedger(99.0, 1e-5)
    for wave in range(2):
        rng = np.random.default_rng(wave)
        parts = [
            PairSet(rng.uniform(-0.5, 0.5, (300, 3)), pairs, rng.choice([-1, 1], 299))
            for _ in range(2)
        ]
        simulate(learner, parts, kappa_rule="disjoint", ledgers=[ledger, None])
    first, second = ledger.entries
    assert first.graph != second.graph
    assert ledger.spent("relationship") == ledger.spent("person")


def test_what_is_measured_later_has_no_certificate_with_that_of_several_parties(released):
    joint, _ = released
    with pytest.raises(InputError, match="charge both to a ledger"):
        joint.learner.calibrate_threshold(hospital(0), None, epsilon=0.5)


def test_selected_pairs_are_counted_and_their_caveat_is_said():
    rng = np.random.default_rng(0)
    people = rng.uniform(-0.5, 0.5, size=(40, 3))
    pairs = np.array([(i, j) for i in range(40) for j in range(i + 1, 40) if (i + j) % 3 == 0])
    full = PairSet(people, pairs, rng.choice([-1, 1], len(pairs)), ids=np.arange(40))
    learner = DPPMetricLearner(epsilon=15.0, random_state=0, n_steps=3, select="paths")
    for rule in ("union", "sum", "disjoint"):
        certificate = simulate(
            learner, [full, path(range(50))], kappa_rule=rule, graph_key=KEY
        ).certificate
        assert certificate.verify().problems == ()
        assert certificate.n_pairs_used < certificate.n_pairs_given
        assert certificate.selection["caveat"]


def test_a_rehearsal_is_not_for_release():
    learner = DPPMetricLearner(**QUICK)
    certificate = simulate(learner, hospitals(2), kappa_rule="disjoint").certificate
    assert not certificate.for_release
    assert REHEARSED in certificate.public
    assert "rehearsed on one machine" in certificate.promise()
    assert certificate.verify()


def test_every_party_is_charged_the_joint_fit_before_its_first_sum():
    parts, seen = hospitals(3), []
    ledgers = [PrivacyLedger(3.0, 1e-5) for _ in parts]

    class Spying(Watched):
        def send(self, message):
            if msgspec.msgpack.decode(message)["kind"] == "share":
                seen.append(min(len(ledger.entries) for ledger in ledgers if ledger is self.ledger))
            super().send(message)

    def change(i, end):
        spying = Spying(end)
        spying.ledger = ledgers[i]
        return spying

    joint, _ = fit_for_real(parts, DPPMetricLearner(**QUICK), ledgers=ledgers, change=change)
    assert set(seen) == {1}
    for ledger in ledgers:
        (entry,) = ledger.entries
        assert ledger.spent() == pytest.approx(joint.certificate.epsilon)
        assert entry.kappas["person"] == joint.certificate.kappas["person"] == 3
    assert len({ledger.entries[0].graph for ledger in ledgers}) == 1


def test_a_ledger_that_does_not_allow_it_stops_the_fit_before_anybody_is_charged():
    ledgers = [PrivacyLedger(3.0, 1e-5), PrivacyLedger(0.1, 1e-5), PrivacyLedger(3.0, 1e-5)]
    problem, parties = fit_for_real(hospitals(3), DPPMetricLearner(**QUICK), ledgers=ledgers)
    assert isinstance(problem, PartyError)
    assert "party 'B' ended the fit: its ledger does not allow" in str(problem)
    assert isinstance(parties[1], BudgetError)
    assert "party 'B'" in str(parties[0])
    assert "no ledger was charged" in str(parties[0])
    assert not any(ledger.entries for ledger in ledgers)


def test_a_charge_of_another_fit_at_the_same_time_is_not_taken_for_this_one_s():
    ledgers = [PrivacyLedger(3.0, 1e-5), PrivacyLedger(0.1, 1e-5)]

    class Elsewhere(Watched):
        def receive(self, most):
            ledgers[0].spend([GaussianEvent(100.0)], {"relationship": 1, "person": 1}, graph="x")
            return super().receive(most)

    change = lambda i, end: Elsewhere(end) if i == 0 else end  # noqa: E731
    _, parties = fit_for_real(
        hospitals(2), DPPMetricLearner(**QUICK), ledgers=ledgers, change=change
    )
    assert ledgers[0].entries
    assert "no ledger was charged" in str(parties[0])


@pytest.mark.parametrize(
    ("consent", "reason"),
    [
        ({"epsilon": 0.5}, "it allows epsilon 0.5 at most"),
        ({"delta": 1e-7}, "it allows delta 1e-07 at most"),
        ({"unit": "person"}, "it asks for unit 'person'"),
        ({"adjacency": "replace"}, "it asks for adjacency 'replace'"),
        ({"rules": ("sum",)}, "it does not agree to kappa by 'disjoint'"),
        ({"colluders": 2}, "it asks for 2 colluders at least"),
        ({"schema": "[age]"}, "it has another schema"),
        ({"rehearsal": True}, "a rehearsal is no fit"),
        ({"data_norm": 2.0}, "its rows were brought to data norm 2"),
    ],
)
def test_terms_that_a_party_does_not_consent_to_end_it_before_any_charge(consent, reason):
    usual = Consent(10.0, 1e-4, rules=("disjoint",))
    ledgers = [PrivacyLedger(3.0, 1e-5) for _ in range(2)]
    problem, parties = fit_for_real(
        hospitals(2), DPPMetricLearner(**QUICK), kappa_rule="disjoint", ledgers=ledgers,
        consents={1: replace(usual, **consent)},
    )  # fmt: skip
    assert f"party 'B' ended the fit: {reason}" in str(problem)  # it had not joined yet
    assert reason in str(parties[1])
    assert not any(ledger.entries for ledger in ledgers)


@pytest.mark.parametrize("name", ["", "Zürich", "a" * 41, "-a", "a\n"])
def test_a_name_that_no_message_can_carry_is_refused_at_once(name):
    with pytest.raises(InputError, match="a party's name has 1 to 40 letters"):
        Party(name, partial(own_records, pairs=hospital(0)), Consent(1.0))


def test_what_parties_bring_must_go_together():
    learner = DPPMetricLearner(**QUICK)
    problem, _ = fit_for_real([hospital(0), hospital(9000, n_features=3)], learner)
    assert "party 'B' has other columns than party 'A'" in str(problem)
    problem, _ = fit_for_real(hospitals(2), learner, names=["A", "A"])
    assert "two parties call themselves 'A'" in str(problem)
    problem, _ = fit_for_real(
        hospitals(2), learner, noise="coordinator", consents={0: Consent(10.0, 1e-4)}
    )
    assert "does not trust the coordinator" in str(problem)
    bare = hospital(0)
    without = PairSet(bare.features, bare.pairs, bare.labels)
    problem, _ = fit_for_real([without, hospital(9000)], learner, kappa_rule="union")
    assert "no key to hash the ids" in str(problem)


class Meddling(Watched):
    """Sends something else in place of the share number ``at``."""

    def __init__(self, end, at, instead):
        super().__init__(end)
        self.left, self.instead = at, instead

    def send(self, message):
        if msgspec.msgpack.decode(message)["kind"] == "share":
            if self.left == 0:
                self.instead(self, message)
                return
            self.left -= 1
        super().send(message)


def leaves(meddling, message):
    del message
    meddling.close()
    raise OSError


def garbles(meddling, message):
    del message
    meddling.end.send(b"\xc1 nothing of ours")


def shortens(meddling, message):
    share = msgspec.msgpack.decode(message)
    meddling.end.send(msgspec.msgpack.encode(share | {"words": share["words"][:-8]}))


def repeats(meddling, message):
    share = msgspec.msgpack.decode(message)
    meddling.end.send(msgspec.msgpack.encode(share | {"round": 0}))


def speaks_out_of_turn(meddling, message):
    del message
    meddling.end.send(msgspec.msgpack.encode(wire.Begin()))


@pytest.mark.parametrize(
    ("instead", "reason"),
    [
        (leaves, "party 'B' went away"),
        (garbles, "party 'B' sent what is no message"),
        (shortens, "party 'B' sent a sum for another answer"),
        (repeats, "party 'B' sent a sum for another answer"),
        (speaks_out_of_turn, "party 'B' sent another message than its turn"),
    ],
)
def test_whoever_leaves_or_garbles_ends_the_fit_and_no_total_is_formed(instead, reason):
    ledgers = [PrivacyLedger(3.0, 1e-5) for _ in range(3)]
    received = []

    class Listening(Watched):
        def receive(self, most):
            found = super().receive(most)
            received.append(msgspec.msgpack.decode(found)["kind"])
            return found

    def change(i, end):
        return Meddling(end, 2, instead) if i == 1 else Listening(end) if i == 0 else end

    problem, parties = fit_for_real(
        hospitals(3), DPPMetricLearner(**QUICK), ledgers=ledgers, change=change
    )
    assert isinstance(problem, PartyError)
    assert reason in str(problem)
    assert received.count("question") == 3
    assert received.count("total") == 2  # of the answers before, and none since
    assert reason in str(parties[0])
    assert "the ledger was charged for this fit and stays charged" in str(parties[0])
    assert all(len(ledger.entries) == 1 for ledger in ledgers)


@pytest.mark.parametrize("colluders", [1, 2])
def test_every_party_of_a_fit_draws_the_share_that_colluders_leave(monkeypatch, colluders):
    """Without the colluders' shares there is still all the noise that the plan asks for."""
    drawn, asked = [], []

    class Kept(PartiesNoise):
        def noisy(self, family, total, scale, grid=None):
            drawn.append(scale)
            return super().noisy(family, total, scale, grid)

    class Heard(Watched):
        def receive(self, most):
            found = super().receive(most)
            message = msgspec.msgpack.decode(found)
            asked.extend([message["scale"]] if message["kind"] == "question" else [])
            return found

    monkeypatch.setattr("pairveil.parties.agreement.PartiesNoise", Kept)
    fit_for_real(
        hospitals(3), DPPMetricLearner(**QUICK), colluders=colluders,
        change=lambda i, end: Heard(end) if i == 0 else end,
    )  # fmt: skip
    left = np.sqrt(3 - colluders) * np.array(drawn).reshape(
        -1, 3
    )  # of each answer: all draw, then the next
    assert len(left) == len(asked) == 5
    assert (left >= np.array(asked)[:, None]).all()
    assert left == pytest.approx(np.repeat(asked, 3).reshape(-1, 3), rel=1e-12)


def test_sums_are_of_doubles_whatever_the_rows_are(monkeypatch):
    """The noise is scaled for sums of doubles: those of single precision err more."""
    summed = []

    def spy(records, name):
        summed.append(records.features.dtype)
        return backend_for(records, name)

    monkeypatch.setattr("pairveil.parties.agreement.backend_for", spy)
    whole = hospital(0)
    single = PairSet(whole.features.astype(np.float32), whole.pairs, whole.labels, ids=whole.ids)
    assert single.features.dtype == np.float32
    joint, _ = fit_for_real([single, hospital(10**5)], DPPMetricLearner(**QUICK))
    assert joint.certificate.verify()
    assert summed == [np.float64] * 2


def test_a_release_takes_no_seed_from_the_coordinator():
    ledgers = [PrivacyLedger(3.0, 1e-5) for _ in range(2)]
    problem, _ = fit_for_real(
        hospitals(2), DPPMetricLearner(random_state=0, **QUICK), ledgers=ledgers
    )
    assert "seeded noise can be taken off again" in str(problem)
    assert not any(ledger.entries for ledger in ledgers)


def test_what_64_bits_cannot_hold_ends_a_fit_before_any_charge(monkeypatch):
    monkeypatch.setattr("pairveil.engine.backends.parties.TAILS", 2.0**40)
    ledgers = [PrivacyLedger(3.0, 1e-5) for _ in range(2)]
    problem, _ = fit_for_real(hospitals(2), DPPMetricLearner(**QUICK), ledgers=ledgers)
    assert "do not fit into exact 64-bit sums" in str(problem)
    assert not any(ledger.entries for ledger in ledgers)


def test_a_late_party_ends_the_fit():
    parts = hospitals(2)
    terms = terms_for(DPPMetricLearner(**QUICK), 2)
    lines = [line(0.3) for _ in parts]  # nobody joins
    with pytest.raises(PartyError, match="party 1 sent nothing in time"):
        coordinate(terms, [ends[0] for ends in lines])


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("scale", lambda scale: scale / 2, "other noise than this party's sums need"),
        ("scale", lambda scale: 2 * scale, "other noise than this party's sums need"),
        ("name", lambda name: name + "?", "another sum than the plan of this party"),
        ("round", lambda number: number + 1, "another sum than the plan of this party"),
        ("exponent", lambda number: number + 1, "another sum than the plan of this party"),
        ("entries", lambda number: number + 1, "another sum than the plan of this party"),
    ],
)
def test_a_party_sums_nothing_that_it_would_not_ask_itself(field, value, reason):
    class Asked(Watched):
        def receive(self, most):
            found = msgspec.msgpack.decode(super().receive(most))
            if found["kind"] == "question":
                found[field] = value(found[field])
            return msgspec.msgpack.encode(found)

    sent = []

    def change(i, end):
        asked = Asked(end) if i == 0 else end
        sent.append(asked)
        return asked

    _, parties = fit_for_real(hospitals(2), DPPMetricLearner(**QUICK), change=change)
    assert reason in str(parties[0])
    watched = next(one for one in sent if isinstance(one, Asked))
    assert "share" not in [msgspec.msgpack.decode(one)["kind"] for one in watched.sent]


def test_a_roster_or_a_result_that_does_not_follow_is_refused():
    def changing(kind, how):
        class Changed(Watched):
            def receive(self, most):
                found = msgspec.msgpack.decode(super().receive(most))
                return msgspec.msgpack.encode(how(found) if found["kind"] == kind else found)

        return lambda i, end: Changed(end) if i == 0 else end

    def told(kind, how):
        learner = DPPMetricLearner(**QUICK)
        return str(fit_for_real(hospitals(2), learner, change=changing(kind, how))[1][0])

    smaller = {"pair": 1, "relationship": 1, "person": 1}
    assert "smaller kappa" in told("roster", lambda found: found | {"kappas_used": smaller})
    assert "another plan" in told("roster", lambda found: found | {"promise": "0" * 64})
    twice = told("roster", lambda found: found | {"who": found["who"][1:] * 2})
    assert "other parties or numbers" in twice
    zeros = told("finished", lambda found: found | {"components": bytes(len(found["components"]))})
    assert "another metric" in zeros


class Changed(Watched):
    """Hears other messages of one kind than were sent."""

    def __init__(self, end, kind, how):
        super().__init__(end)
        self.kind, self.how = kind, how

    def receive(self, most):
        found = msgspec.msgpack.decode(self.end.receive(most))
        return msgspec.msgpack.encode(self.how(found) if found["kind"] == self.kind else found)


def hearing(kind, how):
    """What the parties of a fit come to where the first of them hears something else."""
    return fit_for_real(
        hospitals(3), DPPMetricLearner(**QUICK),
        change=lambda i, end: Changed(end, kind, how) if i == 0 else end,
    )  # fmt: skip


def test_whoever_is_told_another_roster_has_another_fingerprint():
    """Nothing else follows from this number: the certificate is the same."""

    def how(found):
        found["who"][1]["graph"] = "0" * 64
        return found

    joint, parties = hearing("roster", how)
    assert parties[1].fingerprint == parties[2].fingerprint == joint.fingerprint
    assert parties[0].fingerprint != joint.fingerprint
    # Half of the bits must be out of reach of whoever tries keys for two rosters.
    assert len(bytes.fromhex(joint.fingerprint)) == 20


@pytest.mark.parametrize("name", ["schema", "bounds", "preprocessor", "backend", "kappa"])
def test_terms_name_no_file_and_no_cluster_of_a_party(name, tmp_path):
    """A party would read what the coordinator names."""
    file = tmp_path / "file"
    file.write_text("a secret")
    _, parties = hearing(
        "terms", lambda found: found | {"options": found["options"] | {name: str(file)}}
    )
    assert "the terms set what is each party's own" in str(parties[0])


def test_a_roster_that_lists_one_name_twice_is_refused():
    """All noise would be thought to be of three, and be of two."""
    _, parties = hearing(
        "roster", lambda found: found | {"who": [*found["who"][:2], found["who"][1]]}
    )
    assert "other parties or numbers" in str(parties[0])


def test_a_party_takes_the_same_metric_in_other_rows():
    """Directions of equal length have no order: a decomposition turns them as the machine does."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]

    def how(found):
        rows = np.frombuffer(found["components"]).reshape(4, 4)
        return found | {"components": (turn @ rows).tobytes()}

    _, parties = hearing("finished", how)
    assert np.allclose(turn @ parties[1].components, parties[0].components)


def test_who_leaves_when_all_is_released_takes_it_from_nobody():
    """Everybody is charged by now: one who is gone must not cost the others the metric."""

    class Leaving(Watched):
        def receive(self, most):
            found = super().receive(most)
            if msgspec.msgpack.decode(found)["kind"] == "finished":
                raise EOFError
            return found

    class Gone(Watched):
        def send(self, message):
            if msgspec.msgpack.decode(message)["kind"] == "finished":
                raise OSError
            super().send(message)

    proposed = terms_for(DPPMetricLearner(**QUICK), 2)
    lines, results = [line(10.0) for _ in range(2)], [None] * 2

    def run(i, end):
        party = Party("AB"[i], partial(own_records, pairs=hospital(10**5 * i)), Consent(10.0, 1e-4))
        try:
            results[i] = take_part(end, party)
        except PartyError as problem:
            results[i] = problem

    ends = [Leaving(lines[0][1]), lines[1][1]]
    threads = [threading.Thread(target=run, args=(i, end)) for i, end in enumerate(ends)]
    for thread in threads:
        thread.start()
    joint = coordinate(proposed, [Gone(lines[0][0]), lines[1][0]])
    for thread in threads:
        thread.join()
    assert "went away" in str(results[0])
    assert (results[1].components == joint.components).all()


def with_digest(found):
    stated = json.loads(found["certificate"])
    return found | {"certificate": json.dumps(stated | {"graph_digest": "0" * 64})}


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (with_digest, "another certificate than was agreed on"),
        (lambda found: found | {"certificate": "{"}, "another certificate than was agreed on"),
        (lambda found: found | {"n_components": 7}, "another metric than follows"),
        (
            lambda found: found | {"components": found["components"][8:]},
            "another metric than follows",
        ),
    ],
)
def test_a_party_takes_no_other_result_than_was_agreed_on(how, reason):
    _, parties = hearing("finished", how)
    assert isinstance(parties[0], PartyError)
    assert reason in str(parties[0])


def test_the_full_graphs_kappa_is_no_smaller_than_a_partys_own():
    """The caveat of a selected fit states it."""
    people = np.random.default_rng(0).uniform(-0.5, 0.5, size=(40, 3))
    pairs = np.array([(i, j) for i in range(40) for j in range(i + 1, 40) if (i + j) % 3 == 0])
    full = PairSet(people, pairs, np.resize([1, -1], len(pairs)), ids=np.arange(40))
    learner = DPPMetricLearner(epsilon=9.0, n_steps=3)

    def how(found):
        return found | {"kappas_given": found["kappas_used"]}

    _, parties = fit_for_real(
        [full, path(range(50, 90))], learner,
        change=lambda i, end: Changed(end, "roster", how) if i == 0 else end,
    )  # fmt: skip
    assert "counts a smaller kappa than the parties' own give" in str(parties[0])


def test_a_party_that_hashes_one_person_on_both_sides_is_named():
    def how(found):
        return found | {"edges": bytes(len(found["edges"]))}

    class Sent(Changed):
        def send(self, message):
            found = msgspec.msgpack.decode(message)
            self.end.send(msgspec.msgpack.encode(how(found) if "edges" in found else found))

    problem, _ = fit_for_real(
        hospitals(2), DPPMetricLearner(**QUICK), kappa_rule="union",
        change=lambda i, end: Sent(end, "none", how) if i == 0 else end,
    )  # fmt: skip
    assert "party 'A' pairs somebody with herself" in str(problem)


def test_what_a_stranger_says_is_one_line_and_no_longer_than_its_turn_allows():
    one, other = line(5.0)
    one.send(msgspec.msgpack.encode(wire.Refusal("it stops\npairveil: all is well")))
    with pytest.raises(PartyError) as found:
        wire.receive(other, wire.Terms, "the coordinator")
    assert "\n" not in str(found.value)
    one.send(bytes(wire.SMALL + 1))
    with pytest.raises(PartyError, match="sent a longer message than its turn allows"):
        wire.receive(other, wire.Terms, "the coordinator")


def test_what_has_no_proof_for_several_parties_is_refused_beforehand():
    parts = hospitals(2)
    for learner, reason in [
        (
            DPPMetricLearner(mechanism="laplace", **QUICK),
            "no sum of their noise gives pure epsilon",
        ),
        (DPPMetricLearner(epsilon=np.inf, **QUICK), "finite epsilon"),
        (DPPMetricLearner(select="groups"), "learn from single pairs"),
    ]:
        with pytest.raises((InputError, PartyError), match=reason):
            simulate(learner, parts)
    for colluders in (0, 2):
        with pytest.raises(InputError, match="colluders must be at least 1 and fewer"):
            terms_for(DPPMetricLearner(), 2, colluders=colluders)
    with pytest.raises(InputError, match="leave kappa='auto'"):
        terms_for(DPPMetricLearner(kappa=3), 2)
    with pytest.raises((InputError, PartyError)):
        simulate(DPPTripletLearner(random_state=0), parts)


def test_where_one_party_would_choose_a_column_several_ask_for_sums():
    """At this epsilon a fit of one party starts by a noisy choice, for which several have no proof."""
    parts = hospitals(2, n_pairs=1100, n_features=12)
    learner = DPPMetricLearner(epsilon=0.1, random_state=0, **QUICK)
    alone = learner.certify(of(parts))
    joint = simulate(learner, parts, kappa_rule="disjoint").certificate
    assert "start" in [query["name"] for query in alone.plan["releases"]]
    assert [query["name"] for query in joint.plan["releases"]] == ["survey", "signal", "gradients"]
    assert joint.verify()


def test_whatever_bytes_come_end_in_one_sentence():
    """Random bytes, cut and changed messages, nested and huge ones: a `PartyError`, never another error."""
    rng = np.random.default_rng(0)
    terms = msgspec.msgpack.encode(terms_for(DPPMetricLearner(), 3))
    changed = []
    for _ in range(300):
        at = int(rng.integers(len(terms)))
        changed += [
            terms[:at],
            terms[:at] + bytes([int(rng.integers(256))]) + terms[at + 1 :],
            rng.bytes(int(rng.integers(1, 60))),
        ]
    nested = msgspec.msgpack.encode({"kind": "terms"})[:-6] + b"\x91" * 5000
    for raw in [*changed, b"", nested, b"\x81\xa4kind\xa5terms", b"\xdf\xff\xff\xff\xff"]:
        one, other = line(5.0)
        one.send(raw)
        try:
            wire.receive(other, wire.Terms, "the coordinator")
        except PartyError as problem:
            assert str(problem).startswith("the coordinator ")  # noqa: PT017
