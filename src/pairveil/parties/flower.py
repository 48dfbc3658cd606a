"""Parties that reach the coordinator by Flower: its SuperLink and SuperNodes carry the TLS connection.

A party's process and the coordinator's speak as they do without it, under the key that the invitation pins:
whoever runs the SuperLink sees records of TLS, their lengths and times. Flower knows questions and replies
alone, so what a party has said so far is its reply as soon as it waits for more (`flower_app` is in between).
No package of Flower is imported here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pairveil.errors import InputError, MissingExtraError, PartyError
from pairveil.parties.transport import Invitation, Reach

ENDS, GOES_ON, BEGINS = 0, 1, 2  # as in `flower_app`, which imports nothing of ours
_KEY = 32
_MOST = (1 << 26) + (1 << 21)  # bytes of a question
_QUESTION = 10.0  # seconds that one takes on this machine, at most
_APP = """[project]
name = "pairveil"
version = "1.0.0"
license = "Apache-2.0"
[tool.flwr.app]
publisher = "pairveil"
[tool.flwr.app.components]
serverapp = "relay:server"
clientapp = "relay:client"
[tool.flwr.app.config]
coordinator = {coordinator}
key = "{key}"
parties = {parties}
wait = {wait}
"""


def submit(superlink: str, invitation: Invitation, n_parties: int, wait: float) -> None:
    """Start the tunnel at a SuperLink that Flower's configuration names; it ends with the fit."""
    places = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    command = shutil.which("flwr", path=os.pathsep.join(places))
    if command is None:
        raise MissingExtraError(
            'Flower needs its command flwr; install it with: pip install "pairveil[flower]"'
        )
    with TemporaryDirectory() as folder:
        shutil.copy(Path(__file__).with_name("flower_app.py"), Path(folder) / "relay.py")
        address = json.dumps(f"{invitation.host}:{invitation.port}")
        app = _APP.format(
            coordinator=address, key=invitation.pin.hex(), parties=n_parties, wait=float(wait)
        )
        (Path(folder) / "pyproject.toml").write_text(app)
        quiet = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
        try:
            made = subprocess.run(
                [command, "run", "--", folder, superlink], env=os.environ | quiet,
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=wait, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise PartyError("Flower did not start in time: nothing was charged") from None
    if made.returncode:
        said = " ".join(re.sub(r"[^ -~]+", " ", made.stderr or made.stdout).split())  # no frames
        raise PartyError(f"Flower did not start: {said[-500:]}; nothing was charged")


def through(socket_file: Path) -> Reach:
    """How `transport.join` reaches a coordinator by the SuperNode that is configured with this socket."""

    def reach(invitation: Invitation, context: ssl.SSLContext, patience: float) -> Carried:
        connection = Carried(_listening(socket_file), context, invitation.pin, patience)
        try:
            connection.shake_hands()
        except BaseException:
            connection.close()
            raise
        return connection

    return reach


class Carried:
    """What `transport.TlsChannel` needs of a connection, as questions that come by a Unix socket."""

    def __init__(
        self, server: socket.socket, context: ssl.SSLContext, key: bytes, patience: float
    ) -> None:
        self._server, self._context, self._key, self._patience = server, context, key, patience
        self._asked: socket.socket | None = None
        self._begin()

    def _begin(self) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = self._context.wrap_bio(self._incoming, self._outgoing)
        self._begun = False

    def shake_hands(self) -> None:
        """Agree on keys with whoever is at the other end; until then another tunnel may begin anew."""
        self._until_it_can(lambda: self._tls.do_handshake())
        self._begun = True

    def getpeercert(self, binary_form: Literal[True]) -> bytes | None:
        """The certificate of the other end."""
        return self._tls.getpeercert(binary_form)

    def settimeout(self, patience: float) -> None:
        """How long the next bytes may take."""
        self._patience = patience

    def sendall(self, said: bytes) -> None:
        """Say something, which goes with the next answer."""
        self._tls.write(said)

    def recv(self, most: int) -> bytes:
        """The next bytes; none where the other end is gone."""
        try:
            return bytes(self._until_it_can(lambda: self._tls.read(most)))
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""

    def shutdown(self, how: int) -> None:
        """`close` says it."""

    def close(self) -> None:
        """Answer for the last time."""
        self._answer(ENDS)
        place = self._server.getsockname()
        self._server.close()
        with suppress(OSError):
            os.unlink(place)

    def _until_it_can(self, do: Callable[[], Any]) -> Any:
        until = time.monotonic() + self._patience
        while True:
            try:
                return do()
            except ssl.SSLWantReadError:
                self._turn(until)

    def _turn(self, until: float) -> None:
        """Answer, and take the next question; whoever says nothing, or too much, was no relay."""
        self._answer(GOES_ON)
        while self._asked is None:
            if (left := until - time.monotonic()) <= 0:
                raise TimeoutError
            self._server.settimeout(left)
            asked = self._server.accept()[0]
            try:
                self._take(asked, _all_of(asked, min(until, time.monotonic() + _QUESTION)))
            except OSError:
                asked.close()

    def _take(self, asked: socket.socket, question: bytes) -> None:
        flag, key, said = question[0], question[1 : 1 + _KEY], question[1 + _KEY :]
        if key != self._key or (flag == BEGINS and self._begun):  # of another fit
            with asked:
                asked.sendall(bytes([ENDS]))
            return
        self._asked = asked
        if flag == BEGINS:
            self._begin()
            return
        self._incoming.write(said)
        if flag == ENDS:
            self._incoming.write_eof()

    def _answer(self, flag: int) -> None:
        if self._asked is None:
            return
        with self._asked as asked, suppress(OSError):
            asked.sendall(bytes([flag]) + self._outgoing.read())
        self._asked = None


def _all_of(asked: socket.socket, until: float) -> bytes:
    found, part = bytearray(), b"..."
    while part and len(found) <= _MOST:
        asked.settimeout(max(until - time.monotonic(), 0.001))
        part = asked.recv(1 << 20)
        found += part
    if part or len(found) <= _KEY:
        raise ConnectionError
    return bytes(found)


def _listening(place: Path) -> socket.socket:
    """A socket for its owner and the owner's group: what passes is TLS, and no key is behind it."""
    try:
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(str(place))
        raise InputError(f"--flower {place}: another party waits there")
    except ConnectionRefusedError:  # one that was killed left it; any other file refuses so too
        if place.is_socket():
            place.unlink()
    except OSError:
        pass
    server = socket.socket(socket.AF_UNIX)
    try:
        server.bind(str(place))
        place.chmod(0o660)
        server.listen(8)
    except OSError as problem:
        server.close()
        raise InputError(f"--flower {place}: no socket can be made there: {problem}") from None
    return server
