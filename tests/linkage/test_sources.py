"""Where labelled records come from: dedupe's training file, and made-up ones."""

import json
import pickle

import numpy as np
import pytest

from pairveil import InputError
from pairveil.linkage import (
    DedupeClassifier,
    DedupeComparator,
    PrivateLinkageModel,
    from_dedupe,
    make_records,
    text_levels,
)

CUTS = {"name": (0.4, 0.7), "surname": (0.4, 0.7), "birth": (0.5,), "town": (), "sex": ()}


def training(tmp_path, records, path):
    """The format of dedupe's `write_training`: tuples of whole records, ids among the fields."""
    lists = {"distinct": [], "match": []}
    for (a, b), y in zip(path, records.labels(path), strict=True):
        pair = [
            {"id": str(records.ids[i]), **{c: values[i] for c, values in records.columns.items()}}
            for i in (a, b)
        ]
        lists["match" if y > 0 else "distinct"].append({"__class__": "tuple", "__value__": pair})
    file = tmp_path / "training.json"
    file.write_text(json.dumps(lists))
    return file


def test_dedupe_labels_make_the_model_that_their_records_make(tmp_path):
    records = make_records(200, random_state=4)
    path = records.path()
    found = from_dedupe(training(tmp_path, records, path), CUTS)
    assert found.n_levels == (4, 4, 3, 2, 2)
    model = PrivateLinkageModel(random_state=0).fit(*found[:4])
    levels = np.column_stack([
        text_levels(*([records.columns[c][i] for i in side] for side in path.T), cuts)
        for c, cuts in CUTS.items()
    ])  # fmt: skip
    same = PrivateLinkageModel(random_state=0)
    same.fit(levels, records.labels(path), records.ids[path], found.n_levels)
    assert model.kappa_ == 1
    for ours, theirs in zip(model.m_, same.m_, strict=True):
        assert ours == pytest.approx(theirs)


def test_dedupe_gets_the_odds_of_the_model_and_training_keeps_the_weights(tmp_path):
    """Distances as dedupe 3.0.3 makes them: a column a variable, 0 where a value is missing, ours first."""
    records = make_records(100, random_state=5)
    path = records.path()
    found = from_dedupe(training(tmp_path, records, path), CUTS)
    model = PrivateLinkageModel(random_state=0).fit(*found[:4])
    order = np.r_[
        np.flatnonzero(records.labels(path) < 0), np.flatnonzero(records.labels(path) > 0)
    ]
    comparators = {field: DedupeComparator(at) for field, at in CUTS.items()}
    distances = np.ones((len(path), len(CUTS) + 1), dtype="f4")
    for row, pair in enumerate(path[order]):
        for column, (field, compare) in enumerate(comparators.items()):
            left, right = (records.columns[field][i] for i in pair)
            distances[row, column] = 0 if left is None or right is None else compare(left, right)
    classifier = DedupeClassifier(model.released(), prior=0.05)
    again = pickle.loads(pickle.dumps(classifier.fit(distances, np.zeros(len(path)))))
    expected = model.match_probability(found.levels, prior=0.05)
    assert (found.levels == -1).any()
    by_pair = dict(zip(map(tuple, found.pairs.tolist()), expected, strict=True))
    wanted = [by_pair[tuple(records.ids[pair].tolist())] for pair in path[order]]
    assert again.predict_proba(distances)[:, 1] == pytest.approx(wanted)
    assert again.predict_proba(distances).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"match": [{"__class__": "tuple", "__value__": [{"id": 1}]}]}, "pair 1 is not two records"),
        ({"match": [[{"name": "secret"}, {"name": "secret"}]]}, "no field 'id'"),
    ],
)  # fmt: skip
def test_a_training_file_that_is_none_is_refused_without_its_contents(tmp_path, content, message):
    file = tmp_path / "training.json"
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message) as problem:
        from_dedupe(file, {"name": ()})
    assert "secret" not in str(problem.value)
    with pytest.raises(InputError, match="at least one field"):
        from_dedupe(file, {})


def test_made_up_sets_are_repeatable_and_can_be_learned_from():
    one, again = make_records(50, random_state=1), make_records(50, random_state=1)
    assert one.columns == again.columns
    path = one.path()
    assert 0.4 < (one.labels(path) > 0).mean() < 0.6
