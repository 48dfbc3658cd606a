"""The page in a real browser: it renders, it is quiet, and it works by mouse and by keyboard.

Needs Debian's chromium and chromium-driver. ``PAIRVEIL_SCREENSHOT=FILE.png`` keeps a picture of the page.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pairveil import DPPMetricLearner, ReleasedRanking, error_curve
from pairveil.learners.ranking import PrivatePreferenceRanker
from pairveil.linkage import PrivateLinkageModel
from pairveil.release.payloads import DescribedNetwork
from pairveil.report.facts import read_release, with_curve
from pairveil.report.page import write

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="needs a browser: apt-get install chromium chromium-driver",
)
A4 = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True}
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    # Where something else on the machine has the keyboard, a page's marks would get and lose their focus.
    driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    yield driver
    driver.quit()


@pytest.fixture
def page(browser: Any, full_data, tmp_path: Path) -> Any:
    """The browser with the full report freshly opened, in light colours."""
    file = write(full_data, tmp_path / "report.html")
    browser.set_window_size(1280, 1000)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    _media(browser, "", "light")
    _open(browser, file)
    return browser


def _open(browser: Any, file: Path) -> None:
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # reading empties it
    browser.get(file.as_uri())


def _media(browser: Any, media: str, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def _requests(browser: Any) -> list[str]:
    """Addresses that the page asked for, except itself."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
        and not m["params"]["documentURL"].startswith("chrome")  # the browser's own first page
    ]
    return [url for url in urls if not url.startswith("file:") and not url.startswith("data:,")]


def _find(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def _all(browser: Any, selector: str) -> list[Any]:
    return browser.find_elements("css selector", selector)


def _press(browser: Any, *keys: str) -> None:
    webdriver.ActionChains(browser).send_keys(*keys).perform()


def _colour(browser: Any, selector: str, which: str) -> str:
    return browser.execute_script(
        "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]",
        selector,
        which,
    )


# ---- quiet ------------------------------------------------------------------------------------


def test_it_renders_without_a_word_on_the_console_or_the_network(page) -> None:
    assert page.title == "Patients: which tumours are alike?: privacy report"
    assert _find(page, "#promise .verdict").is_displayed()
    assert page.get_log("browser") == []
    assert _requests(page) == []
    size = page.execute_script("return document.documentElement.outerHTML.length")
    assert 50_000 < size < 5_000_000


def test_the_checks_above_can_fail(browser, tmp_path: Path) -> None:
    file = tmp_path / "noisy.html"
    file.write_text(
        "<!doctype html><img src='http://127.0.0.1:9/x.png' alt=''><script>throw Error('x')</script>",
        encoding="utf-8",
    )
    _open(browser, file)
    assert browser.get_log("browser")
    assert _requests(browser) == ["http://127.0.0.1:9/x.png"]


def test_the_policy_stops_what_does_not_belong(page) -> None:
    page.execute_script(
        "const i = document.createElement('img'); i.src = 'http://127.0.0.1:9/x.png';"
        "document.body.append(i);"
        "const s = document.createElement('script'); s.textContent = 'window.pwned = 1';"
        "document.body.append(s);"
    )
    assert page.execute_script("return window.pwned") is None
    assert any("Content Security Policy" in entry["message"] for entry in page.get_log("browser"))


# ---- marks ------------------------------------------------------------------------------------


def _check_marks(page: Any, n_charts: int) -> None:
    """Every chart is shown, and its marks have a size and lie inside it."""
    charts = _all(page, "svg.chart")
    visible = [chart for chart in charts if chart.is_displayed()]
    assert len(charts) == len(visible) == n_charts
    for chart in visible:
        boxes = page.execute_script(
            "const frame = arguments[0].getBoundingClientRect();"
            "return [...arguments[0].querySelectorAll('.mark')].map(mark => {"
            "  const b = mark.getBoundingClientRect();"
            "  return [b.width + b.height, b.left >= frame.left - 2 && b.right <= frame.right + 2"
            "    && b.top >= frame.top - 2 && b.bottom <= frame.bottom + 2]; })",
            chart,
        )
        assert boxes
        assert all(size > 0 and inside for size, inside in boxes), chart.get_attribute("aria-label")


def test_every_chart_has_marks_with_a_size(page) -> None:
    _check_marks(page, 11)
    assert len(_all(page, "#quality .curve-point:not(.plain)")) == 5


def test_a_linkage_model_with_its_operating_point(browser, tmp_path: Path) -> None:
    y, people = np.repeat([1, -1], 1500), np.arange(6000).reshape(-1, 2)
    rng = np.random.default_rng(0)
    levels = np.where(rng.random((3000, 3)) < 0.8, y[:, None] > 0, y[:, None] < 0).astype(int)
    PrivateLinkageModel().fit(levels, y, people, [2, 3, 2]).release(tmp_path / "linkage")
    scores = np.clip(rng.normal(y / 4, 0.2), -1, 1)
    curve = error_curve(scores, y, people, 1.0, 1e-5, (-1, 1))
    replace(curve, asked=0.1).save(tmp_path / "point")
    data = with_curve(read_release(tmp_path / "linkage"), tmp_path / "point")
    browser.set_window_size(1280, 1000)
    _media(browser, "", "light")
    _open(browser, write(data, tmp_path / "report.html"))
    assert browser.get_log("browser") == []
    _check_marks(browser, 5)
    assert len(_all(browser, "#operating .this-fit")) == 1
    assert _barriers(browser) == set()
    _check_widths(browser)
    _check_labels(browser)


def test_other_kinds_of_release_fit_every_screen(browser, full_data, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    choices = np.column_stack(
        [np.repeat(np.arange(50), 8), rng.permuted(np.tile(np.arange(12), (400, 1)), axis=1)[:, :2]]
    )
    ranking = PrivatePreferenceRanker(epsilon=2.0, unit="worker").certify(choices, 12)
    strengths = ReleasedRanking(
        strengths=rng.normal(size=12), names=[20 * "long " for _ in range(12)]
    )
    learner = DPPMetricLearner(epsilon=4.0, unit="person")
    people = learner.prepare_classes(np.zeros((90, 3)), ["a", "b", "c"] * 30, ["a", "b", "c"])
    network = DescribedNetwork((3, 224, 224), 10**7, "Sequential(\n" + 3 * ("x" * 300 + "\n") + ")")
    for data in (
        replace(full_data, certificate=ranking, answer=strengths),
        replace(full_data, certificate=learner.certify(people)),
        replace(full_data, answer=network),
    ):
        _open(browser, write(data, tmp_path / "report.html"))
        assert browser.get_log("browser") == []
        _check_widths(browser)


def _check_widths(browser: Any) -> None:
    for width in (375, 768, 1280):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_script(
            "document.querySelectorAll('details').forEach(d => { d.open = true; })"
        )
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


LABELS = """
const small = [], touching = [];
for (const chart of document.querySelectorAll("svg.chart")) {
  const labels = [...chart.querySelectorAll("text")];
  const boxes = labels.map((one) => one.getBoundingClientRect());
  labels.forEach((one, i) => {
    const size = parseFloat(getComputedStyle(one).fontSize) * chart.getScreenCTM().a;
    if (size < 12) small.push(`${one.textContent}: ${size}`);
    if (boxes[i].left < 0 || boxes[i].right > innerWidth) touching.push(`${one.textContent}: cut off`);
    boxes.slice(i + 1).forEach((other, j) => {
      const wide = Math.min(boxes[i].right, other.right) - Math.max(boxes[i].left, other.left);
      const tall = Math.min(boxes[i].bottom, other.bottom) - Math.max(boxes[i].top, other.top);
      if (wide > 1 && tall > 4) touching.push(`${one.textContent} / ${labels[i + j + 1].textContent}`);
    });
  });
}
return [small, touching];
"""


def _check_labels(browser: Any) -> None:
    """On a telephone too the words of charts are as large as small print, and none lies on another."""
    for width in (375, 768, 1280):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert browser.execute_script(LABELS) == [[], []], width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_words_of_charts_can_be_read_on_a_telephone(page) -> None:
    _check_labels(page)


# ---- tabs -------------------------------------------------------------------------------------


def _shown(page: Any) -> list[bool]:
    return [panel.is_displayed() for panel in _all(page, "#recompute [role=tabpanel]")]


def test_tabs_work_by_mouse(page) -> None:
    shell, python = _all(page, "#recompute [role=tab]")
    assert [shell.text, python.text] == ["Command line", "Python"]
    assert _shown(page) == [True, False]
    page.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", python
    )
    python.click()
    assert _shown(page) == [False, True]
    assert python.get_attribute("aria-selected") == "true"
    assert shell.get_attribute("aria-selected") == "false"


def test_tabs_work_by_keyboard(page) -> None:
    keys = webdriver.Keys
    shell, python = _all(page, "#recompute [role=tab]")
    page.execute_script("arguments[0].focus()", shell)
    for key, shown in (
        (keys.ARROW_RIGHT, [False, True]),
        (keys.ARROW_RIGHT, [True, False]),
        (keys.END, [False, True]),
        (keys.HOME, [True, False]),
    ):
        _press(page, key)
        assert _shown(page) == shown
    _press(page, keys.TAB)
    assert page.switch_to.active_element not in (shell, python)  # one stop for the whole list


# ---- tooltips ---------------------------------------------------------------------------------


def test_tooltips_follow_the_mouse(page) -> None:
    tip, mark = (
        _find(page, "#tip"),
        _find(page, "svg[aria-label^='Curve: pairs'] .curve-point circle"),
    )
    assert not tip.is_displayed()
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", mark)
    webdriver.ActionChains(page).move_to_element(mark).perform()
    assert tip.is_displayed()
    assert tip.text == "plain distance: 4 of 100 found when 1 of 100 are taken wrongly"
    webdriver.ActionChains(page).move_to_element(_find(page, "#quality h3")).perform()
    assert not tip.is_displayed()


@pytest.mark.parametrize("rests_at", [None, (200, 800), (500, 500), (800, 300)])
def test_tooltips_follow_the_keyboard(page, rests_at: tuple[int, int] | None) -> None:
    """Wherever the pointer rests meanwhile: the page scrolls beneath it."""
    if rests_at is not None:
        pointer = webdriver.ActionChains(page)
        pointer.w3c_actions.pointer_action.move_to_location(*rests_at)
        pointer.perform()
    keys, tip = webdriver.Keys, _find(page, "#tip")
    marks = _all(page, "svg[aria-label^='Curve: pairs'] .mark")
    stops = [mark for mark in marks if mark.get_attribute("tabindex") == "0"]
    assert stops == marks[:1]
    page.execute_script("arguments[0].focus()", marks[0])
    said = [tip.text]
    for _ in marks[1:]:
        _press(page, keys.ARROW_RIGHT)
        assert tip.is_displayed()
        said.append(tip.text)
    assert said == [mark.get_attribute("data-tip") for mark in marks]
    assert len(set(said)) == len(said)
    _press(page, keys.ESCAPE)
    assert not tip.is_displayed()


def test_the_keyboard_reaches_everything_in_order(page) -> None:
    _press(page, webdriver.Keys.TAB)
    assert page.switch_to.active_element.text == "Skip to the content"
    order = []
    for _ in range(120):
        _press(page, webdriver.Keys.TAB)
        here = page.switch_to.active_element
        if here.tag_name == "body":
            break
        order.append(here.rect["y"] if here.tag_name != "a" else 0)
        outline = page.execute_script("return getComputedStyle(arguments[0]).outlineStyle", here)
        assert outline != "none" or here.tag_name == "g"  # marks show their focus by their edge
    assert 25 < len(order) < 120
    # Columns stand side by side, so a step back up by less than a screen is right.
    assert all(after > before - 1000 for before, after in itertools.pairwise(order))


# ---- light, dark, paper, small, no script ------------------------------------------------------


def test_dark_mode_is_dark(page) -> None:
    light = (
        _colour(page, "body", "backgroundColor"),
        _colour(page, "#quality .curve:not(.plain)", "stroke"),
    )
    _media(page, "", "dark")
    dark = (
        _colour(page, "body", "backgroundColor"),
        _colour(page, "#quality .curve:not(.plain)", "stroke"),
    )
    assert light == ("rgb(244, 246, 248)", "rgb(11, 95, 107)")
    assert dark == ("rgb(14, 20, 26)", "rgb(103, 203, 214)")


def test_paper_shows_every_panel_and_is_light(page) -> None:
    _media(page, "print", "dark")
    assert _shown(page) == [True, True]
    assert not _find(page, "nav").is_displayed()
    assert _colour(page, ".card", "backgroundColor") == "rgb(255, 255, 255)"
    pdf = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", A4)["data"])
    assert len(re.findall(rb"/Type\s*/Page[^s]", pdf)) <= 4
    assert not _find(page, "#graph details.data").is_displayed()  # no long tables on paper


def test_a_telephone_needs_no_sideways_scrolling(page) -> None:
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 375, "height": 800, "deviceScaleFactor": 2, "mobile": True},
    )
    page.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    wide = page.execute_script("return document.documentElement.scrollWidth")
    cut_off = page.execute_script(
        "return [...document.querySelectorAll('table, tbody th, tbody td')].filter(cell => {"
        "  const box = cell.getBoundingClientRect();"
        "  return box.right > innerWidth || cell.scrollWidth > cell.clientWidth + 1; }).length"
    )
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 375
    assert cut_off == 0


def test_without_a_script_everything_is_there(page, tmp_path: Path) -> None:
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    page.refresh()
    assert _all(page, "[role=tab]") == []
    titles = [title.text for title in _all(page, ".panel-title")]
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert titles == ["Command line", "Python"]


def _barriers(browser: Any) -> set[str]:
    """Rules of WCAG 2 A and AA that axe-core finds broken."""
    if find_spec("axe_core_python") is None:
        pytest.skip("axe-core-python is not installed")
    browser.execute_script(
        files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    )
    found = browser.execute_async_script(
        "axe.run(document, {resultTypes: ['violations'], "
        "runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']})"
        ".then(arguments[0])"
    )
    assert len(found["passes"]) + len(found["violations"]) > 5
    return {rule["id"] for rule in found["violations"]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barriers_are_found(page, scheme: str) -> None:
    _media(page, "", scheme)
    assert _barriers(page) == set()


def test_barriers_would_be_found(browser, tmp_path: Path) -> None:
    file = tmp_path / "barrier.html"
    file.write_text(
        "<!doctype html><p style='color:#999'>pale</p><img src='data:,'>", encoding="utf-8"
    )
    _open(browser, file)
    assert {"color-contrast", "image-alt", "html-has-lang"} <= _barriers(browser)


def test_a_picture_is_kept(page, tmp_path: Path) -> None:
    target = Path(os.environ.get("PAIRVEIL_SCREENSHOT") or tmp_path / "report.png")
    height = page.execute_script("return document.documentElement.scrollHeight")
    page.set_window_size(1280, height + 100)
    assert page.save_screenshot(str(target))
    assert target.stat().st_size > 50_000
