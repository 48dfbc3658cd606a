"""The studio in a real browser: two raw tables to a verified release, by mouse and by keyboard.

Needs Debian's chromium and chromium-driver. ``PAIRVEIL_SCREENSHOTS=FOLDER`` keeps a picture of each page at
three widths and in the dark.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from studio_tools import SCHEMA

from pairveil.privacy.ledger import PrivacyLedger
from pairveil.release.metric import ReleasedMetric

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
WebDriverException = pytest.importorskip("selenium.common.exceptions").WebDriverException
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="needs a browser: apt-get install chromium chromium-driver",
)
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
    "--hide-scrollbars",
    "--window-size=1280,1000",
)
WIDTHS = (375, 768, 1280)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    driver.implicitly_wait(5)
    with suppress(
        WebDriverException
    ):  # a first page that loads much of its own, where there is one
        driver.get("chrome://new-tab-page")
    yield driver
    driver.quit()


def _serve(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """The real command, and the address that it says."""
    words = ["studio", "--folder", str(folder), "--budget", "5", "--json"]
    server = subprocess.Popen(
        [sys.executable, "-m", "pairveil", *words], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    return server, json.loads(server.stdout.readline())["url"]


def _find(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def _wait_for(browser: Any, path: str, seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while not browser.current_url.split("?")[0].endswith(path):
        assert time.monotonic() < until, (browser.current_url, browser.page_source[:3000])
        time.sleep(0.1)


def _submit(browser: Any, selector: str, seconds: float = 120.0) -> None:
    """Press a button whose answer has the same address, and wait for that answer."""
    browser.execute_script("document.documentElement.dataset.before = 'yes'")
    _press(browser, selector)
    until = time.monotonic() + seconds
    while not browser.execute_script(
        "return document.readyState == 'complete' && !document.documentElement.dataset.before"
    ):
        assert time.monotonic() < until, browser.page_source[:3000]
        time.sleep(0.1)


def _press(browser: Any, selector: str) -> None:
    found = _find(browser, selector)
    browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", found
    )
    found.click()


def _look(browser: Any, name: str) -> None:
    """At three widths nothing is cut off, nobody is shut out, and everything comes from this machine."""
    folder = os.environ.get("PAIRVEIL_SCREENSHOTS")
    for width in WIDTHS:
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        size = browser.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
        )
        assert size[0] <= width, (name, width)
        if folder:
            _picture(browser, Path(folder) / f"studio-{name}-{width}.png", width, size[1])
    for scheme in ("dark", "light"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
        assert _barriers(browser) == set(), (name, scheme)
        if folder and scheme == "dark":
            _picture(browser, Path(folder) / f"studio-{name}-dark.png", WIDTHS[-1], size[1])
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def _picture(browser: Any, file: Path, width: int, height: int) -> None:
    clip = {"x": 0, "y": 0, "width": width, "height": min(height, 6000), "scale": 1}
    shot = {"captureBeyondViewport": True, "clip": clip}
    file.write_bytes(
        base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", shot)["data"])
    )


def _barriers(browser: Any) -> set[str]:
    """Rules of WCAG 2 A and AA that axe-core finds broken."""
    if find_spec("axe_core_python") is None:
        return set()
    # Through the debugger, not by a script element: the page's own policy would refuse it.
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    browser.execute_script(axe)
    found = browser.execute_async_script(
        "axe.run(document, {resultTypes: ['violations'], "
        "runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']})"
        ".then(arguments[0])"
    )
    assert len(found["passes"]) + len(found["violations"]) > 5
    return {f"{rule['id']}: {rule['nodes'][0]['html'][:120]}" for rule in found["violations"]}


def _foreign_requests(browser: Any, home: str) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
        and not m["params"]["documentURL"].startswith("chrome")  # the browser's own first page
    ]
    return [url for url in urls if not url.startswith((home, "data:"))]


def test_from_two_raw_tables_to_a_verified_release(browser, tables, tmp_path: Path) -> None:
    folder = tmp_path / "studio"
    server, url = _serve(folder)
    home = url.split("/?")[0]
    try:
        browser.get(url)
        _wait_for(browser, "/files")
        assert "token" not in browser.current_url
        for which, file in zip(("people", "pairs"), tables, strict=True):
            _find(browser, f"#file-{which}").send_keys(str(file))
            state = _find(browser, f"#state-{which}")
            until = time.monotonic() + 20
            while not state.text.startswith("Here:"):
                assert time.monotonic() < until, state.text
                time.sleep(0.05)
        for name, value in (("id", "patient"), ("left", "a"), ("right", "b"), ("label", "verdict")):
            assert _find(browser, f"#{name}").get_property("value") == value  # by the header
        assert not _find(browser, "#classes").is_displayed()
        hidden = _find(browser, "#file-people").value_of_css_property("color")
        assert hidden.endswith(", 0)")  # the browser's "No file chosen" above "Here: ..."
        _look(browser, "1-files")
        browser.execute_script("document.getElementById('right').value = 'a'")
        _submit(browser, "button.main")
        assert _find(browser, "#problem").is_displayed()
        assert "400 (Bad Request)" in browser.get_log("browser")[-1]["message"]
        browser.execute_script("document.getElementById('right').value = 'b'")
        _press(browser, "button.main")
        _wait_for(browser, "/schema")
        browser.back()  # a refused form is not sent again
        assert _find(browser, "#file-people").is_displayed()
        _press(browser, "button.main")

        _wait_for(browser, "/schema")
        assert not _find(browser, "#values-1").is_displayed()  # a number needs no categories
        for name, value in SCHEMA.items():
            if name.startswith("type"):
                continue
            element = _find(browser, f"[name='{name}']")
            if name.startswith(("fill", "indicator")):
                browser.execute_script("arguments[0].closest('details').open = true", element)
            if name.startswith("indicator"):
                _press(browser, f"[name='{name}']")
            else:
                element.send_keys(value)
        _look(browser, "2-columns")
        _press(browser, "button.main")

        _wait_for(browser, "/plan")
        said = _move_the_slider(browser)
        _look(browser, "3-privacy")
        _find(browser, "#title").send_keys("Doses and ages")
        _press(browser, "[name=score]")
        _press(browser, "button.main")

        _wait_for(browser, "/confirm")
        assert said["guess"].partition(" are")[0] in _find(browser, ".large").text
        _look(browser, "4-confirm")
        assert not (folder / "ledger.json").exists()
        _press(browser, "[name=read]")
        _press(browser, "form.card button.main")

        _wait_for(browser, "/progress", 20)
        browser.refresh()  # reloaded in mid-fit
        _wait_for(browser, "/done")
        assert "Numbers check out: every epsilon was recomputed" in _find(browser, "main").text
        assert "people kept out of learning" in _find(browser, "main").text
        _submit(browser, "form[action=sign] button")
        assert "It is signed" in _find(browser, "main").text
        _look(browser, "5-release")
        assert not any(word in _find(browser, "body").text for word in ("--", "pairveil sign"))
        _press(browser, "a[href='report']")
        _wait_for(browser, "/report")
        assert _find(browser, "#promise .large").is_displayed()
        assert _find(browser, "h1").text == "Doses and ages"
        _receive(browser, home, folder)
        said = [entry["message"] for entry in browser.get_log("browser")]
        quiet = [line for line in said if "favicon" not in line and not line.startswith("chrome")]
        assert quiet == []
        assert _foreign_requests(browser, home) == []
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)
        server.stdout.close()
    metric = ReleasedMetric.load(folder / "release")
    assert metric.certificate.verify()
    assert len(PrivacyLedger.open(folder / "ledger.json").entries) == 1
    assert not list(folder.glob("people.*"))


def _receive(browser: Any, home: str, folder: Path) -> None:
    """What was made and signed, read as whoever gets it would: by the sender's public key."""
    studio = browser.current_url.rpartition("/")[0]
    assert studio.startswith(home)
    browser.get(f"{studio}/read")
    _find(browser, "#signer").send_keys(str(folder / "sender.pem.pub"))
    every = [str(file) for file in (folder / "release").iterdir()]
    _find(browser, "#release").send_keys("\n".join(every))
    until = time.monotonic() + 60
    while not (said := _find(browser, "#state-release").text).startswith("Signed by the holder"):
        assert time.monotonic() < until, said
        time.sleep(0.1)
    _look(browser, "6-read")
    _press(browser, "#to-report a")
    _wait_for(browser, "/read/report")
    assert _find(browser, "#promise .large").is_displayed()


def _move_the_slider(browser: Any) -> dict[str, str]:
    """By keyboard: to the left is more private; returns what the page says in the end."""
    keys = webdriver.Keys
    slider = _find(browser, "#slider")
    slider.send_keys(keys.END)
    loose = _seen(browser)
    for _ in range(5):
        slider.send_keys(keys.ARROW_LEFT)
    tight = _seen(browser)
    assert tight["epsilon"] == "1.5"
    assert tight["guess"] != loose["guess"]
    assert loose["left"] == "not enough"  # epsilon 8 of a budget of 5
    assert tight["left"] == "3.5"
    _press(browser, "[name=unit][value=person]")
    assert (
        _seen(browser)["person"] != tight["person"]
    )  # a person gets the whole epsilon for herself
    _press(browser, "[name=unit][value=relationship]")
    assert _seen(browser) == tight
    heads = browser.find_elements("css selector", ".heads .as-more")
    right = int(tight["guess"].split("At most ")[1].split()[0])
    assert len(heads) == 2 * (right - 50)
    _press(
        browser, "[name=score]"
    )  # three pairs in ten are not learned from: a forecast of its own
    low, high = map(int, re.findall(r"\d+", _seen(browser)["gain"]))
    before = [int(one) for one in re.findall(r"\d+", tight["gain"])]
    assert [low, high] <= before
    assert low < before[0] or high < before[1]
    assert "that the score leaves" in _find(browser, "#gain-words").text
    _press(browser, "[name=score]")
    assert _seen(browser) == tight
    return tight


def _seen(browser: Any) -> dict[str, str]:
    names = {"epsilon": "#epsilon-shown", "guess": "#guess-words", "gain": "#gain", "left": "#left"}
    names["person"] = "#person-words"
    return {name: _find(browser, selector).text for name, selector in names.items()}
