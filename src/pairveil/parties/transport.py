"""Channels over TLS: one connection from each party to the coordinator, whose key an invitation pins.

The coordinator makes a key for one fit and prints an *invitation*: where it listens, the SHA-256 of its
certificate, and a token. Whoever holds it can join, and knows whom it speaks to. Nothing else is trusted:
no authority, no name. Messages are framed by their length, which is bounded before anything is read.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pairveil.engine.backends.parties import TOO_LONG
from pairveil.errors import InputError, PartyError

_TOKEN = 16  # bytes
_GREETED = 100  # connections that have not shown it yet, at most
_AT_ONCE = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
"""A total and the next question are two short messages: the second must not wait for an answer."""
_INVITATION = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})/(?P<pin>[0-9a-f]{64})\.(?P<token>[0-9a-f]{32})"
)


@dataclass(frozen=True)
class Invitation:
    """Where a coordinator listens, and how each side knows the other.

    Examples
    --------
    >>> one = Invitation("10.0.0.5", 8788, b"p" * 32, b"t" * 16)
    >>> Invitation.read(str(one)) == one
    True
    >>> Invitation.read("10.0.0.5:8788")
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: --join takes the whole line that the coordinator printed: HOST:PORT/...
    """

    host: str
    port: int
    pin: bytes
    token: bytes = field(repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.pin.hex()}.{self.token.hex()}"

    @classmethod
    def read(cls, text: str) -> Invitation:
        """The invitation that a line says."""
        found = _INVITATION.fullmatch(text.strip())
        if found is None or not 0 < int(found["port"]) < 65536:
            raise InputError(
                "--join takes the whole line that the coordinator printed: HOST:PORT/KEY.TOKEN"
            )
        pin, token = bytes.fromhex(found["pin"]), bytes.fromhex(found["token"])
        return cls(found["host"], int(found["port"]), pin, token)


class TlsChannel:
    """Messages over one TLS connection; each waits as long as it was told to, and no longer."""

    def __init__(self, connection: Any, patience: float) -> None:
        self._connection, self._patience = connection, patience
        connection.settimeout(patience)

    def send(self, message: bytes) -> None:
        """Hand a message over."""
        self._connection.sendall(len(message).to_bytes(4, "big") + message)

    def receive(self, most: int) -> bytes:
        """The next message, of at most so many bytes."""
        until = time.monotonic() + self._patience
        length = int.from_bytes(self._exactly(4, until), "big")
        if length > most:
            raise EOFError(TOO_LONG)
        return self._exactly(length, until)

    def close(self) -> None:
        """End the connection."""
        try:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        finally:
            self._connection.close()

    def _exactly(self, size: int, until: float) -> bytes:
        found = bytearray()
        while len(found) < size:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._connection.settimeout(left)
            part = self._connection.recv(min(size - len(found), 1 << 20))
            if not part:
                raise EOFError
            found += part
        self._connection.settimeout(self._patience)
        return bytes(found)


class Listener:
    """A coordinator's ear: admits parties that hold its invitation.

    Its ``invitation`` is to be sent to the parties by a way that strangers do not read.
    """

    def __init__(
        self, server: socket.socket, context: ssl.SSLContext, invitation: Invitation
    ) -> None:
        self._server, self._context, self.invitation = server, context, invitation

    def admit(self, n_parties: int, patience: float, wait: float) -> list[TlsChannel]:
        """Channels to so many parties; whoever holds no invitation is sent away.

        A message may take ``patience`` seconds, and all must have joined within ``wait``. Strangers who say
        nothing hold nobody up: many are heard at once, and of too many the first is sent away.
        """
        found: list[TlsChannel] = []
        coming: dict[Future[TlsChannel | None], ssl.SSLSocket] = {}
        until = time.monotonic() + wait
        self._server.settimeout(0.05)
        with ThreadPoolExecutor(_GREETED) as pool:
            try:
                while len(found) < n_parties and time.monotonic() < until:
                    with suppress(OSError):  # nobody came, or has gone again
                        one = self._context.wrap_socket(
                            self._server.accept()[0],
                            server_side=True,
                            do_handshake_on_connect=False,
                        )
                        coming[pool.submit(self._admitted, one, patience)] = one
                    for done in [one for one in coming if one.done()]:
                        del coming[done]
                        found += filter(None, [done.result()])
                    if len(coming) >= _GREETED:
                        _hang_up(next(iter(coming.values())))
            finally:
                for one in coming.values():
                    _hang_up(one)
        if len(found) < n_parties:
            for channel in found:
                channel.close()
            raise PartyError(
                f"{len(found)} of {n_parties} parties joined in {wait:g} seconds: nothing was charged"
            )
        for channel in found[n_parties:]:
            channel.close()
        return found[:n_parties]

    def _admitted(self, connection: ssl.SSLSocket, patience: float) -> TlsChannel | None:
        try:
            connection.settimeout(patience)
            connection.do_handshake()
            channel = TlsChannel(connection, patience)
            if hmac.compare_digest(channel.receive(_TOKEN), self.invitation.token):
                return channel
        except (OSError, EOFError):
            pass
        connection.close()
        return None


def _hang_up(connection: ssl.SSLSocket) -> None:
    """Whoever waits for more of it finds its end."""
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


@contextmanager
def listening(host: str, port: int) -> Iterator[Listener]:
    """Listen at an address with a key of one fit.

    Port 0 takes a free one.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host.strip("[]"), port), family=family)
    except OSError as problem:
        raise InputError(f"nothing can listen at {host}:{port}: {problem.strerror}") from None
    with server:
        server.setsockopt(*_AT_ONCE)  # all that it accepts have it
        context, pin = _server_context()
        at = int(server.getsockname()[1])
        yield Listener(server, context, Invitation(host, at, pin, secrets.token_bytes(_TOKEN)))


Reach = Callable[[Invitation, ssl.SSLContext, float], Any]
"""From an invitation to a connection of TLS, which nothing is said through yet, and a patience in seconds."""


def _straight(invitation: Invitation, context: ssl.SSLContext, patience: float) -> ssl.SSLSocket:
    place = (invitation.host.strip("[]"), invitation.port)
    raw = socket.create_connection(place, patience)
    raw.setsockopt(*_AT_ONCE)
    try:
        return context.wrap_socket(raw)
    except BaseException:
        raw.close()
        raise


def join(invitation: Invitation, patience: float, reach: Reach = _straight) -> TlsChannel:
    """A party's channel to the coordinator that an invitation names; nobody else is spoken to.

    Raises PartyError: nobody answers there, or somebody with another key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # pinned below
    try:
        connection = reach(invitation, context, patience)
    except (OSError, ssl.SSLError):
        raise PartyError(
            f"no coordinator answers at {invitation.host}:{invitation.port}: is it waiting?"
        ) from None
    seen = connection.getpeercert(binary_form=True) or b""
    if not hmac.compare_digest(hashlib.sha256(seen).digest(), invitation.pin):
        connection.close()
        raise PartyError(
            "whoever answers there has another key than the invitation names: ask the coordinator for a new "
            "invitation"
        )
    channel = TlsChannel(connection, patience)
    try:
        channel.send(invitation.token)
    except OSError:
        channel.close()
        raise PartyError("the coordinator hung up") from None
    return channel


def _server_context() -> tuple[ssl.SSLContext, bytes]:
    """TLS under a new key, and the digest of its certificate; the key is on disk for a moment only."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pairveil coordinator")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # nobody comes again
    with TemporaryDirectory() as folder:  # for its owner alone
        file = Path(folder) / "key.pem"
        file.touch(mode=0o600)
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + made.public_bytes(serialization.Encoding.PEM)
        )
        context.load_cert_chain(file)
    return context, hashlib.sha256(made.public_bytes(serialization.Encoding.DER)).digest()
