"""The table of fitted numbers is about the numbers that stand in the source."""

from __future__ import annotations

import json

import pytest
from tools.constants import CONSTANTS, RESULTS, USUAL, changed, source_of, variants

from pairveil.learners.contrastive import doubt


@pytest.mark.parametrize("constant", CONSTANTS, ids=lambda one: f"{one.module}-{one.said()}")
def test_each_number_stands_once_in_its_module(constant):
    _, text, snippet = source_of(constant)
    assert snippet in text


def test_a_number_is_changed_and_put_back():
    (luck,) = [one for one in CONSTANTS if one.said() == "LUCK"]
    usual = doubt.doubt(0.02, 0.002, 0.1), doubt.doubt(0.05, 0.002, 0.1)
    before = doubt.doubt
    with changed(luck, 2.0):
        assert 2 * luck.value == doubt.LUCK
        assert before(0.05, 0.002, 0.1) > usual[1]
    assert luck.value == doubt.LUCK
    assert (doubt.doubt(0.02, 0.002, 0.1), doubt.doubt(0.05, 0.002, 0.1)) == usual


def test_what_was_run_is_about_these_numbers():
    done = set(json.loads(RESULTS.read_text()))
    assert USUAL in done
    assert done <= {name for name, _, _ in variants()}
