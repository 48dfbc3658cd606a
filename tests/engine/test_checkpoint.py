"""A fit that was killed is resumed: nothing is drawn twice, nothing is charged twice."""

import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

from pairveil.engine import checkpoint
from pairveil.engine.checkpoint import _CHECK, _HEAD, CheckpointLock, name_of
from pairveil.errors import BudgetError, InputError
from pairveil.graph.choosing import design_pairs
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.records.pairset import PairSet
from pairveil.records.scaling import PublicBounds

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
learner(ledger).fit(make_data(), on_answer=watch, checkpoint=folder + "/fit")
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
        learner(ledger).fit(make_data(), on_answer=watch, checkpoint=path)
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
        make_data(), on_answer=lambda *a: seen.append(a[2]), checkpoint=tmp_path / "fit"
    )
    for old, new in zip(before, seen[:5], strict=True):
        np.testing.assert_array_equal(old, new)
    assert len(seen) == sum(sums["steps"] for sums in fitted.certificate_.plan["releases"])
    assert len(ledger.entries) == 1
    assert ledger.spent() == spent
    assert not (tmp_path / "fit").exists()  # done: nothing to resume
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


@pytest.mark.parametrize("where", ["length", "sum", "last byte"])
def test_a_byte_that_changed_is_damage_and_no_short_tail(tmp_path, where):
    path = tmp_path / "fit"
    stopped_fit(path, after=3)
    content = bytearray(path.read_bytes())
    first_record = content.index(b"\n") + 1
    at = {"length": first_record + 5, "sum": first_record + 150, "last byte": -1}[where]
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged; remove it to start anew, which spends anew"):
        learner().fit(make_data(), checkpoint=path)
    assert path.read_bytes() == content


def sealed(line, records):
    """A checkpoint of these records with sound digests, as a forger would write it."""
    content = line + b"\n"
    for record in records:
        head = _HEAD.pack(len(record), hashlib.sha256(record).digest())
        content += head + _CHECK.pack(zlib.crc32(head)) + record
    return content


FORGED = {
    "not JSON": b"[[[[\n" + bytes(8),
    "deep": b"[" * 3000 + b"\n",
    "a name of bytes": b'["\xff\xfe", [1]]\n' + bytes(8),
    "no name": b"[5, [1]]\n" + bytes(8),
    "another shape": b'["survey", [999999999999]]\n' + bytes(8),
    "a shape below 0": b'["survey", [-1]]\n' + bytes(8),
    "a shape of text": b'["survey", "1"]\n' + bytes(8),
    "half a number": b'["survey", [1]]\n' + bytes(7),
    "NaN": b'["survey", [1]]\n' + np.array([np.nan]).tobytes(),
    "infinity": b'["survey", [1]]\n' + np.array([np.inf]).tobytes(),
    "1e308": b'["survey", [1]]\n' + np.array([1e308]).tobytes(),
    "an array of NumPy": b"survey\n\x93NUMPY\x01\x00v\x00{'descr': '|O'}",
    "nothing": b"",
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_record_that_somebody_else_wrote_is_refused(tmp_path, forged):
    path = tmp_path / "fit"
    stopped_fit(path)
    line = path.read_bytes().partition(b"\n")[0]
    path.write_bytes(sealed(line, [FORGED[forged]]))
    with pytest.raises(InputError, match="this checkpoint is"):
        learner().fit(make_data(), checkpoint=path)


@pytest.mark.parametrize("line", [b"[" * 100_000, b"{}", b"5", b"\xff", b'{"format": 5}', b""])
def test_a_first_line_that_somebody_else_wrote_is_refused(tmp_path, line):
    path = tmp_path / "fit"
    path.write_bytes(line + b"\n")
    assert name_of(path) is None
    with pytest.raises(InputError, match="not a checkpoint of this version"):
        learner().fit(make_data(), checkpoint=path)


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


def test_another_schema_or_other_bounds_are_another_fit(tmp_path):
    data = make_data()
    rows, pairs, y = np.asarray(data.features), data.pairs, data.labels

    def read(high):
        bounds = PublicBounds([-0.5] * 4, [high] * 4)
        return learner(preprocessor=rows, bounds=bounds)

    def stop(*_):
        raise Stop

    with pytest.raises(Stop):
        read(0.5).fit(pairs, y, on_answer=stop, checkpoint=tmp_path / "fit")
    for use in ("certify", "fit"):
        with pytest.raises(InputError, match="another fit"):
            getattr(read(0.6), use)(pairs, y, checkpoint=tmp_path / "fit")
    read(0.5).fit(pairs, y, checkpoint=tmp_path / "fit")


def test_two_fits_cannot_share_a_checkpoint(tmp_path):
    path = tmp_path / "fit"

    def second(*_):
        with pytest.raises(InputError, match="another fit is using"):
            learner().fit(make_data(), checkpoint=path)
        raise Stop

    with pytest.raises(Stop):
        learner().fit(make_data(), on_answer=second, checkpoint=path)


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    where = tmp_path / "ledger.json" if request.param == "file" else None
    return PrivacyLedger(1.2, 1e-5, path=where)


def test_of_two_copies_one_goes_on(tmp_path, ledger):
    path, copy = tmp_path / "fit", tmp_path / "copy"
    seen = stopped_fit(path, ledger)
    shutil.copy(path, copy)
    fitted = learner(ledger).fit(make_data(), checkpoint=path, keep_checkpoint=True)
    with pytest.raises(InputError, match="older copy"):
        learner(ledger).fit(make_data(), checkpoint=copy)
    with pytest.raises(InputError, match="older copy"):
        learner(ledger).certify(make_data(), checkpoint=copy)
    assert len(ledger.entries) == 1
    # A copy that has every sum tells nothing new, and may be used.
    shutil.copy(path, copy)
    same = learner(ledger).fit(make_data(), checkpoint=copy)
    np.testing.assert_array_equal(same.components_, fitted.components_)
    # Which of two copies is resumed is left to whoever comes first.
    other = PrivacyLedger(2.0, 1e-5)
    stopped_fit(tmp_path / "a", other)
    shutil.copy(tmp_path / "a", tmp_path / "b")
    again = stopped_fit(tmp_path / "b", other, after=4)
    assert (again[0] != seen[0]).any()
    with pytest.raises(InputError, match="older copy"):
        learner(other).fit(make_data(), checkpoint=tmp_path / "a")


@pytest.mark.parametrize("kept", ["first line", "first sum", "all but the last byte"])
def test_a_finished_fit_cannot_be_cut_back_and_drawn_anew(tmp_path, ledger, kept):
    path = tmp_path / "fit"
    learner(ledger).fit(make_data(), checkpoint=path, keep_checkpoint=True)
    content = path.read_bytes()
    line = content.index(b"\n") + 1
    (length,) = struct.unpack_from("<Q", content, line)
    cut = {"first line": line, "first sum": line + 44 + length, "all but the last byte": -1}[kept]
    path.write_bytes(content[:cut])
    with pytest.raises(InputError, match="older copy, or damaged"):
        learner(ledger).fit(make_data(), checkpoint=path)
    assert len(ledger.entries) == 1


def test_a_snapshot_of_a_running_fit_is_an_older_copy(tmp_path, ledger):
    """What was drawn after it may have been seen, although its process was killed."""
    path, snapshot = tmp_path / "fit", tmp_path / "snapshot"
    seen = []

    def watch(*_):
        seen.append(1)
        if len(seen) == 2:
            shutil.copy(path, snapshot)
        if len(seen) == 3:
            raise Stop

    with pytest.raises(Stop):
        learner(ledger).fit(make_data(), on_answer=watch, checkpoint=path)
    with pytest.raises(InputError, match="older copy"):
        learner(ledger).fit(make_data(), checkpoint=snapshot)
    learner(ledger).fit(make_data(), checkpoint=path)


@pytest.mark.parametrize("link", [shutil.copy, os.link], ids=["copy", "hard link"])
def test_of_two_copies_at_the_same_time_one_goes_on(tmp_path, ledger, link):
    path, twin, used = tmp_path / "fit", tmp_path / "twin", []
    stopped_fit(path, ledger, after=1)
    link(path, twin)
    seen = []

    def overtake(*_):
        """After the first sum, which both have, the twin runs to its end."""
        seen.append(1)
        if len(seen) == 1:
            done = learner(ledger).fit(make_data(), checkpoint=twin, keep_checkpoint=True)
            used.append(done.components_)

    with pytest.raises(InputError, match=r"another run has resumed|another fit wrote"):
        learner(ledger).fit(make_data(), on_answer=overtake, checkpoint=path)
    assert len(seen) == len(used) == 1  # the second sum was seen by nobody
    assert len(ledger.entries) == 1
    if link is shutil.copy:
        with pytest.raises(InputError, match="older copy"):
            learner(ledger).fit(make_data(), checkpoint=path)


def test_two_writers_stop_without_a_ledger_too(tmp_path):
    path, twin = tmp_path / "fit", tmp_path / "twin"
    stopped_fit(path, after=1)
    os.link(path, twin)

    def overtake(*_):
        stopped_fit(twin, after=3)

    with pytest.raises(InputError, match="another fit wrote"):
        learner().fit(make_data(), on_answer=overtake, checkpoint=path)
    path.unlink()
    with pytest.raises(InputError, match="was removed"):
        learner().fit(make_data(), on_answer=lambda *_: path.unlink(), checkpoint=path)


def die_before_the_ledger_knows(self, name, known, reached):
    if known != reached:
        raise Stop


def test_a_kill_between_file_and_ledger_costs_nothing(tmp_path, ledger, monkeypatch):
    path, seen = tmp_path / "fit", []
    stopped_fit(path, ledger, after=2)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(PrivacyLedger, "advance", die_before_the_ledger_knows)
        with pytest.raises(Stop):
            learner(ledger).fit(make_data(), checkpoint=path)
    ahead = path.read_bytes()  # by one sum
    assert len(ahead) > len(before)
    learner(ledger).fit(make_data(), checkpoint=path, on_answer=lambda *a: seen.append(a[2]))
    assert ahead.endswith(seen[2].tobytes())
    assert len(ledger.entries) == 1


def test_a_sum_that_the_ledger_did_not_know_is_used_once(tmp_path, monkeypatch):
    """Two files, each ahead of the ledger by a sum of its own: one of the two counts."""
    ledger, files = PrivacyLedger(2.0, 1e-5), [tmp_path / "a", tmp_path / "b"]
    stopped_fit(files[0], ledger, after=2)
    shutil.copy(*files)

    with monkeypatch.context() as patch:
        patch.setattr(PrivacyLedger, "advance", die_before_the_ledger_knows)
        for path in files:
            with pytest.raises(Stop):
                learner(ledger).fit(make_data(), checkpoint=path)
    assert files[0].read_bytes() != files[1].read_bytes()
    stopped_fit(files[0], ledger, after=3)  # reads the third sum back, draws nothing
    with pytest.raises(InputError, match="older copy"):
        learner(ledger).fit(make_data(), checkpoint=files[1])


def test_a_charge_pays_for_its_own_fit_only(tmp_path):
    """The name of a cheap fit's charge, written into the checkpoint of a dear one."""
    ledger = PrivacyLedger(0.2, 1e-5)
    cheap, dear = tmp_path / "cheap", tmp_path / "dear"
    with pytest.raises(Stop):
        learner(ledger, epsilon=0.1).fit(make_data(), checkpoint=cheap, on_answer=stop)
    with pytest.raises(BudgetError):
        learner(ledger, epsilon=8.0).fit(make_data(), checkpoint=dear)
    names = [json.loads(path.read_bytes().partition(b"\n")[0])["name"] for path in (cheap, dear)]
    edited = dear.read_text().replace(names[1], names[0])
    dear.write_text(edited)
    with pytest.raises(InputError, match="charged for another fit"):
        learner(ledger, epsilon=8.0).fit(make_data(), checkpoint=dear)
    # Not even where the ledger was told that this file is what it knows.
    entry = ledger.entries[0]
    ledger.advance(*entry.checkpoint, hashlib.sha256(edited.encode()).hexdigest())
    with pytest.raises(InputError, match="charged for another fit"):
        learner(ledger, epsilon=8.0).fit(make_data(), checkpoint=dear)
    assert len(ledger.entries) == 1


def stop(*_):
    raise Stop


def test_the_same_pairs_of_other_people_are_another_charge(tmp_path):
    ledger, data = PrivacyLedger(3.0, 1e-5), make_data()

    def named(start):
        ids = np.arange(start, start + data.n_people)
        return PairSet(data.features, data.pairs, data.labels, ids=ids)

    with pytest.raises(Stop):
        learner(ledger).fit(named(0), checkpoint=tmp_path / "fit", on_answer=stop)
    with pytest.raises(InputError, match="charged for another fit"):
        learner(ledger).fit(named(7), checkpoint=tmp_path / "fit")
    learner(ledger).fit(named(0), checkpoint=tmp_path / "fit")
    assert len(ledger.entries) == 1


def test_a_link_is_the_file_it_leads_to(tmp_path):
    path, link = tmp_path / "fit", tmp_path / "link"
    link.symlink_to(path)

    def second(*_):
        with pytest.raises(InputError, match="another fit is using"):
            learner().fit(make_data(), checkpoint=path)
        with pytest.raises(InputError, match="another fit is using"):
            CheckpointLock(path)
        raise Stop

    with pytest.raises(Stop):
        learner().fit(make_data(), on_answer=second, checkpoint=link)
    assert path.exists()
    with CheckpointLock(link) as held:
        held.remove()
    assert not path.exists()


def test_a_run_that_is_about_to_start_keeps_its_lock(tmp_path, monkeypatch):
    """A has fitted and writes its result; B holds the checkpoint already when A removes it; C comes."""
    path, ledger = tmp_path / "fit", PrivacyLedger(30.0, 1e-5, path=tmp_path / "ledger.json")
    a = learner(ledger).fit(make_data(), checkpoint=path, keep_checkpoint=True)
    digest, met = checkpoint.fit_digest, []

    def while_b_starts(*arguments):
        monkeypatch.setattr(checkpoint, "fit_digest", digest)
        met.append(1)
        with pytest.raises(InputError, match="another fit is using"):
            CheckpointLock(path)
        with pytest.raises(InputError, match="another fit is using"):
            learner(ledger).fit(make_data(), checkpoint=path)
        return digest(*arguments)

    monkeypatch.setattr(checkpoint, "fit_digest", while_b_starts)
    b = learner(ledger).fit(make_data(), checkpoint=path)
    assert met
    np.testing.assert_array_equal(a.components_, b.components_)
    assert len(ledger.entries) == 1


def test_a_hold_lasts_until_its_maker_lets_go(tmp_path):
    path, ledger = tmp_path / "fit", PrivacyLedger(30.0, 1e-5)
    with CheckpointLock(path) as held:
        learner(ledger).fit(make_data(), checkpoint=held, keep_checkpoint=True)
        with pytest.raises(InputError, match="another fit is using"):
            learner(ledger).fit(make_data(), checkpoint=path)
        held.remove()
    learner(ledger).fit(make_data(), checkpoint=path)
    assert len(ledger.entries) == 2


def test_the_file_holds_nothing_but_released_sums_and_public_things(tmp_path):
    stopped_fit(tmp_path / "fit", after=2)
    data, content = make_data(), (tmp_path / "fit").read_bytes()
    assert len(content) < 2000
    assert data.features[0].tobytes()[:16] not in content
    assert data.labels.tobytes()[:64] not in content
