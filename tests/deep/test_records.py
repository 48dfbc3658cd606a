"""Groups and tuples through a network: losses against loops, gradients, sensitivity, certificates."""

from itertools import combinations, permutations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pairveil.deep needs the extra 'torch'")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from pairveil import GroupSet, TupleSet, design_groups, sample_tuples  # noqa: E402
from pairveil.deep import Network, NetworkGradient, PrivateMetricTrainer  # noqa: E402
from pairveil.deep.recipe import rows_stand_alone  # noqa: E402
from pairveil.deep.records import GroupRecords, TupleRecords, contrastive, triplet, with_loss  # noqa: E402  # noqa: E402
from pairveil.engine.engine import Engine  # noqa: E402
from pairveil.errors import InputError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")

RECORDS = {
    "groups": GroupRecords(4, contrastive),
    "triplets of groups": GroupRecords(4, triplet, triplets=True),
    "tuples": TupleRecords(4, triplet),
}


def net_of(records, **options):
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv1d(1, 3, 2), nn.Tanh(), nn.Flatten(), nn.LayerNorm(12), nn.Linear(12, 3)
    )
    return Network(module.double(), records, (1, 5), **options)


def test_losses_are_means_over_a_records_own_parts():
    rng = np.random.default_rng(0)
    people = torch.tensor(rng.normal(size=(4, 3, 2)))
    labels = torch.tensor([[1.0, -1, 0, 1, -1, -1], [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]])
    places = list(combinations(range(4), 2))
    by_pair, by_triplet = [], []
    for g in range(3):
        said = {pair: labels[g, i] for i, pair in enumerate(places)}
        said |= {(j, i): label for (i, j), label in said.items()}
        found = [
            contrastive(people[i, g][None], people[j, g][None], said[i, j][None])
            for i, j in places
            if said[i, j]
        ]
        by_pair.append(sum(found) / max(len(found), 1))
        found = [
            triplet(*(people[role, g][None] for role in roles))
            for roles in permutations(range(4), 3)
            if said[roles[0], roles[1]] > 0 and said[roles[0], roles[2]] < 0
        ]
        by_triplet.append(sum(found) / max(len(found), 1))
    for name, expected in (("groups", by_pair), ("triplets of groups", by_triplet)):
        given_back = RECORDS[name].losses(people, labels)
        torch.testing.assert_close(
            given_back, torch.tensor([float(one) for one in expected]).double()
        )
    there = RECORDS["tuples"].losses(people, torch.tensor([4.0, 3.0, 0.0]))
    hinge = [triplet(people[0], people[1], people[role]) for role in (2, 3)]
    expected = torch.stack([(hinge[0][0] + hinge[1][0]) / 2, hinge[0][1], torch.zeros(()).double()])
    torch.testing.assert_close(there, expected)


@pytest.mark.parametrize("name", RECORDS)
def test_rules_equal_gradients_formed_one_by_one(name):
    net = net_of(RECORDS[name])
    assert net.by_rules
    *people, said = net._trial()
    people = [one.double() for one in people]
    said[3] = 0
    ours, own = net.gradients(*people, said), net._pair_by_pair(net._fresh(), *people, said)
    assert max(ours.square[3], own.square[3]) < 1e-25  # null; norms are rounded up
    torch.testing.assert_close(ours.square, own.square, rtol=1e-9, atol=1e-12)
    factors = torch.linspace(0.1, 2.0, 4, dtype=torch.float64)
    torch.testing.assert_close(
        ours.weighted(factors)[0], own.weighted(factors)[0], rtol=1e-9, atol=1e-12
    )
    assert rows_stand_alone(net_of(RECORDS[name], micro_batch=8)) in (True, False)


def data_of(kind, rng, n=9):
    people = rng.normal(size=(4 * n, 5)) * 3
    places = rng.permutation(4 * n).reshape(n, 4)
    if kind == "tuples":
        order = np.array([rng.permutation(4) for _ in range(n)])
        order[rng.random(n) < 0.3, 3] = -1
        return TupleSet(people, places, order)
    return GroupSet(people, places, rng.integers(-1, 2, (n, 6)))


def with_another(data, record, rng, how):
    """The same records, one of them with other contents, or with none."""
    members = data.tuples if hasattr(data, "tuples") else data.members
    features = data.features.copy()
    features[members[record]] = rng.normal(size=(4, 5)) * 10.0 ** rng.integers(-2, 6)
    if hasattr(data, "tuples"):
        if how == "null":
            return data.emptied(np.arange(len(members)) == record)
        order = data.order.copy()
        order[record] = rng.permutation(4)
        return TupleSet(features, members, order)
    labels = data.labels.copy()
    labels[record] = 0 if how == "null" else rng.integers(-1, 2, 6)
    return GroupSet(features, members, labels)


@pytest.mark.parametrize("how", ["null", "other"])
@pytest.mark.parametrize("name", RECORDS)
@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    clip=st.sampled_from([1e-3, 0.1, 10.0]),
    sampled=st.booleans(),
    in_place=st.booleans(),
)
def test_no_record_moves_the_sum_further_than_is_charged(name, how, seed, clip, sampled, in_place):
    """A null record is one clip away, another one two: what `Cost` says of tuples and of groups."""
    rng = np.random.default_rng(seed)
    net = net_of(RECORDS[name], micro_batch=4)
    statistic = NetworkGradient(net, net.flat(), clip, bucket=4, in_place=in_place)
    data, changed = data_of(name.split()[-1], rng), int(rng.integers(9))
    grid = 2.0**-40 * clip
    drawn = np.flatnonzero(rng.random(9) < 0.7) if sampled else None
    sums = [
        statistic.compiled_sum(one, drawn, "l2", grid, sampled)
        for one in (data, with_another(data, changed, rng, how))
    ]
    moved = float(np.linalg.norm((sums[0] - sums[1]) * grid))
    clips = 1 if how == "null" else 2
    assert moved <= clips * statistic.sensitivity("l2", grid) <= clips * clip * (1 + 1e-5)
    if drawn is not None and changed not in drawn:
        assert moved == 0


def test_a_person_who_leaves_a_group_moves_it_by_two_clips():
    """Without her the others push apart, with her the group pulls together: one clip is not enough."""
    torch.manual_seed(0)
    net = Network(
        nn.Linear(1, 1, bias=False).double(), GroupRecords(3, contrastive), (1,), micro_batch=2
    )
    net.load(np.array([0.5]))
    people, members = np.array([[100.0], [0.0], [0.2]]), [[0, 1, 2]]
    statistic = NetworkGradient(net, net.flat(), 0.01, bucket=2)
    grid = 2.0**-40
    sums = [
        statistic.compiled_sum(GroupSet(people, members, [labels]), None, "l2", grid, False)
        for labels in ([1, 0, -1], [0, 0, -1])
    ]
    moved = abs(float(sums[0][0] - sums[1][0])) * grid
    assert 1.99 * 0.01 < moved <= 2 * statistic.sensitivity("l2", grid)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 240)
    return (rng.normal(size=(240, 5)) + 2 * classes[:, None]).astype(np.float32), classes


def trainer(**options):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2))
    return PrivateMetricTrainer(
        module, **{"epsilon": 4.0, "n_steps": 5, "micro_batch": 16, **options}
    )


def groups_of(people, size=4):
    X, classes = people
    return GroupSet.of_classes(X, design_groups(len(X), size, random_state=0), classes)


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("loss", ["contrastive", "triplet"])
def test_groups_have_one_number_for_all_units(people, loss, rate):
    made = trainer(loss=loss, sample_rate=rate, unit="person")
    planned = made.certify(groups_of(people))
    certificate = made.fit(groups_of(people)).certificate_
    assert certificate == planned
    assert certificate.records == "groups"
    assert certificate.for_release
    assert certificate.verify().problems == ()
    assert len({v for by_unit in certificate.epsilons.values() for v in by_unit.values()}) == 1
    assert made.kappa_ == 1
    assert made.n_pairs_used_ == 60 * 6


def test_pairs_are_cut_into_groups(people):
    X, classes = people
    pairs = np.arange(240).reshape(-1, 2)
    pairs = np.concatenate([pairs, pairs[::2] + 1])
    y = np.where(classes[pairs[:, 0]] == classes[pairs[:, 1]], 1, -1)
    made = trainer(select="groups").fit(pairs, y, X)
    assert made.certificate_.records == "groups"


def test_tuples_cost_what_a_person_is_in(people):
    X, classes = people
    asked = sample_tuples(240, size=3, max_per_person=2, random_state=0)
    data = TupleSet.of_classes(X, asked, classes)
    made = trainer(loss="triplet", unit="person", select="all").fit(data)
    assert (made.kappa_, made.n_tuples_used_) == (2, len(asked))
    assert made.certificate_.records == "tuples"
    assert made.certificate_.verify().problems == ()


def test_triplets_of_row_numbers_and_images(people):
    """Columns are anchor, positive and negative; data may have any shape."""
    X, _ = people
    images = X.reshape(240, 1, 5)
    module = nn.Sequential(nn.Flatten(), nn.Linear(5, 2))
    rows = np.arange(240).reshape(-1, 3)
    made = PrivateMetricTrainer(module, "triplet", n_steps=2, unit="person", random_state=0)
    first = made.fit(rows, None, images).transform(images)
    assert first.shape == (240, 2)
    swapped = made.fit(rows[:, [0, 2, 1]], np.full(80, 2), images).transform(images)
    np.testing.assert_array_equal(first, swapped)


def test_without_privacy_groups_and_triplets_teach(people):
    X, classes = people
    for loss in ("contrastive", "triplet"):
        made = trainer(loss=loss, epsilon=float("inf"), n_steps=40, random_state=0)
        Z = made.fit(groups_of(people)).transform(X)
        gaps = np.linalg.norm(Z[:120] - Z[120:], axis=1)
        same = classes[:120] == classes[120:]
        assert gaps[same].mean() < 0.6 * gaps[~same].mean()


def test_the_planted_person_moves_no_step_by_more_than_was_charged(people):
    """The exact audit on groups: each step's sum over two neighbouring inputs, along one fit's own course."""
    X, classes = people
    loud = X.copy()
    loud[3] = 60.0
    prepared = trainer(unit="person", random_state=0).prepare(
        GroupSet.of_classes(loud, design_groups(240, 4, random_state=0), classes)
    )
    used = prepared.records.used
    quiet = used.with_features(np.where(used.features == 60.0, -60.0, used.features))
    moves = []

    class Both(Engine):
        def answer(self, query, statistic):
            grid = self._grid(query, statistic)
            sums = [statistic.compiled_sum(one, None, "l2", grid, False) for one in (used, quiet)]
            moves.append(
                np.linalg.norm((sums[0] - sums[1]) * grid) / statistic.sensitivity("l2", grid)
            )
            return super().answer(query, statistic)

    prepared.recipe.run(prepared.plan, Both(used, prepared.noise))
    assert len(moves) == 5
    assert 1.0 < max(moves) <= 2.0  # the wrong charge, one clip, is convicted


@pytest.mark.parametrize(
    ("options", "given", "words"),
    [
        ({}, lambda p: (groups_of(p), np.ones(60), None), "leave y out"),
        ({}, lambda p: (groups_of(p), None, p[0][:7]), "must have 240 rows"),
        ({"loss": "triplet"}, lambda p: (groups_of(p, 2), None, None), "three people"),
        (
            {"loss": "cosine"},
            lambda p: (np.arange(240).reshape(-1, 3), None, p[0]),
            "of tuples must",
        ),
        (
            {},
            lambda p: (np.arange(240).reshape(-1, 3), None, p[0]),
            "loss of tuples must be one of",
        ),
        ({"unit": "choice"}, lambda p: (groups_of(p), None, None), "unit"),
    ],
)
def test_bad_records(people, options, given, words):
    with pytest.raises(InputError, match=words):
        trainer(**options).fit(*given(people))


def coupled(anchor, positive, negative):
    return triplet(anchor, positive, negative) * anchor.mean()


def alone(anchor, positive, negative):
    return triplet(anchor, positive, negative).sum()


def hopeless(anchor, positive, negative):
    return triplet(anchor, positive, negative) * float("nan")


@pytest.mark.parametrize(
    ("loss", "words"),
    [(coupled, "couples"), (alone, "one number a triplet"), (hopeless, "no number on random")],
)
def test_a_loss_of_tuples_is_tried_too(loss, words):
    with pytest.raises(InputError, match=words):
        Network(nn.Linear(2, 2), with_loss("tuples", 3, loss)[1], (2,))


def rooted(left, right, labels):
    """Its slope is infinite where two people are alike."""
    return labels * (left - right).pow(2).sum(dim=1).sqrt()


def test_a_null_pair_hurts_no_group():
    """Two people alike, whose pair is null, do not silence the pairs of the others."""
    net = Network(nn.Linear(2, 2).double(), GroupRecords(3, rooted), (2,), micro_batch=1)
    statistic = NetworkGradient(net, net.flat(), 1.0, bucket=1)
    people = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]])
    found = [
        statistic.compiled_sum(GroupSet(people, [[0, 1, 2]], [labels]), None, "l2", 2.0**-30, False)
        for labels in ([0, 1, 0], [1, 1, 0])
    ]
    assert found[0].any()
    assert not found[1].any()


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(5, 6), nn.Linear(6, 2)

    def forward(self, x):
        if not torch.is_grad_enabled():
            return self.two(torch.tanh(self.one(x)))
        middle = checkpoint(lambda x: torch.tanh(self.one(x)), x, use_reentrant=False)
        return self.two(middle)


def test_checkpointed_activations_change_nothing(people):
    X, _ = people
    module = Checkpointed()
    plain = nn.Sequential(module.one, nn.Tanh(), module.two)
    pairs, y = np.arange(240).reshape(-1, 2), np.resize([1, -1], 120)
    found = []
    for one in (module, plain):
        made = PrivateMetricTrainer(one, n_steps=3, random_state=0).fit(pairs, y, X)
        assert made.by_rules_
        found.append(made.transform(X))
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-7)


class Reentrant(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(5, 6), nn.Linear(6, 2)

    def forward(self, x):
        return self.two(checkpoint(self.one, x.requires_grad_(), use_reentrant=True))


def test_layers_that_run_without_gradients_are_refused(people):
    with pytest.raises(InputError, match="use_reentrant=False"):
        PrivateMetricTrainer(Reentrant(), n_steps=1).fit(
            np.arange(240).reshape(-1, 2), np.ones(120), people[0]
        )


def test_micro_batches_change_nothing(people):
    X, _ = people
    found = [
        trainer(micro_batch=size, random_state=1).fit(groups_of(people)).transform(X)
        for size in (7, 64)
    ]
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)


def test_an_empty_sample_is_a_step(people):
    """One person in 10^4 is drawn: most batches are empty, and each is answered with its noise."""
    seen = []
    made = trainer(sample_rate=1e-4, n_steps=8, random_state=0)
    made.fit(groups_of(people), on_answer=lambda query, statistic, noisy: seen.append(noisy))
    assert len(seen) == 8
    assert all(np.count_nonzero(one) > 40 for one in seen)
    assert made.certificate_.epsilon <= 4.0
