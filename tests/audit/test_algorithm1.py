"""Algorithm 1 against a plain transcription of the box, its readings, and what it says it costs."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from reproduction.baselines import Duchi
from reproduction.mechanisms import JointStaircase, Staircase
from reproduction.published import (
    ClassicGaussian,
    Laplace,
    Settings,
    algorithm1,
    mean_loss,
    train,
)

from pairveil.audit.published import _clipped_row, data_margin, unit_rows
from pairveil.errors import InputError, PrivacyLeakWarning
from pairveil.privacy.compose import epsilon_from_mu

quiet = pytest.mark.filterwarnings("ignore::pairveil.errors.PrivacyLeakWarning")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.random((30, 4))
    codes = rng.permutation(30 * 30)
    pairs = np.array([(c // 30, c % 30) for c in codes if c // 30 < c % 30][:47])
    labels = rng.choice([1, -1], size=len(pairs))
    return X, pairs, labels


def box(X, pairs, labels, s: Settings, seed: int) -> np.ndarray:
    """The algorithm box, one scalar at a time, no shortcuts."""
    rng = np.random.default_rng(seed)
    order = s.norm
    rows = [x / max(1.0, np.linalg.norm(x, order)) for x in np.asarray(X)]
    z = [
        (rows[a] - rows[b], 0 if label > 0 else 1)
        for (a, b), label in zip(pairs, labels, strict=True)
    ]
    m = s.margin
    if m is None:
        apart = [np.linalg.norm(dx, order) for dx, y in z if y == 1]
        m = s.rho * sum(apart) / len(apart)
    d = len(rows[0])
    W = rng.normal(scale=s.n_components**-0.5, size=(s.n_components, d))
    eta, tau = 1.0, 0
    count = len(z) // s.batch_size
    members = rng.permutation(len(z))[: count * s.batch_size]
    budget = s.epsilon / s.epochs
    for _ in range(s.epochs):
        for it in range(count):
            batch = [z[j] for j in members[it * s.batch_size : (it + 1) * s.batch_size]]
            tau += 1
            eta = eta / math.sqrt(tau) if s.step_rule == "recursive" else 1 / math.sqrt(tau)
            before = W.copy()
            for r in range(s.n_components):
                source = W if s.update == "rowwise" else before
                clipped = []
                for dx, y in batch:
                    D = np.linalg.norm(source @ dx)
                    g = np.outer(source[r] @ dx, dx)[0]
                    if y == 1:
                        g = (D - m) / D * g if 0 < D < m else np.zeros(d)
                    clipped.append(g / max(1.0, np.linalg.norm(g, order) / s.h))
                mean = sum(clipped) / s.batch_size
                if s.variant != "nonpriv":
                    peak = max(np.linalg.norm(g, order) for g in clipped)
                    far = 2 * m * (math.sqrt(s.n_components) if order == 1 else 1.0)
                    other = min(s.h, max(4 * np.linalg.norm(W[r], order), far))
                    if not s.reduced:
                        peak = other = s.h
                    reach = s.kappa * (peak + other) / s.batch_size
                    if s.kappa_factor == "twice":
                        reach *= s.kappa
                    if order == 2:
                        sigma = math.sqrt(2 * math.log(1.25 * s.epochs / s.delta)) * reach / budget
                        mean = mean + rng.normal(0.0, sigma, d)
                    elif s.mechanism is None:
                        mean = mean + rng.laplace(0.0, reach / budget, d)
                    else:
                        mean = s.mechanism(budget).sample(rng, mean, reach)
                W[r] = W[r] - eta * mean
    return W


VARIANTS = ["nonpriv", "dpp", "dpp-s", "adp", "adp-s", "node-dp"]


@quiet
@pytest.mark.parametrize("update", ["rowwise", "simultaneous"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_plain_transcription_of_the_box(data, variant, update):
    plan = Settings(variant, 3.0, n_components=3, kappa=2, batch_size=10, h=0.1, update=update)
    ours = algorithm1(*data, plan, random_state=7).W
    assert np.abs(ours - box(*data, plan, seed=7)).max() < 1e-10


@quiet
@pytest.mark.parametrize("step_rule", ["sqrt", "recursive"])
@pytest.mark.parametrize("kappa_factor", ["once", "twice"])
def test_every_reading_equals_its_transcription(data, step_rule, kappa_factor):
    plan = Settings(
        "dpp-s", 3.0, n_components=2, kappa=3, batch_size=8, margin=0.8,
        step_rule=step_rule, kappa_factor=kappa_factor,
    )  # fmt: skip
    ours = algorithm1(*data, plan, random_state=7).W
    assert np.abs(ours - box(*data, plan, seed=7)).max() < 1e-10


@quiet
@pytest.mark.parametrize("mechanism", [Staircase, JointStaircase])
def test_other_mechanisms_draw_the_same_stream(data, mechanism):
    plan = Settings("dpp", 3.0, n_components=2, batch_size=8, mechanism=mechanism)
    ours = algorithm1(*data, plan, random_state=7).W
    assert np.abs(ours - box(*data, plan, seed=7)).max() < 1e-10


@quiet
def test_the_transcription_can_tell_trajectories_apart(data):
    plan = Settings("nonpriv", n_components=3, batch_size=10)
    other = Settings("nonpriv", n_components=3, batch_size=10, update="simultaneous")
    ours = algorithm1(*data, plan, random_state=7).W
    assert np.abs(ours - box(*data, other, seed=7)).max() > 1e-6


def test_nonprivate_training_lowers_the_objective(data):
    X, pairs, _ = data
    far = np.abs(np.diff(unit_rows(X)[pairs][:, :, 0], axis=1)).ravel()
    labels = np.where(far > np.median(far), -1, 1)  # the first feature decides
    plan = Settings("nonpriv", n_components=2, batch_size=10, epochs=20, record_every=1)
    result = algorithm1(X, pairs, labels, plan, random_state=0)
    assert result.objective[-1] < 0.9 * result.objective[0]
    assert result.objective_at[-1] == 80
    assert len(result.objective) == 81
    assert result.epsilon_claimed == result.epsilon_sound == math.inf
    assert np.abs(result.M - result.W.T @ result.W).max() == 0


def test_the_literal_step_rule_stops_after_some_ten_steps(data):
    def end(epochs: int, rule: str) -> np.ndarray:
        plan = Settings(
            "nonpriv", n_components=2, batch_size=10, epochs=epochs, margin=1.0, step_rule=rule
        )
        return algorithm1(*data, plan, random_state=0).W

    assert np.abs(end(5, "recursive") - end(50, "recursive")).max() < 1e-6
    assert np.abs(end(5, "sqrt") - end(50, "sqrt")).max() > 1e-3


@quiet
def test_recorded_sensitivity_is_theorem_1_or_below_it(data):
    plain = Settings("dpp", 3.0, n_components=2, kappa=4, batch_size=10, margin=1.0)
    reduced = Settings("dpp-s", 3.0, n_components=2, kappa=4, batch_size=10, margin=1.0)
    full = algorithm1(*data, plain, random_state=0).sensitivity
    less = algorithm1(*data, reduced, random_state=0).sensitivity
    assert full == pytest.approx(np.full((12, 2), 2 * 4 * 0.5 / 10))
    assert (less <= full + 1e-12).all()
    assert less.min() < 0.9 * full.min()


COSTS = [
    # Laplace: d' rows; twice the kappa is noise to spare; node-dp is the same with another kappa
    (Settings("dpp", 2.0, n_components=4, margin=1.0, kappa=5), 8.0),
    (Settings("node-dp", 2.0, n_components=4, margin=1.0, kappa=5), 8.0),
    (Settings("dpp", 2.0, n_components=4, margin=1.0, kappa=4, kappa_factor="twice"), 2.0),
    # the margin read off the pairs, or the noise, is charged nowhere
    (Settings("dpp", 2.0, n_components=4), math.inf),
    (Settings("dpp-s", 2.0, n_components=4, margin=1.0), math.inf),
    (Settings("adp-s", 2.0, n_components=4, margin=1.0), math.inf),
    # i.i.d. staircase: d coordinates, and kappa pairs in kappa batches each cross a step
    (Settings("dpp", 2.0, n_components=4, margin=1.0, mechanism=Staircase), 4 * 4 * 2.0),
    (Settings("dpp", 2.0, n_components=4, margin=1.0, mechanism=JointStaircase), 8.0),
    (Settings("dpp", 2.0, n_components=1, margin=1.0, kappa=3, mechanism=JointStaircase), 6.0),
    (Settings("dpp", 2.0, n_components=1, margin=1.0, kappa=3, mechanism=Duchi), 6.0),
]  # fmt: skip


@quiet
@pytest.mark.parametrize(("plan", "sound"), COSTS)
def test_each_result_says_what_it_costs(data, plan, sound):
    result = algorithm1(*data, replace(plan, batch_size=10), random_state=0)
    assert result.epsilon_claimed == 2.0
    assert result.epsilon_sound == pytest.approx(sound)


@quiet
def test_the_gaussian_variant_composes_rows_and_epochs(data):
    plan = Settings("adp", 1.0, n_components=4, margin=1.0, batch_size=10, epochs=2)
    result = algorithm1(*data, plan, random_state=0)
    noise = ClassicGaussian(0.5, 0.5e-5).noise_multiplier()
    assert result.epsilon_sound == pytest.approx(epsilon_from_mu(math.sqrt(8) / noise, 1e-5))
    assert result.delta == 1e-5


def test_row_by_row_noise_really_costs_d_times_the_claim():
    """One pair, relabelled: every row's clipped gradient goes from +h to -h."""
    d_prime, h, margin = 3, 0.5, 100.0
    dx, size = np.array([[1.0]]), np.array([1.0])
    P = dx @ np.full((d_prime, 1), 10.0).T
    mechanism, ratio = Laplace(1.0), 0.0
    for r in range(d_prime):
        same, _ = _clipped_row(dx, np.array([0.0]), size, P, r, margin, h)
        apart, _ = _clipped_row(dx, np.array([1.0]), size, P, r, margin, h)
        output = np.array([2.0])
        ratio += mechanism.log_density(output, same, 2 * h)
        ratio -= mechanism.log_density(output, apart, 2 * h)
    assert ratio == pytest.approx(d_prime * mechanism.epsilon_claimed)


@pytest.mark.parametrize("variant", VARIANTS[1:])
def test_every_private_variant_warns_and_shows_no_private_value(data, variant):
    plan = Settings(variant, 2.0, n_components=2, batch_size=10)
    with pytest.warns(PrivacyLeakWarning, match="claims epsilon 2") as seen:
        algorithm1(*data, plan, random_state=0)
    assert "DPPMetricLearner" in str(seen[0].message)


def test_the_nonprivate_variant_does_not_warn(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        algorithm1(*data, Settings("nonpriv", n_components=2, batch_size=10), random_state=0)


def test_margin_follows_rho_and_the_norm():
    dx, y = np.array([[0.3, -0.4], [1.0, 0.0], [0.0, 0.5]]), np.array([1.0, 0.0, 1.0])
    assert data_margin(dx, y, Settings("dpp")) == pytest.approx((0.7 + 0.5) / 2)
    assert data_margin(dx, y, Settings("adp", rho=2.0)) == pytest.approx(1.0)
    with pytest.raises(InputError, match="dissimilar"):
        data_margin(dx, np.zeros(3), Settings())


def test_rows_are_scaled_to_the_norm_and_left_alone_within_it():
    rows = unit_rows([[3.0, -1.0], [0.1, 0.2]])
    assert rows == pytest.approx(np.array([[0.75, -0.25], [0.1, 0.2]]))


def test_mean_loss_is_the_contrastive_loss():
    dx, y = np.array([[1.0, 0.0], [0.0, 0.25]]), np.array([0.0, 1.0])
    W = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert mean_loss(W, dx, y, 1.0) == pytest.approx((0.5 + 0.5 * 0.25) / 2)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"variant": "dp"}, "variant must be one of"),
        ({"variant": "adp", "mechanism": Staircase}, "a mechanism can be chosen"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"batch_size": 0}, "batch_size must be positive"),
    ],
)
def test_bad_settings_are_refused(bad, message):
    with pytest.raises(InputError, match=message):
        Settings(**bad)


def test_too_few_pairs_are_refused():
    with pytest.raises(InputError, match="do not fill one batch"):
        train(np.zeros((3, 2)), np.zeros(3), Settings("nonpriv"))
