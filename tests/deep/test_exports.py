"""Networks in other people's hands: ONNX, encoder with head, Dense modules, adapters, foreign losses."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pairveil.deep needs the extra 'torch'")

from safetensors.numpy import load_file  # noqa: E402
from torch import nn  # noqa: E402

from pairveil import DPPMetricLearner, ReleasedMetric  # noqa: E402
from pairveil.deep import (  # noqa: E402
    PrivateMetricTrainer,
    ReleasedNetwork,
    add_adapters,
    from_indices,
    merge_adapters,
)
from pairveil.errors import InputError, PrivacyLeakWarning  # noqa: E402
from pairveil.schema.columns import NumberColumn  # noqa: E402
from pairveil.schema.schema import Schema  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, 200)
    X = (rng.normal(size=(200, 6)) + classes[:, None]).astype(np.float32)
    pairs = np.arange(200).reshape(-1, 2)
    return pairs, np.where(classes[pairs[:, 0]] == classes[pairs[:, 1]], 1, -1), X


def conv():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 3, 3), nn.GroupNorm(1, 3), nn.Tanh(),
        nn.Flatten(), nn.Linear(12, 3),
    )  # fmt: skip


def run_onnx(file, rows):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return session.run(None, {"features": rows})[0]


def test_a_release_with_onnx_runs_without_the_modules_code(people, tmp_path):
    pairs, y, X = people
    made = PrivateMetricTrainer(conv(), n_steps=2).fit(pairs, y, X)
    folder = made.release(tmp_path / "net", onnx=True)
    np.testing.assert_allclose(
        run_onnx(folder / "network.onnx", X), made.transform(X), rtol=1e-3, atol=1e-5
    )
    described = json.loads((folder / "network.json").read_text())
    assert len(described["onnx_sha256"]) == 64
    loaded = ReleasedNetwork.load(folder, conv())
    assert loaded.verify()
    readme = (folder / "README.md").read_text()  # what every release tells of itself
    assert "pairveil certificate" in readme
    assert "ReleasedNetwork.load" in readme
    assert "`network.onnx`" in readme
    np.testing.assert_allclose(loaded.transform(X), made.transform(X))
    made.release(folder, overwrite=True)
    assert not (folder / "network.onnx").exists()


class Branching(nn.Module):
    """Does something else with a batch of two, which is what an exporter sees."""

    def __init__(self):
        super().__init__()
        self.one = nn.Linear(6, 2)

    def forward(self, x):
        return self.one(x) if len(x) == 2 else -self.one(x)


def test_an_onnx_model_that_gives_other_numbers_is_not_written(tmp_path):
    with pytest.raises(InputError, match="other numbers"):
        ReleasedNetwork(Branching(), None, (6,)).to_onnx(tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())


def test_an_encoder_and_its_private_head_are_one_network(people, tmp_path):
    pairs, y, X = people
    encoder = conv().requires_grad_(False)
    with torch.no_grad():
        Z = encoder(torch.tensor(X)).double().numpy()
    learner = DPPMetricLearner(epsilon=4.0, preprocessor=Z, data_norm=4.0).fit(pairs, y)
    whole = ReleasedNetwork.of_head(encoder, learner, (6,))
    np.testing.assert_allclose(whole.transform(X), learner.transform(Z), rtol=1e-4, atol=1e-5)
    folder = whole.save(tmp_path / "whole", onnx=True)
    assert json.loads((folder / "certificate.json").read_text())["epsilon"] <= 4.0
    np.testing.assert_allclose(
        run_onnx(folder / "network.onnx", X), whole.transform(X), rtol=1e-4, atol=1e-5
    )
    metric = ReleasedMetric.load(learner.release(tmp_path / "metric"))
    again = ReleasedNetwork.of_head(encoder, metric, (6,))
    np.testing.assert_allclose(again.transform(X), whole.transform(X))
    with pytest.raises(InputError, match="fitted metric"):
        ReleasedNetwork.of_head(encoder, DPPMetricLearner(), (6,))
    raw = Schema(tuple(NumberColumn(f"c{i}", bounds=(0, 9)) for i in range(4)))
    with pytest.raises(InputError, match="reads raw rows by its schema"):
        ReleasedNetwork.of_head(encoder, ReleasedMetric(np.eye(4), schema=raw), (6,))
    with pytest.raises(InputError, match="does not fit"):
        ReleasedNetwork.of_head(nn.Linear(6, 7), learner, (6,))


def test_a_dense_module_has_the_files_that_sentence_transformers_reads(people, tmp_path):
    """config.json with these four keys, and linear.weight (and .bias) in model.safetensors."""
    pairs, y, X = people
    made = PrivateMetricTrainer(nn.Linear(6, 2), n_steps=2).fit(pairs, y, X)
    folder = ReleasedNetwork(made.module_, made.certificate_, (6,)).to_dense(tmp_path / "2_Dense")
    config = json.loads((folder / "config.json").read_text())
    assert config == {
        "in_features": 6,
        "out_features": 2,
        "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    held = load_file(folder / "model.safetensors")
    assert set(held) == {"linear.weight", "linear.bias"}
    np.testing.assert_allclose(
        X @ held["linear.weight"].T + held["linear.bias"], made.transform(X), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(InputError, match="already"):
        ReleasedNetwork(made.module_, None, (6,)).to_dense(folder)
    with pytest.raises(InputError, match="one linear layer"):
        ReleasedNetwork(conv(), None, (6,)).to_dense(tmp_path / "other")


# ---- adapters ------------------------------------------------------------------------------------


def test_only_adapters_are_trained_and_certified(people):
    pairs, y, X = people
    base = conv()
    net = add_adapters(base, rank=2)
    made = PrivateMetricTrainer(net, n_steps=3, learning_rate=0.1, random_state=0).fit(pairs, y, X)
    assert made.by_rules_
    assert made.certificate_.plan["releases"][0]["entries"] == 2 * (12 + 3)
    start, trained = net.state_dict(), made.module_.state_dict()
    changed = {name for name in trained if not torch.equal(trained[name], start[name])}
    assert changed == {"5.down.weight", "5.up.weight"}
    merged = merge_adapters(made.module_)
    assert str(merged) == str(base)
    with torch.no_grad():
        torch.testing.assert_close(
            merged(torch.tensor(X)).double(), torch.tensor(made.transform(X)), rtol=1e-4, atol=1e-5
        )
    assert all(one.requires_grad for one in base.parameters())  # the module given stays


def test_adapters_start_where_the_base_is():
    base, X = conv(), torch.randn(4, 6)
    torch.testing.assert_close(add_adapters(base)(X), base(X))


def test_adapters_work_in_torchs_own_transformer(people):
    """Its fast path reads a layer's weight without calling the layer."""
    pairs, y, X = people
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
    base = nn.Sequential(nn.Linear(6, 6), nn.Unflatten(1, (1, 6)), block, nn.Flatten())
    made = PrivateMetricTrainer(add_adapters(base, 1), n_steps=3, learning_rate=0.3, random_state=0)
    made.fit(pairs, y, X)
    with torch.enable_grad():  # the slow path
        slow = made.module_(torch.tensor(X)).detach().double()
    torch.testing.assert_close(torch.tensor(made.transform(X)), slow, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("module", "rank", "words"),
    [(nn.Linear(2, 2), 0, "rank"), (nn.Conv1d(1, 1, 1), 2, "no linear"), ("net", 2, "Module")],
)
def test_bad_adapters(module, rank, words):
    with pytest.raises(InputError, match=words):
        add_adapters(module, rank)


# ---- pytorch-metric-learning -----------------------------------------------------------------------


class OfPairs:
    """What its ContrastiveLoss answers, by the documented shape of ``compute_loss``."""

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        assert labels is None
        assert ref_labels is None
        a1, p, a2, n = indices_tuple
        near = (embeddings[a1] - ref_emb[p]).norm(dim=1)
        far = torch.relu(1 - (embeddings[a2] - ref_emb[n]).norm(dim=1))
        return {
            "pos_loss": {"losses": near, "indices": (a1, p), "reduction_type": "pos_pair"},
            "neg_loss": {"losses": far, "indices": (a2, n), "reduction_type": "neg_pair"},
        }


class OfBatches:
    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        total = torch.cdist(embeddings, ref_emb).logsumexp(dim=1)
        return {"loss": {"losses": total, "indices": None, "reduction_type": "element"}}


class Unable:
    def compute_loss(self, *given):
        raise AssertionError("labels are required")


class Memory(OfPairs):
    embedding_memory = None


class Miner:
    def mine(self, *given):
        raise NotImplementedError


def test_losses_of_single_pairs_are_taken(people):
    pairs, y, X = people
    made = PrivateMetricTrainer(nn.Linear(6, 2), OfPairs(), n_steps=2, random_state=0)
    assert made.fit(pairs, y, X).certificate_.plan["loss"] == "OfPairs"


@pytest.mark.parametrize("loss", [OfBatches(), Unable(), Memory(), Miner()])
def test_miners_memories_and_losses_of_batches_are_refused(people, loss):
    with pytest.raises(InputError, match=r"couples the pairs of a batch"):
        PrivateMetricTrainer(nn.Linear(6, 2), loss, n_steps=2).fit(*people)


@pytest.mark.parametrize("loss", [OfPairs(), OfBatches()])
def test_triplets_are_sent_to_a_loss_of_triplets(people, loss):
    triplets = np.arange(30).reshape(-1, 3)
    with pytest.raises(InputError, match=r"for triplets, loss='triplet' or torch\.nn\.Triplet"):
        PrivateMetricTrainer(nn.Linear(6, 2), loss, n_steps=2).fit(triplets, data=people[2])
    with pytest.raises(InputError, match="for triplets, loss='triplet'"):
        PrivateMetricTrainer(nn.Linear(6, 2), OfBatches(), n_steps=2).fit(*people)


def test_the_package_itself(people):
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    PrivateMetricTrainer(nn.Linear(6, 2), losses.ContrastiveLoss(), n_steps=2).fit(*people)
    for loss in (losses.NTXentLoss(), losses.MultiSimilarityLoss(), losses.TripletMarginLoss()):
        with pytest.raises(InputError, match="couples"):
            PrivateMetricTrainer(nn.Linear(6, 2), loss, n_steps=2).fit(*people)


def test_indices_become_pairs_and_triplets(people):
    with pytest.warns(PrivacyLeakWarning, match="if a miner or labels chose these indices"):
        pairs, y = from_indices(tuple(torch.tensor(one) for one in ([0, 1], [2, 3], [4], [5])))
    assert (pairs.tolist(), y.tolist()) == ([[0, 2], [1, 3], [4, 5]], [1, 1, -1])
    with pytest.warns(PrivacyLeakWarning, match="design_pairs or sample_tuples"):
        triplets, none = from_indices(([0], [1], [2]))
    assert (triplets.tolist(), none) == ([[0, 1, 2]], None)
    for bad in (([0], [1]), ([0], [1], [2, 3]), ([0.5], [1], [2]), "abc"):
        with pytest.raises(InputError):
            from_indices(bad)
