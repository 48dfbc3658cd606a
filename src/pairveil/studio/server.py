"""The server: on the loopback address, until somebody stops it."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable

from pairveil.errors import InputError
from pairveil.studio.project import Project

HOST = "127.0.0.1"


def serve(project: Project, port: int, announce: Callable[[str], None]) -> None:
    """Serve a project until Ctrl-C.

    Parameters
    ----------
    port : int
        0 takes a free one.
    announce : callable
        Gets the address, with its one-time token, when the server listens.
    """
    try:
        import uvicorn

        from pairveil.studio.app import create_app
    except ImportError:
        raise InputError("the studio needs more packages: pip install 'pairveil[studio]'") from None
    with socket.socket() as listening:
        # Not SO_REUSEPORT: nobody else may listen on this port and take our requests.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError:
            raise InputError(f"port {port} is taken; leave --port out for a free one") from None
        taken = listening.getsockname()[1]
        token = secrets.token_urlsafe(32)
        config = uvicorn.Config(
            create_app(project, token, taken),
            log_level="error",  # the access log would hold the token
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=3,
        )
        listening.listen(64)
        announce(f"http://{HOST}:{taken}/?token={token}")
        uvicorn.Server(config).run(sockets=[listening])
