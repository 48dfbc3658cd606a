"""Pairs in LFW's format, and a promise about people instead of images; see docs/guides/record-linkage.md.

Run it: python examples/faces.py
"""

from collections import Counter

import numpy as np

from pairveil import DPPMetricLearner, PairSet, read_features, read_pairs

rng = np.random.default_rng(3)
names = [f"Person_{i}" for i in range(300)]
with open("pairs.txt", "w") as file:
    print("1\t300", file=file)
    for name in names:
        print(f"{name}\t1\t2", file=file)
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        print(f"{name}\t3\t{other}\t3", file=file)

who = np.repeat(np.arange(300), 3)  # three images each
centre = rng.normal(size=(300, 16)) * np.r_[np.ones(4), np.full(12, 0.2)]
embeddings = centre[who] + 0.6 * rng.normal(size=(900, 16)) * np.r_[np.full(4, 0.3), np.ones(12)]
embeddings /= (1 + 1e-9) * np.linalg.norm(
    embeddings, axis=1, keepdims=True
)  # 1, not 1.0000000000000002
ids = [f"{names[person]}_{1 + at % 3:04d}" for at, person in enumerate(who)]
np.savez("faces.npz", X=embeddings, ids=np.array(ids))

pairs = read_pairs("pairs.txt")
print(*pairs.notes, sep="\n")
touched = Counter(
    person
    for pair in zip(pairs.left, pairs.right, strict=True)
    for person in {image.rsplit("_", 1)[0] for image in pair}
)
most = max(touched.values())  # pairs that touch one person's images: public, read off the ids
print(f"one person is in at most {most} pairs")

data = PairSet.join(read_features("faces.npz"), pairs)
learner = DPPMetricLearner(epsilon=4.0, unit="person", kappa=most).fit(data)
print(f"epsilon {learner.certificate_.epsilon:.2f} for all pairs of a person")
