"""The whole way in Python: design pairs, label them, learn privately, certify, release, use.

Run it: python examples/patients.py
"""

import numpy as np

from pairveil import DPPMetricLearner, ReleasedMetric, design_pairs, kappa
from pairveil.evaluation.scores import pair_auc
from pairveil.records.embedded import label_pairs, load_patients

patients = load_patients()  # 569 people, 30 measures, scaled by public bounds
X, diagnosis = patients.features.values, patients.classes
order = np.random.default_rng(0).permutation(len(X))
train, test = order[:398], order[398:]

pairs = design_pairs(len(train), how="paths", random_state=0)  # which pairs to label
y = label_pairs(pairs, diagnosis[train])  # the doctor's answers: +1 same, -1 different
print(f"{len(pairs)} pairs, kappa {kappa(pairs).relationship} at relationship level")

# No random_state: entropy of the operating system and exact discrete noise. This may be released.
learner = DPPMetricLearner(epsilon=1.0, delta=1e-5, preprocessor=X[train]).fit(pairs, y)
metric = ReleasedMetric(learner.components_, learner.certificate_, patients.features.names)
metric.save("patients-release", overwrite=True)

received = ReleasedMetric.load("patients-release")  # on somebody else's machine
print(f"certificate holds: {bool(received.certificate.verify())}")
print(f"epsilon {received.certificate.epsilon:.3f}: {received.certificate.promise()[:60]}...")
before = pair_auc(None, X[test], diagnosis[test], n_pairs=20_000)
after = pair_auc(received.components, X[test], diagnosis[test], n_pairs=20_000)
print(f"pair AUC on {len(test)} other patients: {before:.3f} Euclidean, {after:.3f} private metric")
