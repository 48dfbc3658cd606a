"""The trainer: certificate, ledger, checkpoint, release, bad input, and a canary through a small net."""

import copy
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pairveil.deep needs the extra 'torch'")

from torch import nn  # noqa: E402

from pairveil import BudgetError, Certificate, PrivacyLedger, design_pairs  # noqa: E402
from pairveil.deep import PrivateMetricTrainer, ReleasedNetwork, make_private  # noqa: E402
from pairveil.deep.recipe import NetworkGradient  # noqa: E402
from pairveil.engine.engine import Engine  # noqa: E402
from pairveil.errors import InputError  # noqa: E402
from pairveil.records.pairset import PairSet  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, 300)
    X = (rng.normal(size=(300, 4)) + 2 * classes[:, None]).astype(np.float32)
    pairs = design_pairs(300, random_state=0)
    y = np.where(classes[pairs[:, 0]] == classes[pairs[:, 1]], 1, -1)
    return pairs, y, X


def trainer(**options):
    options = {"epsilon": 4.0, "n_steps": 8, "micro_batch": 64, **options}
    return PrivateMetricTrainer(net(), **options)


@pytest.mark.parametrize("unit", ["pair", "relationship", "person"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_certificate_is_the_planned_one_and_verifies(people, unit, adjacency, rate):
    made = trainer(unit=unit, adjacency=adjacency, sample_rate=rate)
    planned = made.certify(*people)
    certificate = made.fit(*people).certificate_
    assert certificate == planned
    assert certificate.epsilon <= 4.0
    assert certificate.for_release
    again = Certificate.from_json(certificate.to_json())
    assert again.verify().problems == ()
    released = certificate.plan["releases"][0]
    assert released["entries"] == sum(p.numel() for p in net().parameters())
    assert made.kappa_ == (2 if unit == "person" else 1)


def test_a_ledger_is_charged_once_and_refuses(people, tmp_path):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-5, path=tmp_path / "ledger.json")
    trainer(accountant=ledger).fit(*people)
    assert len(ledger.entries) == 1
    with pytest.raises(BudgetError):
        trainer(accountant=ledger).fit(*people)
    with pytest.raises(InputError, match="BatchNorm"):
        PrivateMetricTrainer(nn.BatchNorm1d(4), accountant=ledger).fit(*people)
    assert len(ledger.entries) == 1


def test_a_killed_fit_resumes_and_charges_nothing_twice(people, tmp_path):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-5, path=tmp_path / "ledger.json")
    file, seen = tmp_path / "fit.checkpoint", []

    class Killed(RuntimeError):
        pass

    def stop(query, statistic, noisy):
        seen.append(noisy)
        if len(seen) == 4:
            raise Killed

    with pytest.raises(Killed):
        trainer(accountant=ledger).fit(*people, checkpoint=file, on_answer=stop)
    torch.manual_seed(1)
    elsewhere = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    with pytest.raises(
        InputError, match="another fit"
    ):  # its answers are gradients at other weights
        trainer(accountant=ledger).set_params(module=elsewhere).fit(*people, checkpoint=file)
    again = []
    done = trainer(accountant=ledger).fit(
        *people, checkpoint=file, on_answer=lambda query, statistic, noisy: again.append(noisy)
    )
    assert len(ledger.entries) == 1
    assert len(again) == 8
    np.testing.assert_array_equal(again[:4], seen)
    assert done.certificate_.for_release
    assert not file.exists()


def test_same_seed_same_network_in_any_order(people):
    pairs, y, X = people
    order = np.random.default_rng(1).permutation(len(pairs))
    first = trainer(random_state=3).fit(pairs, y, X)
    second = trainer(random_state=3).fit(pairs[order][:, ::-1], y[order], torch.tensor(X))
    np.testing.assert_allclose(first.transform(X), second.transform(X), rtol=1e-5, atol=1e-6)
    assert not first.certificate_.for_release


def test_a_network_in_bfloat16_is_charged_for_its_rounding(people):
    made = trainer(autocast="bfloat16", random_state=3).fit(*people)
    assert "bfloat16" in made.certificate_.to_json()
    assert made.certificate_.epsilon <= 4.0
    plain = trainer(random_state=3).fit(*people)
    near = np.corrcoef(made.transform(people[2]).T, plain.transform(people[2]).T)
    assert near[0, 2] > 0.9
    assert near[0, 2] < 1  # the network itself ran in another precision
    with pytest.raises(InputError, match="autocast must be"):
        trainer(autocast="float16").fit(*people)


def test_the_module_given_stays_as_it_was(people):
    module = net()
    before = [p.detach().clone() for p in module.parameters()]
    PrivateMetricTrainer(module, n_steps=2, random_state=0).fit(*people)
    assert all(torch.equal(p, q) for p, q in zip(module.parameters(), before, strict=True))
    assert all(p.grad is None for p in module.parameters())


def test_frozen_parameters_stay_and_are_not_charged(people):
    module = net()
    module[0].requires_grad_(False)
    made = PrivateMetricTrainer(module, n_steps=3, random_state=0).fit(*people)
    assert made.certificate_.plan["releases"][0]["entries"] == 18
    assert torch.equal(made.module_[0].weight, module[0].weight)
    assert not torch.equal(made.module_[2].weight, module[2].weight)


def test_without_privacy_it_learns(people):
    pairs, y, X = people
    made = trainer(epsilon=float("inf"), n_steps=40, random_state=0).fit(pairs, y, X)
    assert made.certificate_ is None
    gaps = np.linalg.norm(np.diff(made.transform(X)[pairs], axis=1)[:, 0], axis=1)
    assert gaps[y > 0].mean() < 0.5 * gaps[y < 0].mean()


def test_a_release_does_not_load_with_the_certificate_of_another(people, tmp_path):
    """A network of epsilon 8 beside a certificate of epsilon 0.5 is not one of epsilon 0.5."""
    loud, quiet = (trainer(epsilon=e).fit(*people).release(tmp_path / str(e)) for e in (8.0, 0.5))
    (loud / "certificate.json").write_bytes((quiet / "certificate.json").read_bytes())
    with pytest.raises(InputError, match="SHA-256 differs"):
        ReleasedNetwork.load(loud, net())


def test_a_release_loads_into_the_same_architecture_only(people, tmp_path):
    made = trainer().fit(*people)
    folder = made.release(tmp_path / "net")
    with pytest.raises(InputError, match="already holds"):
        made.release(folder)
    loaded = ReleasedNetwork.load(folder, net())
    np.testing.assert_allclose(loaded.transform(people[2]), made.transform(people[2]))
    assert loaded.certificate.verify().problems == ()
    assert (
        loaded.certificate.metric_sha256
        == json.loads((folder / "network.json").read_text())["sha256"]
    )
    with pytest.raises(InputError, match="another architecture"):
        ReleasedNetwork.load(folder, nn.Linear(4, 2))
    weights = (folder / "network.safetensors").read_bytes()
    (folder / "network.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    with pytest.raises(InputError, match="is not the file"):
        ReleasedNetwork.load(folder, net())


def test_steps_of_ones_own_are_charged_at_once_and_end(people):
    module = net()
    ledger = PrivacyLedger(epsilon=4.0, delta=1e-5)
    adam = torch.optim.Adam(module.parameters())
    steps = make_private(module, adam, *people, epsilon=4.0, n_steps=3, accountant=ledger)
    assert len(ledger.entries) == 1
    before = module[0].weight.detach().clone()
    assert list(steps) == [1, 2, 3]
    assert not torch.equal(before, module[0].weight)
    with pytest.raises(InputError, match="have been taken"):
        steps.step()
    assert steps.certificate.verify().problems == ()


def steps_of(people, **options):
    module = net()
    sgd = torch.optim.SGD(module.parameters(), lr=0.1)
    return module, make_private(module, sgd, *people, epsilon=4.0, n_steps=4, **options)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_one_charge_pays_for_no_copy_of_the_steps(people, how, monkeypatch):
    steps = steps_of(people)[1]
    with pytest.raises(InputError, match="checkpoint=FILE"):
        how(steps)
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        how(steps._engine)
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as in a forked process
    with pytest.raises(InputError, match="a fork is a copy"):
        steps.step()
    monkeypatch.undo()
    assert list(steps) == [1, 2, 3, 4]
    assert steps._network.held is None  # people's rows were let go of


def test_a_loop_of_ones_own_resumes_and_charges_nothing_twice(people, tmp_path):
    ledger = PrivacyLedger(epsilon=4.0, delta=1e-5, path=tmp_path / "ledger.json")
    given = {"accountant": ledger, "checkpoint": tmp_path / "steps.checkpoint"}
    stopped, steps = steps_of(people, **given)
    with pytest.raises(InputError, match="another fit is using this checkpoint"):
        steps_of(people, **given)
    steps.step()
    steps.step()
    after_two = stopped[0].weight.detach().clone()
    steps._close()  # as when its process ends
    older = given["checkpoint"].read_bytes()
    resumed, steps = steps_of(people, **given)
    other = people[0], people[1], 100 * people[2]  # answers that were given are not drawn again
    next(it := iter(steps))
    next(it)
    assert torch.equal(resumed[0].weight, after_two)
    assert list(it) == [3, 4]
    done = resumed[0].weight.detach().clone()
    repeated, steps = steps_of(other, **given)
    assert list(steps) == [1, 2, 3, 4]
    assert torch.equal(repeated[0].weight, done)
    assert len(ledger.entries) == 1
    given["checkpoint"].write_bytes(older)
    with pytest.raises(InputError, match="older copy"):
        steps_of(people, **given)
    with pytest.raises(InputError, match="random_state=None"):
        steps_of(people, random_state=0, checkpoint=tmp_path / "seeded")


def test_gradients_that_are_not_the_steps_own_do_not_reach_the_module(people):
    """A loss of one's own on private rows, and parameters that nothing was promised for."""
    module, beside = net(), nn.Linear(4, 2)
    sgd = torch.optim.SGD([*module.parameters(), *beside.parameters()], lr=0.1)
    steps = make_private(module, sgd, *people, epsilon=4.0, n_steps=2, random_state=0)
    rows = torch.tensor(people[2])
    (1e6 * module(rows)).sum().backward()  # overwritten
    steps.step()
    other = net()
    again = torch.optim.SGD(other.parameters(), lr=0.1)
    make_private(other, again, *people, epsilon=4.0, n_steps=2, random_state=0).step()
    assert torch.equal(module[0].weight, other[0].weight)
    beside(rows).sum().backward()
    with pytest.raises(InputError, match="not private steps' own"):
        steps.step()


def test_a_prepared_fit_starts_twice_where_it_started(people):
    made = trainer(random_state=0)
    prepared = made.prepare(*people)
    start = prepared.recipe.network.flat()
    made.fit(prepared)
    np.testing.assert_array_equal(prepared.recipe.network.flat(), start)


def test_a_pickle_of_a_trainer_does_not_tell_which_rows_were_used(people):
    made = trainer(random_state=0).fit(*people)
    assert len(made.used_pairs_)
    back = pickle.loads(pickle.dumps(made))
    assert not hasattr(back, "used_pairs_")
    np.testing.assert_array_equal(back.transform(people[2]), made.transform(people[2]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "triplet"}, "loss of pairs must be one of"),
        ({"loss": lambda left, right, y: (left - right).sum()}, "one number a pair"),
        ({"mechanism": "laplace"}, "mechanism='gaussian'"),
        ({"sample_rate": 0.0}, "sample_rate"),
        ({"n_steps": 0}, "n_steps"),
        ({"max_grad_norm": -1.0}, "max_grad_norm"),
        ({"device": "abacus"}, "not known"),
    ],
)
def test_bad_parameters(people, options, words):
    with pytest.raises(InputError, match=words):
        trainer(**options).fit(*people)


def test_bad_data(people):
    pairs, y, X = people
    for data, words in [
        (None, "data is missing"),
        (X[:, :3], "cannot embed"),
        (X[:10], "outside"),
        (np.full_like(X, np.nan), "finite|missing|NaN"),
        (X.astype(str), "numbers"),
    ]:
        with pytest.raises(InputError, match=words):
            trainer().fit(pairs, y, data)
    with pytest.raises(InputError, match="not fitted"):
        trainer().transform(X)
    words = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(12, 2))
    with pytest.raises(InputError, match="tokens outside 0 to 4"):
        PrivateMetricTrainer(words).fit(pairs, y, np.full((300, 4), 5))


def test_a_planted_pair_moves_no_step_by_more_than_was_charged(people):
    """The exact audit: every step's sum over two neighbouring inputs, along one fit's own course."""
    pairs, y, X = people
    loud = X.copy()
    loud[pairs[0]] = [[40.0] * 4, [-40.0] * 4]
    y = np.concatenate([[1], y[1:]])
    made = trainer(unit="pair", random_state=0, epsilon=1.0)
    prepared = made.prepare(pairs, y, loud)
    used = prepared.records.used
    canary = np.abs(used.features[used.pairs].reshape(len(used.pairs), -1)).min(axis=1) == 40
    assert canary.sum() == 1
    without = used.emptied(canary)
    moves = []

    class Both(Engine):
        def answer(self, query, statistic):
            assert isinstance(statistic, NetworkGradient)
            grid = self._grid(query, statistic)
            sums = [statistic.compiled_sum(one, None, "l2", grid, False) for one in (used, without)]
            charged = statistic.sensitivity("l2", grid)
            moves.append(float(np.linalg.norm((sums[0] - sums[1]) * grid)) / charged)
            return super().answer(query, statistic)

    prepared.recipe.run(prepared.plan, Both(used, prepared.noise))
    assert len(moves) == 8
    assert 0.9 < max(moves) <= 1.0


def test_pairsets_and_null_pairs(people):
    pairs, y, X = people
    null = np.zeros(len(pairs), dtype=bool)
    null[::3] = True
    found = PairSet(X, pairs, y).emptied(null)
    made = trainer(sample_rate=0.3).fit(found)
    assert made.n_pairs_used_ == len(pairs)  # whether a pair is null is private


def test_score_and_distance_are_those_of_the_embeddings():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    pairs = np.stack([np.arange(59), np.arange(1, 60)], axis=1)
    y = np.where(rng.random(59) < 0.5, 1, -1)
    trainer = PrivateMetricTrainer(torch.nn.Linear(4, 2), n_steps=2, random_state=0)
    with pytest.raises(InputError, match="not fitted"):
        trainer.score(pairs, y, X)
    trainer.fit(pairs, y, X)
    embedded = trainer.transform(X)
    apart = np.linalg.norm(embedded[:-1] - embedded[1:], axis=1)
    np.testing.assert_allclose(trainer.pair_distance(pairs, X), apart)
    wins = [(a < b) + 0.5 * (a == b) for a in apart[y > 0] for b in apart[y < 0]]
    assert trainer.score(pairs, y, X) == pytest.approx(np.mean(wins))
    with pytest.raises(InputError, match="outside"):
        trainer.pair_distance([[0, 60]], X)


def test_without_torch_the_import_says_what_to_install():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "try:\n    import pairveil.deep\n"
        "except ImportError as error:\n"
        "    from pairveil.errors import InputError\n"
        "    print(isinstance(error, InputError), error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("True pairveil.deep needs torch: install the extra")
