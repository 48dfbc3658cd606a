"""The table of fitted numbers: at most twenty for pairs, each described and measured."""

from __future__ import annotations

import json

import pytest
from tools.constants import RESULTS, changed, moved, variants

from pairveil.learners.contrastive import recipe
from pairveil.learners.fitted import numbers_of

NUMBERS = numbers_of(recipe.NUMBERS)


def test_pairs_have_at_most_twenty_fitted_numbers_each_with_meaning_and_origin():
    assert len(NUMBERS) <= 20
    assert all(known.meaning and known.origin for _, known in NUMBERS.values())


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_changed_and_put_back(name):
    with changed(name, 2.0):
        assert getattr(recipe.NUMBERS, name) == 2 * NUMBERS[name][0]
    assert numbers_of(recipe.NUMBERS) == NUMBERS


@pytest.mark.parametrize("name", NUMBERS)
def test_the_table_says_what_was_measured(name):
    results, known = json.loads(RESULTS.read_text()), NUMBERS[name][1]
    for which in ("halved", "doubled"):
        assert getattr(known, which) == pytest.approx(moved(results, name, which)[0], abs=0.0006)


def test_what_was_run_is_about_these_numbers():
    assert set(json.loads(RESULTS.read_text())) == {name for name, _, _ in variants()}
