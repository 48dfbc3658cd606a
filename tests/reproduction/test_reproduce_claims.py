"""Claims: checks by computation (and that they can fail), checks on made-up results, the page."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.claims import CLAIMS, decide_all, page
from reproduction.parameters import PANELS

from reproduction import findings, observations, steelman, theorems

HOLD = {
    "theorem-1", "parallel", "theorem-2", "variance-law", "corollary-1", "prop-1", "kappa-prime",
    "kappa-degree", "kappa-tree", "clustering", "preferences", "any-optimiser",
}  # fmt: skip


@pytest.fixture(scope="module")
def without_results():
    return decide_all({})


def test_theorem_like_claims_have_the_verdicts_that_theory_gives(without_results):
    computed = {c["id"]: c["verdict"] for c in without_results if not c["needs"]}
    assert len(computed) == 24
    assert {i for i, v in computed.items() if v == "holds"} == HOLD
    assert set(computed.values()) == {"holds", "does not hold"}


def test_claims_of_experiments_not_run_are_not_decided(without_results):
    left = [c for c in without_results if c["needs"]]
    assert {c["verdict"] for c in left} == {"not testable here"}
    assert all("was not run" in c["measured"] for c in left)


def test_bounds_are_seen_to_break_when_gradients_are_not_clipped(monkeypatch):
    real = theorems.row_gradients
    monkeypatch.setattr(
        theorems, "row_gradients", lambda W, r, dx, y, m, h, norm=1: real(W, r, dx, y, m, 9e9, norm)
    )
    assert theorems.theorem_1().verdict == "does not hold"
    assert theorems.theorem_2().verdict == "does not hold"


def test_noise_for_one_row_is_enough_for_one_row():
    assert theorems._relabelled(1, 1.0) == pytest.approx(1.0)
    assert theorems._relabelled(3, 0.5) == pytest.approx(1.5)


def accuracy_rows(shift: dict[str, float], names=("a", "b")) -> dict:
    """Made-up scores: base + shift[method] (+ a little for larger epsilon), four repeats."""
    rows = []
    for name in names:
        for seed in range(4):
            jitter = 0.001 * seed
            for method in ("nonpriv", "untrained", "euclid"):
                value = 0.8 + shift.get(method, 0.0) + jitter
                rows.append(_row(name, seed, method, "none", value))
            for epsilon in (1.0, 4.0):
                for method in ("dpp", "dpp-s", "node-dp", "inputper", "ours-relationship"):
                    value = 0.8 + shift.get(method, 0.0) + 0.001 * epsilon + jitter
                    rows.append(_row(name, seed, method, epsilon, value + 1e-5 * seed * epsilon))
    return {"accuracy": {"rows": rows}}


def _row(name, seed, method, epsilon, value):
    return {
        "data": name, "seed": seed, "method": method, "epsilon": epsilon,
        "knn_accuracy": value, "pair_auc": value, "kappa": 3,
    }  # fmt: skip


AS_SAID = {"untrained": -0.1, "dpp": -0.01, "dpp-s": -0.005, "node-dp": -0.05, "inputper": -0.1}


def test_accuracy_claims_hold_on_results_as_the_paper_says():
    results = accuracy_rows(AS_SAID)
    for check in ("rises", "node_below_dpp", "reduced_above_dpp", "input_worst", "little_lost"):
        assert getattr(observations, check)(results).verdict == "holds", check
    assert observations.ipums_us(results).verdict == "not testable here"


def test_accuracy_claims_fail_on_the_opposite():
    results = accuracy_rows({"dpp": -0.2, "dpp-s": -0.3, "node-dp": 0.0, "inputper": 0.1})
    for check in ("node_below_dpp", "reduced_above_dpp", "input_worst", "little_lost", "auc_lost"):
        assert getattr(observations, check)(results).verdict == "does not hold", check
    falling = accuracy_rows(AS_SAID)
    for row in falling["accuracy"]["rows"]:
        if row["epsilon"] != "none":
            row["knn_accuracy"] -= 0.01 * row["epsilon"]
    assert observations.rises(falling).verdict == "does not hold"


def test_an_untrained_metric_that_loses_as_little_is_named():
    results = accuracy_rows({**AS_SAID, "untrained": -0.005})
    verdict = observations.little_lost(results).verdict
    assert verdict == "holds but is met by an untrained metric"


def test_ipums_us_is_judged_when_it_is_there():
    said = accuracy_rows({"inputper": 0.1}, names=("ipums_us",))
    assert observations.ipums_us(said).verdict == "holds"
    other = accuracy_rows({"inputper": -0.1}, names=("ipums_us",))
    assert observations.ipums_us(other).verdict == "does not hold"


def mechanism_rows(level: dict[str, float]) -> dict:
    rows = [
        {"data": "a", "epsilon": 1.0, "seed": s, "method": m, "objective_mean": v + 0.001 * s,
         "objective_end": v}
        for m, v in level.items() for s in range(3)
    ]  # fmt: skip
    return {"mechanisms": {"rows": rows}}


def test_mechanism_claims_follow_the_numbers():
    said = {"Lap": 0.5, "Lap-S": 0.3, "SCDF": 0.4, "SCDF-joint": 0.6, "Duchi": 90.0}
    other = {"Lap": 0.2, "Lap-S": 0.3, "SCDF": 0.4, "SCDF-joint": 0.6, "Duchi": 0.1}
    for check in ("scdf_faster", "reduced_fastest", "duchi_worst"):
        assert getattr(observations, check)(mechanism_rows(said)).verdict == "holds", check
        assert getattr(observations, check)(mechanism_rows(other)).verdict == "does not hold", check


def parameter_rows(best: dict[str, float], curve: list[float]) -> dict:
    rng, rows = np.random.default_rng(0), []
    for panel, (_, values) in PANELS.items():
        for i, value in enumerate(values):
            for seed in range(6):
                away = abs(values.index(best[panel]) - i)
                spread = 0.05 / (i + 1)
                rows.append(
                    {"panel": panel, "value": value, "seed": seed, "objective": curve,
                     "objective_end": 0.2 + 0.1 * away,
                     "knn_accuracy": 0.8 - 0.09 * away + spread * (seed % 2 - 0.5)
                     + 1e-6 * rng.random()}
                )  # fmt: skip
    return {"parameters": {"rows": rows}}


PARAMETER_CHECKS = ("h_half", "h_two_rises", "batch_fifty", "rho_two", "sixteen_rows")


def test_parameter_claims_follow_the_numbers():
    best = {"h": 0.5, "batch_size": 50, "rho": 2.0, "n_components": 16}
    said = parameter_rows(best, [1.0, 2.0, *np.linspace(1.9, 0.5, 20)])
    for check in (*PARAMETER_CHECKS, "variance_grows"):
        assert getattr(observations, check)(said).verdict == "holds", check
    assert observations.rho_one(said).verdict == "does not hold"
    best = {"h": 2.0, "batch_size": 10, "rho": 1.0, "n_components": 2}
    other = parameter_rows(best, [1.0, *np.linspace(1.1, 3.0, 20)])
    for check in PARAMETER_CHECKS:
        assert getattr(observations, check)(other).verdict == "does not hold", check
    assert observations.rho_one(other).verdict == "holds"


def test_values_that_repeats_cannot_tell_apart_leave_the_first_place_open():
    best = {"h": 0.5, "batch_size": 50, "rho": 2.0, "n_components": 8}
    said = parameter_rows(best, [1.0, 0.5])
    assert observations.sixteen_rows(said).verdict == "does not hold"
    for row in said["parameters"]["rows"]:  # 8 before 16 by the noise of the repeats only
        if row["panel"] == "n_components" and row["value"] == 16:
            row["knn_accuracy"] += 0.09 + 0.02 * (row["seed"] % 3 - 1) - 1e-3
    found = observations.sixteen_rows(said)
    assert "not clearly" in found.measured
    assert found.verdict == "not decided"


def first_repeat(results: dict) -> dict:
    return {
        name: {"rows": [row for row in result["rows"] if row["seed"] == 0]}
        for name, result in results.items()
    }


def toy_rows(level: dict[str, float]) -> dict:
    """Falling curves: a level, a wobble of that size, six repeats."""
    rng, rows = np.random.default_rng(0), []
    for variant, height in level.items():
        for seed in range(6):
            wobble = height * rng.normal(size=60)
            curve = np.linspace(1.0, 0.5, 60) + height + wobble
            rows.append(
                {"variant": variant, "seed": seed, "objective": curve.tolist(), "theorem1": 1.0,
                 "sensitivity": rng.uniform(0.5, 0.7, (59, 2)).tolist()}
            )  # fmt: skip
    return {"toy": {"rows": rows}}


def test_toy_claims_follow_the_numbers():
    said = toy_rows({"nonpriv": 0.0, "dpp": 0.1, "dpp-s": 0.02})
    other = toy_rows({"nonpriv": 0.1, "dpp": 0.1, "dpp-s": 0.5})
    for check in ("toy_faster", "toy_close", "toy_steady"):
        assert getattr(observations, check)(said).verdict == "holds", check
    for check in ("toy_faster", "toy_close"):
        assert getattr(observations, check)(other).verdict == "does not hold", check
    assert observations.toy_sensitivity(said).verdict == "holds"


def test_one_repeat_decides_nothing():
    best = {"h": 0.5, "batch_size": 50, "rho": 2.0, "n_components": 16}
    said = {
        **toy_rows({"nonpriv": 0.0, "dpp": 0.1, "dpp-s": 0.02}),
        **accuracy_rows(AS_SAID, names=("a", "ipums_us")),
        **mechanism_rows({"Lap": 0.5, "Lap-S": 0.3, "SCDF": 0.4, "SCDF-joint": 0.6, "Duchi": 90.0}),
        **parameter_rows(best, [1.0, 2.0, *np.linspace(1.9, 0.5, 20)]),
    }
    many = {c.id: c.check(said).verdict for c in CLAIMS if c.needs}
    assert list(many.values()).count("not decided") == 0
    one = {c.id: c.check(first_repeat(said)).verdict for c in CLAIMS if c.needs}
    assert set(one.values()) == {"not decided"}


def test_differences_around_zero_decide_nothing():
    results = accuracy_rows({})  # all methods alike
    rng = np.random.default_rng(1)
    for row in results["accuracy"]["rows"]:
        row["knn_accuracy"] = 0.8 + 0.01 * rng.normal()
    for check in ("rises", "node_below_dpp", "reduced_above_dpp", "input_worst"):
        assert getattr(observations, check)(results).verdict == "not decided", check


def test_many_cases_do_not_refute_a_true_claim_by_accident():
    # 15 cases just above zero: refuted in at most 5 % of the reruns; each case at 95 % of its own
    # would refute some 30 %. Seeded.
    rng = np.random.default_rng(2)
    draws = rng.normal(1e-3, 1.0, size=(300, 15, 6))
    refuted = np.mean([findings.everywhere(cases) is False for cases in draws])
    naive = np.mean([any(findings.positive(c) is False for c in cases) for cases in draws])
    assert refuted <= 0.08  # 5 % and two standard errors
    assert naive > 0.2


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([True, True, False], True),
        ([True, None, False], None),
        ([True, False], False),
        ([None, None, True], None),
        ([False, False, None], False),
    ],
)
def test_most_cases_decide_whatever_the_open_ones_are(cases, expected):
    assert findings.mostly(cases) is expected


ONE = {"start": "random", "n_components": 4, "epochs": 20, "rho": 1.0}
OTHER = {"start": "pca", "n_components": 0, "epochs": 1, "rho": 2.0}


def at_setting(setting: dict, shift: dict[str, float], **more) -> list[dict]:
    return [{**setting, **more, **row} for row in accuracy_rows(shift)["accuracy"]["rows"]]


def test_the_best_setting_is_the_one_that_favours_the_claim():
    rows = at_setting(ONE, {"dpp": -0.2, "dpp-s": 0.1}) + at_setting(OTHER, AS_SAID)
    check = {claim: check for claim, (check, _) in steelman.CHECKS.items()}
    assert steelman.best_setting(check["reduced-above"], rows) == ONE
    assert steelman.best_setting(check["node-below"], rows) == OTHER
    assert steelman.best_setting(check["input-worst"], rows) == OTHER
    assert steelman.best_setting(check["auc-lost"], rows) == ONE  # DPP-S is above Euclid there


def test_the_best_case_says_where_it_was_and_what_became_of_the_claim():
    rows = at_setting(OTHER, {**AS_SAID, "dpp-s": 0.1}, claim="auc-lost")
    words = steelman.best_case("auc-lost", rows)
    assert words.startswith(
        "at its best setting (pca start, d' = d, 1 epoch, rho = 2): holds (+0.1"
    )
    worse = steelman.best_case("rises", at_setting(ONE, {}, claim="rises"))
    assert "(random start, d' = 4, 20 epochs, rho = 1): holds (+0.003" in worse
    assert steelman.best_case("toy-close", rows) == ""


def test_every_accuracy_claim_that_can_be_tested_has_a_best_case():
    needed = {claim.id for claim in CLAIMS if claim.needs == "accuracy"}
    assert set(steelman.CHECKS) == needed - {"input-us"}
    by_id = {claim.id: claim.check for claim in CLAIMS}
    assert all(by_id[name] is check for name, (check, _) in steelman.CHECKS.items())


def test_the_page_says_both_verdicts():
    results = {
        **accuracy_rows({"dpp": -0.2, "dpp-s": -0.2}),
        "steelman": {"rows": at_setting(OTHER, {**AS_SAID, "dpp-s": 0.1}, claim="auc-lost")},
    }
    text = page(decide_all(results), "Made up.")
    line = next(row for row in text.splitlines() if row.startswith("| auc-lost"))
    assert (
        "**does not hold**; at its best setting (pca start, d' = d, 1 epoch, rho = 2): holds"
        in line
    )
    assert "in the paper's favour" in text


def test_ids_are_unique_and_the_page_has_a_row_for_each(without_results):
    ids = [claim.id for claim in CLAIMS]
    assert len(set(ids)) == len(ids) >= 20
    text = page(without_results, "Made up.")
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(ids)
    # a bar inside a cell would make another column
    assert {line.replace("\\|", "").count("|") for line in rows} == {7}
