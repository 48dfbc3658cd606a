"""Two raw tables, and a client of a studio; shared by the tests of this folder."""

from __future__ import annotations

import re
import time
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

pytest.importorskip(
    "starlette", reason="starlette is not installed: pip install 'pairveil[studio]'"
)
pytest.importorskip("httpx", reason="httpx is not installed")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer ones would rather have another client than httpx
    from starlette.testclient import TestClient

from pairveil.studio.app import create_app
from pairveil.studio.project import Project

ORIGIN = "http://127.0.0.1:8765"
TOKEN = "a-token-for-one"


def write_tables(folder: Path, n_people: int = 150) -> tuple[Path, Path]:
    """Raw people and pairs, with gaps, categories and a date; labels follow the age."""
    rng = np.random.default_rng(7)
    age, dose = rng.integers(18, 90, n_people), rng.normal(5, 2, n_people).round(2)
    rows = ["patient,age,dose,ward,visit"]
    for i in range(n_people):
        shown = "" if i % 17 == 0 else str(age[i])
        rows.append(f"p{i},{shown},{dose[i]},{'ab'[i % 2]},2024-0{1 + i % 9}-11")
    people, pairs = folder / "raw people.csv", folder / "raw pairs.csv"
    people.write_text("\n".join(rows) + "\n", encoding="utf-8")
    public = ["patient,age,dose,ward,visit,old"]
    for i, years in enumerate(rng.integers(18, 90, 40)):
        public.append(
            f"q{i},{years},{rng.normal(5, 2):.2f},a,2024-01-11,{'yes' if years > 55 else 'no'}"
        )
    (folder / "public.csv").write_text("\n".join(public) + "\n", encoding="utf-8")
    chosen = {tuple(sorted(rng.choice(n_people, 2, replace=False))) for _ in range(2 * n_people)}
    lines = ["a,b,verdict"]
    for left, right in sorted(chosen):
        same = abs(int(age[left]) - int(age[right])) < 20
        lines.append(f"p{left},p{right},{'same' if same else 'different'}")
    pairs.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return people, pairs


def open_client(project: Project) -> TestClient:
    """A client of a server that was just started; use it as a context."""
    app = create_app(project, TOKEN, 8765)
    return TestClient(app, base_url=ORIGIN, headers={"origin": ORIGIN}, follow_redirects=True)


def enter(client: TestClient) -> None:
    """Bring the token, once; from then on paths are below the secret one."""
    answer = client.get("/", params={"token": TOKEN})
    assert answer.status_code == 200
    client.base_url = f"{ORIGIN}{answer.history[0].headers['location']}"


def step(page: Any) -> str:
    """Which step a page is, by its address."""
    return page.url.path.rpartition("/")[2]


def upload(client: TestClient, which: str, file: Path, name: str | None = None) -> dict:
    """Send a table as the page's script does."""
    headers = {"x-file-name": quote(name or file.name)}
    return client.put(f"/files/{which}", content=file.read_bytes(), headers=headers).json()


COLUMNS = {"id": "patient", "left": "a", "right": "b", "label": "verdict", "public_classes": "old"}
SCHEMA = {
    "type-0": "id",
    "type-1": "number", "low-1": "0", "high-1": "120", "fill-1": "50", "indicator-1": "yes",
    "type-2": "number", "low-2": "0", "high-2": "20",
    "type-3": "category", "values-3": "a, b",
    "type-4": "date", "low-4": "2020-01-01", "high-4": "2025-12-31",
}  # fmt: skip
CHOICE = {
    "epsilon": "2.0",
    "unit": "relationship",
    "select": "paths",
    "title": "Doses & <b>ages</b>",
    "score": "yes",
}


def shown_on(page: str) -> str:
    """What names the plan that a page asks to confirm."""
    return re.search('name="shown" value="([0-9a-f]+)"', page)[1]


def wait_until_done(client: TestClient, seconds: float = 60.0) -> dict:
    """What the page's script sees in the end."""
    until = time.monotonic() + seconds
    while (said := client.get("/status").json())["state"] == "running":
        assert time.monotonic() < until
        time.sleep(0.1)
    return said
