"""A process killed at any step of writing leaves the old or the new content under the name."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
SCRIPT = Path(__file__).with_name("kill_saving.py")


def saved(tmp_path, *words):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert len(seen) > 5  # steps at which it was killed
    assert [died for died, *_ in seen] == [True] * (len(seen) - 1) + [False]
    return seen


def test_a_release_that_is_replaced_is_the_old_or_the_new_one_at_every_moment(tmp_path):
    seen = saved(tmp_path, "exchange", "overwrite")
    states = [at_once for _, at_once, *_ in seen]
    assert set(states) == {"old", "new"}
    assert states == sorted(states, reverse=True)  # once it is the new one it stays so
    for _, at_once, recovered, after, left in seen:
        assert recovered == at_once
        assert after == "next"
        assert left == ["release"]  # no drafts, whatever was left by the kill


def test_where_folders_cannot_be_exchanged_the_next_start_repairs(tmp_path):
    seen = saved(tmp_path, "apart", "overwrite")
    assert {at_once for _, at_once, *_ in seen} == {"old", "new", "nothing"}
    assert all(
        recovered == ("new" if at_once == "nothing" else at_once)
        for _, at_once, recovered, *_ in seen
    )
    assert all(after == "next" and left == ["release"] for *_, after, left in seen)


def test_a_first_release_is_whole_or_not_there(tmp_path):
    seen = saved(tmp_path, "exchange", "first")
    assert {at_once for _, at_once, *_ in seen} == {"nothing", "new"}
    assert all(after == "next" and left == ["release"] for *_, after, left in seen)


def test_a_key_is_whole_after_the_next_start_and_nothing_else_is_left(tmp_path):
    for _, fits, left in saved(tmp_path, "key"):
        assert fits
        assert left == ["k.pem", "k.pem.pub"]


def test_a_signature_that_was_killed_is_made_by_the_next_one_and_covers_all(tmp_path):
    assert all(holds and uncovered == [] for _, holds, uncovered in saved(tmp_path, "signature"))
