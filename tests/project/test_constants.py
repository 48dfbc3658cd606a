"""The tables of fitted numbers: at most twenty of a kind, each described and measured."""

from __future__ import annotations

import pytest
from tools.constants import KINDS, MOST, changed, moved, numbers_of, read, variants

NUMBERS = {name: numbers_of(kind.module.NUMBERS) for name, kind in KINDS.items()}
EACH = [(kind, name) for kind, numbers in NUMBERS.items() for name in numbers]
RESULTS = read()


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_at_most_twenty_fitted_numbers_each_with_meaning_and_origin(kind):
    assert len(NUMBERS[kind]) <= 20
    assert all(known.meaning and known.origin for _, known in NUMBERS[kind].values())


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_a_number_is_changed_and_put_back(kind, name):
    with changed(KINDS[kind], name, 2.0):
        double = 2 * NUMBERS[kind][name][0]
        assert getattr(KINDS[kind].module.NUMBERS, name) == min(double, MOST.get(name, double))
    assert numbers_of(KINDS[kind].module.NUMBERS) == NUMBERS[kind]


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_the_table_says_what_was_measured(kind, name):
    known = NUMBERS[kind][name][1]
    for which in ("halved", "doubled"):
        found = moved(RESULTS[kind], name, which)[0]
        assert getattr(known, which) == pytest.approx(found, abs=0.0006)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_run_is_about_these_numbers(kind):
    assert set(RESULTS[kind]) == {name for name, _, _ in variants(KINDS[kind])}
