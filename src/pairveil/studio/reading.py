"""A release that somebody sent, read in the studio: its files come in, its page is made, they go again."""

from __future__ import annotations

import lzma
import shutil
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from pairveil.errors import InputError, PairveilError
from pairveil.report.page import asset, digest
from pairveil.studio import commands
from pairveil.studio.project import bounded

MOST_BYTES = 1 << 30
MOST_FILES = 100
MOST_OF_A_KEY = 1 << 14
_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, OSError, EOFError,
    ValueError,
)  # fmt: skip


class Reading:
    """The page of one received release, all of which is in ``folder`` meanwhile; its methods are routes.

    ``page`` shows a page of the studio by its name.
    """

    def __init__(self, folder: Path, page: Callable[..., Response]) -> None:
        self._folder, self._page = folder / "release", page  # by that name pages call it
        self._report = b""

    @property
    def routes(self) -> list[Route]:
        """Choose, send, read."""
        return [
            Route("/read", self.show, methods=["GET", "DELETE"]),
            Route("/read/file", self.take, methods=["PUT"]),
            Route("/read/key", self.take_key, methods=["PUT"]),
            Route("/read/report", self.report, methods=["GET", "POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """The page on which files are chosen; DELETE forgets those of an earlier choice."""
        if request.method == "DELETE":
            self.forget()
            self._report = b""  # another release's page must not stand where this one's fails
            self._folder.mkdir(mode=0o700, parents=True)
            return JSONResponse({})
        return self._page("read")

    def forget(self) -> None:
        """Remove what was received."""
        shutil.rmtree(self._folder.parent, ignore_errors=True)

    def _beside(self, ending: str) -> Path:
        """The sender's public key, or the page: what is signed is the folder as it is."""
        return self._folder.with_name(f"{self._folder.name}{ending}")

    async def take_key(self, request: Request) -> Response:
        """Receive the public key of the sender."""
        pieces = bounded(request.stream(), MOST_OF_A_KEY, "that is no public key")
        try:
            if not self._folder.is_dir():
                raise InputError("choose the files of one release")
            self._beside(".pub").write_bytes(b"".join([piece async for piece in pieces]))
        except PairveilError as problem:
            return JSONResponse({"problem": str(problem)}, 400)
        return JSONResponse({})

    def _signature(self) -> str:
        """Whether the release is signed, and by whom, as far as a key tells.

        Raises InputError: it is not what was signed, or not by the holder of the key that is there.
        """
        from pairveil.release.signing import check_signature, is_signed

        key = self._beside(".pub") if self._beside(".pub").exists() else None
        if key is None and not is_signed(self._folder):
            return "Not signed: nothing shows whom it is from."
        try:
            when = check_signature(self._folder, key).signed_at or "a date that it does not state"
        except InputError as problem:
            raise InputError(f"Do not use it: {problem}") from None
        if key is None:
            return f"Signed on {when}, but by whom was not checked: that takes the sender's public key."
        return f"Signed by the holder of this key, on {when}."

    async def take(self, request: Request) -> Response:
        """Receive one file of a release, or all of them as a zip file."""
        name = plain_name(unquote(request.headers.get("x-file-name", "")))
        try:
            await self._receive(name, request.stream())
        except PairveilError as problem:
            return JSONResponse({"problem": str(problem)}, 400)
        return JSONResponse({"name": name})

    async def _receive(self, name: str, content: AsyncIterator[bytes]) -> None:
        if not self._folder.is_dir() or len(list(self._folder.iterdir())) >= MOST_FILES:
            raise InputError("choose the files of one release")
        room = MOST_BYTES - sum(file.stat().st_size for file in self._folder.iterdir())
        too_large = "a release of more than 1 GB is more than the studio takes"
        with (self._folder / name).open("wb") as file:
            async for piece in bounded(content, room, too_large):
                file.write(piece)
        if name.endswith(".zip"):
            unpack(self._folder / name)

    async def report(self, request: Request) -> Response:
        """Make the page of what was received (POST), then show it."""
        if request.method == "POST":
            try:
                signature = self._signature()
                out = self._beside(".html")  # a page in the folder would break its signature
                made = await commands.ask(["report", str(self._folder), "--out", str(out)])
                self._report = out.read_bytes()
                if made.content["valid"] is False:
                    signature = "Do not use it: its numbers do not hold. Its page says which."
            except PairveilError as problem:
                said = str(problem).replace(str(self._beside(".pub")), "this key")
                said = said.replace(str(self._folder), "what was sent")
                return JSONResponse({"problem": said}, 400)
            finally:
                self.forget()
            return JSONResponse({"signature": signature})
        if not self._report:
            return PlainTextResponse("There is no report yet.", 404)
        return report_page(self._report)


def plain_name(name: str) -> str:
    """The last part of a name, without what could lead anywhere else.

    Examples
    --------
    >>> plain_name("release/metric.safetensors"), plain_name("../../x/.."), plain_name("C:\\\\a b.json")
    ('metric.safetensors', '_', 'a_b.json')
    """
    last = name.replace("\\", "/").rpartition("/")[2][-100:]
    kept = "".join(
        one if one.isascii() and (one.isalnum() or one in "._-") else "_" for one in last
    )
    return kept.lstrip(".") or "_"


def unpack(archive: Path) -> None:
    """The files of a zip file beside it, by their last names; the archive goes.

    Raises InputError: it is no zip file, or its files are too many or too large.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            inside = [one for one in packed.infolist() if not one.is_dir()]
            if len(inside) > MOST_FILES or sum(one.file_size for one in inside) > MOST_BYTES:
                raise InputError("the zip file holds more than a release")
            for one in inside:
                target = archive.parent / plain_name(one.filename)
                with packed.open(one) as source, target.open("wb") as file:
                    shutil.copyfileobj(source, file)  # no more than file_size says
    except InputError:  # also a ValueError
        raise
    except _UNREADABLE:
        raise InputError("the zip file cannot be read") from None
    finally:
        archive.unlink(missing_ok=True)


def report_page(content: bytes) -> Response:
    """A report, under its own policy: the browser itself refuses any script but ours."""
    style, script = asset("report", "page.css"), asset("report", "page.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src {digest(style)}; script-src {digest(script)}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return HTMLResponse(content, headers={"Content-Security-Policy": policy})
