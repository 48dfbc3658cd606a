"""Reloaded in mid-fit, killed in mid-fit, and resumed: one charge, one release."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import httpx
import pytest
from studio_tools import enter, open_client, shown_on, step, wait_until_done

from pairveil.privacy.ledger import PrivacyLedger
from pairveil.release.metric import ReleasedMetric
from pairveil.studio.commands import Fitting, fit_job

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGSTOP")


SEVERAL = (
    3_000  # bytes of a checkpoint with some answers in it; the ledger is charged before the first
)


def _stop_in_mid_fit(project: Any) -> int:
    """Wait until the fit has answered something, and freeze it there; returns its process number."""
    until = time.monotonic() + 60
    while not project.checkpoint.exists() or project.checkpoint.stat().st_size < SEVERAL:
        assert time.monotonic() < until
        time.sleep(0.005)
    pid = project.answer("fit.json")["pid"]
    os.kill(pid, signal.SIGSTOP)
    return pid


def test_killed_in_mid_fit_and_resumed(project, at) -> None:
    with open_client(project) as client:
        enter(client)
        at("confirm")
        shown = shown_on(client.get("/confirm").text)
        client.post("/confirm", data={"shown": shown, "read": "yes"})
        pid = _stop_in_mid_fit(project)
        # Reloaded in mid-fit, in two tabs: it goes on, and nothing is begun anew.
        for path in ("/", "/progress", "/files", "/plan", "/confirm"):
            page = client.get(path)
            assert step(page) == "progress"
            assert "may close or reload" in page.text
        client.post("/confirm", data={"shown": shown, "read": "yes"})
        assert project.answer("fit.json")["pid"] == pid
        assert (
            client.put("/files/people", content=b"x", headers={"x-file-name": "a.csv"}).status_code
            == 409
        )
        client.post("/over")
        assert project.checkpoint.exists()
        assert client.get("/status").json()["state"] == "running"
    # The server has gone, and left the tables to the fit that needs them; a second one finds it running.
    assert project.table("people") is not None
    assert Fitting(project).state() == "running"
    begun = project.answer("fit.json")
    project.keep("fit.json", {**begun, "pid": None})  # killed before it wrote the number down
    assert Fitting(project).state() == "running"
    project.keep("fit.json", begun)
    os.kill(pid, signal.SIGKILL)
    while Fitting(project).state() == "running":
        time.sleep(0.01)
    assert Fitting(project).state() == "stopped"
    before = PrivacyLedger.open(project.ledger).entries
    assert len(before) == 1
    with open_client(project) as client:  # started again: it resumes by itself
        enter(client)
        assert wait_until_done(client)["state"] == "done"
    assert len(PrivacyLedger.open(project.ledger).entries) == 1
    assert ReleasedMetric.load(project.release).certificate.verify()
    assert not project.checkpoint.exists()
    assert project.table("people") is project.table("pairs") is None


def test_a_fit_whose_server_has_gone_takes_its_tables_with_it(project, at) -> None:
    with open_client(project) as client:
        enter(client)
        at("confirm")
        shown = shown_on(client.get("/confirm").text)
        client.post("/confirm", data={"shown": shown, "read": "yes"})
        pid = _stop_in_mid_fit(project)
    os.kill(pid, signal.SIGCONT)
    os.waitpid(pid, 0)
    left = {file.name for file in project.folder.iterdir()}
    assert "release" in left
    assert not left & {"people.csv", "pairs.csv", "public.csv", "fit.log", "fit.checkpoint"}


@pytest.mark.parametrize("signals", [["SIGHUP"], ["SIGTERM"], ["SIGHUP", "SIGINT"]])
def test_however_it_is_stopped_no_table_stays(tables, tmp_path, signals: list[str]) -> None:
    folder = tmp_path / "studio"
    words = [sys.executable, "-m", "pairveil", "studio", "--folder", str(folder), "--json"]
    # Whoever started the tests may ignore SIGHUP (`nohup`), and a child would inherit that.
    usual = functools.partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)
    with (
        subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=usual
        ) as server,
        contextlib.ExitStack() as at_end,
    ):
        at_end.callback(server.kill)  # a server that does not end must not hold the tests
        url = json.loads(server.stdout.readline())["url"]
        origin = url.partition("/?")[0]
        with httpx.Client(headers={"origin": origin, "x-file-name": "a.csv"}) as client:
            home = origin + client.get(url).headers["location"]
            for which, file in zip(("people", "pairs"), tables, strict=True):
                sent = client.put(f"{home}files/{which}", content=file.read_bytes())
                assert sent.status_code == 200
        assert {file.name for file in folder.iterdir()} >= {"people.csv", "pairs.csv"}
        for name in signals:
            server.send_signal(getattr(signal, name))
        server.wait(60)
    assert {file.name for file in folder.iterdir()} <= {"settings.json"}


def test_a_release_without_its_report_is_not_done(project) -> None:
    """Killed between the two: the checkpoint is there until both are."""
    project.keep("fit.json", {"words": [], "pid": None})
    project.release.mkdir()
    (project.release / "certificate.json").write_text("{}")
    project.checkpoint.write_text("")
    assert Fitting(project).state() == "stopped"
    project.checkpoint.unlink()
    assert Fitting(project).state() == "done"


def test_a_foreign_folder_cannot_choose_the_command(project, at, monkeypatch) -> None:
    at("confirm")
    project.keep("fit.json", {"words": ["export", "release", "-o", "/home/me/.bashrc"], "pid": 1})
    ran = []
    monkeypatch.setattr(Fitting, "_run", lambda self, words: ran.append(words))
    fitting = Fitting(project)
    assert fitting.state() == "stopped"
    fitting.resume()
    assert ran == [fit_job(project, dry_run=False).words()]
    assert ran[0][0] == "fit"


def test_a_refusal_is_said_and_can_be_left(project, at) -> None:
    with open_client(project) as client:
        enter(client)
        at("confirm")
        project.release.mkdir()
        (project.release / "thesis.txt").write_text("mine")  # the command refuses such a folder
        shown = shown_on(client.get("/confirm").text)
        client.post("/confirm", data={"shown": shown, "read": "yes"})
        said = wait_until_done(client)
        assert said["state"] == "failed"
        assert "holds other files" in said["why"]
        assert not project.ledger.exists()
        page = client.post("/progress", data={"do": "back"})
        assert step(page) == "confirm"
    assert (project.release / "thesis.txt").read_text() == "mine"
