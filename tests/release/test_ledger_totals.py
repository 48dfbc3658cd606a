"""Every release states what all releases of its ledger spend together, whatever was learned and however."""

import os

import numpy as np
import pytest
from benchmarks.clustering import draw_links
from benchmarks.ranking import draw_crowd

from pairveil import PrivacyLedger, PrivateSearch
from pairveil.learners import LEARNERS, learner_class
from pairveil.linkage import PrivateLinkageModel
from pairveil.report.data import read_summary

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
N = 400
RNG = np.random.default_rng(0)
CLASSES = np.arange(N) % 2
X = RNG.normal(size=(N, 3)) * 0.1 + 0.4 * CLASSES[:, None]
PAIRS = RNG.permutation(N).reshape(-1, 2)
Y = np.where(CLASSES[PAIRS[:, 0]] == CLASSES[PAIRS[:, 1]], 1, -1)
TUPLES = np.arange(N - N % 5).reshape(-1, 5)


def fit_metric(kind, **given):
    return kind(preprocessor=X, **given).fit(PAIRS, Y)


def fit_tuples(size):
    return lambda kind, **given: kind(preprocessor=X, **given).fit(TUPLES[:, :size])


def fit_ranking(kind, **given):
    return kind(**given).fit(draw_crowd(0, n_workers=80, asked=10, features=False).choices, 20)


def fit_clusters(kind, **given):
    ml, cl = draw_links(CLASSES, 150, seed=0)
    return kind(2, spectral=False, **given).fit(X, ml=ml, cl=cl)


def fit_linkage(**given):
    levels = np.column_stack([np.where(Y > 0, 2, 0), RNG.integers(0, 2, len(Y))])
    return PrivateLinkageModel(**given).fit(levels, Y, PAIRS, [3, 2])


def fit_network(**given):
    torch = pytest.importorskip("torch", reason="pairveil.deep needs the extra 'torch'")
    from pairveil.deep import PrivateMetricTrainer

    trainer = PrivateMetricTrainer(torch.nn.Linear(3, 2), n_steps=2, **given)
    return trainer.fit(PAIRS, Y, X.astype(np.float32))


def fit_search(**given):
    learner = learner_class("contrastive")(preprocessor=X)
    return PrivateSearch(learner, {"n_components": [1, 2]}, **given).fit(PAIRS, Y).best_estimator_


FITS = {"triplet": fit_tuples(3), "tuplet": fit_tuples(5), "ranking": fit_ranking}
FITS |= {"clustering": fit_clusters}
OTHERS = {"linkage": fit_linkage, "network": fit_network, "search": fit_search}


def fit(name, **given):
    if name in OTHERS:
        return OTHERS[name](**given)
    return FITS.get(name, fit_metric)(learner_class(name), **given)  # whoever adds one is asked too


@pytest.mark.parametrize("name", [*LEARNERS, *OTHERS])
def test_a_release_states_the_total_of_its_ledger(name, tmp_path):
    unit = "worker" if name == "ranking" else "relationship"
    ledger = PrivacyLedger(50.0, 1e-3, unit=unit)
    for _ in range(2):
        made = fit(name, accountant=ledger)
    stated = read_summary(made.release(tmp_path / "out")).budget
    assert len(stated.entries) == len(ledger.entries) == 2
    assert stated.entries[-1].epsilon_so_far == pytest.approx(ledger.spent())
    assert stated.entries[0].epsilon_so_far < stated.entries[-1].epsilon_so_far
    assert stated.best_guess[unit] > made.certificate_.best_guess(unit)
    assert os.listdir(tmp_path) == ["out"]


def test_without_a_ledger_nothing_is_said_of_one(tmp_path):
    made = fit("clustering")
    assert not (made.release(tmp_path / "out") / "summary.json").exists()
