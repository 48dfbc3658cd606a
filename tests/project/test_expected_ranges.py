"""What is said to be expected comes from the committed runs, and holds where it was not fitted."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tools.expected_ranges import (
    KINDS,
    MODULE,
    Runs,
    held,
    knots_of,
    left_out,
    module_text,
    read_runs,
)
from tools.expected_runs import TABLES

from pairveil.learners.outlook import range_at


@pytest.fixture(scope="module", params=KINDS, ids=["pairs", "people"])
def results(request):
    return request.param


@pytest.fixture(scope="module")
def runs(results) -> Runs:
    return read_runs(json.loads(results.read_text()))


def test_the_module_is_what_the_script_makes():
    assert MODULE.read_text() == module_text()


def test_every_table_was_run(results):
    done = json.loads(results.read_text())["tables"]
    assert {one["table"] for one in done} == {table.name for table in TABLES}


@pytest.mark.parametrize("pure", [False, True])
def test_an_80_per_cent_range_holds_on_tables_left_out(runs, pure):
    # The runs are committed: nothing here is random.
    mine = runs.only(runs.pure == pure)
    assert 0.7 <= np.average(left_out(mine, str), weights=mine.weight) <= 0.9


def test_a_range_that_is_too_narrow_is_found_out(runs):
    mine = runs.only(~runs.pure)
    knots = knots_of(mine)
    middle = tuple((s, (a + b) / 2, (a + b) / 2) for s, a, b in knots)
    speaks = np.array([range_at(knots, s)[1] > 0 for s in mine.signal])
    assert np.average(held(middle, mine)[speaks]) < 0.5
