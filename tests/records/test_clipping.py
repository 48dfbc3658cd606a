"""Clipping rows: by each row's own length, never above the bound."""

import numpy as np
import pytest
from scipy import sparse

from pairveil.errors import InputError
from pairveil.records.validation import clip_rows, exact_row_norms


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e30])
def test_only_long_rows_change_and_none_stays_longer(dtype, kind, scale):
    rng = np.random.default_rng(1)
    values = (rng.normal(size=(200, 17)) * scale).astype(dtype)
    values[3] = 0
    bound = 4.0 * scale
    clipped, n_clipped = clip_rows(kind(values), bound)
    dense = clipped.toarray() if sparse.issparse(clipped) else clipped
    # The oracle: sums of squares in extended precision.
    norms = np.sqrt((values.astype(np.longdouble) ** 2).sum(axis=1))
    after = np.sqrt((dense.astype(np.longdouble) ** 2).sum(axis=1))
    assert dense.dtype == dtype
    assert 0 < n_clipped < 200
    assert n_clipped == (norms > bound).sum()
    assert (after <= bound).all()
    np.testing.assert_allclose(after[norms > bound].astype(float), bound, rtol=1e-6)
    np.testing.assert_array_equal(dense[norms <= bound], values[norms <= bound])
    assert clip_rows(clipped, bound)[1] == 0


def test_a_row_is_clipped_the_same_whoever_else_is_there():
    values = np.random.default_rng(2).normal(size=(5, 4))
    alone = clip_rows(values[:1], 0.5)[0]
    np.testing.assert_array_equal(clip_rows(values, 0.5)[0][:1], alone)


def test_nothing_to_clip_returns_the_same_object():
    values = np.full((3, 2), 0.1)
    assert clip_rows(values, 1.0)[0] is values


def test_integers_are_clipped_as_floats():
    clipped, n_clipped = clip_rows(np.array([[3, 4], [0, 1]]), 1.0)
    np.testing.assert_allclose(clipped, [[0.6, 0.8], [0, 1]])
    assert n_clipped == 1


def test_norms_do_not_overflow_and_see_entries_stored_twice():
    np.testing.assert_allclose(exact_row_norms(np.array([[3e300, 4e300]])), [5e300])
    twice = sparse.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), (1, 2))
    assert exact_row_norms(twice).tolist() == [3.0]
    assert twice.nnz == 2  # the caller's matrix is left alone


@pytest.mark.parametrize("bound", [0.0, -1.0, np.inf, np.nan])
def test_a_bound_that_bounds_nothing_is_refused(bound):
    with pytest.raises(InputError, match="positive"):
        clip_rows(np.ones((1, 1)), bound)
