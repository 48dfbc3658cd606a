"""The same people, four choices of pairs: what kappa does to the noise.

Run it: python examples/choosing_pairs.py
"""

import numpy as np

from pairveil import kappa, select_pairs
from pairveil.privacy.calibrate import calibrate_gaussian

rng = np.random.default_rng(0)
people = 1000
drawn = np.unique(np.sort(rng.integers(0, people, size=(2050, 2)), axis=1), axis=0)
drawn = drawn[drawn[:, 0] != drawn[:, 1]]

print("pairs      used  kappa  noise of one full-batch sum, relative to the pairs")
for how in ("all", "forest", "paths", "matching"):
    used = drawn[select_pairs(drawn, how, random_state=0)]
    group = kappa(used).relationship
    noise = calibrate_gaussian(
        1.0, 1e-5, kappa=group, adjacency="zero-out", sample_rate=1.0, steps=1
    )
    print(f"{how:9}  {len(used):4}  {group:5}  {noise / len(used):.4f}")
