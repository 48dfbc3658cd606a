"""The plan is what `fit` would certify, and depends on nothing private."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from pairveil import DPPMetricLearner, PairSet
from pairveil.graph.choosing import (
    SELECTIONS_OF_PAIRS,
    kappas_of_selections,
    recommended_selection,
)
from pairveil.learners.outlook import PlannedFit, outlook, recommend
from pairveil.privacy.units import UNITS

RNG = np.random.default_rng(0)
PAIRS = np.array(
    sorted({(min(p), max(p)) for p in RNG.integers(0, 60, (150, 2)).tolist() if p[0] != p[1]})
)


def data(seed: int) -> PairSet:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 4)) / 10
    return PairSet(X, PAIRS, rng.choice([-1, 1], len(PAIRS)))


@pytest.fixture(scope="module")
def seen():
    return outlook(data(0), epsilons=(1.0, 4.0))


def test_there_is_a_line_for_each_choice(seen):
    made = {(row.epsilon, row.unit, row.select) for row in seen.rows}
    assert len(made) == len(seen.rows)
    assert made == {(e, u, s) for e in (1.0, 4.0) for u in UNITS for s in SELECTIONS_OF_PAIRS}


def test_labels_and_features_change_nothing(seen):
    assert outlook(data(1), epsilons=(1.0, 4.0)) == seen
    unlabelled = PairSet(np.zeros((60, 4)), PAIRS)
    assert outlook(unlabelled, epsilons=(1.0, 4.0)) == seen


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("select", ["paths", "all"])
def test_a_line_is_what_fit_certifies(seen, unit, select):
    certificate = DPPMetricLearner(epsilon=4.0, unit=unit, select=select).certify(data(2))
    (row,) = [r for r in seen.rows if (r.epsilon, r.unit, r.select) == (4.0, unit, select)]
    assert row.kappa == certificate.kappas[unit]
    assert row.n_pairs_used == certificate.n_pairs_used
    assert row.best_guess == certificate.best_guess(unit)
    assert row.person_epsilon == certificate.epsilons["person"]["zero-out"]


def line(**changes: object) -> PlannedFit:
    usual = {
        "epsilon": 1.0, "unit": "relationship", "select": "paths", "kappa": 1, "n_pairs_used": 9,
        "signal": 50.0, "gain_low": 0.0, "gain_high": 1.0, "best_guess": 0.6, "person_epsilon": 2.0,
        "person_best_guess": 0.7,
    }  # fmt: skip
    return PlannedFit(**(usual | changes))


def test_what_is_recommended():
    loud = line(signal=500.0, gain_low=0.6, person_best_guess=0.74)
    safe = line(signal=450.0, gain_low=0.6, person_best_guess=0.66)
    open_ = line(signal=900.0, gain_low=0.9, person_best_guess=0.99)
    other = line(signal=999.0, gain_low=0.9, person_best_guess=0.6, select="forest")
    assert recommend([loud, safe, open_, other], "paths")[0] == safe
    faint = line(signal=9.0)
    assert recommend([faint, line(), open_], "paths")[0] == line()
    assert "more pairs" in recommend([faint, open_], "paths")[1]
    assert "a smaller epsilon" in recommend([open_], "paths")[1]
    same = [line(unit=unit) for unit in UNITS]
    assert recommend(same, "paths")[0].unit == "person"


def test_plan_and_kappa_recommend_the_same_selection(seen):
    assert seen.recommended.select == recommended_selection(kappas_of_selections(PAIRS))


def test_in_a_notebook(seen):
    page = seen._repr_html_()
    assert page.count("<tr>") == 1 + len(seen.rows)
    assert f"<b>{seen.recommended.select}</b>" in page
    mpl.use("Agg")
    assert len(seen.plot().lines) == len(SELECTIONS_OF_PAIRS) + 1
