"""The ledger between processes: exclusion, and a kill at any moment."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time

import pytest
from filelock import FileLock

from pairveil.errors import InputError, WaitWarning
from pairveil.privacy import ledger as ledger_lock
from pairveil.privacy.events import LaplaceEvent
from pairveil.privacy.ledger import PrivacyLedger

HOLDER = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""

SPENDER = """
import sys
from pairveil.errors import BudgetError
from pairveil.privacy.events import LaplaceEvent
from pairveil.privacy.ledger import PrivacyLedger
ledger = PrivacyLedger.open(sys.argv[1])
print("ready", flush=True)
for turn in range(int(sys.argv[2])):
    try:
        kappas = {"relationship": 1, "person": 1}
        ledger.spend([LaplaceEvent(float(sys.argv[3]))], kappas, note=f"{sys.argv[4]}-{turn}")
    except BudgetError:
        break
    print(f"{sys.argv[4]}-{turn}", flush=True)
"""


def spender(path, turns, scale, name):
    return subprocess.Popen(
        [sys.executable, "-c", SPENDER, str(path), str(turns), str(scale), name],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_share_one_budget(tmp_path):
    path = tmp_path / "budget.json"
    # Pure epsilon at delta 0 adds up exactly: ten spends of 0.1 fit, and only ten.
    ledger = PrivacyLedger(1.05, 0.0, path=path)
    workers = [spender(path, 6, 10.0, f"w{i}") for i in range(3)]
    returned = []
    for worker in workers:
        out, _ = worker.communicate(timeout=300)
        assert worker.returncode == 0
        returned += [line for line in out.split() if line != "ready"]
    assert sorted(returned) == sorted(entry.note for entry in ledger.entries)
    assert len(returned) == 10


def test_a_kill_at_any_moment_leaves_a_valid_ledger(tmp_path):
    path = tmp_path / "budget.json"
    ledger = PrivacyLedger(1e6, 0.0, path=path)
    reported = []
    for round_ in range(4):
        worker = spender(path, 10**6, 1.0, f"k{round_}")
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        time.sleep(0.05 + 0.031 * round_)  # somewhere inside the loop of spends
        worker.kill()
        out = worker.stdout.read()
        worker.stdout.close()
        worker.wait(timeout=300)
        # A line cut by the kill says nothing; a whole line means that spend had returned.
        reported += [line for line in out.split("\n")[:-1] if line]
        json.loads(path.read_text())  # whole at every moment
        recorded = {entry.note for entry in ledger.entries}
        assert set(reported) <= recorded
        # At most one spend per killed process was recorded without having returned.
        assert len(recorded) - len(set(reported)) <= round_ + 1
    assert len(reported) > 4  # the kills came while spends were under way
    # The lock died with its holder: the next spend goes through.
    assert PrivacyLedger.open(path).spend([], {"relationship": 1, "person": 1}) == ledger.spent()


@pytest.fixture
def held(tmp_path):
    """A ledger whose lock another process holds, and that process."""
    path = tmp_path / "budget.json"
    PrivacyLedger(1.0, 1e-5, path=path, unit="person")
    command = [sys.executable, "-c", HOLDER, f"{path}.lock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout.readline() == "held\n"
        yield path, one
        one.kill()


def test_waiting_for_another_process_is_said_and_has_a_limit(held, monkeypatch):
    path, _ = held
    monkeypatch.setattr(ledger_lock, "SAY_AFTER", 0.1)
    monkeypatch.setattr(ledger_lock, "GIVE_UP_AFTER", 0.4)
    before, started = path.read_bytes(), time.monotonic()
    with (
        pytest.warns(WaitWarning, match="another process is using the ledger at .* waiting"),
        pytest.raises(InputError, match=r"nothing was spent\. Look for another pairveil"),
    ):
        PrivacyLedger.open(path)
    assert time.monotonic() - started < 5
    assert path.read_bytes() == before


def test_a_wait_ends_when_the_other_lets_go(held, monkeypatch):
    path, other = held
    monkeypatch.setattr(ledger_lock, "SAY_AFTER", 0.1)
    warn = ledger_lock.warn

    def end_the_other(*arguments):
        other.kill()  # the operating system frees what it held
        warn(*arguments)

    monkeypatch.setattr(ledger_lock, "warn", end_the_other)
    with pytest.warns(WaitWarning):
        ledger = PrivacyLedger.open(path)
    assert ledger.spend([LaplaceEvent(2.0)], 1) == 0.5


def test_a_lock_that_a_kill_left_on_a_disk_without_locks_is_said(tmp_path, monkeypatch):
    """Without flock the lock is the file itself, and nobody can tell whose an empty one is."""
    fcntl = pytest.importorskip("fcntl", reason="only where there is flock")

    def no_locks(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    monkeypatch.setattr(ledger_lock, "SAY_AFTER", 0.05)
    monkeypatch.setattr(ledger_lock, "GIVE_UP_AFTER", 0.1)
    path = tmp_path / "budget.json"
    lock = tmp_path / "budget.json.lock"
    lock.touch()
    with (
        pytest.warns(UserWarning, match="flock not supported|another process is using"),
        pytest.raises(InputError, match=r"this disk has no locks \(flock\): then remove it"),
    ):
        PrivacyLedger(1.0, 1e-5, path=path, unit="person")
    lock.unlink()
    with pytest.warns(UserWarning, match="flock not supported"):
        PrivacyLedger(1.0, 1e-5, path=path, unit="person")


def test_a_ledger_that_cannot_be_written_names_no_fresh_budget(tmp_path, monkeypatch):
    ledger = PrivacyLedger(1.0, 1e-5, path=tmp_path / "budget.json", unit="person")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match=r"not enough room .* do not start another") as caught:
        ledger.spend([LaplaceEvent(2.0)], 1)
    assert "name another place" not in str(caught.value)
    assert ledger.entries == ()


def test_a_ledger_with_a_second_name_is_refused(tmp_path):
    """A write replaces the file under one name only: each name would have a budget of its own."""
    ledger = PrivacyLedger(1.0, 1e-5, path=tmp_path / "budget.json", unit="person")
    os.link(tmp_path / "budget.json", tmp_path / "other.json")
    for use in (
        lambda: ledger.spend([LaplaceEvent(2.0)], 1),
        lambda: PrivacyLedger.open(tmp_path / "other.json"),
    ):
        with pytest.raises(InputError, match="second name on its disk"):
            use()
    (tmp_path / "other.json").unlink()
    assert ledger.spend([LaplaceEvent(2.0)], 1) == 0.5


def test_a_folder_that_takes_no_lock_is_said(tmp_path, monkeypatch):
    ledger = PrivacyLedger(1.0, 1e-5, path=tmp_path / "budget.json", unit="person")

    def refuse(self, *_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(FileLock, "acquire", refuse)
    with pytest.raises(InputError, match="cannot be locked: Permission denied"):
        ledger.spend([LaplaceEvent(2.0)], 1)
