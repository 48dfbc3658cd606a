"""What is certified is never above what was asked for, whatever kind of number asked for it."""

import itertools
import json

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from learners import chain, people
from pairveil import DPPMetricLearner, InputError, PrivacyLedger
from pairveil.privacy.units import float_at_most

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
X, GROUPS = people()
PAIRS, Y = chain(GROUPS)
TYPES = (float, np.float16, np.float32, np.float64, np.longdouble)


def certified(**parameters):
    """The certificate of a fit with these parameters, as it would be issued."""
    return DPPMetricLearner(preprocessor=X, **parameters).certify(PAIRS, Y)


@pytest.mark.parametrize("random_state", [None, 0], ids=["exact", "seeded"])
@pytest.mark.parametrize("kind", TYPES, ids=[kind.__name__ for kind in TYPES])
def test_full_and_disjoint_batches_cost_at_most_what_was_asked(kind, random_state):
    full = {"gaussian": [{}, {"sampling": "disjoint", "sample_rate": 0.1, "n_steps": 7}]}
    full["laplace"] = [{"n_steps": np.int8(5)}, full["gaussian"][1]]
    grid = itertools.product(
        (0.013, 0.1, 1, 1.7, 8, 100), (1e-9, 1e-5, 1e-3), ("pair", "person"), (3, np.int64(17))
    )
    for number, (epsilon, delta, unit, kappa) in enumerate(list(grid)[:: 4 + len(kind.__name__)]):
        mechanism = ("gaussian", "laplace")[number % 2]
        adjacency = ("zero-out", "replace")[number // 2 % 2]
        delta = max(kind(delta), kind(1e-7))  # float16 has no 1e-9
        for shape in full[mechanism]:
            found = certified(
                epsilon=kind(epsilon),
                delta=delta,
                unit=unit,
                kappa=kappa,
                adjacency=adjacency,
                mechanism=mechanism,
                random_state=random_state,
                **shape,
            )
            assert type(found.epsilon) is float
            assert 0.97 * kind(epsilon) < found.epsilon <= kind(epsilon)
            assert found.delta <= delta
            assert found.verify()
            json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("kind", [np.float32, np.longdouble])
def test_sampled_batches_cost_at_most_what_was_asked(kind):
    for epsilon, rate, kappa in ((0.3, 0.05, 1), (2, 0.2, 2)):
        found = certified(
            epsilon=kind(epsilon), sample_rate=kind(rate), kappa=kappa, n_steps=np.int16(20)
        )
        assert 0.95 * epsilon < found.epsilon <= kind(epsilon)
        assert found.verify()


def test_a_float32_of_one_is_one():
    """Its arithmetic in 32 bits gave 1.0000000585."""
    assert certified(epsilon=np.float32(1), delta=np.float32(1e-5)).epsilon <= 1.0


def test_a_plan_that_would_cost_more_is_made_smaller(monkeypatch):
    """The margin for rounding may be too small: what was asked for still holds."""
    from pairveil.privacy import mechanisms

    monkeypatch.setattr(mechanisms, "ROUNDING", 1 - 1e-7)
    for mechanism in ("gaussian", "laplace"):
        assert certified(epsilon=1.0, mechanism=mechanism).epsilon <= 1.0


def test_a_budget_is_never_rounded_up():
    third = np.longdouble(1) / 3
    assert float_at_most(third) <= third
    assert PrivacyLedger(third, third).epsilon <= third
    assert float_at_most(10**400) < 10**400


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("epsilon", [1e9, 1e15, 1e300, 10**400])
@pytest.mark.parametrize("random_state", [None, 0])
def test_an_epsilon_without_meaning_is_named_and_costs_nothing(mechanism, epsilon, random_state):
    ledger = PrivacyLedger(1e308, 1e-5)
    learner = DPPMetricLearner(
        epsilon=epsilon,
        mechanism=mechanism,
        preprocessor=X,
        accountant=ledger,
        random_state=random_state,
    )
    with pytest.raises(InputError, match=r"epsilon=.* is too large: it would promise nothing"):
        learner.fit(PAIRS, Y)
    assert ledger.entries == ()


def test_noise_finer_than_exact_noise_blames_epsilon_and_a_tiny_delta_blames_delta():
    with pytest.raises(InputError, match=r"epsilon=1e\+06 is too large"):
        certified(epsilon=1e6)
    with pytest.raises(InputError, match="delta is too small"):
        certified(epsilon=1.0, delta=1e-13)
    with pytest.raises(InputError, match="delta is too small"):
        certified(epsilon=100.0, delta=1e-13)
    with pytest.raises(InputError, match=r"epsilon=1e-300 is too small"):
        certified(epsilon=1e-300)


def test_fit_transform_spends_nothing_and_says_what_to_do():
    ledger = PrivacyLedger(3.0, 1e-5)
    learner = DPPMetricLearner(preprocessor=X, accountant=ledger, n_steps=3)
    with pytest.raises(
        InputError, match=r"nothing was spent: call fit\(pairs, y\), then transform"
    ):
        learner.fit_transform(PAIRS, Y)
    # A pipeline would call fit and transform on the same rows if there were no fit_transform.
    with pytest.raises(InputError, match="nothing was spent"):
        make_pipeline(learner, KNeighborsClassifier()).fit(PAIRS, Y)
    assert ledger.entries == ()


def test_a_kappa_beyond_the_floats_is_refused():
    with pytest.raises(InputError, match="kappa must be"):
        certified(kappa=10**400)
