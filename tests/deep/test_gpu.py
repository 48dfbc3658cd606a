"""Each kernel for GPUs gives what plain torch gives; skipped where there is no GPU."""

import pytest

torch = pytest.importorskip("torch", reason="pairveil.deep needs the extra 'torch'")

from torch.utils._triton import has_triton  # noqa: E402

from pairveil.deep import arithmetic  # noqa: E402
from pairveil.deep.network import Network  # noqa: E402
from pairveil.deep.records import contrastive  # noqa: E402
from pairveil.errors import InputError  # noqa: E402

pytestmark = pytest.mark.skipif(
    not (torch.cuda.is_available() and has_triton()), reason="needs an NVIDIA GPU"
)
SHAPES = [(1, 1), (7, 3), (513, 130), (2000, 1000)]


def rows_of(n, k, kind):
    draw = torch.Generator().manual_seed(n)
    return torch.randn((n, k), generator=draw).to(kind)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_equal_plain_torch(shape, kind):
    rows = rows_of(*shape, kind)
    factors = torch.linspace(0, 1, shape[0], dtype=torch.float64)
    spoiled = rows.clone()
    spoiled[0] = torch.inf  # its factor is 0: it is not read
    for name, given in {
        "products": (rows.reshape(1, *shape) if shape[0] < 8 else rows.reshape(-1, 1, shape[1]),),
        "scaled": (spoiled, factors),
        "weighted_sum": (spoiled, factors),
        "two_digits": (spoiled, 1e3 * factors),
    }.items():
        plain = getattr(arithmetic, name)(*given)
        own = getattr(arithmetic, name)(*(one.cuda() for one in given)).cpu()
        assert own.dtype == plain.dtype
        exact = (
            {"rtol": 1e-4, "atol": 1e-3} if name == "products" else {"rtol": 1e-12, "atol": 1e-12}
        )
        torch.testing.assert_close(own, plain, **exact)


class Nudged(torch.autograd.Function):
    """On the way back a little of the whole batch."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, slopes):
        return slopes + 1e-6 * slopes.norm().nan_to_num(1.0).clamp(max=1.0)


class Nudge(torch.nn.Module):
    def forward(self, x):
        return Nudged.apply(x)


def images(*more):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3, padding=1), torch.nn.ReLU(), *more,
        torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(64 * 16 * 16, 16),
    )  # fmt: skip


@pytest.mark.parametrize("micro_batch", [4, 64])
def test_convolutions_that_add_up_in_any_order_are_no_mixing(micro_batch):
    """cuDNN adds a sum's parts in any order, so that what nearly cancels differs from run to run."""
    for _ in range(5):  # two runs may agree by chance
        Network(images(), contrastive, (1, 16, 16), device="cuda", micro_batch=micro_batch)
        with pytest.raises(InputError, match="on the way back"):  # which hides no mixing
            Network(images(Nudge()), contrastive, (1, 16, 16), device="cuda", micro_batch=4)
