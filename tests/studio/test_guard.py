"""Nobody gets in without the token, from another site, or by a name that is not this machine's."""

from __future__ import annotations

import os
import socket
import sys

import pytest
from studio_tools import TOKEN, enter, open_client

from pairveil.errors import InputError
from pairveil.studio.server import serve

PATHS = ("/", "/files", "/schema", "/plan", "/confirm", "/progress", "/status", "/done", "/report")
OTHERS = ("/release.zip", "/assets/studio.js", "/assets/../project.py", "/nothing")


@pytest.mark.parametrize("path", PATHS + OTHERS)
def test_a_stranger_without_the_token_sees_nothing(project, path: str) -> None:
    with open_client(project) as client:
        for attempt in ({}, {"token": "guessed"}, {"token": ""}):
            answer = client.get(path, params=attempt)
            assert answer.status_code == 403
            assert "studio belongs to another session" in answer.text
        enter(client)
        client.cookies.clear()  # who knows the path alone is a stranger too
        assert client.get(path).status_code == 403
        assert client.put("/files/people", content=b"id\n1").status_code == 403
        assert client.post("/over").status_code == 403
    assert project.table("people") is None


def test_the_token_works_once(project) -> None:
    with open_client(project) as first:
        enter(first)
        assert first.get("/files").status_code == 200
        second = type(first)(first.app, base_url=first.base_url)
        assert second.get("/", params={"token": TOKEN}).status_code == 403
        second.cookies.set("pairveil_8765", "guessed")
        assert second.get("/files").status_code == 403
        assert first.get("/files").status_code == 200  # two tabs of one browser share the cookie


def test_the_cookie_is_for_this_site_and_no_script(project) -> None:
    with open_client(project) as client:
        answer = client.get("/", params={"token": TOKEN}, follow_redirects=False)
        said = answer.headers["set-cookie"].lower()
        assert "httponly" in said
        assert "samesite=strict" in said
        assert TOKEN not in answer.headers["location"]


def test_another_server_of_this_machine_is_not_sent_the_cookie(project) -> None:
    """Browsers send cookies to every port of a host; only their path keeps them apart."""
    with open_client(project) as client:
        answer = client.get("/", params={"token": TOKEN}, follow_redirects=False)
        home = answer.headers["location"]
        assert len(home) > 20
        assert f"Path={home};" in answer.headers["set-cookie"]
        assert client.get(f"{home}files").status_code == 200
        cookie = answer.headers["set-cookie"].partition(";")[0]
        assert client.get("/files", headers={"cookie": cookie}).status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost.evil:8765", ""]
)
def test_another_name_for_this_machine_is_refused(client, host: str) -> None:
    """DNS rebinding: a page of evil.example that points its name to 127.0.0.1."""
    assert client.get("/files", headers={"host": host}).status_code == 403
    assert client.get("/files", headers={"host": "localhost:8765"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://127.0.0.1:9999", "https://127.0.0.1:8765"]
)
def test_another_page_cannot_press_buttons(client, project, origin: str) -> None:
    headers = {"origin": origin, "x-file-name": "people.csv"}
    assert client.put("/files/people", content=b"id\n1", headers=headers).status_code == 403
    assert client.post("/over", headers=headers).status_code == 403
    assert project.table("people") is None


@pytest.mark.parametrize("path", ["/files", "/assets/studio.css", "/nothing", "/status"])
def test_every_answer_forbids_what_does_not_belong(client, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"


def test_pages_load_nothing_from_elsewhere(client) -> None:
    page = client.get("/files").text
    assert "http://" not in page
    assert "https://" not in page
    assert "<script>" not in page
    assert " style=" not in page
    assert "onclick" not in page


def test_without_the_extra_the_command_says_what_to_install(project, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(InputError, match=r'pip install "pairveil\[studio\]"'):
        serve(project, 0, print)


def test_the_server_listens_on_this_machine_alone(project, monkeypatch) -> None:
    found = []

    def run(server, sockets) -> None:
        os.umask(mask := os.umask(0))
        server.config.load()
        assert server.config.ws_protocol_class is None  # who asks for one is a stranger like others
        found.append((sockets[0].getsockname()[0], server.config.access_log, mask))

    monkeypatch.setattr("uvicorn.Server.run", run)
    serve(project, 0, found.append)
    url, (address, logs, mask) = found
    assert mask == 0o077  # what is made is for this user alone
    assert address == "127.0.0.1"
    assert not logs  # a log would hold the token
    assert len(url.split("token=")[1]) >= 40
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="is taken"):
            serve(project, taken.getsockname()[1], found.append)
