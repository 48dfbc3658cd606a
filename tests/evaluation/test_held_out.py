"""A fit and the score of people who were kept out of it: one certificate, the larger of two costs."""

import json
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.audit.neighbourhoods import quiet

from pairveil import DPPMetricLearner, PairSet, PrivacyLedger, ReleasedMetric, design_pairs
from pairveil.audit.canaries import Neighbours
from pairveil.audit.exact_audit import measure
from pairveil.engine.backends.local import kappa_of
from pairveil.errors import InputError
from pairveil.evaluation.held_out import _plan, split_people, with_score
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.units import SCORED_APART

pytestmark = [
    pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote"),
    pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning"),
]
UNITS = ("pair", "relationship", "person")
SETTINGS = [(unit, adjacency) for unit in UNITS for adjacency in ("zero-out", "replace")]


def graph(rng, n_people, n_pairs):
    """Pairs of different people, each once, in canonical order."""
    drawn = np.sort(rng.integers(0, n_people, size=(4 * n_pairs, 2)), axis=1)
    drawn = np.unique(drawn[drawn[:, 0] != drawn[:, 1]], axis=0)
    return drawn[np.sort(rng.permutation(len(drawn))[:n_pairs])]


def people(rng, n_people, pairs, together=None):
    features = rng.normal(size=(n_people, 3)) / 4
    labels = rng.choice([-1, 1], len(pairs)).astype(np.int8)
    return PairSet(features, pairs, labels, ids=np.arange(n_people), together=together)


@st.composite
def graphs(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_people = draw(st.integers(6, 60))
    how = draw(st.sampled_from(["random", "paths", "pairs", "star", "dense"]))
    if how == "star":
        return rng, n_people, np.column_stack([np.zeros(n_people - 1, int), np.arange(1, n_people)])
    if how == "pairs":
        return rng, n_people, np.arange(n_people // 2 * 2).reshape(-1, 2)
    if how == "paths":
        return rng, n_people, design_pairs(n_people, random_state=int(rng.integers(99)))
    return rng, n_people, graph(rng, n_people, n_people * (1 if how == "random" else 4))


# ---- which people are in which part ---------------------------------------------------------------


@quiet(150)
@given(graphs(), st.booleans(), st.integers(0, 9))
def test_every_unit_has_its_pairs_in_one_part(drawn, households, seed):
    rng, n_people, pairs = drawn
    together = rng.integers(0, n_people // 2, n_people) if households else None
    learned, scored = split_people(pairs, max(1, len(pairs) // 3), seed, together)
    who = np.arange(n_people) if together is None else together
    assert not np.intersect1d(who[pairs[learned]], who[pairs[scored]]).size  # persons, households
    assert not np.intersect1d(learned, scored).size
    dropped = np.setdiff1d(np.arange(len(pairs)), [*learned, *scored])
    inside = np.isin(who[pairs], who[pairs[scored]])
    assert (inside[dropped].sum(axis=1) <= 1).all()  # a pair inside a part is never lost
    assert len(scored) >= max(1, len(pairs) // 3)


@quiet(60)
@given(graphs(), st.booleans(), st.sampled_from(["all", "paths", "matching"]), st.integers(0, 9))
def test_contents_and_the_order_of_files_have_no_say_in_the_parts(drawn, households, select, seed):
    """Another order of rows and people, other labels, other features: the same people are scored."""
    rng, n_people, pairs = drawn
    ids = np.array([f"p{i:03d}" for i in range(n_people)])
    homes = rng.integers(0, n_people // 2, n_people) if households else None

    def scored_of(data):
        made = with_score(learner(select=select, random_state=seed), data, epsilon=4.0)
        parts = (made.scored, made.records.used)
        named = [{tuple(part.ids[pair]) for pair in part.pairs} for part in parts]
        return *named, made.certificate.to_dict()

    def data(order, turned):
        back = np.argsort(order)
        rows = back[pairs[:, ::-1] if turned else pairs]
        rows = rows[rng.permutation(len(rows))] if turned else rows
        labels = rng.choice([-1, 1], len(pairs))
        together = None if homes is None else homes[order]
        features = rng.normal(size=(n_people, 3))
        return PairSet(features, rows, labels, ids=ids[order], together=together)

    try:
        first = scored_of(data(np.arange(n_people), False))
    except InputError:  # a star: nobody can be held out
        return
    assert first == scored_of(data(rng.permutation(n_people), True))


def test_few_pairs_are_lost():
    matching, paths = np.arange(2000).reshape(-1, 2), design_pairs(2000, random_state=0)
    for pairs, lost in ((matching, 0), (paths, 1)):
        learned, scored = split_people(pairs, 300, 0)
        assert len(scored) == 300
        assert len(learned) + len(scored) >= len(pairs) - lost


def test_the_pairs_that_were_learned_from_are_named_by_where_they_stood():
    """Of a file in any order: who looks for the others must not meet those that were learned from."""
    rng = np.random.default_rng(0)
    pairs = rng.permutation(200).reshape(-1, 2)
    table = rng.normal(size=(200, 3)) / 4
    one = learner(select="all", preprocessor=table)
    made = with_score(one, pairs, rng.choice([-1, 1], 100), epsilon=4.0)
    found = one.fit(made).used_pairs_
    assert np.array_equal(found, np.sort(found))
    assert {tuple(sorted(pair)) for pair in pairs[found].tolist()} == {
        tuple(pair) for pair in made.records.used.pairs.tolist()
    }


def clusters(n_people, pairs):
    """Who is connected with whom: a number each."""
    found = list(range(n_people))
    for _ in range(n_people):
        for a, b in pairs:
            found[a] = found[b] = min(found[a], found[b])
    return found


def is_told(n_people, pairs, s, t):
    """Whether s and t are connected, or each of them is on a cycle."""
    joined = clusters(n_people, pairs)
    on_cycle = set()
    for place, (a, b) in enumerate(pairs):
        without = clusters(n_people, pairs[:place] + pairs[place + 1 :])
        on_cycle |= {a, b} if without[a] == without[b] else set()
    return joined[s] == joined[t] or {s, t} <= on_cycle


@pytest.mark.parametrize("seed", range(6))
def test_what_hides_a_relationship_is_in_one_part_by_trying_all_sets_of_pairs(seed):
    """No theorem is used: every set of pairs that hides two people, and holds none that does, lies in one."""
    rng, n_people = np.random.default_rng(seed), 7
    while True:
        pairs = graph(rng, n_people, 9)
        learned, scored = split_people(pairs, 2, seed)
        if len(learned) > 1 and len(scored) > 0:
            break
    used = [tuple(pair) for pair in pairs[np.sort([*learned, *scored])].tolist()]
    held_out = {tuple(pair) for pair in pairs[scored].tolist()}
    least = kappa_of(people(rng, n_people, np.array(used))).relationship
    for s, t in combinations(np.unique(used).tolist(), 2):
        hiding: list[set] = []
        for size in range(len(used) + 1):
            for missing in map(set, combinations(used, size)):
                if any(known <= missing for known in hiding):
                    continue
                if not is_told(n_people, [one for one in used if one not in missing], s, t):
                    hiding.append(missing)
        assert min(map(len, hiding)) <= least
        assert all(missing <= held_out or not missing & held_out for missing in hiding)


# ---- neighbouring data: what moves, and what it is charged ------------------------------------------


def learner(**options):
    return DPPMetricLearner(**{"epsilon": 8.0, "random_state": 0, "n_steps": 3} | options)


def units_of(data, unit, rng):
    """Some units of the used pairs: rows of the pairs whose contents are theirs."""
    pairs = data.pairs
    if unit == "pair":
        return [np.array([row]) for row in rng.permutation(len(pairs))[:4]]
    who = np.arange(data.n_people) if data.together is None else data.together
    if unit == "person":
        tried = rng.permutation(np.unique(who[pairs]))[:4]
        return [np.flatnonzero((who[pairs] == one).any(axis=1)) for one in tried]
    # A relationship's are at one of the two, as many as the smaller b: here a person's, up to kappa.
    tried = rng.permutation(np.unique(pairs))[:4]
    most = kappa_of(data).relationship
    return [np.flatnonzero((pairs == one).any(axis=1))[:most] for one in tried]


def changed(data, rows, adjacency):
    """The same pairs, of which some have other contents: null, or the other label."""
    if adjacency == "zero-out":
        return data.emptied(np.isin(np.arange(data.n_pairs), rows))
    labels = data.labels.copy()
    labels[rows] = -labels[rows]
    return PairSet(data.features, data.pairs, labels, ids=data.ids, together=data.together)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("households", [False, True])
@pytest.mark.parametrize(("unit", "adjacency"), SETTINGS)
def test_a_unit_moves_one_part_and_no_more_than_it_is_charged(
    unit, adjacency, households, mechanism
):
    """The exact audit of both parts: the sums of two neighbouring data sets, query by query."""
    rng = np.random.default_rng(3)
    seen = {"learned": 0, "scored": 0}
    for n_pairs in (12, 40):
        pairs = graph(rng, 24, n_pairs)
        together = rng.integers(0, 12, 24) if households else None
        data = people(rng, 24, pairs, together)
        how = {"unit": unit, "adjacency": adjacency, "mechanism": mechanism, "select": "all"}
        first = with_score(learner(**how), data, epsilon=4.0)
        fitted = learner(**how).fit(first)
        used = np.flatnonzero((pairs[:, None] == first.both.pairs).all(axis=2).any(axis=1))
        for rows in units_of(first.both, unit, rng):
            second = with_score(learner(**how), changed(data, used[rows], adjacency), epsilon=4.0)
            assert second.certificate == first.certificate  # nothing private enters the plan
            learned = moved_in_fit(first, second, adjacency)
            scored = moved_in_score(fitted, first, second, adjacency)
            assert not (learned and scored)  # a unit lies in one part
            seen["learned"] += learned
            seen["scored"] += scored
    assert min(seen.values()) > 0  # both kinds were tried


def moved_in_fit(first, second, adjacency):
    worlds = Neighbours(second.records.used, first.records.used, adjacency)
    if not worlds.kappa:
        return False
    found = measure(first, worlds)
    assert found.verdict == "consistent", found
    assert max(query.ratio for query in found.queries) <= 1 + 1e-9
    return True


def moved_in_score(fitted, first, second, adjacency):
    """The counts of two worlds' scores by one and the same metric."""
    counted = [
        _plan(fitted, one.scored, one.score.counter.epsilon, one.records.costs).prepared
        for one in (second, first)
    ]
    worlds = [one.records.used for one in counted]
    apart = (worlds[0].values != worlds[1].values).any(axis=1) | (
        worlds[0].labels != worlds[1].labels
    )
    if not apart.any():
        return False
    canary = SimpleNamespace(
        first=worlds[0], second=worlds[1], changed=np.flatnonzero(apart), kappa=int(apart.sum()),
        adjacency=adjacency, name="scored", hides_features=False,
    )  # fmt: skip
    found = measure(counted[1], canary)
    assert found.verdict == "consistent", found
    assert max(query.ratio for query in found.queries) <= 1 + 1e-9
    assert found.claimed_epsilon <= 4.0
    return True


@pytest.mark.parametrize("unit", ["relationship", "person"])
def test_with_pairs_across_a_person_would_move_both_parts(monkeypatch, unit):
    """Planted: pairs across are learned from; then the promise of the larger cost would be false."""
    from pairveil.evaluation import held_out

    def across(pairs, n_scored, seed, together=None):
        learned, scored = split_people(pairs, n_scored, seed, together)
        rest = np.setdiff1d(np.arange(len(pairs)), [*learned, *scored])
        return np.sort([*learned, *rest]), scored

    monkeypatch.setattr(held_out, "split_people", across)
    rng, how = np.random.default_rng(0), {"unit": unit, "select": "all"}
    pairs = graph(rng, 30, 60)
    data = people(rng, 30, pairs)
    first = with_score(learner(**how), data, epsilon=4.0)
    shared = np.intersect1d(first.records.used.pairs, first.scored.pairs)
    rows = np.flatnonzero((pairs == shared[0]).any(axis=1))
    second = with_score(learner(**how), changed(data, rows, "zero-out"), epsilon=4.0)
    fitted = learner(**how).fit(first)
    counts = [_plan(fitted, one.scored, 4.0, one.records.costs) for one in (first, second)]
    used = [one.prepared.records.used for one in counts]
    assert (used[0].labels != used[1].labels).any()  # she moves the score
    assert Neighbours(second.records.used, first.records.used, "zero-out").kappa > 0  # and the fit


def test_kappa_is_counted_in_both_parts_together():
    """Two people with b = 3, one in each part: a relationship of the two is in three pairs of one of them."""
    ring = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (1, 4)]
    pairs = np.array(ring + [(a + 5, b + 5) for a, b in ring])
    data = people(np.random.default_rng(0), 10, pairs)
    made = with_score(learner(select="all"), data, epsilon=4.0, test_share=0.5)
    parts = [kappa_of(one).relationship for one in (made.records.used, made.scored)]
    whole = kappa_of(made.both).relationship
    assert made.certificate.kappas["relationship"] == whole >= max(parts)
    assert made.both.n_pairs == 16
    costs = made.records.costs["relationship"], made.score.prepared.records.costs["relationship"]
    assert costs[0] == costs[1]
    assert costs[0].records == whole


def test_kappa_may_be_that_of_two_people_in_different_parts():
    hub = [(0, 1), (0, 2), (1, 2), (0, 3), (0, 4), (3, 4), (1, 4)]
    pairs = np.array(hub + [(a + 5, b + 5) for a, b in hub])
    data = people(np.random.default_rng(0), 10, pairs)
    made = with_score(learner(select="all"), data, epsilon=4.0, test_share=0.5)
    alone = max(kappa_of(one).relationship for one in (made.records.used, made.scored))
    assert made.certificate.kappas["relationship"] == kappa_of(data).relationship > alone


# ---- the certificate ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A scored release-grade fit, its ledger and its folder."""
    rng = np.random.default_rng(0)
    pairs = design_pairs(300, random_state=0)
    ledger = PrivacyLedger(20.0, 1e-5)
    data = people(rng, 300, pairs)
    found = learner(random_state=None, accountant=ledger)
    found.fit(with_score(found, data, epsilon=4.0))
    folder = tmp_path_factory.mktemp("scored") / "release"
    found.release(folder)
    return found, ledger, folder


def test_one_certificate_states_the_larger_epsilon_and_one_charge_is_made(released):
    found, ledger, folder = released
    certificate = found.certificate_
    assert certificate.verify()
    assert certificate.for_release
    assert 7.9 < certificate.epsilon <= 8.0
    assert SCORED_APART in certificate.public
    assert len(ledger.entries) == 1
    assert ledger.spent() == pytest.approx(certificate.epsilon, rel=1e-6)
    loaded = ReleasedMetric.load(folder)
    assert loaded.verify() if hasattr(loaded, "verify") else loaded.certificate.verify()
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["score"]["n_pairs"] == certificate.plan["score"]["n_pairs"]
    assert 3.9 < summary["score"]["epsilon"] <= 4.0
    assert summary["score"]["score"][0] == found.score_.aucs[0].value


def test_a_certificate_that_charges_less_or_is_no_fit_with_its_score_is_refused(released):
    certificate = released[0].certificate_
    data = json.loads(certificate.to_json())

    def problems(**other):
        return Certificate.from_dict(data | other).verify().problems

    assert not problems()
    event = data["events"][0]
    fit, score = event["parts"]
    plan = data["plan"]
    assert problems(events=[{"kind": "parallel", "parts": [fit[:1], [*fit[1:], *score]]}])
    assert problems(events=[{"kind": "parallel", "parts": [score, score]}])
    assert problems(events=[*fit, *score])  # no parts, at the price of parts
    assert problems(plan={name: one for name, one in plan.items() if name != "score"})
    assert problems(plan=plan | {"score": {}})
    assert problems(plan=plan | {"score": {"n_pairs": data["n_pairs_used"]}})
    assert problems(public=[said for said in data["public"] if said != SCORED_APART])
    assert problems(delta_slack=0.0)
    half = {unit: {by: e / 2 for by, e in one.items()} for unit, one in data["epsilons"].items()}
    assert problems(epsilons=half, epsilon=data["epsilon"] / 2)


def test_a_fit_that_is_cut_in_two_does_not_pass_for_a_fit_with_its_score():
    """Its last query would be another person's: it is no score."""
    rng = np.random.default_rng(0)
    data = people(rng, 60, design_pairs(60, random_state=0))
    plain = learner().certify(data)
    queries = [json.loads(json.dumps(one)) for one in plain.plan["releases"]]
    events = [dict(event) for event in plain.events]
    forged = replace(
        plain,
        events=({"kind": "parallel", "parts": [events[:-1], events[-1:]]},),
        plan={**plain.plan, "releases": queries, "score": {"n_pairs": 5}},
        public=(*plain.public, SCORED_APART),
    )
    assert "the events are not those of the plan" in forged.verify().problems


def test_what_is_not_for_release_does_not_pass_for_parts_either(released):
    """Without the list of its releases nothing shows which events are of which part."""
    data = json.loads(released[0].certificate_.to_json())
    plan = {name: one for name, one in data["plan"].items() if name != "releases"}
    other = {"for_release": False, "metric_sha256": None, "plan": plan}
    problems = Certificate.from_dict(data | other).verify().problems
    assert "the events are not those of the plan" in problems


def test_what_is_measured_later_has_no_certificate_with_it(released):
    found = released[0]
    with pytest.raises(InputError, match="charge both to a ledger"):
        found.calibrate_threshold(
            people(np.random.default_rng(1), 300, design_pairs(300, random_state=1)),
            None,
            epsilon=0.1,
        )


# ---- what cannot be scored ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "epsilon", "words"),
    [
        ({}, 8.1, "at most the fit's own"),
        ({}, 0.0, "above 0"),
        ({"kappa": 3}, 1.0, "declared"),
        ({"select": "groups"}, 1.0, "single labelled pairs"),
        ({"epsilon": float("inf")}, 1.0, "promises nothing"),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(options, epsilon, words):
    data = people(np.random.default_rng(0), 60, design_pairs(60, random_state=0))
    with pytest.raises(InputError, match=words):
        with_score(learner(**options), data, epsilon=epsilon)


def test_nobody_can_be_held_out_of_a_star():
    star = np.column_stack([np.zeros(20, int), np.arange(1, 21)])
    with pytest.raises(InputError, match="no people can be held out"):
        with_score(learner(select="all"), people(np.random.default_rng(0), 21, star), epsilon=1.0)


# ---- killed and resumed -------------------------------------------------------------------------------


def test_a_resumed_fit_has_the_very_score_that_it_had(tmp_path):
    """Killed after its score was drawn: nothing is charged and nothing is drawn anew."""
    data = people(np.random.default_rng(0), 120, design_pairs(120, random_state=0))
    ledger = PrivacyLedger(20.0, 1e-5, path=tmp_path / "ledger.json")

    def fit():
        one = learner(random_state=None, accountant=ledger)
        made = with_score(one, data, epsilon=4.0)
        return one.fit(made, checkpoint=tmp_path / "fit", keep_checkpoint=True)

    first, again = fit(), fit()
    assert np.array_equal(first.components_, again.components_)
    assert first.score_.aucs == again.score_.aucs
    assert len(ledger.entries) == 1


def test_a_checkpoint_is_of_the_pairs_that_are_scored_too(tmp_path):
    """The same people are learned from, other pairs of the others are scored: no resumed fit mixes them."""
    rng = np.random.default_rng(0)
    path = np.column_stack([np.arange(7), np.arange(1, 8)])
    star = np.column_stack([np.zeros(7, dtype=int), np.arange(1, 8)])

    def data(stars):
        pairs = np.vstack([8 * i + (star if i in stars else path) for i in range(30)])
        return people(rng, 240, pairs)

    def fit(stars):
        one = learner(random_state=None, select="all")
        made = with_score(one, data(stars), epsilon=4.0)
        return made, lambda: one.fit(made, checkpoint=tmp_path / "fit", keep_checkpoint=True)

    first, run = fit(())
    scored = np.bincount(first.scored.pairs[:, 0] // 8, minlength=30) == 7
    other, again = fit(set(np.flatnonzero(scored).tolist()))
    assert np.array_equal(first.records.used.pairs, other.records.used.pairs)
    assert not np.array_equal(first.scored.pairs, other.scored.pairs)
    run()
    with pytest.raises(InputError, match="of another fit"):
        again()
