"""Many columns: the blended metric comes from its few learned rows, not from a square decomposition."""

from __future__ import annotations

import time

import numpy as np
import pytest

from pairveil.learners.recipes import across, with_euclid


def decomposed(learned: np.ndarray, euclid: float) -> np.ndarray:
    """The same metric by the singular values of the whole stack."""
    stacked = np.vstack([learned, euclid * np.eye(learned.shape[1])])
    _, s, Vt = np.linalg.svd(stacked, full_matrices=False)
    return s[:, None] * Vt


@pytest.mark.parametrize(("k", "d"), [(1, 1), (1, 4), (2, 5), (3, 3), (7, 4), (5, 60)])
@pytest.mark.parametrize("euclid", [0.1, 1.0, 30.0])
def test_the_metric_is_that_of_the_whole_stack(k: int, d: int, euclid: float) -> None:
    rng = np.random.default_rng(k * d)
    W = rng.normal(size=(k, d))
    W[:, rng.random(d) < 0.3] = 0.0  # as shrinking leaves them
    W *= rng.uniform(0.5, 3.0, d)
    found, whole = with_euclid(W, euclid), decomposed(W, euclid)
    assert found.shape == whole.shape
    np.testing.assert_allclose(
        found.T @ found, whole.T @ whole, atol=1e-12 * np.abs(whole).max() ** 2
    )
    lengths = np.linalg.norm(found, axis=1)
    np.testing.assert_allclose(lengths, np.linalg.norm(whole, axis=1), rtol=1e-12)
    assert np.all(np.abs(found).max(axis=1) == found.max(axis=1))  # the largest entry is positive


def test_across_is_an_orthonormal_basis_of_the_rest() -> None:
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 6)))
    for Vt in (Q.T, -Q.T, np.eye(6, 40), -np.eye(6, 40)):
        whole = np.vstack([Vt, across(Vt)])
        np.testing.assert_allclose(whole @ whole.T, np.eye(40), atol=1e-14)


def test_two_thousand_columns_take_no_longer_than_a_product() -> None:
    rng = np.random.default_rng(0)
    W = rng.normal(size=(10, 2000))
    start = time.process_time()
    with_euclid(W, 0.1)
    assert time.process_time() - start < 2.5  # the decomposition took 5 s and more
