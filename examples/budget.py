"""Three fits from one purse; the third is refused before any noise is drawn.

Run it: python examples/budget.py
"""

from pathlib import Path

from pairveil import BudgetError, DPPMetricLearner, PairSet, PrivacyLedger, design_pairs
from pairveil.records.embedded import label_pairs, load_patients

patients = load_patients()
pairs = design_pairs(569, how="paths", random_state=0)
# With ids the ledger can tell that every fit uses the very same pairs.
data = PairSet(
    patients.features.values,
    pairs,
    label_pairs(pairs, patients.classes),
    ids=patients.features.ids,
)

Path("budget.json").unlink(missing_ok=True)  # an example starts anew; a real ledger never does
ledger = PrivacyLedger(epsilon=1.2, delta=1e-5, path="budget.json")
for number in range(1, 4):
    learner = DPPMetricLearner(epsilon=0.7, accountant=ledger)
    try:
        learner.fit(data)
    except BudgetError as refused:
        print(f"fit {number} refused: {refused}")
    else:
        print(f"fit {number} done: epsilon {ledger.spent():.3f} of {ledger.epsilon:g} is spent")
print(f"for persons the same two fits cost {ledger.spent(unit='person'):.3f}")
