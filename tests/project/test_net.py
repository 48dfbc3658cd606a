"""The behavioural net reports what differs, and only what nobody listed."""

import importlib.util
from pathlib import Path

import pytest
from tools.net.compare import allowed, differences, unneeded

SCENARIOS = Path(__file__).parents[2] / "tools" / "net" / "scenarios.py"


@pytest.fixture(scope="module")
def scenarios():
    spec = importlib.util.spec_from_file_location("scenarios", SCENARIOS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def array(*values):
    return {"shape": [len(values)], "sha256": str(values), "values": list(values)}


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"epsilon": 1.0}, {"epsilon": 1.0}, []),
        ({"epsilon": 1.0}, {"epsilon": 2.0}, [("x / epsilon", 0.5)]),
        ({"a": 1}, {}, [("x / a", float("inf"))]),
        ([1, 2], [1, 2, 3], [("x", float("inf"))]),
        ({"L": array(1.0, 4.0)}, {"L": array(1.0, 4.0 + 4e-9)}, [("x / L", 1e-9)]),
        ({"L": array(1.0)}, {"L": array(1.0, 2.0)}, [("x / L", float("inf"))]),
    ],
)
def test_every_difference_is_found_with_its_size(old, new, found):
    seen = [(where, apart) for where, _, apart in differences("x", old, new)]
    assert [where for where, _ in seen] == [where for where, _ in found]
    assert [apart for _, apart in seen] == pytest.approx([apart for _, apart in found], rel=1e-6)


def test_a_rule_covers_its_field_up_to_its_tolerance():
    rules = [{"where": "^groups .* / components_", "within": 1e-6, "why": "another order of sums"}]
    assert allowed("groups laplace / components_", 1e-7, rules)
    assert not allowed("groups laplace / components_", 1e-5, rules)
    assert not allowed("pairs laplace / components_", 1e-7, rules)


def test_a_rule_that_covers_nothing_is_named():
    rules = [{"where": "^page "}, {"where": "^kappa$", "within": 1e-9}]
    seen = [("page ranking / words", "", float("inf")), ("kappa", "", 0.5)]
    assert unneeded(seen, rules) == rules[1:]


def test_a_page_is_compared_by_its_words_and_by_its_numbers(scenarios):
    found = scenarios.page_text("<h1>61.5 in 100</h1><p>delta <b>1e-05</b></p><script>7</script>")
    assert found == {
        "words": ["61.5 in 100", "delta", "1e-05"],
        "numbers": ["100", "1e-05", "61.5"],
    }


def test_a_curve_is_compared_number_by_number(scenarios):
    found = scenarios.of_scores()()
    assert len(found["fmr"]["values"]) == found["fmr"]["shape"][0] > 2
    assert found["certificate"]["verified"] == []


def test_the_scenarios_use_public_names_alone():
    text = SCENARIOS.read_text(encoding="utf-8")
    imported = {
        line.split()[1]
        for line in text.splitlines()
        if line.strip().startswith(("from pairveil", "import pairveil"))
    }
    assert imported == {"pairveil", "pairveil.audit", "pairveil.deep", "pairveil.linkage"}


def test_a_scenario_gives_the_same_twice(scenarios):
    one = scenarios.of_levels(epsilon=2.0)
    first, second = one(), one()
    assert list(differences("levels", first, second)) == []
    assert first["certificate"]["verified"] == []
