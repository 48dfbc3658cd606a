"""The studio's pages, what their buttons do, and who may reach them.

Who may talk to the studio: the browser that brought the one-time token, on this machine, and nobody else.

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

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qs, unquote

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from pairveil.errors import InputError, PairveilError
from pairveil.report.page import asset, environment
from pairveil.studio import commands, forms, pages
from pairveil.studio.commands import Fitting
from pairveil.studio.project import Project, check_width, column_names
from pairveil.studio.reading import Reading, report_page

ASSETS = {
    "report.css": ("report", "page.css", "text/css"),
    "studio.css": ("studio", "studio.css", "text/css"),
    "report.js": ("report", "page.js", "text/javascript"),
    "studio.js": ("studio", "studio.js", "text/javascript"),
}


class Studio:
    """One project in the browser; its methods are the routes."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.fitting = Fitting(project)
        self._notes: tuple[str, ...] = ()  # of the last rehearsal; they may count private cells
        self._names: dict[str, Sequence[str]] = {}  # of the columns of each uploaded table
        self.reading = Reading(project.folder / ".received", self.page)
        # Whoever changes something checks and acts under it: two tabs ask for one plan, and spend once.
        self._one = asyncio.Lock()

    # ---- showing ---------------------------------------------------------------------------------

    def page(self, name: str, problem: str = "", **content: Any) -> Response:
        """A step's page; with a problem it is said at the top."""
        step = pages.reached(self.project, self.fitting.state())
        names = [one for one, _ in pages.STEPS]
        file = "levels" if name == "plan" and self.project.by_levels else name
        text = environment("report", "studio").get_template(f"studio/{file}.html").render(
            step=name,
            said=[pages.on_the_page(note, self.project) for note in self._notes],
            problem=pages.on_the_page(problem, self.project),
            listed=self.project.has_problems,
            steps=[
                (one, words, names.index(one) <= names.index(step) and _may_go(step, one))
                for one, words in pages.STEPS
                if one != "schema" or not self.project.by_levels
            ],
            **content,
        )  # fmt: skip
        return HTMLResponse(text, 400 if problem else 200)

    def _show(self, step: str, problem: str = "", form: dict[str, str] | None = None) -> Response:
        """A step as it stands now; the one before where that cannot be shown."""
        content: dict[str, Callable[[], dict[str, Any]]] = {
            "files": lambda: pages.files_page(self.project, self._names),
            "schema": lambda: pages.schema_page(self.project, form),
            "plan": lambda: (
                pages.levels_page(self.project, form)
                if self.project.by_levels
                else pages.plan_page(self.project)
            ),
            "confirm": lambda: pages.confirm_page(self.project),
            "progress": self._status,
            "done": lambda: pages.done_page(self.project),
        }
        try:
            return self.page(step, problem, **content[step]())
        except PairveilError as cause:
            names = list(content)
            return self._show(names[names.index(step) - 1], problem or str(cause))

    async def step(self, name: str, request: Request) -> Response:
        """A step's page, or what its form asks for, if the step is still to be taken."""
        form: dict[str, str] = {}
        asked = request.method == "POST"
        try:
            if asked:
                form = await forms.read_form(request)  # before: a browser that stalls blocks nobody
            if asked or name == "plan":
                async with self._one:  # nothing changes between the two
                    if (elsewhere := self._elsewhere(name)) is not None:
                        return elsewhere
                    if asked:
                        act: Callable[[Any], Awaitable[Response]] = getattr(self, f"_{name}")
                        return await act(form)
                    await self._make_plan()
        except PairveilError as problem:
            return self._show(name if asked else "schema", str(problem), form)
        return self._elsewhere(name) or self._show(name)

    async def refused(self, _: Request, problem: Exception) -> Response:
        """What was asked for in vain, on the page of the step that was reached."""
        return self._show(pages.reached(self.project, self.fitting.state()), str(problem))

    async def home(self, _: Request) -> Response:
        """To the step that was reached."""
        return _go(pages.reached(self.project, self.fitting.state()))

    # ---- files -----------------------------------------------------------------------------------

    async def upload(self, request: Request) -> Response:
        """Receive one file; answers with the names of its columns, and which of them is probably what."""
        from pairveil.records.readers import guess_label

        name, which = unquote(request.headers.get("x-file-name", "")), request.path_params["which"]
        try:
            draft = await self.project.receive(which, name, request.stream())
            try:
                names = await asyncio.to_thread(column_names, draft, name)
                label = None
                if which == "pairs" and names:
                    with suppress(InputError):  # is said when the table is read, with its row
                        label = await asyncio.to_thread(guess_label, draft)
                async with self._one:
                    if self.fitting.state() != "none":
                        return JSONResponse({"problem": "a fit is in progress"}, 409)
                    self.project.take(which, name, draft)
                    self._names[which] = names
                    likely = pages.likely_columns(which, names, self.project.settings, label)
                    self.project.settings = replace(self.project.settings, **likely)  # type: ignore[arg-type]
            finally:
                draft.unlink(missing_ok=True)
        except PairveilError as problem:
            return JSONResponse({"problem": pages.on_the_page(str(problem), self.project)}, 400)
        fields = [field for field, table in pages.FIELDS.items() if table == which]
        chosen = {field: getattr(self.project.settings, field) for field in fields}
        return JSONResponse({"name": name[-120:], "columns": names, "chosen": chosen})

    async def _files(self, form: dict[str, str]) -> Response:
        """Read two files by the names of their columns."""
        self.project.settings = said = forms.with_columns(self.project.settings, form)
        if self.project.by_classes and not said.classes:
            raise InputError(
                "Choose the field 'Class': which column of the people's table holds it."
            )
        self.project.forget_answers()
        by_levels, names = self.project.by_levels, self._names.get("levels", ())
        if by_levels:
            columns: Any = {"columns": pages.comparisons(names, self.project.settings)}
        else:
            commands.public_test(self.project)
            kept = self.project.schema.read_text("utf-8") if self.project.schema.is_file() else ""
            columns = (await commands.ask(commands.schema_job(self.project).words())).content
            check_width(len(columns["columns"]))
            forms.keep_what_was_said(self.project, kept)
        if not self.project.by_classes:
            kappa = await commands.ask(commands.kappa_job(self.project).words())
            self.project.keep("kappa.json", kappa.content)
            self._notes = (*kappa.content.get("notes", ()), *kappa.notes)
        self.project.keep("columns.json", columns)
        return _go("plan" if by_levels else "schema")

    async def problems(self, _: Request) -> Response:
        """All that is wrong with the tables, row by row, for their owner."""
        if not self.project.has_problems:
            return PlainTextResponse("There is no list.", 404)
        return FileResponse(self.project.problems, media_type="text/csv", filename="problems.csv")

    # ---- columns and privacy ---------------------------------------------------------------------

    async def _schema(self, form: dict[str, str]) -> Response:
        """Complete what is public about each column."""
        data = pages.read_schema_data(self.project)
        forms.save_schema(self.project, data, form).check("the columns")
        for answer in ("plan.json", "certificate.json"):
            (self.project.folder / answer).unlink(missing_ok=True)
        await self._make_plan()
        return _go("plan")

    async def _make_plan(self) -> None:
        if self.project.by_levels:
            return
        if self.project.answer("plan.json") is None or self.project.charged_since("plan.json"):
            plan = await commands.ask(commands.plan_job(self.project).words())
            self.project.keep("plan.json", plan.content)
            self._notes = plan.notes

    async def _plan(self, form: dict[str, str]) -> Response:
        """Choose epsilon, what is protected and which pairs are used."""
        await self._make_plan()
        chosen = forms.with_choice(self.project.settings, form)
        if self.project.by_levels:
            columns = (self.project.answer("columns.json") or {})["columns"]
            chosen = forms.with_levels(chosen, form, len(columns))
        self.project.settings = chosen
        rehearsed = await commands.ask(commands.fit_job(self.project, dry_run=True).words())
        self.project.keep("certificate.json", rehearsed.content)
        self._notes = rehearsed.notes
        return _go("confirm")

    async def _confirm(self, form: dict[str, str]) -> Response:
        """Spend, when what is promised was read."""
        if form.get("shown") != pages.shown(self.project):
            raise InputError(
                "Something was changed in another tab. This is what stands now: read it again."
            )
        if form.get("read") != "yes":
            raise InputError("Tick the box when you have read it.")
        self.fitting.start()
        return _go("progress")

    # ---- the fit ---------------------------------------------------------------------------------

    async def _progress(self, form: dict[str, str]) -> Response:
        """Resume the fit, or go back; the address may be loaded again at any time."""
        if form.get("do") == "back":
            self.fitting.give_up()
        else:
            self.fitting.start()
        return _go("progress")

    async def status(self, _: Request) -> Response:
        """Where the fit stands, for the page's script."""
        return JSONResponse(self._status())

    def _status(self) -> dict[str, Any]:
        state = self.fitting.state()
        done = 1.0 if state == "done" else self.fitting.share_done()
        return {"state": state, "done": round(done, 3), "why": self.fitting.problem()}

    async def done(self, _: Request) -> Response:
        """Download the release and read the report."""
        return self._elsewhere("done") or self._show("done")

    async def release(self, _: Request) -> Response:
        """The release as a zip file."""
        if self.fitting.state() != "done":
            return PlainTextResponse("There is no release yet.", 404)
        name = 'attachment; filename="release.zip"'
        content = await asyncio.to_thread(self.project.zip_release)
        return Response(
            content, media_type="application/zip", headers={"Content-Disposition": name}
        )

    async def sign(self, _: Request) -> Response:
        """Sign the release with the studio's own key, which is made where there is none."""
        from pairveil.release import signing

        async with self._one:
            if self.fitting.state() != "done":
                return _go(pages.reached(self.project, self.fitting.state()))
            if not self.project.public_key.exists():
                await asyncio.to_thread(signing.new_key, self.project.key)
            await asyncio.to_thread(signing.sign, self.project.release, self.project.key)
        return _go("done")

    async def sender(self, _: Request) -> Response:
        """The public key, for those who check the signature."""
        if not self.project.public_key.is_file():
            return PlainTextResponse("Nothing was signed yet.", 404)
        return FileResponse(self.project.public_key, media_type="text/plain", filename="sender.pub")

    async def report(self, _: Request) -> Response:
        """The report, under its own policy."""
        file = self.project.release / "report.html"
        if self.fitting.state() != "done" or not file.is_file():
            return PlainTextResponse("There is no report yet.", 404)
        return report_page(await asyncio.to_thread(file.read_bytes))

    async def over(self, _: Request) -> Response:
        """Start over: uploads and settings go, ledger and release stay."""
        async with self._one:
            if self.fitting.state() == "running":
                return _go("progress")
            self.project.start_over()
            self.fitting = Fitting(self.project)
        return _go("files")

    async def asset(self, request: Request) -> Response:
        """A style sheet or script."""
        found = ASSETS.get(request.path_params["name"])
        if found is None:
            return PlainTextResponse("There is no such file.", 404)
        package, name, kind = found
        return Response(str(asset(package, name)), media_type=kind)

    def _elsewhere(self, wanted: str) -> Response | None:
        """Where to go instead, when a step cannot be taken yet or no longer."""
        step = pages.reached(self.project, self.fitting.state())
        if step in ("progress", "done"):
            return None if wanted == step else _go(step)
        if wanted == "schema" and self.project.by_levels:
            return _go(step)
        names = [one for one, _ in pages.STEPS]
        # The plan may always be asked for once the schema is whole; other steps wait for their turn.
        return None if names.index(wanted) <= names.index(step) else _go(step)

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Resume what was begun; on leaving remove uploads, unless a fit still needs them."""
        if self.fitting.state() == "none":
            self.project.forget_uploads()  # of a server that was killed before anything was begun
            self.project.forget_answers()
        self.fitting.resume()
        self.reading.forget()
        yield
        self.reading.forget()
        self.fitting.leave()


def _may_go(step: str, to: str) -> bool:
    """Whether the list of steps offers a link: not back into a fit that was begun."""
    return to == step if step in ("progress", "done") else True


def _go(step: str) -> Response:
    return RedirectResponse(step, 303)  # beside the page that asks, whatever is above it


async def _sorry(_: Request, problem: Exception) -> Response:
    """No traceback and nothing of the data: what went wrong is said by its kind."""
    return PlainTextResponse(
        f"This is a bug ({type(problem).__name__}); please report it. Your ledger and your files are as they "
        "were.",
        500,
    )


# ---- who may reach them --------------------------------------------------------------------------

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


def create_app(project: Project, token: str | None = None, port: int = 8765) -> Guard:
    """The whole application, an ASGI one, behind its guard; a token is made where none is given."""
    studio = Studio(project)
    both = ["GET", "POST"]
    steps = ("files", "schema", "plan", "confirm", "progress")
    routes = [Route(f"/{name}", partial(studio.step, name), methods=both) for name in steps]
    routes += [
        *studio.reading.routes,
        Route("/", studio.home),
        Route("/files/{which}", studio.upload, methods=["PUT"]),
        Route("/problems.csv", studio.problems),
        Route("/status", studio.status),
        Route("/done", studio.done),
        Route("/release.zip", studio.release),
        Route("/sign", studio.sign, methods=["POST"]),
        Route("/sender.pub", studio.sender),
        Route("/report", studio.report),
        Route("/over", studio.over, methods=["POST"]),
        Route("/assets/{name}", studio.asset),
    ]
    wrong: Any = {PairveilError: studio.refused, Exception: _sorry}
    app = Starlette(routes=routes, lifespan=studio.lifespan, exception_handlers=wrong)
    return Guard(app, token or secrets.token_urlsafe(32), port)
