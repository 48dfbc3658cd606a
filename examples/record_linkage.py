"""From clerical labels to match weights that a partner may have, and a threshold for them."""

import numpy as np

from pairveil import PrivacyLedger, error_curve
from pairveil.linkage import PrivateLinkageModel, ReleasedLinkage, text_levels

rng = np.random.default_rng(7)
letters = np.array(list("aeioubdglmnrst"))
CUTS = {"name": (0.4, 0.7), "year": (0.5,), "sex": ()}
N_LEVELS = [len(cuts) + 2 for cuts in CUTS.values()]


def record(name: str, year: str) -> list[str]:
    """A record of somebody: with a slip in the name, without a year now and then."""
    at = int(rng.integers(8))
    slip = name[:at] + str(rng.choice(letters)) + name[at + 1 :]
    return [
        slip if rng.random() < 0.5 else name,
        year if rng.random() < 0.9 else "",
        str(rng.choice(["f", "m"])),
    ]


people = [("".join(rng.choice(letters, 8)), str(rng.integers(1930, 2005))) for _ in range(2000)]
rows = [record(*person) for person in people for _ in range(2)]
pairs = np.column_stack([np.arange(len(rows) - 1), np.arange(1, len(rows))])
y = np.where(pairs[:, 0] // 2 == pairs[:, 1] // 2, 1, -1)  # what the clerks said
levels = np.column_stack(
    [
        text_levels([rows[a][c] for a in pairs[:, 0]], [rows[b][c] for b in pairs[:, 1]], cuts)
        for c, cuts in enumerate(CUTS.values())
    ]
)

ledger = PrivacyLedger(epsilon=3.5, delta=1e-5)  # chains of pairs run through both sets
learn = np.arange(len(y)) < 2000  # the others are for the threshold
model = PrivateLinkageModel(epsilon=1.0, accountant=ledger)
model.fit(levels[learn], y[learn], pairs[learn], N_LEVELS).release("linkage")
print(f"kappa {model.kappa_}, certificate holds: {bool(model.certificate_.verify())}")
for name, m, u in zip(CUTS, model.m_, model.u_, strict=True):
    print(f"{name:5}", " ".join(f"{bits:6.1f}" for bits in np.log2(m / u)), "bits, level by level")

received = ReleasedLinkage.load("linkage")  # all that the partner has
scores = received.match_weights(levels[~learn])
curve = error_curve(
    scores, y[~learn], pairs[~learn], 1.0, 1e-5, score_range=(-40, 40), accountant=ledger
)
threshold = curve.threshold(fmr=0.1)
low, high = curve.fmr_at(threshold)
print(
    f"match from {threshold:.1f} bits: {low:.0%} to {high:.0%} false matches; spent {ledger.spent():.2f}"
)
