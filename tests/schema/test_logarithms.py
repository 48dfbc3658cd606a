"""scale = "log": the logarithm of what lies within public bounds, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pairveil import InputError, Schema
from pairveil.schema.schema import template

CRP = {"type": "number", "bounds": [0, 500], "scale": "log", "offset": 0.5}


def test_a_logarithm_is_taken_of_what_lies_within_the_bounds():
    schema = Schema.from_dict({"columns": {"crp": CRP}})
    values, counts = schema.encode({"crp": [0.0, 500.0, -3.0, 9e9, 4.5, None, "x"]})
    middle = math.log(5 / 0.5) / math.log(500.5 / 0.5)
    np.testing.assert_allclose(values[:, 0], [0, 1, 0, 1, middle, 0.5, 0.5])
    assert counts["crp"].outside == 2
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"bounds": [0, 10]}, "needs a lower bound above 0"),
        ({"bounds": [-1, 10], "offset": 1}, "needs a lower bound above 0"),
        ({"bounds": [1, 10], "offset": "much"}, "offset must be a number"),
        ({"bounds": [1, 10], "offset": 1, "scale": "linear"}, 'goes with scale = "log"'),
        ({"bounds": [1, 10], "scale": "sqrt"}, "scale must be one of linear, log"),
        ({"bounds": [1e15, 1e15 + 0.25]}, "too close"),
    ],
)
def test_logarithms_that_cannot_be_are_refused(said, problem):
    with pytest.raises(InputError, match=problem):
        Schema.from_dict({"columns": {"crp": {"type": "number", "scale": "log", **said}}})


def test_dates_have_no_logarithm():
    with pytest.raises(InputError, match="'scale' is no key of a date column"):
        Schema.from_dict({"columns": {"seen": {"type": "date", "bounds": [], "scale": "log"}}})


def test_the_template_proposes_a_logarithm_by_the_name_alone():
    text = template({"CRP (mg/l)": ("number", ""), "age": ("number", "")}, "people.csv")
    of_crp, of_age = text.split("[columns.")[1:]
    assert "by its name this may be skewed" in of_crp
    assert "by its name" not in of_age
    assert '# scale = "log"' in of_age


def test_bounds_far_apart_are_named_where_the_scale_is_linear():
    wide = {"type": "number", "bounds": [0.1, 10]}
    columns = {"a": wide, "b": {**wide, "scale": "log"}, "c": {**wide, "bounds": [0, 10]}}
    assert Schema.from_dict({"columns": columns}).wide == ("a",)
