"""A whole private search, audited from outside: what two neighbours show against what is claimed."""

import os
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import beta

from pairveil import PrivateSearch
from pairveil.engine.plan import QuerySpec
from pairveil.engine.statistics import Statistic
from pairveil.learners.estimator import PrivateMetricLearner
from pairveil.privacy.profile import epsilon_of

N_PAIRS = 10
PAIRS = np.arange(2 * N_PAIRS).reshape(-1, 2)


@dataclass(frozen=True)
class Votes(Statistic):
    """The sum of the labels: a replaced one moves it by 2 clips, as far as anything may."""

    clip = 1.0
    shape = (1,)

    def tile_sum(self, differences, labels, norm):
        del differences, norm
        return np.array([float(labels.sum(dtype=np.int64))])


@dataclass(frozen=True)
class VotesRecipe:
    headline = "votes"

    def ask(self, setting):
        del setting
        return (QuerySpec("votes", (1,), share=1.0),)

    def run(self, plan, engine):
        return engine.answer(plan["votes"], Votes())[:, None]

    def options(self):
        return {}


class Voter(PrivateMetricLearner):
    def _recipe(self, given, records):
        del given
        return VotesRecipe()


class WorstScore(PrivateSearch):
    """Trials are scored by their own answer, which the bound allows: for one label no score is worse."""

    middle: float  # between the sums of both worlds

    def _trial(self, candidate, test, source):
        del test
        learner = type(candidate.learner)(**candidate.learner.get_params(deep=False))
        learner.fit(replace(candidate.prepared, noise=source))
        return float(learner.components_[0, 0] > self.middle), learner


def planned(label):
    """A search among ten pairs of which one that is fitted has this label, and its plan."""
    learner = Voter(
        unit="pair", select="all", adjacency="replace", mechanism="laplace",
        preprocessor=np.linspace(0, 1, 2 * N_PAIRS)[:, None],
    )  # fmt: skip
    # Almost all of a trial's budget goes to the answer that it is scored by.
    search = WorstScore(learner, [{}], 3.0, mean_trials=8, score_share=0.01, random_state=0)
    y = np.ones(N_PAIRS, dtype=int)
    n_test = round(N_PAIRS * search.test_share)
    y[np.random.default_rng(0).permutation(N_PAIRS)[-1]] = label  # the first n_test are held out
    prepared = search.prepare(PAIRS, y)
    search.middle = N_PAIRS - n_test - 1
    return search, prepared


def below(label, seeds):
    """How often the best trial's answer is below the middle."""
    search, prepared = planned(label)  # one source of noise for all of them
    found = 0
    for search.random_state in seeds:  # of the number of trials
        found += search.fit(prepared).best_score_ == 0
    return found, prepared.certificate


def lower_bound(more, less, n, tail):
    """Of epsilon at delta 0, by Clopper and Pearson; too large with probability 2 ``tail`` at most."""
    low = beta.ppf(tail, more, n - more + 1) if more else 0.0
    return float(np.log(low / beta.ppf(1 - tail, less + 1, n - less))) if low > 0 else -np.inf


def test_neighbours_have_one_certificate():
    certificate = planned(1)[1].certificate
    assert certificate == planned(-1)[1].certificate
    assert certificate.delta == 0.0
    assert 2.9 < certificate.epsilon <= 3.0


@pytest.mark.skipif(not os.environ.get("PAIRVEIL_NIGHTLY"), reason="thousands of searches")
def test_a_whole_search_shows_no_more_than_is_claimed_and_more_than_one_trial_costs():
    """Seeded. With other seeds the first fails with probability 1e-7 at most; the second is planted: whoever
    charged for one trial would be convicted."""
    n = 5000
    (more, certificate), (less, _) = below(-1, range(1, n + 1)), below(1, range(n + 1, 2 * n + 1))
    seen = lower_bound(more, less, n, 5e-8)
    (trial,) = certificate._events()[0].trials
    one = epsilon_of(trial, kappa=1, adjacency="replace", delta=0.0)
    assert seen <= certificate.epsilon
    assert one < 1.25 < lower_bound(more, less, n, 1e-3)
