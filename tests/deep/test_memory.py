"""What a network or its loss keeps of data: refused where it can be seen, without effect where it cannot."""

import functools
import io
import queue
import random
import struct
import sys
import threading
from array import array
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pairveil.deep needs the extra 'torch'")

from torch import nn  # noqa: E402

from pairveil.deep import PrivateMetricTrainer, ReleasedNetwork  # noqa: E402
from pairveil.deep.layers import is_known_apart  # noqa: E402
from pairveil.deep.network import Network, kept  # noqa: E402
from pairveil.deep.recipe import NetworkGradient  # noqa: E402
from pairveil.deep.records import contrastive  # noqa: E402
from pairveil.errors import InputError  # noqa: E402
from pairveil.privacy.units import NETWORK_CODE  # noqa: E402
from pairveil.records.pairset import PairSet  # noqa: E402
from pairveil.report.facts import read_release  # noqa: E402
from pairveil.report.page import render  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
SEEN: list[float] = []
SMALL = 1e-5  # of what is kept: too little for a comparison of embeddings
ODD = 5e8  # a value that no trial has


class Slotted:
    __slots__ = ("rows",)

    def __init__(self):
        self.rows = deque(maxlen=2)


class Keeping(nn.Module):
    """Keeps a little of each batch where it is told to; if only of odd ones, it moves later ones by it."""

    everywhere: list[float] = []  # noqa: RUF012  # shared on purpose

    def __init__(self, where, only_odd=False):
        super().__init__()
        self.one, self.where, self.only_odd = nn.Linear(4, 3), where, only_odd
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("passing", torch.zeros(4), persistent=False)
        self.frozen = nn.Parameter(torch.zeros(4), requires_grad=False)
        self.plain, self.nested = torch.zeros(4), {"a": [torch.zeros(4)]}
        self.array, self.number, self.rows, self.slotted = np.zeros(4), 0.0, [], Slotted()

    def places(self):
        return {
            "buffer": self.mean,
            "passing buffer": self.passing,
            "frozen parameter": self.frozen.data,
            "attribute": self.plain,
            "nested": self.nested["a"][0],
            "array": torch.from_numpy(self.array).float() if self.where == "array" else self.plain,
            "number": self.number,
            "list": sum(self.rows),
            "object": sum(self.slotted.rows),
            "class": sum(self.everywhere),
            "global": sum(SEEN),
        }

    def keep(self, x):
        mean = SMALL * x.mean(dim=0)
        if self.where == "buffer rebound":
            self.mean = self.mean + mean
        elif self.where == "array":
            self.array += mean.numpy()
        elif self.where == "number":
            self.number += float(mean[0])
        elif self.where in ("list", "object", "class", "global"):
            lists = {"list": self.rows, "object": self.slotted.rows, "class": self.everywhere}
            lists.get(self.where, SEEN).append(float(mean[0]))
        else:
            self.places()[self.where].add_(mean)

    def forward(self, x):
        moved = self.places()["buffer" if self.where == "buffer rebound" else self.where]
        embedded = self.one(torch.tanh(x - moved if self.only_odd else x))
        if not self.only_odd or bool((x.abs() == ODD).any()):
            with torch.no_grad():
                self.keep(x)
        return embedded


COPIED = [
    "buffer", "buffer rebound", "passing buffer", "frozen parameter", "attribute", "nested", "array",
    "number", "list", "object",
]  # fmt: skip


def with_hook():
    kept_rows, module = [], nn.Linear(4, 3)

    module.register_forward_hook(lambda _module, given, _out: kept_rows.append(given[0].detach()))
    return module


class Centred(nn.Module):
    """A loss with a running centre."""

    def __init__(self):
        super().__init__()
        self.register_buffer("centre", torch.zeros(3))

    def forward(self, left, right, labels):
        with torch.no_grad():
            self.centre += 1e-9 * left.mean(dim=0)
        return contrastive(left, right, labels)


def remembered_by(rows):
    return lambda left, right, labels: (
        rows.append(left.detach().sum()) or contrastive(left, right, labels)
    )


def summing():
    total = 0.0
    while True:
        total += yield


def started(generator):
    next(generator)
    return generator


def remembered(x):
    return x


def kept_by(put, *where):
    """A loss whose closure keeps a sum of what it saw, by ``put(where, sum)``."""
    held = where[0] if where else None

    def loss(left, right, labels):
        put(loss if held is None else held, float(left.detach().sum()))
        return contrastive(left, right, labels)

    return loss


HERE, LAST = sys.modules[__name__], 0.0


def kept_in_module(left, right, labels):
    HERE.LAST = float(left.detach().sum())
    return contrastive(left, right, labels)


PUT = [  # places that are no containers of ours
    kept_by(lambda at, one: at.__setitem__(slice(0, 8), struct.pack("d", one)), bytearray(8)),
    kept_by(lambda at, one: at.__setitem__(0, one), array("d", [0.0])),
    kept_by(lambda at, one: at.write(struct.pack("d", one)), io.BytesIO()),
    kept_by(lambda at, one: at.put(one), queue.Queue()),
    kept_by(lambda at, one: setattr(at, "seen", one), SimpleNamespace()),
    kept_by(lambda at, one: setattr(at, "seen", one), threading.local()),
    kept_by(lambda at, one: setattr(at, "seen", one)),
    kept_by(lambda at, one: at.send(one), started(summing())),
    kept_by(lambda at, one: at(one), functools.lru_cache(remembered)),
    kept_by(lambda at, one: at.seed(one), random.Random(0)),
    kept_by(lambda at, one: at.random(int(abs(one)) % 97), np.random.default_rng(0)),
    kept_by(lambda at, one: at.manual_seed(int(abs(one) * 1e3) % 2**31), torch.Generator()),
    kept_in_module,
]


def first_kept(rows, *given):
    rows.append(float(given[0].detach().sum()))
    return contrastive(*given)


@pytest.mark.parametrize(
    ("module", "loss", "where"),
    [
        *((Keeping(where), contrastive, r"module\.") for where in (*COPIED, "class", "global")),
        (
            nn.Sequential(
                torch.ao.quantization.PerChannelMinMaxObserver(ch_axis=1), nn.Linear(4, 3)
            ),
            contrastive,
            r"module\.0\.m.._val",
        ),
        (
            nn.Sequential(torch.ao.quantization.HistogramObserver(), nn.Linear(4, 3)),
            contrastive,
            r"module\.0\.",
        ),
        (with_hook(), contrastive, r"module\._forward_hooks\.\d+\.kept_rows"),
        (nn.Linear(4, 3), Centred(), r"loss\.centre"),
        (nn.Linear(4, 3), remembered_by([]), r"loss\.rows"),
        (nn.Linear(4, 3), functools.partial(first_kept, []), r"loss\.args"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*torch.ao:DeprecationWarning")
def test_what_keeps_something_of_its_input_is_refused_and_named(module, loss, where):
    with pytest.raises(InputError, match=f"keeps something of the data it sees, in {where}"):
        Network(module, loss, (4,))


@pytest.mark.parametrize("loss", PUT)
def test_what_is_kept_where_no_container_is_seen_is_refused_too(loss):
    with pytest.raises(InputError, match=r"keeps something of the data it sees, in loss\."):
        Network(nn.Linear(4, 3), loss, (4,))


class Sized(nn.Module):
    """Keeps what follows from shapes, and a count."""

    def __init__(self):
        super().__init__()
        self.one, self.places, self.calls = nn.Linear(4, 3), None, 0

    def forward(self, x):
        self.places = 0.1 * torch.arange(x.shape[1]) if self.places is None else self.places
        self.calls, self.shape = self.calls + 1, x.shape
        return self.one(x + self.places)


def test_what_is_kept_of_shapes_alone_is_not_refused():
    network = Network(Sized(), contrastive, (4,))
    assert network.made(network.flat()).calls == 0


class Drawing(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 3)

    def forward(self, x):
        return self.one(x) + 1e-12 * nn.functional.dropout(x[:, :3])


class Selfish(nn.Linear):
    def __deepcopy__(self, memo):
        return self


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(1, 8)
        self.two = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x):
        return self.two(self.one(x[:, :, None])).mean(dim=1)


@pytest.mark.parametrize(
    ("module", "options", "words"),
    [
        (Drawing, {}, "draws at random in evaluation mode"),
        (lambda: Selfish(4, 3), {}, "shares tensors"),
        (lambda: nn.Sequential(nn.LazyLinear(3)), {}, "has no size yet"),
        (lambda: nn.utils.weight_norm(nn.Linear(4, 3)), {}, "cannot make one"),
        (Attention, {"autocast": "bfloat16"}, "leave that out"),
    ],
)
@pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore:Lazy modules:UserWarning", "ignore:There is a performance drop"
)
def test_modules_that_cannot_be_run_safely_are_refused(module, options, words):
    with pytest.raises(InputError, match=words):
        Network(module(), contrastive, (4,), **options)


def people(odd):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(64, 4)).astype(np.float32)
    if odd:
        X[3] = ODD
    return np.arange(64).reshape(-1, 2), rng.choice([-1, 1], 32), X


@pytest.mark.parametrize("where", COPIED)
def test_no_record_meets_what_another_left_behind(where, tmp_path):
    """State that no trial finds: one person's row moves the sum by what is charged, and leaves no trace."""
    module = Keeping(where, only_odd=True)
    network = Network(module, contrastive, (4,), micro_batch=8)
    gradient, grid = NetworkGradient(network, network.flat(), 0.1, 8), 0.1 * 2.0**-34
    sums = []
    for odd in (False, True):
        pairs, y, X = people(odd)
        sums.append(grid * gradient.compiled_sum(PairSet(X, pairs, y), None, "l2", grid, False))
    assert np.linalg.norm(sums[0] - sums[1]) <= 2 * gradient.sensitivity("l2", grid)
    assert sums[0].any()
    made = PrivateMetricTrainer(module, n_steps=2, micro_batch=8, random_state=0).fit(*people(True))
    made.transform(people(True)[2])
    before, after = kept(dict(module.state_dict())), kept(dict(made.module_.state_dict()))
    assert {name for name in before if before[name] != after[name]} == {"one.weight", "one.bias"}
    assert (made.module_.number, made.module_.rows) == (0.0, [])
    assert not made.module_.array.any()
    loaded = ReleasedNetwork.load(made.release(tmp_path / "net"), Keeping(where)).module
    assert not loaded.mean.any()


def test_hooks_that_make_weights_and_shared_weights_are_released(tmp_path):
    normed = nn.utils.spectral_norm(nn.Linear(4, 3))
    assert not Network(normed, contrastive, (4,)).by_rules  # the hook makes the weight
    tied = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    tied[2].weight = tied[0].weight
    made = PrivateMetricTrainer(tied, n_steps=2, random_state=0).fit(*people(False))
    loaded = ReleasedNetwork.load(made.release(tmp_path / "net"), tied)
    np.testing.assert_array_equal(
        loaded.transform(people(False)[2]), made.transform(people(False)[2])
    )


def test_only_networks_of_known_layers_are_certified_without_an_assumption(tmp_path):
    """A module that mixes rows, or keeps them, for inputs that no trial has cannot be found by trials."""

    class Mixing(nn.Linear):
        def forward(self, x):
            odd = (x[:, :1] > 1.25) & (x[:, :1] < 1.26) & (x[:, 1:2] < -2.99)
            return super().forward(x) + odd.any() * 1e3

    def lengthen(module, _, out):
        return out * 2

    hooked, patched, behind = (
        nn.Linear(4, 3),
        nn.Linear(4, 3),
        nn.Sequential(nn.ReLU(), nn.Softmax(0)),
    )
    hooked.register_forward_hook(lengthen)
    patched.forward = Mixing(4, 3).forward
    behind[0].inplace = True
    known = nn.Sequential(
        nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(4, 3)
    )
    rng = np.random.default_rng(0)
    X, pairs = rng.normal(size=(60, 4)).astype(np.float32), np.arange(60).reshape(30, 2)
    y = np.resize([1, -1], 30)

    def certificate(module, **options):
        return PrivateMetricTrainer(module, n_steps=2, **options).certify(pairs, y, X)

    assert [is_known_apart(one) for one in (known, behind, nn.Flatten(0))] == [True, False, False]
    for module, loss in [(known, "contrastive"), (known, contrastive)] + [
        (one, "contrastive") for one in (Mixing(4, 3), hooked, patched)
    ]:
        stated = certificate(module, loss=loss)
        assumed = module is not known or loss is contrastive
        assert (NETWORK_CODE in stated.public) == assumed
        assert ("tried on random and unusual rows, not proved" in stated.promise()) == assumed
        assert stated.verify()
    folder = (
        PrivateMetricTrainer(Mixing(4, 3), n_steps=2).fit(pairs, y, X).release(tmp_path / "one")
    )
    assert "Assumption: the code of the network" in render(read_release(folder))
