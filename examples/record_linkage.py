"""Learn what each field is worth from Splink's clerical labels; the guide is docs/guides/record-linkage.md.

Run it: python examples/record_linkage.py
"""

import csv
import zlib

import numpy as np

from pairveil import DPPMetricLearner, PairSet, kappa, read_features, read_pairs

rng = np.random.default_rng(7)
letters = np.array(list("aeioubdglmnrst"))


def hashed(name: str, width: int = 8) -> np.ndarray:
    """Bigrams of a name in a few columns; the rule is public and looks at one record alone."""
    row = np.zeros(width)
    for at in range(len(name) - 1):
        row[zlib.crc32(name[at : at + 2].encode()) % width] += 1
    return row / max(float(np.linalg.norm(row)), 1.0)


def typo(name: str) -> str:
    at = int(rng.integers(len(name)))
    return name[:at] + str(rng.choice(letters)) + name[at + 1 :]


# 400 people, two records each; addresses differ since people move.
people = [("".join(rng.choice(letters, 8)), rng.random()) for _ in range(400)]
rows = [
    np.concatenate([hashed(typo(name)), [year], rng.random(2)]) / 2
    for name, year in people
    for _ in range(2)
]
columns = [f"name_{i}" for i in range(8)] + ["birth_year", "east", "north"]
with open("records.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["unique_id", *columns])
    table.writerows([f"r{i}", *row] for i, row in enumerate(rows))
with open("labels.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["unique_id_l", "unique_id_r", "clerical_match_score"])
    table.writerows(
        [f"r{i}", f"r{i + 1}", 0.97 if i % 2 == 0 else 0.04] for i in range(len(rows) - 1)
    )

records = read_features("records.csv", id="unique_id")
labels = read_pairs("labels.csv", threshold=0.5)  # Splink's columns are recognised
data = PairSet.join(records, labels, data_norm=1.0)
print(f"{data}, kappa {kappa(data).relationship}")

learner = DPPMetricLearner(epsilon=2.0).fit(data)
weight = np.linalg.norm(learner.components_, axis=0)
names, homes = float(weight[:9].mean()), float(weight[9:].mean())
print(f"weight of name and birth year {names:.2f}, of the address {homes:.2f}")
