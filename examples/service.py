"""What an engineer does with a release: load it, search with it, write it for another language.

Run it: python examples/service.py
"""

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from pairveil import ReleasedMetric
from pairveil.release.exporters import to_csv, to_sql
from pairveil.release.sklearn_transformer import MetricTransformer

# Somebody handed us a folder; here it is made by hand.
L = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
ReleasedMetric(L, feature_names=("age", "bmi", "pressure")).save("service-release", overwrite=True)

metric = ReleasedMetric.load("service-release")  # reads numbers, runs no code
people = np.random.default_rng(0).random((100, metric.n_features))
ill = np.where(people[:, 0] > 0.5, "ill", "well")
print(f"distance of two people: {metric.distance(people[:1], people[1:2])[0]:.3f}")

model = make_pipeline(MetricTransformer(metric), KNeighborsClassifier(5))
print(
    f"5 neighbours, on 50 others: {model.fit(people[:50], ill[:50]).score(people[50:], ill[50:]):.2f}"
)
print(to_csv(metric, "metric.csv").read_text().splitlines()[0])
print(to_sql(metric, "metric.sql").name)
