"""From two raw tables to a verified release, through the pages, as a browser would."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shutil
import tomllib
import zipfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from studio_tools import (
    CHOICE,
    COLUMNS,
    ORIGIN,
    SCHEMA,
    TOKEN,
    enter,
    open_client,
    shown_on,
    step,
    upload,
    wait_until_done,
)

from pairveil.errors import InputError
from pairveil.privacy.events import GaussianEvent
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.release.metric import ReleasedMetric
from pairveil.studio import commands, forms
from pairveil.studio.app import create_app
from pairveil.studio.commands import Fitting
from pairveil.studio.project import MOST_COLUMNS, Project

EVILS = (
    "../../../../etc/passwd.csv",
    "..\\..\\windows.csv",
    "/etc/cron.d/x.csv",
    "<script>alert(1)</script>.csv",
    'a"; rm -rf ~;.csv',
    "\u202egnp.\x1b[2J.csv",
    "a" * 5000 + ".csv",
    "con.csv\x00.exe.csv",
)


@pytest.mark.parametrize("name", EVILS)
def test_a_malicious_file_name_is_only_a_name(client, project, tables, name: str) -> None:
    before = set(project.folder.parent.rglob("*"))
    said = upload(client, "people", tables[0], name)
    assert "problem" not in said
    made = {file.name for file in set(project.folder.parent.rglob("*")) - before}
    assert made == {"people.csv", "settings.json"}
    page = client.get("/files").text
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert len(page) < 20_000


@pytest.mark.parametrize("name", ["people.exe", "people", ".csv", "people.csv.sh", ""])
def test_a_file_of_another_kind_is_refused(client, project, tables, name: str) -> None:
    headers = {"x-file-name": name}
    answer = client.put("/files/people", content=b"id\n1", headers=headers)
    assert answer.status_code == 400
    assert "ends in" in answer.json()["problem"]
    assert (
        client.put("/files/ledger", content=b"x", headers={"x-file-name": "a.csv"}).status_code
        == 400
    )
    project.ledger.write_text("{}")
    for which in ("ledger", "settings", "..%2Fledger"):
        client.put(f"/files/{which}", content=b"\xff", headers={"x-file-name": "a.json"})
    assert project.ledger.read_text() == "{}"
    project.ledger.unlink()
    assert sorted(file.name for file in project.folder.iterdir()) == []


def test_a_table_that_cannot_be_read_is_said_at_once_and_not_kept(client, project) -> None:
    headers = {"x-file-name": "Patienten.csv"}
    answer = client.put("/files/people", content="id;Größe\n1;2".encode("cp1252"), headers=headers)
    assert answer.status_code == 400
    assert "Patienten.csv is not UTF-8" in answer.json()["problem"]
    assert project.table("people") is None


def test_the_private_table_is_no_public_test(client, project, at) -> None:
    at("plan")
    shutil.copy(project.table("people"), project.folder / "public.csv")
    page = client.post("/plan", data=CHOICE)
    assert page.status_code == 400
    assert "those people are private" in page.text


def test_all_that_is_wrong_is_a_list_to_download_that_goes_with_the_tables(
    client, project, tables
) -> None:
    people, pairs = tables
    upload(client, "people", people)
    first, *rest = pairs.read_text().splitlines()
    dirty = pairs.with_name("dirty.csv")
    dirty.write_text(
        "\n".join([first, "p1,p1,same", "p2,p3,dunno", "p2,nobody,same", *rest]) + "\n"
    )
    upload(client, "pairs", dirty)
    page = client.post("/files", data=COLUMNS)
    assert page.status_code == 400
    for part in (
        "<li>1 label cannot be read",
        "<li>1 pair joins a person with herself (row 1)",
        "not among the people",
        "problems.csv",
    ):
        assert part in page.text
    assert "--leave-out" not in page.text
    assert "pairs,self-pair,,1" in client.get("/problems.csv").text
    page = client.post("/files", data=COLUMNS | {"leave_out": "yes"})
    assert step(page) == "schema"
    assert "1 label cannot be read" in page.text
    assert "left out by ids alone: 2 pairs" in page.text
    assert "problems.csv" in page.text
    client.post("/over")
    assert not project.problems.exists()
    assert client.get("/problems.csv").status_code == 404


def test_swapped_files_are_noticed_by_what_they_hold(client, tables) -> None:
    people, pairs = tables
    found = upload(client, "people", pairs)["chosen"] | upload(client, "pairs", people)["chosen"]
    page = client.post("/files", data=found)
    assert page.status_code == 400
    assert "raw pairs.csv has the columns of pairs" in page.text
    assert "are the two files swapped?" in page.text


def test_what_was_typed_stays_when_the_same_columns_come_again(
    client, project, at, monkeypatch
) -> None:
    at("plan")
    typed = project.schema.read_text()
    said = tomllib.loads(typed)["columns"]
    columns = [{"name": name} for name in said]

    async def ask(words: list[str]) -> commands.Answer:
        if words[0] == "schema":  # a template without bounds, and with other guesses of kinds
            kinds = {"id": "id", "date": "number"}
            lines = [f'[columns."{one["name"]}"]\ntype = "{kinds.get(said[one["name"]]["type"], "skip")}"'
                     for one in columns]  # fmt: skip
            project.schema.write_text("version = 1\n" + "\n".join(lines))
        return commands.Answer({"columns": columns})

    monkeypatch.setattr(commands, "ask", ask)
    client.post("/files", data=COLUMNS)
    assert tomllib.loads(project.schema.read_text()) == tomllib.loads(typed)
    gone = columns.pop(1)["name"]
    client.post("/files", data=COLUMNS)
    left = tomllib.loads(project.schema.read_text())["columns"]
    assert left == {name: facts for name, facts in said.items() if name != gone}


def test_starting_over_keeps_what_was_said_of_the_columns(client, project, at, tables) -> None:
    at("confirm")
    said = project.schema.read_text()
    assert "What you said of the columns is kept" in client.get("/confirm").text
    client.post("/over")
    assert project.schema.read_text() == said
    assert project.settings.label == "label"
    for which, file in zip(("people", "pairs"), tables, strict=True):
        upload(client, which, file)
    page = client.post("/files", data=COLUMNS)
    assert step(page) == "plan" or 'value="120"' in page.text  # the bounds that were typed


def test_pages_have_no_words_of_the_command_line(client, project, at) -> None:
    first = client.get("/files").text
    assert "What comes out" in first
    at("schema")
    page = client.post("/schema", data={**SCHEMA, "low-1": "", "high-1": ""})
    assert "the lowest and highest possible value" in page.text
    assert "leave out" in page.text
    assert not re.search(r"bounds = |type = |(?<!<!)--[a-z]", page.text)


def test_what_was_noticed_in_the_tables_is_shown_with_the_columns(
    client, project, at, steps, monkeypatch
) -> None:
    at("schema")

    async def ask(words: list[str]) -> commands.Answer:
        planned = json.loads((steps["plan"] / "plan.json").read_text())
        return commands.Answer(planned, ("note: 7 cells of age are no numbers; see --zero-means",))

    monkeypatch.setattr(commands, "ask", ask)
    page = client.post("/schema", data=SCHEMA)
    assert step(page) == "plan", page.text
    for shown in (page.text, client.get("/schema").text):
        assert "Noticed while reading the tables" in shown
        assert (
            "7 cells of age are no numbers; see the field &#39;0, false or no means&#39;" in shown
        )
    assert not any(
        b"7 cells" in file.read_bytes() for file in project.folder.iterdir() if file.is_file()
    )


@pytest.mark.skipif(os.name != "posix", reason="needs file modes")
def test_uploads_are_for_this_user_alone(client, project, tables, tmp_path) -> None:
    upload(client, "people", tables[0])
    assert project.table("people").stat().st_mode & 0o077 == 0
    assert project.folder.stat().st_mode & 0o077 == 0
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    assert Project(there).folder.stat().st_mode & 0o077 == 0  # empty: it may be closed
    (there / "thesis.txt").write_text("mine")
    there.chmod(0o750)
    with pytest.raises(InputError, match="chmod 700"):
        Project(there)


def test_a_table_too_wide_for_a_page_is_refused_with_a_way_out(client, project, at) -> None:
    wide = ",".join(f"c{i}" for i in range(MOST_COLUMNS + 1)).encode()
    headers = {"x-file-name": "wide.csv"}
    answer = client.put("/files/people", content=wide + b"\n", headers=headers)
    assert answer.status_code == 400
    assert "2,001 columns" in answer.json()["problem"]
    assert "choose a table with fewer" in answer.json()["problem"]
    assert list(project.folder.iterdir()) == []
    at("schema")
    page = client.post("/schema", data={f"x-{i}": "" for i in range(60_000)})
    assert page.status_code == 400
    assert "too many fields" in page.text


def test_what_is_wrong_is_said_on_the_page_without_a_private_value(client, tables) -> None:
    upload(client, "people", tables[0])
    upload(client, "pairs", tables[1])
    page = client.post("/files", data={**COLUMNS, "id": "nothing"})
    assert page.status_code == 400
    assert "That did not work" in page.text
    assert "nothing" in page.text
    assert "p17" not in page.text


def test_the_schema_is_completed_by_hand_and_mistakes_stay_in_the_form(client, at) -> None:
    at("schema")
    page = client.get("/schema")
    assert 'value="18"' not in page.text  # no bound is read off the table
    for change, said in (
        ({"low-1": "old"}, "is not a number"),
        ({"high-1": "1,000"}, "write the decimal mark as a point"),
        ({"high-1": ""}, "both the lowest and the highest"),
        ({"low-1": "200"}, "below the upper"),
        ({"low-1": "", "high-1": ""}, "blanks: age"),
        ({"low-4": "11.12.2024"}, "write dates as"),
        ({"type-3": "magic"}, "choose a type"),
    ):
        page = client.post("/schema", data={**SCHEMA, **change})
        assert page.status_code == 400
        assert said in page.text
        assert 'value="2025-12-31"' in page.text  # what was typed is still there
    assert step(client.get("/plan")) == "schema"


@pytest.mark.parametrize(
    ("said", "decimal", "value"),
    [("36,5", ".", 36.5), ("1,500", ",", 1.5), ("-0,25", ".", -0.25), ("40", ",", 40)],
)
def test_bounds_may_have_a_decimal_comma(said: str, decimal: str, value: float) -> None:
    assert forms._number("dose", said, decimal) == value


def test_the_plan_can_be_moved_without_spending(client, project, at) -> None:
    at("plan")
    page = client.get("/plan").text
    rows = json.loads(re.search('data-rows="([^"]+)"', page)[1].replace("&#34;", '"'))
    by = {(row["epsilon"], row["unit"], row["select"]): row for row in rows}
    few, many = by[0.3, "relationship", "paths"], by[4.0, "relationship", "paths"]
    assert 0.5 < few["best_guess"] < many["best_guess"] < 1
    assert few["left"] == 5.0 - 0.3
    assert "as given" in page
    assert not project.ledger.exists()


def test_the_budget_left_counts_what_was_spent_on_other_pairs(
    client, project, at, monkeypatch
) -> None:
    monkeypatch.setattr(commands, "EPSILONS", (0.3, 4.0))
    at("plan")
    ledger = PrivacyLedger(3.0, 1e-5, path=project.ledger)
    ledger.spend([GaussianEvent(4.0)], {"relationship": 1, "person": 2, "pair": 1}, graph="another")
    page = client.get("/plan").text  # planned again: the ledger is newer
    rows = json.loads(re.search('data-rows="([^"]+)"', page)[1].replace("&#34;", '"'))
    by = {(row["epsilon"], row["unit"], row["select"]): row for row in rows}
    few, many = by[0.3, "relationship", "paths"], by[4.0, "relationship", "paths"]
    assert 0 < few["left"] < 3 - ledger.spent() - 0.3  # a relationship counts as a person
    assert few["left"] == 3 - few["ledger_epsilon"]
    assert (
        f'data-spent="{ledger.spent()}"' in page
    )  # then it is said that earlier releases count too
    assert many["left"] == -1
    assert len(ledger.entries) == 1


def test_from_raw_tables_to_a_verified_release(client, project, at) -> None:
    at("confirm")
    page = client.get("/confirm").text
    shown = shown_on(page)
    for words in (
        "What is not promised",
        "guesses in 100 about one relationship are right",
        "Who is paired with whom is public",
    ):
        assert words in page
    assert "Before this release the sender&#39;s ledger held no other" in page
    assert not project.ledger.exists()  # nothing is spent by looking
    assert client.post("/confirm", data={"shown": shown}).status_code == 400  # not read
    page = client.post("/confirm", data={"shown": shown, "read": "yes"})
    assert step(page) in ("progress", "done")
    said = wait_until_done(client)
    assert said["state"] == "done", said
    # The release is the command line's own, and so is the ledger.
    metric = ReleasedMetric.load(project.release)
    assert metric.certificate.verify()
    assert metric.certificate.for_release
    assert len(PrivacyLedger.open(project.ledger).entries) == 1
    # Nothing that was uploaded is left.
    assert project.table("people") is project.table("pairs") is None
    left = {file.name for file in project.folder.iterdir()}
    assert left <= {
        "schema.toml", "settings.json", "columns.json", "plan.json", "kappa.json", "certificate.json",
        "fit.json", "fit.checkpoint.lock", "ledger.json", "ledger.json.lock", "release",
    }  # fmt: skip
    for file in project.folder.iterdir():
        if file.is_file():
            assert b"p17" not in file.read_bytes(), file
            assert b"missing (" not in file.read_bytes(), (
                file
            )  # what counts private cells is said only
    page = client.get("/done").text
    assert "Numbers check out: every epsilon was recomputed" in page
    report = client.get("/report")
    assert "Doses &amp; &lt;b&gt;ages&lt;/b&gt;" in report.text
    assert "40 people (public.csv)" in report.text
    assert "script-src 'sha256-" in report.headers["content-security-policy"]
    archive = zipfile.ZipFile(io.BytesIO(client.get("/release.zip").content))
    assert "release/metric.safetensors" in archive.namelist()
    assert "people kept out of learning" in page
    assert metric.certificate.plan["score"]["n_pairs"] > 0
    _sign_and_receive(client, project)
    # A second confirmation, from a tab that was left open, spends nothing.
    client.post("/confirm", data={"shown": shown, "read": "yes"})
    assert len(PrivacyLedger.open(project.ledger).entries) == 1
    client.post("/over")
    assert step(client.get("/")) == "files"
    assert (project.folder / "release-1" / "metric.safetensors").is_file()
    assert project.ledger.is_file()


def _sign_and_receive(client, project: Project) -> None:
    """By a button; whoever gets the release checks it by the key, in the studio too."""
    assert client.get("/sender.pub").status_code == 404
    page = client.post("/sign")
    assert step(page) == "done"
    assert "It is signed" in page.text
    key, sent = client.get("/sender.pub").content, client.get("/release.zip").content
    assert b"PUBLIC KEY" in key

    def received(signer: bytes | None, content: bytes = sent) -> Any:
        client.delete("/read")
        if signer is not None:
            assert client.put("/read/key", content=signer).status_code == 200
        client.put("/read/file", content=content, headers={"x-file-name": "release.zip"})
        return client.post("/read/report")

    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w") as forged, zipfile.ZipFile(io.BytesIO(sent)) as whole:
        for name in whole.namelist():
            text = whole.read(name)
            if name.endswith("certificate.json"):
                text = re.sub(rb'"epsilon": [\d.]+', b'"epsilon": 0.01', text, count=1)
            forged.writestr(name, text)
    for signer in (None, key):  # told before its page is opened, with and without the key
        told = received(signer, changed.getvalue())
        assert told.status_code == 400
        assert told.json()["problem"].startswith("Do not use it: what was sent was tampered with")
    unsigned = io.BytesIO()
    with zipfile.ZipFile(unsigned, "w") as bare, zipfile.ZipFile(changed) as forged:
        for name in forged.namelist():
            if "dsse" not in name:
                bare.writestr(name, forged.read(name))
    assert received(None, unsigned.getvalue()).json()["signature"].startswith("Do not use it")
    assert "Do not use" in client.get("/read/report").text

    assert "by whom was not checked" in received(None).json()["signature"]
    assert "Signed by the holder of this key" in received(key).json()["signature"]
    other = Ed25519PrivateKey.generate().public_key()
    wrong = other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for signer in (wrong, b"no key"):
        refused = received(signer)
        assert refused.status_code == 400
        assert "/" not in refused.json()["problem"].replace("and/or", "")
        assert client.get("/read/report").status_code == 404
    assert client.put("/read/key", content=b"x" * 20_000).status_code == 400
    project.key.unlink()
    vain = client.post("/sign")
    assert (vain.status_code, "there is no file sender.pem" in vain.text) == (400, True)
    assert "Download the release" in vain.text


def test_two_tabs_cannot_confirm_what_was_not_shown(client, project, at, monkeypatch) -> None:
    at("confirm")
    shown = shown_on(client.get("/confirm").text)
    monkeypatch.setattr(commands, "ask", _answering(project.answer("certificate.json")))
    other = client.post("/plan", data={**CHOICE, "epsilon": "4.0"})  # the second tab
    assert step(other) == "confirm"
    page = client.post("/confirm", data={"shown": shown, "read": "yes"})  # the first one
    assert page.status_code == 400
    assert "changed in another tab" in page.text
    assert not project.ledger.exists()


class Tabs:
    """Several tabs of one browser at once; fits are begun on paper only."""

    def __init__(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = project
        self.fitted: list[bytes] = []  # the table under each fit that was begun
        monkeypatch.setattr(Fitting, "_run", self._run)
        monkeypatch.setattr(Fitting, "_is_running", lambda *_: bool(self.fitted))

    def _run(self, words: list[str]) -> None:
        self.project.keep("fit.json", {"words": words, "pid": None})
        self.fitted.append(self.project.table("people").read_bytes())

    async def __aenter__(self) -> httpx.AsyncClient:
        app = create_app(self.project, TOKEN, 8765)
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url=ORIGIN, headers={"origin": ORIGIN}
        )
        answer = await self.client.get("/", params={"token": TOKEN})
        self.client.base_url = ORIGIN + answer.headers["location"]
        return self.client

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()


def test_a_table_that_comes_in_slowly_stops_nobody_and_is_not_learned_from(
    project, at, monkeypatch
) -> None:
    at("confirm")
    mine, tabs = project.table("people").read_bytes(), Tabs(project, monkeypatch)
    decided = project.settings

    async def run() -> None:
        begun, confirmed = asyncio.Event(), asyncio.Event()

        async def slowly() -> AsyncIterator[bytes]:
            yield b"patient,age\n"
            begun.set()
            await confirmed.wait()
            yield b"p1,7\n"

        async with tabs as client:
            shown = shown_on((await client.get("/confirm")).text)
            headers = {"x-file-name": "other.csv"}
            other = asyncio.create_task(
                client.put("/files/people", content=slowly(), headers=headers)
            )
            await begun.wait()
            form = {"shown": shown, "read": "yes"}
            async with asyncio.timeout(60):
                page = await client.post("/confirm", data=form)
            assert page.headers["location"] == "progress"
            confirmed.set()
            assert (await other).status_code == 409
            for path, form in (
                ("/files", COLUMNS),
                ("/schema", SCHEMA),
                ("/plan", CHOICE),
                ("/over", {}),
            ):
                page = await client.post(path, data=form)
                assert page.headers["location"] == "progress", path

    asyncio.run(run())
    assert tabs.fitted == [mine]
    assert project.table("people").read_bytes() == mine
    assert project.settings == decided
    assert not list(project.folder.glob(".part-*"))


def test_what_is_learned_from_is_what_was_confirmed(project, at, monkeypatch) -> None:
    """A confirmation and an upload that wait for the same command: one of them is refused."""
    at("confirm")
    mine, tabs = project.table("people").read_bytes(), Tabs(project, monkeypatch)
    certificate = project.answer("certificate.json")

    async def run() -> None:
        asked, answered = asyncio.Event(), asyncio.Event()

        async def ask(words: list[str]) -> commands.Answer:
            asked.set()
            await answered.wait()
            return commands.Answer(certificate)

        monkeypatch.setattr(commands, "ask", ask)
        async with tabs as client:
            form = {"shown": shown_on((await client.get("/confirm")).text), "read": "yes"}
            headers = {"x-file-name": "other.csv"}
            first = asyncio.create_task(client.post("/plan", data=CHOICE))
            await asked.wait()
            content = b"patient,age\np1,7\n"
            others = [
                asyncio.create_task(client.put("/files/people", content=content, headers=headers)),
                asyncio.create_task(client.post("/confirm", data=form)),
                asyncio.create_task(client.post("/over")),
            ]
            while not list(project.folder.glob(".part-*")):
                await asyncio.sleep(0)
            answered.set()
            await asyncio.gather(first, *others)

    asyncio.run(run())
    assert tabs.fitted in ([], [mine])
    if tabs.fitted:
        assert project.table("people").read_bytes() == mine


def test_what_stops_a_fit_from_starting_is_said_on_the_page(project, at) -> None:
    with open_client(project) as client:
        enter(client)
        at("confirm")
        project.settings = replace(project.settings, public_classes="")
        page = client.get("/confirm").text
        page = client.post("/confirm", data={"shown": shown_on(page), "read": "yes"})
        assert page.status_code == 400
        assert "Choose the field &#39;Class in the public table&#39;" in page.text
        assert not project.ledger.exists()
        project.keep("fit.json", {"words": [], "pid": None})
    with open_client(
        project
    ) as client:  # the same where a fit was begun: the server starts all the same
        enter(client)
        page = client.post("/progress")
        assert page.status_code == 400
        assert "Choose the field &#39;Class in the public table&#39;" in page.text


def _answering(answer: dict) -> Any:
    async def ask(words: list[str]) -> commands.Answer:
        return commands.Answer(answer)

    return ask


def test_a_choice_that_the_budget_does_not_allow_is_refused(client, project, at) -> None:
    at("plan")
    page = client.post("/plan", data={**CHOICE, "epsilon": "6.0"})
    assert page.status_code == 400
    assert "budget" in page.text
    for wrong in (
        {"epsilon": "nan"},
        {"epsilon": "-1"},
        {"epsilon": "1e9"},
        {"unit": "x"},
        {"select": "x"},
    ):
        assert client.post("/plan", data={**CHOICE, **wrong}).status_code == 400
    assert not project.ledger.exists()


def test_leaving_removes_what_was_uploaded(project, at) -> None:
    with open_client(project):
        at("confirm")
        assert project.table("people") is not None
    assert project.table("people") is project.table("pairs") is None
    assert project.schema.is_file()  # what was typed stays


def test_a_killed_server_that_spent_nothing_leaves_no_upload_behind(project, at) -> None:
    at("confirm")  # as a kill leaves it
    with open_client(project) as client:
        enter(client)
        assert project.table("people") is project.table("pairs") is None
        assert step(client.get("/")) == "files"


def test_the_folder_survives_and_foreign_settings_do_no_harm(tmp_path: Path) -> None:
    project = Project(tmp_path / "studio")
    (project.folder / "settings.json").write_text(
        '{"epsilon": "much", "unit": 7, "title": "T", "x": 1}'
    )
    assert project.settings.epsilon == 1.0
    assert project.settings.unit == "relationship"
    assert project.settings.title == "T"
    (project.folder / "settings.json").write_text("[")
    assert project.settings.title == ""


def test_a_logarithm_survives_the_form(project) -> None:
    from pairveil.studio.forms import fields_of, save_schema

    data = {"columns": {"crp": {"type": "number", "bounds": [0, 500]}}}
    form = {"type-0": "number", "low-0": "0", "high-0": "500", "log-0": "yes", "offset-0": "0,5"}
    schema = save_schema(project, data, form)
    assert schema.to_dict()["columns"]["crp"] == {
        "type": "number", "bounds": [0, 500], "scale": "log", "offset": 0.5
    }  # fmt: skip
    (shown,) = fields_of(schema.to_dict())
    assert (shown["log"], shown["offset"]) == (True, "0.5")
