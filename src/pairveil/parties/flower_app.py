"""What Flower runs at its SuperLink and SuperNodes: a tunnel, which carries bytes and understands none.

A copy of this file is a whole app: it imports nothing of pairveil, so no SuperNode has to have it. A party's
process waits at a Unix socket that its SuperNode's configuration names; one message and its reply carry what
coordinator and party have to say. Between the two it is one TLS connection, under the key of the invitation.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

ENDS, GOES_ON, BEGINS = b"\0", b"\1", b"\2"
"""First byte of all that is carried; a question has the key of the fit after it."""
_SOON, _LATER = 0.2, 2.0
"""Seconds between looks: for an answer or for more of what is said, and for a party."""

client = ClientApp()
server = ServerApp()


@client.query()
def ask_the_party(message: Message, context: Context) -> Message:
    """Hand a question to the party's process, and its answer back; nothing where no party is there."""
    answer = b""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(float(context.run_config["wait"]))
            line.connect(str(context.node_config["pairveil"]))
            line.sendall(_said(message))
            line.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: line.recv(1 << 20), b""))
    except (OSError, KeyError):
        pass
    return Message(_record(answer), reply_to=message)


@server.main()
def carry(grid: Grid, context: Context) -> None:
    """Between the coordinator and the SuperNodes where parties wait, until the fit is over."""
    tunnel = _Tunnel(grid, context.run_config)
    known: set[int] = set()
    while tunnel.is_open():
        for node in tunnel.nodes() - known:
            known.add(node)
            threading.Thread(target=tunnel.carry, args=(node,), daemon=True).start()
        time.sleep(_LATER)


class _Tunnel:
    """One connection to the coordinator for each SuperNode where a party waits."""

    def __init__(self, grid: Grid, config: Any) -> None:
        host, _, port = str(config["coordinator"]).rpartition(":")
        self._grid, self._address = grid, (host.strip("[]"), int(port))
        self._key, self._parties = bytes.fromhex(str(config["key"])), int(config["parties"])
        self._patience = float(config["wait"])
        self._until = time.monotonic() + self._patience
        self._one_by_one, self._open, self._complete = threading.Lock(), set[int](), False

    def is_open(self) -> bool:
        """Whether somebody is connected, or all may still come."""
        return bool(self._open) or (not self._complete and time.monotonic() < self._until)

    def nodes(self) -> set[int]:
        """The SuperNodes that are connected."""
        with self._one_by_one:
            return set(self._grid.get_node_ids())

    def carry(self, node: int) -> None:
        """Wait for a party at this SuperNode, then carry what both say."""
        while time.monotonic() < self._until:
            heard = self._ask(node, BEGINS, b"")
            if heard[:1] == GOES_ON:
                self._open.add(node)
                self._complete |= len(self._open) >= self._parties
                try:
                    self._connect(node, heard)
                finally:
                    self._open.remove(node)
            time.sleep(_LATER)

    def _connect(self, node: int, heard: bytes) -> None:
        try:
            with socket.create_connection(self._address, 10) as line:
                line.settimeout(self._parties * self._patience)  # it hears them one by one
                while True:
                    line.sendall(heard[1:])
                    if heard[:1] != GOES_ON:
                        return
                    flag, said = _heard(line)
                    heard = self._ask(node, flag, said)
                    if flag == ENDS:
                        return
        except OSError:
            self._ask(node, ENDS, b"")

    def _ask(self, node: int, flag: bytes, said: bytes) -> bytes:
        """What a SuperNode answers; nothing where no party is there, or none answers in time."""
        message = Message(_record(flag + self._key + said), node, "query")
        with self._one_by_one:
            (number,) = self._grid.push_messages([message])
        until = time.monotonic() + self._patience
        while time.monotonic() < until:
            time.sleep(_SOON)
            with self._one_by_one:
                found = list(self._grid.pull_messages([number]))
            if found:
                return b"" if found[0].has_error() else _said(found[0])
        return b""


def _heard(line: socket.socket) -> tuple[bytes, bytes]:
    """What the coordinator says next, and whether it goes on: all that comes without a pause."""
    found = bytearray()
    while len(found) < 1 << 26 and (not found or select.select([line], [], [], _SOON)[0]):
        try:
            part = line.recv(1 << 20)
        except OSError:
            part = b""
        if not part:
            return ENDS, bytes(found)
        found += part
    return GOES_ON, bytes(found)


def _record(carried: bytes) -> RecordDict:
    return RecordDict({"pairveil": ConfigRecord({"bytes": carried})})


def _said(message: Message) -> bytes:
    return bytes(message.content["pairveil"]["bytes"])
