"""The benchmark of a network: same draws for all, every method at its own unit."""

import math
import os

import numpy as np
import pytest

pytest.importorskip("torch", reason="pairveil.deep needs the extra 'torch'")
pytest.importorskip("matplotlib", reason="glyphs are drawn in matplotlib's fonts")

from benchmarks.glyphs import draw_glyphs

from benchmarks import deep


def test_glyphs_are_drawn_by_their_seed():
    images, digits = draw_glyphs(200, seed=3)
    again, _ = draw_glyphs(200, seed=3)
    np.testing.assert_array_equal(images, again)
    assert set(digits) == set(range(10))
    ink = images.reshape(200, -1).max(axis=1)
    assert (ink > 0.5).all()  # nobody is off the page
    assert not np.array_equal(images, draw_glyphs(200, seed=4)[0])


def test_pairs_as_examples_pay_group_privacy():
    """(e, d) for one pair is (2e, d (1 + exp(e))) for the two of a person."""
    epsilon = 4.0
    assert deep.half_delta(epsilon) * (1 + math.exp(epsilon / 2)) == pytest.approx(deep.DELTA)


LINEAR = pytest.param(
    deep.linear,
    marks=pytest.mark.skipif(
        not os.environ.get("PAIRVEIL_NIGHTLY"), reason="PAIRVEIL_NIGHTLY is not set"
    ),
)


@pytest.mark.parametrize("linear", [deep.euclid, LINEAR])
def test_every_method_is_measured(monkeypatch, linear):
    """By day with Euclid for the linear metric, whose fits take longest and are tested elsewhere."""
    monkeypatch.setitem(deep.METHODS, "linear metric", linear)
    small = {"N_TEST": 200, "PAIRS_A_STEP": 64, "GROUPS_A_STEP": 16}
    for name, value in small.items():
        monkeypatch.setattr(deep, name, value)
    monkeypatch.setattr(deep, "CHOSEN", dict.fromkeys(deep.CHOSEN, deep.Taught(1, 0.3, 0.01)))
    monkeypatch.setattr(deep, "find_spec", lambda name: None)  # without Opacus
    deep._split.cache_clear()
    said = []
    result = deep.run([400], [8.0], seeds=1, progress=said.append)
    deep._split.cache_clear()
    assert len(result["rows"]) == len(said) == 4 + 2 + 3
    assert {row["unit"] for row in result["rows"]} == {None, "relationship", "person"}
    assert all(0.3 < row["pair_auc"] <= 1 for row in result["rows"])
