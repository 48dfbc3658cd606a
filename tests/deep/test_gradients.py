"""Pairs' gradients: the rules against gradients formed pair by pair, clipping, and sensitivity."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pairveil.deep needs the extra 'torch'")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import nn  # noqa: E402

from pairveil.deep import LOSSES, Network, NetworkGradient  # noqa: E402
from pairveil.deep.recipe import rows_stand_alone  # noqa: E402
from pairveil.deep.records import GroupRecords, check_apart, contrastive, triplet  # noqa: E402
from pairveil.errors import InputError  # noqa: E402
from pairveil.records.pairset import PairSet  # noqa: E402


class Tokens(nn.Module):
    """Tokens, attention by hand, layer norm."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 6, padding_idx=0)
        self.q, self.k = nn.Linear(6, 6, bias=False), nn.Linear(6, 6)
        self.norm = nn.LayerNorm(6)
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        h = self.table(x)
        h = h + torch.softmax(self.q(h) @ self.k(h).mT, dim=-1) @ h
        return self.out(self.norm(h)).mean(dim=1)


NETS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(5, 7), nn.ReLU(inplace=True), nn.Linear(7, 3)), (5,)),
    "conv2d": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, stride=2, padding=1),
            nn.GroupNorm(2, 4),
            nn.Tanh(),
            nn.Conv2d(4, 3, (3, 1), padding="same", bias=False),
            nn.Flatten(),
            nn.Linear(27, 2),
        ),
        (2, 6, 6),
    ),
    "conv1d": (
        lambda: nn.Sequential(nn.Conv1d(2, 3, 3, padding="valid"), nn.Flatten(), nn.Linear(12, 2)),
        (2, 6),
    ),
    "tokens": (Tokens, (4,)),
    "sequence": (
        lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm([5, 4]), nn.Flatten()),
        (5, 3),
    ),
}


def network(name, loss=contrastive, **options):
    torch.manual_seed(0)
    build, shape = NETS[name]
    return Network(build().double(), loss, shape, tokens=name == "tokens", **options)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@pytest.mark.parametrize("name", NETS)
def test_rules_equal_gradients_formed_pair_by_pair(name, loss):
    net = network(name, loss)
    assert net.by_rules
    left, right = (
        net.example(9, seed=s).to(torch.int64 if net.tokens else torch.float64) for s in (6, 7)
    )
    labels = torch.tensor([1.0, -1, 1, -1, 0, 1, -1, -1, 1], dtype=torch.float64)
    ours = net.gradients(left, right, labels)
    own = net._pair_by_pair(net._fresh(), left, right, labels)
    assert own.square[4] < 1e-25  # a null pair
    assert ours.square[4] < 1e-25
    torch.testing.assert_close(ours.square, own.square, rtol=1e-9, atol=1e-12)
    factors = torch.linspace(0.1, 2.0, 9, dtype=torch.float64)
    torch.testing.assert_close(
        ours.weighted(factors)[0], own.weighted(factors)[0], rtol=1e-9, atol=1e-12
    )
    assert bool(
        (ours.terms >= ours.square.sqrt() * (1 - 1e-12)).all()
    )  # what may cancel is bounded


def test_the_branches_cross_terms_count():
    """Without them a pair's gradient would pass for shorter, or longer, than it is."""
    net = Network(nn.Linear(3, 2, bias=False).double(), contrastive, (3,))
    left, right = torch.eye(3, dtype=torch.float64)[:2], torch.eye(3, dtype=torch.float64)[1:]
    parts = net.gradients(left, right, torch.ones(2, dtype=torch.float64))
    with torch.no_grad():
        gaps = left - right
        expected = [(torch.outer(net.module.weight @ g, g)).pow(2).sum() for g in gaps]
    torch.testing.assert_close(parts.square, torch.stack(expected))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 4)

    def forward(self, x):
        return self.one(torch.tanh(self.one(x)))


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x * self.scale


class Around(nn.Module):
    """Uses a layer's weight without calling the layer a second time."""

    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 4)

    def forward(self, x):
        return self.one(x) + x @ self.one.weight


@pytest.mark.parametrize("module", [Tied(), Own(), Around(), nn.Conv1d(4, 4, 1, groups=2)])
def test_what_the_rules_do_not_cover_is_formed_pair_by_pair(module):
    shape = (4, 1) if isinstance(module, nn.Conv1d) else (4,)
    module = nn.Sequential(module, nn.Flatten()).double()
    net = Network(module, contrastive, shape)
    assert not net.by_rules
    left, right = net.example(3, 1).double(), net.example(3, 2).double()
    labels = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
    parts = net.gradients(left, right, labels)
    ones = torch.ones(3, dtype=torch.float64)
    loss = contrastive(net.module(left), net.module(right), labels).sum()
    own = torch.autograd.grad(loss, [p for _, p in net.parameters])
    torch.testing.assert_close(parts.weighted(ones)[0], torch.cat([g.reshape(-1) for g in own]))


class Mixing(nn.Module):
    def forward(self, x):
        return x - x.mean(dim=0)

    def __init__(self):
        super().__init__()
        self.one = nn.Linear(2, 2)


class MixingALittle(nn.Linear):
    """Next to nothing of everybody: the last bits beside a row of 1e9, all of a row beside one of 1e14."""

    def __init__(self):
        super().__init__(2, 2)

    def forward(self, x):
        return super().forward(torch.tanh(x - 1e-14 * x.mean(dim=0)))


class MixingMany(Mixing):
    """Leaves a few rows alone: a trial of four would not see it."""

    def forward(self, x):
        return super().forward(x) if len(x) > 8 else x


class OneLength(torch.autograd.Function):
    """Keeps rows apart on the way, and brings a batch's slopes to one length on the way back."""

    generate_vmap_rule = False

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def vmap(info, in_dims, x):
        return x - x.mean(in_dims[0], keepdim=True), in_dims[0]

    @staticmethod
    def backward(ctx, slopes):
        return slopes / slopes.norm().clamp(min=1e-9)


class MixingBack(nn.Module):
    def __init__(self, apart=True):
        super().__init__()
        self.one, self.two = nn.Linear(2, 3), nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.ones(3)) if apart else 1.0

    def forward(self, x):
        return self.two(OneLength.apply(self.one(x) * self.scale))


def shortened(_layer, slopes, _outer=None):
    """Gradient clipping as many write it: by the length of the whole batch, where that is above 1."""
    return tuple(one / one.norm().clamp(min=1.0) for one in slopes)


def with_backward_hook(register):
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
    getattr(module[1], register)(shortened)
    return module


def quantized_words():
    """Its scale is the largest of the whole batch: one token seldom changes it."""
    words, layers = nn.Embedding(50, 4), nn.Sequential(nn.Linear(8, 6), nn.ReLU())
    encoder = nn.Sequential(words, nn.Flatten(), layers).requires_grad_(False)
    encoder = torch.ao.quantization.quantize_dynamic(encoder, {nn.Linear})
    return nn.Sequential(encoder, nn.Linear(6, 2))


@pytest.mark.parametrize(
    "module",
    [
        MixingBack(apart=False),
        MixingBack(),
        with_backward_hook("register_full_backward_hook"),
        with_backward_hook("register_full_backward_pre_hook"),
    ],
)
def test_a_module_that_mixes_on_the_way_back_is_refused(module):
    with pytest.raises(InputError, match="on the way back"):
        Network(module, contrastive, (2,))


class Unsteady(OneLength):
    """On the way back a little of the whole batch, under a larger part that is drawn anew each time."""

    @staticmethod
    def vmap(info, in_dims, x):
        return x.clone(), in_dims[0]

    @staticmethod
    def backward(ctx, slopes):
        mixed = 1e-6 * slopes.norm().nan_to_num(1.0).clamp(max=1.0)
        return slopes * (1 + 1e-5 * random.random()) + mixed


class Shaken(Unsteady):
    """As a device that adds up in any order: nothing of other records is in it."""

    @staticmethod
    def backward(ctx, slopes):
        return slopes * (1 + 1e-5 * random.random())


class Nudged(Unsteady):
    """A little of the whole batch, the same every time."""

    @staticmethod
    def backward(ctx, slopes):
        return slopes + 1e-6 * slopes.norm().nan_to_num(1.0).clamp(max=1.0)


class UnsteadyBack(nn.Module):
    def __init__(self, back=Unsteady):
        super().__init__()
        self.one, self.two, self.back = nn.Linear(2, 3), nn.Linear(3, 2), back

    def forward(self, x):
        return self.two(self.back.apply(self.one(x)))


def test_what_differs_from_run_to_run_on_the_cpu_hides_no_mixing():
    """There sums are added up in one order, so that no difference is forgiven."""
    with pytest.raises(InputError, match="differ the second time"):
        Network(UnsteadyBack(), contrastive, (2,))


class Elsewhere(str):
    """A device by another name, on which this machine computes."""

    type = "mps"


class Unsettled(UnsteadyBack):
    """Shakes where it lies; a copy that is moved does what is asked of it there."""

    def __init__(self, there):
        super().__init__(Shaken)
        self.there = there

    def cpu(self):
        self.back = self.there
        return super().cpu()


class Steady(Unsteady):
    @staticmethod
    def backward(ctx, slopes):
        return slopes


class Missing(Unsteady):
    @staticmethod
    def backward(ctx, slopes):
        raise NotImplementedError("no such kernel")


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (Nudged, "mixes the samples"),
        (Unsteady, "second time"),
        (Missing, "does not run on the CPU"),
    ],
)
def test_on_a_device_that_adds_up_in_any_order_a_copy_on_the_cpu_decides(there, words, monkeypatch):
    monkeypatch.setattr("pairveil.deep.network._device", Elsewhere)
    made = {"device": "cpu", "micro_batch": 4}
    assert Network(Unsettled(Steady), contrastive, (2,), **made).by_rules
    with pytest.raises(InputError, match=words):
        Network(Unsettled(there), contrastive, (2,), **made)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_scale_of_the_whole_batch_is_found_among_tokens():
    for seed in range(8):  # whether the one row that is changed holds the largest is chance
        torch.manual_seed(seed)
        with pytest.raises(InputError, match="mixes the samples"):
            Network(quantized_words(), contrastive, (2,), tokens=True)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), "BatchNorm1d.*GroupNorm"),
        (Mixing(), "mixes the samples"),
        (MixingMany(), "mixes the samples"),
        (MixingALittle(), "mixes the samples"),
        (nn.Linear(3, 2), "cannot embed data of shape"),
        (nn.Sequential(nn.Linear(2, 2), nn.Unflatten(1, (2, 1))), r"\(n, k\) embeddings"),
        (nn.Flatten(), "no parameter that learns"),
        ("net", "torch.nn.Module"),
    ],
)
def test_what_is_refused_and_why(module, words):
    with pytest.raises(InputError, match=words):
        Network(module, contrastive, (2,))


class Running(nn.Module):
    """Keeps a mean of what it saw, in evaluation mode too."""

    def __init__(self):
        super().__init__()
        self.one, self.mean = nn.Linear(2, 2), 0.0

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean()
        return self.one(x - self.mean)


class Later(nn.Module):
    """A residual branch that sees the batch's mean, and starts at zero as residual branches do."""

    def __init__(self):
        super().__init__()
        self.one, self.mixed = nn.Linear(2, 2), nn.Linear(2, 2)
        for parameter in self.mixed.parameters():
            nn.init.zeros_(parameter)

    def forward(self, x):
        return self.one(x) + self.mixed(x.mean(dim=0).expand_as(x))


class Unpadded(nn.Module):
    """Leaves out what no row of the batch has: positions behind the longest text, empty columns."""

    def __init__(self, tokens):
        super().__init__()
        self.named = nn.Embedding(50, 2) if tokens else nn.Identity()
        self.last = nn.Linear(2, 3)

    def forward(self, x):
        longest = int((x != 0).reshape(len(x), x.shape[1], -1).any(2).sum(1).max().clamp(min=1))
        return self.last(self.named(x[:, :longest]).mean(1))


class Scaled(nn.Module):
    """Brings counts, or whole numbers, to the scale of the batch; takes the mean for empty rows."""

    def __init__(self, where):
        super().__init__()
        self.where, self.last = where, nn.Linear(2, 3)

    def forward(self, x):
        if self.where == "empty":
            return self.last(torch.where((x == 0).all(1, keepdim=True), x.mean(0, keepdim=True), x))
        if self.where == "alike":
            _, which, times = torch.unique(x, dim=0, return_inverse=True, return_counts=True)
            return self.last(x) * times[which][:, None]
        seen = (x >= 0).all() if self.where == "counts" else (x == x.round()).all()
        return self.last(x / x.abs().max() if seen else x)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (Unpadded(tokens=True), (6,)),
        (Unpadded(tokens=False), (6, 2)),
        *((Scaled(where), (2,)) for where in ("empty", "alike", "counts", "whole")),
    ],
)
def test_a_module_that_mixes_no_random_rows_is_refused(module, shape):
    with pytest.raises(InputError, match="mixes the samples"):
        Network(module, contrastive, shape, tokens=len(shape) == 1 and shape[0] == 6)


def test_a_module_that_will_mix_is_refused():
    with pytest.raises(InputError, match="mixes the samples"):
        Network(Later(), contrastive, (2,))
    plain = nn.Linear(2, 2)
    assert (
        Network(plain, contrastive, (2,)).flat() == Network(plain, contrastive, (2,)).flat()
    ).all()
    np.testing.assert_array_equal(
        Network(plain, contrastive, (2,)).flat()[:4],
        plain.weight.detach().double().reshape(-1).numpy(),
    )


class Positive(nn.Module):
    """A parameter that must stay above 0, and does not when parameters are tried elsewhere."""

    def __init__(self):
        super().__init__()
        self.one, self.size = nn.Linear(2, 2), nn.Parameter(torch.full((2,), 1e-3))

    def forward(self, x):
        return self.one(x) * self.size.log()


def test_a_module_that_has_no_numbers_elsewhere_is_not_refused():
    assert Network(Positive(), contrastive, (2,)).n_parameters == 8


def test_a_module_that_remembers_is_refused():
    with pytest.raises(InputError, match="second time"):
        Network(Running(), contrastive, (2,))


def batch_margin(left, right, labels):
    return contrastive(left, right, labels, margin=(left - right).norm(dim=1).mean())


def hardest(left, right, labels):
    own = contrastive(left, right, labels)
    return torch.where(own >= own.detach().max(), own, 0.0)


def in_batch_negatives(left, right, labels):
    near = -torch.cdist(left, right)
    return nn.functional.cross_entropy(near, torch.arange(len(labels)), reduction="none")


def share_of_similar(left, right, labels):
    return contrastive(left, right, labels) / (labels > 0).sum().clamp(min=1)


def slopes_only(left, right, labels):
    coupled = (left - right).pow(2).mean() * torch.ones_like(labels)
    return contrastive(left, right, labels) + coupled - coupled.detach()


class Memory:
    """Cross-batch memory: distances to what was seen before."""

    def __init__(self):
        self.seen = 0.0

    def __call__(self, left, right, labels):
        losses = contrastive(left - self.seen, right, labels)
        self.seen = float(left.detach().mean())
        return losses


def scaled_by_many(left, right, labels):
    losses = contrastive(left, right, labels)
    return (
        losses / losses.detach().std() if len(losses) > 8 else losses
    )  # of few no deviation is known


def test_losses_of_groups_have_the_same_slopes_each_time():
    """Gathered by indices, slopes were added up in any order where torch has several threads."""
    records = GroupRecords(4, triplet, triplets=True)
    said = torch.tensor([records.trial[row % 4] for row in range(256)], dtype=torch.float32)
    embedded = torch.randn(4, 256, 8, generator=torch.Generator().manual_seed(0))
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for _ in range(20):
            check_apart(records, embedded, said)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "loss",
    [
        *(batch_margin, hardest, in_batch_negatives, share_of_similar, slopes_only, Memory()),
        scaled_by_many,
    ],
)
def test_a_loss_that_couples_pairs_is_refused(loss):
    """One pair of 200 moved the sum of ``batch_margin`` by 46 clips, and two were charged."""
    with pytest.raises(InputError, match="no bound holds on what one pair contributes"):
        Network(nn.Linear(2, 2), loss, (2,))


def test_a_pair_whose_normalisation_is_no_number_contributes_nothing():
    net = Network(
        nn.Sequential(nn.LayerNorm(3, eps=0.0), nn.Linear(3, 2)), contrastive, (3,), micro_batch=2
    )
    people = np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [0.1, 2.0, 3.0], [1.0, 0.0, 5.0]])
    statistic = NetworkGradient(net, net.flat(), 0.5, bucket=2)
    found = [
        statistic.compiled_sum(
            PairSet(people, [[0, 1], [2, 3]], labels), None, "l2", 2.0**-40, False
        )
        for labels in ([1, 1], [-1, 1])
    ]
    assert (found[0] == found[1]).all()
    assert found[0].any()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_said():
    with pytest.raises(InputError, match="has none"):
        Network(nn.Linear(2, 2), contrastive, (2,), device="cuda")
    with pytest.raises(InputError, match="'xpu' was asked for"):
        Network(nn.Linear(2, 2), contrastive, (2,), device="xpu")


def pairs_of(rng, n, shape, tokens):
    size = int(np.prod(shape))
    people = rng.integers(0, 7, (2 * n, size)) if tokens else rng.normal(size=(2 * n, size)) * 3
    labels = rng.choice([1, -1], n)
    return PairSet(people.astype(np.float64), np.arange(2 * n).reshape(n, 2), labels)


@pytest.mark.parametrize("separately", [False, True])
@pytest.mark.parametrize("name", ["mlp", "conv2d", "tokens"])
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), clip=st.sampled_from([1e-3, 0.1, 10.0]))
def test_no_pair_moves_the_sum_further_than_is_charged(name, separately, seed, clip):
    """Zero one pair out: the integer sum moves by at most the sensitivity (twice it under replace)."""
    rng = np.random.default_rng(seed)
    net = network(name, micro_batch=4)
    statistic = NetworkGradient(net, net.flat(), clip, bucket=5)
    data = pairs_of(rng, 11, net.shape, net.tokens)
    changed = int(rng.integers(11))
    null = np.zeros(11, dtype=bool)
    null[changed] = True
    grid = 2.0**-40 * clip
    drawn = np.flatnonzero(rng.random(11) < 0.7) if separately else None
    sums = [
        statistic.compiled_sum(one, drawn, "l2", grid, separately)
        for one in (data, data.emptied(null))
    ]
    moved = float(np.linalg.norm((sums[0] - sums[1]) * grid))
    assert moved <= statistic.sensitivity("l2", grid)
    if drawn is None or changed in drawn:
        assert moved <= clip * (1 + 1e-6)
    else:
        assert moved == 0


def test_a_canary_uses_its_whole_clip():
    """The bound is tight: the fuzz above would see a clip that is a tenth too long."""
    net = network("mlp", micro_batch=4)
    people = np.array([[50.0] * 5, [-50.0] * 5])
    data = PairSet(people, [[0, 1]], [1])
    statistic = NetworkGradient(net, net.flat(), 0.5, bucket=4)
    total = statistic.compiled_sum(data, None, "l2", 2.0**-40, False) * 2.0**-40
    assert 0.499 < np.linalg.norm(total) <= statistic.sensitivity("l2", 2.0**-40) < 0.5001


class Placed(nn.Module):
    """What a device does that adds up in another order at other places of a batch."""

    def forward(self, x):
        places = torch.arange(len(x), dtype=x.dtype) % 3
        return x * (1 + 1e-6 * places[:, None])


def test_rows_that_feel_their_place_are_noticed():
    net = nn.Sequential(nn.Linear(5, 2), Placed())
    assert not rows_stand_alone(Network(net, contrastive, (5,), micro_batch=32))
    assert rows_stand_alone(Network(nn.Linear(16, 16), contrastive, (16,), micro_batch=32))


@pytest.mark.parametrize("in_place", [False, True])
def test_a_null_pair_that_is_drawn_leaves_no_trace(in_place):
    """Whether a null pair enters a Poisson batch must not move a single bit of the sum."""
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    net = Network(nn.Sequential(nn.Linear(5, 7), Placed()), contrastive, (5,), micro_batch=8)
    null = rng.random(200) < 0.5
    data = pairs_of(rng, 200, (5,), False).emptied(null)
    statistic = NetworkGradient(net, net.flat(), 0.1, bucket=50, in_place=in_place)
    full = statistic.compiled_sum(data, np.arange(200), "l2", 2.0**-40, True)
    bare = statistic.compiled_sum(data, np.flatnonzero(~null), "l2", 2.0**-40, True)
    np.testing.assert_array_equal(full, bare)


def test_pairs_that_keep_their_places_do_not_feel_one_more():
    """On a device that feels places, one pair more moves the sum by itself alone only if others stay put."""
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    net = Network(
        nn.Sequential(nn.Linear(5, 7), Placed()).double(), contrastive, (5,), micro_batch=8
    )
    data = pairs_of(rng, 60, (5,), False)
    null = np.zeros(60, dtype=bool)
    null[3] = True
    beyond = {}
    for in_place in (False, True):
        statistic = NetworkGradient(net, net.flat(), 0.1, bucket=60, in_place=in_place)
        alone = statistic.compiled_sum(data, np.array([3]), "l2", 2.0**-40, True)
        sums = [
            statistic.compiled_sum(one, np.arange(60), "l2", 2.0**-40, True)
            for one in (data, data.emptied(null))
        ]
        beyond[in_place] = np.abs(sums[0] - sums[1] - alone).max()
    assert beyond[True] <= 2 < beyond[False]  # grid steps of rounding, and more than those


def test_a_pair_that_overflows_contributes_nothing():
    net = network("mlp", micro_batch=4)
    data = pairs_of(np.random.default_rng(0), 6, (5,), False)
    huge = data.features.copy()
    huge[0] = 1e300
    statistic = NetworkGradient(net, net.flat(), 0.1, bucket=4)
    null = np.zeros(6, dtype=bool)
    null[0] = True
    found = [
        statistic.compiled_sum(one, None, "l2", 2.0**-40, False)
        for one in (data.with_features(huge), data.emptied(null))
    ]
    np.testing.assert_array_equal(*found)


def test_a_module_that_reads_its_layers_without_calling_them_is_taken_record_by_record():
    class Reading(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 3)

        def forward(self, x):
            return nn.functional.linear(x, self.inner.weight, self.inner.bias)

    assert not Network(Reading(), contrastive, (4,)).by_rules
