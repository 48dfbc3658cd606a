"""Classes instead of pairs, and releases that somebody sent: what else the studio takes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from studio_tools import SCHEMA, shown_on, step, upload

from pairveil import DPPMetricLearner, design_pairs
from pairveil.audit import targets
from pairveil.cli import app
from pairveil.errors import InputError
from pairveil.release.metric import ReleasedMetric
from pairveil.studio import commands
from pairveil.studio.commands import Fitting
from pairveil.studio.reading import unpack


def test_from_a_column_of_classes_to_a_verified_release(
    client, project, tables, monkeypatch
) -> None:
    asked = []

    async def ask(words: list[str]) -> commands.Answer:
        asked.append(words)
        return commands.Answer(_run_here(words))

    monkeypatch.setattr(commands, "ask", ask)
    monkeypatch.setattr(commands, "EPSILONS", (2.0,))  # each is planned in full
    monkeypatch.setattr(targets, "RUNS", 100)  # of the attack
    monkeypatch.setattr(Fitting, "_run", _fit_here)
    said = upload(client, "people", tables[0])
    assert said["columns"] == ["patient", "age", "dose", "ward", "visit"]
    assert said["chosen"]["id"] == "patient"
    form = {"learns_from": "classes", "id": "patient"}
    page = client.post(
        "/files", data=form
    ).text  # what was chosen stays chosen, and the field is named
    assert "Choose the field &#39;Class&#39;" in page
    assert 'value="classes" checked' in page
    page = client.post("/files", data={**form, "classes": "ward"})
    assert step(page) == "schema", page.text
    facts = {**SCHEMA, "type-3": "class"}
    page = client.post("/schema", data={**facts, "values-3": "a"})
    assert "list all classes that are possible" in page.text
    assert step(client.get("/plan")) == "schema"
    page = client.post("/schema", data={**SCHEMA, "type-3": "category"})
    assert "its kind must be class" in page.text
    page = client.post("/schema", data=facts)
    assert step(page) == "plan", page.text
    assert "&#34;records&#34;: &#34;people&#34;" in page.text
    assert "Which pairs are used" not in page.text
    assert "choose a table of public people" in page.text  # how to have it scored
    assert "Recommended: epsilon 2 for one person" in page.text
    page = client.post(
        "/plan", data={"epsilon": "2.0", "unit": "person", "title": "Wards", "audit": "yes"}
    )
    assert step(page) == "confirm", page.text
    client.post("/confirm", data={"shown": shown_on(page.text), "read": "yes"})
    assert step(client.get("/")) == "done"
    assert "the attack shows an epsilon of" in client.get("/report").text
    assert [words[0] for words in asked] == ["schema", "plan", "fit"]
    metric = ReleasedMetric.load(project.release)
    assert metric.certificate.verify()
    assert metric.certificate.records == "people"
    assert metric.certificate.for_release
    assert project.table("people") is None


def _run_here(words: list[str]) -> dict[str, Any]:
    """A command without a process of its own: a tenth of the time."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(sys, "argv", ["pairveil", *words, "--json"])
        patch.setattr(os, "_exit", sys.exit)  # this process goes on
        with pytest.raises(SystemExit) as ended:
            app.main()
    assert not ended.value.code
    return json.loads(out.getvalue())


def _fit_here(self: Fitting, words: list[str]) -> None:
    self.project.keep("fit.json", {"words": words, "pid": None})
    _run_here(words)


def test_a_release_that_somebody_sent_is_read_and_forgotten(
    client, project, tmp_path, monkeypatch
) -> None:
    async def ask(words: list[str]) -> commands.Answer:
        return commands.Answer(_run_here(words))

    monkeypatch.setattr(commands, "ask", ask)
    made = DPPMetricLearner(preprocessor=np.zeros((40, 2)), n_steps=2, random_state=0)
    pairs = design_pairs(40, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(pairs, np.ones(len(pairs))).release(tmp_path / "sent")
    with zipfile.ZipFile(tmp_path / "sent.zip", "w") as archive:
        for file in (tmp_path / "sent").iterdir():
            archive.write(file, f"../../{file.name}")
    assert client.delete("/read").status_code == 200
    content = (tmp_path / "sent.zip").read_bytes()
    headers = {"x-file-name": quote("../sent release.zip")}
    assert client.put("/read/file", content=content, headers=headers).status_code == 200
    assert sorted(file.name for file in project.folder.iterdir()) == [".received"]
    answer = client.post("/read/report")
    assert answer.status_code == 200, answer.text
    assert list(project.folder.iterdir()) == []
    page = client.get("/read/report")
    assert "script-src 'sha256-" in page.headers["content-security-policy"]
    assert "What is not promised" in page.text
    # It was made with a seed: neither a number nor a box to sign.
    assert "Do not use." in page.text
    assert "in 100 about one" not in page.text
    assert "Name and role" not in page.text
    assert ".received" not in page.text  # the folder's name is the studio's own


@pytest.mark.parametrize("what", ["certificate.json", "metric.safetensors"])
def test_a_tampered_release_is_not_to_be_used(client, tmp_path, what: str) -> None:
    pairs = design_pairs(40, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = DPPMetricLearner(preprocessor=np.zeros((40, 2)), n_steps=2)
        made.fit(pairs, np.ones(len(pairs))).release(tmp_path / "sent")
    content = (tmp_path / "sent" / what).read_bytes()
    told = json.loads(content) if what == "certificate.json" else None
    if told is None:
        content = content[:-1] + b"!"
    else:
        told["epsilon"] = told["epsilons"]["relationship"]["zero-out"] = 0.1
        content = json.dumps(told).encode()
    client.delete("/read")
    for file in (tmp_path / "sent").iterdir():
        sent = content if file.name == what else file.read_bytes()
        client.put("/read/file", content=sent, headers={"x-file-name": file.name})
    answer = client.post("/read/report")
    if told is None:  # there is nothing that the certificate is about
        assert answer.status_code == 400
        assert "do not use this release" in answer.json()["problem"]
        assert client.get("/read/report").status_code == 404
        return
    assert answer.status_code == 200, answer.text
    page = client.get("/read/report").text
    assert "Do not use." in page
    assert "stated as 0.1" in page
    for words in ("in 100 about one", "Name and role", "in exact words", "Numbers check out"):
        assert words not in page


def test_many_pairs_get_a_delta_that_is_small_enough(project) -> None:
    assert commands.usual_delta(project) == 1e-5
    project.keep("kappa.json", {"n_pairs": 99_999})
    assert commands.usual_delta(project) == 1e-5
    project.keep("kappa.json", {"n_pairs": 100_000})
    assert commands.usual_delta(project) == 1e-6


@given(st.integers(0, 400), st.integers(1, 255))
@settings(max_examples=60, deadline=None)
def test_a_damaged_zip_file_is_refused_or_read(place: int, change: int) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("release/certificate.json", "0123456789" * 40)
        archive.writestr("release/metric.safetensors", bytes(range(256)))
    content = bytearray(buffer.getvalue())
    content[place % len(content)] ^= change
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.zip").write_bytes(content)
        with contextlib.suppress(InputError):
            unpack(Path(folder) / "a.zip")
        assert {file.parent for file in Path(folder).rglob("*")} <= {Path(folder)}
        assert not (Path(folder) / "a.zip").exists()


def test_a_zip_file_of_too_many_files_is_told_so(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(101):
            archive.writestr(f"{number}.json", "{}")
    with pytest.raises(InputError, match="holds more than a release"):
        unpack(tmp_path / "a.zip")


def test_what_is_no_release_is_refused_and_forgotten(client, project) -> None:
    client.delete("/read")
    for name in ("a.zip", "certificate.json"):
        client.put("/read/file", content=b"PK\x03\x04 no", headers={"x-file-name": name})
    answer = client.post("/read/report")
    assert answer.status_code == 400
    assert "problem" in answer.json()
    assert list(project.folder.iterdir()) == []
    assert client.get("/read/report").status_code == 404
