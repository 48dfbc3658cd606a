"""Operating points: what they promise, how near they come, and what they refuse."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm
from typer.testing import CliRunner

from pairveil import ErrorCurve, InputError, PrivacyLedger, error_curve
from pairveil.cli.app import app
from pairveil.engine.statistics import clipped_sum
from pairveil.errors import GuaranteeWarning
from pairveil.jobs.job import AT_END
from pairveil.learners.histogram import ScoreCounts, cells_of, decoder, root
from pairveil.privacy.grid import choose_grid
from pairveil.records.pairset import CountedPairs
from pairveil.release.curve import pairs_needed

N = 10_000
Y = np.repeat([1, -1], N)
PEOPLE = np.arange(4 * N).reshape(-1, 2)
RANGE = (0.0, 1.0)


def scores(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return np.clip(np.r_[rng.normal(0.7, 0.1, n), rng.normal(0.3, 0.1, n)], 0, 1)


def curve(seed=0, **options):
    given = {
        "scores": scores(seed), "y": Y, "pairs": PEOPLE, "epsilon": 0.5, "delta": 1e-5,
        "score_range": RANGE, "random_state": seed, **options,
    }  # fmt: skip
    return error_curve(**given)


def test_the_realised_rate_is_near_the_one_asked_for():
    """95 in 100 runs are within 1.5; 14 of 20 or fewer have a probability below 1e-3, and seeds are fixed."""
    assert binom.cdf(14, 20, 0.95) < 1e-3
    ratios = np.array([norm.sf(curve(s).threshold(fmr=0.01), 0.3, 0.1) / 0.01 for s in range(20)])
    assert ((ratios < 1.5) & (ratios > 1 / 1.5)).sum() > 14
    # The same claim about twice the rate fails.
    assert ((ratios < 2 * 1.5) & (ratios > 2 / 1.5)).sum() < 14


def test_bands_hold_sampling_and_noise_for_all_thresholds_together():
    """95 % at least: 6 misses in 15 have a probability below 1e-4, and seeds are fixed."""
    assert binom.sf(5, 15, 0.05) < 1e-4
    missed = narrow = 0
    for seed in range(15):
        found = curve(seed)
        fmr, fnmr = norm.sf(found.thresholds, 0.3, 0.1), norm.cdf(found.thresholds, 0.7, 0.1)
        fmr[0], fnmr[0] = 1.0, 0.0
        inside = (found.fmr_low <= fmr) & (fmr <= found.fmr_high)
        inside &= (found.fnmr_low <= fnmr) & (fnmr <= found.fnmr_high)
        missed += not inside.all()
        half = (found.fmr_high - found.fmr_low) / 8
        narrow += not (np.abs(fmr - found.fmr) <= half + 1e-12).all()
    assert missed < 6
    assert narrow > 6  # an eighth of the width would not do


def test_exact_counts_without_noise():
    found = curve(epsilon=math.inf)
    values = scores()
    for i in (10, 40, 70):
        t = found.thresholds[i]
        assert found.fmr[i] == pytest.approx((values[N:] >= t).mean(), abs=1e-6)
        assert found.fnmr[i] == pytest.approx((values[:N] < t).mean(), abs=1e-6)
    assert found.certificate is None


@pytest.mark.parametrize("unit", ["pair", "relationship", "person"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_the_certificate_holds(unit, adjacency):
    certificate = curve(unit=unit, adjacency=adjacency, random_state=None).certificate
    assert certificate.verify().problems == ()
    assert 0.49 < certificate.epsilon <= 0.5
    assert certificate.for_release
    assert "error curve" in certificate.promise()
    assert certificate.costs["counted pairs"]["pair"].replace == pytest.approx(math.sqrt(2))


def test_pairs_that_share_people_count_for_less_and_cost_kappa():
    star = np.stack([np.zeros(2 * N, dtype=int), np.arange(1, 2 * N + 1)], axis=1)
    path = np.stack([np.arange(2 * N), np.arange(1, 2 * N + 1)], axis=1)
    assert curve().effective_share == 1.0
    found = curve(pairs=path)
    assert found.effective_share == pytest.approx(1 / 3)
    assert (found.fmr_high >= curve().fmr_high - 1e-9).mean() > 0.9
    assert curve(pairs=star, unit="person", epsilon=10.0, select="all").certificate.kappa == 2 * N


def test_without_pairs_only_the_pair_is_promised():
    certificate = curve(pairs=None, unit="pair").certificate
    assert certificate.verify().problems == ()
    assert math.isinf(certificate.epsilons["person"]["replace"])
    with pytest.raises(InputError, match="pairs are missing"):
        curve(pairs=None)


CELLS = 5


def summed(contents):
    cells = np.array([[one[0]] for one in contents])
    labels = np.array([one[1] for one in contents], dtype=np.int8)
    statistic = ScoreCounts(CELLS, ScoreCounts.bound(CELLS, "l2"))
    grid = choose_grid(statistic.clip, 2 * CELLS)
    return clipped_sum(CountedPairs(cells, labels), None, statistic, "l2", grid) * grid


PAIRS = st.tuples(st.integers(0, CELLS - 1), st.sampled_from([-1, 0, 1]))


@given(st.lists(PAIRS, min_size=1, max_size=8), st.data())
@settings(deadline=None, max_examples=150)
def test_no_neighbour_moves_the_counts_further_than_is_charged(contents, data):
    at, clip = data.draw(st.integers(0, len(contents) - 1)), ScoreCounts.bound(CELLS, "l2")
    for other, most in (((contents[at][0], 0), 1.0), (data.draw(PAIRS), math.sqrt(2))):
        changed = [*contents[:at], other, *contents[at + 1 :]]
        moved = np.linalg.norm(summed(contents) - summed(changed))
        assert moved <= most * clip * (1 + 1e-12)


def test_the_decoder_counts_and_the_noise_is_that_of_few():
    assert (root(96) >= 0).all()
    assert decoder(96) @ root(96) == pytest.approx(np.tril(np.ones((96, 96))), abs=1e-9)
    clip, rows = ScoreCounts.bound(96, "l2"), np.sqrt((decoder(96) ** 2).sum(axis=1))
    assert clip * rows.max() < 2.6
    assert cells_of(np.array([0.0, 1.0]), RANGE, 96).tolist() == [95, 0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"scores": np.r_[np.nan, scores()[1:]]},
            "1 scores are NaN or outside score_range, the first in row 1",
        ),
        ({"scores": scores() * 2}, "outside score_range"),
        ({"scores": scores()[:5]}, "one label for each"),
        ({"score_range": (1, 0)}, "the lower first"),
        ({"score_range": 1}, "two numbers"),
        ({"y": np.zeros(2 * N)}, "y must be"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"confidence": 1.0}, "confidence"),
        ({"n_cells": 1}, "n_cells"),
        ({"unit": "house"}, "unit"),
    ],
)
def test_mistakes_are_said_before_anything_is_charged(wrong, message):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with pytest.raises(InputError, match=message):
        curve(accountant=ledger, **wrong)
    assert ledger.entries == ()


def test_a_rate_that_too_few_pairs_can_show_is_refused_with_their_number():
    found = curve()
    with pytest.raises(
        InputError,
        match=r"takes about 18,2.. impostor pairs .* there are about (9,9|10,0).., which show 0.002 or more",
    ):
        found.threshold(fmr=0.001)
    for wrong in (0, 1, "x", None):
        with pytest.raises(InputError, match="fmr"):
            found.threshold(fmr=wrong)
    assert pairs_needed(0.001, found.count_noise) > 37_000  # for a plan: nothing is spent yet


def test_what_was_paid_for_is_answered_where_noise_alone_would_decide_otherwise():
    """203 impostors, 209 are asked of a plan: the noisy number was below 209 in half of all runs."""
    n, rng = 203, np.random.default_rng(0)
    y, people = np.repeat([1, -1], n), np.arange(4 * n).reshape(-1, 2)
    near = np.clip(rng.normal(np.where(y > 0, 0.7, 0.3), 0.1), 0, 1)
    short = 0
    for seed in range(20):
        found = error_curve(near, y, people, 1.0, 1e-5, RANGE, random_state=seed)
        short += found.n_impostors < pairs_needed(0.1, found.count_noise)
        at = found.threshold(0.1)
        low, high = found.fmr_at(at)
        assert low <= norm.sf(at, 0.3, 0.1) <= high
        assert "The band is wide" in found.advice(0.1)
    assert 5 <= short <= 15


def test_labels_of_one_kind_stop_nothing():
    found = curve(y=np.ones(2 * N, dtype=int))
    assert found.fmr_high[-1] > 0.5  # no impostors: nothing is known
    with pytest.raises(InputError, match="impostor pairs"):
        found.threshold(fmr=0.1)


def test_a_ledger_is_charged():
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    curve(accountant=ledger)
    assert len(ledger.entries) == 1


def test_a_model_and_its_curve_have_one_certificate():
    from pairveil.linkage import PrivateLinkageModel

    levels = cells_of(scores(), RANGE, 4)[:, None]
    for options in ({}, {"unit": "person", "entity_records": 3}):
        model = PrivateLinkageModel(delta=1e-6, select="all", **options).fit(levels, Y, PEOPLE, [4])
        found = curve(random_state=None, **options)
        both = found.with_model(model.certificate_)
        assert both.verify().problems == ()
        assert both.for_release
        assert (both.delta, len(both.events)) == (1e-5, 2)
        assert max(1.0, both.epsilon) > 0.99
        assert 1.0 < both.epsilon < 1.5
    with pytest.raises(InputError, match="do not mean the same by a person"):
        curve().with_model(model.certificate_)
    with pytest.raises(InputError, match="who is in which pair"):
        curve(pairs=None, unit="pair").with_model(model.certificate_)


def test_one_certificate_says_what_the_curve_left_out():
    """The model used all pairs; of the curve's triangles paths leave out a third."""
    from dataclasses import replace

    from pairveil.linkage import PrivateLinkageModel

    levels = cells_of(scores(), RANGE, 4)[:, None]
    model = PrivateLinkageModel(delta=1e-6, select="all").fit(levels, Y, PEOPLE, [4]).certificate_
    corners = 3 * np.arange(1000)[:, None, None] + np.array([[0, 1], [1, 2], [0, 2]])
    pairs = corners.reshape(-1, 2)
    options = {"scores": scores(n=1500), "y": np.repeat([1, -1], 1500), "pairs": pairs}
    found = curve(random_state=None, **options)
    assert model.selection["caveat"] is None
    both = found.with_model(model)
    assert both.verify().problems == ()
    assert both.selection["caveat"] == found.certificate.selection["caveat"]
    assert both.selection["full_graph_relationship_kappa"] == 2
    silent = replace(both, selection={**both.selection, "caveat": None})
    assert "the caveat that this demands is missing" in str(silent.verify().problems)


def test_a_person_may_have_several_records():
    certificate = curve(unit="person", entity_records=7).certificate
    assert certificate.kappa == 7
    assert certificate.verify().problems == ()
    with pytest.raises(InputError, match="entity_records"):
        curve(entity_records=0)


HOMES = dict(zip(range(4 * N), (f"home {i // 8}" for i in range(4 * N)), strict=True))


def test_people_of_a_household_are_one_person():
    """Four pairs of the eight people of a home, and two of the homes of four."""
    certificate = curve(unit="person", together=HOMES, select="all", random_state=None).certificate
    assert certificate.kappas == {"pair": 1, "relationship": 1, "person": 4}
    assert certificate.verify().problems == ()
    assert any("change together" in one for one in certificate.public)
    shouted = {str(i): home.upper() + " " for i, home in HOMES.items()}
    ledger = PrivacyLedger(epsilon=50.0, delta=1e-5, unit="person")
    for homes in (HOMES, shouted):
        curve(unit="person", together=homes, accountant=ledger)
    assert len({entry.meaning("person") for entry in ledger.entries}) == 1
    assert ledger.entries[0].meaning("person").split()[1] not in certificate.to_json()
    fewer = {i: home for i, home in HOMES.items() if i != 7}
    for wrong, problem in (
        ({"together": fewer}, "no value for 1 people"),
        ({"together": HOMES, "entity_records": 2}, "either says what a person is"),
        ({"together": HOMES, "pairs": None, "unit": "pair"}, "goes with pairs"),
    ):
        with pytest.raises(InputError, match=problem):
            curve(**wrong)


@pytest.mark.parametrize("unit", ["person", "relationship"])
def test_a_ledger_and_a_certificate_refuse_two_meanings_of_a_person(unit):
    """Of a model and its curve, in either order, whatever their kinds of records."""
    from pairveil.linkage import PrivateLinkageModel

    levels = cells_of(scores(), RANGE, 4)[:, None]
    other = {i: i // 4 for i in HOMES}
    meanings = ({}, {"together": HOMES}, {"together": other}, {"entity_records": 3})

    def model(ledger, entity_records=None):
        made = PrivateLinkageModel(
            delta=1e-6, select="all", unit=unit, accountant=ledger, entity_records=entity_records
        )
        return made.fit(levels, Y, PEOPLE, [4]).certificate_

    for first in meanings:
        for second in meanings:
            ledger = PrivacyLedger(epsilon=90.0, delta=1e-5, unit=unit)
            one = curve(accountant=ledger, unit=unit, random_state=None, **first)
            # A relationship is one of two people, whoever shares their homes; of entities it is not.
            alike = first == second or (
                unit == "relationship" and "entity_records" not in {**first, **second}
            )
            if alike:
                curve(accountant=ledger, unit=unit, **second)
            else:
                with pytest.raises(InputError, match=f"different things by unit '{unit}'"):
                    curve(accountant=ledger, unit=unit, **second)
            assert len(ledger.entries) == 1 + alike
            if "together" in second:
                continue
            ledger = PrivacyLedger(epsilon=90.0, delta=1e-5, unit=unit)
            learned = model(ledger, **second)
            if first == second:
                assert one.with_model(learned).verify().problems == ()
            else:
                with pytest.raises(InputError, match="do not mean the same by a person"):
                    one.with_model(learned)


# ---- the command ---------------------------------------------------------------------------------


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def table(tmp_path):
    frame = pd.DataFrame(PEOPLE, columns=["left", "right"])
    frame.assign(label=Y, score=scores()).to_csv(tmp_path / "scores.csv", index=False)
    return tmp_path / "scores.csv"


def test_the_command_on_a_table_of_scores(table):
    words = ("threshold", table, "--score-range", "0,1", "--epsilon", 0.5, "--fmr", 0.01)
    done = run(*words, "--json", "--out", table.with_name("curve.json"))
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert shown["threshold"] == pytest.approx(0.533, abs=0.03)
    assert 0.01 < shown["fmr_high"] < 0.04
    assert shown["certificate"]["for_release"] is True
    written = json.loads(table.with_name("curve.json").read_text())
    assert len(written["curve"]["points"]) == 96
    assert run(*words).exit_code == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "--score-range is missing"),
        (("--score-range", "0,1", "--fmr", 0.0001), "takes about"),
        (("--score-range", "0,1", "--score", "nothing"), "no column 'nothing'"),
    ],
)
def test_the_command_refuses_before_it_charges(table, more, message):
    ledger = table.with_name("ledger.json")
    done = run("threshold", table, *more, "--ledger", ledger, "--budget", 1)
    assert message in str(done.exception)
    assert not ledger.exists()


def test_scores_stay_with_their_pairs_where_others_are_left_out(table):
    """A score outside the range is cut to it; a pair that is left out takes no other's score along."""
    words = ("threshold", table, "--score-range", "0,1", "--epsilon", 0.5, "--seed", 1, "--json")
    frame = pd.read_csv(table)
    frame.loc[3, "score"] = 1.0
    frame.to_csv(table, index=False)
    clean = json.loads(run(*words).stdout)
    frame.loc[3, "score"] = 7.0
    extra = pd.DataFrame([{"left": 5, "right": 5, "label": 1, "score": 0.9}])
    pd.concat([extra, frame]).to_csv(table, index=False)
    refused = run(*words)
    assert "1 pair joins a person with herself (row 1)" in str(refused.exception)
    done = run(*words, "--leave-out")
    assert done.exit_code == 0, done.exception
    assert "1 cell lies outside 0 to 1, cut to it" in done.stderr
    assert json.loads(done.stdout) == clean


def test_a_rate_that_too_few_impostors_show_was_paid_for_and_keeps_its_curve(table):
    """How many pairs are impostors is private: the command cannot refuse beforehand, and says so."""
    pd.read_csv(table).iloc[: N + 100].to_csv(table, index=False)
    point = table.with_name("point")
    done = run("threshold", table, "--score-range", "0,1", "--epsilon", 0.5, "--out", point)
    assert f"Epsilon was spent; the curve is in {point}" in str(done.exception)
    assert ErrorCurve.load(point).n_genuine > N / 2


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_the_command_on_a_released_metric(tmp_path):
    from pairveil import ReleasedMetric

    rng = np.random.default_rng(0)
    people = pd.DataFrame({"id": np.arange(4000), "a": rng.random(4000), "b": rng.random(4000)})
    ends = np.arange(4000).reshape(-1, 2)
    near = np.abs(people["a"].to_numpy()[ends[:, 0]] - people["a"].to_numpy()[ends[:, 1]]) < 0.1
    ReleasedMetric(np.diag([1.0, 0.1]), None, ("a", "b")).save(tmp_path / "metric")
    people.to_csv(tmp_path / "people.csv", index=False)
    pairs = pd.DataFrame(ends, columns=["left", "right"]).assign(label=np.where(near, 1, -1))
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    done = run(
        "threshold", tmp_path / "metric", tmp_path / "people.csv", tmp_path / "pairs.csv",
        "--epsilon", 2, "--fmr", 0.1, "--json",
    )  # fmt: skip
    assert done.exit_code == 0, (done.output, done.exception)
    shown = json.loads(done.stdout)
    assert shown["of"] == "distance"
    assert 0.1 < shown["threshold"] < 0.4
    assert GuaranteeWarning.__name__ not in done.output


def crowded(n=3000, seed=0):
    """Labelled pairs of few people, so that kappa of all of them is large; and their scores."""
    rng = np.random.default_rng(seed)
    ends = np.unique(np.sort(rng.integers(0, n // 2, (2 * n, 2)), axis=1), axis=0)
    ends = rng.permutation(ends[ends[:, 0] != ends[:, 1]])[:n]
    y = rng.choice([1, -1], len(ends))
    near = np.clip(rng.normal(np.where(y > 0, 0.7, 0.3), 0.1), 0, 1)
    table = pd.DataFrame({"left": ends[:, 0], "right": ends[:, 1]})
    return table.assign(label=np.where(y > 0, "same", "different"), score=near, clerk="k")


def test_pairs_are_selected_as_for_every_learner_and_kappa_is_said_before_anything_is_charged(
    tmp_path,
):
    table = crowded()
    table.to_csv(tmp_path / "scores.csv", index=False)
    scored = [
        "threshold",
        str(tmp_path / "scores.csv"),
        "--score-range",
        "0,1",
        "--epsilon",
        "1",
        "--json",
    ]
    ledger = ["--ledger", str(tmp_path / "ledger.json"), "--budget", "9"]
    done = CliRunner().invoke(app, [*scored, *ledger, "--fmr", "0.06", "--select", "all"])
    assert "and kappa" in str(done.exception)
    assert "--select paths" in str(done.exception)
    assert not (tmp_path / "ledger.json").exists()
    done = CliRunner().invoke(app, [*scored, *ledger, "--fmr", "0.06"])
    assert done.exit_code == 0, (done.output, done.exception)
    shown = json.loads(done.stdout)
    assert shown["certificate"]["kappas"] == {"pair": 1, "relationship": 1, "person": 2}
    assert shown["certificate"]["selection"]["how"] == "paths"
    assert shown["effective_share"] == pytest.approx(1 / 3)  # of the pairs that are used
    ends = table[["left", "right"]].to_numpy()
    y = np.where(table["label"] == "same", 1, -1)
    given = (table["score"], y, ends, 1.0, 1e-5, RANGE)
    assert error_curve(*given, random_state=0).certificate.kappa == 1
    assert error_curve(*given, random_state=0, select="all").certificate.kappa > 5


def test_select_keeps_the_score_so_that_what_it_wrote_has_a_threshold(tmp_path):
    table = crowded()
    again = table.iloc[:1].assign(score=0.25)  # the same pair once more, with another score
    turned = again.rename(columns={"left": "right", "right": "left"})
    table = pd.concat([table, turned]).assign(code="007", shift=-0.5)
    table.to_csv(tmp_path / "scores.csv", index=False)
    table.to_parquet(tmp_path / "scores.parquet")
    for name in ("scores.csv", "scores.parquet"):
        out = tmp_path / "used.csv"
        words = ["select", tmp_path / name, "--how", "all", "-o", out]
        assert CliRunner().invoke(app, [str(one) for one in words]).exit_code == 0
        found = pd.read_csv(out, dtype={"code": str})
        assert list(found) == ["left", "right", "label", "score", "clerk", "code", "shift"]
        assert len(found) == len(table)
        assert set(found["code"]) == {"007"}
        assert set(found["shift"]) == {-0.5}
        key = ["left", "right", "score"]
        wanted = table.assign(label=np.where(table["label"] == "same", 1, -1))
        merged = found.merge(wanted, on=key)
        assert len(merged) == len(table)
        assert (merged["label_x"] == merged["label_y"]).all()
    words = ["threshold", out, "--score-range", "0,1", "--fmr", 0.3, "--epsilon", 2, "--json"]
    done = CliRunner().invoke(app, [str(one) for one in words])
    assert done.exit_code == 0, (done.output, done.exception)


def test_a_killed_threshold_resumes_with_one_charge_and_another_rate_costs_nothing(
    tmp_path, monkeypatch
):
    table = crowded()
    table.loc[np.arange(len(table)) % 5 > 0, "label"] = "same"  # a tenth are impostors
    table.to_csv(tmp_path / "scores.csv", index=False)
    words = ["threshold", tmp_path / "scores.csv", "--score-range", "0,1", "--epsilon", 1, "--json",
             "--ledger", tmp_path / "ledger.json", "--budget", 9,
             "--checkpoint", tmp_path / "counts"]  # fmt: skip

    def run(*more):
        done = CliRunner().invoke(app, [str(one) for one in (*words, *more)])
        while AT_END:  # as `main` does when the process ends
            AT_END.pop()()
        return done

    saved = ErrorCurve.save

    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ErrorCurve, "save", killed)
    assert run("--fmr", 0.2, "--out", tmp_path / "point").exit_code != 0
    monkeypatch.setattr(ErrorCurve, "save", saved)
    done = run("--fmr", 0.2, "--out", tmp_path / "point")
    assert done.exit_code == 0, (done.output, done.exception)
    assert len(PrivacyLedger.open(tmp_path / "ledger.json").entries) == 1
    assert not (tmp_path / "counts").exists()
    few = run("--fmr", 0.02)  # impostors, whose number is private, are too few
    assert "the checkpoint has the curve" in str(few.exception), few.exception
    assert run("--fmr", 0.3).exit_code == 0
    assert len(PrivacyLedger.open(tmp_path / "ledger.json").entries) == 2
