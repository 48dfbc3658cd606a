"""The benchmark of a network: same draws for all, every method at its own unit."""

import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="pairveil.deep needs the extra 'torch'")
pytest.importorskip("matplotlib", reason="glyphs are drawn in matplotlib's fonts")

from pairveil.studies.bench import deep
from pairveil.studies.bench.glyphs import draw_glyphs


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
    assert deep._half_delta(epsilon) * (1 + math.exp(epsilon / 2)) == pytest.approx(deep.DELTA)


def test_every_method_is_measured(monkeypatch):
    monkeypatch.setattr(deep, "STEPS", 1)
    monkeypatch.setattr(deep, "N_TEST", 200)
    said = []
    result = deep.run([400], [8.0], progress=said.append)
    assert len(result["rows"]) == len(said) == 4 + 2 + 3
    assert {row["unit"] for row in result["rows"]} == {None, "relationship", "person"}
    assert all(0.3 < row["pair_auc"] <= 1 for row in result["rows"])
