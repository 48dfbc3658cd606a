"""Who may talk to the studio: the browser that brought the one-time token, on this machine, and nobody else.

- The server listens on the loopback address. A request must name it (``Host``), so that a page of
  another site cannot reach it through a name that it points here.
- The address that is printed holds a token. The first request that brings it gets a cookie for this session;
  the token is worthless from then on. Without the cookie everything is refused.
- Everything is below a secret path, and the cookie is for that path: browsers send cookies to every port of
  a machine, and another server on it must not be shown this one.
- What changes something must come from our own pages (``Origin``).
- Every answer forbids the browser to load anything from elsewhere, to frame it or to keep it.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser calls its own forms "null"
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
STRANGER = (
    "This studio belongs to another session: its address works once, in one browser. Go on there, or stop "
    "the studio and start it again for a new address."
)
_SAFE = ("GET", "HEAD")

Scope = dict[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


class Guard:
    """ASGI middleware in front of everything, static files included; ``token`` is the one-time one."""

    def __init__(self, app: App, token: str, port: int) -> None:
        self._app = app
        self._token: str | None = token
        self._session = secrets.token_urlsafe(32)
        self._home = f"/{secrets.token_urlsafe(16)}"
        self._cookie = f"pairveil_{port}"  # browsers share cookies between ports
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer, refuse, or hand the request on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, send_guarded)
        else:
            await self._app({**scope, "root_path": self._home}, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if headers.get("host") not in self._hosts:
            return PlainTextResponse("Wrong address.", 403)
        entered = self._enter(scope)
        if entered is not None:
            return entered
        mine = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        is_known = secrets.compare_digest(mine.encode(), self._session.encode())
        if not (is_known and scope["path"].startswith(f"{self._home}/")):
            return PlainTextResponse(STRANGER, 403)
        if scope["method"] not in _SAFE and not self._is_ours(headers):
            return PlainTextResponse("This came from another page.", 403)
        return None

    def _enter(self, scope: Scope) -> Response | None:
        """A cookie for the token, once."""
        given = parse_qs(scope["query_string"].decode("ascii", "replace")).get("token", [""])[0]
        if scope["method"] != "GET" or not given or self._token is None:
            return None
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return None
        self._token = None
        home = f"{self._home}/"
        answer = RedirectResponse(home, 303)
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", path=home)
        return answer

    def _is_ours(self, headers: Headers) -> bool:
        origin = headers.get("origin", "")
        return origin.removeprefix("http://") in self._hosts and origin.startswith("http://")
