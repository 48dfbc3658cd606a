"""Floating point: no pair's contribution is longer than its norm says, whatever the magnitudes."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pairveil.deep needs the extra 'torch'")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import nn  # noqa: E402

from pairveil.deep import Network, NetworkGradient, arithmetic, layers  # noqa: E402
from pairveil.deep.records import contrastive  # noqa: E402
from pairveil.records.pairset import PairSet  # noqa: E402

N = 6
LAYERS = {  # a layer, and the shapes of x and d of one branch
    "linear": (nn.Linear(40, 30), (40,), (30,)),
    "no bias": (nn.Linear(40, 30, bias=False), (40,), (30,)),
    "positions": (nn.Linear(40, 30), (3, 40), (3, 30)),
    "positions, formed": (nn.Linear(4, 3), (9, 4), (9, 3)),
    "patches": (nn.Conv2d(8, 40, 2), (8, 2, 2), (40, 1, 1)),
    "patches, formed": (nn.Conv1d(2, 3, 3, padding=1), (2, 8), (3, 8)),
    "tokens": (nn.Embedding(4, 5), (7,), (7, 5)),
    "layer norm": (nn.LayerNorm(5), (4, 5), (4, 5)),
    "group norm": (nn.GroupNorm(2, 4), (4, 6), (4, 6)),
}
MAGNITUDES = st.sampled_from([1e-42, 1e-30, 1e-20, 1e-8, 1.0, 1e8, 1e17])


def numbers(seed, shape, magnitude, cancel, branches, spread):
    """Both branches of N pairs; right ones are the left ones, but for what little ``cancel`` leaves."""
    draw = np.random.default_rng(seed)
    values = draw.normal(size=(N, branches, *shape))
    sizes = np.exp(draw.normal(size=values.shape) * spread)  # entries of one row are of many sizes
    values *= sizes
    values[:, 1] = cancel * values[:, 1] + (1 - cancel) * values[:, 0]
    return torch.from_numpy((values * magnitude).astype(np.float32))


def parts_of(name, seed, sizes, cancel, branches=2, spread=3.0, sign=-1.0, kind=torch.float32):
    layer, inputs, outputs = LAYERS[name]
    x = numbers(seed, inputs, sizes[0], cancel, branches, spread)
    if isinstance(layer, nn.Embedding):
        x = torch.from_numpy(np.random.default_rng(seed).integers(0, 4, x.shape))
    d = numbers(seed + 1, outputs, sizes[1], cancel, branches, spread)
    d[:, 1] *= sign  # terms that cancel, or that add up
    learn = [own for own, _ in layer.named_parameters()]
    d = d.to(kind)
    x = x if isinstance(layer, nn.Embedding) else x.to(kind)
    with torch.no_grad():
        return layers.rule_of(layer)(layer, x, d, learn), x, d


@pytest.mark.parametrize("branches", [2, 5])
@pytest.mark.parametrize("name", LAYERS)
@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    sizes=st.tuples(MAGNITUDES, MAGNITUDES),
    cancel=st.sampled_from([1.0, 1e-3, 1e-7, 0.0]),
    sign=st.sampled_from([1.0, -1.0]),
)
def test_no_contribution_is_longer_than_its_norm(name, branches, seed, sizes, cancel, sign):
    """In float32, the very numbers that are summed, pair by pair."""
    parts, _, _ = parts_of(name, seed, sizes, cancel, branches, sign=sign)
    assert parts.square.dtype == torch.float64
    keep = torch.isfinite(parts.square)
    for pair in torch.nonzero(keep).flatten():
        alone = torch.zeros(N, dtype=torch.float64)
        alone[pair] = 1.0
        length = torch.cat([g.reshape(-1) for g in parts.weighted(alone)]).norm()
        assert length <= parts.square[pair].sqrt() * (1 + 2.0**-30)
        assert parts.square[pair].sqrt() <= parts.terms[pair] * (1 + 1e-3)


@pytest.mark.parametrize("branches", [2, 5])
@pytest.mark.parametrize("name", LAYERS)
@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    sizes=st.tuples(MAGNITUDES, MAGNITUDES),
    cancel=st.sampled_from([1.0, 1e-2, 0.0]),
    sign=st.sampled_from([1.0, -1.0]),
)
def test_no_contribution_in_bfloat16_is_longer_than_charged(
    name, branches, seed, sizes, cancel, sign
):
    """What is rounded after it was scaled: at most a clip and `rounding` of one more."""
    parts, _, _ = parts_of(name, seed, sizes, cancel, branches, sign=sign, kind=torch.bfloat16)
    for pair in torch.nonzero(torch.isfinite(parts.square)).flatten():
        alone = torch.zeros(N, dtype=torch.float64)
        alone[pair] = 1 / parts.square[pair].sqrt()
        length = torch.cat([g.reshape(-1) for g in parts.weighted(alone)]).norm()
        assert length <= 1 + 2.0**-30 + parts.rounding


def in_digits(seed, cancel):
    """A linear layer's sum in digits and exactly, pairs scaled to length 1."""
    parts, x, d = parts_of("no bias", seed, (1.0, 1.0), cancel, spread=0.5, kind=torch.bfloat16)
    factors = 1 / parts.square.sqrt()
    ours = [parts.weighted(torch.where(torch.arange(N) == i, factors, 0.0))[0] for i in range(N)]
    return torch.stack(ours), factors[:, None, None] * (d.double().mT @ x.double())


def test_sums_in_digits_are_close_to_exact_ones():
    ours, exact = in_digits(0, 1.0)
    torch.testing.assert_close(ours, exact, rtol=0, atol=2e-3)
    assert float((ours - exact).norm() / exact.norm()) < 2e-2


def test_digits_overflow_unless_a_pair_is_shrunk(monkeypatch):
    """What `DigitSum.square` is for: terms that cancel need more digits than there are."""
    long = max(in_digits(seed, 0.0)[0].flatten(1).norm(dim=1).max() for seed in range(5))
    assert long <= 1 + 2.0**-8
    monkeypatch.setattr(arithmetic.DigitSum, "square", lambda self, square, *more: square)
    broken = max(in_digits(seed, 0.0)[0].flatten(1).norm(dim=1).max() for seed in range(5))
    assert broken > 1.1


def test_products_of_digits_are_whole_and_exact():
    draw = np.random.default_rng(0)
    d, x = draw.integers(-arithmetic.LIMIT, arithmetic.LIMIT + 1, (2, 50, 7))
    ones = torch.ones(50, dtype=torch.float64)
    cut = [arithmetic.two_digits(torch.tensor(one).float(), ones) for one in (d, x)]
    assert cut[0].dtype == torch.int8
    np.testing.assert_array_equal(arithmetic._whole_product(*cut).numpy(), d.T @ x)


def test_float32_products_alone_would_say_too_little():
    """What the bound on rounding is for: terms that cancel leave less than float32 can see of them."""
    short = 0
    for seed in range(20):
        parts, x, d = parts_of("no bias", seed, (1.0, 1.0), 1e-5)
        bare = ((x @ x.mT) * (d @ d.mT)).sum(dim=(1, 2)).double()
        exact = (d.double().mT @ x.double()).pow(2).sum(dim=(1, 2))
        short += int((bare < 0.9 * exact).sum())
        assert bool((parts.square >= exact).all())
    assert short > 20


def test_a_norm_is_not_far_too_long():
    """Where nothing cancels, rounding up costs less than a thousandth."""
    for name in LAYERS:
        parts, _, _ = parts_of(name, 0, (1.0, 1.0), 1.0, spread=0.0)
        alone = torch.eye(N, dtype=torch.float64)
        lengths = [torch.cat([g.reshape(-1) for g in parts.weighted(one)]).norm() for one in alone]
        torch.testing.assert_close(parts.square.sqrt(), torch.stack(lengths), rtol=1e-3, atol=0)


@pytest.mark.parametrize("name", LAYERS)
def test_pieces_change_nothing(name, monkeypatch):
    whole, _, _ = parts_of(name, 3, (1.0, 1.0), 1.0)
    monkeypatch.setattr(layers, "PIECE", 1)
    cut, _, _ = parts_of(name, 3, (1.0, 1.0), 1.0)
    factors = torch.linspace(0.0, 1.0, N, dtype=torch.float64)
    torch.testing.assert_close(cut.square, whole.square, rtol=1e-5, atol=0)
    for one, other in zip(cut.weighted(factors), whole.weighted(factors), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_norms_do_not_follow_a_users_precision():
    """'medium' lets float32 products run in bfloat16: the bounds are not for that."""
    places = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)
    try:
        torch.set_float32_matmul_precision("medium")
        with layers.ieee():
            assert [one.fp32_precision for one in places] == ["ieee", "ieee"]
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("autocast", [None, "bfloat16"])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), clip=st.sampled_from([1e-6, 0.1, 1e4]))
def test_no_pair_moves_a_sum_further_than_is_charged(autocast, seed, clip):
    """Pairs of all sizes in one micro-batch: zeroing one out, or putting a worse one there."""
    draw = np.random.default_rng(seed)
    torch.manual_seed(0)
    net = Network(
        nn.Sequential(nn.Linear(5, 40), nn.ReLU(), nn.Linear(40, 3)),
        contrastive,
        (5,),
        micro_batch=8,
        autocast=autocast,
    )
    assert net.rounding == (0 if autocast is None else arithmetic.ROUNDING)
    people = draw.normal(size=(16, 5)) * 10.0 ** draw.integers(-12, 8, (16, 1))
    people[1::2] = np.where(draw.random((8, 1)) < 0.5, people[::2] * (1 + 1e-6), people[1::2])
    data = PairSet(people.astype(np.float32), np.arange(16).reshape(8, 2), draw.choice([1, -1], 8))
    statistic = NetworkGradient(net, net.flat(), clip, bucket=8)
    grid = 2.0**-40 * clip
    null = np.arange(8) == draw.integers(8)
    sums = [
        statistic.compiled_sum(one, None, "l2", grid, False) for one in (data, data.emptied(null))
    ]
    moved = float(np.linalg.norm((sums[0] - sums[1]) * grid))
    assert moved <= statistic.sensitivity("l2", grid) <= clip * (1 + net.rounding + 1e-4)


def test_products_are_ieee_by_the_one_switch_of_older_torch_too(monkeypatch):
    monkeypatch.setattr(layers, "_ONE_SWITCH", True)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with layers.ieee():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_layer_is_covered_by_registration_and_by_its_exact_kind(monkeypatch):
    class Own(nn.Linear):
        """Another forward could be anything: no rule is inherited."""

    assert layers.rule_of(Own(2, 3)) is None
    monkeypatch.setattr(layers, "RULES", dict(layers.RULES))
    layers.register(Own, covers=lambda layer: layer.bias is None)(layers.linear)
    assert layers.rule_of(Own(2, 3)) is None
    assert layers.rule_of(Own(2, 3, bias=False)) is layers.linear
