"""From clerical labels to match weights that a partner may have, and a threshold for them."""

import numpy as np

from pairveil import PrivacyLedger, error_curve
from pairveil.linkage import PrivateLinkageModel, ReleasedLinkage, make_records, text_levels

CUTS = {"name": (0.4, 0.7), "surname": (0.4, 0.7), "birth": (0.5,), "sex": ()}
N_LEVELS = [len(cuts) + 2 for cuts in CUTS.values()]

records = make_records(
    2000, errors=0.3, random_state=7
)  # made up; two records a person, with slips
pairs = records.path()  # what the clerks were given
y = records.labels(pairs)  # what they said
levels = np.column_stack(
    [
        text_levels(*([records.columns[c][i] for i in side] for side in pairs.T), cuts)
        for c, cuts in CUTS.items()
    ]
)

ledger = PrivacyLedger(epsilon=3.5, delta=1e-5)  # chains of pairs run through both sets
learn = np.arange(len(y)) < 2000  # the others are for the threshold
model = PrivateLinkageModel(epsilon=1.0, accountant=ledger)
model.fit(levels[learn], y[learn], pairs[learn], N_LEVELS).release("linkage")
print(f"kappa {model.kappa_}, certificate holds: {bool(model.certificate_.verify())}")
for name, m, u in zip(CUTS, model.m_, model.u_, strict=True):
    print(f"{name:8}", " ".join(f"{bits:6.1f}" for bits in np.log2(m / u)), "bits, level by level")

received = ReleasedLinkage.load("linkage")  # all that the partner has
scores = received.match_weights(levels[~learn])
curve = error_curve(
    scores, y[~learn], pairs[~learn], 1.0, 1e-5, score_range=(-40, 40), accountant=ledger
)
curve.save("operating-point")  # with its own certificate; any other rate is read off it for nothing
threshold = curve.threshold(fmr=0.1)
low, high = curve.fmr_at(threshold)
print(
    f"match from {threshold:.1f} bits: {low:.0%} to {high:.0%} false matches; spent {ledger.spent():.2f}"
)
