"""A fit that was killed goes on: nothing is drawn twice, nothing is charged twice."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from pairveil.errors import BudgetError, InputError
from pairveil.learning.dpp import DPPMetricLearner
from pairveil.pairs.choosing import design_pairs
from pairveil.pairs.pairset import PairSet
from pairveil.privacy.ledger import PrivacyLedger

KILLED = """
import os, signal, sys
import numpy as np
sys.path.insert(0, sys.argv[2])
from test_checkpoint import learner, make_data
from pairveil.privacy.ledger import PrivacyLedger
folder, seen = sys.argv[1], []
def watch(sums, statistic, noisy):
    seen.append(noisy)
    if len(seen) == 5:
        np.savez(folder + "/seen.npz", *seen)
        os.kill(os.getpid(), signal.SIGKILL)
ledger = PrivacyLedger(1.5, 1e-5, path=folder + "/ledger.json")
learner(ledger).fit(make_data(), on_release=watch, checkpoint=folder + "/fit")
"""


def make_data(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 2, n)
    X = np.clip(rng.normal(0.2 * kinds[:, None], 0.1, (n, 4)), -0.45, 0.45)
    pairs = design_pairs(n, random_state=0)
    return PairSet(X, pairs, np.where(kinds[pairs[:, 0]] == kinds[pairs[:, 1]], 1, -1))


def learner(ledger=None, **options):
    return DPPMetricLearner(accountant=ledger, n_steps=6, **options)


class Stop(Exception):
    pass


def stopped_fit(path, ledger=None, after=3):
    """A fit that ends after some releases; returns them."""
    seen = []

    def watch(sums, statistic, noisy):
        seen.append(noisy)
        if len(seen) == after:
            raise Stop

    with pytest.raises(Stop):
        learner(ledger).fit(make_data(), on_release=watch, checkpoint=path)
    return seen


def test_a_killed_fit_goes_on_without_drawing_or_charging_again(tmp_path):
    folder = str(tmp_path)
    arguments = [sys.executable, "-c", KILLED, folder, os.path.dirname(__file__)]
    died = subprocess.run(arguments, check=False, capture_output=True, text=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    with np.load(tmp_path / "seen.npz") as kept:
        before = [kept[name] for name in kept.files]
    ledger = PrivacyLedger.open(tmp_path / "ledger.json")
    spent = ledger.spent()
    assert len(ledger.entries) == 1
    seen = []
    fitted = learner(ledger).fit(
        make_data(), on_release=lambda *a: seen.append(a[2]), checkpoint=tmp_path / "fit"
    )
    for old, new in zip(before, seen[:5], strict=True):
        np.testing.assert_array_equal(old, new)
    assert len(seen) == sum(sums["steps"] for sums in fitted.certificate_.plan["releases"])
    assert len(ledger.entries) == 1
    assert ledger.spent() == spent
    assert sorted(path.name for path in tmp_path.glob("fit*")) == []  # done: nothing to go on with
    # A new fit is a new release: it is charged, here beyond the budget.
    with pytest.raises(BudgetError):
        learner(ledger).fit(make_data(), checkpoint=tmp_path / "fit")


def test_without_a_checkpoint_every_sum_is_drawn_anew(tmp_path):
    first = stopped_fit(tmp_path / "a")
    second = stopped_fit(tmp_path / "b")
    assert (first[0] != second[0]).any()
    again = stopped_fit(tmp_path / "a")
    np.testing.assert_array_equal(first[0], again[0])


def test_a_record_that_is_not_whole_is_cut_off_and_drawn_again(tmp_path):
    path = tmp_path / "fit"
    first = stopped_fit(path, after=3)
    content = path.read_bytes()
    path.write_bytes(content[:-7])
    again = stopped_fit(path, after=4)
    np.testing.assert_array_equal(first[1], again[1])
    assert (first[2] != again[2]).any()
    changed = bytearray(path.read_bytes())
    changed[-9] ^= 1
    path.write_bytes(bytes(changed))
    once_more = stopped_fit(path, after=4)
    np.testing.assert_array_equal(again[2], once_more[2])
    assert (again[3] != once_more[3]).any()


def test_a_ledger_that_does_not_know_the_fit_is_charged(tmp_path):
    stopped_fit(tmp_path / "fit", PrivacyLedger(2.0, 1e-5))
    fresh = PrivacyLedger(2.0, 1e-5)
    learner(fresh).fit(make_data(), checkpoint=tmp_path / "fit")
    assert len(fresh.entries) == 1


def test_what_does_not_belong_is_refused(tmp_path):
    path = tmp_path / "fit"
    stopped_fit(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="another fit"):
        learner(epsilon=0.5).fit(make_data(), checkpoint=path)
    with pytest.raises(InputError, match="another fit"):
        learner().fit(make_data().subset(np.arange(1000)), checkpoint=path)
    assert path.read_bytes() == before
    with pytest.raises(InputError, match="random_state=None"):
        learner(random_state=0).fit(make_data(), checkpoint=path)
    path.write_text("something else\n")
    with pytest.raises(InputError, match="not a checkpoint"):
        learner().fit(make_data(), checkpoint=path)
    with pytest.raises(InputError, match="cannot be written"):
        learner().fit(make_data(), checkpoint=path / "inside-a-file")


def test_two_fits_cannot_share_a_checkpoint(tmp_path):
    path = tmp_path / "fit"

    def second(*_):
        with pytest.raises(InputError, match="another fit is using"):
            learner().fit(make_data(), checkpoint=path)
        raise Stop

    with pytest.raises(Stop):
        learner().fit(make_data(), on_release=second, checkpoint=path)


def test_the_file_holds_nothing_but_released_sums_and_public_things(tmp_path):
    stopped_fit(tmp_path / "fit", after=2)
    data, content = make_data(), (tmp_path / "fit").read_bytes()
    assert len(content) < 2000
    assert data.features[0].tobytes()[:16] not in content
    assert data.labels.tobytes()[:64] not in content
