"""The embedded data: scaled by literals, no row longer than 1, nothing clipped."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from pairveil.errors import InputError
from pairveil.records import embedded
from pairveil.records.embedded import (
    label_pairs,
    load_digits,
    load_patients,
    load_students,
    patient_bounds,
    student_schema,
    student_table,
)
from pairveil.records.validation import clip_rows


@pytest.mark.parametrize(
    ("load", "shape", "n_classes"), [(load_patients, (569, 30), 2), (load_digits, (1797, 64), 10)]
)
def test_rows_are_within_the_unit_ball_without_clipping(load, shape, n_classes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = load()
    values = data.features.values
    assert values.shape == shape
    assert clip_rows(values, 1.0)[1] == 0
    assert values.min() >= 0
    assert values.max() <= 1 / np.sqrt(shape[1])
    assert len(data.classes) == shape[0]
    assert len(np.unique(data.classes)) == n_classes == len(data.class_names)


def test_students_are_scaled_by_their_schema_and_nobody_is_clipped_or_cut():
    students, schema = load_students(), student_schema()
    assert clip_rows(students.features.values, 1.0)[1] == 0
    assert students.features.names == schema.feature_names
    assert np.bincount(students.classes).tolist() == [7120, 6190]
    _, counts = schema.encode(student_table())
    assert not any(one.outside or one.unreadable for name, one in counts.items() if name != "grade")


def test_patient_bounds_are_those_of_their_columns_and_cut_nobody():
    bunch, bounds = load_breast_cancer(), patient_bounds()
    assert bounds.names == tuple(bunch.feature_names)
    assert (bunch.data >= bounds.lower).all()
    assert (bunch.data <= bounds.upper).all()
    # ... and are not so wide that the demo's features would all be small.
    assert (
        (bunch.data.max(axis=0) - bunch.data.min(axis=0)) / (bounds.upper - bounds.lower) > 0.7
    ).all()


def test_scaling_is_undone_by_the_bounds_alone():
    bunch, bounds = load_breast_cancer(), patient_bounds()
    values = load_patients().features.values * np.sqrt(30)
    np.testing.assert_allclose(values * (bounds.upper - bounds.lower) + bounds.lower, bunch.data)


def test_class_names_are_scikit_learn_s():
    assert load_patients().class_names == tuple(load_breast_cancer().target_names)


def test_no_bound_is_computed_from_the_rows():
    source = inspect.getsource(embedded)
    assert not any(word in source for word in (".min(", ".max(", "quantile", "np.min", "np.max"))


def test_label_pairs():
    labels = label_pairs(np.array([[0, 1], [2, 0], [2, 1]]), np.array([5, 6, 5]))
    assert labels.tolist() == [-1, 1, -1]
    assert labels.dtype == np.int8
    with pytest.raises(InputError, match="outside"):
        label_pairs([[0, 3]], [1, 1, 2])
    with pytest.raises(InputError, match="one a person"):
        label_pairs([[0, 1]], [[1], [2]])
