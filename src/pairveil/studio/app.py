"""The studio's pages and what their buttons do."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from pairveil.errors import PairveilError
from pairveil.files import write_file
from pairveil.report.rendering import asset, environment
from pairveil.studio import commands, forms, pages
from pairveil.studio.fitting import Fitting
from pairveil.studio.guard import Guard
from pairveil.studio.project import Project
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
        self._one = asyncio.Lock()  # one command at a time: two tabs ask for one plan

    # ---- showing ---------------------------------------------------------------------------------

    def page(self, name: str, problem: str = "", **content: Any) -> Response:
        """A step's page; with a problem it is said at the top."""
        step = pages.reached(self.project, self.fitting.state())
        names = [one for one, _ in pages.STEPS]
        text = environment("report", "studio").get_template(f"studio/{name}.html").render(
            step=name,
            problem=pages.on_the_page(problem, self.project),
            steps=[
                (one, words, names.index(one) <= names.index(step) and _may_go(step, one))
                for one, words in pages.STEPS
            ],
            **content,
        )  # fmt: skip
        return HTMLResponse(text, 400 if problem else 200)

    async def home(self, _: Request) -> Response:
        """To the step that was reached."""
        return _go(pages.reached(self.project, self.fitting.state()))

    # ---- files -----------------------------------------------------------------------------------

    async def files(self, request: Request) -> Response:
        """Choose two files and name their columns."""
        if (elsewhere := self._elsewhere("files")) is not None:
            return elsewhere
        if request.method == "GET":
            return self.page("files", **pages.files_page(self.project, self._names))
        try:
            form = await forms.read_form(request)
            self.project.settings = forms.with_columns(self.project.settings, form)
            await self._read_files()
        except PairveilError as problem:
            content = pages.files_page(self.project, self._names)
            return self.page("files", str(problem), **content)
        return _go("schema")

    async def upload(self, request: Request) -> Response:
        """Receive one file; answers with the names of its columns, and which of them is probably what."""
        if self.fitting.state() != "none":
            return JSONResponse({"problem": "a fit is in progress"}, 409)
        name, which = unquote(request.headers.get("x-file-name", "")), request.path_params["which"]
        try:
            async with self._one:
                await self.project.receive(which, name, request.stream())
                names = await asyncio.to_thread(self.project.column_names, which)
        except PairveilError as problem:
            return JSONResponse({"problem": pages.on_the_page(str(problem), self.project)}, 400)
        self._names[which] = names
        likely: dict[str, Any] = pages.likely_columns(which, names, self.project.settings)
        self.project.settings = replace(self.project.settings, **likely)
        fields = [field for field, table in pages.FIELDS.items() if table == which]
        chosen = {field: getattr(self.project.settings, field) for field in fields}
        return JSONResponse({"name": name[-120:], "columns": names, "chosen": chosen})

    async def _read_files(self) -> None:
        async with self._one:
            self.project.forget_answers()
            commands.public_options(self.project)
            kept = self.project.schema.read_text("utf-8") if self.project.schema.is_file() else None
            columns = (await commands.ask(commands.schema_command(self.project))).content
            if kept is not None and _same_columns(kept, columns):
                write_file(self.project.schema, kept)
            if not self.project.by_classes:
                kappa = await commands.ask(commands.kappa_command(self.project))
                self.project.keep("kappa.json", kappa.content)
            self.project.keep("columns.json", columns)

    # ---- columns ---------------------------------------------------------------------------------

    async def schema(self, request: Request) -> Response:
        """Complete what is public about each column."""
        if (elsewhere := self._elsewhere("schema")) is not None:
            return elsewhere
        if request.method == "GET":
            return self.page("schema", **pages.schema_page(self.project))
        form: dict[str, str] = {}
        try:
            form = await forms.read_form(request)
            data = pages.read_schema_data(self.project)
            forms.save_schema(self.project, data, form).check("the columns")
            for answer in ("plan.json", "certificate.json"):
                (self.project.folder / answer).unlink(missing_ok=True)
            await self._plan()
        except PairveilError as problem:
            return self.page("schema", str(problem), **pages.schema_page(self.project, form))
        return _go("plan")

    async def _plan(self) -> None:
        async with self._one:
            if self.project.answer("plan.json") is None:
                plan = await commands.ask(commands.plan_command(self.project))
                self.project.keep("plan.json", plan.content)

    # ---- privacy ---------------------------------------------------------------------------------

    async def plan(self, request: Request) -> Response:
        """Choose epsilon, what is protected and which pairs are used."""
        if (elsewhere := self._elsewhere("plan")) is not None:
            return elsewhere
        try:
            await self._plan()
            content = pages.plan_page(self.project)
        except PairveilError as problem:
            return self.page("schema", str(problem), **pages.schema_page(self.project))
        if request.method == "GET":
            return self.page("plan", **content)
        try:
            form = await forms.read_form(request)
            self.project.settings = forms.with_choice(self.project.settings, form)
            async with self._one:
                words = commands.fit_command(self.project, dry_run=True)
                rehearsed = await commands.ask(words)
                self.project.keep("certificate.json", rehearsed.content)
                self._notes = rehearsed.notes
        except PairveilError as problem:
            return self.page("plan", str(problem), **pages.plan_page(self.project))
        return _go("confirm")

    async def confirm(self, request: Request) -> Response:
        """Read what is promised, then spend."""
        if (elsewhere := self._elsewhere("confirm")) is not None:
            return elsewhere
        try:
            content = {**pages.confirm_page(self.project), "said": self._notes}
        except PairveilError as problem:
            return self.page("plan", str(problem), **pages.plan_page(self.project))
        if request.method == "GET":
            return self.page("confirm", **content)
        form = await forms.read_form(request)
        if form.get("shown") != content["shown"]:
            changed = (
                "Something was changed in another tab. This is what stands now: read it again."
            )
            return self.page("confirm", changed, **content)
        if form.get("read") != "yes":
            return self.page("confirm", "Tick the box when you have read it.", **content)
        async with self._one:
            self.fitting.start()
        return _go("progress")

    # ---- the fit ---------------------------------------------------------------------------------

    async def progress(self, request: Request) -> Response:
        """Watch the fit; the address may be loaded again at any time."""
        state = self.fitting.state()
        if state == "done":
            return _go("done")
        if state == "none":
            return _go(pages.reached(self.project, state))
        if request.method == "POST":
            form = await forms.read_form(request)
            async with self._one:
                if form.get("do") == "back":
                    self.fitting.give_up()
                else:
                    self.fitting.start()
            return _go("progress")
        return self.page("progress", **self._status())

    async def status(self, _: Request) -> Response:
        """Where the fit stands, for the page's script."""
        return JSONResponse(self._status())

    def _status(self) -> dict[str, Any]:
        state = self.fitting.state()
        done = 1.0 if state == "done" else self.fitting.share_done()
        return {"state": state, "done": round(done, 3), "why": self.fitting.problem()}

    async def done(self, _: Request) -> Response:
        """Download the release and read the report."""
        if self.fitting.state() != "done":
            return _go(pages.reached(self.project, self.fitting.state()))
        return self.page("done", **pages.done_page(self.project))

    async def release(self, _: Request) -> Response:
        """The release as a zip file."""
        if self.fitting.state() != "done":
            return PlainTextResponse("There is no release yet.", 404)
        name = 'attachment; filename="release.zip"'
        content = await asyncio.to_thread(self.project.zip_release)
        return Response(
            content, media_type="application/zip", headers={"Content-Disposition": name}
        )

    async def report(self, _: Request) -> Response:
        """The report, under its own policy."""
        file = self.project.release / "report.html"
        if self.fitting.state() != "done" or not file.is_file():
            return PlainTextResponse("There is no report yet.", 404)
        return report_page(await asyncio.to_thread(file.read_bytes))

    async def over(self, _: Request) -> Response:
        """Start over: uploads and settings go, ledger and release stay."""
        if self.fitting.state() == "running":
            return _go("progress")
        async with self._one:
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
        if self.fitting.state() in ("none", "done"):
            self.project.forget_uploads()
            self.project.forget_answers()


def _may_go(step: str, to: str) -> bool:
    """Whether the list of steps offers a link: not back into a fit that was begun."""
    return to == step if step in ("progress", "done") else True


def _same_columns(text: str, columns: dict[str, Any]) -> bool:
    import tomllib

    try:
        known = tomllib.loads(text).get("columns", {})
    except tomllib.TOMLDecodeError:
        return False
    classes = {column["name"] for column in columns["columns"] if column.get("type") == "class"}
    marked = {name for name, said in known.items() if said.get("type") == "class"}
    return classes <= marked and list(known) == [column["name"] for column in columns["columns"]]


def _go(step: str) -> Response:
    return RedirectResponse(f"/{step}", 303)


async def _sorry(_: Request, problem: Exception) -> Response:
    """No traceback and nothing of the data: what went wrong is said by its kind."""
    return PlainTextResponse(
        f"This is a bug ({type(problem).__name__}); please report it. Your ledger and your files are as they "
        "were.",
        500,
    )


def create_app(project: Project, token: str | None = None, port: int = 8765) -> Guard:
    """The whole application, behind its guard.

    Parameters
    ----------
    token : str, optional
        One is made if none is given.
    port : int
        That the server will listen on.

    Returns an ASGI application.
    """
    studio = Studio(project)
    both = ["GET", "POST"]
    steps: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "files": studio.files,
        "schema": studio.schema,
        "plan": studio.plan,
        "confirm": studio.confirm,
        "progress": studio.progress,
    }
    routes = [Route(f"/{name}", do, methods=both) for name, do in steps.items()]
    routes += [
        *studio.reading.routes,
        Route("/", studio.home),
        Route("/files/{which}", studio.upload, methods=["PUT"]),
        Route("/status", studio.status),
        Route("/done", studio.done),
        Route("/release.zip", studio.release),
        Route("/report", studio.report),
        Route("/over", studio.over, methods=["POST"]),
        Route("/assets/{name}", studio.asset),
    ]
    app = Starlette(routes=routes, lifespan=studio.lifespan, exception_handlers={Exception: _sorry})
    return Guard(app, token or secrets.token_urlsafe(32), port)
