"""The page says what the certificate says, escapes everything, and is legible."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pairveil import DPPMetricLearner, GroupSet, ReleasedMetric, Schema, design_groups, error_curve
from pairveil.errors import InputError
from pairveil.learners.ranking import PrivatePreferenceRanker
from pairveil.privacy.units import WORDS
from pairveil.report import facts
from pairveil.report.charts import bin_counts, hundred_guesses, nice_ticks
from pairveil.report.data import Cover, Evaluation, PublicTest, ReportData, Score, Summary
from pairveil.report.facts import PLAIN, metric_shape, read_release, verdict_of
from pairveil.report.page import render, write
from pairveil.report.words import at_most, cost, plain_public
from pairveil.schema.columns import CategoryColumn, NumberColumn

CSS = files("pairveil.report").joinpath("assets/page.css").read_text(encoding="utf-8")
SHAPE = metric_shape([[1.0, 2.0]], ("age", "bmi"))


class Outline(HTMLParser):
    """Elements, ids and the text of a page; fails where tags do not nest."""

    VOID = frozenset({"meta", "link", "br", "hr"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.text += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def test_the_page_says_what_the_certificate_says(full_data) -> None:
    page = Outline(render(full_data))
    certificate = full_data.certificate
    assert certificate.promise() in page.text
    for unit in ("pair", "relationship", "person"):
        for adjacency in ("zero-out", "replace"):
            assert cost(certificate.epsilons[unit][adjacency]) in page.text
    factor = math.exp(certificate.epsilons["relationship"]["replace"])
    shown = re.search("That is odds of ([0-9.]+) to 1", page.text)
    assert shown
    assert factor <= float(shown[1]) < 1.01 * factor  # rounded up, never down
    assert str(certificate.selection["caveat"]) in page.text
    for sentence in certificate.public:
        assert plain_public(sentence, "pairs") in page.text
    assert full_data.public_test.note in page.text
    assert "public people" in page.text
    assert "none of them exists" in page.text
    assert f"--noise-multiplier {certificate.events[0]['noise_multiplier']!r}" in page.text


def test_every_chart_has_a_table_and_words(full_data) -> None:
    page = Outline(render(full_data))
    charts = [
        attrs
        for name, attrs in page.elements
        if name == "svg" and (attrs.get("class") or "").startswith("chart")
    ]
    assert len(charts) == 11
    assert all(chart["aria-label"] for chart in charts)
    # The maps share one table; heads, stars and guesses repeat what stands beside them.
    tables_behind = [
        a for name, a in page.elements if name == "details" and a.get("class") == "data"
    ]
    assert len(tables_behind) == 6
    marks = [
        attrs for name, attrs in page.elements if (attrs.get("class") or "").startswith("mark")
    ]
    assert len(marks) > 400
    assert all(mark["aria-label"] == mark["data-tip"] for mark in marks)
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in page.elements:
        if (attrs.get("href") or "").startswith("#"):
            assert attrs["href"][1:] in ids


def test_nothing_foreign_is_loaded_and_nothing_runs_inline(full_data) -> None:
    page = render(full_data)
    outline = Outline(page)
    assert outline.count("script") == outline.count("style") == 1
    assert not re.findall(r"https?://|//[a-z]+\.|@import|url\(", page)
    for _, attrs in outline.elements:
        assert not [name for name in attrs if name.startswith("on") or name in ("style", "src")]
    assert len(page.encode()) < 300_000


EVIL = "<script>alert(1)</script>\"'&</style></title>"


def test_hostile_words_stay_words(full_data) -> None:
    names = tuple(f"{EVIL}{i}" for i in range(2))
    summary = replace(
        full_data.summary,
        title=EVIL,
        points=replace(
            full_data.summary.points,
            note=EVIL,
            groups=tuple(EVIL + group for group in full_data.summary.points.groups),
        ),
        budget=replace(
            full_data.summary.budget,
            entries=(replace(full_data.summary.budget.entries[0], note=EVIL),),
        ),
    )
    certificate = replace(
        full_data.certificate,
        noise_source=EVIL,
        public=(EVIL,),
        selection={"how": EVIL, "caveat": EVIL},
    )
    data = ReportData(
        certificate,
        metric_shape([[1.0, 2.0]], names),
        summary,
        folder=EVIL,
        problems=(EVIL,),
        public_test=replace(full_data.public_test, note=EVIL, learned_from=EVIL),
    )
    page = Outline(render(data))
    assert page.count("script") == page.count("style") == page.count("title") == 1
    assert page.text.count(EVIL) > 10


def test_absent_parts_say_why(seeded) -> None:
    page = Outline(render(ReportData(seeded, SHAPE)))
    for reason in (
        "No curve and no map are shown",
        "No ledger is stated",
        "no summary of the pair graph",
    ):
        assert reason in page.text
    assert "have not been recomputed" in page.text


def test_a_metric_without_promise_says_so_first() -> None:
    page = Outline(render(ReportData(None, SHAPE)))
    assert "Do not use" in page.text
    assert "learned without noise and promises nothing" in page.text
    assert "Name and role" not in page.text


def test_the_sender_s_words_and_the_public_test_are_on_the_page(full_data) -> None:
    line = ((0.0, 0.0), (0.05, 0.4), (0.5, 0.9), (1.0, 1.0))
    plain = ((0.0, 0.0), (0.05, 0.1), (1.0, 1.0))
    test = PublicTest("public.csv", 171, 1000, 0.876, 0.654, line, plain)
    cover = Cover("Tumours", "St. Anna", "matching of records", "University of X")
    page = Outline(render(replace(full_data, cover=cover, public_test=test)))
    for words in ("Tumours", "St. Anna", "matching of records", "University of X", "public.csv"):
        assert words in page.text
    assert "87.6 times in 100; plain distance 65.4 times" in page.text
    assert "finds 40 of 100 pairs that are alike, plain distance 10" in page.text
    assert "88 in 100" in page.text  # the first screen
    assert full_data.summary.title not in page.text


def test_no_word_of_the_trade_reaches_the_reader(full_data) -> None:
    """The reader signs; b, rank, slack and the margin's rule are for those who prove."""
    text = Outline(render(full_data)).text
    found = re.findall(r"\b(?:b|[Rr]ank|[Ss]lack|margin's rule|l2|clip)\b", text)
    assert found == []


@pytest.mark.parametrize("records", sorted(WORDS))
def test_what_is_public_is_said_without_the_words_of_the_trade(records: str) -> None:
    said = " ".join(plain_public(one, records) for one in WORDS[records].public)
    assert not re.search("clip|margin|norm|scale|sampling|each unit", said), said


def test_a_network_has_a_page_without_torch(full_data, tmp_path: Path) -> None:
    weights = b"weights"
    digest = hashlib.sha256(weights).hexdigest()
    told = {
        "format": "pairveil-network",
        "shape": [1, 8],
        "n_parameters": 1234,
        "architecture": "Linear(<8>)",
    }
    (tmp_path / "network.json").write_text(json.dumps(told))
    (tmp_path / "network.safetensors").write_bytes(weights)
    certificate = replace(full_data.certificate, metric_sha256=digest)
    (tmp_path / "certificate.json").write_text(certificate.to_json())
    page = Outline(render(read_release(tmp_path)))
    for words in (
        "A network of 1,234 numbers",
        "1 × 8 numbers",
        "Linear(<8>)",
        digest,
        "ReleasedNetwork",
    ):
        assert words in page.text
    assert str(tmp_path) not in page.text  # where it lay is nobody's business
    (tmp_path / "network.safetensors").write_bytes(b"others")
    with pytest.raises(InputError, match="was changed after the release"):
        read_release(tmp_path)


def test_the_best_of_several_fits_is_said_to_be_that(full_data) -> None:
    one = full_data.certificate.events[0]
    search = {"kind": "best-of", "mean_trials": 6, "slack": 0.0, "trials": [[one], [one]]}
    best = replace(full_data.certificate, events=(search,))
    page = Outline(render(replace(full_data, certificate=best))).text
    assert "6 were made on average" in page
    assert len(facts.asked_of(best)) == 2
    assert "were made on average" not in render(full_data)


def test_releases_are_named(full_data) -> None:
    page = Outline(render(full_data))
    assert "gradients: the steps of the learning itself" in page.text
    assert "a random sample, 10" in page.text
    certificate = full_data.certificate
    plan = {"releases": [{**certificate.plan["releases"][0], "name": "my own sums"}]}
    event = {**certificate.events[0], "sample_rate": 1.0}
    other = replace(certificate, plan=plan, events=(event,))
    page = Outline(render(replace(full_data, certificate=other)))
    assert "my own sums" in page.text
    assert "all pairs" in page.text
    for foreign in ({}, {"releases": 7}, {"releases": ["x"]}, {"releases": [{"entries": True}]}):
        page = Outline(render(replace(full_data, certificate=replace(certificate, plan=foreign))))
        assert "noise on sums" in page.text


def test_icons_show_the_largest_bound_that_the_words_say(full_data) -> None:
    times = max(verdict_of(full_data).in_100.values())
    for right in (times, 50, 100):
        chart = hundred_guesses(right)
        heads = [sum(child.kind == "circle" for child in part.children) for part in chart.shapes]
        assert sum(heads) == 100
        assert heads[0] == 50
        assert heads[1:] == [count for count in (right - 50, 100 - right) if count]
    page = render(full_data)
    assert hundred_guesses(times).title in page
    assert "A hundred guesses about one person." in page


def test_a_release_of_people_is_told_of_people(full_data) -> None:
    learner = DPPMetricLearner(epsilon=2.0, unit="person", mechanism="laplace")
    X = np.random.default_rng(0).uniform(size=(400, 3)) / 2
    certificate = learner.certify_classes(X, (X[:, 0] > 0.25).astype(int), classes=(0, 1))
    page = Outline(render(ReportData(certificate, SHAPE, problems=())))
    assert "400 people with a class each" in page.text
    assert "How people enter" in page.text
    assert "class statistics: counts, sums" in page.text
    assert "all people" in page.text
    assert "paired with whom" not in page.text


def test_a_release_of_choices_is_told_of_choices() -> None:
    rng = np.random.default_rng(0)
    items = rng.uniform(size=(12, 3)) / 2
    workers = np.repeat(np.arange(50), 8)
    choices = np.column_stack(
        [workers, *rng.permuted(np.tile(np.arange(12), (400, 1)), axis=1).T[:2]]
    )
    certificate = PrivatePreferenceRanker(epsilon=2.0, unit="worker").certify(choices, items)
    page = Outline(render(ReportData(certificate, SHAPE, problems=())))
    assert "Worker" in page.text
    assert "One worker: everything that this worker chose." in page.text
    assert "paired with whom" not in page.text


def test_a_release_of_groups_leads_with_one_number(full_data) -> None:
    rng = np.random.default_rng(0)
    groups = GroupSet.of_classes(
        rng.uniform(size=(200, 4)) / 2,
        design_groups(200, 4, random_state=0),
        rng.integers(2, size=200),
    )
    learner = DPPMetricLearner(epsilon=4.0, n_steps=3)
    page = Outline(render(replace(full_data, certificate=learner.certify(groups))))
    assert "one number for a pair, a relationship and a person" in page.text
    assert "one number holds for a pair, a relationship and a person" in page.text
    assert "sums over 50 disjoint groups of 4 people at most" in page.text
    assert "300 pairs inside disjoint groups of people" in page.text
    assert "better protected than a whole person" not in page.text


REFUSED = {
    "a seed": ({"for_release": False}, {}, "it was made with a seed"),
    "a false certificate": (
        {},
        {"problems": ("epsilon is understated",)},
        "epsilon is understated",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_headline_and_sign_off_give_way_to_do_not_use(full_data, seeded, why: str) -> None:
    fit, changes, reason = REFUSED[why]
    certificate = seeded if fit else full_data.certificate
    page = Outline(render(replace(full_data, certificate=certificate, **changes))).text
    assert page.index("Do not use.") < page.index(reason) < page.index("What was released")
    assert page.count(reason) >= 2  # at the top, and where one would sign
    for words in ("in 100 about one", "at most 61", "Name and role", "exact words", "check out"):
        assert words not in page, words
    if changes:  # its numbers are nowhere
        assert "Who is protected" not in page
        assert cost(certificate.epsilon) not in page.split("How good the metric is")[0]


def test_an_attack_that_found_more_than_is_promised_stops_the_release(full_data) -> None:
    found = verdict_of(replace(full_data, audit=SimpleNamespace(verdict="violated")))
    assert not found.usable
    assert "found more than is promised" in found.line
    assert verdict_of(replace(full_data, audit=SimpleNamespace(verdict="consistent"))).usable


def test_the_first_screen_gives_all_that_is_signed_for(full_data) -> None:
    page = " ".join(Outline(render(full_data)).text.split())
    first = page[: page.index("What was released")]
    found = verdict_of(full_data)
    assert found.in_100 == {"relationship": 62, "person": 75}  # of both releases, not of this one
    assert found.open_in_100 == 99
    assert found.headline in first
    assert "All 2 releases together: at most 62" in first
    for sentence in found.sentences:
        assert sentence in first
    assert "Left out: 640 pairs with an answer." in first
    assert "there is no promise: at least 99 guesses in 100 may be right" in first
    assert "Someone who knows less can sometimes learn more" in first
    assert "Numbers check out: every epsilon was recomputed" in first
    assert "no signature was checked for this page" in page
    assert "For release" not in page


def test_what_is_signed_lists_the_data_that_were_used(full_data, tmp_path: Path) -> None:
    """Columns as people know them, not as they were split; on paper too, where no table behind a chart is."""
    ward = CategoryColumn("ward", categories=("A", "B", "C"), fill="A")
    schema = Schema((NumberColumn("age", bounds=(0.0, 120.0), fill=40.0), ward))
    n_features = len(schema.feature_names)
    metric = ReleasedMetric(np.arange(1.0, n_features + 1)[None], schema=schema)
    metric.save(tmp_path / "release")
    shape = read_release(tmp_path / "release").metric
    page = " ".join(Outline(render(replace(full_data, metric=shape))).text.split())
    assert re.search("Data used ?age, ward ?Budget set by ?Decision", page)
    assert f"The rule uses 2 of your columns ({n_features} after splitting categories)" in page


def test_several_parties_are_named_and_whom_the_promise_holds_against(full_data) -> None:
    kappas = {"pair": 1, "relationship": 1, "person": 2}
    who = [
        {"name": f"{EVIL}{i}"[:40], "n_pairs_given": 600, "n_pairs_used": 280, "kappas": kappas}
        for i in range(3)
    ]
    parties = {"who": who, "kappa_rule": "sum", "noise": "parties", "colluders": 1,
               "secrecy": "computational"}  # fmt: skip
    joint = replace(full_data.certificate, parties=parties)
    page = " ".join(Outline(render(replace(full_data, certificate=joint))).text.split())
    assert "3 parties learned this together" in page
    assert "hold against the coordinator together with any 1 of the parties" in page
    assert "Kappa of all together is the sum of the parties' kappas of a person" in page
    assert page.count(who[0]["name"]) == 3
    trusted = replace(joint, parties={**parties, "noise": "coordinator", "colluders": 2})
    assert "Nothing is promised against the coordinator" in render(
        replace(full_data, certificate=trusted)
    )
    assert "learned this together" not in render(full_data)


def test_the_page_says_what_it_cannot_prove(full_data) -> None:
    page = " ".join(Outline(render(full_data)).text.split())
    assert "This file cannot prove that the noise was added; you trust the signer" in page
    assert "becomes 86.8 % sure; on average, 59.4 %" in page.replace("\u00a0", " ")
    assert (
        "No number is right for every release" in page
    )  # nor does the page say which is acceptable
    bounded = page[page.index("One pair is better protected") :]
    assert bounded.startswith("One pair is better protected than a whole person.")
    alike = dict.fromkeys(full_data.certificate.kappas, 1)
    certificate = replace(full_data.certificate, kappas=alike, costs=None)
    assert "better protected" not in render(replace(full_data, certificate=certificate))


def test_where_nothing_was_left_out_nothing_is_said_of_it(full_data) -> None:
    selection = {"how": "all", "caveat": None, "full_graph_relationship_kappa": 1}
    certificate = replace(full_data.certificate, n_pairs_given=560, selection=selection)
    page = Outline(render(ReportData(certificate, SHAPE, problems=()))).text
    assert "Left out" not in page
    assert "answers left out" not in page
    assert "knows less can sometimes learn more" in page
    assert "no ledger is stated" in page


def test_what_was_measured_beside_is_in_the_headline(full_data, seeded) -> None:
    """A score on private pairs is one more release: the numbers are of both, or there are none."""
    alone = replace(full_data, summary=Summary())
    share = (0.8, 0.7, 0.9)
    score = Score(share, share, 100, 0.95)
    twice = Evaluation(score, full_data.certificate)  # no curve: nothing in common
    assert set(verdict_of(alone).in_100.values()) == {60, 69}
    assert set(verdict_of(replace(alone, evaluation=twice)).in_100.values()) == {None}
    X = np.random.default_rng(0)
    curve = error_curve(
        X.uniform(size=400),
        np.resize([1, -1], 400),
        np.arange(800).reshape(-1, 2),
        1.0,
        1e-5,
        (0, 1),
    )
    measured = verdict_of(replace(alone, evaluation=replace(twice, certificate=curve.certificate)))
    assert verdict_of(alone).in_100["relationship"] < measured.in_100["relationship"] < 80
    assert "is counted too" in " ".join(measured.limits)
    found = verdict_of(replace(alone, evaluation=replace(twice, certificate=seeded)))
    assert not found.usable
    assert "what was measured for this page must not leave" in found.line


def test_a_fit_without_a_bound_is_not_made_to_look_private(seeded) -> None:
    endless = {unit: dict.fromkeys(("zero-out", "replace"), math.inf) for unit in seeded.epsilons}
    certificate = replace(seeded, epsilon=math.inf, epsilons=endless)
    page = Outline(render(ReportData(certificate, SHAPE)))
    assert "no bound" in page.text
    assert "Epsilon gives no useful bound" in page.text


def test_a_weak_promise_gets_no_green_light(full_data) -> None:
    event = {**full_data.certificate.events[0], "noise_multiplier": 0.3}
    certificate = replace(full_data.certificate, events=(event,))
    page = render(replace(full_data, certificate=certificate))
    assert "Numbers check out, but they protect little" in page
    assert "nothing useful is promised" in page
    assert 'class="pill bad"' in page


def test_graphs_of_any_size_are_drawn_in_full(full_data) -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        values = np.unique(rng.integers(0, rng.integers(1, 5000), size=rng.integers(1, 60)))
        counts = [(int(value), int(rng.integers(1, 9))) for value in values]
        bins = bin_counts(counts)
        assert len(bins) <= 16
        assert sum(people for _, _, people in bins) == sum(people for _, people in counts)
        assert all(low <= high for low, high, _ in bins)
    huge = replace(full_data.summary.used, degrees=((1, 10**7), (2, 3), (9000, 1)))
    page = render(replace(full_data, summary=Summary(used=huge)))
    assert "1 person is in" in page


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.5), (0.0, 1e-7), (0.91, 0.9101), (-3.0, 8.0)])
def test_ticks_reach_over_the_data(low: float, high: float) -> None:
    ticks = nice_ticks(low, high, around=True)
    assert ticks[0] <= low + 1e-9
    assert ticks[-1] >= high - 1e-9
    assert 2 <= len(ticks) <= 8


def test_the_headline_is_the_best_guess_of_the_plan(full_data) -> None:
    """Not e^eps / (1 + e^eps), which says 90 (person: 99) where the default plan allows 61 (71)."""
    certificate = full_data.certificate
    share = certificate.best_guess()
    alone = verdict_of(replace(full_data, summary=Summary()))
    assert alone.in_100["relationship"] == math.ceil(100 * share)
    epsilon = certificate.epsilons["relationship"]["replace"]
    assert 0.5 < share < 1 / (1 + math.exp(-epsilon)) - 0.1
    page = Outline(render(full_data))
    for unit in ("pair", "relationship", "person"):
        assert at_most(certificate.best_guess(unit)) in page.text


def test_the_page_is_written_whole_or_not_at_all(full_data, tmp_path: Path, monkeypatch) -> None:
    file = write(full_data, tmp_path / "report.html")
    assert file.read_text(encoding="utf-8") == render(full_data)
    monkeypatch.setattr("pairveil.report.page.render", lambda data: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write(full_data, file)
    assert file.stat().st_size > 1000
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


# ---- legibility -------------------------------------------------------------------------------


def _palettes() -> dict[str, dict[str, str]]:
    """Colours of the light, dark and print pages, from the style sheet."""
    blocks = re.findall(r":root \{([^}]*)\}", CSS)
    found = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks]
    return dict(zip(("light", "dark", "print"), found, strict=True))


def _contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_colours_meet_aa(mode: str) -> None:
    colours = _palettes()[mode]
    words = [("ink", "card"), ("ink", "ground"), ("muted", "card"), ("muted", "ground")]
    words += [
        ("accent", "card"),
        ("accent", "ground"),
        ("accent", "accent-soft"),
        ("ink", "accent-soft"),
    ]
    words += [("good", "good-soft"), ("bad", "bad-soft"), ("bad", "card"), ("warm", "card")]
    for front, back in words:
        assert _contrast(colours[front], colours[back]) >= 4.5, (front, back)
    for shape in ("bar", "accent", "warm", "violet", "grey", "muted"):
        assert _contrast(colours[shape], colours["card"]) >= 3.0, shape
    assert _contrast("#777777", "#999999") < 3.0  # the measure can tell


def test_print_is_light() -> None:
    palettes = _palettes()
    differing = {
        name for name in palettes["light"] if palettes["light"][name] != palettes["print"][name]
    }
    assert differing == {"ground", "line"}


def test_the_page_says_why_plain_distance_was_released(full_data) -> None:
    nothing = replace(full_data.public_test, score=full_data.public_test.plain)
    plain = replace(full_data, metric=metric_shape(0.3 * np.eye(6)), public_test=nothing)
    plain = replace(plain, expected=((0.3, 0.1, 0.6), (3.0, 0.7, 1.0)))
    page = " ".join(Outline(render(plain)).text.split())
    assert "Of its gain over plain distance, this metric reached none." in page
    assert PLAIN in page
    assert PLAIN not in Outline(render(full_data)).text


def test_words_beside_the_bars_of_a_linkage_model_stay_within_the_chart() -> None:
    from pairveil.report import charts
    from pairveil.report.data import WeightRow

    rows = [WeightRow("name", 0, 2, -9.5, 8.2), WeightRow("name", 1, 2, 128.9, 14.0)]
    assert [row.shown for row in rows] == ["-9.5 ± 8", "+128.9 ± 14"]
    for chart in (charts.weight_bars(rows), charts.waterfall(rows, 0.5)[0]):
        words = [one for one in chart.shapes if one.kind == "text"]
        loose = [one for one in words if "text-anchor" not in dict(one.attributes)]
        ends = [
            float(dict(one.attributes)["x"]) + charts.LETTER * len(str(one.children[0]))
            for one in loose
        ]
        assert max(ends) <= charts.WIDTH
