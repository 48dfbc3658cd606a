"""Compile the loops of ordinary fits, once: two test processes that start together would both do it.

Run as ``python -m tools.compile_loops``. numba keeps what it compiled beside the sources; where it is there
already, this takes as long as the imports.
"""

import warnings

import numpy as np
from scipy import sparse

from pairveil import DPPMetricLearner, design_pairs


def main() -> None:
    """Fit dense and sparse rows, in full and in Poisson batches, with exact noise."""
    X = np.random.default_rng(0).normal(size=(300, 3)) / 4
    pairs = design_pairs(300, how="paths", random_state=0)
    y = np.where(np.arange(len(pairs)) % 2, 1, -1)
    for rows in (X, sparse.csr_array(X)):
        for options in ({}, {"sample_rate": 0.1, "n_steps": 4}):
            DPPMetricLearner(preprocessor=rows, **options).fit(pairs, y)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # few pairs for a useful metric: none is wanted
    main()
